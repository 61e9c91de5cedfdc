//! Calls that become one, beside the same network without that.

use super::*;
use crate::ops::Meta;
use crate::ops::Raw;

/// The plan's steps for those feeds.
fn steps(session: &Session, feeds: &[Tensor]) -> Vec<&'static str> {
    let metas: Vec<Meta> = feeds.iter().map(|feed| feed.meta().clone()).collect();
    session.stage(&metas).unwrap().steps.iter().map(|step| step.name).collect()
}

/// Checks the plan's steps, and the result `y` against what the network gives when every value is asked for.
fn check(net: impl Fn() -> Net, feeds: &[Tensor], wanted: &[&str]) {
    let (fused, plain) = (net().outputs(&["y"]).session(), net().all_outputs("y").session());
    assert_eq!(steps(&fused, feeds), wanted);
    let (dims, values) = told(&run(&fused, feeds).unwrap()[0]);
    let (plain_dims, plain_values) = told(&run(&plain, feeds).unwrap()[0]);
    assert_eq!(dims, plain_dims);
    for (index, (value, plain)) in values.iter().zip(&plain_values).enumerate() {
        let near = (value - plain).abs() <= 2e-5 * (1.0 + plain.abs());
        assert!(
            value == plain || near || value.is_nan() && plain.is_nan(),
            "element {index}: {value}, without fusion {plain}"
        );
    }
}

/// Numbers between -2 and 2 that look random.
fn some(dims: &[usize], seed: usize) -> Tensor {
    let value = |index: usize| ((index * 7919 + seed * 104_729 + 17) % 1000) as f32 / 250.0 - 2.0;
    let count = dims.iter().product();
    floats(dims, &(0..count).map(value).collect::<Vec<_>>())
}

/// The same with NaN, infinities and zeros in some rows of `columns`.
fn wild(dims: &[usize], columns: usize) -> Tensor {
    let mut values: Vec<f32> = numbers(&some(dims, 3)).unwrap().into_iter().map(|it| it as f32).collect();
    values[1] = f32::NAN;
    values[columns + 1] = f32::INFINITY;
    values[2 * columns] = f32::NEG_INFINITY;
    values[3 * columns..4 * columns].fill(0.0);
    floats(dims, &values)
}

fn net(dims: &[i64]) -> Net {
    Net::of_version(17).input("x", DType::F32, dims)
}

fn number(value: f32) -> Tensor {
    floats(&[], &[value])
}

#[test]
fn elementwise_chains_go_through_views() {
    // [2, 6] and [2, 2, 3] are views of each other; the scale goes along the last axis of one, the shift along another.
    let chain = || {
        net(&[2, 6])
            .constant("scale", some(&[6], 1))
            .constant("dims", longs(&[3], &[2, 2, 3]))
            .constant("shift", some(&[2, 1], 2))
            .constant("flat", longs(&[1], &[12]))
            .node("Mul", &["x", "scale"], &["a"])
            .node("Reshape", &["a", "dims"], &["b"])
            .node("Add", &["b", "shift"], &["c"])
            .node("Reshape", &["c", "flat"], &["d"])
            .node("Exp", &["d"], &["y"])
    };
    check(chain, &[some(&[2, 6], 0)], &["evaluate"]);
    check(chain, &[wild(&[2, 6], 3)], &["evaluate"]);
    // A broadcast that no view has keeps calls apart.
    let apart = || {
        net(&[4, 3])
            .constant("column", some(&[4, 1], 1))
            .constant("dims", longs(&[2], &[2, 6]))
            .constant("row", some(&[6], 2))
            .node("Mul", &["x", "column"], &["a"])
            .node("Reshape", &["a", "dims"], &["b"])
            .node("Add", &["b", "row"], &["y"])
    };
    check(apart, &[some(&[4, 3], 0)], &["mul", "add"]);
    // A view that is broadcast is no view of the result.
    let spread = || {
        net(&[3])
            .constant("dims", longs(&[2], &[3, 1]))
            .node("Exp", &["x"], &["a"])
            .node("Reshape", &["a", "dims"], &["b"])
            .node("Add", &["b", "x"], &["y"])
    };
    check(spread, &[some(&[3], 0)], &["exp", "add"]);
}

