use super::super::super::spec::Meta;
use super::super::super::{Call, Raw};
use super::super::cuda::{choice, tensor_plan};
use super::*;
use crate::driver::fake::{Config, Launch, map_of};
use crate::kernels::{Parameter, find};
use crate::ops::planes::bench::{Bench, names, words};
use crate::{DType, Tensor};

const H200: Setting = Setting { size: 4, aligned: [true; 3], activation: 0, card: Card::H200 };
const PASSING: [Form<Planes>; 2] = [Form::Passing, Form::Passing];
const WEIGHTS: [Form<Planes>; 2] = [Form::Passing, Form::Wanted];

fn call(dims: &[&[usize]], options: &[&str], precision: &str) -> Call {
    let metas = dims.iter().map(|dims| Some(Meta::new(DType::F32, *dims))).collect();
    let mut raw: Vec<_> = options.iter().map(|name| (name.to_string(), Raw::Bool(true))).collect();
    raw.push(("precision".into(), Raw::Text(precision.into())));
    Call::new("matmul", metas, &raw).unwrap()
}

fn product(dims: &[&[usize]], options: &[&str]) -> Product {
    Product::of(&call(dims, options, "highest")).unwrap()
}

const PRECISIONS: [Precision; 2] = [Precision::Highest, Precision::High];

/// The plan where the route is the faster one.
fn faster(product: &Product, precision: Precision, forms: &[Form<Planes>; 2]) -> Option<Plan> {
    faster_on(Card::H200, product, precision, forms)
}

fn faster_on(card: Card, product: &Product, precision: Precision, forms: &[Form<Planes>; 2]) -> Option<Plan> {
    let setting = Setting { card, ..H200 };
    tensor_plan(product, setting, precision).filter(|plan| plan.time(forms) < choice(product, setting).time)
}

fn route(m: usize, n: usize, k: usize, precision: Precision) -> Option<&'static str> {
    faster(&product(&[&[m, k], &[k, n]], &[]), precision, &PASSING).map(|plan| plan.tile.name)
}

#[test]
fn the_route_pays_from_some_size_on() {
    let of = |size, precision| route(size, size, size, precision);
    assert_eq!(of(256, Precision::Highest), None);
    assert_eq!(of(512, Precision::Highest), Some("split_64x64"));
    assert_eq!(of(1024, Precision::Highest), Some("split_64x128"));
    assert_eq!(of(2048, Precision::Highest), Some("split_128x128"));
    assert_eq!(of(8192, Precision::Highest), Some("split_128x128"));
    assert_eq!(of(1024, Precision::High), Some("half_128x128"));
    assert_eq!(of(4096, Precision::High), Some("half_128x256"));
    assert_eq!(of(8192, Precision::Medium), Some("half_128x256"));
    assert_eq!(route(4096, 4096, 16385, Precision::High), Some("half_128x128"));
    assert_eq!(of(4096, Precision::Strict), None);
    assert_eq!(route(4096, 4096, 63, Precision::Highest), None);
    assert_eq!(route(4096, 4096, 64, Precision::Highest), Some("split_128x128"));
    assert_eq!(route(8, 8192, 8192, Precision::Highest), None);
    assert_eq!(route(64, 64, 65536, Precision::Highest), None);
    let double = Setting { size: 8, ..H200 };
    assert!(plan(&product(&[&[2048, 2048], &[2048, 2048]], &[]), double, Precision::Highest).is_none());
}

