//! Operands of 16 bits for forms that compute in float32: widened before, rounded once at the end.

use super::{Call, CpuForm, Meta, cast};
use crate::cpu::half;
use crate::driver::DevicePtr;
use crate::kernels::Launcher;
use crate::shape::size_of;
use crate::tensor::{DeviceBuffer, DeviceView, HostBuffer, HostView, HostViewMut};
use crate::{DType, Result, Tensor};

fn wide(meta: &Meta) -> Meta {
    Meta { dtype: meta.dtype.arithmetic(), dims: meta.dims.clone() }
}

impl Call {
    /// The same call on float32, `None` where no operand or result has 16 bits or the op converts types itself.
    pub(super) fn widened(&self) -> Option<Call> {
        let metas = || self.inputs.iter().flatten().chain(&self.outputs);
        if !self.spec.is_arithmetic() || !metas().any(|meta| meta.dtype.is_half()) {
            return None;
        }
        let inputs = self.inputs.iter().map(|input| input.as_ref().map(wide)).collect();
        Some(Call { inputs, outputs: self.outputs.iter().map(wide).collect(), ..self.clone() })
    }
}

/// The tensor in float32 where it has 16 bits.
pub fn widen(tensor: &Tensor) -> Result<Tensor> {
    let meta = tensor.meta();
    if !meta.dtype.is_half() {
        return Ok(tensor.clone());
    }
    widen_view(meta, &tensor.host_view()?)
}

fn widen_view(meta: &Meta, view: &HostView) -> Result<Tensor> {
    let wide = wide(meta);
    let mut buffer = HostBuffer::for_overwrite(wide.size() * DType::F32.size())?;
    half::widen(meta.dtype, view.as_slice(), buffer.view_mut(&wide).as_slice_mut());
    Ok(Tensor::from_host(buffer, &wide))
}

/// Runs a CPU form of float32 for a call of an op that takes other types beside floats, whose one result may be of any.
pub fn around(
    call: &Call,
    inputs: &[Option<HostView>],
    outputs: &mut [HostViewMut],
    form: CpuForm,
) -> Result<()> {
    let metas = call.inputs.iter().map(|input| input.as_ref().map(wide)).collect();
    let call = Call { inputs: metas, outputs: call.outputs.iter().map(wide).collect(), ..call.clone() };
    let widened = |view: &HostView| widen_view(&Meta::new(view.dtype, view.dims), view);
    let tensors = inputs
        .iter()
        .map(|input| input.as_ref().filter(|view| view.dtype.is_half()).map(widened).transpose())
        .collect::<Result<Vec<_>>>()?;
    let views = tensors.iter().zip(inputs);
    let views = views
        .map(|(tensor, view)| tensor.as_ref().map_or(Ok(*view), |tensor| tensor.host_view().map(Some)))
        .collect::<Result<Vec<_>>>()?;
    let result = &mut outputs[0];
    if !result.dtype.is_half() {
        return form(&call, &views, outputs);
    }
    let mut buffer = HostBuffer::for_overwrite(call.output().size() * DType::F32.size())?;
    form(&call, &views, &mut [buffer.view_mut(call.output())])?;
    half::narrow(
        result.dtype,
        Tensor::from_host(buffer, call.output()).host_view()?.as_slice(),
        result.as_slice_mut(),
    );
    Ok(())
}

/// The tensor rounded to the result's type where that has 16 bits.
pub fn narrow(tensor: Tensor, meta: &Meta) -> Result<Tensor> {
    if !meta.dtype.is_half() {
        return Ok(tensor);
    }
    let mut buffer = HostBuffer::for_overwrite(meta.size() * meta.dtype.size())?;
    half::narrow(meta.dtype, tensor.host_view()?.as_slice(), buffer.view_mut(meta).as_slice_mut());
    Ok(Tensor::from_host(buffer, meta))
}

/// Runs a GPU form of float32 between conversions by kernels of their own.
pub fn run_widened(
    launcher: &Launcher,
    inputs: &[Option<DeviceView>],
    output: &DeviceView,
    form: impl FnOnce(&[Option<DeviceView>], &DeviceView) -> Result<()>,
) -> Result<()> {
    // Scratch memory goes back in stream order, so it may be given up once everything is enqueued.
    let mut scratch = Vec::new();
    let widened = inputs
        .iter()
        .map(|input| match input {
            Some(view) if view.dtype.is_half() => {
                let ptr = room(launcher, view, &mut scratch)?;
                cast::launch(launcher, (view.ptr, view.dtype), (ptr, DType::F32), size_of(view.dims))?;
                Ok(Some(DeviceView { ptr, dtype: DType::F32, ..*view }))
            }
            other => Ok(*other),
        })
        .collect::<Result<Vec<_>>>()?;
    if !output.dtype.is_half() {
        return form(&widened, output);
    }
    let ptr = room(launcher, output, &mut scratch)?;
    form(&widened, &DeviceView { ptr, dtype: DType::F32, ..*output })?;
    cast::launch(launcher, (ptr, DType::F32), (output.ptr, output.dtype), size_of(output.dims))
}

/// The same for a form with several results.
pub fn run_all_widened(
    launcher: &Launcher,
    inputs: &[Option<DeviceView>],
    outputs: &[DeviceView],
    form: impl FnOnce(&[Option<DeviceView>], &[DeviceView]) -> Result<()>,
) -> Result<()> {
    let Some((last, others)) = outputs.split_last() else { return form(inputs, outputs) };
    if !outputs.iter().any(|output| output.dtype.is_half()) {
        return run_widened(launcher, inputs, last, |inputs, _| form(inputs, outputs));
    }
    let mut scratch = Vec::new();
    let wide = |view: &DeviceView<'_>, scratch: &mut Vec<DeviceBuffer>| room(launcher, view, scratch);
    let ptrs = others.iter().map(|view| wide(view, &mut scratch)).collect::<Result<Vec<_>>>()?;
    run_widened(launcher, inputs, last, |inputs, last| {
        let views =
            others.iter().zip(&ptrs).map(|(view, &ptr)| DeviceView { ptr, dtype: DType::F32, ..*view });
        form(inputs, &views.chain([*last]).collect::<Vec<_>>())
    })?;
    for (view, &ptr) in others.iter().zip(&ptrs) {
        cast::launch(launcher, (ptr, DType::F32), (view.ptr, view.dtype), size_of(view.dims))?;
    }
    Ok(())
}

fn room(launcher: &Launcher, view: &DeviceView, scratch: &mut Vec<DeviceBuffer>) -> Result<DevicePtr> {
    let memory = launcher.scratch(size_of(view.dims) * DType::F32.size())?;
    let ptr = memory.ptr();
    scratch.push(memory);
    Ok(ptr)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_rounded_once_from_float32() {
        // 1 + 2^-8 needs more digits than bfloat16 has; their sum does not.
        let of = |bits: &[u16]| Tensor::from_slice(DType::Bf16, [bits.len()], bits).unwrap();
        let (a, b) = (of(&[0x3f80, 0x7f7f]), of(&[0x3b80, 0x7f7f]));
        let call = Call::new("add", vec![Some(a.meta().clone()), Some(b.meta().clone())], &[]).unwrap();
        assert!(call.widened().is_none(), "add takes other types too");
        let y = call.run_cpu(&[Some(a), Some(b)]).unwrap().remove(0);
        assert_eq!(y.meta().dtype, DType::Bf16);
        assert_eq!(y.host_view().unwrap().as_slice::<u16>(), [0x3f80, 0x7f80]);
    }
}
