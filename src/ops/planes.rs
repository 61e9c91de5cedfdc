//! Operands as kernels of the split routes read them: planes of halves, with scales and a range beside them. A call makes
//! them, and a tensor that is worth it keeps them.

use super::tile::LAUNCH;
use crate::driver::DevicePtr;
use crate::kernels::{Arg, Launcher};
use crate::tensor::{DeviceBuffer, DeviceView, Form, FormKey};
use crate::{Error, Result};
use std::sync::Arc;

/// Bytes of an operand's range.
const RANGE: usize = 24;
/// What lies beside the planes begins at multiples of this.
const ALIGNMENT: usize = 256;
/// Share of the bandwidth that the splitting kernels reach, and the microseconds that their launch adds.
const SPLITTING: (f64, f64) = (0.6, 2.0);

/// An operand as a plan knows it.
pub trait Side {
    /// Bytes of its planes.
    fn planes_size(&self) -> usize;
    /// Number of its scales or exponents, of four bytes.
    fn scales(&self) -> usize;
    /// Bytes that are read and written to make the planes.
    fn moved(&self) -> usize;
    /// What the planes depend on beside the elements.
    fn key(&self) -> FormKey;
}

/// Where planes, scales and range of an operand lie, and the epoch under which the range counts.
#[derive(Debug, Clone, Copy)]
pub struct Located {
    pub planes: DevicePtr,
    pub scales: DevicePtr,
    pub range: DevicePtr,
    pub epoch: u32,
}

impl Located {
    /// As a splitting kernel takes them: the operand, its planes, scales and range.
    pub fn arguments(&self, operand: DevicePtr) -> [Arg<'static>; 4] {
        [operand, self.planes, self.scales, self.range].map(Arg::Ptr)
    }
}

/// Planes, scales and range of an operand, on the device.
pub struct Planes {
    memory: DeviceBuffer,
    at: Located,
}

impl Planes {
    /// Memory for them, with a range of their own unless one of the launcher's is given.
    pub fn new(launcher: &Launcher, side: &impl Side, passing: Option<(DevicePtr, u32)>) -> Result<Planes> {
        let planes = side.planes_size().next_multiple_of(ALIGNMENT);
        let scales = (4 * side.scales()).next_multiple_of(ALIGNMENT);
        let memory = launcher.scratch(planes + scales + if passing.is_some() { 0 } else { RANGE })?;
        let at = |offset: usize| memory.ptr().offset(offset as u64);
        let (range, epoch) = passing.unwrap_or((at(planes + scales), 1));
        if passing.is_none() {
            launcher.core().stream().fill(range, 0, RANGE)?;
        }
        let at = Located { planes: memory.ptr(), scales: at(planes), range, epoch };
        Ok(Planes { memory, at })
    }

    /// Where they lie.
    pub fn located(&self) -> Located {
        self.at
    }
}

/// One side of a call.
pub struct Prepared<'a, S> {
    pub side: &'a S,
    pub at: Located,
    /// Whether this call makes the planes.
    pub made: bool,
    operand: DevicePtr,
    planes: Arc<Planes>,
    /// Whether the tensor then keeps them.
    wanted: bool,
}

impl<'a, S: Side> Prepared<'a, S> {
    fn new(
        launcher: &Launcher,
        side: &'a S,
        operand: DevicePtr,
        form: &Form<Planes>,
        passing: (DevicePtr, u32),
    ) -> Result<Prepared<'a, S>> {
        let (planes, made, wanted) = match form {
            Form::Kept(planes) => (planes.clone(), false, false),
            Form::Wanted => (Arc::new(Planes::new(launcher, side, None)?), true, true),
            Form::Passing => (Arc::new(Planes::new(launcher, side, Some(passing))?), true, false),
        };
        Ok(Prepared { side, at: planes.at, made, operand, planes, wanted })
    }

    /// As a splitting kernel takes it.
    pub fn arguments(&self) -> [Arg<'static>; 4] {
        self.at.arguments(self.operand)
    }
}

