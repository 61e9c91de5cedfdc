//! Window geometry of convolution and pooling, with ONNX's meanings: one [`WindowAxis`] per spatial axis.

use super::Attrs;
use super::spec::{Attribute, Kind, OpSpec, attribute};
use crate::{Result, invalid, mismatch};

/// The option `strides`.
pub const STRIDES: Attribute =
    attribute("strides", Kind::Ints, "Steps between windows, one per spatial axis; 1 each by default.");
/// The option `pads`.
pub const PADS: Attribute = attribute(
    "pads",
    Kind::Ints,
    "Padding at the starts of all spatial axes, then at their ends ([top, left, bottom, right]); 0 by default.",
);
/// The option `dilations`.
pub const DILATIONS: Attribute = attribute(
    "dilations",
    Kind::Ints,
    "Steps between the elements of a window, one per spatial axis; 1 each by default.",
);
/// The option `autoPad`.
pub const AUTO_PAD: Attribute = attribute(
    "autoPad",
    Kind::Choice(&["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]),
    "Padding found from the sizes instead of `pads`: SAME_UPPER puts an odd one at the end, SAME_LOWER at the start.",
);
/// The option `ceilMode`.
pub const CEIL_MODE: Attribute = attribute(
    "ceilMode",
    Kind::Bool(false),
    "Whether a last window that reaches beyond the padded input counts, unless it starts in the padding at the end.",
);

/// How windows lie along one spatial axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowAxis {
    /// Elements of the input.
    pub input: usize,
    /// Elements of a window.
    pub kernel: usize,
    /// Elements from one window's start to the next one's.
    pub stride: usize,
    /// Elements from one tap to the next.
    pub dilation: usize,
    /// Padding before the input.
    pub begin: usize,
    /// Padding after the input.
    pub end: usize,
    /// Number of windows.
    pub output: usize,
}

impl WindowAxis {
    /// The taps of window `index` that lie in the input, as a range; tap t reads `position(index, t)`.
    pub fn taps(&self, index: usize) -> std::ops::Range<usize> {
        let start = index * self.stride;
        let first = self.begin.saturating_sub(start).div_ceil(self.dilation);
        let past = (self.begin + self.input).saturating_sub(start).div_ceil(self.dilation);
        first.min(self.kernel)..past.clamp(first.min(self.kernel), self.kernel)
    }

    /// The windows whose tap lies in the input, as a range; window i reads `position(i, tap)`.
    pub fn windows(&self, tap: usize) -> std::ops::Range<usize> {
        let offset = tap * self.dilation;
        let first = self.begin.saturating_sub(offset).div_ceil(self.stride).min(self.output);
        let past = (self.begin + self.input).saturating_sub(offset).div_ceil(self.stride);
        first..past.clamp(first, self.output)
    }

    /// Input element under a tap that lies in the input.
    pub fn position(&self, index: usize, tap: usize) -> usize {
        index * self.stride + tap * self.dilation - self.begin
    }

    /// Number of taps of window `index` that lie in the padded input.
    pub fn padded_taps(&self, index: usize) -> usize {
        let padded = self.begin + self.input + self.end;
        padded.saturating_sub(index * self.stride).div_ceil(self.dilation).min(self.kernel)
    }
}

/// Window options that were checked against the number of spatial axes.
#[derive(Debug, Clone)]
pub struct WindowOptions {
    /// Steps between windows.
    pub strides: Vec<usize>,
    /// Steps between taps.
    pub dilations: Vec<usize>,
    /// Padding before the input, 0 where `auto_pad` finds it.
    pub begin: Vec<usize>,
    /// Padding after the input, 0 where `auto_pad` finds it.
    pub end: Vec<usize>,
    /// A word of [`AUTO_PAD`].
    pub auto_pad: &'static str,
}

impl WindowOptions {
    /// Reads `strides`, `dilations`, `pads` and `autoPad` for that many spatial axes.
    pub fn new(spec: &OpSpec, attrs: &Attrs, axes: usize) -> Result<WindowOptions> {
        let auto_pad = match attrs.choice(AUTO_PAD.name) {
            "" => "NOTSET",
            word => word,
        };
        let pads = whole_numbers(spec, attrs, PADS.name, 2 * axes, 0)?.unwrap_or_else(|| vec![0; 2 * axes]);
        if auto_pad != "NOTSET" && pads.iter().any(|&pad| pad > 0) {
            return invalid!(
                "{}: 'pads' are given, so 'autoPad' must be 'NOTSET', got '{auto_pad}'",
                spec.name
            );
        }
        let list = |name| Ok(whole_numbers(spec, attrs, name, axes, 1)?.unwrap_or_else(|| vec![1; axes]));
        Ok(WindowOptions {
            strides: list(STRIDES.name)?,
            dilations: list(DILATIONS.name)?,
            begin: pads[..axes].to_vec(),
            end: pads[axes..].to_vec(),
            auto_pad,
        })
    }

    /// Splits automatic padding: the odd element goes to the end for SAME_UPPER and to the start otherwise.
    pub fn split(&self, total: usize) -> (usize, usize) {
        let small = total / 2;
        if self.auto_pad == "SAME_UPPER" { (small, total - small) } else { (total - small, small) }
    }

    fn is_same(&self) -> bool {
        self.auto_pad.starts_with("SAME")
    }
}

/// A list option: `count` whole numbers of at least `least`, `None` when left out.
pub fn whole_numbers(
    spec: &OpSpec,
    attrs: &Attrs,
    name: &str,
    count: usize,
    least: i64,
) -> Result<Option<Vec<usize>>> {
    let Some(values) = attrs.ints(name) else { return Ok(None) };
    if values.len() != count {
        return invalid!(
            "{}: '{name}' must hold {count} numbers, got {}: {values:?}",
            spec.name,
            values.len()
        );
    }
    if values.iter().any(|&value| value < least) {
        return invalid!("{}: '{name}' must hold numbers of at least {least}, got {values:?}", spec.name);
    }
    Ok(Some(values.iter().map(|&value| value as usize).collect()))
}

/// Geometry of windows of `kernel` elements over an input with these spatial dims, from the op's window options.
pub fn window_axes(
    spec: &OpSpec,
    attrs: &Attrs,
    input: &[usize],
    kernel: &[usize],
) -> Result<Vec<WindowAxis>> {
    let options = WindowOptions::new(spec, attrs, input.len())?;
    let ceil = attrs.bool(CEIL_MODE.name);
    (0..input.len()).map(|axis| window_axis(spec, &options, axis, input, kernel, ceil)).collect()
}

fn window_axis(
    spec: &OpSpec,
    options: &WindowOptions,
    axis: usize,
    inputs: &[usize],
    kernels: &[usize],
    ceil: bool,
) -> Result<WindowAxis> {
    let (input, kernel) = (inputs[axis], kernels[axis]);
    let (stride, dilation) = (options.strides[axis], options.dilations[axis]);
    if kernel == 0 {
        return mismatch!("{}: the window {kernels:?} holds no elements", spec.name);
    }
    // Products of two user numbers below 2^63 fit 128 bits.
    let extent = (kernel as u128 - 1) * dilation as u128 + 1;
    let (mut begin, mut end) = (options.begin[axis], options.end[axis]);
    if options.is_same() {
        let output = input.div_ceil(stride);
        let covered = output.saturating_sub(1) as u128 * stride as u128 + extent;
        let total = if output == 0 { 0 } else { covered.saturating_sub(input as u128) };
        (begin, end) = options.split(fits(spec, total)?);
        if output == 0 {
            return Ok(WindowAxis { input, kernel, stride, dilation, begin, end, output });
        }
    }
    let padded = fits(spec, input as u128 + begin as u128 + end as u128)?;
    let Some(span) = (padded as u128).checked_sub(extent) else {
        return mismatch!(
            "{}: the window {kernels:?} with dilations {:?} spans {extent} elements along axis {}, \
             more than the padded input's {padded} (dims {inputs:?})",
            spec.name,
            options.dilations,
            axis + 2
        );
    };
    let span = span as usize;
    let mut output = if ceil { span.div_ceil(stride) } else { span / stride } + 1;
    if ceil && (output as u128 - 1) * stride as u128 >= (input + begin) as u128 {
        output -= 1;
    }
    Ok(WindowAxis { input, kernel, stride, dilation, begin, end, output })
}

/// Sizes stay below 2^62, so that sums of a few of them cannot overflow.
fn fits(spec: &OpSpec, size: u128) -> Result<usize> {
    match usize::try_from(size) {
        Ok(size) if size < 1 << 62 => Ok(size),
        _ => mismatch!("{}: the padded input is too large ({size} elements along one axis)", spec.name),
    }
}

#[cfg(test)]
mod tests {
    use super::super::spec::{Tolerance, required};
    use super::super::{FLOATS, Raw};
    use super::*;

    static WINDOW: OpSpec = OpSpec {
        name: "window",
        operands: &[required("x")],
        attributes: &[STRIDES, PADS, DILATIONS, AUTO_PAD, CEIL_MODE],
        dtypes: FLOATS,
        results: crate::ops::Results::One,
        shape: |_, _, _| Ok(Vec::new()),
        cpu: |_, _, _| Ok(()),
        cuda: |_, _, _, _| Ok(()),
        tolerance: Tolerance::Exact,
        doc: "Geometry alone.",
    };

    fn axes(input: &[usize], kernel: &[usize], options: &[(&str, Raw)]) -> Result<Vec<WindowAxis>> {
        let raw: Vec<_> = options.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
        window_axes(&WINDOW, &Attrs::parse(&WINDOW, &raw)?, input, kernel)
    }

    fn list(values: &[f64]) -> Raw {
        Raw::List(values.to_vec())
    }

    fn outputs(input: &[usize], kernel: &[usize], options: &[(&str, Raw)]) -> Vec<usize> {
        axes(input, kernel, options).unwrap().iter().map(|axis| axis.output).collect()
    }

    #[test]
    fn windows_are_counted_as_onnx_counts_them() {
        assert_eq!(outputs(&[5, 6], &[2, 3], &[]), [4, 4]);
        let strides = ("strides", list(&[2.0, 3.0]));
        let pads = ("pads", list(&[2.0, 0.0, 1.0, 3.0]));
        assert_eq!(outputs(&[7, 9], &[3, 4], &[strides, pads]), [4, 3]);
        let dilations = ("dilations", list(&[2.0, 3.0]));
        assert_eq!(outputs(&[11, 12], &[3, 2], &[dilations]), [7, 9]);
    }

    #[test]
    fn ceil_mode_drops_windows_that_start_in_the_padding() {
        let ceil = ("ceilMode", Raw::Bool(true));
        let by_two = ("strides", list(&[2.0, 2.0]));
        assert_eq!(outputs(&[8, 7], &[3, 3], &[ceil.clone(), by_two]), [4, 3]);
        let by_three = ("strides", list(&[3.0, 3.0]));
        let pads = ("pads", list(&[0.0, 0.0, 1.0, 1.0]));
        assert_eq!(outputs(&[4, 4], &[2, 2], &[ceil, by_three, pads]), [2, 2]);
        let ceil = ("ceilMode", Raw::Bool(true));
        let pads = ("pads", list(&[0.0, 0.0, 2.0, 2.0]));
        let by_five = ("strides", list(&[5.0, 5.0]));
        assert_eq!(outputs(&[5, 5], &[2, 2], &[ceil, by_five, pads]), [1, 1]);
    }

    #[test]
    fn same_padding_splits_as_named() {
        let upper = axes(&[7, 8], &[2, 2], &[("autoPad", Raw::Text("SAME_UPPER".into()))]).unwrap();
        assert_eq!((upper[0].begin, upper[0].end, upper[0].output), (0, 1, 7));
        let lower = axes(&[7, 8], &[2, 2], &[("autoPad", Raw::Text("SAME_LOWER".into()))]).unwrap();
        assert_eq!((lower[1].begin, lower[1].end, lower[1].output), (1, 0, 8));
        let wide = [("autoPad", Raw::Text("SAME_UPPER".into())), ("strides", list(&[4.0, 5.0]))];
        assert_eq!(outputs(&[7, 0], &[1, 3], &wide), [2, 0]);
    }

    #[test]
    fn bad_geometry_is_refused() {
        let code = |input: &[usize], kernel: &[usize], options: &[(&str, Raw)]| {
            axes(input, kernel, options).unwrap_err().code()
        };
        assert_eq!(code(&[4, 4], &[5, 1], &[]), "SHAPE_MISMATCH");
        assert_eq!(code(&[4, 4], &[2, 2], &[("dilations", list(&[1.0, 4.0]))]), "SHAPE_MISMATCH");
        assert_eq!(code(&[4, 4], &[3, 3], &[("dilations", list(&[9e15, 9e15]))]), "SHAPE_MISMATCH");
        assert_eq!(code(&[4, 4], &[0, 1], &[]), "SHAPE_MISMATCH");
        assert_eq!(code(&[4, 4], &[2, 2], &[("strides", list(&[0.0, 1.0]))]), "INVALID_ARGUMENT");
        assert_eq!(code(&[4, 4], &[2, 2], &[("strides", list(&[1.0]))]), "INVALID_ARGUMENT");
        assert_eq!(code(&[4, 4], &[2, 2], &[("pads", list(&[-1.0, 0.0, 0.0, 0.0]))]), "INVALID_ARGUMENT");
        let both = [("autoPad", Raw::Text("VALID".into())), ("pads", list(&[1.0, 0.0, 0.0, 0.0]))];
        assert_eq!(code(&[4, 4], &[2, 2], &both), "INVALID_ARGUMENT");
    }

    #[test]
    fn taps_are_those_inside_the_input() {
        for (input, kernel, stride, dilation, begin, end) in [
            (5, 3, 2, 1, 1, 1),
            (4, 2, 1, 3, 2, 2),
            (1, 4, 3, 2, 5, 9),
            (0, 2, 1, 1, 3, 0),
            (9, 1, 4, 1, 0, 3),
        ] {
            let padded = begin + input + end;
            let output = (padded - (kernel - 1) * dilation - 1) / stride + 2;
            let axis = WindowAxis { input, kernel, stride, dilation, begin, end, output };
            for index in 0..output {
                let place = |tap: &usize| index * stride + tap * dilation;
                let inside = |tap: &usize| place(tap) >= begin && place(tap) < begin + input;
                let expected: Vec<usize> = (0..kernel).filter(inside).collect();
                assert_eq!(axis.taps(index).collect::<Vec<_>>(), expected, "{axis:?} {index}");
                let cells = (0..kernel).filter(|tap| place(tap) < padded).count();
                assert_eq!(axis.padded_taps(index), cells, "{axis:?} {index}");
                for tap in 0..kernel {
                    assert_eq!(axis.windows(tap).contains(&index), inside(&tap), "{axis:?} {index} {tap}");
                }
                for tap in expected {
                    assert_eq!(axis.position(index, tap), place(&tap) - begin);
                }
            }
        }
    }
}
