//! Matrices: products and determinants.

use super::{Operator, row};
use crate::graph::host;
use crate::graph::plan::{Rule, Site};
use crate::ops::{Meta, Raw};
use crate::{Error, tensor::Tensor};

pub const ROWS: &[Operator] = &[row("MatMul", matmul), row("Gemm", gemm), row("Det", det)];

/// Operands of one dim are rows and columns whose axis goes again.
fn matmul(site: &mut Site) -> Rule {
    let (mut a, mut b) = (site.input(0)?, site.input(1)?);
    let (row, column) = (a.rank() == 1, b.rank() == 1);
    if row {
        a = a.reshape([1, a.dims()[0]])?;
    }
    if column {
        b = b.reshape([b.dims()[0], 1])?;
    }
    let y = site.one("matmul", &[a, b], &[])?;
    let mut dims = y.dims().to_vec();
    if column {
        dims.pop();
    }
    if row {
        dims.remove(dims.len() - if column { 1 } else { 2 });
    }
    Ok(y.reshape(dims)?.into())
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
