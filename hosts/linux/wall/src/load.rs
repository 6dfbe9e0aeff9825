//! From a module's file and its policy to a domain.

use crate::{Wall, signals};
use mullion_word::OpenError;
use mullion_word::runtime::{Domain, LoadError, Module, Policy};
use mullion_word_policy::{File, Interface, LowerError, TextError};
use std::ffi::c_void;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// What modules may call of the kernel, as policies speak of it.
const INTERFACE: &str = include_str!("../../kernel.toml");

/// Why a module was not loaded.
#[derive(Debug, Error)]
pub(crate) enum Refused {
    #[error("{0}: {1}")]
    Read(PathBuf, io::Error),
    #[error("policy: {0}")]
    Policy(#[from] TextError),
    #[error("policy: {0}")]
    Names(#[from] LowerError),
    #[error("{0}")]
    Module(#[from] OpenError),
    #[error("{0}")]
    Thread(#[from] io::Error),
    #[error("{0}")]
    Load(#[from] LoadError),
}

/// Makes a domain of the module with this name; `of` is the kernel's own structure of it.
pub(crate) fn load(wall: &Wall, name: &str, of: *mut c_void) -> Result<Domain, Refused> {
    let folder = wall.folder.clone();
    let (module, policy) = signals::aside(|| prepare(&folder, name))??;
    let mut resolve = |symbol: &str| wall.kernel.symbol(symbol, of);
    Ok(wall.host.load_with(&module, policy, &mut resolve)?)
}

fn read(path: PathBuf) -> Result<Vec<u8>, Refused> {
    fs::read(&path).map_err(|cause| Refused::Read(path, cause))
}

/// What needs nothing of the kernel, and a large stack.
fn prepare(folder: &Path, name: &str) -> Result<(Arc<Module>, Policy), Refused> {
    let text = read(folder.join(name).with_extension("toml"))?;
    let file = File::parse(&String::from_utf8_lossy(&text))?;
    let described = [File::parse(INTERFACE)?];
    let policy = Interface::new(&described).policy(&file)?;
    let bytes = read(folder.join(name).with_extension("so"))?;
    Ok((mullion_word::module(name, bytes)?, policy))
}
