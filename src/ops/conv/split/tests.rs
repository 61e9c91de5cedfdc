use super::super::cuda::{split_plan, tile};
use super::*;
use crate::Tensor;
use crate::driver::fake::{Config, Launch, map_of, tensor_map};
use crate::kernels::{Parameter, find};
use crate::ops::planes::bench::{Bench, names, words};
use crate::ops::tile::Card;
use crate::ops::{Call, Raw};

const H200: Setting = Setting { size: 4, aligned: [true; 2], activation: 0, card: Card::H200 };
const PASSING: [Form<Planes>; 2] = [Form::Passing, Form::Passing];
const WEIGHTS: [Form<Planes>; 2] = [Form::Passing, Form::Wanted];

fn window(
    input: usize,
    kernel: usize,
    stride: usize,
    dilation: usize,
    [begin, end]: [usize; 2],
) -> WindowAxis {
    let output = (input + begin + end - (kernel - 1) * dilation - 1) / stride + 1;
    WindowAxis { input, kernel, stride, dilation, begin, end, output }
}

fn square(
    images: usize,
    [channels, filters]: [usize; 2],
    size: usize,
    kernel: usize,
    stride: usize,
) -> Problem {
    let axis = window(size, kernel, stride, 1, [kernel / 2; 2]);
    Problem::new(images, 1, channels, filters, &[axis, axis]).normalized()
}

fn route(problem: &Problem, precision: Precision, forms: &[Form<Planes>; 2]) -> Option<&'static str> {
    let plan = split_plan(problem, &H200, precision)?;
    (plan.time(forms) < tile(problem, &H200).1).then_some(plan.tile.name)
}

#[test]
fn the_route_pays_from_some_size_on() {
    let of = |problem: Problem| route(&problem, Precision::Highest, &WEIGHTS);
    assert_eq!(of(square(32, [64, 64], 56, 3, 1)), Some("split_192x64"));
    assert_eq!(of(square(32, [128, 128], 28, 3, 1)), Some("split_192x64"));
    assert_eq!(of(square(32, [256, 256], 14, 3, 1)), Some("split_192x64"));
    assert_eq!(of(square(32, [512, 512], 7, 3, 1)), Some("split_128x64"));
    assert_eq!(of(square(1, [16, 16], 14, 3, 1)), None);
    assert_eq!(of(square(1, [3, 8], 16, 3, 1)), None);
    let large = square(32, [256, 256], 14, 3, 1);
    assert_eq!(route(&large, Precision::High, &PASSING), Some("half_192x64"));
    assert_eq!(route(&large, Precision::Strict, &PASSING), None);
    let double = Setting { size: 8, ..H200 };
    assert!(plan(&large, &double, Precision::Highest).is_none());
    let grouped = Problem { groups: 2, group_in: 128, group_out: 128, ..large };
    assert!(plan(&grouped, &H200, Precision::Highest).is_none());
    assert!(plan(&Problem { group_in: 0, ..large }, &H200, Precision::Highest).is_none());
}

/// Of __test__/39.convolutions.test.mjs.
#[test]
fn sizes_of_the_suite_take_the_route() {
    let taken = |x: [usize; 4], w: [usize; 3], [stride, pad, dilation]: [usize; 3]| {
        let axis = |input| window(input, w[2], stride, dilation, [pad; 2]);
        let problem = Problem::new(x[0], 1, w[1], w[0], &[axis(x[2]), axis(x[3])]).normalized();
        [Precision::Highest, Precision::High]
            .into_iter()
            .all(|precision| route(&problem, precision, &PASSING).is_some())
    };
    assert!(taken([8, 64, 56, 56], [64, 64, 3], [1, 1, 1]));
    assert!(taken([16, 128, 28, 28], [128, 128, 3], [1, 1, 1]));
    assert!(taken([32, 256, 14, 14], [256, 256, 3], [1, 1, 1]));
    assert!(taken([32, 512, 7, 7], [512, 512, 3], [1, 1, 1]));
    assert!(taken([8, 64, 56, 56], [256, 64, 1], [1, 0, 1]));
    assert!(taken([7, 97, 41, 43], [131, 97, 3], [2, 1, 1]));
    assert!(taken([8, 96, 40, 40], [160, 96, 3], [1, 3, 3]));
    assert!(taken([8, 3, 224, 224], [64, 3, 7], [2, 3, 1]));
    assert!(taken([4, 64, 28, 28], [96, 64, 3], [1, 1, 1]));
    assert!(taken([16, 64, 28, 28], [96, 64, 1], [1, 0, 1]));
    assert!(taken([8, 64, 28, 28], [128, 64, 3], [1, 1, 1]));
}

