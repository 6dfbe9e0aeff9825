//! Runs faults in a module: plain and walled, the same work on the same disk, and a look at the disk afterwards.

use crate::faults::{KINDS, Kind, inject_within};
use crate::kernel::{Built, Setup, at};
use crate::machine::{Instead, Machine, Work};
use crate::modules::Protection;
use crate::subject::{Form, Subject};
use mullion_fetch::digest;
use std::collections::BTreeSet;
use std::fmt::{self, Write as _};
use std::fs;
use std::path::{Path, PathBuf};
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
    /// It ended well, and the disk is not sound, or what was written was not read back.
    Corrupted,
    /// It ended well, and files in memory, which are no matter of the module's, are wrong.
    Others,
}

const ENDS: [End; 5] = [
    End::None,
    End::Hang,
    End::Panic,
    End::Corrupted,
    End::Others,
];

impl End {
    /// As the table has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            End::None => "none",
            End::Hang => "hang",
            End::Panic => "panic",
            End::Corrupted => "corrupted",
            End::Others => "others",
        }
    }

    /// By its name.
    #[must_use]
    pub fn named(name: &str) -> Option<End> {
        ENDS.into_iter().find(|end| end.name() == name)
    }
}

/// One fault in both kernels.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Of the fault.
    pub seed: u64,
    /// Its kind.
    pub kind: Kind,
    /// Where it is: `ext2/dir.c:88`.
    pub place: String,
    /// Without the wall.
    pub plain: End,
    /// With it.
    pub walled: End,
    /// What the wall ended the module for, and in which function; none: it did not.
    pub caught: Option<String>,
    /// The module was ended, loaded again, and the machine went on to the end of its work.
    pub goes_on: bool,
    /// The kernel, the wall's library, and the policies of the run: beginnings of their digests. Older results have none.
    pub build: Option<String>,
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let caught = self.caught.as_deref().unwrap_or("-");
        let goes_on = if self.goes_on { "goes-on" } else { "-" };
        let (plain, walled) = (self.plain.name(), self.walled.name());
        let (seed, kind, place) = (self.seed, self.kind, &self.place);
        write!(
            f,
            "{seed} {kind} {place} {plain} {walled} {caught} {goes_on}"
        )?;
        match &self.build {
            Some(build) => write!(f, " {build}"),
            None => Ok(()),
        }
    }
}

impl Trial {
    /// Where the fault is.
    fn module(&self) -> &str {
        self.place.split('/').next().unwrap_or_default()
    }

    /// Whether somebody has to explain it: harm without the wall that was not caught, or harm behind it.
    #[must_use]
    pub fn is_missed(&self) -> bool {
        let not_caught = self.plain != End::None && self.caught.is_none();
        not_caught || self.walled != End::None
    }

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
            caught: Some(words.next()?.to_owned()).filter(|what| what != "-"),
            goes_on: words.next()? == "goes-on",
            build: words.next().map(str::to_owned),
        })
    }
}

/// How the runs have ended, by kind; then the plain kernel's ends against the walled one's.
#[must_use]
pub fn table(trials: &[Trial]) -> String {
    let mut text = format!("{:16} {:>5}", "fault", "runs");
    for which in ["plain", "wall"] {
        for end in ENDS {
            let _ = write!(text, " {:>15}", format!("{which} {}", end.name()));
        }
    }
    text.push_str("   caught  goes on\n");
    let mut row = |name: String, of: &dyn Fn(&&Trial) -> bool| {
        let chosen: Vec<&Trial> = trials.iter().filter(of).collect();
        let _ = write!(text, "{name:16} {:5}", chosen.len());
        let count = |which: &dyn Fn(&Trial) -> bool| chosen.iter().filter(|one| which(one)).count();
        for end in ENDS {
            let _ = write!(text, " {:15}", count(&|one| one.plain == end));
        }
        for end in ENDS {
            let _ = write!(text, " {:15}", count(&|one| one.walled == end));
        }
        let caught = count(&|one| one.caught.is_some());
        let _ = writeln!(text, " {caught:8} {:8}", count(&|one| one.goes_on));
    };
    for kind in KINDS {
        row(kind.to_string(), &|one| one.kind == kind);
    }
    row("all".to_owned(), &|_| true);
    for end in ENDS {
        row(format!("plain {}", end.name()), &|one| one.plain == end);
    }
    text
}

