//! Modules that work with each other. One imports or looks up another's functions, structures of functions and hooks. It writes
//! the other's memory where its policy names that (`session_module.memory`).
//!
//! ```text
//!   module ──► gate ──► arguments are looked at (call.rs) ──► stand-in (back.rs): a frame ──► gate ──► the other module
//! ```

use crate::apr;
use crate::back;
use crate::backends::Backend;
use crate::call::{checked, mediate};
use crate::copied;
use crate::frame::Frame;
use crate::interface::{Back, Given, Param, back as kind, find_back};
use crate::layout::read;
use crate::load;
use crate::object::Kind;
use crate::out;
use crate::owners;
use crate::pools;
use crate::slots::WIDE;
use crate::walled::{Answer, Walled, lock};
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, OnceLock};

impl Walled {
    /// Other modules whose memory from pools its policy lets it write.
    fn shared(&'static self) -> impl Iterator<Item = &'static Walled> {
        let all = match self.partners.is_empty() {
            true => Vec::new(),
            false => load::all(),
        };
        all.into_iter()
            .filter(|other| !std::ptr::eq(*other, self) && self.partners.contains(&other.name))
    }

    /// Whether a partner has an object.
    pub(crate) fn shares(&'static self, object: u64, kind: Kind) -> bool {
        let of_backend = |backend: &Backend| match kind {
            Kind::Pool => backend.pools.contains(&object),
            Kind::Connection => backend.connection == object,
            Kind::Socket => backend.socket == object,
            Kind::Address => backend.address == object,
            _ => false,
        };
        object != 0 && self.backends().iter().any(of_backend) && self.holds_backend(object, kind)
            || self.shared().any(|other| match kind {
                Kind::Pool => other.knows_pool(object),
                kind => other.knows(object, kind),
            })
    }

    /// An object of a mod_proxy with a wall is there until the call of the host returns.
    fn holds_backend(&'static self, object: u64, kind: Kind) -> bool {
        proxy().is_none_or(|proxy| std::ptr::eq(proxy, self) || proxy.knows(object, kind))
    }

    /// Whether something lies in memory of a mod_proxy with a wall, and the module is that one, or has its memory by its policy. Others
    /// pass what they were given.
    pub(crate) fn has_thing(&'static self, at: u64) -> bool {
        proxy().is_some_and(|proxy| {
            let has_all = std::ptr::eq(proxy, self) || self.partners.contains(&proxy.name);
            has_all && proxy.block(at).is_some()
        })
    }

    pub(crate) fn knows_or_shares(&'static self, object: u64, kind: Kind) -> bool {
        self.knows(object, kind) || self.shares(object, kind)
    }

    /// The partner that a function is of.
    fn partner_of(&'static self, gate: u64) -> Option<&'static Walled> {
        self.shared().find(|other| other.is_gate(gate))
    }

    /// Lets the module write a partner's block, as long as the block's pool lives.
    pub(crate) fn demand_shared(&'static self, at: u64) -> bool {
        match self.shared().find_map(|other| other.block(at)) {
            Some(found) => self.borrow(found).is_ok(),
            None => self.demand_segment(at, |owner| {
                self.shared().any(|other| std::ptr::eq(other, owner))
            }),
        }
    }
}

/// The module of the configuration that a name belongs to.
fn owner(name: &str) -> Option<&'static Walled> {
    let owner = owners::of_export(name)?;
    let mut all = load::all().into_iter();
    all.find(|other| other.name == owner && other.is_in_use.load(Ordering::Relaxed))
}

/// A variable or a function of another module, by its name.
pub(crate) fn data(name: &str) -> Option<usize> {
    owner(name)?.domain.symbol(name).map(|at| at as usize)
}

/// Where a function of another module is: what stands for it, or the function of a module without a wall.
fn find(asker: &Walled, name: &str, back: &'static Back) -> Answer<usize> {
    // A module cannot take the place of one without a wall by a function of the same name.
    if let Some(plain) = apr::symbol(name) {
        let whose = owners::of_export(name).filter(|whose| owners::is_with_walled_alone(whose));
        return match whose {
            Some(whose) => Err(lacks_wall(whose)),
            None => Ok(plain),
        };
    }
    if let Some(other) = owner(name).filter(|other| !std::ptr::eq(*other, asker))
        && let Some(gate) = other.domain.function(name)
        && other.is_gate(gate as u64)
    {
        return Ok(back::of(other, back, gate as u64)? as usize);
    }
    Err(format!("no module has {name}"))
}

/// Whether the newest call may call a function of another module now, with these arguments.
pub(crate) fn may_call(back: &Back, arguments: &[u64; WIDE]) -> Answer<()> {
    if !back.is_early {
        return Ok(());
    }
    pools::before_serving(back.name)?;
    let pools = back.given.iter().zip(arguments);
    let mut pools = pools.filter(|(given, _)| **given == Given::Pool);
    match pools.find(|(_, pool)| !pools::is_global(**pool)) {
        Some((_, pool)) => Err(format!(
            "{}: {pool:#x} is no pool of the configuration",
            back.name
        )),
        None => Ok(()),
    }
}

/// mod_proxy, if it has a wall. Its words about its connections are looked at then.
pub(crate) fn proxy() -> Option<&'static Walled> {
    owner("ap_proxy_acquire_connection")
}

