//! Where checked code is, and where in it a check has been made and its access has not.

use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
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
    next: *const Node,
}

// SAFETY: a node is published whole and never freed or changed but for its flag, which is atomic.
unsafe impl Sync for Node {}
// SAFETY: what a node points to is another node, which is never freed either.
unsafe impl Send for Node {}

/// All code that was ever loaded, the latest first. Nodes stay for ever, so that a signal handler can walk them at
/// any time.
static NEWEST: AtomicPtr<Node> = AtomicPtr::new(ptr::null_mut());

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
    /// of the process: 16 bytes for each checked range.
    #[must_use = "it is known only as long as this lives"]
    pub fn load(self) -> Loaded {
        let node = Box::leak(Box::new(Node {
            code: self,
            is_loaded: AtomicBool::new(true),
            next: ptr::null(),
        }));
        let mut newest = NEWEST.load(Ordering::Acquire);
        loop {
            node.next = newest;
            let new: *mut Node = node;
            match NEWEST.compare_exchange(newest, new, Ordering::Release, Ordering::Acquire) {
                Ok(_) => return Loaded(node),
                Err(now) => newest = now,
            }
        }
    }

    fn place(&self, address: usize) -> Option<Place> {
        if !self.text.contains(&address) {
            return None;
        }
        let behind = self.checked.partition_point(|range| range.end <= address);
        let between = self
            .checked
            .get(behind)
            .is_some_and(|range| range.contains(&address));
        Some(if between {
            Place::Between
        } else {
            Place::Clear
        })
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        self.0.is_loaded.store(false, Ordering::Release);
    }
}

/// Whether checked code is at `address`, or was before it ended: its text stays where it is. Takes no lock and allocates nothing.
#[must_use]
pub fn is_code(address: usize) -> bool {
    let mut at: *const Node = NEWEST.load(Ordering::Acquire);
    // SAFETY: a node that was published is never freed, and its successor was there first.
    while let Some(node) = unsafe { at.as_ref() } {
        if node.code.text.contains(&address) {
            return true;
        }
        at = node.next;
    }
    false
}

/// Where `address` is. Takes no lock and allocates nothing.
pub(crate) fn place(address: usize) -> Place {
    let mut at: *const Node = NEWEST.load(Ordering::Acquire);
    // SAFETY: a node is published whole, by the release above, and is never freed or changed but for its flag.
    while let Some(node) = unsafe { at.as_ref() } {
        if node.is_loaded.load(Ordering::Acquire)
            && let Some(place) = node.code.place(address)
        {
            return place;
        }
        at = node.next;
    }
    Place::Elsewhere
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
}
