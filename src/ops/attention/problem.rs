//! A call of attention in numbers.

use super::super::spec::*;
use super::super::{Attrs, Call};
use super::at;
use crate::{Result, invalid, mismatch};

/// What may come as the last result, in the order in which it is made.
pub const SCORES: &[&str] = &["none", "products", "capped", "masked", "weights"];

/// What -Infinity in the mask does, in the order of the kernel's codes.
pub const MASKING: &[&str] = &["hide", "add", "guarded"];
/// The first and the last of them.
pub const HIDE: usize = 0;
pub const GUARDED: usize = 2;

#[derive(Debug)]
pub struct Problem {
    pub batch: usize,
    pub heads: usize,
    pub key_heads: usize,
    pub queries: usize,
    /// Keys of the past, and all of them.
    pub past: usize,
    pub keys: usize,
    pub size: usize,
    pub value_size: usize,
    /// Whether operands are [batch, places, heads * size].
    pub flat: bool,
    pub mask: Option<Mask>,
    /// Whether some keys are not seen because of `nonpadKvSeqlen`.
    pub ragged: bool,
    pub causal: bool,
    pub scale: f64,
    pub softcap: f64,
    pub present: bool,
    /// Position in the list of scores, 0 for none.
    pub scores: usize,
    /// Position in the list of what masks do.
    pub masking: usize,
}

/// Elements of the mask from one batch, head and query to the next, and its columns.
#[derive(Debug, Clone, Copy)]
pub struct Mask {
    pub steps: [usize; 3],
    pub columns: usize,
}

/// Heads, places and the size of a head.
type Heads = [usize; 3];

impl Problem {
    pub fn of(call: &Call) -> Result<Problem> {
        Problem::new(call.spec, &call.inputs, &call.attrs)
    }

    pub fn new(spec: &OpSpec, inputs: Metas, attrs: &Attrs) -> Result<Problem> {
        let q = spec.operand(inputs, at::Q)?;
        spec.expect_rank(at::Q, q, 3..=4)?;
        let flat = q.dims.len() == 3;
        let batch = q.dims[0];
        let [heads, queries, size] = heads_of(spec, inputs, at::Q, attrs)?;
        let [key_heads, new_keys, key_size] = heads_of(spec, inputs, at::K, attrs)?;
        let [value_heads, values, value_size] = heads_of(spec, inputs, at::V, attrs)?;
        if key_size != size {
            return mismatch!("{}: heads of 'k' have size {key_size}, those of 'q' {size}", spec.name);
        }
        if value_heads != key_heads || values != new_keys {
            return mismatch!(
                "{}: 'k' has {new_keys} keys in {key_heads} heads, 'v' has {values} in {value_heads}",
                spec.name
            );
        }
        if key_heads == 0 || !heads.is_multiple_of(key_heads) {
            return mismatch!(
                "{}: the {heads} heads of 'q' must divide by those of 'k', {key_heads}",
                spec.name
            );
        }
        let past = past_of(spec, inputs, [batch, key_heads, size, value_size])?;
        let keys = past + new_keys;
        if let Some(lengths) = &inputs[at::LENGTHS] {
            spec.expect_dims(at::LENGTHS, lengths, &[batch])?;
        }
        let mask = inputs[at::MASK].as_ref().map(|mask| mask_of(spec, mask, [batch, heads, queries, keys]));
        let scale = attrs.float("scale");
        Ok(Problem {
            batch,
            heads,
            key_heads,
            queries,
            past,
            keys,
            size,
            value_size,
            flat,
            mask: mask.transpose()?,
            ragged: inputs[at::LENGTHS].is_some(),
            causal: attrs.bool("causal"),
            scale: if scale.is_nan() { 1.0 / (size.max(1) as f64).sqrt() } else { scale },
            softcap: attrs.float("softcap"),
            present: attrs.bool("present"),
            scores: SCORES.iter().position(|&word| word == attrs.choice("scores")).unwrap_or(0),
            masking: MASKING.iter().position(|&word| word == attrs.choice("masking")).unwrap_or(HIDE),
        })
    }

