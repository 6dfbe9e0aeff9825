//! What the wall costs in calls and memory, for the report: counted only if a file `counted` lies beside the modules.
//!
//! ```text
//!   module ──► gate ──► a mediator, which counts ──► the kernel's function
//!   echo costs > /proc/mullion ──► lines in the kernel's log
//! ```
//!
//! Functions of `kernel.types` whose arguments nobody looks at have a mediator then, too. Others are not counted. Calls of the kernel's into modules are not counted here: they
//! go through the run time's gates alone.

use crate::Wall;
use mullion_word::runtime::caller;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

static ASKED: AtomicBool = AtomicBool::new(false);

/// Calls by modules, by the numbers of their domains and the functions.
static CALLS: Mutex<BTreeMap<(u32, &str), u64>> = Mutex::new(BTreeMap::new());

/// Of so many functions a line says how often each was called.
const SHOWN: usize = 24;

/// Before the first module is loaded.
pub(crate) fn begin(folder: &Path) {
    ASKED.store(folder.join("counted").is_file(), Ordering::Relaxed);
}

/// Whether calls are counted.
pub(crate) fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// A module has called a function that is not its own.
pub(crate) fn calls(function: &'static str) {
    if let Some(domain) = asked().then(caller).flatten() {
        let mut calls = CALLS.lock().unwrap_or_else(PoisonError::into_inner);
        *calls.entry((domain.id().get(), function)).or_default() += 1;
    }
}

/// Lines for the kernel's log: calls by module, and memory in KiB.
pub(crate) fn lines(wall: &Wall) -> Result<Vec<String>, String> {
    let domains = wall.domains.lock().unwrap_or_else(PoisonError::into_inner);
    let shadow = domains.first().map(|one| one.view().shadow() as u64);
    let shadow = shadow.ok_or("no module is loaded")?;
    drop(domains);
    let maps = fs::read_to_string("/proc/self/smaps").map_err(|error| error.to_string())?;
    // In front of the shadow are numbers of lines.
    let table = resident(&maps, shadow - (1 << 42)..shadow + (1 << 46));
    // SAFETY: it only reads counts of the C library.
    let heap = unsafe { libc::mallinfo2() };
    let heap = (heap.uordblks + heap.hblkhd) / 1024;
    let calls = CALLS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut lines = Vec::new();
    for (id, functions) in by_module(&calls) {
        let Some(name) = crate::live::name(id) else {
            continue;
        };
        let count: u64 = functions.iter().map(|(_, count)| count).sum();
        lines.push(format!("costs: {name} has made {count} calls"));
        let shown = functions.iter().take(SHOWN);
        let shown: Vec<String> = shown.map(|(of, count)| format!("{of} {count}")).collect();
        lines.push(format!("costs: of {name}: {}", shown.join(", ")));
    }
    lines.push(format!(
        "costs: {table} KiB of the table, {heap} KiB of the library"
    ));
    Ok(lines)
}

/// The functions that each module has called, the most frequent one first.
fn by_module(
    calls: &BTreeMap<(u32, &'static str), u64>,
) -> BTreeMap<u32, Vec<(&'static str, u64)>> {
    let mut all: BTreeMap<u32, Vec<(&str, u64)>> = BTreeMap::new();
    for ((id, function), count) in calls {
        all.entry(*id).or_default().push((function, *count));
    }
    for functions in all.values_mut() {
        functions.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    }
    all
}

/// What is resident of mappings that have some of these addresses, in KiB, as the system lists it.
fn resident(maps: &str, of: std::ops::Range<u64>) -> u64 {
    let (mut is_in, mut total) = (false, 0);
    for line in maps.lines() {
        let ends = line.split(' ').next().and_then(|one| one.split_once('-'));
        let ends = ends.map(|(start, end)| [start, end].map(|one| u64::from_str_radix(one, 16)));
        if let Some(rest) = line.strip_prefix("Rss:") {
            let size = rest.split_whitespace().next().unwrap_or_default();
            total += if is_in { size.parse().unwrap_or(0) } else { 0 };
        } else if let Some([Ok(start), Ok(end)]) = ends {
            is_in = start < of.end && of.start < end;
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_function_that_is_called_most_comes_first() {
        let calls = [((1, "a"), 2), ((1, "b"), 5), ((2, "a"), 1)].into();
        let wanted = [(1, vec![("b", 5), ("a", 2)]), (2, vec![("a", 1)])];
        assert_eq!(by_module(&calls), wanted.into());
    }

    #[test]
    fn memory_is_that_of_the_addresses_alone() {
        let maps = "1000-2000 rw-p 00000000 00:00 0\nSize: 4 kB\nRss:                 4 kB\n\
                    5000-9000 rw-p 00000000 00:00 0 [heap]\nRss:   12 kB\nVmFlags: rd wr\n\
                    a000-b000 rw-p 00000000 00:00 0\nRss:   3 kB\n";
        assert_eq!(resident(maps, 0x5000..0xb000), 15);
        assert_eq!(resident(maps, 0x1800..0x1900), 4);
        assert_eq!(resident(maps, 0xc000..0xd000), 0);
    }
}
