//! The pages of free blocks.

use super::region::Region;
use super::sizes::Id;
use super::table;

/// Free blocks of this size or more give their pages back to the system when no worker keeps them.
pub(super) const DISCARDED_FROM: usize = 256 << 10;
/// Those that are larger do so at once. Of each other size a worker keeps two, 32 MiB in all: pages that are made again
/// cost ten times what is copied into them.
const KEPT_TO: usize = 8 << 20;

/// Gives the pages of a free block back to the system, if it is large, and nobody is to keep them.
pub(super) fn discard(region: Region, id: Id) {
    let bytes = id.class().bytes();
    let keeps = match id.is_common() {
        true => table::keeps_pages(id),
        false => bytes <= KEPT_TO,
    };
    if bytes >= DISCARDED_FROM && !keeps {
        region.discard(id);
    }
}
