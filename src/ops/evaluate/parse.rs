//! Expressions from text, by precedence climbing.

use super::expression::{Expression, Term};
use super::lexer::{Lexer, Token};
use crate::cpu::scalar::FUNCTIONS;
use crate::ops::{Kind, Raw, nearest, unary};
use crate::{Error, Result};

/// Bytes of the longest text.
pub const MOST_BYTES: usize = 10_000;
/// Parentheses, calls and signs within each other.
pub const MOST_DEPTH: usize = 100;

/// Operators of two operands: what they are written as, how tightly they bind, the function. From looser to tighter;
/// signs bind between `*` and `**`, which is the only one that groups from the right.
const OPERATORS: &[(&str, u8, &str)] = &[
    ("||", 1, "or"),
    ("&&", 2, "and"),
    ("==", COMPARISON, "equal"),
    ("!=", COMPARISON, "notEqual"),
    ("<", COMPARISON, "less"),
    ("<=", COMPARISON, "lessOrEqual"),
    (">", COMPARISON, "greater"),
    (">=", COMPARISON, "greaterOrEqual"),
    ("+", 4, "add"),
    ("-", 4, "sub"),
    ("*", 5, "mul"),
    ("/", 5, "div"),
    ("**", POWER, "pow"),
];
const COMPARISON: u8 = 3;
const SIGN: u8 = 6;
const POWER: u8 = 7;

/// Numbers that have names.
const NAMED: &[(&str, f64)] = &[("Infinity", f64::INFINITY), ("NaN", f64::NAN), ("pi", std::f64::consts::PI)];

/// Functions that are written by name beside those of one operand.
const CALLED: &[&str] = &["add", "sub", "mul", "div", "pow", "max", "min", "where"];

