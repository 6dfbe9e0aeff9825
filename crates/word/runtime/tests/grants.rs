//! Rights for the length of calls: no more and no less, also where calls repeat, overlap, nest, and come from threads.

mod module;

use module::{function, module};
use mullion_supervisor::Permission;
use mullion_word_runtime::{Domain, Effect, FaultKind, FunctionPolicy, Host, Policy, Size};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};

type Fn2 = extern "C" fn(u64, u64) -> u64;
type Fn3 = extern "C" fn(u64, u64, u64) -> u64;

const TEXT: &str = "
    import  back
    import  take
    import  give
    gate    fill                    # InOut(0, Argument(1)): each of %rsi / 4 words gets one more
1:  test    %rsi, %rsi
    je      2f
    checked 2, -4, \"(%rdi,%rsi)\", incl -4(%rdi,%rsi)
    sub     $4, %rsi
    jmp     mullion_fill
2:  mov     $1, %eax
    ret
    .set    mullion_fill, __mullion_call.fill
    gate    beyond                  # as fill, and one word more
    checked 2, 0, \"(%rdi,%rsi)\", incl (%rdi,%rsi)
    mov     $1, %eax
    ret
    gate    look                    # without a policy
    checked 1, 0, (%rdi), mov (%rdi), %eax
    ret
    gate    misread                 # In(0, Argument(1)), Out(2, Argument(3)): writes what it may only read
    test    %rsi, %rsi
    je      3f
    checked 2, 0, (%rdi), incl (%rdi)
3:  mov     $1, %eax
    ret
    gate    nothing                 # without a policy, touches nothing
    mov     $3, %eax
    ret
    gate    nested                  # fill's policy; the host, and then the first word
    sub     $24, %r15
    mov     %rdi, (%r15)
    call_import back
    mov     (%r15), %rdi
    add     $24, %r15
    checked 2, 0, (%rdi), incl (%rdi)
    mov     $1, %eax
    ret
    gate    many                    # ten pieces of 8 bytes from %rdi on; reads at %rsi
    checked 1, 0, (%rsi), mov (%rsi), %eax
    bts     $32, %rax
    ret
    gate    get
    call_import take
    ret
    gate    drop
    call_import give
    ret
";

thread_local! {
    static BACK: std::cell::RefCell<Option<Box<dyn Fn()>>> = const { std::cell::RefCell::new(None) };
}

extern "C" fn back() {
    BACK.with_borrow(|back| {
        if let Some(back) = back {
            back();
        }
    });
}

static BLOCK: [AtomicU64; 8] = [const { AtomicU64::new(0) }; 8];

/// An allocator with one block.
extern "C" fn take(_: u64) -> u64 {
    BLOCK.as_ptr() as u64
}

extern "C" fn give(_: u64) {}

fn load() -> (Host, Domain) {
    let host = Host::new().unwrap();
    let piece = || FunctionPolicy::of(&[Effect::InOut(0, Size::Argument(1))]);
    let back = back as *const () as usize;
    // SAFETY: it runs what the test says.
    let policy = unsafe {
        let gives = FunctionPolicy::of(&[Effect::Gives(Size::Argument(0))]);
        let frees = FunctionPolicy::of(&[Effect::Frees(0)]);
        Policy::new()
            .offer("back", back, None)
            .offer("take", take as *const () as usize, Some(gives))
            .offer("give", give as *const () as usize, Some(frees))
    };
    let policy = policy
        .export("fill", piece())
        .export("beyond", piece())
        .export("nested", piece())
        .export(
            "misread",
            FunctionPolicy::of(&[
                Effect::In(0, Size::Argument(1)),
                Effect::Out(2, Size::Argument(3)),
            ]),
        )
        .export(
            "many",
            FunctionPolicy::of(&[Effect::In(0, Size::Bytes(8)); 10]),
        );
    let domain = host.load(&module("grants", TEXT), policy).unwrap();
    (host, domain)
}

fn call(domain: &Domain, name: &str, at: u64, bytes: u64) -> u64 {
    function::<Fn2>(domain, name)(at, bytes)
}

fn refused(domain: &Domain) -> Option<u64> {
    let mut reports = domain.take_reports();
    assert_eq!(reports.len(), 1, "{reports:?}");
    let report = reports.remove(0);
    assert_eq!(report.kind, FaultKind::Access, "{report}");
    domain.restart().unwrap();
    report.address
}

fn none(domain: &Domain, at: u64) {
    assert_eq!(domain.permission(at as usize), Permission::None);
}

/// More calls than it takes until rights are kept between them.
const MANY: u32 = 300;

