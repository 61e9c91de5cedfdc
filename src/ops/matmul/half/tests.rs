use super::super::super::spec::Meta;
use super::super::super::{Call, Raw};
use super::*;
use crate::driver::fake::{Config, FakeDriver, map_of};
use crate::kernels::{Launcher, Parameter, find};
use crate::tensor::DeviceCore;
use crate::{DType, Tensor};

const H200: Setting = Setting {
    aligned: [true; 3],
    operands: DType::F16,
    result: DType::F16,
    precision: Precision::Highest,
    card: Card::H200,
};

fn call(dims: &[&[usize]], options: &[(&str, Raw)], dtype: DType) -> Call {
    let metas = dims.iter().map(|dims| Some(Meta::new(dtype, *dims))).collect();
    let raw: Vec<_> = options.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
    Call::new("matmul", metas, &raw).unwrap()
}

fn planned(dims: &[&[usize]], options: &[&str], setting: Setting) -> Option<Plan> {
    let options: Vec<_> = options.iter().map(|name| (*name, Raw::Bool(true))).collect();
    plan(&Product::of(&call(dims, &options, DType::F16)).unwrap(), 0, setting)
}

#[test]
fn tiles_follow_the_size() {
    let columns = |m, n, k| planned(&[&[m, k], &[k, n]], &[], H200).unwrap().tile.columns;
    assert_eq!(columns(8192, 8192, 8192), 256);
    assert_eq!(columns(4096, 4096, 4096), 256);
    assert_eq!(columns(3072, 3072, 3072), 192);
    assert_eq!(columns(1024, 1024, 1024), 64);
    assert_eq!(columns(16, 11008, 4096), 128);
    assert_eq!(columns(1, 1, 1), 64);
}

#[test]
fn names_say_how_operands_are_stored() {
    let kernel = |a: &[usize], b: &[usize], options: &[&str]| planned(&[a, b], options, H200).unwrap().kernel;
    assert_eq!(kernel(&[4096, 512], &[512, 4096], &[]), "matmul_f16_128x256_nn");
    assert_eq!(kernel(&[512, 4096], &[512, 4096], &["transA"]), "matmul_f16_128x256_tn");
    assert_eq!(kernel(&[4096, 512], &[4096, 512], &["transB"]), "matmul_f16_128x256_nt");
    assert_eq!(kernel(&[512, 4096], &[4096, 512], &["transA", "transB"]), "matmul_f16_128x256_tt");
}

#[test]
fn long_sums_and_float32_results_leave_the_tensor_core() {
    let promotes = |k, setting| {
        let plan = planned(&[&[4096, k], &[k, 4096]], &[], setting).unwrap();
        assert_eq!(plan.words[5] & PROMOTE != 0, plan.tile == &PROMOTED);
        plan.words[5] & PROMOTE != 0
    };
    let float = Setting { result: DType::F32, ..H200 };
    let bfloat = Setting { operands: DType::Bf16, result: DType::Bf16, ..H200 };
    assert!(!promotes(1 << 14, H200) && promotes((1 << 14) + 1, H200));
    assert!(!promotes(1 << 17, bfloat) && promotes((1 << 17) + 1, bfloat));
    assert!(promotes(64, float));
    assert!(!promotes(64, Setting { precision: Precision::High, ..float }));
}

#[test]
fn what_the_route_leaves_to_others() {
    let dims: [&[usize]; 2] = [&[64, 64], &[64, 64]];
    assert!(planned(&dims, &[], Setting { precision: Precision::Strict, ..H200 }).is_none());
    assert!(planned(&dims, &[], Setting { operands: DType::F32, ..H200 }).is_none());
    assert!(planned(&[&[64, 0], &[0, 64]], &[], H200).is_none());
    assert!(planned(&[&[64, 65536], &[65536, 64]], &[], H200).is_none());
    // Rows of A broadcast within a batch and without.
    assert!(planned(&[&[2, 1, 4, 64, 64], &[3, 1, 64, 64]], &[], H200).is_none());
}

