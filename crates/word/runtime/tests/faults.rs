//! Each kind of fault ends the call, says what it was, and leaves the host as it was. Many of these modules break
//! the contract on purpose: no verifier would take them.

mod module;

use module::{function, load, module};
use mullion_word_runtime::{Domain, Effect, FaultKind, FunctionPolicy, Host, Limits, Policy, Size};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

type Fn0 = extern "C" fn() -> u64;
type Fn1 = extern "C" fn(u64) -> u64;
type Fn2 = extern "C" fn(u64, u64) -> u64;

/// Every line is a function `f`, and how its call ends.
const KINDS: &[(&str, FaultKind)] = &[
    ("checked 2, 0, (%rdi), mov %esi, (%rdi)", FaultKind::Access),
    (
        "checked 1, 4, \"(%rdi,%rsi,8)\", mov 4(%rdi,%rsi,8), %eax",
        FaultKind::Access,
    ),
    ("mov (%rdi), %eax", FaultKind::NoMapping),
    ("ud1 %eax, %eax", FaultKind::Label),
    ("ud2", FaultKind::Abort),
    (".byte 0x06", FaultKind::Illegal),
    (
        "xor %ecx, %ecx\n xor %edx, %edx\n mov $1, %eax\n div %ecx",
        FaultKind::Arithmetic,
    ),
    ("int3", FaultKind::Trap),
    (
        "1: sub $4096, %r15\n movq $0, (%r15)\n jmp 1b",
        FaultKind::DataStack,
    ),
    ("1: call 1b", FaultKind::ControlStack),
    ("1: push %rax\n jmp 1b", FaultKind::ControlStack),
    ("call_by %rdi", FaultKind::Call),
    ("call_import exit", FaultKind::Policy),
    // The slots cannot be written.
    ("movq $0, mullion_slots(%rip)", FaultKind::NoMapping),
    // Nor can text and constants.
    ("movb $0, f(%rip)", FaultKind::NoMapping),
    // What has no address.
    (
        "movabs $0x4000000000000000, %rax\n checked 1, 0, (%rax), mov (%rax), %eax",
        FaultKind::NoMapping,
    ),
];

#[test]
fn every_kind_of_fault_ends_the_call_and_is_told() {
    for (code, kind) in KINDS {
        let text = format!("import exit\n gate f\n {code}\n ret\n gate fine\n mov $3, %eax\n ret");
        let policy = Policy::new().export("f", FunctionPolicy::default().error(-5));
        let (_host, domain) = load("faulty", &text, policy);
        let (f, fine): (Fn2, Fn0) = (function(&domain, "f"), function(&domain, "fine"));
        let (own, kept) = ([1u64; 4], [1, 2, 3, 4, 5].map(std::hint::black_box));
        for round in 0..3 {
            assert_eq!(fine(), 3);
            assert_eq!(
                f(
                    if kind == &FaultKind::NoMapping {
                        0x10
                    } else {
                        own.as_ptr() as u64
                    },
                    2
                ) as i64,
                -5
            );
            assert_eq!((own, kept), ([1; 4], [1, 2, 3, 4, 5]));
            assert!(domain.is_ended());
            assert_eq!(fine(), 0, "it takes no calls");
            let reports = domain.take_reports();
            assert_eq!(reports.len(), 1, "{code}, round {round}: {reports:?}");
            let report = &reports[0];
            assert_eq!(report.kind, *kind, "{code}: {report}");
            assert_eq!(report.export, "f", "{report}");
            assert_eq!(report.module, "faulty");
            domain.restart().unwrap();
        }
    }
}

#[test]
fn a_report_says_where_what_and_what_would_allow_it() {
    let text = "gate f\n nop\n checked 2, 16, \"(%rdi,%rsi,4)\", movl $1, 16(%rdi,%rsi,4)\n ret";
    let (_host, domain) = load("culprit", text, Policy::new());
    let cells = [0u32; 16];
    let f: Fn2 = function(&domain, "f");
    f(cells.as_ptr() as u64, 2);
    let report = domain.take_reports().remove(0);
    assert_eq!(report.address, Some(cells.as_ptr() as u64 + 24));
    let said = report.to_string();
    assert!(said.starts_with("culprit: Access in f+"), "{said}");
    assert!(
        said.contains("memory of the host")
            && said.contains("allowed by: export.f.effects = [\"inout("),
        "{said}"
    );
    assert!(report.instruction > 0x1000);
}

