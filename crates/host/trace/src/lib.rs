//! A run of a host of the word wall as a file for the hardware model, `mullion model run FILE` (docs/word.md, "Traces"). It
//! has all decisions of the supervisor. If the host wants that, it also has calls, instructions, loads and stores of modules.
//!
//! ```no_run
//! use mullion_word_runtime::Host;
//!
//! let host = Host::new()?;
//! mullion_word_trace::begin(&host, true)?;
//! // Modules are loaded, and called.
//! mullion_word_trace::end("run.mmt".as_ref(), "our server, a request")?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory, OpAccess, Register};
use mullion_mmp::log::{LogTraceError, RunEvent, write_run};
use mullion_word_runtime::{Host, ModuleStep};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use thiserror::Error;

/// So many decisions are kept. A longer run has no trace.
pub const DECISIONS: usize = 1 << 24;
/// So many calls, instructions and accesses are kept. Later ones are not in the trace, whose note says so.
pub const EVENTS: usize = 1 << 26;

/// Why no trace begins.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BeginError {
    /// A process has one trace, from before its first module.
    #[error("a trace was begun before")]
    Before,
    /// [`Host::follow`] has another hook.
    #[error("what modules do is told to another function already")]
    Followed,
}

/// Why there is no file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// There is none that has not ended.
    #[error("no trace was begun, or it has ended")]
    NotBegun,
    /// The run cannot be a trace: it was too long.
    #[error(transparent)]
    Run(#[from] LogTraceError),
    /// The system refuses the file.
    #[error(transparent)]
    File(#[from] std::io::Error),
}

/// How far the trace of this process is.
enum State {
    Before,
    /// What modules have done so far.
    On(Host, Vec<RunEvent>),
    Over,
}

static STATE: Mutex<State> = Mutex::new(State::Before);

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins the trace of this process, before the first module is loaded. `steps`: with calls, instructions and accesses of
/// modules, by [`Host::follow`]. Each instruction then takes some microseconds.
///
/// # Errors
/// There was one already, or [`Host::follow`] has another hook.
pub fn begin(host: &Host, steps: bool) -> Result<(), BeginError> {
    let mut state = state();
    if !matches!(*state, State::Before) {
        return Err(BeginError::Before);
    }
    let of = *host;
    if steps && !host.follow(move |step| keep(&of, step)) {
        return Err(BeginError::Followed);
    }
    host.start_audit(DECISIONS);
    *state = State::On(of, Vec::new());
    Ok(())
}

/// Ends it, and writes the file. `note` says how it came to be, for people.
///
/// # Errors
/// None was begun, the run was too long, or the system refuses the file.
pub fn end(file: &Path, note: &str) -> Result<(), WriteError> {
    let mut state = state();
    if !matches!(*state, State::On(..)) {
        return Err(WriteError::NotBegun);
    }
    let State::On(host, run) = std::mem::replace(&mut *state, State::Over) else {
        return Err(WriteError::NotBegun);
    };
    drop(state);
    let log = host.take_audit().ok_or(WriteError::NotBegun)?;
    let note = match run.len() {
        EVENTS.. => format!("{note} (only its first calls, instructions and accesses)"),
        _ => note.to_owned(),
    };
    let written = write_run(&log, run, &note, BufWriter::new(File::create(file)?))?;
    let file = written.into_inner();
    file.map_err(std::io::IntoInnerError::into_error)?;
    Ok(())
}

/// Keeps what the followed thread does. The thread runs a module's code or is at its gates, so it has no lock of an allocator.
fn keep(host: &Host, step: ModuleStep<'_>) {
    let before = match step {
        ModuleStep::Instruction { .. } => None,
        _ => Some(RunEvent::Decisions(host.audited())),
    };
    let mut state = state();
    let State::On(_, run) = &mut *state else {
        return;
    };
    if run.len() >= EVENTS {
        return;
    }
    run.extend(before);
    match step {
        ModuleStep::Call { domain, gate } => run.push(RunEvent::Call { domain, gate }),
        ModuleStep::Return => run.push(RunEvent::Return),
        ModuleStep::Leave { domain, function } => run.push(RunEvent::Leave { domain, function }),
        ModuleStep::Back => run.push(RunEvent::Back),
        ModuleStep::Granted => {}
        ModuleStep::Instruction {
            address,
            code,
            registers,
        } => instruction(address, code, registers, run),
    }
}

/// What an instruction does, by its operands: the memory that it names, but for the control stack and what the wall's own
/// checks look up.
fn instruction(address: u64, code: &[u8], registers: &[u64; 16], run: &mut Vec<RunEvent>) {
    let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    let instruction = decoder.decode();
    if instruction.is_invalid() {
        return;
    }
    run.push(RunEvent::Instruction(address, instruction.len() as u32));
    let mut factory = InstructionInfoFactory::new();
    for used in factory.info(&instruction).used_memory() {
        let is_walls = [Register::GS, Register::FS].contains(&used.segment());
        let bytes = used.memory_size().size() as u32;
        if is_walls || used.base() == Register::RSP || bytes == 0 {
            continue;
        }
        let value = |register: Register, _, _| match register {
            Register::DS | Register::ES | Register::SS | Register::CS => Some(0),
            other if other.is_gpr64() => registers.get(other.number()).copied(),
            other if other.is_gpr32() => {
                registers.get(other.number()).map(|word| word & 0xffff_ffff)
            }
            _ => None,
        };
        let Some(at) = used.virtual_address(0, value) else {
            continue;
        };
        let (loads, stores) = match used.access() {
            OpAccess::Read | OpAccess::CondRead => (true, false),
            OpAccess::Write | OpAccess::CondWrite => (false, true),
            OpAccess::ReadWrite | OpAccess::ReadCondWrite => (true, true),
            OpAccess::None | OpAccess::NoMemAccess => (false, false),
        };
        if loads {
            run.push(RunEvent::Load(at, bytes));
        }
        if stores {
            run.push(RunEvent::Store(at, bytes));
        }
    }
}
