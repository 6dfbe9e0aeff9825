//! Who may touch which memory, as `mullion map` paints it: processes of this program are domains; pages of their heaps,
//! stacks and blocks of the exchange heap are regions.

use mullion_picture::State;
use mullion_sip::process::{Kind, records};
use mullion_supervisor::{Error, Range};

/// The state of this moment. Processes behind walls of the hardware have their memory elsewhere, and are not in it.
///
/// # Errors
/// A process was made or ended while it was looked at, so that its memory seemed to be two processes'.
pub fn state() -> Result<State, Error> {
    let records = records()?;
    let snapshot = records.supervisor.snapshot();
    let mut state = State::from(&snapshot).title("Software isolated processes");
    for (domain, process) in &records.domains {
        state = state.name(*domain, process.name);
    }
    for holding in &records.holdings {
        let name = match holding.kind {
            Kind::Heap => "heap",
            Kind::Stack => "stack",
            Kind::Exchange => "exchange heap",
        };
        let range = Range::bytes(holding.start as u64, holding.bytes as u64)?;
        state = state.label(range, name);
    }
    Ok(state)
}
