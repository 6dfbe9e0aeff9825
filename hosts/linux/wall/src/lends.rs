//! Memory to which pointers in an argument lead: it is lent to a module for one call of an export of its.
//!
//! ```text
//!   zlib_inflate.toml: lends = ["zlib_inflate.read.0.0.8", "zlib_inflate.write.0.24.32", "zlib_inflate.whole.0.64"]
//!   a walled caller ──► mediator: is all of that the caller's? ──┐
//!   any caller ─────────────────────────────────────────────────►├──► lender: a lease ──► gate ──► zlib_inflate
//!                                                                └──◄ the pointers lead into the same memory still
//! ```
//!
//! The structure with the pointers may be the module's to write during the call. So they are compared when it returns: a pointer and
//! its length may move on within what was lent, and nowhere else. The next call lends what is there then.

use crate::{WALL, rights};
use mullion_word::runtime::{Domain, Lease};
use mullion_word_policy::File;
use mullion_word_table::Access;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How much memory is lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// So many bytes as the word says that lies so far behind where the argument points to.
    Counted(u64),
    /// All of the block that begins there.
    Whole,
}

/// A pointer that a call of a function lends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lend {
    argument: usize,
    /// It lies so many bytes behind where the argument points to. None: it is the argument.
    at: Option<u64>,
    extent: Extent,
    write: bool,
}

/// What calls of a function lend, and to which module.
#[derive(Clone, Debug)]
pub(crate) struct Lends {
    of: String,
    all: Vec<Lend>,
}

/// Memory that a call lends: where the pointer is, where it leads, and how far.
#[derive(Clone, Copy)]
struct Lent {
    lend: Lend,
    start: u64,
    bytes: u64,
}

static LENDS: Mutex<BTreeMap<String, Lends>> = Mutex::new(BTreeMap::new());

fn lends() -> MutexGuard<'static, BTreeMap<String, Lends>> {
    LENDS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `lends` of a policy's `[group]`.
///
/// # Errors
/// The first line that says nothing of that kind.
pub(crate) fn of_file(file: &File) -> Result<Vec<(String, Lend)>, String> {
    let lines = file.groups.get("lends").into_iter().flatten();
    lines.map(|line| lend(line).ok_or(line.clone())).collect()
}

/// `zlib_inflate.read.0.0.8`, `zlib_inflate.whole.0.64`, `zstd_compress_cctx.whole.0`.
fn lend(line: &str) -> Option<(String, Lend)> {
    let mut words = line.split('.');
    let (function, how) = (words.next()?, words.next()?);
    let argument = words.next()?.parse().ok().filter(|at| *at < 6)?;
    let rest: Vec<u64> = words.map(str::parse).collect::<Result<_, _>>().ok()?;
    let (at, extent) = match (how, rest.as_slice()) {
        ("whole", []) => (None, Extent::Whole),
        ("whole", [at]) => (Some(*at), Extent::Whole),
        ("read" | "write", [at, count]) => (Some(*at), Extent::Counted(*count)),
        _ => return None,
    };
    let write = how != "read";
    let lend = Lend {
        argument,
        at,
        extent,
        write,
    };
    (!function.is_empty()).then(|| (function.to_owned(), lend))
}

/// Notes what the policy of a module says, before others are loaded that call it.
pub(crate) fn has_said(name: &str, said: Vec<(String, Lend)>) {
    let mut lends = lends();
    lends.retain(|_, one| one.of != name);
    for (function, lend) in said {
        let entry = lends.entry(function).or_insert_with(|| Lends {
            of: name.to_owned(),
            all: Vec::new(),
        });
        // The first module that says something of a function is the one that has it.
        if entry.of == name {
            entry.all.push(lend);
        }
    }
}

/// What calls of a function lend, if they do.
pub(crate) fn of(function: &str) -> Option<Lends> {
    lends().get(function).cloned()
}

/// A word of the kernel's memory, or of a module's.
fn word(address: u64) -> u64 {
    // SAFETY: an argument of a call leads there. The caller is the kernel, or a module that may read it by the look before.
    unsafe { (address as *const u64).read_unaligned() }
}