/// The kinds above, and each in a thread that ends with it, and from a module that another one calls.
#[test]
fn a_fault_of_a_callee_leaves_its_caller_running() {
    let host = Host::new().unwrap();
    let callee = host
        .load(
            &module("callee", "gate f\n ud2\n ret"),
            Policy::new().export("f", FunctionPolicy::default().error(9)),
        )
        .unwrap();
    let text = "import f\n gate g\n sub $24, %r15\n mov %rbx, (%r15)\n mov $30, %ebx\n call_import f\n add %rbx, %rax\n mov (%r15), %rbx\n add $24, %r15\n ret";
    let at = callee.function("f").unwrap() as usize;
    // SAFETY: `f` takes nothing.
    let policy = unsafe { Policy::new().offer("f", at, None) };
    let caller = host.load(&module("caller", text), policy).unwrap();
    let g: Fn0 = function(&caller, "g");
    assert_eq!(g(), 39);
    assert_eq!(g(), 39, "it is ended: the same answer, by the slow way");
    assert!(callee.is_ended() && !caller.is_ended());
    callee.restart().unwrap();
    assert_eq!(std::thread::spawn(move || g()).join().unwrap(), 39);
    assert_eq!(callee.take_reports().len(), 2);
    assert!(caller.take_reports().is_empty());
}

extern "C" fn call_back(f: Fn1, a: u64) -> u64 {
    f(a).wrapping_add(1)
}

fn with_call_back() -> Policy {
    let policy = FunctionPolicy::of(&[Effect::Callback(0)]);
    // SAFETY: it is given what the module may enter.
    unsafe { Policy::new().offer("call_back", call_back as *const () as usize, Some(policy)) }
}

const NESTED: &str = "
    import  call_back
    gate    outer
    lea     inner(%rip), %rdi
    mov     $1, %esi
    call_import call_back
    incl    went_on(%rip)
    ret
    gate    inner
    ud2
    gate    again
    lea     again(%rip), %rdi
    call_import call_back
    ret
    gate    count
    mov     went_on(%rip), %eax
    ret
    gate    low                     # its stack at the lowest word of the region
    mov     %r15, %rax
    and     $-0x800000, %rax
    add     $16, %rax
    mov     %rax, %r11
    xor     %r15, %r11
    and     $0x7fffff, %r11d
    xor     %r11, %r15
    lea     uses_stack(%rip), %rdi
    call_import call_back
    ret
    gate    high
    or      $0x7ffff0, %r15
    lea     uses_stack(%rip), %rdi
    call_import call_back
    ret
    gate    uses_stack
    sub     $64, %r15
    mov     %rdi, (%r15)
    mov     32(%r15), %rax
    add     $64, %r15
    ret
    gate    foreign
    lea     (%rdi), %rdi
    call_import call_back
    ret
    .data
went_on: .long 0
    .text
";

#[test]
fn all_nested_calls_of_the_domain_end() {
    let (_host, domain) = load(
        "nested",
        NESTED,
        with_call_back().export("outer", FunctionPolicy::default().error(-3)),
    );
    let outer: Fn0 = function(&domain, "outer");
    assert_eq!(
        outer() as i64,
        -3,
        "the host's function has run to its end, and then the outer call ends"
    );
    assert_eq!(domain.take_reports().len(), 1);
    domain.restart().unwrap();
    assert_eq!(function::<Fn0>(&domain, "count")(), 0);
}

#[test]
fn calls_that_nest_without_end_use_up_no_stack_of_the_host() {
    for small in [false, true] {
        let nest = move || {
            let (_host, domain) = load("nested", NESTED, with_call_back());
            let again: Fn0 = function(&domain, "again");
            again();
            let reports = domain.take_reports();
            assert!(
                reports.iter().any(|r| r.kind == FaultKind::ControlStack),
                "{reports:?}"
            );
        };
        let thread =
            std::thread::Builder::new().stack_size(if small { 256 << 10 } else { 64 << 20 });
        thread.spawn(nest).unwrap().join().unwrap();
    }
}