/// By which a connection to a backend is given back.
pub(crate) fn release() -> Option<usize> {
    const NAME: &str = "ap_proxy_release_connection";
    match proxy() {
        None => apr::symbol(NAME),
        Some(proxy) => {
            let gate = proxy.domain.function(NAME)? as u64;
            let of = || back::of(proxy, kind(NAME), gate).ok();
            proxy.is_gate(gate).then(of).flatten().map(|at| at as usize)
        }
    }
}

/// A module calls a function of another module by its name.
pub(crate) fn cross(frame: &Frame, name: &'static str, mut arguments: [u64; WIDE]) -> Answer<u64> {
    let back = find_back(name).ok_or_else(|| format!("{name} is not offered"))?;
    // It may end what belongs to a connection to a backend, which was kept for the core.
    frame.let_go(0);
    let real = find(frame.walled, name, back)?;
    may_call(back, &arguments)?;
    let mut params = back.params();
    if apr::symbol(name).is_none() {
        back.of_callee().for_each(|at| params[at] = Param::Any);
    }
    let released = arguments[1];
    let result = checked(frame, name, &params, back.answer, real, &mut arguments)?;
    if name == "ap_proxy_release_connection" {
        frame.walled.release(released);
    }
    show_structures(frame, back, &arguments)?;
    Ok(result)
}

/// The functions of structures whose addresses a call has put where its arguments point to. The caller may call those of its partners
/// by the addresses that it finds there.
pub(crate) fn show_structures(frame: &Frame, back: &Back, arguments: &[u64; WIDE]) -> Answer<()> {
    for (at, name) in &back.structures {
        let place = arguments.get(*at).copied().unwrap_or(0);
        let [structure] = match place {
            0 => [0],
            place => copied::words(frame, place)?,
        };
        if structure == 0 {
            continue;
        }
        let words = shapes().get(name).ok_or("a structure that is not known")?;
        for (at, word) in words
            .iter()
            .enumerate()
            .filter(|(_, word)| is_function(word))
        {
            offer_within(frame, structure.wrapping_add(8 * at as u64), word)?;
        }
    }
    Ok(())
}

/// The newest call's module may call the function of a partner that it finds at an address.
pub(crate) fn offer_within(frame: &Frame, at: u64, name: &str) -> Answer<()> {
    let [function] = copied::words(frame, at)?;
    let Some(partner) = frame.walled.partner_of(function) else {
        return Ok(());
    };
    let stand_in = back::of(partner, kind(name), function)?;
    out::offer_beside(
        frame.walled,
        function as usize,
        stand_in as usize,
        kind(name),
    )
}

/// The refusal of a module that calls others by addresses which it finds in their structures. Without a wall, it would call such a
/// module's functions beside the wall.
fn lacks_wall(whose: &str) -> String {
    format!(
        "{whose} works with modules that have a wall if it has one itself: load it by MullionLoadModule, too"
    )
}

/// The words of each group's structure.
fn shapes() -> &'static HashMap<&'static str, Vec<&'static str>> {
    static SHAPES: OnceLock<HashMap<&'static str, Vec<&'static str>>> = OnceLock::new();
    SHAPES.get_or_init(|| {
        let lines = include_str!("providers.txt").lines();
        let lines = lines.filter(|line| !line.starts_with('#'));
        let rows = lines.filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            Some((words.next()?, words.collect()))
        });
        rows.collect()
    })
}

