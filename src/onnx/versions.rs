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

/// Operators that came after the oldest set that is read, by the version that they came with.
#[rustfmt::skip]
const NEWER: &[(i64, &[&str])] = &[
    (8, &["Expand", "Scan"]),
    (9, &[
        "Acosh", "Asinh", "Atanh", "Compress", "ConstantOfShape", "Cosh", "Erf", "EyeLike", "IsNaN", "MaxUnpool",
        "MeanVarianceNormalization", "NonZero", "OneHot", "Scatter", "Shrink", "Sign", "Sinh", "Where",
    ]),
    (10, &[
        "ConvInteger", "DequantizeLinear", "IsInf", "MatMulInteger", "Mod", "NonMaxSuppression", "QLinearConv",
        "QLinearMatMul", "QuantizeLinear", "Resize", "ReverseSequence", "RoiAlign", "ThresholdedRelu",
    ]),
    (11, &[
        "BitShift", "CumSum", "Det", "DynamicQuantizeLinear", "GatherElements", "GatherND", "Range", "Round",
        "ScatterElements", "ScatterND", "Unique",
    ]),
    (12, &["Celu", "Einsum", "GreaterOrEqual", "LessOrEqual", "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"]),
    (14, &["HardSwish", "Trilu"]),
    (15, &["CastLike"]),
    (16, &["GridSample"]),
    (17, &[
        "BlackmanWindow", "DFT", "HammingWindow", "HannWindow", "LayerNormalization", "MelWeightMatrix", "STFT",
    ]),
    (18, &[
        "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "CenterCropPad", "Col2Im", "GroupNormalization", "Mish",
    ]),
    (19, &["DeformConv"]),
    (20, &["AffineGrid", "Gelu"]),
    (23, &["Attention", "RMSNormalization", "RotaryEmbedding"]),
    (24, &["Swish", "TensorScatter"]),
    (26, &["CumProd"]),
];

/// The oldest version of the set whose operator of that name is read. Newer names are taken under older versions too.
pub fn since(op: &str) -> i64 {
    let listed =
        |table: &[(i64, &[&str])]| table.iter().find(|(_, ops)| ops.contains(&op)).map(|(since, _)| *since);
    listed(NEWER).or_else(|| listed(OLDER)).unwrap_or(*OPSETS.start())
}

/// Whether an operator of that version of the set means what is read.
pub fn is_read(op: &str, version: i64) -> bool {
    let older =
        || OLDER.iter().any(|(since, ops)| (*since..*OPSETS.start()).contains(&version) && ops.contains(&op));
    OPSETS.contains(&version) || older()
}
