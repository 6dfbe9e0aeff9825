//! Workloads on ext2 and over a pair of network devices: the processor time of the whole machine. The plain kernel and the walled
//! one take turns. One more run of each counts calls and memory, and is not timed.
//!
//! Programs are the host's: the machine sees the host's files, and cannot write them. What is written lies on ext2.

use crate::kernel::{Setup, at};
use crate::machine::{Instead, Machine, Work};
use crate::modules::Protection;
use crate::shares::shares;
use mullion_fetch::{Lock, fetch};
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const SOURCES: &str = include_str!("../../../sysroot/sources.toml");
/// Of the machine's disk.
const DISK: u64 = 96 << 20;

/// A workload: its name, and the first program's words.
const WORKS: [(&str, &str); 7] = [
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
    // The server lies on ext2, and so do its programs; who asks is on the other end.
    (
        "web server, CGI",
        "serve one exec apache2 -f /mnt/web/httpd.conf -DFOREGROUND\nget /data 140\nget /cgi/env 65\nunserve one\n",
    ),
    ("TCP, 400 MiB", "serve one\nbulk 400\nunserve one\n"),
];

const BEGIN: &str = "mount hostfs none /host\nmount devtmpfs none /host/dev\nmount ext2 /dev/ubda /host/mnt\n\
     mount ext2 /dev/ubda /mnt\n";
const END: &str = "umount /mnt\numount /host/mnt\n";

/// Mondrix's figures for what is nearest to a row: the slowdown (Table 5), cross-domain calls in millions (Table 6), and the reduction of
/// free memory (Table 7), in percent.
const MONDRIX: [(&str, &str, f64, f64, f64); 4] = [
    ("configure, build", "config-xemacs", 4.4, 3.29, 10.2),
    ("find, grep", "find", 3.3, 2.74, 7.8),
    ("SQLite", "MySQL", 9.6, 0.12, 1.6),
    ("web server, CGI", "thttpd", 14.8, 0.15, 1.1),
];

/// The server's configuration: each child answers one request at a time, and a program is started for each that is dynamic.
const SERVER: &str = "ServerRoot /mnt/web\nDefaultRuntimeDir /mnt/web\nPidFile /mnt/web/pid\nErrorLog /mnt/web/errors\n\
    ServerName there\nListen 80\nUser nobody\nGroup nogroup\nDocumentRoot /mnt/web/files\n\
    LoadModule mpm_prefork_module /usr/lib/apache2/modules/mod_mpm_prefork.so\n\
    LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so\n\
    LoadModule cgi_module /usr/lib/apache2/modules/mod_cgi.so\n\
    StartServers 4\nMinSpareServers 1\nMaxSpareServers 8\n\
    <Directory /mnt/web/files/cgi>\nOptions +ExecCGI\nSetHandler cgi-script\n</Directory>\n";

/// Like Mondrix's: a script that runs several programs.
const PROGRAM: &str =
    "#!/bin/sh\necho Content-Type: text/plain\necho\nenv | sort\nuname -s\nid -u\n";

