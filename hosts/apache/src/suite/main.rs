//! `apache-suite`: httpd's own test suite, which Debian's `apache2` source package carries, with Debian's modules and with modules
//! behind the wall.
//!
//! ```text
//!   framework's t/TEST ──► httpd ──► a script of ours: the configuration's LoadModule lines become MullionLoadModule ──► apache2
//! ```

mod place;
mod table;

use mullion_apache::{ALONE, Setup, WORKING};
use place::Place;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use table::Table;

const HELP: &str = "\
Runs httpd's own test suite with Debian's modules and with modules behind the wall.

Usage: apache-suite [OPTION]... [SCRIPT]...

  --folder FOLDER       keeps results, and what each script and the server said
  --walled NAME,NAME... modules behind the wall
  --only KIND           runs one kind of server alone, stock or walled
  --seconds COUNT       a script that takes longer is ended (600)

Scripts are named as t/modules/alias.t; all run if none is named. FOLDER is
~/.cache/mullion/apache-suite if none is named; root's is
/var/lib/mullion/apache-suite, which the servers' user can reach.
A script that has a result there is not run again.
Modules behind the wall are those that answer as the stock ones do, if none is
named. libmod_mullion.so is taken from target/server, or from beside
this program.

Exit status: 0 if each script did the same twice, 1 if not, 2 if the command is misused.
";

struct Wanted {
    folder: Option<PathBuf>,
    walled: Vec<String>,
    /// Whether modules are behind the wall, of each kind of server to run.
    kinds: Vec<bool>,
    seconds: u32,
    scripts: Vec<String>,
}

fn main() -> ExitCode {
    match parse(std::env::args().skip(1)) {
        Ok(Some(wanted)) => match run(&wanted) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::FAILURE,
            Err(error) => {
                eprintln!("mullion: {error}");
                ExitCode::FAILURE
            }
        },
        Ok(None) => say(HELP),
        Err(what) => {
            eprintln!("mullion: {what}\n\n{HELP}");
            ExitCode::from(2)
        }
    }
}

fn say(text: &str) -> ExitCode {
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// None: the help.
fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Option<Wanted>, String> {
    let names = WORKING.iter().filter(|name| !ALONE.contains(name));
    let mut wanted = Wanted {
        folder: None,
        walled: names.map(|name| (*name).to_owned()).collect(),
        kinds: vec![false, true],
        seconds: 600,
        scripts: Vec::new(),
    };
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--help" | "-h" => return Ok(None),
            "--folder" => wanted.folder = Some(value()?.into()),
            "--walled" => wanted.walled = value()?.split(',').map(str::to_owned).collect(),
            "--only" => {
                wanted.kinds = match value()?.as_str() {
                    "stock" => vec![false],
                    "walled" => vec![true],
                    other => return Err(format!("{other} is no kind of server")),
                }
            }
            "--seconds" => {
                let count = value()?;
                let number = count.parse().ok().filter(|number| *number > 0);
                wanted.seconds = number.ok_or(format!("{count} is no count of seconds"))?;
            }
            option if option.starts_with('-') => return Err(format!("{option} is no option")),
            script => wanted.scripts.push(script.to_owned()),
        }
    }
    Ok(Some(wanted))
}

/// Whether each script did the same with and without the wall.
fn run(wanted: &Wanted) -> Result<bool, Setup> {
    let folder = match &wanted.folder {
        Some(folder) => folder.clone(),
        None if place::is_root()? => "/var/lib/mullion/apache-suite".into(),
        None => mullion_fetch::cache_directory()?.join("apache-suite"),
    };
    let mut table = Table::open(&folder.join("results"))?;
    let place = Place::new(&folder, &wanted.walled, wanted.seconds)?;
    let scripts = match wanted.scripts.is_empty() {
        true => place.scripts()?,
        false => wanted.scripts.clone(),
    };
    for &walled in &wanted.kinds {
        let mut server = None;
        for script in &scripts {
            if table.has(script, walled) {
                continue;
            }
            let server = server.get_or_insert_with(|| place.server(walled));
            let outcome = server.run(script)?;
            table.add(script, walled, &outcome)?;
            eprintln!("{script} {}: {outcome}", table::kind(walled));
        }
    }
    // A reader that has gone does not change what was found.
    let _gone = io::stdout().write_all(table.print(&scripts).as_bytes());
    Ok(scripts.iter().all(|script| table.is_same(script)))
}