#[test]
fn a_stack_at_the_end_of_its_region_is_the_module_s_own_trouble() {
    let policy =
        || with_call_back().export("uses_stack", FunctionPolicy::default().error(-6).stacked(2));
    for (name, policy) in [
        ("low", with_call_back()),
        ("low", policy()),
        ("high", with_call_back()),
        ("high", policy()),
    ] {
        let (_host, domain) = load("nested", NESTED, policy);
        for _ in 0..2 {
            function::<Fn0>(&domain, name)();
            let _said = domain.take_reports();
            if domain.is_ended() {
                domain.restart().unwrap();
            }
            assert_eq!(function::<Fn0>(&domain, "count")(), 0);
        }
    }
}

#[test]
fn a_callback_must_be_one_that_the_module_may_call() {
    let (_host, domain) = load("nested", NESTED, with_call_back());
    let foreign: Fn2 = function(&domain, "foreign");
    assert_eq!(foreign(call_back as *const () as u64, 1), 0);
    let report = domain.take_reports().remove(0);
    assert_eq!(report.kind, FaultKind::Policy);
    assert!(
        report.object.contains("which the module may not call"),
        "{report}"
    );
}

/// The right to enter is on a word. Of its four addresses, two are the gate's, and two are no instructions.
#[test]
fn jumps_into_the_middle_of_a_gate() {
    let host = Host::new().unwrap();
    let callee = host
        .load(
            &module("callee", "gate f\n mov $4, %eax\n ret"),
            Policy::new(),
        )
        .unwrap();
    let caller = host
        .load(
            &module("caller", "gate jump\n call_by %rdi\n ret"),
            Policy::new().error(Default::default()),
        )
        .unwrap();
    host.link(&caller, &callee, "f").unwrap();
    let f = callee.function("f").unwrap() as u64;
    let jump: Fn1 = function(&caller, "jump");
    for (by, kind) in [
        (0, None),
        (1, None),
        (2, Some(FaultKind::Illegal)),
        (3, Some(FaultKind::NoMapping)),
        (4, Some(FaultKind::Call)),
    ] {
        let answer = jump(f + by);
        let reports = caller.take_reports();
        assert_eq!(reports.first().map(|report| report.kind), kind, "{by}");
        assert_eq!(answer, if kind.is_none() { 4 } else { 0 });
        assert!(callee.take_reports().is_empty() && !callee.is_ended());
        if kind.is_some() {
            caller.restart().unwrap();
        }
    }
}

static TOUCHED: AtomicU64 = AtomicU64::new(0);

extern "C" fn fill(to: *mut u8, bytes: usize) {
    // SAFETY: its policy says that the module may write there.
    unsafe { to.write_bytes(1, bytes) };
    TOUCHED.fetch_add(1, Ordering::Relaxed);
}

/// What the module could not write itself, the host does not write for it.
#[test]
fn the_host_is_no_deputy() {
    let text = "
    import fill
    gate deputy
    call_import fill
    mov $1, %eax
    ret
    gate stack
    sub $64, %r15
    lea 8(%r15), %rdi
    mov $16, %esi
    call_import fill
    mov 16(%r15), %al
    movzbl %al, %eax
    add $64, %r15
    ret";
    // SAFETY: the policy is that of `fill`.
    let policy = unsafe {
        let out = FunctionPolicy::of(&[Effect::Out(0, Size::Argument(1))]);
        Policy::new().offer("fill", fill as *const () as usize, Some(out))
    };
    let (host, domain) = load("deputy", text, policy);
    assert_eq!(function::<Fn0>(&domain, "stack")(), 1);
    assert_eq!(TOUCHED.load(Ordering::Relaxed), 1);
    let memory = Box::new([0u64; 8]);
    let at = memory.as_ptr() as u64;
    let deputy: Fn2 = function(&domain, "deputy");
    // SAFETY: the module may write there.
    unsafe { host.grant(&domain, at as usize, 16, true) }.unwrap();
    assert_eq!(deputy(at, 16), 1);
    for (address, bytes) in [
        (at, 20),
        (at + 12, 8),
        (0x10, 4),
        (u64::MAX - 3, 8),
        (deputy as *const () as u64, 4),
    ] {
        assert_eq!(deputy(address, bytes), 0, "{address:#x}, {bytes}");
        let report = domain.take_reports().remove(0);
        assert_eq!(report.kind, FaultKind::Policy, "{report}");
        assert!(report.object.starts_with("fill: argument 0 is"), "{report}");
        domain.restart().unwrap();
    }
    assert_eq!(memory[2..], [0; 6]);
    host.revoke(at as usize, 16).unwrap();
}

