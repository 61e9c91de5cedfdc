//! Matrices: products and determinants.

use super::elementwise::is_float;
use super::layout::transposed;
use super::{OTHER_TYPES, Operator, row, shared};
use crate::graph::host;
use crate::graph::plan::{Operand, Rule, Site};
use crate::ops::{Meta, Raw};
use crate::tensor::Tensor;
use crate::{Error, Result};

pub const ROWS: &[Operator] = &[
    shared("MatMul", "matmul", matmul).on_host(OTHER_TYPES),
    shared("Gemm", "matmul", gemm),
    row("Det", det).on_host(""),
];

fn matmul(site: &mut Site) -> Rule {
    let (a, b) = (site.input(0)?, site.input(1)?);
    let y = of_matrices(a, b, |a, b| match is_float(a.dtype()) {
        true => site.one("matmul", &[a, b], &[]),
        false => whole(site, &a, &b),
    });
    Ok(y?.into())
}

/// A product of matrices, for operands of one dim too: those are rows and columns whose axis goes again.
pub(super) fn of_matrices(
    mut a: Operand,
    mut b: Operand,
    product: impl FnOnce(Operand, Operand) -> Result<Operand>,
) -> Result<Operand> {
    if a.rank() == 0 || b.rank() == 0 {
        let text = format!("matrices are wanted, got dims {:?} and {:?}", a.dims(), b.dims());
        return Err(Error::ShapeMismatch(text));
    }
    let (row, column) = (a.rank() == 1, b.rank() == 1);
    if row {
        a = a.reshape([1, a.dims()[0]])?;
    }
    if column {
        b = b.reshape([b.dims()[0], 1])?;
    }
    let y = product(a, b)?;
    let mut dims = y.dims().to_vec();
    if column {
        dims.pop();
    }
    if row {
        dims.remove(dims.len() - if column { 1 } else { 2 });
    }
    y.reshape(dims)
}

/// Of whole numbers: products of elements and their sums.
fn whole(site: &mut Site, a: &Operand, b: &Operand) -> Result<Operand> {
    let mut order: Vec<i64> = (0..b.rank() as i64).collect();
    order.swap(b.rank() - 2, b.rank() - 1);
    let columns = transposed(site, b, &order)?;
    let with_axis = |operand: &Operand, place: usize| {
        let mut dims = operand.dims().to_vec();
        dims.insert(place, 1);
        operand.reshape(dims)
    };
    let operands = [with_axis(a, a.rank() - 1)?, with_axis(&columns, b.rank() - 2)?];
    let products = site.one("mul", &operands, &[])?;
    super::reduce::sums(site, &products, &[products.rank() - 1])
}

fn gemm(site: &mut Site) -> Rule {
    let (a, b, c) = (site.input(0)?, site.input(1)?, site.optional(2));
    let options = [
        ("transA", Raw::Bool(site.node.flag("transA", false)?)),
        ("transB", Raw::Bool(site.node.flag("transB", false)?)),
        ("alpha", Raw::Number(site.node.float("alpha", 1.0)?)),
        ("beta", Raw::Number(site.node.float("beta", 1.0)?)),
    ];
    Ok(site.call_with("matmul", &[Some(a), Some(b), c], &options)?.into())
}

fn det(site: &mut Site) -> Rule {
    let x = site.input(0)?;
    let [lead @ .., rows, columns] = x.dims() else {
        return Err(Error::ShapeMismatch(format!("matrices are wanted, got dims {:?}", x.dims())).into());
    };
    if rows != columns {
        return Err(
            Error::ShapeMismatch(format!("square matrices are wanted, got dims {:?}", x.dims())).into()
        );
    }
    let output = Meta::new(x.dtype(), lead);
    let meta = output.clone();
    let form = move |inputs: &[Option<Tensor>]| host::det(inputs, &meta);
    Ok(site.host("det", &[x], vec![output], form)?.into())
}
