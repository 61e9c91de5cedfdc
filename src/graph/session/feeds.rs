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
    let mut named: HashMap<&str, (usize, &str)> = HashMap::new();
    let mut tensors = Vec::with_capacity(inputs.len());
    for port in inputs {
        let Some(tensor) = given.remove(&port.name) else {
            return invalid!("run: input {} is missing", quoted(&port.name));
        };
        check_one(port, &tensor, &mut named)?;
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

fn check_one<'a>(
    port: &'a Port,
    tensor: &Tensor,
    named: &mut HashMap<&'a str, (usize, &'a str)>,
) -> Result<()> {
    let Some(declared) = &port.declared else { return Ok(()) };
    let (name, meta) = (&port.name, tensor.meta());
    if declared.dtype != meta.dtype {
        return Err(wrong_type(name, declared.dtype, meta.dtype));
    }
    let Some(dims) = &declared.dims else { return Ok(()) };
    if dims.len() != meta.dims.len() {
        return mismatch!("run: input '{name}' must have rank {}, got dims {:?}", dims.len(), meta.dims);
    }
    for (axis, (wanted, &got)) in dims.iter().zip(&meta.dims).enumerate() {
        match wanted {
            Dim::Fixed(size) if *size != got => {
                return mismatch!(
                    "run: dim {axis} of input '{name}' must be {size}, got dims {:?}",
                    meta.dims
                );
            }
            Dim::Named(word) => match named.get(word.as_str()) {
                Some((size, other)) if *size != got => {
                    return mismatch!(
                        "run: dim {axis} of input '{name}' is '{word}', which is {size} in input '{other}', got dims {:?}",
                        meta.dims
                    );
                }
                Some(_) => {}
                None => {
                    named.insert(word, (got, name));
                }
            },
            _ => {}
        }
    }
    Ok(())
}
