//! How exact float32 products are: the common option `precision`.

use super::Raw;
use crate::{Result, invalid};

/// From what a caller gives up to what the hardware then does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// Errors of a float32 sum, by whichever route is fastest. Results of 16 bits from operands of 16 bits are rounded
    /// from sums that the tensor core keeps, as at `High`.
    #[default]
    Highest,
    /// Operands of 11 bits, summed in the tensor core's float32, which truncates: up to 2^-13 of the magnitudes for the
    /// longest sums that stay there.
    High,
    /// As `High` today.
    Medium,
    /// One float32 multiply-add after the other.
    Strict,
}

const WORDS: [(&str, Precision); 4] = [
    ("highest", Precision::Highest),
    ("high", Precision::High),
    ("medium", Precision::Medium),
    ("strict", Precision::Strict),
];

impl Precision {
    /// The option's name.
    pub const OPTION: &'static str = "precision";

    /// The precision that a call's options ask for.
    pub fn of(op: &str, options: &[(String, Raw)]) -> Result<Precision> {
        let Some((_, given)) = options.iter().find(|(name, _)| name == Precision::OPTION) else {
            return Ok(Precision::default());
        };
        let found = WORDS.iter().find(|(word, _)| matches!(given, Raw::Text(text) if text == word));
        match found {
            Some((_, precision)) => Ok(*precision),
            None => {
                let words = WORDS.map(|(word, _)| word).join(", ");
                invalid!("{op}: 'precision' must be one of {words}, got {given}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_nothing_else() {
        let of = |raw: Raw| Precision::of("matmul", &[("precision".to_string(), raw)]);
        assert_eq!(Precision::of("matmul", &[]).unwrap(), Precision::Highest);
        assert_eq!(of(Raw::Text("strict".into())).unwrap(), Precision::Strict);
        assert_eq!(
            of(Raw::Text("low".into())).unwrap_err().to_string(),
            "matmul: 'precision' must be one of highest, high, medium, strict, got 'low'"
        );
        assert_eq!(of(Raw::Number(1.0)).unwrap_err().code(), "INVALID_ARGUMENT");
    }
}
