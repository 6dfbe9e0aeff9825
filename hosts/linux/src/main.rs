//! `linux-walls`: makes User-Mode Linux, and its modules for the word wall.

use mullion_linux::{
    ALGORITHMS, Built, Disk, Instead, Machine, Maker, Module, Outcome, Protection, Work,
};
use mullion_linux::{
    Row, SUBJECTS, Search, Series, Setup, Subject, Trial, Trials, draft, missing, mondrix, print,
    prototypes, report, table, took, tool,
};
use mullion_word_policy::File;
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

const HELP: &str = "\
Makes User-Mode Linux from Debian's linux-source-6.1, and its modules for the word wall.

Usage: linux-walls kernel [--if-possible]
       linux-walls modules [--protection write|read-write] [MODULE]...
       linux-walls draft MODULE
       linux-walls types MODULE...
       linux-walls disk [BOOTS]
       linux-walls report [RUNS [ROW]...]
       linux-walls run [--plain] [--protection write|read-write] [--policies FOLDER]
                       [--script FILE] [--disk FILE]... [--map FILE] [--trace FILE] MODULE...
       linux-walls search [--module NAME] [--calls N] [--seeds N] [--from SEED]
       linux-walls faults [--module NAME|all]... [--runs N] [--from SEED] [--jobs N] [--to FILE]
       linux-walls faults --table [FILE...]

kernel fetches, patches, configures and builds it once, into ~/.cache/mullion.
With --if-possible it says what is missing, and does not fail for that.
modules makes and verifies modules of that build, and prints a table: all of them
if none is named, with both protections if none is given.
draft prints the first policy of a module, for a run that learns: hosts/linux/README.md goes on.
types prints what the kernel's headers say of the arguments of functions that the policies of
these modules trust: hosts/linux/kernel.types.
disk boots with a compressing RAM disk, by turns with plain and with walled compressors,
and prints the best times of BOOTS boots each (5).
report runs workloads on ext2 and over veth, with the host's programs, in the plain kernel and behind the wall
by turns, and prints the median processor time of RUNS runs each (5). With ROW it runs those alone whose names begin so.
run boots, loads these modules and those that they need, walled if there is a policy, runs
the script (hosts/linux/init/init.c has its words), and prints what the console shows.
With --map it writes who may touch which memory at the end, for `mullion map`; with --trace all that
was granted and taken, for `mullion model run`. `set /proc/mullion map` in the script is another moment.
search makes N calls (300) of a file system (ext2; minix or bfs) behind its wall, for each of so many
seeds (10). If the wall ends the module, it looks for the fewest calls that do the same, and prints them.
faults puts N faults (40), by seeds from SEED (1) on, into the source of each of these modules (ext2), runs each in
the plain kernel and behind the wall, and adds a line for each to FILE (hosts/linux/faults.txt). Modules take turns.
If there is no work for a module, it says so, and for which there is. Seeds that FILE has for a module are not run
again. --jobs runs so many at a time (1). It ends with a table. --table prints all results of these files
(hosts/linux/faults.txt), in the form of Mondrix's Table 3.

Exit status: 0 if the kernel, or each module, was made, 1 if not, 2 if the command is misused.
";

