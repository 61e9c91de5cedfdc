//! Names of rules and options, and what is said where one is not known.

use super::table::{PRES, RULES, Rule};
use crate::ops::{Attribute, Raw, nearest};
use crate::{Result, invalid};

/// Options beside those of the tables.
const OTHERS: &[&str] = &["rule", "pre"];

/// The row of a table that a word names.
pub fn find<R>(
    word: Option<&Raw>,
    option: &str,
    table: &'static [R],
    name: fn(&R) -> &'static str,
) -> Result<&'static R> {
    let known: Vec<&str> = table.iter().map(name).collect();
    let list = known.join(", ");
    match word {
        Some(Raw::Text(word)) => match table.iter().find(|row| name(row) == word) {
            Some(row) => Ok(row),
            None => {
                let hint = nearest(word, &known).map(|guess| format!(", did you mean '{guess}'?"));
                let hint = hint.unwrap_or_else(|| format!("; known: {list}"));
                invalid!("aggregate: '{option}' knows no '{}'{hint}", word.escape_debug())
            }
        },
        Some(other) => invalid!("aggregate: '{option}' must be one of {list}, got {other}"),
        None => invalid!("aggregate: option '{option}' is required, one of {list}"),
    }
}

/// One word or a list of them.
pub fn words(raw: Option<&Raw>) -> Result<Vec<String>> {
    match raw {
        None => Ok(Vec::new()),
        Some(Raw::Text(word)) => Ok(vec![word.clone()]),
        Some(Raw::Names(words)) => Ok(words.clone()),
        Some(Raw::List(none)) if none.is_empty() => Ok(Vec::new()),
        Some(other) => invalid!("aggregate: 'pre' must be a name or a list of names, got {other}"),
    }
}

/// An error for the first option that neither the rule nor its pre-aggregations take.
pub fn check_names<'a>(
    raw: &[(String, Raw)],
    rule: &Rule,
    own: impl Iterator<Item = &'a Attribute>,
) -> Result<()> {
    let known: Vec<&str> = OTHERS.iter().copied().chain(own.map(|attribute| attribute.name)).collect();
    let Some((name, _)) = raw.iter().find(|(name, _)| !known.contains(&name.as_str())) else { return Ok(()) };
    let anywhere =
        RULES.iter().flat_map(|rule| rule.parameters).chain(PRES.iter().flat_map(|pre| pre.parameters));
    if anywhere.map(|attribute| attribute.name).any(|other| other == name) {
        return invalid!("aggregate: '{}' takes no '{name}'; its options: {}", rule.name, known.join(", "));
    }
    match nearest(name, &known) {
        Some(guess) => invalid!("aggregate: unknown option '{name}', did you mean '{guess}'?"),
        None => {
            invalid!("aggregate: unknown option '{name}'; options of '{}': {}", rule.name, known.join(", "))
        }
    }
}

/// Names that may stand for each other, in quotes.
pub fn quoted_words(need: &str) -> String {
    need.split(" or ").map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" or ")
}

/// A number as JavaScript writes it.
pub fn shown(value: f64) -> String {
    if value.is_infinite() {
        format!("{}Infinity", if value < 0.0 { "-" } else { "" })
    } else {
        value.to_string()
    }
}
