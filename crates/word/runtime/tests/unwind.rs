//! The gate by which an unwinder reads return addresses: those of the call that runs, and nothing else of a control stack.

mod module;

use module::{function, load};
use mullion_word_runtime::{Domain, Effect, FaultKind, FunctionPolicy, Policy};
use std::sync::mpsc::channel;

type Read = extern "C" fn(i64) -> u64;
type Place = extern "C" fn() -> u64;
type Pass = extern "C" fn(extern "C" fn(i64) -> u64, i64) -> u64;

/// Slots 3, 4 and 5 are MARK, UNWIND and READ. `read(by)` has two calls of its own on the control stack when it reads `by`
/// bytes from where MARK says.
const TEXT: &str = "
    import  call_back
    gate    read
    call    first
first_back:
    ret
first:
    call    second
second_back:
    ret
second:
    call    *mullion_slots+24(%rip)
    add     %rdi, %rax
    call    *mullion_slots+40(%rip)
    ret
    gate    place
    call    *mullion_slots+24(%rip)
    ret
    gate    read_at
    mov     %rdi, %rax
    call    *mullion_slots+40(%rip)
    ret
    gate    pass
    call_import call_back
    ret
    gate    kept                    # what the gate leaves as it was
    mov     $1, %ecx
    mov     $2, %edx
    mov     $3, %esi
    mov     $4, %edi
    mov     $5, %r8d
    mov     $6, %r9d
    call    *mullion_slots+24(%rip)
    call    *mullion_slots+40(%rip)
    lea     (%rcx,%rdx), %rax
    add     %rsi, %rax
    add     %rdi, %rax
    add     %r8, %rax
    add     %r9, %rax
    ret
    gate    first_back_at
    lea     first_back(%rip), %rax
    ret
    gate    second_back_at
    lea     second_back(%rip), %rax
    ret";

extern "C" fn call_back(f: extern "C" fn(i64) -> u64, by: i64) -> u64 {
    f(by)
}

fn policy() -> Policy {
    let callback = FunctionPolicy::of(&[Effect::Callback(0)]);
    // SAFETY: it is given what the module may enter.
    unsafe { Policy::new().offer("call_back", call_back as *const () as usize, Some(callback)) }
}

fn refused(domain: &Domain, what: &str, call: impl FnOnce() -> u64) {
    assert_eq!(call(), 0, "{what}");
    let reports = domain.take_reports();
    assert_eq!(
        reports.first().map(|r| r.kind),
        Some(FaultKind::Unwind),
        "{what}: {reports:?}"
    );
    domain.restart().unwrap();
}

#[test]
fn what_lies_on_the_way_to_the_return_gate_is_read() {
    let (_host, domain) = load("reads", TEXT, policy());
    let read: Read = function(&domain, "read");
    let [first, second] =
        ["first_back_at", "second_back_at"].map(|name| function::<Place>(&domain, name)());
    // At the top is the return address of `second`.
    assert_eq!((read(0), read(8)), (second, first));
    assert_eq!(read(16), 0, "the return gate");
    // The gate's own call, which is behind its second one.
    assert!((second..second + 40).contains(&read(-8)));
    assert_eq!(function::<Place>(&domain, "kept")(), 21);
    assert!(domain.take_reports().is_empty());
}

#[test]
fn nothing_else_of_a_control_stack_is_read() {
    let (_host, domain) = load("outside", TEXT, policy());
    let read: Read = function(&domain, "read");
    // A frame of 64 bytes lies above the return gate, and dropped return addresses below.
    let above = (24..24 + 256)
        .step_by(8)
        .chain([1 << 12, 1 << 20, 1 << 46, 1 << 62, i64::MAX - 7]);
    let below = (2..40)
        .map(|words| -8 * words)
        .chain([-(1 << 20), -(1 << 46), i64::MIN]);
    let between = [1, 2, 4, 7, 9, 12, 15, -1, -4, 17];
    for by in above.chain(below).chain(between) {
        refused(&domain, &format!("{by}"), || read(by));
    }
}

/// The return addresses of the call that has called the host are there, and belong to the module; but they are not of the
/// call that runs.
#[test]
fn a_callback_reads_none_of_the_call_before_it() {
    let (_host, domain) = load("inner", TEXT, policy());
    let (read, pass): (Read, Pass) = (function(&domain, "read"), function(&domain, "pass"));
    assert_ne!(pass(read, 8), 0);
    assert_eq!(pass(read, 16), 0, "the return gate of the inner call");
    assert!(domain.take_reports().is_empty());
    for by in (24..24 + 512).step_by(8) {
        refused(&domain, &format!("{by}"), || pass(read, by));
    }
}

/// One module calls another one on the same control stack.
#[test]
fn a_module_reads_none_of_its_callers() {
    let (host, inner) = load("called", TEXT, policy());
    let (read, gate) = (
        function::<Read>(&inner, "read"),
        inner.function("read").unwrap(),
    );
    // SAFETY: the gate takes a number.
    let calls = unsafe { Policy::new().offer("other", gate as usize, None) };
    let text = "import other\n gate calls\n call 1f\n ret\n1: call_import other\n ret";
    let outer = host.load(&module::module("calls", text), calls).unwrap();
    let calls: Read = function(&outer, "calls");
    assert_eq!((calls(0), calls(8), calls(16)), (read(0), read(8), 0));
    for by in (24..24 + 512).step_by(8) {
        refused(&inner, &format!("{by}"), || calls(by));
        assert!(outer.take_reports().is_empty());
    }
}

/// Two threads are in the domain at once. Each place of the other one's control stack is refused.
#[test]
fn a_thread_reads_none_of_another_one() {
    let (_host, domain) = load("threads", TEXT, policy());
    let place: Place = function(&domain, "place");
    let (tell, told) = channel();
    let (go, wait) = channel::<()>();
    let other = std::thread::spawn(move || {
        tell.send(place()).unwrap();
        let _gone = wait.recv();
    });
    // Distances are from where the thread's own control stack begins, and so much the same in each thread.
    assert_eq!(told.recv().unwrap(), place());
    let read_at: Read = function(&domain, "read_at");
    // Control stacks lie at some distance from each other.
    let pages = (1..64).chain((1..64).map(|pages| pages << 8));
    for by in pages.flat_map(|pages| [pages << 12, -(pages << 12)]) {
        let at = place() as i64 + by;
        refused(&domain, &format!("{by:#x}"), || read_at(at));
    }
    drop(go);
    other.join().unwrap();
}
