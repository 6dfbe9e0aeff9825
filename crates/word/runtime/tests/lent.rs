//! Memory that is lent to a call that runs: it cannot be freed, resized or handed over, by another thread of the module or within
//! the call. What a module has for a call, it cannot give for good.

mod module;

use module::{function, module};
use mullion_word_runtime::{
    Domain, Effect, FaultKind, FunctionPolicy, Granted, Host, Policy, Size,
};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};

type Fn2 = extern "C" fn(u64, u64) -> u64;
type Fn3 = extern "C" fn(u64, u64, u64) -> u64;

const TEXT: &str = "
    import  malloc
    import  free
    import  realloc
    import  work
    import  vector
    import  keep
    gate    get
    call_import malloc
    ret
    gate    drop
    call_import free
    mov     $1, %eax
    ret
    gate    resize
    call_import realloc
    ret
    gate    work                    # the host works on %rsi bytes at %rdi
    call_import work
    ret
    gate    vectors                 # the host works on an array of vectors
    call_import vector
    ret
    gate    hand_over
    call_import keep
    mov     $1, %eax
    ret
    .irp    name, in_free, free_in, in_keep, in_resize, own
    import  \\name
    gate    with_\\name
    call_import \\name
    ret
    .endr
    gate    pass                    # calls the gate in %rdx
    mov     %rdx, %rax
    call_by %rax
    ret
    gate    put
    checked 2, 0, (%rdi), mov %esi, (%rdi)
    mov     $1, %eax
    ret
";

/// What the host does while it works.
type Job = Box<dyn FnOnce() + Send>;
static JOB: Mutex<Option<Job>> = Mutex::new(None);
static FREED: AtomicU64 = AtomicU64::new(0);

extern "C" fn work(_at: u64, _bytes: u64) -> u64 {
    let job = JOB.lock().unwrap().take();
    if let Some(job) = job {
        job();
    }
    7
}

/// How often the host was given memory for good.
static TAKEN: AtomicU64 = AtomicU64::new(0);

extern "C" fn keep(_at: u64, _bytes: u64) {
    TAKEN.fetch_add(1, Ordering::SeqCst);
}

unsafe extern "C" {
    fn malloc(bytes: u64) -> u64;
    fn realloc(at: u64, bytes: u64) -> u64;
    fn free(at: u64);
}

/// As `free`, and counts.
extern "C" fn counted_free(at: u64) {
    FREED.fetch_add(1, Ordering::SeqCst);
    // SAFETY: the gate has seen that it is a block.
    unsafe { free(at) };
}

fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn policy() -> Policy {
    let of = |effect| Some(FunctionPolicy::of(&[effect]));
    let (zero, one) = (Size::Argument(0), Size::Argument(1));
    let vectors =
        Size::Vectors(mullion_word_runtime::Number::of(1, mullion_word_runtime::Bits::U64).into());
    // SAFETY: they do what the test says with what the module may have.
    unsafe {
        Policy::new()
            .offer(
                "malloc",
                malloc as *const () as usize,
                of(Effect::Gives(zero)),
            )
            .offer(
                "free",
                counted_free as *const () as usize,
                of(Effect::Frees(0)),
            )
            .offer(
                "realloc",
                realloc as *const () as usize,
                of(Effect::Moves(0, one)),
            )
            .offer(
                "work",
                work as *const () as usize,
                of(Effect::InOut(0, one)),
            )
            .offer(
                "vector",
                work as *const () as usize,
                of(Effect::In(0, vectors)),
            )
            .offer(
                "keep",
                keep as *const () as usize,
                of(Effect::Takes(0, one)),
            )
    }
}

fn load(host: &Host, policy: Policy) -> Domain {
    host.load(&module("lent", TEXT), policy).unwrap()
}

fn call(domain: &Domain, name: &str, a: u64, b: u64) -> u64 {
    function::<Fn2>(domain, name)(a, b)
}

/// The refusal that there was.
fn refusal(domain: &Domain) -> String {
    let mut reports = domain.take_reports();
    assert_eq!(reports.len(), 1, "{reports:?}");
    let report = reports.remove(0);
    assert_eq!(report.kind, FaultKind::Policy, "{report}");
    report.object.into()
}