#[test]
fn activations_and_biases_go_through_views() {
    let product = || {
        net(&[2, 3, 4])
            .constant("w", some(&[4, 6], 1))
            .constant("bias", some(&[6], 2))
            .constant("flat", longs(&[2], &[6, 4]))
            .constant("wide", longs(&[4], &[2, 3, 1, 6]))
            .constant("half", number(0.5))
            .constant("one", number(1.0))
            .constant("root", number(std::f32::consts::SQRT_2))
            .node("Reshape", &["x", "flat"], &["rows"])
            .node("MatMul", &["rows", "w"], &["product"])
            .node("Reshape", &["product", "wide"], &["a"])
            .node("Add", &["a", "bias"], &["b"])
            .node("Reshape", &["b", "flat6"], &["c"])
            .constant("flat6", longs(&[2], &[6, 6]))
            .node("Div", &["b", "root"], &["d"])
            .node("Erf", &["d"], &["e"])
            .node("Add", &["e", "one"], &["f"])
            .node("Reshape", &["f", "flat6"], &["g"])
            .node("Mul", &["c", "g"], &["h"])
            .node("Mul", &["h", "half"], &["y"])
    };
    check(product, &[some(&[2, 3, 4], 0)], &["matmul"]);
    check(product, &[wild(&[2, 3, 4], 4)], &["matmul"]);
    let conv = || {
        net(&[2, 3, 2, 2])
            .constant("w", some(&[4, 3, 1, 1], 1))
            .constant("scale", some(&[4, 1], 2))
            .constant("dims", longs(&[3], &[2, 4, 4]))
            .node("Conv", &["x", "w"], &["a"])
            .node("Reshape", &["a", "dims"], &["b"])
            .node("Mul", &["b", "scale"], &["c"])
            .node("Relu", &["c"], &["y"])
    };
    check(conv, &[some(&[2, 3, 2, 2], 0)], &["conv2d"]);
}

#[test]
fn what_changes_nothing_goes() {
    let swish = || {
        net(&[2, 3])
            .constant("one", floats(&[1], &[1.0]))
            .constant("zero", longs(&[1], &[0]))
            .constant("end", longs(&[1], &[99]))
            .node("Mul", &["x", "one"], &["a"])
            .node("Slice", &["a", "zero", "end"], &["b"])
            .node("Sigmoid", &["b"], &["c"])
            .node("Mul", &["x", "c"], &["y"])
    };
    check(swish, &[some(&[2, 3], 0)], &["silu"]);
    // A product with 1 that makes more of its operand stays.
    let spread = || net(&[3]).constant("ones", floats(&[1, 1], &[1.0])).node("Mul", &["x", "ones"], &["y"]);
    check(spread, &[some(&[3], 0)], &["mul"]);
}

/// A norm over the last axes: centred or not, by that way of squaring and that way of dividing.
fn norm(dims: &[i64], axes: &[i64], centred: bool, square: &str, divide: &str) -> Net {
    let axes = [("axes", Attribute::Ints(axes.to_vec()))];
    let mut net = net(dims)
        .constant("two", number(2.0))
        .constant("one", number(1.0))
        .constant("half", number(0.5))
        .constant("minus half", number(-0.5))
        .constant("epsilon", floats(&[1], &[1e-5]));
    if centred {
        net = net.node_with("ReduceMean", &["x"], &["mean"], &axes).node("Sub", &["x", "mean"], &["d"]);
    } else {
        net = net.node("Identity", &["x"], &["d"]);
    }
    net = match square {
        "pow" => net.node("Pow", &["d", "two"], &["square"]),
        _ => net.node("Mul", &["d", "d"], &["square"]),
    };
    net = net.node_with("ReduceMean", &["square"], &["variance"], &axes);
    net = net.node("Add", &["variance", "epsilon"], &["shifted"]);
    match divide {
        "div" => net.node("Sqrt", &["shifted"], &["root"]).node("Div", &["d", "root"], &["n"]),
        "pow" => net.node("Pow", &["shifted", "half"], &["root"]).node("Div", &["d", "root"], &["n"]),
        "rsqrt" => {
            net.node("Pow", &["shifted", "minus half"], &["factor"]).node("Mul", &["factor", "d"], &["n"])
        }
        "reciprocal" => net
            .node("Sqrt", &["shifted"], &["root"])
            .node("Reciprocal", &["root"], &["factor"])
            .node("Mul", &["d", "factor"], &["n"]),
        _ => net.node("Sqrt", &["shifted"], &["root"]).node("Div", &["one", "root"], &["factor"]).node(
            "Mul",
            &["d", "factor"],
            &["n"],
        ),
    }
}

