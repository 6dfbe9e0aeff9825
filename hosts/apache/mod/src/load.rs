//! From `MullionLoadModule` to a module that httpd has.

use crate::apr;
use crate::back;
use crate::call;
use crate::hashes;
use crate::interface::{back as kind, interface};
use crate::layout::{self, read};
use crate::own;
use crate::reading;
use crate::swaps::Swaps;
use crate::walled::{Answer, Walled, lock};
use mullion_symbols::Symbols;
use mullion_word_abi::Protection;
use mullion_word_policy::File;
use mullion_word_runtime::{ErrorValue, Host, Module};
use mullion_word_verifier::verify;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, Ordering};

/// What modules may do that have no policy of their own.
pub(crate) const DEFAULT: &str = include_str!("../policies/default.toml");

/// What a module may have from pools, if its policy does not say.
const MEMORY: u64 = 256 << 20;

const COOKIE: u64 = 0x4150_3234;

/// A module that was loaded, with what it was loaded from: it stays over restarts of the server, with fresh data.
struct Loaded {
    name: String,
    bytes: Vec<u8>,
    policy: String,
    walled: &'static Walled,
}

static ALL: Mutex<Vec<Loaded>> = Mutex::new(Vec::new());

/// The process that the table belongs to.
static PROCESS: AtomicI32 = AtomicI32::new(0);

/// All modules that were loaded.
pub(crate) fn all() -> Vec<&'static Walled> {
    lock(&ALL).iter().map(|loaded| loaded.walled).collect()
}

/// The other module that has memory at an address.
pub(crate) fn owner(asker: &Walled, at: u64) -> Option<String> {
    let others = all();
    let owner = others
        .iter()
        .find(|other| !std::ptr::eq(**other, asker) && other.has(at))?;
    Some(format!("memory of {}", owner.name))
}

/// The word wall in this process, with its handlers in front of those that httpd has installed since.
pub(crate) fn host() -> Answer<Host> {
    let host = Host::new().map_err(|error| error.to_string())?;
    // SAFETY: it asks for a number.
    let process = unsafe { libc::getpid() };
    let before = PROCESS.swap(process, Ordering::SeqCst);
    if before != 0 {
        host.take_signals_back()
            .map_err(|error| error.to_string())?;
    }
    Ok(host)
}

/// The segments that the module writes and that are not fixed after relocation: first address and bytes, in the file.
fn data(bytes: &[u8]) -> Vec<(u64, u64)> {
    let number = |at: u64, size: usize| {
        let at = at as usize;
        let found = bytes.get(at..at + size).unwrap_or_default();
        found
            .iter()
            .rev()
            .fold(0u64, |sum, byte| sum << 8 | u64::from(*byte))
    };
    let (headers, count) = (number(32, 8), number(56, 2));
    let header = |n: u64| headers + 56 * n;
    let kind = |n: u64| number(header(n), 4);
    let place = |n: u64| (number(header(n) + 16, 8), number(header(n) + 40, 8));
    let fixed = (0..count).find(|n| kind(*n) == 0x6474_e552).map(place);
    let writable = (0..count).filter(|n| kind(*n) == 1 && number(header(*n) + 4, 4) & 2 != 0);
    let pieces = writable.map(place).flat_map(|(at, bytes)| match fixed {
        Some((first, size)) if (at..at + bytes).contains(&first) => {
            let end = (first + size).next_multiple_of(4096);
            vec![(at, first - at), (end, (at + bytes).saturating_sub(end))]
        }
        _ => vec![(at, bytes)],
    });
    pieces.filter(|(_, bytes)| *bytes != 0).collect()
}

/// Loads a module behind the wall: `MullionLoadModule NAME FILE [POLICY]`.
pub(crate) fn load(cmd: u64, name: &str, file: &Path, policy: Option<&Path>) -> Answer<()> {
    let said = |path: &Path| {
        let path = path.display().to_string();
        move |error: std::io::Error| format!("{path}: {error}")
    };
    let host = host()?;
    let bytes = std::fs::read(file).map_err(said(file))?;
    let beside = file.with_extension("toml");
    for decides in [Some(file), Some(&*beside), policy].into_iter().flatten() {
        crate::opened::guard(decides);
    }
    let policy = match policy {
        Some(policy) => std::fs::read_to_string(policy).map_err(said(policy))?,
        None if beside.is_file() => std::fs::read_to_string(&beside).map_err(said(&beside))?,
        None => DEFAULT.to_owned(),
    };
    let known = lock(&ALL).iter().find_map(|loaded| {
        let same = loaded.name == name && loaded.bytes == bytes && loaded.policy == policy;
        same.then_some(loaded.walled)
    });
    let walled = match known {
        Some(walled) => {
            let _old = walled.domain.take_reports();
            walled.domain.restart().map_err(|error| error.to_string())?;
            walled
        }
        None => {
            let walled = make(host, name, &bytes, &policy)?;
            let loaded = Loaded {
                name: name.to_owned(),
                bytes,
                policy,
                walled,
            };
            lock(&ALL).push(loaded);
            walled
        }
    };
    crate::partners::hear(walled).map_err(|error| format!("{name}: {error}"))?;
    introduce(walled, cmd, name)?;
    match walled.domain.is_ended() {
        true => Err(format!(
            "{name} was stopped when it was loaded; the line above says why"
        )),
        false => Ok(()),
    }
}

