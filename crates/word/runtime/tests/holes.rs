//! What a hostile reading of the run time has found. Each of these was a way to harm the host, or to keep what was
//! taken away.

mod module;

use module::{build, function, load, module};
use mullion_word_runtime::{
    Domain, Effect, FaultKind, FunctionPolicy, Host, Lease, Limits, LoadError, Module, Policy, Size,
};
use mullion_word_verifier::verify;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

type Fn0 = extern "C" fn() -> u64;
type Fn1 = extern "C" fn(u64) -> u64;
type Fn2 = extern "C" fn(u64, u64) -> u64;

fn kind(domain: &Domain) -> FaultKind {
    domain.take_reports().remove(0).kind
}

#[test]
fn a_null_pointer_is_no_function_of_the_host() {
    let text = "gate f\n call_by %rdi\n mov $1, %eax\n ret";
    let (_host, domain) = load("null", text, Policy::new());
    for address in [0, 1, 8, 16, 1 << 46] {
        assert_eq!(function::<Fn1>(&domain, "f")(address), 0);
        assert_eq!(kind(&domain), FaultKind::Call, "{address:#x}");
        domain.restart().unwrap();
    }
}

/// A module that has nearly used up the control stack calls another one, which is none the worse for it.
#[test]
fn a_callee_finds_enough_of_the_control_stack() {
    let host = Host::new().unwrap();
    // It nests so deeply in each call.
    let text = "
    gate f
    mov $14000, %ecx
    call 1f
    mov $5, %eax
    ret
1:  sub $1, %ecx
    je 2f
    call 1b
2:  ret";
    let callee = host.load(&module("callee", text), Policy::new()).unwrap();
    let at = callee.function("f").unwrap() as usize;
    // SAFETY: `f` takes nothing.
    let policy = unsafe { Policy::new().offer("f", at, None) };
    let text = "
    import f
    gate g
    call 1f
    ret
1:  sub $1, %rdi
    je 2f
    call 1b
    ret
2:  call_import f
    ret";
    let caller = host.load(&module("caller", text), policy).unwrap();
    let g: Fn1 = function(&caller, "g");
    assert_eq!(g(1), 5);
    let all = (1 << 20) / 8;
    let mut refused = 0;
    let near = (all - 16_500..all - 15_500).step_by(50);
    for depth in near.chain((all - 200..all + 20).step_by(1)) {
        let answer = g(depth);
        assert!(!callee.is_ended(), "{depth}: {:?}", callee.take_reports());
        assert_eq!(function::<Fn0>(&callee, "f")(), 5);
        match caller.is_ended() {
            // It has used up the stack by itself.
            true => {
                assert_eq!(kind(&caller), FaultKind::ControlStack);
                caller.restart().unwrap();
            }
            false if answer == 0 => refused += 1,
            false => assert_eq!(answer, 5),
        }
    }
    assert!(refused > 100, "{refused}");
}

const CALLS_BACK: &str = "
    import  call_back
    gate    high
    mov     %rdi, %rax              # so far above the top
    lea     (%r15,%rax), %rax
    mov     %rax, %r11
    xor     %r15, %r11
    and     $0x7fffff, %r11d
    xor     %r11, %r15
    lea     inner(%rip), %rdi
    call_import call_back
    ret
    gate    inner
    mov     $1, %eax
    ret";

extern "C" fn call_back(f: extern "C" fn(u64, u64, u64, u64, u64, u64, u64, u64) -> u64) -> u64 {
    f(1, 2, 3, 4, 5, 6, 7, 8)
}

#[test]
fn arguments_on_a_stack_that_is_above_its_top_are_not_written() {
    let inner = FunctionPolicy::default().stacked(16);
    // SAFETY: it is given a gate of the module.
    let policy = unsafe {
        Policy::new()
            .offer("call_back", call_back as *const () as usize, None)
            .export("inner", inner)
    };
    let (_host, domain) = load("high", CALLS_BACK, policy);
    for above in [16, 64, 96, 112, 120, 4096, 32_000] {
        function::<Fn1>(&domain, "high")(above);
        assert_eq!(kind(&domain), FaultKind::Policy, "{above}");
        domain.restart().unwrap();
    }
    // Below, it has its arguments.
    assert_eq!(function::<Fn1>(&domain, "high")(-256i64 as u64), 1);
}

