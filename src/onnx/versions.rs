//! Versions of ONNX's operator set.

use super::OPSETS;

/// Operators that are in older sets what they are in the oldest set that is read, by the version that made them so.
#[rustfmt::skip]
const OLDER: &[(i64, &[&str])] = &[
    (1, &[
        "ArgMax", "ArgMin", "AveragePool", "Constant", "Conv", "ConvTranspose", "DepthToSpace", "Flatten", "Gather", "GlobalAveragePool",
        "GlobalMaxPool", "Hardmax", "Identity", "If", "LRN", "LogSoftmax", "Loop", "LpNormalization", "MatMul", "MaxPool",
        "MaxRoiPool", "Not", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
        "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare", "Shape", "Size", "Slice", "Softmax", "Softplus",
        "Softsign", "SpaceToDepth", "Squeeze", "TopK", "Transpose", "Unsqueeze",
    ]),
    (2, &["GlobalLpPool", "LpPool", "Pad", "Split"]),
    (4, &["Concat"]),
    (5, &["Reshape"]),
    (6, &[
        "Abs", "Cast", "Ceil", "Clip", "Elu", "Exp", "Floor", "HardSigmoid", "InstanceNormalization", "LeakyRelu", "Log",
        "Max", "Mean", "Min", "Neg", "Reciprocal", "Relu", "Selu", "Sigmoid", "Sqrt", "Sum", "Tanh", "Tile",
    ]),
];

/// Whether an operator of that version of the set means what is read.
pub fn is_read(op: &str, version: i64) -> bool {
    let older =
        || OLDER.iter().any(|(since, ops)| (*since..*OPSETS.start()).contains(&version) && ops.contains(&op));
    OPSETS.contains(&version) || older()
}