impl Lend {
    /// None: a null pointer, no bytes, or no block that begins there.
    fn find(self, arguments: &[u64; 6]) -> Option<Lent> {
        let base = arguments[self.argument];
        let start = match self.at {
            Some(_) if base <= 4096 => return None,
            Some(at) => word(base.checked_add(at)?),
            None => base,
        };
        let bytes = match self.extent {
            Extent::Counted(count) => word(base.checked_add(count)?),
            Extent::Whole => {
                let object = WALL.get()?.kernel.object(start)?;
                // Large blocks of `kmalloc` are pages without an owner, which go together.
                let kinds = [rights::AREA, "page"];
                let is_block =
                    object.kind.starts_with("kmalloc_") || kinds.contains(&object.kind.as_str());
                (is_block && object.start == start).then_some(object.bytes)?
            }
        };
        let is_something = start > 4096 && bytes != 0 && start.checked_add(bytes).is_some();
        is_something.then_some(Lent {
            lend: self,
            start,
            bytes,
        })
    }
}

impl Lent {
    /// Whether the pointer leads into what was lent still, and no further.
    fn stays(&self, arguments: &[u64; 6]) -> bool {
        let Some(at) = self.lend.at else {
            return true;
        };
        let base = arguments[self.lend.argument];
        let start = word(base + at);
        match self.lend.extent {
            Extent::Whole => start == self.start,
            Extent::Counted(count) => {
                let end = start.checked_add(word(base + count));
                self.start <= start && end.is_some_and(|end| end <= self.start + self.bytes)
            }
        }
    }

    /// As the caller had it.
    fn restore(&self, arguments: &[u64; 6]) {
        let base = arguments[self.lend.argument];
        let put = |at: u64, word: u64| {
            // SAFETY: the structure with the pointer is there until the call returns, and the one thread of the kernel is here.
            unsafe { ((base + at) as *mut u64).write_unaligned(word) }
        };
        if let Some(at) = self.lend.at {
            put(at, self.start);
            if let Extent::Counted(count) = self.lend.extent {
                put(count, self.bytes);
            }
        }
    }
}

impl Lends {
    /// A walled module calls: what the call lends has to be its own.
    ///
    /// # Errors
    /// What is not.
    pub(crate) fn before(&self, caller: &Domain, arguments: &[u64; 6]) -> Result<(), String> {
        for lend in &self.all {
            let base = arguments[lend.argument];
            let counted = match lend.extent {
                Extent::Counted(count) => Some(count),
                Extent::Whole => None,
            };
            let mut words = lend.at.into_iter().chain(counted);
            let reads =
                |at| matches!(base.checked_add(at), Some(place) if rights::may_now(caller, place));
            if base > 4096 && !words.all(reads) {
                return Err(format!("argument {} is not the module's", lend.argument));
            }
            if let Some(lent) = lend.find(arguments)
                && !may(caller, lent.start, lent.bytes, lend.write)
            {
                return Err(format!("{:#x} is not the module's to lend", lent.start));
            }
        }
        Ok(())
    }
}

/// Whether all of these bytes are the module's, now or when it asks.
pub(crate) fn may(domain: &Domain, start: u64, bytes: u64, write: bool) -> bool {
    let access = if write { Access::WRITE } else { Access::READ };
    if domain.view().allows(start, bytes, access) {
        return true;
    }
    let (mut at, end) = (start, start + bytes);
    while at < end {
        let object = WALL.get().and_then(|wall| wall.kernel.object(at));
        match object {
            Some(object) if rights::may_byte(domain, at, write) => {
                at = (object.start + object.bytes).max(at + 1);
            }
            _ => return false,
        }
    }
    true
}

/// A function of a module whose calls lend.
struct Place {
    gate: AtomicUsize,
    what: Mutex<Option<(String, Domain, Lends)>>,
}

static PLACES: [Place; 64] = [const {
    Place {
        gate: AtomicUsize::new(0),
        what: Mutex::new(None),
    }
}; 64];

type Function = extern "C" fn(u64, u64, u64, u64, u64, u64) -> u64;