static CELL: [AtomicU64; 8] = [const { AtomicU64::new(5) }; 8];

fn cell() -> u64 {
    CELL.as_ptr() as u64
}

extern "C" fn take_back() {
    Host::new().unwrap().revoke(cell() as usize, 64).unwrap();
}

#[test]
fn what_was_revoked_during_a_call_does_not_come_back_at_its_end() {
    let text = "
        import take_back
        gate f
        checked 2, 0, (%rdi), movl $1, (%rdi)
        call_import take_back
        mov $1, %eax
        ret
        gate look
        checked 1, 0, (%rdi), mov (%rdi), %eax
        ret";
    // SAFETY: it takes nothing.
    let policy = unsafe {
        Policy::new()
            .offer("take_back", take_back as *const () as usize, None)
            .export(
                "f",
                FunctionPolicy::of(&[Effect::InOut(0, Size::Bytes(64))]),
            )
    };
    let (host, domain) = load("late", text, policy);
    // SAFETY: the module may read it.
    unsafe { host.grant(&domain, cell() as usize, 64, false) }.unwrap();
    let (f, look): (Fn1, Fn1) = (function(&domain, "f"), function(&domain, "look"));
    assert_eq!(look(cell()), 5);
    assert_eq!(f(cell()), 1, "it has been raised, and was revoked inside");
    assert_eq!(look(cell()), 0, "it must not be put back");
    assert_eq!(kind(&domain), FaultKind::Access);
}

/// Only registers are looked at. An effect on anything else would check nothing, without a word.
#[test]
fn a_policy_for_an_argument_on_the_stack_is_refused() {
    let host = Host::new().unwrap();
    let module = module("stacked", "gate reads\nmov $1, %eax\nret");
    for effect in [
        Effect::In(6, Size::Bytes(4)),
        Effect::Out(0, Size::Argument(6)),
        Effect::InOut(0, Size::Product(1, 7)),
        Effect::Gives(Size::Argument(9)),
        Effect::Frees(6),
        Effect::Callback(6),
    ] {
        let of = || FunctionPolicy::of(&[effect]).stacked(4);
        for policy in [
            Policy::new().export("reads", of()),
            Policy::new().allow_with("anything", of()),
        ] {
            let loaded = host.load(&module, policy).map(|_| ());
            assert!(
                matches!(loaded, Err(LoadError::OnStack { .. })),
                "{effect:?}"
            );
        }
    }
    let last = FunctionPolicy::of(&[Effect::In(5, Size::Argument(4))]);
    host.load(&module, Policy::new().export("reads", last))
        .unwrap();
}

/// A module that has its host pass an address of the control stack would write return addresses. This one breaks the
/// rules to know where that is; another one would guess.
#[test]
fn a_control_stack_is_nobodys() {
    let text = "
        gate where
        mov %rsp, %rax
        ret
        gate f
        mov $1, %eax
        ret
        gate takes
        mov $1, %eax
        ret";
    let of = |effect| FunctionPolicy::of(&[effect]);
    let size = Size::Argument(1);
    let policy = Policy::new()
        .export("f", of(Effect::InOut(0, size)))
        .export("takes", of(Effect::Takes(0, size)));
    let (host, domain) = load("control", text, policy);
    let at = function::<Fn0>(&domain, "where")();
    let near = at & !0xfff;
    for (at, bytes) in [
        (at, 8),
        (near, 4096),
        (at - (1 << 21), 1 << 22),
        (near - 0x10_0000, 4),
    ] {
        // SAFETY: it must be refused.
        let granted = unsafe { host.grant(&domain, at as usize, bytes, false) };
        assert!(granted.is_err(), "{at:#x}");
        // SAFETY: it must be refused, so no domain gets memory by it.
        let prepared = unsafe { host.prepare(&domain, at as usize, bytes, true) };
        assert!(prepared.unwrap().grant().is_err());
        for name in ["f", "takes"] {
            assert_eq!(function::<Fn2>(&domain, name)(at, bytes as u64), 0);
            assert_eq!(kind(&domain), FaultKind::Policy, "{name}");
            domain.restart().unwrap();
        }
    }
    let private = Lease::new();
    // SAFETY: it must be refused, so no domain gets memory by it.
    assert!(unsafe { private.grant(domain, at as usize, 4, true) }.is_err());
    // The stacks of handlers: what a handler saves there is what the thread goes on with.
    // SAFETY: it asks.
    let alternate = unsafe {
        let mut stack: libc::stack_t = std::mem::zeroed();
        libc::sigaltstack(std::ptr::null(), &mut stack);
        stack
    };
    // SAFETY: it must be refused.
    let granted = unsafe { host.grant(&domain, alternate.ss_sp as usize, alternate.ss_size, true) };
    assert!(granted.is_err());
}