fn make(host: Host, name: &str, bytes: &[u8], policy: &str) -> Answer<&'static Walled> {
    let text = |error: &dyn std::fmt::Display| format!("{name}: {error}");
    let file = File::parse(policy).map_err(|error| text(&error))?;
    // What a call answers that was ended, if it is not known which call it was: an error to the core in most places.
    let ended = ErrorValue {
        integer: 500,
        float: 0.0,
    };
    let lowered = interface().policy(&file).map_err(|error| text(&error))?;
    let verified = verify(bytes.to_vec()).map_err(|error| text(&error))?;
    let reads = verified.protection() == Protection::ReadWrite;
    let variables = match reads {
        true => reading::variables(&verified),
        false => Vec::new(),
    };
    if reads {
        reading::begin().map_err(|error| text(&error))?;
    }
    let lowered = lowered.error(ended);
    // A call with words on the stack takes longer, so only modules that have such functions get them.
    let is_provider = |name: &String| {
        let others = ["apr_hook_sort_register", "apr_dynamic_fn_register"];
        name.contains("register_provider") || others.contains(&name.as_str())
    };
    let is_wide = verified.imports().iter().any(is_provider) && crate::partners::has_wide(bytes);
    let lowered = match is_wide {
        true => lowered.stacked(crate::slots::STACKED),
        false => lowered,
    };
    let module = Module::new(name, &verified).map_err(|error| text(&error))?;
    let symbols = Mutex::new(Symbols::new(bytes.to_vec()));
    module.set_fields(move |reach| lock(&symbols).reached_field(reach));
    let domain = match crate::learn::folder() {
        None => host.load_with(&module, lowered, &mut call::resolve),
        Some(folder) => {
            let symbols = Symbols::new(bytes.to_vec());
            let learning = crate::learn::Learning::new(folder, name, file.clone(), symbols);
            let hook = move |note: &mullion_word_runtime::Note<'_>| learning.note(note);
            // SAFETY: the administrator has asked for it by the environment, and bears what modules do meanwhile.
            unsafe { host.learn_with(&module, lowered, &mut call::resolve, hook) }
        }
    };
    let domain = domain.map_err(|error| text(&error))?;
    let own = domain
        .symbol(name)
        .ok_or_else(|| format!("{name}: the file has no structure of this name"))?
        as u64;
    let base = domain.base() as u64;
    let data: Vec<(u64, u64)> = data(bytes)
        .iter()
        .map(|(at, bytes)| (base + at, *bytes))
        .collect();
    let inside = |(at, bytes): &(u64, u64)| {
        (*at..at + bytes).contains(&own) && own + layout::MODULE as u64 <= at + bytes
    };
    if !data.iter().any(inside) {
        return Err(format!("{name}: its structure is not in its data"));
    }
    let folders = crate::written::Folders::of(&file).map_err(|error| text(&error))?;
    let allowed = interface().allowed(&file).map_err(|error| text(&error))?;
    let pieces = |structure: &str| {
        let fields = allowed
            .keys()
            .filter(|name| name.split_once('.').is_some_and(|(of, _)| of == structure));
        let fields = fields.filter(|name| !name.ends_with("_config"));
        let mut places: Vec<(u64, u64)> = fields.filter_map(|name| layout::field(name)).collect();
        places.sort_unstable();
        let mut merged: Vec<(u64, u64)> = Vec::new();
        for (at, bytes) in places {
            match merged.last_mut() {
                Some(last) if last.0 + last.1 == at => last.1 += bytes,
                _ => merged.push((at, bytes)),
            }
        }
        merged
    };
    let places = (
        allowed.contains_key("request_rec.request_config"),
        allowed.contains_key("conn_rec.conn_config"),
        allowed.contains_key("server_rec.module_config"),
    );
    if reads {
        let mut requests = pieces("request_rec");
        requests.extend(crate::swaps::fields(|name| allowed.contains_key(name)));
        reading::may_set(&requests, &pieces("conn_rec"), &pieces("cmd_parms"));
    }
    let texts = allowed.keys().filter_map(|name| {
        let field = name.strip_suffix(".characters")?;
        Some(layout::field(field)?.0)
    });
    let texts = texts.collect();
    let backend_fields = crate::backends::BACKEND_FIELDS
        .iter()
        .map(|(name, ..)| *name);
    let backend_fields = backend_fields.filter(|name| allowed.contains_key(*name));
    let partners = allowed.keys();
    let partners = partners.filter_map(|name| Some(name.strip_suffix(".memory")?.to_owned()));
    let walled = Walled::new(
        name,
        (domain, host),
        own,
        file.limits.memory.unwrap_or(MEMORY),
        pieces("request_rec"),
        pieces("conn_rec"),
        pieces("cmd_parms"),
        places,
        texts,
        data,
        Symbols::new(bytes.to_vec()),
        partners.collect(),
        (reads, variables),
        (
            allowed.contains_key(crate::interface::REMOVAL),
            allowed.contains_key(crate::score::LINE),
            is_wide,
        ),
        folders,
        backend_fields.collect(),
        Swaps::new(|name| allowed.contains_key(name)),
    );
    reading::add(walled);
    walled.domain.on_demand(|address, _, write| match write {
        true => {
            // A right ends with its pool, so nothing is kept for it behind this.
            let kept = crate::frame::now().map(|frame| (frame, frame.kept()));
            let may = walled.demand(address);
            if let Some((frame, kept)) = kept {
                frame.let_go(kept);
            }
            may
        }
        false => walled.demand_read(address),
    });
    let names = verified.imports().iter();
    let is_ring = |name: &&String| name.contains("bucket") || name.contains("brigade");
    if names.into_iter().any(|name| is_ring(&name)) {
        crate::out::offer_buckets(walled).map_err(|error| text(&error))?;
    }
    Ok(walled)
}

