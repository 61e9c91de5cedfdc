//! Layers on an emulated card that runs the kernels, against the CPU's float64.

use super::*;
use crate::driver::fake::Config;
use crate::ops::activation::Activation;
use crate::ops::planes::bench::Bench;
use crate::ops::tile::Card;
use crate::ops::{Call, Raw};
use crate::tensor::HostView;
use crate::{DType, Tensor};

/// A card of four multiprocessors, as the emulated one.
const SMALL: Card = Card { multiprocessors: 4, ..Card::H200 };

/// Sizes of a convolution of squares with padding of half the kernel.
struct Sizes {
    filters: usize,
    kernel: usize,
    stride: usize,
}

/// Values in [-1, 1), the same every time.
fn values(seed: usize, count: usize) -> Vec<f64> {
    let mut state = (seed as u32).wrapping_mul(2_654_435_761);
    let next = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from((state >> 8) as f32 / (1 << 23) as f32 - 1.0)
    };
    (0..count).map(next).collect()
}

fn floats(values: &[f64]) -> Vec<f32> {
    values.iter().map(|value| *value as f32).collect()
}

struct Network {
    bench: Bench,
    images: usize,
}

/// A layer, its result as planes and as the CPU has it, and the result's channels and size.
struct Step {
    layer: Layer,
    planar: Planar,
    sum: Vec<f64>,
    channels: usize,
    size: usize,
    _weights: [Tensor; 2],
}

impl Network {
    fn new(images: usize) -> Network {
        Network { bench: Bench::new(Config { runs: true, ..Config::default() }), images }
    }

    fn upload(&self, values: &[f64], dims: &[usize]) -> Tensor {
        let host = Tensor::from_slice(DType::F32, dims, &floats(values)).unwrap();
        host.to_device(self.bench.launcher.core()).unwrap()
    }

    fn at(&self, tensor: &Tensor) -> DevicePtr {
        tensor.device_view(self.bench.launcher.core()).unwrap().ptr
    }

    /// The layer after an input [images, channels, size, size], which the CPU has in float64. `residual` is added.
    fn step(
        &self,
        (x, channels, size): (&[f64], usize, usize),
        sizes: Sizes,
        residual: Option<&[f64]>,
        (precision, planar): (Precision, bool),
    ) -> Step {
        let Sizes { filters, kernel, stride } = sizes;
        let pads = Raw::List(vec![(kernel / 2) as f64; 4]);
        let options = [("pads".to_string(), pads), ("strides".into(), Raw::List(vec![stride as f64; 2]))];
        let (w_dims, x_dims) = ([filters, channels, kernel, kernel], [self.images, channels, size, size]);
        let (w, bias) = (values(filters, w_dims.iter().product()), values(kernel, filters));
        let tensor = |dims: &[usize], data: &[f64]| Some(Tensor::from_slice(DType::F64, dims, data).unwrap());
        let operands = [tensor(&x_dims, x), tensor(&w_dims, &w), tensor(&[filters], &bias)];
        let metas =
            operands.iter().map(|tensor| tensor.as_ref().map(|tensor| tensor.meta().clone())).collect();
        let call = Call::new("conv2d", metas, &options).unwrap();
        let y = call.run_cpu(&operands).unwrap();
        let mut sum = y[0].host_view().map(|view: HostView| view.as_slice::<f64>().to_vec()).unwrap();
        for (index, y) in sum.iter_mut().enumerate() {
            *y += residual.map_or(0.0, |residual| residual[index]);
            *y = if *y <= 0.0 { 0.0 } else { *y };
        }
        let problem = super::super::problem(&call).unwrap();
        let relu = [("activation".to_string(), Raw::Text("relu".into()))];
        let metas =
            operands.iter().map(|tensor| tensor.as_ref().map(|tensor| tensor.meta().clone())).collect();
        let relu = Activation::new(&Call::new("conv2d", metas, &relu).unwrap().attrs);
        let setting = Setting { size: 4, aligned: [true; 2], activation: 0, card: SMALL };
        let weights = [self.upload(&w, &w_dims), self.upload(&bias, &[filters])];
        let at = weights.each_ref().map(|tensor| self.at(tensor));
        let launcher = &self.bench.launcher;
        let layer = Layer::new(launcher, &problem, setting, precision, relu, at, planar).unwrap().unwrap();
        let planar = layer.planar(launcher).unwrap();
        let size = problem.axes[2].output;
        Step { layer, planar, sum, channels: filters, size, _weights: weights }
    }

