//! The instructions of user code that a server's thread takes for one request, by function. They do not depend on the machine's
//! load, as times do. The thread is stepped through: each instruction is a stop of the thread, and a count.
//!
//! ```text
//!   the thread waits for work ──► a request is sent ──► step, step, … ──► it waits again, and the client has its answer
//!         place and stack                                                        the same place and stack
//! ```

use crate::load;
use mullion_apache::Setup;
use mullion_symbols::Symbols;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::ptr;
use std::time::{Duration, Instant};

/// An instruction has at most so many bytes.
const LONGEST: u64 = 15;
/// So many calls are looked for by the place that a function goes back to. A gate leaves more than one at once.
const DEEP: usize = 64;
/// A request that takes longer has met with something else.
const PATIENCE: Duration = Duration::from_secs(120);

/// So many connections may be closed before one is kept.
const CLOSED: usize = 20;

/// What requests took.
pub(crate) struct Steps {
    /// Each of them.
    pub(crate) all: Vec<u64>,
    /// Of all requests together, by the function's name and the file that it is in: calls, its own instructions, those with what it calls.
    pub(crate) functions: Vec<Function>,
}

pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) file: String,
    pub(crate) calls: u64,
    pub(crate) own: u64,
    pub(crate) with: u64,
}

fn failed(what: &str) -> Setup {
    Setup::Generate(format!("{what}: {}", io::Error::last_os_error()))
}

/// A thread that this one traces.
struct Traced(libc::pid_t);

impl Traced {
    fn new(thread: libc::pid_t) -> Result<Traced, Setup> {
        let none = ptr::null_mut::<libc::c_void>();
        // SAFETY: it takes a number, and no memory of ours.
        let seized = unsafe { libc::ptrace(libc::PTRACE_SEIZE, thread, none, none) };
        if seized != 0 {
            return Err(failed("the thread cannot be traced"));
        }
        let traced = Traced(thread);
        // SAFETY: it takes the number of a thread that is traced, and no memory of ours.
        match unsafe { libc::ptrace(libc::PTRACE_INTERRUPT, thread, none, none) } {
            0 => Ok(traced),
            _ => Err(failed("the thread cannot be stopped")),
        }
    }

    /// Waits until the thread has stopped: by which signal.
    fn stopped(&self) -> Result<i32, Setup> {
        let mut status = 0;
        // SAFETY: there is room for the status.
        let waited = unsafe { libc::waitpid(self.0, &raw mut status, libc::__WALL) };
        match waited == self.0 && libc::WIFSTOPPED(status) {
            true => Ok(libc::WSTOPSIG(status)),
            false => Err(failed("the thread has ended")),
        }
    }

    /// One instruction, with a signal or 0.
    fn step(&self, signal: i32) -> Result<(), Setup> {
        let none = ptr::null_mut::<libc::c_void>();
        let signal = ptr::without_provenance_mut::<libc::c_void>(signal as usize);
        // SAFETY: it takes numbers alone.
        match unsafe { libc::ptrace(libc::PTRACE_SINGLESTEP, self.0, none, signal) } {
            0 => Ok(()),
            _ => Err(failed("the thread cannot be stepped")),
        }
    }

    /// Where it is, and where its stack is.
    fn place(&self) -> Result<(u64, u64), Setup> {
        // SAFETY: all of its fields are numbers.
        let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
        let none = ptr::null_mut::<libc::c_void>();
        // SAFETY: there is room for the registers.
        match unsafe { libc::ptrace(libc::PTRACE_GETREGS, self.0, none, &raw mut registers) } {
            0 => Ok((registers.rip, registers.rsp)),
            _ => Err(failed("the thread has no registers")),
        }
    }

    /// A word of its memory.
    fn word(&self, at: u64) -> u64 {
        let none = ptr::null_mut::<libc::c_void>();
        let at = ptr::without_provenance_mut::<libc::c_void>(at as usize);
        // SAFETY: it reads the other process's memory; what is not there is an error, and no word.
        unsafe { libc::ptrace(libc::PTRACE_PEEKDATA, self.0, at, none) as u64 }
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        let none = ptr::null_mut::<libc::c_void>();
        // SAFETY: it takes a number. A thread that has ended is traced no more.
        let _gone = unsafe { libc::ptrace(libc::PTRACE_DETACH, self.0, none, none) };
    }
}

