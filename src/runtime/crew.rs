//! Threads that wait for a GPU on behalf of runs and aggregations.

use crate::{Error, Result};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Work of one run.
pub type Job = Box<dyn FnOnce() + Send>;

/// Jobs that are under way at once.
const MOST: usize = 4;

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
    ended: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// Up to four threads, started when a job finds none idle. They end with it, once the jobs queued are done.
#[derive(Default)]
pub struct Crew(Arc<Shared>);

impl Crew {
    /// Queues a job. Jobs start in order.
    pub fn queue(&self, job: Job) -> Result<()> {
        let mut state = self.0.state();
        state.jobs.push_back(job);
        if state.idle >= state.jobs.len() || state.threads == MOST {
            self.0.changed.notify_one();
            return Ok(());
        }
        let shared = self.0.clone();
        let started = std::thread::Builder::new().name("ww-crew".into()).spawn(move || shared.work());
        match started {
            Ok(_) => state.threads += 1,
            Err(_) if state.threads > 0 => {}
            Err(error) => {
                state.jobs.pop_back();
                return Err(Error::OutOfMemory(format!("a thread could not be started: {error}")));
            }
        }
        Ok(())
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.0.state().ended = true;
        self.0.changed.notify_all();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        loop {
            let mut state = self.state();
            let job = loop {
                if let Some(job) = state.jobs.pop_front() {
                    break job;
                }
                if state.ended {
                    return;
                }
                state.idle += 1;
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.idle -= 1;
            };
            drop(state);
            job();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn jobs_start_in_order_and_no_more_than_four_are_under_way() {
        let crew = Crew::default();
        let (started, starts) = channel();
        let gate = Arc::new(Mutex::new(()));
        let held = gate.lock().unwrap();
        for number in 0..10 {
            let (gate, started) = (gate.clone(), started.clone());
            crew.queue(Box::new(move || {
                started.send(number).unwrap();
                drop(gate.lock());
            }))
            .unwrap();
        }
        let mut first: Vec<i32> = (0..MOST).map(|_| starts.recv().unwrap()).collect();
        first.sort_unstable();
        assert_eq!(first, [0, 1, 2, 3]);
        assert!(starts.recv_timeout(std::time::Duration::from_millis(20)).is_err());
        drop(held);
        // Those that are queued when it ends are done as well.
        drop(crew);
        drop(started);
        let mut rest: Vec<i32> = starts.iter().collect();
        rest.sort_unstable();
        assert_eq!(rest, [4, 5, 6, 7, 8, 9]);
    }

    #[test]
    fn one_job_after_the_other_takes_one_thread() {
        let crew = Crew::default();
        let (done, waits) = channel();
        for _ in 0..5 {
            let done = done.clone();
            crew.queue(Box::new(move || done.send(()).unwrap())).unwrap();
            waits.recv().unwrap();
            while crew.0.state().idle == 0 {
                std::thread::yield_now();
            }
        }
        assert_eq!(crew.0.state().threads, 1);
    }
}
