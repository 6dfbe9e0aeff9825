//! The last of the machine's memory is the kernel's: a module is given none of it, as if there were none.
//!
//! What the kernel needs for a device or the like counts, too, because the kernel is asked how much is left. Memory that it can have back from
//! caches and files is not used up.

use crate::WALL;
use crate::kernel::Kernel;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A part of so many of the machine's pages.
const PART: i64 = 16;
/// The kernel is asked again when modules have got so many bytes.
const SOME: u64 = 256 << 10;
/// What a device or a disk takes, with all that the kernel has for it.
pub(super) const DEVICE: u64 = 64 << 10;

/// Bytes that modules have got since the kernel was asked, and whether there was too little left.
static SINCE: AtomicU64 = AtomicU64::new(SOME);
static LOW: AtomicBool = AtomicBool::new(false);

/// Whether a module may have so many bytes more.
pub(super) fn has(bytes: u64) -> bool {
    let before = SINCE.fetch_add(bytes, Ordering::Relaxed);
    let pages = (bytes / 4096) as i64;
    let is_old = LOW.load(Ordering::Relaxed) || before.saturating_add(bytes) >= SOME;
    if let Some(wall) = WALL.get().filter(|_| is_old) {
        SINCE.store(0, Ordering::Relaxed);
        let is_low = left(wall.kernel).is_some_and(|[left, all]| left - pages < all / PART);
        if is_low && !LOW.swap(is_low, Ordering::Relaxed) {
            wall.kernel
                .say("modules get no more memory: little is left");
        }
        LOW.store(is_low, Ordering::Relaxed);
    }
    !LOW.load(Ordering::Relaxed)
}

/// Pages that the kernel could give, and all pages.
fn left(kernel: Kernel) -> Option<[i64; 2]> {
    static FOUND: OnceLock<Option<[usize; 2]>> = OnceLock::new();
    let find = |name| kernel.symbol(name, std::ptr::null_mut());
    let both = || Some([find("si_mem_available")?, find("_totalram_pages")?]);
    let [available, all] = (*FOUND.get_or_init(both))?;
    // SAFETY: the kernel's function of this name takes nothing, and its variable of that name is a number which stays.
    let [available, all] = unsafe {
        let available: extern "C" fn() -> i64 = std::mem::transmute(available);
        [available(), (all as *const i64).read_volatile()]
    };
    Some([available, all])
}
