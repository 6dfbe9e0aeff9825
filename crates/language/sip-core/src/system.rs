//! What the kernel asks of Linux: address space, sleeping, cores.

use std::io;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

mod away;

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
    let private = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    wait_on(word, private, expected, limit);
}

/// The same for a word that other OS processes have mapped.
///
/// A call of its own in Linux, from 6.7 on. A filter of system calls need not look at its arguments to know that it only
/// waits, and Linux runs no filter for a call that is always let through: 200 cycles.
pub(crate) fn futex_wait_shared(word: &AtomicU32, expected: u32, limit: Option<Duration>) {
    // Without a limit alone: here Linux wants a time to come.
    if cfg!(miri) || limit.is_some() || !HAS_OWN_CALLS.load(Ordering::Relaxed) {
        return wait_on(word, libc::FUTEX_WAIT, expected, limit);
    }
    let (word, all) = (word.as_ptr().expose_provenance(), u32::MAX as usize);
    let arguments = [word, expected as usize, all, FUTEX_32 as usize, 0, 0];
    // SAFETY: the word outlives the call.
    let said = unsafe { away::call(SYS_FUTEX_WAIT, arguments) };
    note_own_calls(said);
}

/// The numbers of `futex_wait` and `futex_wake` on every architecture.
const SYS_FUTEX_WAIT: libc::c_long = 455;
const SYS_FUTEX_WAKE: libc::c_long = 454;

/// Whether this Linux has them, as far as is known.
static HAS_OWN_CALLS: AtomicBool = AtomicBool::new(true);

/// Before Linux 6.7, and in a sandbox that does not know these calls, the next call is the old one. This one has returned at
/// once, as it may.
#[inline(always)]
fn note_own_calls(said: isize) {
    const USUAL: [i32; 2] = [libc::EAGAIN, libc::EINTR];
    if said < 0 && !USUAL.iter().any(|error| said == -(*error as isize)) {
        HAS_OWN_CALLS.store(false, Ordering::Relaxed);
    }
}

#[inline(always)]
fn wait_on(word: &AtomicU32, how: libc::c_int, expected: u32, limit: Option<Duration>) {
    let limit = limit.map(|limit| libc::timespec {
        tv_sec: limit.as_secs().try_into().unwrap_or(libc::time_t::MAX),
        tv_nsec: limit.subsec_nanos().into(),
    });
    let limit = limit.as_ref().map_or(ptr::null(), ptr::from_ref);
    let arguments = [
        word.as_ptr().expose_provenance(),
        how as usize,
        expected as usize,
        limit.expose_provenance(),
        0,
        0,
    ];
    // SAFETY: the word and the time outlive the call.
    unsafe { away::call(libc::SYS_futex, arguments) };
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
    let (word, all) = (word.as_ptr().expose_provenance(), i32::MAX as usize);
    if !cfg!(miri) && HAS_OWN_CALLS.load(Ordering::Relaxed) {
        let arguments = [word, u32::MAX as usize, all, FUTEX_32 as usize, 0, 0];
        // SAFETY: the word outlives the call.
        let said = unsafe { away::call(SYS_FUTEX_WAKE, arguments) };
        note_own_calls(said);
        if said >= 0 {
            return;
        }
    }
    let arguments = [word, libc::FUTEX_WAKE as usize, all, 0, 0, 0];
    // SAFETY: the word outlives the call.
    unsafe { away::call(libc::SYS_futex, arguments) };
}

/// The processor's own clock, some GHz: what is shorter than a slice is told apart by it, without a page of Linux's.
#[inline(always)]
pub(crate) fn ticks() -> u64 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: every x86-64 has the counter, and Linux lets programs read it unless they ask for the contrary.
    return unsafe { std::arch::x86_64::_rdtsc() };
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    0
}

/// Lets others have the processor first.
pub(crate) fn yield_now() {
    // SAFETY: takes nothing.
    unsafe { away::call(libc::SYS_sched_yield, [0; 6]) };
}

