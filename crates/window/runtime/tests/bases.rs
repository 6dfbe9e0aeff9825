//! Domains with and without memory accesses through `%gs`, calling each other in every
//! order: each finds its own memory, and the base is written for those that use it only.

mod support;

use mullion_runtime::{
    CallArguments, CallError, CallLimits, Cause, Claimed, Entry, Limits, LinkOptions, Returned,
    WindowDomain,
};
use std::cell::RefCell;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use support::{Loaded, Program, host};

/// `find` reads the word `self`, which holds its own address, by the form that is tested.
/// `through` calls `look`, `other` and `look`, and traps if the word is not the same all the time.
const PROGRAM: &str = "
    .data
    .balign 8
    self: .quad self
    .text
    import other
    import look
    export through
        subq $24, %r15
        movq %rbx, 8(%r15)
        find
        movq %rax, %rbx
        call look
        find
        cmpq %rbx, %rax
        jne 1f
        call other
        movq %rax, 16(%r15)
        find
        cmpq %rbx, %rax
        jne 1f
        call look
        find
        cmpq %rbx, %rax
        jne 1f
        movq 16(%r15), %rax
        addq $1, %rax
        movq 8(%r15), %rbx
        addq $24, %r15
        testb $0, -8(%r15)
        ret
    1:  ud1 %eax, %eax
    export wrong
        find
        call look
        movl $8, %r11d
        movq (%r14,%r11), %rax
        ret
    export forever
        find
        call look
    1:  jmp 1b
    export mine
        find
        ret
";

const FIND_BY_SEGMENT: &str = "
    .macro find
        leal self(%rip), %r11d
        movq %gs:(%r11d), %rax
    .endm
";
const FIND_BY_REGISTER: &str = "
    .macro find
        leal self(%rip), %r11d
        movq (%r14,%r11), %rax
    .endm
";

/// What the thread's base is when nothing of the run time's has written it: no window.
const NOBODY: u64 = 0x1234_5000;