/// The table has two bytes for each word of a module, however few of them its file has.
#[test]
fn a_module_is_no_larger_than_its_limit() {
    let host = Host::new().unwrap();
    let large = module("large", "gate f\n ret\n .bss\n .zero 0x30000000\n .text");
    let of = |image| {
        Policy::new().limits(Limits {
            image,
            ..Limits::default()
        })
    };
    for policy in [Policy::new(), of(0x3000_0000)] {
        let loaded = host.load(&large, policy).map(drop);
        assert!(
            matches!(loaded, Err(LoadError::TooLarge { .. })),
            "{loaded:?}"
        );
    }
    let small = module("small", "gate f\n ret");
    let loaded = host.load(&small, of(4096)).map(drop);
    assert!(
        matches!(loaded, Err(LoadError::TooLarge { .. })),
        "{loaded:?}"
    );
    host.load(&small, of(1 << 16)).unwrap();
}

#[test]
fn two_exports_with_one_body_have_one_policy() {
    let text = "
        gate reads
        jmp 9f
        .globl writes
        .type writes, @function
        .p2align 4
writes: endbr64
        lea __mullion_call.reads(%rip), %r11
        jmp *mullion_slots+8(%rip)
        .p2align 4, 0xcc
9:      checked 2, 0, (%rdi), movl $1, (%rdi)
        mov $1, %eax
        ret";
    let host = Host::new().unwrap();
    let module = module("two", text);
    let of = |effect| FunctionPolicy::of(&[effect]);
    let size = Size::Bytes(4);
    let different = Policy::new()
        .export("reads", of(Effect::In(0, size)))
        .export("writes", of(Effect::InOut(0, size)));
    let one = Policy::new().export("writes", of(Effect::InOut(0, size)));
    for policy in [different, one.clone()] {
        let loaded = host.load(&module, policy).map(|_| ());
        assert!(
            matches!(loaded, Err(LoadError::SharedBody(..))),
            "{loaded:?}"
        );
    }
    let same = one.export("reads", of(Effect::InOut(0, size)));
    host.load(&module, same).unwrap();
}

#[test]
fn a_symbol_outside_of_the_module_is_none() {
    let text = ".globl far, near\n .set far, near + 0x100000000\n .data\n near: .quad 3\n .text\n gate f\n ret";
    let (_host, domain) = load("symbols", text, Policy::new());
    assert!(domain.symbol("near").is_some());
    assert_eq!(domain.symbol("far"), None);
    // The highest address of all, which a sum with the module's own exceeds.
    let mut bytes = build("symbols", text);
    let verified = verify(bytes.clone()).unwrap();
    let value = verified.symbols().find(|(_, symbol)| symbol.name == "far");
    let value = value.unwrap().1.address.unwrap().to_le_bytes();
    while let Some(at) = bytes.windows(8).position(|window| window == value) {
        bytes[at..at + 8].fill(0xff);
    }
    let module = Module::new("symbols", &verify(bytes).unwrap()).unwrap();
    let domain = Host::new().unwrap().load(&module, Policy::new()).unwrap();
    assert_eq!(domain.symbol("far"), None);
}