#[test]
fn spelled_out_norms_are_one_call() {
    for (centred, op) in [(true, "layerNorm"), (false, "rmsNorm")] {
        for square in ["pow", "mul"] {
            for divide in ["div", "pow", "rsqrt", "reciprocal", "one over"] {
                let bare =
                    || norm(&[2, 3, 8], &[-1], centred, square, divide).node("Identity", &["n"], &["y"]);
                check(bare, &[some(&[2, 3, 8], 0)], &[op]);
                check(bare, &[wild(&[2, 3, 8], 8)], &[op]);
                let scaled = || {
                    norm(&[2, 3, 8], &[2], centred, square, divide).constant("scale", some(&[8], 1)).node(
                        "Mul",
                        &["scale", "n"],
                        &["y"],
                    )
                };
                check(scaled, &[wild(&[2, 3, 8], 8)], &[op]);
            }
        }
    }
}

#[test]
fn norms_take_scale_and_bias_of_rows() {
    let full = || {
        norm(&[2, 3, 8], &[-1], true, "pow", "div")
            .constant("scale", some(&[1, 1, 8], 1))
            .constant("bias", some(&[8], 2))
            .node("Mul", &["n", "scale"], &["m"])
            .node("Add", &["bias", "m"], &["y"])
    };
    check(full, &[some(&[2, 3, 8], 0)], &["layerNorm"]);
    check(full, &[wild(&[2, 3, 8], 8)], &["layerNorm"]);
    // Several axes, the scale known to a run alone.
    let axes = || {
        norm(&[2, 4, 2], &[-2, -1], true, "mul", "div").input("scale", DType::F32, &[4, 2]).node(
            "Mul",
            &["n", "scale"],
            &["y"],
        )
    };
    check(axes, &[some(&[2, 4, 2], 0), some(&[4, 2], 1)], &["layerNorm"]);
    // A scale of less than a row, and a bias of rows, are no parameters.
    let part = || {
        norm(&[2, 4, 2], &[1, 2], true, "mul", "div").constant("scale", some(&[2], 1)).node(
            "Mul",
            &["n", "scale"],
            &["y"],
        )
    };
    check(part, &[some(&[2, 4, 2], 0)], &["layerNorm", "mul"]);
    // The factor may hold the scale.
    let joined = || {
        norm(&[2, 8], &[1], false, "pow", "reciprocal")
            .constant("scale", some(&[8], 1))
            .node("Mul", &["factor", "scale"], &["f"])
            .node("Mul", &["x", "f"], &["y"])
    };
    check(joined, &[some(&[2, 8], 0)], &["rmsNorm"]);
    // rmsNorm has no bias.
    let shifted = || {
        norm(&[2, 8], &[1], false, "pow", "div").constant("bias", some(&[8], 1)).node(
            "Add",
            &["n", "bias"],
            &["y"],
        )
    };
    check(shifted, &[some(&[2, 8], 0)], &["rmsNorm", "add"]);
}

#[test]
fn norms_go_through_views() {
    // Means without the reduced axis, which comes back by a reshape.
    let gone = [("axes", Attribute::Ints(vec![-1])), ("keepdims", Attribute::Int(0))];
    let net = || {
        net(&[2, 3, 8])
            .constant("epsilon", number(1e-6))
            .constant("column", longs(&[3], &[2, 3, 1]))
            .node_with("ReduceMean", &["x"], &["mean"], &gone)
            .node("Reshape", &["mean", "column"], &["means"])
            .node("Sub", &["x", "means"], &["d"])
            .node("Mul", &["d", "d"], &["square"])
            .node_with("ReduceMean", &["square"], &["variance"], &gone)
            .node("Add", &["variance", "epsilon"], &["shifted"])
            .node("Sqrt", &["shifted"], &["root"])
            .node("Reshape", &["root", "column"], &["roots"])
            .node("Div", &["d", "roots"], &["y"])
    };
    check(net, &[wild(&[2, 3, 8], 8)], &["layerNorm"]);
}

