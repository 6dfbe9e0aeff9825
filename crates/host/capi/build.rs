//! Gives the shared library its name for programs that were linked with it.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libmullion.so.0");
    println!("cargo::rerun-if-changed=build.rs");
}
