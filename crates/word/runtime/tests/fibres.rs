//! Fibres: a host that switches threads itself, on one thread of the system. Each has stacks of its own in a domain.
//! One test, because a process has fibres or has none.

mod module;

use module::{function, module};
use mullion_word_runtime::{Domain, EndError, Host, Kept, Policy};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ptr;

const STACK: usize = 256 << 10;

/// The module counts in the cell, has the host called, and counts again by an address that is on its data stack.
const TEXT: &str = "
    import  switch
    gate    twice
    sub     $24, %r15
    mov     %rdi, (%r15)
    checked 2, 0, (%rdi), incl (%rdi)
    call_import switch
    mov     (%r15), %rdi
    add     $24, %r15
    checked 2, 0, (%rdi), incl (%rdi)
    mov     $1, %eax
    ret
";

type Fn1 = extern "C" fn(u64) -> u64;

/// What the host keeps of a fibre: its registers, and its 64 bytes.
struct Fibre {
    context: libc::ucontext_t,
    kept: Kept,
}

#[derive(Default)]
struct Fibres {
    here: usize,
    running: u64,
    all: HashMap<u64, Box<Fibre>>,
    /// The result of each that has ended.
    answers: Vec<(u64, u64)>,
}

thread_local! {
    static FIBRES: RefCell<Fibres> = RefCell::default();
    static CALL: RefCell<Option<(Fn1, u64)>> = const { RefCell::new(None) };
}

/// Fibre 0 is the one that the thread began with, and enters no domain.
fn switch_to(next: u64) {
    let (from, to) = FIBRES.with_borrow_mut(|fibres| {
        let here = fibres.here as *mut Kept;
        let now = fibres.running;
        let mut place = |at| ptr::from_mut(&mut **fibres.all.get_mut(&at).unwrap());
        let (from, to) = (place(now), place(next));
        // SAFETY: both fibres are in boxes that stay, and the host's 64 bytes are where `Host::fibres` has said.
        unsafe {
            (*from).kept = here.read();
            here.write((*to).kept);
        }
        fibres.running = next;
        (from, to)
    });
    // SAFETY: the context was made by `begin`, or by the switch away from it, and its stack is its own.
    unsafe { libc::swapcontext(&raw mut (*from).context, &raw const (*to).context) };
}

/// Of the host: another fibre runs, until this one is switched to.
extern "C" fn switch() {
    switch_to(0);
}

extern "C" fn main_of_fibre() {
    let (call, cell) = CALL.take().unwrap();
    let answer = call(cell);
    FIBRES.with_borrow_mut(|fibres| fibres.answers.push((fibres.running, answer)));
    switch_to(0);
    unreachable!("it has ended");
}

/// Runs a call on a fibre of its own, until the host is called.
fn begin(number: u64, call: Fn1, cell: &u32) {
    let both = libc::PROT_READ | libc::PROT_WRITE;
    let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: fresh memory. The context is filled in before it is used, and the stack stays.
    let fibre = unsafe {
        let memory = libc::mmap(ptr::null_mut(), 2 * STACK, both, private, -1, 0);
        assert_ne!(memory, libc::MAP_FAILED);
        let stack = (memory as usize).next_multiple_of(STACK);
        let mut fibre = Box::new(Fibre {
            context: std::mem::zeroed(),
            kept: [0; 8],
        });
        assert_eq!(libc::getcontext(&raw mut fibre.context), 0);
        fibre.context.uc_stack.ss_sp = stack as *mut _;
        fibre.context.uc_stack.ss_size = STACK;
        libc::makecontext(&raw mut fibre.context, main_of_fibre, 0);
        fibre
    };
    FIBRES.with_borrow_mut(|fibres| fibres.all.insert(number, fibre));
    CALL.set(Some((call, ptr::from_ref(cell) as u64)));
    switch_to(number);
}

fn answers() -> Vec<(u64, u64)> {
    FIBRES.with_borrow_mut(|fibres| std::mem::take(&mut fibres.answers))
}

fn load(host: &Host, cells: &[u32]) -> Domain {
    // SAFETY: the host's function switches, as it is tested here.
    let policy = unsafe { Policy::new().offer("switch", switch as *const () as usize, None) };
    let domain = host.load(&module("fibres", TEXT), policy).unwrap();
    // SAFETY: nothing else is in the cells.
    unsafe { host.grant(&domain, cells.as_ptr() as usize, 4 * cells.len(), true) }.unwrap();
    domain
}

#[test]
fn calls_of_fibres_wait_in_a_domain_and_end_in_any_order() {
    let host = Host::new().unwrap();
    // The host's own stack for signals: the run time sets none.
    let mut memory = vec![0u8; 256 << 10];
    let stack = libc::stack_t {
        ss_sp: memory.as_mut_ptr().cast(),
        ss_flags: 0,
        ss_size: memory.len(),
    };
    // SAFETY: the memory stays to the test's end, and the thread ends with it.
    let set = unsafe { libc::sigaltstack(&raw const stack, ptr::null_mut()) };
    assert_eq!(set, 0);
    // SAFETY: this thread switches as it is wanted, and no other one calls a domain.
    let here = unsafe { host.fibres(STACK as u64) };
    FIBRES.with_borrow_mut(|fibres| {
        fibres.here = here as usize;
        // SAFETY: all zeros are a context that is filled in by the first switch.
        let context = unsafe { std::mem::zeroed() };
        let kept = [0; 8];
        fibres.all.insert(0, Box::new(Fibre { context, kept }));
    });
    let cells = vec![0u32; 8].leak();
    let domain = load(&host, cells);
    let twice: Fn1 = function(&domain, "twice");
    // Three calls wait in the host; they go on in the order in which they came, and not as they are nested.
    for number in 1..4 {
        begin(number, twice, &cells[number as usize]);
    }
    // SAFETY: the module has written it; no call of it runs now.
    let seen = |at: usize| unsafe { ptr::from_ref(&cells[at]).read_volatile() };
    assert_eq!([1, 2, 3].map(seen), [1, 1, 1]);
    assert!(matches!(domain.restart(), Err(EndError::InUse(..))));
    assert_eq!(answers(), [], "they wait");
    let domain = load(&host, cells);
    let twice: Fn1 = function(&domain, "twice");
    for number in 11..15 {
        begin(number, twice, &cells[number as usize - 10]);
    }
    for number in [11, 13, 12] {
        switch_to(number);
    }
    assert_eq!(answers(), [(11, 1), (13, 1), (12, 1)]);
    assert_eq!([1, 2, 3, 4].map(seen), [3, 3, 3, 1]);
    // One is refused its second access. It ends, and so does the domain; the one that waits is ended when it goes on.
    begin(16, twice, &cells[5]);
    host.revoke(ptr::from_ref(&cells[5]) as usize, 4).unwrap();
    switch_to(16);
    assert_eq!(answers(), [(16, 0)]);
    assert_eq!(domain.take_reports().len(), 1);
    switch_to(14);
    assert_eq!(answers(), [(14, 0)]);
    domain.restart().unwrap();
    // One that never goes on is ended by the host: then its call is none any more.
    begin(17, twice, &cells[6]);
    assert!(matches!(domain.unload(), Err(EndError::InUse(..))));
    let mut gone = FIBRES.with_borrow_mut(|fibres| fibres.all.remove(&17).unwrap());
    // SAFETY: it is what was kept of it, and it never runs again.
    unsafe { host.end_fibre(&mut gone.kept) };
    assert_eq!(gone.kept, [0; 8]);
    domain.unload().unwrap();
    assert_eq!([5, 6].map(seen), [1, 1]);
}