/// A word to sleep on, while it holds a value. As the kernel has it: `struct futex_waitv`.
#[derive(Debug)]
#[repr(C)]
pub struct FutexWait {
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

impl FutexWait {
    /// A word of this OS process's own.
    pub fn private(word: &AtomicU32, value: u32) -> FutexWait {
        FutexWait::new(word, value, FUTEX_PRIVATE)
    }

    /// A word in memory that others have mapped.
    pub fn shared(word: &AtomicU32, value: u32) -> FutexWait {
        FutexWait::new(word, value, 0)
    }

    fn new(word: &AtomicU32, value: u32, flags: u32) -> FutexWait {
        FutexWait {
            value: value.into(),
            address: word.as_ptr() as u64,
            flags: FUTEX_32 | flags,
            reserved: 0,
        }
    }
}

/// Sleeps while all of the words hold what is expected of each, until woken or for `limit`; may return for no reason.
/// False if it cannot: with too many words, or before Linux 5.16.
pub(crate) fn futex_wait_any(words: &[FutexWait], limit: Option<Duration>) -> bool {
    let deadline = limit.map(|limit| {
        // SAFETY: the time is plain data, and outlives the call.
        let mut now: libc::timespec = unsafe { std::mem::zeroed() };
        // SAFETY: the call writes one time, to where `now` is, which outlives it.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
        let nanoseconds = now.tv_nsec as u64 + u64::from(limit.subsec_nanos());
        now.tv_sec += limit.as_secs().min(1 << 40) as libc::time_t;
        now.tv_sec += (nanoseconds / 1_000_000_000) as libc::time_t;
        now.tv_nsec = (nanoseconds % 1_000_000_000) as _;
        now
    });
    let deadline = deadline.as_ref().map_or(ptr::null(), ptr::from_ref);
    let arguments = [
        words.as_ptr().expose_provenance(),
        words.len().min(FUTEX_WORDS + 1),
        0,
        deadline.expose_provenance(),
        libc::CLOCK_MONOTONIC as usize,
        0,
    ];
    // SAFETY: the list and the time outlive the call. Of a word that is no more the kernel says so.
    let woken = unsafe { away::call(libc::SYS_futex_waitv, arguments) };
    let refused = [libc::ENOSYS, libc::EINVAL].map(|error| -(error as isize));
    !refused.contains(&woken)
}

/// Takes the calling thread out of Linux's restartable sequences, into which the C library enters every thread.
///
/// Linux writes to a registered thread's area each time when the thread comes back from another one: 200 cycles.
/// `sched_getcpu` asks Linux instead from then on, as the C library does where Linux has none of this. A C library that enters
/// no thread, or another length than is known here, leaves all as it is.
#[cfg(all(target_env = "gnu", target_arch = "x86_64", not(miri)))]
pub(crate) fn leave_restartable_sequences() {
    /// What the C library entered: the least that Linux takes. Then what this Linux has use for.
    const LENGTHS: [libc::c_ulong; 2] = [32, AT_RSEQ_FEATURE_SIZE];
    const AT_RSEQ_FEATURE_SIZE: libc::c_ulong = 27;
    const UNREGISTER: usize = 1;
    /// Of every program on x86-64.
    const SIGNATURE: usize = 0x5305_3053;
    let Some(area) = area() else { return };
    for length in LENGTHS {
        let length = match length {
            // SAFETY: takes a number.
            AT_RSEQ_FEATURE_SIZE => unsafe { libc::getauxval(length) }.next_multiple_of(32),
            length => length,
        };
        // SAFETY: this ends writing to the calling thread's own area, and Linux compares the area with the one that it knows.
        let said = unsafe {
            libc::syscall(
                libc::SYS_rseq,
                area,
                length as libc::c_uint,
                UNREGISTER,
                SIGNATURE,
            )
        };
        if said == 0 {
            return;
        }
    }
}

/// Where Linux writes for the calling thread, if the C library says so.
#[cfg(all(target_env = "gnu", target_arch = "x86_64", not(miri)))]
fn area() -> Option<usize> {
    // SAFETY: names of symbols; nothing is called.
    let offset = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_offset".as_ptr()) };
    if offset.is_null() {
        return None;
    }
    // SAFETY: the C library's variable of that name is a `ptrdiff_t`, which stays as it is from the program's start.
    let offset = unsafe { offset.cast::<isize>().read() };
    // SAFETY: takes nothing. It is the thread pointer, which the offset counts from.
    Some((unsafe { libc::pthread_self() } as usize).wrapping_add_signed(offset))
}

/// Elsewhere no thread is entered, as far as is known.
#[cfg(not(all(target_env = "gnu", target_arch = "x86_64", not(miri))))]
pub(crate) fn leave_restartable_sequences() {}

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

/// What a worker asks to have of a processor at a time, where others want it too: about the least that Linux grants, 100 µs. Who
/// gives the processor away ranks behind the others for that long (without it for 3 ms).
///
/// It is more than the least, which the workers of a domain have: Linux lets who is woken go first if it asks for less. So a
/// host that has rung for a domain stands back at once, and need not sleep while the domain answers. Without the difference
/// that is left to chance, for minutes at a time.
const SLICE: Duration = Duration::from_micros(110);

/// Threads that are started meanwhile run often and shortly rather than rarely and long, and no more than else. Who already
/// runs in shorter slices keeps them. Where Linux refuses, or is older than 6.12, they run as all others.
pub(crate) fn in_short_slices<R>(start: impl FnOnce() -> R) -> R {
    let Some(before) = scheduling() else {
        return start();
    };
    let shorter = 1..SLICE.as_nanos() as u64;
    if shorter.contains(&before.sched_runtime) {
        return start();
    }
    let set = |nanoseconds: u64| {
        let how = libc::sched_attr {
            sched_runtime: nanoseconds,
            ..before
        };
        // SAFETY: the structure says its own length, and outlives the call.
        unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const how, 0) };
    };
    set(SLICE.as_nanos() as u64);
    let started = start();
    set(before.sched_runtime);
    started
}

