//! The host: who decides what may be loaded, and what is set up for all domains.

use crate::error::Error;
use crate::identity::Identity;
use crate::image::Image;
use crate::import::BoxedError;
use crate::perf::PerfMap;
use crate::shared::Shared;
use mullion_loader::{Asked, Authoriser, NotAdmitted};
use mullion_runtime::Access as Permission;
use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// A host's own say: in which images may be loaded, beside the [`Authoriser`]; in who
/// may call whom; and in who may have which pages.
///
/// That an image cannot leave its window is the verifier's matter, and not asked
/// here. Whether its author is trusted with what this host offers is.
pub trait Policy: Send + Sync {
    /// Whether `candidate` may be loaded; the error says why not.
    ///
    /// # Errors
    /// The policy's reason.
    fn admit(&self, candidate: &Candidate<'_>) -> Result<(), BoxedError>;

    /// Whether `caller` may call the entry point `export` of `callee`, because `asker`
    /// wants it so, or the host if that is `None`. Asked once for each link, before it
    /// is made. Unless it is implemented: the host may, domains may not.
    ///
    /// # Errors
    /// The policy's reason.
    fn link(
        &self,
        asker: Option<&Identity>,
        caller: &Identity,
        callee: &Identity,
        export: &str,
    ) -> Result<(), BoxedError> {
        let _any = (caller, callee, export);
        host_alone(asker)
    }

    /// Whether `domain` may have these bytes of `shared` with `permission`, because
    /// `asker` wants it so, or the host if that is `None`. Asked before anything
    /// changes. Unless it is implemented: the host may, domains may not.
    ///
    /// # Errors
    /// The policy's reason.
    fn share(
        &self,
        asker: Option<&Identity>,
        domain: &Identity,
        shared: &Shared,
        bytes: &Range<u64>,
        permission: Permission,
    ) -> Result<(), BoxedError> {
        let _any = (domain, shared, bytes, permission);
        host_alone(asker)
    }
}

fn host_alone(asker: Option<&Identity>) -> Result<(), BoxedError> {
    match asker {
        None => Ok(()),
        Some(_) => {
            Err("this host does what it does by itself, and nothing that domains ask for".into())
        }
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

/// Loads images. Cheap to clone.
#[derive(Clone)]
pub struct Host {
    settings: Arc<Settings>,
}

struct Settings {
    authoriser: Authoriser,
    policy: Option<Box<dyn Policy>>,
    perf: Option<PerfMap>,
}

/// What a host is made of.
#[derive(Default)]
pub struct HostBuilder {
    authoriser: Option<Authoriser>,
    policy: Option<Box<dyn Policy>>,
    perf_map: bool,
}

impl Host {
    /// A host without policy: it loads whatever is verified, and says so in the log.
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// A host to be made.
    #[must_use]
    pub fn builder() -> HostBuilder {
        HostBuilder::default()
    }

    /// Reads, verifies and lays out an image. Its name is the file's, without directory.
    ///
    /// # Errors
    /// [`Error::Open`], [`Error::Rejected`], [`Error::NotPermitted`], [`Error::NotAnExtension`];
    /// [`Error::Load`]: the system has no memory for it.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Image, Error> {
        self.open_asked(path, &Asked::default())
    }

    /// As [`Host::open`], with who asks, a compilation record and credentials for
    /// the authoriser.
    ///
    /// # Errors
    /// As [`Host::open`].
    pub fn open_asked(&self, path: impl AsRef<Path>, asked: &Asked<'_>) -> Result<Image, Error> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(|source| Error::Open {
            path: path.to_owned(),
            source,
        })?;
        let name = path.file_name().unwrap_or(path.as_os_str());
        self.admit(&name.to_string_lossy(), Some(path), bytes, asked)
    }

    /// As [`Host::open`], for an image that is in memory, under a name for errors and logs.
    ///
    /// # Errors
    /// As [`Host::open`].
    pub fn image(&self, name: &str, bytes: impl Into<Arc<[u8]>>) -> Result<Image, Error> {
        self.admit(name, None, bytes, &Asked::default())
    }

