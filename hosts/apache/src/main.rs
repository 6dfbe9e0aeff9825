//! `apache-modules`: makes every module of Debian's `apache2` source package for the word wall, verifies each, and prints
//! a table.

use mullion_apache::{
    Maker, Module, Outcome, Protection, Row, Setup, add_own, complete, modules, print, tool,
};
use mullion_fetch::{Lock, cache_directory, fetch};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

const HELP: &str = "\
Makes the modules of Debian's apache2 source package for the word wall, and verifies them.

Usage: apache-modules [--protection write|read-write] [--folder FOLDER] [MODULE]...

Modules are named without mod_; all are made if none is named, and with both
protections if none is given. FOLDER keeps what was made (~/.cache/mullion/apache).

Exit status: 0 if each module was made and verified, 1 if not, 2 if the command is misused.
";

fn main() -> ExitCode {
    if let Some(done) = tool() {
        return done;
    }
    let wanted = match Wanted::parse(std::env::args().skip(1)) {
        Ok(Some(wanted)) => wanted,
        Ok(None) => return say(HELP).map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS),
        Err(what) => {
            eprintln!("mullion: {what}\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    match run(&wanted) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("mullion: {error}");
            ExitCode::FAILURE
        }
    }
}

fn say(text: &str) -> io::Result<()> {
    io::stdout().write_all(text.as_bytes())
}

struct Wanted {
    protections: Vec<Protection>,
    folder: Option<PathBuf>,
    names: Vec<String>,
}

impl Wanted {
    /// None: the help.
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Option<Wanted>, String> {
        let mut wanted = Wanted {
            protections: vec![Protection::ReadWrite, Protection::Write],
            folder: None,
            names: Vec::new(),
        };
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--help" | "-h" => return Ok(None),
                "--protection" => {
                    let level = arguments.next().unwrap_or_default();
                    let all = [Protection::ReadWrite, Protection::Write];
                    let one = all.into_iter().find(|one| one.name() == level);
                    let one = one.ok_or("--protection is write or read-write")?;
                    wanted.protections = vec![one];
                }
                "--folder" => {
                    let folder = arguments.next().ok_or("--folder needs a folder")?;
                    wanted.folder = Some(folder.into());
                }
                option if option.starts_with('-') => {
                    return Err(format!("{option} is no option"));
                }
                name => wanted.names.push(name.to_owned()),
            }
        }
        Ok(Some(wanted))
    }
}

/// Whether each module was made and verified.
fn run(wanted: &Wanted) -> Result<bool, Setup> {
    let lock = Lock::parse(include_str!("../../../sysroot/sources.toml"))?;
    let tree = fetch(lock.source("apache")?)?;
    let mut all = modules(&tree).map_err(|cause| Setup::Io(tree.clone(), cause))?;
    if wanted.names.is_empty() || wanted.names.iter().any(|name| name == "lua") {
        complete(&mut all, &lock)?;
    } else {
        add_own(&mut all);
    }
    let folder = match &wanted.folder {
        Some(folder) => folder.clone(),
        None => cache_directory()?.join("apache"),
    };
    let maker = Maker::new(&tree, &all, &folder)?;
    let unknown = wanted
        .names
        .iter()
        .find(|name| all.iter().all(|module| module.name != **name));
    if let Some(name) = unknown {
        return Err(Setup::Generate(format!("there is no module {name}")));
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
    Ok(rows
        .iter()
        .all(|row| matches!(row.outcome, Outcome::Verified { .. })))
}

/// On all processors; rows are in the order of the tasks.
fn make_all(maker: &Maker, tasks: &[(&Module, Protection)]) -> Result<Vec<Row>, Setup> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some((module, protection)) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
            let row = maker.make(module, *protection);
            let mut done = done.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            done.push(row);
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    let done = done
        .into_inner()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    let mut rows = done.into_iter().collect::<Result<Vec<Row>, Setup>>()?;
    let place = |row: &Row| {
        let same = |(module, protection): &(&Module, Protection)| {
            module.name == row.name && protection.name() == row.protection
        };
        tasks.iter().position(same)
    };
    rows.sort_by_key(place);
    Ok(rows)
}
