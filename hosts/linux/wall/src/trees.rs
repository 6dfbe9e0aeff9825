//! Trees (`radix_tree_root`): the kernel keeps one of its own in the place of the module's, and follows no pointer of a module's.
//!
//! ```text
//!   module ──► gate ──► mediator: does the root stay the module's? ──► mullion_tree_insert ──► ours has the item
//!   the root's memory is freed, or the module is ended ──► ours goes
//! ```
//!
//! `mullion_tree.c` is the other side of this.

use crate::kernel::Kernel;
use crate::{WALL, rights};
use mullion_word::runtime::{caller, refuse};
use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a function of the kernel does with a tree.
#[derive(Clone, Copy)]
pub(crate) enum Tree {
    Lookup,
    Insert,
    /// The item at a place, whichever it is.
    Delete,
    /// Only if it is this one.
    DeleteItem,
    /// Several, to memory of which the policy says that the module may write it.
    Several,
}

/// Bytes of a root.
const ROOT: usize = 16;

const NAMES: [&CStr; 6] = [
    c"mullion_tree_lookup",
    c"mullion_tree_insert",
    c"mullion_tree_delete",
    c"mullion_tree_gang_lookup",
    c"mullion_tree_freed",
    c"mullion_tree_undo",
];

static FUNCTIONS: [AtomicUsize; 6] = [const { AtomicUsize::new(0) }; 6];

/// Finds the other side. Without it all trees are empty.
pub(crate) fn settle(kernel: Kernel, of: *mut c_void) {
    if FUNCTIONS[0].load(Ordering::Relaxed) != 0 {
        return;
    }
    for (name, place) in NAMES.iter().zip(&FUNCTIONS).rev() {
        let found = kernel.symbol(&name.to_string_lossy(), of);
        place.store(found.unwrap_or_default(), Ordering::Relaxed);
    }
}

fn call(which: usize, [a, b, c, d, e]: [u64; 5]) -> u64 {
    let function = FUNCTIONS[which].load(Ordering::Relaxed);
    if function == 0 {
        return 0;
    }
    // SAFETY: `settle` has the addresses from the kernel, of functions that take no more than these arguments, in registers.
    let function: extern "C" fn(u64, u64, u64, u64, u64) -> u64 =
        unsafe { std::mem::transmute(function) };
    function(a, b, c, d, e)
}

/// In the place of the kernel's function.
pub(crate) fn mediate(name: &str, tree: Tree, [root, a, b, c, ..]: [u64; 8]) -> u64 {
    let (Some(wall), Some(domain)) = (WALL.get(), caller()) else {
        return 0;
    };
    // What a call lends would be another's when the tree is looked at again.
    if !root.is_multiple_of(8) || !rights::lasts(&domain, root, ROOT) {
        refuse(format!(
            "{name}: {root:#x} is not in memory that stays the module's"
        ));
        return 0;
    }
    // The kernel takes an item with these bits for a node of its tree, and a null one for none.
    if matches!(tree, Tree::Insert) && (b == 0 || b & 3 == 2) {
        refuse(format!("{name}: {b:#x} is no item of a tree"));
        return 0;
    }
    let id = wall.number(&domain);
    match tree {
        Tree::Lookup => call(0, [id, root, a, 0, 0]),
        Tree::Insert => call(1, [id, root, a, b, 0]),
        Tree::Delete => call(2, [id, root, a, 0, 0]),
        Tree::DeleteItem => call(2, [id, root, a, b, 0]),
        Tree::Several => call(3, [id, root, a, b, u64::from(c as u32)]),
    }
}

/// Memory that modules had goes back.
pub(crate) fn freed(start: u64, bytes: u64) {
    call(4, [start, bytes, 0, 0, 0]);
}

/// A module's trees go.
pub(crate) fn undo(number: u64) {
    call(5, [number, 0, 0, 0, 0]);
}
