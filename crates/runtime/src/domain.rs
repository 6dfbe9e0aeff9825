//! Domains: an image in a window, with its memory, stacks and imports.

use crate::control::{self, Tcb};
use crate::dispatch::{Ending, HostFunction};
use crate::error::Error;
use crate::fault::{Cause, Fault};
use crate::image::{Image, Parked};
use crate::memory::{Claimed, Memory};
use crate::stacks::Stacks;
use crate::trampoline::{CallRecord, ended};
use crate::{MAX_STACK_SIZE, MAX_STACKS, signals, watchdog};
use mullion_abi::LABEL;
use std::panic::resume_unwind;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// What a domain may use.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Accessible bytes of image and heap together.
    pub memory: u64,
    /// Bytes of each data stack, at most [`MAX_STACK_SIZE`].
    pub stack: u64,
    /// Threads that may have a data stack at the same time, at most [`MAX_STACKS`].
    pub threads: u32,
    /// Pieces of memory with protections of their own: each is a mapping, of
    /// which the whole process has 65,530 unless vm.max_map_count says otherwise.
    pub regions: usize,
    /// Invocations nested on one thread, of this and other domains.
    pub depth: u32,
    /// Time by the clock for each call from the host.
    pub time: Option<Duration>,
}

impl Default for Limits {
    /// 1 GiB of memory, stacks of nearly 8 MiB, 95 threads, 1000 regions,
    /// 100 nested invocations, any time.
    fn default() -> Self {
        Self {
            memory: 1 << 30,
            stack: MAX_STACK_SIZE,
            threads: MAX_STACKS,
            regions: 1000,
            depth: 100,
            time: None,
        }
    }
}

/// A protection domain: it can be called, from several threads at once.
#[derive(Debug)]
pub struct Domain {
    inner: Box<Inner>,
}

/// What gates find a domain by. It does not move while calls are in flight.
pub(crate) struct Inner {
    serial: u64,
    memory: Memory,
    stacks: Arc<Stacks>,
    imports: Vec<HostFunction>,
    image: Arc<Image>,
    limits: Limits,
    ended: AtomicBool,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut all = formatter.debug_struct("Inner");
        all.field("serial", &self.serial)
            .field("memory", &self.memory)
            .finish_non_exhaustive()
    }
}

/// An address at which a domain may be entered: a labelled instruction of its
/// image. Only the domain that made it takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    address: u64,
    serial: u64,
}

/// What to call a domain's function with.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    integers: [u64; 6],
    vectors: Option<Box<[u128; 8]>>,
}

impl Arguments {
    /// Up to six integers and pointers; the others are 0.
    ///
    /// # Panics
    /// If there are more than six.
    #[inline]
    #[must_use]
    pub fn new(integers: &[u64]) -> Self {
        let mut arguments = Self::default();
        arguments.integers[..integers.len()].copy_from_slice(integers);
        arguments
    }

    /// Up to eight floating-point numbers as well.
    ///
    /// # Panics
    /// If there are more than eight.
    #[must_use]
    pub fn with_doubles(mut self, doubles: &[f64]) -> Self {
        let mut vectors = Box::new([0; 8]);
        for (place, double) in vectors[..doubles.len()].iter_mut().zip(doubles) {
            *place = u128::from(double.to_bits());
        }
        self.vectors = Some(vectors);
        self
    }
}

/// What a domain's function returned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Returned {
    /// `%rax`: an integer, or a pointer that nobody has checked.
    pub integer: u64,
    /// `%rdx`: the second half of a structure of two words.
    pub high: u64,
    /// `%xmm0`: a floating-point number.
    pub double: f64,
}

/// Why a call did not return.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The domain faulted, or its time was up. It takes no further calls.
    #[error(transparent)]
    Fault(Box<Fault>),
    /// The domain ended by itself. It takes no further calls.
    #[error("the domain exited with status {0}")]
    Exit(i32),
    /// A host function ended the invocation.
    #[error("a host function ended the call: {0}")]
    Refused(Box<dyn std::error::Error + Send + Sync>),
    /// The call was not made.
    #[error(transparent)]
    NotMade(#[from] Error),
}

impl Domain {
    /// A new domain of `image`: `imports` in the order of the image's own list.
    pub fn new(
        image: Arc<Image>,
        imports: Vec<HostFunction>,
        limits: Limits,
    ) -> Result<Self, Error> {
        crate::runtime::get()?;
        signals::install_faults()?;
        let (needed, limit) = (image.regions().accessible(), limits.memory);
        if needed > limit {
            return Err(Error::Memory { needed, limit });
        }
        let Parked { window, mut stacks } = image.window()?;
        stacks.reset(&window, Stacks::mapped_size(limits.stack))?;
        Ok(Self {
            inner: Box::new(Inner {
                serial: next_serial(),
                memory: Memory::new(window, &image, limits.memory, limits.regions),
                stacks: Arc::new(Stacks::new(limits.threads, limits.stack, stacks)),
                imports,
                image,
                limits,
                ended: AtomicBool::new(false),
            }),
        })
    }