/// Each call has what it is granted, whoever takes the bias away meanwhile.
#[test]
fn threads_that_move_their_rights_are_granted_them() {
    let (_host, domain) = load();
    let work = |calls: u64| {
        let mut cells = vec![0u32; 64];
        let base = cells.as_mut_ptr() as u64;
        for round in 0..calls {
            let at = round * 7 % 60;
            assert_eq!(call(&domain, "fill", base + 4 * at, 8 + round % 3 * 4), 1);
        }
        assert!(cells.iter().map(|cell| u64::from(*cell)).sum::<u64>() > 2 * calls);
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..2_000 {
                none(&domain, (&raw const domain).addr() as u64);
                std::thread::yield_now();
            }
        });
        let workers = [(); 2].map(|()| scope.spawn(|| work(4_000)));
        work(4_000);
        for worker in workers {
            worker.join().unwrap();
        }
    });
    assert!(domain.take_reports().is_empty());
}

/// The gate moves what is kept to other arguments: these have what they are granted, and nothing else has.
#[test]
fn a_right_that_is_kept_moves_with_the_arguments() {
    let (host, domain) = load();
    let mut cells = vec![0u32; 1 << 16];
    let base = cells.as_mut_ptr() as u64;
    let mut wanted = vec![0u32; cells.len()];
    let (mut state, mut stale) = (7u64, 0);
    let mut below = |limit: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
        (state >> 33) % limit
    };
    for round in 0..6_000 {
        // Mostly near each other; sometimes in another slab, or across a border of two.
        let at = match below(8) {
            0 => below(60_000),
            1 => 16_384 - below(8),
            _ => 1_000 + below(40),
        };
        let (words, before) = (below(5), at);
        let place = base + 4 * at;
        assert_eq!(call(&domain, "fill", place, 4 * words), 1);
        (at..at + words).for_each(|at| wanted[at as usize] += 1);
        if round < 200 || below(20) != 0 {
            continue;
        }
        stale += 1;
        match below(4) {
            // The next word is not granted.
            0 => {
                assert_eq!(call(&domain, "beyond", place + 4, 4 * words), 0);
                assert_eq!(refused(&domain), Some(place + 4 + 4 * words));
            }
            // The words of the call before are not.
            1 if words > 0 => {
                assert_eq!(call(&domain, "fill", base + 4 * 50_000, 8), 1);
                wanted[50_000] += 1;
                wanted[50_001] += 1;
                assert_eq!(call(&domain, "look", base + 4 * before, 0), 0);
                assert_eq!(refused(&domain), Some(base + 4 * before));
            }
            2 => none(&domain, place),
            _ => {
                host.revoke(place as usize, 4).unwrap();
                none(&domain, place);
            }
        }
    }
    assert!(stale > 100);
    assert!(cells == wanted);
}

/// One piece is kept, and another call wants one piece, too: of the other argument, and only to be read.
#[test]
fn a_kept_right_to_write_does_not_move_to_what_is_only_read() {
    type Fn4 = extern "C" fn(u64, u64, u64, u64) -> u64;
    let (_host, domain) = load();
    let mut cells = vec![0u32; 1 << 10];
    let base = cells.as_mut_ptr() as u64;
    let misread = function::<Fn4>(&domain, "misread");
    for at in 0..MANY {
        let place = base + 4 * u64::from(at % 64);
        assert_eq!(misread(base, 0, place, 8), 1);
    }
    assert_eq!(misread(base + 128, 8, base, 0), 0);
    assert_eq!(refused(&domain), Some(base + 128));
    assert!(cells.iter().all(|cell| *cell == 0));
}

#[test]
fn a_right_that_is_kept_serves_no_other_call() {
    let (host, domain) = load();
    let mut cells = [0u32; 8];
    let at = cells.as_mut_ptr() as u64;
    for other in [
        "look",
        "beyond",
        "thread",
        "smaller",
        "permission",
        "nothing",
    ] {
        for _ in 0..MANY {
            assert_eq!(call(&domain, "fill", at, 16), 1);
        }
        match other {
            "look" => assert_eq!(call(&domain, other, at, 0), 0),
            // The same piece as before, and the word behind it.
            "beyond" => {
                assert_eq!(call(&domain, other, at, 16), 0);
                assert_eq!(refused(&domain), Some(at + 16));
                continue;
            }
            "thread" => std::thread::scope(|scope| {
                scope.spawn(|| assert_eq!(call(&domain, "look", at, 0), 0));
            }),
            // A part of it does not bring the rest.
            "smaller" => {
                assert_eq!(call(&domain, "beyond", at, 4), 0);
                assert_eq!(refused(&domain), Some(at + 4));
                continue;
            }
            "permission" => {
                none(&domain, at);
                continue;
            }
            _ => {
                assert_eq!(call(&domain, other, at, 0), 3);
                none(&domain, at);
                continue;
            }
        }
        assert_eq!(refused(&domain), Some(at), "{other}");
    }
    assert_eq!(cells[..4], [6 * MANY; 4]);
    for _ in 0..MANY {
        assert_eq!(call(&domain, "fill", at, 16), 1);
    }
    // Taken away while it is kept: the next call has it again.
    host.revoke(at as usize, 8).unwrap();
    assert_eq!(call(&domain, "fill", at, 16), 1);
    domain.restart().unwrap();
    none(&domain, at);
    assert_eq!(call(&domain, "fill", at, 16), 1);
    domain.unload().unwrap();
}

