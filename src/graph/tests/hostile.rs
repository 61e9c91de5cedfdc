//! Nodes that a fuzzer has made: each kind is an error, not a panic.

use super::*;

/// The error of one node, at the plan or at the run.
fn refused(op: &str, operands: &[Tensor], attributes: &[(&str, Attribute)], results: usize) -> crate::Error {
    let names: Vec<String> = (0..operands.len()).map(|index| format!("in{index}")).collect();
    let outputs: Vec<String> = (0..results).map(|index| format!("out{index}")).collect();
    let mut net = Net::of_version(17);
    for (name, tensor) in names.iter().zip(operands) {
        net = net.input(name, tensor.meta().dtype, &vec![-1; tensor.meta().dims.len()]);
    }
    let inputs: Vec<&str> = names.iter().map(String::as_str).collect();
    let outputs: Vec<&str> = outputs.iter().map(String::as_str).collect();
    let session = net.node_with(op, &inputs, &outputs, attributes).outputs(&outputs[..1]).session();
    run(&session, operands).map(|_| ()).unwrap_err()
}

#[test]
fn operands_of_too_few_dims() {
    let (number, three) = (longs(&[], &[1]), longs(&[3], &[1, 2, 3]));
    for operands in [[number.clone(), three.clone()], [three, number]] {
        assert_eq!(refused("MatMul", &operands, &[], 1).code(), "SHAPE_MISMATCH");
    }
    let (line, weights) = (floats(&[1, 1, 3], &[1.0; 3]), floats(&[3], &[1.0; 3]));
    assert_eq!(refused("ConvTranspose", &[line, weights], &[], 1).code(), "SHAPE_MISMATCH");
}

#[test]
fn more_results_than_there_are() {
    assert_eq!(refused("Unique", &[floats(&[2], &[1.0, 2.0])], &[], 5).code(), "INVALID_MODEL");
}

#[test]
fn dims_beside_a_zero_are_bounded() {
    let huge = 1usize << 40;
    assert!(crate::shape::element_count("x", &[0, huge, huge]).is_err());
    assert_eq!(crate::shape::element_count("x", &[0, huge]).unwrap(), 0);
    let limits = crate::onnx::Limits::default();
    assert!(limits.dims("x", &[0, 1 << 40], 4).is_err());
    assert_eq!(limits.dims("x", &[0, 1 << 20], 4).unwrap().1, 0);
    let shape = longs(&[3], &[0, 1 << 30, 1 << 30]);
    let net = Net::new().constant("shape", shape).node("ConstantOfShape", &["shape"], &["y"]).outputs(&["y"]);
    assert!(run(&net.session(), &[]).is_err());
}

#[test]
fn transforms_of_any_length() {
    let (x, length) = (floats(&[1, 4, 1], &[1.0; 4]), longs(&[], &[i64::MAX]));
    assert!(matches!(refused("DFT", &[x, length], &[], 1).code(), "MEMORY_LIMIT" | "SHAPE_MISMATCH"));
}

#[test]
fn operands_of_deformable_convolutions_of_other_types() {
    let (x, w) = (floats(&[1, 1, 3, 3], &[1.0; 9]), floats(&[1, 1, 2, 2], &[1.0; 4]));
    let (wide, single) = ([1, 8, 2, 2], [1, 4, 2, 2]);
    let pairs = [
        (
            Tensor::from_slice(DType::F64, wide, &[0.0; 32]),
            Tensor::from_slice(DType::F32, single, &[1f32; 16]),
        ),
        (
            Tensor::from_slice(DType::F32, wide, &[0f32; 32]),
            Tensor::from_slice(DType::U8, single, &[1u8; 16]),
        ),
    ];
    for (offsets, mask) in pairs {
        let operands = [x.clone(), w.clone(), offsets.unwrap(), floats(&[1], &[0.0]), mask.unwrap()];
        let kernel = [("kernel_shape", Attribute::Ints(vec![2, 2]))];
        assert_eq!(refused("DeformConv", &operands, &kernel, 1).code(), "UNSUPPORTED_DTYPE");
    }
}
