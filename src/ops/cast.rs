//! Conversion between element types.

use super::operands::device_operand;
use super::spec::*;
use super::{Attrs, Call, TYPES};
use crate::cpu::{for_pieces, half};
use crate::driver::DevicePtr;
use crate::dtype::DType;
use crate::kernels::{Arg, Launcher, linear};
use crate::tensor::{DeviceView, HostView, HostViewMut};
use crate::{Error, Result};
use ::half::{bf16, f16};

const TO: Attribute = attribute("to", Kind::Type { required: true }, "Element type of the result.");

/// The family's row.
pub const OPS: &[OpSpec] = &[OpSpec {
    name: "cast",
    operands: &[required("x")],
    attributes: &[TO],
    dtypes: TYPES,
    results: Results::One,
    shape: |spec, inputs, attrs| {
        let x = spec.operand(inputs, 0)?;
        Ok(vec![Meta::new(target(attrs)?, x.dims.clone())])
    },
    cpu,
    cuda,
    tolerance: Tolerance::Exact,
    doc: "The elements in another type: floats to the nearest, ties to even, infinity beyond the range; from a float to \
          a whole number truncated, the nearest of the range beyond it and 0 for NaN; between whole numbers the lower \
          bits; to bool whether it is not 0 (ONNX Cast).",
}];

fn target(attrs: &Attrs) -> Result<DType> {
    attrs.dtype(TO.name).ok_or_else(|| Error::Internal("cast: 'to' is missing".into()))
}

/// A number that an element is exactly.
trait Number: Copy + Send + Sync {
    fn to<E: Element>(self) -> E;
    fn is_zero(self) -> bool;
}

/// An element type.
trait Element: bytemuck::Pod + Send + Sync {
    type Wide: Number;
    fn wide(self) -> Self::Wide;
    fn from_float(value: f64) -> Self;
    fn from_signed(value: i64) -> Self;
    fn from_unsigned(value: u64) -> Self;
}

macro_rules! numbers {
    ($($type:ty, $zero:expr, $from:ident;)*) => {$(
        impl Number for $type {
            fn to<E: Element>(self) -> E {
                E::$from(self)
            }
            fn is_zero(self) -> bool {
                self == $zero
            }
        }
    )*};
}

numbers! {
    f64, 0.0, from_float;
    i64, 0, from_signed;
    u64, 0, from_unsigned;
}

/// Rust's `as` takes the nearest of the range from floats and the lower bits from integers, as this op does.
macro_rules! elements {
    ($($type:ty, $wide:ty;)*) => {$(
        impl Element for $type {
            type Wide = $wide;
            fn wide(self) -> $wide {
                self as $wide
            }
            fn from_float(value: f64) -> Self {
                value as $type
            }
            fn from_signed(value: i64) -> Self {
                value as $type
            }
            fn from_unsigned(value: u64) -> Self {
                value as $type
            }
        }
    )*};
}

elements! {
    f32, f64; f64, f64;
    i64, i64; i32, i64; i16, i64; i8, i64;
    u64, u64; u32, i64; u16, i64; u8, i64;
}

/// An integer as a float64 that rounds to 16 bits as the integer itself does: digits beyond 52 leave their trace in
/// the last one.
fn exact_enough(magnitude: u64) -> f64 {
    let lost = magnitude & 0xfff;
    if magnitude >> 52 == 0 || lost == 0 { magnitude as f64 } else { ((magnitude - lost) | 0x1000) as f64 }
}

macro_rules! half_elements {
    ($($type:ty)*) => {$(
        impl Element for $type {
            type Wide = f64;
            fn wide(self) -> f64 {
                self.to_f64()
            }
            fn from_float(value: f64) -> Self {
                <$type>::from_f32(half::round_to_odd(value))
            }
            fn from_signed(value: i64) -> Self {
                let size = exact_enough(value.unsigned_abs());
                Self::from_float(if value < 0 { -size } else { size })
            }
            fn from_unsigned(value: u64) -> Self {
                Self::from_float(exact_enough(value))
            }
        }
    )*};
}

half_elements! { f16 bf16 }