extern "C" fn lender<const N: usize>(a: u64, b: u64, c: u64, d: u64, e: u64, f: u64) -> u64 {
    let place = &PLACES[N];
    // SAFETY: `through` has set the address of a gate, which takes its arguments from these registers.
    let gate: Function = unsafe { std::mem::transmute(place.gate.load(Ordering::Relaxed)) };
    let what = place.what.lock().unwrap_or_else(PoisonError::into_inner);
    let Some((name, domain, lends)) = what.clone() else {
        return gate(a, b, c, d, e, f);
    };
    // Another task may call the same function before this call returns.
    drop(what);
    let arguments = [a, b, c, d, e, f];
    let found = lends.all.iter().filter_map(|lend| lend.find(&arguments));
    let lent: Vec<Lent> = found.collect();
    let lease = Lease::new();
    for one in &lent {
        let (start, bytes) = (one.start as usize, one.bytes as usize);
        // SAFETY: the kernel calls with it, or a module whose own it is. The module's policy says that it works there.
        let _refused = unsafe { lease.grant(domain, start, bytes, one.lend.write) };
    }
    let result = gate(a, b, c, d, e, f);
    lease.end();
    if lent.iter().all(|one| one.stays(&arguments)) {
        return result;
    }
    lent.iter().for_each(|one| one.restore(&arguments));
    if !domain.is_ended() {
        domain.end(format!(
            "{name} has changed where memory is that was lent to it"
        ));
    }
    // Its error value.
    gate(a, b, c, d, e, f)
}

macro_rules! places {
    ($($tens:literal)*) => {
        const LENDERS: &[Function] = &[
            $(lender::<{ $tens * 8 }>, lender::<{ $tens * 8 + 1 }>, lender::<{ $tens * 8 + 2 }>, lender::<{ $tens * 8 + 3 }>,
              lender::<{ $tens * 8 + 4 }>, lender::<{ $tens * 8 + 5 }>, lender::<{ $tens * 8 + 6 }>, lender::<{ $tens * 8 + 7 }>,)*
        ];
    };
}

places!(0 1 2 3 4 5 6 7);

/// The address by which others call an exported function of a module: its gate, or what lends before that. None: there are more such
/// functions than places.
pub(crate) fn through(name: &str, domain: Domain, gate: usize) -> Option<usize> {
    let Some(lends) = of(name) else {
        return Some(gate);
    };
    let mut at = None;
    for (number, place) in PLACES.iter().enumerate() {
        let mut what = place.what.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = what.as_ref().is_none_or(|(known, ..)| known == name);
        if is_it {
            place.gate.store(gate, Ordering::Relaxed);
            *what = Some((name.to_owned(), domain, lends));
            at = Some(number);
            break;
        }
    }
    at.map(|at| LENDERS[at] as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_what_is_lent() {
        let lent = |argument, at, extent, write| Lend {
            argument,
            at,
            extent,
            write,
        };
        let found = lend("inflate.read.0.0.8").expect("a line");
        let wanted = lent(0, Some(0), Extent::Counted(8), false);
        assert_eq!(found, ("inflate".to_owned(), wanted));
        let found = lend("inflate.write.1.24.32").expect("a line");
        assert_eq!(found.1, lent(1, Some(24), Extent::Counted(32), true));
        let found = lend("inflate.whole.0.64").expect("a line");
        assert_eq!(found.1, lent(0, Some(64), Extent::Whole, true));
        let found = lend("compress.whole.5").expect("a line");
        assert_eq!(found.1, lent(5, None, Extent::Whole, true));
        let wrong = [
            "",
            "f",
            "f.read",
            "f.read.0",
            "f.read.0.0",
            "f.write.0.0.8.8",
            "f.whole",
            "f.whole.6",
            "f.whole.0.8.8",
            "f.lent.0.0.8",
            ".read.0.0.8",
            "f.read.0.x.8",
        ];
        for line in wrong {
            assert_eq!(lend(line), None, "{line}");
        }
    }

    /// A pointer may move on within what was lent, and its length with it.
    #[test]
    fn pointers_stay_in_what_was_lent() {
        let memory = [0_u64; 16];
        let from = memory.as_ptr() as u64;
        // Others write there behind the compiler's back.
        let structure = Box::into_raw(Box::new([from, 64]));
        let arguments = [structure as u64, 0, 0, 0, 0, 0];
        let (_, lend) = lend("f.read.0.0.8").expect("a line");
        let lent = lend.find(&arguments).expect("something");
        let put = |start: u64, bytes: u64| {
            // SAFETY: it is this test's own memory, which stays until its end.
            unsafe { structure.write([start, bytes]) };
            lent.stays(&arguments)
        };
        assert!(put(from, 64));
        assert!(put(from + 64, 0));
        assert!(put(from + 10, 54));
        assert!(!put(from + 10, 55));
        assert!(!put(from - 1, 8));
        assert!(!put(from + 65, 0));
        assert!(!put(u64::MAX, 8));
        lent.restore(&arguments);
        // SAFETY: it is what was made above, and nobody else has it now.
        assert_eq!(*unsafe { Box::from_raw(structure) }, [from, 64]);
    }
}
