//! Thread-locals of a separately built SIP: each thread of a process has its own.
//!
//! ```text
//!   code of the library --> __tls_get_addr  (the library's own: hidden, so no other library can take its place)
//!                             |  a thread of a process runs: Here.thread -> Thread.locals -> its block
//!                             |  else: the system's function, for this OS thread
//!                             v
//!   block, in the process's heap:  head | a copy of the library's initial image (PT_TLS)
//! ```
//! All threads of a process share one OS thread. With the OS thread's thread-locals, an initialiser that waits would
//! let another thread initialise and borrow the value. The first one would then replace it under the borrower. A
//! block of its own makes a thread of a process what the standard library takes a thread to be.
//!
//! The compiler reaches thread-locals of a shared library through `__tls_get_addr` alone. A host refuses a
//! library that takes it from elsewhere or asks the loader for an offset (`mullion_sip_host::image`).
//!
//! **Ends.** A thread that returns drops its thread-locals and frees its block. The end of a process drops nothing
//! and frees everything, as always.

use std::alloc::Layout;
use std::ffi::{c_int, c_void};
use std::mem::offset_of;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use super::{HERE, Template};
use crate::heap::Heap;
use crate::thread::here::{self, Here};
use crate::thread::slot::Thread;

/// In front of a thread's copy.
struct Head {
    /// What is to be run when the thread returns, the latest first.
    ends: *mut End,
    layout: Layout,
}

struct End {
    run: unsafe extern "C" fn(*mut u8),
    value: *mut u8,
    next: *mut End,
}

/// What the compiler asks for: a module, which can only be this library, and an offset.
#[repr(C)]
#[allow(missing_debug_implementations)]
pub struct Index {
    module: usize,
    offset: usize,
}

/// Where `Here` says which thread runs.
pub const THREAD: usize = Here::THREAD;
/// Where a thread says where its copy is.
pub const LOCALS: usize = offset_of!(Thread, locals);

static START: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
static FILLED: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicUsize = AtomicUsize::new(0);
static ALIGN: AtomicUsize = AtomicUsize::new(1);

/// From here on threads of processes have their own.
///
/// # Safety
/// It is this library's image, and stays.
pub unsafe fn use_template(template: Template) {
    START.store(template.start.cast_mut(), Ordering::Relaxed);
    FILLED.store(template.filled, Ordering::Relaxed);
    BYTES.store(template.bytes, Ordering::Relaxed);
    ALIGN.store(template.align.max(1), Ordering::Relaxed);
}

/// What `__tls_get_addr` does when it does not know the answer.
///
/// # Safety
/// The index is of this library.
pub unsafe extern "C" fn find(index: &Index) -> *mut u8 {
    match running().and_then(|thread| Some((thread, thread.heap.get()?))) {
        Some((thread, heap)) => {
            let copy = copy_for(heap);
            thread.locals.set(copy.as_ptr());
            copy.as_ptr().wrapping_add(index.offset)
        }
        // SAFETY: the system's function of that name, with what the compiler has given us for it.
        None => unsafe { of_the_system(index) },
    }
}

/// The process's thread that runs. Before the library is attached, to look would need thread-locals.
fn running() -> Option<&'static Thread> {
    match HERE.get() {
        0 => None,
        _ => here::thread().filter(|thread| thread.process.get().is_some()),
    }
}

/// A fresh copy. A process that has no memory for it ends, as with any other allocation.
#[cold]
fn copy_for(heap: &'static Heap) -> NonNull<u8> {
    let (bytes, align) = (BYTES.load(Ordering::Relaxed), ALIGN.load(Ordering::Relaxed));
    let body = Layout::from_size_align(bytes, align);
    let whole = body.and_then(|body| Layout::new::<Head>().extend(body));
    let Ok((layout, before)) = whole else {
        unreachable!("the host has looked at the image");
    };
    // Wherever allocations go at the moment, these are the process's.
    let now = here::replace_heap(Some(heap));
    // SAFETY: a layout with at least a head. The copy begins behind it, and the image is as the loader left it.
    unsafe {
        let block = std::alloc::alloc_zeroed(layout);
        let Some(block) = NonNull::new(block) else {
            std::alloc::handle_alloc_error(layout);
        };
        here::replace_heap(now);
        block.cast::<Head>().write(Head {
            ends: ptr::null_mut(),
            layout,
        });
        let copy = block.add(before);
        let filled = FILLED.load(Ordering::Relaxed);
        ptr::copy_nonoverlapping(START.load(Ordering::Relaxed), copy.as_ptr(), filled);
        copy
    }
}