#[test]
fn what_is_no_norm_stays() {
    // Not the last axis.
    let first = || norm(&[4, 3], &[0], true, "mul", "div").node("Identity", &["n"], &["y"]);
    check(first, &[some(&[4, 3], 0)], &["reduceMean", "sub", "mul", "reduceMean", "evaluate", "div"]);
    // Means of other rows than those that are divided.
    let mixed = || {
        norm(&[3, 3], &[1], false, "mul", "div")
            .constant("dims", longs(&[2], &[1, 3]))
            .node("Reshape", &["root", "dims"], &["r"])
            .node("Div", &["x", "r"], &["y"])
    };
    let session = mixed().outputs(&["y"]).session();
    assert!(!steps(&session, &[some(&[3, 3], 0)]).contains(&"rmsNorm"));
}

#[test]
fn a_sum_with_a_product_is_part_of_it() {
    let block = |residual: &str, other: &str| {
        net(&[2, 3, 4])
            .input("r", DType::F32, &[2, 3, 6])
            .input("row", DType::F32, &[6])
            .constant("w", some(&[4, 6], 1))
            .constant("bias", some(&[6], 2))
            .node("Tanh", &["r"], &["late"])
            .node("MatMul", &["x", "w"], &["a"])
            .node("Add", &["bias", "a"], &["b"])
            .node("Add", &[residual, other], &["c"])
            .node("Relu", &["c"], &["y"])
    };
    let feeds = [wild(&[2, 3, 4], 4), some(&[2, 3, 6], 5), some(&[6], 6)];
    check(|| block("b", "r"), &feeds, &["matmul"]);
    check(|| block("late", "b"), &feeds, &["tanh", "matmul"]);
    // A row, and the product twice.
    check(|| block("b", "row"), &feeds, &["matmul", "evaluate"]);
    check(|| block("b", "b"), &feeds, &["matmul", "evaluate"]);
    let gemm = || {
        net(&[3, 4])
            .input("r", DType::F32, &[3, 6])
            .constant("w", some(&[6, 4], 1))
            .node_with(
                "Gemm",
                &["x", "w"],
                &["a"],
                &[("transB", Attribute::Int(1)), ("beta", Attribute::Float(3.0))],
            )
            .node("Add", &["r", "a"], &["y"])
    };
    check(gemm, &[some(&[3, 4], 0), some(&[3, 6], 5)], &["matmul"]);
    let session = gemm().outputs(&["y"]).session();
    let stage = session.stage(&[Meta::new(DType::F32, [3, 4]), Meta::new(DType::F32, [3, 6])]).unwrap();
    let beta =
        |(name, value): &(String, Raw)| name == "beta" && matches!(value, Raw::Number(it) if *it == 1.0);
    assert!(stage.steps[0].options.iter().any(beta));
}

/// How an attention is written: with which transpositions, scale and mask.
#[derive(Clone, Copy)]
struct Written {
    /// Whether operands and result have heads side by side.
    flat: bool,
    /// Whether keys are turned by a transposition of their own, under three dims.
    apart: bool,
    /// "after", "root" on both, "query", "key" before it is turned.
    scale: &'static str,
    /// "", "add", "where", "where not".
    mask: &'static str,
    guarded: bool,
}

const WRITTEN: Written = Written { flat: true, apart: false, scale: "after", mask: "add", guarded: false };

