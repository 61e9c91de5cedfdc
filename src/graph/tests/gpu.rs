//! Recorded runs on an emulated card. Kernels are launched but compute nothing: numbers are the business of the sessions' tests.

use super::*;
use crate::driver::fake::{Config, FakeDriver};
use crate::graph::Request;
use crate::kernels::Launcher;
use crate::tensor::DeviceCore;

fn network() -> Net {
    Net::new()
        .input("x", DType::F32, &[-1, 8])
        .constant("w", floats(&[8, 16], &[0.5; 128]))
        .node("MatMul", &["x", "w"], &["p"])
        .node_with("Softmax", &["p"], &["y"], &[("axis", Attribute::Int(1))])
        .outputs(&["y"])
}

struct Bench {
    session: Session,
    device: Arc<DeviceCore>,
    /// The last to go.
    driver: FakeDriver,
}

impl Bench {
    fn new(memory_limit: u64) -> Bench {
        Bench::of(network(), memory_limit)
    }

    fn of(network: Net, memory_limit: u64) -> Bench {
        let driver = FakeDriver::install(Config::default());
        let launcher = Arc::new(Launcher::new(DeviceCore::open(0).unwrap()));
        let device = launcher.core().clone();
        let options = Options { memory_limit, ..Options::default() };
        Bench { session: Session::new(network.graph, Some(launcher), options).unwrap(), device, driver }
    }

    /// Nothing is fetched, for kernels write nothing.
    fn run(&self, rows: usize) -> Result<Vec<Tensor>> {
        let feeds = vec![floats(&[rows, 8], &vec![1.0; rows * 8])];
        self.session.run_for(feeds, Request { outputs: &[], keep: false }, &|| Ok(()))
    }

    /// Graphs made, launches of graphs and launches of kernels so far.
    fn counts(&self) -> [usize; 3] {
        ["cuGraphInstantiateWithFlags", "cuGraphLaunch", "cuLaunchKernel"].map(|name| self.driver.calls(name))
    }
}

#[test]
fn a_plan_is_recorded_at_its_second_run_and_launched_as_a_whole_from_then_on() {
    let bench = Bench::new(0);
    bench.run(2).unwrap();
    let [graphs, whole, single] = bench.counts();
    assert_eq!([graphs, whole], [0, 0]);
    bench.run(2).unwrap();
    assert_eq!(bench.counts()[..2], [1, 1]);
    let recorded = bench.counts()[2];
    for _ in 0..3 {
        bench.run(2).unwrap();
    }
    assert_eq!(bench.counts(), [1, 4, recorded]);
    assert!(recorded > single);
    // Another shape is another plan.
    bench.run(3).unwrap();
    assert_eq!(bench.counts()[..2], [1, 4]);
    bench.run(3).unwrap();
    bench.run(2).unwrap();
    assert_eq!(bench.counts()[..2], [2, 6]);
}

#[test]
fn kernels_are_loaded_before_the_first_is_launched() {
    let network = Net::new()
        .input("x", DType::F32, &[1, 32, 28, -1])
        .constant("w", floats(&[64, 32, 3, 3], &[0.5; 18_432]))
        .constant("v", floats(&[26, 8], &[0.5; 208]))
        .node("Conv", &["x", "w"], &["c"])
        .node("Softmax", &["c"], &["s"])
        .node_with("Flatten", &["s"], &["f"], &[("axis", Attribute::Int(3))])
        .node("MatMul", &["f", "v"], &["y"])
        .outputs(&["y"]);
    let bench = Bench::of(network, 0);
    let run = || {
        let feeds = vec![floats(&[1, 32, 28, 28], &[1.0; 32 * 28 * 28])];
        bench.session.run_for(feeds, Request { outputs: &[], keep: false }, &|| Ok(()))
    };
    bench.driver.fail("cuLaunchKernel", 1, 1);
    assert!(run().is_err());
    let modules = bench.driver.calls("cuModuleLoadDataEx");
    assert!(modules > 2 && bench.driver.launches().is_empty(), "{modules}");
    // What was gone through left no form of the weights behind: the run makes them.
    run().unwrap();
    assert_eq!(bench.driver.calls("cuModuleLoadDataEx"), modules);
    let blocks = || {
        let launches = bench.driver.launches();
        let splits = launches.iter().filter(|launch| launch.kernel == "conv_f32_planes");
        splits.map(|launch| launch.blocks.0).collect::<Vec<_>>()
    };
    let both = blocks();
    run().unwrap();
    // Those of the weights are kept now.
    assert!(both.len() == 1 && blocks().last() < both.last(), "{both:?} {:?}", blocks());
}

#[test]
fn what_cannot_be_recorded_runs_step_by_step() {
    let bench = Bench::new(0);
    bench.driver.fail("cuGraphInstantiateWithFlags", 1, 2);
    for _ in 0..3 {
        bench.run(2).unwrap();
    }
    // It is not tried again.
    assert_eq!(bench.counts()[..2], [1, 0]);
}

#[test]
fn a_session_counts_its_memory_and_gives_it_back() {
    let bench = Bench::new(0);
    bench.run(2).unwrap();
    bench.run(2).unwrap();
    let held = bench.device.memory_stats();
    assert!(held.used > 0 && held.allocations > 0, "{held:?}");
    drop(bench.session);
    let left = bench.device.memory_stats();
    assert_eq!((left.used, left.allocations), (0, 0));
}

#[test]
fn the_memory_limit_refuses_and_what_fits_runs() {
    let bench = Bench::new(64 << 10);
    assert!(bench.run(2).is_ok());
    let error = bench.run(4000).err().unwrap();
    assert_eq!(error.code(), "MEMORY_LIMIT");
    assert!(bench.device.memory_stats().used <= 64 << 10);
    bench.run(2).unwrap();
    bench.run(2).unwrap();
}