/// A block that the module has anyway is granted again once it has not.
#[test]
fn what_was_the_modules_own_is_granted_when_it_is_not() {
    let (_host, domain) = load();
    let block = call(&domain, "get", 64, 0);
    for _ in 0..MANY {
        assert_eq!(call(&domain, "fill", block, 64), 1);
    }
    call(&domain, "drop", block, 0);
    assert_eq!(call(&domain, "fill", block + 32, 16), 1);
    assert_eq!(call(&domain, "fill", block, 64), 1);
    assert!(domain.take_reports().is_empty());
    none(&domain, block + 32);
}

extern "C" fn end_thread() {
    // SAFETY: nothing on this thread's stack is to be dropped.
    unsafe { libc::pthread_exit(std::ptr::null_mut()) }
}

/// What one call of another thread is to do: the function, its argument, and how many calls go before it.
struct Last(Fn2, u64, u64);

extern "C" fn call_last(last: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: the thread that has made this one waits for it, and has the value.
    let Last(function, argument, before) = unsafe { &*last.cast::<Last>() };
    (0..*before).for_each(|_| assert_eq!(function(*argument, 0), 1));
    function(*argument, 1);
    std::ptr::null_mut()
}

/// A host may end a thread within a function that a module has called. The call never returns, and what it was granted ends.
#[test]
fn what_a_call_was_granted_ends_with_its_thread() {
    let text = "
    import  end
    gate    f
    test    %rsi, %rsi
    jz      1f
    call_import end
1:  mov     $1, %eax
    ret";
    // SAFETY: it ends the thread.
    let policy = unsafe { Policy::new().offer("end", end_thread as *const () as usize, None) };
    let eight = FunctionPolicy::of(&[Effect::InOut(0, Size::Bytes(8))]);
    let host = Host::new().unwrap();
    let domain = host
        .load(&module("ends", text), policy.export("f", eight))
        .unwrap();
    for before in [0, 300] {
        let cell = Box::new(0u64);
        let address = std::ptr::from_ref(&*cell) as usize;
        let mut last = Last(function(&domain, "f"), address as u64, before);
        let mut thread = 0;
        // SAFETY: `last` is there until the thread has ended.
        unsafe {
            let last = (&raw mut last).cast();
            let made = libc::pthread_create(&mut thread, std::ptr::null(), call_last, last);
            assert_eq!(made, 0);
            assert_eq!(libc::pthread_join(thread, std::ptr::null_mut()), 0);
        }
        assert_eq!(domain.permission(address), Permission::None, "{before}");
    }
    domain.unload().expect("nobody is inside");
}

#[test]
fn a_thread_takes_what_it_kept_with_it() {
    let (_host, domain) = load();
    let cells = [0u32; 8];
    let at = cells.as_ptr() as u64;
    for _ in 0..3 {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..MANY {
                    assert_eq!(call(&domain, "fill", at, 32), 1);
                }
            });
        });
        assert_eq!(call(&domain, "look", at, 0), 0);
        assert_eq!(refused(&domain), Some(at));
    }
}

