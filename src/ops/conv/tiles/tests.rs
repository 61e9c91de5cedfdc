use super::*;
use crate::ops::geometry::WindowAxis;
use crate::ops::{Attrs, find};

fn axis(input: usize, kernel: usize, [stride, dilation, begin, end]: [usize; 4]) -> WindowAxis {
    let output = (input + begin + end - (kernel - 1) * dilation - 1) / stride + 1;
    WindowAxis { input, kernel, stride, dilation, begin, end, output }
}

fn problem(images: usize, [groups, group_in, group_out]: [usize; 3], own: &[WindowAxis]) -> Problem {
    Problem::new(images, groups, group_in, group_out, own)
}

fn numbers(count: usize, seed: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 7919 + seed) % 1009) as f32 / 500.0 - 1.0).collect()
}

fn by_tiles(problem: &Problem, x: &[f32], w: &[f32], bias: &[f32]) -> Vec<f32> {
    let tiles = Tiles::new(problem).unwrap();
    let mut y = vec![f32::NAN; problem.images * bias.len() * problem.windows()];
    let activation = Activation::new(&Attrs::parse(find("conv2d").unwrap(), &[]).unwrap());
    tiles.run(x, &tiles.pack(w), Some(bias), activation, &mut y);
    y
}

/// One output as a sum in float64 over all taps, padding among them.
fn by_sum(problem: &Problem, x: &[f32], w: &[f32], bias: &[f32], [n, m, i, j]: [usize; 4]) -> f64 {
    let Problem { groups, group_in, group_out, axes: [_, height, width], .. } = *problem;
    let plane = height.input * width.input;
    let mut sum = f64::from(bias[m]);
    for (k, &w) in w[m * group_in * problem.taps()..][..group_in * problem.taps()].iter().enumerate() {
        let (channel, tap) = (k / problem.taps(), k % problem.taps());
        let row = (i * height.stride + tap / width.kernel * height.dilation).checked_sub(height.begin);
        let column = (j * width.stride + tap % width.kernel * width.dilation).checked_sub(width.begin);
        let inside = row.zip(column).filter(|&(row, column)| row < height.input && column < width.input);
        let x = inside.map_or(0.0, |(row, column)| {
            let channel = (n * groups + m / group_out) * group_in + channel;
            x[channel * plane + row * width.input + column]
        });
        sum += f64::from(x) * f64::from(w);
    }
    sum
}

fn check(problem: &Problem) {
    let Problem { images, groups, group_in, group_out, axes: [_, height, width] } = *problem;
    let (filters, depth) = (groups * group_out, group_in * problem.taps());
    let (x, w) = (numbers(images * groups * group_in * problem.slid(), 1), numbers(filters * depth, 2));
    let bias = numbers(filters, 3);
    let y = by_tiles(problem, &x, &w, &bias);
    for (index, &got) in y.iter().enumerate() {
        let (j, i) = (index % width.output, index / width.output % height.output);
        let (m, n) = (index / problem.windows() % filters, index / problem.windows() / filters);
        let want = by_sum(problem, &x, &w, &bias, [n, m, i, j]);
        assert!((f64::from(got) - want).abs() < 1e-4, "{problem:?} at {index}: {got}, not {want}");
    }
}

#[test]
fn tiles_agree_with_the_sum() {
    let channels = [[1, 3, 13], [4, 1, 1], [3, 2, 2], [1, 20, 37]];
    let sizes = [(9, 9), (13, 40), (1, 70)];
    for [stride, dilation] in [[1, 1], [2, 1], [1, 2], [3, 2]] {
        for (kernel, pads) in [(1, [0, 0]), (2, [1, 0]), (3, [1, 2]), (5, [2, 2])] {
            for (of, (h, w)) in channels.into_iter().zip(sizes.into_iter().cycle()) {
                let wide = axis(w, kernel, [stride, dilation, pads[0], pads[1]]);
                let kernel = if h == 1 { 1 } else { kernel };
                let pads = if h == 1 { [0, 0] } else { pads };
                check(&problem(2, of, &[axis(h, kernel, [stride, dilation, pads[0], pads[1]]), wide]));
            }
        }
    }
}

#[test]
fn rows_and_lines_are_split_as_one() {
    let one = [1, 1, 1, 1];
    check(&problem(1, [1, 33, 70], &[axis(7, 3, one), axis(7, 3, one)]));
    check(&problem(1, [1, 24, 9], &[axis(40, 3, one), axis(61, 3, one)]));
    check(&problem(1, [1, 8, 24], &[axis(60, 1, [1, 1, 0, 0]), axis(61, 1, [1, 1, 0, 0])]));
    check(&problem(1, [1, 5, 3], &[axis(3000, 3, [2, 1, 1, 0])]));
}

#[test]
fn padding_times_a_weight_that_is_not_finite_is_nan() {
    let problem = problem(1, [1, 1, 1], &[axis(1, 1, [1, 1, 0, 0]), axis(40, 3, [1, 1, 1, 1])]);
    let y = by_tiles(&problem, &[1.0; 40], &[f32::INFINITY, 1.0, 1.0], &[0.0]);
    assert!(y[0].is_nan() && y[1..].iter().all(|&y| y == f32::INFINITY));
}

#[test]
fn other_convolutions_are_left_to_other_forms() {
    let deep = problem(1, [1, 2, 2], &[axis(4, 2, [1, 1, 0, 0]); 3]);
    assert!(Tiles::new(&deep).is_none());
    let apart = axis(1 << 20, 2, [1, 1 << 22, 1 << 22, 0]);
    assert!(Tiles::new(&problem(1, [1, 1, 1], &[axis(2, 1, [1, 1, 0, 0]), apart])).is_none());
}