fn main() -> ExitCode {
    if let Some(done) = tool() {
        return done;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["--help" | "-h"] => say(HELP).map_or(Ok(false), |()| Ok(true)),
        ["kernel"] => kernel().map(|()| true),
        ["kernel", "--if-possible"] => {
            let lacks = missing();
            // A kernel of the cache needs no packages.
            if lacks.is_empty() || matches!(Built::cached(), Ok(Some(_))) {
                kernel().map(|()| true)
            } else {
                eprintln!(
                    "mullion: no kernel is built: apt-get install {}",
                    lacks.join(" ")
                );
                Ok(true)
            }
        }
        ["modules", rest @ ..] => match Wanted::parse(rest) {
            Ok(wanted) => modules(&wanted),
            Err(what) => return misused(&what),
        },
        ["report"] => measure(5, &[]).map(|()| true),
        ["report", runs, rows @ ..] => match runs.parse() {
            Ok(runs) => measure(runs, rows).map(|()| true),
            Err(_) => return misused("how many runs?"),
        },
        ["draft", name] => first_policy(&name.replace('-', "_")).map(|()| true),
        ["types", names @ ..] => types(names).map(|()| true),
        ["disk"] => disk(5).map(|()| true),
        ["disk", boots] => match boots.parse() {
            Ok(boots) => disk(boots).map(|()| true),
            Err(_) => return misused("how many boots?"),
        },
        ["run", rest @ ..] => match run(rest) {
            Ok(done) => done.map(|()| true),
            Err(what) => return misused(&what),
        },
        ["search", rest @ ..] => match search(rest) {
            Ok(done) => done,
            Err(what) => return misused(&what),
        },
        ["faults", "--table"] => whole_table(&[own_series()]).map(|()| true),
        ["faults", "--table", files @ ..] => {
            let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
            whole_table(&files).map(|()| true)
        }
        ["faults", rest @ ..] => match faults(rest) {
            Ok(done) => done,
            Err(what) => return misused(&what),
        },
        _ => return misused("kernel, modules, draft, types, disk, report, run, search or faults?"),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("mullion: {error}");
            ExitCode::FAILURE
        }
    }
}

fn misused(what: &str) -> ExitCode {
    eprintln!("mullion: {what}\n\n{HELP}");
    ExitCode::from(2)
}

fn say(text: &str) -> io::Result<()> {
    io::stdout().write_all(text.as_bytes())
}

fn kernel() -> Result<(), Setup> {
    let built = Built::make(&mut |step| eprintln!("mullion: {step}"))?;
    let took = built.took().unwrap_or_default().as_secs();
    let line = format!("{} (made in {took} seconds)\n", built.kernel().display());
    // A reader that has gone does not change what was made.
    let _gone = say(&line);
    Ok(())
}

struct Wanted {
    protections: Vec<Protection>,
    names: Vec<String>,
}

impl Wanted {
    fn parse(words: &[&str]) -> Result<Wanted, String> {
        let both = [Protection::ReadWrite, Protection::Write];
        let mut wanted = Wanted {
            protections: both.to_vec(),
            names: Vec::new(),
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--protection" => {
                    let level = words.next().copied().unwrap_or_default();
                    let one = both.into_iter().find(|one| one.name() == level);
                    let one = one.ok_or("--protection is write or read-write")?;
                    wanted.protections = vec![one];
                }
                option if option.starts_with('-') => return Err(format!("{option} is no option")),
                name => wanted.names.push(name.replace('-', "_")),
            }
        }
        Ok(wanted)
    }
}

/// Whether each module was made and verified.
fn modules(wanted: &Wanted) -> Result<bool, Setup> {
    let built = Built::cached()?;
    let built =
        built.ok_or_else(|| Setup::Build("there is no kernel: linux-walls kernel".into()))?;
    let folder: PathBuf = built.build_folder().with_file_name("walled");
    let maker = Maker::new(&built, &folder)?;
    let all = maker.modules()?;
    let is_known = |name: &String| all.iter().any(|module| module.name == *name);
    if let Some(name) = wanted.names.iter().find(|name| !is_known(name)) {
        return Err(Setup::Build(format!("there is no module {name}")));
    }
    let chosen = |module: &&Module| wanted.names.is_empty() || wanted.names.contains(&module.name);
    let chosen: Vec<&Module> = all.iter().filter(chosen).collect();
    let tasks: Vec<(&Module, Protection)> = wanted
        .protections
        .iter()
        .flat_map(|protection| chosen.iter().map(|module| (*module, *protection)))
        .collect();
    let rows = make_all(&maker, &tasks)?;
    // A reader that has gone does not change what was found.
    let _gone = print(&rows, &mut io::stdout().lock());
    let verified = |row: &Row| matches!(row.outcome, Outcome::Verified { .. });
    Ok(rows.iter().all(verified))
}

