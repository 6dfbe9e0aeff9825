//! What a signal handler takes down of a fault.

use crate::control_stack::RESERVE;
use crate::frame::RETURN_GATE_BELOW;
use crate::granted::Granted;
use mullion_report::fault::{INNERMOST, OUTERMOST};

/// The general registers, as the kernel has them.
pub(crate) type Saved = [libc::greg_t; 23];

/// The order of `fault::REGISTER_NAMES`, as the kernel numbers them.
pub(crate) const ORDER: [libc::c_int; 18] = [
    libc::REG_RAX,
    libc::REG_RBX,
    libc::REG_RCX,
    libc::REG_RDX,
    libc::REG_RSI,
    libc::REG_RDI,
    libc::REG_RBP,
    libc::REG_RSP,
    libc::REG_R8,
    libc::REG_R9,
    libc::REG_R10,
    libc::REG_R11,
    libc::REG_R12,
    libc::REG_R13,
    libc::REG_R14,
    libc::REG_R15,
    libc::REG_RIP,
    libc::REG_EFL,
];

/// What the signal handler takes down; of a fixed size, in the thread control block.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Record {
    /// 0 if a limit of time ended the invocation, or its host did.
    pub(crate) signal: libc::c_int,
    /// The limit that was in force.
    pub(crate) granted: Granted,
    pub(crate) code: libc::c_int,
    pub(crate) address: u64,
    pub(crate) error: u64,
    pub(crate) trap: u64,
    pub(crate) registers: [u64; 18],
    returns: [u64; INNERMOST + OUTERMOST],
    count: usize,
    omitted: u64,
}

impl Default for Record {
    fn default() -> Self {
        Self {
            signal: 0,
            granted: Granted::default(),
            code: 0,
            address: 0,
            error: 0,
            trap: 0,
            registers: [0; 18],
            returns: [0; INNERMOST + OUTERMOST],
            count: 0,
            omitted: 0,
        }
    }
}

impl Record {
    /// Reads the return addresses of the running invocation, from `stack` up to
    /// its return gate, which lies below its CONTROL. `foot` is that of the thread's region.
    pub(crate) fn walk(&mut self, foot: u64, stack: u64, control: u64) {
        let gate = control - RETURN_GATE_BELOW;
        let inside = (foot + RESERVE.start..=gate).contains(&stack);
        let total = if inside { (gate - stack) / 8 } else { 0 };
        let first = total.min(INNERMOST as u64);
        let last = (total - first).min(OUTERMOST as u64);
        self.omitted = total - first - last;
        self.count = (first + last) as usize;
        for (index, place) in (0..first)
            .chain(total - last..total)
            .zip(self.returns.iter_mut())
        {
            let slot: *const u64 = std::ptr::with_exposed_provenance((stack + 8 * index) as usize);
            // SAFETY: between the stack pointer and the return gate the control
            // stack of this thread is mapped, and only this thread writes it.
            *place = unsafe { slot.read() };
        }
    }

    /// The return addresses that were found, the innermost first, and how many are left out before the last
    /// [`OUTERMOST`] ones.
    pub(crate) fn returns(&self) -> (&[u64], u64) {
        (&self.returns[..self.count], self.omitted)
    }

    /// Takes down what the kernel says, and the registers.
    pub(crate) fn fill(
        &mut self,
        registers: &Saved,
        signal: libc::c_int,
        code: libc::c_int,
        address: u64,
    ) {
        self.signal = signal;
        self.code = code;
        self.address = address;
        self.error = registers[libc::REG_ERR as usize] as u64;
        self.trap = registers[libc::REG_TRAPNO as usize] as u64;
        for (place, index) in self.registers.iter_mut().zip(ORDER) {
            *place = registers[index as usize] as u64;
        }
    }
}
