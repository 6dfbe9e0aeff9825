//! Evidence that an image may be loaded.

#[cfg(feature = "trust")]
use mullion_decide::Decision;
use mullion_runtime::{FloatingPoint, PAGE};
use mullion_verifier::{Image, Verified};
#[cfg(feature = "trust")]
use std::sync::Arc;

/// An image that may be loaded, and leave to do so. Only the authoriser makes one
/// (`Authoriser::admit`, in the feature `trust`), and a host that says by name that everyone is
/// trusted.
#[derive(Clone, Debug)]
pub struct Admitted {
    pub(crate) code: Code,
    #[cfg(feature = "trust")]
    decision: Option<Arc<Decision>>,
}

/// An image, and who answers for its code.
#[derive(Clone, Debug)]
pub(crate) enum Code {
    /// The verifier.
    Verified(Verified),
    /// The compiler, whom type and policy trust: the code may leave its window.
    #[cfg(feature = "trust")]
    Unverified(Image),
}

impl Code {
    pub(crate) fn image(&self) -> &Image {
        match self {
            Code::Verified(verified) => verified,
            #[cfg(feature = "trust")]
            Code::Unverified(image) => image,
        }
    }
}

impl Admitted {
    /// Leave from a host that asks nobody: what the verifier accepts may be
    /// loaded, with the limits that the host gives.
    #[must_use]
    pub fn trusting_everyone(verified: Verified) -> Self {
        Admitted {
            code: Code::Verified(verified),
            #[cfg(feature = "trust")]
            decision: None,
        }
    }

    /// Leave from a policy.
    #[cfg(feature = "trust")]
    pub(crate) fn decided(code: Code, decision: Decision) -> Self {
        Admitted {
            code,
            decision: Some(Arc::new(decision)),
        }
    }

    /// What was decided; `None` if nobody was asked.
    #[cfg(feature = "trust")]
    #[must_use]
    pub fn decision(&self) -> Option<&Decision> {
        self.decision.as_deref()
    }

    /// What the file says of itself: checked, its instructions only if
    /// [`Admitted::is_verified`].
    #[must_use]
    pub fn image(&self) -> &Image {
        self.code.image()
    }

    /// Bytes of memory that a domain has mapped of the image at first: they count against its
    /// limit.
    #[must_use]
    pub fn occupied(&self) -> u64 {
        let sizes = self.image().segments().iter();
        sizes
            .map(|segment| segment.size.next_multiple_of(PAGE))
            .sum()
    }

    /// Bytes that the image takes in the host beside its domains, loaded: the file, the copy that
    /// domains map, and its relocations. No more than three times the file.
    #[must_use]
    pub fn footprint(&self) -> u64 {
        let image = self.image();
        let copies = image.segments().iter();
        let copies: u64 = copies
            .map(|segment| (image.contents(segment).len() as u64).next_multiple_of(PAGE))
            .sum();
        let file = image.bytes().len() as u64;
        file + copies + image.relocation_tables() as u64
    }

    /// Whether the verifier has accepted every instruction.
    #[must_use]
    pub fn is_verified(&self) -> bool {
        matches!(self.code, Code::Verified(_))
    }

    /// Whether the code may access memory through `%gs`: as the verifier says, or anything, if
    /// none has looked.
    pub(crate) fn uses_gs(&self) -> bool {
        match &self.code {
            Code::Verified(verified) => verified.needs_gs_base(),
            #[cfg(feature = "trust")]
            Code::Unverified(_) => true,
        }
    }

    /// What the code can do with floating-point control: anything, if no verifier
    /// has looked.
    pub(crate) fn floating_point(&self) -> FloatingPoint {
        match &self.code {
            Code::Verified(verified) => FloatingPoint {
                x87: verified.stats().x87,
                mxcsr: verified.stats().mxcsr,
            },
            #[cfg(feature = "trust")]
            Code::Unverified(_) => FloatingPoint {
                x87: true,
                mxcsr: true,
            },
        }
    }
}
