//! Helpers of the CPU backend: the compute threads, the float trait and the one matrix product.

mod float;
mod gemm;
pub mod half;
pub mod math;
mod pieces;
pub mod scalar;
pub mod simd;
mod single;
mod threads;
pub mod tile;
pub mod whole;

pub use float::Float;
pub use gemm::{Matrix, MatrixMut, matmul};
pub use math::Math;
pub use pieces::{for_pieces, try_for_pieces};
pub use threads::{copy_pool, install, spawn, thread_count};

/// Calls a generic function with the Rust type of a float dtype.
#[macro_export]
macro_rules! for_float {
    ($dtype:expr, $function:ident ( $($argument:expr),* $(,)? )) => {
        match $dtype {
            $crate::DType::F64 => $function::<f64>($($argument),*),
            _ => $function::<f32>($($argument),*),
        }
    };
}
