//! `mullion top`: what the modules of a server behind the wall do, again and again.

use crate::output::{outln, print};
use crate::units;
use anyhow::{Context, bail, ensure};
use clap::ValueEnum;
use mullion_trust::text::within;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Bytes of an answer.
const LARGEST: u64 = 16 << 20;

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The first line of what a server answers.
const HEAD: &str = "module calls asked faults microseconds state";

/// Show what the modules of a server do: calls, time and refusals of each.
///
/// Asks a server for the page that `SetHandler mullion-status` makes (hosts/apache/README.md), and shows a
/// table of it. In a terminal the table is shown anew every second.
///
/// A server may have several processes, and each tells of itself alone. So the page is asked for several
/// times, on a connection each, and figures of the processes that have answered are summed. A process that
/// has not answered is not in the sum. The head says how many have.
///
/// Each request for the page is a request that the modules see, so they are called a little more.
#[derive(clap::Args)]
#[command(after_help = "Columns:
  CALLS      calls of the server into the module
  ASKED      calls of the module to the server that the wall looked at
  REFUSALS   calls of the module that the wall has stopped
  TIME       of the module's calls, with what the server did for them; one call in 32
             is timed and stands for the others
  PER CALL   the same for one call
  STATE      `runs`, or `stopped`: it begins anew with its next call

CALLS and REFUSALS are those since the server began, and per second between two
views. With --once or --json there are rates if --every is given, which takes two
views.

Examples:
  mullion top
  mullion top http://localhost:8080/status --every 5s --sort refusals
  mullion top --unix /run/apache2/status.sock --once
  mullion top --json | jq '.modules[] | select(.refusals > 0)'

Exit status: 0 after one view (--once, --json), or when the server has ended; 1 if no
server answers, or what answers is no such page; 2 if the command line was wrong.")]
pub(crate) struct Args {
    /// The page, by HTTP alone: a loopback address, or the name in the request for --unix.
    #[arg(value_name = "URL", default_value = "http://127.0.0.1/mullion-status")]
    page: String,

    /// Ask over this Unix socket.
    #[arg(long, value_name = "FILE")]
    unix: Option<PathBuf>,

    /// One view, and no more.
    #[arg(long)]
    once: bool,

    /// One view, as JSON.
    #[arg(long)]
    json: bool,

    /// How long between two views [default: 1s].
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    every: Option<Duration>,

    /// What is on top.
    #[arg(long, value_enum, default_value_t = Order::Time)]
    sort: Order,

    /// Ask at most so many times for one view, to hear of more processes.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1000))]
    asks: u32,
}

#[derive(Clone, Copy, ValueEnum)]
enum Order {
    /// The longest time.
    Time,
    /// The most calls.
    Calls,
    /// The most refusals.
    Refusals,
    /// Names.
    Name,
}

/// A module, in one process or in several.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct Row {
    module: String,
    calls: u64,
    asked: u64,
    refusals: u64,
    microseconds: u64,
    state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    calls_per_second: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusals_per_second: Option<f64>,
}

/// What was answered for one view.
#[derive(Serialize)]
struct View {
    processes: Vec<u32>,
    modules: Vec<Row>,
    #[serde(skip)]
    of: BTreeMap<u32, Vec<Row>>,
    #[serde(skip)]
    at: Instant,
}

/// Where a server is asked, and what it is asked for.
struct Place<'a> {
    unix: Option<&'a Path>,
    host: &'a str,
    path: String,
}