/// A thread that keeps a right ends just when another one calls, which must not find the right that is about to go.
#[test]
fn nobody_enters_while_what_was_kept_is_taken_back() {
    const ROUNDS: u32 = 1_500;
    let (_host, domain) = load();
    let cells = [1u32; 8];
    let at = cells.as_ptr() as u64;
    let (mut found, mut refused) = (0, 0);
    for round in 0..ROUNDS {
        let pause = round * 7 % 2_000;
        let (begin, done) = (&Barrier::new(2), &AtomicU64::new(0));
        let domain = &domain;
        std::thread::scope(|scope| {
            scope.spawn(move || {
                begin.wait();
                for _ in 0..MANY {
                    assert_eq!(call(domain, "fill", at, 32), 1);
                }
                done.store(1, Ordering::Release);
            });
            let look = scope.spawn(move || {
                // It has a stack before it is to be quick.
                assert_eq!(call(domain, "nothing", 0, 0), 3);
                begin.wait();
                while done.load(Ordering::Acquire) == 0 {
                    std::hint::spin_loop();
                }
                // From when the thread is done until it has gone.
                (0..pause).for_each(|_| std::hint::spin_loop());
                call(domain, "look", at, 0) != 0
            });
            found += u32::from(look.join().unwrap());
        });
        refused += domain.take_reports().len();
        domain.restart().unwrap();
    }
    assert!(refused > 0);
    assert_eq!(found, 0, "in {ROUNDS} rounds");
}

/// Within a call that is the one before it again, all may happen that may happen within others.
#[test]
fn a_repeated_call_is_as_any_other() {
    let (host, domain) = load();
    let cells: &'static mut [u32; 16] = Box::leak(Box::new([0; 16]));
    let at = cells.as_mut_ptr() as u64;
    let repeat = || {
        BACK.set(None);
        for _ in 0..MANY {
            assert_eq!(call(&domain, "nested", at, 16), 1);
        }
    };
    // Another thread comes while the call runs: what was granted goes with the call, and not before.
    repeat();
    BACK.set(Some(Box::new(move || {
        std::thread::scope(|scope| {
            scope.spawn(|| assert_eq!(call(&domain, "fill", at + 32, 8), 1));
        });
    })));
    assert_eq!(call(&domain, "nested", at, 16), 1);
    assert_eq!(call(&domain, "look", at, 0), 0);
    assert_eq!(refused(&domain), Some(at));
    // It ends by a fault, and what another thread has taken the bias of goes with it.
    repeat();
    BACK.set(Some(Box::new(move || {
        host.revoke(at as usize, 4).unwrap();
    })));
    assert_eq!(call(&domain, "nested", at, 16), 0);
    assert!(domain.is_ended());
    (0..8).for_each(|word| none(&domain, at + 4 * word));
    assert_eq!(refused(&domain), Some(at));
    // Another function, another size, another place.
    repeat();
    assert_eq!(call(&domain, "fill", at, 16), 1);
    assert_eq!(call(&domain, "nested", at, 12), 1);
    assert_eq!(call(&domain, "nested", at + 4, 12), 1);
    assert_eq!(call(&domain, "beyond", at + 4, 12), 0);
    assert_eq!(refused(&domain), Some(at + 16));
    // The module is ended by a call on another thread; this one's next call is none.
    repeat();
    std::thread::scope(|scope| {
        scope.spawn(|| assert_eq!(call(&domain, "look", at, 0), 0));
    });
    assert_eq!(call(&domain, "nested", at, 16), 0);
    assert_eq!(refused(&domain), Some(at));
    repeat();
}

/// Calls within calls with overlapping pieces: the inner one's end takes nothing from the outer one.
#[test]
fn pieces_of_nested_calls_overlap() {
    let (host, domain) = load();
    let cells: &'static mut [u32; 16] = Box::leak(Box::new([0; 16]));
    let at = cells.as_mut_ptr() as u64 + 16;
    for (inner, bytes) in [(at, 8), (at, 32), (at - 16, 32), (at + 4, 4), (at + 8, 32)] {
        BACK.set(Some(Box::new(move || {
            assert_eq!(call(&domain, "fill", inner, bytes), 1);
        })));
        for _ in 0..3 {
            assert_eq!(call(&domain, "nested", at, 16), 1, "{inner:#x} {bytes}");
        }
        (0..12).for_each(|word| none(&domain, at + 4 * word));
    }
    // What is taken away for good within a call does not come back at its end.
    BACK.set(Some(Box::new(move || {
        host.revoke(at as usize, 16).unwrap()
    })));
    assert_eq!(call(&domain, "nested", at, 16), 0);
    assert_eq!(refused(&domain), Some(at));
    (0..12).for_each(|word| none(&domain, at + 4 * word));
    // And what is given for good stays.
    BACK.set(Some(Box::new(move || {
        // SAFETY: the memory is the test's.
        unsafe { host.grant(&domain, at as usize, 4, false) }.unwrap();
    })));
    assert_eq!(call(&domain, "nested", at, 16), 1);
    assert_eq!(domain.permission(at as usize), Permission::Read);
    none(&domain, at + 4);
    host.revoke(at as usize, 16).unwrap();
    BACK.set(None);
}

