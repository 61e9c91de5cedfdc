//! Robust aggregation: one vector from the rows of many workers, of which some may be hostile.
//!
//! A rule is a row of [`RULES`]. It asks an [`Engine`] for column statistics, distances or products between rows and sums of
//! weighted rows, and decides on the host in float64 what to sum. Engines are all that differs between devices.

mod cpu;
mod cuda;
mod decide;
mod engine;
mod names;
mod nan;
mod options;
mod pre;
mod report;
mod rules;
mod table;
#[cfg(test)]
mod tests;
mod weights;

pub use cuda::Given;
pub use engine::{Engine, Watch};
pub use options::Options;
pub use report::Report;
pub use table::{Bound, COMMON, PRES, Pre, RULES, Rule};

use crate::cpu::Float;
use crate::kernels::Launcher;
use crate::kernels::columns::NanPolicy;
use crate::ops::{Meta, Raw, WIDE_FLOATS};
use crate::tensor::DeviceCore;
use crate::{DType, Error, Result, Tensor, invalid, mismatch};
use engine::RowState;
use report::{fill, members, nan_count};
use rules::Context;
use std::borrow::Cow;
use std::sync::Arc;

/// A checked call.
pub struct Aggregation {
    /// Its options.
    pub options: Options,
    /// Number of rows.
    pub n: usize,
    /// Columns.
    pub d: usize,
    /// Type and dims of the result.
    pub result: Meta,
    /// Whether each row is a tensor of its own.
    list: bool,
    /// Whether somebody wants the report; without it rows are looked at only where a decision needs it.
    pub reported: bool,
}

impl Aggregation {
    /// Checks rows and options: one tensor of dims [n, ...], or, as a `list`, n tensors of the same type and dims; then the
    /// starting point, if there is one.
    pub fn new(
        rows: &[Meta],
        list: bool,
        start: Option<&Meta>,
        options: &[(String, Raw)],
    ) -> Result<Aggregation> {
        let Some(first) = rows.first() else {
            return invalid!("aggregate: 'rows' must hold at least one row, got none");
        };
        if !WIDE_FLOATS.contains(&first.dtype) {
            let text = format!("aggregate: 'rows' must be of float32 or float64, got {}", first.dtype);
            return Err(Error::UnsupportedDtype(text));
        }
        let (n, dims) = if list { (rows.len(), &first.dims[..]) } else { split_rows(first)? };
        if let Some(at) = rows.iter().position(|row| row != first) {
            let other = &rows[at];
            return mismatch!(
                "aggregate: rows must be alike, row 0 is {} {:?}, row {at} {} {:?}",
                first.dtype,
                first.dims,
                other.dtype,
                other.dims
            );
        }
        let result = Meta::new(first.dtype, dims);
        if let Some(start) = start
            && (start.dtype != result.dtype || start.size() != result.size())
        {
            return mismatch!(
                "aggregate: 'start' must be {} of {} elements as the rows are, got {} {:?}",
                result.dtype,
                result.size(),
                start.dtype,
                start.dims
            );
        }
        let options = Options::new(options, n)?;
        if start.is_some() && options.rule.name != "centeredClipping" {
            return invalid!("aggregate: '{}' takes no 'start'; 'centeredClipping' does", options.rule.name);
        }
        Ok(Aggregation { options, n, d: result.size(), result, list, reported: true })
    }

    /// Whether the call is what the op `median` computes, which has a GPU form.
    pub fn is_median(&self) -> bool {
        !self.list
            && self.options.rule.name == "median"
            && self.options.pre.is_empty()
            && self.result.dims.len() == 1
    }

    /// Whether the rows go to the device as a whole.
    pub fn fits(&self, core: &Arc<DeviceCore>) -> Result<bool> {
        let bytes = (self.n * self.d * self.result.dtype.size()) as u64;
        Ok(bytes <= cuda::room(core)?)
    }

    /// Runs the call on a GPU, `rows` as they were checked; the result lies there. Blocks.
    pub fn run_cuda(
        &self,
        launcher: &Launcher,
        rows: Vec<Given>,
        start: Option<Given>,
        watch: &Watch,
    ) -> Result<(Tensor, Report)> {
        watch.expect(self.visits());
        let made = !self.options.pre.is_empty();
        let call = (&self.result, self.n, made);
        let mut engine = cuda::Cuda::new(launcher, rows, self.list, start, call, watch)?;
        let (result, mut report) = self.decide(&mut engine)?;
        let result = result.to_device(launcher.core())?;
        if self.reported {
            report.nan_coordinates = nan_count(&result.to_host()?)?;
        }
        watch.check()?;
        Ok((result, report))
    }

    /// Columns that the passes of the call visit together, about.
    fn visits(&self) -> u64 {
        let passes = 1 + self.options.rule.passes + 3 * self.options.pre.len() as u64;
        passes * self.d as u64
    }

    /// Runs the call on host tensors, `rows` as they were checked. Blocks; spread over the compute threads.
    pub fn run_cpu(
        &self,
        rows: &[Tensor],
        start: Option<&Tensor>,
        watch: &Watch,
    ) -> Result<(Tensor, Report)> {
        match self.result.dtype {
            DType::F64 => self.typed::<f64>(rows, start, watch),
            _ => self.typed::<f32>(rows, start, watch),
        }
    }

