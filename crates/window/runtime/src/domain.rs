//! Domains: an image in a window, with its memory, stacks and imports.

use crate::call::{AroundThreadEnd, CallArguments, Entry, Returned};
use crate::cancel::{self, Canceller};
use crate::host_function::HostFunction;
use crate::image::ImageLayout;
use crate::import::{Link, LinkOptions, Linked};
use crate::inner::Inner;
use crate::life::NotTaken;
use crate::limits::{CallLimits, Limits};
use crate::memory::{Claimed, Memory};
use crate::number::DomainNumber;
use crate::{news, runtime, signals, steps};
use mullion_report::error::Error;
use mullion_report::meter::Meter;
use mullion_report::refused::CallError;
use std::sync::Arc;
use std::time::Duration;

/// A protection domain: it can be called, from several threads at once.
#[derive(Debug)]
pub struct WindowDomain {
    inner: Arc<Inner>,
}

impl WindowDomain {
    /// A new domain of `image`: `imports` in the order of the image's own list. Its host
    /// may call it at once; other domains, and threads that end, once it is open: by
    /// [`WindowDomain::start`], or [`WindowDomain::open`] if it has no constructors.
    pub fn new(
        image: Arc<ImageLayout>,
        imports: Vec<HostFunction>,
        limits: Limits,
    ) -> Result<Self, Error> {
        runtime::get()?;
        signals::install_faults()?;
        let inner = Inner::new(image, imports, limits)?;
        Ok(Self { inner })
    }

    /// Its number.
    #[must_use]
    pub fn number(&self) -> DomainNumber {
        self.inner.number
    }

    /// Its number in the supervisor's records ([`crate::snapshot`]).
    #[must_use]
    pub fn recorded_as(&self) -> mullion_supervisor::DomainId {
        self.inner.memory().record().id
    }

    /// Its memory.
    #[inline]
    #[must_use]
    pub fn memory(&self) -> &Memory {
        self.inner.memory()
    }

    /// What counts its calls, faults, restarts and memory, over all its lives; it may be read when
    /// the domain is in use, or gone.
    #[must_use]
    pub fn meter(&self) -> &Arc<Meter> {
        &self.inner.meter
    }

    /// Steps that the domain has left of [`Limits::steps`](crate::Limits::steps), as its own memory
    /// says. `None` without that limit.
    #[must_use]
    pub fn steps_left(&self) -> Option<u64> {
        let inner = &self.inner;
        steps::left(inner.limits(), inner.image(), inner.memory())
    }

