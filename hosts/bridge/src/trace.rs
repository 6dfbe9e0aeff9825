//! A run of a stock host as a trace. With `MULLION_WORD_TRACE=FILE` all decisions of the supervisor go into the file when
//! the process ends. With `MULLION_WORD_STEPS=1` so do calls, instructions and accesses of modules. The file is for
//! `mullion model run FILE` (docs/word.md, "Traces").

use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory, OpAccess, Register};
use mullion_mmp::log::{RunEvent, write_run};
use mullion_word_runtime::{Host, ModuleStep};
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Set: what modules do is in the trace, too.
const STEPS: &str = "MULLION_WORD_STEPS";
/// So many instructions and accesses are kept. Later ones are not in the trace, which says so.
const EVENTS: usize = 1 << 26;

static RUN: Mutex<Vec<RunEvent>> = Mutex::new(Vec::new());

const FILE: &str = "MULLION_WORD_TRACE";

/// So many decisions are kept. A longer run has no trace, and says so.
const DECISIONS: usize = 1 << 24;

struct Trace {
    host: Host,
    file: PathBuf,
    /// A copy of the process (`fork`) writes none.
    process: u32,
}

static TRACE: OnceLock<Option<Trace>> = OnceLock::new();

/// Before a module is loaded: the first call begins the trace, if somebody wants one.
pub(crate) fn begin(host: &Host) {
    TRACE.get_or_init(|| {
        let file = PathBuf::from(std::env::var_os(FILE)?);
        host.start_audit(DECISIONS);
        if std::env::var_os(STEPS).is_some_and(|value| value == "1") {
            let of = *host;
            host.follow(move |step| note(&of, step));
        }
        // SAFETY: the function is there until the library goes, and is called before that.
        let is_kept = unsafe { libc::atexit(end) } == 0;
        is_kept.then(|| Trace {
            host: *host,
            file,
            process: std::process::id(),
        })
    });
}

extern "C" fn end() {
    let Some(trace) = TRACE.get().and_then(Option::as_ref) else {
        return;
    };
    if trace.process != std::process::id() {
        return;
    }
    let Some(log) = trace.host.take_audit() else {
        return;
    };
    let name = std::env::current_exe().unwrap_or_default();
    let events = std::mem::take(&mut *RUN.lock().unwrap_or_else(PoisonError::into_inner));
    let what = match events.len() {
        0 => "decisions alone",
        EVENTS.. => "decisions, and the first calls, instructions and accesses of modules",
        _ => "decisions, and calls, instructions and accesses of modules",
    };
    let note = format!("a run of {}: {what}", name.display());
    let written = File::create(&trace.file)
        .map_err(|error| error.to_string())
        .and_then(|file| {
            let file = BufWriter::new(file);
            write_run(&log, events, &note, file).map_err(|error| error.to_string())
        });
    if let Err(error) = written {
        eprintln!("mullion: {}: {error}", trace.file.display());
    }
}

/// Keeps what the followed thread does. The thread runs a module's code or is at its gates, so it has no lock of an allocator.
fn note(host: &Host, step: ModuleStep<'_>) {
    let before = match step {
        ModuleStep::Instruction { .. } => None,
        _ => Some(RunEvent::Decisions(host.audited())),
    };
    let mut run = RUN.lock().unwrap_or_else(PoisonError::into_inner);
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
        } => instruction(address, code, registers, &mut run),
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
