//! One module, memory and launches by name, for the kernel tests.
#![allow(dead_code)]

use warpwright_emulator::exec::{Statistics, launch_clusters, launch_counted};
use warpwright_emulator::{Checks, DeviceMemory, Fault, Module, Target};

pub struct Rig {
    pub module: Module,
    pub memory: DeviceMemory,
    pub target: Target,
    pub checks: Checks,
}

/// A kernel argument.
#[derive(Clone)]
pub enum Arg {
    U64(u64),
    U32(u32),
    F32(f32),
    F64(f64),
    Words(Vec<u32>),
}

pub trait Element: Copy {
    fn bytes(self) -> Vec<u8>;
    fn of(bytes: &[u8]) -> Self;
    const SIZE: usize;
}

macro_rules! element {
    ($($ty:ty)*) => {
        $(impl Element for $ty {
            fn bytes(self) -> Vec<u8> {
                self.to_le_bytes().to_vec()
            }
            fn of(bytes: &[u8]) -> Self {
                <$ty>::from_le_bytes(bytes.try_into().unwrap())
            }
            const SIZE: usize = size_of::<$ty>();
        })*
    };
}
element!(f32 f64 u32 u64 u8);

impl Rig {
    pub fn text(text: &str, cc: u32) -> Rig {
        let target = Target::new(cc);
        let module = Module::load(text, &target).unwrap_or_else(|error| panic!("{}", error.log));
        let memory = DeviceMemory::new(1 << 30);
        module.place(&memory).unwrap();
        Rig { module, memory, target, checks: Checks::default() }
    }

    pub fn put<T: Element>(&self, data: &[T]) -> u64 {
        self.put_at(data, 0)
    }

    /// Memory whose start is `skew` bytes into an allocation.
    pub fn put_at<T: Element>(&self, data: &[T], skew: u64) -> u64 {
        let bytes: Vec<u8> = data.iter().flat_map(|x| x.bytes()).collect();
        let at = self.memory.alloc(bytes.len() as u64 + skew).unwrap() + skew;
        self.memory.write(at, &bytes).unwrap();
        at
    }

    pub fn empty(&self, bytes: usize) -> u64 {
        self.memory.alloc(bytes as u64).unwrap()
    }

    pub fn get<T: Element>(&self, at: u64, n: usize) -> Vec<T> {
        let mut bytes = vec![0; n * T::SIZE];
        self.memory.read(at, &mut bytes).unwrap();
        bytes.chunks(T::SIZE).map(T::of).collect()
    }

    pub fn pack(&self, kernel: &str, arguments: &[Arg]) -> Vec<u8> {
        let kernel = self.module.kernel(kernel).unwrap_or_else(|| panic!("no kernel {kernel}"));
        assert_eq!(kernel.params.len(), arguments.len(), "{}", kernel.name);
        let mut out = Vec::new();
        for (param, argument) in kernel.params.iter().zip(arguments) {
            out.resize(param.offset as usize, 0);
            match argument {
                Arg::U64(x) => out.extend(x.to_le_bytes()),
                Arg::U32(x) => out.extend(x.to_le_bytes()),
                Arg::F32(x) => out.extend(x.to_le_bytes()),
                Arg::F64(x) => out.extend(x.to_le_bytes()),
                Arg::Words(words) => {
                    out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
                    out.resize((param.offset + param.size) as usize, 0);
                }
            }
            assert_eq!(out.len(), (param.offset + param.size) as usize, "argument of {}", kernel.name);
        }
        out
    }

    pub fn try_launch(
        &self,
        kernel: &str,
        grid: [u32; 3],
        block: [u32; 3],
        shared: u32,
        arguments: &[Arg],
    ) -> Result<Statistics, Fault> {
        let params = self.pack(kernel, arguments);
        let kernel = self.module.kernel(kernel).unwrap();
        launch_counted(&kernel, grid, block, shared, &params, &self.memory, &self.target, &self.checks)
    }

    /// One row of blocks in clusters of `cluster`.
    pub fn try_clusters(
        &self,
        kernel: &str,
        blocks: u32,
        cluster: u32,
        threads: u32,
        arguments: &[Arg],
    ) -> Result<Statistics, Fault> {
        let params = self.pack(kernel, arguments);
        let kernel = self.module.kernel(kernel).unwrap();
        let (grid, block, cluster) = ([blocks, 1, 1], [threads, 1, 1], [cluster, 1, 1]);
        launch_clusters(&kernel, grid, block, cluster, 0, &params, &self.memory, &self.target, &self.checks)
    }

    pub fn launch(
        &self,
        kernel: &str,
        blocks: u32,
        threads: u32,
        shared: u32,
        arguments: &[Arg],
    ) -> Statistics {
        let result = self.try_launch(kernel, [blocks, 1, 1], [threads, 1, 1], shared, arguments);
        result.unwrap_or_else(|fault| panic!("{fault}"))
    }
}

/// Numbers in (-1, 1) from a fixed sequence.
pub fn noise(n: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(12345);
    (0..n)
        .map(|_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        })
        .collect()
}

pub fn floats(n: usize, seed: u64) -> Vec<f32> {
    noise(n, seed).into_iter().map(|x| x as f32).collect()
}

#[track_caller]
pub fn close(got: &[f32], want: &[f64], tolerance: f64) {
    assert_eq!(got.len(), want.len());
    for (n, (&a, &b)) in got.iter().zip(want).enumerate() {
        let fine = f64::from(a) == b
            || (a.is_nan() && b.is_nan())
            || (f64::from(a) - b).abs() <= tolerance * b.abs().max(1.0);
        assert!(fine, "element {n}: {a} instead of {b}");
    }
}

#[track_caller]
pub fn close64(got: &[f64], want: &[f64], tolerance: f64) {
    assert_eq!(got.len(), want.len());
    for (n, (&a, &b)) in got.iter().zip(want).enumerate() {
        let fine = a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance * b.abs().max(1.0);
        assert!(fine, "element {n}: {a} instead of {b}");
    }
}