const ALLOCATES: &str = "
    import malloc
    import realloc
    import free
    gate get
    call_import malloc
    ret
    gate put
    checked 2, 0, (%rdi), mov %esi, (%rdi)
    mov $1, %eax
    ret
    gate drop
    call_import free
    mov $1, %eax
    ret
    gate more
    call_import realloc
    ret";

#[test]
fn an_allocator_s_blocks_are_the_module_s_until_they_are_freed() {
    let limits = Limits {
        memory: 10_000,
        ..Limits::default()
    };
    let (_host, domain) = load(
        "allocates",
        ALLOCATES,
        Policy::new().allocators().limits(limits),
    );
    let get: Fn1 = function(&domain, "get");
    let (put, drop, more): (Fn2, Fn1, Fn2) = (
        function(&domain, "put"),
        function(&domain, "drop"),
        function(&domain, "more"),
    );
    let block = get(100);
    assert_eq!((put(block, 1), put(block + 96, 1)), (1, 1));
    let larger = more(block, 5000);
    assert!(larger != 0 && put(larger + 4996, 1) == 1);
    assert_eq!(more(larger, 20_000), 0, "beyond the limit");
    assert_eq!(put(larger, 1), 1, "and it is still there");
    assert_eq!(get(6000), 0);
    assert_eq!(drop(larger), 1);
    assert_eq!(put(larger, 1), 0);
    assert_eq!(domain.take_reports().remove(0).kind, FaultKind::Access);
    domain.restart().unwrap();
    assert_eq!(drop(0), 1);
    for wrong in [larger, 0x1000, drop as *const () as u64] {
        assert_eq!(drop(wrong), 0, "what was never given, or twice");
        assert_eq!(domain.take_reports().remove(0).kind, FaultKind::Policy);
        domain.restart().unwrap();
    }
    // What it held goes back at its end.
    let block = get(9000);
    assert!(put(block + 8996, 3) == 1);
    domain.restart().unwrap();
    assert_eq!(put(block + 8996, 3), 0);
    let _said = domain.take_reports();
    domain.restart().unwrap();
    assert_ne!(get(9000), 0, "nothing is held any more");
    domain.unload().unwrap();
}

extern "C" fn nothing() {}

#[test]
fn a_call_s_time_is_limited() {
    let text = "
    import nothing
    gate spin
    1: jmp 1b
    gate spin_outside
    2: call_import nothing
    jmp 2b
    gate quick
    mov $1, %eax
    ret";
    let limits = Limits {
        time: Some(Duration::from_millis(30)),
        ..Limits::default()
    };
    // SAFETY: `nothing` does nothing.
    let policy = unsafe {
        Policy::new()
            .offer("nothing", nothing as *const () as usize, None)
            .limits(limits)
    };
    let (_host, domain) = load("spins", text, policy);
    for name in ["spin", "spin_outside", "spin"] {
        assert_eq!(function::<Fn0>(&domain, "quick")(), 1);
        assert_eq!(function::<Fn0>(&domain, name)(), 0);
        let reports = domain.take_reports();
        assert_eq!(reports.len(), 1, "{reports:?}");
        assert_eq!(
            (reports[0].kind, reports[0].export.as_str()),
            (FaultKind::Time, name)
        );
        domain.restart().unwrap();
    }
}

