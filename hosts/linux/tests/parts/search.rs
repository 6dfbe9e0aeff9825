//! A search with calls that a seed chooses, and what the running kernel tells of its walled modules.

use crate::{changed_before, expect, library};
use mullion_linux::{Instead, Machine, Protection, Search, Subject, Work, fresh_disk};
use std::fs;
use std::path::Path;

pub(crate) fn run(machine: &Machine<'_>, folder: &Path) {
    a_store_elsewhere_is_found_by_few_calls(machine, &folder.join("found"));
    the_running_kernel_tells_who_may_touch_what(machine, &folder.join("live"));
}

/// A file system that stores to a variable of the kernel for some links: the search finds it, and at most three calls are left.
/// The same calls of the file system as it is end nothing.
fn a_store_elsewhere_is_found_by_few_calls(machine: &Machine<'_>, folder: &Path) {
    let subject = Subject::named("ext2").expect("a file system");
    let (with, without) = (folder.join("with"), folder.join("without"));
    fs::create_dir_all(&with).expect("a folder");
    let to = with.join("namei.c");
    let mut wild = |source: &str| {
        let line = "if (l > sb->s_blocksize)";
        let is_it = source.ends_with("/ext2/namei.c");
        is_it.then(|| changed_before(source, line, "if (l == 11) panic_timeout = 77;", &to))
    };
    let search = Search::new(machine, subject, &library(), &with, &mut wild).expect("a module");
    let found = (1..9).find_map(|seed| search.seed(seed, 120, 40).expect("boots"));
    let found = found.expect("one of these seeds makes such a link");
    assert!(found.what.starts_with("Access:"), "{}", found.report);
    // The line of the source, in a function that is nobody else's.
    assert!(found.report.contains("namei.c:"), "{}", found.report);
    assert!((1..=3).contains(&found.calls.len()), "{:?}", found.told);
    assert!(
        found.told.iter().any(|call| call.contains(": symlink ")),
        "{:?}",
        found.told
    );

    let mut own = |_: &str| None;
    let search = Search::new(machine, subject, &library(), &without, &mut own).expect("a module");
    let nothing = search.seed(found.seed, 120, 40).expect("boots");
    assert!(nothing.is_none(), "{nothing:?}");
}

/// A map while a file system is mounted, and a trace of the boot: as the file system's policy says.
fn the_running_kernel_tells_who_may_touch_what(machine: &Machine<'_>, folder: &Path) {
    fs::create_dir_all(folder).expect("a folder");
    let disk = folder.join("disk");
    fresh_disk(&disk).expect("mke2fs");
    fs::write(folder.join("traced"), "").expect("a file");
    let work = Work {
        modules: vec!["ext2".to_owned(), "dummy".to_owned()],
        script: "mount ext2 /dev/ubda /mnt\ntree /mnt 2\nset /proc/mullion map\nset /proc/mullion other\n\
                 umount /mnt\nset /proc/mullion trace\n"
            .to_owned(),
        disks: vec![disk],
        ..Work::default()
    };
    let walled = machine.wall(&work.modules, Protection::ReadWrite, folder, &mut |_| None);
    walled.expect("modules");
    let said = machine.boot(&work, Instead::Walled(folder, &library()));
    let said = said.expect("a boot");
    expect(
        &said,
        &[
            "init: set /proc/mullion: done",
            "init: set /proc/mullion: Invalid argument",
            "init: ends",
        ],
    );
    let map = fs::read_to_string(folder.join("map.json")).expect("a map");
    expect(
        &map,
        &[
            "\"mullion_state\"",
            "\"ext2\"",
            "\"dummy\"",
            "\"read-write\"",
            "\"switch-gate\"",
        ],
    );
    let trace = fs::read(folder.join("trace.mmt")).expect("a trace");
    assert!(trace.len() > 10_000, "{} bytes", trace.len());
}
