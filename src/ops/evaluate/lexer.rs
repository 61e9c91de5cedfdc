//! Tokens of an expression.

use crate::{Error, Result};
use std::fmt;

/// Signs, longer ones first.
const SIGNS: &[&str] =
    &["**", "||", "&&", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "!", "(", ")", ",", "="];

/// Characters of a token that a message quotes.
const QUOTED: usize = 40;

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Token<'a> {
    Number(f64),
    /// An operand, a function or an attribute.
    Name(&'a str),
    /// Text in quotes.
    Text(&'a str),
    Sign(&'static str),
    End,
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Number(number) => write!(f, "{number}"),
            Token::Name(text) | Token::Text(text) if text.len() > QUOTED => {
                write!(f, "'{}...'", text.chars().take(QUOTED).collect::<String>())
            }
            Token::Name(text) | Token::Text(text) | Token::Sign(text) => write!(f, "'{text}'"),
            Token::End => f.write_str("the end"),
        }
    }
}

/// A place in a text, and the token there.
#[derive(Debug, Clone)]
pub struct Lexer<'a> {
    text: &'a str,
    /// Where the token begins and ends, in bytes.
    start: usize,
    end: usize,
    token: Token<'a>,
}

impl<'a> Lexer<'a> {
    /// At the first token.
    pub fn new(text: &'a str) -> Result<Lexer<'a>> {
        let mut lexer = Lexer { text, start: 0, end: 0, token: Token::End };
        lexer.advance()?;
        Ok(lexer)
    }

    pub fn token(&self) -> Token<'a> {
        self.token
    }

    /// An error at this token, whose position counts from 0 in units of JavaScript strings.
    pub fn fail<T>(&self, message: &str) -> Result<T> {
        let position = self.text[..self.start].encode_utf16().count();
        Err(Error::InvalidArgument(format!("evaluate: 'expression' at position {position}: {message}")))
    }

    /// On to the next token.
    pub fn advance(&mut self) -> Result<()> {
        let rest = self.text[self.end..].trim_start();
        self.start = self.text.len() - rest.len();
        let Some(first) = rest.chars().next() else {
            (self.end, self.token) = (self.text.len(), Token::End);
            return Ok(());
        };
        let length = match first {
            'a'..='z' | 'A'..='Z' | '_' => {
                let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                self.token = Token::Name(&rest[..length]);
                length
            }
            '0'..='9' | '.' => self.number(rest)?,
            '\'' | '"' => {
                let Some(length) = rest[1..].find(first) else {
                    return self.fail("the quotes are not closed");
                };
                self.token = Token::Text(&rest[1..=length]);
                length + 2
            }
            _ => match SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
                Some(sign) => {
                    self.token = Token::Sign(sign);
                    sign.len()
                }
                None => {
                    return self.fail(&format!(
                        "expected an operand or an operator, got '{}'",
                        first.escape_debug()
                    ));
                }
            },
        };
        self.end = self.start + length;
        Ok(())
    }

    fn number(&mut self, rest: &str) -> Result<usize> {
        let mut length = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let exponent = rest[length..].strip_prefix(['e', 'E']);
        if let Some(exponent) = exponent {
            let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            let count = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
            length = rest.len() - digits.len() + count;
        }
        let word =
            rest[length..].find(|c| !is_word(c) && c != '.').map_or(rest, |more| &rest[..length + more]);
        match word.parse() {
            Ok(number) if word.len() == length => {
                self.token = Token::Number(number);
                Ok(length)
            }
            _ => self.fail(&format!("expected a number, got {}", Token::Name(word))),
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Whether a name can be that of an operand.
pub fn is_name(name: &str) -> bool {
    name.chars().all(is_word) && !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit())
}
