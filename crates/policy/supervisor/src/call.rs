//! Changes that are asked about, made elsewhere and then committed.

pub use mullion_refusal::call::{Call, Reply};
use mullion_terms::permission::{Level, Permission};
use mullion_terms::range::Range;
use mullion_terms::subject::Subject;

/// A call that sets permissions, for [`Supervisor::change_after`](crate::supervisor::Supervisor::change_after).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(
    missing_docs,
    reason = "the fields are the parameters of the methods, described there"
)]
pub enum Change {
    /// [`Call::Mprot`].
    Own {
        range: Range,
        permission: Permission,
    },
    /// [`Call::MprotExport`].
    Export {
        target: Subject,
        range: Range,
        permission: Permission,
        export: Level,
    },
}

impl Change {
    /// The words that it is about.
    #[must_use]
    pub fn range(self) -> Range {
        match self {
            Self::Own { range, .. } | Self::Export { range, .. } => range,
        }
    }

    /// Whether it can only take something away.
    #[must_use]
    pub fn is_taking(self) -> bool {
        let (Self::Own { permission, .. } | Self::Export { permission, .. }) = self;
        permission == Permission::None
    }

    /// The call that it is.
    #[must_use]
    pub fn call(self) -> Call {
        match self {
            Self::Own { range, permission } => Call::Mprot { range, permission },
            Self::Export {
                target,
                range,
                permission,
                export,
            } => Call::MprotExport {
                target,
                range,
                permission,
                export,
            },
        }
    }
}
