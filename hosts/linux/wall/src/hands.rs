//! References that one module takes and another gives back: a call from module to module hands them on.
//!
//! ```text
//!   fat.toml: gives = ["fat_build_inode.inode"]   takes = ["fat_remove_entries.buffer.1.32"]
//!   vfat ──► gate ──► mediator ──► fat_build_inode ──► the result is an inode that fat has taken: vfat has it now
//! ```
//!
//! A reference is noted once, for one module. Here that note goes from one to another, and none is made. So it is given back
//! once, by the module that has it then. The policy of the module that is called says which of its functions hand on what.

use crate::journal::{self, Thing};
use crate::{Wall, live, rights};
use mullion_word::runtime::Domain;
use mullion_word_policy::File;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Where the reference is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Result,
    Argument(usize),
    /// So many bytes behind where an argument points to.
    Behind(usize, u64),
}

/// A reference that a call of a function hands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hand {
    thing: Thing,
    /// To the module that calls, behind the call; or to the one that is called, before it.
    to_caller: bool,
    place: Place,
}

/// References that calls of a function hand on, and the module that has the function.
#[derive(Clone, Debug)]
pub(crate) struct Hands {
    of: String,
    all: Vec<Hand>,
}

/// What a policy says of this: functions that hand on, and functions of its own that another module may call by their addresses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Said {
    hands: Vec<(String, Hand)>,
    links: Vec<(String, String)>,
}

static HANDS: Mutex<BTreeMap<String, Hands>> = Mutex::new(BTreeMap::new());
/// Which module calls which function of which module.
static LINKS: Mutex<BTreeSet<(String, String, String)>> = Mutex::new(BTreeSet::new());

/// Which module calls functions of which module that hand on.
static USERS: Mutex<BTreeSet<(String, String)>> = Mutex::new(BTreeSet::new());

fn hands() -> MutexGuard<'static, BTreeMap<String, Hands>> {
    HANDS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Said {
    /// `gives`, `takes` and `links` of a policy's `[group]`.
    ///
    /// # Errors
    /// The first line that says nothing of that kind.
    pub(crate) fn of(file: &File) -> Result<Said, String> {
        let list = |name: &str| file.groups.get(name).into_iter().flatten();
        let gives = list("gives").map(|line| hand(line, true).ok_or(line));
        let takes = list("takes").map(|line| hand(line, false).ok_or(line));
        let link = |line: &String| {
            let (function, module) = line.split_once('.')?;
            Some((function.to_owned(), module.to_owned()))
        };
        let links = list("links").map(|line| link(line).ok_or(line));
        Ok(Said {
            hands: gives.chain(takes).collect::<Result<_, &String>>()?,
            links: links.collect::<Result<_, &String>>()?,
        })
    }
}

/// `fat_scan.buffer.2.32`, `fat_build_inode.inode`.
fn hand(line: &str, to_caller: bool) -> Option<(String, Hand)> {
    let mut words = line.split('.');
    let (function, thing) = (words.next()?, words.next()?);
    let thing = match thing {
        "buffer" => Thing::Buffer,
        "inode" => Thing::Inode,
        _ => return None,
    };
    let at = words.next().map(str::parse::<usize>).transpose().ok()?;
    let behind = words.next().map(str::parse::<u64>).transpose().ok()?;
    let place = match (at.filter(|at| *at < 6), behind) {
        (Some(at), Some(behind)) => Place::Behind(at, behind),
        (Some(at), None) => Place::Argument(at),
        (None, _) if at.is_none() && to_caller => Place::Result,
        (None, _) => return None,
    };
    let hand = Hand {
        thing,
        to_caller,
        place,
    };
    let is_all = words.next().is_none() && !function.is_empty();
    is_all.then(|| (function.to_owned(), hand))
}

/// Notes what the policy of a module says, before others are loaded that call it.
pub(crate) fn has_said(name: &str, said: Said) {
    let mut hands = hands();
    hands.retain(|_, one| one.of != name);
    for (function, hand) in said.hands {
        let entry = hands.entry(function).or_insert_with(|| Hands {
            of: name.to_owned(),
            all: Vec::new(),
        });
        // The first module that says something of a function is the one that has it.
        if entry.of == name {
            entry.all.push(hand);
        }
    }
    drop(hands);
    let mut links = LINKS.lock().unwrap_or_else(PoisonError::into_inner);
    links.retain(|(_, to, _)| to != name);
    links.extend(
        said.links
            .into_iter()
            .map(|(function, by)| (by, name.to_owned(), function)),
    );
}

