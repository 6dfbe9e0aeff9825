//! `apache-bench`: processor time of a server for a request, or its instructions, with Debian's modules and with the same modules behind the wall.

mod load;
mod server;
mod steps;

use mullion_apache::{ALONE, DEFAULT, Protection, Set, Setup, WORKING, sort};
use server::Server;
use std::io::{self, Write};
use std::process::ExitCode;

const HELP: &str = "\
Measures what a request costs the server with modules behind the wall.

Usage: apache-bench [--modules default|all|NAME,NAME...] [--protection write|read-write]
                    [--rounds N] [--requests N] [--connections N] [CASE]...
       apache-bench --instructions ROWS [--modules ...] [--requests N] [CASE]...

Rounds take turns between a server with Debian's modules and one with the same
modules behind the wall. A case is a size in KiB (1, 64), or rewrite, headers,
include, deflate, substitute: 1 and 64 if none is named. libmod_mullion.so is
taken from target/server, or from beside this program.

With --instructions, each server has one thread for requests. Behind N requests
the next ones, as many as rounds, are stepped through, and the instructions of
user code that the thread takes are counted. A table names the ROWS functions
with most of them. One call in 32 of a module is timed: 32 rounds have the mean.

Exit status: 0, 1 if nothing could be measured, 2 if the command is misused.
";

/// For requests.
const THREADS: usize = 25;

struct Wanted {
    modules: Vec<String>,
    protection: Protection,
    rounds: usize,
    requests: usize,
    connections: usize,
    cases: Vec<String>,
    /// Rows of the table of instructions, which is made in the place of the times.
    instructions: Option<usize>,
}

