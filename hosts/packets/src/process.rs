//! The wall of a process. A module's domain lies in an OS process of its own, which has given up all powers before the
//! module's first instruction. Batches go there and back through memory that both have.
//!
//! ```text
//!   forwarder ── Link ── question ──►  memory  ──► inside() ── the module's domain, as it is in the forwarder
//!       ▲                 answer  ◄──          ◄──     │
//!       └── a thread that starts the process, and waits for its end
//!
//!   memory:  0     batches that were asked (4 bytes)         the forwarder writes it
//!            64    1 and the batches that were answered (4)   the process writes it
//!            128   bytes of the question (4)
//!            192   bytes of the answer (4)
//!            256   1, if the answer says why it was stopped (4)
//!            4096  the question; the answer
//! ```
//! The forwarder believes nothing in it: it takes a copy of the answer, and reads that as it would read a file.

use crate::batch::BATCH;
use crate::config::{Description, Wall};
use crate::memory::{Memory, sealed};
use crate::message::{self, Answer, Question};
use crate::module::{LoadError, Module};
use crate::room::Contents;
use mullion::{Host, Limits};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use rustix::thread::futex::{self, Timespec};
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

const ASKED_AT: usize = 0;
const ANSWERED_AT: usize = 64;
const QUESTION_AT: usize = 128;
const ANSWER_AT: usize = 192;
const STOPPED_AT: usize = 256;
const HEAD: usize = 4096;
const LENGTH: usize = HEAD + message::QUESTION + message::ANSWER;

/// How long a process may take to load its module.
const LOADING: Duration = Duration::from_secs(60);
/// Time that a process has beyond its module's own, which it watches itself.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long nobody sleeps without a look at whether the process has ended.
const SLICE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};
/// Looks before one sleeps.
const LOOKS: u32 = 200;

/// What a process is told of its module.
#[derive(Serialize, Deserialize)]
struct Told {
    module: Description,
    memory: u64,
    stack: u64,
    /// Nanoseconds of a call.
    time: Option<u64>,
    gate_calls: Option<u64>,
}

/// The memory, in either process.
#[derive(Debug)]
struct Common(Memory);

impl Common {
    fn number(&self, at: usize) -> &AtomicU32 {
        // SAFETY: it lies in the memory, at a multiple of its size, and all who have the memory change it atomically.
        unsafe { AtomicU32::from_ptr(self.0.start().add(at).cast()) }
    }

    /// Bytes from a place on, as they are now.
    fn read(&self, at: usize, length: usize) -> Vec<u8> {
        let length = length.min(self.0.len().saturating_sub(at));
        let mut copy = vec![0; length];
        // SAFETY: they lie in the memory, whose bytes nobody borrows. That the other process writes there meanwhile may
        // spoil what is copied, and nothing else.
        unsafe { std::ptr::copy_nonoverlapping(self.0.start().add(at), copy.as_mut_ptr(), length) };
        copy
    }

    /// Writes as much as there is room for.
    fn write(&self, at: usize, bytes: &[u8]) {
        let length = bytes.len().min(self.0.len().saturating_sub(at));
        // SAFETY: they lie in the memory, whose bytes nobody borrows: they are copied in and out.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.0.start().add(at), length) };
    }

    /// Sleeps until somebody wakes who waits here, unless the number has changed already.
    fn sleep(&self, at: usize, while_it_is: u32) {
        // Whoever sleeps looks at the number again, whatever the reason for which it wakes.
        let _ = futex::wait(
            self.number(at),
            futex::Flags::empty(),
            while_it_is,
            Some(&SLICE),
        );
    }

    fn wake(&self, at: usize) {
        // Of a number in mapped memory no error comes.
        let _ = futex::wake(self.number(at), futex::Flags::empty(), 1);
    }
}

/// A module in a process, from the forwarder's side. The process ends with it.
#[derive(Debug)]
pub(crate) struct Link {
    common: Arc<Common>,
    asked: u32,
    patience: Duration,
    process: OwnedFd,
    ended: Arc<Mutex<Option<ExitStatus>>>,
}

