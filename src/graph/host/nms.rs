//! Selection of boxes that overlap little.

use super::operand;
use crate::graph::plan::integers;
use crate::tensor::Tensor;
use crate::{DType, Result};
use rayon::prelude::*;

/// How boxes are given.
#[derive(Clone, Copy)]
pub struct Suppression {
    /// As centre, width and height rather than as two corners.
    pub centred: bool,
}

#[derive(Clone, Copy)]
struct Rectangle {
    low: [f32; 2],
    high: [f32; 2],
}

impl Rectangle {
    fn new(values: &[f32], centred: bool) -> Rectangle {
        let [a, b, c, d] = [values[0], values[1], values[2], values[3]];
        if centred {
            Rectangle { low: [a - c / 2.0, b - d / 2.0], high: [a + c / 2.0, b + d / 2.0] }
        } else {
            Rectangle { low: [a.min(c), b.min(d)], high: [a.max(c), b.max(d)] }
        }
    }

    fn area(&self) -> f32 {
        (self.high[0] - self.low[0]) * (self.high[1] - self.low[1])
    }

    /// Whether intersection by union is beyond a threshold.
    fn overlaps(&self, other: &Rectangle, threshold: f32) -> bool {
        let side = |axis: usize| self.high[axis].min(other.high[axis]) - self.low[axis].max(other.low[axis]);
        let (first, second) = (side(0), side(1));
        if !(first > 0.0 && second > 0.0) {
            return false;
        }
        let common = first * second;
        let union = self.area() + other.area() - common;
        self.area() > 0.0 && other.area() > 0.0 && union > 0.0 && common / union > threshold
    }
}

/// Rows of image, class and box. Operands, numbers in float32: boxes `[images, boxes, 4]`, scores `[images,
/// classes, boxes]` and, if they are there, the most boxes of a class, the overlap and the score beyond which a box goes
/// or stays.
pub fn suppress(inputs: &[Option<Tensor>], how: Suppression) -> Result<Vec<Tensor>> {
    let boxes = operand(inputs, 0)?.host_view()?.as_slice::<f32>();
    let scores = operand(inputs, 1)?.host_view()?.as_slice::<f32>();
    let dims = &operand(inputs, 1)?.meta().dims;
    let (images, classes, count) = (dims[0], dims[1], dims[2]);
    let single = |index: usize| -> Result<Option<f32>> {
        let Some(tensor) = inputs.get(index).and_then(Option::as_ref) else { return Ok(None) };
        Ok(tensor.host_view()?.as_slice::<f32>().first().copied())
    };
    let most = match inputs.get(2).and_then(Option::as_ref) {
        Some(tensor) => integers(tensor)?.first().map_or(0, |&most| most.max(0) as usize),
        None => 0,
    };
    let (overlap, least) = (single(3)?.unwrap_or(0.0), single(4)?);
    let rectangles: Vec<Rectangle> =
        boxes.chunks_exact(4).map(|values| Rectangle::new(values, how.centred)).collect();
    let of_class = |row: usize| {
        let scores = &scores[row * count..][..count];
        let rectangles = &rectangles[row / classes * count..][..count];
        let chosen = select(rectangles, scores, most, overlap, least);
        chosen
            .into_iter()
            .flat_map(move |index| [(row / classes) as i64, (row % classes) as i64, index as i64])
    };
    let rows: Vec<Vec<i64>> = crate::cpu::install(|| {
        (0..images * classes).into_par_iter().map(|row| of_class(row).collect()).collect()
    });
    let rows = rows.concat();
    Ok(vec![Tensor::from_slice(DType::I64, [rows.len() / 3, 3], &rows)?])
}

/// Boxes by falling score, each that overlaps none chosen before it.
fn select(
    rectangles: &[Rectangle],
    scores: &[f32],
    most: usize,
    overlap: f32,
    least: Option<f32>,
) -> Vec<usize> {
    let passes = |score: f32| least.is_none_or(|least| score > least);
    let mut order: Vec<usize> = (0..scores.len()).filter(|&index| passes(scores[index])).collect();
    // Scores that are no numbers come last.
    let key = |index: usize| if scores[index].is_nan() { f32::NEG_INFINITY } else { scores[index] };
    order.sort_by(|&a, &b| key(b).total_cmp(&key(a)));
    let mut chosen: Vec<usize> = Vec::new();
    for index in order {
        if chosen.len() == most {
            break;
        }
        if !chosen.iter().any(|&kept| rectangles[kept].overlaps(&rectangles[index], overlap)) {
            chosen.push(index);
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_that_overlap_go() {
        let corners =
            [[0.0, 0.0, 1.0, 1.0], [1.0, 1.1, 0.0, 0.1], [0.0, 10.0, 1.0, 11.0], [0.0, 0.0, 0.0, 0.0]];
        let rectangles: Vec<_> = corners.iter().map(|it| Rectangle::new(it, false)).collect();
        let scores = [0.9, 0.75, 0.95, f32::NAN];
        assert_eq!(select(&rectangles, &scores, 9, 0.5, Some(0.0)), [2, 0]);
        assert_eq!(select(&rectangles, &scores, 9, 0.9, Some(0.75)), [2, 0]);
        assert_eq!(select(&rectangles, &scores, 9, 0.9, None), [2, 0, 1, 3]);
        assert_eq!(select(&rectangles, &scores, 1, 0.5, None), [2]);
        assert_eq!(select(&rectangles, &scores, 0, 0.5, None), [0usize; 0]);
        let centred = Rectangle::new(&[0.5, 0.5, 1.0, 1.0], true);
        assert!(centred.overlaps(&rectangles[0], 0.99) && !centred.overlaps(&rectangles[2], 0.0));
    }
}