    fn admit(
        &self,
        name: &str,
        path: Option<&Path>,
        bytes: impl Into<Arc<[u8]>>,
        asked: &Asked<'_>,
    ) -> Result<Image, Error> {
        let image = || name.to_owned();
        let admitted = self.settings.authoriser.admit(bytes, asked);
        let admitted = admitted.map_err(|reason| match reason {
            NotAdmitted::Rejected(source) => Error::Rejected {
                image: image(),
                source: Box::new(source),
            },
            other => Error::NotPermitted {
                image: image(),
                source: Box::new(other),
            },
        })?;
        if let Some(policy) = &self.settings.policy {
            let candidate = Candidate {
                name,
                path,
                file: admitted.image(),
            };
            let answer = policy.admit(&candidate);
            answer.map_err(|source| Error::NotPermitted {
                image: image(),
                source,
            })?;
        }
        Image::new(self, name, admitted)
    }

    /// Zeroed memory of at least `length` bytes, whole pages, that domains can be given
    /// pages of; the host alone has them at first. The name is for the policy.
    ///
    /// # Errors
    /// [`Error::Runtime`]: there is no room in windows, or no memory.
    pub fn share(&self, name: &str, length: u64) -> Result<Shared, Error> {
        Shared::new(self, name, length)
    }

    /// Asks the policy about a link.
    pub(crate) fn may_link(
        &self,
        asker: Option<&Identity>,
        caller: &Identity,
        callee: &Identity,
        export: &str,
    ) -> Result<(), Error> {
        let answer = match &self.settings.policy {
            Some(policy) => policy.link(asker, caller, callee, export),
            None => host_alone(asker),
        };
        answer.map_err(|source| Error::NotAllowed {
            asker: asker.map(|asker| asker.name().to_owned()),
            wish: format!("let {} call `{export}` of {}", caller.name(), callee.name()),
            source,
        })
    }

    /// Asks the policy about pages.
    pub(crate) fn may_share(
        &self,
        asker: Option<&Identity>,
        domain: &Identity,
        shared: &Shared,
        bytes: &Range<u64>,
        permission: Permission,
    ) -> Result<(), Error> {
        let answer = match &self.settings.policy {
            Some(policy) => policy.share(asker, domain, shared, bytes, permission),
            None => host_alone(asker),
        };
        answer.map_err(|source| Error::NotAllowed {
            asker: asker.map(|asker| asker.name().to_owned()),
            wish: format!(
                "give {} the bytes {:#x} to {:#x} of {} as {permission:?}",
                domain.name(),
                bytes.start,
                bytes.end,
                shared.name()
            ),
            source,
        })
    }

    pub(crate) fn perf(&self) -> Option<&PerfMap> {
        self.settings.perf.as_ref()
    }
}

impl Default for Host {
    fn default() -> Self {
        Self::new()
    }
}

impl HostBuilder {
    /// Who decides what may be loaded: by a policy of KeyNote credentials and
    /// compilation records.
    ///
    /// Such a policy may name compilers that answer for code in the verifier's
    /// place. Then it is they whom the host's memory is trusted to.
    #[must_use]
    pub fn authoriser(mut self, authoriser: Authoriser) -> Self {
        self.authoriser = Some(authoriser);
        self
    }

    /// Who else is asked, when the authoriser has admitted an image.
    #[must_use]
    pub fn policy(mut self, policy: impl Policy + 'static) -> Self {
        self.policy = Some(Box::new(policy));
        self
    }

    /// Names the functions of every domain in `/tmp/perf-PID.map`, in the form that
    /// `perf` has for generated code. (perf 6.1 does not look into it for code that is
    /// mapped from a file in memory, as a domain's is.)
    #[must_use]
    pub fn perf_map(mut self, wanted: bool) -> Self {
        self.perf_map = wanted;
        self
    }

    /// The host.
    #[must_use]
    pub fn build(self) -> Host {
        let authoriser = self
            .authoriser
            .unwrap_or_else(Authoriser::trusting_everyone);
        if self.policy.is_none() && authoriser.policy().is_none() {
            tracing::warn!("no policy: images of any author are loaded");
        }
        Host {
            settings: Arc::new(Settings {
                authoriser,
                policy: self.policy,
                perf: self.perf_map.then(PerfMap::open).flatten(),
            }),
        }
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_policy = self.settings.policy.is_some();
        let mut all = formatter.debug_struct("Host");
        all.field("has_policy", &has_policy).finish()
    }
}
