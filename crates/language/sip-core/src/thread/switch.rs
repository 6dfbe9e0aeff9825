//! Going from one stack to another.
//!
//! ```text
//!   suspended                            new
//!   | frames of who waits          |     | what is to run (a closure)         |
//!   | rbp                          |     | the function that runs it          |
//!   | rbx                          |     | where the closure is               |
//!   | where it goes on  <- top     |     | `begin`                     <- top |
//! ```
//! A stack that does not run is its `top`. Every way onto one is the same: take `top` as the stack pointer, pop an
//! address and jump there. The other registers are the compiler's to keep, which knows that these pieces of assembly
//! change all of them. Only `rbx` and `rbp` it cannot give away, so they are on the stack.
//!
//! Nothing here calls or returns. A processor guesses where a `ret` goes by the calls that it has seen. A switch by
//! `call` and `ret` leaves it with those of another stack, and each return after the switch is guessed wrong. Frames
//! below `begin` cannot be unwound: a panic is caught above it (`process::panic::contain`).

use std::arch::{asm, naked_asm};
use std::cell::Cell;
use std::mem::align_of;
use std::ptr::NonNull;

use super::stacks::STACK;

/// Suspends the calling stack, leaves its top in `save`, and goes on with another. Returns when somebody goes on
/// with this one.
///
/// # Safety
/// `to` is the top of a suspended or new stack, which nobody else goes on with.
#[inline(always)]
pub(super) unsafe fn switch(save: &Cell<usize>, to: usize) {
    // SAFETY: by the caller. What is pushed here is popped here; all other registers are given up.
    unsafe {
        asm!(
            "push rbp",
            "push rbx",
            "lea rax, [rip + 2f]",
            "push rax",
            "mov [rdi], rsp",
            "mov rsp, rsi",
            "pop rax",
            "jmp rax",
            "2:",
            "pop rbx",
            "pop rbp",
            in("rdi") save.as_ptr(),
            in("rsi") to,
            lateout("r12") _, lateout("r13") _, lateout("r14") _, lateout("r15") _,
            clobber_abi("sysv64"),
        );
    }
}

/// Right after a switch: has the compiler keep these two values in the two registers that lie on the stack meanwhile, and
/// so nothing else. What is popped comes late, since where the stack is was only just looked up. In a loop of switches the
/// compiler liked to keep there what it finds thread-locals by, with which the next switch begins, so that each waited for
/// the one before.
#[inline(always)]
#[allow(
    clippy::pointers_in_nomem_asm_block,
    reason = "nothing behind them is read or written: they are to be in registers"
)]
pub(super) fn keep<T, U>(one: &T, other: &U) {
    if !cfg!(miri) {
        // SAFETY: nothing is done.
        unsafe {
            asm!("/* {} {} */", in(reg) one, in(reg) other, options(nomem, nostack, preserves_flags));
        }
    }
}

/// Goes on with another stack, for good.
///
/// # Safety
/// As for [`switch`]. Nothing on the calling stack is dropped.
#[inline(always)]
pub(super) unsafe fn jump(to: usize) -> ! {
    // SAFETY: `to` is the top of a stack that nobody else goes on with; what is on the calling one is given up.
    unsafe { asm!("mov rsp, {}", "pop rax", "jmp rax", in(reg) to, options(noreturn)) }
}

/// The registers with which a signal handler that returns goes on with a stack: `rip` and `rsp`.
///
/// # Safety
/// As for [`switch`].
pub(super) unsafe fn registers(to: usize) -> (usize, usize) {
    // SAFETY: a top has an address in it.
    let address = unsafe { std::ptr::with_exposed_provenance::<usize>(to).read() };
    (address, to + size_of::<usize>())
}

/// Calls `body` on a stack that is suspended.
///
/// # Safety
/// As for [`switch`]; nobody goes on with the stack meanwhile. `body` does not unwind.
pub(super) unsafe fn call_on(stack: usize, body: extern "sysv64" fn()) {
    // SAFETY: below a top there is nothing. `r12` is kept by the function that is called.
    unsafe {
        asm!(
            "mov r12, rsp",
            "mov rsp, {stack}",
            "and rsp, -16",
            "call {body}",
            "mov rsp, r12",
            stack = in(reg) stack,
            body = in(reg) body,
            out("r12") _,
            clobber_abi("sysv64"),
        );
    }
}

