//! The host: who decides what may be loaded, and what is set up for all domains.

use crate::error::Error;
use crate::gate::{Asked, Authoriser, NotAdmitted};
use crate::image::Image;
use crate::perf::PerfMap;
use crate::policy::{Candidate, Policy, Question};
use crate::shared::Shared;
use mullion_loader::Admitted;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Loads images. Cheap to clone.
#[derive(Clone)]
pub struct Host {
    settings: Arc<Settings>,
}

struct Settings {
    authoriser: Authoriser,
    policy: Option<Box<dyn Policy>>,
    perf: Option<PerfMap>,
    max_image: u64,
    debug_information: bool,
}

/// What a host is made of.
#[derive(Default)]
pub struct HostBuilder {
    authoriser: Option<Authoriser>,
    policy: Option<Box<dyn Policy>>,
    perf_map: bool,
    max_image: Option<u64>,
    no_debug_information: bool,
}

/// The largest file of an image that is read, in bytes, unless a host says otherwise: 1 GiB.
const MAX_IMAGE: u64 = 1 << 30;

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
    /// [`Error::Open`], also of a file that is too large ([`HostBuilder::max_image`]);
    /// [`Error::Rejected`], [`Error::NotPermitted`], [`Error::NotAnExtension`]; [`Error::Load`]:
    /// the system has no memory for it.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Image, Error> {
        self.open_as(path, &Asked::default())
    }

    /// As [`Host::open`], with who asks, a compilation record and credentials for
    /// the authoriser.
    ///
    /// # Errors
    /// As [`Host::open`].
    #[cfg(feature = "trust")]
    pub fn open_asked(&self, path: impl AsRef<Path>, asked: &Asked<'_>) -> Result<Image, Error> {
        self.open_as(path, asked)
    }

    fn open_as(&self, path: impl AsRef<Path>, asked: &Asked<'_>) -> Result<Image, Error> {
        let path = path.as_ref();
        let bytes = read(path, self.settings.max_image).map_err(|source| Error::Open {
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
        let admitted = self.ask(name, path, bytes, asked)?;
        Image::new(self, name, admitted)
    }

    /// Asks the authoriser, then the policy.
    pub(crate) fn ask(
        &self,
        name: &str,
        path: Option<&Path>,
        bytes: impl Into<Arc<[u8]>>,
        asked: &Asked<'_>,
    ) -> Result<Admitted, Error> {
        let image = || name.to_owned();
        let admitted = self.settings.authoriser.admit(bytes, asked);
        let admitted = admitted.map_err(|reason| match reason {
            NotAdmitted::Rejected(source) => Error::Rejected {
                image: image(),
                source: Box::new(source),
            },
            #[cfg(feature = "trust")]
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
        Ok(admitted)
    }

    /// Zeroed memory of at least `length` bytes, whole pages, that domains can be given
    /// pages of; the host alone has them at first. The name is for the policy.
    ///
    /// # Errors
    /// [`Error::Runtime`]: there is no room in windows, or no memory.
    pub fn share(&self, name: &str, length: u64) -> Result<Shared, Error> {
        Shared::new(self, name, length)
    }

    /// Asks the policy.
    pub(crate) fn may(&self, question: &Question<'_>) -> Result<(), Error> {
        let answer = match &self.settings.policy {
            Some(policy) => policy.allow(question),
            None => question.host_alone(),
        };
        answer.map_err(|source| Error::NotAllowed {
            asker: question.asker.map(|asker| asker.name().to_owned()),
            wish: question.to_string(),
            source,
        })
    }

    /// Whether debug information of images may be read.
    pub(crate) fn reads_debug_information(&self) -> bool {
        self.settings.debug_information
    }

    pub(crate) fn perf(&self) -> Option<&PerfMap> {
        self.settings.perf.as_ref()
    }
}

impl Image {
    /// Reads, verifies and lays out an image, on a host without policy.
    ///
    /// # Errors
    /// As [`Host::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Host::new().open(path)
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
    #[cfg(feature = "trust")]
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

    /// Names the functions of every domain in `/tmp/perf-PID.map`, where `perf` looks for
    /// the names of code that is in no file: `perf record` and `perf report` show them. Each
    /// domain has a copy of its code then, in anonymous memory, and does not share its
    /// image's: that takes memory, and time to load.
    #[must_use]
    pub fn perf_map(mut self, wanted: bool) -> Self {
        self.perf_map = wanted;
        self
    }

    /// Whether the debug information of images is read: for lines and inlined functions in reports of faults,
    /// and to compare the types of exports. It is, unless this says otherwise or the feature of that name is off. Its
    /// reader is safe and bounded, and still reads what an image's author wrote. Without it reports have names of
    /// functions, and an export's type is unknown, so that none is refused for it.
    #[must_use]
    pub fn debug_information(mut self, read: bool) -> Self {
        self.no_debug_information = !read;
        self
    }

    /// The largest file of an image that [`Host::open`] reads, in bytes; 1 GiB unless it is
    /// said. It may come from anybody, and be a device without an end.
    ///
    /// This bounds what opening takes: 11/8 of the file while it is verified. It takes less than three times the file
    /// afterwards, of which its domains share one part. [`Limits::memory`](crate::Limits::memory) is about a domain's
    /// own memory, and counts when there is a domain.
    #[must_use]
    pub fn max_image(mut self, bytes: u64) -> Self {
        self.max_image = Some(bytes);
        self
    }

    /// The host.
    #[must_use]
    pub fn build(self) -> Host {
        let authoriser = self
            .authoriser
            .unwrap_or_else(Authoriser::trusting_everyone);
        if self.policy.is_none() && !authoriser.has_policy() {
            tracing::warn!("no policy: images of any author are loaded");
        }
        Host {
            settings: Arc::new(Settings {
                authoriser,
                policy: self.policy,
                perf: self.perf_map.then(PerfMap::open).flatten(),
                max_image: self.max_image.unwrap_or(MAX_IMAGE),
                debug_information: !self.no_debug_information,
            }),
        }
    }
}

/// The whole file, if it has at most `limit` bytes.
fn read(path: &Path, limit: u64) -> io::Result<Arc<[u8]>> {
    mullion_loader::read_image(path, limit).map_err(|error| match error.kind() {
        io::ErrorKind::FileTooLarge => {
            let text = format!("larger than {limit} bytes, the host's limit for an image");
            io::Error::new(io::ErrorKind::FileTooLarge, text)
        }
        _ => error,
    })
}

impl fmt::Debug for Host {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_policy = self.settings.policy.is_some();
        let mut all = formatter.debug_struct("Host");
        all.field("has_policy", &has_policy).finish()
    }
}
