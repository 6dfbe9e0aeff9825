//! Machine code in, evidence of confinement or the first violations out.
//!
//! [`verify`] checks a whole image against `docs/window.md` in one linear pass.
//! What it accepts is a [`Verified`], which cannot be made in any other way and
//! owns the bytes that were checked. So nobody can change them afterwards.
//!
//! ```text
//! file -> crates/window/image  what it says of itself    -+
//!         image.rs    of which what is relied on, checked |  any violation:
//!         code.rs     every instruction (fast_path.rs,    |  Rejected
//!                     and crates/window/decoder), what is |
//!                     known between them (line.rs), stray |
//!                     labels                             -+-> none: Verified
//! ```
//!
//! Nothing here relies on the rewriter, the assembler or the linker, and nothing
//! panics, whatever the input.
#![forbid(unsafe_code)]
#![deny(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

mod code;
mod fast_path;
#[cfg(test)]
#[allow(clippy::indexing_slicing, clippy::panic, reason = "a test")]
mod fast_path_tests;
mod image;
mod line;
#[cfg(test)]
#[allow(
    clippy::indexing_slicing,
    clippy::expect_used,
    clippy::panic,
    reason = "a test"
)]
mod processor_tests;
mod stats;

pub use image::Image;
pub use mullion_image::{Export, ImageKind, Outline, Permission, Relocation, Segment, TlsTemplate};
pub use mullion_rules::{Place, Rule, UnknownRule, Violation};
pub use stats::Stats;

/// Collects violations.
type Report = mullion_decoder::Report<Violation>;

use std::ops::Deref;
use std::sync::Arc;

/// Bytes that [`verify`] takes for a file of so many, the file's own included. That is three bits for each byte of
/// code, which may be all of it. The names of imports and exports come to it: 6 MiB for as many as there may be.
#[must_use]
pub const fn memory_for(file: u64) -> u64 {
    file.saturating_add(file.div_ceil(64).saturating_mul(24))
}

/// Number of violations that [`verify`] reports at most.
pub const DEFAULT_LIMIT: usize = 100;

/// An image that keeps to every rule. Dereferences to the [`Image`]. Its segments lie as a window has it, and their
/// code is confined as its protection says. Each of its imports has a slot.
#[derive(Clone, Debug)]
pub struct Verified {
    image: Image,
    stats: Stats,
}

impl Verified {
    /// What was counted on the way.
    #[must_use]
    pub const fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Whether the `%gs` base must be the window's whenever this code runs. With another domain's, or
    /// an old one, a label check would look at other memory than the branch goes to.
    ///
    /// Without such an access nothing in the code can tell what the base is.
    #[must_use]
    pub const fn needs_gs_base(&self) -> bool {
        self.stats.gs > 0
    }
}

impl Deref for Verified {
    type Target = Image;

    fn deref(&self) -> &Image {
        &self.image
    }
}

/// Why an image is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the image breaks {} rule{}{}, the first at {}",
    violations.len(), if violations.len() == 1 { "" } else { "s" }, if *truncated { " or more" } else { "" },
    violations.first().map(ToString::to_string).unwrap_or_default())]
pub struct Rejected {
    /// The first violations: those of the file's structure, then those of the code by address.
    pub violations: Vec<Violation>,
    /// There are more.
    pub truncated: bool,
}

/// Everything that can be said about a file, whether it verifies or not.
#[derive(Clone, Debug)]
pub struct Survey {
    /// What the file says of itself, as far as it could be read. Not evidence.
    pub image: Option<Image>,
    /// What was counted; incomplete where code could not be decoded.
    pub stats: Stats,
    /// The first violations: those of the file's structure, then those of the code by address.
    pub violations: Vec<Violation>,
    /// There are more.
    pub truncated: bool,
}

impl Survey {
    /// Whether [`verify`] accepts the file. Only a [`Verified`] is evidence.
    #[must_use]
    pub fn is_verified(&self) -> bool {
        self.image.is_some() && self.violations.is_empty() && !self.truncated
    }
}

/// Checks an image file.
///
/// # Errors
/// [`Rejected`] with at most [`DEFAULT_LIMIT`] violations, if any rule is broken.
pub fn verify(bytes: impl Into<Arc<[u8]>>) -> Result<Verified, Rejected> {
    let survey = survey(bytes, DEFAULT_LIMIT);
    let verified = survey.is_verified();
    match survey.image {
        Some(image) if verified => Ok(Verified {
            image,
            stats: survey.stats,
        }),
        _ => Err(Rejected {
            violations: survey.violations,
            truncated: survey.truncated,
        }),
    }
}

/// Reads an image whose code is not to be checked, because somebody else answers
/// for it. The file's structure is as [`verify`] demands, its instructions may
/// be anything. No evidence of confinement.
///
/// # Errors
/// [`Rejected`] with at most [`DEFAULT_LIMIT`] violations of the structure's rules.
pub fn structure(bytes: impl Into<Arc<[u8]>>) -> Result<Image, Rejected> {
    let mut report = Report::new(DEFAULT_LIMIT);
    let image = Image::read(bytes.into(), &mut report);
    let (violations, truncated) = report.finish();
    match image {
        Some(image) if violations.is_empty() && !truncated => Ok(image),
        _ => Err(Rejected {
            violations,
            truncated,
        }),
    }
}

/// Describes an image file, and reports at most `limit` violations.
#[must_use]
pub fn survey(bytes: impl Into<Arc<[u8]>>, limit: usize) -> Survey {
    let mut report = Report::new(limit);
    let image = Image::read(bytes.into(), &mut report);
    let stats = image
        .as_ref()
        .map(|image| code::check(image, &mut report))
        .unwrap_or_default();
    let (violations, truncated) = report.finish();
    Survey {
        image,
        stats,
        violations,
        truncated,
    }
}

/// The classes of instructions that are allowed, each with the reason.
pub fn instruction_classes() -> impl Iterator<Item = (&'static str, &'static str)> {
    mullion_decoder::table::GROUPS
        .iter()
        .map(|group| (group.class, group.reason))
}