/// Calls a generic function with the Rust type that holds elements of a type; bool is a byte.
macro_rules! for_element {
    ($dtype:expr, $function:ident $(::<$first:ty>)? ($($argument:expr),*)) => {
        match $dtype {
            DType::F32 => $function::<$($first,)? f32>($($argument),*),
            DType::F64 => $function::<$($first,)? f64>($($argument),*),
            DType::F16 => $function::<$($first,)? f16>($($argument),*),
            DType::Bf16 => $function::<$($first,)? bf16>($($argument),*),
            DType::I64 => $function::<$($first,)? i64>($($argument),*),
            DType::I32 => $function::<$($first,)? i32>($($argument),*),
            DType::I16 => $function::<$($first,)? i16>($($argument),*),
            DType::I8 => $function::<$($first,)? i8>($($argument),*),
            DType::U64 => $function::<$($first,)? u64>($($argument),*),
            DType::U32 => $function::<$($first,)? u32>($($argument),*),
            DType::U16 => $function::<$($first,)? u16>($($argument),*),
            DType::U8 | DType::Bool => $function::<$($first,)? u8>($($argument),*),
        }
    };
}

/// A number's bits as an element of that type.
pub fn bits_of(dtype: DType, value: f64) -> u64 {
    match dtype {
        DType::Bool => u64::from(value != 0.0),
        _ => for_element!(dtype, element_bits(value)),
    }
}

fn element_bits<E: Element>(value: f64) -> u64 {
    let mut bytes = [0; 8];
    bytes[..size_of::<E>()].copy_from_slice(bytemuck::bytes_of(&E::from_float(value)));
    u64::from_le_bytes(bytes)
}

fn cpu(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    let Some(Some(x)) = inputs.first() else { return Ok(()) };
    let y = &mut outputs[0];
    match (x.dtype, y.dtype) {
        (from, DType::F32) if from.is_half() => half::widen(from, x.as_slice(), y.as_slice_mut()),
        (DType::F32, to) if to.is_half() => half::narrow(to, x.as_slice(), y.as_slice_mut()),
        _ => for_element!(call.dtype(), from_elements(x, y)),
    }
    Ok(())
}

fn from_elements<F: Element>(x: &HostView, y: &mut HostViewMut) {
    let from_bool = x.dtype == DType::Bool;
    let x = x.as_slice::<F>();
    match y.dtype {
        DType::Bool => each(x, y.as_slice_mut(), |x| u8::from(!x.wide().is_zero())),
        to if from_bool => for_element!(to, truths::<F>(x, y)),
        to => for_element!(to, numbers::<F>(x, y)),
    }
}

fn numbers<F: Element, T: Element>(x: &[F], y: &mut HostViewMut) {
    each(x, y.as_slice_mut(), |x| x.wide().to::<T>());
}

fn truths<F: Element, T: Element>(x: &[F], y: &mut HostViewMut) {
    each(x, y.as_slice_mut(), |x| T::from_signed(i64::from(!x.wide().is_zero())));
}

fn each<F: Element, T: Element>(x: &[F], y: &mut [T], convert: impl Fn(F) -> T + Send + Sync) {
    for_pieces(y, 1, 2, |start, piece| {
        piece.iter_mut().zip(&x[start..]).for_each(|(y, &x)| *y = convert(x));
    });
}

fn cuda(
    call: &Call,
    launcher: &Launcher,
    inputs: &[Option<DeviceView>],
    outputs: &[DeviceView],
) -> Result<()> {
    let x = device_operand(call, inputs, 0)?;
    launch(launcher, (x, call.dtype()), (outputs[0].ptr, outputs[0].dtype), call.output().size())
}

/// Enqueues the conversion of `n` elements.
pub fn launch(
    launcher: &Launcher,
    (x, from): (DevicePtr, DType),
    (y, to): (DevicePtr, DType),
    n: usize,
) -> Result<()> {
    if n == 0 {
        return Ok(());
    }
    let (arguments, kernel) =
        ([Arg::Ptr(x), Arg::Ptr(y), Arg::U64(n as u64)], format!("cast_{}", from.suffix()));
    if from != to && super::FLOATS.contains(&from) && super::FLOATS.contains(&to) {
        return launcher.launch(&format!("{kernel}_{}", to.suffix()), linear(n as u64, 256, 8)?, &arguments);
    }
    let [x, y, n_argument] = arguments;
    launcher.launch(&kernel, linear(n as u64, 256, 4)?, &[x, y, n_argument, Arg::U32(to as u32)])
}