/// A module was loaded, perhaps again: those that may call each other's functions by their addresses can do so.
pub(crate) fn link(wall: &Wall) {
    let links = LINKS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for (by, to, function) in links {
        if let (Some(from), Some(to)) = (live::domain(&by), live::domain(&to))
            && let Err(error) = wall.host.link(&from, &to, &function)
        {
            wall.kernel.say(&format!("{by} calls {function}: {error}"));
        }
    }
}

/// What a function hands on, if it does.
pub(crate) fn of(function: &str) -> Option<Hands> {
    hands().get(function).cloned()
}

/// A module is loaded that calls this function. Whether it hands something on.
pub(crate) fn is_called_by(function: &str, name: &str) -> bool {
    let found = of(function);
    if let Some(found) = &found {
        let mut users = USERS.lock().unwrap_or_else(PoisonError::into_inner);
        users.insert((name.to_owned(), found.of.clone()));
    }
    found.is_some()
}

/// A module was ended. Those that hand on to it, or that it hands on to, end with it: what is mounted has references of both, and
/// they go back before the mount does.
pub(crate) fn end_others(ended: &Domain) {
    let Some(name) = live::name(ended.id().get()) else {
        return;
    };
    let users = USERS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let other = |(user, used): (String, String)| match (user == name, used == name) {
        (true, _) => Some(used),
        (_, true) => Some(user),
        _ => None,
    };
    let others = users.into_iter().filter_map(other);
    for domain in others.filter_map(|other| live::domain(&other)) {
        domain.end(format!("{name} was ended, and one has things of the other"));
    }
}

impl Hands {
    /// Before the call: what the caller hands on has to be its own.
    ///
    /// # Errors
    /// What is not.
    pub(crate) fn before(&self, caller: &Domain, arguments: &[u64; 6]) -> Result<(), String> {
        let Some(callee) = live::domain(&self.of) else {
            return Ok(());
        };
        for hand in self.all.iter().filter(|hand| !hand.to_caller) {
            let what = hand.find(caller, arguments, 0);
            let what = what.ok_or("the memory is not the module's")?;
            let is_nothing = journal::is_nothing(what);
            if !is_nothing && !journal::moves(caller, &callee, hand.thing, what) {
                return Err(format!("{what:#x} is not the module's to hand on"));
            }
        }
        Ok(())
    }

    /// Behind the call: what the module that was called hands on is the caller's, if it was its own.
    pub(crate) fn behind(&self, caller: &Domain, arguments: &[u64; 6], result: u64) {
        let Some(callee) = live::domain(&self.of) else {
            return;
        };
        for hand in self.all.iter().filter(|hand| hand.to_caller) {
            // Where a function fails, nobody has filled in the place.
            if hand.place != Place::Result && result as u32 != 0 {
                continue;
            }
            if let Some(what) = hand.find(caller, arguments, result) {
                journal::moves(&callee, caller, hand.thing, what);
            }
        }
    }
}

impl Hand {
    fn find(&self, caller: &Domain, arguments: &[u64; 6], result: u64) -> Option<u64> {
        match self.place {
            Place::Result => Some(result),
            Place::Argument(at) => arguments.get(at).copied(),
            Place::Behind(at, behind) => {
                let address = arguments.get(at)?.checked_add(behind)?;
                if !rights::may_now(caller, address) {
                    return None;
                }
                // SAFETY: the module may read a word there now, so memory is mapped there, and the kernel's one thread is here.
                Some(unsafe { (address as *const u64).read_unaligned() })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_what_is_handed_on() {
        let inode = |place, to_caller| Hand {
            thing: Thing::Inode,
            to_caller,
            place,
        };
        let found = hand("fat_build_inode.inode", true).expect("a line");
        let wanted = inode(Place::Result, true);
        assert_eq!(found, ("fat_build_inode".to_owned(), wanted));
        let found = hand("f.inode.1.32", false).expect("a line");
        assert_eq!(found.1, inode(Place::Behind(1, 32), false));
        let found = hand("f.inode.5", false).expect("a line");
        assert_eq!(found.1, inode(Place::Argument(5), false));
        // A module has no result before its call.
        assert_eq!(hand("f.inode", false), None);
        let wrong = [
            "",
            "f",
            ".inode",
            "f.mutex",
            "f.inode.6",
            "f.inode.6.8",
            "f.inode.1.",
            "f.inode.1.x",
            "f.inode.1.8.2",
        ];
        for line in wrong {
            assert_eq!(hand(line, true), None, "{line}");
        }
    }
}
