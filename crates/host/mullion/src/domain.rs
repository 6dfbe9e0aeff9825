//! Domains: an image in a window of its own, called, restarted, unloaded.

use crate::access::Access;
use crate::error::Error;
use crate::held;
use crate::identity::Identity;
use crate::image::Image;
use crate::output::Lines;
use crate::state::State;
use crate::terms::Terms;
use mullion_runtime::{CallArguments, Canceller, DomainNumber, Entry, Returned, Used, Using};
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A protection domain. Cheap to clone. Every clone is the same domain, which
/// goes when the last one (and the last [`Function`](crate::Function) of it) does, or earlier, when
/// it is unloaded.
///
/// It may be called from several threads at once, and while it is being called.
#[derive(Clone)]
pub struct Domain {
    core: Arc<Core>,
}

struct Core {
    identity: Arc<Identity>,
    lines: Arc<Lines>,
    /// Restarting and unloading are refused while it is used.
    state: Used<Option<State>>,
    number: DomainNumber,
    /// How long who finds it being restarted waits.
    start_wait: Duration,
    /// Of its limits.
    most_memory: u64,
}

impl Domain {
    pub(crate) fn new(identity: Arc<Identity>, lines: Arc<Lines>, state: State) -> Self {
        Self {
            core: Arc::new(Core {
                identity,
                lines,
                number: state.domain().number(),
                start_wait: state.domain().limits().start_wait,
                most_memory: state.domain().limits().memory,
                state: Used::new(Some(state)),
            }),
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.core.identity.name()
    }

    /// The image it came from.
    #[must_use]
    pub fn image(&self) -> &Image {
        self.core.identity.image()
    }

    /// What the host attached to it, if it is a `T`.
    #[must_use]
    pub fn user<T: Any>(&self) -> Option<&T> {
        self.core.identity.user()
    }

    /// Who it is.
    #[must_use]
    pub fn identity(&self) -> &Arc<Identity> {
        &self.core.identity
    }

    /// The address at which its window begins, the same for all its lives: 4 GiB-aligned. It is
    /// `BASE` in gdb's `add-symbol-file IMAGE -o BASE` (docs/debugging.md).
    #[must_use]
    pub fn base(&self) -> u64 {
        // A domain has its place before anybody has the domain.
        self.core.identity.place().map_or(0, |place| place.base)
    }

    /// Whether it has faulted or exited, and takes no calls until it is restarted.
    ///
    /// # Errors
    /// [`Error::Unloaded`]; [`Error::NotOpen`]: it is just being restarted.
    pub fn has_ended(&self) -> Result<bool, Error> {
        let guard = self.hold()?;
        Ok(guard.is_ended())
    }

    /// Bytes of its image and heap that it can use now.
    ///
    /// # Errors
    /// As [`Domain::has_ended`].
    pub fn memory_in_use(&self) -> Result<u64, Error> {
        let guard = self.hold()?;
        Ok(guard.memory().in_use())
    }

    /// Steps that it has left of [`Limits::steps`](crate::Limits::steps), as its own memory says;
    /// `None` without that limit.
    ///
    /// # Errors
    /// As [`Domain::has_ended`].
    pub fn steps_left(&self) -> Result<Option<u64>, Error> {
        let access = self.hold()?;
        Ok(access.domain()?.steps_left())
    }

    /// Gives it the state that it had when it was loaded, constructors run, in the
    /// same window and with its whole time.
    ///
    /// Functions of it stay good, and so do function pointers that it gave, since its
    /// code is where it was. Buffers are [`Error::Stale`]. Other pointers into it
    /// are numbers, as they were before: what they name now is the fresh domain's.
    ///
    /// # Errors
    /// [`Error::InUse`]: calls are in it, or slices of it are held, on this thread or another one. So it is while the
    /// things of a thread that ends are destroyed in it: `join` waits for that, and a scope of threads does not.
    /// [`Error::Unloaded`]: it was unloaded. In both cases it is as before.
    /// If a constructor ends as a call may end, that is the error. [`Error::Runtime`], [`Error::Load`]: the system has no
    /// memory left. In these cases it takes no calls until it is restarted again.
    pub fn restart(&self) -> Result<(), Error> {
        let core = &self.core;
        let mut slot = core.state.change().ok_or_else(|| self.in_use())?;
        let state = slot.as_mut().ok_or_else(|| self.unloaded())?;
        state.restart(&core.lines)?;
        drop(slot);
        tracing::info!(domain = self.name(), "restarted");
        Ok(())
    }

    /// As [`Domain::restart`], when nobody is in it any more, and `at_most` so long: for domains that
    /// several threads call. Until then it is closed: those that come wait, or are refused
    /// ([`Limits::start_wait`](crate::Limits::start_wait)); those that are in it go on, with all that
    /// they nest.
    ///
    /// # Errors
    /// As [`Domain::restart`]. It fails with [`Error::InUse`] if the domain is in use for so long, this thread is in
    /// it, or another one is restarting it. Then it is open as it was.
    pub fn restart_when_idle(&self, at_most: Duration) -> Result<(), Error> {
        let core = &self.core;
        if core.state.is_used_here() || mullion_runtime::is_inside(core.number) {
            return Err(self.in_use());
        }
        let closed = core.state.close().ok_or_else(|| self.in_use())?;
        let reopen = Reopened::new(self)?;
        let tried = mullion_runtime::until(at_most, || {
            let mut slot = closed.change()?;
            let Some(state) = slot.as_mut() else {
                return Some(Err(self.unloaded()));
            };
            match state.restart(&core.lines) {
                Err(Error::InUse { .. }) => None,
                tried => Some(tried),
            }
        });
        drop(reopen);
        tried.unwrap_or_else(|| Err(self.in_use()))?;
        tracing::info!(domain = self.name(), "restarted");
        Ok(())
    }

    /// Takes it out of memory. Every later use is [`Error::Unloaded`]. A call of another domain, by a link, or of a
    /// thread that ends, that is in it goes on until it returns. It keeps its window and host functions. Later calls
    /// are refused.
    ///
    /// # Errors
    /// [`Error::InUse`]: calls of the host are in it, or slices of it are held;
    /// [`Error::Unloaded`]: it was before.
    pub fn unload(&self) -> Result<(), Error> {
        let taken = self
            .core
            .state
            .change()
            .ok_or_else(|| self.in_use())?
            .take();
        if taken.is_none() {
            return Err(self.unloaded());
        }
        drop(taken);
        self.core.lines.finish(self.name());
        tracing::debug!(domain = self.name(), "unloaded");
        Ok(())
    }

    /// Whether anybody else has it: a clone, a function, or a call that runs.
    pub(crate) fn has_others(&self) -> bool {
        Arc::strong_count(&self.core) > 1
    }

    /// Bytes that it may have.
    pub(crate) fn most_memory(&self) -> u64 {
        self.core.most_memory
    }

    /// Keeps it in place, to be used. Inlined, as what is made of it: in memory a result
    /// would be written in parts and read as a whole, and that read waits for all of the
    /// writes, longer than the rest takes.
    #[expect(clippy::inline_always, reason = "as said")]
    #[inline(always)]
    pub(crate) fn hold(&self) -> Result<Access<'_>, Error> {
        let guard = match self.core.state.enter() {
            Some(guard) => guard,
            None => self.core.enter_later(&[])?,
        };
        match guard.is_some() {
            true => Ok(Access::held(guard, &self.core.identity)),
            false => Err(self.unloaded()),
        }
    }

