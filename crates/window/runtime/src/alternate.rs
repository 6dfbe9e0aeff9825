//! The alternate stack of a thread, on which signals arrive.
//!
//! A process has one alternate stack for each thread, and many libraries that want
//! to set it. The Rust standard library installs one when a thread begins. It
//! switches *whatever is in force* off and unmaps its own before thread-local
//! variables are dropped. So an address that was in force once may be unmapped
//! now, or somebody else's memory.
//!
//! Hence one rule: the run time installs no address but that of memory it owns.
//! [`AlternateStack`] is the only code of the crate that calls `sigaltstack`. It
//! never keeps what was in force before. At a thread's end it switches its own
//! stack off, and leaves any other in force.

use mullion_report::error::Error;
use std::ops::Range;
use std::ptr;

/// Memory for an alternate stack, of one thread.
///
/// Invariant: the memory is mapped readable and writable, and nobody else uses it,
/// until [`AlternateStack::retire`] has answered [`Retired::Free`].
#[derive(Debug)]
pub(crate) struct AlternateStack {
    memory: Range<u64>,
}

/// What may happen to the memory of a stack that is not wanted any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Retired {
    /// Nothing uses it.
    Free,
    /// The kernel may still write signal frames there: it must stay mapped, for ever.
    InUse,
}

impl AlternateStack {
    /// # Safety
    /// The memory is as the type's invariant says.
    pub(crate) unsafe fn new(memory: Range<u64>) -> Self {
        Self { memory }
    }

    /// Puts the stack into force for the current thread.
    ///
    /// # Errors
    /// [`Error::InHandler`]: the thread runs on an alternate stack now.
    pub(crate) fn install(&self) -> Result<(), Error> {
        match in_force() {
            Some(now) if now.ss_flags & libc::SS_ONSTACK != 0 => Err(Error::InHandler),
            Some(now) if self.is(&now) => Ok(()),
            _ => self.put_into_force(),
        }
    }

    /// As [`AlternateStack::install`], if the thread has no alternate stack in force.
    /// Another one than this stays: the host may want it.
    pub(crate) fn install_if_none(&self) -> Result<(), Error> {
        match in_force() {
            Some(now) if now.ss_flags & libc::SS_ONSTACK != 0 => Err(Error::InHandler),
            Some(now) if now.ss_flags & libc::SS_DISABLE == 0 => Ok(()),
            _ => self.put_into_force(),
        }
    }

    fn put_into_force(&self) -> Result<(), Error> {
        let ours = libc::stack_t {
            ss_sp: ptr::with_exposed_provenance_mut(self.memory.start as usize),
            ss_flags: 0,
            ss_size: (self.memory.end - self.memory.start) as usize,
        };
        // SAFETY: the memory is a stack of this type's own, by the invariant. The
        // kernel refuses the change while the thread runs on an alternate stack.
        match unsafe { libc::sigaltstack(&ours, ptr::null_mut()) } {
            0 => Ok(()),
            _ => Err(Error::last("installing an alternate signal stack")),
        }
    }

    /// Takes the stack out of force, if it is what is in force.
    pub(crate) fn retire(&self) -> Retired {
        let Some(now) = in_force() else {
            return Retired::InUse;
        };
        if !self.is(&now) {
            return Retired::Free;
        }
        let none = libc::stack_t {
            ss_sp: ptr::null_mut(),
            ss_flags: libc::SS_DISABLE,
            ss_size: 0,
        };
        // SAFETY: names no memory. Refused while the thread runs on the stack.
        match unsafe { libc::sigaltstack(&none, ptr::null_mut()) } {
            0 => Retired::Free,
            _ => Retired::InUse,
        }
    }

    fn is(&self, stack: &libc::stack_t) -> bool {
        stack.ss_flags & libc::SS_DISABLE == 0 && stack.ss_sp.addr() as u64 == self.memory.start
    }
}

/// What the kernel has for this thread.
fn in_force() -> Option<libc::stack_t> {
    // SAFETY: a plain structure for which zero is a valid value; the call only writes to it.
    unsafe {
        let mut now: libc::stack_t = std::mem::zeroed();
        (libc::sigaltstack(ptr::null(), &mut now) == 0).then_some(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stack that lives as long as the process.
    fn stack() -> AlternateStack {
        let memory = Box::leak(vec![0_u128; 0x1000].into_boxed_slice());
        let start = memory.as_mut_ptr().expose_provenance() as u64;
        // SAFETY: leaked, and nobody has the reference.
        unsafe { AlternateStack::new(start..start + 0x10000) }
    }

    #[test]
    fn a_stack_is_in_force_once_it_is_installed_and_not_after_it_is_retired() {
        let (first, second) = (stack(), stack());
        first.install().unwrap();
        assert!(first.is(&in_force().unwrap()));
        second.install().unwrap();
        assert!(!first.is(&in_force().unwrap()));
        assert_eq!(first.retire(), Retired::Free);
        assert!(second.is(&in_force().unwrap()), "it is not the first one's");
        assert_eq!(second.retire(), Retired::Free);
        assert_ne!(in_force().unwrap().ss_flags & libc::SS_DISABLE, 0);
        first.install().unwrap();
        assert!(first.is(&in_force().unwrap()));
        let _ = first.retire();
    }
}
