//! Workloads on ext2: the processor time of the whole machine, plain and with the file system behind its wall, in turns.
//!
//! Programs are the host's: the machine sees the host's files, and cannot write them. What is written lies on ext2.

use crate::kernel::{Setup, at};
use crate::machine::{Instead, Machine, Work};
use crate::modules::Protection;
use mullion_fetch::{Lock, fetch};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const SOURCES: &str = include_str!("../../../sysroot/sources.toml");
/// Of the machine's disk.
const DISK: u64 = 96 << 20;

/// A workload: its name, and the first program's words.
const WORKS: [(&str, &str); 5] = [
    (
        "configure, build",
        "shell cp -r /mnt/zlib work && cd work && ./configure --static > log && make -s libz.a >> log 2>&1 && rm -r /mnt/work\n",
    ),
    (
        "find, grep",
        "shell for n in 1 2 3 4 5 6; do find /mnt/tree -type f | xargs grep -l mutex > found; done\n",
    ),
    (
        "SQLite",
        "shell sqlite3 test.db < /mnt/test.sql > out && sqlite3 test.db 'pragma integrity_check' >> out\n",
    ),
    (
        "writing, reading",
        "shell for n in 1 2 3; do dd if=/dev/zero of=big bs=64k count=320 conv=fsync 2>&1 && dd if=big of=/dev/null bs=4k 2>&1; done > log; rm big\n",
    ),
    ("files", "tree /mnt/files 60\nmore /mnt/files\n"),
];

const BEGIN: &str = "mount hostfs none /host\nmount devtmpfs none /host/dev\nmount ext2 /dev/ubda /host/mnt\n\
     mount ext2 /dev/ubda /mnt\n";
const END: &str = "umount /mnt\numount /host/mnt\n";

/// Runs all of them so many times, and says the least times.
///
/// # Errors
/// Programs or files are missing, or a workload fails.
pub fn report(
    machine: &Machine<'_>,
    library: &Path,
    folder: &Path,
    runs: u32,
    say: &mut dyn FnMut(&str),
) -> Result<(), Setup> {
    let work = tempfile::tempdir_in(folder).map_err(at(folder))?;
    let disk = filled_disk(work.path())?;
    let modules = vec!["ext2".to_owned()];
    let (stores, both) = (work.path().join("stores"), work.path().join("both"));
    machine.wall(&modules, Protection::Write, &stores, &mut |_| None)?;
    machine.wall(&modules, Protection::ReadWrite, &both, &mut |_| None)?;
    let ways = [
        Instead::Nothing,
        Instead::Walled(&stores, library),
        Instead::Walled(&both, library),
    ];
    let mut text = format!(
        "{:18} {:>9} {:>9} {:>9} {:>7} {:>7}\n",
        "processor time, s", "plain", "stores", "both", "stores", "both"
    );
    let (mut products, mut counted) = ([1.0f64; 2], 0);
    let nothing = ("boot, mount", "");
    let mut idle = [Duration::ZERO; 3];
    let mut said = String::new();
    for (name, script) in [nothing].iter().chain(&WORKS) {
        let mut best = [Duration::MAX; 3];
        for _ in 0..runs {
            for (way, best) in ways.iter().zip(&mut best) {
                let one = run(machine, &disk, work.path(), script, *way)?;
                *best = one.0.min(*best);
                said = one.1;
            }
        }
        if script.is_empty() {
            idle = best;
        }
        let time = |at: usize| match script.is_empty() {
            true => best[at].as_secs_f64(),
            false => best[at].saturating_sub(idle[at]).as_secs_f64(),
        };
        let ratios = [time(1) / time(0), time(2) / time(0)];
        let _ = writeln!(
            text,
            "{name:18} {:9.2} {:9.2} {:9.2} {:7.3} {:7.3}",
            time(0),
            time(1),
            time(2),
            ratios[0],
            ratios[1]
        );
        if !script.is_empty() {
            counted += 1;
            products = [products[0] * ratios[0], products[1] * ratios[1]];
        }
        let counts = said.lines().filter(|line| line.contains("checked calls"));
        for line in counts {
            let _ = writeln!(text, "  {}", line.trim_start_matches("mullion: "));
        }
        say(&std::mem::take(&mut text));
    }
    let mean = products.map(|product| product.powf(1.0 / f64::from(counted)));
    let _ = writeln!(
        text,
        "{:48} {:7.3} {:7.3}",
        "geometric mean", mean[0], mean[1]
    );
    say(&text);
    Ok(())
}

