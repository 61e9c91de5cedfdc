//! Where an output of one axis lies in the input and what it takes from there, in float64, as kernels/resize.cu computes it
//! too. From the ONNX operator Resize and its reference implementation.

/// How outputs are made of inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Nearest = 0,
    Linear = 1,
    Cubic = 2,
}

/// How an output's index becomes a place in the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transform {
    HalfPixel = 0,
    HalfPixelSymmetric = 1,
    PytorchHalfPixel = 2,
    AlignCorners = 3,
    Asymmetric = 4,
    TfCropAndResize = 5,
}

/// Which neighbour `Method::Nearest` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounding {
    PreferFloor = 0,
    PreferCeil = 1,
    Floor = 2,
    Ceil = 3,
}

/// What all axes share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    pub method: Method,
    pub transform: Transform,
    pub rounding: Rounding,
    /// The cubic's coefficient a.
    pub cubic: f64,
    /// Whether elements outside the input weigh nothing, instead of being those at its ends.
    pub exclude_outside: bool,
    /// Whether the footprint grows where the axis shrinks.
    pub antialias: bool,
    /// The result of `TfCropAndResize` outside the input.
    pub extrapolation: f64,
}

/// One axis that is resized.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Axis {
    /// Its number.
    pub axis: usize,
    pub input: usize,
    pub output: usize,
    /// Output elements for each input element.
    pub scale: f64,
    /// Region of `TfCropAndResize`, as shares of the axis.
    pub region: [f64; 2],
}

/// Elements that an output takes; `weights` are as many as [`Axis::taps`].
#[derive(Debug, PartialEq)]
pub enum Taps {
    /// From this index on, which may lie outside.
    From(i64),
    /// None: the result is the extrapolation value.
    Outside,
}

impl Axis {
    /// Whether every output is the input of its index.
    pub fn is_identity(&self, rules: &Rules) -> bool {
        let whole = rules.transform != Transform::TfCropAndResize || self.region == [0.0, 1.0];
        self.input == self.output && self.scale == 1.0 && whole
    }

    fn shrink(&self, rules: &Rules) -> f64 {
        if rules.antialias { self.scale.min(1.0) } else { 1.0 }
    }

    /// Elements that go into each output.
    pub fn taps(&self, rules: &Rules) -> usize {
        let reach = match rules.method {
            Method::Nearest => return 1,
            Method::Linear => 1.0,
            Method::Cubic => 2.0,
        };
        2 * (reach / self.shrink(rules)).ceil() as usize
    }

    /// The place of an output in the input.
    fn place(&self, index: usize, rules: &Rules) -> f64 {
        let (x, input, length) = (index as f64, self.input as f64, self.scale * self.input as f64);
        match rules.transform {
            Transform::HalfPixel => (x + 0.5) / self.scale - 0.5,
            Transform::HalfPixelSymmetric => self.offset() + (x + 0.5) / self.scale - 0.5,
            Transform::PytorchHalfPixel if self.output > 1 => (x + 0.5) / self.scale - 0.5,
            Transform::PytorchHalfPixel => 0.0,
            Transform::AlignCorners if length == 1.0 => 0.0,
            Transform::AlignCorners => x * (input - 1.0) / (length - 1.0),
            Transform::Asymmetric => x / self.scale,
            Transform::TfCropAndResize => {
                let [start, end] = self.region;
                let within = match length == 1.0 {
                    true => (end - start) * (input - 1.0) / 2.0,
                    false => x * (end - start) * (input - 1.0) / (length - 1.0),
                };
                within + start * (input - 1.0)
            }
        }
    }

    /// What keeps the middle in the middle where the output's length was rounded.
    pub fn offset(&self) -> f64 {
        let input = self.input as f64;
        input / 2.0 * (1.0 - self.output as f64 / (self.scale * input))
    }

    /// The elements behind an output and their weights.
    pub fn taps_of(&self, index: usize, rules: &Rules, weights: &mut [f64]) -> Taps {
        let place = self.place(index, rules);
        if rules.transform == Transform::TfCropAndResize && !(0.0..=(self.input - 1) as f64).contains(&place)
        {
            return Taps::Outside;
        }
        // Of a place on an element that is the right neighbour.
        let left = place.ceil() - 1.0;
        let ratio = place - left;
        if rules.method == Method::Nearest {
            weights[0] = 1.0;
            let right = match rules.rounding {
                _ if ratio == 1.0 => true,
                Rounding::PreferFloor => ratio > 0.5,
                Rounding::PreferCeil => ratio >= 0.5,
                Rounding::Floor => false,
                Rounding::Ceil => true,
            };
            return Taps::From(left as i64 + i64::from(right));
        }
        let first = left as i64 + 1 - weights.len() as i64 / 2;
        let shrink = self.shrink(rules);
        for (tap, weight) in weights.iter_mut().enumerate() {
            let at = first + tap as i64;
            let distance = ((at as f64 - place) * shrink).abs();
            let inside = (0..self.input as i64).contains(&at);
            *weight = match rules.method {
                _ if rules.exclude_outside && !inside => 0.0,
                Method::Linear => (1.0 - distance).max(0.0),
                _ => cubic(distance, rules.cubic),
            };
        }
        if rules.antialias || rules.exclude_outside {
            let total: f64 = weights.iter().sum();
            weights.iter_mut().for_each(|weight| *weight /= total);
        }
        Taps::From(first)
    }
}

