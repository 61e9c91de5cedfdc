//! Einsum, as diagonals, products of pairs, sums and transpositions.

use super::elementwise::is_float;
use super::equation::{Label, parse};
use super::layout::transposed;
use super::{OTHER_TYPES, Operator, shared};
use crate::graph::plan::{Operand, Rule, Site};
use crate::ops::Raw;
use crate::{Error, Result};

pub const ROWS: &[Operator] = &[shared("Einsum", "matmul", einsum).on_host(OTHER_TYPES)];

/// An operand with its axes' labels.
#[derive(Clone)]
struct Term {
    value: Operand,
    labels: Vec<Label>,
}

fn einsum(site: &mut Site) -> Rule {
    let equation: String = site.node.word("equation", "")?;
    let operands = (0..site.operands().len()).map(|index| site.input(index)).collect::<Result<Vec<_>>>()?;
    let ranks: Vec<usize> = operands.iter().map(Operand::rank).collect();
    let (inputs, output) = parse(&equation, &ranks)?;
    let mut terms = Vec::new();
    for (value, labels) in operands.into_iter().zip(inputs) {
        terms.push(diagonal(site, Term { value, labels })?);
    }
    broadcast(&mut terms, &output)?;
    let mut terms = terms.into_iter();
    let Some(mut result) = terms.next() else {
        return Err(Error::InvalidModel("Einsum has no operands".into()).into());
    };
    let mut later: Vec<Term> = terms.collect();
    while !later.is_empty() {
        let next = later.remove(0);
        let kept =
            |label: &Label| output.contains(label) || later.iter().any(|term| term.labels.contains(label));
        result = pair(site, result, next, kept)?;
    }
    let sum = summed(site, result, |label| output.contains(label))?;
    Ok(arranged(site, &sum, &output)?.into())
}

/// Repeated labels as one axis.
fn diagonal(site: &mut Site, mut term: Term) -> Result<Term> {
    let repeated = |labels: &[Label]| {
        let find = |at: &usize| labels[..*at].iter().position(|label| *label == labels[*at]);
        (0..labels.len()).find_map(|at| Some((find(&at)?, at)))
    };
    while let Some((first, second)) = repeated(&term.labels) {
        let (dims, label) = (term.value.dims().to_vec(), term.labels[first]);
        let side = dims[first];
        if side != dims[second] {
            return Err(Error::ShapeMismatch(format!(
                "a repeated letter stands for {side} and {}",
                dims[second]
            )));
        }
        let others: Vec<usize> = (0..dims.len()).filter(|&axis| axis != first && axis != second).collect();
        let order: Vec<i64> = others.iter().chain(&[first, second]).map(|&axis| axis as i64).collect();
        let moved = transposed(site, &term.value, &order)?;
        let mut flat: Vec<usize> = others.iter().map(|&axis| dims[axis]).collect();
        flat.push(side * side);
        let places = site.list(&(0..side).map(|at| (at * (side + 1)) as i64).collect::<Vec<_>>())?;
        let operands = [moved.reshape(flat)?, places];
        term.value = site.one("gather", &operands, &[("axis", Raw::Number(others.len() as f64))])?;
        term.labels = others.iter().map(|&axis| term.labels[axis]).chain([label]).collect();
    }
    Ok(term)
}

/// Drops axes of one element where other terms have more; an error where terms do not fit.
fn broadcast(terms: &mut [Term], output: &[Label]) -> Result<()> {
    let sizes = |label: Label, terms: &[Term]| {
        let of =
            |term: &Term| term.labels.iter().position(|it| *it == label).map(|axis| term.value.dims()[axis]);
        terms.iter().filter_map(of).find(|&dim| dim != 1).unwrap_or(1)
    };
    for index in 0..terms.len() {
        let term = terms[index].clone();
        let mut kept = Vec::new();
        for (axis, &label) in term.labels.iter().enumerate() {
            let (size, own) = (sizes(label, terms), term.value.dims()[axis]);
            if own != size && own != 1 {
                return Err(Error::ShapeMismatch(format!(
                    "axes of one label have {size} and {own} elements"
                )));
            }
            // Axes of one element that are summed go as well.
            if own == size && (size != 1 || output.contains(&label)) {
                kept.push(axis);
            }
        }
        let dims: Vec<usize> = kept.iter().map(|&axis| term.value.dims()[axis]).collect();
        let labels = kept.iter().map(|&axis| term.labels[axis]).collect();
        terms[index] = Term { value: term.value.reshape(dims)?, labels };
    }
    Ok(())
}

