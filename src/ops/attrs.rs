//! Attributes of a call: raw values from the caller, checked against the op's table into typed ones.

use super::Precision;
use super::evaluate::Expression;
use super::spec::{Attribute, Kind, OpSpec};
use crate::{DTYPES, DType, Result, invalid};
use std::sync::Arc;

/// An option value as the caller gave it.
#[derive(Debug, Clone, PartialEq)]
pub enum Raw {
    /// A boolean.
    Bool(bool),
    /// A number.
    Number(f64),
    /// A string.
    Text(String),
    /// A list of numbers.
    List(Vec<f64>),
    /// A list of strings.
    Names(Vec<String>),
    /// Anything else, with a description for the message.
    Other(String),
}

impl std::fmt::Display for Raw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Raw::Bool(value) => write!(f, "{value}"),
            Raw::Number(value) => write!(f, "{value}"),
            Raw::Text(value) => write!(f, "'{value}'"),
            Raw::List(values) => write!(f, "{values:?}"),
            Raw::Names(values) => write!(f, "{values:?}"),
            Raw::Other(text) => f.write_str(text),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Value {
    Bool(bool),
    Int(i64),
    Ints(Vec<i64>),
    Floats(Vec<f64>),
    Float(f64),
    Choice(&'static str),
    Text(String),
    Names(Vec<String>),
    Type(DType),
    Expression(Arc<Expression>),
}

/// Checked attributes with defaults filled in. Getters take names of the op's own table, so a miss is a defect.
#[derive(Debug, Clone, Default)]
pub struct Attrs {
    values: Vec<(&'static str, Value)>,
}

impl Attrs {
    /// Checks the caller's options against the op's attributes. Unknown names are errors with a guess.
    pub fn parse(spec: &OpSpec, raw: &[(String, Raw)]) -> Result<Attrs> {
        for (name, _) in raw {
            if name != Precision::OPTION && !spec.attributes.iter().any(|attribute| attribute.name == name) {
                return unknown_option(spec, name);
            }
        }
        Attrs::of(spec.name, spec.attributes.iter(), raw)
    }

    /// Checks those of the caller's options that the attributes name, for a call that is no op.
    pub fn of<'a>(
        op: &str,
        attributes: impl Iterator<Item = &'a Attribute>,
        raw: &[(String, Raw)],
    ) -> Result<Attrs> {
        let mut values = Vec::new();
        for attribute in attributes {
            let given = raw.iter().find(|(name, _)| name == attribute.name).map(|(_, value)| value);
            if let Some(value) = check(op, attribute, given)? {
                values.push((attribute.name, value));
            }
        }
        Ok(Attrs { values })
    }

    /// An expression that was built rather than written, alone.
    pub fn built(name: &'static str, expression: Arc<Expression>) -> Attrs {
        Attrs { values: vec![(name, Value::Expression(expression))] }
    }

    /// An expression that was built.
    pub fn expression(&self, name: &str) -> Option<&Arc<Expression>> {
        match self.get(name) {
            Some(Value::Expression(value)) => Some(value),
            _ => None,
        }
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.values.iter().find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// A boolean attribute.
    pub fn bool(&self, name: &str) -> bool {
        matches!(self.get(name), Some(Value::Bool(true)))
    }

    /// An integer attribute.
    pub fn int(&self, name: &str) -> i64 {
        match self.get(name) {
            Some(Value::Int(value)) => *value,
            _ => 0,
        }
    }

    /// A list attribute, `None` when left out.
    pub fn ints(&self, name: &str) -> Option<&[i64]> {
        match self.get(name) {
            Some(Value::Ints(values)) => Some(values),
            _ => None,
        }
    }

    /// A list of numbers, `None` when left out.
    pub fn floats(&self, name: &str) -> Option<&[f64]> {
        match self.get(name) {
            Some(Value::Floats(values)) => Some(values),
            _ => None,
        }
    }

    /// A number attribute.
    pub fn float(&self, name: &str) -> f64 {
        match self.get(name) {
            Some(Value::Float(value)) => *value,
            _ => 0.0,
        }
    }

    /// A number attribute, `None` where the list that was parsed has none of that name.
    pub fn number(&self, name: &str) -> Option<f64> {
        match self.get(name) {
            Some(Value::Float(value)) => Some(*value),
            _ => None,
        }
    }

    /// A word attribute.
    pub fn choice(&self, name: &str) -> &'static str {
        match self.get(name) {
            Some(Value::Choice(value)) => value,
            _ => "",
        }
    }

    /// A text.
    pub fn text(&self, name: &str) -> &str {
        match self.get(name) {
            Some(Value::Text(value)) => value,
            _ => "",
        }
    }

    /// A list of names.
    pub fn names(&self, name: &str) -> &[String] {
        match self.get(name) {
            Some(Value::Names(values)) => values,
            _ => &[],
        }
    }

    /// An element type, `None` when left out.
    pub fn dtype(&self, name: &str) -> Option<DType> {
        match self.get(name) {
            Some(Value::Type(value)) => Some(*value),
            _ => None,
        }
    }
}

fn unknown_option<T>(spec: &OpSpec, name: &str) -> Result<T> {
    let known: Vec<&str> = spec
        .attributes
        .iter()
        .map(|attribute| attribute.name)
        .chain(spec.operands.iter().filter(|operand| !operand.required).map(|operand| operand.name))
        .chain(COMMON_OPTIONS.iter().copied())
        .collect();
    match nearest(name, &known) {
        Some(guess) => invalid!("{}: unknown option '{name}', did you mean '{guess}'?", spec.name),
        None => invalid!("{}: unknown option '{name}'; known options: {}", spec.name, known.join(", ")),
    }
}

/// Options that every op takes and that the callers handle before attributes are parsed.
pub const COMMON_OPTIONS: &[&str] = &["dims", "device", "precision", "signal", "transfer", "type"];

/// The known name within two edits of `name`, case aside.
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let lower = name.to_lowercase();
    let scored = known.iter().map(|candidate| (edits(&lower, &candidate.to_lowercase()), *candidate));
    let (distance, candidate) = scored.min_by_key(|(distance, _)| *distance)?;
    (distance <= 2 && distance < candidate.len()).then_some(candidate)
}

fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, right) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(left != *right);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

fn check(op: &str, attribute: &Attribute, given: Option<&Raw>) -> Result<Option<Value>> {
    let name = attribute.name;
    Ok(Some(match (attribute.kind, given) {
        (Kind::Bool(_), Some(Raw::Bool(value))) => Value::Bool(*value),
        (Kind::Bool(default), None) => Value::Bool(default),
        (Kind::Bool(_), Some(other)) => return invalid!("{op}: '{name}' must be true or false, got {other}"),
        (Kind::Int(_), Some(Raw::Number(value))) => Value::Int(integer(op, name, *value)?),
        (Kind::Int(Some(default)), None) => Value::Int(default),
        (Kind::Int(None), None) => return invalid!("{op}: option '{name}' is required"),
        (Kind::Int(_), Some(other)) => return invalid!("{op}: '{name}' must be an integer, got {other}"),
        (Kind::Ints, Some(Raw::List(values))) => {
            Value::Ints(values.iter().map(|value| integer(op, name, *value)).collect::<Result<_>>()?)
        }
        (Kind::Ints, None) => return Ok(None),
        (Kind::Ints, Some(other)) => {
            return invalid!("{op}: '{name}' must be a list of integers, got {other}");
        }
        (Kind::Floats, Some(Raw::List(values))) => Value::Floats(values.clone()),
        (Kind::Floats, None) => return Ok(None),
        (Kind::Floats, Some(other)) => {
            return invalid!("{op}: '{name}' must be a list of numbers, got {other}");
        }
        (Kind::Float(_), Some(Raw::Number(value))) => Value::Float(*value),
        (Kind::Float(default), None) => Value::Float(default),
        (Kind::Float(_), Some(other)) => return invalid!("{op}: '{name}' must be a number, got {other}"),
        (Kind::Choice(words), None) => Value::Choice(words[0]),
        (Kind::Choice(words), Some(given)) => Value::Choice(word(op, name, words, given)?),
        (Kind::Words(_), None) => return Ok(None),
        // An empty list holds no strings for its caller to be told by.
        (Kind::Words(_), Some(Raw::List(values))) if values.is_empty() => Value::Names(Vec::new()),
        (Kind::Words(words), Some(Raw::Names(names))) => {
            for given in names {
                word(op, name, words, &Raw::Text(given.clone()))?;
            }
            Value::Names(names.clone())
        }
        (Kind::Words(_), Some(other)) => {
            return invalid!("{op}: '{name}' must be a list of strings, got {other}");
        }
        (Kind::Text, Some(Raw::Text(text))) => Value::Text(text.clone()),
        (Kind::Text, Some(other)) => return invalid!("{op}: '{name}' must be a string, got {other}"),
        (Kind::Names, Some(Raw::Names(names))) => Value::Names(names.clone()),
        (Kind::Names, Some(other)) => {
            return invalid!("{op}: '{name}' must be a list of strings, got {other}");
        }
        (Kind::Text | Kind::Names, None) => return invalid!("{op}: '{name}' is missing"),
        (Kind::Type { required: true }, None) => return invalid!("{op}: option '{name}' is required"),
        (Kind::Type { required: false }, None) => return Ok(None),
        (Kind::Type { .. }, Some(given)) => Value::Type(element_type(op, name, given)?),
    }))
}

fn integer(op: &str, name: &str, value: f64) -> Result<i64> {
    if value.fract() != 0.0 || value.abs() > 9_007_199_254_740_991.0 {
        return invalid!("{op}: '{name}' must hold whole numbers, got {value}");
    }
    Ok(value as i64)
}

fn word(op: &str, name: &str, words: &'static [&'static str], given: &Raw) -> Result<&'static str> {
    if let Raw::Text(text) = given
        && let Some(word) = words.iter().find(|word| *word == text)
    {
        return Ok(word);
    }
    let list = words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(", ");
    invalid!("{op}: '{name}' must be one of {list}, got {given}")
}

fn element_type(op: &str, name: &str, given: &Raw) -> Result<DType> {
    if let Raw::Text(text) = given
        && let Some(dtype) = DType::from_name(text)
    {
        return Ok(dtype);
    }
    let list = DTYPES.iter().map(|row| row.name).collect::<Vec<_>>().join(", ");
    invalid!("{op}: '{name}' must be one of {list}, got {given}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guesses_are_close_names_only() {
        assert_eq!(nearest("stride", &["strides", "pads"]), Some("strides"));
        assert_eq!(nearest("transa", &["transA", "transB"]), Some("transA"));
        assert_eq!(nearest("colour", &["strides", "pads"]), None);
        assert_eq!(edits("kitten", "sitting"), 3);
    }
}