/// What the host's pool has given, and what came back.
static POOL: Mutex<Vec<u64>> = Mutex::new(Vec::new());
static KEPT: AtomicU64 = AtomicU64::new(0);

extern "C" fn pool_get(bytes: u64) -> u64 {
    let block = Box::leak(vec![0u64; (bytes / 8) as usize].into_boxed_slice());
    POOL.lock().unwrap().push(block.as_ptr() as u64);
    block.as_ptr() as u64
}

extern "C" fn pool_drop(block: u64) {
    let mut pool = POOL.lock().unwrap();
    let at = pool.iter().position(|known| *known == block);
    pool.remove(at.expect("a block of the pool"));
}

extern "C" fn keep(block: u64, _bytes: u64) {
    KEPT.store(block, Ordering::SeqCst);
}

const HOLDS: &str = "
    import malloc
    import free
    import pool_get
    import pool_drop
    import keep
    gate get
    call_import malloc
    ret
    gate give
    call_import free
    mov $1, %eax
    ret
    gate get_pool
    call_import pool_get
    ret
    gate give_pool
    call_import pool_drop
    mov $1, %eax
    ret
    gate hand_over
    call_import keep
    mov $1, %eax
    ret
    gate put
    checked 2, 0, (%rdi), mov %esi, (%rdi)
    mov $1, %eax
    ret
    gate stack
    mov %r15, %rax
    ret
    gate data
    lea own(%rip), %rax
    ret
    .data
own: .quad 1, 2, 3, 4
    .text";

fn holds() -> (Host, Domain) {
    let of = |effect| FunctionPolicy::of(&[effect]);
    // SAFETY: the pool is told of no block but its own, and `keep` keeps a number.
    let policy = unsafe {
        Policy::new()
            .allocators()
            .offer(
                "pool_get",
                pool_get as *const () as usize,
                Some(of(Effect::Gives(Size::Argument(0))).allocator("pool")),
            )
            .offer(
                "pool_drop",
                pool_drop as *const () as usize,
                Some(of(Effect::Frees(0)).allocator("pool")),
            )
            .offer(
                "keep",
                keep as *const () as usize,
                Some(of(Effect::Takes(0, Size::Argument(1)))),
            )
    };
    load("holds", HOLDS, policy)
}

#[test]
fn a_block_goes_back_to_its_own_allocator() {
    let (_host, domain) = holds();
    let call = |name: &str, a: u64| function::<Fn1>(&domain, name)(a);
    let (block, pooled) = (call("get", 64), call("get_pool", 64));
    for (name, wrong) in [("give_pool", block), ("give", pooled)] {
        assert_eq!(call(name, wrong), 0, "{name}");
        assert_eq!(kind(&domain), FaultKind::Policy);
        domain.restart().unwrap();
        assert!(
            !POOL.lock().unwrap().contains(&pooled),
            "the restart gave it back to the pool"
        );
        return_again(&domain);
    }
    let pooled = call("get_pool", 64);
    assert_eq!(call("give_pool", pooled), 1);
    domain.unload().unwrap();
}

/// Another module writes into them.
#[test]
fn a_report_names_the_allocator_of_a_block() {
    let ((_host, owner), (_other_host, other)) = (holds(), holds());
    for (name, said) in [
        ("get_pool", "that pool has given to holds"),
        ("get", "that was given to holds"),
    ] {
        let block = function::<Fn1>(&owner, name)(64);
        assert_eq!(function::<Fn2>(&other, "put")(block + 8, 1), 0);
        let report = other.take_report().expect("it was refused");
        assert!(report.object.contains(said), "{report}");
        assert!(report.object.contains("a block of 64 bytes"), "{report}");
        other.restart().unwrap();
    }
}

/// Blocks of both are there again.
fn return_again(domain: &Domain) {
    for name in ["get", "get_pool"] {
        assert_ne!(function::<Fn1>(domain, name)(64), 0);
    }
}