/// Sums over axes that are not kept.
fn summed(site: &mut Site, term: Term, kept: impl Fn(&Label) -> bool) -> Result<Term> {
    let gone = |axis: &usize| !kept(&term.labels[*axis]);
    let places: Vec<usize> = (0..term.labels.len()).filter(gone).collect();
    if places.is_empty() {
        return Ok(term);
    }
    let value = super::reduce::sums(site, &term.value, &places)?;
    Ok(Term { value, labels: term.labels.into_iter().filter(kept).collect() })
}

/// The value with its axes in that order.
fn arranged(site: &mut Site, term: &Term, labels: &[Label]) -> Result<Operand> {
    let place = |label: &Label| term.labels.iter().position(|it| it == label).unwrap_or(0) as i64;
    transposed(site, &term.value, &labels.iter().map(place).collect::<Vec<_>>())
}

/// The product of two terms, summed over what nobody reads any more.
fn pair(site: &mut Site, a: Term, b: Term, kept: impl Fn(&Label) -> bool) -> Result<Term> {
    let a = {
        let other = b.labels.clone();
        summed(site, a, |label| kept(label) || other.contains(label))?
    };
    let b = {
        let other = a.labels.clone();
        summed(site, b, |label| kept(label) || other.contains(label))?
    };
    let both = |label: &&Label| a.labels.contains(label) && b.labels.contains(label);
    let batch: Vec<Label> = a.labels.iter().filter(both).filter(|it| kept(it)).copied().collect();
    let inner: Vec<Label> = a.labels.iter().filter(both).filter(|it| !kept(it)).copied().collect();
    let rows: Vec<Label> = a.labels.iter().filter(|it| !b.labels.contains(it)).copied().collect();
    let columns: Vec<Label> = b.labels.iter().filter(|it| !a.labels.contains(it)).copied().collect();
    let size = |term: &Term, labels: &[Label]| -> usize {
        let dim = |label: &Label| {
            term.labels.iter().position(|it| it == label).map_or(1, |axis| term.value.dims()[axis])
        };
        labels.iter().map(dim).product()
    };
    let sizes = [size(&a, &batch), size(&a, &rows), size(&b, &columns), size(&a, &inner)];
    let labels = [batch.clone(), rows.clone(), columns.clone()].concat();
    let dims: Vec<usize> = labels
        .iter()
        .map(|it| if b.labels.contains(it) { size(&b, &[*it]) } else { size(&a, &[*it]) })
        .collect();
    let parts = [batch, rows, columns, inner];
    let value = if is_float(a.value.dtype()) && !parts[3].is_empty() {
        matrices(site, &a, &b, &parts, sizes)?
    } else {
        products(site, &a, &b, &parts, sizes)?
    };
    Ok(Term { value: value.reshape(dims)?, labels })
}

/// As a product of matrices, which may lie as they are or swapped.
fn matrices(
    site: &mut Site,
    a: &Term,
    b: &Term,
    parts: &[Vec<Label>; 4],
    sizes: [usize; 4],
) -> Result<Operand> {
    let [batch, rows, columns, inner] = parts;
    let [n, m, k, depth] = sizes;
    let (swap_a, swap_b) =
        (a.labels == [&batch[..], inner, rows].concat(), b.labels != [&batch[..], inner, columns].concat());
    let a_order = if swap_a { [&batch[..], inner, rows] } else { [&batch[..], rows, inner] };
    let b_order = [&batch[..], columns, inner];
    let a = arranged(site, a, &a_order.concat())?;
    let b = if swap_b { arranged(site, b, &b_order.concat())? } else { b.value.clone() };
    let dims = |swapped: bool, outer: usize| {
        let pair = if swapped { [depth, outer] } else { [outer, depth] };
        if batch.is_empty() { pair.to_vec() } else { vec![n, pair[0], pair[1]] }
    };
    let operands = [a.reshape(dims(swap_a, m))?, b.reshape(dims(!swap_b, k))?];
    site.one("matmul", &operands, &[("transA", Raw::Bool(swap_a)), ("transB", Raw::Bool(swap_b))])
}

/// As products of elements and a sum.
fn products(
    site: &mut Site,
    a: &Term,
    b: &Term,
    parts: &[Vec<Label>; 4],
    sizes: [usize; 4],
) -> Result<Operand> {
    let [batch, rows, columns, inner] = parts;
    let [n, m, k, depth] = sizes;
    let a = arranged(site, a, &[&batch[..], rows, inner].concat())?.reshape([n, m, 1, depth])?;
    let b = arranged(site, b, &[&batch[..], columns, inner].concat())?.reshape([n, 1, k, depth])?;
    let product = site.one("mul", &[a, b], &[])?;
    if depth == 1 {
        return Ok(product);
    }
    super::reduce::sums(site, &product, &[3])
}