/// A call that runs: where it began, where it goes back to, and its instructions with those of the calls in it.
struct Call {
    entry: u64,
    back: u64,
    with: u64,
}

#[derive(Default)]
struct Count {
    all: u64,
    /// By addresses of instructions.
    own: HashMap<u64, u64>,
    /// By addresses where functions begin: calls, and instructions with what they call.
    entries: HashMap<u64, (u64, u64)>,
    calls: Vec<Call>,
}

impl Count {
    fn pop(&mut self) {
        let Some(call) = self.calls.pop() else {
            return;
        };
        // One that calls itself is counted once, by its outermost call.
        let is_inside = self.calls.iter().any(|outer| outer.entry == call.entry);
        let entry = self.entries.entry(call.entry).or_default();
        entry.0 += 1;
        if !is_inside {
            entry.1 += call.with;
        }
        if let Some(outer) = self.calls.last_mut() {
            outer.with += call.with;
        }
    }

    /// The instruction at `at` comes behind the one at `before`.
    fn one(&mut self, traced: &Traced, before: (u64, u64), at: (u64, u64)) {
        // A string instruction stops for each of its parts.
        if at.0 == before.0 {
            return;
        }
        let is_next = at.0.wrapping_sub(before.0) <= LONGEST;
        if !is_next {
            let newest = self.calls.iter().rev().take(DEEP);
            if let Some(place) = newest.into_iter().position(|call| call.back == at.0) {
                (0..=place).for_each(|_| self.pop());
            }
            if at.1 == before.1.wrapping_sub(8) {
                let back = traced.word(at.1);
                if back.wrapping_sub(before.0) <= LONGEST {
                    self.calls.push(Call {
                        entry: at.0,
                        back,
                        with: 0,
                    });
                }
            }
        }
        self.all += 1;
        *self.own.entry(at.0).or_default() += 1;
        if let Some(call) = self.calls.last_mut() {
            call.with += 1;
        }
    }
}

/// The thread of a process that has run most since `before`.
fn busiest(process: u32, before: &HashMap<libc::pid_t, u64>) -> Option<libc::pid_t> {
    let all = times(process).into_iter();
    let ran = all.map(|(thread, ran)| (ran - before.get(&thread).copied().unwrap_or(0), thread));
    ran.max().map(|(_, thread)| thread)
}

fn times(process: u32) -> HashMap<libc::pid_t, u64> {
    let tasks = fs::read_dir(format!("/proc/{process}/task"));
    let ran = tasks.into_iter().flatten().filter_map(|task| {
        let path = task.ok()?.path();
        let text = fs::read_to_string(path.join("schedstat")).ok()?;
        let thread = path.file_name()?.to_str()?.parse().ok()?;
        Some((thread, text.split(' ').next()?.parse::<u64>().ok()?))
    });
    ran.collect()
}

/// Steps through so many requests, behind so many others.
///
/// # Errors
/// The server has no thread that can be traced, or does not answer.
pub(crate) fn run(
    process: u32,
    port: u16,
    path: &str,
    (before, rounds): (usize, usize),
) -> Result<Steps, Setup> {
    let io = |cause| Setup::Io(PathBuf::from(path), cause);
    let times = times(process);
    let mut client = load::Client::new(port, path).map_err(io)?;
    let mut asked = 0;
    let mut closed = 0;
    while asked < before {
        match client.ask() {
            Ok(()) => asked += 1,
            // A server whose only thread is busy closes connections that are kept.
            Err(_) if closed < CLOSED => {
                closed += 1;
                client = load::Client::new(port, path).map_err(io)?;
            }
            Err(cause) => return Err(io(cause)),
        }
    }
    // The thread goes back to where it waits.
    std::thread::sleep(Duration::from_millis(200));
    let thread = busiest(process, &times).ok_or_else(|| failed("the server has no threads"))?;
    let traced = Traced::new(thread)?;
    traced.stopped()?;
    let idle = traced.place()?;
    let mut count = Count::default();
    let mut all = Vec::new();
    let mut last = idle;
    for _ in 0..rounds {
        let asks = std::thread::spawn(move || client.ask().map(|()| client));
        let before = count.all;
        last = request(&traced, &mut count, (idle, last), &|| asks.is_finished())?;
        all.push(count.all - before);
        let answered = asks.join().map_err(|_| failed("the client failed"))?;
        client = answered.map_err(io)?;
    }
    let maps = fs::read_to_string(format!("/proc/{process}/maps")).map_err(io)?;
    Ok(Steps {
        all,
        functions: named(count, &maps),
    })
}

