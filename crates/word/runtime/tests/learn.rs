//! A domain that learns does what it is refused, and each refusal is told with what a policy would have to say.

mod module;

use module::{function, module};
use mullion_word_runtime::{Domain, Effect, FunctionPolicy, Host, Note, Owner, Policy, Size, Want};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

type Fn2 = extern "C" fn(u64, u64) -> u64;

const TEXT: &str = "
    import  offered
    import  not_offered
    gate    fill                    # the words from %rdi on, %rsi of them
    test    %rsi, %rsi
    je      1f
    checked 2, -4, \"(%rdi,%rsi,4)\", movl $7, -4(%rdi,%rsi,4)
    dec     %rsi
    jmp     mullion_fill
1:  ret
    .set    mullion_fill, __mullion_call.fill
    gate    look
    checked 1, 0, (%rdi), mov (%rdi), %eax
    ret
    gate    call
    push    %rbx
    mov     %rdi, %rax
    mov     %rsi, %rdi
    mov     $20, %ebx
    call_by %rax
    add     %rbx, %rax
    pop     %rbx
    ret
    gate    pass
    call_import offered
    ret
    gate    ask
    call_import not_offered
    add     $1, %rax
    ret
    gate    stacked
    sub     $16, %r15
    movq    $40, (%r15)
    movq    $2, 8(%r15)
    call_import not_offered
    add     $16, %r15
    ret
";

extern "C" fn half(number: u64) -> u64 {
    number / 2
}

extern "C" fn reads(at: *const u32, _: u64) -> u64 {
    // SAFETY: the test passes a word.
    u64::from(unsafe { at.read() })
}

extern "C" fn sums(a: u64, _: u64, _: u64, _: u64, _: u64, _: u64, x: u64, y: u64) -> u64 {
    a.wrapping_add(x).wrapping_add(y)
}

/// What is kept of a note.
#[derive(Clone, Debug, PartialEq)]
struct Kept {
    export: String,
    argument: u64,
    inside: bool,
    what: String,
    owner: Owner,
}

type Notes = Arc<Mutex<Vec<Kept>>>;

fn keep(notes: &Notes) -> impl Fn(&Note<'_>) + Send + Sync + 'static {
    let notes = Arc::clone(notes);
    move |note| {
        notes.lock().unwrap().push(Kept {
            export: note.export.to_owned(),
            argument: note.arguments.unwrap()[0],
            inside: note.instruction > 0x1000,
            what: match note.want {
                Want::Access {
                    address,
                    bytes,
                    write,
                } => format!("{address:#x} {bytes} {write}"),
                Want::Call {
                    function,
                    arguments,
                    ..
                } => format!("call {function} {}", arguments[0]),
                Want::Argument {
                    function,
                    argument,
                    bytes,
                    write,
                    ..
                } => format!("{function} {argument} {bytes} {write}"),
                other => format!("{other:?}"),
            },
            owner: note.object().owner,
        });
    }
}

fn policy() -> Policy {
    let reads = reads as *const () as usize;
    let effects = FunctionPolicy::of(&[Effect::In(0, Size::Bytes(4))]);
    // SAFETY: it reads the word that the module may read, or that the test gives it.
    unsafe { Policy::new().offer("offered", reads, Some(effects)) }
}

fn load(host: &Host, policy: Policy, hook: impl Fn(&Note<'_>) + Send + Sync + 'static) -> Domain {
    let mut resolve = |name: &str| match name {
        "not_offered" => Some(sums as *const () as usize),
        _ => None,
    };
    let made = module("pupil", TEXT);
    // SAFETY: it does what the tests want.
    unsafe { host.learn_with(&made, policy, &mut resolve, hook) }.unwrap()
}

#[test]
fn what_is_refused_is_told_and_done() {
    let host = Host::new().unwrap();
    let notes = Notes::default();
    let domain = load(&host, policy(), keep(&notes));
    let call = |name: &str, a: u64, b: u64| {
        let answer = function::<Fn2>(&domain, name)(a, b);
        (answer, std::mem::take(&mut *notes.lock().unwrap()))
    };
    let mut cells = [1u32; 4];
    let at = cells.as_mut_ptr() as u64;

    let (_, told) = call("fill", at, 3);
    assert_eq!(cells, [7, 7, 7, 1]);
    let expected = [2, 1, 0].map(|n| format!("{:#x} 4 true", at + 4 * n));
    let whats: Vec<&str> = told.iter().map(|kept| kept.what.as_str()).collect();
    assert_eq!(whats, expected);
    assert!(
        told.iter().all(|kept| kept.export == "fill"
            && kept.argument == at
            && kept.inside
            && kept.owner == Owner::Host),
        "{told:?}"
    );

    // Nothing was granted by that.
    let (answer, told) = call("look", at + 4, 0);
    assert_eq!((answer, told.len()), (7, 1));
    assert_eq!(told[0].what, format!("{:#x} 4 false", at + 4));

    let (answer, told) = call("call", half as *const () as u64, 44);
    assert_eq!((answer, told.len()), (42, 1), "{told:?}");
    assert!(
        told[0].what.starts_with("call ") && told[0].what.ends_with(" 44") && told[0].inside,
        "{told:?}"
    );

    let (answer, told) = call("pass", at, 0);
    assert_eq!((answer, told.len()), (7, 1));
    assert_eq!(told[0].what, "offered 0 4 false");

    let (answer, told) = call("ask", 5, 0);
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].what, "call not_offered 5");
    assert!(answer >= 6 && told[0].inside);
    assert_eq!(call("stacked", 0, 0).0, 42, "arguments on the stack, too");

    // What is granted is not told.
    // SAFETY: the domain only reads it.
    let granted = unsafe { host.grant_for(&domain, at as usize, 16, true) }.unwrap();
    assert_eq!(call("fill", at, 4).1, []);
    drop(granted);
    assert_eq!(call("fill", at, 4).1.len(), 4);
    assert!(!domain.is_ended() && domain.take_reports().is_empty());
}