    /// Its limits.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        self.inner.limits()
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
    /// As [`WindowDomain::call`]; [`Error::NotOpen`]: it was started before.
    ///
    /// # Panics
    /// As [`WindowDomain::call`].
    pub fn start(
        &self,
        entry: Entry,
        arguments: &CallArguments,
    ) -> Result<Returned, Box<CallError>> {
        let inner = &*self.inner;
        if entry.serial != inner.serial() {
            return Err(Error::WrongDomain.into());
        }
        if !inner.life.start() {
            return Err(Error::NotOpen.into());
        }
        // However the constructors end, by a panic of a host function too.
        let ended = EndedUnlessOpen(inner);
        let returned = inner.construct(entry, arguments)?;
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
    /// in it go on, with all that they nest. Whether it was open: until [`WindowDomain::reopen`]
    /// or [`WindowDomain::restart`], then.
    #[must_use]
    pub fn close(&self) -> bool {
        self.inner.life.close()
    }

    /// Opens it again, as it was; not if it has ended meanwhile.
    pub fn reopen(&self) {
        self.inner.life.reopen();
        news::tell();
    }

    /// Calls a function of the domain and waits until it returns. (The error is in a box, so that the result
    /// can be in registers.)
    ///
    /// # Panics
    /// With the panic of a host function that the domain called.
    #[expect(
        clippy::inline_always,
        reason = "its result stays in registers: see there"
    )]
    #[inline(always)]
    pub fn call(
        &self,
        entry: Entry,
        arguments: &CallArguments,
    ) -> Result<Returned, Box<CallError>> {
        self.inner.call(entry, arguments, None)
    }

    /// As [`WindowDomain::call`], with limits of its own beside the domain's.
    ///
    /// # Panics
    /// As [`WindowDomain::call`].
    pub fn call_limited(
        &self,
        entry: Entry,
        arguments: &CallArguments,
        limits: &CallLimits,
    ) -> Result<Returned, Box<CallError>> {
        self.inner.call(entry, arguments, Some(limits))
    }

    /// As [`WindowDomain::call`], with limits of its own if there are any, as long as none of the cancellers
    /// is told to cancel.
    /// Cancelled, it ends by a fault, [`Cause::Cancelled`](crate::Cause::Cancelled), and the domain with
    /// it; or it is not made ([`Error::Cancelled`]). What it calls of other domains ends likewise.
    ///
    /// # Panics
    /// As [`WindowDomain::call`].
    pub fn call_cancellable(
        &self,
        entry: Entry,
        arguments: &CallArguments,
        limits: Option<&CallLimits>,
        cancellers: &[Canceller],
    ) -> Result<Returned, Box<CallError>> {
        let mut call = || self.inner.call(entry, arguments, limits);
        cancel::over(cancellers, &mut call)
    }

    /// From now on every thread calls `entry` before its first call of this domain, with the number of its
    /// data stack (from 0) as the argument. There the domain sets up what belongs to the thread, its thread
    /// pointer above all. If it returns a negative error number (-4095 to -1), the thread's call is not made
    /// ([`Error::ThreadStart`]). Until the domain is restarted.
    ///
    /// # Errors
    /// [`Error::WrongDomain`].
    pub fn set_thread_start(&self, entry: Entry) -> Result<(), Error> {
        if entry.serial != self.inner.serial() {
            return Err(Error::WrongDomain);
        }
        self.inner.set_thread_start(entry.address);
        Ok(())
    }

    /// Has `around` make the calls of a domain at the ends of threads
    /// ([`ImageLayout::with_thread_end`]), and see what comes of them: nobody else is told. Only
    /// the first one counts; it stays over restarts. Without it these calls are made, too.
    pub fn around_thread_end(&self, around: AroundThreadEnd) {
        self.inner.set_around_thread_end(around);
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
        callee: &WindowDomain,
        entry: Entry,
        options: LinkOptions,
    ) -> Result<(), Error> {
        if entry.serial != callee.inner.serial() {
            return Err(Error::WrongDomain);
        }
        let place = self.inner.imports().get(import);
        let place = place.ok_or(Error::NoImport { import })?;
        let link = Link::new(callee.inner.this(), callee.number(), entry.address, options);
        let (caller, callee) = (self.inner.memory().record(), callee.inner.memory().record());
        callee.link_after(caller, entry.address, |decided| place.link(link, decided))
    }

    /// The imports that are other domains' functions: with [`WindowDomain::number`] of
    /// all domains, the graph of who calls whom.
    #[must_use]
    pub fn links(&self) -> Vec<Linked> {
        let imports = self.inner.imports().iter().enumerate();
        imports
            .filter_map(|(index, import)| import.linked(index))
            .collect()
    }

    /// Gives the domain the state that it had when it was new, in the same
    /// window, with its whole time. Entries made before are void. It is to be started or
    /// opened again.
    ///
    /// # Errors
    /// [`Error::Busy`] while another domain's call is in it, or that of a thread that ends.
    /// Then it is as it was, and no call has seen anything of it. Others, which the kernel
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

impl WindowDomain {
    /// As [`WindowDomain::restart`], when the calls that are in it have left, and `at_most` so long:
    /// meanwhile others wait or are refused ([`Limits::start_wait`]).
    ///
    /// # Errors
    /// As [`WindowDomain::restart`]. If it is busy for so long, it is open again as it was.
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

impl Drop for WindowDomain {
    /// Calls that other domains make are refused from now on; one in flight keeps
    /// the window until it returns.
    fn drop(&mut self) {
        self.inner.life.leave();
        self.inner.meter.set_ended(true);
        news::tell();
    }
}
