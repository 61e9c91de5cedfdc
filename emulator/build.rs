//! Link options of the shared library.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        // A real driver in the process must not take the place of functions that cuGetProcAddress gives.
        println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic");
    }
}