/// Runs those whose names have one of these beginnings so many times, or all, and says the medians.
///
/// # Errors
/// Programs or files are missing, or a workload fails.
pub fn report(
    machine: &Machine<'_>,
    library: &Path,
    folder: &Path,
    (runs, rows): (u32, &[&str]),
    say: &mut dyn FnMut(&str),
) -> Result<(), Setup> {
    let is_wanted = |name: &str| rows.is_empty() || rows.iter().any(|row| name.starts_with(row));
    let works = WORKS.iter().filter(|(name, _)| is_wanted(name));
    let work = tempfile::tempdir_in(folder).map_err(at(folder))?;
    let disk = filled_disk(work.path())?;
    let modules = MODULES.map(str::to_owned);
    let place = |name: &str| work.path().join(name);
    let (stores, both, counting) = (place("stores"), place("both"), place("counting"));
    machine.wall(&modules, Protection::Write, &stores, &mut |_| None)?;
    machine.wall(&modules, Protection::ReadWrite, &both, &mut |_| None)?;
    machine.wall(&modules, Protection::ReadWrite, &counting, &mut |_| None)?;
    let asks = counting.join("counted");
    fs::write(&asks, "").map_err(at(&asks))?;
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
    // The first program is compiled once, and that is not measured.
    run(machine, &disk, work.path(), ("", None), ways[0])?;
    for (name, script) in [nothing].iter().chain(works) {
        let mut all = [const { Vec::new() }; 3];
        for _ in 0..runs {
            for (way, all) in ways.iter().zip(&mut all) {
                let one = run(machine, &disk, work.path(), (script, None), *way)?;
                all.push(one.0);
            }
        }
        let middle = all.map(median);
        if script.is_empty() {
            idle = middle;
        }
        let time = |at: usize| match script.is_empty() {
            true => middle[at].as_secs_f64(),
            false => middle[at].saturating_sub(idle[at]).as_secs_f64(),
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
        let counts = [script, COSTS].concat();
        let way = Instead::Walled(&counting, library);
        let (_, said) = run(machine, &disk, work.path(), (&counts, None), way)?;
        let to = work.path().join("samples");
        run(machine, &disk, work.path(), (script, Some(&to)), ways[2])?;
        for line in costs(name, ratios, &said) {
            let _ = writeln!(text, "  {line}");
        }
        let _ = writeln!(text, "  {}", shares(&to, library)?);
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

/// The time in the middle, or the lower one of two.
fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    let middle = times.len().saturating_sub(1) / 2;
    times.get(middle).copied().unwrap_or_default()
}

/// What is walled.
const MODULES: [&str; 2] = ["ext2", "veth"];

/// Asks the wall's library.
const COSTS: &str = "set /proc/mullion costs\n";

/// What a row's run that counts has said, beside the paper's figures.
fn costs(row: &str, ratios: [f64; 2], said: &str) -> Vec<String> {
    let all = said
        .lines()
        .filter_map(|line| line.strip_prefix("mullion: "));
    let last = all.clone().rfind(|line| line.contains("checked calls"));
    let mut lines: Vec<String> = all
        .filter_map(|line| line.strip_prefix("costs: "))
        .chain(last)
        .map(str::to_owned)
        .collect();
    if let Some((_, name, slower, calls, memory)) = MONDRIX.iter().find(|one| one.0 == row) {
        let ours = (ratios[1] - 1.0) * 100.0;
        lines.push(format!(
            "Mondrix, {name}: {slower} % slower (here {ours:.1} %), {calls} million calls, {memory} % of free memory"
        ));
    }
    lines
}

/// The processor time of a boot with this work, and what it said.
fn run(
    machine: &Machine<'_>,
    full: &Path,
    folder: &Path,
    (script, samples): (&str, Option<&Path>),
    way: Instead<'_>,
) -> Result<(Duration, String), Setup> {
    let disk = folder.join("disk");
    fs::copy(full, &disk).map_err(at(full))?;
    let what = Work {
        modules: MODULES.map(str::to_owned).into(),
        script: [BEGIN, script, END, "rmmod ext2\nrmmod veth\n"].concat(),
        disks: vec![disk],
        patience: Some(Duration::from_secs(600)),
        memory: Some(256),
        samples: samples.map(Path::to_path_buf),
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
        && said.matches(" good, 0 failed, ").count() == script.matches("get ").count()
        && said.matches(" MiB, all, ").count() == script.matches("bulk ").count()
        && said.contains("init: rmmod ext2: done")
        && said.contains("init: rmmod veth: done");
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
    server(&tree.join("web"))?;
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

/// A web server's folder: 16 KiB to be sent, and a program to be run.
fn server(folder: &Path) -> Result<(), Setup> {
    let programs = folder.join("files/cgi");
    fs::create_dir_all(&programs).map_err(at(&programs))?;
    let program = programs.join("env");
    let files = [
        (folder.join("httpd.conf"), SERVER.to_owned()),
        (folder.join("files/data"), "a line of data\n".repeat(1100)),
        (program.clone(), PROGRAM.to_owned()),
    ];
    for (place, text) in files {
        fs::write(&place, text).map_err(at(&place))?;
    }
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(&program, mode).map_err(at(&program))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_a_time_that_was_measured() {
        let times = |all: &[u64]| all.iter().copied().map(Duration::from_secs).collect();
        assert_eq!(median(times(&[9, 1, 4])), Duration::from_secs(4));
        assert_eq!(median(times(&[9, 1, 4, 5])), Duration::from_secs(4));
        assert_eq!(median(Vec::new()), Duration::ZERO);
    }
}