#[cfg(test)]
mod tests {
    use super::super::Raw;
    use super::*;
    use crate::kernels::{Parameter, find as kernel};
    use crate::{DTYPES, Tensor};

    fn cast<F: bytemuck::Pod, T: bytemuck::Pod>(from: DType, x: &[F], to: DType) -> Vec<T> {
        let input = Tensor::from_slice(from, [x.len()], x).unwrap();
        let options = [("to".to_string(), Raw::Text(to.name().into()))];
        let call = Call::new("cast", vec![Some(input.meta().clone())], &options).unwrap();
        let outputs = call.run_cpu(&[Some(input)]).unwrap();
        assert_eq!(outputs[0].meta().dtype, to);
        outputs[0].host_view().unwrap().as_slice::<T>().to_vec()
    }

    #[test]
    fn floats_are_truncated_and_stay_within_the_range() {
        let x = [1.9f32, -1.9, 300.0, -300.0, f32::NAN, f32::INFINITY, -0.0];
        assert_eq!(cast::<_, i8>(DType::F32, &x, DType::I8), [1, -1, 127, -128, 0, 127, 0]);
        assert_eq!(cast::<_, u8>(DType::F32, &x, DType::U8), [1, 0, 255, 0, 0, 255, 0]);
        assert_eq!(cast::<_, i64>(DType::F32, &x, DType::I64)[5], i64::MAX);
        assert_eq!(cast::<_, u8>(DType::F32, &x, DType::Bool), [1, 1, 1, 1, 1, 1, 0]);
    }

    #[test]
    fn integers_keep_their_lower_bits_and_become_the_nearest_float() {
        assert_eq!(cast::<_, i8>(DType::I16, &[200i16, -1, 256], DType::I8), [-56, -1, 0]);
        assert_eq!(cast::<_, u64>(DType::I32, &[-1i32], DType::U64), [u64::MAX]);
        assert_eq!(
            cast::<_, f32>(DType::U64, &[u64::MAX, 1 << 24 | 1], DType::F32),
            [2f32.powi(64), 16_777_216.0]
        );
        assert_eq!(cast::<_, f64>(DType::Bool, &[0u8, 1, 7], DType::F64), [0.0, 1.0, 1.0]);
        assert_eq!(
            cast::<_, u16>(DType::I32, &[70_000i32, -65_519, 2049], DType::F16),
            [0x7c00, 0xfbff, 0x6800]
        );
    }

    #[test]
    fn nothing_is_rounded_twice() {
        let above_tie = 1.0 + 2f64.powi(-11) + 2f64.powi(-40);
        assert_eq!(cast::<_, u16>(DType::F64, &[above_tie, f64::NAN], DType::F16), [0x3c01, 0x7e00]);
        let above_tie = 1.0 + 2f64.powi(-8) + 2f64.powi(-40);
        assert_eq!(cast::<_, u16>(DType::F64, &[above_tie], DType::Bf16), [0x3f81]);
        let above_tie = (1i64 << 62) + (1 << 54) + 1;
        assert_eq!(cast::<_, u16>(DType::I64, &[above_tie, -above_tie], DType::Bf16), [0x5e81, 0xde81]);
        let above_tie = (1u64 << 63) + (1 << 55) + 1;
        assert_eq!(cast::<_, u16>(DType::U64, &[above_tie, above_tie - 1], DType::Bf16), [0x5f01, 0x5f00]);
    }

    #[test]
    fn every_pair_has_its_kernel() {
        for from in DTYPES {
            let name = format!("cast_{}", from.suffix);
            use Parameter::{Word32, Word64};
            assert_eq!(kernel(&name, 75).unwrap().1.parameters, [Word64, Word64, Word64, Word32]);
            for to in DTYPES.iter().filter(|to| to.suffix != from.suffix) {
                let floats = [from, to].iter().all(|row| super::super::FLOATS.contains(&row.dtype));
                assert_eq!(kernel(&format!("{name}_{}", to.suffix), 75).is_ok(), floats);
            }
        }
    }
}