fn main() -> ExitCode {
    let wanted = match parse(std::env::args().skip(1)) {
        Ok(Some(wanted)) => wanted,
        Ok(None) => return say(HELP),
        Err(what) => {
            eprintln!("mullion: {what}\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    let run = match wanted.instructions {
        Some(rows) => count(&wanted, rows),
        None => run(&wanted),
    };
    match run {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("mullion: {error}");
            ExitCode::FAILURE
        }
    }
}

fn say(text: &str) -> ExitCode {
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn named(set: &str) -> Vec<String> {
    match set {
        "all" => {
            let mut all = WORKING.map(str::to_owned).to_vec();
            all.retain(|name| !ALONE.contains(&name.as_str()));
            sort(&mut all);
            all
        }
        "default" => DEFAULT.map(str::to_owned).to_vec(),
        names => names.split(',').map(str::to_owned).collect(),
    }
}

/// None: the help.
fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Option<Wanted>, String> {
    let mut wanted = Wanted {
        modules: named("default"),
        protection: Protection::Write,
        rounds: 20,
        requests: 1000,
        connections: 1,
        cases: Vec::new(),
        instructions: None,
    };
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        let number = |text: String| {
            let number = text.parse().ok().filter(|number| *number > 0);
            number.ok_or(format!("{text} is no number"))
        };
        match argument.as_str() {
            "--help" | "-h" => return Ok(None),
            "--modules" => wanted.modules = named(&value()?),
            "--rounds" => wanted.rounds = number(value()?)?,
            "--requests" => wanted.requests = number(value()?)?,
            "--instructions" => wanted.instructions = Some(number(value()?)?),
            "--connections" => wanted.connections = number(value()?)?,
            "--protection" => {
                wanted.protection = match value()?.as_str() {
                    "write" => Protection::Write,
                    "read-write" => Protection::ReadWrite,
                    _ => return Err("--protection is write or read-write".to_owned()),
                }
            }
            option if option.starts_with('-') => return Err(format!("{option} is no option")),
            case => wanted.cases.push(case.to_owned()),
        }
    }
    if wanted.cases.is_empty() {
        wanted.cases = ["1", "64"].map(str::to_owned).to_vec();
    }
    for case in &wanted.cases {
        server::path(case)?;
    }
    Ok(Some(wanted))
}

/// What lies in the middle, and between which two values 95 of 100 such measurements have it (order statistics).
fn middle(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    let reach = (0.98 * (n as f64).sqrt()).ceil() as usize;
    let (low, high) = ((n / 2).saturating_sub(reach), (n / 2 + reach).min(n - 1));
    (values[n / 2], values[low], values[high])
}

fn run(wanted: &Wanted) -> Result<(), Setup> {
    let names: Vec<&str> = wanted.modules.iter().map(String::as_str).collect();
    let set = Set::new(wanted.protection, &names)?;
    let servers = [
        Server::start(&set, &names, false, THREADS)?,
        Server::start(&set, &names, true, THREADS)?,
    ];
    let mut out = io::stdout().lock();
    let mut line = |text: &str| {
        // A reader that has gone does not change what was measured.
        let _gone = writeln!(out, "{text}").and_then(|()| out.flush());
    };
    line(&format!(
        "{} modules, {} rounds of {} requests, {} connections, protection {}; processor time of the server for a request in us",
        names.len(),
        wanted.rounds,
        wanted.requests,
        wanted.connections,
        wanted.protection.name()
    ));
    line(
        "| case | stock, least | walled, least | ratio | stock, middle | walled, middle | middle ratio (95 of 100) | into modules | asked of the host |",
    );
    line("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for case in &wanted.cases {
        let path = server::path(case).map_err(Setup::Generate)?;
        let mut times = [Vec::new(), Vec::new()];
        let mut ratios = Vec::new();
        for server in &servers {
            load::run(
                server.port,
                path,
                wanted.requests.min(300),
                wanted.connections,
            )?;
        }
        let before = servers[1].counts()?;
        for round in 0..wanted.rounds {
            let mut both = [0.0; 2];
            for at in [round % 2, 1 - round % 2] {
                let start = servers[at].time();
                load::run(servers[at].port, path, wanted.requests, wanted.connections)?;
                both[at] = (servers[at].time() - start) / wanted.requests as f64;
                times[at].push(both[at]);
            }
            ratios.push(both[1] / both[0]);
        }
        let after = servers[1].counts()?;
        let all = (wanted.rounds * wanted.requests) as f64;
        let least = |times: &[f64]| times.iter().copied().fold(f64::MAX, f64::min);
        let [stock, walled] = &times;
        let (ratio, low, high) = middle(ratios);
        line(&format!(
            "| {case} | {:.1} | {:.1} | {:.3} | {:.1} | {:.1} | {ratio:.3} ({low:.3} to {high:.3}) | {:.1} | {:.1} |",
            least(stock),
            least(walled),
            least(walled) / least(stock),
            middle(stock.clone()).0,
            middle(walled.clone()).0,
            (after.0 - before.0) as f64 / all,
            (after.1 - before.1) as f64 / all,
        ));
    }
    Ok(())
}

/// The instructions of one request, with the stock server and behind the wall.
fn count(wanted: &Wanted, rows: usize) -> Result<(), Setup> {
    let names: Vec<&str> = wanted.modules.iter().map(String::as_str).collect();
    let set = Set::new(wanted.protection, &names)?;
    let mut out = io::stdout().lock();
    let mut line = |text: &str| {
        // As above.
        let _gone = writeln!(out, "{text}").and_then(|()| out.flush());
    };
    for walled in [false, true] {
        let server = Server::start(&set, &names, walled, 1)?;
        for case in &wanted.cases {
            let path = server::path(case).map_err(Setup::Generate)?;
            let how = (wanted.requests, wanted.rounds);
            let mut steps = steps::run(server.process(), server.port, path, how)?;
            steps.all.sort_unstable();
            let all = &steps.all;
            let mean = |sum: u64| sum as f64 / all.len() as f64;
            let which = if walled { "walled" } else { "stock" };
            line(&format!(
                "{which}, {} modules, case {case}: {:.0} instructions of user code for a request \
                 (least {}, middle {}, most {}; {} requests behind {})\n",
                names.len(),
                mean(all.iter().sum()),
                all[0],
                all[all.len() / 2],
                all[all.len() - 1],
                all.len(),
                wanted.requests
            ));
            line("| function | in | calls | own | with what it calls |");
            line("| --- | --- | ---: | ---: | ---: |");
            for row in steps.functions.iter().take(rows) {
                line(&format!(
                    "| `{}` | {} | {:.1} | {:.0} | {:.0} |",
                    row.name,
                    row.file,
                    mean(row.calls),
                    mean(row.own),
                    mean(row.with)
                ));
            }
            line("");
        }
    }
    Ok(())
}
