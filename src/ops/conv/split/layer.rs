//! Convolutions whose operands and results stay in planes from one to the next: what plans of whole networks are made of.

use super::super::super::planes::{Located, Planes, Side as _};
use super::super::{Problem, Setting};
use super::launch::{Pointers, Through, maps, multiply, split};
use super::{Lines, Plan, Side, plan_of};
use crate::driver::DevicePtr;
use crate::kernels::{Arg, Launcher};
use crate::ops::Precision;
use crate::ops::activation::Activation;
use crate::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A convolution's result as planes, which the next one reads and a later one may add as its residual. Channels lie side
/// by side. A value keeps 22 bits, down to 2^-30 of the largest of its pixel's 64 channels; Inf and NaN are kept.
pub struct Planar {
    planes: Planes,
    /// Of the range: what an earlier run found does not count in the next.
    epoch: AtomicU32,
    side: Side,
}

impl Planar {
    fn located(&self) -> Located {
        Located { epoch: self.epoch.load(Ordering::Acquire), ..self.planes.located() }
    }

    /// As the target of another run.
    fn renewed(&self) -> Located {
        self.epoch.fetch_add(1, Ordering::AcqRel);
        self.located()
    }

    /// Bytes on the device.
    pub fn size(&self) -> usize {
        self.side.planes_size() + 4 * self.side.scales
    }
}

/// Where a layer finds its input.
#[derive(Clone, Copy)]
pub enum Input<'a> {
    /// float32 [N, C, ...], split by a launch ahead.
    Floats(DevicePtr),
    /// The result of another layer.
    Planar(&'a Planar),
}

/// Where results go; one at least.
#[derive(Clone, Copy, Default)]
pub struct Output<'a> {
    /// As float32 [N, M, ...].
    pub floats: Option<DevicePtr>,
    /// As planes.
    pub planar: Option<&'a Planar>,
}

/// activation(x * w + bias + residual) with weights split once. Weights and bias must outlive it.
pub struct Layer {
    plan: Plan,
    weights: Arc<Planes>,
    w: DevicePtr,
    bias: DevicePtr,
    activation: Activation,
    setting: Setting,
}

impl Layer {
    /// Splits the weights. `planar`: its input is another layer's result. `None` where this route does not take the convolution: more than one group, an activation other
    /// than relu, leakyRelu and clip, or a device without what it needs.
    pub fn new(
        launcher: &Launcher,
        problem: &Problem,
        setting: Setting,
        precision: Precision,
        activation: Activation,
        [w, bias]: [DevicePtr; 2],
        planar: bool,
    ) -> Result<Option<Layer>> {
        let problem = problem.normalized();
        let setting = Setting { activation: activation.code, aligned: [true, false], ..setting };
        let taken = setting.card.level == 90 && activation.is_short();
        let lines = if planar { None } else { Lines::of(&problem) };
        let plan = plan_of(&problem, &setting, precision, lines).filter(|_| taken);
        let Some(plan) = plan else { return Ok(None) };
        let weights = Arc::new(Planes::new(launcher, &plan.w, None)?);
        let at = Pointers { x: DevicePtr::NULL, w, bias, y: DevicePtr::NULL };
        let located = weights.located();
        split(&plan, launcher, [located; 2], at, [0, plan.w.blocks])?;
        Ok(Some(Layer { plan, weights, w, bias, activation, setting }))
    }

    /// Memory for its result.
    pub fn planar(&self, launcher: &Launcher) -> Result<Planar> {
        let side = self.plan.result();
        Ok(Planar { planes: Planes::new(launcher, &side, None)?, epoch: AtomicU32::new(1), side })
    }

    /// Enqueues it. `false` where the driver makes no tensor maps; nothing is enqueued then.
    pub fn run(
        &self,
        launcher: &Launcher,
        input: Input,
        residual: Option<&Planar>,
        output: Output,
    ) -> Result<bool> {
        self.check(input, residual, output)?;
        let (at, x, made) = match input {
            Input::Planar(planar) => (DevicePtr::NULL, planar.located(), None),
            Input::Floats(floats) => {
                let (range, epoch) = launcher.raised_words()?;
                let planes = Planes::new(launcher, &self.plan.x, Some((range, epoch)))?;
                (floats, planes.located(), Some(planes))
            }
        };
        let weights = self.weights.located();
        let Some(maps) = maps(&self.plan, launcher, x.planes, weights.planes)? else { return Ok(false) };
        let y = output.floats.unwrap_or(DevicePtr::NULL);
        let at = Pointers { x: at, w: self.w, bias: self.bias, y };
        if made.is_some() {
            split(&self.plan, launcher, [x, weights], at, [self.plan.x.blocks, 0])?;
        }
        let through = Through {
            x,
            w: weights,
            residual: residual.map(Planar::located),
            y: output.planar.map(Planar::renewed),
        };
        let setting = Setting { aligned: [true, y.0.is_multiple_of(16)], ..self.setting };
        let parameters: [Arg; 2] = self.activation.arguments(crate::DType::F32);
        multiply(&self.plan, launcher, &setting, (at, through), &maps, parameters, true)?;
        Ok(true)
    }

    /// An error where planes are not those of the layer's sizes.
    fn check(&self, input: Input, residual: Option<&Planar>, output: Output) -> Result<()> {
        let sizes = |side: &Side| (side.key.0, side.scales, side.plane, side.elements);
        let result = sizes(&self.plan.result());
        let fits = |planar: Option<&Planar>| planar.is_none_or(|planar| sizes(&planar.side) == result);
        let reads = match input {
            Input::Planar(planar) => sizes(&planar.side) == sizes(&self.plan.x),
            Input::Floats(_) => true,
        };
        if reads && fits(residual) && fits(output.planar) {
            return Ok(());
        }
        Err(Error::Internal(format!("planes of other sizes than those of {:?}", self.plan)))
    }
}