/// The policy with which a module's first run learns.
fn first_policy(name: &str) -> Result<(), Setup> {
    let built = Built::cached()?;
    let built =
        built.ok_or_else(|| Setup::Build("there is no kernel: linux-walls kernel".into()))?;
    let folder: PathBuf = built.build_folder().with_file_name("walled");
    let maker = Maker::new(&built, &folder)?;
    let all = maker.modules()?;
    let found = all.iter().find(|module| module.name == name);
    let found = found.ok_or_else(|| Setup::Build(format!("there is no module {name}")))?;
    let row = maker.make(found, Protection::ReadWrite)?;
    if !matches!(row.outcome, Outcome::Verified { .. }) {
        return Err(Setup::Build(format!("{name}: {:?}", row.outcome)));
    }
    let imports = maker.imports(found, Protection::ReadWrite)?;
    // A reader that has gone does not change what was found.
    let _gone = say(&draft(name, &imports));
    Ok(())
}

/// Workloads on ext2, plain and walled by turns.
fn measure(runs: u32, rows: &[&str]) -> Result<(), Setup> {
    let built = Built::cached()?;
    let built =
        built.ok_or_else(|| Setup::Build("there is no kernel: linux-walls kernel".into()))?;
    let folder = built.build_folder().with_file_name("walled");
    let machine = Machine::new(&built, &folder, &Machine::own_policies())?;
    // A reader that has gone does not change what is measured.
    let mut tell = |text: &str| drop(say(text));
    report(&machine, &library()?, &folder, (runs, rows), &mut tell)
}

/// What the headers say of functions that these policies trust.
fn types(modules: &[&str]) -> Result<(), Setup> {
    let built = Built::cached()?;
    let built =
        built.ok_or_else(|| Setup::Build("there is no kernel: linux-walls kernel".into()))?;
    let mut names = Vec::new();
    for module in modules {
        let place = Machine::own_policies().join(module).with_extension("toml");
        let text = std::fs::read_to_string(&place);
        let text = text.map_err(|cause| Setup::Io(place.clone(), cause))?;
        let file = File::parse(&text);
        let file = file.map_err(|why| Setup::Build(format!("{}: {why}", place.display())))?;
        names.extend(file.groups.get("trusts").into_iter().flatten().cloned());
        names.extend(file.calls.keys().cloned());
    }
    let found = prototypes(&built, &names)?;
    // A reader that has gone does not change what was found.
    let _gone = say(&found);
    Ok(())
}

/// The wall's library, beside this program.
fn library() -> Result<PathBuf, Setup> {
    let program = std::env::current_exe().map_err(|cause| Setup::Io("/proc".into(), cause))?;
    let library = program.with_file_name("libmullion_linux_wall.so");
    match library.is_file() {
        true => Ok(library),
        false => Err(Setup::Build(format!("{} is not built", library.display()))),
    }
}

/// The outer error is of the words.
fn run(words: &[&str]) -> Result<Result<(), Setup>, String> {
    let (mut work, mut is_plain) = (Work::default(), false);
    let mut told = Told::default();
    let mut protection = Protection::ReadWrite;
    let mut policies = Machine::own_policies();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().copied().ok_or(format!("{word} what?"));
        match *word {
            "--plain" => is_plain = true,
            "--protection" => {
                let level = value()?;
                let both = [Protection::ReadWrite, Protection::Write];
                let one = both.into_iter().find(|one| one.name() == level);
                protection = one.ok_or("--protection is write or read-write")?;
            }
            "--policies" => policies = value()?.into(),
            "--map" => told.map = Some(value()?.into()),
            "--trace" => told.trace = Some(value()?.into()),
            "--disk" => work.disks.push(value()?.into()),
            "--script" => {
                let file = value()?;
                work.script =
                    std::fs::read_to_string(file).map_err(|why| format!("{file}: {why}"))?;
            }
            option if option.starts_with('-') => return Err(format!("{option} is no option")),
            name => work.modules.push(name.replace('-', "_")),
        }
    }
    if is_plain && (told.map.is_some() || told.trace.is_some()) {
        return Err("a plain kernel has no map and no trace".to_owned());
    }
    let asked = told.asked(&work.script);
    work.script.push_str(&asked);
    Ok(boot(&work, is_plain, protection, &policies, &told))
}

