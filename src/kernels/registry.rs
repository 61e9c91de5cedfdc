//! The kernel table, derived from the embedded PTX by build.rs, and the choice of level for a device.

use crate::{Error, Result};
use ruzstd::decoding::StreamingDecoder;
use std::collections::HashMap;
use std::io::Read;
use std::sync::OnceLock;

/// Kind and size of a kernel parameter as the PTX declares it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parameter {
    /// A pointer or a 64-bit integer.
    Word64,
    /// A 32-bit integer.
    Word32,
    /// A float32.
    F32,
    /// A float64.
    F64,
    /// A struct by value of that many bytes.
    Block(usize),
}

/// A kernel in a module.
#[derive(Debug)]
pub struct Entry {
    /// Name, `op_dtype[_variant]`.
    pub name: &'static str,
    /// Parameters in order.
    pub parameters: &'static [Parameter],
    /// Which of the module's packs holds its text, with all that it refers to.
    pack: usize,
    /// Where in the unpacked bytes.
    place: (usize, usize),
}

/// One PTX file.
#[derive(Debug)]
pub struct ModuleSource {
    /// Family: the file's name.
    pub family: &'static str,
    /// Lowest compute capability that takes it, as 75, 80, 90.
    pub level: u32,
    /// Whether only exactly that compute capability takes it (sm_90a).
    pub exact: bool,
    /// The kernels' texts one after another, packed by build.rs; the text of a module without kernels.
    packs: &'static [&'static [u8]],
    /// Its kernels.
    pub entries: &'static [Entry],
}

include!(concat!(env!("OUT_DIR"), "/kernels.rs"));

impl ModuleSource {
    /// The PTX text of one of its kernels, a module by itself.
    pub fn kernel(&self, entry: &Entry) -> Result<String> {
        let (start, end) = entry.place;
        let mut text = self.unpack(entry.pack, end)?;
        text.drain(..start);
        Ok(text)
    }

    /// The PTX text of a module that has functions alone.
    pub fn functions(&self) -> Result<String> {
        self.unpack(0, usize::MAX)
    }

    /// The first bytes of a pack.
    fn unpack(&self, pack: usize, size: usize) -> Result<String> {
        let failed =
            |error: &dyn std::fmt::Display| Error::Internal(format!("module '{}': {error}", self.family));
        let packed = self.packs.get(pack).ok_or_else(|| failed(&"a pack is missing"))?;
        let mut text = String::new();
        let decoder = StreamingDecoder::new(*packed).map_err(|error| failed(&error))?;
        decoder.take(size as u64).read_to_string(&mut text).map_err(|error| failed(&error))?;
        Ok(text)
    }

    fn fits(&self, compute_capability: u32) -> bool {
        if self.exact { self.level == compute_capability } else { self.level <= compute_capability }
    }
}

/// Environment variable that keeps kernels of higher levels from being taken: 75, 80, 90.
const LEVEL_VARIABLE: &str = "WARPWRIGHT_LEVEL";

/// The highest level that may be taken.
pub fn highest_level() -> u32 {
    static HIGHEST: OnceLock<u32> = OnceLock::new();
    let given = || std::env::var(LEVEL_VARIABLE).ok().and_then(|text| text.parse().ok());
    *HIGHEST.get_or_init(|| given().unwrap_or(u32::MAX))
}

type Index = HashMap<&'static str, Vec<(&'static ModuleSource, &'static Entry)>>;

/// The kernel of that name at the highest level that the device takes.
pub fn find(name: &str, compute_capability: u32) -> Result<(&'static ModuleSource, &'static Entry)> {
    static INDEX: OnceLock<Index> = OnceLock::new();
    let index = INDEX.get_or_init(|| {
        let mut index = Index::new();
        for module in MODULES {
            for entry in module.entries {
                index.entry(entry.name).or_default().push((module, entry));
            }
        }
        index
    });
    let candidates = index.get(name).ok_or_else(|| Error::Internal(format!("no kernel '{name}'")))?;
    let fitting = candidates.iter().filter(|(module, _)| module.fits(compute_capability));
    fitting.max_by_key(|(module, _)| (module.exact, module.level)).copied().ok_or_else(|| {
        let lowest = candidates.iter().map(|(module, _)| module.level).min().unwrap_or(0);
        Error::UnsupportedOp(format!(
            "kernel '{name}' needs compute capability {}.{}, the device has {}.{}",
            lowest / 10,
            lowest % 10,
            compute_capability / 10,
            compute_capability % 10
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_stay_at_the_documented_floor() {
        for module in MODULES {
            // Device functions alone: src/kernels/fused takes them.
            let functions = module.family.starts_with("functions");
            assert_eq!(module.entries.is_empty(), functions, "{}", module.family);
            let mut texts: Vec<String> =
                module.entries.iter().map(|entry| module.kernel(entry).unwrap()).collect();
            if functions {
                texts.push(module.functions().unwrap());
            }
            let expected = if module.exact { "8.0" } else { "7.0" };
            let target = format!(".target sm_{}{}", module.level, if module.exact { "a" } else { "" });
            for ptx in texts {
                let version = ptx.lines().find_map(|line| line.strip_prefix(".version ")).unwrap();
                assert_eq!(version.trim(), expected, "{} sm_{}", module.family, module.level);
                assert!(ptx.lines().any(|line| line.trim() == target), "{}: {target}", module.family);
            }
        }
    }

    #[test]
    fn every_kernel_is_a_module_by_itself() {
        for module in MODULES {
            for entry in module.entries {
                let text = module.kernel(entry).unwrap();
                assert_eq!(text.matches(".visible .entry ").count(), 1, "{}", entry.name);
                assert!(text.contains(&format!(".visible .entry {}(", entry.name)));
                assert_eq!(text.matches('{').count(), text.matches('}').count(), "{}", entry.name);
                if let Ok(folder) = std::env::var("WARPWRIGHT_DUMP") {
                    std::fs::write(format!("{folder}/{}.sm_{}.ptx", entry.name, module.level), text).unwrap();
                }
            }
        }
    }

    #[test]
    fn a_kernel_has_one_signature_at_every_level() {
        for module in MODULES {
            for entry in module.entries {
                let other = find(entry.name, if module.exact { module.level } else { 999 }).unwrap().1;
                assert_eq!(entry.parameters, other.parameters, "{}", entry.name);
            }
        }
    }

    /// Tiles that compute capability 7.5 does without: its shared memory holds as many of others, or its tensor cores know
    /// no bfloat16.
    const LATER: [&str; 6] = [
        "matmul_bf16_mma_256x128",
        "matmul_bf16_mma_64x128",
        "matmul_bf16_mma_64x64",
        "matmul_f16_mma_64x64",
        "matmul_f32_mma_64x128",
        "matmul_f32_mma_half_64x128",
    ];

    /// Families of tensor cores that compute capability 7.5 lacks.
    const FROM_80: [&str; 2] = ["gemm_direct", "gemm_double"];

    #[test]
    fn every_family_has_a_form_for_the_baseline() {
        for module in MODULES.iter().filter(|module| !module.exact && !FROM_80.contains(&module.family)) {
            for entry in module.entries {
                // Older cards have no tensor cores for float64.
                let later = LATER.contains(&entry.name) || module.family == "gemm_double";
                assert_eq!(find(entry.name, 75).is_ok(), !later, "{} at sm_75", entry.name);
            }
        }
    }
}
