//! What follows a convolution or a product with constant weights and scales or shifts each channel goes into the weights.

use super::super::builder::Builder;
use super::super::stage::Step;
use super::super::{Operand, Source};
use super::{List, view};
use crate::Result;
use crate::ops::Raw;
use crate::shape::size_of;
use crate::tensor::Tensor;

pub fn run(builder: &mut Builder, list: &mut List) -> Result<()> {
    for index in 0..list.steps.len() {
        while fold(builder, list, index)? {}
    }
    Ok(())
}

/// One factor and one summand per channel of the result, each as a list or absent.
#[derive(Default)]
struct Affine {
    factor: Option<Operand>,
    summand: Option<Operand>,
}

/// Takes the step after that one in, if it is such a step.
fn fold(builder: &mut Builder, list: &mut List, index: usize) -> Result<bool> {
    let Some(target) = Target::of(list, index) else { return Ok(false) };
    let Some(next) = list.only_reader(index) else { return Ok(false) };
    let Some(affine) = list.steps[next]
        .as_ref()
        .map(|step| affine(builder, list, index, step, &target))
        .transpose()?
        .flatten()
    else {
        return Ok(false);
    };
    if affine.factor.is_some() && !target.scales {
        return Ok(false);
    }
    let (Some(step), Some(after)) = (list.take(index), list.take(next)) else { return Ok(false) };
    let mut folded = target.folded(builder, &step, &affine)?;
    folded.outputs = after.outputs;
    // The later place, where all that it reads is there; a hole in the earlier one.
    list.put(index, folded);
    Ok(true)
}

/// A step whose weights can take factors and summands.
struct Target {
    channels: usize,
    /// Elements of the result for each image and channel.
    inner: usize,
    /// Dims under which a list of factors broadcasts to the weights.
    weight_dims: Vec<usize>,
    bias_place: usize,
    /// Whether the weights can take factors.
    scales: bool,
}

impl Target {
    fn of(list: &List, index: usize) -> Option<Target> {
        let step = list.steps[index].as_ref()?;
        let call = step.call()?;
        if call.attrs.choice("activation") != "none" || call.attrs.dtype("outputType").is_some() {
            return None;
        }
        let weights = lasting(step.inputs.get(1)?.as_ref()?)?;
        let dims = &call.output().dims;
        let (rank, inner) = (dims.len(), size_of(&dims[dims.len().min(2)..]));
        match step.name {
            "conv1d" | "conv2d" | "conv3d" => {
                let channels = weights.meta().dims[0];
                let weight_dims = std::iter::once(channels).chain((1..rank).map(|_| 1)).collect();
                Some(Target { channels, inner, weight_dims, bias_place: 2, scales: true })
            }
            "convTranspose2d" | "convTranspose3d" if call.attrs.int("group") == 1 => {
                let channels = weights.meta().dims[1];
                let ones = (2..rank).map(|_| 1);
                let weight_dims = [1, channels].into_iter().chain(ones).collect();
                Some(Target { channels, inner, weight_dims, bias_place: 2, scales: true })
            }
            "matmul" if step.inputs.get(2).is_none_or(Option::is_none) => {
                let channels = *dims.last()?;
                // Factors would have to go into transposed weights too; products seldom have them.
                Some(Target { channels, inner: 1, weight_dims: vec![channels], bias_place: 3, scales: false })
            }
            _ => None,
        }
        .filter(|target| target.channels > 0)
    }

    /// The constant as a list of one number per channel, if it is one that broadcasts along channels alone, which are that
    /// axis of `rank`.
    fn per_channel(
        &self,
        builder: &mut Builder,
        operand: &Operand,
        axis: usize,
        rank: usize,
    ) -> Result<Option<Operand>> {
        if lasting(operand).is_none() || operand.rank() > rank {
            return Ok(None);
        }
        let size = operand.meta().size();
        let own = (axis + operand.rank()).checked_sub(rank).map(|axis| operand.dims()[axis]);
        if size == self.channels && own == Some(self.channels) {
            return Ok(Some(operand.reshape([self.channels])?));
        }
        if size != 1 {
            return Ok(None);
        }
        let ones = Tensor::from_slice(crate::DType::U8, [self.channels], &vec![1u8; self.channels])?;
        let ones = cast(builder, &Operand::constant(ones, true), operand.dtype())?;
        Ok(Some(join(builder, "mul", &[Some(ones), Some(operand.reshape([])?)])?))
    }

