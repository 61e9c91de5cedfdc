//! What launches of forward and transposed convolutions share.

use super::Problem;
use crate::driver::DevicePtr;
use crate::ops::Call;
use crate::ops::operands::{device_operand, device_optional};
use crate::ops::spec::OpSpec;
use crate::ops::tile::{Card, LAUNCH, STEP};
use crate::tensor::DeviceView;
use crate::{Result, mismatch};

/// What a plan depends on besides the problem.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Bytes of an element.
    pub size: usize,
    /// Whether x and the result begin at multiples of 16 bytes.
    pub aligned: [bool; 2],
    /// The activation's code.
    pub activation: u32,
    pub card: Card,
}

/// The parts of `struct Conv` of kernels/common/conv_tile.cuh that the problem does not give.
#[derive(Debug, Clone, Copy)]
pub struct Extra {
    pub transposed: bool,
    pub flags: u32,
    pub splits: usize,
    pub split_tiles: usize,
    pub pixels: usize,
    pub residues: usize,
}

/// Positions in a padded axis stay below this on the GPU, so that sums of two fit 32 bits.
const LONGEST: usize = 1 << 30;
/// Elements of one plane, terms of a sum and rows of packed weights stay below this.
const MOST: usize = i32::MAX as usize;

/// Multiply-adds that the direct kernels do on one multiprocessor in a microsecond, in float32.
const DIRECT: f64 = 6500.0;
/// Microseconds for one term of a sum that has a thread to itself.
const TERM: f64 = 0.02;

/// Checks the sizes and calls `images` with each part of the problem and where its x, w, bias and result lie. `planes` are
/// the elements of one plane of x and of the result.
pub fn run_in_parts(
    call: &Call,
    problem: &Problem,
    planes: [usize; 2],
    (inputs, outputs): (&[Option<DeviceView>], &[DeviceView]),
    mut images: impl FnMut(&Problem, [DevicePtr; 4]) -> Result<()>,
) -> Result<()> {
    check_limits(call.spec, problem)?;
    let (x, w) = (device_operand(call, inputs, 0)?, device_operand(call, inputs, 1)?);
    problem.for_images(planes, call.dtype().size(), [x, outputs[0].ptr], |part, x, y| {
        images(part, [x, w, device_optional(inputs, 2), y])
    })
}

/// An error where the sizes pass what the kernels' 32-bit positions hold.
fn check_limits(spec: &OpSpec, problem: &Problem) -> Result<()> {
    for axis in &problem.axes {
        let (stride, dilation) = steps(axis);
        let reach = axis.input + axis.begin + axis.end + axis.kernel.saturating_mul(dilation);
        if reach.max(axis.output.saturating_mul(stride)) >= LONGEST {
            return mismatch!(
                "{}: a padded axis on the GPU takes up to {LONGEST} elements, got {axis:?}",
                spec.name
            );
        }
    }
    let planes = problem.slid().max(problem.windows());
    let terms = problem.group_in.saturating_mul(problem.taps());
    let channels = problem.groups * problem.group_in.max(problem.group_out);
    if planes.max(terms).max(channels) > MOST {
        return mismatch!(
            "{}: the GPU takes planes of up to {MOST} elements, as many channels and terms of a sum (got {problem:?})",
            spec.name
        );
    }
    Ok(())
}

/// Stride and dilation; those that no window or tap uses may be of any size and count as 1.
fn steps(axis: &crate::ops::geometry::WindowAxis) -> (usize, usize) {
    let stride = if axis.output <= 1 { 1 } else { axis.stride };
    let dilation = if axis.kernel <= 1 { 1 } else { axis.dilation };
    (stride, dilation)
}

impl Problem {
    /// The problem with the strides and dilations that matter.
    pub fn normalized(mut self) -> Problem {
        for axis in &mut self.axes {
            (axis.stride, axis.dilation) = steps(axis);
        }
        self
    }

    /// Blocks of 16 input channels.
    pub fn channel_blocks(&self) -> usize {
        self.group_in.div_ceil(STEP)
    }

    /// Output channels of a group, filled up to whole vectors.
    pub fn padded_out(&self, size: usize) -> usize {
        self.group_out.next_multiple_of(16 / size)
    }

    /// Elements of the packed weights, `None` where the kernels cannot count their rows.
    pub fn packed(&self, size: usize) -> Option<usize> {
        let rows = self.groups.checked_mul(self.channel_blocks() * STEP)?.checked_mul(self.taps())?;
        let elements = rows.checked_mul(self.padded_out(size))?;
        (rows > 0 && rows <= MOST && elements <= isize::MAX as usize / 16).then_some(elements)
    }

    /// Microseconds of the direct kernels, each output's sum having that many terms.
    pub fn direct_time(&self, outputs: usize, terms: usize, setting: &Setting) -> f64 {
        let rate =
            DIRECT * 4.0 / setting.size as f64 * f64::from(setting.card.multiprocessors) * setting.card.speed;
        LAUNCH + (outputs as f64 * terms as f64 / rate).max(terms as f64 * TERM)
    }

    /// `struct Conv`.
    pub fn pack(&self, setting: &Setting, extra: &Extra) -> Vec<u32> {
        let mut words =
            [self.images, self.groups, self.group_in, self.group_out].map(|size| size as u32).to_vec();
        let mut each = |size: &dyn Fn(usize) -> usize| words.extend((0..3).map(|index| size(index) as u32));
        let axes = &self.axes;
        each(&|index| if extra.transposed { axes[index].output } else { axes[index].input });
        each(&|index| if extra.transposed { axes[index].input } else { axes[index].output });
        each(&|index| axes[index].kernel);
        each(&|index| axes[index].stride);
        each(&|index| axes[index].dilation);
        each(&|index| axes[index].begin);
        let plane = if extra.transposed { self.slid() } else { self.windows() };
        let outputs = (self.images * self.groups * self.group_out * plane) as u64;
        words.extend([extra.flags, setting.activation, extra.splits as u32, extra.split_tiles as u32]);
        words.extend([self.channel_blocks() as u32, self.padded_out(setting.size) as u32]);
        words.extend([extra.pixels as u32, extra.residues as u32]);
        words.extend([outputs as u32, (outputs >> 32) as u32]);
        words
    }

    /// Calls `work(part, x, y)` with as many images at a time as the kernels can count the pixels of. The planes are
    /// those of x and of the result.
    pub fn for_images(
        &self,
        [plane_in, plane_out]: [usize; 2],
        size: usize,
        [x, y]: [DevicePtr; 2],
        mut work: impl FnMut(&Problem, DevicePtr, DevicePtr) -> Result<()>,
    ) -> Result<()> {
        let at_once = (MOST / plane_in.max(plane_out).max(1)).max(1);
        for first in (0..self.images).step_by(at_once) {
            let part = Problem { images: at_once.min(self.images - first), ..*self };
            let bytes = |channels: usize, plane: usize| (first * channels * plane * size) as u64;
            let x = x.offset(bytes(self.groups * self.group_in, plane_in));
            let y = y.offset(bytes(self.groups * self.group_out, plane_out));
            work(&part, x, y)?;
        }
        Ok(())
    }
}
