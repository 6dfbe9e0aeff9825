//! Compressors that work in steps: what pointers in their streams lead to is lent to them for each call, and nothing else.

use crate::{changed_before, expect, library};
use mullion_linux::{Instead, Machine, Protection, Work};
use std::fs;
use std::path::{Path, PathBuf};

/// Behind walls: both halves of two libraries, what one has in common, and the kernel's algorithms that call them.
const WALLED: [&str; 8] = [
    "deflate",
    "xxhash",
    "zlib_deflate",
    "zlib_inflate",
    "zstd",
    "zstd_common",
    "zstd_compress",
    "zstd_decompress",
];

pub(crate) fn run(machine: &Machine<'_>, folder: &Path) {
    streams_are_unfolded_as_they_were(machine, &folder.join("streams"));
    let attacks = [
        // The next call would lend what the pointer leads to.
        (
            "block",
            ("/zlib_inflate/inflate.c", "in -= strm->avail_in;"),
            "strm->workspace = (void *)strm->next_in;",
            "zlib_inflate has changed where memory is that was lent to it",
        ),
        (
            "caller",
            ("/crypto/deflate.c", "ret = zlib_deflate(stream, Z_FINISH);"),
            "stream->next_out = (u8 *)&panic_timeout;",
            "mullion: deflate: Policy in ",
        ),
        // The kernel may have given these addresses to somebody else.
        (
            "freed",
            ("/crypto/zstd.c", "ctx->cwksp = NULL;"),
            "WRITE_ONCE(*(char *)ctx->cwksp, 7);",
            "mullion: zstd: Access in ",
        ),
    ];
    for (name, place, harm, caught) in attacks {
        a_module_that_goes_further_is_stopped(machine, place, (harm, caught), &folder.join(name));
    }
}

fn work() -> Work {
    let modules = ["cryptomgr", "deflate", "zstd"];
    Work {
        modules: modules.map(str::to_owned).into(),
        script: "insmod mullion_streams\nshow /proc/sys/kernel/panic\nshow /proc/crypto\n"
            .to_owned(),
        ..Work::default()
    }
}

/// A text in steps of many lengths, through memory of the kernel's; and the kernel's own tests of both algorithms.
fn streams_are_unfolded_as_they_were(machine: &Machine<'_>, folder: &Path) {
    let work = work();
    let walled = machine.wall(&work.modules, Protection::ReadWrite, folder, &mut |_| None);
    assert_eq!(walled.expect("modules").len(), WALLED.len());
    let said = machine.boot(&work, Instead::Walled(folder, &library()));
    let said = said.expect("a boot");
    expect(
        &said,
        &[
            "mullion: zlib: 12 of 12 right, 12 at once, 12 smaller\n",
            "mullion: zstd: 12 of 12 right, 12 frames, 12 smaller, level 22, Src size is incorrect\n",
            "mullion: codes: 5, 7 symbols, tableLog requires too much memory : unsupported\n",
            "init: ends",
        ],
    );
    assert!(!said.contains(", called by "), "{said}");
    assert!(!said.contains("selftest     : failed"), "{said}");
    for name in WALLED {
        expect(&said, &[&format!("mullion: {name} is at")]);
    }
}

/// One of the modules has something before a line of its source.
fn a_module_that_goes_further_is_stopped(
    machine: &Machine<'_>,
    (file, line): (&str, &str),
    (harm, caught): (&str, &str),
    folder: &Path,
) {
    fs::create_dir_all(folder).expect("a folder");
    let work = work();
    let to: PathBuf = folder.join("changed.c");
    let mut source = |source: &str| {
        let is_it = source.ends_with(file);
        is_it.then(|| changed_before(source, line, harm, &to))
    };
    let walled = machine.wall(&work.modules, Protection::ReadWrite, folder, &mut source);
    assert_eq!(walled.expect("modules").len(), WALLED.len());
    let said = machine.boot(&work, Instead::Walled(folder, &library()));
    let said = said.expect("a boot");
    expect(
        &said,
        &[
            caught,
            "init: show /proc/sys/kernel/panic: -1",
            "init: ends",
        ],
    );
}