#[test]
fn copies_start_where_windows_do() {
    let axis = |axis: WindowAxis| {
        image_axis(&axis, 8).map(|ImageAxis { lower, upper, step, .. }| (lower, upper, step))
    };
    assert_eq!(axis(window(56, 3, 1, 1, [1, 1])), Some((-1, -1, 1)));
    assert_eq!(axis(window(56, 1, 1, 1, [0, 0])), Some((0, 0, 1)));
    assert_eq!(axis(window(20, 3, 1, 4, [3, 5])), Some((-3, -3, 1)));
    // Starts 0, 2 and 4 of 7; the last pixel starts no window.
    assert_eq!(axis(window(7, 2, 2, 1, [0, 0])), Some((0, -2, 2)));
    // One window, however far the next would be.
    assert_eq!(axis(WindowAxis { stride: 1, ..window(9, 3, 8, 1, [0, 0]) }), Some((0, -8, 1)));
    assert_eq!(axis(window(90, 3, 9, 1, [0, 0])), None);
    assert_eq!(axis(window(300, 300, 1, 1, [0, 0])), None);
    assert_eq!(axis(window(300, 100, 1, 1, [100, 100])), Some((-100, 1, 1)));
    assert_eq!(axis(window(300, 3, 1, 1, [129, 129])), None);
    for (input, kernel, stride, dilation, pads) in
        [(31, 5, 3, 2, [4, 1]), (8, 8, 5, 1, [2, 9]), (17, 2, 7, 3, [0, 0])]
    {
        let axis = window(input, kernel, stride, dilation, pads);
        let ImageAxis { lower, upper, step, .. } = image_axis(&axis, 8).unwrap();
        let starts = (lower..input as i32 + upper).step_by(step as usize).count();
        assert_eq!(starts, axis.output);
    }
    let depth = window(4, 3, 1, 1, [1, 1]);
    let volume = |begin| Problem::new(1, 1, 8, 8, &[depth, depth, WindowAxis { begin, ..depth }]);
    assert_eq!(image_axes(&volume(1)).map(|axes| axes.len()), Some(3));
    assert_eq!(image_axes(&volume(9)), None);
    assert_eq!(image_axes(&Problem::new(1, 1, 8, 8, &[depth])).map(|axes| axes.len()), Some(2));
}

#[test]
fn words_fill_the_kernels_structs_and_tiles_the_shared_memory() {
    let problem = square(2, [72, 100], 9, 3, 1);
    let last = |name: &str| *find(name, 90).unwrap().1.parameters.last().unwrap();
    for (precision, hi_only) in [(Precision::Highest, 0), (Precision::High, HI_ONLY)] {
        let plan = plan(&problem, &H200, precision).unwrap();
        let words = plan.words(&H200, [9, 1, 5]);
        assert_eq!(last(&format!("conv_f32_{}", plan.tile.name)), Parameter::Block(words.len() * 4));
        assert_eq!(words[words.len() - 4..], [9, 1, 5, 104]);
        let words = plan.planes_words(7, [9, 1]);
        assert_eq!(last("conv_f32_planes"), Parameter::Block(words.len() * 4));
        assert_eq!(words, [2, 72, 81, 72, 100, 9, 7, hi_only, 9, 1, 9, 1, 0, 9, 3, 0, 0, 0]);
        assert_eq!((plan.x.blocks, plan.w.blocks), (2 * 2 * 2, 100));
        assert_eq!((plan.x.plane, plan.w.plane), (2 * 81 * 72, 100 * 9 * 128));
        assert_eq!((plan.x.scales, plan.w.scales), (2 * 2 * 81, 100));
    }
    for tile in THREE_PRODUCTS.iter().chain(&ONE_PRODUCT) {
        assert!(find(&format!("conv_f32_{}", tile.name), 90).unwrap().0.exact);
        let barriers_and_scales = 16 * tile.units + 96 + 16 * (tile.pixels + tile.filters);
        let held = tile.shared() as usize + barriers_and_scales;
        assert!(held <= 227 * 1024 && (held + 1024) * tile.resident <= 228 * 1024, "{}", tile.name);
    }
}

