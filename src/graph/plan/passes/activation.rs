//! Activations: those that a model spells out as several calls become one, and one that follows a convolution or a product
//! becomes part of it.

use super::super::Operand;
use super::super::stage::Step;
use super::trace::{Trace, exactly, near, orders, same};
use super::{List, number};
use crate::Result;
use crate::ops::{Call, Raw};

/// Makes each activation that is spelled out one call.
pub fn spelled(list: &mut List) -> Result<()> {
    (0..list.steps.len()).try_for_each(|index| spelled_at(list, index))
}

/// Makes activations part of what they follow.
pub fn attach(list: &mut List) -> Result<()> {
    (0..list.steps.len()).try_for_each(|index| attach_at(list, index))
}

/// Replaces a spelled-out activation whose last call is at that place.
fn spelled_at(list: &mut List, index: usize) -> Result<()> {
    let Some(step) = list.steps[index].as_ref().filter(|step| is_float(step)) else { return Ok(()) };
    let patterns = [silu, hard_swish, gelu, gelu_tanh];
    let Some((x, op, options, taken)) = patterns.iter().find_map(|pattern| {
        let mut trace = Trace { list, taken: vec![index] };
        pattern(&mut trace, step).map(|(x, op, options)| (x, op, options, trace.taken))
    }) else {
        return Ok(());
    };
    let options: Vec<(String, Raw)> =
        options.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
    let Some(x) = step.call().and_then(|call| x.reshape(&call.output().dims[..]).ok()) else { return Ok(()) };
    let call = Call::new(op, vec![Some(x.meta().clone())], &options)?;
    let (label, outputs) = (step.label.clone(), step.outputs.clone());
    for &other in &taken {
        list.take(other);
    }
    let work = super::super::stage::Work::Call(Box::new(call));
    list.put(index, Step { label, name: op, work, options, inputs: vec![Some(x)], outputs });
    Ok(())
}

fn is_float(step: &Step) -> bool {
    step.call().is_some_and(|call| crate::ops::FLOATS.contains(&call.dtype()))
}

type Found = Option<(Operand, &'static str, Vec<(&'static str, Raw)>)>;

/// x * sigmoid(x).
fn silu(trace: &mut Trace, step: &Step) -> Found {
    for (x, gate) in orders(step, "mul") {
        trace.taken.truncate(1);
        let Some(sigmoid) = trace.step(gate, "sigmoid") else { continue };
        let Some(Some(inner)) = sigmoid.inputs.first() else { continue };
        if same(inner, x) {
            return Some((x.clone(), "silu", Vec::new()));
        }
    }
    None
}

/// x * clip(x + 3, 0, 6) / 6, the division anywhere; or x * hardSigmoid(x) with its parameters.
fn hard_swish(trace: &mut Trace, step: &Step) -> Found {
    if let Some(product) = over_six(trace, step) {
        let product = trace.step(&product, "mul")?;
        for (x, gate) in orders(product, "mul") {
            let mark = trace.taken.len();
            if gate_of(trace, gate, x) {
                return Some((x.clone(), "hardSwish", Vec::new()));
            }
            trace.taken.truncate(mark);
        }
        return None;
    }
    for (x, gate) in orders(step, "mul") {
        trace.taken.truncate(1);
        if let Some(inner) = trace.step(gate, "hardSigmoid") {
            let call = inner.call()?;
            let fits =
                (call.attrs.float("alpha") - 1.0 / 6.0).abs() < 1e-6 && call.attrs.float("beta") == 0.5;
            if fits && inner.inputs.first()?.as_ref().is_some_and(|inner| same(inner, x)) {
                return Some((x.clone(), "hardSwish", Vec::new()));
            }
            continue;
        }
        let divided = trace
            .with_number(gate, "div", false, exactly(6.0))
            .or_else(|| trace.with_number(gate, "mul", true, near(1.0 / 6.0)));
        if let Some(inner) = divided
            && gate_of(trace, &inner, x)
        {
            return Some((x.clone(), "hardSwish", Vec::new()));
        }
    }
    None
}

