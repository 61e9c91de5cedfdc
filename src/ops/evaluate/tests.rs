use super::*;
use crate::ops::Raw;
use crate::{DType, Tensor};

fn options(expression: &str, names: &[&str]) -> Vec<(String, Raw)> {
    let names = names.iter().map(|name| name.to_string()).collect();
    vec![("expression".into(), Raw::Text(expression.into())), ("names".into(), Raw::Names(names))]
}

fn run(expression: &str, operands: &[(&str, &[usize], &[f32])]) -> Result<(Vec<usize>, Vec<f32>)> {
    let tensors = operands.iter().map(|(_, dims, data)| Tensor::from_slice(DType::F32, *dims, data));
    let tensors = tensors.collect::<Result<Vec<_>>>()?;
    let names: Vec<&str> = operands.iter().map(|operand| operand.0).collect();
    let metas = tensors.iter().map(|tensor| Some(tensor.meta().clone())).collect();
    let call = Call::new("evaluate", metas, &options(expression, &names))?;
    let outputs = call.run_cpu(&tensors.into_iter().map(Some).collect::<Vec<_>>())?;
    Ok((outputs[0].meta().dims.clone(), outputs[0].host_view()?.as_slice::<f32>().to_vec()))
}

fn of(expression: &str, a: f32, b: f32) -> f32 {
    run(expression, &[("a", &[1], &[a]), ("b", &[1], &[b])]).unwrap().1[0]
}

#[test]
fn operators_bind_as_in_mathematics() {
    assert_eq!(of("a + b * 2", 1.0, 3.0), 7.0);
    assert_eq!(of("(a + b) * 2", 1.0, 3.0), 8.0);
    assert_eq!(of("a - b - 1", 9.0, 3.0), 5.0);
    assert_eq!(of("-a ** 2 + b", 3.0, 0.0), -9.0);
    assert_eq!(of("a ** -b", 2.0, 1.0), 0.5);
    assert_eq!(of("a ** b ** 2", 2.0, 3.0), 512.0);
    assert_eq!(of("a * -b", 2.0, 3.0), -6.0);
    assert_eq!(of("a < b && b <= 3 || a == 9", 1.0, 3.0), 1.0);
    assert_eq!(of("!(a > b) + !b", 1.0, 3.0), 1.0);
    assert_eq!(of("where(a >= b, a, -b)", 1.0, 3.0), -3.0);
    assert_eq!(of("a / b != a / b", 0.0, 0.0), 1.0);
}

#[test]
fn functions_take_their_attributes() {
    assert_eq!(of("clip(a, -1, .5e0) + b", 9.0, 1.0), 1.5);
    assert_eq!(of("clip(a, max=2) + b", 9.0, 1.0), 3.0);
    assert_eq!(of("leakyRelu(a, alpha = 1/4) + max(a, b)", -8.0, 1.0), -1.0);
    assert!((of("gelu(a, 'tanh') + 0 * b", 1.0, 0.0) - 0.841_192).abs() < 1e-6);
    assert_eq!(
        of("clip(a, -Infinity, 2 * pi - 6 - 2 ** 3 / 32) + b", 1.0, 0.0),
        (std::f64::consts::TAU - 6.25) as f32
    );
}

#[test]
fn operands_and_results_may_be_bool() {
    let (rows, columns) = (5, 1501);
    let x: Vec<f64> = (0..rows * columns).map(|i| i as f64 - 3000.0).collect();
    let mask: Vec<u8> = (0..columns).map(|i| (i % 3) as u8).collect();
    let row: Vec<u8> = (0..rows).map(|i| (i % 2) as u8).collect();
    let tensors = [
        Tensor::from_slice(DType::Bool, [columns], &mask).unwrap(),
        Tensor::from_slice(DType::F64, [rows, columns], &x).unwrap(),
        Tensor::from_slice(DType::Bool, [rows, 1], &row).unwrap(),
    ];
    let metas: Vec<Meta> = tensors.iter().map(|tensor| tensor.meta().clone()).collect();
    let names = ["m", "x", "r"].map(String::from);
    let run = |text: &str, dtype| {
        let output = Meta::new(dtype, [rows, columns]);
        let call = fused(parse(text, &names).unwrap(), metas.clone(), output).unwrap();
        call.run_cpu(&tensors.clone().map(Some)).unwrap().remove(0)
    };
    let holds = |i: usize| (mask[i % columns] != 0, row[i / columns] != 0);
    let chosen = run("where(m && !r, x, m + r)", DType::F64);
    let count = |i: usize| f64::from(u8::from(holds(i).0)) + f64::from(u8::from(holds(i).1));
    let wanted = |i: usize| if holds(i) == (true, false) { x[i] } else { count(i) };
    let got = chosen.host_view().unwrap();
    assert!(got.as_slice::<f64>().iter().enumerate().all(|(i, &y)| y == wanted(i)));
    let tested = run("x < 7 && m != r", DType::Bool);
    let got = tested.host_view().unwrap();
    let wanted = |i: usize| u8::from(x[i] < 7.0 && holds(i).0 != holds(i).1);
    assert!(got.as_slice::<u8>().iter().enumerate().all(|(i, &y)| y == wanted(i)));
    let bools = vec![Some(metas[0].clone())];
    let error = Call::new("evaluate", bools, &options("m + 1", &["m"])).unwrap_err();
    assert!(error.to_string().contains("an operand of floats, got bool alone"), "{error}");
}

