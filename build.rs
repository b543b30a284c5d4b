//! Owns how a debug build is linked: at a fixed address, as tests start it some ten thousand times.

use std::env::var;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |key: &str, value: &str| var(key).is_ok_and(|found| found == value);
    // Half the time that such a large program takes to start goes into moving it to where it was loaded.
    if is("PROFILE", "debug") && is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