/// Files to which the running kernel tells of its walled modules.
#[derive(Default)]
struct Told {
    map: Option<PathBuf>,
    trace: Option<PathBuf>,
}

impl Told {
    const MAP: &str = "set /proc/mullion map\n";
    const TRACE: &str = "set /proc/mullion trace\n";

    /// What asks for them at the end, unless the script does.
    fn asked(&self, script: &str) -> String {
        let wants = [(&self.map, Told::MAP), (&self.trace, Told::TRACE)];
        let wants = wants.into_iter().filter(|(file, _)| file.is_some());
        let asks = wants
            .map(|(_, line)| line)
            .filter(|line| !script.contains(line));
        std::iter::once("\n").chain(asks).collect()
    }

    /// Copies them from where the kernel has written them.
    fn fetch(&self, place: &Path) -> Result<(), Setup> {
        for (name, file) in [("map.json", &self.map), ("trace.mmt", &self.trace)] {
            if let Some(file) = file {
                let from = place.join(name);
                let done = std::fs::copy(&from, file);
                done.map_err(|cause| Setup::Io(from, cause))?;
            }
        }
        Ok(())
    }
}

fn boot(
    work: &Work,
    is_plain: bool,
    protection: Protection,
    policies: &Path,
    told: &Told,
) -> Result<(), Setup> {
    let built = Built::cached()?;
    let built =
        built.ok_or_else(|| Setup::Build("there is no kernel: linux-walls kernel".into()))?;
    let folder = built.build_folder().with_file_name("walled");
    let machine = Machine::new(&built, &folder, policies)?;
    let said = if is_plain {
        machine.boot(work, Instead::Nothing)?
    } else {
        let place = folder.join(format!("run-{}", std::process::id()));
        machine.wall(&work.modules, protection, &place, &mut |_| None)?;
        if told.trace.is_some() {
            let wanted = place.join("traced");
            std::fs::write(&wanted, "").map_err(|cause| Setup::Io(wanted, cause))?;
        }
        let said = machine.boot(work, Instead::Walled(&place, &library()?));
        let fetched = told.fetch(&place);
        let _gone = std::fs::remove_dir_all(&place);
        let said = said?;
        if fetched.is_err() {
            // The console has the reason.
            eprint!("{said}");
        }
        fetched?;
        said
    };
    // A reader that has gone does not change what was seen.
    let _gone = say(&said);
    Ok(())
}

/// The outer error is of the words. Whether nothing was found.
fn search(words: &[&str]) -> Result<Result<bool, Setup>, String> {
    let (mut calls, mut seeds, mut from) = (300, 10, 1);
    let mut subject = &SUBJECTS[0];
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().copied().ok_or(format!("{word} what?"));
        let number = |text: &str| text.parse::<u32>().map_err(|why| format!("{text}: {why}"));
        match *word {
            "--module" => subject = Subject::named(value()?).ok_or("ext2, minix or bfs?")?,
            "--calls" => calls = number(value()?)?,
            "--seeds" => seeds = number(value()?)?,
            "--from" => from = number(value()?)?,
            other => return Err(format!("{other} is no option")),
        }
    }
    Ok(find(subject, calls, from..from.saturating_add(seeds)))
}

/// Boots for the shortest list of calls.
const BOOTS: u32 = 80;

