//! One domain calls another one, without the host in between.

use crate::callee::Callee;
use crate::domain::Domain;
use crate::error::Error;
use crate::identity::{self, Identity};
use crate::policy::{Question, Wish};
use std::sync::Arc;

/// A link of a domain, as [`Domain::links`] lists them: all of them are the graph of
/// who calls whom.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Link {
    /// The import that it stands behind.
    pub import: String,
    /// Who is called; `None` if that domain has gone.
    pub callee: Option<Arc<Identity>>,
    /// The export that is called; `None` as above.
    pub export: Option<String>,
    /// Calls so far; on several threads at once some may not be counted.
    pub calls: u64,
}

impl Domain {
    /// Puts a function of another domain behind an import of this one, which was named by
    /// [`Imports::link_later`](crate::Imports::link_later). This is for domains that call each
    /// other, or that are to call what is loaded later. `asker` is the domain on whose behalf that
    /// is done; `None`: the host wants it so. It holds while both domains live, over restarts.
    ///
    /// # Errors
    /// [`Error::NotAllowed`]: the policy of the called one's host; [`Error::NoImport`];
    /// [`Error::Linked`]: it is linked already; [`Error::Unloaded`], [`Error::NotOpen`], of either.
    pub fn link(
        &self,
        asker: Option<&Identity>,
        import: &str,
        callee: impl Into<Callee>,
    ) -> Result<(), Error> {
        let access = self.hold()?;
        let caller = (&**self.identity(), access.domain()?);
        make(asker, caller, import, &callee.into())
    }

    /// What it calls of other domains.
    ///
    /// # Errors
    /// As [`Domain::has_ended`].
    pub fn links(&self) -> Result<Vec<Link>, Error> {
        let access = self.hold()?;
        Ok(list(self.identity(), access.domain()?))
    }
}

/// Puts `callee` behind an import of `caller`, if the policy of its host lets `asker`.
pub(crate) fn make(
    asker: Option<&Identity>,
    caller: (&Identity, &mullion_runtime::WindowDomain),
    import: &str,
    callee: &Callee,
) -> Result<(), Error> {
    let (identity, domain) = caller;
    let index = identity.image().import(import)?;
    let called = callee.domain.identity();
    let export = &called.image().file().exports()[callee.export].name;
    called.image().host().may(&Question {
        asker,
        domain: identity,
        wish: Wish::Call {
            callee: called,
            export,
        },
    })?;
    let access = callee.domain.hold()?;
    let entry = access.export(callee.export)?;
    let made = domain.link(index, access.domain()?, entry, callee.options());
    made.map_err(|error| match error {
        mullion_runtime::Error::Linked => Error::Linked {
            domain: identity.name().to_owned(),
            import: import.to_owned(),
        },
        other => Error::Runtime(other),
    })?;
    tracing::debug!(
        domain = identity.name(),
        callee = called.name(),
        export,
        "linked"
    );
    Ok(())
}

/// The links of a domain, with names.
pub(crate) fn list(identity: &Identity, domain: &mullion_runtime::WindowDomain) -> Vec<Link> {
    let imports = identity.image().file().imports();
    let links = domain.links().into_iter().map(|link| {
        let callee = identity::find(link.callee);
        // Windows are 4 GiB long, and begin at multiples of that.
        let offset = link.address & 0xffff_ffff;
        let exports = callee
            .iter()
            .flat_map(|callee| callee.image().file().exports());
        let mut exports = exports.filter(|export| export.offset == offset);
        Link {
            import: imports[link.import].clone(),
            export: exports.next().map(|export| export.name.clone()),
            callee,
            calls: link.calls,
        }
    });
    links.collect()
}