/// What must not be done with a block that is lent.
const WAYS: [(&str, u64); 3] = [("drop", 0), ("resize", 128), ("hand_over", 64)];

/// Does it while the host works on the block, and says what was answered.
fn while_it_works(domain: &Domain, block: u64, job: impl FnOnce() -> u64 + Send + 'static) -> u64 {
    static ANSWER: AtomicU64 = AtomicU64::new(0);
    ANSWER.store(99, Ordering::SeqCst);
    *JOB.lock().unwrap() = Some(Box::new(move || ANSWER.store(job(), Ordering::SeqCst)));
    call(domain, "work", block + 16, 8);
    ANSWER.load(Ordering::SeqCst)
}

#[test]
fn a_block_that_the_host_works_on_does_not_go() {
    let _turn = turn();
    let host = Host::new().unwrap();
    for (way, with) in WAYS {
        for on_a_thread in [false, true] {
            let domain = load(&host, policy());
            let block = call(&domain, "get", 64, 0);
            let other = call(&domain, "get", 64, 0);
            assert_ne!(block, 0);
            FREED.store(0, Ordering::SeqCst);
            let done = while_it_works(&domain, block, move || match on_a_thread {
                false => call(&domain, way, block, with),
                true => std::thread::spawn(move || call(&domain, way, block, with))
                    .join()
                    .unwrap(),
            });
            assert_eq!(done, 0, "{way} {on_a_thread}");
            assert!(refusal(&domain).contains("is lent to a call"), "{way}");
            assert_eq!(FREED.load(Ordering::SeqCst), 0, "{way}");
            // It is the module's block still: its end gives both back.
            domain.restart().unwrap();
            assert_eq!(FREED.load(Ordering::SeqCst), 2, "{way}");
            let _gone = other;
            domain.unload().unwrap();
        }
    }
}

/// Other blocks go, and so does this one before and behind the call.
#[test]
fn what_is_not_lent_goes() {
    let _turn = turn();
    let host = Host::new().unwrap();
    for (way, with) in WAYS {
        let domain = load(&host, policy());
        let [block, other, third] = [0; 3].map(|_| call(&domain, "get", 64, 0));
        let done = while_it_works(&domain, block, move || call(&domain, way, other, with));
        assert_ne!(done, 0, "{way}");
        assert_eq!(call(&domain, "work", third, 64), 7);
        let is_done = call(&domain, way, third, with) != 0;
        assert!(is_done, "{way}: {:?}", domain.take_reports());
        assert_ne!(call(&domain, way, block, with), 0, "{way}");
        assert!(domain.take_reports().is_empty());
    }
}

#[test]
fn vectors_are_lent_and_so_is_what_they_name() {
    let _turn = turn();
    let host = Host::new().unwrap();
    for which in 0..2 {
        let domain = load(&host, policy());
        let blocks = [0; 2].map(|_| call(&domain, "get", 64, 0));
        let [list, content] = blocks;
        for (at, word) in [(0, content), (8, 64)] {
            let put = function::<Fn2>(&domain, "put");
            assert_eq!(put(list + at, word & 0xffff_ffff), 1);
            assert_eq!(put(list + at + 4, word >> 32), 1);
        }
        static ANSWER: AtomicU64 = AtomicU64::new(0);
        *JOB.lock().unwrap() = Some(Box::new(move || {
            ANSWER.store(call(&domain, "drop", blocks[which], 0), Ordering::SeqCst);
        }));
        ANSWER.store(9, Ordering::SeqCst);
        call(&domain, "vectors", list, 1);
        assert_eq!(ANSWER.load(Ordering::SeqCst), 0, "{which}");
        assert!(refusal(&domain).contains("is lent to a call"));
    }
}

/// As `work`, of a function that has freed its second argument, or has it for good.
extern "C" fn works_behind(_lent: u64, gone: u64) -> u64 {
    FREED.fetch_add(1, Ordering::SeqCst);
    gone
}

