use super::super::super::spec::Meta;
use super::super::super::{Call, Raw};
use super::super::cuda::faster;
use super::*;
use crate::driver::fake::{Config, FakeDriver};
use crate::kernels::{Launcher, Parameter, find};
use crate::tensor::DeviceCore;
use crate::{DType, Tensor};

const H200: Setting = Setting { size: 4, aligned: [true; 3], activation: 0, multiprocessors: 132 };

fn call(dims: &[&[usize]], options: &[&str], precision: &str) -> Call {
    let metas = dims.iter().map(|dims| Some(Meta::new(DType::F32, *dims))).collect();
    let mut raw: Vec<_> = options.iter().map(|name| (name.to_string(), Raw::Bool(true))).collect();
    raw.push(("precision".into(), Raw::Text(precision.into())));
    Call::new("matmul", metas, &raw).unwrap()
}

fn product(dims: &[&[usize]], options: &[&str]) -> Product {
    Product::of(&call(dims, options, "highest")).unwrap()
}

fn route(m: usize, n: usize, k: usize, precision: Precision) -> Option<&'static str> {
    let plan = faster(&product(&[&[m, k], &[k, n]], &[]), H200, precision);
    plan.map(|plan| plan.tile.name)
}

#[test]
fn the_route_pays_from_some_size_on() {
    let of = |size, precision| route(size, size, size, precision);
    assert_eq!(of(512, Precision::Highest), None);
    assert_eq!(of(1024, Precision::Highest), Some("split_128x64"));
    assert_eq!(of(2048, Precision::Highest), Some("split_128x128"));
    assert_eq!(of(8192, Precision::Highest), Some("split_128x128"));
    assert_eq!(of(4096, Precision::High), Some("half_128x128"));
    assert_eq!(of(8192, Precision::Medium), Some("half_128x192"));
    assert_eq!(of(4096, Precision::Strict), None);
    assert_eq!(route(4096, 4096, 63, Precision::Highest), None);
    assert_eq!(route(4096, 4096, 64, Precision::Highest), Some("split_128x128"));
    assert_eq!(route(8, 8192, 8192, Precision::Highest), None);
    assert_eq!(route(64, 64, 65536, Precision::Highest), None);
    let double = Setting { size: 8, ..H200 };
    assert!(plan(&product(&[&[2048, 2048], &[2048, 2048]], &[]), double, Precision::Highest).is_none());
}

/// Of __test__/36.products.test.mjs.
#[test]
fn sizes_of_the_suite_take_the_route() {
    let taken = |a: &[usize], b: &[usize], options: &[&str], precision| {
        faster(&product(&[a, b], options), H200, precision).is_some()
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
        let words = plan.words(&product, 3, 9);
        for name in [&format!("matmul_f32_{}", plan.tile.name)[..], "matmul_f32_chain"] {
            assert_eq!(last(name), Parameter::Block(words.len() * 4));
        }
        assert_eq!(words[..8], [1000, 1026, 300, 1, 3, VECTOR_D, 9, 9]);
        let sides = [plan.a.words(11, 9), plan.b.words(12, 9)].concat();
        assert_eq!(last("split_f32_first"), Parameter::Block(sides.len() * 4));
        assert_eq!(sides[..6], [1000, 300, 320, VECTOR | if plan.a.hi_only { HI_ONLY } else { 0 }, 1, 11]);
        assert_eq!(sides[13 + 3] & !HI_ONLY, TRANSPOSE);
    }
    for tile in THREE_PRODUCTS.iter().chain(&ONE_PRODUCT) {
        assert!(find(&format!("matmul_f32_{}", tile.name), 90).unwrap().0.exact);
        assert!(tile.units * (ROWS + tile.columns) * 128 + 2048 <= 227 * 1024);
    }
}

