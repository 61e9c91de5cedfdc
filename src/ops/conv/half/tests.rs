use super::super::super::planes::bench::{Bench, names};
use super::*;
use crate::driver::fake::{Config, tensor_map};
use crate::kernels::{Parameter, find};
use crate::ops::tile::Card;
use crate::ops::{Call, Meta, Raw};
use crate::tensor::Tensor;

const H200: Setting = Setting { size: 2, aligned: [true; 2], activation: 0, card: Card::H200 };

fn square(
    images: usize,
    [channels, filters]: [usize; 2],
    size: usize,
    kernel: usize,
    stride: usize,
) -> Problem {
    let pad = kernel / 2;
    let output = (size + 2 * pad - kernel) / stride + 1;
    let axis = WindowAxis { input: size, kernel, stride, dilation: 1, begin: pad, end: pad, output };
    Problem::new(images, 1, channels, filters, &[axis, axis]).normalized()
}

fn planned(problem: Problem) -> Option<Plan> {
    plan(&problem, &H200, DType::F16, Precision::Highest)
}

#[test]
fn what_is_taken() {
    let layer = square(32, [256, 256], 14, 3, 1);
    assert!(planned(layer).is_some());
    assert!(planned(Problem { groups: 2, ..layer }).is_none());
    assert!(planned(Problem { group_in: 0, ..layer }).is_none());
    assert!(plan(&layer, &H200, DType::F16, Precision::Strict).is_none());
    // Sums of 2^14 terms and more leave the tensor core elsewhere.
    let long = |channels| square(1, [channels, 64], 8, 3, 1);
    assert!(planned(long(1820)).is_some() && planned(long(1821)).is_none());
    assert!(plan(&long(1821), &H200, DType::Bf16, Precision::Highest).is_some());
    assert!(planned(square(40_000, [64, 64], 300, 3, 1)).is_none());
    assert!(planned(square(1, [64, 64], 30_000, 3, 1)).is_some());
}

#[test]
fn words_fill_the_kernels_structs_and_tiles_the_shared_memory() {
    let plan = planned(square(2, [72, 100], 9, 3, 1)).unwrap();
    let last = |name: &str| *find(name, 90).unwrap().1.parameters.last().unwrap();
    let words = plan.copies_words(7, &H200);
    assert_eq!(words, [2, 72, 81, 72, 100, 9, 7, 0, 9, 9, 1, 9, 1, 1, 3]);
    for kernel in ["conv_half_nhwc", "conv_half_windows"] {
        assert_eq!(last(kernel), Parameter::Block(words.len() * 4));
    }
    assert_eq!((plan.x.copy, plan.x.blocks), (2 * 81 * 72, 2 * 2 * 2));
    assert_eq!((plan.w.copy, plan.w.blocks), (100 * 9 * 128, 100));
    for (tile, dtype) in TILES.iter().flat_map(|tile| [(tile, DType::F16), (tile, DType::Bf16)]) {
        let name = format!("conv_{}_{}", dtype.suffix(), tile.name);
        assert_eq!(last(&name), Parameter::Block(4 * plan.words(&H200).len()));
        assert!(tile.shared() <= 226 * 1024, "{name}");
    }
}

#[test]
fn results_are_written_in_vectors_within_images() {
    let flags = |size, aligned| {
        plan(&square(2, [64, 64], size, 3, 1), &Setting { aligned, ..H200 }, DType::F16, Precision::Highest)
            .unwrap()
            .words(&Setting { aligned, ..H200 })[22]
    };
    assert_eq!(flags(56, [true; 2]), EIGHTS | FOURS);
    assert_eq!(flags(14, [true; 2]), FOURS);
    assert_eq!(flags(7, [true; 2]), 0);
    assert_eq!(flags(56, [true, false]), 0);
}

#[test]
fn lines_of_windows_take_the_place_of_pixels() {
    let plan = planned(square(32, [3, 64], 224, 7, 2)).unwrap();
    assert_eq!((plan.windows, plan.seen.taps(), plan.seen.group_in), (true, 7, 21));
    assert_eq!(plan.x.copy, 32 * 224 * 112 * 24);
    assert_eq!(plan.w.copy, 64 * 7 * 64);
    assert_eq!(plan.axes[0], ImageAxis { size: 112, lower: 0, upper: 0, step: 1 });
    assert_eq!(plan.axes[1], ImageAxis { size: 224, lower: -3, upper: -4, step: 2 });
    assert!(!planned(square(1, [22, 64], 16, 3, 1)).unwrap().windows);
    assert!(!planned(square(1, [3, 64], 16, 1, 1)).unwrap().windows);
}

#[test]
fn copies_are_kept_with_what_meets_others() {
    let bench = Bench::new(Config::default());
    let tensor =
        |dims: &[usize]| Tensor::device(bench.launcher.core(), &Meta::new(DType::F16, dims)).unwrap();
    let w = tensor(&[64, 64, 3, 3]);
    let run = |x: &Tensor| {
        let metas = vec![Some(x.meta().clone()), Some(w.meta().clone()), None];
        let call = Call::new("conv2d", metas, &[("pads".into(), Raw::List(vec![1.0; 4]))]).unwrap();
        bench.launches(&call, [x, &w], 1)
    };
    let x = [0; 3].map(|_| tensor(&[4, 64, 14, 14]));
    let launches = run(&x[0]);
    assert_eq!(names(&launches), ["conv_half_nhwc", "conv_f16_turns_64"]);
    assert_eq!((launches[0].blocks.0, launches[1].early), (4 * 4 + 64, true));
    let map = tensor_map(&launches[1].arguments[0]);
    assert_eq!(&map.dims[..4], [64, 14, 14, 4]);
    let blocks = [1, 2, 0].map(|i: usize| run(&x[i])[0].blocks.0);
    assert_eq!(blocks, [16 + 64, 16, 16]);
    assert_eq!(bench.prepared(), (2u64 * 64 * 9 * 64).next_power_of_two());
}
