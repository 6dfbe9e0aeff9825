//! Inodes, and algorithms of digests: what a module gets of them, and what it gives back.

use super::{Arguments, By, call, gives_back, takes};
use crate::journal::{self, Thing};
use crate::{WALL, rights};
use mullion_word::runtime::{caller, refuse};
use std::sync::atomic::AtomicUsize;

/// The inode goes, and the name comes.
pub(super) fn makes_root(name: &str, real: &AtomicUsize, arguments: Arguments) -> u64 {
    let root = gives_back(name, real, Thing::Inode, 0, arguments);
    if let Some(domain) = caller().filter(|_| !journal::is_nothing(root)) {
        journal::takes(&domain, Thing::Dentry, [root, 0]);
    }
    root
}

/// The module has an inode, and whether others wait for it until it is filled in.
pub(super) fn takes_inode(real: &AtomicUsize, by: By, arguments: Arguments) -> u64 {
    let result = match by {
        By::Result => takes(real, Thing::Inode, by, arguments),
        _ => call(real, arguments),
    };
    let (has, inode) = match by {
        By::Result => (!journal::is_nothing(result), result),
        _ => (result as u32 == 0, arguments[0]),
    };
    if let (Some(domain), Some(wall)) = (caller().filter(|_| has), WALL.get())
        && wall.kernel.is_new(inode)
    {
        journal::takes(&domain, Thing::NewInode, [inode, 0]);
    }
    result
}

/// The inode is filled in, and others may have it.
pub(super) fn ends_new(name: &str, real: &AtomicUsize, arguments: Arguments) -> u64 {
    gives_back(name, real, Thing::NewInode, 0, arguments)
}

/// The constructor of a cache makes an inode in each object, at the same place.
pub(super) fn makes_inode(name: &str, real: &AtomicUsize, arguments: Arguments) -> u64 {
    let inode = arguments[0];
    if !caller().is_some_and(|domain| rights::makes_inode(&domain, inode)) {
        refuse(format!(
            "{name}: {inode:#x} is not where the cache has inodes"
        ));
        return 0;
    }
    call(real, arguments)
}

/// An algorithm of digests goes: the first argument. The second one is a place in it.
pub(super) fn ends_hash(name: &str, real: &AtomicUsize, arguments: Arguments) -> u64 {
    let hash = arguments[0];
    // `mullion_recover.c` holds the number against the kernel's structure.
    let within = hash.wrapping_add(8);
    gives_back(name, real, Thing::Hash, 0, [hash, within, 0, 0, 0, 0, 0, 0])
}

/// These end the mark of a new inode, too.
pub(super) fn forgets_new(name: &str, arguments: Arguments) {
    let inode = match name {
        "iget_failed" | "discard_new_inode" => arguments[0],
        "d_instantiate_new" => arguments[1],
        _ => return,
    };
    if let Some(domain) = caller() {
        journal::gives(&domain, Thing::NewInode, inode);
    }
}
