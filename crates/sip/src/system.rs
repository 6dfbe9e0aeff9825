//! What the kernel asks of Linux: address space, sleeping, cores.

use std::io;
use std::ptr;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Pages of the machine.
pub(crate) const PAGE: usize = 4096;

/// `bytes` of zeroed address space, aligned to `align` (a power of two of at least a page). Memory is taken
/// page by page when first touched. It is never given back: reservations live as long as the program.
pub(crate) fn reserve(bytes: usize, align: usize) -> io::Result<*mut u8> {
    // SAFETY: a new private mapping at an address that the system chooses touches no existing memory.
    let base = unsafe {
        libc::mmap(
            ptr::null_mut(),
            bytes + align,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(base.cast::<u8>().map_addr(|at| at.next_multiple_of(align)))
}

/// How many mappings a program may have, if the system says it.
pub(crate) fn most_mappings() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/sys/vm/max_map_count").ok()?;
    text.trim().parse().ok()
}

/// Makes a page fault on every access.
///
/// # Safety
/// The page is part of a reservation and holds nothing that anybody will use.
pub(crate) unsafe fn forbid(page: *mut u8) -> io::Result<()> {
    // SAFETY: the caller's promise; protection only takes access away.
    match unsafe { libc::mprotect(page.cast(), PAGE, libc::PROT_NONE) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Gives the memory behind an address range back; it reads as zero afterwards.
///
/// # Safety
/// The range is part of a reservation and holds nothing that anybody will use.
pub(crate) unsafe fn discard(start: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise. A failure leaves the memory as it is, which is as good.
    unsafe { libc::madvise(start.cast(), bytes, libc::MADV_DONTNEED) };
}

/// Sleeps while `word` holds `expected`, until woken or for `limit`; may return for no reason.
pub(crate) fn futex_wait(word: &AtomicU32, expected: u32, limit: Option<Duration>) {
    let limit = limit.map(|limit| libc::timespec {
        tv_sec: limit.as_secs().try_into().unwrap_or(libc::time_t::MAX),
        tv_nsec: limit.subsec_nanos().into(),
    });
    let limit = limit.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: the word and the time outlive the call.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            expected,
            limit,
        )
    };
}

/// Wakes one thread that sleeps on `word`.
pub(crate) fn futex_wake(word: &AtomicU32) {
    // SAFETY: the word outlives the call.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            1,
        )
    };
}

/// Wakes all that sleep on `word`, in any OS process that has it mapped.
pub(crate) fn futex_wake_shared(word: &AtomicU32) {
    // SAFETY: the word outlives the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}

/// As the kernel has it: `struct futex_waitv`.
#[repr(C)]
struct FutexWait {
    value: u64,
    address: u64,
    flags: u32,
    reserved: u32,
}
/// `FUTEX2_SIZE_U32`, and `FUTEX2_PRIVATE`.
const FUTEX_32: u32 = 2;
const FUTEX_PRIVATE: u32 = 128;
/// The kernel's `FUTEX_WAITV_MAX`.
pub(crate) const FUTEX_WORDS: usize = 128;

/// Sleeps while `word`, of this OS process, and all of the shared words hold what is expected of each, until woken
/// or for `limit`; may return for no reason. With too many words, or before Linux 5.16, it sleeps a millisecond.
pub(crate) fn futex_wait_any<'a>(
    word: &AtomicU32,
    expected: u32,
    shared: impl Iterator<Item = (&'a AtomicU32, u32)>,
    limit: Option<Duration>,
) {
    let wait = |word: &AtomicU32, value: u32, flags: u32| FutexWait {
        value: value.into(),
        address: word.as_ptr() as u64,
        flags: FUTEX_32 | flags,
        reserved: 0,
    };
    let words: Vec<FutexWait> = std::iter::once(wait(word, expected, FUTEX_PRIVATE))
        .chain(shared.map(|(word, value)| wait(word, value, 0)))
        .collect();
    let deadline = limit.map(|limit| {
        // SAFETY: the time is plain data, and outlives the call.
        let mut now: libc::timespec = unsafe { std::mem::zeroed() };
        // SAFETY: as above.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
        let nanoseconds = now.tv_nsec as u64 + u64::from(limit.subsec_nanos());
        now.tv_sec += limit.as_secs().min(1 << 40) as libc::time_t;
        now.tv_sec += (nanoseconds / 1_000_000_000) as libc::time_t;
        now.tv_nsec = (nanoseconds % 1_000_000_000) as _;
        now
    });
    let deadline = deadline.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: the words, their list and the time outlive the call.
    let woken = unsafe {
        libc::syscall(
            libc::SYS_futex_waitv,
            words.as_ptr(),
            words.len().min(FUTEX_WORDS + 1),
            0,
            deadline,
            libc::CLOCK_MONOTONIC,
        )
    };
    let failure = || io::Error::last_os_error().raw_os_error();
    if woken < 0 && matches!(failure(), Some(libc::ENOSYS | libc::EINVAL)) {
        futex_wait(word, expected, Some(Duration::from_millis(1)));
    }
}

/// The processors that this program may use.
pub(crate) fn cores() -> Vec<usize> {
    // SAFETY: the set is plain data and written before it is read.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set);
        (0..libc::CPU_SETSIZE as usize)
            .filter(|core| libc::CPU_ISSET(*core, &set))
            .collect()
    }
}

/// Keeps the calling thread on one processor. A refusal leaves it where the system likes.
pub(crate) fn pin(core: usize) {
    // SAFETY: the set is plain data; `core` comes from `cores`, so it is in range.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}
