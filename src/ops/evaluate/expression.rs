//! Expressions as lists of steps, in which equal parts are one.

use crate::cpu::scalar::{Blocks, Function};
use crate::kernels::fused::Step;
use crate::ops::{Attrs, Raw, unary};
use crate::{Result, invalid};

/// Steps of an expression. A kernel of so many takes seconds to compile.
pub const MOST_STEPS: usize = 256;
/// Operands of an expression.
pub const MOST_INPUTS: usize = 32;
/// Different numbers of an expression.
pub const MOST_NUMBERS: usize = 64;

/// A part of an expression.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Term {
    /// A number, in float64 until it meets an operand.
    Number(f64),
    /// The result of that step.
    Step(usize),
}

/// An expression over operands that are known by position. The last step is its result.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Expression {
    steps: Vec<Step>,
    numbers: Vec<f64>,
}

impl Expression {
    /// One device function of operands, then of numbers.
    pub fn of_function(function: &'static str, operands: usize, numbers: &[f64]) -> Expression {
        let mut steps: Vec<Step> = (0..operands).map(Step::Input).collect();
        steps.extend((0..numbers.len()).map(Step::Number));
        steps.push(Step::Apply(function, (0..steps.len()).collect()));
        Expression { steps, numbers: numbers.to_vec() }
    }

    /// The steps.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The numbers that steps refer to.
    pub fn numbers(&self) -> &[f64] {
        &self.numbers
    }

    /// Whether that operand occurs.
    pub fn reads(&self, input: usize) -> bool {
        self.steps.contains(&Step::Input(input))
    }

    /// The operand at that position.
    pub fn input(&mut self, index: usize) -> Result<Term> {
        self.step(Step::Input(index)).map(Term::Step)
    }

    /// An op of one operand with its attributes.
    pub fn unary(&mut self, op: &str, x: Term, options: &[(String, Raw)]) -> Result<Term> {
        let Some(spec) = unary::OPS.iter().find(|spec| spec.name == op) else {
            return invalid!("evaluate: no function '{op}' of one operand");
        };
        let attrs = Attrs::parse(spec, options)?;
        let parameters: Vec<f64> = unary::numbers_of(spec, &attrs).collect();
        self.apply(unary::function_of(spec, &attrs), &[x], &parameters)
    }

    /// A function of the table of scalar functions. Of numbers alone it is worked out here, in float64.
    pub fn apply(&mut self, name: &str, operands: &[Term], parameters: &[f64]) -> Result<Term> {
        let Some(function) = Function::find(name).filter(|function| function.operands == operands.len())
        else {
            return invalid!("evaluate: no function '{name}' of {} operands", operands.len());
        };
        if let Some(number) = folded(function, operands, parameters) {
            return Ok(Term::Number(number));
        }
        let all = operands.iter().copied().chain(parameters.iter().map(|&number| Term::Number(number)));
        let positions = all.map(|term| self.position(term)).collect::<Result<_>>()?;
        self.step(Step::Apply(function.name, positions)).map(Term::Step)
    }

    /// Makes that part the result.
    pub fn finish(mut self, result: Term) -> Result<Expression> {
        let last = self.position(result)?;
        self.steps.truncate(last + 1);
        Ok(self)
    }

    fn position(&mut self, term: Term) -> Result<usize> {
        let number = match term {
            Term::Step(position) => return Ok(position),
            Term::Number(number) => number,
        };
        let known = self.numbers.iter().position(|known| known.to_bits() == number.to_bits());
        let index = known.unwrap_or(self.numbers.len());
        if index == MOST_NUMBERS {
            return invalid!("evaluate: the expression holds more than {MOST_NUMBERS} different numbers");
        }
        if known.is_none() {
            self.numbers.push(number);
        }
        self.step(Step::Number(index))
    }

    fn step(&mut self, step: Step) -> Result<usize> {
        if let Some(position) = self.steps.iter().position(|known| *known == step) {
            return Ok(position);
        }
        if self.steps.len() == MOST_STEPS {
            return invalid!("evaluate: the expression has more than {MOST_STEPS} different parts");
        }
        self.steps.push(step);
        Ok(self.steps.len() - 1)
    }
}

/// The function of numbers, where all operands are.
fn folded(function: &Function, operands: &[Term], parameters: &[f64]) -> Option<f64> {
    let (mut numbers, mut constant) = ([[0.0]; 3], [0.0; 2]);
    for (slot, operand) in numbers.iter_mut().zip(operands) {
        let Term::Number(number) = operand else { return None };
        *slot = [*number];
    }
    constant.iter_mut().zip(parameters).for_each(|(slot, &parameter)| *slot = parameter);
    let [a, b, c] = &numbers;
    let mut result = [0.0];
    f64::block(function)(&mut result, [a, b, c], constant);
    Some(result[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_parts_are_one_step() {
        let mut expression = Expression::default();
        let (a, b) = (expression.input(0).unwrap(), expression.input(1).unwrap());
        let sum = expression.apply("add", &[a, b], &[]).unwrap();
        let again = expression.apply("add", &[a, b], &[]).unwrap();
        assert_eq!(sum, again);
        let half = expression.apply("mul", &[sum, Term::Number(0.5)], &[]).unwrap();
        let same = expression.apply("mul", &[again, Term::Number(0.5)], &[]).unwrap();
        assert_eq!(half, same);
        expression.apply("add", &[half, a], &[]).unwrap();
        let expression = expression.finish(half).unwrap();
        assert_eq!(expression.steps().len(), 5);
        assert_eq!(expression.numbers(), [0.5]);
        assert!(expression.reads(1) && !expression.reads(2));
    }

    #[test]
    fn numbers_alone_are_worked_out() {
        let mut expression = Expression::default();
        let third = expression.apply("div", &[Term::Number(1.0), Term::Number(3.0)], &[]).unwrap();
        assert_eq!(third, Term::Number(1.0 / 3.0));
        let options = [("alpha".to_string(), Raw::Number(0.5))];
        assert_eq!(expression.unary("leakyRelu", Term::Number(-2.0), &options).unwrap(), Term::Number(-1.0));
        assert!(
            expression.unary("median", third, &[]).is_err()
                && expression.apply("add", &[third], &[]).is_err()
        );
        assert!(expression.steps().is_empty());
    }

    #[test]
    fn expressions_end_somewhere() {
        let mut expression = Expression::default();
        let mut term = expression.input(0).unwrap();
        let message = loop {
            match expression.apply("exp", &[term], &[]) {
                Ok(next) => term = next,
                Err(error) => break error.to_string(),
            }
        };
        assert_eq!((expression.steps().len(), message.contains("256")), (MOST_STEPS, true));
    }
}
