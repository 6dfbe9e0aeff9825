//! Who decides what is loaded: the authoriser of `mullion-loader`, or, without the feature `trust`,
//! the verifier alone. Both have the same names here.

#[cfg(not(feature = "trust"))]
pub(crate) use alone::{Asked, Authoriser, NotAdmitted};
#[cfg(feature = "trust")]
pub(crate) use mullion_loader::{Asked, Authoriser, NotAdmitted};

#[cfg(not(feature = "trust"))]
mod alone {
    use mullion_loader::Admitted;
    use mullion_verifier::{Rejected, verify};
    use std::marker::PhantomData;
    use std::sync::Arc;

    /// Nothing: nobody is asked.
    #[derive(Default)]
    pub(crate) struct Asked<'a>(PhantomData<&'a ()>);

    pub(crate) enum NotAdmitted {
        Rejected(Rejected),
    }

    pub(crate) struct Authoriser;

    impl Authoriser {
        pub(crate) fn trusting_everyone() -> Self {
            Authoriser
        }

        pub(crate) fn has_policy(&self) -> bool {
            false
        }

        pub(crate) fn admit(
            &self,
            bytes: impl Into<Arc<[u8]>>,
            _: &Asked<'_>,
        ) -> Result<Admitted, NotAdmitted> {
            let verified = verify(bytes).map_err(NotAdmitted::Rejected)?;
            Ok(Admitted::trusting_everyone(verified))
        }
    }
}