    fn typed<T: Float>(
        &self,
        rows: &[Tensor],
        start: Option<&Tensor>,
        watch: &Watch,
    ) -> Result<(Tensor, Report)> {
        let views =
            rows.iter().map(|row| Ok(row.host_view()?.as_slice::<T>())).collect::<Result<Vec<&[T]>>>()?;
        let rows = match views[..] {
            [whole] if !self.list => {
                (0..self.n).map(|row| &whole[row * self.d..(row + 1) * self.d]).collect()
            }
            _ => views,
        };
        let start = start.map(|start| Ok(start.host_view()?.as_slice::<T>())).transpose()?;
        self.run_slices(&rows, start, watch)
    }

    /// Runs the call on rows in host memory, which are read in place. `T` must be the Rust type of the rows.
    pub(crate) fn run_slices<T: Float>(
        &self,
        rows: &[&[T]],
        start: Option<&[T]>,
        watch: &Watch,
    ) -> Result<(Tensor, Report)> {
        let rows = rows.iter().map(|row| Cow::Borrowed(*row)).collect();
        watch.expect(self.visits());
        let mut engine = cpu::Cpu { rows, start, result: self.result.clone(), watch: watch.clone() };
        let (result, mut report) = self.decide(&mut engine)?;
        watch.check()?;
        report.nan_coordinates = nan_count(&result)?;
        Ok((result, report))
    }

    /// The round: the NaN policy, pre-aggregations, the rule.
    fn decide(&self, engine: &mut dyn Engine) -> Result<(Tensor, Report)> {
        let Options { rule, nan, .. } = self.options;
        let whole = rule.whole || !self.options.pre.is_empty();
        let states = if self.looks() { engine.scan()? } else { vec![RowState::default(); self.n] };
        let round = nan::settle(nan, &states, self.options.f, whole)?;
        let mut report = Report { rule: rule.name, n: self.n, f: round.f, ..Report::default() };
        report.non_finite = (0..self.n).filter_map(|row| Some((row, states[row].first?))).collect();
        report.dropped.clone_from(&round.dropped);
        if !round.dropped.is_empty() {
            self.options.check_bound(round.rows.len(), round.f)?;
            engine.keep(&round.rows);
        }
        if round.lost {
            report.notes.push("a NaN in a row makes the whole result NaN under 'propagate'".into());
            return Ok((nans(&self.result)?, report));
        }
        let bad = round.rows.iter().map(|&row| states[row].first.is_some()).collect();
        let mut context = Context { options: &self.options, f: round.f, bad, names: round.rows };
        self.prepare(&mut context, engine, &mut report)?;
        let verdict = (rule.run)(&context, engine)?;
        let names = if report.buckets.is_some() { (0..context.n()).collect() } else { context.names };
        let count = if report.buckets.is_some() { names.len() } else { self.n };
        Ok((fill(&mut report, verdict, &names, count), report))
    }

    /// Whether the round has to know which values are not finite.
    fn looks(&self) -> bool {
        let searching = matches!(self.options.nan, NanPolicy::Drop | NanPolicy::Reject);
        self.reported || self.options.rule.whole || !self.options.pre.is_empty() || searching
    }

    fn prepare(&self, context: &mut Context, engine: &mut dyn Engine, report: &mut Report) -> Result<()> {
        for pre in &self.options.pre {
            if context.n() <= 2 * context.f {
                let (n, f) = (context.n(), context.f);
                return invalid!("aggregate: '{}' needs n > 2f, got n = {n}, f = {f}", pre.name);
            }
            let combinations = (pre.run)(context, engine)?;
            if combinations.len() != context.n() || pre.name == "bucketing" {
                report.buckets = Some(members(&combinations, report.buckets.as_deref(), &context.names));
            }
            engine.replace(&combinations)?;
            context.bad = engine.scan()?.iter().map(|state: &RowState| state.first.is_some()).collect();
        }
        if self.options.pre.is_empty() { Ok(()) } else { self.options.check_bound(context.n(), context.f) }
    }
}

/// Rows and the dims of one of a tensor whose first dim counts rows.
fn split_rows(rows: &Meta) -> Result<(usize, &[usize])> {
    match rows.dims.split_first() {
        Some((&n, dims)) if !dims.is_empty() => {
            if n == 0 || u32::try_from(n).is_err() {
                return mismatch!("aggregate: 'rows' must have 1 to 2^32 - 1 rows, got dims {:?}", rows.dims);
            }
            Ok((n, dims))
        }
        _ => mismatch!("aggregate: 'rows' must have dims [n, d] or more, got {:?}", rows.dims),
    }
}

fn nans(meta: &Meta) -> Result<Tensor> {
    let mut buffer = Tensor::host_buffer(meta)?;
    match meta.dtype {
        DType::F64 => buffer.view_mut(meta).as_slice_mut::<f64>().fill(f64::NAN),
        _ => buffer.view_mut(meta).as_slice_mut::<f32>().fill(f32::NAN),
    }
    Ok(Tensor::from_host(buffer, meta))
}
