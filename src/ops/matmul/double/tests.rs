use super::super::super::spec::Meta;
use super::super::super::tile::Card;
use super::super::super::{Call, Raw};
use super::*;
use crate::driver::fake::{Config, FakeDriver, map_of};
use crate::kernels::{Launcher, Parameter, find};
use crate::tensor::DeviceCore;
use crate::{DType, Tensor};

const H200: Setting = Setting { size: 8, aligned: [true; 3], activation: 0, card: Card::H200 };

fn call(dims: &[&[usize]], options: &[&str]) -> Call {
    let metas = dims.iter().map(|dims| Some(Meta::new(DType::F64, *dims))).collect();
    let raw: Vec<_> = options.iter().map(|name| (name.to_string(), Raw::Bool(true))).collect();
    Call::new("matmul", metas, &raw).unwrap()
}

fn planned(dims: &[&[usize]], options: &[&str], setting: Setting, level: u32) -> Option<Plan> {
    plan(&Product::of(&call(dims, options)).unwrap(), setting, level)
}

#[test]
fn tiles_follow_the_size_and_the_level() {
    let kernel = |m, n, k, level| {
        let plan = planned(&[&[m, k], &[k, n]], &[], H200, level).unwrap();
        (plan.kernel, plan.splits)
    };
    assert_eq!(kernel(8192, 8192, 8192, 90), ("tma_128x128_nn".into(), 1));
    assert_eq!(kernel(2048, 2048, 2048, 90), ("tma_128x128_nn".into(), 1));
    assert_eq!(kernel(1024, 1024, 1024, 90), ("tma_128x64_nn".into(), 1));
    assert_eq!(kernel(4096, 4096, 4096, 80), ("mma_64x64".into(), 1));
    assert_eq!(kernel(256, 256, 256, 90).0, "mma_32x32");
    assert!(kernel(64, 64, 65536, 90).1 > 16);
    let none = |m, n, k, setting, level| planned(&[&[m, k], &[k, n]], &[], setting, level).is_none();
    assert!(none(512, 512, 512, H200, 75), "no tensor cores for float64");
    assert!(none(4, 512, 512, H200, 90), "few rows have kernels of their own");
    assert!(none(512, 512, 512, Setting { size: 4, ..H200 }, 90), "float32");
}

#[test]
fn names_say_how_operands_are_stored() {
    let kernel =
        |a: &[usize], b: &[usize], options: &[&str]| planned(&[a, b], options, H200, 90).unwrap().kernel;
    assert_eq!(kernel(&[4096, 512], &[4096, 512], &["transB"]), "tma_128x128_nt");
    assert_eq!(kernel(&[512, 4096], &[512, 4096], &["transA"]), "tma_128x128_tn");
    assert_eq!(kernel(&[512, 4096], &[4096, 512], &["transA", "transB"]), "tma_128x128_tt");
}

#[test]
fn operands_at_odd_places_are_padded() {
    let padded = |dims: &[&[usize]], options: &[&str], aligned: [bool; 3]| {
        let plan = planned(dims, options, Setting { aligned, ..H200 }, 90).unwrap();
        plan.maps.unwrap().map(|(operand, _)| (operand.padded, operand.lines, operand.pitch()))
    };
    let even: [&[usize]; 2] = [&[3000, 2000], &[2000, 4000]];
    assert_eq!(padded(&even, &[], [true; 3]), [(false, 3000, 2000), (false, 2000, 4000)]);
    assert_eq!(padded(&even, &[], [true, false, true]), [(false, 3000, 2000), (true, 2000, 4000)]);
    let odd: [&[usize]; 2] = [&[2001, 3000], &[4001, 2001]];
    assert_eq!(padded(&odd, &["transA", "transB"], [true; 3]), [(false, 2001, 3000), (true, 4001, 2002)]);
}

