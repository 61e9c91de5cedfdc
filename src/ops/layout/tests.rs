use super::super::{Call, Raw};
use super::*;
use crate::{DType, Tensor};

fn options(given: &[(&str, &[f64])]) -> Vec<(String, Raw)> {
    let raw = |values: &[f64]| match values {
        [value] => Raw::Number(*value),
        _ => Raw::List(values.to_vec()),
    };
    given.iter().map(|(name, values)| (name.to_string(), raw(values))).collect()
}

fn list(name: &str, values: &[f64]) -> (String, Raw) {
    (name.to_string(), Raw::List(values.to_vec()))
}

/// Dims and elements of each result for inputs that count from 0 on, each input on from the one before.
fn run(op: &str, dims: &[&[usize]], options: &[(String, Raw)]) -> Result<Vec<(Vec<usize>, Vec<i32>)>> {
    let mut next = 0;
    let tensors: Vec<Tensor> = dims
        .iter()
        .map(|dims| {
            let data: Vec<i32> = (next..next + size_of(dims) as i32).collect();
            next += size_of(dims) as i32;
            Tensor::from_slice(DType::I32, *dims, &data)
        })
        .collect::<Result<_>>()?;
    let call = Call::new(op, tensors.iter().map(|tensor| Some(tensor.meta().clone())).collect(), options)?;
    let outputs = call.run_cpu(&tensors.into_iter().map(Some).collect::<Vec<_>>())?;
    outputs
        .iter()
        .map(|output| Ok((output.meta().dims.clone(), output.host_view()?.as_slice::<i32>().to_vec())))
        .collect()
}

fn code(op: &str, dims: &[&[usize]], options: &[(String, Raw)]) -> &'static str {
    run(op, dims, options).map(|_| "none").unwrap_or_else(|error| error.code())
}

#[test]
fn transposes_by_any_permutation() {
    let y = run("transpose", &[&[2, 3]], &[]).unwrap().remove(0);
    assert_eq!(y, (vec![3, 2], vec![0, 3, 1, 4, 2, 5]));
    let y = run("transpose", &[&[2, 1, 3, 2]], &[list("perm", &[2.0, 0.0, -1.0, 1.0])]).unwrap().remove(0);
    assert_eq!(y, (vec![3, 2, 2, 1], vec![0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11]));
    assert_eq!(run("transpose", &[&[]], &[]).unwrap()[0].1, [0]);
    assert_eq!(run("transpose", &[&[3, 0]], &[]).unwrap()[0].0, [0, 3]);
    assert_eq!(code("transpose", &[&[2, 3]], &[list("perm", &[0.0])]), "SHAPE_MISMATCH");
    assert_eq!(code("transpose", &[&[2, 3]], &[list("perm", &[0.0, 0.0])]), "INVALID_ARGUMENT");
}

#[test]
fn ranges_follow_onnx() {
    assert_eq!(range(10, 1, 7, 2), Range { start: 1, step: 2, size: 3 });
    assert_eq!(range(10, -3, 1 << 40, 1), Range { start: 7, step: 1, size: 3 });
    assert_eq!(range(10, -1, -(1 << 40), -3), Range { start: 9, step: -3, size: 4 });
    assert_eq!(range(10, 1 << 40, 0, -1), Range { start: 9, step: -1, size: 9 });
    assert_eq!(range(10, 8, 2, 1).size, 0);
    assert_eq!(range(0, -1, -9, -1).size, 0);
    assert_eq!(range(3, 0, 3, i64::MAX >> 11).size, 1);
}

#[test]
fn slices_any_axis_in_both_directions() {
    let given =
        [list("starts", &[-1.0]), list("ends", &[-100.0]), list("axes", &[1.0]), list("steps", &[-2.0])];
    assert_eq!(run("slice", &[&[2, 3]], &given).unwrap()[0], (vec![2, 2], vec![2, 0, 5, 3]));
    let given = [list("starts", &[1.0, 1.0]), list("ends", &[9.0, 3.0])];
    assert_eq!(run("slice", &[&[2, 3]], &given).unwrap()[0], (vec![1, 2], vec![4, 5]));
    assert_eq!(code("slice", &[&[2, 3]], &[list("starts", &[0.0])]), "INVALID_ARGUMENT");
    let given = [list("starts", &[0.0]), list("ends", &[1.0, 2.0])];
    assert_eq!(code("slice", &[&[2, 3]], &given), "SHAPE_MISMATCH");
    let given = [list("starts", &[0.0]), list("ends", &[1.0]), list("steps", &[0.0])];
    assert_eq!(code("slice", &[&[2, 3]], &given), "INVALID_ARGUMENT");
}

#[test]
fn splits_into_given_or_equal_parts() {
    let given = [list("split", &[1.0, 0.0, 2.0]), ("axis".into(), Raw::Number(1.0))];
    let parts = run("split", &[&[2, 3]], &given).unwrap();
    let want = [(vec![2, 1], vec![0, 3]), (vec![2, 0], vec![]), (vec![2, 2], vec![1, 2, 4, 5])];
    assert_eq!(parts, want);
    let parts = run("split", &[&[5]], &options(&[("numOutputs", &[2.0])])).unwrap();
    assert_eq!(parts, [(vec![3], vec![0, 1, 2]), (vec![2], vec![3, 4])]);
    assert_eq!(code("split", &[&[5]], &options(&[("numOutputs", &[4.0])])), "SHAPE_MISMATCH");
    assert_eq!(code("split", &[&[5]], &[list("split", &[2.0, 2.0])]), "SHAPE_MISMATCH");
    assert_eq!(code("split", &[&[5]], &[]), "INVALID_ARGUMENT");
}

#[test]
fn joins_along_any_axis() {
    let axis = |axis: f64| options(&[("axis", &[axis])]);
    let y = run("concat", &[&[2, 1], &[2, 0], &[2, 2]], &axis(-1.0)).unwrap().remove(0);
    assert_eq!(y, (vec![2, 3], vec![0, 2, 3, 1, 4, 5]));
    assert_eq!(run("concat", &[&[1, 2], &[2, 2]], &axis(0.0)).unwrap()[0].1, [0, 1, 2, 3, 4, 5]);
    assert_eq!(code("concat", &[&[1, 2], &[2, 3]], &axis(0.0)), "SHAPE_MISMATCH");
    assert_eq!(code("concat", &[&[1, 2], &[2]], &axis(1.0)), "SHAPE_MISMATCH");
    assert_eq!(code("concat", &[], &axis(0.0)), "INVALID_ARGUMENT");
    assert_eq!(code("concat", &[&[1]], &[]), "INVALID_ARGUMENT");
}
