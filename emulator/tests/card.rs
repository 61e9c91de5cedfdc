//! The emulator against what a card gave for each instruction, as a checksum of its words in the committed results.

#[path = "../examples/validate/kernels.rs"]
mod kernels;
mod rig;

use kernels::{Promise, suite};
use std::path::Path;

const RESULTS: &str = "../bench/results/2026-11-30-h200-emulator.json";

/// CRC-32 as zlib has it.
fn checksum(words: &[u64]) -> u32 {
    let step = |sum: u32| if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 };
    let table: [u32; 256] = std::array::from_fn(|n| (0..8).fold(n as u32, |sum, _| step(sum)));
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    !bytes.fold(!0, |sum, byte| sum >> 8 ^ table[usize::from(sum as u8 ^ byte)])
}

#[test]
fn every_instruction_gives_the_bits_of_the_card() {
    assert_eq!(checksum(&[u64::from_le_bytes(*b"12345678")]), 0x9ae0_daaf);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(RESULTS);
    let results = std::fs::read_to_string(path).unwrap();
    let suite = suite();
    assert_eq!(suite.unknown, [""; 0]);
    let (mut wrong, mut absent) = (Vec::new(), Vec::new());
    suite.run(|_, test, words| {
        if test.promise == Promise::Approximate {
            return;
        }
        match results.split_once(&format!("\"{}\": \"", test.name)) {
            Some((_, rest)) if rest.starts_with(&format!("{:08x}\"", checksum(&words))) => {}
            Some(_) => wrong.push(test.name.clone()),
            None => absent.push(test.name.clone()),
        }
    });
    assert!(wrong.is_empty(), "unlike the card: {wrong:?}");
    assert!(absent.is_empty(), "not in {RESULTS}: {absent:?}");
}
