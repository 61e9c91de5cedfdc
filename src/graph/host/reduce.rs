//! Reductions of whole numbers and truths.

use super::operand;
use crate::cpu::for_pieces;
use crate::graph::plan::convert;
use crate::ops::Meta;
use crate::tensor::Tensor;
use crate::{DType, Result};

/// What becomes of a row, by the name that floats have for it in the op table; `None` for names that are not known.
fn function(op: &str) -> Option<fn(&[i64]) -> i64> {
    fn wide(row: &[i64], term: impl Fn(f64) -> f64) -> f64 {
        row.iter().map(|&value| term(value as f64)).sum()
    }
    fn sum(row: &[i64]) -> i64 {
        row.iter().fold(0, |sum, &value| sum.wrapping_add(value))
    }
    Some(match op {
        "reduceSum" => sum,
        "reduceMean" => |row| sum(row).checked_div(row.len() as i64).unwrap_or(0),
        "reduceMax" => |row| row.iter().copied().max().unwrap_or(i64::MIN),
        "reduceMin" => |row| row.iter().copied().min().unwrap_or(i64::MAX),
        "reduceProd" => |row| row.iter().fold(1, |product, &value| product.wrapping_mul(value)),
        "reduceL1" => |row| row.iter().fold(0, |sum, &value| sum.wrapping_add(value.wrapping_abs())),
        "reduceSumSquare" => {
            |row| row.iter().fold(0, |sum, &value| sum.wrapping_add(value.wrapping_mul(value)))
        }
        "reduceL2" => |row| wide(row, |value| value * value).sqrt() as i64,
        "reduceLogSum" => |row| wide(row, |value| value).ln() as i64,
        "reduceLogSumExp" => |row| wide(row, f64::exp).ln() as i64,
        _ => return None,
    })
}

/// The smallest and the largest number of a type, within 64 bits.
fn ends(dtype: DType) -> (i64, i64) {
    match dtype {
        DType::Bool => (0, 1),
        DType::U8 => (0, u8::MAX.into()),
        DType::U16 => (0, u16::MAX.into()),
        DType::U32 => (0, u32::MAX.into()),
        DType::I8 => (i8::MIN.into(), i8::MAX.into()),
        DType::I16 => (i16::MIN.into(), i16::MAX.into()),
        DType::I32 => (i32::MIN.into(), i32::MAX.into()),
        _ => (i64::MIN, i64::MAX),
    }
}

/// Reduces rows `[rows, length]`, in 64 bits that wrap around; what has no whole result is cut.
pub fn reduce_rows(inputs: &[Option<Tensor>], op: &str, output: &Meta) -> Result<Vec<Tensor>> {
    let x = operand(inputs, 0)?;
    let Some(function) = function(op) else {
        return Err(crate::Error::UnsupportedOp(format!("{op} does not take {}", x.meta().dtype)));
    };
    let length = x.meta().dims[1];
    // Unsigned numbers of 64 bits stand in order once their highest bit is turned.
    let turned = x.meta().dtype == DType::U64 && ["reduceMax", "reduceMin"].contains(&op);
    let turn = |value: i64| if turned { value ^ i64::MIN } else { value };
    // The largest and the smallest of none are the type's ends.
    let bounds =
        if op == "reduceMax" || op == "reduceMin" { ends(output.dtype) } else { (i64::MIN, i64::MAX) };
    let wide = convert(x, DType::I64)?;
    let values = wide.host_view()?.as_slice::<i64>();
    let meta = Meta { dtype: DType::I64, dims: output.dims.clone() };
    let mut buffer = Tensor::host_buffer(&meta)?;
    for_pieces(buffer.view_mut(&meta).as_slice_mut::<i64>(), 1, length, |start, piece| {
        for (index, slot) in piece.iter_mut().enumerate() {
            let row = &values[(start + index) * length..][..length];
            *slot = match turned {
                true => turn(function(&row.iter().map(|&value| turn(value)).collect::<Vec<_>>())),
                false => function(row).clamp(bounds.0, bounds.1),
            };
        }
    });
    let result = Tensor::from_host(buffer, &meta);
    Ok(vec![convert(&result, output.dtype)?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::plan::integers;

    #[test]
    fn rows_of_whole_numbers() {
        let x = Tensor::from_slice(DType::I32, [2, 3], &[3, -4, 12, 7, 0, -9]).unwrap();
        let run = |op| {
            let y = reduce_rows(&[Some(x.clone())], op, &Meta::new(DType::I32, [2])).unwrap().swap_remove(0);
            integers(&y).unwrap()
        };
        assert_eq!(run("reduceSum"), [11, -2]);
        assert_eq!(run("reduceMean"), [3, 0]);
        assert_eq!(run("reduceMax"), [12, 7]);
        assert_eq!(run("reduceMin"), [-4, -9]);
        assert_eq!(run("reduceProd"), [-144, 0]);
        assert_eq!(run("reduceL1"), [19, 16]);
        assert_eq!(run("reduceL2"), [13, 11]);
        assert_eq!(run("reduceSumSquare"), [169, 130]);
        assert_eq!(run("reduceLogSumExp"), [12, 7]);
        let none = Tensor::from_slice::<u8>(DType::Bool, [1, 0], &[]).unwrap();
        let y = reduce_rows(&[Some(none)], "reduceMax", &Meta::new(DType::Bool, [1])).unwrap().swap_remove(0);
        assert_eq!(integers(&y).unwrap(), [0]);
        let x = Tensor::from_slice(DType::U64, [1, 2], &[u64::MAX, 1]).unwrap();
        let y = reduce_rows(&[Some(x)], "reduceMax", &Meta::new(DType::U64, [1])).unwrap().swap_remove(0);
        assert_eq!(y.host_view().unwrap().as_slice::<u64>(), [u64::MAX]);
    }
}
