//! Runs faults in a file system: plain and walled, the same work on the same disk, and a look at the disk afterwards.

use crate::faults::{KINDS, Kind, inject};
use crate::kernel::{Built, Setup, at};
use crate::machine::{Instead, Machine, Work};
use crate::modules::Protection;
use std::fmt::{self, Write as _};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// What came of a run, in the classes of Mondrix's Table 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The work was done and is right, or calls have failed; the disk is sound.
    None,
    /// The machine did not end.
    Hang,
    /// It ended with a panic.
    Panic,
    /// It ended well, and the disk is not sound.
    Corrupted,
}

impl End {
    /// As the table has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            End::None => "none",
            End::Hang => "hang",
            End::Panic => "panic",
            End::Corrupted => "corrupted",
        }
    }

    /// By its name.
    #[must_use]
    pub fn named(name: &str) -> Option<End> {
        let all = [End::None, End::Hang, End::Panic, End::Corrupted];
        all.into_iter().find(|end| end.name() == name)
    }
}

/// One fault in both kernels.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Of the fault.
    pub seed: u64,
    /// Its kind.
    pub kind: Kind,
    /// Where it is.
    pub place: String,
    /// Without the wall.
    pub plain: End,
    /// With it.
    pub walled: End,
    /// Whether the wall ended the module.
    pub is_caught: bool,
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let caught = if self.is_caught { "caught" } else { "-" };
        let (plain, walled) = (self.plain.name(), self.walled.name());
        let (seed, kind, place) = (self.seed, self.kind, &self.place);
        write!(f, "{seed} {kind} {place} {plain} {walled} {caught}")
    }
}

impl Trial {
    /// A line as [`Display`](fmt::Display) writes it.
    #[must_use]
    pub fn parse(line: &str) -> Option<Trial> {
        let mut words = line.split(' ');
        let seed = words.next()?.parse().ok()?;
        let kind = words.next()?;
        let kind = *KINDS.iter().find(|one| one.to_string() == kind)?;
        Some(Trial {
            seed,
            kind,
            place: words.next()?.to_owned(),
            plain: End::named(words.next()?)?,
            walled: End::named(words.next()?)?,
            is_caught: words.next()? == "caught",
        })
    }
}

/// How the runs have ended, by kind; then the plain kernel's ends against the walled one's.
#[must_use]
pub fn table(trials: &[Trial]) -> String {
    const ENDS: [End; 4] = [End::None, End::Hang, End::Panic, End::Corrupted];
    let mut text = format!("{:16} {:>5}", "fault", "runs");
    for which in ["plain", "walled"] {
        for end in ENDS {
            let _ = write!(text, " {:>16}", format!("{which} {}", end.name()));
        }
    }
    text.push_str("   caught\n");
    let mut row = |name: String, of: &dyn Fn(&&Trial) -> bool| {
        let chosen: Vec<&Trial> = trials.iter().filter(of).collect();
        let _ = write!(text, "{name:16} {:5}", chosen.len());
        let count = |which: &dyn Fn(&Trial) -> bool| chosen.iter().filter(|one| which(one)).count();
        for end in ENDS {
            let _ = write!(text, " {:16}", count(&|one| one.plain == end));
        }
        for end in ENDS {
            let _ = write!(text, " {:16}", count(&|one| one.walled == end));
        }
        let _ = writeln!(text, " {:8}", count(&|one| one.is_caught));
    };
    for kind in KINDS {
        row(kind.to_string(), &|one| one.kind == kind);
    }
    row("all".to_owned(), &|_| true);
    row("plain harmed".to_owned(), &|one| one.plain != End::None);
    text
}

/// A module whose faults are tried.
pub struct Trials<'b> {
    built: &'b Built,
    machine: &'b Machine<'b>,
    library: PathBuf,
    folder: PathBuf,
}

/// The work: files are made, the disk is mounted again, and the files are looked at.
const WORK: &str = "mount ext2 /dev/ubda /mnt\ntree /mnt 6\numount /mnt\nmount ext2 /dev/ubda /mnt\nlook /mnt 6\numount /mnt\n";
const MODULE: &str = "ext2";
/// A run takes less than two seconds.
const PATIENCE: Duration = Duration::from_secs(25);

impl<'b> Trials<'b> {
    /// In a folder of their own.
    #[must_use]
    pub fn new(built: &'b Built, machine: &'b Machine<'b>, library: &Path, folder: &Path) -> Self {
        Trials {
            built,
            machine,
            library: library.to_path_buf(),
            folder: folder.to_path_buf(),
        }
    }

    /// Runs the seed's fault. None: the seed gives none, or the changed source is no C.
    ///
    /// # Errors
    /// Files or programs fail.
    pub fn run(&self, seed: u64, protection: Protection) -> Result<Option<Trial>, Setup> {
        let work = self.folder.join(format!("seed-{seed}"));
        let done = self.run_in(seed, protection, &work);
        let _gone = fs::remove_dir_all(&work);
        done
    }