/// The head of a copy.
fn head_of(copy: *mut u8) -> *mut Head {
    let align = ALIGN.load(Ordering::Relaxed);
    let before = size_of::<Head>().next_multiple_of(align);
    copy.wrapping_sub(before).cast()
}

/// What `__cxa_thread_atexit_impl` does: on a thread of a process, the thread itself runs it.
///
/// # Safety
/// As for the system's function.
pub unsafe extern "C" fn at_end(
    run: unsafe extern "C" fn(*mut u8),
    value: *mut u8,
    library: *mut c_void,
) -> c_int {
    let locals = running().map_or(ptr::null_mut(), |thread| thread.locals.get());
    if locals.is_null() {
        // SAFETY: the caller's promise is that of the system's function, which gets the same arguments.
        return unsafe { at_end_of_the_system(run, value, library) };
    }
    let head = head_of(locals);
    // SAFETY: the head of the running thread's copy, which nobody else uses.
    unsafe {
        let next = (*head).ends;
        (*head).ends = Box::into_raw(Box::new(End { run, value, next }));
    }
    0
}

/// The running thread has returned: drops its thread-locals, the latest first, and frees its block.
pub(crate) fn leave() {
    let Some(thread) = running() else {
        return;
    };
    let copy = thread.locals.get();
    if copy.is_null() {
        return;
    }
    let head = head_of(copy);
    // SAFETY: the running thread's block, which it alone uses. What is dropped may ask for more to be dropped.
    unsafe {
        while !(*head).ends.is_null() {
            let end = Box::from_raw((*head).ends);
            (*head).ends = end.next;
            (end.run)(end.value);
        }
        thread.locals.set(ptr::null_mut());
        std::alloc::dealloc(head.cast(), (*head).layout);
    }
}

/// Where a variable of the system's lies for this thread.
///
/// # Safety
/// The index is one that the dynamic linker has made, and the host's copy of the crate has begun.
unsafe fn of_the_system(index: &Index) -> *mut u8 {
    // SAFETY: by the caller; the host's copy of the crate has the system's function there.
    unsafe { (super::state().find)(ptr::from_ref(index).cast()) }
}

/// Has the system call `run` when this thread ends.
///
/// # Safety
/// As of `__cxa_thread_atexit_impl`; the host's copy of the crate has begun.
unsafe fn at_end_of_the_system(
    run: unsafe extern "C" fn(*mut u8),
    value: *mut u8,
    library: *mut c_void,
) -> c_int {
    // SAFETY: the host's copy has the system's function there, and the caller promises what that asks for.
    unsafe { (super::state().at_end)(run, value, library) }
}

/// The two functions by which compiler and standard library reach thread-locals, for `sip_main!`.
#[doc(hidden)]
#[macro_export]
macro_rules! __locals {
    () => {
        ::core::arch::global_asm!(
            ".pushsection .text.__tls_get_addr,\"ax\",@progbits",
            ".globl __tls_get_addr",
            ".hidden __tls_get_addr",
            ".type __tls_get_addr,@function",
            ".p2align 4",
            "__tls_get_addr:",
            ".cfi_startproc",
            "mov rax, qword ptr [rip + {here}]",
            "test rax, rax",
            "jz 2f",
            "mov rax, qword ptr fs:[rax + {thread}]",
            "test rax, rax",
            "jz 2f",
            "mov rax, qword ptr [rax + {locals}]",
            "test rax, rax",
            "jz 2f",
            "add rax, qword ptr [rdi + 8]",
            "ret",
            // The stack need not be aligned here.
            "2:",
            "push rbp",
            ".cfi_def_cfa_offset 16",
            ".cfi_offset rbp, -16",
            "mov rbp, rsp",
            ".cfi_def_cfa_register rbp",
            "and rsp, -16",
            "call {find}",
            "leave",
            ".cfi_def_cfa rsp, 8",
            "ret",
            ".cfi_endproc",
            ".size __tls_get_addr, .-__tls_get_addr",
            ".globl __cxa_thread_atexit_impl",
            ".hidden __cxa_thread_atexit_impl",
            ".type __cxa_thread_atexit_impl,@function",
            "__cxa_thread_atexit_impl:",
            "jmp {at_end}",
            ".size __cxa_thread_atexit_impl, .-__cxa_thread_atexit_impl",
            ".popsection",
            here = sym $crate::locals::HERE,
            thread = const $crate::locals::THREAD,
            locals = const $crate::locals::LOCALS,
            find = sym $crate::locals::find,
            at_end = sym $crate::locals::at_end,
        );
    };
}
