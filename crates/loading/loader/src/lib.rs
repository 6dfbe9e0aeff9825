//! From a verified image to a protection domain that can be called.
//!
//! `Authoriser::admit` asks who may load, and has the verifier look; what it
//! lets in is an [`Admitted`], and [`Loaded::new`] takes nothing else. It is
//! laid out once. Each [`Loaded::instantiate`] maps it into a window of its own,
//! with the host functions that the [`Imports`] name, and with no more than was
//! granted.
//!
//! Without the feature `trust` (on by default) there is no authoriser and nothing of
//! `mullion-decide`: a host admits what the verifier accepts ([`Admitted::trusting_everyone`]).
#![deny(unsafe_op_in_unsafe_fn)]

#[cfg(feature = "trust")]
mod admission;
mod admitted;
#[cfg(feature = "trust")]
mod granted;
#[cfg(feature = "trust")]
mod native;

/// Decisions, and the ends of modules, as the log has them.
#[cfg(feature = "trust")]
pub use mullion_trust::event;

#[cfg(feature = "trust")]
pub use admission::{Asked, Authoriser, CREDENTIALS, NotAdmitted};
pub use admitted::Admitted;
pub use mullion_image::read_image;
pub use mullion_start::Start;
#[cfg(feature = "trust")]
pub use native::Native;

use mullion_abi::HEAP_END;
#[cfg(feature = "trust")]
use mullion_decide::Decision;
use mullion_runtime::{
    Access, BadAddress, CallArguments, Claimed, Entry, HostFunction, ImageLayout, Limits,
    MappingError, PAGE, Relocation, Segment, WindowDomain,
};
use mullion_start::TlsSource;
use mullion_verifier::{ImageKind, Permission};
use std::collections::HashMap;
use std::sync::Arc;

