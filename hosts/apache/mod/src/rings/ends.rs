//! How long buckets are good: as long as their allocator, their file and their pool.

use super::{
    Bucket, DATA, FREE, LENGTH, LIST, PREVIOUS, RING, Rings, START, Shown, TYPE, link, take_apart,
    write,
};
use crate::apr;
use crate::frame::Frame;
use crate::layout::read;
use crate::pools;
use crate::walled::{Answer, Walled, lock};
use std::sync::OnceLock;

/// Destroys a bucket of the core's.
///
/// # Safety
/// It is in no ring.
pub(super) unsafe fn destroy(real: u64) {
    // SAFETY: by the caller; types have their functions, and buckets theirs.
    unsafe {
        let (kind, free) = (read(real + TYPE), read(real + FREE));
        let destroy: extern "C" fn(u64) = std::mem::transmute(read(kind + 16));
        let free: extern "C" fn(u64) = std::mem::transmute(free);
        destroy(read(real + DATA));
        free(real);
    }
}

/// Buckets that a module has left behind when their pool goes.
pub(crate) fn destroy_all(left: Vec<u64>) {
    for real in left {
        // SAFETY: the module had it, so it is in a ring of its own.
        unsafe { destroy(real) };
    }
}

/// A bucket of a file says how long that is. Whoever has it mapped and reads beyond its end is stopped by the kernel: so its
/// bytes are read.
///
/// # Safety
/// It is a bucket of the core's.
pub(super) unsafe fn not_mapped(real: u64) {
    static FILES: OnceLock<Option<usize>> = OnceLock::new();
    let files = *FILES.get_or_init(|| apr::symbol("apr_bucket_type_file"));
    // SAFETY: by the caller; APR's function believes that it is a file's, which is looked at here.
    unsafe {
        if files == Some(read(real + TYPE) as usize) {
            apr::apr_bucket_file_enable_mmap(real, 0);
        }
    }
}

/// The same for all buckets of a brigade of the core's.
///
/// # Safety
/// It is such a brigade.
pub(crate) unsafe fn unmapped(brigade: u64) {
    let end = brigade + RING;
    // SAFETY: links of the core's rings are good.
    unsafe {
        let mut at = read(end);
        while at != end {
            not_mapped(at);
            at = read(at);
        }
    }
}

impl Walled {
    /// The module has made an allocator of buckets.
    pub(crate) fn begin_allocator(&self, list: u64) {
        lock(&self.rings).allocators.push(list);
    }

    /// An allocator of the module's is about to go, with its buckets.
    pub(crate) fn end_allocator(&self, list: u64) {
        let mut rings = lock(&self.rings);
        rings.allocators.retain(|one| *one != list);
        // SAFETY: what is not destroyed is a bucket of the core's.
        let is_of = |bucket: &Bucket| unsafe { read(bucket.real + LIST) == list };
        let left =
            rings.forget_all(|shown| matches!(shown, Shown::Bucket(bucket) if is_of(bucket)));
        drop(rings);
        destroy_all(left);
    }

    /// Whether this thread may work with what goes with a pool. One that a module has made stays until the call of the host returns.
    pub(super) fn holds(&self, frame: &Frame, home: u64) -> bool {
        match pools::is_made(home) {
            // With what goes with no request one thread at a time works.
            true if !pools::is_bound(home) => {
                pools::hold(frame, home, false) && frame.take_turn(home).is_ok()
            }
            true => pools::hold(frame, home, true),
            false => frame.has_pool(home) || self.knows_pool(home),
        }
    }

    /// The bucket is set aside: it goes with another pool from now on, but not behind its allocator.
    pub(super) fn move_home(&'static self, frame: &Frame, copy: u64, pool: u64) -> Answer<()> {
        let real = lock(&self.rings).bucket(copy).map(|bucket| bucket.real);
        let Some(real) = real else {
            return Ok(());
        };
        // SAFETY: it is a bucket of the core's.
        let list = unsafe { read(real + LIST) };
        let allocator = self.home_of(list).or_else(|| frame.home_of_allocator(list));
        let pool = allocator.and_then(|allocator| pools::first_to_go(allocator, pool));
        // Otherwise it goes with what it has gone with.
        let Some(pool) = pool else {
            return Ok(());
        };
        self.pool(frame, pool)?;
        let mut rings = lock(&self.rings);
        let Some(bucket) = rings.bucket_mut(copy) else {
            return Ok(());
        };
        bucket.home = pool;
        Ok(())
    }
}

impl Walled {
    /// The core's brigade of a copy. It stays until the call of the host returns.
    pub(crate) fn real_brigade(&'static self, copy: u64) -> Option<u64> {
        let found = lock(&self.rings)
            .brigade(copy)
            .map(|one| (one.real, one.home));
        let frame = crate::frame::now()?;
        found
            .filter(|(_, home)| pools::hold(frame, *home, pools::is_bound(*home)))
            .map(|(real, _)| real)
    }

    /// A bucket that was passed alone: what the core has put behind it comes behind the copy.
    pub(super) fn show_alone(&'static self, rings: &mut Rings, copy: u64) -> Answer<()> {
        let Some(bucket) = rings.bucket_mut(copy) else {
            return Ok(());
        };
        let (real, home) = (bucket.real, bucket.home);
        // SAFETY: it is a bucket of the core's.
        let (is_alone, now) = unsafe {
            (
                read(real) == real,
                [TYPE, LENGTH, START, DATA].map(|at| read(real + at)),
            )
        };
        // Nothing came behind it, and it is as the module has it (`changed`): a bucket that was read is so nearly always.
        if is_alone && now == bucket.shown {
            bucket.is_out = false;
            return Ok(());
        }
        // SAFETY: what is in the ring with the bucket is the core's. Of the copies, each was looked up.
        unsafe {
            let (before, after) = (read(copy + PREVIOUS), read(copy));
            let more = take_apart(real);
            self.show(rings, home, real)?;
            // A bucket that was taken out of a ring still has the links that it had there.
            let is_linked = rings.is_element(after)
                && rings.is_element(before)
                && read(before) == copy
                && read(after + PREVIOUS) == copy;
            let mut last = copy;
            for real in more {
                let shown = self.show(rings, home, real)?;
                link(last, shown);
                last = shown;
            }
            if is_linked {
                link(before, copy);
                link(last, after);
            } else if last != copy {
                link(last, copy);
            } else {
                write(copy, after);
                write(copy + PREVIOUS, before);
            }
        }
        Ok(())
    }
}
