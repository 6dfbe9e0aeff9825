//! Domains: an image in a window, with its memory, stacks and imports.

use crate::account::Account;
use crate::call::{Arguments, CallError, Returned};
use crate::control::MAX_CONTROL_STACK;
use crate::dispatch::{End, HostFunction};
use crate::error::Error;
use crate::image::{Image, Parked};
use crate::limits::{CallLimits, Limits};
use crate::link::{Import, Link, LinkOptions};
use crate::memory::{Claimed, Memory};
use crate::signals;
use crate::stacks::{MAX_STACKS, Stacks};
use crate::thread_end::AroundThreadEnd;
use crate::window::Access;
use mullion_abi::{LABEL, STACK_FIRST, STACK_REGION};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

/// A protection domain: it can be called, from several threads at once.
#[derive(Debug)]
pub struct Domain {
    inner: Arc<Inner>,
}

/// The number of a domain. It is not used again, and stays over restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DomainNumber(pub u64);

/// What gates find a domain by. It does not move while calls are in flight. What
/// calls need is in its first cache line.
#[repr(C, align(64))]
pub(crate) struct Inner {
    /// What the image's instructions can do with floating-point control
    /// (`trampoline::uses`); the trampolines read it.
    pub(crate) uses: u32,
    /// Whether invocations are limited in time, gate calls or control stack.
    pub(crate) is_limited: bool,
    ended: AtomicBool,
    /// The window's base.
    pub(crate) window: u64,
    /// `serial`, if it has not ended and no limit needs to be looked at; else 0.
    ready: AtomicU64,
    /// Of this life of the domain; 0 in none. Entries and leases carry it.
    serial: AtomicU64,
    imports: Vec<Import>,
    // So far, one line.
    pub(crate) number: DomainNumber,
    memory: Memory,
    stacks: Mutex<Arc<Stacks>>,
    image: Arc<Image>,
    limits: Limits,
    /// Of `Limits::total_time`.
    pub(crate) account: Option<Arc<Account>>,
    /// Bytes of `Limits::output` that have been used.
    written: AtomicU64,
    /// What every thread calls before its first call: an address, 0 for nothing.
    thread_start: AtomicU64,
    around_thread_end: OnceLock<AroundThreadEnd>,
    /// Itself, for who outlives it.
    this: Weak<Inner>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut all = formatter.debug_struct("Inner");
        all.field("number", &self.number)
            .field("memory", &self.memory)
            .finish_non_exhaustive()
    }
}

