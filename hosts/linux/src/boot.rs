//! Boots the kernel with an initial file system of ours.

use crate::keeper::Keeper;
use crate::kernel::{Built, Setup, at};
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The first program, built as `hosts/linux/init/init.c` says.
const INIT: &str = include_str!("../init/init.c");
/// Its parts.
const PARTS: [(&str, &str); 5] = [
    ("parts.h", include_str!("../init/parts.h")),
    ("calls.c", include_str!("../init/calls.c")),
    ("ciphers.c", include_str!("../init/ciphers.c")),
    ("pairs.c", include_str!("../init/pairs.c")),
    ("loads.c", include_str!("../init/loads.c")),
];

const SAMPLES: &str = include_str!("../samples/samples.c");

/// After which a machine is stopped that does not end by itself, in time in which it [waits](Waits): a hundred times what it needs.
const PATIENCE: Duration = Duration::from_secs(120);

/// A boot, until the first program ends it.
#[derive(Debug, Default)]
pub struct Boot {
    /// Files of the initial file system, besides the first program.
    pub files: Vec<(String, PathBuf)>,
    /// What the first program does: its commands, one a line.
    pub script: String,
    /// The wall's library, and the folder with walled modules and policies.
    pub wall: Option<(PathBuf, PathBuf)>,
    /// Files that are the machine's disks.
    pub disks: Vec<PathBuf>,
    /// After which the machine is stopped, in time in which nothing of it could run; none: a hundred times what it needs.
    pub patience: Option<Duration>,
    /// The same, of its processor time; none: as much.
    pub busy: Option<Duration>,
    /// In MiB; none: 96.
    pub memory: Option<u32>,
    /// A file for where the kernel was, a thousand times a second of its time.
    pub samples: Option<PathBuf>,
}

