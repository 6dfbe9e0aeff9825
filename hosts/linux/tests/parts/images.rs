//! File systems that are only read: images that this test makes, in both kernels, and when a module is ended while it reads.

use crate::{bfs, changed_before, expect, library};
use mullion_linux::images::{COUNT, content, efs, fat, iso, qnx4, romfs};
use mullion_linux::{Form, Instead, Machine, Protection, Work};
use std::fs;
use std::path::Path;

/// A module, the name of its file systems, and how an image is made.
const FORMS: [(&str, &str, Form); 6] = [
    ("romfs", "romfs", Form::Read(romfs)),
    ("cramfs", "cramfs", Form::Cramfs),
    ("squashfs", "squashfs", Form::Squashfs),
    ("isofs", "iso9660", Form::Read(iso)),
    ("qnx4", "qnx4", Form::Read(qnx4)),
    ("efs", "efs", Form::Read(efs)),
];

pub(crate) fn run(machine: &Machine<'_>, folder: &Path) {
    for (module, kind, form) in FORMS {
        let folder = folder.join(module);
        fs::create_dir_all(&folder).expect("a folder");
        form.make(&folder.join("disk")).expect("an image");
        an_image_is_read_as_without_a_wall(machine, module, kind, &folder);
    }
    a_module_is_loaded_again_while_it_reads(machine, &folder.join("reads"));
    tables_of_characters_are_called(machine, &folder.join("tables"));
    let first = "\tbrelse(bh);\n\tunlock_new_inode(inode);";
    let last = "bfs_dump_imap(\"fill_super\", s);\n\treturn 0;";
    let store = ("panic_timeout = 77;", "mullion: bfs: Access in ");
    // The kernel would write for it.
    let inode = (
        "inode_init_once((struct inode *)&panic_timeout);",
        "inode_init_once: argument 0, ",
    );
    let lock = (
        "mutex_init((struct mutex *)&panic_timeout);",
        "__mutex_init: argument 0, ",
    );
    let ends = [
        ("first", first, store),
        ("last", last, store),
        ("inode", last, inode),
        ("lock", last, lock),
    ];
    for (name, line, harm) in ends {
        a_module_that_is_ended_as_it_mounts_leaves_nothing(machine, line, harm, &folder.join(name));
    }
}

/// It stores elsewhere with the inode of the root in its hands, or when the mount has a root already. Or the kernel would store for it. The mount fails, and what was there
/// of it goes. The kernel takes an inode that stays for a bug, and stops.
fn a_module_that_is_ended_as_it_mounts_leaves_nothing(
    machine: &Machine<'_>,
    line: &str,
    (harm, caught): (&str, &str),
    folder: &Path,
) {
    let place = folder.join("walled");
    fs::create_dir_all(&place).expect("a folder");
    let disk = folder.join("disk");
    bfs(&disk);
    let mut source = |source: &str| {
        let is_it = source.ends_with("/bfs/inode.c");
        let to = folder.join("inode.c");
        is_it.then(|| changed_before(source, line, harm, &to))
    };
    let work = Work {
        modules: vec!["bfs".to_owned()],
        script: "mount bfs /dev/ubda /mnt\nrest more\nmount bfs /dev/ubda /mnt\nrest more\n\
                 show /proc/sys/kernel/panic\nrmmod bfs\nshow /proc/sys/kernel/ostype\n"
            .to_owned(),
        disks: vec![disk],
        ..Work::default()
    };
    let walled = machine.wall(&work.modules, Protection::ReadWrite, &place, &mut source);
    walled.expect("modules");
    let said = machine.boot(&work, Instead::Walled(&place, &library()));
    let said = said.expect("a boot");
    expect(
        &said,
        &[
            caught,
            "init: mount bfs: Input/output error",
            "mullion: bfs is loaded again",
            "init: show /proc/sys/kernel/panic: -1",
            ": Linux",
            "init: ends",
        ],
    );
}

