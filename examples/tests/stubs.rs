//! Stubs that `mullion bind` makes, both ways, in Rust and C: as many arguments as there
//! can be, and structures by reference.

#[path = "../../crates/host/mullion/tests/support/mod.rs"]
mod support;

#[path = "stubs/all.rs"]
#[rustfmt::skip]
mod all;

use all::{Extension, Host, Size, imports};
use mullion::{Caller, Error, Image};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

struct Here;

impl Host for Here {
    fn weigh(
        &self,
        _: &Caller<'_>,
        a: i32,
        b: i32,
        c: i32,
        d: i32,
        e: i32,
        f: i32,
        g: i8,
        h: i64,
    ) -> Result<i64, Error> {
        let small = a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * i32::from(g);
        Ok(i64::from(small) + 8 * h)
    }

    fn host_grow(
        &self,
        _: &Caller<'_>,
        size: &mut Size,
        by: &Size,
        old: &mut Size,
    ) -> Result<(), Error> {
        *old = *size;
        size.width += by.width;
        size.height += by.height;
        Ok(())
    }
}

/// The extension, with the records that are made for it; of a version in which `weight`
/// stands for the type of the seventh argument.
fn extension(directory: &Path, weight: &str) -> PathBuf {
    for name in ["all.h", "extension.c"] {
        let text = std::fs::read_to_string(source("tests/stubs").join(name)).unwrap();
        std::fs::write(directory.join(name), text.replace("int8_t g", weight)).unwrap();
    }
    let interface = mullion_bind::read(&directory.join("all.h"), &[]).unwrap();
    let (records, image) = (directory.join("records.c"), directory.join("all.mx"));
    std::fs::write(&records, mullion_bind::extension(&interface, "all.h")).unwrap();
    let include = format!("-I{}", directory.display());
    let records = records.display().to_string();
    let options = ["-Wall", "-Werror", &include, &records];
    support::build(&directory.join("extension.c"), &image, &options);
    image
}

#[test]
fn eight_arguments_and_structures_by_reference_in_rust() {
    let interface = mullion_bind::read(&source("tests/stubs/all.h"), &[]).unwrap();
    let (kept, made) = (
        std::fs::read_to_string(source("tests/stubs/all.rs")).unwrap(),
        mullion_bind::rust(&interface, "all.h"),
    );
    assert_eq!(
        made, kept,
        "make it again: mullion bind --rust examples/tests/stubs/all.h -o examples/tests/stubs/all.rs"
    );
    let directory = tempfile::tempdir().unwrap();
    let image = Image::open(extension(directory.path(), "int8_t g")).unwrap();
    let domain = image.domain().imports(imports(Here)).load().unwrap();
    let extension = Extension::new(&domain).unwrap();
    let sum = extension.pass_on(1, 2, 3, 4, 5, 6, -7, -3_000_000_000);
    assert_eq!(sum.unwrap(), 91 - 49 - 24_000_000_000 + 1);
    let size = |width, height| Size { width, height };
    let (mut grown, mut old) = (size(3, 4), size(0, 0));
    extension.grow(&mut grown, &size(10, 20), &mut old).unwrap();
    assert_eq!((grown, old), (size(13, 24), size(3, 4)));
    assert_eq!(extension.gain(5, 6).unwrap(), 6 * 8 - 5 * 6);
}

/// Builds the host in C, in a directory for what is made.
fn host_in_c() -> (TempDir, PathBuf) {
    let made = tempfile::tempdir().unwrap();
    let directory = made.path();
    let interface = mullion_bind::read(&source("tests/stubs/all.h"), &[]).unwrap();
    let stubs = mullion_bind::c(&interface, "all.h").unwrap();
    std::fs::write(directory.join("all_host.h"), stubs).unwrap();
    support::cargo_build(&["mullion-capi"]);
    let program = directory.join("host");
    let output = Command::new("gcc")
        .args(["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror"])
        .arg("-I")
        .arg(source("../include"))
        .arg("-I")
        .arg(source("../sysroot/include"))
        .arg("-I")
        .arg(source("tests/stubs"))
        .arg("-I")
        .arg(directory)
        .arg(source("tests/stubs/host.c"))
        .arg(support::target().join("libmullion.a"))
        .args(["-lgcc_s", "-lpthread", "-ldl", "-lm", "-o"])
        .arg(&program)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    (made, program)
}

#[test]
fn eight_arguments_and_structures_by_reference_in_c() {
    let directory = tempfile::tempdir().unwrap();
    let image = extension(directory.path(), "int8_t g");
    let (_made, host) = host_in_c();
    let output = Command::new(&host).arg(&image).output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "-23999999957, 13x24 was 3x4, 18\n",
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// An extension that was built from another version of the header.
#[test]
fn stubs_for_c_refuse_an_export_of_another_type() {
    let directory = tempfile::tempdir().unwrap();
    let other = extension(directory.path(), "int16_t g");
    let (_made, host) = host_in_c();
    let output = Command::new(&host).arg(&other).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(said.contains("pass_on"), "{said}");
    assert!(said.contains("int8_t"), "{said}");
}