    /// Its memory.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.inner.memory
    }

    /// The entry with this address, if it carries the label and is code.
    pub fn entry(&self, address: Claimed) -> Result<Entry, Error> {
        self.inner.entry(address)
    }

    /// Whether the domain has faulted or exited, and takes no calls.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.inner.ended.load(Ordering::Relaxed)
    }

    /// Calls a function of the domain and waits until it returns.
    ///
    /// # Panics
    /// With the panic of a host function that the domain called.
    #[inline]
    pub fn call(&self, entry: Entry, arguments: &Arguments) -> Result<Returned, CallError> {
        self.inner.call(entry, arguments)
    }

    /// Gives the domain the state that it had when it was new, in the same
    /// window. Entries made before are void. On an error, which the kernel must
    /// be very short of memory for, the domain takes no calls.
    pub fn restart(&mut self) -> Result<(), Error> {
        self.inner.restart()
    }
}

impl Drop for Inner {
    /// Its window, reset, waits for the next domain of the image.
    fn drop(&mut self) {
        let mut stacks = self.stacks.mapped();
        let reset = self.memory.reset(&self.image);
        let window = self.memory.take_window();
        if reset
            .and_then(|()| stacks.reset(&window, stacks.size()))
            .is_ok()
        {
            self.image.park(Parked { window, stacks });
        }
    }
}

impl Inner {
    fn restart(&mut self) -> Result<(), Error> {
        self.ended.store(true, Ordering::Relaxed);
        self.serial = next_serial();
        self.memory.reset(&self.image)?;
        let limits = &self.limits;
        let mut mapped = self.stacks.mapped();
        mapped.reset(self.memory.window(), mapped.size())?;
        // The leases of the old ones are void: their threads take stacks anew.
        self.stacks = Arc::new(Stacks::new(limits.threads, limits.stack, mapped));
        self.ended.store(false, Ordering::Relaxed);
        Ok(())
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    pub(crate) fn stacks(&self) -> &Arc<Stacks> {
        &self.stacks
    }

    pub(crate) fn imports(&self) -> &[HostFunction] {
        &self.imports
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn serial(&self) -> u64 {
        self.serial
    }

    /// The number of the window.
    pub(crate) fn number(&self) -> usize {
        self.memory.window().number() as usize
    }

    pub(crate) fn entry(&self, address: Claimed) -> Result<Entry, Error> {
        let refused = Error::NotAnEntry { address: address.0 };
        let offset = self
            .memory
            .offset(address)
            .filter(|offset| self.image.is_code(*offset));
        let label = self.memory.read(Claimed(address.0.wrapping_sub(4)));
        // Code never changes, so what is labelled now stays so.
        if offset.is_none() || label != Ok(LABEL.to_le_bytes()) {
            return Err(refused);
        }
        Ok(Entry {
            address: address.0,
            serial: self.serial,
        })
    }

    #[inline]
    pub(crate) fn call(&self, entry: Entry, arguments: &Arguments) -> Result<Returned, CallError> {
        if entry.serial != self.serial {
            return Err(Error::WrongDomain.into());
        }
        if self.ended.load(Ordering::Relaxed) {
            return Err(Error::Ended.into());
        }
        let tcb = control::current_or_new()?;
        let depth = tcb.depth.get();
        if depth >= self.limits.depth {
            return Err(Error::Depth { depth }.into());
        }
        let mut record = CallRecord {
            target: entry.address,
            window: self.memory.base(),
            stack: tcb.stack_top(self)?,
            domain: ptr::from_ref(self).cast(),
            vectors: arguments
                .vectors
                .as_deref()
                .map_or(ptr::null(), ptr::from_ref),
            integers: arguments.integers,
            high: 0,
            vector: [0; 2],
        };
        tcb.depth.set(depth + 1);
        let outcome = match self.limits.time {
            None => self.enter(tcb, &mut record),
            Some(time) => {
                let outer = watchdog::arm(tcb, time);
                let outcome = self.enter(tcb, &mut record);
                watchdog::disarm(tcb, outer);
                outcome
            }
        };
        tcb.depth.set(depth);
        if outcome.ended != u64::from(ended::RETURNED) {
            return Err(self.explain(tcb, outcome.ended));
        }
        Ok(Returned {
            integer: outcome.value,
            high: record.high,
            double: f64::from_bits(record.vector[0]),
        })
    }

    #[inline]
    fn enter(&self, tcb: &Tcb, record: &mut CallRecord) -> crate::trampoline::Outcome {
        // SAFETY: an `Entry` of this domain is a labelled instruction of its
        // image, which is verified code (`Image::new`) mapped in this window as
        // long as `self` lives; the stack was leased from this domain; the block
        // is this thread's.
        unsafe { tcb.enter(record) }
    }

    /// Why the invocation did not return.
    #[cold]
    fn explain(&self, tcb: &Tcb, how: u64) -> CallError {
        let fault = if how == u64::from(ended::FAULT) {
            tcb.record().explain(tcb, self)
        } else {
            match tcb.end.take().map(|ending| *ending) {
                Some(Ending::Panic(payload)) => resume_unwind(payload),
                Some(Ending::Refused(error)) => return CallError::Refused(error),
                Some(Ending::Exit(status)) => {
                    self.ended.store(true, Ordering::Relaxed);
                    return CallError::Exit(status);
                }
                Some(Ending::Fault(cause)) => tcb.record().explain_in_gate(cause, self),
                None => tcb.record().explain_in_gate(Cause::UnknownGate, self),
            }
        };
        self.ended.store(true, Ordering::Relaxed);
        CallError::Fault(Box::new(fault))
    }
}

/// Serial numbers are never used again, so that nothing of a domain that has
/// gone is taken for another one's. 0 is nobody's.
fn next_serial() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