#[test]
fn chunks_and_blocks_cover_both_sides() {
    for (rows, k, count) in [(1, 64, 1), (127, 65, 3), (1000, 4100, 1), (129, 100_000, 2), (50_000, 64, 7)] {
        let walk = Walk { each: 1, count, step: rows * k };
        let turned = Side::new(rows, (k, rows), true, walk, (true, 132));
        assert!(turned.chunk * turned.chunks() >= k && turned.chunk * (turned.chunks() - 1) < k);
        assert!(turned.chunks() <= 16);
        assert_eq!(turned.blocks()[0], rows.div_ceil(128) * turned.chunks() * count);
        let straight = Side::new(rows, (k, k), false, walk, (true, 132));
        assert_eq!(straight.blocks(), [if k <= 1024 { (rows * count).div_ceil(8) } else { rows * count }, 0]);
        assert_eq!(straight.vectors, k.is_multiple_of(4));
        assert!(straight.plane_pitch() >= k && straight.plane_pitch().is_multiple_of(64));
    }
}

/// The kernels that a product launches on a card like the stand-in's.
fn launched(driver: &FakeDriver, launcher: &Launcher, dims: [&[usize]; 2], precision: &str) -> Vec<String> {
    let call = call(&dims, &[], precision);
    let tensors: Vec<_> = call
        .inputs
        .iter()
        .map(|meta| meta.as_ref().map(|meta| Tensor::device(launcher.core(), meta).unwrap()))
        .collect();
    let before = driver.launches().len();
    call.run_cuda(launcher, &tensors).unwrap();
    driver.launches()[before..].iter().map(|launch| launch.kernel.clone()).collect()
}

#[test]
fn launches_follow_each_other() {
    let driver = FakeDriver::install(Config::default());
    let launcher = Launcher::new(DeviceCore::open(0).unwrap());
    let dims: [&[usize]; 2] = [&[1024, 1000], &[1000, 1024]];
    let names = launched(&driver, &launcher, dims, "highest");
    assert_eq!(names, ["split_f32_first", "split_f32_second", "matmul_f32_split_128x64", "matmul_f32_chain"]);
    let launches = driver.launches();
    let words = |launch: usize, argument: usize| -> Vec<u64> {
        launches[launch].arguments[argument].chunks_exact(8).map(bytemuck::pod_read_unaligned).collect()
    };
    assert_eq!(words(2, 0)[1..7], [1000, 1024, 2, 2048, 2048 * 1024, 128]);
    assert_eq!(words(2, 1)[6], 64);
    assert_eq!((launches[2].blocks.0, launches[2].threads.0, launches[2].shared), (128, 384, 222_208));
    assert_eq!((launches[3].blocks.0, launches[3].threads.0, launches[3].shared), (128, 128, 0));
    // Planes, exponents and ranges are those that the first launch wrote.
    for (product, split) in [(2, 2), (3, 7), (4, 4), (5, 9)] {
        assert_eq!(words(2, product), words(0, split));
    }
    assert_eq!(words(3, 10)[0] + 24, words(3, 11)[0]);
    let names = launched(&driver, &launcher, dims, "high");
    assert_eq!(names[2..], ["matmul_f32_half_128x128", "matmul_f32_chain"]);
    assert_eq!(words(2, 4)[0] + 64, {
        let launches = driver.launches();
        bytemuck::pod_read_unaligned::<u64>(&launches[6].arguments[4])
    });
    assert_eq!(launched(&driver, &launcher, dims, "strict")[0], "matmul_f32_128x64");
    assert!(driver.misuse().is_empty(), "{:?}", driver.misuse());
}

#[test]
fn without_tensor_maps_or_memory_the_chains_run() {
    let dims: [&[usize]; 2] = [&[2048, 1024], &[1024, 4096]];
    let driver = FakeDriver::install(Config { absent: &["cuTensorMapEncodeTiled"], ..Config::default() });
    let launcher = Launcher::new(DeviceCore::open(0).unwrap());
    assert_eq!(launched(&driver, &launcher, dims, "highest").len(), 1);
    drop((launcher, driver));
    let driver = FakeDriver::install(Config::default());
    let launcher = Launcher::new(DeviceCore::open(0).unwrap());
    launcher.core().set_memory_limit(70 << 20);
    assert_eq!(launched(&driver, &launcher, dims, "highest").len(), 1);
    launcher.core().set_memory_limit(0);
    assert_eq!(launched(&driver, &launcher, dims, "highest").len(), 4);
}