impl Link {
    /// Starts the program that this is again, as the process; it verifies and loads the image.
    ///
    /// # Errors
    /// The system's; the image is refused.
    pub(crate) fn start(
        description: &Description,
        image: &[u8],
        limits: &Limits,
    ) -> Result<Link, LoadError> {
        let told = Told {
            module: Description {
                wall: Wall::Window,
                ..description.clone()
            },
            memory: limits.memory,
            stack: limits.stack,
            time: limits
                .time
                .map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)),
            gate_calls: limits.gate_calls,
        };
        let told = serde_json::to_string(&told).map_err(io::Error::other)?;
        let mut file = std::fs::File::from(sealed(c"packets-image", image.len() as u64)?);
        file.write_all(image)?;
        io::Seek::rewind(&mut file)?;
        let memory = sealed(c"packets-process", LENGTH as u64)?;
        let map = Memory::map(LENGTH, libc::MAP_SHARED, memory.as_raw_fd(), 0)?;
        let common = Arc::new(Common(map));
        let ended = Arc::new(Mutex::new(None));
        let mut command = Command::new("/proc/self/exe");
        command
            .args(["packets", "inside", &told])
            .env_clear()
            .current_dir("/");
        command.stdin(file).stdout(memory).stderr(Stdio::inherit());
        let (began, begins) = mpsc::channel();
        let (watched, memory) = (ended.clone(), common.clone());
        // Linux ends the process with the thread that started it.
        std::thread::Builder::new()
            .name(format!("module {}", description.name))
            .spawn(move || {
                let started = command
                    .spawn()
                    .and_then(|child| Ok((handle(&child)?, child)));
                // Its files are the process's alone.
                drop(command);
                match started {
                    Ok((process, mut child)) => {
                        let _ = began.send(Ok(process));
                        let status = child.wait();
                        *lock(&watched) = Some(status.unwrap_or_default());
                        memory.wake(ANSWERED_AT);
                    }
                    Err(error) => {
                        let _ = began.send(Err(error));
                    }
                }
            })?;
        let process = begins.recv().map_err(io::Error::other)??;
        let mut link = Link {
            common,
            asked: 0,
            patience: LOADING,
            process,
            ended,
        };
        link.wait().map_err(LoadError::Process)?;
        link.patience = limits.time.unwrap_or_default() + PATIENCE;
        Ok(link)
    }

    /// Has the module answer a batch of `count` frames, whose reports go to `report`: how many were not taken from it.
    ///
    /// # Errors
    /// Why it was stopped.
    pub(crate) fn call(
        &mut self,
        contents: &mut Contents,
        count: usize,
        report: &mut dyn FnMut(Vec<u8>),
    ) -> Result<u64, String> {
        let question = Question::of(contents, count);
        let length = self.common.number(QUESTION_AT);
        length.store(question.0.len() as u32, Ordering::Relaxed);
        self.common.write(HEAD, &question.0);
        self.asked = self.asked.wrapping_add(1);
        let asked = self.common.number(ASKED_AT);
        asked.store(self.asked, Ordering::Release);
        self.common.wake(ASKED_AT);
        let answer = Answer(self.wait()?);
        let put = answer.put_into(contents, count, report);
        put.ok_or_else(|| "its process answered what is no answer".to_owned())
    }

    /// The next answer.
    fn wait(&self) -> Result<Vec<u8>, String> {
        let (wanted, begun) = (self.asked.wrapping_add(1), Instant::now());
        let answered = self.common.number(ANSWERED_AT);
        let mut looks = 0;
        loop {
            let found = answered.load(Ordering::Acquire);
            if found == wanted {
                break;
            }
            looks += 1;
            if looks < LOOKS {
                std::hint::spin_loop();
                continue;
            }
            if let Some(status) = *lock(&self.ended) {
                return Err(format!("its process has ended: {}", told(status)));
            }
            if begun.elapsed() > self.patience {
                return Err(format!(
                    "its process did not answer within {:?}",
                    self.patience
                ));
            }
            self.common.sleep(ANSWERED_AT, found);
        }
        let length = self.common.number(ANSWER_AT).load(Ordering::Relaxed) as usize;
        let answer = self
            .common
            .read(HEAD + message::QUESTION, length.min(message::ANSWER));
        match self.common.number(STOPPED_AT).load(Ordering::Relaxed) {
            0 => Ok(answer),
            _ => Err(String::from_utf8_lossy(&answer).into_owned()),
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // It names the process, or none any more: then there is nothing to end.
        let _ = pidfd_send_signal(&self.process, Signal::KILL);
    }
}

