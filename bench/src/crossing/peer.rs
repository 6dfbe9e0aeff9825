//! The processes that answer, each on its own with its domains.

use super::build::Programs;
use super::catalogue::{Peer, Selection};
use crate::machine::Processors;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Numbers of domains, of which every peer that has some is one process each.
const SIZES: [u64; 3] = [1, 100, 10_000];

/// All of them. They end when this is dropped.
pub(crate) struct Peers {
    /// By who it is and how many domains it has; or why it is missing.
    all: BTreeMap<(Peer, u64), Result<Process, String>>,
}

/// One that has said it is ready.
pub(crate) struct Process {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Peers {
    /// Starts every program that could be built, and waits until each is ready.
    pub(crate) fn start(
        programs: &Programs,
        selection: &Selection<'_>,
        processors: Processors,
        budget: u64,
    ) -> Result<Self> {
        let mut all = BTreeMap::new();
        for (peer, program) in programs {
            let sizes = match peer {
                Peer::Native => &SIZES[..1],
                _ => &SIZES,
            };
            for size in sizes
                .iter()
                .filter(|size| selection.has_population(*peer, **size))
            {
                let process = match program {
                    Err(reason) => Err(reason.clone()),
                    Ok(command) => {
                        let tail: Vec<OsString> = match peer {
                            Peer::Native => {
                                let other = processors.other.map_or(-1, |cpu| cpu as i64);
                                let cpus = [processors.own as i64, other];
                                cpus.map(|cpu| cpu.to_string().into()).into()
                            }
                            _ => vec![size.to_string().into()],
                        };
                        let budget = [budget.to_string().into()];
                        Process::start(&[command.as_slice(), &budget, &tail].concat())?
                    }
                };
                all.insert((*peer, *size), process);
            }
        }
        Ok(Self { all })
    }

    /// Nanoseconds for one operation, or why there are none.
    pub(crate) fn ask(&mut self, peer: Peer, domains: u64, question: &str) -> Result<f64, String> {
        let place = self.all.get_mut(&(peer, domains));
        let Some(place) = place else {
            return Err("no such peer was started".to_owned());
        };
        let answer = match place {
            Ok(process) => process.ask(question),
            Err(reason) => return Err(reason.clone()),
        };
        // One that has died is missing from now on; the others go on.
        answer.unwrap_or_else(|error| {
            let reason = format!("asked for `{question}`: {error:#}");
            *place = Err(reason.clone());
            Err(reason)
        })
    }

    /// Those that answer, with their processes' numbers.
    pub(crate) fn processes(&self) -> impl Iterator<Item = (Peer, u64, u32)> {
        self.all.iter().filter_map(|((peer, domains), process)| {
            Some((*peer, *domains, process.as_ref().ok()?.child.id()))
        })
    }

    /// A line for each that does not.
    pub(crate) fn missing(&self) -> Vec<String> {
        let missing = self.all.iter().filter_map(|((peer, domains), process)| {
            let reason = process.as_ref().err()?;
            Some(format!(
                "no peer `{}` with {domains} domains: {reason}",
                peer.name()
            ))
        });
        missing.collect()
    }
}

impl Process {
    /// The inner error is the peer's own reason why it cannot measure here.
    fn start(command: &[OsString]) -> Result<Result<Self, String>> {
        let mut child = Command::new(&command[0])
            .args(&command[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {}", command[0].display()))?;
        let ends = child.stdin.take().zip(child.stdout.take());
        let (to, from) = ends.context("a child without standard streams")?;
        let mut process = Self {
            child,
            to,
            from: BufReader::new(from),
        };
        let line = process.line()?;
        Ok(match line.strip_prefix("none ") {
            Some(reason) => Err(reason.to_owned()),
            None if line == "ready" => Ok(process),
            None => Err(format!("it did not become ready, but said {line:?}")),
        })
    }

    fn ask(&mut self, question: &str) -> Result<Result<f64, String>> {
        writeln!(self.to, "{question}")?;
        self.to.flush()?;
        let line = self.line()?;
        if let Some(reason) = line.strip_prefix("none ") {
            return Ok(Err(reason.to_owned()));
        }
        match line.parse() {
            Ok(nanoseconds) => Ok(Ok(nanoseconds)),
            Err(_) => bail!("not a number: {line:?}"),
        }
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.from.read_line(&mut line)?;
        if line.is_empty() {
            bail!("it ended: {}", self.child.wait()?);
        }
        line.truncate(line.trim_end().len());
        Ok(line)
    }
}

impl Drop for Process {
    /// It ends by itself when nobody can ask any more; nothing is lost if it does not.
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Vec<OsString> {
        ["sh", "-c", script].map(Into::into).to_vec()
    }

    #[test]
    fn a_peer_that_cannot_measure_says_why() {
        let started = Process::start(&shell("echo none no luck")).unwrap();
        assert_eq!(started.err().as_deref(), Some("no luck"));
        let started = Process::start(&shell("echo hello")).unwrap();
        assert!(started.err().unwrap().contains("hello"));
    }

    #[test]
    fn answers_are_numbers_or_reasons_and_an_end_is_an_error() {
        let script = "echo ready; read a; echo 12.5; read b; echo none not $b; read c; echo x";
        let mut process = Process::start(&shell(script)).unwrap().ok().unwrap();
        assert_eq!(process.ask("one").unwrap(), Ok(12.5));
        assert_eq!(process.ask("two").unwrap(), Err("not two".to_owned()));
        assert!(process.ask("three").is_err());
        assert!(process.ask("four").is_err());
        let mut peers = Peers {
            all: BTreeMap::from([((Peer::C, 1), Ok(process))]),
        };
        for _ in 0..2 {
            let answer = peers.ask(Peer::C, 1, "five").unwrap_err();
            assert!(answer.contains("five"), "{answer}");
        }
        assert_eq!(peers.missing().len(), 1);
    }
}
