//! What gates and grants cost: `cargo run --release -p mullion-word-runtime --example cost [NAME [ROUNDS]]`, where
//! NAME is a part of the names of the rows that are wanted.
//!
//! Nanoseconds for a call there and back, or for a grant with its revocation; the best of 400 batches that take turns. The modules are made by hand
//! (`tests/module`), and not verified.

#[path = "../tests/module/mod.rs"]
mod module;

use module::{function, module};
use mullion_word_runtime::{Domain, Effect, FunctionPolicy, Host, Policy, Size};
use std::cell::RefCell;
use std::hint::black_box;
use std::time::Instant;

const CALLS: u32 = 4_000;
const ROUNDS: u32 = 400;

type Loop = extern "C" fn(u64) -> u64;
type Null = extern "C" fn() -> u64;
type OfPointer = extern "C" fn(*mut u64, u64) -> u64;

extern "C" fn nothing() -> u64 {
    7
}

extern "C" fn takes_pointer(_: *mut u64, _: u64) -> u64 {
    7
}

extern "C" fn takes_text(_: *const u8) -> u64 {
    7
}

#[inline(never)]
extern "C" fn direct() -> u64 {
    black_box(7)
}

const CALLEE: &str = "
    gate    null
    mov     $7, %eax
    ret
    gate    pointer
    mov     $7, %eax
    ret
    gate    in_loop                 # a bare call, direct
    sub     $16, %r15
    mov     %rdi, (%r15)
1:  call    bare
    decq    (%r15)
    jne     1b
    add     $16, %r15
    ret
    .p2align 4
bare:
    mov     $7, %eax
    ret
    gate    to_itself               # by a pointer, through its own switch gate
    sub     $16, %r15
    mov     %rdi, (%r15)
2:  lea     null(%rip), %rax
    call_by %rax
    decq    (%r15)
    jne     2b
    add     $16, %r15
    ret
";

const CALLER: &str = "
    import  nothing
    import  takes_pointer
    import  null
    .macro loop name, callee
    gate    \\name
    sub     $32, %r15
    mov     %rdi, (%r15)
77: lea     16(%r15), %rdi
    mov     $8, %esi
    call_import \\callee
    decq    (%r15)
    jne     77b
    add     $32, %r15
    ret
    .endm
    loop    to_host, nothing
    loop    to_host_with_pointer, takes_pointer
    loop    to_module, null
    import  takes_text
    gate    to_host_with_text
    sub     $32, %r15
    mov     %rdi, (%r15)
78: lea     text(%rip), %rdi
    call_import takes_text
    decq    (%r15)
    jne     78b
    add     $32, %r15
    ret
    .data
text:
    .fill   63, 1, 65
    .byte   0
    .text
";

struct Row {
    name: Box<str>,
    best: f64,
    run: Box<dyn Fn()>,
}

fn row(name: &str, run: impl Fn() + 'static) -> Row {
    Row {
        name: name.into(),
        best: f64::MAX,
        run: Box::new(run),
    }
}

/// What runs the loop itself, inside the module.
fn inside(name: &str, domain: &Domain, function_name: &str) -> Row {
    let run: Loop = function(domain, function_name);
    row(name, move || {
        black_box(run(CALLS.into()));
    })
}

/// A grant and its revocation, without a call: prepared, and of one of 32 places in turn.
fn grants(host: Host, domain: Domain, page: *mut u64, bytes: usize) -> [Row; 2] {
    // SAFETY: nothing depends on what is there.
    let prepared = unsafe { host.prepare(&domain, page as usize, bytes, true) };
    let prepared = RefCell::new(prepared.expect("it is memory"));
    let many = vec![0u8; 32 * bytes].leak().as_ptr() as usize;
    [
        row(&format!("a prepared grant of {bytes} bytes"), move || {
            let mut prepared = prepared.borrow_mut();
            (0..CALLS).for_each(|_| {
                prepared.grant().expect("it is the host's");
                prepared.revoke();
            });
        }),
        row(&format!("a grant of {bytes} bytes, in turn"), move || {
            (0..CALLS as usize).for_each(|n| {
                // SAFETY: the buffers are leaked, and nothing depends on what is in them.
                let granted =
                    unsafe { host.grant_for(&domain, many + n % 32 * bytes, bytes, true) };
                drop(granted.expect("it is the host's"));
            });
        }),
    ]
}