    /// The usual call is straight on: what is not usual, or is written twice, would have its result in memory,
    /// where it is written in parts and read as a whole.
    pub(crate) fn call(
        &self,
        export: usize,
        arguments: &CallArguments,
        terms: Option<&Terms>,
    ) -> Result<Returned, Error> {
        if terms.is_some() || tracing::enabled!(target: "mullion::call", tracing::Level::TRACE) {
            return self.call_unusual(export, arguments, terms);
        }
        let guard = match self.core.state.enter() {
            Some(guard) => guard,
            None => self.core.enter_later(&[])?,
        };
        let (domain, entry) = self.entered(&guard, export)?;
        match held::invocation(|| domain.call(entry, arguments)) {
            Ok(returned) => Ok(returned),
            Err(error) => Err(self.core.identity.explain(*error)),
        }
    }

    /// As [`Domain::call`], of a function with limits or cancellers of its own, or while somebody listens.
    #[inline(never)]
    fn call_unusual(
        &self,
        export: usize,
        arguments: &CallArguments,
        terms: Option<&Terms>,
    ) -> Result<Returned, Error> {
        let guard = match self.core.state.enter() {
            Some(guard) => guard,
            None => self.core.enter_later(Terms::cancellers_of(terms))?,
        };
        let (domain, entry) = self.entered(&guard, export)?;
        let work = || match terms {
            None => domain.call(entry, arguments),
            Some(terms) => terms.call(domain, entry, arguments),
        };
        let call = || held::invocation(work);
        let called = match tracing::enabled!(target: "mullion::call", tracing::Level::TRACE) {
            false => call(),
            true => self.traced(export, call),
        };
        called.map_err(|error| self.core.identity.explain(*error))
    }