#[test]
fn what_is_handed_over_is_gone_as_a_whole() {
    let (host, domain) = holds();
    let call = |name: &str, a: u64, b: u64| function::<Fn2>(&domain, name)(a, b);
    let put = |address: u64| {
        let done = call("put", address, 7);
        let _said = domain.take_reports();
        if done == 0 {
            domain.restart().unwrap();
        }
        done == 1
    };
    // All of it goes, and it cannot be freed any more.
    let block = call("get", 64, 0);
    assert_eq!(call("hand_over", block, 64), 1);
    assert_eq!(KEPT.load(Ordering::SeqCst), block);
    assert!(!put(block + 60), "its end");
    assert_eq!(call("give", block, 0), 0, "it is the host's now");
    let _said = domain.take_reports();
    domain.restart().unwrap();
    // SAFETY: the host has it, and nobody else.
    unsafe { libc_free(block) };
    // A part, what is longer, and what is not lost by losing a right.
    type Place<'a> = (&'a str, &'a dyn Fn() -> (u64, u64));
    let wrong: [Place<'_>; 6] = [
        ("the beginning of a block", &|| (call("get", 64, 0), 8)),
        ("the middle of a block", &|| (call("get", 64, 0) + 16, 16)),
        ("more than a block", &|| (call("get", 64, 0), 4096)),
        ("the stack", &|| {
            (function::<Fn0>(&domain, "stack")() - 64, 16)
        }),
        ("data", &|| (function::<Fn0>(&domain, "data")(), 16)),
        ("memory of the host", &|| (cell(), 16)),
    ];
    for (what, place) in wrong {
        let (address, bytes) = place();
        assert_eq!(call("hand_over", address, bytes), 0, "{what}");
        assert_eq!(kind(&domain), FaultKind::Policy, "{what}");
        domain.restart().unwrap();
    }
    // What the host has granted for good can be given back to it.
    static LENT: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];
    let lent = LENT.as_ptr() as u64;
    // SAFETY: the module may write there.
    unsafe { host.grant(&domain, lent as usize, 32, true) }.unwrap();
    assert!(put(lent));
    assert_eq!(call("hand_over", lent, 32), 1);
    assert!(!put(lent));
}

/// # Safety
/// The block came from `malloc`.
unsafe fn libc_free(block: u64) {
    unsafe extern "C" {
        fn free(block: *mut std::ffi::c_void);
    }
    // SAFETY: the block came from `malloc`, and is freed once.
    unsafe { free(block as *mut _) }
}

#[test]
fn a_block_that_another_module_has_taken_cannot_be_freed_by_its_first_owner() {
    let host = Host::new().unwrap();
    let taker = "
        import free
        gate take
        mov $1, %eax
        ret
        gate put
        checked 2, 0, (%rdi), movl $1, (%rdi)
        mov $1, %eax
        ret
        gate give
        call_import free
        mov $1, %eax
        ret";
    let takes = FunctionPolicy::of(&[Effect::Takes(0, Size::Bytes(64))]);
    let policy = Policy::new().allocators().export("take", takes);
    let taker = host.load(&module("taker", taker), policy).unwrap();
    let giver = "
        import malloc
        import free
        import take
        gate pass
        mov $64, %edi
        call_import malloc
        sub $24, %r15
        mov %rax, (%r15)
        mov %rax, %rdi
        call_import take
        mov (%r15), %rax
        add $24, %r15
        ret
        gate give
        call_import free
        mov $1, %eax
        ret";
    let at = taker.function("take").unwrap() as usize;
    // SAFETY: it is a gate.
    let policy = unsafe { Policy::new().allocators().offer("take", at, None) };
    let giver = host.load(&module("giver", giver), policy).unwrap();
    let block = function::<Fn0>(&giver, "pass")();
    assert_ne!(block, 0);
    assert_eq!(function::<Fn1>(&taker, "put")(block), 1);
    assert_eq!(function::<Fn1>(&giver, "give")(block), 0);
    assert_eq!(kind(&giver), FaultKind::Policy);
    assert_eq!(function::<Fn1>(&taker, "give")(block), 1, "its owner may");
    assert_eq!(function::<Fn1>(&taker, "put")(block), 0);
}