/// Attention of 2 batches, 3 heads, 4 queries, 5 keys, size 2 (values 6).
fn attention(written: Written) -> Net {
    let Written { flat, apart, scale, mask, guarded } = written;
    let [q, k, v] = [[4, 2], [5, 2], [5, 6]].map(|[places, size]| match flat {
        true => vec![2, places, 3 * size],
        false => vec![2, 3, places, size],
    });
    let perm = |net: Net, from: &str, to: &str, perm: &[i64]| {
        net.node_with("Transpose", &[from], &[to], &[("perm", Attribute::Ints(perm.to_vec()))])
    };
    let mut net = net(&q)
        .input("k", DType::F32, &k)
        .input("v", DType::F32, &v)
        .input("mask", if mask.starts_with("where") { DType::Bool } else { DType::F32 }, &[2, 1, 1, 5])
        .constant("root", number(0.8))
        .constant("divisor", floats(&[1], &[1.5625]))
        .constant("zero", number(0.0))
        .constant("hidden", number(f32::NEG_INFINITY))
        .constant("q dims", longs(&[4], &[2, 4, 3, 2]))
        .constant("k dims", longs(&[4], &[2, 5, 3, 2]))
        .constant("v dims", longs(&[4], &[2, 5, 3, 6]))
        .constant("k rows", longs(&[3], &[6, 5, 2]))
        .constant("k columns", longs(&[4], &[2, 3, 2, 5]))
        .constant("y dims", longs(&[3], &[2, 4, 18]));
    if scale == "key" {
        net = net.node("Mul", &["k", "root"], &["k'"]);
    } else {
        net = net.node("Identity", &["k"], &["k'"]);
    }
    if flat {
        net = net.node("Reshape", &["x", "q dims"], &["q4"]).node("Reshape", &["v", "v dims"], &["v4"]);
        net = perm(perm(net, "q4", "qh", &[0, 2, 1, 3]), "v4", "vh", &[0, 2, 1, 3]);
        net = net.node("Reshape", &["k'", "k dims"], &["k4"]);
        net = match apart {
            true => perm(net, "k4", "kh", &[0, 2, 1, 3]),
            false => perm(net, "k4", "kt", &[0, 2, 3, 1]),
        };
    } else {
        net = net.node("Identity", &["x"], &["qh"]).node("Identity", &["v"], &["vh"]);
        net = net.node("Identity", &["k'"], &["kh"]);
    }
    if apart || !flat {
        net = net.node("Reshape", &["kh", "k rows"], &["k3"]);
        net = perm(net, "k3", "k3t", &[0, 2, 1]).node("Reshape", &["k3t", "k columns"], &["kt"]);
    }
    net = match scale {
        "root" => net.node("Mul", &["qh", "root"], &["qs"]).node("Mul", &["root", "kt"], &["ks"]),
        "query" => net.node("Div", &["qh", "divisor"], &["qs"]).node("Identity", &["kt"], &["ks"]),
        _ => net.node("Identity", &["qh"], &["qs"]).node("Identity", &["kt"], &["ks"]),
    };
    net = net.node("MatMul", &["qs", "ks"], &["products"]);
    net = match scale {
        "after" => net.node("Div", &["products", "divisor"], &["scaled"]),
        _ => net.node("Identity", &["products"], &["scaled"]),
    };
    net = match mask {
        "add" => net.node("Add", &["mask", "scaled"], &["masked"]),
        "where" => net.node("Where", &["mask", "scaled", "hidden"], &["masked"]),
        "where not" => net.node("Where", &["mask", "hidden", "scaled"], &["masked"]),
        _ => net.node("Identity", &["scaled"], &["masked"]),
    };
    net = net.node_with("Softmax", &["masked"], &["weights"], &[("axis", Attribute::Int(-1))]);
    if guarded {
        net = net.node("IsNaN", &["weights"], &["none"]).node("Where", &["none", "zero", "weights"], &["w"]);
    } else {
        net = net.node("Identity", &["weights"], &["w"]);
    }
    net = net.node("MatMul", &["w", "vh"], &["yh"]);
    match flat {
        true => perm(net, "yh", "y4", &[0, 2, 1, 3]).node("Reshape", &["y4", "y dims"], &["y"]),
        false => net.node("Identity", &["yh"], &["y"]),
    }
}

