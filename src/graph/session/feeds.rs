//! What a run is given, checked against what the model declares.

use super::{Port, wrong_type};
use crate::error::quoted;
use crate::graph::Dim;
use crate::ops::nearest;
use crate::tensor::Tensor;
use crate::{Result, invalid, mismatch};
use std::collections::HashMap;

/// The tensors in the order of the inputs.
pub fn check(inputs: &[Port], feeds: Vec<(String, Tensor)>) -> Result<Vec<Tensor>> {
    let mut given: HashMap<String, Tensor> = HashMap::new();
    for (name, tensor) in feeds {
        if !inputs.iter().any(|port| port.name == name) {
            return unknown(inputs, &name);
        }
        given.insert(name, tensor);
    }
    let mut tensors = Vec::with_capacity(inputs.len());
    for port in inputs {
        let Some(tensor) = given.remove(&port.name) else {
            return invalid!("run: input {} is missing", quoted(&port.name));
        };
        check_one(port, &tensor)?;
        tensors.push(tensor);
    }
    Ok(tensors)
}

fn unknown<T>(inputs: &[Port], name: &str) -> Result<T> {
    let known: Vec<&str> = inputs.iter().map(|port| port.name.as_str()).collect();
    let hint = match nearest(name, &known) {
        Some(guess) => format!("did you mean '{guess}'?"),
        None => format!("inputs: {}", known.join(", ")),
    };
    invalid!("run: unknown input {}; {hint}", quoted(name))
}

fn check_one(port: &Port, tensor: &Tensor) -> Result<()> {
    let Some(declared) = &port.declared else { return Ok(()) };
    let (name, meta) = (&port.name, tensor.meta());
    if declared.dtype != meta.dtype {
        return Err(wrong_type(name, declared.dtype, meta.dtype));
    }
    let Some(dims) = &declared.dims else { return Ok(()) };
    if dims.len() != meta.dims.len() {
        return mismatch!("run: input '{name}' must have rank {}, got dims {:?}", dims.len(), meta.dims);
    }
    // Names of dims are not held to one size each: writers use one name, such as '?', for many.
    for (axis, (wanted, &got)) in dims.iter().zip(&meta.dims).enumerate() {
        if let Dim::Fixed(size) = wanted
            && *size != got
        {
            return mismatch!("run: dim {axis} of input '{name}' must be {size}, got dims {:?}", meta.dims);
        }
    }
    Ok(())
}