#[test]
fn blocks_of_no_bytes_have_a_limit() {
    let text = "
        import malloc
        gate many
        sub $24, %r15
        mov %rbx, (%r15)
        mov %rdi, %rbx
1:      xor %edi, %edi
        call_import malloc
        test %rax, %rax
        je 2f
        dec %rbx
        jne 1b
2:      mov %rbx, %rax
        mov (%r15), %rbx
        add $24, %r15
        ret";
    let limits = Limits {
        memory: 64_000,
        ..Limits::default()
    };
    let (_host, domain) = load("many", text, Policy::new().allocators().limits(limits));
    assert_eq!(function::<Fn1>(&domain, "many")(1_500), 500);
    domain.unload().unwrap();
}

const FLOATS: &str = "
    import  divide
    gate    unmask
    sub     $24, %r15
    movl    $0, (%r15)              # no exception is masked, and all are flagged
    ldmxcsr (%r15)
    movw    $0x240, (%r15)
    fldcw   (%r15)
    call    stub.divide
    add     $24, %r15
    mov     (%r15), %r11
    ret
    gate    fault
    sub     $24, %r15
    movl    $0, (%r15)
    ldmxcsr (%r15)
    ud2
    add     $24, %r15
    mov     (%r15), %r11
    ret
stub.divide:
    jmp     *slot.divide(%rip)";

fn divides() -> f64 {
    std::hint::black_box(1.0) / std::hint::black_box(3.0)
}

extern "C" fn divide() -> u64 {
    u64::from(divides() > 0.3)
}

#[test]
fn the_host_computes_with_its_own_control_words() {
    let host = Host::new().unwrap();
    let module = Module::new("floats", &verify(build("floats", FLOATS)).unwrap()).unwrap();
    // SAFETY: it takes nothing.
    let policy = || unsafe { Policy::new().offer("divide", divide as *const () as usize, None) };
    let domain = host.load(&module, policy()).unwrap();
    // An inexact result is a trap with the module's words: SIGFPE in the host.
    assert_eq!(function::<Fn0>(&domain, "unmask")(), 1);
    assert!(divides() > 0.3);
    static HOOKED: OnceLock<f64> = OnceLock::new();
    host.on_fault(|report| {
        if report.module == "floats" {
            let _first = HOOKED.set(divides());
        }
    });
    assert_eq!(function::<Fn0>(&domain, "fault")(), 0);
    assert!(HOOKED.get().is_some_and(|third| *third > 0.3));
    assert!(divides() > 0.3);
}

/// A host that computes with the x87: 1, unless its stack is full.
extern "C" fn one_of_the_x87() -> u64 {
    let (mut value, one) = (0_f64, 1_f64);
    // SAFETY: a value more on the stack of the x87, and off again.
    unsafe {
        std::arch::asm!(
            "fld qword ptr [{one}]", "fstp qword ptr [{value}]",
            one = in(reg) &raw const one, value = in(reg) &raw mut value,
            out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
            out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
            options(nostack),
        );
    }
    // What does not fit there is not a number.
    u64::from(value == 1.0)
}

#[test]
fn a_module_leaves_the_stack_of_the_x87_empty() {
    let ones = "    fld1\n".repeat(8);
    let text = format!(
        "
    import  one
    gate    fill
{ones}    mov     $7, %eax
    ret
    gate    ask
{ones}    call    stub.one
    ret
stub.one:
    jmp     *slot.one(%rip)"
    );
    let host = Host::new().unwrap();
    let module = Module::new("ones", &verify(build("ones", &text)).unwrap()).unwrap();
    // SAFETY: it takes nothing.
    let policy = unsafe { Policy::new().offer("one", one_of_the_x87 as *const () as usize, None) };
    let domain = host.load(&module, policy).unwrap();
    // Behind a return, and behind a call of the host.
    assert_eq!(function::<Fn0>(&domain, "fill")(), 7);
    assert_eq!(one_of_the_x87(), 1);
    assert_eq!(function::<Fn0>(&domain, "ask")(), 1);
    assert_eq!(one_of_the_x87(), 1);
}