/// Whether a module's file names a kind of function with more arguments than go in registers, or a structure that has one. It
/// registers and exports them by these names. One that is named in another way is not passed on ([`back::of`]).
pub(crate) fn has_wide(file: &[u8]) -> bool {
    static NAMES: OnceLock<Vec<&'static str>> = OnceLock::new();
    let names = NAMES.get_or_init(|| {
        let is_wide = |name: &&str| find_back(name).is_some_and(|back| back.given.len() > 6);
        let functions = crate::interface::backs().keys().copied();
        let structures = shapes().iter();
        let structures = structures.filter(|(_, words)| words.iter().any(is_wide));
        let names = functions.filter(is_wide);
        names.chain(structures.map(|(name, _)| *name)).collect()
    });
    let mut texts = file.split(|byte| *byte == 0);
    texts.any(|text| names.iter().any(|name| text.ends_with(name.as_bytes())))
}

fn shape(group: &[u8]) -> Option<&'static [&'static str]> {
    let group = std::str::from_utf8(group).ok()?;
    shapes().get(group).map(Vec::as_slice)
}

/// The refusal of a name that is another module's. It stays so as long as the configuration: the server forgets all of it together.
fn taken(what: &str, [group, name, version]: [&[u8]; 3]) -> String {
    let text =
        |name: &[u8]| String::from_utf8_lossy(name.strip_suffix(&[0]).unwrap_or(name)).into_owned();
    let whole = [text(group), text(name), text(version)].join(" ");
    format!("{what}: {} is another module's", whole.trim())
}

/// The provider that the server has under a name.
fn provider_of(names: [u64; 3]) -> Answer<u64> {
    let real = apr::symbol("ap_lookup_provider").ok_or("the server does not have it")?;
    // SAFETY: it is httpd's function, with strings of ours.
    let real: extern "C" fn(u64, u64, u64) -> u64 = unsafe { std::mem::transmute(real) };
    let [group, name, version] = names;
    Ok(real(group, name, version))
}

