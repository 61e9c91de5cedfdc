//! The compute pool: our own threads, so that libuv's four stay free.

use std::sync::OnceLock;

/// Environment variable that sets the number of compute threads.
const THREADS_VARIABLE: &str = "WARPWRIGHT_THREADS";

fn pool() -> &'static rayon::ThreadPool {
    static POOL: OnceLock<rayon::ThreadPool> = OnceLock::new();
    POOL.get_or_init(|| {
        let wanted = std::env::var(THREADS_VARIABLE).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
        let builder = rayon::ThreadPoolBuilder::new()
            .num_threads(wanted)
            .thread_name(|index| format!("warpwright-{index}"));
        builder.build().expect("the system starts threads")
    })
}

/// Runs parallel work on the compute pool and waits for it.
pub fn install<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    pool().install(work)
}

/// Queues work on the compute pool, first in first out.
pub fn spawn(work: impl FnOnce() + Send + 'static) {
    pool().spawn_fifo(work);
}

/// Threads for parallel copies, apart from the compute pool so that a copy never waits for a computation. `None` on a
/// machine with few processors, where handing a copy over would only add a wait.
pub fn copy_pool() -> Option<&'static rayon::ThreadPool> {
    static POOL: OnceLock<Option<rayon::ThreadPool>> = OnceLock::new();
    let pool = POOL.get_or_init(|| {
        let count = (std::thread::available_parallelism().map_or(1, usize::from) / 2).min(8);
        let builder = rayon::ThreadPoolBuilder::new().num_threads(count);
        if count < 2 { None } else { builder.thread_name(|index| format!("ww-copy-{index}")).build().ok() }
    });
    pool.as_ref()
}

/// Number of compute threads.
pub fn thread_count() -> usize {
    pool().current_num_threads()
}
