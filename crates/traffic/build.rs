//! Compiles what runs in the kernel, where it is asked for.

use std::env;
use std::path::Path;
use std::process::Command;

const SOURCE: &str = "src/capture/uprobes/server.bpf.c";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={SOURCE}");
    println!("cargo::rerun-if-env-changed=CLANG");
    if env::var_os("CARGO_FEATURE_UPROBES").is_none() {
        return;
    }
    let target = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo names the processor");
    let out = env::var("OUT_DIR").expect("cargo names a directory");
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    let done = Command::new(&clang)
        .args([
            "--target=bpf",
            "-O2",
            "-g",
            "-Wall",
            "-Werror",
            "-c",
            SOURCE,
        ])
        // Paths of this machine are nobody's business.
        .arg("-fdebug-compilation-dir=.")
        .arg(format!("-D__TARGET_{target}"))
        .arg("-o")
        .arg(Path::new(&out).join("server.bpf.o"))
        .status();
    match done {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{clang} could not compile {SOURCE}: {status}"),
        Err(error) => panic!(
            "the feature uprobes needs clang ({error}): install it (Debian: clang), name it with CLANG, or build \
             without the feature"
        ),
    }
}