/// An address at which a domain may be entered: a labelled instruction of its
/// image. Only the domain that made it takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub(crate) address: u64,
    pub(crate) serial: u64,
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
        stacks.resize(&window, Stacks::mapped_size(limits.stack))?;
        let stacks = Stacks::new(limits.threads, limits.stack, stacks);
        let serial = next_number();
        let base = window.base();
        let memory = Memory::new(window, &image, limits.memory, limits.regions)?;
        let inner = Arc::new_cyclic(|this| Inner {
            uses: image.uses(),
            is_limited: limits.time.is_some()
                || limits.total_time.is_some()
                || limits.gate_calls.is_some()
                || limits.control_stack < MAX_CONTROL_STACK,
            ended: AtomicBool::new(true),
            window: base,
            ready: AtomicU64::new(0),
            serial: AtomicU64::new(serial),
            imports: imports.into_iter().map(Import::new).collect(),
            number: DomainNumber(serial),
            memory,
            stacks: Mutex::new(Arc::new(stacks)),
            image,
            account: limits.total_time.map(Account::new),
            limits,
            written: AtomicU64::new(0),
            thread_start: AtomicU64::new(0),
            around_thread_end: OnceLock::new(),
            this: this.clone(),
        });
        inner.begin();
        Ok(Self { inner })
    }

    /// Its number.
    #[must_use]
    pub fn number(&self) -> DomainNumber {
        self.inner.number
    }

    /// Its number in the supervisor's books ([`crate::snapshot`]).
    #[must_use]
    pub fn recorded_as(&self) -> mullion_supervisor::DomainId {
        self.inner.memory.record().id
    }

    /// Its memory.
    #[inline]
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.inner.memory
    }

    /// Its limits.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    /// The entry with this address, if it carries the label and is code.
    pub fn entry(&self, address: Claimed) -> Result<Entry, Error> {
        self.inner.entry(address)
    }

    /// Whether the domain has faulted or exited, and takes no calls.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.inner.has_ended()
    }

    /// Lets the domain take no calls from now on, until it is restarted. Calls that
    /// are in it go on.
    pub fn end(&self) {
        self.inner.end();
    }

    /// Calls a function of the domain and waits until it returns.
    ///
    /// # Panics
    /// With the panic of a host function that the domain called.
    #[expect(
        clippy::inline_always,
        reason = "its result stays in registers: see there"
    )]
    #[inline(always)]
    pub fn call(&self, entry: Entry, arguments: &Arguments) -> Result<Returned, CallError> {
        self.inner.call(entry, arguments).map_err(|error| *error)
    }

    /// As [`Domain::call`], or [`Domain::call_limited`] with limits, and the error in a
    /// box: so the result is in registers, for who makes something else of both.
    ///
    /// # Panics
    /// As [`Domain::call`].
    #[expect(clippy::inline_always, reason = "its result stays in registers")]
    #[inline(always)]
    pub fn call_or_box(
        &self,
        entry: Entry,
        arguments: &Arguments,
        limits: Option<&CallLimits>,
    ) -> Result<Returned, Box<CallError>> {
        match limits {
            None => self.inner.call(entry, arguments),
            Some(_) => self.inner.call_limited(entry, arguments, limits),
        }
    }

    /// As [`Domain::call`], with limits of its own beside the domain's.
    ///
    /// # Panics
    /// As [`Domain::call`].
    pub fn call_limited(
        &self,
        entry: Entry,
        arguments: &Arguments,
        limits: &CallLimits,
    ) -> Result<Returned, CallError> {
        let called = self.inner.call_limited(entry, arguments, Some(limits));
        called.map_err(|error| *error)
    }

    /// From now on every thread calls `entry` before its first call of this
    /// domain, with the number of its data stack (from 0) as the argument: there
    /// the domain sets up what belongs to the thread, its thread pointer above
    /// all. Until the domain is restarted.
    ///
    /// # Errors
    /// [`Error::WrongDomain`].
    pub fn set_thread_start(&self, entry: Entry) -> Result<(), Error> {
        if entry.serial != self.inner.serial() {
            return Err(Error::WrongDomain);
        }
        self.inner
            .thread_start
            .store(entry.address, Ordering::Relaxed);
        Ok(())
    }

    /// Has `around` make the calls of a domain at the ends of threads
    /// ([`Image::with_thread_end`]), and see what comes of them: nobody else is told. Only
    /// the first one counts; it stays over restarts. Without it these calls are made, too.
    pub fn around_thread_end(&self, around: AroundThreadEnd) {
        self.inner.around_thread_end.get_or_init(|| around);
    }

    /// From now on the import with this index is `entry` of `callee`: this domain
    /// calls it with the host out of the way. Can be done once for each import;
    /// holds while both domains live, over restarts.
    ///
    /// # Errors
    /// [`Error::WrongDomain`], [`Error::NoImport`], [`Error::Linked`].
    pub fn link(
        &self,
        import: usize,
        callee: &Domain,
        entry: Entry,
        options: LinkOptions,
    ) -> Result<(), Error> {
        if entry.serial != callee.inner.serial() {
            return Err(Error::WrongDomain);
        }
        let place = self.inner.imports.get(import);
        let place = place.ok_or(Error::NoImport { import })?;
        place.link(Link::new(&callee.inner, entry.address, options))?;
        let (caller, callee) = (self.inner.memory.record(), callee.inner.memory.record());
        Ok(callee.link(caller, entry.address)?)
    }

    /// The imports that are other domains' functions: with [`Domain::number`] of
    /// all domains, the graph of who calls whom.
    #[must_use]
    pub fn links(&self) -> Vec<crate::Linked> {
        let imports = self.inner.imports.iter().enumerate();
        imports
            .filter_map(|(index, import)| import.linked(index))
            .collect()
    }

    /// Gives the domain the state that it had when it was new, in the same
    /// window, with its whole time. Entries made before are void.
    ///
    /// # Errors
    /// [`Error::Busy`] while another domain's call is in it. Others, which the
    /// kernel must be very short of memory for, leave a domain that takes no calls.
    pub fn restart(&mut self) -> Result<(), Error> {
        let inner = &self.inner;
        // The handshake with `Link::call`: there, a reference is counted before
        // ENDED is read; here, ENDED is written before references are counted.
        // Both first steps are locked instructions, full barriers on this
        // architecture. Calls of the host borrow `self`.
        let ended = inner.ended.swap(true, Ordering::SeqCst);
        if Arc::strong_count(inner) > 1 {
            inner.ended.store(ended, Ordering::SeqCst);
            return Err(Error::Busy);
        }
        inner.restart()
    }
}