/// A file system of FAT calls tables of characters by pointers, for each long name. Each has a wall of its own. What it does is the same
/// in both kernels; it has no links.
fn tables_of_characters_are_called(machine: &Machine<'_>, folder: &Path) {
    fs::create_dir_all(folder).expect("a folder");
    const TABLES: [&str; 3] = ["nls_cp437", "nls_iso8859_1", "nls_utf8"];
    let disk = folder.join("disk");
    let work = Work {
        modules: TABLES
            .iter()
            .chain(&["vfat"])
            .map(|name| (*name).to_owned())
            .collect(),
        script: "mount vfat /dev/ubda /mnt\ntree /mnt 6\nlist /mnt/folder0\numount /mnt\n\
                 mount vfat /dev/ubda /mnt iocharset=utf8\nlook /mnt 6\nlist /mnt/folder5\n\
                 flat /mnt 16\numount /mnt\nshow /proc/sys/kernel/ostype\n"
            .to_owned(),
        disks: vec![disk.clone()],
        ..Work::default()
    };
    let place = folder.join("walled");
    let walled = machine.wall(&work.modules, Protection::ReadWrite, &place, &mut |_| None);
    assert_eq!(walled.expect("modules").len(), TABLES.len() + 2);
    let library = library();
    for instead in [Instead::Nothing, Instead::Walled(&place, &library)] {
        fs::write(&disk, fat()).expect("a file");
        let said = machine.boot(&work, instead).expect("a boot");
        expect(
            &said,
            &[
                // Each fifth file is to have a link.
                "init: tree /mnt: 24 files, 6 failed, 0 wrong",
                "init: list /mnt/folder0: 6 names, done",
                "init: look /mnt: 24 files, 0 failed, 0 wrong",
                "init: list /mnt/folder5: 6 names, done",
                // And each fourth here, of which every second goes, too; two are looked for under the other name.
                "init: flat /mnt: 14 files, 6 failed, 2 wrong",
                "init: ends",
            ],
        );
        assert!(!said.contains(", called by "), "{said}");
    }
}

/// All that an image has is read in both kernels: names, and what is in the files.
pub(crate) fn an_image_is_read_as_without_a_wall(
    machine: &Machine<'_>,
    module: &str,
    kind: &str,
    folder: &Path,
) {
    let script = format!(
        "mount {kind} /dev/ubda /mnt\nlist /mnt\nagain /mnt {COUNT}\numount /mnt\nrmmod {module}\n"
    );
    let work = Work {
        modules: vec![module.to_owned()],
        script,
        disks: vec![folder.join("disk")],
        ..Work::default()
    };
    let place = folder.join("walled");
    let walled = machine.wall(&work.modules, Protection::ReadWrite, &place, &mut |_| None);
    // One of them calls a library, which has a wall of its own.
    let walled = walled.expect("modules");
    assert!(walled.iter().any(|row| row.name == module), "{walled:?}");
    let library = library();
    for instead in [Instead::Nothing, Instead::Walled(&place, &library)] {
        let said = machine.boot(&work, instead).expect("a boot");
        expect(
            &said,
            &[
                &format!("init: mount {kind}: done"),
                "init: again /mnt: 35 files, 0 failed, 0 wrong",
                "init: umount /mnt: done",
                &format!("init: rmmod {module}: done"),
                "init: ends",
            ],
        );
        assert!(!said.contains("0 names"), "{said}");
        assert!(!said.contains(", called by "), "{said}");
        if matches!(instead, Instead::Walled(..)) {
            expect(&said, &[&format!("mullion: {module} is at")]);
        }
    }
}

/// A file makes the module store to a variable of the kernel while it fills in a page. Its reader gets an error, and does not wait
/// for the page. The image is unmounted, mounted again, and read by the module that was loaded again.
fn a_module_is_loaded_again_while_it_reads(machine: &Machine<'_>, folder: &Path) {
    fs::create_dir_all(folder).expect("a folder");
    let disk = folder.join("disk");
    fs::write(&disk, romfs()).expect("a file");
    let mut source = |source: &str| {
        // One of the files has this length.
        let (line, length) = ("if (offset < size) {", content(20).len());
        let harm = format!("if (size == {length}) panic_timeout = 77;");
        let is_it = source.ends_with("/romfs/super.c");
        is_it.then(|| changed_before(source, line, &harm, &folder.join("super.c")))
    };
    let work = Work {
        modules: vec!["romfs".to_owned()],
        script:
            "mount romfs /dev/ubda /mnt\nagain /mnt 40\nshow /proc/sys/kernel/panic\nrest more\n\
                 umount /mnt\nmount romfs /dev/ubda /mnt\nagain /mnt 16\numount /mnt\nrmmod romfs\n"
                .to_owned(),
        disks: vec![disk],
        ..Work::default()
    };
    let place = folder.join("walled");
    let walled = machine.wall(&work.modules, Protection::ReadWrite, &place, &mut source);
    assert_eq!(walled.expect("modules").len(), 1);
    let said = machine.boot(&work, Instead::Walled(&place, &library()));
    let said = said.expect("a boot");
    expect(
        &said,
        &[
            "mullion: romfs: Access in ",
            "super.c:",
            "init: show /proc/sys/kernel/panic: -1",
            "mullion: romfs is loaded again",
            "init: again /mnt: 14 files, 0 failed, 0 wrong",
            "init: rmmod romfs: done",
            "init: ends",
        ],
    );
    assert_eq!(said.matches("init: umount /mnt: done").count(), 2, "{said}");
}