/// One block as two arguments: the host would read through one what goes by the other. It does not matter in which order the
/// policy has them.
#[test]
fn what_one_argument_lends_does_not_go_by_another_one() {
    let _turn = turn();
    let host = Host::new().unwrap();
    let (lent, size) = (Effect::In(0, Size::Bytes(8)), Size::Bytes(64));
    let rows = [
        ("in_free", vec![lent, Effect::Frees(1)]),
        ("free_in", vec![Effect::Frees(1), lent]),
        ("in_keep", vec![lent, Effect::Takes(1, size)]),
        ("in_resize", vec![lent, Effect::Moves(1, size)]),
        ("own", vec![lent, Effect::Frees(0)]),
    ];
    let offered = rows.iter().fold(policy(), |policy, (name, effects)| {
        let work = works_behind as *const () as usize;
        // SAFETY: it touches nothing.
        unsafe { policy.offer(name, work, Some(FunctionPolicy::of(effects))) }
    });
    for (name, _) in &rows {
        let way = format!("with_{name}");
        let domain = load(&host, offered.clone());
        FREED.store(0, Ordering::SeqCst);
        let [one, other] = [0; 2].map(|_| call(&domain, "get", 64, 0));
        // Two blocks are two matters, and so is what an argument lends itself.
        assert_eq!(call(&domain, &way, one, other), other, "{name}");
        assert_eq!(FREED.load(Ordering::SeqCst), 1, "{name}");
        assert!(domain.take_reports().is_empty(), "{name}");
        if *name == "own" {
            continue;
        }
        let block = call(&domain, "get", 64, 0);
        assert_eq!(call(&domain, &way, block, block), 0, "{name}");
        assert_eq!(
            FREED.load(Ordering::SeqCst),
            1,
            "{name}: the host was called"
        );
        let what = refusal(&domain);
        assert!(what.contains("by another argument"), "{name}: {what}");
    }
}

/// A module has the block of another one as an argument. If it were freed, the callee would write into whatever is there next.
#[test]
fn a_block_that_another_module_has_as_an_argument_does_not_go() {
    let _turn = turn();
    let host = Host::new().unwrap();
    static MEET: [Barrier; 2] = [Barrier::new(2), Barrier::new(2)];
    extern "C" fn wait() {
        MEET[0].wait();
        MEET[1].wait();
    }
    let text = "
        import wait
        gate fill
        sub $24, %r15
        mov %rdi, (%r15)
        call_import wait
        mov (%r15), %rdi
        add $24, %r15
        checked 2, 0, (%rdi), movl $5, (%rdi)
        mov $1, %eax
        ret";
    let inout = FunctionPolicy::of(&[Effect::InOut(0, Size::Argument(1))]);
    // SAFETY: it takes nothing.
    let waits = unsafe { Policy::new().offer("wait", wait as *const () as usize, None) };
    let callee = module("callee", text);
    for (way, with) in WAYS {
        let callee = host
            .load(&callee, waits.clone().export("fill", inout.clone()))
            .unwrap();
        let caller = load(&host, policy());
        host.link(&caller, &callee, "fill").unwrap();
        let block = call(&caller, "get", 64, 0);
        let gate = callee.function("fill").unwrap() as u64;
        let (done, passed) = std::thread::scope(|scope| {
            let thread = scope.spawn(|| function::<Fn3>(&caller, "pass")(block, 64, gate));
            MEET[0].wait();
            let done = call(&caller, way, block, with);
            MEET[1].wait();
            (done, thread.join().unwrap())
        });
        assert_eq!(done, 0, "{way}");
        assert!(refusal(&caller).contains("is lent to a call"), "{way}");
        assert!(callee.take_reports().is_empty(), "{way}: it may write");
        let _ended = passed;
    }
}

/// Threads pass blocks and free blocks of their own, all the time: nothing is refused.
#[test]
fn threads_that_lend_and_free_their_own_do_not_meet() {
    let _turn = turn();
    let host = Host::new().unwrap();
    let domain = load(&host, policy());
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..2_000 {
                    let block = call(&domain, "get", 48, 0);
                    assert_eq!(call(&domain, "work", block, 48), 7);
                    assert_eq!(call(&domain, "drop", block, 0), 1);
                }
            });
        }
    });
    assert!(domain.take_reports().is_empty());
}