/// Operands, some with NaN and infinities; the mask hides some keys of one batch and all of the other.
fn attended(written: Written, wild: bool) -> Vec<Tensor> {
    let dims = |places: usize, size: usize| match written.flat {
        true => vec![2, places, 3 * size],
        false => vec![2, 3, places, size],
    };
    let mut all = vec![some(&dims(4, 2), 0), some(&dims(5, 2), 1), some(&dims(5, 6), 2)];
    if wild {
        all[0] = self::wild(&dims(4, 2), 4);
        let mut keys: Vec<f32> = numbers(&all[1]).unwrap().iter().map(|&it| it as f32).collect();
        (keys[8], keys[13]) = (f32::NAN, f32::INFINITY);
        all[1] = floats(&dims(5, 2), &keys);
    }
    let hidden = f32::NEG_INFINITY;
    all.push(match written.mask.starts_with("where") {
        true => Tensor::from_slice(DType::Bool, [2, 1, 1, 5], &[1u8, 0, 1, 1, 0, 1, 1, 1, 1, 1]).unwrap(),
        false if wild => {
            floats(&[2, 1, 1, 5], &[0.0, hidden, 0.0, -3.4e38, 1.0, hidden, hidden, hidden, hidden, hidden])
        }
        false => floats(&[2, 1, 1, 5], &[0.0, hidden, 0.5, -3.4e38, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0]),
    });
    all
}

#[test]
fn spelled_out_attention_is_one_call() {
    for flat in [true, false] {
        for apart in [true, false] {
            for scale in ["after", "root", "query", "key"] {
                for guarded in [false, true] {
                    for mask in ["", "add", "where"] {
                        let written = Written { flat, apart, scale, mask, guarded };
                        for wild in [false, true] {
                            check(|| attention(written), &attended(written, wild), &["attention"]);
                        }
                    }
                }
            }
        }
    }
    let written = Written { mask: "where not", ..WRITTEN };
    check(|| attention(written), &attended(written, true), &["not", "attention"]);
}

#[test]
fn masks_hide_whole_queries_as_the_model_writes_it() {
    for (mask, guarded, wanted) in [("add", false, f64::NAN), ("add", true, 0.0), ("where", false, f64::NAN)]
    {
        let written = Written { mask, guarded, ..WRITTEN };
        let mut feeds = attended(written, false);
        feeds[3] = match mask {
            "add" => floats(&[2, 1, 1, 5], &[f32::NEG_INFINITY; 10]),
            _ => Tensor::from_slice(DType::Bool, [2, 1, 1, 5], &[0u8; 10]).unwrap(),
        };
        check(|| attention(written), &feeds, &["attention"]);
        let session = attention(written).outputs(&["y"]).session();
        let (_, values) = told(&run(&session, &feeds).unwrap()[0]);
        assert!(
            values
                .iter()
                .all(|value| value.to_bits() == wanted.to_bits() || value.is_nan() && wanted.is_nan())
        );
    }
}

#[test]
fn what_is_no_attention_stays() {
    let has = |net: Net, feeds: &[Tensor]| steps(&net.session(), feeds).contains(&"attention");
    let feeds = attended(WRITTEN, false);
    assert!(has(attention(WRITTEN).outputs(&["y"]), &feeds));
    // Weights that somebody else reads.
    assert!(!has(attention(WRITTEN).outputs(&["y", "weights"]), &feeds));
    // A mask of one column is spread over keys, which the call does not do.
    let net = || {
        let mut net = attention(Written { flat: false, ..WRITTEN });
        let mask = net.id("mask");
        net.graph.values[mask.index()].declared = Some(Declared { dtype: DType::F32, dims: None });
        net
    };
    let mut feeds = attended(Written { flat: false, ..WRITTEN }, false);
    feeds[3] = some(&[4, 1], 9);
    assert!(!has(net().outputs(&["y"]), &feeds));
    let spread = net;
    let (fused, plain) = (spread().outputs(&["y"]).session(), spread().all_outputs("y").session());
    assert_eq!(told(&run(&fused, &feeds).unwrap()[0]), told(&run(&plain, &feeds).unwrap()[0]));
    // Without the transposition of the result heads are not put side by side.
    let written = Written { mask: "", apart: true, ..WRITTEN };
    let stays = attention(written).outputs(&["yh"]);
    let names = steps(&stays.session(), &attended(written, false));
    assert_eq!(names.last(), Some(&"attention"));
    assert_eq!(names.iter().filter(|name| **name == "transpose").count(), 3);
}