#[test]
fn operands_at_odd_places_are_padded() {
    let padded = |dims: &[&[usize]], options: &[&str], aligned: [bool; 2]| {
        let setting = Setting { aligned: [aligned[0], aligned[1], true], ..H200 };
        let plan = planned(dims, options, setting).unwrap();
        [plan.a, plan.b].map(|operand| (operand.padded, operand.lines, operand.pitch()))
    };
    let even: [&[usize]; 2] = [&[300, 64], &[64, 104]];
    assert_eq!(padded(&even, &[], [true; 2]), [(false, 300, 64), (false, 64, 104)]);
    assert_eq!(padded(&even, &[], [false, true]), [(true, 300, 64), (false, 64, 104)]);
    let odd: [&[usize]; 2] = [&[300, 65], &[65, 107]];
    assert_eq!(padded(&odd, &[], [true; 2]), [(true, 300, 72), (true, 65, 112)]);
    let turned: [&[usize]; 2] = [&[65, 304], &[107, 65]];
    assert_eq!(padded(&turned, &["transA", "transB"], [true; 2]), [(false, 65, 304), (true, 107, 72)]);
}

#[test]
fn words_fill_the_kernels_struct() {
    let plan = planned(&[&[5, 300, 64], &[64, 104], &[5, 300, 1]], &[], H200).unwrap();
    // One b for all products, but a c that does not continue: the batch stays.
    assert_eq!(plan.words[..10], [1500, 104, 64, 1, 0, ALIGNED_D, 1, 1, 1, 1]);
    let plan = planned(&[&[5, 64, 300], &[64, 104], &[5, 300, 1]], &["transA"], H200).unwrap();
    assert_eq!(plan.words, [300, 104, 64, 5, 0, ALIGNED_D, 1, 5, 5, 1, 1, 0, 0, 0, 300, 0, 0, 0, 1, 0]);
    for dtype in ["f16", "bf16"] {
        for columns in [64, 128, 192, 256] {
            for stored in ["nn", "nt", "tn", "tt"] {
                let (module, entry) = find(&format!("matmul_{dtype}_128x{columns}_{stored}"), 90).unwrap();
                assert!(module.exact);
                assert_eq!(*entry.parameters.last().unwrap(), Parameter::Block(plan.words.len() * 4));
            }
        }
    }
}

/// The kernels that a product launches.
fn launched(
    driver: &FakeDriver,
    launcher: &Launcher,
    dims: [&[usize]; 2],
    options: &[(&str, Raw)],
) -> Vec<String> {
    let call = call(&dims, options, DType::Bf16);
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
fn launches_take_operands_where_they_lie_or_padded() {
    let driver = FakeDriver::install(Config::default());
    let launcher = Launcher::new(DeviceCore::open(0).unwrap());
    let dims: [&[usize]; 2] = [&[1024, 1000], &[1000, 520]];
    assert_eq!(launched(&driver, &launcher, dims, &[]), ["matmul_bf16_128x64_nn"]);
    let launches = driver.launches();
    let map = |argument: usize| map_of(&launches[0].arguments[argument]);
    assert_eq!(map(0)[1..], [1000, 1024, 1, 2000, 2_048_000, 128]);
    assert_eq!(map(1)[1..], [520, 1000, 1, 1040, 1_040_000, 64]);
    assert_eq!((launches[0].blocks.0, launches[0].threads.0, launches[0].shared), (72, 384, SHARED));
    let odd: [&[usize]; 2] = [&[1024, 1001], &[1001, 520]];
    assert_eq!(launched(&driver, &launcher, odd, &[]), ["matmul_half_pad", "matmul_bf16_128x64_nn"]);
    let strict = [("precision", Raw::Text("strict".into()))];
    assert!(!launched(&driver, &launcher, dims, &strict).contains(&"matmul_bf16_128x64_nn".to_string()));
}

#[test]
fn without_tensor_maps_another_route_runs() {
    let driver = FakeDriver::install(Config { absent: &["cuTensorMapEncodeTiled"], ..Config::default() });
    let launcher = Launcher::new(DeviceCore::open(0).unwrap());
    let names = launched(&driver, &launcher, [&[64, 64], &[64, 64]], &[]);
    assert!(!names.is_empty() && names.iter().all(|name| !name.starts_with("matmul_bf16")), "{names:?}");
}
