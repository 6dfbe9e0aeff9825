//! The kernel refuses memory at each place where the run time asks for it, one after the other: what was to be
//! done fails with a typed error, and can be done afterwards, and nothing stays behind. A process of its own, in
//! which the calls of the C library that the run time uses are these here.

mod support;

use mullion_runtime::{
    Access, CallError, Claimed, Error, Limits, MappingError, PAGE, ShareError, SharedPages,
};
use std::cell::Cell;
use std::ffi::{c_char, c_int, c_long, c_uint, c_void};
use support::Program;

const PROGRAM: &str = "
    .data
    value: .quad 7
    .text
    export get
        movq value(%rip), %rax
        ret
";

thread_local! {
    /// Calls on this thread until one is refused, and none after it.
    static LEFT: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Whether this call is the one.
fn is_refused() -> bool {
    let left = LEFT.get();
    LEFT.set(left.and_then(|left| left.checked_sub(1)));
    if left == Some(0) {
        // SAFETY: the thread's own.
        unsafe { *libc::__errno_location() = libc::ENOMEM };
    }
    left == Some(0)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mmap(
    at: *mut c_void,
    length: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    position: libc::off_t,
) -> *mut c_void {
    if is_refused() {
        return libc::MAP_FAILED;
    }
    // SAFETY: the caller of `mmap` answers for its arguments, which go on as they are.
    let start = unsafe {
        libc::syscall(
            libc::SYS_mmap,
            at,
            length,
            protection,
            flags,
            file,
            position,
        )
    };
    std::ptr::with_exposed_provenance_mut(start as usize)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mprotect(at: *mut c_void, length: usize, protection: c_int) -> c_int {
    if is_refused() {
        return -1;
    }
    // SAFETY: the caller of `mprotect` answers for its arguments, which go on as they are.
    unsafe { libc::syscall(libc::SYS_mprotect, at, length, c_long::from(protection)) as c_int }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memfd_create(name: *const c_char, flags: c_uint) -> c_int {
    if is_refused() {
        return -1;
    }
    // SAFETY: the caller of `memfd_create` answers for its arguments, which go on as they are.
    unsafe { libc::syscall(libc::SYS_memfd_create, name, flags) as c_int }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sigaltstack(new: *const libc::stack_t, old: *mut libc::stack_t) -> c_int {
    // To ask takes no memory.
    if !new.is_null() && is_refused() {
        return -1;
    }
    // SAFETY: the caller of `sigaltstack` answers for its arguments, which go on as they are.
    unsafe { libc::syscall(libc::SYS_sigaltstack, new, old) as c_int }
}

/// What failed; a panic is none of it.
#[derive(Debug)]
#[expect(dead_code, reason = "they are printed")]
enum Refused {
    Runtime(Error),
    Call(CallError),
    Mapping(MappingError),
    Share(ShareError),
    Heap,
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self::Runtime(error)
    }
}
impl From<CallError> for Refused {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}
impl From<MappingError> for Refused {
    fn from(error: MappingError) -> Self {
        Self::Mapping(error)
    }
}
impl From<ShareError> for Refused {
    fn from(error: ShareError) -> Self {
        Self::Share(error)
    }
}

/// All that takes memory of the kernel's in a domain's life, by a thread that has called none.
fn live(program: &Program) -> Result<(), Refused> {
    let mut loaded = program.try_load_with(Vec::new(), Limits::default())?;
    for _ in 0..2 {
        assert_eq!(loaded.call("get", &[])?.integer, 7);
        let memory = loaded.domain.memory();
        let mapped = Claimed(memory.map(None, 8 * PAGE, Access::ReadWrite)?);
        memory.protect(Claimed(mapped.0 + 2 * PAGE), PAGE, Access::Read)?;
        memory.unmap(Claimed(mapped.0 + 5 * PAGE), PAGE)?;
        memory.discard(mapped, PAGE)?;
        let end = memory.set_heap_end(Claimed(0));
        if memory.set_heap_end(Claimed(end + 3 * PAGE)) == end {
            return Err(Refused::Heap);
        }
        let shared = SharedPages::new(2 * PAGE)?;
        shared.grant(&loaded.domain, 0..2 * PAGE, Access::Read)?;
        shared.grant(&loaded.domain, 0..PAGE, Access::ReadWrite)?;
        loaded.domain.restart()?;
        loaded.domain.open();
    }
    Ok(())
}

fn mappings() -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("Linux");
    maps.lines().count()
}

/// On a thread of its own: what came of it, and how many calls were not refused.
fn on_a_thread(program: &Program, refuse: Option<u32>) -> Result<(), Refused> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            LEFT.set(refuse);
            let lived = live(program);
            LEFT.set(None);
            lived
        });
        thread.join().expect("no panic")
    })
}

/// A thread that lives on: what it has is not to be had by the next one.
fn keep_a_control_stack(program: &Program) {
    let loaded = program.load();
    let (ready, is_ready) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let called = loaded.call("get", &[]);
        ready
            .send(called.expect("there is memory").integer)
            .expect("somebody waits");
        loop {
            std::thread::park();
        }
    });
    assert_eq!(is_ready.recv(), Ok(7));
}

#[test]
fn what_is_refused_is_an_error_and_leaves_nothing_behind() {
    let program = Program::new(PROGRAM);
    on_a_thread(&program, None).expect("there is memory");
    let (mut before, mut refused) = (mappings(), 0);
    for place in 0.. {
        // At first with a new image, of which no window waits.
        let own = (place < 12).then(|| {
            keep_a_control_stack(&program);
            Program::new(PROGRAM)
        });
        let program = own.as_ref().unwrap_or(&program);
        match on_a_thread(program, Some(place)) {
            // What is given back by another way is no error.
            Ok(()) if place > 100 => break,
            Ok(()) => {}
            Err(error) => {
                refused += 1;
                let text = format!("{error:?}");
                assert!(!text.contains("Fault"), "place {place}: {text}");
            }
        }
        on_a_thread(program, None).unwrap_or_else(|error| panic!("after place {place}: {error:?}"));
        if place < 12 {
            // What the threads have that live on.
            before = mappings();
        }
    }
    let after = mappings();
    println!("{refused} refusals, {before} mappings, then {after}");
    assert!(refused > 15);
    assert!(after < before + 10, "{before}, then {after}");
}
