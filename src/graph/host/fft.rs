//! Discrete Fourier transforms of any length along an axis, in float64.

use super::{filled, widened};
use crate::Result;
use crate::cpu::{Float, for_pieces};
use crate::for_float;
use crate::ops::Meta;
use crate::tensor::Tensor;
use std::f64::consts::PI;

/// What to transform.
#[derive(Clone, Copy)]
pub struct Transform {
    /// Places of a line; a shorter line ends in zeros, a longer one is cut.
    pub length: usize,
    /// Whether the exponent is positive and results are divided by the length.
    pub inverse: bool,
    /// Results of a line that are wanted, from the first.
    pub bins: usize,
}

#[derive(Clone, Copy)]
struct Complex {
    re: f64,
    im: f64,
}

const ZERO: Complex = Complex { re: 0.0, im: 0.0 };

impl Complex {
    /// The unit at `turns` of `of` in a full circle.
    fn unit(turns: u128, of: usize, sign: f64) -> Complex {
        let angle = sign * 2.0 * PI * (turns % of as u128) as f64 / of as f64;
        Complex { re: angle.cos(), im: angle.sin() }
    }

    fn times(self, other: Complex) -> Complex {
        let re = self.re * other.re - self.im * other.im;
        Complex { re, im: self.re * other.im + self.im * other.re }
    }

    fn conjugate(self) -> Complex {
        Complex { im: -self.im, ..self }
    }
}

/// Transforms lines of `x`, which are rows of real numbers or of pairs: `[lines, places, parts]` to `[lines, bins, 2]`.
pub fn transform(inputs: &[Option<Tensor>], how: Transform, output: &Meta) -> Result<Vec<Tensor>> {
    let x = widened(inputs, 0)?;
    Ok(vec![for_float!(x.meta().dtype, lines(&x, how, output))?])
}

fn lines<F: Float>(x: &Tensor, how: Transform, output: &Meta) -> Result<Tensor> {
    let (places, parts) = (x.meta().dims[1], x.meta().dims[2]);
    let values = x.host_view()?.as_slice::<F>();
    let plan = Plan::new(how.length);
    let scale = if how.inverse { 1.0 / how.length as f64 } else { 1.0 };
    let cost = 10 * (how.length.max(2).ilog2() as usize);
    filled::<F>(output, |out| {
        for_pieces(out, 2 * how.bins, cost, |start, piece| {
            for (index, results) in piece.chunks_exact_mut(2 * how.bins).enumerate() {
                let line = &values[(start / (2 * how.bins) + index) * places * parts..][..places * parts];
                let mut numbers = vec![ZERO; how.length];
                for (slot, pair) in numbers.iter_mut().zip(line.chunks_exact(parts)) {
                    slot.re = pair[0].to_f64();
                    slot.im = pair.get(1).map_or(0.0, |part| part.to_f64());
                }
                plan.run(&mut numbers, how.inverse);
                for (result, number) in results.chunks_exact_mut(2).zip(&numbers) {
                    result[0] = F::from_f64(number.re * scale);
                    result[1] = F::from_f64(number.im * scale);
                }
            }
        });
    })
}

/// Tables for one length.
enum Plan {
    /// Lengths that are a power of two.
    Halving(Vec<Complex>),
    /// Others, as a convolution with a chirp of such a length (Bluestein).
    Chirp {
        /// The chirp of the forward direction.
        chirp: Vec<Complex>,
        /// Its transform, conjugated, of the longer length.
        filter: Vec<Complex>,
        /// Units of the longer length.
        units: Vec<Complex>,
    },
}

impl Plan {
    fn new(length: usize) -> Plan {
        if length.is_power_of_two() {
            return Plan::Halving(units(length));
        }
        // k^2 / 2 turns; taken modulo the length before it is rounded.
        let chirp: Vec<Complex> =
            (0..length).map(|k| Complex::unit((k as u128) * (k as u128), 2 * length, -1.0)).collect();
        let long = (2 * length).next_power_of_two();
        let units = units(long);
        let mut filter = vec![ZERO; long];
        for (k, value) in chirp.iter().enumerate() {
            filter[k] = value.conjugate();
            filter[(long - k) % long] = value.conjugate();
        }
        halving(&mut filter, &units);
        Plan::Chirp { chirp, filter, units }
    }

