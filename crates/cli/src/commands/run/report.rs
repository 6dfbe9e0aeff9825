//! The report of a fault: what happened, where in the source, and by which way.
//!
//! Names and lines come from the image's own debug information, which its author wrote. It is read
//! by a parser in a safe language, only after a fault, and printed with its control characters
//! escaped.

use crate::output::say;
use mullion_host::{Attempt, Cause};
use mullion_runtime::{REGISTER_NAMES, RawFault};
use mullion_symbols::Symbols;
use mullion_verifier::Image;
use std::path::Path;
use std::time::Duration;

/// Lines of backtrace that are printed.
const FRAMES: usize = 24;

/// Prints the report to standard error; `elapsed` is how long the program ran.
/// Debug information is read if `debug` says so.
pub(super) fn print(path: &Path, image: &Image, fault: &RawFault, elapsed: Duration, debug: bool) {
    say(format_args!("mullion: {}: {}", path.display(), fault.cause));
    if matches!(
        fault.cause,
        Cause::TimeLimit { .. }
            | Cause::ProcessorTimeLimit { .. }
            | Cause::TotalProcessorTimeLimit { .. }
    ) {
        say(format_args!("  stopped after {elapsed:.3?}"));
    }
    if let Some(address) = fault.address {
        say(format_args!("  address      {}", place(fault, address)));
    }
    // What its author wrote is looked at only after what we know without it is told.
    let mut source = match debug {
        true => Symbols::new(image.bytes().clone()),
        false => Symbols::without_debug_information(image.bytes().clone()),
    };
    say(format_args!(
        "  instruction  {}",
        describe(&mut source, fault, fault.instruction, 0)
    ));
    for (index, address) in fault.backtrace.iter().take(FRAMES).enumerate() {
        let title = if index == 0 { "called from" } else { "" };
        // A return address is behind its call; the call is what is of interest.
        say(format_args!(
            "  {title:11}  {}",
            describe(&mut source, fault, *address, 1)
        ));
    }
    let left_out = fault.omitted + fault.backtrace.len().saturating_sub(FRAMES) as u64;
    if left_out > 0 {
        say(format_args!("               ... {left_out} more"));
    }
    if source.is_exhausted() {
        say(format_args!(
            "  names are not complete: the debug information takes more work than its size explains"
        ));
    }
    if let Some(registers) = &fault.registers {
        for row in REGISTER_NAMES.chunks(4).zip(registers.values.chunks(4)) {
            let cells: Vec<String> = row
                .0
                .iter()
                .zip(row.1)
                .map(|(name, value)| format!("{name:>6} {value:016x}"))
                .collect();
            say(format_args!("  {}", cells.join(" ")));
        }
    }
    if let Some(hint) = hint(fault) {
        say(format_args!("  hint: {hint}"));
    }
}

/// An address of the window as an offset, another one as it is.
fn place(fault: &RawFault, address: u64) -> String {
    match fault.offset(address) {
        Some(offset) => format!("offset {offset:#x} of the window"),
        None => format!("{address:#x}, outside of the window"),
    }
}

fn describe(source: &mut Symbols, fault: &RawFault, address: u64, behind: u64) -> String {
    let Some(offset) = fault.offset(address) else {
        return format!("{address:#x}");
    };
    let found = source.find(offset.saturating_sub(behind));
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    match found.is_empty() {
        true => format!("{offset:#x}"),
        false => format!(
            "{offset:#x} {}",
            found.join("\n               inlined into ")
        ),
    }
}

/// What the reader may do about it.
fn hint(fault: &RawFault) -> Option<String> {
    Some(match &fault.cause {
        Cause::Access { attempt, .. } => {
            let offset = fault.offset(fault.address?)?;
            if *attempt == Attempt::Read && is_label_check(fault) {
                let target = offset + 4;
                return Some(format!(
                    "an indirect call or jump to offset {target:#x}, where there is no code"
                ));
            }
            match (offset, attempt) {
                (0..0x1_0000, _) => format!("a null pointer plus {offset:#x}, or a pointer from outside of the window"),
                (_, Attempt::Execute) => "data is never executable in a domain".to_owned(),
                _ => "build with --mullion-protection=trap to see wild pointers before they wrap into the window".to_owned(),
            }
        }
        Cause::DataStackOverflow { .. } => {
            "deep recursion or large local arrays; see --max-stack".to_owned()
        }
        Cause::ControlStackOverflow => "endless recursion, most likely".to_owned(),
        Cause::FailedLabel => {
            "a function pointer that is not one: overwritten, uninitialised, or of the host's"
                .to_owned()
        }
        Cause::TimeLimit { .. } => "see --max-time".to_owned(),
        Cause::ProcessorTimeLimit { .. } | Cause::TotalProcessorTimeLimit { .. } => {
            "see --max-processor-time".to_owned()
        }
        Cause::StepLimit { .. } => "see --max-steps".to_owned(),
        Cause::Raised { signal: 6 } => {
            "the program called abort, or an assertion of its own failed".to_owned()
        }
        _ => return None,
    })
}

/// Whether the faulting read was the one in front of an indirect branch: the complement of the
/// label waits in a scratch register.
fn is_label_check(fault: &RawFault) -> bool {
    let complement = u64::from(mullion_abi::LABEL.wrapping_neg());
    let scratch = ["r10", "r11", "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9"];
    let registers = fault.registers.as_ref();
    registers.is_some_and(|all| scratch.iter().any(|name| all.get(name) == Some(complement)))
}