/// Mondrix, Table 3: how a run went there, how often, and how often the wall caught something; 200 runs.
const MONDRIX: [(End, usize, usize); 3] = [
    (End::None, 157, 4),
    (End::Hang, 23, 9),
    (End::Panic, 20, 18),
];

/// The classes of Mondrix's Table 3, with its figures beside ours. Its runs are told apart by their symptom without the wall's help;
/// here that is the plain kernel's run of the same fault.
#[must_use]
pub fn mondrix(trials: &[Trial]) -> String {
    let mut modules: Vec<&str> = trials.iter().map(Trial::module).collect();
    modules.sort_unstable();
    modules.dedup();
    let mut text = format!(
        "{:16} {:>13} | {:>5} {:>12}",
        "", "Mondrix", "runs", "caught"
    );
    let ends = |text: &mut String, name: &dyn Fn(End) -> String| {
        for end in ENDS {
            let _ = write!(text, " {:>9}", name(end));
        }
    };
    let _ = write!(text, " {:>9} |", "survived");
    ends(&mut text, &|end| end.name().to_owned());
    text.push_str("  <- behind the wall\n");
    let share = |part: usize, all: usize| match all {
        0 => "-".to_owned(),
        _ => format!("{part} ({:.1} %)", part as f64 * 100.0 / all as f64),
    };
    let mut row = |name: &str, theirs: Option<(usize, usize)>, of: &dyn Fn(&Trial) -> bool| {
        let chosen: Vec<&Trial> = trials.iter().filter(|one| of(one)).collect();
        let caught = chosen.iter().filter(|one| one.caught.is_some()).count();
        let survived = chosen.iter().filter(|one| one.goes_on).count();
        let theirs = theirs.map_or("-".to_owned(), |(runs, caught)| {
            format!("{caught} of {runs}")
        });
        let runs = chosen.len();
        let _ = write!(
            text,
            "{name:16} {theirs:>13} | {runs:5} {:>12} {survived:9} |",
            share(caught, runs)
        );
        let count = |end| chosen.iter().filter(|one| one.walled == end).count();
        ends(&mut text, &|end| count(end).to_string());
        text.push('\n');
    };
    for end in ENDS {
        let theirs = MONDRIX.iter().find(|(one, ..)| *one == end);
        row(
            end.name(),
            theirs.map(|(_, runs, caught)| (*runs, *caught)),
            &|one| one.plain == end,
        );
    }
    let all = MONDRIX
        .iter()
        .fold((0, 0), |(runs, caught), one| (runs + one.1, caught + one.2));
    row("all", Some(all), &|_| true);
    for module in modules {
        row(module, None, &|one| one.module() == module);
    }
    let builds = |parts: usize| {
        let part = |one: &Trial| {
            let build = one.build.as_deref()?;
            let mut words = build.splitn(3, '-').take(parts);
            Some(words.by_ref().collect::<Vec<_>>().join("-"))
        };
        trials
            .iter()
            .filter_map(part)
            .collect::<BTreeSet<_>>()
            .len()
    };
    let (kernels, libraries) = (builds(1), builds(2));
    let _ = writeln!(
        text,
        "kernels: {kernels}, with the wall's libraries: {libraries}"
    );
    text.push_str(
        "Mondrix: 5 of the 200 left a corrupted file system, and 3 of these were caught.\n",
    );
    let missed: Vec<String> = trials
        .iter()
        .filter(|one| one.is_missed())
        .map(Trial::to_string)
        .collect();
    let _ = writeln!(text, "missed: {}", missed.len());
    for line in missed {
        let _ = writeln!(text, "  {line}");
    }
    text
}