/// Asks as few times again when no other process answers.
const QUIET: u32 = 4;

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let place = place(&self.page, self.unix.as_deref())?;
        let mut view = self.ask(&place)?;
        if let Some(every) = self.every.filter(|_| self.once || self.json) {
            std::thread::sleep(every);
            let next = self.ask(&place)?;
            let before = std::mem::replace(&mut view, next);
            view.compare(&before);
        }
        if self.json {
            outln!("{}", serde_json::to_string_pretty(&view)?)?;
            return Ok(ExitCode::SUCCESS);
        }
        let clear = !self.once && io::stdout().is_terminal();
        loop {
            let start = if clear { "\x1b[H\x1b[J" } else { "" };
            print(&format!("{start}{}", view.table()))?;
            if self.once {
                return Ok(ExitCode::SUCCESS);
            }
            std::thread::sleep(self.every.unwrap_or(Duration::from_secs(1)));
            match self.ask(&place) {
                Ok(next) => {
                    let before = std::mem::replace(&mut view, next);
                    view.compare(&before);
                }
                Err(_) => return Ok(ExitCode::SUCCESS),
            }
        }
    }

    fn ask(&self, place: &Place<'_>) -> anyhow::Result<View> {
        let mut of = BTreeMap::new();
        let mut quiet = 0;
        for _ in 0..self.asks {
            let (process, rows) = place.ask()?;
            match of.insert(process, rows) {
                None => quiet = 0,
                Some(_) => quiet += 1,
            }
            if quiet >= QUIET || process == 0 {
                break;
            }
        }
        let mut modules: Vec<Row> = Vec::new();
        for row in of.values().flatten() {
            match modules.iter_mut().find(|known| known.module == row.module) {
                Some(known) => known.add(row),
                None => modules.push(row.clone()),
            }
        }
        modules.sort_by(|a, b| {
            let figures = match self.sort {
                Order::Time => b.microseconds.cmp(&a.microseconds),
                Order::Calls => b.calls.cmp(&a.calls),
                Order::Refusals => b.refusals.cmp(&a.refusals),
                Order::Name => std::cmp::Ordering::Equal,
            };
            figures.then_with(|| a.module.cmp(&b.module))
        });
        Ok(View {
            processes: of.keys().copied().filter(|process| *process != 0).collect(),
            modules,
            of,
            at: Instant::now(),
        })
    }
}

/// The parts of an address of a page.
fn place<'a>(page: &'a str, unix: Option<&'a Path>) -> anyhow::Result<Place<'a>> {
    let Some(rest) = page.strip_prefix("http://") else {
        bail!("{page:?} is no page of HTTP, such as http://127.0.0.1/mullion-status");
    };
    let (host, path) = match rest.find('/') {
        Some(at) => (&rest[..at], rest[at..].to_owned()),
        None => (rest, "/mullion-status".to_owned()),
    };
    let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
    ensure!(
        is_plain(host) && is_plain(&path) && !host.is_empty(),
        "{page:?} has characters that no page has"
    );
    Ok(Place { unix, host, path })
}

/// Both kinds of connections.
trait Stream: Read + Write {}
impl<S: Read + Write> Stream for S {}

impl Place<'_> {
    fn connect(&self) -> anyhow::Result<Box<dyn Stream>> {
        if let Some(file) = self.unix {
            let stream = UnixStream::connect(file)
                .with_context(|| format!("no server answers at {}", file.display()))?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            return Ok(Box::new(stream));
        }
        let has_port = self
            .host
            .rsplit_once(':')
            .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let at = match has_port {
            true => self.host.to_owned(),
            false => format!("{}:80", self.host),
        };
        let addresses = at
            .to_socket_addrs()
            .with_context(|| format!("{at} is no address"))?;
        let mut last = None;
        for address in addresses {
            // What modules do is nobody else's business, and the page goes unencrypted.
            ensure!(
                address.ip().is_loopback(),
                "{at} is not on this machine; ask over its loopback address, by ssh -L for instance"
            );
            match TcpStream::connect_timeout(&address, PATIENCE) {
                Ok(stream) => {
                    stream.set_read_timeout(Some(PATIENCE))?;
                    stream.set_write_timeout(Some(PATIENCE))?;
                    return Ok(Box::new(stream));
                }
                Err(error) => last = Some(error),
            }
        }
        match last {
            Some(error) => Err(error).with_context(|| format!("no server answers at {at}")),
            None => bail!("{at} is no address"),
        }
    }

    /// The process that has answered, or 0 if it does not say; and its modules.
    fn ask(&self) -> anyhow::Result<(u32, Vec<Row>)> {
        let mut stream = self.connect()?;
        let request = format!(
            "GET {} HTTP/1.0\r\nHost: {}\r\nConnection: close\r\n\r\n",
            self.path, self.host
        );
        stream.write_all(request.as_bytes())?;
        let text = within(stream, LARGEST).context("the server's answer")?;
        parse(&text).with_context(|| format!("http://{}{}", self.host, self.path))
    }
}

