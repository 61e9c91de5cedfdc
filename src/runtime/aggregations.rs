//! Aggregations on their way through the compute threads.

use super::task::{Source, guarded};
use crate::aggregate::{Aggregation, Report, Watch};
use crate::{Error, Result, Tensor};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

type Done = Box<dyn FnOnce(Result<Vec<Tensor>>) + Send>;

/// One call: how far it has come and, at its end, what it did.
#[derive(Default)]
pub struct Round {
    watch: OnceLock<Watch>,
    report: Mutex<Option<Report>>,
}

impl Round {
    /// Queues a checked call on the compute threads. The starting point, if there is one, is the last source.
    pub fn submit(
        self: &Arc<Self>,
        call: Aggregation,
        rows: Vec<Source>,
        start: Option<Source>,
        cancelled: Arc<AtomicBool>,
        done: Done,
    ) -> Result<()> {
        let watch = Watch::over(cancelled);
        self.watch
            .set(watch.clone())
            .map_err(|_| Error::Internal("an aggregation was submitted twice".into()))?;
        let round = self.clone();
        crate::cpu::spawn(move || {
            let outcome = guarded("aggregate", || {
                watch.check()?;
                let rows = rows.into_iter().map(Source::into_tensor).collect::<Result<Vec<_>>>()?;
                let start = start.map(Source::into_tensor).transpose()?;
                call.run_cpu(&rows, start.as_ref(), &watch)
            });
            done(outcome.map(|(result, report)| {
                *round.report.lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
                vec![result]
            }));
        });
        Ok(())
    }

    /// The part that is done, 0 to 1.
    pub fn progress(&self) -> f64 {
        self.watch.get().map_or(0.0, Watch::progress)
    }

    /// What the call did, once it is done.
    pub fn report(&self) -> Option<Report> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
