//! What allocators give a module, and what it frees.

use super::{Arguments, By, call, room, takes};
use crate::journal::{self, Thing};
use crate::{WALL, formats, lends, rights};
use mullion_word::runtime::{Domain, caller, refuse};
use mullion_word_table::Access;
use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;

/// Bytes that an object of a cache has, or so, and a copy of a text.
const SMALL: u64 = 1 << 10;

/// The result is the caller's: of a cache, or of the allocators that choose one themselves; and how many bytes that are, or so.
pub(super) fn gives(
    real: &AtomicUsize,
    (cache, bytes): (Option<u64>, u64),
    arguments: Arguments,
) -> u64 {
    if !room::has(bytes) {
        return 0;
    }
    let result = call(real, arguments);
    if let (Some(wall), Some(domain), true) = (WALL.get(), caller(), result != 0) {
        rights::allocated(wall.host, wall.kernel, &domain, result, cache);
    }
    result
}

/// Variables of the kernel whose words are caches, which are made when it begins.
const CACHES: [(&str, &str); 2] = [
    ("kmalloc_caches", "variable.kmalloc_caches"),
    ("names_cachep", "variable.names_cachep"),
];

static WORDS: OnceLock<[Vec<u64>; 2]> = OnceLock::new();

fn words_of(name: &str) -> Vec<u64> {
    let Some(wall) = WALL.get() else {
        return Vec::new();
    };
    let found = wall.kernel.symbol(name, std::ptr::null_mut());
    let variable = found.and_then(|at| wall.kernel.object(at as u64));
    let Some(variable) = variable else {
        return Vec::new();
    };
    // SAFETY: the kernel has a variable there of so many bytes, whose words are pointers.
    let word = |at: u64| unsafe { ((variable.start + 8 * at) as *const u64).read() };
    (0..variable.bytes / 8).map(word).collect()
}

/// Whether the caller may have objects of a cache. The kernel follows what lies there: so it is one that the module has made and has
/// still, or one of the kernel's that a variable names which the module may read.
fn is_cache(domain: &Domain, cache: u64) -> bool {
    if journal::is_nothing(cache) {
        return false;
    }
    let words = WORDS.get_or_init(|| CACHES.map(|(name, _)| words_of(name)));
    let mut both = words.iter().zip(CACHES);
    both.any(|(words, (_, kind))| words.contains(&cache) && rights::names(domain, kind))
        || journal::holds(domain, Thing::Cache, cache)
}

/// A cache of the module's. Its name is the kind of its objects, and rights go by kinds: so it is none that anybody else has.
pub(super) fn makes_cache(
    name: &str,
    real: &AtomicUsize,
    is_copy: bool,
    arguments: Arguments,
) -> u64 {
    let text = arguments[0];
    let is_its = |domain: &Domain| {
        let kind = formats::text(domain, text, is_copy)?;
        rights::makes_kind(domain, &String::from_utf8_lossy(&kind)).then_some(())
    };
    if caller().and_then(|domain| is_its(&domain)).is_none() {
        refuse(format!(
            "{name}: objects of that name are not the module's to make"
        ));
        return 0;
    }
    takes(real, Thing::Cache, By::Result, arguments)
}

/// The same, of the cache that is the first argument.
pub(super) fn gives_of(name: &str, real: &AtomicUsize, arguments: Arguments) -> u64 {
    let cache = arguments[0];
    if !caller().is_some_and(|domain| is_cache(&domain, cache)) {
        refuse(format!("{name}: {cache:#x} is no cache of the module's"));
        return 0;
    }
    gives(real, (Some(cache), SMALL), arguments)
}

/// The source of a copy, which is the caller's.
#[derive(Clone, Copy)]
pub(super) enum Source {
    /// A text: the first byte is looked at.
    Text,
    /// As many bytes as the second argument says.
    Bytes,
    /// From the first word of what the argument points to, to the second.
    Between,
    /// So many.
    Whole(u64),
}

pub(super) fn copies(name: &str, real: &AtomicUsize, source: Source, arguments: Arguments) -> u64 {
    let [from, count, ..] = arguments;
    let may = |domain: &Domain| match source {
        Source::Text => from == 0 || rights::may_byte(domain, from, false),
        Source::Bytes => count == 0 || lends::may(domain, from, count, false),
        Source::Whole(bytes) => lends::may(domain, from, bytes, false),
        Source::Between => {
            let is_its = domain.view().allows(from, 16, Access::READ);
            // SAFETY: the module may read these words, so memory is there.
            let word = |at: u64| unsafe { ((from + at) as *const u64).read_volatile() };
            is_its && {
                let (start, end) = (word(0), word(8));
                start == end || start < end && lends::may(domain, start, end - start, false)
            }
        }
    };
    if !caller().is_some_and(|domain| may(&domain)) {
        refuse(format!("{name}: {from:#x} is not the module's to read"));
        return 0;
    }
    let bytes = match source {
        Source::Bytes => count,
        _ => SMALL,
    };
    gives(real, (None, bytes), arguments)
}

/// The object is one that the caller has of this cache.
pub(super) fn frees_of(name: &str, real: &AtomicUsize, arguments: Arguments) -> u64 {
    let [cache, object, ..] = arguments;
    let may = |domain: &Domain| rights::is_of_cache(domain, object, cache);
    if !caller().is_some_and(|domain| may(&domain)) {
        refuse(format!(
            "{name}: {object:#x} is no object of the module's in {cache:#x}"
        ));
        return 0;
    }
    call(real, arguments)
}

/// The caller has allocated what the argument points to, or its policy says that it frees what others have.
pub(super) fn frees(name: &str, real: &AtomicUsize, at: usize, arguments: Arguments) -> u64 {
    let address = arguments[at];
    let is_nothing = address <= 16;
    let may = caller().is_some_and(|domain| rights::may_free(&domain, address));
    if !is_nothing && !may {
        refuse(format!("{name}: {address:#x} is not the module's to free"));
        return 0;
    }
    let is_of_areas = matches!(name, "vfree" | "kvfree");
    let area = is_of_areas.then(|| rights::area(address)).flatten();
    let result = call(real, arguments);
    // The kernel tells of objects and pages alone.
    if let Some((start, bytes)) = area {
        rights::freed(start, bytes);
    }
    result
}

/// A page by its address. More than one is not the module's to free: of several it was given the first one.
pub(super) fn frees_page(name: &str, real: &AtomicUsize, arguments: Arguments) -> u64 {
    if arguments[1] as u32 != 0 {
        refuse(format!("{name}: these are several pages"));
        return 0;
    }
    frees(name, real, 0, arguments)
}