/// What is known of both operands' planes, and note of this use.
pub fn forms(launcher: &Launcher, sides: [&impl Side; 2], [a, b]: &[DeviceView; 2]) -> [Form<Planes>; 2] {
    [launcher.form(a, sides[0].key(), b), launcher.form(b, sides[1].key(), a)]
}

/// Microseconds of launches and of making planes. Planes that a tensor keeps cost nothing, nor do those that are made once
/// to be kept.
pub fn time(sides: [&impl Side; 2], forms: &[Form<Planes>; 2], bandwidth: f64) -> f64 {
    let passing = sides.into_iter().zip(forms).filter(|(_, form)| matches!(form, Form::Passing));
    let bytes: Vec<usize> = passing.map(|(side, _)| side.moved()).collect();
    let launch = if bytes.is_empty() { 0.0 } else { SPLITTING.1 };
    LAUNCH + launch + bytes.iter().sum::<usize>() as f64 / (SPLITTING.0 * bandwidth)
}

/// Both sides of a call whose operands are at those addresses; `None` when this device lacks the memory.
pub fn prepare<'a, S: Side>(
    launcher: &Launcher,
    sides: [&'a S; 2],
    operands: [DevicePtr; 2],
    forms: &[Form<Planes>; 2],
) -> Result<Option<[Prepared<'a, S>; 2]>> {
    let (range, epoch) = launcher.raised_words()?;
    let prepare = |i: usize| {
        let range = range.offset((i * RANGE) as u64);
        Prepared::new(launcher, sides[i], operands[i], &forms[i], (range, epoch))
    };
    match prepare(0).and_then(|first| Ok([first, prepare(1)?])) {
        Ok(prepared) => Ok(Some(prepared)),
        Err(Error::OutOfMemory(_) | Error::MemoryLimit(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Keeps the planes that are wanted with their tensors, once the launch that makes them is enqueued.
pub fn keep<S: Side>(launcher: &Launcher, sides: &[Prepared<S>; 2], views: &[DeviceView; 2]) {
    for (side, view) in sides.iter().zip(views).filter(|(side, _)| side.wanted) {
        let bytes = side.planes.memory.size() as u64;
        launcher.keep_form(view, side.side.key(), side.planes.clone(), bytes);
    }
}

/// Tensors and calls on an emulated card, for the tests of the routes.
#[cfg(test)]
pub mod bench {
    use crate::driver::fake::{Config, FakeDriver, Launch};
    use crate::kernels::Launcher;
    use crate::ops::{Call, Meta};
    use crate::tensor::DeviceCore;
    use crate::{DType, Tensor};

    pub struct Bench {
        pub launcher: Launcher,
        pub driver: FakeDriver,
    }

    impl Bench {
        pub fn new(config: Config) -> Bench {
            let driver = FakeDriver::install(config);
            let launcher = Launcher::new(DeviceCore::open(0).unwrap());
            Bench { driver, launcher }
        }

        /// A float32 tensor on the card.
        pub fn tensor(&self, dims: &[usize]) -> Tensor {
            Tensor::device(self.launcher.core(), &Meta::new(DType::F32, dims)).unwrap()
        }

        /// The launches of a call with two operands and `missing` ones after them.
        pub fn launches(&self, call: &Call, operands: [&Tensor; 2], missing: usize) -> Vec<Launch> {
            let mut operands: Vec<_> = operands.map(|tensor| Some(tensor.clone())).into();
            operands.extend(vec![None; missing]);
            let before = self.driver.launches().len();
            call.run_cuda(&self.launcher, &operands).unwrap();
            self.driver.launches()[before..].to_vec()
        }

        /// Bytes of kept forms.
        pub fn prepared(&self) -> u64 {
            self.launcher.core().memory_stats().prepared
        }
    }

    pub fn names(launches: &[Launch]) -> Vec<&str> {
        launches.iter().map(|launch| launch.kernel.as_str()).collect()
    }

    /// An argument's words.
    pub fn words(launch: &Launch, argument: usize) -> Vec<u64> {
        launch.arguments[argument].chunks_exact(8).map(bytemuck::pod_read_unaligned).collect()
    }
}