    fn run_in(
        &self,
        seed: u64,
        protection: Protection,
        work: &Path,
    ) -> Result<Option<Trial>, Setup> {
        let plain = work.join("plain");
        fs::create_dir_all(&plain).map_err(at(&plain))?;
        let from = self.built.tree().join("fs/ext2");
        let mut names = Vec::new();
        for entry in fs::read_dir(&from).map_err(at(&from))? {
            let path = entry.map_err(at(&from))?.path();
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if name.ends_with(".c") || name.ends_with(".h") {
                fs::copy(&path, plain.join(&name)).map_err(at(&path))?;
                names.push(name);
            }
        }
        names.sort();
        let objects = self.machine.objects(MODULE)?;
        names.retain(|name| objects.contains(&name.replace(".c", ".o")));
        let read = |name: &String| {
            let path = plain.join(name);
            fs::read_to_string(&path).map_err(at(&path))
        };
        let sources: Vec<String> = names.iter().map(read).collect::<Result<_, _>>()?;
        let Some((number, fault)) = inject(&sources, seed) else {
            return Ok(None);
        };
        let changed = plain.join(&names[number]);
        fs::write(&changed, &fault.text).map_err(at(&changed))?;
        if !self.build_plainly(&plain, &objects)? {
            return Ok(None);
        }
        let walled = work.join("walled");
        let ending = format!("/{}", names[number]);
        let mut source = |path: &str| path.ends_with(&ending).then(|| changed.clone());
        self.machine
            .wall(&[MODULE.to_owned()], protection, &walled, &mut source)?;
        let (plain, _) = self.boot(Instead::Plain(&plain), work)?;
        let (walled, is_caught) = self.boot(Instead::Walled(&walled, &self.library), work)?;
        let place = format!("{}:{}", names[number], fault.line);
        let kind = fault.kind;
        Ok(Some(Trial {
            seed,
            kind,
            place,
            plain,
            walled,
            is_caught,
        }))
    }

    /// Whether it is C.
    fn build_plainly(&self, folder: &Path, objects: &[String]) -> Result<bool, Setup> {
        let kbuild = folder.join("Kbuild");
        let text = format!(
            "ccflags-y := -w\nobj-m := {MODULE}.o\n{MODULE}-y := {}\n",
            objects.join(" ")
        );
        fs::write(&kbuild, text).map_err(at(&kbuild))?;
        let mut make = self.built.kbuild();
        make.arg(format!("M={}", folder.display())).arg("modules");
        make.stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let status = make.status().map_err(at(folder))?;
        Ok(status.success())
    }

    fn boot(&self, instead: Instead<'_>, work: &Path) -> Result<(End, bool), Setup> {
        let disk = work.join("disk");
        fresh_disk(&disk)?;
        let what = Work {
            modules: vec![MODULE.to_owned()],
            script: WORK.to_owned(),
            disks: vec![disk.clone()],
            patience: Some(PATIENCE),
        };
        let said = self.machine.boot(&what, instead)?;
        let is_in = said.contains(&format!("init: insmod {MODULE}: done"));
        let is_caught = is_in && said.contains(&format!("mullion: {MODULE}: "));
        let end = if said.contains("Kernel panic") || said.contains("Segfault with no mm") {
            End::Panic
        } else if said.contains("policy: ") {
            return Err(Setup::Build(said));
        } else if !said.contains("init: ends") {
            End::Hang
        } else if is_sound(&disk)? {
            End::None
        } else {
            End::Corrupted
        };
        Ok((end, is_caught))
    }
}

/// An empty file system of 4 MiB.
///
/// # Errors
/// `mke2fs` is not here, or fails.
pub fn fresh_disk(disk: &Path) -> Result<(), Setup> {
    let file = fs::File::create(disk).map_err(at(disk))?;
    file.set_len(4 << 20).map_err(at(disk))?;
    let mut make = Command::new("mke2fs");
    make.args(["-q", "-F", "-t", "ext2", "-b", "1024"])
        .arg(disk);
    make.env("PATH", programs());
    let status = make.status().map_err(at(Path::new("mke2fs")))?;
    match status.success() {
        true => Ok(()),
        false => Err(Setup::Build("mke2fs fails".into())),
    }
}

/// Whether `e2fsck` finds nothing wrong.
///
/// # Errors
/// It is not here.
pub fn is_sound(disk: &Path) -> Result<bool, Setup> {
    let mut check = Command::new("e2fsck");
    check.arg("-fn").arg(disk).env("PATH", programs());
    check
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let status = check.status().map_err(at(Path::new("e2fsck")))?;
    Ok(status.success())
}

/// Users may not have the administrators' programs in their path.
fn programs() -> String {
    let own = std::env::var("PATH").unwrap_or_default();
    format!("{own}:/usr/sbin:/sbin")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let line = "7 bit-of-pointer dir.c:88 panic none caught";
        let trial = Trial::parse(line).expect("a trial");
        assert_eq!(trial.to_string(), line);
        assert!(Trial::parse("8 -").is_none());
        let text = table(&[trial]);
        assert!(
            text.contains("plain harmed         1                0"),
            "{text}"
        );
    }
}
