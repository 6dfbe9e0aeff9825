//! Where checked code is, and where in it a check has been made and its access has not.

use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};
use thiserror::Error;

/// Why something does not describe code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CodeError {
    /// A range is empty or leaves the text.
    #[error("the checked range {start:#x}..{end:#x} is empty or not inside the text")]
    Outside {
        /// Its first address.
        start: usize,
        /// The address behind it.
        end: usize,
    },
    /// Two ranges overlap, or are not in order.
    #[error("the checked range {start:#x}..{end:#x} is not behind the one before it")]
    Order {
        /// Its first address.
        start: usize,
        /// The address behind it.
        end: usize,
    },
}

/// Code whose accesses are checked. The *checked ranges* are the addresses of instructions that run after a check has
/// read the shadow and before its access has been made. The instruction of the access is one of them. Whoever makes
/// this is trusted; it will be the verifier.
#[derive(Clone, Debug)]
pub struct Code {
    text: Range<usize>,
    checked: Vec<Range<usize>>,
}

/// Where an instruction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In no code that is known: a host's function, a signal handler.
    Elsewhere,
    /// In checked code, and no check's answer is being relied on.
    Clear,
    /// Between a check and its access.
    Between,
}

struct Node {
    code: Code,
    is_loaded: AtomicBool,
}

/// Code by its first address. No two overlap.
type Run = Box<[&'static Node]>;

/// All code that was ever loaded, in runs, the latest first. Each is at least twice as long as the one before it, so there are few. A table
/// stays as it is for ever, so that a signal handler can look at any time.
struct Table {
    runs: Vec<&'static Run>,
    _before: Option<&'static Table>,
}

static TABLE: AtomicPtr<Table> = AtomicPtr::new(ptr::null_mut());
/// Whoever makes another table.
static TURN: Mutex<()> = Mutex::new(());

/// Code that is known, until this is dropped. A thread must not run it before or after.
pub struct Loaded(&'static Node);

impl Code {
    /// The code at these addresses; the checked ranges are in order, and none touches itself twice.
    pub fn new(text: Range<usize>, checked: Vec<Range<usize>>) -> Result<Code, CodeError> {
        let mut end_before = text.start;
        for &Range { start, end } in &checked {
            if start >= end || start < text.start || end > text.end {
                return Err(CodeError::Outside { start, end });
            }
            if start < end_before {
                return Err(CodeError::Order { start, end });
            }
            end_before = end;
        }
        Ok(Code { text, checked })
    }

    /// Makes it known to those who wait for threads ([`Inside`](crate::Inside)). What is kept of it stays for the life
    /// of the process: 16 bytes for each checked range. Other code that is loaded is elsewhere. Where code was that is not any
    /// more, this counts.
    #[must_use = "it is known only as long as this lives"]
    pub fn load(self) -> Loaded {
        let node: &'static Node = Box::leak(Box::new(Node {
            code: self,
            is_loaded: AtomicBool::new(true),
        }));
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let before = table();
        let table = Box::new(Table {
            runs: with(before.map_or(&[], |table| &table.runs), node),
            _before: before,
        });
        TABLE.store(Box::leak(table), Ordering::Release);
        Loaded(node)
    }

    /// Of an address in the text.
    fn place(&self, address: usize) -> Place {
        let behind = self.checked.partition_point(|range| range.end <= address);
        let between = self
            .checked
            .get(behind)
            .is_some_and(|range| range.contains(&address));
        match between {
            true => Place::Between,
            false => Place::Clear,
        }
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        self.0.is_loaded.store(false, Ordering::Release);
    }
}

/// The table that is in force.
fn table() -> Option<&'static Table> {
    // SAFETY: a table that was published is never freed or changed.
    unsafe { TABLE.load(Ordering::Acquire).as_ref() }
}

/// These runs with one more piece of code.
fn with(runs: &[&'static Run], node: &'static Node) -> Vec<&'static Run> {
    let mut latest = vec![node];
    let mut rest = runs;
    while let Some((run, behind)) = rest
        .split_first()
        .filter(|(run, _)| run.len() < 2 * latest.len())
    {
        latest = merged(&latest, run);
        rest = behind;
    }
    let run: &'static Run = Box::leak(Box::new(latest.into()));
    [&[run], rest].concat()
}

/// Both in one, but for what lies where later code is.
fn merged(later: &[&'static Node], earlier: &[&'static Node]) -> Vec<&'static Node> {
    let is_free = |node: &&&'static Node| {
        let Range { start, end } = node.code.text;
        let behind = later.partition_point(|one| one.code.text.end <= start);
        later
            .get(behind)
            .is_none_or(|one| end <= one.code.text.start)
    };
    let earlier = earlier.iter().filter(is_free);
    let mut all: Vec<&'static Node> = later.iter().chain(earlier).copied().collect();
    all.sort_unstable_by_key(|node| node.code.text.start);
    all
}