#[test]
fn a_module_computes_with_the_host_s_control_words_not_with_its_caller_s() {
    let host = Host::new().unwrap();
    let callee = "
        gate divide
        mov $1, %eax
        cvtsi2sd %eax, %xmm0
        mov $3, %eax
        cvtsi2sd %eax, %xmm1
        divsd %xmm1, %xmm0
        mov $1, %eax
        ret";
    let verified = verify(build("callee", callee)).unwrap();
    let callee = Module::new("callee", &verified).unwrap();
    let callee = host.load(&callee, Policy::new()).unwrap();
    let at = callee.function("divide").unwrap() as usize;
    // SAFETY: it is a gate.
    let policy = unsafe { Policy::new().offer("divide", at, None) };
    let caller = Module::new("caller", &verify(build("caller", FLOATS)).unwrap()).unwrap();
    let caller = host.load(&caller, policy).unwrap();
    // The first call of a thread takes another way.
    for _ in 0..3 {
        assert_eq!(function::<Fn0>(&caller, "unmask")(), 1);
    }
    assert!(callee.take_reports().is_empty() && caller.take_reports().is_empty());
}

/// An import has a policy, and leads to another module's gate. What that module is granted is what its caller has, and not what
/// the host would have.
#[test]
fn a_policy_of_an_import_makes_no_deputy_of_the_host() {
    let host = Host::new().unwrap();
    let callee = "
        gate poke
        checked 2, 0, (%rdi), movl $9, (%rdi)
        mov $1, %eax
        ret
        gate take
        checked 2, 0, (%rdi), movl $9, (%rdi)
        mov $1, %eax
        ret";
    let of = |effect| FunctionPolicy::of(&[effect]);
    let whole = Size::Bytes(64);
    let policy = Policy::new()
        .export("poke", of(Effect::InOut(0, Size::Bytes(4))))
        .export("take", of(Effect::Takes(0, whole)));
    let callee = host.load(&module("poked", callee), policy).unwrap();
    let caller = "
        import malloc
        import poke
        import take
        gate by_name
        call_import poke
        ret
        gate by_address
        mov %rsi, %rax
        call_by %rax
        ret
        gate gives
        mov $64, %edi
        call_import malloc
        mov %rax, %rdi
        call_import take
        ret";
    let [poke, take] = ["poke", "take"].map(|name| callee.function(name).unwrap() as usize);
    // SAFETY: they are gates.
    let policy = unsafe {
        Policy::new()
            .allocators()
            .offer("poke", poke, Some(of(Effect::In(1, Size::Bytes(0)))))
            .offer("take", take, Some(of(Effect::Takes(0, whole))))
    };
    let caller = host.load(&module("pokes", caller), policy).unwrap();
    let cells = [const { AtomicU64::new(1) }; 8];
    let at = cells.as_ptr() as u64;
    let poke_by = |name: &str| function::<Fn2>(&caller, name)(at, poke as u64);
    for name in ["by_name", "by_address"] {
        assert_eq!(poke_by(name), 0, "{name}");
        assert_eq!(cells[0].load(Ordering::SeqCst), 1, "{name}");
        let reports = callee.take_reports();
        assert_eq!(reports.len(), 1, "{name}: {reports:?}");
        assert_eq!(reports[0].kind, FaultKind::Policy, "{name}");
    }
    // SAFETY: the test's own.
    unsafe { host.grant(&caller, at as usize, 64, true) }.unwrap();
    for name in ["by_name", "by_address"] {
        assert_eq!(poke_by(name), 1, "{name}: {:?}", caller.take_reports());
        assert_eq!(cells[0].swap(1, Ordering::SeqCst), 9, "{name}");
    }
    assert_eq!(function::<Fn0>(&caller, "gives")(), 1);
    assert!(caller.take_reports().is_empty() && callee.take_reports().is_empty());
}
