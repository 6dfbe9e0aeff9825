//! More file systems of other machines: images that this test makes, in both kernels, with the same answers.

use crate::images::an_image_is_read_as_without_a_wall;
use crate::{expect, library};
use mullion_linux::images::{
    adfs, affs, befs, exfat, freevxfs, hfs, hpfs, omfs, qnx6, sysv, udf, ufs,
};
use mullion_linux::{Instead, Machine, Protection, Work};
use std::fs;
use std::path::Path;

pub(crate) fn run(machine: &Machine<'_>, folder: &Path) {
    // A module, and the name of its file systems.
    let forms: [(&str, &str, Image); 5] = [
        ("befs", "befs", befs),
        ("qnx6", "qnx6", qnx6),
        ("ufs", "ufs", ufs),
        ("adfs", "adfs", adfs),
        ("freevxfs", "vxfs", freevxfs),
    ];
    for (module, kind, make) in forms {
        let folder = folder.join(module);
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("disk"), make()).expect("a file");
        an_image_is_read_as_without_a_wall(machine, module, kind, &folder);
    }
    let forms: [Form; 7] = [
        // Names have fourteen bytes.
        ("sysv", sysv, "flat /mnt: 35 files, 0 failed, 0 wrong"),
        ("affs", affs, "tree /mnt: 16 files, 0 failed, 0 wrong"),
        // There are no links, of which each fourth file is to get one. Two are looked for under the name that they have lost.
        ("omfs", omfs, "tree /mnt: 16 files, 4 failed, 0 wrong"),
        ("exfat", exfat, "tree /mnt: 16 files, 4 failed, 0 wrong"),
        ("hfs", hfs, "tree /mnt: 16 files, 4 failed, 0 wrong"),
        ("hpfs", hpfs, "tree /mnt: 16 files, 4 failed, 0 wrong"),
        ("udf", udf, "tree /mnt: 16 files, 0 failed, 0 wrong"),
    ];
    for form in forms {
        a_file_system_is_filled_as_without_a_wall(machine, form, &folder.join(form.0));
    }
}

/// A module, its empty image, and what is said of files that it can have.
type Form = (&'static str, Image, &'static str);

/// What makes an image.
type Image = fn() -> Vec<u8>;

/// Folders and files are made, renamed, linked and removed again, and read behind a second mount. What a file system cannot do fails in
/// both kernels, and the same number of times.
fn a_file_system_is_filled_as_without_a_wall(
    machine: &Machine<'_>,
    (module, make, says): Form,
    folder: &Path,
) {
    let (place, disk) = (folder.join("walled"), folder.join("disk"));
    fs::create_dir_all(&place).expect("a folder");
    let mount = format!("mount {module} /dev/ubda /mnt\n");
    // A name that does not lie in its entry.
    let long = format!("show /mnt/{:a<70}\n", "");
    let fills = "flat /mnt 40\ntree /mnt 4\nlist /mnt\numount /mnt\n";
    // Where files have no holes, `more` gives up with one of them open.
    let more = if module == "hfs" { "show" } else { "more" };
    let reads = format!("again /mnt 40\nlook /mnt 4\n{more} /mnt\nlist /mnt\numount /mnt\n");
    let work = Work {
        modules: vec![module.to_owned()],
        script: [&mount, &long, fills, &mount, &reads, "rmmod ", module].concat(),
        disks: vec![disk.clone()],
        ..Work::default()
    };
    let walled = machine.wall(&work.modules, Protection::ReadWrite, &place, &mut |_| None);
    // With a library of sums, which one of them calls.
    let walled = walled.expect("modules");
    assert!(walled.iter().any(|row| row.name == module), "{walled:?}");
    let library = library();
    let [plain, walled] = [Instead::Nothing, Instead::Walled(&place, &library)].map(|instead| {
        fs::write(&disk, make()).expect("a file");
        let said = machine.boot(&work, instead).expect("a boot");
        expect(&said, &[says, &format!("init: rmmod {module}: done")]);
        assert!(!said.contains(", called by "), "{said}");
        answers(&said)
    });
    assert_eq!(plain, walled);
    assert_eq!(plain.len(), 8, "{plain:?}");
}

/// What the first program says of files, without times.
fn answers(said: &str) -> Vec<String> {
    let words = ["show", "flat", "tree", "list", "again", "look", "more"];
    let of_files = |line: &&str| {
        let word = line
            .strip_prefix("init: ")
            .and_then(|line| line.split(' ').next());
        word.is_some_and(|word| words.contains(&word))
    };
    let lines = said.lines().filter(of_files);
    let without_time = |line: &str| match line.rsplit_once(", ") {
        Some((before, time)) if time.ends_with(" us") => before.to_owned(),
        _ => line.to_owned(),
    };
    lines.map(without_time).collect()
}