    /// Runs a step; its result as float32 too.
    fn run(&self, step: &Step, input: Input, residual: Option<&Planar>) -> Vec<f64> {
        let y = self.bench.tensor(&[self.images, step.channels, step.size, step.size]);
        let output = Output { floats: Some(self.at(&y)), planar: Some(&step.planar) };
        assert!(step.layer.run(&self.bench.launcher, input, residual, output).unwrap());
        let host = y.to_host().unwrap();
        host.host_view().unwrap().as_slice::<f32>().iter().map(|y| f64::from(*y)).collect()
    }
}

impl Step {
    fn as_input(&self) -> (&[f64], usize, usize) {
        (&self.sum, self.channels, self.size)
    }
}

/// The norm of the difference over the norm.
fn error(got: &[f64], wanted: &[f64]) -> f64 {
    let norm = |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>().sqrt();
    norm(&mut got.iter().zip(wanted).map(|(a, b)| a - b)) / norm(&mut wanted.iter().copied())
}

fn sizes(filters: usize, kernel: usize, stride: usize) -> Sizes {
    Sizes { filters, kernel, stride }
}

#[test]
fn layers_hand_planes_on() {
    for (precision, bound) in [(Precision::Highest, 1e-6), (Precision::High, 3e-3)] {
        let network = Network::new(2);
        let x = values(7, 2 * 3 * 9 * 9);
        let input = network.upload(&x, &[2, 3, 9, 9]);
        let first = network.step((&x, 3, 9), sizes(20, 5, 2), None, (precision, false));
        let second = network.step(first.as_input(), sizes(20, 3, 1), Some(&first.sum), (precision, true));
        let third = network.step(second.as_input(), sizes(70, 1, 1), None, (precision, true));
        let mut before: Option<Vec<f64>> = None;
        for _ in 0..2 {
            let y = network.run(&first, Input::Floats(network.at(&input)), None);
            assert!(error(&y, &first.sum) < bound, "{precision:?}: {}", error(&y, &first.sum));
            let y = network.run(&second, Input::Planar(&first.planar), Some(&first.planar));
            assert!(error(&y, &second.sum) < bound, "{precision:?}: {}", error(&y, &second.sum));
            let y = network.run(&third, Input::Planar(&second.planar), None);
            assert!(error(&y, &third.sum) < bound, "{precision:?}: {}", error(&y, &third.sum));
            // The same bits again.
            assert!(before.is_none_or(|before| before == y));
            before = Some(y);
        }
    }
}

#[test]
fn planes_of_other_sizes_are_refused() {
    let network = Network::new(1);
    let x = values(3, 16 * 25);
    let of = |filters| network.step((&x, 16, 5), sizes(filters, 3, 1), None, (Precision::Highest, true));
    let (narrow, wide) = (of(16), of(24));
    let launcher = &network.bench.launcher;
    let run = |residual, planar| {
        let output = Output { floats: None, planar: Some(planar) };
        narrow.layer.run(launcher, Input::Planar(&narrow.planar), residual, output).is_ok()
    };
    assert!(!run(None, &wide.planar) && !run(Some(&wide.planar), &narrow.planar));
    let output = Output { floats: None, planar: Some(&narrow.planar) };
    assert!(narrow.layer.run(launcher, Input::Planar(&wide.planar), None, output).is_err());
}

#[test]
fn what_is_not_finite_goes_through_planes_and_is_forgotten() {
    let network = Network::new(1);
    let x = values(5, 8 * 16);
    let first = network.step((&x, 8, 4), sizes(16, 1, 1), None, (Precision::Highest, false));
    let second = network.step(first.as_input(), sizes(20, 3, 1), None, (Precision::Highest, true));
    for poison in [Some(f64::INFINITY), Some(f64::NAN), None] {
        let mut changed = x.clone();
        changed[8] = poison.unwrap_or(changed[8]);
        let input = network.upload(&changed, &[1, 8, 4, 4]);
        let y = network.run(&first, Input::Floats(network.at(&input)), None);
        let wanted = network.step((&changed, 8, 4), sizes(16, 1, 1), None, (Precision::Highest, false)).sum;
        same(&y, &wanted);
        let y = network.run(&second, Input::Planar(&first.planar), None);
        let wanted = network.step((&wanted, 16, 4), sizes(20, 3, 1), None, (Precision::Highest, true)).sum;
        same(&y, &wanted);
    }
}

/// Not finite where that is not, and near it.
fn same(got: &[f64], wanted: &[f64]) {
    for (got, wanted) in got.iter().zip(wanted) {
        let near = (got - wanted).abs() <= 1e-5 * wanted.abs().max(1.0);
        assert!(near || got == wanted || got.is_nan() && wanted.is_nan(), "{got} {wanted}");
    }
}
