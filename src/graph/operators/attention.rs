//! Attention and recurrent layers.

use super::Operator;

pub const ROWS: &[Operator] = &[];
