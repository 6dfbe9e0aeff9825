//! Boots the kernel of the cache, plain and with modules behind the wall, and works with them.
//!
//! gcc calls this very program as its assembler and linker, so it has a `main` of its own. The kernel is made by
//! `make linux`: without it this test says so, and `MULLION_REQUIRE_LINUX` makes that a failure.

#[path = "parts/attacks.rs"]
mod attacks;
#[path = "parts/disks.rs"]
mod disks;
#[path = "parts/fat.rs"]
mod fat;
#[path = "parts/faults.rs"]
mod faults;
#[path = "parts/images.rs"]
mod images;
#[path = "parts/networks.rs"]
mod networks;
#[path = "parts/old.rs"]
mod old;
#[path = "parts/pairs.rs"]
mod pairs;
#[path = "parts/search.rs"]
mod search;
#[path = "parts/steps.rs"]
mod steps;

use mullion_linux::{
    ALGORITHMS, Boot, Built, Disk, Instead, Machine, Protection, Work, fresh_disk, is_sound, tool,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// A page that begins with it is the changed compressor's sign.
const MARK: char = '!';

/// Work, and the machine's name at its end.
const WORK: &str = "fill /dev/zram0 4096 1\ncheck /dev/zram0 4096 1\n";
const END: &str = "show /proc/sys/kernel/ostype\n";
/// What the first program says of them.
const WORKS: [&str; 5] = [
    "init: insmod zram: done",
    "init: fill /dev/zram0: 4096 KiB, 0 failed, 0 wrong",
    "init: check /dev/zram0: 4096 KiB, 0 failed, 0 wrong",
    "init: show /proc/sys/kernel/ostype: Linux",
    "init: ends",
];

fn main() -> ExitCode {
    if let Some(done) = tool() {
        return done;
    }
    let Some(built) = Built::cached().expect("a cache") else {
        let missing = "User-Mode Linux is not built (make linux)";
        println!("skipped: {missing}");
        assert!(
            std::env::var_os("MULLION_REQUIRE_LINUX").is_none(),
            "{missing}"
        );
        return ExitCode::SUCCESS;
    };
    if std::env::args().nth(1).as_deref() == Some(SPINS) {
        spin(&built);
        return ExitCode::SUCCESS;
    }
    let scratch = tempfile::tempdir().expect("a temporary directory");
    let made = scratch.path().join("made");
    let machine = Machine::new(&built, &made, &Machine::own_policies()).expect("a build");
    // One of them by its name, or all.
    let only = std::env::args()
        .nth(1)
        .filter(|word| !word.starts_with('-'));
    let parts: [Part<'_>; 14] = [
        ("compressors", &|| compressors(&built, scratch.path())),
        ("modules", &|| modules(&machine, scratch.path())),
        ("attacks", &|| {
            attacks::run(&machine, &scratch.path().join("attacks"));
        }),
        ("images", &|| images::run(&machine, scratch.path())),
        ("old", &|| old::run(&machine, &scratch.path().join("old"))),
        ("steps", &|| {
            steps::run(&machine, &scratch.path().join("steps"))
        }),
        ("fat", &|| fat::run(&machine, &scratch.path().join("fat"))),
        ("disks", &|| disks::run(&machine, scratch.path())),
        ("networks", &|| {
            networks::run(&built, &machine, &made, scratch.path());
        }),
        ("pairs", &|| {
            pairs::run(&machine, &scratch.path().join("pairs"))
        }),
        ("search", &|| search::run(&machine, scratch.path())),
        ("all", &|| {
            every_module_is_loaded_in_one_boot(&machine, &scratch.path().join("all"));
        }),
        ("pages", &|| {
            faults::buffers_and_pages_are_the_kernel_s(&built, &machine, scratch.path());
        }),
        ("begins", &|| {
            faults::a_driver_that_is_ended_as_it_begins_leaves_no_disk(
                &built,
                &machine,
                scratch.path(),
            );
            faults::a_fault_that_stops_the_kernel_ends_the_pair_s_driver_alone(
                &built,
                &machine,
                scratch.path(),
            );
            faults::faults_of_file_systems_end_them_alone(&built, &machine, scratch.path());
        }),
    ];
    // They take two processors already.
    let faults = || faults::faults_are_caught_and_survived(&built, &machine, scratch.path());
    let is_wanted = |name: &str| only.as_ref().is_none_or(|only| only == name);
    let wanted: Vec<_> = parts.iter().filter(|(name, _)| is_wanted(name)).collect();
    let with_faults = is_wanted("faults");
    assert!(
        with_faults || !wanted.is_empty(),
        "there is no part {only:?}"
    );
    run_two_at_a_time(&wanted);
    if with_faults {
        faults();
    }
    println!("the kernel boots, and its walled modules work");
    ExitCode::SUCCESS
}

/// A part of this test, by the name that asks for it alone. Each part has folders and machines of its own.
type Part<'a> = (&'a str, &'a (dyn Fn() + Sync));

/// A machine has one processor. The longest part comes first.
fn run_two_at_a_time(parts: &[&Part<'_>]) {
    let next = Mutex::new(parts.iter());
    let take = || next.lock().expect("no part fails with it").next();
    let work = || {
        while let Some((_, part)) = take() {
            part();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        work();
    });
}

fn compressors(built: &Built, scratch: &Path) {
    a_machine_ends_with_the_process_that_started_it(&scratch.join("spins"));
    let disk = Disk::new(built, &scratch.join("made")).expect("a build");
    plain_modules_work(&disk);
    for algorithm in ALGORITHMS {
        walled_modules_do_the_same(&disk, algorithm, &scratch.join(algorithm));
    }
    a_wild_store_is_refused_and_the_kernel_goes_on(built, &disk, &scratch.join("wild"));
}

fn modules(machine: &Machine<'_>, scratch: &Path) {
    hashes_and_ciphers_pass_the_kernel_s_own_tests(machine, &scratch.join("crypto"));
    a_file_system_does_its_work(machine, &scratch.join("ext2"));
    a_file_system_does_as_without_a_wall(machine, &scratch.join("minix"));
    a_file_system_with_one_folder_does_its_work(machine, &scratch.join("bfs"));
    checksums_are_what_is_published(machine, &scratch.join("checksums"));
    libraries_do_as_without_a_wall(machine, &scratch.join("libraries"));
    a_file_system_that_stores_elsewhere_is_stopped(machine, &scratch.join("stops"));
    let wild = scratch.join("hands");
    a_file_system_that_hands_on_what_is_not_its_own_is_stopped(machine, &wild);
    a_file_system_is_loaded_again_while_the_machine_goes_on(machine, &scratch.join("again"));
    a_hash_is_loaded_again_under_load(machine, &scratch.join("hash"));
}

/// With this argument the program boots a machine whose program works for a minute.
const SPINS: &str = "--spins";

fn spin(built: &Built) {
    let script = "mount hostfs none /host\nmount devtmpfs none /host/dev\n\
                  shell timeout 60 sh -c 'while :; do :; done'\n";
    let boot = Boot {
        script: script.to_owned(),
        ..Boot::default()
    };
    boot.run(built).expect("a boot");
}

/// The kernel, and the process of the program that it runs, go when the process that has started them is killed.
fn a_machine_ends_with_the_process_that_started_it(folder: &Path) {
    fs::create_dir_all(folder).expect("a folder");
    let program = std::env::current_exe().expect("this program");
    let mut starter = Command::new(program);
    starter.arg(SPINS).env("TMPDIR", folder);
    let mut starter = starter.spawn().expect("a process");
    // The kernel's command line, which all of them have, names the folder.
    wait_until("a program works", || {
        processes_with(folder).into_iter().any(works)
    });
    starter.kill().expect("a signal");
    starter.wait().expect("its end");
    wait_until("they are gone", || processes_with(folder).is_empty());
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(50), "not so: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The processes on whose command line the folder is.
fn processes_with(folder: &Path) -> Vec<u32> {
    let folder = folder.to_string_lossy().into_owned();
    let all = fs::read_dir("/proc").expect("/proc");
    let numbers = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let is_one = |process: &u32| {
        let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&folder)
    };
    numbers.filter(is_one).collect()
}

/// Whether a process has worked for a second.
fn works(process: u32) -> bool {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let rest = text.rsplit(')').next().unwrap_or_default();
    let ticks = rest.split_whitespace().nth(11);
    ticks.is_some_and(|ticks| ticks.parse::<u64>().is_ok_and(|ticks| ticks > 100))
}

fn plain_modules_work(disk: &Disk<'_>) {
    let script = [WORK, END].concat();
    let said = disk.boot("lz4", Instead::Nothing, &script).expect("a boot");
    expect(&said, &WORKS);
}

fn walled_modules_do_the_same(disk: &Disk<'_>, algorithm: &str, folder: &Path) {
    let walled = disk.wall(algorithm, Protection::ReadWrite, folder, &mut |_| None);
    // A compressor and a decompressor.
    assert!(walled.expect("modules").len() >= 2);
    let script = [WORK, END].concat();
    let instead = Instead::Walled(folder, &library());
    let said = disk.boot(algorithm, instead, &script).expect("a boot");
    expect(&said, &WORKS);
    expect(&said, &[&format!("[{algorithm}]")]);
}

/// The compressor writes to a variable of the kernel when it is given a page with the mark. Behind the wall the store is
/// refused, and the kernel and its other modules go on; the compressor is loaded again by itself, and works. Without a
/// wall, the variable has changed.
fn a_wild_store_is_refused_and_the_kernel_goes_on(built: &Built, disk: &Disk<'_>, folder: &Path) {
    fs::create_dir_all(folder).expect("a folder");
    let changed = folder.join("changed.c");
    let mut wild = |source: &str| {
        let text = fs::read_to_string(built.build_folder().join(source)).expect("the source");
        let body = "return LZ4_compress_fast(source, dest, inputSize,";
        if !text.contains(body) {
            return None;
        }
        let store = format!("if (source[0] == '{MARK}') panic_timeout = 77;\n{body}");
        // Headers beside the source are found from there.
        let from = Path::new(source).parent().expect("a folder").display();
        let text = text
            .replacen(body, &store, 1)
            .replace("#include \"", &format!("#include \"{from}/"));
        fs::write(&changed, format!("#include <linux/panic.h>\n{text}")).expect("a file");
        Some(changed.clone())
    };
    disk.wall("lz4", Protection::ReadWrite, folder, &mut wild)
        .expect("modules");
    let harm = "mark /dev/zram0 64 1\nshow /proc/sys/kernel/panic\ncheck /dev/zram0 2048 33\n";
    let again = "rest more\nset /sys/block/zram0/reset 1\n\
                 set /sys/block/zram0/comp_algorithm lz4\nset /sys/block/zram0/disksize 8M\n";
    let script = ["fill /dev/zram0 4096 1\n", harm, again, WORK, END].concat();
    let library = library();
    let instead = Instead::Walled(folder, &library);
    let said = disk.boot("lz4", instead, &script).expect("a boot");
    expect(
        &said,
        &[
            "mullion: lz4_compress: Access in LZ4_compress_default",
            "changed.c:",
            "init: mark /dev/zram0: 64 KiB, 1 failed, 0 wrong",
            "init: show /proc/sys/kernel/panic: -1",
            // The decompressor has a domain of its own, and reads what was written before.
            "init: check /dev/zram0: 2048 KiB, 0 failed",
            "mullion: lz4_compress is loaded again",
        ],
    );
    expect(&said, &WORKS);

    let plain = plainly(built, folder, &changed);
    let script = [WORK, harm, END].concat();
    let instead = Instead::Plain(&plain);
    let said = disk.boot("lz4", instead, &script).expect("a boot");
    expect(&said, &WORKS);
    expect(
        &said,
        &[
            "init: mark /dev/zram0: 64 KiB, 0 failed, 0 wrong",
            "init: show /proc/sys/kernel/panic: 77",
        ],
    );
}

/// The kernel tests an algorithm when it is registered, in another task than the one that loads the module.
fn hashes_and_ciphers_pass_the_kernel_s_own_tests(machine: &Machine<'_>, folder: &Path) {
    const HASHES: [&str; 2] = ["md5", "xxhash_generic"];
    const CIPHERS: [&str; 2] = ["blowfish_generic", "tea"];
    let modules = ["cryptomgr"].iter().chain(&HASHES).chain(&CIPHERS);
    let work = Work {
        modules: modules.map(|name| (*name).to_owned()).collect(),
        script: "show /proc/crypto\n".to_owned(),
        ..Work::default()
    };
    let walled = machine.wall(&work.modules, Protection::ReadWrite, folder, &mut |_| None);
    // With what one of the hashes and one of the ciphers have in modules of their own.
    assert_eq!(
        walled.expect("modules").len(),
        HASHES.len() + CIPHERS.len() + 2
    );
    let library = library();
    let said = machine.boot(&work, Instead::Walled(folder, &library));
    let said = said.expect("a boot");
    for module in HASHES.iter().chain(&CIPHERS) {
        let begin = format!("module       : {module}\n");
        let entries: Vec<&str> = said.split(&begin).skip(1).collect();
        assert!(!entries.is_empty(), "no {module} in:\n{said}");
        for entry in entries {
            let own = entry.split("module       :").next().unwrap_or_default();
            assert!(own.contains("selftest     : passed"), "{module}: {said}");
        }
        expect(&said, &[&format!("mullion: {module} is at")]);
    }
    expect(&said, &["init: ends"]);
    assert!(!said.contains("Access in"), "{said}");
}

/// Files, links and names that change, on a disk that is mounted twice; the programs of the system find it sound.
fn file_system_work(disk: &Path) -> Work {
    fresh_disk(disk).expect("mke2fs");
    Work {
        modules: vec!["ext2".to_owned()],
        script: "mount ext2 /dev/ubda /mnt\ntree /mnt 20\numount /mnt\nmount ext2 /dev/ubda /mnt\n\
                 look /mnt 20\numount /mnt\nrmmod ext2\ninsmod ext2\nshow /proc/sys/kernel/panic\n"
            .to_owned(),
        disks: vec![disk.to_path_buf()],
        ..Work::default()
    }
}

fn a_file_system_does_its_work(machine: &Machine<'_>, folder: &Path) {
    let place = folder.join("walled");
    let disk = folder.join("disk");
    fs::create_dir_all(&place).expect("a folder");
    let work = file_system_work(&disk);
    let walled = machine.wall(&work.modules, Protection::ReadWrite, &place, &mut |_| None);
    assert_eq!(walled.expect("modules").len(), 1);
    let said = machine.boot(&work, Instead::Walled(&place, &library()));
    let said = said.expect("a boot");
    expect(
        &said,
        &[
            "init: tree /mnt: 80 files, 0 failed, 0 wrong",
            "init: look /mnt: 80 files, 0 failed, 0 wrong",
            "init: rmmod ext2: done",
            "init: ends",
        ],
    );
    assert!(!said.contains("Access in"), "{said}");
    assert!(is_sound(&disk).expect("e2fsck"), "{said}");
}

/// The file system of Minix has no flags of files, in either kernel: all else of that work is done.
fn a_file_system_does_as_without_a_wall(machine: &Machine<'_>, folder: &Path) {
    let place = folder.join("walled");
    fs::create_dir_all(&place).expect("a folder");
    let disk = folder.join("disk");
    let work = Work {
        modules: vec!["minix".to_owned()],
        script: "mount minix /dev/ubda /mnt\ntree /mnt 6\nmore /mnt\numount /mnt\n\
                 mount minix /dev/ubda /mnt\nlook /mnt 6\numount /mnt\nrmmod minix\n"
            .to_owned(),
        disks: vec![disk.clone()],
        ..Work::default()
    };
    let walled = machine.wall(&work.modules, Protection::ReadWrite, &place, &mut |_| None);
    assert_eq!(walled.expect("modules").len(), 1);
    let library = library();
    for instead in [Instead::Nothing, Instead::Walled(&place, &library)] {
        let file = fs::File::create(&disk).expect("a file");
        file.set_len(8 << 20).expect("its length");
        let mut make = Command::new("mkfs.minix");
        make.args(["-n", "30"]).arg(&disk).stdout(Stdio::null());
        make.env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin");
        assert!(make.status().expect("mkfs.minix").success());
        let said = machine.boot(&work, instead).expect("a boot");
        expect(
            &said,
            &[
                "init: tree /mnt: 24 files, 0 failed, 0 wrong",
                "init: more /mnt: 2 failed",
                "init: look /mnt: 24 files, 0 failed, 0 wrong",
                "init: rmmod minix: done",
                "init: ends",
            ],
        );
        assert!(!said.contains(" in minix_"), "{said}");
    }
}

/// An empty file system of 4 MiB.
fn bfs(disk: &Path) {
    let file = fs::File::create(disk).expect("a file");
    file.set_len(4 << 20).expect("its length");
    let mut make = Command::new("mkfs.bfs");
    make.arg(disk).env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin");
    assert!(make.status().expect("mkfs.bfs").success());
}

fn a_file_system_with_one_folder_does_its_work(machine: &Machine<'_>, folder: &Path) {
    fs::create_dir_all(folder).expect("a folder");
    let disk = folder.join("disk");
    bfs(&disk);
    let work = Work {
        modules: vec!["bfs".to_owned()],
        script: "mount bfs /dev/ubda /mnt\nflat /mnt 40\nlist /mnt\numount /mnt\n\
                 mount bfs /dev/ubda /mnt\nagain /mnt 40\numount /mnt\nrmmod bfs\n"
            .to_owned(),
        disks: vec![disk],
        ..Work::default()
    };
    let place = folder.join("walled");
    let walled = machine.wall(&work.modules, Protection::ReadWrite, &place, &mut |_| None);
    assert_eq!(walled.expect("modules").len(), 1);
    let said = machine.boot(&work, Instead::Walled(&place, &library()));
    let said = said.expect("a boot");
    expect(
        &said,
        &[
            "mullion: bfs is at",
            "init: flat /mnt: 35 files, 0 failed, 0 wrong",
            "init: list /mnt: 37 names, done",
            "init: again /mnt: 35 files, 0 failed, 0 wrong",
            "init: rmmod bfs: done",
            "init: ends",
        ],
    );
    assert!(!said.contains(" in bfs_"), "{said}");
}

/// Five libraries that nothing else in the kernel calls, each behind its wall, and an ordinary module that calls them.
fn checksums_are_what_is_published(machine: &Machine<'_>, folder: &Path) {
    const LIBRARIES: [&str; 5] = ["crc4", "crc7", "crc8", "crc64", "crc_itu_t"];
    let work = Work {
        modules: LIBRARIES.map(str::to_owned).into(),
        script: "insmod mullion_try\n".to_owned(),
        ..Work::default()
    };
    let walled = machine.wall(&work.modules, Protection::ReadWrite, folder, &mut |_| None);
    assert_eq!(walled.expect("modules").len(), LIBRARIES.len());
    let said = machine.boot(&work, Instead::Walled(folder, &library()));
    let said = said.expect("a boot");
    expect(
        &said,
        &[
            "mullion: checksums: crc4 crc7 crc8 crc64 crc-itu-t\n",
            "init: insmod mullion_try: done",
            "init: ends",
        ],
    );
    assert_eq!(said.matches(" is at 0x").count(), LIBRARIES.len(), "{said}");
}

/// Checksums by the kernel's algorithms, which are behind walls of their own, and headers of TCP that both ends of a serial line
/// fold and unfold.
fn libraries_do_as_without_a_wall(machine: &Machine<'_>, folder: &Path) {
    const WALLED: [&str; 6] = [
        "crc32c_generic",
        "crct10dif_common",
        "crct10dif_generic",
        "libcrc32c",
        "crc_t10dif",
        "slhc",
    ];
    let modules = ["cryptomgr"].iter().chain(&WALLED);
    let work = Work {
        modules: modules.map(|name| (*name).to_owned()).collect(),
        script: "insmod mullion_try\n".to_owned(),
        ..Work::default()
    };
    let walled = machine.wall(&work.modules, Protection::ReadWrite, folder, &mut |_| None);
    assert_eq!(walled.expect("modules").len(), WALLED.len());
    let library = library();
    let said = machine.boot(&work, Instead::Walled(folder, &library));
    let said = said.expect("a boot");
    expect(
        &said,
        &[
            "mullion: serial line: 60 packets, 60 right, ",
            "mullion: algorithms: crc32c crc-t10dif\n",
            "init: insmod mullion_try: done",
            "init: ends",
        ],
    );
    assert!(!said.contains(" 0 smaller"), "{said}");
    assert!(!said.contains(", called by "), "{said}");
    assert_eq!(said.matches(" is at 0x").count(), WALLED.len(), "{said}");
}

/// A file system whose lookups write to a variable of the kernel is stopped when it first does.
fn a_file_system_that_stores_elsewhere_is_stopped(machine: &Machine<'_>, folder: &Path) {
    let caught = ["mullion: ext2: Access in ", "namei.c:"];
    ext2_is_stopped_in_a_lookup(machine, "panic_timeout = 77;", &caught, folder);
}

/// What the kernel would read, write or call for the module has to be the module's.
fn a_file_system_that_hands_on_what_is_not_its_own_is_stopped(
    machine: &Machine<'_>,
    folder: &Path,
) {
    let harms = [
        (
            "bits",
            "if (find_next_zero_bit((void *)0x5a5a5a5a5a58ul, 99, 1) < 50) panic_timeout = 77;",
            "_find_next_zero_bit: argument 0, ",
        ),
        (
            "text",
            "if (simple_strtoul((char *)&panic_timeout, NULL, 0) == 77) panic_timeout = 77;",
            "simple_strtoul: argument 0, ",
        ),
        (
            "code",
            "block_truncate_page(dir->i_mapping, 1, (get_block_t *)&panic_timeout);",
            "block_truncate_page: argument 2, ",
        ),
        (
            "number",
            "{ substring_t all = { 0 }; if (match_int(&all, &panic_timeout)) panic_timeout = 77; }",
            "match_int: argument 1, ",
        ),
    ];
    for (name, harm, caught) in harms {
        ext2_is_stopped_in_a_lookup(machine, harm, &[caught], &folder.join(name));
    }
}

fn ext2_is_stopped_in_a_lookup(machine: &Machine<'_>, harm: &str, caught: &[&str], folder: &Path) {
    fs::create_dir_all(folder).expect("a folder");
    let disk = folder.join("disk");
    let mut work = file_system_work(&disk);
    work.script =
        "mount ext2 /dev/ubda /mnt\nshow /mnt/nothing\nshow /proc/sys/kernel/panic\n".to_owned();
    let changed = folder.join("namei.c");
    let mut wild = |source: &str| {
        if !source.ends_with("/ext2/namei.c") {
            return None;
        }
        let from = Path::new(source)
            .parent()
            .expect("a folder")
            .display()
            .to_string();
        let text = fs::read_to_string(source).expect("the source");
        let body = "if (dentry->d_name.len > EXT2_NAME_LEN)";
        assert!(text.contains(body), "{text}");
        let text = text
            .replacen(body, &format!("{harm}\n{body}"), 1)
            .replace("#include \"", &format!("#include \"{from}/"));
        let uses = "#include <linux/buffer_head.h>\n#include <linux/find.h>\n#include <linux/panic.h>\n#include <linux/parser.h>\n";
        fs::write(&changed, format!("{uses}{text}")).expect("a file");
        Some(changed.clone())
    };
    let walled = machine.wall(&work.modules, Protection::ReadWrite, folder, &mut wild);
    walled.expect("modules");
    let said = machine.boot(&work, Instead::Walled(folder, &library()));
    let said = said.expect("a boot");
    expect(&said, &["init: mount ext2: done"]);
    expect(&said, caught);
    expect(
        &said,
        &[
            "init: show /mnt/nothing: Input/output error",
            "init: show /proc/sys/kernel/panic: -1",
        ],
    );
}

/// A source with something before one of its lines.
fn changed_before(source: &str, line: &str, what: &str, to: &Path) -> PathBuf {
    let text = fs::read_to_string(source).expect("the source");
    assert!(text.contains(line), "{text}");
    let text = text.replacen(line, &format!("{what}\n{line}"), 1);
    fs::write(to, format!("#include <linux/panic.h>\n{text}")).expect("a file");
    to.to_path_buf()
}

/// A lookup of one name stores to a variable of the kernel. The mount gives errors and can be unmounted. The disk is mounted
/// again, by the module that was loaded again, and has all that was written before.
fn a_file_system_is_loaded_again_while_the_machine_goes_on(machine: &Machine<'_>, folder: &Path) {
    fs::create_dir_all(folder).expect("a folder");
    let disk = folder.join("disk");
    let mut work = file_system_work(&disk);
    work.script = "tree /dev 4\nmount ext2 /dev/ubda /mnt\ntree /mnt 4\numount /mnt\n\
                   mount ext2 /dev/ubda /mnt\nshow /mnt/wild\nshow /proc/sys/kernel/panic\nrest more\n\
                   list /mnt\numount /mnt\nmount ext2 /dev/ubda /mnt\nlook /mnt 4\nmore /mnt\n\
                   umount /mnt\nrmmod ext2\nlook /dev 4\n"
        .to_owned();
    let to = folder.join("namei.c");
    let mut wild = |source: &str| {
        let line = "if (dentry->d_name.len > EXT2_NAME_LEN)";
        let store = "if (!strncmp(dentry->d_name.name, \"wild\", 5)) panic_timeout = 77;";
        let is_it = source.ends_with("/ext2/namei.c");
        is_it.then(|| changed_before(source, line, store, &to))
    };
    let walled = machine.wall(&work.modules, Protection::ReadWrite, folder, &mut wild);
    walled.expect("modules");
    let said = machine.boot(&work, Instead::Walled(folder, &library()));
    let said = said.expect("a boot");
    expect(
        &said,
        &[
            "mullion: ext2: Access in ",
            "init: show /mnt/wild: Input/output error",
            "init: show /proc/sys/kernel/panic: -1",
            "pieces of memory",
            "mullion: ext2 is loaded again",
            "init: list /mnt: 0 names, ",
            "init: look /mnt: 16 files, 0 failed, 0 wrong",
            "init: more /mnt: 0 failed",
            "init: rmmod ext2: done",
            "init: look /dev: 16 files, 0 failed, 0 wrong",
            "init: ends",
        ],
    );
    assert!(!said.contains("names, done"), "{said}");
    assert_eq!(said.matches("init: umount /mnt: done").count(), 3, "{said}");
    assert!(is_sound(&disk).expect("e2fsck"), "{said}");
}

/// One of many digests is of data that makes the module store to a variable of the kernel: few fail until it is there again.
fn a_hash_is_loaded_again_under_load(machine: &Machine<'_>, folder: &Path) {
    fs::create_dir_all(folder).expect("a folder");
    let work = Work {
        modules: ["cryptomgr", "md5", "algif_hash"].map(str::to_owned).into(),
        script: "hash md5 600\nshow /proc/sys/kernel/panic\nhash md5 9\n".to_owned(),
        ..Work::default()
    };
    let to = folder.join("md5.c");
    let mut wild = |source: &str| {
        let line = "mctx->byte_count += len;";
        let store = format!("if (len && data[0] == '{MARK}') panic_timeout = 77;");
        let is_it = source.ends_with("/crypto/md5.c");
        is_it.then(|| changed_before(source, line, &store, &to))
    };
    let walled = machine.wall(&work.modules, Protection::ReadWrite, folder, &mut wild);
    walled.expect("modules");
    let said = machine.boot(&work, Instead::Walled(folder, &library()));
    let said = said.expect("a boot");
    expect(
        &said,
        &[
            "mullion: md5: Access in md5_update",
            "mullion: md5 is loaded again",
            " 0 wrong, the last done",
            "init: show /proc/sys/kernel/panic: -1",
            "init: ends",
        ],
    );
    assert!(!said.contains("600 digests"), "{said}");
}

/// All of the build's modules: those that have policies behind their walls. The kernel's own tests of algorithms pass.
fn every_module_is_loaded_in_one_boot(machine: &Machine<'_>, folder: &Path) {
    // What tests algorithms comes before them.
    let first = std::iter::once("cryptomgr".to_owned());
    let work = Work {
        modules: first.chain(machine.names()).collect(),
        script: "show /proc/crypto\n".to_owned(),
        ..Work::default()
    };
    let walled = machine.wall(&work.modules, Protection::ReadWrite, folder, &mut |_| None);
    let walled = walled.expect("modules").len();
    assert!(walled >= 86, "{walled}");
    let said = machine.boot(&work, Instead::Walled(folder, &library()));
    let said = said.expect("a boot");
    let loaded = |name: &String| said.contains(&format!("init: insmod {name}: done"));
    let refused: Vec<&String> = work.modules.iter().filter(|name| !loaded(name)).collect();
    assert!(refused.is_empty(), "{refused:?} in:\n{said}");
    assert_eq!(said.matches(" is at 0x").count(), walled, "{said}");
    assert!(!said.contains("mullion: recover"), "{said}");
    assert!(!said.contains("selftest     : failed"), "{said}");
    assert!(
        said.matches("selftest     : passed").count() >= 40,
        "{said}"
    );
    expect(&said, &["init: ends"]);
}

/// The changed compressor as an ordinary module.
fn plainly(built: &Built, folder: &Path, changed: &Path) -> PathBuf {
    let plain = folder.join("plain");
    fs::create_dir_all(&plain).expect("a folder");
    fs::copy(changed, plain.join("lz4_compress.c")).expect("a copy");
    fs::write(plain.join("Kbuild"), "obj-m := lz4_compress.o\n").expect("a file");
    let mut make = built.kbuild();
    make.arg(format!("M={}", plain.display())).arg("modules");
    let output = make.stdin(Stdio::null()).output().expect("make");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    plain
}

fn expect(said: &str, lines: &[&str]) {
    for line in lines {
        assert!(said.contains(line), "no \"{line}\" in:\n{said}");
    }
}

/// The wall's library, as cargo has built it for this test.
fn library() -> PathBuf {
    let program = std::env::current_exe().expect("this program");
    let folder = program.parent().expect("a folder");
    let name = "libmullion_linux_wall.so";
    let places = [folder.join(name), folder.with_file_name(name)];
    let found = places.into_iter().find(|place| place.is_file());
    found.expect("cargo builds the wall's library with this test")
}
