//! Where the rows of a call are, and passes over them. Kernels take rows by a list of addresses, so that one tensor, a list of
//! tensors, a part of the rows and rows made of others are the same to them.

use super::given::Given;
use super::stream;
use crate::aggregate::engine::Watch;
use crate::driver::{DevicePtr, Event};
use crate::kernels::Launcher;
use crate::ops::Meta;
use crate::tensor::DeviceCore;
use crate::{Result, Tensor};
use std::ops::Range;
use std::sync::Arc;

/// Device memory that a call leaves to others, at least.
const RESERVE: u64 = 256 << 20;

/// A row in host memory.
#[derive(Clone)]
pub(super) struct HostRow {
    pub source: Given,
    /// First byte.
    pub start: usize,
}

enum Place {
    Device {
        pointers: Vec<DevicePtr>,
        /// What lies there.
        _held: Vec<Tensor>,
        /// Page-locked memory that copies may still read.
        _sources: Vec<Given>,
    },
    Host(Vec<HostRow>),
}

/// The rows of a call.
pub struct Rows {
    core: Arc<DeviceCore>,
    d: usize,
    size: usize,
    place: Place,
}

/// Some columns of some rows in device memory.
pub struct Chunk {
    /// The columns.
    pub columns: Range<usize>,
    /// Addresses of each row's value in the first of them.
    pub pointers: Vec<DevicePtr>,
}

impl Chunk {
    /// Number of columns.
    pub fn width(&self) -> usize {
        self.columns.len()
    }

    /// Bytes from row to row where that is the same for all of them, as it is in one tensor.
    pub fn stride(&self) -> Option<u64> {
        let stride = |pair: &[DevicePtr]| pair[1].0.wrapping_sub(pair[0].0);
        let first = self.pointers.windows(2).next().map_or(0, stride);
        (first <= i64::MAX as u64 && self.pointers.windows(2).all(|pair| stride(pair) == first))
            .then_some(first)
    }
}

impl Rows {
    /// `n` rows of that description: one tensor of all, or, as a `list`, a tensor each. They are copied to the device where they
    /// fit there, twice if other rows will be `made` of them; otherwise they stay on the host.
    pub fn new(
        core: &Arc<DeviceCore>,
        given: Vec<Given>,
        list: bool,
        (row, n): (&Meta, usize),
        made: bool,
    ) -> Result<Rows> {
        let (d, size) = (row.size(), row.dtype.size());
        let step = |row: usize| if list { (row, 0) } else { (0, row * d * size) };
        let bytes: usize = given.iter().filter(|one| one.is_on_host()).map(Given::byte_size).sum();
        let all: usize = given.iter().map(Given::byte_size).sum();
        let needed = bytes as u64 + if made { all as u64 } else { 0 };
        let place = if bytes == 0 || needed <= room(core)? {
            let held = if list && given.iter().all(Given::is_on_host) {
                vec![gathered(core, &given, row)?]
            } else {
                given.iter().map(|one| one.on(core)).collect::<Result<Vec<_>>>()?
            };
            let address = |row| {
                let (index, offset) = if held.len() == 1 { (0, row * d * size) } else { step(row) };
                Ok(held[index].device_view(core)?.ptr.offset(offset as u64))
            };
            let pointers = (0..n).map(address).collect::<Result<_>>()?;
            Place::Device { pointers, _held: held, _sources: given }
        } else {
            let given = given.into_iter().map(Given::hosted).collect::<Result<Vec<_>>>()?;
            let rows = (0..n).map(step).map(|(index, start)| HostRow { source: given[index].clone(), start });
            Place::Host(rows.collect())
        };
        Ok(Rows { core: core.clone(), d, size, place })
    }

    /// Rows at those addresses, in tensors that are kept as long.
    pub fn made(core: &Arc<DeviceCore>, row: &Meta, pointers: Vec<DevicePtr>, held: Vec<Tensor>) -> Rows {
        let place = Place::Device { pointers, _held: held, _sources: Vec::new() };
        Rows { core: core.clone(), d: row.size(), size: row.dtype.size(), place }
    }

    /// Number of rows.
    pub fn n(&self) -> usize {
        match &self.place {
            Place::Device { pointers, .. } => pointers.len(),
            Place::Host(rows) => rows.len(),
        }
    }

    /// All rows, as [`Rows::pass`] takes them.
    pub fn all(&self) -> Vec<usize> {
        (0..self.n()).collect()
    }

    /// Leaves those rows alone, in that order.
    pub fn keep(&mut self, rows: &[usize]) {
        match &mut self.place {
            Place::Device { pointers, .. } => *pointers = rows.iter().map(|&row| pointers[row]).collect(),
            Place::Host(all) => *all = rows.iter().map(|&row| all[row].clone()).collect(),
        }
    }

    /// Gives all columns of those rows to `work`, which enqueues launches on them, chunk by chunk; waits until these are done.
    pub fn pass(
        &self,
        launcher: &Launcher,
        rows: &[usize],
        watch: &Watch,
        mut work: impl FnMut(&Chunk) -> Result<()>,
    ) -> Result<()> {
        watch.check()?;
        if self.d == 0 || rows.is_empty() {
            return Ok(());
        }
        match &self.place {
            Place::Device { pointers: all, .. } => {
                let pointers = rows.iter().map(|&row| all[row]).collect();
                work(&Chunk { columns: 0..self.d, pointers })?;
                let done = Event::new(self.core.context())?;
                done.record(self.core.stream())?;
                done.synchronize_soon()?;
                watch.advance(self.d);
            }
            Place::Host(all) => {
                let rows: Vec<&HostRow> = rows.iter().map(|&row| &all[row]).collect();
                let most = room(&self.core)?;
                stream::pass(launcher, &rows, (self.d, self.size), most, watch, work)?;
            }
        }
        watch.check()
    }
}

/// Rows of that description, each given for itself, as one tensor on the device.
fn gathered(core: &Arc<DeviceCore>, given: &[Given], row: &Meta) -> Result<Tensor> {
    let tensor = Tensor::device(core, &Meta::new(row.dtype, [given.len(), row.size()]))?;
    let start = tensor.device_view(core)?.ptr;
    for (index, one) in given.iter().enumerate() {
        one.upload(core, start.offset((index * one.byte_size()) as u64), 0, one.byte_size())?;
    }
    Ok(tensor)
}

/// Bytes of device memory that rows may take. Blocks are up to twice what they hold, and results need room too.
pub fn room(core: &Arc<DeviceCore>) -> Result<u64> {
    let (free, _) = core.context().memory_info()?;
    let stats = core.memory_stats();
    let free = (free + stats.cached).saturating_sub(RESERVE);
    let left = stats.limit.saturating_sub(stats.used);
    Ok(if stats.limit == 0 { free } else { free.min(left / 2) })
}
