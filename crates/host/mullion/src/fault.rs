//! Faults with the names that the image's debug information has for them.

use crate::symbols::ImageSymbols;
use mullion_runtime::{Cause, Registers};
use mullion_symbols::{Location, Plain};
use std::fmt;
use std::sync::Arc;

/// A call ended because of what the domain did.
///
/// The places are known at once; their names are looked up when somebody asks,
/// which takes milliseconds the first time for an image.
#[derive(Clone)]
pub struct Fault {
    domain: String,
    symbols: Arc<ImageSymbols>,
    raw: mullion_runtime::RawFault,
}

/// A place in the domain's code.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The address; of an outer frame, the one behind its call.
    pub address: u64,
    /// Its offset in the image, as `objdump` shows it; `None`: outside of the window.
    pub offset: Option<u64>,
    /// Where that is in the source, the innermost first where functions were
    /// inlined; empty if the image has no names for it.
    pub locations: Vec<Location>,
}

impl Fault {
    pub(crate) fn new(
        domain: &str,
        symbols: &Arc<ImageSymbols>,
        raw: mullion_runtime::RawFault,
    ) -> Self {
        Self {
            domain: domain.to_owned(),
            symbols: symbols.clone(),
            raw,
        }
    }

    /// The name of the domain.
    #[must_use]
    pub fn domain(&self) -> &str {
        &self.domain
    }

    /// What happened.
    #[must_use]
    pub fn cause(&self) -> &Cause {
        &self.raw.cause
    }

    /// The address that was accessed, if an access is to blame.
    #[must_use]
    pub fn address(&self) -> Option<u64> {
        self.raw.address
    }

    /// The general registers, unless the domain was in a host function.
    #[must_use]
    pub fn registers(&self) -> Option<&Registers> {
        self.raw.registers.as_ref()
    }

    /// Everything as the run time took it down.
    #[must_use]
    pub fn raw(&self) -> &mullion_runtime::RawFault {
        &self.raw
    }

    /// The function that the fault happened in, by the symbol table.
    #[must_use]
    pub fn symbol(&self) -> Option<Plain> {
        let offset = self.raw.offset(self.raw.instruction)?;
        self.symbols.with(|symbols| symbols.function_at(offset))
    }

    /// The innermost place in the source.
    #[must_use]
    pub fn location(&self) -> Option<Location> {
        self.place(self.raw.instruction, 0)
            .locations
            .into_iter()
            .next()
    }

    /// The instruction, and the calls that led to it, the innermost first.
    #[must_use]
    pub fn backtrace(&self) -> Vec<Frame> {
        let first = self.place(self.raw.instruction, 0);
        let rest = self.raw.backtrace.iter();
        // A return address is behind its call; the call is what is of interest.
        let rest = rest.map(|address| self.place(*address, 1));
        std::iter::once(first).chain(rest).collect()
    }

    /// One line for the log, and one for each frame. Names are looked up only if
    /// somebody listens.
    pub(crate) fn log(&self) {
        let domain = self.domain();
        if tracing::enabled!(target: "mullion::fault", tracing::Level::ERROR) {
            let place = self.location().unwrap_or_default();
            tracing::error!(target: "mullion::fault", domain, address = self.address(),
                "{}, in {place}", self.cause());
        }
        if tracing::enabled!(target: "mullion::fault", tracing::Level::INFO) {
            for frame in self.backtrace() {
                tracing::info!(target: "mullion::fault", domain, "  at {frame}");
            }
        }
    }

    fn place(&self, address: u64, behind: u64) -> Frame {
        let offset = self.raw.offset(address);
        let find = |offset: u64| {
            let offset = offset.saturating_sub(behind);
            self.symbols.with(|symbols| symbols.find(offset))
        };
        Frame {
            address,
            offset,
            locations: offset.map(find).unwrap_or_default(),
        }
    }
}

impl std::error::Error for Fault {}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "domain {}: {}", self.domain, self.raw)?;
        match self.location() {
            Some(location) => write!(formatter, ", in {location}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all = formatter.debug_struct("Fault");
        all.field("domain", &self.domain).field("raw", &self.raw);
        all.finish_non_exhaustive()
    }
}

impl fmt::Display for Frame {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.offset {
            Some(offset) => write!(formatter, "{offset:#x}")?,
            None => write!(formatter, "{:#x} (outside of the window)", self.address)?,
        }
        for (index, location) in self.locations.iter().enumerate() {
            let before = if index == 0 { " " } else { ", inlined into " };
            write!(formatter, "{before}{location}")?;
        }
        Ok(())
    }
}
