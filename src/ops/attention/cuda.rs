//! The GPU form: a product, a launch that makes weights of its rows, and another product.

use super::super::halves::run_all_widened;
use super::super::operands::{device_optional, device_view};
use super::super::{Call, Meta, Raw};
use super::{Problem, at, fused};
use crate::kernels::{Arg, Launcher, float_arg, grid_x};
use crate::shape::size_of;
use crate::tensor::{DeviceBuffer, DeviceView};
use crate::{DType, Result};

pub fn run(
    call: &Call,
    launcher: &Launcher,
    inputs: &[Option<DeviceView>],
    outputs: &[DeviceView],
) -> Result<()> {
    let problem = Problem::of(call)?;
    run_all_widened(launcher, inputs, outputs, |inputs, outputs| {
        let dtype = call.dtype().arithmetic();
        if fused::run(call, launcher, &problem, inputs, outputs[0].ptr)? {
            return Ok(());
        }
        let passing = launcher.scratch(1)?;
        Work { call, launcher, problem: &problem, dtype, inputs, passing }.run(outputs)
    })
}

struct Work<'a> {
    call: &'a Call,
    launcher: &'a Launcher,
    problem: &'a Problem,
    dtype: DType,
    inputs: &'a [Option<DeviceView<'a>>],
    /// Stands for memory that holds no operand as it came: no form of it may be kept.
    passing: DeviceBuffer,
}

