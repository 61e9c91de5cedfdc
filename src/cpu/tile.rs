//! Tiles of sums of products in registers: the inner loop of float32 convolutions and products.

use pulp::Simd;

/// Elements of the widest vectors.
pub const WIDEST: usize = 16;
/// The most elements of a line that a tile reads from where it begins.
pub const REACH: usize = 8 * WIDEST;

/// Rows and vectors of the largest tile, with 32 registers and with 16. Besides the sums it wants a register for each vector
/// of the line and two for factors, or one of the sums goes to memory and back for every term.
const LARGEST: [[usize; 2]; 2] = [[8, 3], [6, 2]];

/// Vectors in a row of a tile, the widest first, for tiles of 1, 2, 4 and the most rows: with 32 registers, with 16.
const WIDTHS: [[[usize; 3]; 4]; 2] =
    [[[8, 4, 1], [8, 4, 1], [6, 3, 1], [3, 2, 1]], [[8, 4, 1], [4, 4, 1], [2, 2, 1], [2, 2, 1]]];

/// Which of these a kind of vectors has.
const fn kind<S: Simd>() -> usize {
    if S::REGISTER_COUNT >= 32 { 0 } else { 1 }
}

/// Rows and vectors of the largest tile.
pub const fn largest<S: Simd>() -> [usize; 2] {
    LARGEST[kind::<S>()]
}

/// Rows of the tile for as many as are left.
pub const fn rows_of(left: usize, most: usize) -> usize {
    if left >= most { most } else { 1 << left.ilog2() }
}

/// Vectors in a row of the tile of that many rows where so many elements are left: the widest that is not wider than they
/// are, else the narrowest that covers them.
#[inline(always)]
pub fn vectors_of<S: Simd>(rows: usize, left: usize) -> usize {
    let of_rows = if rows > 4 { 3 } else { rows.ilog2() as usize };
    let wanted = left.div_ceil(S::F32_LANES);
    WIDTHS[kind::<S>()][of_rows].into_iter().find(|&width| width <= wanted).unwrap_or(1)
}

/// Terms that are summed before they join the sum of those before: a single chain's error grows with its length, and the
/// lines and factors of so many terms stay in the first cache.
pub const BLOCK: usize = 256;

/// A block of sums for M rows by N vectors, written to `y[..][at..]`: what is there, or `starts` for the first block, plus the
/// rows' factors of each term by its line. The sums are joined vector by vector, because an array whose address is taken does
/// not stay in registers.
#[inline(always)]
pub fn join<'a, S: Simd, const M: usize, const N: usize>(
    simd: S,
    starts: Option<[f32; M]>,
    factors: &[[f32; M]],
    line: impl Fn(usize) -> &'a [f32],
    at: usize,
    y: &mut [&mut [f32]],
) {
    let mut sums = [[simd.splat_f32s(0.0); N]; M];
    for (index, factors) in factors.iter().enumerate() {
        let line = S::as_simd_f32s(line(index)).0;
        let line: [S::f32s; N] = std::array::from_fn(|j| line[j]);
        for i in 0..M {
            let factor = simd.splat_f32s(factors[i]);
            for j in 0..N {
                sums[i][j] = simd.mul_add_e_f32s(factor, line[j], sums[i][j]);
            }
        }
    }
    for i in 0..M {
        let y = &mut S::as_mut_simd_f32s(&mut y[i][at..][..N * S::F32_LANES]).0[..N];
        for j in 0..N {
            let before = starts.map_or(y[j], |starts| simd.splat_f32s(starts[i]));
            y[j] = simd.add_f32s(before, sums[i][j]);
        }
    }
}

/// Calls a function generic over the rows and vectors of a tile with these.
macro_rules! for_tile {
    ($rows:expr, $vectors:expr, $function:ident ( $($argument:expr),* $(,)? )) => {
        match ($rows, $vectors) {
            (8, 3) => $function::<S, 8, 3>($($argument),*),
            (8, 2) => $function::<S, 8, 2>($($argument),*),
            (8, _) => $function::<S, 8, 1>($($argument),*),
            (6, 2) => $function::<S, 6, 2>($($argument),*),
            (6, _) => $function::<S, 6, 1>($($argument),*),
            (4, 6) => $function::<S, 4, 6>($($argument),*),
            (4, 3) => $function::<S, 4, 3>($($argument),*),
            (4, 2) => $function::<S, 4, 2>($($argument),*),
            (4, _) => $function::<S, 4, 1>($($argument),*),
            (2, 8) => $function::<S, 2, 8>($($argument),*),
            (2, 4) => $function::<S, 2, 4>($($argument),*),
            (2, _) => $function::<S, 2, 1>($($argument),*),
            (_, 8) => $function::<S, 1, 8>($($argument),*),
            (_, 4) => $function::<S, 1, 4>($($argument),*),
            _ => $function::<S, 1, 1>($($argument),*),
        }
    };
}
pub(crate) use for_tile;

#[cfg(test)]
mod tests {
    use super::*;
    use pulp::WithSimd;

    /// Every tile that a kind of vectors has, over a block that begins the sums and one that goes on with them.
    struct All;

    impl WithSimd for All {
        type Output = ();

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            let [most, _] = largest::<S>();
            for rows in [1, 2, 4, most] {
                for left in 1..=REACH {
                    let vectors = vectors_of::<S>(rows, left);
                    assert!(vectors * S::F32_LANES <= REACH && rows_of(rows, most) == rows);
                    for_tile!(rows, vectors, check(simd, rows, vectors));
                }
            }
        }
    }

    fn check<S: Simd, const M: usize, const N: usize>(simd: S, rows: usize, vectors: usize) {
        assert_eq!((M, N), (rows, vectors));
        const TERMS: usize = 7;
        let width = N * S::F32_LANES;
        let x: Vec<f32> = (0..TERMS + width).map(|i| (i * 7 % 11) as f32 - 5.0).collect();
        let factors: Vec<[f32; M]> =
            (0..TERMS).map(|k| std::array::from_fn(|i| ((3 * k + i) % 5) as f32)).collect();
        let starts = std::array::from_fn(|i| i as f32 + 0.5);
        let mut y = vec![vec![f32::NAN; width + 2]; M];
        let mut lines: Vec<&mut [f32]> = y.iter_mut().map(Vec::as_mut_slice).collect();
        join::<S, M, N>(simd, Some(starts), &factors[..4], |k| &x[k..][..width], 1, &mut lines);
        join::<S, M, N>(simd, None, &factors[4..], |k| &x[k + 4..][..width], 1, &mut lines);
        for (i, y) in y.iter().enumerate() {
            assert!(y[0].is_nan() && y[width + 1].is_nan());
            for j in 0..width {
                // Whole numbers and a half: exact in any order.
                let want: f32 = (0..TERMS).map(|k| factors[k][i] * x[k + j]).sum();
                assert_eq!(y[j + 1], want + starts[i], "row {i}, element {j}");
            }
        }
    }

    #[test]
    fn tiles_agree_with_the_sums_whatever_the_registers() {
        pulp::Arch::new().dispatch(All);
        Simd::vectorize(pulp::Scalar::new(), All);
        #[cfg(target_arch = "x86_64")]
        if let Some(simd) = pulp::x86::V3::try_new() {
            Simd::vectorize(simd, All);
        }
    }
}
