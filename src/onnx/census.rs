//! A count of a file's messages before it is decoded. Decoding makes a structure of some hundred bytes from a message of
//! two, so a small file could take all memory otherwise.

use super::{Limits, malformed};
use crate::Result;
use prost::bytes::Buf;
use prost::encoding::{WireType, decode_key, decode_varint};

/// Kinds of messages, as far as they hold others.
#[derive(Clone, Copy)]
enum Holder {
    Model,
    Graph,
    Node,
    Attribute,
    Tensor,
    Function,
    ValueInfo,
    Type,
    TensorType,
    Shape,
    Leaf,
}

/// The fields of a message that are messages in turn.
fn fields(holder: Holder) -> &'static [(u32, Holder)] {
    use Holder::*;
    match holder {
        Model => &[(7, Graph), (8, Leaf), (14, Leaf), (25, Function)],
        Graph => &[(1, Node), (5, Tensor), (11, ValueInfo), (12, ValueInfo), (15, Leaf)],
        Node => &[(1, Leaf), (2, Leaf), (5, Attribute)],
        Attribute => &[(5, Tensor), (6, Graph), (9, Leaf)],
        Tensor => &[(13, Leaf)],
        Function => &[(4, Leaf), (5, Leaf), (7, Node), (9, Leaf), (11, Attribute)],
        ValueInfo => &[(2, Type)],
        Type => &[(1, TensorType), (4, Leaf), (5, Leaf), (8, Leaf), (9, Leaf)],
        TensorType => &[(2, Shape)],
        Shape => &[(1, Leaf)],
        Leaf => &[],
    }
}

/// An error where the file holds more messages than the limits allow, nests them too deeply, or breaks off.
pub fn check(file: &[u8], limits: &Limits) -> Result<()> {
    let mut left = limits.messages();
    let mut open = vec![(Holder::Model, file)];
    while let Some((holder, mut bytes)) = open.pop() {
        while bytes.has_remaining() {
            let (tag, wire) = decode_key(&mut bytes).map_err(malformed)?;
            let Some(inner) = skip(&mut bytes, wire)? else { continue };
            let Some(&(_, kind)) = fields(holder).iter().find(|(field, _)| *field == tag) else { continue };
            left = match left.checked_sub(1) {
                Some(left) => left,
                None => return Err(too_many(limits)),
            };
            if !fields(kind).is_empty() {
                open.push((kind, inner));
            }
        }
    }
    Ok(())
}

/// Steps over a field's content; gives it where it has a length of its own.
fn skip<'a>(bytes: &mut &'a [u8], wire: WireType) -> Result<Option<&'a [u8]>> {
    let length = match wire {
        WireType::Varint => {
            decode_varint(bytes).map_err(malformed)?;
            return Ok(None);
        }
        WireType::ThirtyTwoBit => 4,
        WireType::SixtyFourBit => 8,
        WireType::LengthDelimited => decode_varint(bytes).map_err(malformed)?,
        WireType::StartGroup | WireType::EndGroup => return Err(malformed("groups are not used in models")),
    };
    let Some(length) = usize::try_from(length).ok().filter(|&length| length <= bytes.len()) else {
        return Err(malformed("a field is longer than the file"));
    };
    let (inner, rest) = bytes.split_at(length);
    *bytes = rest;
    Ok((wire == WireType::LengthDelimited).then_some(inner))
}

fn too_many(limits: &Limits) -> crate::Error {
    malformed(format!("more than {} messages, which maxNodes {} allows for", limits.messages(), limits.nodes))
}
