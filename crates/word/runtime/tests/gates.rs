//! Calls through the gates: in, out, to oneself, from one module to another, back in.

mod module;

use module::{function, load, module};
use mullion_word_runtime::{Effect, FunctionPolicy, Host, Policy, Size};
use std::sync::atomic::{AtomicU64, Ordering};

type Fn0 = extern "C" fn() -> u64;
type Fn1 = extern "C" fn(u64) -> u64;
type Fn2 = extern "C" fn(u64, u64) -> u64;

extern "C" fn double(a: u64) -> u64 {
    2 * a
}

extern "C" fn sum8(a: u64, b: u64, c: u64, d: u64, e: u64, f: u64, g: u64, h: u64) -> u64 {
    [a, b, c, d, e, f, g, h]
        .iter()
        .enumerate()
        .map(|(n, x)| (n as u64 + 1) * x)
        .sum()
}

extern "C" fn call_back(f: Fn1, a: u64) -> u64 {
    f(a) + 1
}

/// Functions that the modules below import.
fn policy() -> Policy {
    // SAFETY: the functions take any numbers; `call_back` is given what the module may enter.
    unsafe {
        Policy::new()
            .offer("double", double as *const () as usize, None)
            .offer(
                "sum8",
                sum8 as *const () as usize,
                Some(FunctionPolicy::default().stacked(2)),
            )
            .offer(
                "call_back",
                call_back as *const () as usize,
                Some(FunctionPolicy::of(&[Effect::Callback(0)])),
            )
    }
}

const SIMPLE: &str = "
    import  double
    import  sum8
    import  call_back
    gate    add
    lea     (%rdi,%rsi), %rax
    ret
    gate    through
    call_import double
    inc     %rax
    ret
    gate    last_words             # 7th and 8th argument
    mov     (%r15), %rax
    sub     8(%r15), %rax
    ret
    gate    eight
    sub     $16, %r15
    movq    $70, (%r15)
    movq    $80, 8(%r15)
    mov     $1, %edi
    mov     $2, %esi
    mov     $3, %edx
    mov     $4, %ecx
    mov     $5, %r8d
    mov     $6, %r9d
    call_import sum8
    add     $16, %r15
    ret
    gate    spoil                  # what the host wants to keep
    mov     $1, %ebx
    mov     $1, %ebp
    mov     $1, %r12d
    mov     $1, %r13d
    sub     $64, %r15
    mov     $7, %eax
    ret
    gate    self
    lea     add(%rip), %rax
    mov     %rdi, %rsi
    call_by %rax
    ret
    gate    pointer
    lea     add(%rip), %rax
    ret
    gate    by_address             # a function of the host in %rdi
    mov     %rdi, %rax
    mov     %rsi, %rdi
    call_by %rax
    ret
    gate    nested
    mov     %rdi, %rsi
    lea     inner(%rip), %rdi
    call_import call_back
    add     $100, %rax
    ret
    gate    inner
    sub     $24, %r15
    mov     %rdi, (%r15)
    test    %rdi, %rdi
    je      1f
    lea     -1(%rdi), %rdi
    call    __mullion_call.nested
    jmp     2f
1:  mov     $5, %eax
2:  add     $24, %r15
    ret
    gate    bump
    incl    counter(%rip)
    mov     counter(%rip), %eax
    ret
    .data
counter: .long 0
    .text
";

#[test]
fn calls_in_and_out() {
    let (_host, domain) = load(
        "simple",
        SIMPLE,
        policy().export("last_words", FunctionPolicy::default().stacked(2)),
    );
    assert_eq!(function::<Fn2>(&domain, "add")(40, 2), 42);
    assert_eq!(function::<Fn1>(&domain, "through")(20), 41);
    assert_eq!(
        function::<Fn0>(&domain, "eight")(),
        1 + 4 + 9 + 16 + 25 + 36 + 490 + 640
    );
    type Fn8 = extern "C" fn(u64, u64, u64, u64, u64, u64, u64, u64) -> u64;
    assert_eq!(
        function::<Fn8>(&domain, "last_words")(1, 2, 3, 4, 5, 6, 50, 8),
        42
    );
    assert_eq!(function::<Fn0>(&domain, "bump")(), 1);
    assert_eq!(function::<Fn0>(&domain, "bump")(), 2);
    for round in 0..5 {
        // Registers that a callee keeps are kept, whatever the module does, and its stack is where it was.
        let kept = [round, 2, 3, 4].map(std::hint::black_box);
        assert_eq!(function::<Fn0>(&domain, "spoil")(), 7);
        assert_eq!(kept, [round, 2, 3, 4]);
    }
    assert!(domain.take_reports().is_empty());
}

#[test]
fn pointers_are_the_same_for_all() {
    let (_host, domain) = load("simple", SIMPLE, policy());
    assert_eq!(function::<Fn1>(&domain, "self")(21), 42);
    let pointer = function::<Fn0>(&domain, "pointer")();
    assert_eq!(pointer, domain.function("add").unwrap() as u64);
    // The host's, by its address.
    let by_address: Fn2 = function(&domain, "by_address");
    assert_eq!(by_address(double as *const () as u64, 21), 42);
}

#[test]
fn callbacks_nest() {
    let (_host, domain) = load("simple", SIMPLE, policy());
    let nested: Fn1 = function(&domain, "nested");
    assert_eq!(nested(0), 106);
    assert_eq!(nested(3), 106 + 3 * 101);
    // From a thread that the host has just made, again and again.
    for _ in 0..20 {
        let made = std::thread::spawn(move || nested(50));
        assert_eq!(made.join().unwrap(), 106 + 50 * 101);
    }
    assert!(domain.take_reports().is_empty());
}

