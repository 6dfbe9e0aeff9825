//! A domain as gates, threads and other domains find it.

use crate::account::Account;
use crate::call::{AroundThreadEnd, Entry, NotReturned};
use crate::clock::Clock;
use crate::host_function::HostFunction;
use crate::image::{ImageLayout, Parked};
use crate::import::Import;
use crate::life::Life;
use crate::limits::Limits;
use crate::memory::{Claimed, Memory};
use crate::number::{self, DomainNumber};
use crate::records::Record;
use crate::stacks::Stacks;
use crate::{news, steps};
use mullion_abi::LABEL;
use mullion_report::error::Error;
use mullion_report::meter::Meter;
use mullion_report::refused::CallEnd;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

/// What gates find a domain by. It does not move while calls are in flight. What
/// calls need is in its first cache line.
#[repr(C, align(64))]
pub(crate) struct Inner {
    /// What the image's instructions can do with floating-point control
    /// (`assembly::uses`); the trampolines read it.
    pub(crate) uses: u32,
    /// Whether invocations are limited in time, gate calls or control stack.
    pub(crate) is_limited: bool,
    /// The window's base.
    pub(crate) window: u64,
    /// What it is at, and the number of this life. Entries and leases carry the number.
    pub(crate) life: Life,
    /// Nanoseconds for each call by the clock, if that is the only limit that calls have.
    pub(crate) only_time: Option<NonZeroU64>,
    imports: Vec<Import<Inner>>,
    // So far, one line.
    pub(crate) number: DomainNumber,
    memory: Memory,
    stacks: Mutex<Arc<Stacks>>,
    image: Arc<ImageLayout>,
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

impl Drop for Inner {
    /// Its window, reset, waits for the next domain of the image, if not enough do.
    fn drop(&mut self) {
        let stacks = self.stacks().mapped();
        let enough = self.image.has_enough();
        let Some((window, as_new)) = self.memory.end(&self.image, !enough) else {
            return;
        };
        // Of mappings that are short nothing waits.
        if as_new && stacks.clear(window.window()).is_ok() {
            self.image.park(Parked {
                window,
                stacks,
                is_fresh: false,
            });
        }
    }
}

impl Inner {
    /// A domain of `image` in a window: with its record, memory and stacks.
    pub(crate) fn new(
        image: Arc<ImageLayout>,
        imports: Vec<HostFunction>,
        limits: Limits,
    ) -> Result<Arc<Self>, Error> {
        let (needed, limit) = (image.regions().accessible(), limits.memory);
        if needed > limit {
            return Err(Error::Memory { needed, limit });
        }
        let (needed, limit) = (image.regions().mappings(), limits.mappings);
        if needed > limit {
            return Err(Error::Mappings { needed, limit });
        }
        let Parked {
            window,
            stacks: mapped,
            is_fresh,
        } = image.window()?;
        let size = Stacks::mapped_size(limits.stack);
        let mut wanted = Record::first(image.regions(), image.end());
        wanted.extend(mapped.wanted(size));
        let mut stacks = mapped;
        let record = Record::new(window, &wanted, |window, decided| {
            stacks.resize(window, decided, size)
        });
        let record = record.map_err(|(window, error)| {
            if !is_fresh {
                let stacks = mapped;
                image.park(Parked {
                    window,
                    stacks,
                    is_fresh,
                });
            }
            error
        })?;
        let stacks = Stacks::new(limits.threads, limits.stack, stacks);
        let number = number::next_life();
        let base = record.window().base();
        let meter = Meter::new(limits.memory, limits.measured.is_some());
        let memory = Memory::new(
            record,
            &image,
            limits.memory,
            limits.mappings,
            meter.clone(),
        );
        let is_limited = limits.has_time() || limits.has_others();
        let inner = Arc::new_cyclic(|this| Self {
            uses: image.uses(),
            is_limited,
            only_time: limits.only_time(),
            window: base,
            life: Life::new(number, is_limited),
            imports: imports.into_iter().map(Import::new).collect(),
            number: number::of_domain(number),
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
        Ok(inner)
    }

    fn grant_steps(&self) -> Result<(), Error> {
        steps::grant(&self.limits, &self.image, &self.memory)
    }

    /// Nobody is in the domain, and nobody comes, as its life is taken.
    pub(crate) fn restart(&self) -> Result<(), Error> {
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
        match self.life.renew(number::next_life()) {
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

    pub(crate) fn image(&self) -> &ImageLayout {
        &self.image
    }

    #[inline]
    pub(crate) fn imports(&self) -> &[Import<Self>] {
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

    /// What calls the domain at the ends of threads. Only the first one counts.
    pub(crate) fn set_around_thread_end(&self, around: AroundThreadEnd) {
        self.around_thread_end.get_or_init(|| around);
    }

    pub(crate) fn around_thread_end(&self) -> Option<&AroundThreadEnd> {
        self.around_thread_end.get()
    }

    /// Who wants to call it later, when it may be gone.
    pub(crate) fn this(&self) -> Weak<Self> {
        self.this.clone()
    }

    pub(crate) fn set_thread_start(&self, address: u64) {
        self.thread_start.store(address, Ordering::Relaxed);
    }

    pub(crate) fn thread_start(&self) -> u64 {
        self.thread_start.load(Ordering::Relaxed)
    }

    /// A call that is not made, counted.
    #[cold]
    pub(crate) fn not_made(&self, error: Error) -> NotReturned {
        self.meter.not_made(&error);
        error.into()
    }

    /// The domain takes no calls from now on.
    pub(crate) fn end(&self) {
        self.life.end();
        self.meter.set_ended(true);
        news::tell();
    }

    /// Counts output.
    pub(crate) fn charge_output(&self, bytes: u64) -> Result<(), CallEnd> {
        let Some(granted) = self.limits.output else {
            return Ok(());
        };
        // What is refused is not counted.
        let more = |written: u64| written.checked_add(bytes).filter(|all| *all <= granted);
        let counted = self
            .written
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        counted.map_or(Err(CallEnd::OutputLimit { granted }), |_| Ok(()))
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