#[test]
fn a_gate_of_another_domain_is_entered_and_told() {
    let host = Host::new().unwrap();
    let text = "gate twice\n lea (%rdi,%rdi), %rax\n ret";
    let callee = host.load(&module("callee", text), Policy::new()).unwrap();
    let notes = Notes::default();
    let domain = load(&host, policy(), keep(&notes));
    let call: Fn2 = function(&domain, "call");
    assert_eq!(call(callee.function("twice").unwrap() as u64, 11), 42);
    let told = notes.lock().unwrap();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].what, "call twice 11");
    assert_eq!(told[0].owner, Owner::Module("callee".to_owned()));
}

/// Besides a domain that learns, the same module is confined; and other faults end calls of one that learns.
#[test]
fn only_refusals_of_the_domain_that_learns_are_done() {
    let host = Host::new().unwrap();
    let notes = Notes::default();
    let pupil = load(&host, policy(), keep(&notes));
    let confined = host.load(&module("confined", TEXT), policy()).unwrap();
    let cells = [1u32; 4];
    let at = cells.as_ptr() as u64;
    for (name, argument) in [
        ("look", at),
        ("pass", at),
        ("ask", 1),
        ("call", half as *const () as u64),
    ] {
        assert_ne!(function::<Fn2>(&pupil, name)(argument, 8), 0, "{name}");
        assert_eq!(function::<Fn2>(&confined, name)(argument, 8), 0, "{name}");
        assert_eq!(confined.take_reports().len(), 1, "{name}");
        confined.restart().unwrap();
    }
    assert_eq!(notes.lock().unwrap().len(), 4);
    assert!(!pupil.is_ended());
    assert_eq!(function::<Fn2>(&pupil, "look")(0x10, 0), 0);
    assert_eq!(pupil.take_reports().len(), 1);
    assert!(pupil.is_ended());
    pupil.restart().unwrap();
    assert_eq!(function::<Fn2>(&pupil, "call")(at, 0), 0, "data is no code");
    assert_eq!(pupil.take_reports().len(), 1);
}

/// A thread that tells is outside: a revocation by another thread does not wait for it.
#[test]
fn a_revocation_does_not_wait_for_who_is_told() {
    let host = Host::new().unwrap();
    let (ask, asked) = mpsc::channel::<()>();
    let (answer, answered) = mpsc::channel::<()>();
    let answered = Mutex::new(answered);
    let came = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&came);
    let domain = load(&host, policy(), move |_| {
        ask.send(()).unwrap();
        let answer = answered
            .lock()
            .unwrap()
            .recv_timeout(Duration::from_secs(60));
        seen.store(answer.is_ok(), Ordering::SeqCst);
    });
    let other = Box::new([0u32; 4]);
    let at = other.as_ptr() as usize;
    // SAFETY: nobody uses it.
    unsafe { host.grant(&domain, at, 16, true) }.unwrap();
    let revoker = std::thread::spawn(move || {
        asked.recv().unwrap();
        host.revoke(at, 16).unwrap();
        answer.send(()).unwrap();
    });
    let cell = 9u32;
    assert_eq!(
        function::<Fn2>(&domain, "look")(&raw const cell as u64, 0),
        9
    );
    revoker.join().unwrap();
    assert!(came.load(Ordering::SeqCst));
}

#[test]
fn a_domain_cannot_be_entered_from_a_handler() {
    let host = Host::new().unwrap();
    let text = "gate f\n mov $5, %eax\n ret";
    let other = host.load(&module("other", text), Policy::new()).unwrap();
    let f: extern "C" fn() -> u64 = function(&other, "f");
    assert_eq!(f(), 5);
    let got = Arc::new(AtomicU64::new(77));
    let seen = Arc::clone(&got);
    let domain = load(&host, policy(), move |_| {
        seen.store(f(), Ordering::SeqCst);
    });
    let cell = 9u32;
    assert_eq!(
        function::<Fn2>(&domain, "look")(&raw const cell as u64, 0),
        9
    );
    assert_eq!(got.load(Ordering::SeqCst), 0);
    assert_eq!(f(), 5);
}