/// Copies of providers that were registered: where each is, and whose.
static PROVIDED: Mutex<Vec<(u64, &'static Walled)>> = Mutex::new(Vec::new());

/// Whether a word of a structure is a function, and no number, structure or null.
fn is_function(word: &str) -> bool {
    !matches!(word.as_bytes(), [b'.' | b'0' | b'*', ..])
}

/// A copy of a structure of functions in which functions of ours stand for the module's. It stays, as others keep its address. Partners
/// whose functions are in it are noted.
fn copy(
    frame: &Frame,
    provider: u64,
    words: &[&'static str],
    partners: &mut Vec<&'static Walled>,
) -> Answer<u64> {
    let mut copy = vec![0u64; words.len() + 1];
    // SAFETY: there is room for so many words, and one more.
    unsafe { copied::into(frame, provider, copy.as_mut_ptr().cast(), 8 * words.len()) }?;
    for (slot, word) in copy.iter_mut().zip(words) {
        let value = *slot;
        *slot = match *word {
            "." => value,
            "0" if value != 0 => return Err("a structure that is not known".to_owned()),
            "0" => 0,
            word if word.starts_with('*') => match value {
                0 => 0,
                value => {
                    let inner = shapes().get(word).ok_or("a structure that is not known")?;
                    self::copy(frame, value, inner, partners)?
                }
            },
            word => match frame.walled.partner_of(value) {
                // A module has another one register what it offers.
                Some(partner) if !frame.walled.is_gate(value) => {
                    partners.push(partner);
                    back::of(partner, kind(word), value)?
                }
                _ => back::stand_in(frame, kind(word), value)?,
            },
        };
    }
    Ok(Box::leak(copy.into_boxed_slice()).as_ptr() as u64)
}

/// Functions of one structure: one that makes something for its caller, and one that takes such a thing.
static TOGETHER: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

/// The configuration is read again: other functions may lie there.
pub(crate) fn forget() {
    lock(&TOGETHER).clear();
}

/// Looks at a thing that a function of a provider's takes: one of the same provider has made it. Any module can have a provider of
/// its own, which makes whatever it likes. Partners have things in common.
pub(crate) fn goes_with(walled: &'static Walled, thing: u64, function: usize) -> Answer<()> {
    let mut all = std::iter::once(walled).chain(walled.shared());
    let by = all.find_map(|one| one.whole_of(thing)).unwrap_or(0) as usize;
    match lock(&TOGETHER).contains(&(by, function)) {
        true => Ok(()),
        false => Err(format!("{thing:#x} is no thing of this provider")),
    }
}

/// Notes which functions of a provider's structure make things, and which ones take them.
fn note_together(provider: u64, words: &[&'static str]) {
    let functions = |is_it: fn(&Param) -> bool| -> Vec<usize> {
        let all = words.iter().enumerate();
        let all =
            all.filter(|(_, word)| is_function(word) && kind(word).params().iter().any(is_it));
        // SAFETY: the core or `copy` has this structure, of this group.
        let all = all.map(|(at, _)| unsafe { read(provider + 8 * at as u64) } as usize);
        all.collect()
    };
    let makers = functions(|param| *param == Param::OutObject(Kind::Provided));
    let is_taken =
        |param: &Param| matches!(param, Param::Object { kind, .. } if *kind == Kind::Provided);
    let takers = functions(is_taken);
    let mut together = lock(&TOGETHER);
    for maker in makers {
        for taker in &takers {
            if !together.contains(&(maker, *taker)) {
                together.push((maker, *taker));
            }
        }
    }
}

/// The functions of a structure become callable for a module. If it finds them in structures of a partner's, it may call them as they
/// are there.
fn offer(walled: &'static Walled, provider: u64, words: &[&'static str]) -> Answer<()> {
    for (at, word) in words.iter().enumerate() {
        // SAFETY: the core or `copy` has this structure, of this group.
        let value = unsafe { read(provider + 8 * at as u64) };
        if value != 0 && word.starts_with('*') {
            let inner = shapes().get(word).ok_or("a structure that is not known")?;
            offer(walled, value, inner)?;
        }
        if !is_function(word) {
            continue;
        }
        out::offer_back(walled, value as usize, kind(word))?;
        if let Some((whose, own)) = back::behind(value)
            && walled.shared().any(|partner| std::ptr::eq(partner, whose))
        {
            out::offer_beside(walled, own as usize, value as usize, kind(word))?;
        }
    }
    Ok(())
}

/// A structure that a module has looked up: which module, where it is, and its words.
type Looked = (&'static Walled, u64, &'static [&'static str]);

/// All of them.
static LOOKED: Mutex<Vec<Looked>> = Mutex::new(Vec::new());

/// What a module has looked up it leaves in memory that it shares with others. Modules whose policies name its memory may call the
/// functions, too: those that are there, and those that come.
fn tell_partners(frame: &Frame, provider: u64, words: &'static [&'static str]) -> Answer<()> {
    let looker = frame.walled;
    let mut looked = lock(&LOOKED);
    if !looked
        .iter()
        .any(|known| known.1 == provider && std::ptr::eq(known.0, looker))
    {
        looked.push((looker, provider, words));
    }
    drop(looked);
    let mut all = load::all().into_iter();
    let mut partners = all
        .by_ref()
        .filter(|other| other.partners.contains(&looker.name));
    partners.try_for_each(|partner| offer(partner, provider, words))
}

/// A module may call what its partners have looked up before it came.
pub(crate) fn hear(walled: &'static Walled) -> Answer<()> {
    let looked: Vec<Looked> = lock(&LOOKED).clone();
    let of_partners = |known: &&Looked| walled.partners.contains(&known.0.name);
    let mut known = looked.iter().filter(of_partners);
    known.try_for_each(|(_, provider, words)| offer(walled, *provider, words))
}

/// A group whose structures lead from one to the other is for modules with a wall alone.
fn may_use_group(frame: &Frame, group: &[u8]) -> Answer<()> {
    let group = std::str::from_utf8(group).ok();
    let owner = group.and_then(|group| owners::of(owners::Of::Groups, group));
    let has_wall = |owner: &str| {
        let mut all = load::all().into_iter();
        all.any(|other| other.name == owner && other.is_in_use.load(Ordering::Relaxed))
    };
    match owner {
        Some(owner) if owner != frame.walled.name && !has_wall(owner) => Err(lacks_wall(owner)),
        _ => Ok(()),
    }
}

/// A provider's structure: the core and other modules get a copy with functions of ours.
fn register(name: &'static str, arguments: [u64; 6]) -> u64 {
    mediate(|frame| {
        let [_, group, own_name, version, provider, kinds] = arguments;
        pools::before_serving(name)?;
        let group = copied::name(frame, group)?;
        let group_text = &group[..group.len() - 1];
        let words = shape(group_text).ok_or_else(|| {
            let group = String::from_utf8_lossy(group_text);
            format!("{name}: providers of the group {group} are not known")
        })?;
        may_use_group(frame, group_text).map_err(|what| format!("{name}: {what}"))?;
        let own_name = copied::name(frame, own_name)?;
        let version = copied::name(frame, version)?;
        let at = |text: &[u8]| text.as_ptr() as u64;
        let before = provider_of([at(&group), at(&own_name), at(&version)])?;
        let is_own = |(known, whose): &(u64, &Walled)| {
            *known == before && std::ptr::eq(*whose, frame.walled)
        };
        let whole = [group_text, b":", &own_name[..own_name.len() - 1]].concat();
        let mut partners = Vec::new();
        let copy = copy(frame, provider, words, &mut partners)?;
        let may_offer = |name: &str| owners::may_offer(name, owners::Of::Providers, &whole);
        let is_free = match partners[..] {
            [] => may_offer(&frame.walled.name),
            _ => partners.iter().all(|partner| may_offer(&partner.name)),
        };
        if !is_free || before != 0 && !lock(&PROVIDED).iter().any(is_own) {
            return Err(taken(name, [&group, &own_name, &version]));
        }
        // The core keeps the names where they are, and makes its lists in the pool that it gets with the first one.
        let pool = pools::lasting()?;
        // SAFETY: the server does not serve yet.
        let [group, own_name, version] = unsafe {
            [
                pools::lasting_copy(&group)?,
                pools::lasting_copy(&own_name)?,
                pools::lasting_copy(&version)?,
            ]
        };
        lock(&PROVIDED).push((copy, frame.walled));
        let real = apr::symbol(name).ok_or("the server does not have it")?;
        // SAFETY: it is httpd's function.
        let real: extern "C" fn(u64, u64, u64, u64, u64, u64) -> u64 =
            unsafe { std::mem::transmute(real) };
        Ok(real(pool, group, own_name, version, copy, kinds))
    })
}

pub(crate) extern "C" fn ap_register_auth_provider(
    pool: u64,
    group: u64,
    name: u64,
    version: u64,
    provider: u64,
    kinds: u64,
) -> u64 {
    let arguments = [pool, group, name, version, provider, kinds];
    register("ap_register_auth_provider", arguments)
}

pub(crate) extern "C" fn ap_register_provider(
    pool: u64,
    group: u64,
    name: u64,
    version: u64,
    provider: u64,
) -> u64 {
    let arguments = [pool, group, name, version, provider, 0];
    register("ap_register_provider", arguments)
}

/// A group whose functions follow a structure in their caller's memory. Those of a module without a wall would write wherever it leads.
const HANDLED: &[u8] = b"cache";

/// The functions of a provider become callable for the module that has looked it up.
pub(crate) extern "C" fn ap_lookup_provider(group: u64, name: u64, version: u64) -> u64 {
    mediate(|frame| {
        let [group, name, version] = [
            copied::name(frame, group)?,
            copied::name(frame, name)?,
            copied::name(frame, version)?,
        ];
        let at = |text: &[u8]| text.as_ptr() as u64;
        let provider = provider_of([at(&group), at(&name), at(&version)])?;
        let group = &group[..group.len() - 1];
        may_use_group(frame, group).map_err(|what| format!("ap_lookup_provider: {what}"))?;
        let is_together = group == HANDLED
            || std::str::from_utf8(group)
                .is_ok_and(|group| owners::of(owners::Of::Groups, group).is_some());
        let is_walled = || lock(&PROVIDED).iter().any(|(known, _)| *known == provider);
        if is_together && provider != 0 && !is_walled() {
            let group = String::from_utf8_lossy(group);
            return Err(format!(
                "ap_lookup_provider: a structure of the group {group} is of a module without a wall: load that by MullionLoadModule, too"
            ));
        }
        // Of another group the module may read it, and call nothing in it.
        if let Some(words) = shape(group).filter(|_| provider != 0) {
            offer(frame.walled, provider, words)?;
            tell_partners(frame, provider, words)?;
            note_together(provider, words);
            crate::reading::show(frame, provider, 8 * words.len() as u64)?;
        }
        Ok(provider)
    })
}

/// Optional functions with a request as their parameter: those that answer a number, and those that answer a string.
const OPTIONAL: [&[u8]; 2] = [b"authz_some_auth_required", b"authz_ap_some_auth_required"];
const OPTIONAL_TEXTS: [&[u8]; 2] = [b"authn_ap_auth_type", b"authn_ap_auth_name"];

fn optional(name: &[u8]) -> Option<&'static Back> {
    match OPTIONAL.contains(&name) {
        true => Some(kind("optional")),
        false if OPTIONAL_TEXTS.contains(&name) => Some(kind("optional_text")),
        false => find_back(std::str::from_utf8(name).ok()?),
    }
}

/// The optional function that the server has under a name.
fn function_of(name: &[u8]) -> Answer<u64> {
    let real = apr::symbol("apr_dynamic_fn_retrieve").ok_or("the server does not have it")?;
    // SAFETY: it is APR's function, with a string of ours.
    let real: extern "C" fn(u64) -> u64 = unsafe { std::mem::transmute(real) };
    Ok(real(name.as_ptr() as u64))
}

/// A module gets its own optional functions, and those of others whose parameters are known. It does without the rest.
pub(crate) extern "C" fn apr_dynamic_fn_retrieve(name: u64) -> u64 {
    mediate(|frame| {
        let name = copied::name(frame, name)?;
        let text = &name[..name.len() - 1];
        let own = lock(&frame.walled.optional).get(text).copied();
        let Some(back) = optional(text).filter(|_| own.is_none()) else {
            return Ok(own.unwrap_or(0));
        };
        let found = function_of(&name)?;
        out::offer_back(frame.walled, found as usize, back)?;
        Ok(found)
    })
}

/// A function that the module offers: others get it if its parameters are known, and otherwise nobody does.
pub(crate) extern "C" fn apr_dynamic_fn_register(name: u64, function: u64) -> u64 {
    mediate(|frame| {
        pools::before_serving("apr_dynamic_fn_register")?;
        let name = copied::name(frame, name)?;
        let text = &name[..name.len() - 1];
        // The last one that registers would be called by all that ask behind it.
        let before = function_of(&name)?;
        let is_free = owners::may_offer(&frame.walled.name, owners::Of::Functions, text);
        if !is_free || before != 0 && !back::is_of(frame.walled, before) {
            return Err(taken("apr_dynamic_fn_register", [b"", &name, b""]));
        }
        if frame.walled.is_gate(function) {
            lock(&frame.walled.optional).insert(text.to_vec(), function);
        }
        let Some(back) = optional(text) else {
            return Ok(0);
        };
        let stand_in = back::stand_in(frame, back, function)?;
        let real = apr::symbol("apr_dynamic_fn_register").ok_or("the server does not have it")?;
        // SAFETY: it is APR's function; what stands for the module's stays.
        let real: extern "C" fn(u64, u64) = unsafe { std::mem::transmute(real) };
        // SAFETY: the server does not serve yet. APR keeps the name's address.
        let name = unsafe { pools::lasting_copy(&name)? };
        real(name, stand_in);
        Ok(0)
    })
}

/// Lists of functions that modules keep of their own hooks: of which module, and where its pointer to the list is.
static LISTS: Mutex<Vec<(&'static Walled, u64)>> = Mutex::new(Vec::new());

/// An element of such a list: function, name, names of modules before and behind it, order.
const ELEMENT: u64 = 40;

/// The core would sort the list in the module's memory. [`sort`] does it.
pub(crate) extern "C" fn apr_hook_sort_register(_: u64, list: u64) -> u64 {
    mediate(|frame| {
        pools::before_serving("apr_hook_sort_register")?;
        frame.walled.must_write(list, 8)?;
        let mut lists = lock(&LISTS);
        if !lists.iter().any(|(_, known)| *known == list) {
            lists.push((frame.walled, list));
        }
        Ok(0)
    })
}

/// An element, with the names in it.
struct Element {
    words: [u64; 5],
    name: Option<Vec<u8>>,
    before: Vec<Vec<u8>>,
    behind: Vec<Vec<u8>>,
}

impl Element {
    /// Names that lead nowhere are none.
    fn of(walled: &'static Walled, words: [u64; 5]) -> Element {
        let [_, name, before, behind, _] = words;
        Element {
            words,
            name: copied::text_of(walled, name).ok(),
            before: names(walled, before),
            behind: names(walled, behind),
        }
    }

    /// Whether it is to come behind the one that follows it.
    fn is_behind(&self, next: &Element) -> bool {
        let has = |list: &[Vec<u8>], name: &Option<Vec<u8>>| {
            name.as_ref().is_some_and(|name| list.contains(name))
        };
        has(&self.before, &next.name) || has(&next.behind, &self.name)
    }
}

/// Names in a list of the module's, which ends with a null pointer.
fn names(walled: &'static Walled, list: u64) -> Vec<Vec<u8>> {
    const MOST: u64 = 64;
    let word = |at: u64| {
        let (at, mut bytes) = (list.wrapping_add(8 * at), [0; 8]);
        walled.must_read(at, 8).ok()?;
        copied::bytes(at, &mut bytes).ok()?;
        Some(u64::from_le_bytes(bytes))
    };
    let words = (0..MOST).map_while(|at| word(at).filter(|name| *name != 0));
    words
        .filter_map(|name| copied::text_of(walled, name).ok())
        .collect()
}

/// Sorts the hooks that modules have of their own by their order, and by the names of the modules that come before and behind.
pub(crate) fn sort() {
    for (walled, list) in lock(&LISTS).drain(..) {
        // SAFETY: each address is looked up in the module's own memory before it is read or written; none of its code runs.
        unsafe {
            if !walled.writes(list, 8) {
                continue;
            }
            let array = read(list);
            if array == 0 || !walled.writes(array, 32) {
                continue;
            }
            let (count, elements) = (u64::from(read(array + 12) as u32), read(array + 24));
            if count > 4096 || !walled.writes(elements, count * ELEMENT) {
                continue;
            }
            let words = (0..count).map(|at| ((elements + at * ELEMENT) as *const [u64; 5]).read());
            let mut all: Vec<Element> = words.map(|words| Element::of(walled, words)).collect();
            all.sort_by_key(|element| element.words[4] as i32);
            for _ in 0..all.len() {
                for at in 1..all.len() {
                    if all[at - 1].is_behind(&all[at]) {
                        all.swap(at - 1, at);
                    }
                }
            }
            for (at, element) in all.iter().enumerate() {
                ((elements + at as u64 * ELEMENT) as *mut [u64; 5]).write(element.words);
            }
        }
    }
}

/// The kind of a hook that modules offer each other by name.
fn optional_hook(name: &[u8]) -> Option<&'static Back> {
    match name {
        b"status_hook" => Some(kind("request")),
        name => find_back(std::str::from_utf8(name).ok()?),
    }
}

/// The core's list of the functions of such a hook: the module may call each, if their parameters are known.
pub(crate) extern "C" fn apr_optional_hook_get(name: u64) -> u64 {
    mediate(|frame| {
        let name = copied::name(frame, name)?;
        let Some(kind) = optional_hook(&name[..name.len() - 1]) else {
            return Ok(0);
        };
        let real = apr::symbol("apr_optional_hook_get").ok_or("the server does not have it")?;
        // SAFETY: it is APR's function.
        let real: extern "C" fn(u64) -> u64 = unsafe { std::mem::transmute(real) };
        let list = real(name.as_ptr() as u64);
        if list != 0 {
            // SAFETY: the core's array, of elements of this size, each of which begins with its function.
            unsafe {
                let (count, elements) = (u64::from(read(list + 12) as u32), read(list + 24));
                for at in 0..count {
                    let function = read(elements + at * ELEMENT);
                    out::offer_back(frame.walled, function as usize, kind)?;
                }
            }
        }
        Ok(list)
    })
}

/// A module adds a function to such a hook. One whose parameters are not known is not called.
pub(crate) extern "C" fn apr_optional_hook_add(
    name: u64,
    function: u64,
    before: u64,
    behind: u64,
    order: u64,
) -> u64 {
    mediate(|frame| {
        pools::before_serving("apr_optional_hook_add")?;
        let name = copied::name(frame, name)?;
        let Some(kind) = optional_hook(&name[..name.len() - 1]) else {
            return Ok(0);
        };
        let stand_in = back::stand_in(frame, kind, function)?;
        let real = apr::symbol("apr_optional_hook_add").ok_or("the server does not have it")?;
        // SAFETY: it is APR's function, with names that it reads.
        let real: extern "C" fn(u64, u64, u64, u64, u64) = unsafe { std::mem::transmute(real) };
        // SAFETY: the server does not serve yet. APR keeps the name's address.
        let name = unsafe { pools::lasting_copy(&name)? };
        real(name, stand_in, before, behind, order);
        Ok(0)
    })
}
