//! File systems that are only read: images that this test makes, in both kernels, and when a module is ended while it reads.

use crate::{bfs, changed_before, expect, library};
use mullion_linux::images::{COUNT, big, content, files, pad};
use mullion_linux::{Instead, Machine, Protection, Work};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A module, the name of its file systems, and how an image is made.
type Form = (&'static str, &'static str, fn(&Path));

const FORMS: [Form; 5] = [
    ("romfs", "romfs", romfs),
    ("cramfs", "cramfs", cramfs),
    ("isofs", "iso9660", iso),
    ("qnx4", "qnx4", qnx4),
    ("efs", "efs", efs),
];

pub(crate) fn run(machine: &Machine<'_>, folder: &Path) {
    for (module, kind, make) in FORMS {
        let folder = folder.join(module);
        fs::create_dir_all(&folder).expect("a folder");
        make(&folder.join("disk"));
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
        fat(&disk);
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

/// An empty file system of 16 MiB with clusters of 2 KiB: numbers of 16 bits.
pub(crate) fn fat(to: &Path) {
    const SECTORS: u32 = 32 << 10;
    const TABLE: u16 = (SECTORS / 4 * 2 / 512) as u16;
    let mut image = vec![0; SECTORS as usize * 512];
    image[..11].copy_from_slice(b"\xeb\x3c\x90MULLION ");
    let short = |to: &mut [u8], at: usize, word: u16| {
        to[at..at + 2].copy_from_slice(&word.to_le_bytes());
    };
    // Bytes of a sector, sectors of a cluster, the table's place and number, names in the first folder, and lengths.
    short(&mut image, 11, 512);
    image[13] = 4;
    short(&mut image, 14, 1);
    image[16] = 2;
    short(&mut image, 17, 512);
    short(&mut image, 19, SECTORS as u16);
    image[21] = 0xf8;
    short(&mut image, 22, TABLE);
    short(&mut image, 510, 0xaa55);
    for table in 0..2 {
        let at = (1 + table * usize::from(TABLE)) * 512;
        image[at..at + 4].copy_from_slice(b"\xf8\xff\xff\xff");
    }
    fs::write(to, image).expect("a file");
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
    romfs(&disk);
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

/// Headers of 32 bytes, each with where the next one is, and the file behind it.
fn romfs(to: &Path) {
    let header = |next: usize, special: usize, size: usize, name: &str| {
        let mut header = [big(next), big(special), big(size), big(0)].concat();
        header.extend_from_slice(name.as_bytes());
        header.resize(32, 0);
        header
    };
    let mut image = b"-rom1fs-\0\0\0\0\0\0\0\0walls".to_vec();
    pad(&mut image, 32);
    // A folder, which may be searched, and its first file behind it.
    let first = image.len() + 32;
    image.extend(header(1 | 8, first, 0, "."));
    let files = files();
    for (number, (name, content)) in files.iter().enumerate() {
        let next = image.len() + 32 + content.len().next_multiple_of(16);
        let next = if number + 1 == files.len() { 0 } else { next };
        image.extend(header(next | 2, 0, content.len(), name));
        image.extend_from_slice(content);
        pad(&mut image, 16);
    }
    let size = big(image.len());
    image[8..12].copy_from_slice(&size);
    pad(&mut image, 1024);
    // The words of the first 512 bytes come to 0.
    let words = image[..512].chunks_exact(4);
    let word = |word: &[u8]| u32::from_be_bytes(word.try_into().expect("four bytes"));
    let sum = words.map(word).fold(0, u32::wrapping_add);
    image[12..16].copy_from_slice(&sum.wrapping_neg().to_be_bytes());
    fs::write(to, image).expect("a file");
}

fn cramfs(to: &Path) {
    let from: PathBuf = to.with_extension("files");
    fs::create_dir_all(&from).expect("a folder");
    for (name, content) in files() {
        fs::write(from.join(name), content).expect("a file");
    }
    let mut make = Command::new("mkfs.cramfs");
    make.arg(&from).arg(to).stdout(Stdio::null());
    make.env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin");
    assert!(make.status().expect("mkfs.cramfs").success());
}

const SECTOR: usize = 2048;

/// Numbers stand in both orders.
fn both(word: usize) -> Vec<u8> {
    [(word as u32).to_le_bytes(), big(word)].concat()
}

fn both_short(word: u16) -> Vec<u8> {
    [word.to_le_bytes(), word.to_be_bytes()].concat()
}

/// An entry of a folder: where a file or a folder begins, and how long it is.
fn entry(sector: usize, bytes: usize, flags: u8, name: &[u8]) -> Vec<u8> {
    let mut entry = vec![0, 0];
    entry.extend(both(sector));
    entry.extend(both(bytes));
    entry.extend([126, 11, 27, 0, 0, 0, 0, flags, 0, 0]);
    entry.extend(both_short(1));
    entry.push(name.len() as u8);
    entry.extend_from_slice(name);
    pad(&mut entry, 2);
    entry[0] = entry.len() as u8;
    entry
}

/// A disc with one folder, in sector 20 and on; each file begins a sector.
fn iso(to: &Path) {
    const ROOT: usize = 20;
    let files = files();
    let folder = |bytes: usize, first: usize| {
        let (mut folder, mut sector) = (Vec::new(), first);
        let mut add = |entry: Vec<u8>| {
            if folder.len() % SECTOR + entry.len() > SECTOR {
                pad(&mut folder, SECTOR);
            }
            folder.extend(entry);
        };
        add(entry(ROOT, bytes, 2, b"\0"));
        add(entry(ROOT, bytes, 2, b"\x01"));
        for (name, content) in &files {
            let name = format!("{}.;1", name.to_uppercase());
            add(entry(sector, content.len(), 0, name.as_bytes()));
            sector += content.len().div_ceil(SECTOR);
        }
        pad(&mut folder, SECTOR);
        (folder, sector)
    };
    let bytes = folder(0, 0).0.len();
    let (root, end) = folder(bytes, ROOT + bytes / SECTOR);
    let mut volume = b"\x01CD001\x01\0".to_vec();
    volume.extend([b' '; 32]);
    volume.extend(format!("{:32}", "WALLS").bytes());
    volume.extend([0; 8]);
    volume.extend(both(end));
    volume.extend([0; 32]);
    volume.extend([1, 1, SECTOR as u16].map(both_short).concat());
    volume.extend(both(10));
    volume.extend([18_u32.to_le_bytes(), [0; 4]].concat());
    volume.extend([19_u32.to_be_bytes(), [0; 4]].concat());
    volume.extend(entry(ROOT, bytes, 2, b"\0"));
    volume.resize(881, b' ');
    volume.push(1);
    let path = |root: [u8; 4], one: [u8; 2]| [&[1, 0][..], &root, &one, &[0, 0]].concat();
    let parts = [
        vec![0; 16 * SECTOR],
        volume,
        b"\xffCD001\x01".to_vec(),
        path((ROOT as u32).to_le_bytes(), [1, 0]),
        path(big(ROOT), [0, 1]),
        root,
    ];
    let mut image = Vec::new();
    for part in parts.iter().chain(files.iter().map(|(_, content)| content)) {
        image.extend_from_slice(part);
        pad(&mut image, SECTOR);
    }
    fs::write(to, image).expect("a file");
}

/// A folder of entries of 64 bytes, which are the files' inodes, too. Blocks have 512 bytes, and their numbers begin with 1.
fn qnx4(to: &Path) {
    const BLOCK: usize = 512;
    let files = files();
    let folder = (files.len() + 1).div_ceil(8);
    let entry = |name: &str, block: usize, bytes: usize, mode: u16| {
        let mut entry = vec![0; 64];
        entry[..name.len()].copy_from_slice(name.as_bytes());
        let words = [(16, bytes), (20, block + 1), (24, bytes.div_ceil(BLOCK))];
        for (at, word) in words {
            entry[at..at + 4].copy_from_slice(&(word as u32).to_le_bytes());
        }
        // One extent, and one name; in use.
        entry[48] = 1;
        entry[50..52].copy_from_slice(&mode.to_le_bytes());
        entry[56] = 1;
        entry[63] = 1;
        entry
    };
    let mut block = 2 + folder;
    let mut entries = entry(".bitmap", block, 64, 0o100_600);
    let mut data = vec![0xff; BLOCK];
    for (name, content) in &files {
        block = 2 + folder + data.len() / BLOCK;
        entries.extend(entry(name, block, content.len(), 0o100_644));
        data.extend_from_slice(content);
        pad(&mut data, BLOCK);
    }
    let mut image = vec![0; BLOCK];
    image.extend(entry("/", 2, folder * BLOCK, 0o040_755));
    for part in [entries, data] {
        pad(&mut image, BLOCK);
        image.extend(part);
    }
    fs::write(to, image).expect("a file");
}

/// One group: inodes of 128 bytes, and behind them the folder and the files.
fn efs(to: &Path) {
    const BLOCK: usize = 512;
    const FIRST: usize = 2;
    const INODES: usize = 16;
    let files = files();
    let inode = |block: usize, bytes: usize, mode: u16| {
        let mut inode = [mode.to_be_bytes(), [0, 1], [0; 2], [0; 2]].concat();
        inode.extend(big(bytes));
        inode.resize(28, 0);
        inode.extend([0, 1, 0, 0]);
        // An extent: where, how long, and from where in the file on.
        let length = bytes.div_ceil(BLOCK);
        inode.extend([big(block), big(length << 24)].concat());
        inode.resize(128, 0);
        inode
    };
    // Names lie at a block's end, and their places, halved, at its beginning.
    let mut blocks: Vec<Vec<u8>> = Vec::new();
    let (mut slots, mut end) = (0, 0);
    for (number, (name, _)) in files.iter().enumerate() {
        let length = (5 + name.len()).next_multiple_of(2);
        if blocks.is_empty() || end - length < 4 + slots + 1 {
            blocks.push([&[0xbe, 0xef][..], &[0; BLOCK - 2]].concat());
            (slots, end) = (0, BLOCK);
        }
        end -= length;
        let block = blocks.last_mut().expect("a block");
        block[end..end + 4].copy_from_slice(&big(3 + number));
        block[end + 4] = name.len() as u8;
        block[end + 5..end + 5 + name.len()].copy_from_slice(name.as_bytes());
        block[4 + slots] = (end / 2) as u8;
        slots += 1;
        block[2] = (end / 2) as u8;
        block[3] = slots as u8;
    }
    let mut data = blocks.concat();
    let mut inodes = vec![0; 2 * 128];
    inodes.extend(inode(FIRST + INODES, data.len(), 0o040_755));
    for (_, content) in &files {
        let block = FIRST + INODES + data.len() / BLOCK;
        inodes.extend(inode(block, content.len(), 0o100_644));
        data.extend_from_slice(content);
        pad(&mut data, BLOCK);
    }
    inodes.resize(INODES * BLOCK, 0);
    let total = INODES + data.len() / BLOCK;
    let mut superblock = [big(FIRST + total), big(FIRST), big(total)].concat();
    superblock.extend([0, INODES as u8, 0, 1, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0]);
    pad(&mut superblock, 4);
    superblock.extend(big(0x0007_2959));
    pad(&mut superblock, BLOCK);
    let image = [vec![0; BLOCK], superblock, inodes, data].concat();
    fs::write(to, image).expect("a file");
}
