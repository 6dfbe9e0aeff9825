//! Ways that end the process that goes them, and nobody else.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::hint::black_box;
use std::panic::{self, AssertUnwindSafe};
use std::time::Duration;

use mullion_sip::kernel::kernel;
use mullion_sip::{ExBox, ExVec, Exchange, contract, process, thread};
use sip_contracts::echo;

/// Their names, and what they do.
#[rustfmt::skip]
pub(crate) const WAYS: [(&str, fn()); 44] = [
    // Cause::Panic
    ("panic", || panic!("on purpose")),
    ("panic-any", || panic::panic_any(7u8)),
    ("panic-large", || panic!("{}", "x".repeat(1 << 20))),
    ("panic-caught", || drop(panic::catch_unwind(|| panic!("caught?")))),
    ("panic-hook-set", || { panic::set_hook(Box::new(|_| {})); panic!("with a hook") }),
    ("panic-hook-taken", || { drop(panic::take_hook()); panic!("without a hook") }),
    ("panic-thread", || { let _ = thread::spawn(|| panic!("in a thread")); wait() }),
    ("panic-thread-local", || { thread_local!(static BAD: u8 = panic!("at the first use")); BAD.with(|_| ()) }),
    ("panic-index", || { let _one = black_box([1, 2, 3].as_slice())[black_box(3)]; }),
    ("panic-division", || { black_box(black_box(1) / black_box(0)); }),
    ("panic-borrow", || { let cell = RefCell::new(0); let _one = cell.borrow_mut(); drop(cell.borrow_mut()) }),
    ("panic-unwinding", || { let _loud = Loud; panic!("with a destructor") }),
    ("panic-sleep", || thread::sleep(Duration::MAX)),
    ("panic-exchange-limit", || { let mut all = Vec::new(); loop { all.push(ExVec::<u8>::with_capacity(64 << 10)) } }),
    ("panic-exchange-size", || drop(ExVec::<u64>::with_capacity(usize::MAX))),
    ("panic-holding", holding),
    ("panic-sorting", || { let mut all: Vec<u32> = (0..10_000).collect(); all.sort_by(|_, _| order()); panic!("sorted") }),
    // Cause::Abort
    ("abort", || std::process::abort()),
    ("abort-twice", || { struct Bad; impl Drop for Bad { fn drop(&mut self) { std::process::abort() } } drop(Bad) }),
    ("abort-layout", || std::alloc::handle_alloc_error(std::alloc::Layout::new::<u64>())),
    // Cause::Memory
    ("memory-vectors", || { let mut all = Vec::new(); loop { all.push(vec![1u8; 4096]) } }),
    ("memory-one", || drop(black_box(vec![0u8; 1 << 30]))),
    ("memory-huge", || drop(black_box(vec![0u8; isize::MAX as usize]))),
    ("memory-reserved", || drop(black_box(Vec::<u8>::new()).try_reserve(isize::MAX as usize))),
    ("memory-growing", || { let mut all = Vec::new(); loop { all.push(1u64) } }),
    ("memory-leaked", || loop { black_box(Box::leak(Box::new([1u64; 100]))); }),
    ("memory-aligned", || { #[repr(align(65536))] struct Wide(#[allow(dead_code)] u8); loop { std::mem::forget(black_box(Box::new(Wide(1)))) } }),
    ("memory-text", || drop(black_box(format!("{:1$}", 0, 60_000).repeat(1 << 12)))),
    ("memory-thread", || { let _ = thread::spawn(|| { let mut all = Vec::new(); loop { all.push([0u64; 64]) } }); wait() }),
    ("memory-in-a-drop", || { struct Large; impl Drop for Large { fn drop(&mut self) { drop(black_box(vec![1u8; 1 << 26])) } } drop(Large) }),
    // Cause::Stack
    ("stack", || { black_box(deep(0)); }),
    ("stack-large", || { black_box(wide(0)); }),
    ("stack-thread", || { let _ = thread::spawn(|| { black_box(deep(0)); }); wait() }),
    ("stack-display", || drop(Endless.to_string())),
    ("stack-bulk-sent", || deeper(&mut send_bulk)),
    ("stack-bulk-received", || deeper(&mut receive_bulk)),
    ("stack-while-sending", || { black_box(calls(0)); }),
    // Cause::Slice
    ("loop", || loop { std::hint::spin_loop() }),
    ("loop-thread", || { let _ = thread::spawn(|| loop { std::hint::spin_loop() }); wait() }),
    ("loop-of-allocations", || loop { drop(black_box(vec![1u8; 64])) }),
    ("loop-of-calls", || loop { black_box((kernel().process)()); }),
    ("loop-of-refusals", || loop { let _ = black_box(process::names::bind("/not/ours", [0; 32])); }),
    ("loop-of-caught", || loop { let _ = panic::catch_unwind(AssertUnwindSafe(|| panic::resume_unwind(Box::new(())))); }),
    // Cause::Exited(9)
    ("exit-thread", || { let _ = thread::spawn(|| process::exit(9)); wait() }),
];

/// Lets the process's other threads end it.
fn wait() {
    thread::sleep(Duration::from_secs(60));
}

/// Nothing of a process runs after its end, so nobody reads this.
struct Loud;

impl Drop for Loud {
    fn drop(&mut self) {
        println!("a destructor ran after the end");
    }
}

struct Endless;

impl fmt::Display for Endless {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{}", black_box(self), 1)
    }
}

fn deep(depth: u64) -> u64 {
    let room = [depth; 64];
    if black_box(depth) == u64::MAX {
        return room[1];
    }
    deep(depth + 1) + room[depth as usize % 64]
}

/// Frames that are larger than a guard page.
fn wide(depth: usize) -> u8 {
    let room = black_box([depth as u8; 40_000]);
    if depth == usize::MAX {
        return room[1];
    }
    wide(depth + 1) + room[depth % 40_000]
}

/// The end of the stack is met in the kernel's code.
fn calls(depth: u64) -> u64 {
    drop(mullion_sip::ExBox::try_new(depth));
    if black_box(depth) == u64::MAX {
        return 0;
    }
    calls(depth + 1) + (kernel().process)()
}

/// No order at all.
fn order() -> std::cmp::Ordering {
    thread_local!(static LAST: Cell<u32> = const { Cell::new(1) });
    let next = LAST
        .get()
        .wrapping_mul(1_664_525)
        .wrapping_add(1_013_904_223);
    LAST.set(next);
    if next >> 31 == 0 {
        std::cmp::Ordering::Less
    } else {
        std::cmp::Ordering::Greater
    }
}

/// Sends itself more than it may hold: what it has sent counts, and what it has received, too.
fn holding() {
    let ends: Vec<_> = (0..7)
        .map(|_| {
            let (client, server) = echo::channel().expect("a channel");
            let mut text = ExVec::with_capacity(128 << 10);
            text.push(1);
            (client.say(text), server)
        })
        .collect();
    let mut held = Vec::new();
    for (client, server) in ends {
        held.push((client, server.recv()));
    }
    black_box(&held);
}

/// Half of what a stack holds, and a block, so that it is sent in a critical piece.
#[derive(Exchange)]
struct Bulk {
    block: Option<ExBox<u64>>,
    bytes: [u8; 60_000],
}

contract! {
    mod bulk { Give: client { Take(super::Bulk) -> end } }
}

/// Does it at every depth of the stack, until that ends.
#[expect(unconditional_recursion, reason = "what it is for")]
fn deeper(what: &mut dyn FnMut()) {
    what();
    let room = black_box([0u8; 256]);
    deeper(what);
    black_box(room);
}

fn bulk() -> Bulk {
    Bulk {
        block: ExBox::try_new(1).ok(),
        bytes: black_box([1; 60_000]),
    }
}

#[inline(never)]
fn send_bulk() {
    if let Ok((client, server)) = bulk::channel() {
        let _ = client.take(bulk());
        drop(server);
    }
}

#[inline(never)]
fn receive_bulk() {
    if let Ok((client, server)) = bulk::channel() {
        let _ = client.take(bulk());
        let bulk::GiveMessage::Take(bulk) = match server.recv() {
            Ok(message) => message,
            Err(_) => return,
        };
        black_box(bulk.bytes[7]);
        drop(bulk.block);
    }
}
