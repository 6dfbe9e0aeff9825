//! Disks behind the wall: requests, in both kernels, and when a driver is ended under load.

use crate::{expect, library};
use mullion_linux::{Instead, Machine, Protection, Work};
use std::fs;
use std::path::Path;

/// The line of the driver before which a change comes.
const MOVES: &str = "if (!op_is_write(opf)) {";
/// The first byte that is to be written.
const MARKED: &str = "op_is_write(opf) && ((char *)mem)[off] == '!'";

pub(crate) fn run(machine: &Machine<'_>, folder: &Path) {
    a_disk_does_as_without_a_wall(machine, &folder.join("brd"));
    a_disk_is_loaded_again_under_load(machine, &folder.join("disk"));
    a_request_is_the_driver_s_until_it_is_done(machine, &folder.join("requests"));
}

fn work(script: &str) -> Work {
    Work {
        modules: vec!["brd".to_owned()],
        script: script.to_owned(),
        ..Work::default()
    }
}

const FILLS: &str = "fill /dev/ram0 4096 1\ncheck /dev/ram0 4096 1\n";
const FILLED: [&str; 2] = [
    "init: fill /dev/ram0: 4096 KiB, 0 failed, 0 wrong",
    "init: check /dev/ram0: 4096 KiB, 0 failed, 0 wrong",
];

/// What is written is read, from both disks, in both kernels, and the driver goes.
fn a_disk_does_as_without_a_wall(machine: &Machine<'_>, folder: &Path) {
    let other = "fill /dev/ram1 512 9\ncheck /dev/ram0 4096 1\ncheck /dev/ram1 512 9\nrmmod brd\n";
    let work = work(&[FILLS, other].concat());
    let walled = machine.wall(&work.modules, Protection::ReadWrite, folder, &mut |_| None);
    assert_eq!(walled.expect("modules").len(), 1);
    let library = library();
    for instead in [Instead::Nothing, Instead::Walled(folder, &library)] {
        let said = machine.boot(&work, instead).expect("a boot");
        expect(&said, &FILLED);
        expect(
            &said,
            &[
                "init: check /dev/ram1: 512 KiB, 0 failed, 0 wrong",
                "init: rmmod brd: done",
                "init: ends",
            ],
        );
        assert!(!said.contains("mullion: brd: "), "{said}");
    }
}

/// The driver's source with something before it moves data.
fn walled(machine: &Machine<'_>, what: &str, folder: &Path, work: &Work) -> String {
    fs::create_dir_all(folder).expect("a folder");
    let mut source = |source: &str| {
        if !source.ends_with("/block/brd.c") {
            return None;
        }
        let text = fs::read_to_string(source).expect("the source");
        assert!(text.contains(MOVES), "{text}");
        let text = text.replacen(MOVES, &format!("{what}\n\t{MOVES}"), 1);
        let place = folder.join("brd.c");
        fs::write(&place, format!("#include <linux/panic.h>\n{text}")).expect("a file");
        Some(place)
    };
    let walled = machine.wall(&work.modules, Protection::ReadWrite, folder, &mut source);
    walled.expect("modules");
    let said = machine.boot(work, Instead::Walled(folder, &library()));
    said.expect("a boot")
}

/// A page makes the driver store to a variable of the kernel. Its writer gets an error, the disks go, and come again empty.
fn a_disk_is_loaded_again_under_load(machine: &Machine<'_>, folder: &Path) {
    let harm = format!("if ({MARKED}) panic_timeout = 77;");
    let script = [
        "mark /dev/ram0 64 1\nshow /proc/sys/kernel/panic\nrest more\nrest more\n",
        FILLS,
    ]
    .concat();
    let said = walled(machine, &harm, folder, &work(&[FILLS, &script].concat()));
    expect(&said, &FILLED);
    expect(
        &said,
        &[
            "mullion: brd: Access in ",
            "brd.c:",
            "init: mark /dev/ram0: 64 KiB, 1 failed",
            " packets and requests were taken back",
            "mullion: brd is loaded again",
            "init: show /proc/sys/kernel/panic: -1",
            "init: ends",
        ],
    );
    assert_eq!(said.matches(FILLED[1]).count(), 2, "{said}");
}

/// A driver that writes what it may only read, or ends a request twice, is stopped there.
fn a_request_is_the_driver_s_until_it_is_done(machine: &Machine<'_>, folder: &Path) {
    let harms = [
        (
            "data",
            format!("if ({MARKED}) ((char *)mem)[off] = '?';"),
            "mullion: brd: Access in ",
        ),
        (
            "twice",
            format!(
                "static struct bio *none; if ({MARKED}) bio_endio(none ?: (struct bio *)page);"
            ),
            "is not lent to the module",
        ),
    ];
    for (name, harm, caught) in harms {
        let work = work("mark /dev/ram0 64 1\nrest more\nshow /proc/sys/kernel/ostype\n");
        let said = walled(machine, &harm, &folder.join(name), &work);
        expect(
            &said,
            &[
                caught,
                "mullion: brd is loaded again",
                ": Linux",
                "init: ends",
            ],
        );
    }
}