/// Grants by hand in random order, against the permissions that each word should have.
#[test]
fn overlapping_grants_agree_with_a_count() {
    let (host, domain) = load();
    let cells = Box::new([0u32; 24]);
    let at = cells.as_ptr() as usize;
    let mut state = 7u64;
    let mut random = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % below
    };
    let mut base = [0u8; 24];
    let mut held = Vec::new();
    for step in 0..4_000 {
        let first = random(20) as usize;
        let count = 1 + random(4) as usize;
        let write = random(2) == 1;
        let level = 1 + u8::from(write);
        // SAFETY: the domain runs no code.
        unsafe {
            match random(16) {
                0 => {
                    host.grant(&domain, at + 4 * first, 4 * count, write)
                        .unwrap();
                    let words = base[first..first + count].iter_mut();
                    words.for_each(|word| *word = level.max(*word));
                }
                1 => {
                    host.revoke(at + 4 * first, 4 * count).unwrap();
                    base[first..first + count].fill(0);
                    for (_, words) in &mut held {
                        let words: &mut [u8; 24] = words;
                        words[first..first + count].fill(0);
                    }
                }
                2..8 if held.len() < 6 => {
                    let granted = host.grant_for(&domain, at + 4 * first, 4 * count, write);
                    let mut words = [0u8; 24];
                    words[first..first + count].fill(level);
                    held.push((granted.unwrap(), words));
                }
                _ if !held.is_empty() => {
                    let gone = random(held.len() as u64) as usize;
                    drop(held.swap_remove(gone));
                }
                _ => {}
            }
        }
        for word in 0..24 {
            let most = held.iter().map(|(_, words)| words[word]).max();
            let expected = match most.unwrap_or(0).max(base[word]) {
                0 => Permission::None,
                1 => Permission::Read,
                _ => Permission::ReadWrite,
            };
            assert_eq!(
                domain.permission(at + 4 * word),
                expected,
                "step {step}, word {word}"
            );
        }
    }
}

/// Threads with buffers of their own, and one that they share: each call has what it needs, and nothing stays.
#[test]
fn threads_have_what_they_need_and_no_more() {
    let (_host, domain) = load();
    const ROUNDS: u32 = 2_000;
    let shared = AtomicU64::new(0);
    let common = [const { AtomicU64::new(0) }; 4];
    let start = Barrier::new(3);
    std::thread::scope(|scope| {
        for thread in 0..3u32 {
            let (shared, start, common) = (&shared, &start, &common);
            scope.spawn(move || {
                let mut cells = [0u32; 12];
                let at = cells.as_mut_ptr() as u64;
                start.wait();
                for round in 0..ROUNDS {
                    // Long runs of one piece, then another one.
                    let first = u64::from(round / 200 % 2);
                    assert_eq!(call(&domain, "fill", at + 16 * first, 32), 1);
                    if round % 50 == thread {
                        let at = common.as_ptr() as u64 + 8 * u64::from(thread);
                        assert_eq!(call(&domain, "fill", at, 16), 1);
                        shared.fetch_add(1, Ordering::Relaxed);
                    }
                }
                assert_eq!(cells[..4], [ROUNDS / 2; 4]);
                assert_eq!(cells[4..8], [ROUNDS; 4]);
                none(&domain, at + 8);
            });
        }
    });
    assert!(domain.take_reports().is_empty());
    assert_eq!(shared.load(Ordering::Relaxed), u64::from(3 * ROUNDS / 50));
    let cells = [0u32; 4];
    assert_eq!(
        function::<Fn3>(&domain, "look")(cells.as_ptr() as u64, 0, 0),
        0
    );
}

/// What is kept of the calls before is no part of a call that is granted more pieces than are kept.
#[test]
fn a_call_with_many_pieces_has_nothing_of_the_call_before() {
    let (_host, domain) = load();
    let cells = [const { AtomicU64::new(3) }; 4];
    let (at, other) = (cells[0].as_ptr() as u64, cells[2].as_ptr() as u64);
    for _ in 0..MANY {
        assert_eq!(call(&domain, "fill", at, 8), 1);
    }
    assert_eq!(call(&domain, "many", other, other), 1 << 32 | 3, "its own");
    for _ in 0..MANY {
        assert_eq!(call(&domain, "fill", at, 8), 1);
    }
    assert_eq!(call(&domain, "many", other, at), 0, "the other call's");
    assert_eq!(refused(&domain), Some(at));
    assert_eq!(call(&domain, "fill", at, 8), 1);
    none(&domain, at);
}
