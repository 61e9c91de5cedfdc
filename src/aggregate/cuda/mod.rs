//! The engine on a GPU: all passes over the rows run there, decisions stay on the host. Calls block; they use the device's own
//! stream from any thread, so that memory goes from one to the next in the order of submission.

mod columns;
mod given;
mod pairs;
mod rows;
mod scan;
mod stream;
mod sums;
mod tables;

pub use given::Given;
use rows::Rows;
pub use rows::room;

use super::engine::{ColumnRule, Combination, Engine, RowState, Square, Watch};
use crate::kernels::Launcher;
use crate::kernels::columns::NanPolicy;
use crate::ops::Meta;
use crate::{Result, Tensor};

/// Rows that a GPU works on.
pub struct Cuda<'a> {
    /// Launches on the device.
    pub launcher: &'a Launcher,
    /// The rows, the caller's or made of them.
    pub rows: Rows,
    /// The starting point on the device; zero where there is none.
    pub start: Option<Tensor>,
    /// Type and dims of a row.
    pub result: Meta,
    /// How far the call has come.
    pub watch: Watch,
}

impl<'a> Cuda<'a> {
    /// The rows of a call. `made` says that new rows as large as these will take their place.
    pub fn new(
        launcher: &'a Launcher,
        given: Vec<Given>,
        list: bool,
        start: Option<Given>,
        call: (&Meta, usize, bool),
        watch: &Watch,
    ) -> Result<Cuda<'a>> {
        let (result, n, made) = call;
        let rows = Rows::new(launcher.core(), given, list, (result, n), made)?;
        let start = start.map(|start| start.on(launcher.core())).transpose()?;
        Ok(Cuda { launcher, rows, start, result: result.clone(), watch: watch.clone() })
    }

    /// A tensor of a row's description on the device, with undefined content.
    pub fn vector(&self) -> Result<Tensor> {
        Tensor::device(self.launcher.core(), &self.result)
    }
}

impl Cuda<'_> {
    /// A vector of zeros.
    pub fn zeros(&self) -> Result<Tensor> {
        let zeros = self.vector()?;
        let core = self.launcher.core();
        core.stream().fill(zeros.device_view(core)?.ptr, 0, zeros.byte_size())?;
        Ok(zeros)
    }
}

impl Engine for Cuda<'_> {
    fn scan(&self) -> Result<Vec<RowState>> {
        scan::run(self)
    }

    fn keep(&mut self, rows: &[usize]) {
        self.rows.keep(rows);
    }

    fn replace(&mut self, combinations: &[Combination]) -> Result<()> {
        let made = sums::replace(self, combinations)?;
        self.rows = made;
        Ok(())
    }

    fn distances(&self, bad: &[bool]) -> Result<Square> {
        pairs::distances(self, bad)
    }

    fn lengths(&self, from: Option<usize>, bad: &[bool]) -> Result<Vec<f64>> {
        pairs::lengths(self, from, bad)
    }

    fn products(&self, bad: &[bool]) -> Result<Square> {
        pairs::products(self, bad)
    }

    fn columns(&self, rows: &[usize], rule: &ColumnRule, nan: NanPolicy) -> Result<Tensor> {
        columns::run(self, rows, rule, nan)
    }

    fn sum(&self, combination: &Combination) -> Result<Tensor> {
        sums::sum(self, combination)
    }
}
