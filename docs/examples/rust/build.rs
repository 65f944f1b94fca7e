// Packs the model before the program is compiled, and links it.
use std::{env, path::PathBuf, process::Command};

fn main() {
    let out = PathBuf::from(env::var("OUT_DIR").unwrap());
    let model = env::var("MODEL").unwrap_or_else(|_| "../../../models/digits.onnx".into());
    let packer = env::var("SVOD_PACK_EXECUTABLE").unwrap_or_else(|_| "svod-pack".into());
    let status = Command::new(&packer)
        .args([&model, "--name", "digits", "--quiet", "--target"])
        .arg(env::var("CARGO_CFG_TARGET_ARCH").unwrap().replace("x86_64", "x86-64"))
        .arg("-o")
        .arg(out.join("libdigits.a"))
        .status()
        .unwrap_or_else(|error| panic!("{packer}: {error}"));
    assert!(status.success(), "{packer} could not pack {model}");
    println!("cargo:rustc-link-search=native={}", out.display());
    println!("cargo:rustc-link-lib=static=digits");
    println!("cargo:rerun-if-changed={model}");
    println!("cargo:rerun-if-env-changed=SVOD_PACK_EXECUTABLE");
}