/// A word of a structure that the module has.
fn word(walled: &Walled, at: u64) -> Answer<u64> {
    use mullion_word_table::Access;
    match walled.domain.view().allows(at, 8, Access::READ) {
        // SAFETY: the module may read it, so there is memory; none of its code runs.
        true => Ok(unsafe { read(at) }),
        false => Err(format!("{}: {at:#x} is not the module's", walled.name)),
    }
}

/// Has httpd know a module: by a structure of ours that is like the module's, with functions of ours.
fn introduce(walled: &'static Walled, cmd: u64, name: &str) -> Answer<()> {
    let (own, to) = (walled.own, walled.stand_in);
    let set = |at: u64, value: u64| {
        // SAFETY: it is our own structure.
        unsafe { ((to + at) as *mut u64).write(value) };
    };
    for at in (0..layout::MODULE as u64).step_by(8) {
        set(at, word(walled, own + at)?);
    }
    if word(walled, own + layout::M_MAGIC)? != COOKIE {
        return Err(format!(
            "{name}: its structure is no module's for this server"
        ));
    }
    set(layout::M_NEXT, 0);
    set(layout::M_REWRITE, 0);
    // SAFETY: our own structure.
    unsafe { ((to + layout::M_INDEX) as *mut i32).write(-1) };
    let functions = [
        (layout::M_CREATE_DIR, "create_dir"),
        (layout::M_MERGE_DIR, "merge"),
        (layout::M_CREATE_SERVER, "create_server"),
        (layout::M_MERGE_SERVER, "merge"),
    ];
    for (at, of) in functions {
        let function = word(walled, own + at)?;
        let stand_in = match function {
            0 => 0,
            at if walled.is_gate(at) => back::of(walled, kind(of), at)?,
            at => return Err(format!("{name}: {at:#x} is no function of the module")),
        };
        set(at, stand_in);
    }
    let hooks = word(walled, own + layout::M_HOOKS)?;
    if hooks != 0 {
        if !walled.is_gate(hooks) {
            return Err(format!("{name}: {hooks:#x} is no function of the module"));
        }
        // It is called with the module's number set, which the module reads in its own structure.
        set(layout::M_HOOKS, back::of(walled, kind("register"), hooks)?);
    }
    let commands = word(walled, own + layout::M_CMDS)?;
    if commands != 0 {
        set(layout::M_CMDS, directives(walled, commands)?);
    }
    // SAFETY: the core has passed the state of the directive.
    let (pool, server) = unsafe { (read(cmd + layout::CMD_POOL), read(cmd + layout::CMD_SERVER)) };
    // SAFETY: the directive's pool lives, and the configuration is read by one thread.
    tell_of_hashes(walled, unsafe { hashes::lie_as_known(pool) });
    walled.is_in_use.store(true, Ordering::Relaxed);
    // SAFETY: it is a module's structure, which stays.
    let error = unsafe { apr::ap_add_loaded_module(to, pool, apr::string(pool, name) as u64) };
    if !error.is_null() {
        // SAFETY: the core's strings end with a zero.
        return Err(String::from_utf8_lossy(unsafe { apr::text(error as u64) }).into_owned());
    }
    number(walled);
    // SAFETY: the core has passed the server, and the pool and the structure live as long as its configuration.
    unsafe { list(server, apr::string(pool, name) as u64, to) };
    // SAFETY: the structure stays longer than the pool.
    unsafe {
        let (plain, child) = (
            remove as *const () as usize,
            apr::apr_pool_cleanup_null as *const () as usize,
        );
        apr::apr_pool_cleanup_register(pool, to, plain, child);
        apr::ap_single_module_configure(pool, server, to);
    }
    Ok(())
}