#[test]
fn modules_call_each_other_without_the_host() {
    let host = Host::new().unwrap();
    let callee = host.load(&module("simple", SIMPLE), policy()).unwrap();
    let caller = "
    import  add
    gate    both
    call_import add
    ret
    gate    by_pointer
    mov     %rdi, %rax
    mov     %rsi, %rdi
    call_by %rax
    ret
    ";
    let add = callee.function("add").unwrap() as usize;
    // SAFETY: `add` takes any numbers.
    let policy = unsafe { Policy::new().offer("add", add, None) };
    let caller = host.load(&module("caller", caller), policy).unwrap();
    assert_eq!(function::<Fn2>(&caller, "both")(40, 2), 42);
    let by_pointer: Fn2 = function(&caller, "by_pointer");
    assert_eq!(
        by_pointer(add as u64, 42),
        84,
        "%rsi is still the second argument"
    );
    // Another function of it needs a link.
    let bump = callee.function("through").unwrap() as u64;
    assert_eq!(by_pointer(bump, 42), 0);
    let reports = caller.take_reports();
    assert_eq!(reports.len(), 1);
    assert_eq!(reports[0].kind, mullion_word_runtime::FaultKind::Call);
    assert_eq!(reports[0].address, Some(bump));
    caller.restart().unwrap();
    host.link(&caller, &callee, "through").unwrap();
    assert_eq!(by_pointer(bump, 20), 41);
}

#[test]
fn memory_is_granted_for_the_length_of_a_call() {
    let reader = "
    gate    peek
    checked 1, 0, (%rdi), mov (%rdi), %eax
    ret
    gate    poke
    checked 2, 0, (%rdi), mov %esi, (%rdi)
    mov     $1, %eax
    ret
    gate    poke_some
    checked 2, 0, (%rdi), mov %esi, (%rdi)
    mov     $1, %eax
    ret
    ";
    let policy = Policy::new()
        .export(
            "peek",
            FunctionPolicy::of(&[Effect::In(0, Size::Bytes(4))]).error(-7),
        )
        .export(
            "poke_some",
            FunctionPolicy::of(&[Effect::InOut(0, Size::Argument(2))]).error(-8),
        )
        .export("poke", FunctionPolicy::default().error(-9));
    let (host, domain) = load("reader", reader, policy);
    let cells: Box<[u32; 64]> = Box::new([5; 64]);
    let at = |n: usize| (&raw const cells[n]) as u64;
    let peek: Fn1 = function(&domain, "peek");
    assert_eq!(peek(at(3)), 5);
    type Fn3 = extern "C" fn(u64, u64, u64) -> u64;
    let poke_some: Fn3 = function(&domain, "poke_some");
    assert_eq!(poke_some(at(8), 6, 4), 1);
    // SAFETY: it reads what the module wrote.
    assert_eq!(unsafe { (at(8) as *const u32).read_volatile() }, 6);
    let poke: Fn2 = function(&domain, "poke");
    assert_eq!(poke(at(8), 7) as i64, -9, "so did the right to write");
    assert_eq!(domain.take_reports().len(), 1);
    domain.restart().unwrap();
    assert_eq!(poke(at(3), 9) as i64, -9, "the right went with the call");
    let report = domain.take_reports().remove(0);
    assert_eq!(report.kind, mullion_word_runtime::FaultKind::Access);
    assert_eq!(
        (report.address, report.export.as_str()),
        (Some(at(3)), "poke")
    );
    assert!(report.object.starts_with("memory of the host"), "{report}");
    assert!(
        report
            .allow
            .as_deref()
            .unwrap()
            .starts_with("export.poke.effects = [\"inout("),
        "{report}"
    );
    assert_eq!(cells[3], 5);
    assert!(domain.is_ended());
    assert_eq!(peek(at(3)) as i64, -7, "it takes no calls");
    domain.restart().unwrap();
    assert_eq!(peek(at(3)), 5);
    // For longer.
    // SAFETY: the module may write there.
    unsafe { host.grant(&domain, at(16) as usize, 64, true) }.unwrap();
    assert_eq!(poke(at(16), 9), 1);
    host.revoke(at(16) as usize, 64).unwrap();
    assert_eq!(poke(at(16), 10) as i64, -9);
    domain.restart().unwrap();
    // SAFETY: the module may write there.
    let granted = unsafe { host.grant_for(&domain, at(20) as usize, 4, true) }.unwrap();
    assert_eq!(poke(at(20), 9), 1);
    drop(granted);
    assert_eq!(poke(at(20), 10) as i64, -9);
}

static ENTERED: AtomicU64 = AtomicU64::new(0);

#[test]
fn thousands_of_domains_and_threads() {
    let host = Host::new().unwrap();
    let text = "
    gate    bump
    incl    counter(%rip)
    mov     counter(%rip), %eax
    ret
    .data
counter: .long 0
    .text
    ";
    let module = module("bump", text);
    let some = std::env::var("MULLION_WORD_DOMAINS").map_or(500, |n| n.parse().unwrap());
    let domains: Vec<_> = (0..some)
        .map(|_| host.load(&module, Policy::new()).unwrap())
        .collect();
    std::thread::scope(|scope| {
        for start in 0..4 {
            let domains = &domains;
            scope.spawn(move || {
                for domain in domains.iter().skip(start).step_by(4) {
                    assert_eq!(function::<Fn0>(domain, "bump")(), 1);
                    ENTERED.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    for domain in &domains {
        assert_eq!(function::<Fn0>(domain, "bump")(), 2);
        assert!(domain.take_reports().is_empty());
    }
    for domain in domains {
        let bump: Fn0 = function(&domain, "bump");
        domain.unload().unwrap();
        assert_eq!(bump(), 0, "a pointer into an unloaded domain answers");
    }
    assert_eq!(ENTERED.load(Ordering::Relaxed), some);
}