impl Work<'_> {
    fn run(&self, outputs: &[DeviceView]) -> Result<()> {
        let Problem { batch, heads, key_heads, queries, past, keys, size, value_size, flat, .. } =
            *self.problem;
        let group = heads / key_heads;
        let [q_dims, k_dims, v_dims] = [
            [batch, key_heads, group, queries, size],
            [batch, key_heads, 1, keys, size],
            [batch, key_heads, 1, keys, value_size],
        ];
        let mut held = Vec::new();
        let q = self.apart(at::Q, [heads, queries, size], &mut held)?;
        let new = [
            self.apart(at::K, [key_heads, keys - past, size], &mut held)?,
            self.apart(at::V, [key_heads, keys - past, value_size], &mut held)?,
        ];
        let [k, v] = [
            self.joined(at::PAST_KEY, new[0], size, outputs.get(1), &mut held)?,
            self.joined(at::PAST_VALUE, new[1], value_size, outputs.get(2), &mut held)?,
        ];
        if size_of(outputs[0].dims) == 0 && self.problem.scores == 0 {
            return Ok(());
        }
        let scores = self.room(batch * heads * queries * keys)?;
        let (score_dims, y_dims) =
            ([batch, key_heads, group, queries, keys], [batch, key_heads, group, queries, value_size]);
        let scores = self.view(&scores, &score_dims);
        let scale = ("alpha".to_string(), Raw::Number(self.problem.scale));
        let (q, k) = (DeviceView { dims: &q_dims, ..q }, DeviceView { dims: &k_dims, ..k });
        self.op("matmul", &[q, k], vec![("transB".into(), Raw::Bool(true)), scale], scores)?;
        self.weights(scores, outputs)?;
        let v = DeviceView { dims: &v_dims, ..v };
        if !flat {
            return self.op("matmul", &[scores, v], Vec::new(), DeviceView { dims: &y_dims, ..outputs[0] });
        }
        let apart = self.room(batch * heads * queries * value_size)?;
        let apart = self.view(&apart, &y_dims);
        self.op("matmul", &[scores, v], Vec::new(), apart)?;
        let (from, to) = ([batch, heads, queries, value_size], [batch, queries, heads, value_size]);
        self.swap(DeviceView { dims: &from, ..apart }, DeviceView { dims: &to, ..outputs[0] })
    }

    fn room(&self, count: usize) -> Result<DeviceBuffer> {
        self.launcher.scratch(count.max(1) * self.dtype.size())
    }

    fn view<'v>(&self, buffer: &'v DeviceBuffer, dims: &'v [usize]) -> DeviceView<'v> {
        DeviceView { dims, dtype: self.dtype, ptr: buffer.ptr(), buffer }
    }

    /// Runs another op.
    fn op(
        &self,
        name: &str,
        inputs: &[DeviceView],
        options: Vec<(String, Raw)>,
        output: DeviceView,
    ) -> Result<()> {
        let metas = inputs.iter().map(|view| Some(Meta::new(self.dtype, view.dims))).collect();
        let call = Call { precision: self.call.precision, ..Call::new(name, metas, &options)? };
        let mut views: Vec<_> = inputs.iter().copied().map(Some).collect();
        if !call.spec.operands.iter().any(|operand| operand.list) {
            views.resize(call.spec.operands.len(), None);
        }
        (call.spec.cuda)(&call, self.launcher, &views, &[output])
    }

    /// Swaps the two axes in the middle.
    fn swap(&self, from: DeviceView, to: DeviceView) -> Result<()> {
        let perm = Raw::List(vec![0.0, 2.0, 1.0, 3.0]);
        self.op("transpose", &[from], vec![("perm".into(), perm)], to)
    }

    /// An operand as [batch, heads, places, size]; its dims are set by whoever takes it.
    fn apart<'v>(
        &'v self,
        index: usize,
        [heads, places, size]: [usize; 3],
        held: &mut Vec<DeviceBuffer>,
    ) -> Result<DeviceView<'v>> {
        let view = device_view(self.call, self.inputs, index)?;
        if !self.problem.flat || heads == 1 {
            return Ok(view);
        }
        let batch = self.problem.batch;
        let buffer = self.room(batch * heads * places * size)?;
        let (from, to) = ([batch, places, heads, size], [batch, heads, places, size]);
        self.swap(DeviceView { dims: &from, ..view }, self.view(&buffer, &to))?;
        let ptr = buffer.ptr();
        held.push(buffer);
        Ok(DeviceView { ptr, dtype: self.dtype, buffer: &self.passing, ..view })
    }

    /// Past and new places, in the result where they are asked for.
    fn joined<'v>(
        &'v self,
        index: usize,
        new: DeviceView<'v>,
        size: usize,
        output: Option<&DeviceView<'v>>,
        held: &mut Vec<DeviceBuffer>,
    ) -> Result<DeviceView<'v>> {
        let Problem { batch, key_heads, past, keys, present, .. } = *self.problem;
        let result = output.filter(|_| present);
        if past == 0 && result.is_none() {
            return Ok(new);
        }
        let (before, after) = ([batch, key_heads, past, size], [batch, key_heads, keys - past, size]);
        let dims = [batch, key_heads, keys, size];
        let new = DeviceView { dims: &after, ..new };
        let parts = match self.inputs.get(index).copied().flatten() {
            Some(old) => vec![DeviceView { dims: &before, ..old }, new],
            None => vec![new],
        };
        let ptr = match result {
            Some(view) => view.ptr,
            None => {
                let buffer = self.room(size_of(&dims))?;
                let ptr = buffer.ptr();
                held.push(buffer);
                ptr
            }
        };
        let all = DeviceView { ptr, dims: &dims, ..parts[0] };
        self.op("concat", &parts, vec![("axis".into(), Raw::Number(2.0))], all)?;
        Ok(DeviceView { ptr, dtype: self.dtype, dims: &[], buffer: &self.passing })
    }

    /// Products become weights, row by row.
    fn weights(&self, scores: DeviceView, outputs: &[DeviceView]) -> Result<()> {
        let Problem { batch, heads, queries, past, keys, ragged, causal, softcap, .. } = *self.problem;
        let rows = batch * heads * queries;
        if rows * keys == 0 {
            return Ok(());
        }
        let mask = self.inputs.get(at::MASK).copied().flatten();
        let kind = mask.map_or(0, |view| match view.dtype {
            DType::F32 => 2,
            DType::F64 => 3,
            _ => 1,
        });
        let lengths = self.inputs.get(at::LENGTHS).copied().flatten();
        let wide = lengths.is_some_and(|view| view.dtype == DType::I64);
        let kept = outputs.last().filter(|_| self.problem.scores > 0).map(|view| view.ptr);
        let layout = self.problem.mask;
        let [by_batch, by_head, by_query] = layout.map_or([0; 3], |mask| mask.steps);
        let sizes =
            [heads, queries, past, keys, by_batch, by_head, by_query, layout.map_or(0, |mask| mask.columns)];
        let mut words: Vec<u32> =
            sizes.into_iter().flat_map(|size| [size as u32, (size as u64 >> 32) as u32]).collect();
        words.extend([
            kind,
            self.problem.scores as u32,
            u32::from(causal),
            u32::from(ragged),
            u32::from(wide),
            self.problem.masking as u32,
        ]);
        let arguments = [
            Arg::Ptr(scores.ptr),
            Arg::Ptr(device_optional(self.inputs, at::MASK)),
            Arg::Ptr(device_optional(self.inputs, at::LENGTHS)),
            Arg::Ptr(kept.unwrap_or(crate::driver::DevicePtr::NULL)),
            float_arg(self.dtype, softcap),
            Arg::Block(&words),
        ];
        let kernel = format!("attention_{}_weights", self.dtype.suffix());
        self.launcher.launch(&kernel, grid_x(rows as u64, 256, 0)?, &arguments)
    }
}