/// A module that reads hashes itself is told whether they lie as it has it. Its data is fresh.
fn tell_of_hashes(walled: &Walled, lie_as_known: bool) {
    let word = walled.domain.symbol(hashes::READS).map(|at| at as u64);
    let is_data = |at: &u64| {
        let mut data = walled.data.iter();
        data.any(|(start, bytes)| (*start..start + bytes.saturating_sub(3)).contains(at))
    };
    // One whose loads are checked may not read all that a hash leads to.
    let lies_as_known = lie_as_known && !walled.reads;
    if let Some(at) = word.filter(is_data) {
        // SAFETY: these four bytes are of the module's data, and none of its code runs.
        unsafe { (at as *mut u32).write_unaligned(u32::from(lies_as_known)) };
    }
}

/// Puts a module into `mod_so`'s list of those that it has loaded, by which `<IfModule headers_module>` and `LogLevel headers:debug`
/// find it: an array of names with modules.
///
/// # Safety
/// The server is the core's; the name and the module's structure live as long as its configuration.
unsafe fn list(server: u64, name: u64, module: u64) {
    // SAFETY: `mod_so` is part of the server, and its configuration's first word is the array.
    unsafe {
        let so = apr::ap_find_linked_module(c"mod_so.c".as_ptr());
        if so == 0 {
            return;
        }
        let index = ((so + layout::M_INDEX) as *const i32).read() as u64;
        let own = read(read(server + layout::S_MODULE_CONFIG) + 8 * index);
        if own != 0 {
            let row = apr::apr_array_push(read(own)) as *mut [u64; 2];
            row.write([name, module]);
        }
    }
}

/// A module's own structure gets the number that the core has given to ours.
pub(crate) fn number(walled: &Walled) {
    // SAFETY: both are modules' structures, and none of the module's code runs.
    unsafe {
        let index = ((walled.stand_in + layout::M_INDEX) as *const i32).read();
        ((walled.own + layout::M_INDEX) as *mut i32).write(index);
    }
}

extern "C" fn remove(module: u64) -> i32 {
    let mut all = all().into_iter();
    if let Some(walled) = all.find(|walled| walled.stand_in == module) {
        walled.is_in_use.store(false, Ordering::Relaxed);
    }
    // SAFETY: it was added.
    unsafe { apr::ap_remove_loaded_module(module) };
    0
}

/// A module's table of directives with functions of ours.
fn directives(walled: &'static Walled, from: u64) -> Answer<u64> {
    let mut rows: Vec<u64> = Vec::new();
    let mut at = from;
    while word(walled, at)? != 0 {
        for part in (0..layout::COMMAND).step_by(8) {
            rows.push(word(walled, at + part)?);
        }
        let function = word(walled, at + layout::COMMAND_FUNC)?;
        let is_ours = own::is_slot(function);
        if function != 0 && !walled.is_gate(function) && !is_ours {
            // SAFETY: the module's names end with zeros, as they come from its file.
            let name =
                String::from_utf8_lossy(unsafe { apr::text(word(walled, at)?) }).into_owned();
            return Err(format!(
                "{}: the function of the directive {name} is not the module's",
                walled.name
            ));
        }
        let first = rows.len() - layout::COMMAND as usize / 8;
        if function != 0 {
            rows[first + layout::COMMAND_FUNC as usize / 8] =
                back::of(walled, kind("directive"), function)?;
        }
        at += layout::COMMAND;
        if rows.len() > 5 * 4096 {
            return Err(format!(
                "{}: its table of directives does not end",
                walled.name
            ));
        }
    }
    rows.extend([0; 5]);
    // The core keeps pointers into it until the module is removed; a restart of the server makes another one.
    Ok(Box::leak(rows.into_boxed_slice()).as_ptr() as u64)
}