fn find(subject: &'static Subject, calls: u32, seeds: Range<u32>) -> Result<bool, Setup> {
    let built = Built::cached()?;
    let built =
        built.ok_or_else(|| Setup::Build("there is no kernel: linux-walls kernel".into()))?;
    let folder = built.build_folder().with_file_name("walled");
    let machine = Machine::new(&built, &folder, &Machine::own_policies())?;
    let place = folder.join(format!("search-{}", std::process::id()));
    let search = Search::new(&machine, subject, &library()?, &place, &mut |_| None)?;
    let mut found = 0;
    for seed in seeds.clone() {
        if let Some(finding) = search.seed(u64::from(seed), calls, BOOTS)? {
            found += 1;
            let told = finding.told.join("\n");
            let (what, report) = (finding.what, finding.report);
            // A reader that has gone does not change what was found.
            let _gone = say(&format!("seed {seed}: {what}\n{report}\n{told}\n"));
        }
    }
    let _gone = std::fs::remove_dir_all(&place);
    let module = subject.module;
    let (count, all) = (seeds.len(), seeds.len() as u64 * u64::from(calls));
    let _gone = say(&format!(
        "{module}: {count} seeds, {all} calls, {found} ended it\n"
    ));
    Ok(found == 0)
}

/// The series of this tree, to which anybody can add.
fn own_series() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("faults.txt")
}

/// The outer error is of the words. Whether each fault could be run.
fn faults(words: &[&str]) -> Result<Result<bool, Setup>, String> {
    let (mut runs, mut from, mut to, mut jobs) = (40, 1, own_series(), 1);
    let mut subjects = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().copied().ok_or(format!("{word} what?"));
        let number = |text: &str| text.parse::<u64>().map_err(|why| format!("{text}: {why}"));
        match *word {
            "--module" => match value()? {
                "all" => subjects.extend(SUBJECTS.iter()),
                name => subjects.push(Subject::named(name).ok_or_else(no_work)?),
            },
            "--runs" => runs = number(value()?)?,
            "--from" => from = number(value()?)?,
            "--jobs" => jobs = number(value()?)?.max(1),
            "--to" => to = PathBuf::from(value()?),
            other => return Err(format!("{other} is no option")),
        }
    }
    if subjects.is_empty() {
        subjects.push(&SUBJECTS[0]);
    }
    let series = || Series::open(&to, &subjects, runs, from);
    Ok(series().and_then(|series| try_faults(&subjects, series, jobs)))
}

fn no_work() -> String {
    let names: Vec<&str> = SUBJECTS.iter().map(|one| one.module).collect();
    let names = names.join(", ");
    format!("there is no work for it: faults are tried in {names}")
}

/// The table of all results in these files.
fn whole_table(files: &[PathBuf]) -> Result<(), Setup> {
    let mut trials = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file);
        let text = text.map_err(|cause| Setup::Io(file.clone(), cause))?;
        trials.extend(text.lines().filter_map(Trial::parse));
    }
    // A reader that has gone does not change what was found.
    let _gone = say(&mondrix(&trials));
    Ok(())
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

/// In a row; then something else than the faults is wrong.
const FAILURES: u32 = 5;

