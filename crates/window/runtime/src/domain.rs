//! Domains: an image in a window, with its memory, stacks and imports.

use crate::account::Account;
use crate::call::{Arguments, CallError, Returned};
use crate::cancel::{self, Canceller};
use crate::clock::Clock;
use crate::dispatch::{End, HostFunction};
use crate::error::Error;
use crate::image::{Image, Parked};
use crate::life::{self, Life, NotTaken};
use crate::limits::{CallLimits, Limits};
use crate::link::{Import, Link, LinkOptions};
use crate::memory::{Claimed, Memory};
use crate::meter::Meter;
use crate::news;
use crate::signals;
use crate::stacks::{MAX_STACKS, Stacks};
use crate::thread_end::AroundThreadEnd;
use crate::window::Access;
use mullion_abi::{LABEL, STACK_FIRST, STACK_REGION};
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

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
    /// The window's base.
    pub(crate) window: u64,
    /// What it is at, and the number of this life. Entries and leases carry the number.
    pub(crate) life: Life,
    /// Nanoseconds for each call by the clock, if that is the only limit that calls have.
    pub(crate) only_time: Option<NonZeroU64>,
    imports: Vec<Import>,
    // So far, one line.
    pub(crate) number: DomainNumber,
    memory: Memory,
    stacks: Mutex<Arc<Stacks>>,
    image: Arc<Image>,
    limits: Limits,
    pub(crate) meter: Arc<Meter>,
    /// Of `Limits::total_time`.
    pub(crate) accounts: [Option<Arc<Account>>; Clock::ALL.len()],
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
    /// A new domain of `image`: `imports` in the order of the image's own list. Its host
    /// may call it at once; other domains, and threads that end, once it is open: by
    /// [`Domain::start`], or [`Domain::open`] if it has no constructors.
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
        let (needed, limit) = (image.regions().mappings(), limits.mappings);
        if needed > limit {
            return Err(Error::Mappings { needed, limit });
        }
        let Parked { window, mut stacks } = image.window()?;
        stacks.resize(&window, Stacks::mapped_size(limits.stack))?;
        let stacks = Stacks::new(limits.threads, limits.stack, stacks);
        let number = next_number();
        let base = window.base();
        let meter = Meter::new(&limits);
        let memory = Memory::new(
            window,
            &image,
            limits.memory,
            limits.mappings,
            meter.clone(),
        )?;
        let is_limited = limits.has_time() || limits.has_others();
        let inner = Arc::new_cyclic(|this| Inner {
            uses: image.uses(),
            is_limited,
            only_time: limits.only_time(),
            window: base,
            life: Life::new(number, is_limited),
            imports: imports.into_iter().map(Import::new).collect(),
            number: DomainNumber(number / life::NUMBER),
            memory,
            stacks: Mutex::new(Arc::new(stacks)),
            image,
            accounts: Clock::ALL.map(|clock| {
                let granted = limits.of_all_calls(clock)?;
                Some(Account::new(clock, granted))
            }),
            limits,
            meter,
            written: AtomicU64::new(0),
            thread_start: AtomicU64::new(0),
            around_thread_end: OnceLock::new(),
            this: this.clone(),
        });
        inner.begin();
        inner.grant_steps()?;
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

    /// What counts its calls, faults, restarts and memory, over all its lives; it may be read when
    /// the domain is in use, or gone.
    #[must_use]
    pub fn meter(&self) -> &Arc<Meter> {
        &self.inner.meter
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
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
        self.inner.life.has_ended()
    }

    /// Calls what sets the domain up, its constructors, and opens it to others when that
    /// has returned. Others wait meanwhile, or are refused ([`Limits::start_wait`]). If it
    /// does not return, the domain has ended.
    ///
    /// # Errors
    /// As [`Domain::call`]; [`Error::NotOpen`]: it was started before.
    ///
    /// # Panics
    /// As [`Domain::call`].
    pub fn start(&self, entry: Entry, arguments: &Arguments) -> Result<Returned, CallError> {
        let inner = &*self.inner;
        if entry.serial != inner.serial() {
            return Err(Error::WrongDomain.into());
        }
        if !inner.life.start() {
            return Err(Error::NotOpen.into());
        }
        // However the constructors end, by a panic of a host function too.
        let ended = EndedUnlessOpen(inner);
        let returned = inner.call_first(entry, arguments).map_err(|error| *error)?;
        inner.life.open();
        drop(ended);
        Ok(returned)
    }

    /// Opens a domain that has no constructors to others.
    pub fn open(&self) {
        self.inner.life.open();
        news::tell();
    }

    /// Lets the domain take no calls from now on, until it is restarted. Calls that
    /// are in it go on.
    pub fn end(&self) {
        self.inner.end();
    }

    /// Closes it to others, who wait or are refused ([`Limits::start_wait`]); calls that are
    /// in it go on, with all that they nest. Whether it was open: until [`Domain::reopen`]
    /// or [`Domain::restart`], then.
    #[must_use]
    pub fn close(&self) -> bool {
        self.inner.life.close()
    }

    /// Opens it again, as it was; not if it has ended meanwhile.
    pub fn reopen(&self) {
        self.inner.life.reopen();
        news::tell();
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

    /// As [`Domain::call`], with limits of its own if there are any, as long as none of the cancellers
    /// is told to cancel.
    /// Cancelled, it ends by a fault, [`Cause::Cancelled`](crate::Cause::Cancelled), and the domain with
    /// it; or it is not made ([`Error::Cancelled`]). What it calls of other domains ends likewise.
    ///
    /// # Panics
    /// As [`Domain::call`].
    pub fn call_cancellable(
        &self,
        entry: Entry,
        arguments: &Arguments,
        limits: Option<&CallLimits>,
        cancellers: &[Canceller],
    ) -> Result<Returned, Box<CallError>> {
        let mut call = || self.inner.call_limited(entry, arguments, limits);
        cancel::over(cancellers, &mut call)
    }

    /// From now on every thread calls `entry` before its first call of this
    /// domain, with the number of its data stack (from 0) as the argument: there
    /// the domain sets up what belongs to the thread, its thread pointer above
    /// all. If it returns a negative error number (-4095 to -1), the thread's call is not
    /// made ([`Error::ThreadStart`]). Until the domain is restarted.
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
        let link = Link::new(&callee.inner, entry.address, options);
        let (caller, callee) = (self.inner.memory.record(), callee.inner.memory.record());
        callee.link_after(caller, entry.address, || place.link(link))
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
    /// window, with its whole time. Entries made before are void. It is to be started or
    /// opened again.
    ///
    /// # Errors
    /// [`Error::Busy`] while another domain's call is in it, or that of a thread that ends:
    /// then it is as it was, and no call has seen anything of it. Others, which the kernel
    /// must be very short of memory for, leave a domain that takes no calls.
    pub fn restart(&mut self) -> Result<(), Error> {
        let inner = &self.inner;
        // Calls of the host borrow `self`; the others hold a reference. See `life`.
        let taken = inner.life.take(|| Arc::strong_count(inner) > 1);
        match taken {
            Ok(()) => inner.restart(),
            Err(NotTaken::Inside) => Err(Error::Busy),
            // Neither can be: this borrows the domain.
            Err(NotTaken::Never) => Err(Error::NotOpen),
        }
    }
}