#[test]
fn few_channels_are_taken_line_by_line() {
    let first = square(32, [6, 64], 224, 7, 2);
    let plan = plan(&first, &H200, Precision::Highest).unwrap();
    assert_eq!(plan.lines, Some(Lines { padded: 230, stride: 2, count: 224, paired: false }));
    assert_eq!((plan.seen.taps(), plan.seen.slid(), plan.seen.windows()), (7, 224 * 112, 112 * 112));
    let images = plan.images(DevicePtr(256));
    assert_eq!((images.channels, images.pixel, images.line, images.images), (64, 16, 8 * 230, 64));
    assert_eq!(images.axes[0], ImageAxis { size: 112, lower: 0, upper: 0, step: 1 });
    assert_eq!(images.axes[1], ImageAxis { size: 224, lower: -3, upper: -4, step: 2 });
    assert_eq!((plan.x.blocks, plan.x.plane), (32 * 224, 32 * 224 * 230 * 8));
    assert_eq!((plan.x.scales, plan.w.plane), (32 * 224 * 112, 64 * 7 * 64));
    assert_eq!(plan.planes_words(5, [1, 2])[10..], [224, 3, 230, 112, 7, 224, 0, 0]);
    // Windows that reach beyond the padding end in zeros of the planes.
    let padded = |problem: Problem| Lines::of(&problem).map(|(_, lines)| lines.padded);
    assert_eq!(padded(square(1, [8, 8], 16, 1, 1)), Some(23));
    assert_eq!(padded(square(1, [8, 8], 16, 5, 3)), Some(24));
    assert_eq!(padded(square(1, [9, 8], 16, 1, 1)), None);
    assert_eq!(padded(square(1, [8, 8], 16, 9, 1)), None);
}

#[test]
fn two_lines_of_four_channels_lie_in_one() {
    let first = square(32, [3, 64], 224, 7, 2);
    let plan = plan(&first, &H200, Precision::Highest).unwrap();
    // Pairs from line -3 on, the last window's four.
    assert_eq!(plan.lines, Some(Lines { padded: 230, stride: 2, count: 115, paired: true }));
    assert_eq!((plan.seen.taps(), plan.seen.slid(), plan.seen.windows()), (4, 115 * 112, 112 * 112));
    let images = plan.images(DevicePtr(256));
    assert_eq!(images.axes[1], ImageAxis { size: 115, lower: 0, upper: -3, step: 1 });
    assert_eq!((plan.x.blocks, plan.x.plane), (32 * 115, 32 * 115 * 230 * 8));
    assert_eq!((plan.x.scales, plan.w.plane), (32 * 115 * 112, 64 * 4 * 64));
    assert_eq!(plan.planes_words(5, [1, 2])[10..], [224, 3, 230, 112, 7, 115, 224, 3]);
    let paired = |problem: Problem| Lines::of(&problem).map(|(_, lines)| lines.paired);
    assert_eq!(paired(square(1, [4, 8], 16, 2, 4)), Some(true));
    assert_eq!(paired(square(1, [4, 8], 16, 3, 1)), Some(false));
    assert_eq!(paired(square(1, [5, 8], 16, 3, 2)), Some(false));
    assert_eq!(paired(square(1, [4, 8], 16, 1, 2)), Some(false));
}

#[test]
fn clusters_share_the_tiles_of_small_images() {
    let shared = |problem: Problem| {
        let plan = plan(&problem, &H200, Precision::Highest).unwrap();
        (plan.tile.name, plan.ranks, plan.blocks(&H200))
    };
    assert_eq!(shared(square(1, [512, 512], 7, 3, 1)), ("split_64x64", 8, 64));
    assert_eq!(shared(square(1, [256, 256], 14, 3, 1)), ("split_64x64", 4, 64));
    assert_eq!(shared(square(1, [128, 128], 28, 3, 1)), ("split_64x64", 4, 104));
    assert_eq!(shared(square(1, [64, 64], 56, 3, 1)), ("split_64x64", 2, 98));
    assert_eq!(shared(square(1, [256, 1024], 14, 1, 1)), ("split_64x64", 1, 64));
    assert_eq!(shared(square(32, [512, 512], 7, 3, 1)), ("split_128x64", 1, 104));
}

#[test]
fn what_32_bits_cannot_count_takes_another_route() {
    let image = |images, size| square(images, [64, 64], size, 1, 1);
    assert!(plan(&image(1000, 1000), &H200, Precision::Highest).is_some());
    assert!(plan(&image(1100, 1000), &H200, Precision::Highest).is_none());
    assert!(plan(&image(usize::MAX / (1 << 40), 1 << 20), &H200, Precision::Highest).is_none());
}

