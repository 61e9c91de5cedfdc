//! Protocol buffers as trees without a schema, so that a change in the depth keeps the lengths around it right.

/// What a field holds.
#[derive(Clone)]
pub enum Content {
    Number(u64),
    Fixed(Vec<u8>),
    Bytes(Vec<u8>),
    Message(Vec<Field>),
}

#[derive(Clone)]
pub struct Field {
    key: u64,
    content: Content,
}

/// Deeper messages stay bytes.
const DEPTH: usize = 24;

fn number(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 127) << shift;
        if byte < 128 {
            return Some(value);
        }
    }
    None
}

/// The fields of a message; `None` for bytes that are none.
pub fn parse(mut bytes: &[u8], depth: usize) -> Option<Vec<Field>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = number(&mut bytes)?;
        let length = match key & 7 {
            0 => {
                fields.push(Field { key, content: Content::Number(number(&mut bytes)?) });
                continue;
            }
            1 => 8,
            2 => usize::try_from(number(&mut bytes)?).ok()?,
            5 => 4,
            _ => return None,
        };
        let (head, rest) = bytes.split_at_checked(length)?;
        bytes = rest;
        let message = if key & 7 == 2 && depth < DEPTH && length > 1 { parse(head, depth + 1) } else { None };
        let content = match (key & 7, message) {
            (2, Some(message)) => Content::Message(message),
            (2, None) => Content::Bytes(head.to_vec()),
            _ => Content::Fixed(head.to_vec()),
        };
        fields.push(Field { key, content });
    }
    Some(fields)
}

fn put_number(mut value: u64, out: &mut Vec<u8>) {
    while value > 127 {
        out.push(value as u8 | 128);
        value >>= 7;
    }
    out.push(value as u8);
}

pub fn encode(fields: &[Field], out: &mut Vec<u8>) {
    for field in fields {
        put_number(field.key, out);
        match &field.content {
            Content::Number(value) => put_number(*value, out),
            Content::Fixed(bytes) => out.extend(bytes),
            Content::Bytes(bytes) => {
                put_number(bytes.len() as u64, out);
                out.extend(bytes);
            }
            Content::Message(inner) => {
                let mut bytes = Vec::new();
                encode(inner, &mut bytes);
                put_number(bytes.len() as u64, out);
                out.extend(bytes);
            }
        }
    }
}

/// Messages in the tree, itself first.
fn count(fields: &[Field]) -> usize {
    let inner = |field: &Field| if let Content::Message(inner) = &field.content { count(inner) } else { 0 };
    1 + fields.iter().map(inner).sum::<usize>()
}

/// The message of that position.
fn message<'a>(fields: &'a mut Vec<Field>, at: &mut usize) -> Option<&'a mut Vec<Field>> {
    if *at == 0 {
        return Some(fields);
    }
    *at -= 1;
    for field in fields {
        let Content::Message(inner) = &mut field.content else { continue };
        let size = count(inner);
        if *at < size {
            return message(inner, at);
        }
        *at -= size;
    }
    None
}

/// Numbers that arithmetic stumbles over.
const EDGES: &[u64] = &[
    0, 1, 2, 3, 7, 8, 9, 16, 17, 255, 256, 1 << 16, (1 << 31) - 1, 1 << 31, 1 << 32, 1 << 40, 1 << 62, i64::MAX as u64, 1 << 63,
    u64::MAX, u64::MAX - 1, u64::MAX - 2,
];

/// One change of one message in the tree. `random` gives numbers below its bound, `leaf` changes bytes.
pub fn change(tree: &mut Vec<Field>, random: &mut dyn FnMut(usize) -> usize, leaf: &mut dyn FnMut(&mut Vec<u8>)) {
    let mut at = random(count(tree));
    let donor = {
        let mut from = random(count(tree));
        message(tree, &mut from).filter(|fields| !fields.is_empty()).map(|fields| fields[random(fields.len())].clone())
    };
    let Some(fields) = message(tree, &mut at) else { return };
    if fields.is_empty() {
        fields.extend(donor);
        return;
    }
    let place = random(fields.len());
    match random(8) {
        0 => drop(fields.remove(place)),
        1 => fields.insert(place, fields[place].clone()),
        2 => fields.extend(donor),
        3 => {
            let other = random(fields.len());
            let content = fields[other].content.clone();
            if fields[other].key & 7 == fields[place].key & 7 {
                fields[place].content = content;
            }
        }
        _ => match &mut fields[place].content {
            Content::Number(value) => {
                *value = match random(4) {
                    0 => value.wrapping_add(1),
                    1 => value.wrapping_sub(1),
                    2 => random(12) as u64,
                    _ => EDGES[random(EDGES.len())],
                }
            }
            Content::Fixed(bytes) | Content::Bytes(bytes) => match (bytes.len() % 8, random(3)) {
                // Elements of whole numbers, as shapes and axes are.
                (0, 0) if !bytes.is_empty() => {
                    let at = 8 * random(bytes.len() / 8);
                    let value = if random(2) == 0 { random(9) as u64 } else { EDGES[random(EDGES.len())] };
                    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
                }
                _ => leaf(bytes),
            },
            Content::Message(_) => {
                if let Some(donor) = donor.filter(|donor| donor.key & 7 == 2) {
                    fields[place].content = donor.content;
                }
            }
        },
    }
}
