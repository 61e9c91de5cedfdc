//! Going through launches before they are made, so that the kernels which are not loaded yet are loaded beside each other.

use super::launcher::{Generated, Launcher, poisoned};
use crate::Result;
use crate::tensor::{DeviceView, Form, FormKey};
use rayon::prelude::*;
use std::sync::{Arc, Mutex};

/// A kernel to load.
pub struct Missing {
    /// Its name, or the key that it is kept under.
    pub key: String,
    /// Where its text is.
    pub text: Text,
}

/// Where a kernel's text is.
pub enum Text {
    /// Among the embedded ones.
    Embedded,
    /// Made for this launch.
    Generated(Generated),
}

impl Launcher {
    /// Goes through what `submit` launches without launching it, then loads the kernels that are not loaded yet beside each
    /// other. Memory that `submit` takes is taken, and holds nothing.
    pub fn load_ahead(&self, submit: impl FnOnce(&Launcher) -> Result<()>) -> Result<()> {
        // Measured by launches.
        self.rates()?;
        let mut rehearsal = Launcher::new(self.core().clone());
        rehearsal.known = self.known.clone();
        rehearsal.missing = Some(Mutex::default());
        submit(&rehearsal)?;
        let missing = rehearsal.missing.take().unwrap_or_default().into_inner().map_err(poisoned)?;
        let load = |Missing { key, text }: Missing| {
            self.lookup(&key, || match text {
                Text::Embedded => self.load(&key),
                Text::Generated(generated) => self.load_generated(&key, &generated),
            })
            .map(drop)
        };
        match missing.len() {
            0 | 1 => missing.into_iter().try_for_each(load),
            _ => crate::cpu::install(|| missing.into_par_iter().try_for_each(load)),
        }
    }

    /// Notes a kernel that is not loaded, instead of a launch.
    pub(super) fn note(
        &self,
        missing: &Mutex<Vec<Missing>>,
        key: &str,
        text: impl FnOnce() -> Result<Text>,
    ) -> Result<()> {
        if self.known.functions.lock().map_err(poisoned)?.contains_key(key) {
            return Ok(());
        }
        let mut missing = missing.lock().map_err(poisoned)?;
        if !missing.iter().any(|other| other.key == key) {
            missing.push(Missing { key: key.to_string(), text: text()? });
        }
        Ok(())
    }

    /// A tensor's form for a call in which `partner` comes along, and note of this use.
    pub fn form<T: Send + Sync + 'static>(
        &self,
        view: &DeviceView,
        key: FormKey,
        partner: &DeviceView,
    ) -> Form<T> {
        if self.missing.is_some() { view.peek_form(key, partner) } else { view.form(key, partner) }
    }

    /// Keeps a form of so many bytes that was wanted, once the launch that makes it is enqueued.
    pub fn keep_form<T: Send + Sync + 'static>(
        &self,
        view: &DeviceView,
        key: FormKey,
        form: Arc<T>,
        bytes: u64,
    ) {
        if self.missing.is_none() {
            view.keep_form(key, form, bytes);
        }
    }

    /// Notes that a launch which reads a tensor's memory was enqueued.
    pub fn note_read(&self, view: &DeviceView) {
        if self.missing.is_none() {
            view.note_read();
        }
    }
}
