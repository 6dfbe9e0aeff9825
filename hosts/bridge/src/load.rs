//! From a module's file and its policy to a domain.

use crate::heap::{Heap, HeapError};
use crate::learn::{self, Learning};
use crate::library;
use crate::module::Module;
use crate::trace;
use mullion_symbols::Symbols;
use mullion_word_policy::{File, Interface};
use mullion_word_runtime::{Domain, Host, Note};
use mullion_word_verifier::{Verified, verify};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use thiserror::Error;

/// A folder with policies, in the place of those beside modules.
const POLICIES: &str = "MULLION_WORD_POLICIES";

/// What a module's heap may grow to, if its policy does not say.
const MEMORY: u64 = 64 << 20;

/// Why a module was not loaded.
#[derive(Debug, Error)]
pub enum LoadError {
    /// A file that cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A policy with an error in it.
    #[error("{}: {source}", path.display())]
    Policy {
        /// Its file.
        path: PathBuf,
        /// What is wrong.
        source: mullion_word_policy::TextError,
    },
    /// A policy that names what the host does not have.
    #[error("{}: {source}", path.display())]
    Names {
        /// Its file.
        path: PathBuf,
        /// Which name.
        source: mullion_word_policy::LowerError,
    },
    /// No module of checked code.
    #[error("{}: {source}", path.display())]
    Verify {
        /// Its file.
        path: PathBuf,
        /// The first violations.
        source: mullion_word_verifier::Rejected,
    },
    /// A module that cannot be laid out.
    #[error("{0}")]
    Module(#[from] mullion_word_runtime::ModuleError),
    /// No run time.
    #[error("{0}")]
    Setup(#[from] mullion_word_runtime::SetupError),
    /// A module that cannot be linked.
    #[error("{0}")]
    Load(#[from] mullion_word_runtime::LoadError),
    /// No heap.
    #[error("{0}")]
    Heap(#[from] HeapError),
}

/// What is loaded, and how.
pub struct Request<'a> {
    /// The module's file.
    pub path: &'a Path,
    /// Its policy; beside the module, if none is named.
    pub policy: Option<&'a Path>,
    /// The host's functions, as policies speak of them.
    pub interface: &'static str,
    /// Where a function of the host is.
    pub resolve: &'a mut dyn FnMut(&str) -> Option<usize>,
    /// The name of a function of the host that a module is given by its address.
    pub name_of: fn(u64) -> Option<&'static str>,
    /// Functions that every module may call.
    pub always: &'a [&'a str],
    /// The largest `time` that is taken; for hosts that must not wait.
    pub time: Option<std::time::Duration>,
}

/// A module behind its wall, and what is known of it.
pub struct Walled {
    /// The name that its policy gives it, or its file's.
    pub name: String,
    /// Its file's name, without the folder and the ending.
    pub stem: String,
    /// Its policy.
    pub file: File,
    /// Its file, as the verifier has read it.
    pub verified: Verified,
    /// Names and lines of its code.
    pub symbols: Symbols,
    /// What its domain belongs to.
    pub host: Host,
    /// What runs it.
    pub domain: Domain,
}

/// Loads a module, of which the bridge keeps heap and functions. `MULLION_WORD_LEARN`, `MULLION_WORD_POLICIES` and
/// `MULLION_WORD_TRACE` are heeded (docs/word-policy.md, docs/word.md).
///
/// # Errors
/// Whatever is wrong with the module or its policy.
pub fn load(request: Request<'_>) -> Result<(&'static Module, File), LoadError> {
    let (interface, name_of) = (request.interface, request.name_of);
    // Constructors run while the module is loaded, and may allocate.
    let begin = |file: &File| {
        let memory = file.limits.memory.unwrap_or(MEMORY);
        Ok(library::Loading::begin(Heap::new(memory)?))
    };
    let (walled, loading) = wall(request, &[library::C_LIBRARY, interface], begin)?;
    let Walled {
        name,
        domain,
        host,
        symbols,
        file,
        ..
    } = walled;
    let module = Module::new(&name, domain, host, loading.end(), symbols, name_of);
    library::known(module);
    Ok((module, file))
}

/// Puts a module behind its wall, for hosts that keep heap and functions of their own. `interfaces` is what it may call,
/// and `begin` is called before its code runs.
///
/// # Errors
/// As [`load`], and what `begin` answers.
pub fn wall<R>(
    request: Request<'_>,
    interfaces: &[&'static str],
    begin: impl FnOnce(&File) -> Result<R, LoadError>,
) -> Result<(Walled, R), LoadError> {
    let path = request.path;
    let policy = request
        .policy
        .map_or_else(|| policy_of(path), Path::to_path_buf);
    let bytes = read(path)?;
    let learns = learn::folder();
    let text = match read(&policy) {
        // A module that learns may begin with nothing.
        Err(LoadError::Read { source, .. })
            if learns.is_some() && source.kind() == std::io::ErrorKind::NotFound =>
        {
            Vec::new()
        }
        text => text?,
    };
    let text = String::from_utf8_lossy(&text).into_owned();
    let at = |source| LoadError::Policy {
        path: policy.clone(),
        source,
    };
    let mut file = File::parse(&text).map_err(at)?;
    file.limits.time = match (file.limits.time, request.time) {
        (Some(own), Some(most)) => Some(own.min(most)),
        (own, most) => own.or(most),
    };
    let described = described(interfaces).map_err(at)?;
    let lowered = Interface::new(&described).policy(&file);
    let mut lowered = lowered.map_err(|source| LoadError::Names {
        path: policy.clone(),
        source,
    })?;
    for name in request.always {
        lowered = lowered.allow(name);
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let stem = stem.into_owned();
    let name = file.module.clone().unwrap_or_else(|| stem.clone());
    let verified = verify(bytes.clone()).map_err(|source| LoadError::Verify {
        path: path.to_path_buf(),
        source,
    })?;
    let host = Host::new()?;
    trace::begin(&host);
    let module = mullion_word_runtime::Module::new(&name, &verified)?;
    let symbols = Mutex::new(Symbols::new(bytes.clone()));
    module.set_fields(move |reach| {
        let mut symbols = symbols.lock().unwrap_or_else(PoisonError::into_inner);
        symbols.reached_field(reach)
    });
    let begun = begin(&file)?;
    let domain = match learns {
        None => host.load_with(&module, lowered, request.resolve)?,
        Some(folder) => {
            let names = (described, request.name_of);
            let symbols = Symbols::new(bytes.clone());
            let learning = Learning::new(folder, &stem, file.clone(), symbols, names);
            let hook = move |note: &Note<'_>| learning.note(note);
            // SAFETY: who sets the variable runs the module as any other, without a wall.
            unsafe { host.learn_with(&module, lowered, request.resolve, hook)? }
        }
    };
    let walled = Walled {
        name,
        stem,
        file,
        verified,
        symbols: Symbols::new(bytes),
        host,
        domain,
    };
    Ok((walled, begun))
}

fn read(path: &Path) -> Result<Vec<u8>, LoadError> {
    std::fs::read(path).map_err(|source| LoadError::Read {
        path: path.to_path_buf(),
        source,
    })
}

/// A module's policy: in the folder that the user has named, or beside the module.
fn policy_of(path: &Path) -> PathBuf {
    let beside = path.with_extension("toml");
    let folder = std::env::var_os(POLICIES).filter(|folder| !folder.is_empty());
    let named = folder.and_then(|folder| Some(Path::new(&folder).join(beside.file_name()?)));
    named.unwrap_or(beside)
}

/// The functions that a module may call.
fn described(interfaces: &[&str]) -> Result<Vec<File>, mullion_word_policy::TextError> {
    interfaces.iter().map(|text| File::parse(text)).collect()
}