/// A module whose faults are tried.
pub struct Trials<'b> {
    built: &'b Built,
    machine: &'b Machine<'b>,
    subject: &'static Subject,
    library: PathBuf,
    folder: PathBuf,
    /// The kernel, and the library.
    build: String,
}

/// In which nothing of the machine could run. The wall gives a call ten seconds, and one without an end may be met in each of three
/// mounts.
const PATIENCE: Duration = Duration::from_secs(60);
/// Of the kernel's own processor time. A run takes less than two seconds of it.
const BUSY: Duration = Duration::from_secs(45);
const BUSY_PLAINLY: Duration = Duration::from_secs(10);

impl<'b> Trials<'b> {
    /// Of one module, in a folder of their own.
    ///
    /// # Errors
    /// The library cannot be read.
    pub fn new(
        built: &'b Built,
        machine: &'b Machine<'b>,
        subject: &'static Subject,
        library: &Path,
        folder: &Path,
    ) -> Result<Self, Setup> {
        let kernel = built.build_folder();
        // linux-DIGEST/build
        let kernel = kernel.parent().and_then(Path::file_name);
        let kernel = kernel.unwrap_or_default().to_string_lossy();
        let kernel = kernel.rsplit('-').next().unwrap_or_default();
        let build = format!("{kernel}-{}", &digest(library)?[..8]);
        Ok(Trials {
            built,
            machine,
            subject,
            library: library.to_path_buf(),
            folder: folder.join(subject.module),
            build,
        })
    }

    /// Runs the seed's fault. None: the seed gives none, or the changed source is no C.
    ///
    /// # Errors
    /// Files or programs fail.
    pub fn run(&self, seed: u64, protection: Protection) -> Result<Option<Trial>, Setup> {
        let work = self.folder.join(format!("seed-{seed}"));
        let done = self.run_in(seed, protection, &work);
        if done.is_ok() && std::env::var_os("MULLION_LINUX_KEEP").is_none() {
            let _gone = fs::remove_dir_all(&work);
        }
        done
    }

    fn run_in(
        &self,
        seed: u64,
        protection: Protection,
        work: &Path,
    ) -> Result<Option<Trial>, Setup> {
        let module = self.subject.module;
        let objects = self.machine.objects(module)?;
        // By their names, wherever they lie: a seed's fault stays where it is.
        let file = |object: &String| {
            let name = object.rsplit('/').next().unwrap_or_default();
            (name.replace(".o", ".c"), object.replace(".o", ".c"))
        };
        let mut files: Vec<(String, String)> = objects.iter().map(file).collect();
        files.sort();
        let read = |(_, file): &(String, String)| {
            let path = self.built.tree().join(file);
            fs::read_to_string(&path).map_err(at(&path))
        };
        let sources: Vec<String> = files.iter().map(read).collect::<Result<_, _>>()?;
        let sourced: Vec<String> = files.into_iter().map(|(name, _)| name).collect();
        let Some((number, fault)) = inject_within(&sources, seed, self.subject.within) else {
            return Ok(None);
        };
        let (plain, walled) = (work.join("plain"), work.join("walled"));
        fs::create_dir_all(&plain).map_err(at(&plain))?;
        let changed = work.join(&sourced[number]);
        fs::write(&changed, &fault.text).map_err(at(&changed))?;
        let ending = format!("/{}", sourced[number]);
        let mut source = |path: &str| path.ends_with(&ending).then(|| changed.clone());
        if self.machine.plain(module, &plain, &mut source)?.is_none() {
            return Ok(None);
        }
        let made = self
            .machine
            .wall(&self.subject.modules(), protection, &walled, &mut source);
        // Code with addresses of 32 bits is refused when it is made, so there is nothing to compare.
        if matches!(&made, Err(Setup::Build(why)) if why.contains("NotMade")) {
            return Ok(None);
        }
        // The module itself comes first: a fault of its may end others, too.
        let mut names: Vec<String> = made?.into_iter().map(|row| row.name).collect();
        names.sort_by_key(|name| name != module);
        // An ordinary module that calls others: it is the same in both kernels.
        let caller = "mullion_try.ko";
        let (from, to) = (walled.join(caller), plain.join(caller));
        fs::copy(&from, to).map_err(at(&from))?;
        let build = format!("{}-{}", self.build, policies(&walled, work)?);
        let plain = self.boot("plain", &names, Instead::Plain(&plain), work)?;
        let walled = Instead::Walled(&walled, &self.library);
        let walled = self.boot("walled", &names, walled, work)?;
        // The fault has taken a function away of which the policy speaks: the module was not loaded, and nothing caught.
        if walled.caught.as_deref() == Some(UNLOADED) {
            return Ok(None);
        }
        Ok(Some(Trial {
            seed,
            kind: fault.kind,
            place: format!("{module}/{}:{}", sourced[number], fault.line),
            plain: plain.end,
            walled: walled.end,
            caught: walled.caught,
            goes_on: walled.goes_on,
            build: Some(build),
        }))
    }