/// How the calling thread runs, if as most do.
fn scheduling() -> Option<libc::sched_attr> {
    const BYTES: usize = size_of::<libc::sched_attr>();
    // SAFETY: the structure is plain data, for which zero is valid.
    let mut how: libc::sched_attr = unsafe { std::mem::zeroed() };
    // SAFETY: the structure is as long as the call is told, and outlives it.
    let got = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut how, BYTES, 0) };
    (got == 0 && how.sched_policy == libc::SCHED_OTHER as u32).then_some(how)
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

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    /// The second try here is refused: Linux knows of no area any more.
    #[test]
    #[cfg(all(target_env = "gnu", target_arch = "x86_64"))]
    fn a_thread_leaves_restartable_sequences_and_knows_its_processor_still() {
        let processor = || {
            // SAFETY: takes nothing.
            unsafe { libc::sched_getcpu() }
        };
        let left = std::thread::spawn(move || {
            leave_restartable_sequences();
            let here = processor();
            leave_restartable_sequences();
            (
                here,
                area().map(|area| {
                    // SAFETY: the area is the calling thread's, and its second word the processor that Linux wrote last, or -1.
                    unsafe { (area as *const i32).add(1).read_volatile() }
                }),
            )
        });
        let (here, written) = left.join().expect("no panic");
        assert!(here >= 0);
        assert!(written.is_none_or(|written| written < 0), "{written:?}");
    }

    #[test]
    fn only_who_is_started_meanwhile_runs_in_short_slices() {
        let slice = || scheduling().map(|how| Duration::from_nanos(how.sched_runtime));
        let Some(before) = slice() else {
            return eprintln!("not shown here: this thread is scheduled in a way of its own");
        };
        let during = in_short_slices(|| std::thread::spawn(slice))
            .join()
            .expect("no panic");
        // Linux before 6.12 has no such thing, and says 0.
        assert!(during == Some(SLICE) || before.is_zero(), "{during:?}");
        assert_eq!(slice(), Some(before));
        if !before.is_zero() {
            let least = std::thread::spawn(move || {
                let set = libc::sched_attr {
                    sched_runtime: 100_000,
                    ..scheduling().expect("as most are")
                };
                // SAFETY: the structure says its own length, and outlives the call.
                unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const set, 0) };
                in_short_slices(slice)
            });
            let least = least.join().expect("no panic");
            assert_eq!(least, Some(Duration::from_micros(100)));
        }
    }
}