/// The watchdog counts outermost calls, and not the time that a thread is found inside.
#[test]
fn many_short_calls_are_not_taken_for_a_long_one() {
    let text = "
    gate spin
    1: jmp 1b
    gate quick
    mov $20000, %eax
    2: dec %eax
    jnz 2b
    mov $1, %eax
    ret";
    let limits = Limits {
        time: Some(Duration::from_millis(30)),
        ..Limits::default()
    };
    let (_host, domain) = load("busy", text, Policy::new().limits(limits));
    let (quick, begun): (Fn0, _) = (function(&domain, "quick"), std::time::Instant::now());
    // A busy machine may keep the thread waiting within a call, which is then late indeed. The watchdog's clock is coarse.
    let call_quickly = || {
        loop {
            let call = std::time::Instant::now();
            if quick() == 1 {
                break;
            }
            let lasted = call.elapsed();
            assert!(lasted > Duration::from_millis(18), "ended in {lasted:?}");
            assert_eq!(domain.take_reports().len(), 1);
            domain.restart().unwrap();
        }
    };
    while begun.elapsed() < Duration::from_millis(300) {
        call_quickly();
    }
    // Behind a pause the watchdog sleeps, and the next call is to wake it; behind that call it does not sleep.
    for pause in [1000, 0] {
        std::thread::sleep(Duration::from_millis(pause));
        call_quickly();
        assert_eq!(function::<Fn0>(&domain, "spin")(), 0);
        assert_eq!(domain.take_reports()[0].kind, FaultKind::Time);
        domain.restart().unwrap();
    }
}

static HURRIED: Mutex<Option<Domain>> = Mutex::new(None);

/// Whether the hurried module has been ended.
extern "C" fn is_over() -> u64 {
    HURRIED
        .lock()
        .unwrap()
        .is_some_and(|domain| domain.is_ended())
        .into()
}

/// A function of the host that takes its time, in which it calls another module.
extern "C" fn dawdle(callee: Fn0) -> u64 {
    callee()
}

#[test]
fn a_caller_s_limit_ends_the_caller_and_not_its_callee() {
    let host = Host::new().unwrap();
    let text = "
        import is_over
        gate wait                   # goes on until its caller's time is over
1:      call_import is_over
        test %eax, %eax
        je 1b
        incl done(%rip)
        mov $5, %eax
        ret
        gate spin                   # the same in its own code, until the host writes there
2:      cmpl $0, flag(%rip)
        je 2b
        movl $0, flag(%rip)
        incl done(%rip)
        mov $5, %eax
        ret
        gate how_often
        mov done(%rip), %eax
        ret
        .bss
        .globl flag
flag:   .long 0
        .globl done
done:   .long 0
        .text";
    // SAFETY: it takes nothing.
    let policy = unsafe { Policy::new().offer("is_over", is_over as *const () as usize, None) };
    let callee = host.load(&module("callee", text), policy).unwrap();
    let text = "
        import wait
        import dawdle
        import spin
        gate direct
        call_import wait
        ret
        gate spinning
        call_import spin
        ret
        gate by_host
        call_import dawdle
        ret
        gate quick
        mov $1, %eax
        ret";
    let limits = Limits {
        time: Some(Duration::from_millis(30)),
        ..Limits::default()
    };
    let [wait, spin] = ["wait", "spin"].map(|name| callee.function(name).unwrap() as usize);
    let flag = callee.symbol("flag").unwrap() as usize;
    // SAFETY: `wait` and `spin` take nothing, and `dawdle` is given the first.
    let policy = unsafe {
        Policy::new()
            .offer("wait", wait, None)
            .offer("spin", spin, None)
            .offer("dawdle", dawdle as *const () as usize, None)
            .limits(limits)
    };
    let caller = host.load(&module("hurried", text), policy).unwrap();
    *HURRIED.lock().unwrap() = Some(caller);
    let names = ["direct", "by_host", "spinning", "direct", "spinning"];
    for (round, name) in names.into_iter().enumerate() {
        assert_eq!(function::<Fn0>(&caller, "quick")(), 1);
        let is_back = AtomicBool::new(false);
        std::thread::scope(|scope| {
            if name == "spinning" {
                scope.spawn(|| {
                    while !caller.is_ended() && !is_back.load(Ordering::Relaxed) {
                        std::thread::yield_now();
                    }
                    // SAFETY: it is the module's own, and is mapped.
                    unsafe { AtomicU32::from_ptr(flag as *mut u32) }.store(1, Ordering::Relaxed);
                });
            }
            let answer = function::<Fn1>(&caller, name)(wait as u64);
            is_back.store(true, Ordering::Relaxed);
            assert_eq!(answer, 0);
        });
        let reports = caller.take_reports();
        assert_eq!(reports.len(), 1, "{reports:?}");
        assert_eq!(
            (reports[0].kind, reports[0].export.as_str()),
            (FaultKind::Time, name)
        );
        caller.restart().unwrap();
        // The callee has gone on to its end, and knows of nothing.
        assert!(callee.take_reports().is_empty() && !callee.is_ended());
        assert_eq!(function::<Fn0>(&callee, "how_often")(), round as u64 + 1);
    }
}