/// Two threads give the same memory away, each its way. How often it went, at most.
fn goes(host: &Host, domain: &Domain, (one, other): (&str, &str), is_block: bool) -> u64 {
    const ROUNDS: u64 = 400;
    let gone = || TAKEN.load(Ordering::SeqCst) + FREED.load(Ordering::SeqCst);
    let (start, end, at) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let until = |turn: &AtomicU64, round| {
        while turn.load(Ordering::SeqCst) != round {
            std::hint::spin_loop();
        }
    };
    let memory = vec![0u64; 8 * ROUNDS as usize];
    let mut most = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=ROUNDS {
                until(&start, round);
                call(domain, other, at.load(Ordering::SeqCst), 64);
                end.store(round, Ordering::SeqCst);
            }
        });
        for round in 1..=ROUNDS {
            let address = match is_block {
                true => call(domain, "get", 64, 0),
                false => memory.as_ptr() as u64 + 64 * (round - 1),
            };
            if !is_block {
                // SAFETY: the test's own.
                unsafe { host.grant(domain, address as usize, 64, true) }.unwrap();
            }
            at.store(address, Ordering::SeqCst);
            let before = gone();
            start.store(round, Ordering::SeqCst);
            call(domain, one, address, 64);
            until(&end, round);
            most = most.max(gone() - before);
            domain.restart().unwrap();
        }
    });
    most
}

/// Otherwise the host would free something twice, or use what it has freed.
#[test]
fn what_two_threads_give_away_goes_once() {
    let _turn = turn();
    let host = Host::new().unwrap();
    let domain = load(&host, policy());
    for (ways, is_block) in [
        (("hand_over", "hand_over"), true),
        (("hand_over", "hand_over"), false),
        (("hand_over", "drop"), true),
        (("drop", "drop"), true),
    ] {
        assert_eq!(
            goes(&host, &domain, ways, is_block),
            1,
            "{ways:?} {is_block}"
        );
    }
}

/// What a module has for a call, or as long as the host says, is not its own to give.
#[test]
fn what_is_lent_to_a_module_is_not_handed_over() {
    let _turn = turn();
    let host = Host::new().unwrap();
    let inout = FunctionPolicy::of(&[Effect::InOut(0, Size::Argument(1))]);
    let cells = [const { AtomicU64::new(0) }; 4];
    let at = cells.as_ptr() as u64;
    let domain = load(&host, policy().export("hand_over", inout));
    assert_eq!(call(&domain, "hand_over", at, 32), 0, "for the call");
    assert!(refusal(&domain).contains("is lent to the module"));
    let domain = load(&host, policy());
    // SAFETY: the test's own.
    let granted: Granted = unsafe { host.grant_for(&domain, at as usize, 32, true) }.unwrap();
    assert_eq!(call(&domain, "hand_over", at + 8, 8), 0, "for a time");
    assert!(refusal(&domain).contains("is lent to the module"));
    domain.restart().unwrap();
    drop(granted);
    // For good: that can be given back.
    // SAFETY: the test's own.
    unsafe { host.grant(&domain, at as usize, 32, true) }.unwrap();
    assert_eq!(call(&domain, "put", at, 1), 1);
    assert_eq!(call(&domain, "hand_over", at, 32), 1);
    assert_eq!(call(&domain, "put", at, 1), 0);
}

/// What was handed over to it is.
#[test]
fn what_was_handed_over_can_be_handed_on() {
    let _turn = turn();
    let host = Host::new().unwrap();
    let takes = FunctionPolicy::of(&[Effect::Takes(0, Size::Argument(1))]);
    let cells = [const { AtomicU64::new(0) }; 4];
    let at = cells.as_ptr() as u64;
    let domain = load(&host, policy().export("put", takes));
    assert_eq!(call(&domain, "put", at, 32), 1);
    assert_eq!(call(&domain, "hand_over", at, 32), 1);
    assert!(domain.take_reports().is_empty());
}
