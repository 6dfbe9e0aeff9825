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
    the_kernel_follows_no_tree_of_a_driver(machine, &folder.join("trees"));
    a_call_that_returns_leaves_nothing_in_its_task(machine, &folder.join("returns"));
    a_disk_that_is_added_stays_as_it_is(machine, &folder.join("added"));
    a_disk_with_functions_of_others_is_not_added(machine, &folder.join("others"));
    the_kernel_s_count_of_a_request_is_its_own(machine, &folder.join("counts"));
}

/// brd with something in the place of a text of its source.
fn replaced(machine: &Machine<'_>, (from, to): (&str, &str), folder: &Path, work: &Work) -> String {
    fs::create_dir_all(folder).expect("a folder");
    let mut source = |source: &str| {
        if !source.ends_with("/block/brd.c") {
            return None;
        }
        let text = fs::read_to_string(source).expect("the source");
        assert!(text.contains(from), "{text}");
        let place = folder.join("brd.c");
        let text = text.replacen(from, to, 1);
        fs::write(&place, format!("#include <linux/panic.h>\n{text}")).expect("a file");
        Some(place)
    };
    let walled = machine.wall(&work.modules, Protection::ReadWrite, folder, &mut source);
    walled.expect("modules");
    let said = machine.boot(work, Instead::Walled(folder, &library()));
    said.expect("a boot")
}

/// The kernel would call what the driver's table says when somebody opens the disk.
fn a_disk_with_functions_of_others_is_not_added(machine: &Machine<'_>, folder: &Path) {
    let named = ".submit_bio =\t\tbrd_submit_bio,";
    let more = format!("{named}\n\t.open = (void *)&panic_timeout,");
    let work = work("show /dev/ram0\nshow /proc/sys/kernel/ostype\n");
    let said = replaced(machine, (named, &more), folder, &work);
    expect(
        &said,
        &[
            "has functions that are not the module's",
            ": Linux",
            "init: ends",
        ],
    );
}

/// It is in the word that says how a request went.
fn the_kernel_s_count_of_a_request_is_its_own(machine: &Machine<'_>, folder: &Path) {
    let begins = "bio_for_each_segment(bvec, bio, iter) {";
    let counts =
        format!("if (op_is_write(bio_op(bio))) atomic_set(&bio->__bi_remaining, 1);\n{begins}");
    let work = work("mark /dev/ram0 64 1\nrest more\nshow /proc/sys/kernel/ostype\n");
    let said = replaced(machine, (begins, &counts), folder, &work);
    expect(
        &said,
        &[
            "mullion: brd: Access in ",
            "mullion: brd is loaded again",
            ": Linux",
            "init: ends",
        ],
    );
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

/// A pointer to nothing in the root of its tree harms the driver's own data at most. Its pages are where they were.
fn the_kernel_follows_no_tree_of_a_driver(machine: &Machine<'_>, folder: &Path) {
    let harms = [
        ("node", "0x5a5a5a5a5a5a5a52ul"),
        ("kernel", "((unsigned long)&panic_timeout | 2)"),
    ];
    for (name, pointer) in harms {
        let harm = format!("if ({MARKED}) brd->brd_pages.xa_head = (void *){pointer};");
        let script = ["mark /dev/ram1 64 1\nrest more\n", FILLS, "rmmod brd\n"].concat();
        let said = walled(machine, &harm, &folder.join(name), &work(&script));
        expect(&said, &["init: mark /dev/ram1: 64 KiB, 0 failed"]);
        expect(&said, &FILLED);
        expect(&said, &["init: rmmod brd: done", "init: ends"]);
        assert!(!said.contains("mullion: brd: "), "{said}");
    }
}

/// A driver that goes back with a lock closed, or with something of the task off, is stopped there. The task goes on.
fn a_call_that_returns_leaves_nothing_in_its_task(machine: &Machine<'_>, folder: &Path) {
    let harms = [
        ("faults", "pagefault_disable();", "page faults off"),
        (
            "mutex",
            "{ static DEFINE_MUTEX(own); mutex_lock(&own); }",
            "a mutex closed",
        ),
    ];
    for (name, harm, left) in harms {
        let harm = format!("if ({MARKED}) {harm}");
        let script = [
            "mark /dev/ram0 64 1\nrest more\nrest more\n",
            FILLS,
            "rmmod brd\n",
        ]
        .concat();
        let said = walled(machine, &harm, &folder.join(name), &work(&script));
        let left = format!("the call has returned, and has left {left}");
        expect(&said, &[&left, "mullion: brd is loaded again"]);
        expect(&said, &FILLED);
        expect(&said, &["init: rmmod brd: done", "init: ends"]);
    }
}

/// What the kernel follows of a disk's structure is not the driver's to change, and the structure not its to free.
fn a_disk_that_is_added_stays_as_it_is(machine: &Machine<'_>, folder: &Path) {
    let harms = [
        ("queue", "brd->brd_disk->queue = NULL;", "Access in "),
        ("functions", "brd->brd_disk->fops = NULL;", "Access in "),
        (
            "free",
            "kfree(brd->brd_disk);",
            "is not the module's to free",
        ),
    ];
    for (name, harm, caught) in harms {
        let harm = format!("if ({MARKED}) {harm}");
        let script = ["mark /dev/ram0 64 1\nrest more\nrest more\n", FILLS].concat();
        let said = walled(machine, &harm, &folder.join(name), &work(&script));
        expect(&said, &[caught, "mullion: brd is loaded again"]);
        expect(&said, &FILLED);
        expect(&said, &["init: ends"]);
    }
}
