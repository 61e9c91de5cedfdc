//! The kernels and their times.

/// One of the kernels. The times are those of an H200.
#[derive(Debug, PartialEq)]
pub struct Tile {
    /// Part of the kernel's name.
    pub name: &'static str,
    /// Outputs of a block along the long operand and the short one.
    pub long: usize,
    pub short: usize,
    /// Groups of warps that take turns along k, 16 at a time.
    pub groups: usize,
    pub threads: u32,
    /// Blocks take multiples of so many times 16 of k.
    pub step: usize,
    /// Share of the bandwidth that it brings operands with.
    pub share: f64,
    /// Microseconds of a block, and for each 16 of k that a group takes.
    pub times: (f64, f64),
}

#[rustfmt::skip]
pub static TILES: [Tile; 6] = [
    Tile { name: "direct_16x8", long: 16, short: 8, groups: 8, threads: 256, step: 1, share: 0.5, times: (0.4, 0.2) },
    Tile { name: "direct_32x16", long: 32, short: 16, groups: 6, threads: 192, step: 1, share: 0.5, times: (0.6, 0.5) },
    Tile { name: "direct_32x32", long: 32, short: 32, groups: 4, threads: 128, step: 1, share: 0.5, times: (0.5, 0.4) },
    Tile { name: "direct_32x8_stream", long: 32, short: 8, groups: 16, threads: 512, step: 1, share: 0.683, times: (1.0, 0.7) },
    Tile { name: "direct_32x16_stream", long: 32, short: 16, groups: 12, threads: 384, step: 1, share: 0.667, times: (1.0, 0.9) },
    Tile { name: "direct_64x16_stream", long: 64, short: 16, groups: 3, threads: 192, step: 1, share: 0.667, times: (1.0, 0.45) },
];
/// One vector by a matrix with k side by side.
#[rustfmt::skip]
pub static ROWS: Tile =
    Tile { name: "rows", long: 16, short: 1, groups: 2, threads: 256, step: 64, share: 0.7, times: (0.5, 0.03) };
/// Very many rows by a matrix that is kept in shared memory; blocks stay, their warps walk over the rows.
#[rustfmt::skip]
pub static TALL: Tile =
    Tile { name: "tall", long: 16, short: 64, groups: 1, threads: 256, step: 1, share: 0.5, times: (0.1, 0.07) };
/// Most k that it takes, and how much it stages at once.
pub const TALL_K: usize = 128;
pub const TALL_GROUP: usize = 32;
/// Microseconds for staging.
pub const TALL_START: f64 = 3.0;

/// Microseconds of a launch, which begins while the one before ends.
pub const LAUNCH: f64 = 1.5;
/// Blocks that a multiprocessor holds, and microseconds that each of a later wave costs beside.
pub const RESIDENT: usize = 2;
pub const WAVE: f64 = 2.0;