/// Prepares a new stack that ends at `base`: who goes on with it runs `body`, which must not return.
///
/// # Safety
/// Below `base` there is room for the closure and for what it does.
#[inline]
pub(super) unsafe fn prepare<F: FnOnce()>(base: NonNull<u8>, body: F) -> usize {
    const {
        assert!(
            size_of::<F>() <= STACK / 2,
            "what a thread begins with fills its stack"
        )
    };
    let align = align_of::<F>().max(16);
    let closure = base
        .as_ptr()
        .wrapping_sub(size_of::<F>())
        .map_addr(|address| address & !(align - 1))
        .cast::<F>();
    let top = closure.cast::<usize>().wrapping_sub(3);
    // SAFETY: below the base, in this order: the closure and the three words, aligned to 16.
    unsafe {
        closure.write(body);
        top.add(2).write(run::<F> as *const () as usize);
        top.add(1).write(closure.expose_provenance());
        top.write(begin as *const () as usize);
    }
    top.expose_provenance()
}

unsafe extern "sysv64" fn run<F: FnOnce()>(closure: *mut F) -> ! {
    // SAFETY: `prepare` has put it there, and it is run once.
    let body = unsafe { closure.read() };
    body();
    std::process::abort()
}

/// Where a new stack begins: calls what `prepare` has left there.
#[unsafe(naked)]
unsafe extern "sysv64" fn begin() -> ! {
    // Unwinders stop where the address to return to is undefined.
    naked_asm!(
        ".cfi_startproc",
        ".cfi_undefined rip",
        "pop rdi",
        "pop rax",
        "xor ebp, ebp",
        "call rax",
        "ud2",
        ".cfi_endproc",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread::stacks::{Stack, Stacks};
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn stack() -> Stack {
        Stacks::default().take().expect("memory")
    }

    fn is_on(stack: &Stack, address: usize) -> bool {
        let base = stack.base().addr().get();
        (base - STACK..base).contains(&address)
    }

    #[test]
    fn there_and_back_with_everything_kept() {
        let stack = stack();
        let (here, there, turns) = (Cell::new(0), Cell::new(0), Cell::new(0u64));
        let (to_here, to_there, count) = (&raw const here, &raw const there, &raw const turns);
        // SAFETY: the stack is ours alone; the cells outlive the last switch; the closure never returns.
        let top = unsafe {
            prepare(stack.base(), move || {
                let mut products = 1.0f64;
                loop {
                    products *= 1.5;
                    (*count).set((*count).get() + 1);
                    switch(&*to_there, (*to_here).get());
                    assert!(products >= 1.5);
                }
            })
        };
        there.set(top);
        let (mut sum, mut products) = (0u64, 1.0f64);
        for turn in 1..=1000u64 {
            sum += turn;
            products *= 1.001;
            // SAFETY: the other stack is new or has suspended itself.
            unsafe { switch(&here, there.get()) };
            assert_eq!((turns.get(), sum), (turn, turn * (turn + 1) / 2));
            assert!(is_on(&stack, there.get()));
        }
        assert!((products - 1.001f64.powi(1000)).abs() < 1e-9);
    }

    #[test]
    fn what_a_stack_begins_with_may_be_large_and_aligned() {
        #[repr(align(256))]
        struct Large([u8; 5000]);
        let large = Large([7; 5000]);
        let stack = stack();
        let (here, seen) = (Cell::new(0), Cell::new(0));
        let (to_here, see) = (&raw const here, &raw const seen);
        // SAFETY: the stack is this test's alone, and its coroutine runs to its end here, on this OS thread.
        unsafe {
            let top = prepare(stack.base(), move || {
                let large = &large;
                assert_eq!(std::ptr::from_ref(large).addr() % 256, 0);
                (*see).set(large.0.iter().map(|byte| usize::from(*byte)).sum());
                jump((*to_here).get());
            });
            switch(&here, top);
        }
        assert_eq!(seen.get(), 35_000);
    }

    #[test]
    fn a_call_runs_on_the_other_stack() {
        static WHERE: AtomicUsize = AtomicUsize::new(0);
        extern "sysv64" fn look() {
            let local = 0u8;
            WHERE.store(std::ptr::from_ref(&local).addr(), Ordering::Relaxed);
        }
        let stack = stack();
        // SAFETY: a new stack, which nobody goes on with.
        unsafe {
            let top = prepare(stack.base(), || ());
            call_on(top, look);
        }
        assert!(is_on(&stack, WHERE.load(Ordering::Relaxed)));
    }

    #[test]
    fn a_signal_handler_is_told_where_to_return_to() {
        let stack = stack();
        // SAFETY: a new stack, which nobody goes on with.
        let (address, pointer, top) = unsafe {
            let top = prepare(stack.base(), || ());
            let (address, pointer) = registers(top);
            (address, pointer, top)
        };
        assert_eq!((address, pointer), (begin as *const () as usize, top + 8));
    }
}