/// The processor time of a boot with this work, and what it said.
fn run(
    machine: &Machine<'_>,
    full: &Path,
    folder: &Path,
    script: &str,
    way: Instead<'_>,
) -> Result<(Duration, String), Setup> {
    let disk = folder.join("disk");
    fs::copy(full, &disk).map_err(at(full))?;
    let what = Work {
        modules: vec!["ext2".to_owned()],
        script: [BEGIN, script, END, "rmmod ext2\n"].concat(),
        disks: vec![disk],
        patience: Some(Duration::from_secs(600)),
        memory: Some(256),
        ..Work::default()
    };
    let before = of_children();
    let said = machine.boot(&what, way)?;
    let took = of_children().saturating_sub(before);
    let shells = script.matches("shell ").count();
    let files = usize::from(script.starts_with("tree"));
    let is_right = said.contains("init: ends")
        && said.matches("init: shell: status 0,").count() == shells
        && said.matches(" files, 0 failed, 0 wrong").count() == files
        && said.matches("init: more /mnt/files: 0 failed").count() == files
        && said.contains("init: rmmod ext2: done");
    match is_right {
        true => Ok((took, said)),
        false => Err(Setup::Build(said)),
    }
}

/// Of all programs that this one has started and that have ended: in hundredths of a second.
fn of_children() -> Duration {
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let rest = text.rsplit(')').next().unwrap_or_default();
    let ticks = rest.split_whitespace().skip(13).take(2);
    let ticks: u64 = ticks.filter_map(|one| one.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

/// A disk with zlib's source, a tree of headers and a database's statements.
fn filled_disk(folder: &Path) -> Result<PathBuf, Setup> {
    let tree = folder.join("content");
    fs::create_dir_all(tree.join("files")).map_err(at(&tree))?;
    let zlib = fetch(Lock::parse(SOURCES)?.source("zlib-suite")?)?;
    copy(&zlib, &tree.join("zlib"))?;
    copy(Path::new("/usr/include/linux"), &tree.join("tree"))?;
    let statements = tree.join("test.sql");
    fs::write(&statements, sql()).map_err(at(&statements))?;
    let disk = folder.join("full");
    let file = fs::File::create(&disk).map_err(at(&disk))?;
    file.set_len(DISK).map_err(at(&disk))?;
    let mut make = Command::new("mke2fs");
    make.args(["-q", "-F", "-t", "ext2", "-b", "1024", "-d"]);
    make.arg(&tree).arg(&disk);
    make.env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin");
    let status = make.status().map_err(at(Path::new("mke2fs")))?;
    match status.success() {
        true => Ok(disk),
        false => Err(Setup::Build("mke2fs fails".into())),
    }
}

fn copy(from: &Path, to: &Path) -> Result<(), Setup> {
    let mut copy = Command::new("cp");
    let status = copy
        .arg("-rL")
        .arg(from)
        .arg(to)
        .status()
        .map_err(at(from))?;
    match status.success() {
        true => Ok(()),
        false => Err(Setup::Build(format!("{} is not copied", from.display()))),
    }
}

/// Like SQLite's own speedtest: many small transactions, a large one, an index, sums and removals.
fn sql() -> String {
    let mut text = String::from("create table a(n integer primary key, m integer, t text);\n");
    for n in 0..150 {
        let _ = writeln!(
            text,
            "insert into a values({n}, {}, 'row {n}');",
            n * 7919 % 1000
        );
    }
    text.push_str("begin;\n");
    for n in 150..8000 {
        let _ = writeln!(
            text,
            "insert into a values({n}, {}, 'a longer row {n}');",
            n * 7919 % 1000
        );
    }
    text.push_str("commit;\ncreate index i on a(m);\nselect m, count(*) from a group by m;\n");
    text.push_str(
        "update a set t = t || ' changed' where m < 300;\ndelete from a where m > 700;\nvacuum;\n",
    );
    text
}