fn try_faults(subjects: &[&'static Subject], series: Series, jobs: u64) -> Result<bool, Setup> {
    let built = Built::cached()?;
    let built =
        built.ok_or_else(|| Setup::Build("there is no kernel: linux-walls kernel".into()))?;
    let folder = built.build_folder().with_file_name("walled");
    // Beside the modules of the sources as they are.
    let own = folder.with_file_name("faults");
    let machine = Machine::new(&built, &own, &Machine::own_policies())?;
    let library = library()?;
    let of = |subject: &&'static Subject| Trials::new(&built, &machine, subject, &library, &own);
    let trials: Vec<Trials<'_>> = subjects.iter().map(of).collect::<Result<_, _>>()?;
    let (state, failures) = (Mutex::new(series), Mutex::new((0, true)));
    let work = || -> Result<(), Setup> {
        loop {
            let Some(next) = lock(&state).take() else {
                return Ok(());
            };
            match trials[next.subject].run(next.seed, Protection::ReadWrite) {
                Ok(trial) => {
                    lock(&state).note(next, trial.as_ref())?;
                    lock(&failures).0 = 0;
                }
                // It is run again when the series is taken up again.
                Err(why) => {
                    let module = subjects[next.subject].module;
                    eprintln!("mullion: {module}, seed {}: {why}", next.seed);
                    let (in_a_row, is_whole) = &mut *lock(&failures);
                    *in_a_row += 1;
                    *is_whole = false;
                    if *in_a_row >= FAILURES {
                        return Err(why);
                    }
                }
            }
        }
    };
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
        let ended = all.into_iter().map(|one| match one.join() {
            Ok(done) => done,
            Err(_) => Err(Setup::Build("a thread has failed".into())),
        });
        ended.collect::<Result<Vec<()>, Setup>>()
    })?;
    let series = state.into_inner().unwrap_or_else(PoisonError::into_inner);
    // A reader that has gone does not change what was found.
    let _gone = say(&table(&series.trials()));
    let (_, is_whole) = *lock(&failures);
    Ok(is_whole)
}

/// Times of the disk with plain and with walled modules, by turns.
fn disk(boots: u32) -> Result<(), Setup> {
    let built = Built::cached()?;
    let built =
        built.ok_or_else(|| Setup::Build("there is no kernel: linux-walls kernel".into()))?;
    let folder = built.build_folder().with_file_name("walled");
    let library = library()?;
    let disk = Disk::new(&built, &folder)?;
    let mut text = format!(
        "{:10} {:10} {:>12} {:>12}\n",
        "algorithm", "walled", "write, us", "read, us"
    );
    for algorithm in ALGORITHMS {
        let walls = [Protection::Write, Protection::ReadWrite].map(|protection| {
            let place = folder.join(format!("disk-{algorithm}-{}", protection.name()));
            let made = disk.wall(algorithm, protection, &place, &mut |_| None);
            made.map(|_| (protection.name(), place))
        });
        let [stores, both] = walls;
        let (stores, both) = (stores?, both?);
        let rows = [
            ("no", Instead::Nothing),
            (stores.0, Instead::Walled(&stores.1, &library)),
            (both.0, Instead::Walled(&both.1, &library)),
        ];
        let mut best = [[None::<u128>; 2]; 3];
        for _ in 0..boots {
            for ((_, instead), best) in rows.iter().zip(&mut best) {
                let script = "fill /dev/zram0 8192 1\ncheck /dev/zram0 8192 1\n";
                let said = disk.boot(algorithm, *instead, script)?;
                for (transfer, best) in ["fill", "check"].into_iter().zip(best) {
                    let time = took(&said, transfer).ok_or_else(|| Setup::Build(said.clone()))?;
                    *best = Some(best.unwrap_or(u128::MAX).min(time.as_micros()));
                }
            }
        }
        for ((name, _), best) in rows.iter().zip(best) {
            let [fill, check] = best.map(Option::unwrap_or_default);
            text.push_str(&format!("{algorithm:10} {name:10} {fill:12} {check:12}\n"));
        }
    }
    // A reader that has gone does not change what was measured.
    let _gone = say(&text);
    Ok(())
}

/// On all processors; rows are in the order of the tasks.
fn make_all(maker: &Maker<'_>, tasks: &[(&Module, Protection)]) -> Result<Vec<Row>, Setup> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some((module, protection)) = tasks.get(at) else {
                return;
            };
            let row = maker.make(module, *protection);
            let mut done = done.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            done.push((at, row));
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    let done = done.into_inner();
    let mut done = done.unwrap_or_else(|poisoned| poisoned.into_inner());
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, row)| row).collect()
}