/// Cards without wgmma by what their chips are said to do.
fn other_cards() -> [(&'static str, Card); 5] {
    [
        ("A100", Card::named(80, (108, 1410, 1.555e12), (64.0, 1024.0), [164, 163])),
        ("RTX 4090", Card::named(89, (128, 2520, 1.008e12), (128.0, 256.0), [100, 99])),
        ("L40S", Card::named(89, (142, 2520, 0.864e12), (128.0, 512.0), [100, 99])),
        ("T4", Card::named(75, (40, 1590, 0.32e12), (64.0, 512.0), [64, 64])),
        ("H200 at level 80", Card::named(80, (132, 1980, 4.814e12), (128.0, 1280.0), [228, 227])),
    ]
}

#[test]
fn the_ratio_of_plain_and_tensor_cores_decides_on_other_cards() {
    let cases = [
        ("A100", [None, Some("mma_128x128"), Some("mma_half_256x128")]),
        ("RTX 4090", [None, None, Some("mma_half_256x128")]),
        ("L40S", [None, Some("mma_128x128"), Some("mma_half_256x128")]),
        ("T4", [None, Some("mma_128x128"), Some("mma_half_256x128")]),
        ("H200 at level 80", [None, Some("mma_128x128"), Some("mma_half_256x128")]),
    ];
    for ((name, card), (_, wanted)) in other_cards().into_iter().zip(cases) {
        let of = |size: usize, precision| {
            let product = product(&[&[size, size], &[size, size]], &[]);
            faster_on(card, &product, precision, &PASSING).map(|plan| plan.tile.name)
        };
        let got = [(256, Precision::Highest), (8192, Precision::Highest), (8192, Precision::High)];
        assert_eq!(got.map(|(size, precision)| of(size, precision)), wanted, "{name}");
    }
}

#[test]
fn shared_memory_holds_as_many_blocks_and_stages_as_it_can() {
    let held = |name: &str, tile: &str| {
        let card = other_cards().into_iter().find(|(other, _)| *other == name).unwrap().1;
        let tiles = PRECISIONS.map(|word| Tile::of(&card, word));
        let tile = tiles.into_iter().flatten().find(|one| one.name == tile).unwrap();
        tile.held(&card).map(|(shared, resident)| (shared >> 10, resident))
    };
    assert_eq!(held("A100", "mma_128x128"), Some((128, 1)));
    assert_eq!(held("A100", "mma_64x128"), Some((72, 2)));
    assert_eq!(held("A100", "mma_64x64"), Some((48, 3)));
    assert_eq!(held("RTX 4090", "mma_128x128"), Some((96, 1)));
    assert_eq!(held("RTX 4090", "mma_64x64"), Some((48, 2)));
    assert_eq!(held("RTX 4090", "mma_half_256x128"), Some((96, 1)));
    assert_eq!(held("T4", "mma_128x128"), Some((64, 1)));
    assert_eq!(held("T4", "mma_half_64x64"), Some((17, 3)));
    assert_eq!(held("H200 at level 80", "mma_64x64"), Some((64, 3)));
}

#[test]
fn rows_beyond_the_offsets_of_a_tile_stay_chains() {
    let setting = Setting { card: other_cards()[0].1, ..H200 };
    let taken = |k| plan(&product(&[&[64, k], &[64, k]], &["transB"]), setting, Precision::Highest).is_some();
    assert!(taken((1 << 23) - 64) && !taken((1 << 23) - 63));
}

#[test]
fn weights_take_the_route_sooner() {
    let product = product(&[&[64, 4096], &[4096, 4096]], &[]);
    assert!(faster(&product, Precision::Highest, &PASSING).is_none());
    assert!(faster(&product, Precision::Highest, &WEIGHTS).is_some());
}

/// Of __test__/36.products.test.mjs.
#[test]
fn sizes_of_the_suite_take_the_route() {
    let taken = |a: &[usize], b: &[usize], options: &[&str], precision| {
        faster(&product(&[a, b], options), precision, &PASSING).is_some()
    };
    for precision in [Precision::Highest, Precision::High] {
        assert!(taken(&[1023, 1027], &[1027, 1025], &[], precision));
        assert!(taken(&[703, 1100], &[703, 901], &["transA"], precision));
        assert!(taken(&[901, 703], &[1100, 703], &["transB"], precision));
        assert!(taken(&[704, 1028], &[900, 704], &["transA", "transB"], precision));
        assert!(taken(&[3073, 64], &[64, 3071], &[], precision));
        assert!(taken(&[3072, 65], &[3072, 65], &["transB"], precision));
        assert!(taken(&[4096, 1000], &[4096, 640], &["transA"], precision));
        assert!(taken(&[3, 520, 512], &[3, 512, 700], &[], precision));
        assert!(taken(&[3, 512, 520], &[512, 700], &["transA"], precision));
        assert!(taken(&[1030, 514], &[514, 1026], &[], precision));
        assert!(taken(&[1024, 256], &[1024, 256], &["transB"], precision));
        assert!(taken(&[1024, 520], &[520, 1030], &[], precision));
    }
}

#[test]
fn a_batch_walks_through_matrices() {
    let walks = |a: &[usize], b: &[usize]| {
        let plan = plan(&product(&[a, b], &[]), H200, Precision::Highest)?;
        Some((plan.batch, [plan.a.walk, plan.b.walk].map(|walk| (walk.each, walk.count, walk.step))))
    };
    let (a, b) = (300 * 100, 100 * 200);
    assert_eq!(walks(&[300, 100], &[100, 200]), Some((1, [(1, 1, 0), (1, 1, 0)])));
    assert_eq!(walks(&[5, 300, 100], &[5, 100, 200]), Some((5, [(1, 5, a), (1, 5, b)])));
    assert_eq!(walks(&[300, 100], &[5, 100, 200]), Some((5, [(5, 1, 0), (1, 5, b)])));
    assert_eq!(walks(&[2, 1, 300, 100], &[3, 100, 200]), Some((6, [(3, 2, a), (1, 3, b)])));
    assert_eq!(walks(&[2, 1, 4, 300, 100], &[3, 1, 100, 200]), None);
    assert_eq!(walks(&[2, 3, 300, 100], &[3, 100, 200]), Some((6, [(1, 6, a), (1, 3, b)])));
    let with_c = |c: &[usize]| {
        let product = product(&[&[5, 300, 100], &[5, 100, 200], c], &[]);
        plan(&product, H200, Precision::Highest).map(|plan| plan.c_batch)
    };
    assert_eq!(with_c(&[5, 300, 200]), Some(300 * 200));
    assert_eq!(with_c(&[200]), Some(0));
}

#[test]
fn words_fill_the_kernels_structs() {
    let product = product(&[&[1000, 300], &[300, 1026]], &[]);
    let last = |name: &str| *find(name, 90).unwrap().1.parameters.last().unwrap();
    for precision in [Precision::Highest, Precision::High] {
        let plan = plan(&product, H200, precision).unwrap();
        let words = plan.words(&product, 3, [9, 1]);
        assert_eq!(last(&format!("matmul_f32_{}", plan.tile.name)), Parameter::Block(words.len() * 4));
        assert_eq!(words[..8], [1000, 1026, 300, 1, 3, VECTOR_D, 9, 1]);
        assert_eq!(words[22..], [0, 0, 1, 0, 300, 0, 1, 0, 0, 0, 1, 0, 1026, 0, 0, 0]);
        let sides = [plan.a.words(11, 1, 9), plan.b.words(12, 1, 9)].concat();
        assert_eq!(last("split_f32"), Parameter::Block(sides.len() * 4));
        let hi_only = if plan.a.hi_only { HI_ONLY } else { 0 };
        assert_eq!(sides[..8], [1000, 300, 320, hi_only, 1, 11, 32, 9]);
        assert_eq!(sides[12..][..8], [1026, 300, 320, TURNED | hi_only, 1, 12, 320, 9]);
        assert_eq!((plan.a.vectors, plan.b.vectors), (true, false));
    }
    for tile in PRECISIONS.iter().flat_map(|word| Tile::of(&Card::H200, *word)) {
        assert!(find(&format!("matmul_f32_{}", tile.name), 90).unwrap().0.exact);
        let (shared, resident) = tile.held(&Card::H200).unwrap();
        let barriers_and_exponents = 16 * 9 + 4 * (tile.rows + tile.columns);
        assert!(shared + barriers_and_exponents <= 227 * 1024 && resident == 1, "{}", tile.name);
    }
    for (_, card) in other_cards() {
        for tile in PRECISIONS.iter().flat_map(|word| Tile::of(&card, *word)) {
            let (module, entry) = find(&format!("matmul_f32_{}", tile.name), card.level).unwrap();
            assert_eq!(entry.parameters.last(), Some(last("matmul_f32_half_128x128")).as_ref());
            assert_eq!(module.level, card.level.min(80));
        }
    }
}

#[test]
fn blocks_cover_both_sides() {
    let all = [(1, 64, 1), (127, 65, 3), (1000, 4100, 1), (129, 100_000, 2), (50_000, 64, 7), (9, 8192, 1)];
    for (rows, k, count) in all {
        let walk = Walk { each: 1, count, step: rows * k };
        let side = |turned| Side { rows, k, turned, pitch: k, walk, vectors: true, hi_only: false };
        let turned = side(true);
        for cluster in [turned.cluster(&Card::H200), 8] {
            let width = turned.width(cluster);
            assert!(width * cluster >= k && width.is_multiple_of(64) && width >= 128);
            assert!(cluster == 8 || width <= HELD || turned.cluster(&Card::H200) == 8);
            assert_eq!(turned.blocks(cluster), rows.div_ceil(16) * count * cluster);
        }
        let straight = side(false);
        let width = straight.width(8);
        assert!([32, 64, 128, 256].contains(&width) && (width == 256 || width * 32 >= k));
        assert_eq!(straight.blocks(1), (rows * count).div_ceil(256 / width));
        assert!(straight.blocks(8).is_multiple_of(8) && straight.blocks(8) >= straight.blocks(1));
        assert!(straight.plane_pitch() >= k && straight.plane_pitch().is_multiple_of(64));
        assert_eq!(
            (straight.cluster(&Card::H200), straight.steps(), turned.steps()),
            (1, [k, 1, rows * k], [1, k, rows * k])
        );
    }
}

impl Bench {
    /// The launches of a product.
    fn multiply(&self, a: &Tensor, b: &Tensor, options: &[&str], precision: &str) -> Vec<Launch> {
        let call = call(&[&a.meta().dims, &b.meta().dims], options, precision);
        self.launches(&call, [a, b], 2)
    }

    /// The kernels of a product of two new tensors.
    fn kernels(&self, dims: [&[usize]; 2], precision: &str) -> Vec<String> {
        let [a, b] = dims.map(|dims| self.tensor(dims));
        names(&self.multiply(&a, &b, &[], precision)).into_iter().map(String::from).collect()
    }
}

/// The blocks of both operands in a launch of split.cu.
fn split_blocks(launch: &Launch) -> [u64; 2] {
    let words = words(launch, 8);
    [words[2] >> 32, words[8] >> 32]
}

#[test]
fn launches_follow_each_other() {
    let bench = Bench::new(Config::default());
    let dims: [&[usize]; 2] = [&[1024, 1000], &[1000, 1024]];
    let [a, b] = dims.map(|dims| bench.tensor(dims));
    let launches = bench.multiply(&a, &b, &[], "highest");
    assert_eq!(names(&launches), ["split_f32", "matmul_f32_split_64x128"]);
    let (split, main) = (&launches[0], &launches[1]);
    assert_eq!((split.blocks.0, split.cluster, split.early), (128 + 128, 2, false));
    assert_eq!(split_blocks(split), [128, 128]);
    assert_eq!((main.blocks.0, main.threads.0, main.shared, main.early), (128, 384, 230_400, true));
    let [map_a, map_b] = [0, 1].map(|argument| map_of(&main.arguments[argument]));
    assert_eq!(map_a[1..], [1000, 1024, 2, 2048, 2048 * 1024, 64]);
    assert_eq!(map_b[6], 128);
    // Planes, exponents and ranges are those that the first launch wrote, operands the same.
    assert_eq!((map_a[0], map_b[0]), (words(split, 1)[0], words(split, 5)[0]));
    for (product, prepared) in [(2, 2), (3, 6), (4, 3), (5, 7), (6, 0), (7, 4)] {
        assert_eq!(words(main, product), words(split, prepared));
    }
    assert_eq!(words(main, 4)[0] + 24, words(main, 5)[0]);
    let again = bench.multiply(&a, &b, &[], "high");
    assert_eq!(names(&again), ["split_f32", "matmul_f32_half_128x128"]);
    assert_eq!(words(main, 4)[0] + 64, words(&again[1], 4)[0]);
    assert_eq!(bench.kernels(dims, "strict")[0], "matmul_f32_128x64");
    assert_eq!(bench.kernels([&[1023, 1000], &[1000, 1027]], "highest")[0], "split_f32_unaligned");
}

#[test]
fn planes_of_weights_are_kept_with_them() {
    let bench = Bench::new(Config::default());
    let weights = bench.tensor(&[1024, 1024]);
    let x = [0; 3].map(|_| bench.tensor(&[1000, 1024]));
    let run = |x: &Tensor, options: &[&str], precision| bench.multiply(x, &weights, options, precision);
    for _ in 0..2 {
        assert_eq!(split_blocks(&run(&x[0], &[], "highest")[0]), [126, 128]);
    }
    assert_eq!(bench.prepared(), 0);
    // A second partner: planes, exponents and a range of their own are made once more, and stay.
    let made = run(&x[1], &[], "highest");
    assert_eq!(split_blocks(&made[0]), [126, 128]);
    let (planes, range) = (words(&made[0], 5)[0], words(&made[0], 7)[0]);
    assert!(range > planes && range < planes + bench.prepared());
    assert_eq!(bench.prepared(), 6 << 20);
    for x in &x {
        let launches = run(x, &[], "highest");
        assert_eq!((split_blocks(&launches[0]), launches[0].cluster), ([125, 0], 0));
        assert_eq!((map_of(&launches[1].arguments[1])[0], words(&launches[1], 5)[0]), (planes, range));
        assert_eq!(words(&launches[1], 15)[3] >> 32, 1, "epoch of the kept range");
    }
    // Another layout or precision is another form.
    for (options, precision) in [(&["transB"][..], "highest"), (&[], "high")] {
        let before = bench.prepared();
        let blocks = [0, 1, 2].map(|i| split_blocks(&run(&x[i], options, precision)[0])[1] > 0);
        assert_eq!(
            (blocks, bench.prepared() > before),
            ([true, true, false], true),
            "{options:?} {precision}"
        );
    }
    // The same elements under other dims are the same memory, and both sides may be kept.
    let rows = weights.reshape([1, 1024, 1024]).unwrap();
    assert_eq!(split_blocks(&bench.multiply(&x[0], &rows, &[], "highest")[0])[1], 0);
    let left = bench.tensor(&[1000, 1024]);
    for other in [&x[0], &x[1], &x[2]] {
        bench.multiply(&left, other, &["transB"], "highest");
    }
    bench.multiply(&left, &weights, &[], "highest");
    assert_eq!(names(&bench.multiply(&left, &weights, &[], "highest")), ["matmul_f32_split_64x128"]);
    let held = bench.prepared();
    drop((weights, rows));
    assert!(bench.prepared() < held);
    drop((left, x));
    assert_eq!((bench.prepared(), bench.launcher.core().memory_stats().used), (0, 0));
}

#[test]
fn kept_planes_go_where_memory_runs_short() {
    let bench = Bench::new(Config::default());
    let [weights, others] = [0; 2].map(|_| bench.tensor(&[1024, 1024]));
    let x = [0; 2].map(|_| bench.tensor(&[1024, 1024]));
    let keep = |weights: &Tensor| x.iter().for_each(|x| drop(bench.multiply(x, weights, &[], "highest")));
    let core = bench.launcher.core();
    keep(&weights);
    assert_eq!(bench.prepared(), 6 << 20);
    core.trim_memory();
    assert_eq!(bench.prepared(), 0);
    keep(&weights);
    // A request beyond the limit takes their place.
    core.set_memory_limit(core.memory_stats().used + (1 << 20));
    drop(bench.tensor(&[1024, 1024]));
    assert_eq!(bench.prepared(), 0);
    // Together they take no more than a quarter of the limit.
    core.set_memory_limit(44 << 20);
    keep(&weights);
    keep(&others);
    assert_eq!(bench.prepared(), 6 << 20);
    assert_eq!(split_blocks(&bench.multiply(&x[0], &weights, &[], "highest")[0])[1], 0);
    assert!(split_blocks(&bench.multiply(&x[0], &others, &[], "highest")[0])[1] > 0);
    core.set_memory_limit(0);
    // By now all four have met two others.
    keep(&others);
    assert_eq!(bench.prepared(), 24 << 20);
    // A request that the device refuses takes their place too.
    bench.driver.fail("cuMemAlloc_v2", 1, 2);
    bench.driver.fail("cuMemAlloc_v2", 2, 2);
    drop(bench.tensor(&[3000, 3000]));
    assert_eq!(bench.prepared(), 0);
}

#[test]
fn without_tensor_maps_or_memory_the_chains_run() {
    let dims: [&[usize]; 2] = [&[2048, 1024], &[1024, 4096]];
    let bench = Bench::new(Config { absent: &["cuTensorMapEncodeTiled"], ..Config::default() });
    assert_eq!(bench.kernels(dims, "highest").len(), 1);
    drop(bench);
    let bench = Bench::new(Config::default());
    bench.launcher.core().set_memory_limit(70 << 20);
    assert_eq!(bench.kernels(dims, "highest").len(), 1);
    bench.launcher.core().set_memory_limit(0);
    assert_eq!(bench.kernels(dims, "highest").len(), 2);
}
