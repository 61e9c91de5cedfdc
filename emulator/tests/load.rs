//! Every PTX file of the product loads on a card of its level.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use warpwright_emulator::{LoadErrorKind, Module, Target};

#[test]
fn all_kernels_of_the_product_load() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernels/ptx");
    let mut loaded = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let level =
            name.strip_suffix(".ptx").and_then(|name| name.split_once(".sm_")).map(|(_, level)| level);
        let level = level.unwrap_or_else(|| panic!("no level in the name {name}"));
        let capability: u32 = level.trim_end_matches('a').parse().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let module = Module::load(&text, &Target::new(capability));
        let module = module.unwrap_or_else(|error| panic!("{name}: {}", error.log));
        *loaded.entry(capability).or_insert(0) += module.kernels().len();
    }
    assert!(loaded.keys().eq(&[75, 80, 90]) && loaded.values().all(|&kernels| kernels > 20), "{loaded:?}");
}

fn refused(text: &str) -> (LoadErrorKind, String) {
    let error = Module::load(text, &Target::new(75)).err().expect("should not load");
    (error.kind, error.log)
}

const HEAD: &str = ".version 7.0\n.target sm_75\n.address_size 64\n";

fn kernel(body: &str) -> String {
    format!("{HEAD}.visible .entry k()\n{{\n.reg .b32 %r<4>;\n.reg .b64 %rd<4>;\n{body}\nret;\n}}\n")
}

#[test]
fn what_the_card_does_not_take_is_refused_with_a_log() {
    let (kind, log) = refused(".version 99.0\n.target sm_75\n.address_size 64\n");
    assert_eq!(kind, LoadErrorKind::Version);
    assert!(log.contains("Unsupported .version 99.0"), "{log}");
    let (kind, log) = refused(".version 7.0\n.target sm_80\n.address_size 64\n");
    assert_eq!(kind, LoadErrorKind::Target);
    assert!(log.contains("sm_80"), "{log}");
    let (kind, log) = refused(&kernel("frobnicate.b32 %r0, %r1;"));
    assert_eq!(kind, LoadErrorKind::Unknown);
    assert!(log.contains("line 8") && log.contains("frobnicate"), "{log}");
    assert_eq!(refused(&kernel("add.s33 %r0, %r1, %r2;")).0, LoadErrorKind::Unknown);
    assert_eq!(refused(&kernel("add.s32 %r0, %r1, %rd2;")).0, LoadErrorKind::Syntax);
    assert_eq!(refused(&kernel("add.s32 %r0, %r1;")).0, LoadErrorKind::Syntax);
    assert_eq!(refused(&kernel("add.s32 %r0, %r1, %r9;")).0, LoadErrorKind::Syntax);
    assert_eq!(refused(&kernel("bra nowhere;")).0, LoadErrorKind::Syntax);
    assert_eq!(refused(&kernel("ld.global.L9::x.u32 %r0, [%rd1];")).0, LoadErrorKind::Unknown);
    let (kind, log) = refused(&kernel("cp.async.wait_all;"));
    assert_eq!(kind, LoadErrorKind::Syntax);
    assert!(log.contains("requires .target sm_80"), "{log}");
    assert_eq!(refused("not PTX at all").0, LoadErrorKind::Unknown);
    assert_eq!(refused(".version 7.0 .target sm_75 .entry k( {").0, LoadErrorKind::Syntax);
}