    /// The domain that is held, and where in it a call of an export begins.
    #[expect(clippy::inline_always, reason = "as `Domain::hold`")]
    #[inline(always)]
    fn entered<'a>(
        &self,
        guard: &'a Using<'_, Option<State>>,
        export: usize,
    ) -> Result<(&'a mullion_runtime::WindowDomain, Entry), Error> {
        let state = guard.as_ref().ok_or_else(|| self.unloaded())?;
        let entry = match state.known_entry(export) {
            Some(entry) => entry,
            None => state.entry(export, self.image())?,
        };
        Ok((state.domain(), entry))
    }

    /// Within a span, which whoever listens takes the time of.
    #[cold]
    fn traced<R>(&self, export: usize, call: impl FnOnce() -> R) -> R {
        let function = &self.image().file().exports()[export].name;
        let span =
            tracing::trace_span!(target: "mullion::call", "call", domain = self.name(), function);
        let _inside = span.enter();
        tracing::trace!(target: "mullion::call", domain = self.name(), function);
        call()
    }

    #[cold]
    fn in_use(&self) -> Error {
        Error::InUse {
            domain: self.name().to_owned(),
        }
    }

    #[cold]
    fn unloaded(&self) -> Error {
        Error::Unloaded {
            domain: self.name().to_owned(),
        }
    }
}

/// A domain closed to others by links too, until this is dropped.
struct Reopened<'a>(&'a Domain);

impl<'a> Reopened<'a> {
    fn new(domain: &'a Domain) -> Result<Self, Error> {
        let entered = domain.core.state.enter_closed();
        let state = entered.ok_or_else(|| domain.in_use())?;
        let state = state.as_ref().ok_or_else(|| domain.unloaded())?;
        // One that has ended is closed as it is.
        let _closed = state.domain().close();
        Ok(Self(domain))
    }
}

impl Drop for Reopened<'_> {
    fn drop(&mut self) {
        if let Some(state) = self.0.core.state.enter_closed().as_deref()
            && let Some(state) = state
        {
            state.domain().reopen();
        }
    }
}

impl Core {
    /// For who has found that it is being restarted or unloaded, or is about to be.
    #[cold]
    #[inline(never)]
    fn enter_later(&self, cancellers: &[Canceller]) -> Result<Using<'_, Option<State>>, Error> {
        let is_cancelled = || cancellers.iter().any(Canceller::is_cancelled);
        // A thread that is in a call of it is waited for, and need not wait.
        let entered = match mullion_runtime::is_inside(self.number) {
            true => self.state.enter_closed(),
            false if self.start_wait.is_zero() => None,
            false => self.state.enter_within(self.start_wait, is_cancelled),
        };
        entered.ok_or_else(|| {
            let domain = self.identity.name().to_owned();
            match is_cancelled() {
                true => Error::Cancelled {
                    domain,
                    fault: None,
                },
                false => Error::NotOpen { domain },
            }
        })
    }
}

impl fmt::Debug for Domain {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Domain({})", self.name())
    }
}