    fn run(&self, numbers: &mut [Complex], inverse: bool) {
        // The other direction is the same between conjugations.
        let turn = |numbers: &mut [Complex]| {
            if inverse {
                numbers.iter_mut().for_each(|number| *number = number.conjugate());
            }
        };
        turn(numbers);
        match self {
            Plan::Halving(units) => halving(numbers, units),
            Plan::Chirp { chirp, filter, units } => {
                let long = filter.len();
                let mut product = vec![ZERO; long];
                for ((slot, number), chirp) in product.iter_mut().zip(&*numbers).zip(chirp) {
                    *slot = number.times(*chirp);
                }
                halving(&mut product, units);
                for (slot, filter) in product.iter_mut().zip(filter) {
                    *slot = slot.times(*filter).conjugate();
                }
                halving(&mut product, units);
                for ((number, result), chirp) in numbers.iter_mut().zip(&product).zip(chirp) {
                    let result = result.conjugate();
                    let scaled = Complex { re: result.re / long as f64, im: result.im / long as f64 };
                    *number = scaled.times(*chirp);
                }
            }
        }
        turn(numbers);
    }
}

fn units(length: usize) -> Vec<Complex> {
    (0..length / 2).map(|turns| Complex::unit(turns as u128, length, -1.0)).collect()
}

/// The transform of a power of two, in place.
fn halving(numbers: &mut [Complex], units: &[Complex]) {
    let length = numbers.len();
    if length < 2 {
        return;
    }
    let shift = usize::BITS - length.trailing_zeros();
    for index in 0..length {
        let other = index.reverse_bits() >> shift;
        if index < other {
            numbers.swap(index, other);
        }
    }
    let mut half = 1;
    while half < length {
        let step = length / (2 * half);
        for block in numbers.chunks_exact_mut(2 * half) {
            let (low, high) = block.split_at_mut(half);
            for ((low, high), unit) in low.iter_mut().zip(high).zip(units.iter().step_by(step)) {
                let (sum, product) = (*low, high.times(*unit));
                *low = Complex { re: sum.re + product.re, im: sum.im + product.im };
                *high = Complex { re: sum.re - product.re, im: sum.im - product.im };
            }
        }
        half *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;

    fn naive(x: &[f64], length: usize, sign: f64) -> Vec<f64> {
        let mut out = Vec::new();
        for bin in 0..length {
            let mut sum = ZERO;
            for place in 0..length.min(x.len() / 2) {
                let number = Complex { re: x[2 * place], im: x[2 * place + 1] };
                let term = number.times(Complex::unit((bin * place) as u128, length, sign));
                sum = Complex { re: sum.re + term.re, im: sum.im + term.im };
            }
            out.extend([sum.re, sum.im]);
        }
        out
    }

    #[test]
    fn every_length_equals_the_sum() {
        for length in [1, 2, 3, 5, 8, 12, 31, 64, 100] {
            for places in [length, length / 2, length + 3] {
                let x: Vec<f64> = (0..2 * places).map(|k| ((k * 37 + 11) % 23) as f64 - 11.0).collect();
                for inverse in [false, true] {
                    let tensor = Tensor::from_slice(DType::F64, [1, places, 2], &x).unwrap();
                    let how = Transform { length, inverse, bins: length };
                    let output = Meta::new(DType::F64, [1, length, 2]);
                    let y = transform(&[Some(tensor)], how, &output).unwrap().swap_remove(0);
                    let scale = if inverse { length as f64 } else { 1.0 };
                    let wanted = naive(&x, length, if inverse { 1.0 } else { -1.0 });
                    for (got, wanted) in y.host_view().unwrap().as_slice::<f64>().iter().zip(wanted) {
                        assert!(
                            (got * scale - wanted).abs() < 1e-9 * length as f64,
                            "{length} {got} {wanted}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn real_lines_give_the_bins_that_are_wanted() {
        let x =
            Tensor::from_slice(DType::F32, [2, 4, 1], &[1f32, 2.0, 3.0, 4.0, 0.0, 1.0, 0.0, -1.0]).unwrap();
        let how = Transform { length: 4, inverse: false, bins: 3 };
        let y = transform(&[Some(x)], how, &Meta::new(DType::F32, [2, 3, 2])).unwrap().swap_remove(0);
        let wanted = [10f32, 0.0, -2.0, 2.0, -2.0, 0.0, 0.0, 0.0, 0.0, -2.0, 0.0, 0.0];
        for (got, wanted) in y.host_view().unwrap().as_slice::<f32>().iter().zip(wanted) {
            assert!((got - wanted).abs() < 1e-6);
        }
    }
}
