//! The extension that most tests use, and what it imports.

use crate::support;
use mullion::{Callback, Caller, Image, Imports, Ptr};
use std::path::Path;
use std::sync::LazyLock;

/// `everything.c`, built once.
pub(crate) static IMAGE: LazyLock<Image> = LazyLock::new(|| {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/extensions/everything.c");
    let image = directory.path().join("everything.mx");
    support::build(&source, &image, &[]);
    Image::open(&image).expect("it is verified")
});

/// Imports that do nothing of interest.
pub(crate) fn imports() -> Imports {
    Imports::new()
        .function("host_log", |_: &Caller<'_>, _: u32, _: Ptr<i8>| {})
        .function(
            "host_mix",
            |_: &Caller<'_>, _: f64, _: u32, _: f32, _: i8| 0.0,
        )
        .function("host_again", |_: &Caller<'_>, _: i32| 0)
        .function(
            "host_apply",
            |caller: &Caller<'_>, function: Callback<fn(i32) -> i32>, value: i32| {
                function.call(caller, value)
            },
        )
        .function("host_lock", |_: &Caller<'_>| 0u64)
        .function("host_unlock", |_: &Caller<'_>, _: u64| 0)
}
