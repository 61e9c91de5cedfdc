//! Tiles of sums of products in registers: the inner loop of float32 convolutions and products.

use pulp::Simd;

/// Elements of the widest vectors.
pub const WIDEST: usize = 16;
/// The most elements of a line that a tile reads from where it begins.
pub const REACH: usize = 8 * WIDEST;

/// Vectors in a row of a tile, the widest first, for tiles of 1, 2, 4 and 8 rows: with 32 registers, with 16.
const WIDTHS: [[[usize; 3]; 4]; 2] =
    [[[8, 4, 1], [8, 4, 1], [6, 3, 1], [3, 2, 1]], [[8, 4, 1], [4, 4, 1], [3, 3, 1], [3, 3, 1]]];

/// Rows of the largest tile.
pub const fn most_rows<S: Simd>() -> usize {
    if S::REGISTER_COUNT >= 32 { 8 } else { 4 }
}

/// Rows of the tile for as many as are left.
pub const fn rows_of(left: usize, most: usize) -> usize {
    if left >= most { most } else { 1 << left.ilog2() }
}

/// Vectors in a row of the tile of that many rows where so many elements are left: the widest that is not wider than they
/// are, else the narrowest that covers them.
#[inline(always)]
pub fn vectors_of<S: Simd>(rows: usize, left: usize) -> usize {
    let widths = WIDTHS[if S::REGISTER_COUNT >= 32 { 0 } else { 1 }][rows.ilog2() as usize];
    let wanted = left.div_ceil(S::F32_LANES);
    widths.into_iter().find(|&width| width <= wanted).unwrap_or(1)
}

/// Terms that are summed before they join the sum of those before: a single chain's error grows with its length.
const BLOCK: usize = 128;

/// Sums of M rows, written to lines of N vectors: the start of each row, then for each term the rows' factors by its line.
/// The sums are handed on vector by vector, because an array whose address is taken does not stay in registers.
#[inline(always)]
pub fn sums<'a, S: Simd, const M: usize, const N: usize>(
    simd: S,
    starts: [f32; M],
    factors: &[[f32; M]],
    line: impl Fn(usize) -> &'a [f32],
    to: &mut [[[f32; WIDEST]; N]; M],
) {
    for i in 0..M {
        S::as_mut_simd_f32s(to[i].as_flattened_mut()).0.fill(simd.splat_f32s(starts[i]));
    }
    for (block, factors) in factors.chunks(BLOCK).enumerate() {
        let mut sums = [[simd.splat_f32s(0.0); N]; M];
        for (index, factors) in factors.iter().enumerate() {
            let line = S::as_simd_f32s(line(block * BLOCK + index)).0;
            let line: [S::f32s; N] = std::array::from_fn(|j| line[j]);
            for i in 0..M {
                let factor = simd.splat_f32s(factors[i]);
                for j in 0..N {
                    sums[i][j] = simd.mul_add_e_f32s(factor, line[j], sums[i][j]);
                }
            }
        }
        for i in 0..M {
            let (line, _) = S::as_mut_simd_f32s(to[i].as_flattened_mut());
            for j in 0..N {
                line[j] = simd.add_f32s(line[j], sums[i][j]);
            }
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
            (4, 6) => $function::<S, 4, 6>($($argument),*),
            (4, 3) => $function::<S, 4, 3>($($argument),*),
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