    /// `walled` has the names of what may be caught.
    fn boot(
        &self,
        name: &str,
        walled: &[String],
        instead: Instead<'_>,
        work: &Path,
    ) -> Result<Ended, Setup> {
        let disks: Vec<PathBuf> = self
            .subject
            .disks
            .iter()
            .map(|one| work.join(one))
            .collect();
        for disk in &disks {
            self.subject.form.make(disk)?;
        }
        let what = Work {
            modules: self.subject.modules(),
            script: self.subject.script.to_owned(),
            disks: disks.clone(),
            patience: Some(PATIENCE),
            busy: Some(match instead {
                Instead::Walled(..) => BUSY,
                Instead::Nothing | Instead::Plain(_) => BUSY_PLAINLY,
            }),
            ..Work::default()
        };
        let said = self.machine.boot(&what, instead)?;
        let console = work.join(name).with_extension("console");
        fs::write(&console, &said).map_err(at(&console))?;
        if said.contains("policy: ") {
            return Err(Setup::Build(said));
        }
        let form = self.subject.form;
        let is_sound = match (disks.first(), form) {
            (None, _) | (_, Form::Kept(_)) => self.subject.is_right(&said),
            (Some(disk), _) => form.is_sound(disk)?,
        };
        Ok(Ended::read(walled, &said, is_sound))
    }
}

/// The beginning of a digest of all policies in a folder.
fn policies(walled: &Path, work: &Path) -> Result<String, Setup> {
    let entries = fs::read_dir(walled).map_err(at(walled))?;
    let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let is_policy = |file: &PathBuf| file.extension().is_some_and(|end| end == "toml");
    let mut files: Vec<PathBuf> = files.filter(is_policy).collect();
    files.sort();
    let texts = files
        .iter()
        .map(|file| fs::read_to_string(file).map_err(at(file)));
    let all = texts.collect::<Result<Vec<_>, _>>()?.join("\n");
    let key = work.join("policies");
    fs::write(&key, all).map_err(at(&key))?;
    Ok(digest(&key)?[..8].to_owned())
}

/// How a refusal to load is read: `the policy speaks of ..., which ... does not export`.
const UNLOADED: &str = "the:speaks";

/// How a boot went.
struct Ended {
    end: End,
    caught: Option<String>,
    goes_on: bool,
}

