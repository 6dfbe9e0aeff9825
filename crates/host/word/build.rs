//! Gives the shared library its name for programs that were linked with it.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libmullion_word.so.0");
    println!("cargo::rerun-if-changed=build.rs");
}
