//! The check, as rewritten code will have it: for tests, and as the measure of what it costs.
//!
//! ```text
//!   in     %gs   base of the shadow          r14   the domain's own number, four times
//!   uses   %r11, flags
//!
//!          lea   the operand, %r11
//!          shr   $2, %r11                    the word
//!          cmp   %r14w, %gs:(%r11,%r11)      two bytes for each
//!          jne   cold                        \
//!   back:  the access                         |  the checked range: from behind the compare
//!          ...                                |  to the access, and what is cold
//!   cold:  movzwl %gs:(%r11,%r11), %r11d      |
//!          testb $right, %gs:(%r14d,%r11d)    |
//!          jne   back                        /
//!          refused
//! ```

use crate::{Code, View};
use std::arch::global_asm;

global_asm!(
    // rdi: address, esi: value, rdx: own number four times; eax: whether it was stored.
    ".text",
    ".globl mullion_word_begin, mullion_word_store4, mullion_word_store4_checked",
    ".globl mullion_word_store4_done, mullion_word_store4_cold, mullion_word_store4_refused",
    ".globl mullion_word_load4, mullion_word_load4_checked, mullion_word_load4_done",
    ".globl mullion_word_load4_cold, mullion_word_load4_refused, mullion_word_end",
    ".hidden mullion_word_begin, mullion_word_store4, mullion_word_store4_checked",
    ".hidden mullion_word_store4_done, mullion_word_store4_cold, mullion_word_store4_refused",
    ".hidden mullion_word_load4, mullion_word_load4_checked, mullion_word_load4_done",
    ".hidden mullion_word_load4_cold, mullion_word_load4_refused, mullion_word_end",
    ".p2align 4",
    "mullion_word_begin:",
    "mullion_word_store4:",
    "push r14",
    "mov r14, rdx",
    "lea r11, [rdi]",
    "shr r11, 2",
    "cmp word ptr gs:[r11 + r11], r14w",
    "mullion_word_store4_checked:",
    "jne 3f",
    "2: mov dword ptr [rdi], esi",
    "mullion_word_store4_done:",
    "mov eax, 1",
    "pop r14",
    "ret",
    "mullion_word_store4_cold:",
    "3: movzx r11d, word ptr gs:[r11 + r11]",
    "test byte ptr gs:[r14d + r11d], 2",
    "jne 2b",
    "mullion_word_store4_refused:",
    "xor eax, eax",
    "pop r14",
    "ret",
    // rdi: address, rdx: own number four times, rsi: where the value goes; eax: whether it was loaded.
    ".p2align 4",
    "mullion_word_load4:",
    "push r14",
    "mov r14, rdx",
    "lea r11, [rdi]",
    "shr r11, 2",
    "cmp word ptr gs:[r11 + r11], r14w",
    "mullion_word_load4_checked:",
    "jne 3f",
    "2: mov eax, dword ptr [rdi]",
    "mullion_word_load4_done:",
    "mov dword ptr [rsi], eax",
    "mov eax, 1",
    "pop r14",
    "ret",
    "mullion_word_load4_cold:",
    "3: movzx r11d, word ptr gs:[r11 + r11]",
    "test byte ptr gs:[r14d + r11d], 1",
    "jne 2b",
    "mullion_word_load4_refused:",
    "xor eax, eax",
    "pop r14",
    "ret",
    "mullion_word_end:",
);

unsafe extern "C" {
    fn mullion_word_store4(address: u64, value: u32, own: u64) -> u32;
    fn mullion_word_load4(address: u64, value: *mut u32, own: u64) -> u32;
    fn mullion_word_begin();
    fn mullion_word_store4_checked();
    fn mullion_word_store4_done();
    fn mullion_word_store4_cold();
    fn mullion_word_store4_refused();
    fn mullion_word_load4_checked();
    fn mullion_word_load4_done();
    fn mullion_word_load4_cold();
    fn mullion_word_load4_refused();
    fn mullion_word_end();
}

/// Where [`store4`] and [`load4`] are, with their checked ranges.
#[must_use]
pub fn checked_code() -> Code {
    let at = |symbol: unsafe extern "C" fn()| symbol as usize;
    let ranges = vec![
        at(mullion_word_store4_checked)..at(mullion_word_store4_done),
        at(mullion_word_store4_cold)..at(mullion_word_store4_refused),
        at(mullion_word_load4_checked)..at(mullion_word_load4_done),
        at(mullion_word_load4_cold)..at(mullion_word_load4_refused),
    ];
    let text = at(mullion_word_begin)..at(mullion_word_end);
    Code::new(text, ranges).expect("as it is written above")
}

impl View {
    /// Makes the shadow the base of this thread's `%gs` segment, for all checked code that it runs.
    ///
    /// # Safety
    /// Nothing else in this thread uses `%gs` from now on. (The C library and Rust do not, on x86-64.) The table
    /// lives as long as the thread runs checked code.
    pub unsafe fn load(&self) {
        const ARCH_SET_GS: i32 = 0x1001;
        let base = self.shadow();
        // SAFETY: the caller has no other use for it.
        let done = unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_SET_GS, base) };
        assert_eq!(done, 0, "the kernel sets %gs to any address of the process");
    }
}

/// Stores `value` at `address` if the domain of `view` may: whether it was stored.
///
/// # Safety
/// [`View::load`] has been called in this thread. If the table says that the domain may write there, there is memory
/// to write, and nobody minds. `address` is a multiple of four.
pub unsafe fn store4(view: &View, address: u64, value: u32) -> bool {
    // SAFETY: it reads the table, and stores only where the caller allows it.
    unsafe { mullion_word_store4(address, value, view.own()) != 0 }
}

/// Loads from `address` if the domain of `view` may.
///
/// # Safety
/// As [`store4`], for reading.
pub unsafe fn load4(view: &View, address: u64) -> Option<u32> {
    let mut value = 0;
    // SAFETY: it reads the table, and loads only where the caller allows it; `value` is ours.
    let done = unsafe { mullion_word_load4(address, &raw mut value, view.own()) };
    (done != 0).then_some(value)
}