/// An answer of HTTP without pieces, as it is given to HTTP/1.0.
fn parse(text: &str) -> anyhow::Result<(u32, Vec<Row>)> {
    let (head, body) = text
        .split_once("\r\n\r\n")
        .context("what answers does not speak HTTP")?;
    let mut fields = head.split("\r\n");
    let status = fields.next().unwrap_or_default();
    let number = status.split(' ').nth(1).unwrap_or_default();
    ensure!(
        number == "200",
        "the server answers {status:?}; is SetHandler mullion-status set there, and may you see it?"
    );
    let process = fields.find_map(|field| {
        let (name, value) = field.split_once(": ")?;
        let is_it = name.eq_ignore_ascii_case("x-mullion-process");
        is_it.then(|| value.parse().ok()).flatten()
    });
    let mut lines = body.lines();
    ensure!(
        lines.next() == Some(HEAD),
        "that is no page of SetHandler mullion-status"
    );
    let rows = lines.map(|line| row(line).with_context(|| format!("the line {line:?}")));
    Ok((process.unwrap_or(0), rows.collect::<anyhow::Result<_>>()?))
}

fn row(line: &str) -> anyhow::Result<Row> {
    let words: Vec<&str> = line.split(' ').collect();
    let [module, calls, asked, refusals, microseconds, state] = words[..] else {
        bail!("six words are expected");
    };
    // They go to a terminal.
    let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
    ensure!(
        is_plain(module) && is_plain(state),
        "a name has characters that no module's has"
    );
    Ok(Row {
        module: module.to_owned(),
        calls: calls.parse()?,
        asked: asked.parse()?,
        refusals: refusals.parse()?,
        microseconds: microseconds.parse()?,
        state: state.to_owned(),
        ..Row::default()
    })
}

impl Row {
    /// The same module in another process.
    fn add(&mut self, other: &Row) {
        self.calls += other.calls;
        self.asked += other.asked;
        self.refusals += other.refusals;
        self.microseconds += other.microseconds;
        if other.state != "runs" {
            self.state.clone_from(&other.state);
        }
    }
}

impl View {
    /// Rates, of the processes that have answered both times.
    fn compare(&mut self, before: &View) {
        let seconds = self.at.duration_since(before.at).as_secs_f64();
        if seconds <= 0.0 {
            return;
        }
        for row in &mut self.modules {
            let (mut calls, mut refusals) = (0, 0);
            for (process, rows) in &self.of {
                let same = |rows: &[Row]| rows.iter().find(|old| old.module == row.module).cloned();
                let old = before.of.get(process).and_then(|rows| same(rows));
                if let (Some(new), Some(old)) = (same(rows), old) {
                    calls += new.calls.saturating_sub(old.calls);
                    refusals += new.refusals.saturating_sub(old.refusals);
                }
            }
            row.calls_per_second = Some(calls as f64 / seconds);
            row.refusals_per_second = Some(refusals as f64 / seconds);
        }
    }

    fn table(&self) -> String {
        let sum = |of: fn(&Row) -> u64| self.modules.iter().map(of).sum::<u64>();
        let mut text = format!(
            "{} modules, {} processes   {} calls, {} asked, {} refusals\n\n",
            self.modules.len(),
            self.processes.len().max(1),
            sum(|row| row.calls),
            sum(|row| row.asked),
            sum(|row| row.refusals)
        );
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{:<28} {:>12} {:>9} {:>12} {:>9} {:>9} {:>12} {:>11}  STATE",
            "MODULE", "CALLS", "PER s", "ASKED", "REFUSALS", "PER s", "TIME ms", "PER CALL us"
        );
        for row in &self.modules {
            let rate = |rate: Option<f64>| rate.map_or("-".to_owned(), |rate| format!("{rate:.1}"));
            let each = match row.calls {
                0 => "-".to_owned(),
                calls => format!("{:.2}", row.microseconds as f64 / calls as f64),
            };
            let _ = writeln!(
                text,
                "{:<28} {:>12} {:>9} {:>12} {:>9} {:>9} {:>12.1} {:>11}  {}",
                row.module,
                row.calls,
                rate(row.calls_per_second),
                row.asked,
                row.refusals,
                rate(row.refusals_per_second),
                row.microseconds as f64 / 1000.0,
                each,
                row.state
            );
        }
        text
    }
}