thread_local! {
    /// The base at each call of `look` on this thread.
    static SEEN: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

fn base() -> u64 {
    let base: u64;
    // SAFETY: the run time needs the instruction, too.
    unsafe { std::arch::asm!("rdgsbase {}", out(reg) base) };
    base
}

struct Programs {
    segment: Program,
    register: Program,
}

impl Programs {
    fn new() -> Self {
        Self {
            segment: Program::lean(&format!("{FIND_BY_SEGMENT}{PROGRAM}")),
            register: Program::leanest(&format!("{FIND_BY_REGISTER}{PROGRAM}")),
        }
    }

    fn load(&self, segment: bool, other: mullion_runtime::HostFunction) -> Loaded {
        let look = host(|_| {
            SEEN.with_borrow_mut(|seen| seen.push(base()));
            Ok(0)
        });
        let program = if segment {
            &self.segment
        } else {
            &self.register
        };
        program.load_with(vec![other, look], Limits::default())
    }
}

fn entry(domain: &Loaded, name: &str) -> Entry {
    domain.domain.entry(Claimed(domain.address(name))).unwrap()
}

/// How the last domain of a chain ends.
#[derive(Clone, Copy, PartialEq, Debug)]
enum CallEnd {
    /// It calls the host, which returns.
    Returns,
    /// It calls the host, which calls another domain, of this kind: whether it uses the segment.
    Calls(bool),
    Faults,
    TimesOut,
}

const LENGTH: usize = 4;

/// A chain of domains, bit `n` of `which` saying that the domain `n` uses the segment.
struct Chain {
    all: Vec<Loaded>,
    which: u32,
    end: CallEnd,
}

impl Chain {
    fn new(programs: &Programs, which: u32, end: CallEnd) -> Self {
        let called: Arc<OnceLock<(WindowDomain, Entry)>> = Arc::default();
        let again = called.clone();
        let other = host(move |_| {
            if let Some((domain, entry)) = again.get() {
                domain.call(*entry, &CallArguments::default()).unwrap();
            }
            Ok(0)
        });
        let uses = |place: usize| which >> place & 1 != 0;
        let all: Vec<Loaded> = (0..LENGTH)
            .map(|place| programs.load(uses(place), other.clone()))
            .collect();
        if let CallEnd::Calls(segment) = end {
            let another = programs.load(segment, host(|_| Ok(0)));
            let mine = entry(&another, "mine");
            assert!(called.set((another.domain, mine)).is_ok());
        }
        let chain = Self { all, which, end };
        chain.link();
        chain
    }

    fn link(&self) {
        for place in 0..LENGTH - 1 {
            let last = place == LENGTH - 2;
            let name = match self.end {
                CallEnd::Faults if last => "wrong",
                CallEnd::TimesOut if last => "forever",
                _ => "through",
            };
            let time = (name == "forever").then_some(Duration::from_millis(2));
            let options = LinkOptions {
                limits: Some(CallLimits {
                    time,
                    ..CallLimits::default()
                }),
                failed: Some(Arc::new(|error| match error {
                    CallError::Fault(fault)
                        if matches!(
                            fault.cause,
                            Cause::Access { .. } | Cause::TimeLimit { .. }
                        ) =>
                    {
                        Ok(Returned {
                            integer: 100,
                            high: 0,
                            double: 0.0,
                        })
                    }
                    other => Err(Box::new(other)),
                })),
                ..LinkOptions::default()
            };
            let (from, to) = (&self.all[place], &self.all[place + 1]);
            let entry = entry(to, name);
            from.domain.link(0, &to.domain, entry, options).unwrap();
        }
    }

    /// One call of the first by the host, and what each saw of the base.
    fn call(&self) {
        let what = format!("{:04b} {:?}", self.which, self.end);
        SEEN.with_borrow_mut(Vec::clear);
        let mut now = base();
        let returned = self.all[0].call("through", &[]);
        let returned = returned.unwrap_or_else(|error| panic!("{what}: {error}"));
        let ended = matches!(self.end, CallEnd::Faults | CallEnd::TimesOut);
        let expected = if ended { 100 + LENGTH - 1 } else { LENGTH };
        assert_eq!(returned.integer, expected as u64, "{what}");
        // Each looks twice, on the way down and on the way up; the last one once if it ends.
        let down = (0..LENGTH).map(|place| (place, true));
        let up = (0..LENGTH)
            .rev()
            .skip(usize::from(ended))
            .map(|place| (place, false));
        let seen = SEEN.with_borrow(Vec::clone);
        assert_eq!(seen.len(), 2 * LENGTH - usize::from(ended), "{what}");
        for ((place, down), seen) in down.chain(up).zip(seen) {
            let window = self.all[place].domain.memory().base();
            if self.which >> place & 1 != 0 {
                now = window;
            } else if place == LENGTH - 1 && !down {
                // What the host called from there may have left its own.
                now = seen;
                assert_ne!(seen, window, "{what}: written for nobody");
            }
            assert_eq!(seen, now, "{what}: domain {place}");
        }
    }

    fn restart(&mut self) {
        for one in &mut self.all {
            one.domain.restart().unwrap();
            one.domain.open();
        }
    }
}

/// Sets the base behind the run time's back, which is fair as long as no domain has used it.
fn forget_base() {
    // SAFETY: nothing of this thread uses the base but domains with accesses through `%gs`,
    // for which the run time writes it.
    unsafe { std::arch::asm!("wrgsbase {}", in(reg) NOBODY) };
}

#[test]
fn every_order_of_both_kinds_finds_its_own_memory() {
    let programs = Programs::new();
    let calls = [false, true].map(CallEnd::Calls);
    let ends = [
        &[CallEnd::Returns, CallEnd::Faults, CallEnd::TimesOut],
        &calls[..],
    ]
    .concat();
    for which in 0..1 << LENGTH {
        for end in &ends {
            let mut chain = Chain::new(&programs, which, *end);
            for _life in 0..2 {
                for _call in 0..2 {
                    chain.call();
                    if matches!(end, CallEnd::Faults | CallEnd::TimesOut) {
                        let last = &mut chain.all[LENGTH - 1].domain;
                        last.restart().unwrap();
                        last.open();
                    }
                }
                chain.restart();
            }
        }
    }
}

#[test]
fn nothing_writes_the_base_for_domains_that_do_not_use_it() {
    std::thread::spawn(|| {
        let programs = Programs::new();
        forget_base();
        for end in [
            CallEnd::Returns,
            CallEnd::Calls(false),
            CallEnd::Faults,
            CallEnd::TimesOut,
        ] {
            let chain = Chain::new(&programs, 0, end);
            chain.call();
            assert_eq!(base(), NOBODY, "{end:?}");
            assert!(SEEN.with_borrow(|seen| seen.iter().all(|base| *base == NOBODY)));
        }
    })
    .join()
    .unwrap();
}

#[test]
fn one_that_uses_the_base_keeps_it_among_others() {
    let programs = Programs::new();
    for place in 0..LENGTH {
        let chain = Chain::new(&programs, 1 << place, CallEnd::Returns);
        chain.call();
        let window = chain.all[place].domain.memory().base();
        for _ in 0..3 {
            // Nobody else's base is ever there, before it, in it or behind it.
            chain.call();
            assert!(SEEN.with_borrow(|seen| seen.iter().all(|base| *base == window)));
        }
    }
}