#[test]
fn blocks_pieces_and_broadcasts_are_whole() {
    let (rows, columns) = (37, 1501);
    let x: Vec<f32> = (0..rows * columns).map(|i| i as f32).collect();
    let w: Vec<f32> = (0..columns).map(|i| i as f32 * 0.5).collect();
    let c: Vec<f32> = (0..rows).map(|i| -(i as f32)).collect();
    let operands: [(&str, &[usize], &[f32]); 4] =
        [("x", &[rows, columns], &x), ("w", &[columns], &w), ("c", &[rows, 1], &c), ("s", &[], &[2.0])];
    let (dims, y) = run("abs(x * s + w) - (c + s) * (x * s + w)", &operands).unwrap();
    assert_eq!(dims, [rows, columns]);
    for (i, &y) in y.iter().enumerate() {
        let sum = x[i] * 2.0 + w[i % columns];
        assert_eq!(y, sum.abs() - (c[i / columns] + 2.0) * sum, "{i}");
    }
    assert_eq!(run("a", &[("a", &[0, 3], &[])]).unwrap().0, [0, 3]);
    assert_eq!(run("a + b", &[("a", &[0], &[]), ("b", &[1], &[1.0])]).unwrap().1, []);
    assert_eq!(run("b", &[("b", &[], &[4.0])]).unwrap(), (vec![], vec![4.0]));
}

#[test]
fn errors_name_the_place() {
    let fails = |expression: &str, wanted: &str| {
        let error = run(expression, &[("a", &[1], &[0.0]), ("b", &[1], &[0.0])]).unwrap_err();
        let message = error.to_string();
        assert!(message.contains(wanted), "{message}");
        assert!(message.len() < 300, "{} bytes", message.len());
    };
    fails("", "at position 0: expected an operand, got the end");
    fails("a + * b", "at position 4: expected an operand, got '*'");
    fails("a b", "at position 2: expected an operator or the end, got 'b'");
    fails("(a + b", "at position 6: expected ')', got the end");
    fails("a + c", "at position 4: unknown operand 'c'");
    fails("gellu(a) + b", "unknown function 'gellu', did you mean 'gelu'?");
    fails("max(a) + b", "'max' takes 2 operands, got 1");
    fails("relu(a, 1) + b", "'relu' takes 0 attributes");
    fails("leakyRelu(a, alfa=1) + b", "unknown option 'alfa', did you mean 'alpha'?");
    fails("leakyRelu(a, b)", "an attribute must be a number, without operands");
    fails("a < b < 1", "cannot follow each other");
    fails("a + 1.2.3", "expected a number, got '1.2.3'");
    fails("a + 1x", "expected a number, got '1x'");
    fails("a + 'b", "the quotes are not closed");
    fails("a \u{1F600} b", "at position 2: expected an operand or an operator");
    fails("'\u{1F600}' + \u{1}", "position");
    fails("a", "operand 'b' does not occur");
    fails(&"a + ".repeat(5000), "at most 10000 bytes, got 20000");
    fails(&format!("{}a{}", "(".repeat(200), ")".repeat(200)), "more than 100 parts within each other");
    fails(&format!("b + {}a", "-".repeat(2000)), "more than 100 parts within each other");
    fails(&format!("{}a", "a ** ".repeat(1500)), "more than 100 parts within each other");
    fails(&"x".repeat(9000), "unknown operand 'xxxxx");
    let chain = (0..300).map(|i| format!("a * {i}")).collect::<Vec<_>>().join(" + ");
    fails(&chain, "more than 64 different numbers");
    fails(&format!("{}a", "exp(".repeat(90)), "expected ',' or ')'");
}
