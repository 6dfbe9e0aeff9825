//! FAT: three modules, each behind a wall of its own. One of them takes references to buffers and inodes, and hands them on to the
//! other two, which give them back.

use crate::{changed_before, expect, library};
use mullion_linux::images::{fat, fat_is_wrong};
use mullion_linux::{Instead, Machine, Protection, Work};
use std::fs;
use std::path::Path;

/// With a table for the names on the disk, and one for those that programs see.
const MODULES: [&str; 4] = ["nls_cp437", "nls_iso8859_1", "msdos", "vfat"];

pub(crate) fn run(machine: &Machine<'_>, folder: &Path) {
    long_and_short_names_do_as_without_a_wall(machine, &folder.join("works"));
    what_was_not_handed_on_is_not_given_back(machine, &folder.join("hands"));
}

fn work(script: &str, disks: &[&Path]) -> Work {
    Work {
        modules: MODULES.map(str::to_owned).to_vec(),
        script: script.to_owned(),
        disks: disks.iter().map(|disk| disk.to_path_buf()).collect(),
        ..Work::default()
    }
}

/// What the first program says of its work, without times.
fn said_of_files(said: &str) -> Vec<&str> {
    let of_files = ["tree", "look", "more", "flat", "again", "list", "show"];
    let is_it = |line: &&str| {
        let word = line.strip_prefix("init: ").unwrap_or_default();
        of_files.iter().any(|one| word.starts_with(one))
    };
    let lines = said.lines().filter(is_it);
    lines
        .map(|line| match line.ends_with(" us") {
            true => line.rsplit_once(',').map_or(line, |(before, _)| before),
            false => line,
        })
        .collect()
}

/// Folders, files, holes, maps, names that change and go, in one boot, with both modules; mounted again and read. The work is the
/// same in both kernels, and so are the disks afterwards: as good as each other.
fn long_and_short_names_do_as_without_a_wall(machine: &Machine<'_>, folder: &Path) {
    let place = folder.join("walled");
    fs::create_dir_all(&place).expect("a folder");
    let disks = [folder.join("long"), folder.join("short")];
    let long = "a-name-that-is-so-long-that-it-does-not-lie-in-its-entry";
    let script = format!(
        "mount vfat /dev/ubda /mnt\ntree /mnt 6\nmore /mnt\nshow /mnt/{long}\numount /mnt\n\
         mount vfat /dev/ubda /mnt\nlook /mnt 6\nlist /mnt/folder0\numount /mnt\n\
         mount msdos /dev/ubdb /mnt\nflat /mnt 40\nmore /mnt\numount /mnt\n\
         mount msdos /dev/ubdb /mnt\nagain /mnt 40\nlist /mnt\numount /mnt\n\
         mount vfat /dev/ubda /mnt\nflat /mnt 16\numount /mnt\nrmmod vfat\nrmmod msdos\n"
    );
    let work = work(&script, &[&disks[0], &disks[1]]);
    let walled = machine.wall(&work.modules, Protection::ReadWrite, &place, &mut |_| None);
    // With what both need.
    assert_eq!(walled.expect("modules").len(), MODULES.len() + 1);
    let library = library();
    let kernels = [Instead::Nothing, Instead::Walled(&place, &library)];
    let all = kernels.map(|instead| {
        for disk in &disks {
            fs::write(disk, fat()).expect("a file");
        }
        let said = machine.boot(&work, instead).expect("a boot");
        expect(
            &said,
            &[
                // Each fifth file is to have a link, and there are none.
                "init: tree /mnt: 24 files, 6 failed, 0 wrong",
                "init: look /mnt: 24 files, 0 failed, 0 wrong",
                "init: flat /mnt: 35 files, ",
                "init: rmmod vfat: done",
                "init: rmmod msdos: done",
                "init: ends",
            ],
        );
        assert!(!said.contains(", called by "), "{said}");
        for disk in &disks {
            let bytes = fs::read(disk).expect("a disk");
            assert_eq!(fat_is_wrong(&bytes), None, "{said}");
        }
        said
    });
    let [plain, walled] = all.each_ref().map(|said| said_of_files(said));
    assert_eq!(plain, walled);
    for module in ["fat", "msdos", "vfat"] {
        expect(&all[1], &[&format!("mullion: {module} is at")]);
    }
}

/// A lookup gives back an inode that `fat` has taken for itself, and has handed to nobody: it is stopped. Another one makes `fat` store
/// elsewhere in the middle of a call of `vfat`. All three are stopped each time, because what is mounted belongs to more than one. They
/// are loaded again before the mount is gone, and the disk has all that was written before.
fn what_was_not_handed_on_is_not_given_back(machine: &Machine<'_>, folder: &Path) {
    let place = folder.join("walled");
    fs::create_dir_all(&place).expect("a folder");
    let disk = folder.join("disk");
    fs::write(&disk, fat()).expect("a file");
    let script = "mount vfat /dev/ubda /mnt\ntree /mnt 4\numount /mnt\n\
                  mount vfat /dev/ubda /mnt\nshow /mnt/!own\numount /mnt\n\
                  mount vfat /dev/ubda /mnt\nlook /mnt 4\nshow /mnt/~wild\nshow /proc/sys/kernel/panic\n\
                  umount /mnt\nmount vfat /dev/ubda /mnt\nlook /mnt 4\numount /mnt\nshow /proc/sys/kernel/ostype\n";
    let work = work(script, &[&disk]);
    let mut source = |source: &str| {
        let own = "if (dentry->d_name.name[0] == '!') iput(MSDOS_SB(sb)->fat_inode);";
        let wild = "if (name[0] == '~') panic_timeout = 77;";
        let (line, harm) = if source.ends_with("/fat/namei_vfat.c") {
            ("err = vfat_find(dir, &dentry->d_name, &sinfo);", own)
        } else if source.ends_with("/fat/dir.c") {
            ("err = -ENOENT;\n\twhile (1) {", wild)
        } else {
            return None;
        };
        let to = folder.join(Path::new(source).file_name()?);
        Some(changed_before(source, line, harm, &to))
    };
    let walled = machine.wall(&work.modules, Protection::ReadWrite, &place, &mut source);
    assert_eq!(walled.expect("modules").len(), MODULES.len() + 1);
    let said = machine.boot(&work, Instead::Walled(&place, &library()));
    let said = said.expect("a boot");
    expect(
        &said,
        &[
            "is not the module's to give back",
            "mullion: fat: Access in fat_search_long",
            "vfat was ended, and one has things of the other",
            "fat was ended, and one has things of the other",
            "init: show /proc/sys/kernel/panic: -1",
            "mullion: fat is loaded again",
            "init: look /mnt: 16 files, 0 failed, 0 wrong",
            ": Linux",
            "init: ends",
        ],
    );
    let again = said.matches("mullion: vfat is loaded again").count();
    let good = said.matches("init: look /mnt: 16 files, 0 failed, 0 wrong");
    assert_eq!((again, good.count()), (2, 2), "{said}");
    assert_eq!(said.matches("init: umount /mnt: done").count(), 4, "{said}");
}