impl Bench {
    /// The launches of a convolution with padding of one.
    fn convolve(&self, x: &Tensor, w: &Tensor, precision: &str) -> Vec<Launch> {
        let metas = vec![Some(x.meta().clone()), Some(w.meta().clone()), None];
        let options =
            [("pads".into(), Raw::List(vec![1.0; 4])), ("precision".into(), Raw::Text(precision.into()))];
        let call = Call::new("conv2d", metas, &options).unwrap();
        self.launches(&call, [x, w], 1)
    }
}

/// Blocks of conv_planes.cu for the input and for the weights.
fn split_blocks(launch: &Launch) -> [u64; 2] {
    let x = words(launch, 8)[3] & 0xffff_ffff;
    [x, u64::from(launch.blocks.0) - x]
}

const X: &[usize] = &[32, 128, 28, 28];
const W: &[usize] = &[120, 128, 3, 3];

#[test]
fn launches_follow_each_other() {
    let bench = Bench::new(Config::default());
    let (x, w) = (bench.tensor(X), bench.tensor(W));
    let launches = bench.convolve(&x, &w, "highest");
    assert_eq!(names(&launches), ["conv_f32_planes", "conv_f32_split_192x64"]);
    let (split, main) = (&launches[0], &launches[1]);
    assert_eq!((split_blocks(split), split.early), ([32 * 2 * 13, 120], false));
    assert_eq!((main.blocks.0, main.threads.0, main.shared, main.early), (132, 512, 223_744, true));
    let [map_x, map_w] = [tensor_map(&main.arguments[0]), tensor_map(&main.arguments[1])];
    assert_eq!(
        (&map_x.dims[..4], &map_x.strides[..3]),
        (&[128, 28, 28, 64][..], &[256, 256 * 28, 256 * 28 * 28][..])
    );
    let pixels = map_x.pixels.unwrap();
    assert_eq!(
        (&map_x.steps[..4], &pixels.lower[..2], &pixels.upper[..2]),
        (&[1; 4][..], &[-1; 2][..], &[-1; 2][..])
    );
    assert_eq!(map_of(&main.arguments[1])[1..], [9 * 128, 120, 2, 2 * 9 * 128, 2 * 9 * 128 * 120, 64]);
    // Planes, scales, ranges and operands are those of the first launch.
    assert_eq!((map_x.address, map_w.address), (words(split, 1)[0], words(split, 5)[0]));
    for (product, prepared) in [(2, 2), (3, 6), (4, 3), (5, 7), (6, 0), (7, 4)] {
        assert_eq!(words(main, product), words(split, prepared));
    }
    assert_eq!(names(&bench.convolve(&x, &w, "high")), ["conv_f32_planes", "conv_f32_half_192x64"]);
    assert_eq!(names(&bench.convolve(&x, &w, "strict")), ["conv_f32_pack", "conv_f32_64x128"]);
}

#[test]
fn planes_of_weights_are_kept_with_them() {
    let bench = Bench::new(Config::default());
    let w = bench.tensor(W);
    let x = [0; 3].map(|_| bench.tensor(X));
    let blocks = [0, 0, 1, 2, 0].map(|i: usize| split_blocks(&bench.convolve(&x[i], &w, "highest")[0])[1]);
    assert_eq!(blocks, [120, 120, 120, 0, 0]);
    assert!(bench.prepared() > 0);
    // An input that several weights meet is split once more, then kept.
    let others = [0; 3].map(|_| bench.tensor(W));
    let inputs = [0, 1, 2].map(|i| split_blocks(&bench.convolve(&x[0], &others[i], "highest")[0])[0]);
    assert_eq!(inputs, [832, 0, 0]);
    drop((x, w, others));
    assert_eq!(bench.prepared(), 0);
}

#[test]
fn without_tensor_maps_or_memory_the_chains_run() {
    for absent in ["cuTensorMapEncodeIm2col", "cuTensorMapEncodeTiled"] {
        let bench = Bench::new(Config {
            absent: match absent {
                "cuTensorMapEncodeIm2col" => &["cuTensorMapEncodeIm2col"],
                _ => &["cuTensorMapEncodeTiled"],
            },
            ..Config::default()
        });
        let launches = bench.convolve(&bench.tensor(X), &bench.tensor(W), "highest");
        assert_eq!(names(&launches), ["conv_f32_pack", "conv_f32_64x128"]);
    }
    let bench = Bench::new(Config::default());
    let (x, w) = (bench.tensor(X), bench.tensor(W));
    bench.launcher.core().set_memory_limit(bench.launcher.core().memory_stats().used + (14 << 20));
    assert_eq!(names(&bench.convolve(&x, &w, "highest")), ["conv_f32_pack", "conv_f32_64x128"]);
}