/// The expression that a text stands for; `names` are the operands' in order.
pub fn parse(text: &str, names: &[String]) -> Result<Expression> {
    if text.len() > MOST_BYTES {
        return Err(Error::InvalidArgument(format!(
            "evaluate: 'expression' must have at most {MOST_BYTES} bytes, got {}",
            text.len()
        )));
    }
    let mut parser = Parser { lexer: Lexer::new(text)?, names, expression: Expression::default(), depth: 0 };
    let result = parser.binary(0)?;
    if parser.lexer.token() != Token::End {
        return parser.expected("an operator or the end");
    }
    parser.expression.finish(result)
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    names: &'a [String],
    expression: Expression,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn expected<T>(&self, what: &str) -> Result<T> {
        self.lexer.fail(&format!("expected {what}, got {}", self.lexer.token()))
    }

    /// Operands joined by operators that bind at least so tightly.
    fn binary(&mut self, least: u8) -> Result<Term> {
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            return self.lexer.fail(&format!("more than {MOST_DEPTH} parts within each other"));
        }
        let mut left = self.signed()?;
        while let Some(&(word, level, function)) = self.operator().filter(|(_, level, _)| *level >= least) {
            self.lexer.advance()?;
            let right = self.binary(if level == POWER { POWER } else { level + 1 })?;
            left = self.expression.apply(function, &[left, right], &[])?;
            if level == COMPARISON && self.operator().is_some_and(|next| next.1 == COMPARISON) {
                return self
                    .lexer
                    .fail(&format!("'{word}' and {} cannot follow each other; use &&", self.lexer.token()));
            }
        }
        self.depth -= 1;
        Ok(left)
    }

    fn operator(&self) -> Option<&'static (&'static str, u8, &'static str)> {
        let Token::Sign(word) = self.lexer.token() else { return None };
        OPERATORS.iter().find(|operator| operator.0 == word)
    }

    /// An operand behind any number of signs.
    fn signed(&mut self) -> Result<Term> {
        let Token::Sign(sign @ ("-" | "+" | "!")) = self.lexer.token() else { return self.primary() };
        self.lexer.advance()?;
        let term = self.binary(SIGN)?;
        match sign {
            "-" => self.expression.apply("neg", &[term], &[]),
            "!" => self.expression.apply("equal", &[term, Term::Number(0.0)], &[]),
            _ => Ok(term),
        }
    }

    fn primary(&mut self) -> Result<Term> {
        match self.lexer.token() {
            Token::Number(number) => {
                self.lexer.advance()?;
                Ok(Term::Number(number))
            }
            Token::Sign("(") => {
                self.lexer.advance()?;
                let term = self.binary(0)?;
                self.close()?;
                Ok(term)
            }
            Token::Name(name) => {
                let start = self.lexer.clone();
                self.lexer.advance()?;
                if self.lexer.token() == Token::Sign("(") {
                    self.call(name, &start)
                } else {
                    self.named(name, &start)
                }
            }
            _ => self.expected("an operand"),
        }
    }

    fn close(&mut self) -> Result<()> {
        match self.lexer.token() {
            Token::Sign(")") => self.lexer.advance(),
            _ => self.expected("')'"),
        }
    }

    fn named(&mut self, name: &'a str, start: &Lexer) -> Result<Term> {
        if let Some(index) = self.names.iter().position(|known| known == name) {
            return self.expression.input(index);
        }
        if let Some((_, number)) = NAMED.iter().find(|(known, _)| *known == name) {
            return Ok(Term::Number(*number));
        }
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        unknown(start, "operand", name, &names)
    }

    /// A function's operands and attributes, from its parenthesis on.
    fn call(&mut self, name: &'a str, start: &Lexer) -> Result<Term> {
        let unary = unary::OPS.iter().find(|spec| spec.name == name);
        if unary.is_none() && !CALLED.contains(&name) {
            let known: Vec<&str> =
                unary::OPS.iter().map(|spec| spec.name).chain(CALLED.iter().copied()).collect();
            return unknown(start, "function", name, &known);
        }
        let wanted =
            FUNCTIONS.iter().find(|function| function.name == name).map_or(1, |function| function.operands);
        let (mut operands, mut options) = (Vec::new(), Vec::new());
        self.lexer.advance()?;
        while self.lexer.token() != Token::Sign(")") {
            if !operands.is_empty() || !options.is_empty() {
                match self.lexer.token() {
                    Token::Sign(",") => self.lexer.advance()?,
                    _ => return self.expected("',' or ')'"),
                }
            }
            match unary {
                Some(spec) if operands.len() == wanted => options.push(self.attribute(spec, options.len())?),
                _ => operands.push(self.binary(0)?),
            }
        }
        if operands.len() != wanted {
            return start.fail(&format!("'{name}' takes {wanted} operands, got {}", operands.len()));
        }
        self.lexer.advance()?;
        let term = match unary {
            Some(_) => self.expression.unary(name, operands[0], &options),
            None => self.expression.apply(name, &operands, &[]),
        };
        term.or_else(|error| start.fail(&error.to_string()))
    }

    /// `name = value`, or the value of the next attribute in order.
    fn attribute(&mut self, spec: &crate::ops::OpSpec, given: usize) -> Result<(String, Raw)> {
        let start = self.lexer.clone();
        if let Token::Name(name) = self.lexer.token() {
            self.lexer.advance()?;
            if self.lexer.token() == Token::Sign("=") {
                self.lexer.advance()?;
                return Ok((name.to_string(), self.attribute_value()?));
            }
            self.lexer = start.clone();
        }
        let Some(attribute) = spec.attributes.get(given) else {
            return start.fail(&format!("'{}' takes {} attributes", spec.name, spec.attributes.len()));
        };
        let value = self.attribute_value()?;
        if let (Kind::Choice(_), Raw::Number(_)) = (attribute.kind, &value) {
            return start.fail(&format!(
                "attribute '{}' of '{}' must be a word in quotes",
                attribute.name, spec.name
            ));
        }
        Ok((attribute.name.to_string(), value))
    }

    fn attribute_value(&mut self) -> Result<Raw> {
        let start = self.lexer.clone();
        if let Token::Text(text) = self.lexer.token() {
            self.lexer.advance()?;
            return Ok(Raw::Text(text.to_string()));
        }
        match self.binary(0)? {
            Term::Number(number) => Ok(Raw::Number(number)),
            Term::Step(_) => start.fail("an attribute must be a number, without operands"),
        }
    }
}

fn unknown<T>(start: &Lexer, kind: &str, name: &str, known: &[&str]) -> Result<T> {
    let hint = match nearest(name, known) {
        Some(guess) => format!("did you mean '{guess}'?"),
        None => format!("there are {}", known.join(", ")),
    };
    start.fail(&format!("unknown {kind} {}, {hint}", Token::Name(name)))
}
