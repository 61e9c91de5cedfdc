//! Rows in host memory that do not fit the device: chunks of columns, the next one copied while a launch looks at the last.

use super::rows::{Chunk, HostRow};
use crate::Result;
use crate::aggregate::engine::Watch;
use crate::driver::Event;
use crate::kernels::Launcher;
use crate::tensor::DeviceCore;
use std::sync::Arc;

/// Bytes of a chunk at most: enough for whole rows of a page each, few enough that copies and launches overlap soon.
const MOST: u64 = 256 << 20;

/// A stream for copies. However a pass ends, the device's own stream waits for them before memory changes hands.
struct Copies<'a> {
    core: &'a Arc<DeviceCore>,
    branch: Arc<DeviceCore>,
}

impl<'a> Copies<'a> {
    fn new(core: &'a Arc<DeviceCore>) -> Result<Copies<'a>> {
        Ok(Copies { core, branch: core.branch()? })
    }
}

impl Drop for Copies<'_> {
    fn drop(&mut self) {
        // A fault of the device shows at the next call as well.
        let _ = self.core.follow(&self.branch);
    }
}

/// Columns of a chunk, of which two have to fit into `most` bytes, in blocks of up to twice their size.
fn width(n: usize, size: usize, d: usize, most: u64) -> usize {
    let line = (n * size) as u64;
    let fitting = ((most / 4).min(MOST) / line) as usize;
    (fitting / 32 * 32).max(1).min(d)
}

/// Gives all `d` columns of rows of elements of `size` bytes to `work`, within `most` bytes of device memory.
pub fn pass(
    launcher: &Launcher,
    rows: &[&HostRow],
    (d, size): (usize, usize),
    most: u64,
    watch: &Watch,
    mut work: impl FnMut(&Chunk) -> Result<()>,
) -> Result<()> {
    let core = launcher.core();
    let width = width(rows.len(), size, d, most);
    let buffers =
        [launcher.scratch(rows.len() * width * size)?, launcher.scratch(rows.len() * width * size)?];
    let copies = Copies::new(core)?;
    // Whatever used the buffers' memory before runs before the first copy.
    copies.branch.follow(core)?;
    let mut under_way: [Option<(Event, usize)>; 2] = [None, None];
    let finish = |slot: Option<(Event, usize)>| -> Result<()> {
        if let Some((done, columns)) = slot {
            done.synchronize_soon()?;
            watch.advance(columns);
        }
        watch.check()
    };
    for (index, start) in (0..d).step_by(width).enumerate() {
        let columns = start..(start + width).min(d);
        let buffer = &buffers[index % 2];
        finish(under_way[index % 2].take())?;
        let mut pointers = Vec::with_capacity(rows.len());
        for (at, row) in rows.iter().enumerate() {
            let target = buffer.ptr().offset((at * width * size) as u64);
            row.source.upload(&copies.branch, target, row.start + start * size, columns.len() * size)?;
            pointers.push(target);
        }
        core.follow(&copies.branch)?;
        let count = columns.len();
        work(&Chunk { columns, pointers })?;
        let done = Event::new(core.context())?;
        done.record(core.stream())?;
        under_way[index % 2] = Some((done, count));
    }
    under_way.into_iter().try_for_each(finish)
}

#[cfg(test)]
mod tests {
    use super::width;

    #[test]
    fn two_chunks_fit() {
        assert_eq!(width(10, 4, 1000, 80_000), 480);
        assert_eq!(width(10, 4, 1000, 1 << 40), 1000);
        assert_eq!(width(1000, 8, 1 << 30, 1 << 40), (256 << 20) / 8000 / 32 * 32);
        assert_eq!(width(1000, 8, 50, 100), 1);
    }
}
