//! Elements of 16 bits to and from float32, exactly one way and to nearest even the other, on the compute threads.

use super::for_pieces;
use crate::DType;
use ::half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};
use ::half::{bf16, f16};

/// Writes the float32 numbers that bits of that type stand for.
pub fn widen(dtype: DType, bits: &[u16], out: &mut [f32]) {
    for_pieces(out, 1, 1, |start, piece| {
        let bits = &bits[start..start + piece.len()];
        match dtype {
            DType::F16 => bits.reinterpret_cast::<f16>().convert_to_f32_slice(piece),
            _ => bits.reinterpret_cast::<bf16>().convert_to_f32_slice(piece),
        }
    });
}

/// Writes the bits of the nearest numbers of that type; infinity beyond its range, NaN for NaN.
pub fn narrow(dtype: DType, values: &[f32], out: &mut [u16]) {
    for_pieces(out, 1, 1, |start, piece| {
        let values = &values[start..start + piece.len()];
        match dtype {
            DType::F16 => piece.reinterpret_cast_mut::<f16>().convert_from_f32_slice(values),
            _ => piece.reinterpret_cast_mut::<bf16>().convert_from_f32_slice(values),
        }
    });
}

/// float32 with its lowest bit set where digits were lost: rounding that to fewer digits rounds `value` once.
pub fn round_to_odd(value: f64) -> f32 {
    let near = value as f32;
    let error = value - f64::from(near);
    if error == 0.0 || !near.is_finite() || near.to_bits() & 1 == 1 {
        return near;
    }
    // An even neighbour that is not exact: the odd one lies towards the value.
    if (error > 0.0) == (value > 0.0) {
        f32::from_bits(near.to_bits() + 1)
    } else {
        f32::from_bits(near.to_bits() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_survives_and_ties_go_to_even() {
        let bits: Vec<u16> = (0..=u16::MAX).collect();
        for dtype in [DType::F16, DType::Bf16] {
            let mut wide = vec![0.0; bits.len()];
            widen(dtype, &bits, &mut wide);
            let mut back = vec![0; bits.len()];
            narrow(dtype, &wide, &mut back);
            for ((&bits, &wide), &back) in bits.iter().zip(&wide).zip(&back) {
                assert!(
                    if wide.is_nan() { back & 0x7fff > 0x7c00 } else { back == bits },
                    "{dtype} {bits:04x}"
                );
            }
        }
        let mut out = [0; 5];
        narrow(DType::F16, &[2049.0, 2051.0, 65_519.0, 65_520.0, 2f32.powi(-25)], &mut out);
        assert_eq!(out, [0x6800, 0x6802, 0x7bff, 0x7c00, 0]);
        narrow(DType::Bf16, &[257.0, 259.0, f32::MAX, f32::NAN, -1.0], &mut out);
        assert_eq!(out, [0x4380, 0x4382, 0x7f80, 0x7fc0, 0xbf80]);
    }

    #[test]
    fn rounding_to_odd_keeps_what_a_second_rounding_needs() {
        let twice = 1.0 + 2f64.powi(-11) + 2f64.powi(-40);
        assert_eq!(f16::from_f32(twice as f32).to_bits(), 0x3c00);
        assert_eq!(f16::from_f32(round_to_odd(twice)).to_bits(), 0x3c01);
        assert_eq!(f16::from_f32(round_to_odd(-twice)).to_bits(), 0xbc01);
        assert_eq!(round_to_odd(1e-60).to_bits(), 1);
        assert_eq!(round_to_odd(-1e-60).to_bits(), 0x8000_0001);
        assert_eq!(round_to_odd(0.5), 0.5);
        assert!(round_to_odd(1e60).is_infinite() && round_to_odd(f64::NAN).is_nan());
    }
}