/// What the step divides by 6.
fn over_six(_: &Trace, step: &Step) -> Option<Operand> {
    let [Some(a), Some(b)] = &step.inputs[..] else { return None };
    match step.name {
        "div" if number(b) == Some(6.0) => Some(a.clone()),
        "mul" if number(b).is_some_and(near(1.0 / 6.0)) => Some(a.clone()),
        "mul" if number(a).is_some_and(near(1.0 / 6.0)) => Some(b.clone()),
        _ => None,
    }
}

/// Whether the operand is clip(x + 3, 0, 6).
fn gate_of(trace: &mut Trace, gate: &Operand, x: &Operand) -> bool {
    let Some(clip) = trace.step(gate, "clip") else { return false };
    let limits = clip.call().map(|call| (call.attrs.float("min"), call.attrs.float("max")));
    let Some(Some(sum)) = clip.inputs.first() else { return false };
    let inner = trace.with_number(sum, "add", true, exactly(3.0));
    limits == Some((0.0, 6.0)) && inner.is_some_and(|inner| same(&inner, x))
}

/// What `found` makes of 0.5 x sum, for each order of the operands in which x and the sum can be told, with the half last or on
/// one of the two.
fn halved(trace: &mut Trace, step: &Step, found: impl Fn(&mut Trace, &Operand, &Operand) -> Found) -> Found {
    let outer = half_of(step);
    let product = match &outer {
        Some(product) => trace.step(product, "mul")?,
        None => step,
    };
    let mark = trace.taken.len();
    for (x, sum) in orders(product, "mul") {
        trace.taken.truncate(mark);
        let (mut x, mut sum) = (x.clone(), sum.clone());
        if outer.is_none() {
            let half = |trace: &mut Trace, operand| trace.with_number(operand, "mul", true, exactly(0.5));
            match (half(trace, &x), half(trace, &sum)) {
                (Some(inner), None) => x = inner,
                (None, Some(inner)) => sum = inner,
                _ => continue,
            }
        }
        if let Some(answer) = found(trace, &x, &sum) {
            return Some(answer);
        }
    }
    None
}

/// 0.5 x (1 + erf(x / sqrt 2)).
fn gelu(trace: &mut Trace, step: &Step) -> Found {
    halved(trace, step, |trace, x, sum| {
        let erf = trace.with_number(sum, "add", true, exactly(1.0))?;
        let scaled = trace.step(&erf, "erf")?.inputs.first()?.as_ref()?;
        let inner = trace
            .with_number(scaled, "div", false, near(std::f64::consts::SQRT_2))
            .or_else(|| trace.with_number(scaled, "mul", true, near(std::f64::consts::FRAC_1_SQRT_2)))?;
        same(&inner, x).then(|| (x.clone(), "gelu", Vec::new()))
    })
}

/// What the step halves.
fn half_of(step: &Step) -> Option<Operand> {
    let [Some(a), Some(b)] = &step.inputs[..] else { return None };
    match step.name {
        "mul" if number(b) == Some(0.5) => Some(a.clone()),
        "mul" if number(a) == Some(0.5) => Some(b.clone()),
        "div" if number(b) == Some(2.0) => Some(a.clone()),
        _ => None,
    }
}

/// 0.5 x (1 + tanh(0.7978845608 (x + 0.044715 x^3))).
fn gelu_tanh(trace: &mut Trace, step: &Step) -> Found {
    halved(trace, step, |trace, x, sum| {
        let tanh = trace.with_number(sum, "add", true, exactly(1.0))?;
        let scaled = trace.step(&tanh, "tanh")?.inputs.first()?.as_ref()?;
        let cubic = trace.with_number(scaled, "mul", true, near(0.797_884_560_8))?;
        let add = trace.step(&cubic, "add")?;
        let fits =
            orders(add, "add").into_iter().any(|(line, cube)| same(line, x) && is_cube(trace, cube, x));
        fits.then(|| (x.clone(), "gelu", vec![("approximate", Raw::Text("tanh".into()))]))
    })
}

