//! attention that a model spells out: products of queries and keys, a mask, softmax, products with values.

mod heads;
mod scores;

use self::heads::{Heads, moves, turned_back, untransposed};
use self::scores::{scaled, scores, softmax};
use super::super::Operand;
use super::super::stage::Step;
use super::List;
use super::trace::Trace;
use crate::Result;
use crate::ops::{FLOATS, Raw};
use crate::shape::size_of;

pub fn run(list: &mut List) -> Result<()> {
    for index in 0..list.steps.len() {
        if let Some(found) = Found::at(list, index) {
            found.put(list)?;
        }
    }
    Ok(())
}

/// An attention, and the steps that it replaces.
struct Found {
    taken: Vec<usize>,
    /// Batch, heads, queries, keys, size of queries and keys, size of values.
    sizes: [usize; 6],
    heads: [Heads; 3],
    mask: Option<Operand>,
    scale: f64,
    masking: &'static str,
    /// The step whose place among those taken a mask of the opposite truth takes.
    opposite: Option<usize>,
}

impl Found {
    /// The attention whose last product is at that place.
    fn at(list: &List, index: usize) -> Option<Found> {
        let step = plain_product(list.steps[index].as_ref()?)?;
        let call = step.call()?;
        if call.attrs.bool("transA") || call.attrs.bool("transB") || call.attrs.float("alpha") != 1.0 {
            return None;
        }
        let [Some(weights), Some(v), ..] = &step.inputs[..] else { return None };
        let mut trace = Trace { list, taken: vec![index] };
        let (softmax, masking) = softmax(&mut trace, weights)?;
        let rows = softmax.inputs.first()?.as_ref()?;
        let columns = *weights.dims().last()?;
        if *rows.dims().last()? != columns {
            return None;
        }
        let scores = scores(&mut trace, rows)?;
        let [batch, heads, queries, keys] = scores.dims;
        let result = &call.output().dims;
        let value_size = *result.last()?;
        // Products go head by head, under whichever dims.
        let lined = |dims: &[usize], rows: usize, columns: usize| {
            dims.ends_with(&[rows, columns]) && size_of(dims) == batch * heads * rows * columns
        };
        if columns != keys || !lined(weights.dims(), queries, keys) || !lined(v.dims(), keys, value_size) {
            return None;
        }
        let size = *scores.q.dims().last()?;
        let (k, turned) = &scores.k;
        let k_dims = if *turned { [size, keys] } else { [keys, size] };
        if !lined(scores.q.dims(), queries, size) || !lined(k.dims(), k_dims[0], k_dims[1]) || size == 0 {
            return None;
        }
        let mut found = Found {
            taken: trace.taken.clone(),
            sizes: [batch, heads, queries, keys, size, value_size],
            heads: [&scores.q, k, v].map(|operand| Heads { operand: operand.clone(), flat: false }),
            mask: scores.mask,
            scale: scores.scale,
            masking,
            opposite: scores.opposite,
        };
        let woven = found.woven(list, index);
        found.heads_of(list, *turned, woven.is_some())?;
        if found.heads[0].flat {
            found.taken.extend(woven.flatten());
        }
        Some(found)
    }

    /// Takes in the calls that turned queries, keys and values, and factors before them.
    fn heads_of(&mut self, list: &List, turned: bool, woven: bool) -> Option<()> {
        let [batch, heads, queries, keys, size, value_size] = self.sizes;
        let shapes = [(queries, size, false), (keys, size, turned), (keys, value_size, false)];
        let flat = if woven { self.flat(list, shapes) } else { None };
        for (index, (places, size, turned)) in shapes.into_iter().enumerate() {
            let dims = [batch, heads, places, size];
            let own = &self.heads[index].operand;
            let mut trace = Trace { list, taken: self.taken.clone() };
            let (mut operand, steps) = match &flat {
                Some(all) => all[index].clone(),
                None if turned && places > 1 && size > 1 => turned_back(&mut trace, own, dims)?,
                None => (own.reshape(dims).ok()?, Vec::new()),
            };
            trace.taken.extend(steps);
            if index < 2 {
                operand = scaled(&mut trace, operand, &mut self.scale);
            }
            self.taken = trace.taken;
            self.heads[index] = Heads { operand, flat: flat.is_some() };
        }
        (self.scale.is_finite() && self.scale != 0.0).then_some(())
    }

    /// Queries, keys and values with heads side by side where all of them are, and the steps that put them apart.
    fn flat(&self, list: &List, shapes: [(usize, usize, bool); 3]) -> Option<Vec<(Operand, Vec<usize>)>> {
        let [batch, heads, ..] = self.sizes;
        let all = self.heads.iter().zip(shapes).map(|(own, (places, size, turned))| {
            let mut trace = Trace { list, taken: self.taken.clone() };
            untransposed(&mut trace, &own.operand, [batch, heads, places, size], turned)
        });
        all.collect()
    }

    /// Whether the result's heads are put side by side, and the transposition that does so, where there must be one.
    fn woven(&self, list: &List, index: usize) -> Option<Option<usize>> {
        let [batch, heads, queries, .., value_size] = self.sizes;
        if heads == 1 || queries == 1 {
            return Some(None);
        }
        let next = list.only_reader(index)?;
        let step = list.steps[next].as_ref().filter(|step| step.name == "transpose")?;
        let x = step.inputs.first()?.as_ref()?;
        let perm = step.call()?.attrs.ints("perm");
        moves(x.dims(), perm, [batch, heads, queries, value_size], [0, 2, 1, 3]).then_some(Some(next))
    }

    fn put(self, list: &mut List) -> Result<()> {
        let [batch, heads, queries, keys, size, value_size] = self.sizes;
        let flat = self.heads[0].flat;
        let mut options =
            vec![("scale", Raw::Number(self.scale)), ("masking", Raw::Text(self.masking.into()))];
        let mut inputs = Vec::with_capacity(4);
        for (Heads { operand, .. }, (places, size)) in
            self.heads.into_iter().zip([(queries, size), (keys, size), (keys, value_size)])
        {
            let dims =
                if flat { vec![batch, places, heads * size] } else { vec![batch, heads, places, size] };
            inputs.push(Some(operand.reshape(dims)?));
        }
        if let (Some(place), Some(mask)) = (self.opposite, &self.mask) {
            // The choice's place and slot are free now.
            list.replace(&[place], "not", vec![Some(mask.clone())], &[])?;
        }
        let taken: Vec<usize> =
            self.taken.into_iter().filter(|&index| Some(index) != self.opposite).collect();
        let turned = self.opposite.and_then(|place| list.steps[place].as_ref()?.outputs.first().copied());
        let mask = match (turned, self.mask) {
            (Some(slot), Some(mask)) => Some(Operand::slot(slot, mask.meta().clone())),
            (_, mask) => mask,
        };
        inputs.push(mask);
        inputs.resize(7, None);
        if flat {
            options.extend(["qNumHeads", "kvNumHeads"].map(|name| (name, Raw::Number(heads as f64))));
        }
        list.replace(&taken, "attention", inputs, &options)
    }
}

/// A product of two operands and no more.
fn plain_product(step: &Step) -> Option<&Step> {
    let call = step.call().filter(|_| step.name == "matmul")?;
    let bare = step.inputs.iter().skip(2).all(Option::is_none)
        && call.attrs.choice("activation") == "none"
        && call.attrs.dtype("outputType").is_none()
        && FLOATS.contains(&call.dtype())
        && call.output().size() > 0;
    bare.then_some(step)
}
