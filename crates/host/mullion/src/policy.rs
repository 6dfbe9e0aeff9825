//! The host's own say: the component that decides who may load, call and share (the
//! segmentation paper, section 2.3). It is asked before anything changes; what it
//! allows, `crates/window/runtime` does.

use crate::error::BoxedError;
use crate::identity::Identity;
use crate::shared::Shared;
use mullion_runtime::Access as Permission;
use std::fmt;
use std::ops::Range;
use std::path::Path;

/// A host's own say: in which images may be loaded, beside the
/// [`Authoriser`](crate::Authoriser), and in which domain may have what of others.
///
/// That an image cannot leave its window is the verifier's matter, and not asked
/// here. Whether its author is trusted with what this host offers is.
pub trait Policy: Send + Sync {
    /// Whether `candidate` may be loaded; the error says why not.
    ///
    /// # Errors
    /// The policy's reason.
    fn admit(&self, candidate: &Candidate<'_>) -> Result<(), BoxedError>;

    /// Whether a domain may have what it, another one or the host wants it to have. That is an
    /// entry point to call, asked once for each link, or pages, asked for each grant. Unless it is
    /// implemented: [`Question::host_alone`].
    ///
    /// # Errors
    /// The policy's reason.
    fn allow(&self, question: &Question<'_>) -> Result<(), BoxedError> {
        question.host_alone()
    }
}

/// An image that the authoriser admits and that asks to be loaded.
#[derive(Debug)]
pub struct Candidate<'a> {
    /// The name that it will have.
    pub name: &'a str,
    /// The file it was read from; `None`: its bytes were given.
    pub path: Option<&'a Path>,
    /// What the file says of itself: its bytes, imports and exports.
    pub file: &'a mullion_verifier::Image,
}

/// May a domain have this? `Display` says it in words.
#[derive(Debug)]
pub struct Question<'a> {
    /// On whose behalf; `None`: the host's own.
    pub asker: Option<&'a Identity>,
    /// Who would call, or have the pages.
    pub domain: &'a Identity,
    /// What it would have.
    pub wish: Wish<'a>,
}

/// What a domain may be given of another one, or of the host.
#[derive(Debug)]
pub enum Wish<'a> {
    /// To call an entry point.
    Call {
        /// Whose.
        callee: &'a Identity,
        /// The export that is entered.
        export: &'a str,
    },
    /// Pages of shared memory; [`Permission::None`] takes them away.
    Pages {
        /// Of which memory.
        shared: &'a Shared,
        /// Which bytes of it.
        bytes: Range<u64>,
        /// For what.
        permission: Permission,
    },
}

impl Question<'_> {
    /// The answer of a host without policy: what the host does by itself is allowed, and
    /// nothing that domains ask for.
    ///
    /// # Errors
    /// A domain asks.
    pub fn host_alone(&self) -> Result<(), BoxedError> {
        match self.asker {
            None => Ok(()),
            Some(_) => Err(
                "this host does what it does by itself, and nothing that domains ask for".into(),
            ),
        }
    }
}

impl fmt::Display for Question<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let domain = self.domain.name();
        match &self.wish {
            Wish::Call { callee, export } => {
                write!(
                    formatter,
                    "let {domain} call `{export}` of {}",
                    callee.name()
                )
            }
            Wish::Pages {
                shared,
                bytes,
                permission,
            } => write!(
                formatter,
                "give {domain} the bytes {:#x} to {:#x} of {} as {permission:?}",
                bytes.start,
                bytes.end,
                shared.name()
            ),
        }
    }
}
