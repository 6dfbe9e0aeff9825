//! The one order of memory that x86-64 does not keep by itself: a store before a later load.

/// As `fence(SeqCst)` of the standard library, which compilers make an `mfence` on x86-64. A locked operation orders the same
/// and takes 12 cycles where that takes 50 (Zen 5).
#[inline(always)]
pub fn fence() {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: it changes nothing: the word on top of the stack is this thread's, and gets the value that it has. What is
    // ordered is all of memory, since the compiler is told that all of it may be read and written.
    unsafe {
        std::arch::asm!("lock or dword ptr [rsp], 0");
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
}