impl Domain {
    /// As [`Domain::restart`], when the calls that are in it have left, and `at_most` so long:
    /// meanwhile others wait or are refused ([`Limits::start_wait`]).
    ///
    /// # Errors
    /// As [`Domain::restart`]. If it is busy for so long, it is open again as it was.
    pub fn restart_when_idle(&mut self, at_most: Duration) -> Result<(), Error> {
        let closed = self.close();
        let tried = news::until(at_most, || match self.restart() {
            Err(Error::Busy) => None,
            tried => Some(tried),
        });
        let tried = tried.unwrap_or(Err(Error::Busy));
        if closed && matches!(tried, Err(Error::Busy)) {
            self.reopen();
        }
        tried
    }
}

/// Constructors that have not returned leave a domain that has ended.
struct EndedUnlessOpen<'a>(&'a Inner);

impl Drop for EndedUnlessOpen<'_> {
    fn drop(&mut self) {
        match self.0.life.is_open() {
            true => news::tell(),
            false => self.0.end(),
        }
    }
}

impl Drop for Domain {
    /// Calls that other domains make are refused from now on; one in flight keeps
    /// the window until it returns.
    fn drop(&mut self) {
        self.inner.life.leave();
        self.inner.meter.set_ended(true);
        news::tell();
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
        // Of mappings that are short nothing waits.
        if matches!(reset, Ok(true)) && stacks.clear(&window).is_ok() {
            self.image.park(Parked { window, stacks });
        }
    }
}

impl Inner {
    /// Nobody is in the domain, and nobody comes, as its life is taken.
    fn restart(&self) -> Result<(), Error> {
        let renewed = self.renew();
        if renewed.is_err() {
            self.end();
        }
        renewed
    }

    fn renew(&self) -> Result<(), Error> {
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
        for account in self.accounts.iter().flatten() {
            account.reset();
        }
        self.written.store(0, Ordering::Relaxed);
        self.grant_steps()?;
        self.begin();
        self.meter.restarted();
        // Before the life is renewed: an end in between makes that fail, and is marked again.
        self.meter.set_ended(false);
        match self.life.renew(next_number()) {
            true => Ok(()),
            false => Err(Error::Ended),
        }
    }

    /// What every thread calls first is what the image says.
    fn begin(&self) {
        let offset = self.image.thread_start();
        let address = offset.map_or(0, |offset| self.window + offset);
        self.thread_start.store(address, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    pub(crate) fn stacks(&self) -> Arc<Stacks> {
        let stacks = self.stacks.lock().unwrap_or_else(PoisonError::into_inner);
        stacks.clone()
    }

    pub(crate) fn image(&self) -> &Image {
        &self.image
    }

    #[inline]
    pub(crate) fn imports(&self) -> &[Import] {
        &self.imports
    }

    #[inline]
    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The number of this life.
    #[inline]
    pub(crate) fn serial(&self) -> u64 {
        self.life.number()
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

    /// The domain takes no calls from now on.
    pub(crate) fn end(&self) {
        self.life.end();
        self.meter.set_ended(true);
        news::tell();
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

/// Numbers of lives are never used again, so that nothing of a domain that has gone is
/// taken for another one's. 0 is nobody's. (There are 2^60: at a million restarts in a
/// second they last for 36,000 years.)
fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(life::NUMBER);
    NEXT.fetch_add(life::NUMBER, Ordering::Relaxed)
}