/// Whether the operand is 0.044715 x^3, with the power as such or as products.
fn is_cube(trace: &mut Trace, cube: &Operand, x: &Operand) -> bool {
    let mark = trace.taken.len();
    if let Some(power) = trace.with_number(cube, "mul", true, near(0.044_715)) {
        if let Some(base) = trace.with_number(&power, "pow", false, exactly(3.0)) {
            return same(&base, x);
        }
        if is_product(trace, &power, x, 3) {
            return true;
        }
    }
    trace.taken.truncate(mark);
    // (0.044715 x) x x, or 0.044715 x (x x).
    let Some(outer) = trace.step(cube, "mul") else { return false };
    let parts: Vec<_> = orders(outer, "mul").into_iter().map(|(a, b)| (a.clone(), b.clone())).collect();
    let mark = trace.taken.len();
    for (a, b) in parts {
        trace.taken.truncate(mark);
        let scaled = trace.with_number(&a, "mul", true, near(0.044_715));
        if scaled.is_some_and(|inner| same(&inner, x)) && is_product(trace, &b, x, 2) {
            return true;
        }
        trace.taken.truncate(mark);
        if same(&b, x)
            && let Some(inner) = trace.step(&a, "mul")
        {
            let pairs: Vec<_> =
                orders(inner, "mul").into_iter().map(|(c, d)| (c.clone(), d.clone())).collect();
            for (c, d) in pairs {
                let scaled = trace.with_number(&c, "mul", true, near(0.044_715));
                if same(&d, x) && scaled.is_some_and(|inner| same(&inner, x)) {
                    return true;
                }
            }
        }
    }
    false
}

/// Whether the operand is x times itself so often.
fn is_product(trace: &mut Trace, operand: &Operand, x: &Operand, times: usize) -> bool {
    if times == 1 {
        return same(operand, x);
    }
    let Some(step) = trace.step(operand, "mul") else { return false };
    let parts: Vec<_> = orders(step, "mul").into_iter().map(|(a, b)| (a.clone(), b.clone())).collect();
    parts.iter().any(|(a, b)| same(a, x) && is_product(trace, b, x, times - 1))
}

/// Ops that an activation can be part of.
const CARRIERS: &[&str] = &["conv1d", "conv2d", "conv3d", "convTranspose2d", "convTranspose3d", "matmul"];

/// Makes an activation that alone reads a carrier's result part of it.
fn attach_at(list: &mut List, index: usize) -> Result<()> {
    let Some(carrier) = list.steps[index].as_ref().filter(|step| CARRIERS.contains(&step.name)) else {
        return Ok(());
    };
    if carrier.call().is_none_or(|call| call.attrs.choice("activation") != "none") {
        return Ok(());
    }
    let Some(next) = list.only_reader(index) else { return Ok(()) };
    let Some(options) = list.steps[next].as_ref().and_then(activation) else { return Ok(()) };
    let (Some(step), Some(after)) = (list.take(index), list.take(next)) else { return Ok(()) };
    let mut joined = step.rebuilt(step.inputs.clone(), &options)?;
    joined.outputs = after.outputs;
    list.put(index, joined);
    Ok(())
}

/// The step as options of a carrier.
fn activation(step: &Step) -> Option<Vec<(&'static str, Raw)>> {
    const KNOWN: &[(&str, &[&str])] = &[
        ("relu", &[]),
        ("leakyRelu", &["alpha"]),
        ("clip", &["min", "max"]),
        ("sigmoid", &[]),
        ("tanh", &[]),
        ("gelu", &[]),
        ("silu", &[]),
        ("elu", &["alpha"]),
        ("selu", &["alpha", "gamma"]),
        ("hardSigmoid", &["alpha", "beta"]),
        ("hardSwish", &[]),
        ("softplus", &[]),
        ("mish", &[]),
    ];
    let (_, parameters) = KNOWN.iter().find(|(name, _)| *name == step.name)?;
    let call = step.call()?;
    let tanh = call.attrs.choice("approximate") == "tanh";
    let name = if tanh { "geluTanh" } else { step.name };
    let mut options = vec![("activation", Raw::Text(name.into()))];
    for (option, parameter) in ["activationAlpha", "activationBeta"].into_iter().zip(*parameters) {
        options.push((option, Raw::Number(call.attrs.float(parameter))));
    }
    Some(options)
}
