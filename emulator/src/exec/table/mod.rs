//! Every instruction that the emulator knows: its names, the classes of its operands, its handler.

mod compare;
mod convert;
mod float;
mod half;
mod integer;
pub mod matrix;
pub mod memory;
mod rounded;
pub mod warp;

use super::inst::{Class, Handler, Signature};
use std::collections::HashMap;
use std::sync::OnceLock;

/// One instruction, or several that do the same.
pub struct Row {
    /// Full names, split by spaces.
    pub names: &'static str,
    /// Classes of results and sources: `w` 32 bits, `d` 64, `h` 16, `p` predicate; `w:ww`.
    pub form: &'static str,
    pub run: Handler,
}

pub const fn row(names: &'static str, form: &'static str, run: Handler) -> Row {
    Row { names, form, run }
}

fn rows() -> impl Iterator<Item = &'static Row> {
    [
        integer::ROWS,
        integer::CARRY,
        float::BINARY,
        float::TERNARY,
        float::APPROXIMATE,
        float::EXACT,
        float::DOUBLE,
        float::CLASSES,
        rounded::SINGLE,
        rounded::DOUBLE,
        half::ARITHMETIC,
        half::OTHERS,
        half::APPROXIMATE,
        half::PAIRS,
        compare::INTEGER,
        convert::ROWS,
        warp::ROWS,
        matrix::ROWS,
    ]
    .into_iter()
    .flatten()
    .chain(compare::floats())
}

/// The row of an instruction's full name.
pub fn find(name: &str) -> Option<&'static Row> {
    static INDEX: OnceLock<HashMap<&'static str, &'static Row>> = OnceLock::new();
    let index = INDEX.get_or_init(|| {
        rows().flat_map(|row| row.names.split_whitespace().map(move |name| (name, row))).collect()
    });
    index.get(name).copied()
}

/// The letters of a form: results, then sources.
pub fn letters(form: &'static str) -> (&'static [u8], &'static [u8]) {
    let (d, s) = form.split_once(':').unwrap_or((form, ""));
    (d.as_bytes(), s.as_bytes())
}

pub fn class(letter: u8) -> Class {
    match letter {
        b'd' => Class::D,
        b'p' => Class::P,
        b'w' | b'h' => Class::W,
        _ => Class::None,
    }
}

/// Bits of the register that a letter asks for.
pub fn bits(letter: u8) -> u32 {
    match letter {
        b'd' => 64,
        b'w' => 32,
        b'h' => 16,
        _ => 1,
    }
}

pub fn signature(form: &'static str) -> Signature {
    let (d, s) = letters(form);
    let mut signature = Signature::default();
    for (to, &letter) in signature.d.iter_mut().zip(d) {
        *to = class(letter);
    }
    for (to, &letter) in signature.s.iter_mut().zip(s) {
        *to = class(letter);
    }
    signature
}

pub use convert::{Conversion, generic as generic_convert};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_forms_known() {
        let mut seen = std::collections::HashSet::new();
        for row in rows() {
            let (d, s) = letters(row.form);
            assert!(d.len() <= 4 && s.len() <= 5, "{}", row.names);
            assert!(d.iter().chain(s).all(|&letter| class(letter) != Class::None), "{}", row.names);
            for name in row.names.split_whitespace() {
                assert!(seen.insert(name), "{name} twice");
            }
        }
        assert!(seen.len() > 500, "{}", seen.len());
    }
}