impl Drop for Domain {
    /// Calls that other domains make are refused from now on; one in flight keeps
    /// the window until it returns.
    fn drop(&mut self) {
        self.inner.end();
    }
}

impl Drop for Inner {
    /// Its window, reset, waits for the next domain of the image, if not enough do.
    fn drop(&mut self) {
        if self.image.has_enough() {
            return;
        }
        let stacks = self.stacks().mapped();
        let reset = self.memory.reset(&self.image);
        let window = self.memory.take_window();
        if reset.and_then(|()| stacks.clear(&window)).is_ok() {
            self.image.park(Parked { window, stacks });
        }
    }
}

impl Inner {
    /// Nobody is in the domain, and nobody comes, as it has ended.
    fn restart(&self) -> Result<(), Error> {
        self.ready.store(0, Ordering::Relaxed);
        self.memory.reset(&self.image)?;
        let mapped = self.stacks().mapped();
        mapped.clear(self.memory.window())?;
        let stacks = STACK_FIRST + STACK_REGION - u64::from(MAX_STACKS) * STACK_REGION;
        let record = self.memory.record();
        record.set(stacks..STACK_FIRST + STACK_REGION, Access::None)?;
        let limits = &self.limits;
        // The leases of the old ones are void: their threads take stacks anew.
        *self.stacks.lock().unwrap_or_else(PoisonError::into_inner) =
            Arc::new(Stacks::new(limits.threads, limits.stack, mapped));
        if let Some(account) = &self.account {
            account.reset();
        }
        self.written.store(0, Ordering::Relaxed);
        self.serial.store(next_number(), Ordering::Relaxed);
        self.begin();
        Ok(())
    }

    /// The domain takes calls from now on, with what every thread calls first as the
    /// image says.
    fn begin(&self) {
        let offset = self.image.thread_start();
        let address = offset.map_or(0, |offset| self.window + offset);
        self.thread_start.store(address, Ordering::Relaxed);
        let ready = if self.is_limited { 0 } else { self.serial() };
        self.ready.store(ready, Ordering::Relaxed);
        self.ended.store(false, Ordering::SeqCst);
    }

    #[inline]
    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    pub(crate) fn stacks(&self) -> Arc<Stacks> {
        let stacks = self.stacks.lock().unwrap_or_else(PoisonError::into_inner);
        stacks.clone()
    }

    #[inline]
    pub(crate) fn imports(&self) -> &[Import] {
        &self.imports
    }

    #[inline]
    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    #[inline]
    pub(crate) fn serial(&self) -> u64 {
        self.serial.load(Ordering::Relaxed)
    }

    /// The serial number that an entry must have to be called with nothing else asked.
    #[inline]
    pub(crate) fn ready(&self) -> u64 {
        self.ready.load(Ordering::Relaxed)
    }

    /// What a thread calls that ends: an address.
    pub(crate) fn thread_end(&self) -> Option<u64> {
        self.image.thread_end().map(|offset| self.window + offset)
    }

    pub(crate) fn around_thread_end(&self) -> Option<&AroundThreadEnd> {
        self.around_thread_end.get()
    }

    /// Who wants to call it later, when it may be gone.
    pub(crate) fn this(&self) -> Weak<Self> {
        self.this.clone()
    }

    pub(crate) fn thread_start(&self) -> u64 {
        self.thread_start.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    /// The domain takes no calls from now on.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
        self.ready.store(0, Ordering::Relaxed);
    }

    /// Counts output.
    pub(crate) fn charge_output(&self, bytes: u64) -> Result<(), End> {
        let Some(granted) = self.limits.output else {
            return Ok(());
        };
        // What is refused is not counted.
        let more = |written: u64| written.checked_add(bytes).filter(|all| *all <= granted);
        let counted = self
            .written
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        counted.map_or(Err(End::OutputLimit { granted }), |_| Ok(()))
    }

    /// The number of the window.
    #[inline]
    pub(crate) fn place(&self) -> usize {
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
            serial: self.serial(),
        })
    }
}

/// Numbers are never used again, so that nothing of a domain that has gone is
/// taken for another one's. 0 is nobody's.
fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