/// Refuses what its module asks for, and calls another module before it says so.
extern "C" fn refuse_later(callee: Fn0) -> u64 {
    mullion_word_runtime::refuse("it is not for sale");
    callee()
}

extern "C" fn one() -> u64 {
    1
}

#[test]
fn a_refusal_is_for_the_module_that_asked() {
    let host = Host::new().unwrap();
    // SAFETY: they take what they are given.
    let policy = unsafe { Policy::new().offer("one", one as *const () as usize, None) };
    let text = "import one\n gate f\n call_import one\n add $6, %eax\n ret";
    let innocent = host.load(&module("innocent", text), policy).unwrap();
    // SAFETY: the module passes it the gate `f`, which takes no arguments.
    let policy =
        unsafe { Policy::new().offer("refuse_later", refuse_later as *const () as usize, None) };
    let text = "import refuse_later\n gate g\n call_import refuse_later\n ret";
    let asks = host.load(&module("asks", text), policy).unwrap();
    let f = innocent.function("f").unwrap() as u64;
    assert_eq!(function::<Fn1>(&asks, "g")(f), 0);
    assert!(innocent.take_reports().is_empty() && !innocent.is_ended());
    let reports = asks.take_reports();
    assert_eq!(reports.len(), 1, "{reports:?}");
    assert_eq!(
        (reports[0].kind, reports[0].object.as_str()),
        (FaultKind::Policy, "it is not for sale")
    );
    // Nobody has asked here.
    mullion_word_runtime::refuse("nothing");
    assert_eq!(function::<Fn0>(&innocent, "f")(), 7);
    assert!(innocent.take_reports().is_empty());
}

extern "C" fn refuse_too() -> u64 {
    mullion_word_runtime::refuse("nor is that");
    1
}

/// A function of the host refuses, and calls another module, of which another function of the host refuses something.
#[test]
fn refusals_nest() {
    let host = Host::new().unwrap();
    let offer = |name: &str, address: *const ()| {
        // SAFETY: they take no arguments, or a gate that takes none.
        unsafe { Policy::new().offer(name, address as usize, None) }
    };
    let text = "import refuse_too\n gate f\n call_import refuse_too\n ret";
    let policy = offer("refuse_too", refuse_too as *const ());
    let inner = host.load(&module("inner", text), policy).unwrap();
    let text = "import refuse_later\n gate g\n call_import refuse_later\n mov $9, %eax\n ret";
    let policy = offer("refuse_later", refuse_later as *const ());
    let outer = host.load(&module("outer", text), policy).unwrap();
    let f = inner.function("f").unwrap() as u64;
    assert_eq!(function::<Fn1>(&outer, "g")(f), 0);
    for (domain, what) in [(&inner, "nor is that"), (&outer, "it is not for sale")] {
        let reports = domain.take_reports();
        assert_eq!(reports.len(), 1, "{reports:?}");
        assert_eq!(
            (reports[0].kind, reports[0].object.as_str()),
            (FaultKind::Policy, what)
        );
        domain.restart().unwrap();
    }
    // Both have begun anew, and the next call has nothing to do with it: the inner one's alone is refused.
    let text = "import one\n gate f\n call_import one\n ret";
    let innocent = host
        .load(&module("innocent", text), offer("one", one as *const ()))
        .unwrap();
    assert_eq!(function::<Fn0>(&innocent, "f")(), 1);
    assert_eq!(function::<Fn0>(&inner, "f")(), 0);
    assert_eq!(inner.take_reports().len(), 1);
}

