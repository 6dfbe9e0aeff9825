//! Traces of programs that do not exist, made from parameters.
//!
//! The program looks like the paper's: a kernel in domain 1 that owns all memory, and modules in domains
//! of their own below it. Each has text, data and entry points. Everybody's exported functions carry
//! switch gates for the global group and for their own domain, and return gates at their ends. The kernel
//! exports some memory to a group that all modules join (the paper's inodes). It lends buffers to modules
//! for the length of a call (the paper's network packets and disk blocks). It allocates objects for who
//! calls it (`perm_alloc`). Callers open words of their stack to callees now and then. Several threads
//! take turns.
//!
//! Time is counted in instructions, of which the paper's machine completes one in a cycle: a rate per
//! kilocycle is a rate per thousand instructions.

mod boot;
mod layout;
mod parameters;
mod program;
mod random;

use crate::event::TraceEvent;

pub use parameters::{ParamError, Params};

/// Bits of an address in these traces: the paper's machine.
pub const ADDRESS_BITS: u32 = 32;

/// Hands the events of a program, in order, to `sink`, until there are as many as asked for or the sink
/// fails.
pub fn generate<E>(
    params: &Params,
    mut sink: impl FnMut(TraceEvent) -> Result<(), E>,
) -> Result<(), Failure<E>> {
    params.check().map_err(Failure::Params)?;
    let mut program = program::Program::new(params);
    boot::boot(&mut program);
    let mut left = params.events;
    loop {
        for event in program.take_events() {
            if left == 0 {
                return Ok(());
            }
            left -= 1;
            sink(event).map_err(Failure::Sink)?;
        }
        program.advance();
    }
}

/// Why a generation ended early.
#[derive(Debug)]
pub enum Failure<E> {
    /// There is no such program.
    Params(ParamError),
    /// The sink failed.
    Sink(E),
}

/// The events as a list, for tests and small experiments.
pub fn events(params: &Params) -> Result<Vec<TraceEvent>, ParamError> {
    let mut events = Vec::new();
    let result = generate(params, |event| {
        events.push(event);
        Ok::<(), std::convert::Infallible>(())
    });
    match result {
        Ok(()) => Ok(events),
        Err(Failure::Params(error)) => Err(error),
        Err(Failure::Sink(never)) => match never {},
    }
}
