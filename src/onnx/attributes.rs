//! Attributes of nodes.

use super::reader::{Context, Reader};
use super::{invalid_model, proto, quoted, tensor};
use crate::graph::Attribute;
use crate::{Error, Result};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;

impl<'m> Reader<'m> {
    /// Attributes by name. One that refers to an attribute of the function's call is that, or absent if that is.
    pub(super) fn attributes(
        &mut self,
        attributes: &'m [proto::Attribute],
        context: &Context<'m>,
    ) -> Result<BTreeMap<String, Attribute>> {
        let mut read = BTreeMap::new();
        for attribute in attributes {
            let name = quoted(&attribute.name);
            let value = if attribute.ref_name.is_empty() {
                Some(self.attribute(attribute, context)?)
            } else if let Some(call) = &context.call {
                call.get(&attribute.ref_name).cloned()
            } else {
                return invalid_model(format!("attribute {name} refers to a function's, outside of one"));
            };
            let Some(value) = value else { continue };
            if read.insert(attribute.name.clone(), value).is_some() {
                return invalid_model(format!("attribute {name} is given twice"));
            }
        }
        Ok(read)
    }

    fn attribute(&mut self, attribute: &'m proto::Attribute, context: &Context<'m>) -> Result<Attribute> {
        use proto::kind::*;
        let name = quoted(&attribute.name);
        Ok(match attribute.kind {
            FLOAT => Attribute::Float(attribute.f),
            INT => Attribute::Int(attribute.i),
            STRING => Attribute::String(text(&attribute.s, &name)?),
            FLOATS => Attribute::Floats(attribute.floats.clone()),
            INTS => Attribute::Ints(attribute.ints.clone()),
            STRINGS => {
                let words = attribute.strings.iter().map(|word| text(word, &name));
                Attribute::Strings(words.collect::<Result<_>>()?)
            }
            TENSOR => {
                let what = format!("attribute {name}");
                let Some(value) = &attribute.t else {
                    return invalid_model(format!("{what} holds no tensor"));
                };
                Attribute::Tensor(tensor::read(value, &what, self.external, self.limits)?)
            }
            GRAPH => match &attribute.g {
                Some(graph) => Attribute::Graph(Arc::new(self.graph(graph, context)?)),
                None => return invalid_model(format!("attribute {name} holds no graph")),
            },
            kind @ 9..=14 => {
                let text = format!("model: attribute {name}: attributes of kind {kind} are not supported");
                return Err(Error::UnsupportedOp(text));
            }
            kind => return invalid_model(format!("attribute {name}: {kind} is no kind of attribute")),
        })
    }
}

fn text(bytes: &Bytes, name: &str) -> Result<String> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_string()),
        Err(_) => invalid_model(format!("attribute {name} is not valid UTF-8")),
    }
}