/// Keys' cubic convolution, (a + 2) x^3 - (a + 3) x^2 + 1 and a (x^3 - 5 x^2 + 8 x - 4), in factors that cancel nothing.
fn cubic(x: f64, a: f64) -> f64 {
    if x <= 1.0 {
        (1.0 - x) * (1.0 + x - (a + 2.0) * x * x)
    } else if x < 2.0 {
        a * (x - 1.0) * (2.0 - x) * (2.0 - x)
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules = Rules {
        method: Method::Linear,
        transform: Transform::HalfPixel,
        rounding: Rounding::PreferFloor,
        cubic: -0.75,
        exclude_outside: false,
        antialias: false,
        extrapolation: 0.0,
    };

    fn axis(input: usize, output: usize) -> Axis {
        Axis { axis: 0, input, output, scale: output as f64 / input as f64, region: [0.0, 1.0] }
    }

    fn taps(axis: &Axis, index: usize, rules: &Rules) -> (Taps, Vec<f64>) {
        let mut weights = vec![0.0; axis.taps(rules)];
        (axis.taps_of(index, rules, &mut weights), weights)
    }

    #[test]
    fn neighbours_and_weights() {
        assert_eq!(taps(&axis(4, 8), 0, &RULES), (Taps::From(-1), vec![0.25, 0.75]));
        assert_eq!(taps(&axis(4, 8), 1, &RULES), (Taps::From(0), vec![0.75, 0.25]));
        assert_eq!(taps(&axis(4, 2), 1, &RULES), (Taps::From(2), vec![0.5, 0.5]));
        let aligned = Rules { transform: Transform::AlignCorners, ..RULES };
        assert_eq!(taps(&axis(3, 5), 2, &aligned), (Taps::From(0), vec![0.0, 1.0]));
        assert_eq!(taps(&axis(3, 1), 0, &aligned), (Taps::From(-1), vec![0.0, 1.0]));
        let excluded = Rules { exclude_outside: true, ..RULES };
        assert_eq!(taps(&axis(4, 8), 0, &excluded), (Taps::From(-1), vec![0.0, 1.0]));
        let cubic = Rules { method: Method::Cubic, ..RULES };
        let (first, weights) = taps(&axis(4, 2), 0, &cubic);
        assert_eq!((first, weights), (Taps::From(-1), vec![-0.09375, 0.59375, 0.59375, -0.09375]));
    }

    #[test]
    fn footprints_grow_where_the_axis_shrinks() {
        let smooth = Rules { antialias: true, ..RULES };
        let (first, weights) = taps(&axis(8, 2), 0, &smooth);
        assert_eq!((first, weights.len()), (Taps::From(-2), 8));
        assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-15);
        assert_eq!(taps(&axis(2, 4), 1, &smooth), (Taps::From(0), vec![0.75, 0.25]));
    }

    #[test]
    fn the_nearest_by_each_rule() {
        let of = |rounding| {
            let rules =
                Rules { method: Method::Nearest, transform: Transform::Asymmetric, rounding, ..RULES };
            (0..4).map(|index| taps(&axis(2, 4), index, &rules).0).collect::<Vec<_>>()
        };
        let from = |list: [i64; 4]| list.map(Taps::From).into_iter().collect::<Vec<_>>();
        assert_eq!(of(Rounding::PreferFloor), from([0, 0, 1, 1]));
        assert_eq!(of(Rounding::PreferCeil), from([0, 1, 1, 2]));
        assert_eq!(of(Rounding::Floor), from([0, 0, 1, 1]));
        assert_eq!(of(Rounding::Ceil), from([0, 1, 1, 2]));
    }

    #[test]
    fn crops_know_their_outside() {
        let rules = Rules { transform: Transform::TfCropAndResize, ..RULES };
        let wide = Axis { region: [0.0, 2.0], ..axis(3, 3) };
        let found: Vec<_> = (0..3).map(|index| taps(&wide, index, &rules).0).collect();
        assert_eq!(found, [Taps::From(-1), Taps::From(1), Taps::Outside]);
    }
}
