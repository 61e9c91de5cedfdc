//! float16 and bfloat16 products by mma.sync (kernels/gemm_mma_half.cu), below compute capability 9.0.

use super::super::super::tile::LAUNCH;
use super::super::Product;
use super::super::cuda::{self, choice};
use super::super::split::{Tile, known, mma, wide};
use super::{ALIGNED_D, FLOAT_D, LONG, Operand, PROMOTE, Setting, Sides, promotes};
use crate::dtype::DType;

static TILES: [Tile; 3] = [
    mma("mma_256x128", 1, (256, 128), (256, 1), ((1.28, 1.5), 0.0)),
    mma("mma_64x128", 1, (64, 128), (128, 2), ((0.344, 0.95), 0.57)),
    mma("mma_64x64", 1, (64, 64), (64, 4), ((0.117, 0.37), 2.9)),
];
/// The only one whose kernel knows PROMOTE.
const PROMOTED: &Tile = &TILES[1];

// Flags of kernels/common/mma_half.cuh.
const ACROSS_A: u32 = 8;
const ACROSS_B: u32 = 16;

/// Offsets in a tile take 32 bits.
const LARGEST_PITCH: usize = 1 << 23;

#[derive(Debug, PartialEq)]
pub struct Plan {
    pub kernel: String,
    pub tile: &'static Tile,
    pub a: Operand,
    pub b: Operand,
    /// Bytes of dynamic shared memory.
    pub shared: usize,
    /// Output tiles.
    pub tiles: usize,
    pub words: Vec<u32>,
}

/// The plan of a product that has elements; `None` where this route does not take it, or the plain cores are faster, for
/// which operands and result are converted by launches of their own.
pub fn plan(product: &Product, activation: u32, setting: Setting) -> Option<Plan> {
    let Product { m, n, k, .. } = *product;
    let Setting { card, operands, aligned, .. } = setting;
    let sides = Sides::new(product, setting)?;
    let Sides { a, b, batch, .. } = sides;
    if a.pitch().max(b.pitch()) >= LARGEST_PITCH || (card.level < 80 && operands == DType::Bf16) {
        return None;
    }
    let promotes = promotes(k, setting);
    let tiles = if promotes { std::slice::from_ref(PROMOTED) } else { known(&card, &TILES) };
    let timed = tiles.iter().filter_map(|tile| {
        let (shared, resident) = tile.held(&card)?;
        Some((tile, shared, tile.time(tile.count(m, n, batch), k, resident, &card)))
    });
    let (tile, shared, time) = timed.min_by(|one, other| one.2.total_cmp(&other.2))?;
    let tiles = tile.count(m, n, batch);
    // Few tiles with long sums want splitting, which other routes do.
    let few = 4 * tiles < card.multiprocessors as usize && k >= LONG;
    let plain = choice(product, cuda::Setting { size: 4, aligned, activation, card }).time;
    let copied = [a, b].iter().filter(|side| side.padded).count();
    if few || LAUNCH * (1 + copied) as f64 + time > plain + 3.0 * LAUNCH {
        return None;
    }
    let flags = [
        (aligned[2], ALIGNED_D),
        (setting.result == DType::F32, FLOAT_D),
        (promotes, PROMOTE),
        (a.across, ACROSS_A),
        (b.across, ACROSS_B),
    ];
    let mut words = sides.words(product, activation, &flags);
    words.extend([a, b].into_iter().flat_map(|side| [side.pitch(), side.step()]).flat_map(wide));
    let kernel = format!("matmul_{}_{}", operands.suffix(), tile.name);
    Some(Plan { kernel, tile, a, b, shared, tiles, words })
}

#[cfg(test)]
mod tests {
    use super::super::super::super::tile::Card;
    use super::super::super::super::{Call, Precision, Raw, spec::Meta};
    use super::*;
    use crate::kernels::{Parameter, find};

    const A100: ((u32, u32, f64), [u32; 2]) = ((108, 1410, 1.555e12), [164, 163]);
    const T4: ((u32, u32, f64), [u32; 2]) = ((40, 1590, 0.32e12), [64, 64]);

    fn setting(level: u32, (card, shared): ((u32, u32, f64), [u32; 2]), tensor: f64) -> Setting {
        let card = Card::named(level, card, (64.0, tensor), shared);
        let (operands, result) = (DType::F16, DType::F16);
        Setting { aligned: [true; 3], operands, result, precision: Precision::Highest, card }
    }

    fn planned([m, k, n]: [usize; 3], options: &[&str], setting: Setting) -> Option<Plan> {
        let turned = |name| options.contains(&name);
        let a = if turned("transA") { [k, m] } else { [m, k] };
        let b = if turned("transB") { [n, k] } else { [k, n] };
        let metas = [&a, &b].map(|dims| Some(Meta::new(DType::F16, &dims[..]))).into();
        let raw: Vec<_> = options.iter().map(|name| (name.to_string(), Raw::Bool(true))).collect();
        plan(&Product::of(&Call::new("matmul", metas, &raw).unwrap()).unwrap(), 0, setting)
    }

    #[test]
    fn tiles_follow_the_size_and_the_sums() {
        let setting = setting(80, A100, 1024.0);
        let kernel = |sizes, setting| planned(sizes, &[], setting).unwrap().kernel;
        assert_eq!(kernel([8192; 3], setting), "matmul_f16_mma_256x128");
        assert_eq!(kernel([512; 3], setting), "matmul_f16_mma_64x64");
        let float = Setting { result: DType::F32, operands: DType::Bf16, ..setting };
        assert_eq!(kernel([8192; 3], float), "matmul_bf16_mma_64x128");
        let eleven = Setting { precision: Precision::High, ..float };
        assert_eq!(kernel([8192; 3], eleven), "matmul_bf16_mma_256x128");
        assert_eq!(kernel([4096, (1 << 14) + 1, 4096], setting), "matmul_f16_mma_64x128");
    }

    #[test]
    fn what_is_left_to_others() {
        let a100 = setting(80, A100, 1024.0);
        assert!(planned([64, 65536, 64], &[], a100).is_none());
        assert!(planned([1024; 3], &[], Setting { precision: Precision::Strict, ..a100 }).is_none());
        let t4 = setting(75, T4, 512.0);
        assert!(planned([1024; 3], &[], t4).is_some());
        assert!(planned([1024; 3], &[], Setting { operands: DType::Bf16, ..t4 }).is_none());
        // Tensor cores that only seem to be there.
        assert!(planned([1024; 3], &[], setting(75, T4, 32.0)).is_none());
    }

    #[test]
    fn words_fill_the_kernels_struct() {
        for (level, card, count) in [(80, A100, 3), (75, T4, 2)] {
            let setting = setting(level, card, 512.0);
            for tile in known(&setting.card, &TILES) {
                let (module, entry) = find(&format!("matmul_f16_{}", tile.name), level).unwrap();
                let plan = planned([600, 999, 507], &["transA", "transB"], setting).unwrap();
                assert_eq!(module.level, level);
                assert_eq!(entry.parameters.last(), Some(&Parameter::Block(4 * plan.words.len())));
                assert_eq!(plan.words[5], ALIGNED_D | ACROSS_A);
                // Lines of b are copied to padded ones.
                assert_eq!((plan.a.padded, plan.b.padded), (false, true));
                assert_eq!(plan.words[20..], [600, 0, 999 * 600, 0, 1000, 0, 507 * 1000, 0]);
            }
            assert_eq!(known(&setting.card, &TILES).len(), count);
        }
    }
}
