//! Every PTX file of the product loads.

use std::fs;
use std::path::Path;
use warpwright_emulator::{LoadErrorKind, Module, Target};

#[test]
fn all_kernels_of_the_product_load() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernels/ptx");
    let mut kernels = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        // Kernels of sm_90a use wgmma and bulk copies, which the emulator does not have.
        let name = path.to_string_lossy();
        if !name.ends_with(".sm_75.ptx") && !name.ends_with(".sm_80.ptx") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let module = Module::load(&text, &Target::new(80));
        let module = module.unwrap_or_else(|error| panic!("{}: {}", path.display(), error.log));
        kernels += module.kernels().len();
    }
    assert!(kernels > 100, "{kernels} kernels");
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