/// A learnable affine, as its writer spells it, between two convolutions.
fn between(pads: &[i64], group: i64) -> Net {
    let window = if pads.iter().all(|&pad| pad == 0) { 1 } else { 3 };
    net(&[1, 4, 5, 5])
        .constant("w", some(&[4, 4, 1, 1], 1))
        .constant("scale", floats(&[1], &[1.25]))
        .constant("shift", floats(&[1], &[-0.75]))
        .constant("next", some(&[4, 4 / group as usize, window, window], 2))
        .constant("bias", some(&[4], 3))
        .node("Conv", &["x", "w"], &["a"])
        .node("HardSwish", &["a"], &["h"])
        .node("Mul", &["scale", "h"], &["m"])
        .node("Add", &["m", "shift"], &["s"])
        .node_with(
            "Conv",
            &["s", "next", "bias"],
            &["y"],
            &[("pads", Attribute::Ints(pads.to_vec())), ("group", Attribute::Int(group))],
        )
}

#[test]
fn scales_and_shifts_before_a_convolution_go_into_its_weights() {
    for group in [1, 4] {
        let unpadded = || between(&[0; 4], group);
        check(unpadded, &[some(&[1, 4, 5, 5], 0)], &["conv2d", "conv2d"]);
        // Padding is not shifted.
        let padded = || between(&[1; 4], group);
        check(padded, &[some(&[1, 4, 5, 5], 0)], &["conv2d", "evaluate", "conv2d"]);
    }
    let scaled = || {
        net(&[1, 2, 4, 4])
            .constant("w", some(&[3, 2, 3, 3], 1))
            .constant("scale", number(0.5))
            .node("Relu", &["x"], &["r"])
            .node("Div", &["r", "scale"], &["s"])
            .node_with("Conv", &["s", "w"], &["y"], &[("auto_pad", Attribute::String("SAME_UPPER".into()))])
    };
    check(scaled, &[some(&[1, 2, 4, 4], 0)], &["relu", "conv2d"]);
    check(scaled, &[wild(&[1, 2, 4, 4], 4)], &["relu", "conv2d"]);
    // What somebody else reads stays.
    let session = between(&[0; 4], 1).outputs(&["y", "s"]).session();
    assert_eq!(steps(&session, &[some(&[1, 4, 5, 5], 0)]), ["conv2d", "evaluate", "conv2d"]);
}

#[test]
fn hard_swish_is_known_by_limits_that_are_operands() {
    // A convolution, a learnable affine, hard-swish, another affine and a convolution again.
    let net = || {
        net(&[1, 4, 3, 3])
            .constant("w", some(&[4, 4, 1, 1], 1))
            .constant("scale", floats(&[1], &[1.25]))
            .constant("three", number(3.0))
            .constant("zero", number(0.0))
            .constant("six", number(6.0))
            .node("Conv", &["x", "w"], &["a"])
            .node("Mul", &["scale", "a"], &["b"])
            .node("Add", &["b", "scale"], &["c"])
            .node("Add", &["c", "three"], &["d"])
            .node("Clip", &["d", "zero", "six"], &["e"])
            .node("Mul", &["c", "e"], &["f"])
            .node("Div", &["f", "six"], &["g"])
            .node("Mul", &["scale", "g"], &["h"])
            .node("Add", &["h", "scale"], &["i"])
            .node("Conv", &["i", "w"], &["y"])
    };
    check(net, &[some(&[1, 4, 3, 3], 0)], &["conv2d", "conv2d"]);
}

#[test]
fn what_all_elements_share_is_part_of_their_expression() {
    let scaled = || {
        net(&[2, 3])
            .input("scale", DType::F32, &[])
            .constant("factor", number(0.25))
            .node("Mul", &["scale", "factor"], &["s"])
            .node("Relu", &["x"], &["r"])
            .node("Mul", &["r", "s"], &["y"])
    };
    check(scaled, &[some(&[2, 3], 0), number(-1.5)], &["evaluate"]);
    check(scaled, &[some(&[2, 3], 0), number(f32::NAN)], &["evaluate"]);
    // Functions that cost are worked out once.
    let costly = || {
        net(&[2, 3])
            .input("scale", DType::F32, &[1])
            .node("Exp", &["scale"], &["e"])
            .node("Add", &["e", "e"], &["s"])
            .node("Mul", &["x", "s"], &["y"])
    };
    check(costly, &[some(&[2, 3], 0), floats(&[1], &[0.5])], &["exp", "evaluate"]);
}