#[test]
fn batches_step_by_matrices() {
    let plan = planned(&[&[3, 2, 1024, 512], &[2, 512, 1024]], &[], H200, 90).unwrap();
    let [(a, _), (b, _)] = plan.maps.unwrap();
    assert_eq!((a.matrices, b.matrices), (6, 2));
    // rank; sizes; steps of a and b, in matrices.
    let batch = &plan.words[22..];
    assert_eq!(batch[..3], [2, 3, 2]);
    assert_eq!((batch[7], batch[9], batch[19], batch[21]), (2, 1, 0, 1));
    assert_eq!(plan.blocks, 132);
}

#[test]
fn plans_name_kernels_that_exist_and_cover_all_terms() {
    let sizes = [5, 33, 130, 1000, 3000];
    for level in [80, 90] {
        for (m, n, k) in sizes.iter().flat_map(|&m| sizes.map(move |n| (m, n, (m * 7 + n * 13) % 4100))) {
            for options in [&[][..], &["transA", "transB"]] {
                let (a, b) = if options.is_empty() { ([m, k], [k, n]) } else { ([k, m], [n, k]) };
                let plan = planned(&[&a, &b], options, H200, level).unwrap();
                let (module, entry) = find(&format!("matmul_f64_{}", plan.kernel), level).unwrap();
                assert_eq!(module.family, "gemm_double");
                assert_eq!(entry.parameters.last(), Some(&Parameter::Block(plan.words.len() * 4)));
                let terms = plan.words[6] as usize;
                assert!(terms * plan.splits >= k && (plan.splits == 1 || terms * (plan.splits - 1) < k));
                assert!(plan.splits == 1 || terms.is_multiple_of(STEP));
                assert!(plan.shared <= 227 << 10);
            }
        }
    }
}

/// The kernels that a product launches.
fn launched(driver: &FakeDriver, launcher: &Launcher, dims: [&[usize]; 2]) -> Vec<String> {
    let call = call(&dims, &[]);
    let tensors: Vec<_> = call
        .inputs
        .iter()
        .map(|meta| meta.as_ref().map(|meta| Tensor::device(launcher.core(), meta).unwrap()))
        .collect();
    let before = driver.launches().len();
    call.run_cuda(launcher, &tensors).unwrap();
    driver.launches()[before..].iter().map(|launch| launch.kernel.clone()).collect()
}

const LARGE: [&[usize]; 2] = [&[2048, 1000], &[1000, 2048]];

#[test]
fn launches_take_operands_where_they_lie_or_padded() {
    let driver = FakeDriver::install(Config::default());
    let launcher = Launcher::new(DeviceCore::open(0).unwrap());
    assert_eq!(launched(&driver, &launcher, LARGE), ["matmul_f64_tma_128x128_nn"]);
    let launches = driver.launches();
    let map = |argument: usize| map_of(&launches[0].arguments[argument]);
    assert_eq!(map(0)[1..], [1000, 2048, 1, 8000, 8000 * 2048, 128]);
    assert_eq!(map(1)[1..], [2048, 1000, 1, 16384, 16384 * 1000, 16]);
    assert_eq!((launches[0].threads.0, launches[0].shared), (384, 193 << 10));
    let odd: [&[usize]; 2] = [&[2048, 1001], &[1001, 2048]];
    assert_eq!(launched(&driver, &launcher, odd), ["matmul_f64_pad", "matmul_f64_tma_128x128_nn"]);
    let long: [&[usize]; 2] = [&[64, 65536], &[65536, 64]];
    assert_eq!(launched(&driver, &launcher, long)[1], "matmul_f64_reduce");
}

#[test]
fn without_tensor_maps_the_other_tiles_run() {
    let driver = FakeDriver::install(Config { absent: &["cuTensorMapEncodeTiled"], ..Config::default() });
    let launcher = Launcher::new(DeviceCore::open(0).unwrap());
    assert_eq!(launched(&driver, &launcher, LARGE), ["matmul_f64_mma_64x64"]);
}
