//! The way into a domain: a call of the assembly.

use crate::inner::Inner;
use crate::tcb::Tcb;
use core::mem::offset_of;
use std::ptr;

/// Arguments beyond the six in registers.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Extra {
    /// Eight vectors, or null.
    vectors: *const [u128; 8],
    /// For the data stack, and how many.
    stacked: *const u64,
    count: u32,
}

impl Extra {
    pub(crate) const VECTORS: usize = offset_of!(Self, vectors);
    pub(crate) const STACKED: usize = offset_of!(Self, stacked);
    pub(crate) const COUNT: usize = offset_of!(Self, count);

    /// What lies at these places, which must stay while this is in use.
    #[inline]
    pub(crate) fn new(vectors: *const [u128; 8], stacked: &[u64]) -> Self {
        Self {
            vectors,
            stacked: stacked.as_ptr(),
            count: stacked.len() as u32,
        }
    }
}

/// What `mullion_enter_*` returns: the domain's `%rax`, `%rdx` and `%xmm0`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Left {
    pub(crate) value: u64,
    pub(crate) high: u64,
    pub(crate) double: f64,
    pub(crate) ended: u32,
}

/// Calls `mullion_enter_*`, whose convention is its own.
///
/// # Safety
/// As the head of `trampoline.s` says; `extra` is null or valid.
#[expect(clippy::inline_always, reason = "the result is to stay in registers")]
#[inline(always)]
pub(crate) unsafe fn enter(
    tcb: &Tcb,
    domain: &Inner,
    target: u64,
    stack: u64,
    integers: &[u64; 6],
    extra: *const Extra,
) -> Left {
    let (value, high, ended): (u64, u64, u64);
    let double: f64;
    // SAFETY: the list at this function is that of the assembly. Everything that the trampoline changes is
    // named; %rbx and %rbp it restores.
    unsafe {
        core::arch::asm!(
            "call qword ptr [rdi + {enter}]",
            enter = const offset_of!(Tcb, enter),
            inlateout("rdi") ptr::from_ref(tcb) => _,
            inlateout("rdx") ptr::from_ref(domain).expose_provenance() as u64 => high,
            inlateout("rcx") target => ended,
            inlateout("r8") stack => _,
            inlateout("r9") ptr::from_ref(integers) => _,
            inlateout("r10") extra => _,
            lateout("rax") value,
            lateout("xmm0") double,
            lateout("r12") _,
            lateout("r13") _,
            lateout("r14") _,
            lateout("r15") _,
            clobber_abi("C"),
        );
    }
    Left {
        value,
        high,
        double,
        ended: ended as u32,
    }
}
