//! The vector instructions of this processor.

use super::tile;
use pulp::{Arch, Simd, WithSimd};
use std::sync::OnceLock;

fn arch() -> Arch {
    static ARCH: OnceLock<Arch> = OnceLock::new();
    *ARCH.get_or_init(Arch::new)
}

/// Calls work compiled for the widest vectors that the processor has.
pub fn dispatch<W: WithSimd>(work: W) -> W::Output {
    arch().dispatch(work)
}

/// A closure as work. It is called by reference: a call by value goes through a function of its own, which is not compiled
/// for the vectors.
struct Closure<F>(F);

impl<R, F: FnMut() -> R> WithSimd for Closure<F> {
    type Output = R;

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, _: S) -> R {
        (self.0)()
    }
}

/// Calls a closure compiled for the widest vectors that the processor has. It and what it calls are to be `inline(always)`.
pub fn vectorize<R>(work: impl FnMut() -> R) -> R {
    dispatch(Closure(work))
}

struct Sizes;

impl WithSimd for Sizes {
    type Output = ([usize; 2], usize);

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Self::Output {
        (tile::largest::<S>(), S::F32_LANES)
    }
}

/// Rows and vectors of the largest tile.
pub fn largest_tile() -> [usize; 2] {
    dispatch(Sizes).0
}

/// Elements of a vector of float32.
pub fn lanes() -> usize {
    dispatch(Sizes).1
}