fn main() {
    let host = Host::new().expect("Linux, with address space");
    let policy = Policy::new().export(
        "pointer",
        FunctionPolicy::of(&[Effect::InOut(0, Size::Argument(1))]),
    );
    let callee = host
        .load(&module("callee", CALLEE), policy.clone())
        .expect("it loads");
    // A domain with a policy looks each export up: so the bare figures are of one without.
    let plain = host
        .load(&module("callee", CALLEE), Policy::new())
        .expect("it loads");
    let gate = plain.function("null").expect("it is exported") as usize;
    // SAFETY: the functions touch nothing.
    let offers = unsafe {
        let demand = FunctionPolicy::of(&[Effect::InOut(0, Size::Argument(1))]);
        Policy::new()
            .offer("nothing", nothing as *const () as usize, None)
            .offer(
                "takes_pointer",
                takes_pointer as *const () as usize,
                Some(demand),
            )
            .offer("null", gate, None)
            .offer(
                "takes_text",
                takes_text as *const () as usize,
                Some(FunctionPolicy::of(&[Effect::In(0, Size::Text)])),
            )
    };
    let caller = host
        .load(&module("caller", CALLER), offers)
        .expect("it loads");
    let null: Null = function(&plain, "null");
    // Domains of their own, because each row is to repeat what it did before.
    let others = [(); 2].map(|()| {
        let policy = policy.clone();
        host.load(&module("callee", CALLEE), policy)
            .expect("it loads")
    });
    let pointer: OfPointer = function(&callee, "pointer");
    let [turns, large] = others.map(|other| function::<OfPointer>(&other, "pointer"));
    let library = native();
    // One module, a request that its argument names; and one that has instances and no policy for its exports.
    let named = FunctionPolicy::of(&[Effect::Instance(0)]);
    let served = host
        .load(
            &module("callee", CALLEE),
            Policy::new().export("pointer", named),
        )
        .expect("it loads");
    let plainly = host
        .load(&module("callee", CALLEE), Policy::new().instances())
        .expect("it loads");
    let requests: &'static mut [u64; 8] = Box::leak(Box::new([0; 8]));
    let requests: [*mut u64; 8] = std::array::from_fn(|at| &raw mut requests[at]);
    for request in requests {
        served.instance(request as u64).expect("a place for it");
    }
    let serve: OfPointer = function(&served, "pointer");
    let nobody: Null = function(&plainly, "null");
    let fresh = served;
    let cells: &'static mut [u64; 32] = Box::leak(Box::new([0; 32]));
    let at: *mut u64 = cells.as_mut_ptr();
    let page = Box::leak(Box::new([0u64; 512])).as_mut_ptr();
    let rows = [
        row("the host calls itself, directly", || {
            (0..CALLS).for_each(|_| {
                black_box(direct());
            });
        }),
        row("the host calls a shared object, by a pointer", move || {
            let library = black_box(library);
            (0..CALLS).for_each(|_| {
                black_box(library());
            });
        }),
        inside("a module calls itself, directly", &plain, "in_loop"),
        inside(
            "a module calls itself by a pointer, gate and all",
            &plain,
            "to_itself",
        ),
        row("the host calls a module", move || {
            let null = black_box(null);
            (0..CALLS).for_each(|_| {
                black_box(null());
            });
        }),
        inside("a module calls the host", &caller, "to_host"),
        inside("a module calls another module", &caller, "to_module"),
        row("the host calls, 8 bytes granted for the call", move || {
            (0..CALLS).for_each(|_| {
                black_box(pointer(at, 8));
            });
        }),
        row(
            "the host calls, 8 of 256 bytes granted, in turn",
            move || {
                (0..CALLS).for_each(|n| {
                    black_box(turns(at.wrapping_add(n as usize % 32), 8));
                });
            },
        ),
        row(
            "the host calls for one of 8 instances, in turn",
            move || {
                (0..CALLS).for_each(|n| {
                    black_box(serve(requests[n as usize % 8], 8));
                });
            },
        ),
        row("the host calls a module that has instances", move || {
            (0..CALLS).for_each(|_| {
                black_box(nobody());
            });
        }),
        row("the host calls, 4 KiB granted for the call", move || {
            (0..CALLS).for_each(|_| {
                black_box(large(page, 4_096));
            });
        }),
        inside(
            "a module calls the host, which checks 8 bytes",
            &caller,
            "to_host_with_pointer",
        ),
        inside(
            "a module calls the host, which checks a text of 63",
            &caller,
            "to_host_with_text",
        ),
    ];
    let mut rows = Vec::from(rows);
    let granted = host
        .load(&module("callee", CALLEE), Policy::new())
        .expect("it loads");
    for bytes in [64, 256, 1_024, 4_096] {
        rows.extend(grants(host, granted, page, bytes));
    }
    if let Some(wanted) = std::env::args().nth(1) {
        rows.retain(|row| row.name.contains(&wanted));
    }
    let rounds = std::env::args().nth(2);
    let rounds = rounds.map_or(ROUNDS, |rounds| rounds.parse().expect("a number"));
    for _ in 0..rounds {
        for row in &mut rows {
            let start = Instant::now();
            (row.run)();
            let each = start.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS);
            row.best = row.best.min(each);
        }
    }
    println!("a call there and back, ns:");
    for row in &rows {
        println!("{:>52}  {:>7.2}", row.name, row.best);
    }
    let best = (0..40).map(|_| {
        let start = Instant::now();
        for _ in 0..500 {
            let one = fresh.instance(7).expect("a place for it");
            black_box(serve(std::ptr::without_provenance_mut(7), 8));
            one.end().expect("no call is inside");
        }
        start.elapsed().as_secs_f64() * 1e9 / 500.0
    });
    let best = best.fold(f64::MAX, f64::min);
    println!(
        "{:>52}  {best:>7.0}",
        "an instance is made, called once, and ended"
    );
    for domain in [plain, callee, caller] {
        for report in domain.take_reports() {
            println!("{report}");
        }
    }
}

/// The same null function in an ordinary shared object, without gates.
fn native() -> Null {
    let work = tempfile::tempdir().expect("a place for a file");
    let source = work.path().join("native.s");
    std::fs::write(
        &source,
        ".globl null\nnull: mov $7, %eax\nret\n.section .note.GNU-stack\n",
    )
    .expect("room");
    let output = work.path().join("native.so");
    let built = std::process::Command::new("gcc")
        .arg("-shared")
        .arg("-nostdlib")
        .arg("-o")
        .args([&output, &source])
        .status();
    assert!(built.expect("gcc runs").success());
    let path = std::ffi::CString::new(output.as_os_str().as_encoded_bytes()).expect("no zero");
    // SAFETY: the library has no constructors; the function is as its type says.
    unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOW);
        assert!(!library.is_null());
        std::mem::transmute(libc::dlsym(library, c"null".as_ptr()))
    }
}