    /// Dims of the results.
    pub fn results(&self) -> Vec<Vec<usize>> {
        let Problem { batch, heads, key_heads, queries, keys, size, value_size, .. } = *self;
        let y = if self.flat {
            vec![batch, queries, heads * value_size]
        } else {
            vec![batch, heads, queries, value_size]
        };
        let mut all = vec![y];
        if self.present {
            all.extend([vec![batch, key_heads, keys, size], vec![batch, key_heads, keys, value_size]]);
        }
        if self.scores > 0 {
            all.push(vec![batch, heads, queries, keys]);
        }
        all
    }

    /// How many keys a query may see at most, given how many of its batch are no padding.
    pub fn seen(&self, query: usize, length: usize) -> usize {
        let end = if self.ragged { length.min(self.keys) } else { self.keys };
        if !self.causal {
            return end;
        }
        // The queries are the last places of what is no padding, where that is told and nothing came before.
        let before = match self.ragged && self.past == 0 {
            true => length as i64 - self.queries as i64,
            false => self.past as i64,
        };
        end.min((before + query as i64 + 1).max(0) as usize)
    }
}

fn heads_of(spec: &OpSpec, inputs: Metas, index: usize, attrs: &Attrs) -> Result<Heads> {
    let (q, meta) = (spec.operand(inputs, at::Q)?, spec.operand(inputs, index)?);
    spec.expect_rank(index, meta, q.dims.len()..=q.dims.len())?;
    let name = spec.operands[index].name;
    if meta.dims[0] != q.dims[0] {
        return mismatch!("{}: '{name}' has a batch of {}, 'q' of {}", spec.name, meta.dims[0], q.dims[0]);
    }
    let option = if index == at::Q { "qNumHeads" } else { "kvNumHeads" };
    let told = attrs.int(option);
    if let [_, heads, places, size] = meta.dims[..] {
        if told != 0 && told != heads as i64 {
            return invalid!("{}: '{option}' is {told}, but '{name}' has {heads} heads", spec.name);
        }
        return Ok([heads, places, size]);
    }
    let (places, width) = (meta.dims[1], meta.dims[2]);
    if told < 1 || !width.is_multiple_of(told as usize) {
        return invalid!(
            "{}: '{option}' must divide the last dim of '{name}' {:?}, got {told}",
            spec.name,
            meta.dims
        );
    }
    Ok([told as usize, places, width / told as usize])
}

/// The number of keys of the past.
fn past_of(spec: &OpSpec, inputs: Metas, [batch, heads, size, value_size]: [usize; 4]) -> Result<usize> {
    let (key, value) = (&inputs[at::PAST_KEY], &inputs[at::PAST_VALUE]);
    let (Some(key), Some(value)) = (key, value) else {
        if key.is_some() || value.is_some() {
            return invalid!("{}: 'pastKey' and 'pastValue' come together", spec.name);
        }
        return Ok(0);
    };
    spec.expect_rank(at::PAST_KEY, key, 4..=4)?;
    let past = key.dims[2];
    spec.expect_dims(at::PAST_KEY, key, &[batch, heads, past, size])?;
    spec.expect_dims(at::PAST_VALUE, value, &[batch, heads, past, value_size])?;
    Ok(past)
}

fn mask_of(spec: &OpSpec, mask: &Meta, [batch, heads, queries, keys]: [usize; 4]) -> Result<Mask> {
    spec.expect_rank(at::MASK, mask, 1..=4)?;
    let mut dims = vec![1; 4 - mask.dims.len()];
    dims.extend(&mask.dims);
    let fits = dims.iter().zip([batch, heads, queries]).all(|(&dim, size)| dim == 1 || dim == size);
    if !fits || dims[3] > keys {
        return mismatch!(
            "{}: 'mask' {:?} does not broadcast to {:?}",
            spec.name,
            mask.dims,
            [batch, heads, queries, keys]
        );
    }
    let step = |axis: usize| if dims[axis] == 1 { 0 } else { dims[axis + 1..].iter().product() };
    Ok(Mask { steps: [step(0), step(1), step(2)], columns: dims[3] })
}
