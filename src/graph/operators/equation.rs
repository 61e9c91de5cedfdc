//! Equations of einsum: what each axis of each term is called.

use crate::error::quoted;
use crate::{Error, Result};

/// An axis of an equation: a letter, or an axis of the ellipsis counted from its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Label {
    /// An axis of the ellipsis.
    Ellipsis(usize),
    /// A letter.
    Letter(char),
}

/// Labels of each operand and of the result.
pub fn parse(equation: &str, ranks: &[usize]) -> Result<(Vec<Vec<Label>>, Vec<Label>)> {
    let wrong = |why: &str| Error::InvalidModel(format!("equation {}: {why}", quoted(equation)));
    let text: String = equation.chars().filter(|it| !it.is_whitespace()).collect();
    let (left, right) = match text.split_once("->") {
        Some((left, right)) => (left, Some(right)),
        None => (&text[..], None),
    };
    let words: Vec<&str> = left.split(',').collect();
    if words.len() != ranks.len() {
        return Err(wrong(&format!("has {} terms for {} operands", words.len(), ranks.len())));
    }
    let mut inputs = Vec::new();
    for (word, &rank) in words.iter().zip(ranks) {
        inputs
            .push(labels(word, |letters| rank.checked_sub(letters)).ok_or_else(|| {
                wrong(&format!("the term '{word}' does not fit an operand of rank {rank}"))
            })?);
    }
    if let Some(at) = inputs.iter().zip(ranks).position(|(labels, &rank)| labels.len() != rank) {
        return Err(wrong(&format!(
            "the term '{}' does not fit an operand of rank {}",
            words[at], ranks[at]
        )));
    }
    let all = || inputs.iter().flatten();
    let ellipsis =
        all().filter_map(|label| if let Label::Ellipsis(at) = label { Some(at + 1) } else { None });
    let ellipsis = ellipsis.max().unwrap_or(0);
    let output = match right {
        Some(word) => {
            labels(word, |_| Some(ellipsis)).ok_or_else(|| wrong("its result is not well formed"))?
        }
        None => {
            let mut letters: Vec<Label> =
                all().copied().filter(|it| matches!(it, Label::Letter(_))).collect();
            letters.retain(|letter| all().filter(|it| *it == letter).count() == 1);
            letters.sort();
            (0..ellipsis).rev().map(Label::Ellipsis).chain(letters).collect()
        }
    };
    let known = |label: &Label| all().any(|it| it == label);
    let twice = |label: &Label| output.iter().filter(|it| *it == label).count() > 1;
    if output.iter().any(|label| !known(label) || twice(label)) {
        return Err(wrong("each label of the result must stand there once and in an operand"));
    }
    Ok((inputs, output))
}

/// Labels of a term, whose ellipsis has as many axes as `rest` says for the number of letters.
fn labels(word: &str, rest: impl Fn(usize) -> Option<usize>) -> Option<Vec<Label>> {
    let letters = |part: &str| {
        part.chars()
            .map(|it| it.is_ascii_alphabetic().then_some(Label::Letter(it)))
            .collect::<Option<Vec<_>>>()
    };
    let Some((before, behind)) = word.split_once("...") else { return letters(word) };
    let (mut labels, behind) = (letters(before)?, letters(behind)?);
    let count = rest(labels.len() + behind.len())?;
    labels.extend((0..count).rev().map(Label::Ellipsis));
    labels.extend(behind);
    Some(labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(equation: &str, ranks: &[usize]) -> Result<String> {
        let word = |labels: Vec<Label>| {
            let letter = |label| match label {
                Label::Letter(it) => it.to_string(),
                Label::Ellipsis(at) => at.to_string(),
            };
            labels.into_iter().map(letter).collect::<String>()
        };
        let (inputs, output) = parse(equation, ranks)?;
        let inputs: Vec<_> = inputs.into_iter().map(word).collect();
        Ok(format!("{}->{}", inputs.join(","), word(output)))
    }

    #[test]
    fn equations() {
        assert_eq!(words("ij, jk", &[2, 2]).unwrap(), "ij,jk->ik");
        assert_eq!(words("b a", &[2]).unwrap(), "ba->ab");
        assert_eq!(words("...ii->...i", &[4]).unwrap(), "10ii->10i");
        assert_eq!(words("i...,...", &[2, 3]).unwrap(), "i0,210->210i");
        assert_eq!(words("ij->", &[2]).unwrap(), "ij->");
        for (equation, ranks) in [
            ("ij", &[3][..]),
            ("ij,k", &[2]),
            ("i->j", &[1]),
            ("i->ii", &[1]),
            ("i1", &[2]),
            ("i...->i", &[0]),
            ("i..", &[3]),
        ] {
            assert_eq!(words(equation, ranks).unwrap_err().code(), "INVALID_MODEL", "{equation}");
        }
    }
}