    /// The step with the weights and the bias that include factor and summand.
    fn folded(&self, builder: &mut Builder, step: &Step, affine: &Affine) -> Result<Step> {
        let mut inputs = step.inputs.clone();
        inputs.resize((self.bias_place + 1).max(inputs.len()), None);
        if let Some(factor) = &affine.factor {
            let wide = factor.reshape(self.weight_dims.clone())?;
            inputs[1] = Some(join(builder, "mul", &[inputs[1].clone(), Some(wide)])?);
            if let Some(bias) = inputs[self.bias_place].clone() {
                inputs[self.bias_place] = Some(join(builder, "mul", &[Some(bias), Some(factor.clone())])?);
            }
        }
        if let Some(summand) = &affine.summand {
            inputs[self.bias_place] = Some(match inputs[self.bias_place].clone() {
                Some(bias) => join(builder, "add", &[Some(bias), Some(summand.clone())])?,
                None => summand.clone(),
            });
        }
        step.rebuilt(inputs, &[])
    }
}

fn join(builder: &mut Builder, op: &'static str, operands: &[Option<Operand>]) -> Result<Operand> {
    Ok(builder.call(op, operands, &[])?.swap_remove(0))
}

fn cast(builder: &mut Builder, x: &Operand, to: crate::DType) -> Result<Operand> {
    let options = [("to".to_string(), Raw::Text(to.name().into()))];
    Ok(builder.call("cast", &[Some(x.clone())], &options)?.swap_remove(0))
}

/// The elements of a constant that is the same in every plan.
pub fn lasting(operand: &Operand) -> Option<&Tensor> {
    match operand.source() {
        Source::Constant { tensor, lasting: true } => Some(tensor),
        _ => None,
    }
}

/// What `step` does to each channel of the result of the step at `index`, if it does no more than that.
fn affine(
    builder: &mut Builder,
    list: &List,
    index: usize,
    step: &Step,
    target: &Target,
) -> Result<Option<Affine>> {
    let Some(call) = step.call() else { return Ok(None) };
    let is_result = |operand: &Option<Operand>| {
        operand.as_ref().is_some_and(|operand| {
            list.writer(operand) == Some(index) && operand.dims() == call.output().dims
        })
    };
    let dims = &call.output().dims;
    // The result may be read as a view, in which channels must still be an axis.
    let Some(axis) = view::axis_of(dims, target.channels, target.inner) else { return Ok(None) };
    if step.name == "batchNorm" && is_result(&step.inputs[0]) && axis == 1 {
        return batch_norm(builder, step, call.attrs.float("epsilon"));
    }
    let [a, b] = &step.inputs[..] else { return Ok(None) };
    let (first, other) = if is_result(a) { (true, b) } else { (false, a) };
    if !first && !is_result(b) {
        return Ok(None);
    }
    let Some(other) = other.as_ref() else { return Ok(None) };
    let Some(constant) = target.per_channel(builder, other, axis, dims.len())? else { return Ok(None) };
    Ok(match (step.name, first) {
        ("add", _) => Some(Affine { summand: Some(constant), factor: None }),
        ("mul", _) => Some(Affine { factor: Some(constant), summand: None }),
        ("sub", true) => {
            let negative = builder.call("neg", &[Some(constant)], &[])?.swap_remove(0);
            Some(Affine { summand: Some(negative), factor: None })
        }
        _ => None,
    })
}

fn batch_norm(builder: &mut Builder, step: &Step, epsilon: f64) -> Result<Option<Affine>> {
    let parameters: Vec<Operand> = step.inputs[1..].iter().flatten().cloned().collect();
    let [scale, bias, mean, variance] = &parameters[..] else { return Ok(None) };
    if parameters.iter().any(|parameter| lasting(parameter).is_none()) {
        return Ok(None);
    }
    let number = Tensor::from_slice(crate::DType::F64, [], &[epsilon])?;
    let epsilon = cast(builder, &Operand::constant(number, true), scale.dtype())?;
    let shifted = join(builder, "add", &[Some(variance.clone()), Some(epsilon)])?;
    let deviation = join(builder, "sqrt", &[Some(shifted)])?;
    let factor = join(builder, "div", &[Some(scale.clone()), Some(deviation)])?;
    let moved = join(builder, "mul", &[Some(mean.clone()), Some(factor.clone())])?;
    let summand = join(builder, "sub", &[Some(bias.clone()), Some(moved)])?;
    Ok(Some(Affine { factor: Some(factor), summand: Some(summand) }))
}