/// Steps from where the thread is to where it waits again, and the client has its answer: where that is.
fn request(
    traced: &Traced,
    count: &mut Count,
    (idle, mut last): ((u64, u64), (u64, u64)),
    is_answered: &dyn Fn() -> bool,
) -> Result<(u64, u64), Setup> {
    let (before, mut signal, begun) = (count.all, 0, Instant::now());
    loop {
        traced.step(signal)?;
        let by = traced.stopped()?;
        signal = if by == libc::SIGTRAP { 0 } else { by };
        if signal != 0 {
            continue;
        }
        let at = traced.place()?;
        count.one(traced, last, at);
        last = at;
        // It is about to wait where it waited: it is told to only if there is nothing more to do for the request.
        let waits = at.1 == idle.1 && idle.0.wrapping_sub(at.0) == 2;
        if waits && count.all - before > LEAST {
            std::thread::sleep(Duration::from_millis(50));
            if is_answered() {
                break;
            }
        }
        if begun.elapsed() > PATIENCE {
            return Err(Setup::Generate("the request does not end".to_owned()));
        }
    }
    while !count.calls.is_empty() {
        count.pop();
    }
    Ok(last)
}

/// A request takes more instructions than these.
const LEAST: u64 = 1000;

/// A mapping of a file or of none.
struct Mapped {
    start: u64,
    end: u64,
    /// What is to be taken from an address to have it in the file's image.
    base: u64,
    file: String,
}

fn mappings(maps: &str) -> Vec<Mapped> {
    let mut all: Vec<Mapped> = Vec::new();
    for line in maps.lines() {
        let mut words = line.split_ascii_whitespace();
        let range = words.next().and_then(|range| range.split_once('-'));
        let number = |text: &str| u64::from_str_radix(text, 16).unwrap_or(0);
        let Some((start, end)) = range.map(|(start, end)| (number(start), number(end))) else {
            continue;
        };
        let file = words.nth(4).unwrap_or("").to_owned();
        // An image's first mapping is where its addresses begin.
        let known = all.iter().find(|one| one.file == file && !file.is_empty());
        let base = known.map_or(start, |one| one.base);
        all.push(Mapped {
            start,
            end,
            base,
            file,
        });
    }
    all
}

fn named(count: Count, maps: &str) -> Vec<Function> {
    let mappings = mappings(maps);
    let mut symbols: HashMap<String, Symbols> = HashMap::new();
    let mut name = |at: u64| {
        let mapped = mappings
            .iter()
            .find(|one| (one.start..one.end).contains(&at));
        let Some(mapped) = mapped.filter(|one| one.file.starts_with('/')) else {
            let kind = mapped.map_or("", |one| one.file.as_str());
            let kind = match kind {
                "" => "no file: modules",
                other => other,
            };
            return (kind.to_owned(), String::new());
        };
        let known = symbols.entry(mapped.file.clone()).or_insert_with(|| {
            let image = fs::read(&mapped.file).unwrap_or_default();
            Symbols::without_debug_information(image)
        });
        let file = Path::new(&mapped.file).file_name();
        let file = file.map_or_else(String::new, |file| file.to_string_lossy().into_owned());
        let function = known.function_at(at - mapped.base);
        let function = function.map(|name| format!("{:#}", rustc_demangle::demangle(&name)));
        (function.unwrap_or_else(|| "(no name)".to_owned()), file)
    };
    let mut functions: HashMap<(String, String), (u64, u64, u64)> = HashMap::new();
    for (at, own) in &count.own {
        functions.entry(name(*at)).or_default().1 += own;
    }
    for (at, (calls, with)) in &count.entries {
        let known = functions.entry(name(*at)).or_default();
        known.0 += calls;
        known.2 += with;
    }
    let functions = functions.into_iter();
    let functions = functions.map(|((name, file), (calls, own, with))| Function {
        name,
        file,
        calls,
        own,
        with: with.max(own),
    });
    let mut functions: Vec<Function> = functions.collect();
    functions.sort_by_key(|function| (std::cmp::Reverse(function.own), function.name.clone()));
    functions
}