/// The latest code that is at an address, or was. `start` says where code begins, and is asked of a few. Takes no lock and allocates
/// nothing.
fn find(
    runs: &[&'static Run],
    address: usize,
    mut start: impl FnMut(&Node) -> usize,
) -> Option<&'static Node> {
    runs.iter().find_map(|run| {
        let behind = run.partition_point(|node| start(node) <= address);
        let node = run.get(behind.checked_sub(1)?)?;
        node.code.text.contains(&address).then_some(*node)
    })
}

fn at(address: usize) -> Option<&'static Node> {
    find(&table()?.runs, address, |node| node.code.text.start)
}

/// Whether checked code is at `address`, or was before it ended: its text stays where it is. Takes no lock and allocates nothing.
#[must_use]
pub fn is_code(address: usize) -> bool {
    at(address).is_some()
}

/// Where `address` is. Takes no lock and allocates nothing.
pub(crate) fn place(address: usize) -> Place {
    at(address)
        .filter(|node| node.is_loaded.load(Ordering::Acquire))
        .map_or(Place::Elsewhere, |node| node.code.place(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_in_order_and_inside() {
        let new = |ranges: &[(usize, usize)]| {
            Code::new(
                100..200,
                ranges.iter().map(|&(start, end)| start..end).collect(),
            )
        };
        assert!(new(&[(100, 110), (110, 120), (199, 200)]).is_ok());
        assert_eq!(
            new(&[(100, 110), (109, 120)]).unwrap_err(),
            CodeError::Order {
                start: 109,
                end: 120
            }
        );
        for (start, end) in [(90, 110), (150, 150), (199, 201)] {
            assert_eq!(
                new(&[(start, end)]).unwrap_err(),
                CodeError::Outside { start, end }
            );
        }
    }

    #[test]
    fn a_place_is_found_until_the_code_goes() {
        // Addresses at which no process has code.
        let code = Code::new(0x100..0x200, vec![0x110..0x114, 0x120..0x130]).unwrap();
        let loaded = code.load();
        let seen = [0xff, 0x100, 0x110, 0x113, 0x114, 0x12f, 0x130, 0x200].map(place);
        use Place::{Between, Clear, Elsewhere};
        assert_eq!(
            seen,
            [
                Elsewhere, Clear, Between, Between, Clear, Between, Clear, Elsewhere
            ]
        );
        assert_eq!(
            [0xff, 0x100, 0x1ff, 0x200].map(is_code),
            [false, true, true, false]
        );
        drop(loaded);
        assert_eq!(place(0x110), Elsewhere);
        assert!(is_code(0x110), "a pointer may still lead there");
    }

    fn node(text: Range<usize>) -> &'static Node {
        let code = Code::new(text, Vec::new()).unwrap();
        Box::leak(Box::new(Node {
            code,
            is_loaded: AtomicBool::new(true),
        }))
    }

    /// What a handler of a signal looks at does not grow with what was ever loaded.
    #[test]
    #[cfg_attr(miri, ignore = "no unsafe code, and it leaks")]
    fn of_much_code_little_is_looked_at() {
        const MANY: usize = 10_000;
        let mut runs = Vec::new();
        // In an order as addresses have none.
        let places = || (0..MANY).map(|number| 0x1000 * (1 + number * 7919 % MANY));
        for place in places() {
            runs = with(&runs, node(place..place + 0x800));
        }
        assert!(runs.len() <= 14, "{} runs", runs.len());
        assert_eq!(runs.iter().map(|run| run.len()).sum::<usize>(), MANY);
        let mut most = 0;
        for place in places() {
            for (address, is_there) in
                [(place, true), (place + 0x7ff, true), (place + 0x800, false)]
            {
                let mut looks = 0;
                let found = find(&runs, address, |node| {
                    looks += 1;
                    node.code.text.start
                });
                most = most.max(looks);
                assert_eq!(
                    found.map(|node| node.code.text.start),
                    is_there.then_some(place)
                );
            }
        }
        assert!(most <= 14 * 14, "{most} looks");
    }

    #[test]
    #[cfg_attr(miri, ignore = "no unsafe code, and it leaks")]
    fn where_code_was_before_the_later_one_counts() {
        let mut runs = Vec::new();
        let is = |runs: &[&'static Run], address, node: &'static Node| {
            let found = find(runs, address, |node| node.code.text.start);
            found.is_some_and(|found| ptr::eq(found, node))
        };
        let old = [node(0x100..0x200), node(0x200..0x300), node(0x400..0x500)];
        for one in old {
            runs = with(&runs, one);
        }
        // Over the end of the first one, and all of the second one.
        let new = node(0x1f0..0x310);
        runs = with(&runs, new);
        let more = [node(0x800..0x900), node(0x900..0xa00), node(0x600..0x700)];
        for one in more {
            assert!(is(&runs, 0x1f0, new) && is(&runs, 0x30f, new));
            assert!(is(&runs, 0x450, old[2]));
            runs = with(&runs, one);
        }
        assert!(is(&runs, 0x250, new) && is(&runs, 0x8ff, more[0]));
        for address in [0x0ff, 0x310, 0x500, 0xa00] {
            assert!(find(&runs, address, |node| node.code.text.start).is_none());
        }
    }
}