/// Nobody has waited for the process yet, so the number is its own.
fn handle(child: &Child) -> io::Result<OwnedFd> {
    Ok(pidfd_open(Pid::from_child(child), PidfdFlags::empty())?)
}

fn told(status: ExitStatus) -> String {
    match status.signal() {
        Some(libc::SIGSYS) => "it asked the system for what it may not".to_owned(),
        Some(signal) => format!("signal {signal}"),
        None => status.to_string(),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Is a module's process: `told` is its argument, the image its standard input, the memory its standard output. Both are
/// nothing's any more afterwards, which the caller sees to in `give_up`, with all powers. `close` leaves it nothing
/// but its memory and clocks.
///
/// # Errors
/// No forwarder has started it.
pub fn inside(
    told: &str,
    give_up: impl FnOnce() -> Result<(), String>,
    close: impl FnOnce() -> Result<(), String>,
) -> Result<(), String> {
    let said = |error: &dyn std::fmt::Display| error.to_string();
    let told: Told = serde_json::from_str(told).map_err(|error| said(&error))?;
    let mut image = Vec::new();
    let read = io::stdin().lock().read_to_end(&mut image);
    read.map_err(|error| said(&error))?;
    let map = Memory::map(LENGTH, libc::MAP_SHARED, io::stdout().as_raw_fd(), 0);
    let common = Common(map.map_err(|error| said(&error))?);
    let begun = give_up().and_then(|()| {
        let module = load(&told, image).map_err(|error| said(&error))?;
        close()?;
        Ok(module)
    });
    let mut answered = 1;
    let module = match begun {
        Ok(module) => {
            reply(&common, answered, Ok(Vec::new()));
            module
        }
        Err(why) => {
            reply(&common, answered, Err(why));
            return Ok(());
        }
    };
    let asked = common.number(ASKED_AT);
    loop {
        let mut looks = 0;
        while asked.load(Ordering::Acquire) != answered {
            looks += 1;
            match looks < LOOKS {
                true => std::hint::spin_loop(),
                false => common.sleep(ASKED_AT, answered.wrapping_sub(1)),
            }
        }
        let length = common.number(QUESTION_AT).load(Ordering::Relaxed) as usize;
        let question = Question(common.read(HEAD, length.min(message::QUESTION)));
        let answer = answer(&module, &question);
        let is_stopped = answer.is_err();
        answered = answered.wrapping_add(1);
        reply(&common, answered, answer);
        if is_stopped {
            return Ok(());
        }
    }
}

fn load(told: &Told, image: Vec<u8>) -> Result<Module, LoadError> {
    let host = Host::new();
    let image = host.image(&told.module.name, image)?;
    let limits = Limits {
        memory: told.memory,
        stack: told.stack,
        time: told.time.map(Duration::from_nanos),
        gate_calls: told.gate_calls,
        ..Limits::default()
    };
    Module::of(&host, &told.module, &image, limits)
}

fn answer(module: &Module, question: &Question) -> Result<Vec<u8>, String> {
    let before = module.refused();
    let mut answer = Answer(Vec::new());
    module.call_plainly(
        &mut |contents| question.put_into(contents).filter(|count| *count <= BATCH),
        &mut |contents, count| answer = Answer::of(contents, count),
    )?;
    answer.add_reports(module.refused() - before, &module.take_reports());
    Ok(answer.0)
}

fn reply(common: &Common, number: u32, answer: Result<Vec<u8>, String>) {
    let (is_stopped, bytes) = match answer {
        Ok(bytes) => (0, bytes),
        Err(why) => (1, why.into_bytes()),
    };
    let length = bytes.len().min(message::ANSWER);
    common.write(HEAD + message::QUESTION, &bytes[..length]);
    let store = |at, value| common.number(at).store(value, Ordering::Relaxed);
    store(ANSWER_AT, length as u32);
    store(STOPPED_AT, is_stopped);
    let answered = common.number(ANSWERED_AT);
    answered.store(number, Ordering::Release);
    common.wake(ANSWERED_AT);
}