impl Boot {
    /// Runs it. What the console showed.
    ///
    /// # Errors
    /// The first program cannot be made, or the kernel cannot be started.
    pub fn run(&self, built: &Built) -> Result<String, Setup> {
        let work = tempfile::tempdir().map_err(at(&std::env::temp_dir()))?;
        let init = first_program(work.path())?;
        let script = work.path().join("script");
        fs::write(&script, &self.script).map_err(at(&script))?;
        let mut files = vec![("init".to_owned(), init), ("script".to_owned(), script)];
        files.extend(self.files.iter().cloned());
        let initial = work.path().join("initial");
        let mut to = fs::File::create(&initial).map_err(at(&initial))?;
        archive(&files, &mut to)?;
        let kernel = built.kernel();
        let mut command = match &self.samples {
            None => Command::new(&kernel),
            Some(to) => {
                let program = work.path().join("samples");
                compile_sampler(work.path(), &program)?;
                let mut command = Command::new(program);
                command.arg(to).arg(&kernel);
                command
            }
        };
        let option = |name: &str, path: &Path| {
            let mut option = OsString::from(name);
            option.push(path);
            option
        };
        let memory = self.memory.unwrap_or(96);
        command.arg(format!("mem={memory}M")).arg("con=null");
        // Policies speak of caches by name: none is merged with another one.
        command.arg("slab_nomerge");
        command.args(["con0=null,fd:1", "quiet", "panic=-1"]);
        command.arg(option("initrd=", &initial));
        command.arg(option("uml_dir=", work.path()));
        if let Some((library, folder)) = &self.wall {
            let mut wall = option("mullion=", library);
            wall.push(",");
            wall.push(folder);
            command.arg(wall);
        }
        for (number, disk) in self.disks.iter().enumerate() {
            command.arg(option(&format!("ubd{number}="), disk));
        }
        // Its memory is a file where files are memory, if there is such a place.
        command.env_remove("TMPDIR");
        command.stdin(Stdio::null());
        let console = work.path().join("console");
        let to = fs::File::create(&console).map_err(at(&console))?;
        let other = to.try_clone().map_err(at(&console))?;
        command.stdout(to).stderr(other);
        // The processes of its programs are in its group, too.
        let mut machine = command.process_group(0).spawn().map_err(at(&kernel))?;
        let keeper = Keeper::of(machine.id()).map_err(at(Path::new("sh")))?;
        let (mut waits, begun) = (Waits::default(), Instant::now());
        let patience = self.patience.unwrap_or(PATIENCE);
        let busy = self.busy.unwrap_or(patience);
        let ended = loop {
            if machine.try_wait().map_err(at(&kernel))?.is_some() {
                break true;
            }
            // A program in the machine may have no end, too: that is another process.
            let is_late = begun.elapsed() > patience * 10;
            if is_late || processor_time(machine.id()) > busy || waits.look(machine.id()) > patience
            {
                break false;
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        if ended {
            keeper.leaves().map_err(at(Path::new("sh")))?;
        } else {
            drop(keeper);
            machine.wait().map_err(at(&kernel))?;
        }
        let said = fs::read(&console).map_err(at(&console))?;
        let mut said = String::from_utf8_lossy(&said).replace('\r', "");
        if !ended {
            said.push_str("\nthe machine did not end");
        }
        Ok(said)
    }
}

/// How long a machine has waited for nothing: no thread of it could have run. One that has to wait for a processor of the host does
/// not count, so a slow host is not taken for a machine that hangs.
#[derive(Default)]
struct Waits {
    looked: Option<Instant>,
    all: Duration,
}

impl Waits {
    const EACH: Duration = Duration::from_millis(200);

    /// Looks at the processes of the group, and adds the time since the last look if none of them could run.
    fn look(&mut self, group: u32) -> Duration {
        let since = self.looked.map_or(Waits::EACH, |looked| looked.elapsed());
        if since >= Waits::EACH {
            self.looked = Some(Instant::now());
            if !could_run(group) {
                // A look that comes late says nothing of the time before.
                self.all += since.min(Waits::EACH * 2);
            }
        }
        self.all
    }
}

/// Whether a process of the group runs, waits for a processor, or waits for the host's files.
fn could_run(group: u32) -> bool {
    let Ok(all) = fs::read_dir("/proc") else {
        return false;
    };
    all.flatten().any(|entry| {
        let text = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let rest = text.rsplit(')').next().unwrap_or_default();
        let mut words = rest.split_whitespace();
        let (state, own) = (words.next(), words.nth(1));
        let is_ours = own.and_then(|own| own.parse::<u32>().ok()) == Some(group);
        is_ours && matches!(state, Some("R" | "D"))
    })
}

/// Of a process that runs: a hundredth of a second is what the system counts in.
fn processor_time(process: u32) -> Duration {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let rest = text.rsplit(')').next().unwrap_or_default();
    let ticks = rest.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.filter_map(|one| one.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

/// It is compiled once in the life of this program.
fn first_program(folder: &Path) -> Result<PathBuf, Setup> {
    static MADE: Mutex<Vec<u8>> = Mutex::new(Vec::new());
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let program = folder.join("init");
    if made.is_empty() {
        compile_first(folder)?;
        *made = fs::read(&program).map_err(at(&program))?;
    } else {
        fs::write(&program, &*made).map_err(at(&program))?;
    }
    Ok(program)
}

/// The program that runs the kernel and looks where it is.
fn compile_sampler(folder: &Path, program: &Path) -> Result<(), Setup> {
    let source = folder.join("samples.c");
    fs::write(&source, SAMPLES).map_err(at(&source))?;
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-Wall", "-o"]).arg(program).arg(&source);
    let output = gcc.output().map_err(at(&source))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(Setup::Build(
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )),
    }
}

fn compile_first(folder: &Path) -> Result<PathBuf, Setup> {
    let (source, program) = (folder.join("init.c"), folder.join("init"));
    fs::write(&source, INIT).map_err(at(&source))?;
    let mut gcc = Command::new("gcc");
    gcc.args(["-static", "-O1", "-Wall", "-o"]).arg(&program);
    gcc.arg(&source);
    for (name, text) in PARTS {
        let part = folder.join(name);
        fs::write(&part, text).map_err(at(&part))?;
        if name.ends_with(".c") {
            gcc.arg(&part);
        }
    }
    let output = gcc.output().map_err(at(&source))?;
    match output.status.success() {
        true => Ok(program),
        false => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            Err(Setup::Build(said))
        }
    }
}

/// An archive in the form that the kernel unpacks ("newc"), with folders for devices and the like. It has the files in its
/// root, all of them executable.
///
/// # Errors
/// A file cannot be read, or the archive not be written.
pub fn archive(files: &[(String, PathBuf)], to: &mut dyn Write) -> Result<(), Setup> {
    const FOLDER: u32 = 0o040_755;
    const FILE: u32 = 0o100_755;
    const CONSOLE: u32 = 0o020_600;
    let mut number = 0;
    let mut entry = |name: &str, mode: u32, device: (u32, u32), content: &[u8]| {
        number += 1;
        let (length, name_length) = (content.len(), name.len() + 1);
        let mut bytes = format!(
            "070701{number:08x}{mode:08x}{:08x}{:08x}{:08x}{:08x}{length:08x}{:08x}{:08x}{:08x}{:08x}{name_length:08x}{:08x}{name}\0",
            0, 0, 1, 0, 0, 0, device.0, device.1, 0
        )
        .into_bytes();
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes.extend_from_slice(content);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        to.write_all(&bytes).map_err(at(Path::new(name)))
    };
    for folder in ["dev", "proc", "sys", "mnt", "host"] {
        entry(folder, FOLDER, (0, 0), &[])?;
    }
    entry("dev/console", CONSOLE, (5, 1), &[])?;
    for (name, path) in files {
        let content = fs::read(path).map_err(at(path))?;
        entry(name, FILE, (0, 0), &content)?;
    }
    entry("TRAILER!!!", 0, (0, 0), &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A group of its own with one process.
    fn of(line: &str) -> (std::process::Child, u32) {
        let mut command = Command::new("sh");
        command.args(["-c", line]).process_group(0);
        let child = command.spawn().expect("a shell");
        let id = child.id();
        (child, id)
    }

    #[test]
    fn a_machine_that_could_run_does_not_wait() {
        let (mut spins, spinning) = of("while :; do :; done");
        let (mut sleeps, sleeping) = of("exec sleep 60");
        // Until the second one sleeps.
        while could_run(sleeping) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let (mut one, mut other) = (Waits::default(), Waits::default());
        for _ in 0..4 {
            assert_eq!(one.look(spinning), Duration::ZERO);
            assert!(other.look(sleeping) > Duration::ZERO);
            std::thread::sleep(Waits::EACH);
        }
        assert!(other.all >= Waits::EACH * 4);
        for child in [&mut spins, &mut sleeps] {
            child.kill().expect("its end");
            child.wait().expect("its end");
        }
    }
}
