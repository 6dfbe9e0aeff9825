//! From a module's file and its policy to a domain.

use crate::allocators::{ALL, Mediated, instead};
use crate::rights::{Kinds, has_kinds, on_demand};
use crate::{Wall, signals, slots, types};
use crate::{disks, hands, journal, later, lends, links, packets, registrations, returns, trees};
use mullion_word::OpenError;
use mullion_word::runtime::{Domain, LoadError, Module, Policy};
use mullion_word_policy::{File, Interface, LowerError, TextError};
use std::collections::BTreeSet;
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
    #[error(
        "policy: `{0}` is the running task's own state, or the processor's, which no module writes"
    )]
    Task(String),
    #[error("policy: `{0}` does not say what a call hands on, or who calls")]
    Hands(String),
    #[error("policy: `{0}` does not say what a call lends")]
    Lends(String),
    #[error("policy: `{0}` is described, so it belongs into `allow` and not into `trusts`")]
    Described(String),
    #[error("policy: {0}")]
    Types(String),
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
    let (module, mut policy, kinds, (said, lent), mediated, (trusted, described, tables, slots)) =
        signals::aside(|| prepare(&folder, name))??;
    for one in mediated {
        if let Some(address) = wall.kernel.symbol(one.name, of) {
            one.settle(address);
            // SAFETY: the mediator stays as long as the library, which is never closed, and takes any arguments.
            policy = unsafe { policy.offer(one.name, one.mediator as usize, None) };
        }
    }
    let mut resolve = |symbol: &str| {
        let address = wall.kernel.symbol(symbol, of)?;
        let (address, looks) = match instead(symbol) {
            Some(one) => {
                one.settle(address);
                (one.mediator as usize, one.looks())
            }
            None => (address, false),
        };
        let hands_on = hands::is_called_by(symbol, name);
        let is_looked_at = trusted.contains(symbol) || hands_on || lends::of(symbol).is_some();
        match is_looked_at && !looks {
            true => {
                let has_mediator = instead(symbol).is_some();
                types::through(symbol, address, described.contains(symbol), has_mediator)
            }
            false => Some(address),
        }
    };
    journal::settle(wall.kernel, of);
    later::settle(wall.kernel, of);
    trees::settle(wall.kernel, of);
    returns::settle(wall.kernel, of);
    packets::settle(wall.kernel);
    disks::settle(wall.kernel);
    links::settle(wall.kernel);
    registrations::settle(wall.kernel);
    let domain = wall.host.load_with(&module, policy, &mut resolve)?;
    hands::has_said(name, said);
    lends::has_said(name, lent);
    has_kinds(&domain, &kinds);
    types::is_of(&domain, of as u64);
    slots::has_said(domain, &slots);
    let symbol = |name: &String| Some((wall.kernel.symbol(name, of)? as u64, name.clone()));
    types::has_tables(&domain, tables.iter().filter_map(symbol).collect());
    on_demand(wall.host, wall.kernel, domain, kinds, name.to_owned());
    wall.kernel
        .say(&format!("{name} is at {:#x}", domain.base()));
    Ok(domain)
}

/// The parts of a policy: its functions, its kinds of objects, its calls between modules with the memory that they lend, and the
/// allocators that it names. The last four are the functions that it trusts, those of them whose effects it has,
/// those of the kernel that the module's tables may have, and what functions of its own are lent.
type Prepared = (
    Arc<Module>,
    Policy,
    Kinds,
    (hands::Said, Vec<(String, lends::Lend)>),
    Vec<&'static Mediated>,
    (BTreeSet<String>, BTreeSet<String>, Vec<String>, slots::Said),
);

fn read(path: PathBuf) -> Result<Vec<u8>, Refused> {
    fs::read(&path).map_err(|cause| Refused::Read(path, cause))
}

/// What needs nothing of the kernel, and a large stack.
fn prepare(folder: &Path, name: &str) -> Result<Prepared, Refused> {
    let text = read(folder.join(name).with_extension("toml"))?;
    let file = File::parse(&String::from_utf8_lossy(&text))?;
    let described = [File::parse(INTERFACE)?];
    let mut policy = Interface::new(&described).policy(&file)?;
    // Functions whose arguments nobody looks at; the kernel does with them what it does for any module.
    let list = |group: &str| file.groups.get(group).into_iter().flatten();
    for function in list("trusts") {
        // Its arguments on the stack would not come.
        if described[0].calls.contains_key(function) {
            return Err(Refused::Described(function.clone()));
        }
        policy = policy.allow(function);
    }
    let named =
        |one: &&Mediated| one.is_allocator() && list("allocates").any(|name| name == one.name);
    let mediated = ALL.iter().filter(named).collect();
    let bytes = read(folder.join(name).with_extension("so"))?;
    let module = mullion_word::module(name, bytes)?;
    let kinds = Kinds::of(name, &file);
    if let Some(kind) = kinds.wrong() {
        return Err(Refused::Task(kind.to_owned()));
    }
    let said = hands::Said::of(&file).map_err(Refused::Hands)?;
    let lent = lends::of_file(&file).map_err(Refused::Lends)?;
    let tables: Vec<String> = list("tables").cloned().collect();
    // What the headers say of arguments is true of those with effects, too.
    let calls = described.iter().chain([&file]);
    let calls = calls.flat_map(|file| file.calls.keys());
    let described: BTreeSet<String> = calls.cloned().collect();
    let own = list("trusts").chain(file.calls.keys());
    let mut trusted: BTreeSet<String> = own.cloned().collect();
    trusted.extend(described.iter().cloned());
    for function in list("trusts") {
        if instead(function).is_none_or(|one| !one.looks()) {
            types::is_known(function, described.contains(function)).map_err(Refused::Types)?;
        }
    }
    for function in &described {
        types::is_known(function, true).map_err(Refused::Types)?;
    }
    let said = (said, lent);
    let names = (trusted, described, tables, slots::Said::of(&file));
    Ok((module, policy, kinds, said, mediated, names))
}