impl Ended {
    /// By its console, and by whether the disk is sound. The first of these modules that was caught counts.
    fn read(modules: &[String], said: &str, is_sound: bool) -> Ended {
        let is_whole = said.contains("init: ends");
        let others = "init: look /dev: 16 files, 0 failed, 0 wrong";
        let end = if said.contains("Kernel panic") || said.contains("Segfault with no mm") {
            End::Panic
        } else if !is_whole {
            End::Hang
        } else if said.matches(others).count() != 2 {
            End::Others
        } else if is_sound {
            End::None
        } else {
            End::Corrupted
        };
        let report = modules.iter().find_map(|module| {
            let begin = format!("mullion: {module}: ");
            let report = said.lines().find_map(|line| line.split_once(&begin));
            report.map(|(_, line)| (module, line))
        });
        let words = |line: &str| {
            let mut words = line.split([' ', '+']);
            let kind = words.next().unwrap_or("?").to_owned();
            let place = words.nth(1).unwrap_or("?");
            format!("{kind}:{place}")
        };
        let caught = report.map(|(_, line)| words(line));
        let again = report.is_some_and(|(module, _)| {
            said.contains(&format!("mullion: {module} is loaded again"))
        });
        let goes_on = caught.is_some() && again && matches!(end, End::None | End::Corrupted);
        Ended {
            end,
            caught,
            goes_on,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let line = "7 bit-of-pointer ext2/dir.c:88 panic none Access:ext2_readdir goes-on";
        let trial = Trial::parse(line).expect("a trial");
        assert_eq!(trial.to_string(), line);
        let with_build = format!("{line} 62983d9a9b15-0011aabb-2233ccdd");
        let built = Trial::parse(&with_build).expect("a trial");
        assert_eq!(built.to_string(), with_build);
        assert!(Trial::parse("8 -").is_none());
        let text = table(&[trial]);
        assert!(text.contains("plain panic          1"), "{text}");
    }

    #[test]
    fn the_paper_s_table_counts_each_run_once() {
        let lines = [
            "7 bit-of-pointer ext2/dir.c:88 panic none Access:ext2_readdir goes-on",
            "8 deleted ext2/dir.c:90 hang hang - -",
            "9 deleted minix/dir.c:1 none none - -",
            "10 - minix",
        ];
        let trials: Vec<Trial> = lines.into_iter().filter_map(Trial::parse).collect();
        let text = mondrix(&trials);
        let row = |name: &str| {
            let mut lines = text.lines();
            let line = lines.find(|line| line.starts_with(name)).expect("a row");
            line.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let panic = row("panic").join(" ");
        assert!(
            panic.starts_with("panic 18 of 20 | 1 1 (100.0 %) 1 |"),
            "{text}"
        );
        assert!(
            row("hang")
                .join(" ")
                .starts_with("hang 9 of 23 | 1 0 (0.0 %) 0 |"),
            "{text}"
        );
        assert!(
            row("all").join(" ").starts_with("all 31 of 200 | 3 1"),
            "{text}"
        );
        assert!(row("ext2").join(" ").starts_with("ext2 - | 2 1"), "{text}");
        assert!(text.contains("missed: 1\n  8 deleted"), "{text}");
    }

    #[test]
    fn a_boot_is_read() {
        let ext2 = ["ext2".to_owned()];
        let whole = "init: look /dev: 16 files, 0 failed, 0 wrong, 7 us\n".repeat(2);
        let whole = format!("{whole}init: ends\n");
        assert_eq!(Ended::read(&ext2, &whole, true).end, End::None);
        assert_eq!(Ended::read(&ext2, &whole, false).end, End::Corrupted);
        assert_eq!(Ended::read(&ext2, "init: begins", true).end, End::Hang);
        let others = whole.replace("0 wrong", "1 wrong");
        assert_eq!(Ended::read(&ext2, &others, true).end, End::Others);
        let caught =
            format!("mullion: ext2: Access in ext2_get_inode+0x1f (0x1, inode.c:7)\n{whole}");
        let ended = Ended::read(&ext2, &caught, true);
        assert_eq!(ended.caught.as_deref(), Some("Access:ext2_get_inode"));
        assert!(!ended.goes_on);
        let again = format!("{caught}mullion: ext2 is loaded again\n");
        assert!(Ended::read(&ext2, &again, true).goes_on);
        let unloaded = "mullion: ext2: the policy speaks of `f`, which ext2 does not export";
        let unloaded = Ended::read(&ext2, unloaded, true);
        assert_eq!(unloaded.caught.as_deref(), Some(UNLOADED));
    }
}
