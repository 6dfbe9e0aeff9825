//! A domain in its window: what becomes new when it is restarted.

use crate::context::Context;
use crate::error::{Error, explain_load};
use crate::heap::Heap;
use crate::held;
use crate::image::Image;
use crate::output::Lines;
use mullion_loader::{Instance, LoadError, Start};
use mullion_runtime::{AroundThreadEnd, CallArguments, Claimed, Entry};
use mullion_system::System;
use std::sync::{Arc, OnceLock};

/// A domain in its window.
pub(crate) struct State {
    instance: Instance,
    context: Arc<Context>,
    system: Option<Arc<System>>,
    /// Of the exports, in the order of the image; filled as they are called.
    entries: Box<[OnceLock<Entry>]>,
}

impl State {
    /// A domain of which nothing has run yet.
    pub(crate) fn new(
        instance: Instance,
        context: Arc<Context>,
        system: Option<Arc<System>>,
    ) -> Self {
        let identity = context.identity.clone();
        let around: AroundThreadEnd = Arc::new(move |call| {
            if let Err(error) = held::invocation(call) {
                let error = identity.explain(error);
                // A fault has been logged.
                if error.fault().is_none() {
                    tracing::warn!(domain = identity.name(), "at a thread's end: {error}");
                }
            }
        });
        instance.domain().around_thread_end(around);
        Self {
            entries: entries(&context),
            instance,
            context,
            system,
        }
    }

    /// Where the first call of a life enters, and with what.
    pub(crate) fn begin(&self, start: &Start) -> Result<(Entry, CallArguments), LoadError> {
        self.instance.begin(start)
    }

    /// Runs the constructors, and opens the domain to others.
    pub(crate) fn start(&self) -> Result<(), Error> {
        let identity = &self.context.identity;
        let begun = self.begin(&Start::extension(identity.name()));
        let (entry, arguments) = begun.map_err(explain_load)?;
        let called = held::invocation(|| self.domain().start(entry, &arguments));
        called.map_err(|error| identity.explain(*error))?;
        Ok(())
    }

    pub(crate) fn restart(&mut self, lines: &Lines) -> Result<(), Error> {
        let restarted = self.instance.restart();
        if let Err(mullion_runtime::Error::Busy) = restarted {
            let domain = self.context.identity.name().to_owned();
            return Err(Error::InUse { domain });
        }
        // What was begun by the one before is not this one's.
        lines.finish(self.context.identity.name());
        self.context.heap.reset();
        self.entries = entries(&self.context);
        if let Some(system) = &self.system {
            system.reset();
        }
        restarted?;
        // A domain whose constructors do not return has ended; so has one that cannot begin them.
        self.start().inspect_err(|_| self.domain().end())
    }

    /// Where an export is entered, if somebody has looked for it.
    #[expect(clippy::inline_always, reason = "as `Domain::hold`")]
    #[inline(always)]
    pub(crate) fn known_entry(&self, export: usize) -> Option<Entry> {
        self.entries[export].get().copied()
    }

    #[inline]
    pub(crate) fn domain(&self) -> &mullion_runtime::WindowDomain {
        self.instance.domain()
    }

    #[inline]
    pub(crate) fn heap(&self) -> &Arc<Heap> {
        &self.context.heap
    }

    /// Where an export is entered.
    #[inline]
    pub(crate) fn entry(&self, export: usize, image: &Image) -> Result<Entry, Error> {
        if let Some(entry) = self.entries[export].get() {
            return Ok(*entry);
        }
        let address = self.domain().memory().base() + image.offset_of(export);
        let entry = self.domain().entry(Claimed(address))?;
        Ok(*self.entries[export].get_or_init(|| entry))
    }
}

/// Nobody has looked for any export yet.
fn entries(context: &Context) -> Box<[OnceLock<Entry>]> {
    let exports = context.identity.image().file().exports();
    exports.iter().map(|_| OnceLock::new()).collect()
}