#[test]
fn a_fault_in_one_thread_ends_the_others_calls_when_they_come_back() {
    let text = "
    import wait
    gate waits
    call_import wait
    mov $1, %eax
    ret
    gate fails
    ud2";
    static INSIDE: AtomicBool = AtomicBool::new(false);
    static GO_ON: AtomicBool = AtomicBool::new(false);
    extern "C" fn wait() {
        INSIDE.store(true, Ordering::SeqCst);
        while !GO_ON.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
    }
    // SAFETY: `wait` takes nothing.
    let policy = unsafe { Policy::new().offer("wait", wait as *const () as usize, None) };
    let (_host, domain) = load("waits", text, policy);
    let (waits, fails): (Fn0, Fn0) = (function(&domain, "waits"), function(&domain, "fails"));
    let waiter = std::thread::spawn(move || waits());
    while !INSIDE.load(Ordering::SeqCst) {
        std::thread::yield_now();
    }
    assert_eq!(fails(), 0);
    assert!(domain.restart().is_err(), "a thread is still in it");
    GO_ON.store(true, Ordering::SeqCst);
    assert_eq!(waiter.join().unwrap(), 0);
    domain.restart().unwrap();
    assert_eq!(waits(), 1);
}

/// Real gates, a thread that stores in a loop, and revocations: no store behind one.
#[test]
fn no_store_comes_behind_its_revocation() {
    let text = "
    gate hammer                     # where, and when to stop
    1: checked 1, 0, (%rsi), mov (%rsi), %eax
    test %eax, %eax
    jne 2f
    checked 2, 0, (%rdi), movl $1, (%rdi)
    jmp 1b
    2: mov $2, %eax
    ret";
    let (host, domain) = load("hammer", text, Policy::new());
    let hammer: Fn2 = function(&domain, "hammer");
    let cells: Box<[AtomicU64; 2]> = Box::new([AtomicU64::new(0), AtomicU64::new(0)]);
    let at = |n: usize| (&raw const cells[n]) as usize;
    let stop = &cells[1];
    for _ in 0..60 {
        cells[0].store(0, Ordering::SeqCst);
        // SAFETY: the module may read and write the cells.
        unsafe {
            host.grant(&domain, at(0), 8, true).unwrap();
            host.grant(&domain, at(1), 8, false).unwrap();
        }
        let (cell, flag) = (at(0) as u64, at(1) as u64);
        let thread = std::thread::spawn(move || hammer(cell, flag));
        while cells[0].load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        host.revoke(at(0), 8).unwrap();
        cells[0].store(5, Ordering::SeqCst);
        assert_eq!(thread.join().unwrap(), 0, "it was refused");
        assert_eq!(cells[0].load(Ordering::SeqCst), 5);
        assert_eq!(domain.take_reports().remove(0).kind, FaultKind::Access);
        domain.restart().unwrap();
    }
    stop.store(1, Ordering::SeqCst);
}

#[test]
fn a_host_ends_a_domain_between_its_calls() {
    let policy = Policy::new().export("f", FunctionPolicy::default().error(-5));
    let (_host, domain) = load("ended", "gate f\n mov $3, %eax\n ret", policy);
    let f: Fn0 = function(&domain, "f");
    assert_eq!(f(), 3);
    domain.end("it has kept a lock");
    assert!(domain.is_ended());
    assert_eq!(f() as i64, -5);
    let reports = domain.take_reports();
    assert_eq!(reports.len(), 1, "{reports:?}");
    assert_eq!(reports[0].kind, FaultKind::Policy);
    assert!(reports[0].to_string().contains("it has kept a lock"));
    domain.restart().expect("a fresh domain");
    assert_eq!(f(), 3);
}
