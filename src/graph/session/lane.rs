//! A session's part of a GPU: weights that all runs share, and lanes that runs take turns on.

use super::replay::Replay;
use crate::Result;
use crate::graph::plan::Stage;
use crate::kernels::Launcher;
use crate::tensor::Tensor;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Weights, and the lanes that no run uses now.
pub struct Gpu {
    /// The device's own launcher: tensors of callers lie there.
    device: Arc<Launcher>,
    free: Mutex<Vec<Lane>>,
    /// Held by runs that may make forms of weights, until these are made.
    first: Mutex<()>,
    weights: Weights,
}

/// A stream with memory of its own and what was recorded on it.
pub struct Lane {
    pub launcher: Launcher,
    known: Vec<(Weak<Stage>, Known)>,
}

/// What a lane knows of a stage.
pub enum Known {
    /// It ran here once, so its kernels are loaded and forms of its weights are made.
    Ran,
    /// It is recorded.
    Recorded(Box<Replay>),
    /// It cannot be.
    Never,
}

/// Copies of lasting constants, each made once.
struct Weights {
    launcher: Launcher,
    /// By the identity of the host tensor, which stays so that no other takes its address.
    made: Mutex<HashMap<usize, (Tensor, Tensor)>>,
}

impl Gpu {
    /// `memory_limit` in bytes, 0 for none, bounds what the session takes of the device.
    pub fn new(device: Arc<Launcher>, memory_limit: u64) -> Result<Gpu> {
        let launcher = device.branch()?;
        launcher.core().set_memory_limit(memory_limit);
        let weights = Weights { launcher, made: Mutex::default() };
        Ok(Gpu { device, free: Mutex::default(), first: Mutex::default(), weights })
    }

    /// The device's own launcher.
    pub fn device(&self) -> &Arc<Launcher> {
        &self.device
    }

    /// A lane for one run.
    pub fn lane(&self) -> Result<Lane> {
        match lock(&self.free).pop() {
            Some(lane) => Ok(lane),
            None => Ok(Lane { launcher: self.weights.launcher.branch()?, known: Vec::new() }),
        }
    }

    /// Takes a lane back.
    pub fn give(&self, lane: Lane) {
        lock(&self.free).push(lane);
    }

    /// To be held while steps run that may make forms of weights.
    pub fn first(&self) -> MutexGuard<'_, ()> {
        lock(&self.first)
    }

    /// A lasting constant on the device, for work that is submitted to that lane from now on.
    pub fn weight(&self, lane: &Launcher, tensor: &Tensor) -> Result<Tensor> {
        let key = tensor.identity();
        let mut made = lock(&self.weights.made);
        if let Some((_, copy)) = made.get(&key) {
            return copy.reshape(tensor.meta().dims.clone());
        }
        let core = self.weights.launcher.core();
        let copy = tensor.to_device(core)?;
        copy.keep_forms();
        lane.core().follow(core)?;
        made.insert(key, (tensor.clone(), copy.clone()));
        Ok(copy)
    }
}

impl Lane {
    /// What is known of that stage.
    pub fn known(&self, stage: &Arc<Stage>) -> Option<&Known> {
        let is_it = |known: &Weak<Stage>| std::ptr::eq(known.as_ptr(), Arc::as_ptr(stage));
        self.known.iter().find(|(known, _)| is_it(known)).map(|(_, known)| known)
    }

    /// Notes what is known of that stage, and forgets stages that are gone.
    pub fn note(&mut self, stage: &Arc<Stage>, known: Known) {
        let keep = |other: &Weak<Stage>| {
            other.strong_count() > 0 && !std::ptr::eq(other.as_ptr(), Arc::as_ptr(stage))
        };
        self.known.retain(|(other, _)| keep(other));
        self.known.push((Arc::downgrade(stage), known));
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        // Memory goes back to the driver after this; a lost context has nothing under way.
        let _ = self.launcher.core().stream().synchronize();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