/// Why an admitted image did not become a domain.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The image asks for functions that the host does not offer.
    #[error(
        "the image imports {}, which this host does not offer",
        .0.join(", ")
    )]
    UnknownImports(Vec<String>),
    /// The run time could not make the domain.
    #[error(transparent)]
    Runtime(#[from] mullion_runtime::Error),
    /// Arguments and environment do not fit into the domain's memory.
    #[error("arguments and environment do not fit into the domain's memory: {0}")]
    Start(#[from] MappingError),
    /// The arguments could not be written; the domain's memory is not as it should be.
    #[error(transparent)]
    Memory(#[from] BadAddress),
    /// An argument or a variable holds a zero byte.
    #[error("an argument or environment variable holds a zero byte")]
    Zero,
}

/// The functions that a host offers to images, by name.
#[derive(Clone, Default)]
pub struct Imports {
    functions: HashMap<String, HostFunction>,
}

impl Imports {
    /// Offers nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Offers `function` as `name`, in place of an earlier one.
    #[must_use]
    pub fn with(mut self, name: &str, function: HostFunction) -> Self {
        self.functions.insert(name.to_owned(), function);
        self
    }

    /// What `names` ask for, in their order.
    fn bind(&self, names: &[String]) -> Result<Vec<HostFunction>, LoadError> {
        let unknown: Vec<String> = names
            .iter()
            .filter(|name| !self.functions.contains_key(*name))
            .cloned()
            .collect();
        if !unknown.is_empty() {
            return Err(LoadError::UnknownImports(unknown));
        }
        let functions = names.iter().filter_map(|name| self.functions.get(name));
        Ok(functions.cloned().collect())
    }
}

/// The export of an extension that a thread calls when it ends (docs/window.md, "The image").
const THREAD_END: &str = "__mullion_thread_end";

/// An admitted image, laid out for mapping.
#[derive(Clone)]
pub struct Loaded {
    admitted: Arc<Admitted>,
    image: Arc<ImageLayout>,
    /// Offset of a page behind an extension's segments, for what its entry point is
    /// called with: part of the image, it is mapped and restarted with its data.
    room: Option<u64>,
}

impl Loaded {
    /// Lays the image out.
    ///
    /// # Errors
    /// The system has no memory for it.
    pub fn new(admitted: Admitted) -> Result<Self, LoadError> {
        let (image, room) = lay_out(&admitted)?;
        Ok(Self {
            admitted: Arc::new(admitted),
            image: Arc::new(image),
            room,
        })
    }

    /// As [`Loaded::new`], with the code of each domain where profilers find its names:
    /// [`ImageLayout::in_anonymous_memory`].
    ///
    /// # Errors
    /// As [`Loaded::new`].
    pub fn for_profiles(admitted: Admitted) -> Result<Self, LoadError> {
        let (image, room) = lay_out(&admitted)?;
        let image = image.in_anonymous_memory();
        Ok(Self {
            admitted: Arc::new(admitted),
            image: Arc::new(image),
            room,
        })
    }

    /// What the file says of itself.
    #[must_use]
    pub fn image(&self) -> &mullion_verifier::Image {
        self.admitted.image()
    }

    /// Whether the verifier has accepted every instruction; if not, type and
    /// policy trust the compiler.
    #[must_use]
    pub fn is_verified(&self) -> bool {
        self.admitted.is_verified()
    }

    /// By whose leave, and with which limits; `None` if the host asks nobody.
    #[cfg(feature = "trust")]
    #[must_use]
    pub fn decision(&self) -> Option<&Decision> {
        self.admitted.decision()
    }

    /// Maps windows in advance, until so many domains of the image can be made without:
    /// [`ImageLayout::prepare`].
    ///
    /// # Errors
    /// No window or memory left.
    pub fn prepare(&self, domains: usize) -> Result<(), LoadError> {
        Ok(self.image.prepare(domains)?)
    }

    /// A new domain of the image, with `limits` or what was granted, of each
    /// the stricter. Nothing in it has run yet.
    ///
    /// # Errors
    /// An import that the host does not offer; no window or memory left.
    pub fn instantiate(&self, imports: &Imports, limits: Limits) -> Result<Instance, LoadError> {
        let functions = imports.bind(self.image().imports())?;
        #[cfg(feature = "trust")]
        let limits = match self.decision() {
            Some(decision) => granted::limits(limits, decision, &self.admitted),
            None => limits,
        };
        let domain = WindowDomain::new(self.image.clone(), functions, limits.clone())?;
        Ok(Instance {
            loaded: self.clone(),
            limits,
            domain,
        })
    }
}

/// An image as every domain of it has it at first, and the offset of its `room`.
fn lay_out(admitted: &Admitted) -> Result<(ImageLayout, Option<u64>), LoadError> {
    let file = admitted.image();
    let mut segments: Vec<Segment<'_>> = file
        .segments()
        .iter()
        .map(|segment| Segment {
            // Both lie below 4 GiB; the verifier saw to it.
            offset: segment.offset as u32,
            length: segment.size as u32,
            access: access(segment.permission),
            content: file.contents(segment),
        })
        .collect();
    let end = segments
        .last()
        .map(|last| (u64::from(last.offset) + u64::from(last.length)).next_multiple_of(PAGE));
    let room = end.filter(|room| file.kind() == ImageKind::Extension && room + PAGE <= HEAP_END);
    segments.extend(room.map(|room| Segment {
        offset: room as u32,
        length: PAGE as u32,
        access: Access::ReadWrite,
        content: &[],
    }));
    let relocations = file.explicit_relocations().map(|relocation| Relocation {
        place: relocation.offset as u32,
        addend: relocation.addend as u32,
    });
    // SAFETY: the segments, their offsets and contents are those of an
    // `Admitted`, which owns the bytes that were judged. Either the verifier
    // accepted their code, or type and policy name a compiler that answers
    // for it in the verifier's place: the operator's own decision, which the
    // log and `Loaded::is_verified` tell of.
    let image = unsafe { ImageLayout::new(&segments, relocations.collect()) }?;
    let image = image.with_packed(file.packed_relocations().map(|place| place as u32))?;
    // SAFETY: as the verifier counted, over all executable segments; without
    // it, everything may occur.
    let image = unsafe { image.with_floating_point(admitted.floating_point()) };
    let image = if admitted.uses_gs() {
        image
    } else {
        // SAFETY: the verifier has found no instruction that uses `%gs`.
        unsafe { image.without_gs() }
    };
    let image = match file.kind() {
        ImageKind::Program => image,
        ImageKind::Extension => {
            let image = image.with_thread_start(file.entry());
            match file.export(THREAD_END) {
                Some(offset) => image.with_thread_end(offset),
                None => image,
            }
        }
    };
    let image = match file.steps() {
        Some(offset) => image.with_steps(offset),
        None => image,
    };
    Ok((image, room))
}

/// A domain together with the image it came from.
pub struct Instance {
    loaded: Loaded,
    limits: Limits,
    domain: WindowDomain,
}

impl Instance {
    /// The domain.
    #[inline]
    #[must_use]
    pub fn domain(&self) -> &WindowDomain {
        &self.domain
    }

    /// Gives the domain the state that it had when it was new, in the same window:
    /// nothing in it has run.
    ///
    /// # Errors
    /// As [`WindowDomain::restart`].
    pub fn restart(&mut self) -> Result<(), mullion_runtime::Error> {
        self.domain.restart()
    }

    /// What it may use: what the host gives and what was granted, of each the
    /// stricter.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The image that it came from.
    #[must_use]
    pub fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    /// Where the image begins, and what it is called with there: the first call of a life. An extension runs its
    /// constructors ([`WindowDomain::start`]), and a program runs as a whole.
    ///
    /// # Errors
    /// The domain's memory limit, or a zero byte in a string of `start`.
    pub fn begin(&self, start: &Start) -> Result<(Entry, CallArguments), LoadError> {
        let block = self.place(start)?;
        let entry = self.at(self.loaded.image().entry())?;
        Ok((entry, CallArguments::new(&[block])))
    }

    /// The export of that name, if there is one.
    ///
    /// # Errors
    /// None for an admitted image; the run time checks again.
    pub fn export(&self, name: &str) -> Result<Option<Entry>, mullion_runtime::Error> {
        let export = self.loaded.image().export(name);
        export.map(|offset| self.at(offset)).transpose()
    }

    /// Writes the block into memory of the domain that is taken for it, and returns its address, the argument of the
    /// entry point. Wherever it leads, what is written there is the domain's own.
    fn place(&self, start: &Start) -> Result<u64, LoadError> {
        if start.holds_zero() {
            return Err(LoadError::Zero);
        }
        let (memory, length) = (self.domain.memory(), start.length());
        // In the image's own page, or behind the image, where it takes no mapping of its
        // own, if there is room.
        let room = self.loaded.room.filter(|_| length <= PAGE);
        let block = match room {
            Some(room) => memory.base() + room,
            None => memory
                .extend(length)
                .or_else(|_| memory.map(None, length.next_multiple_of(PAGE), Access::ReadWrite))?,
        };
        let template = self.loaded.image().tls().map(|template| TlsSource {
            address: memory.base() + template.offset,
            file_size: template.file_size,
            size: template.size,
            alignment: template.alignment,
        });
        memory.write(Claimed(block), &start.layout(block, template))?;
        Ok(block)
    }

    fn at(&self, offset: u64) -> Result<Entry, mullion_runtime::Error> {
        self.domain
            .entry(Claimed(self.domain.memory().base() + offset))
    }
}

fn access(permission: Permission) -> Access {
    match permission {
        Permission::Read => Access::Read,
        Permission::ReadWrite => Access::ReadWrite,
        Permission::ReadExecute => Access::ReadExecute,
    }
}
