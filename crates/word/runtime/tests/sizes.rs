//! Sizes that a policy computes: sums, fields, vectors, lists and texts, with integers of their own width. Each also as an
//! attack: what a module passes to have the host read or write for it.

mod module;

use module::{function, load, module};
use mullion_supervisor::Permission;
use mullion_word_runtime::{
    Bits, Domain, Effect, FaultKind, FunctionPolicy, Host, LoadError, Number, Policy, Size, Sum,
    Term,
};
use std::sync::atomic::{AtomicU64, Ordering};

type Fn2 = extern "C" fn(u64, u64) -> u64;
type Fn3 = extern "C" fn(u64, u64, u64) -> u64;

static CALLS: AtomicU64 = AtomicU64::new(0);

extern "C" fn asked() -> u64 {
    CALLS.fetch_add(1, Ordering::Relaxed);
    1
}

/// `pass` calls the host with what it is given.
const TEXT: &str = "
    import  asked
    gate    pass
    call_import asked
    ret
    gate    at                      # the word at the second argument
    mov     %rsi, %rdx
    checked 1, 0, (%rdx), mov (%rdx), %eax
    bts     $32, %rax
    ret
    gate    put
    mov     %rsi, %rdx
    checked 2, 0, (%rdx), movl $9, (%rdx)
    mov     $1, %eax
    ret
";

struct Scene {
    host: Host,
    domain: Domain,
}

impl Scene {
    /// `asked` and the exports have these effects.
    fn new(effects: &[Effect]) -> Scene {
        let of = || FunctionPolicy::of(effects);
        // SAFETY: it takes numbers.
        let policy =
            unsafe { Policy::new().offer("asked", asked as *const () as usize, Some(of())) };
        let policy = policy.export("at", of()).export("put", of());
        let (host, domain) = load("sizes", TEXT, policy);
        Scene { host, domain }
    }

    /// The module may read and write these bytes.
    fn own<T>(&self, of: &[T]) {
        let (at, bytes) = (of.as_ptr() as usize, size_of_val(of));
        // SAFETY: the test's own.
        unsafe { self.host.grant(&self.domain, at, bytes, true) }.unwrap();
    }

    /// Whether the host function was called; a refusal is one by policy, and no more.
    fn asks(&self, a: u64, b: u64, c: u64) -> bool {
        let before = CALLS.load(Ordering::Relaxed);
        let answer = function::<Fn3>(&self.domain, "pass")(a, b, c);
        let reports = self.domain.take_reports();
        if answer == 1 {
            assert!(reports.is_empty());
            assert!(CALLS.load(Ordering::Relaxed) > before);
            return true;
        }
        assert_eq!(reports.len(), 1);
        assert_eq!(reports[0].kind, FaultKind::Policy, "{}", reports[0]);
        assert!(
            reports[0].to_string().contains("asked: argument"),
            "{}",
            reports[0]
        );
        self.domain.restart().unwrap();
        false
    }

    /// What the module reads at `b` when it is called with `a`; none if it is refused there.
    fn at(&self, a: u64, b: u64) -> Option<u32> {
        let found = function::<Fn2>(&self.domain, "at")(a, b);
        self.outcome(found, b).map(|found| found as u32)
    }

    fn may_put(&self, a: u64, b: u64) -> bool {
        let done = function::<Fn2>(&self.domain, "put")(a, b);
        self.outcome(done, b).is_some()
    }

    fn outcome(&self, answer: u64, at: u64) -> Option<u64> {
        if answer != 0 {
            return Some(answer);
        }
        let reports = self.domain.take_reports();
        assert_eq!(reports[0].kind, FaultKind::Access, "{}", reports[0]);
        assert_eq!(reports[0].address, Some(at));
        self.domain.restart().unwrap();
        None
    }
}

fn term(times: i64, factors: &[Number]) -> Option<Term> {
    Some(Term {
        times,
        factors: [factors.first().copied(), factors.get(1).copied()],
    })
}

fn address<T>(of: &[T]) -> u64 {
    of.as_ptr() as u64
}

/// An `int` comes in the lower half of a register; the module leaves in the upper half what it likes.
#[test]
fn an_integer_is_read_in_its_own_width() {
    let memory = [0u32; 16];
    let at = address(&memory);
    let garbage = 0xdead_beef_0000_0000u64;
    for (bits, value, is_allowed) in [
        (Bits::I32, garbage | 64, true),
        (Bits::I32, garbage | 68, false),
        (Bits::U32, garbage | 0xffff_ffff, false),
        (Bits::I32, (-1i32) as u32 as u64, false),
        (Bits::I64, -8i64 as u64, false),
        (Bits::U64, garbage | 8, false),
        (Bits::U8, garbage | 0xff00 | 64, true),
        (Bits::I8, 0xff, false),
        (Bits::U16, garbage | 0xffff, false),
        (Bits::I16, 0xffff_0000 | 60, true),
    ] {
        let size = Size::Sum(Number::of(1, bits).into());
        let scene = Scene::new(&[Effect::Out(0, size)]);
        scene.own(&memory);
        assert_eq!(scene.asks(at, value, 0), is_allowed, "{bits:?} {value:#x}");
    }
}

static BLOCK: [AtomicU64; 8] = [const { AtomicU64::new(0) }; 8];

/// As C has it: `void *get(int bytes)`.
extern "C" fn get(bytes: i32) -> u64 {
    assert!(bytes <= 64);
    BLOCK.as_ptr() as u64
}

/// Before, all 64 bits counted, and a module got more than was allocated.
#[test]
fn what_is_given_is_as_much_as_the_allocator_was_asked_for() {
    let gives = |size| FunctionPolicy::of(&[Effect::Gives(size)]);
    let size = Size::Sum(Number::of(0, Bits::I32).into());
    // SAFETY: it gives the block.
    let policy =
        unsafe { Policy::new().offer("get", get as *const () as usize, Some(gives(size))) };
    let (_host, domain) = load(
        "gives",
        "import get\n gate take\n call_import get\n ret",
        policy,
    );
    let take: Fn2 = function(&domain, "take");
    let at = take(0x10_0000_0010, 0);
    assert_eq!(at, BLOCK.as_ptr() as u64);
    let is = |by: usize| domain.permission(at as usize + by);
    assert_eq!((is(12), is(16)), (Permission::ReadWrite, Permission::None));
    // Below 0 it is refused room, as what is too much.
    assert_eq!(take(-8i32 as u32 as u64, 0), 0);
}

#[test]
fn sums_and_products_overflow_into_refusals() {
    let memory = [0u32; 16];
    let at = address(&memory);
    let n = |at| Number::of(at, Bits::U64);
    // 4 * b + 2 * b * c - 8
    let sum = Sum([term(4, &[n(1)]), term(2, &[n(1), n(2)]), term(-8, &[])]);
    let scene = Scene::new(&[Effect::InOut(0, Size::Sum(sum))]);
    scene.own(&memory);
    for (b, c, is_allowed) in [
        (6, 4, true),                // 64
        (6, 5, false),               // 76
        (2, 0, true),                // 0: nothing is touched
        (1, 0, false),               // -4
        (0, u64::MAX, false),        // -8
        (u64::MAX, u64::MAX, false), // more than 128 bits
        (1 << 62, 1 << 62, false),
        (1 << 63, 0, false), // 2^65 - 8: its lower half would be large, too
        (1 << 61, 6, false), // 2^63 + 3 * 2^63 - 8 = 2^65 - 8
    ] {
        assert_eq!(scene.asks(at, b, c), is_allowed, "{b:#x} {c:#x}");
    }
    // At the end of the address space.
    let scene = Scene::new(&[Effect::Out(0, Size::Sum(n(1).into()))]);
    scene.own(&memory);
    for (at, bytes) in [(u64::MAX - 3, 8), (at, u64::MAX), (at, u64::MAX - at + 1)] {
        assert!(!scene.asks(at, bytes, 0), "{at:#x} {bytes:#x}");
    }
    // Nothing is said of a null pointer, whatever the size.
    assert!(scene.asks(0, u64::MAX, 0));
}

/// Of a call that never begins there is nothing to tell but its name and what was wrong.
#[test]
fn a_refusal_names_the_export() {
    let size = Size::Sum(Number::of(1, Bits::I32).into());
    let scene = Scene::new(&[Effect::In(0, size)]);
    assert_eq!(function::<Fn2>(&scene.domain, "at")(64, u64::MAX), 0);
    let report = scene.domain.take_reports().remove(0);
    assert_eq!(report.export, "at");
    let said = report.to_string();
    assert!(said.contains("at: argument 0 has no size"), "{said}");
}

#[repr(C)]
struct Buffer {
    used: u64,
    room: u32,
    flags: u32,
}

#[test]
fn a_field_says_the_size_and_must_be_the_modules_to_read() {
    let memory = [0u32; 16];
    let at = address(&memory);
    let field = Number::field(1, 8, Bits::U32);
    let scene = Scene::new(&[
        Effect::Out(0, Size::Sum(field.into())),
        Effect::CopyIn(1, Size::Bytes(16)),
    ]);
    scene.own(&memory);
    let of = |room| {
        [Buffer {
            used: u64::MAX,
            room,
            flags: u32::MAX,
        }]
    };
    let (fits, beyond, secret) = (of(64), of(65), of(16));
    scene.own(&fits);
    scene.own(&beyond);
    assert!(scene.asks(at, address(&fits), 0));
    assert!(!scene.asks(at, address(&beyond), 0));
    assert!(
        !scene.asks(at, address(&secret), 0),
        "the host reads no secret for it"
    );
    // No structure, one that is nowhere, and one at the end of all.
    for wrong in [0, 8, 1 << 47, u64::MAX - 8] {
        assert!(!scene.asks(at, wrong, 0), "{wrong:#x}");
    }
    // The host passes its own structure: so much is the module's for the call.
    let scene = Scene::new(&[Effect::In(
        0,
        Size::Sum(Number::field(0, 8, Bits::U32).into()),
    )]);
    let whole = [of(16), of(16)];
    let at = address(&whole);
    assert_eq!(scene.at(at, at + 8), Some(16));
    assert_eq!(scene.at(at, at + 16), None);
}

type Vector = (u64, u64);

#[test]
fn vectors_are_looked_at_one_by_one() {
    let memory = [7u32; 16];
    let at = address(&memory);
    let secret = [5u32; 4];
    let of = |vectors: &[Vector], count: u64, is_allowed: bool| {
        let scene = Scene::new(&[Effect::Out(
            0,
            Size::Vectors(Sum::from(Number::of(1, Bits::I32))),
        )]);
        scene.own(&memory);
        scene.own(vectors);
        assert_eq!(
            scene.asks(address(vectors), count, 0),
            is_allowed,
            "{vectors:x?} {count}"
        );
    };
    of(&[(at, 64), (at + 32, 8), (0, 0)], 3, true);
    of(&[(at, 8), (address(&secret), 4)], 1, true);
    of(&[(at, 8), (address(&secret), 4)], 2, false);
    of(&[(at, 65)], 1, false);
    of(&[(at, u64::MAX)], 1, false);
    of(&[(at + 4, 0u64.wrapping_sub(at))], 1, false);
    of(&[(at, 8)], 2, false); // the array itself ends
    of(&[(0, 8)], 1, false);
    of(&vec![(at, 4); 1025], 1025, false);
    of(&[(at, 4)], (-1i32) as u32 as u64, false);
    of(&[(at, 4)], 0, true);
}

#[test]
fn more_pieces_than_are_kept_are_given_and_taken_back() {
    // Twelve vectors, whose number is in the third argument.
    let cells = std::hint::black_box([3u32; 48]);
    let vectors: Vec<Vector> = (0..12).map(|n| (address(&cells) + 16 * n, 4)).collect();
    let count = Sum::from(Number::of(2, Bits::U64));
    let scene = Scene::new(&[Effect::InOut(0, Size::Vectors(count))]);
    let at: Fn3 = function(&scene.domain, "at");
    let put: Fn3 = function(&scene.domain, "put");
    let list = address(&vectors);
    for round in 0..300 {
        let place = address(&cells) + 16 * (round % 12);
        assert_eq!(at(list, place, 12), 3 | 1 << 32);
        assert_eq!(
            at(list, list + 16, 12) as u32,
            (address(&cells) + 16) as u32
        );
    }
    assert_eq!(put(list, address(&cells) + 160, 12), 1);
    assert_eq!(std::hint::black_box(&cells)[40], 9);
    for (place, count) in [(address(&cells) + 4, 12), (address(&cells) + 176, 11)] {
        assert_eq!(at(list, place, count), 0);
        assert_eq!(scene.domain.take_reports()[0].address, Some(place));
        scene.domain.restart().unwrap();
    }
    // The array itself is read only.
    assert_eq!(put(list, list, 12), 0);
    assert_eq!(scene.domain.take_reports()[0].address, Some(list));
}

#[test]
fn lists_end_with_a_null_pointer_and_texts_with_a_zero() {
    let text = *b"one\0two\0six!!!!!";
    let secret = *b"secret word\0\0\0\0\0";
    let (list, texts) = ([Effect::In(0, Size::List)], [Effect::In(0, Size::Texts)]);
    let of = |effects: &[Effect], pointers: &[u64], is_allowed: bool| {
        let scene = Scene::new(effects);
        scene.own(pointers);
        scene.own(&text);
        assert_eq!(
            scene.asks(address(pointers), 0, 0),
            is_allowed,
            "{pointers:x?}"
        );
    };
    let at = address(&text);
    for effects in [&list, &texts] {
        of(effects, &[at, at + 4, 0], true);
        of(effects, &[0], true);
        of(effects, &[at, at + 4], false); // it does not end
    }
    of(&list, &[at, address(&secret), 0], true);
    of(&texts, &[at, address(&secret), 0], false);
    of(&texts, &[at, at + 8, 0], false); // a text that does not end
    of(&texts, &[at, u64::MAX, 0], false);
    // From the host: the module reads the list and each text, and nothing besides.
    let scene = Scene::new(&texts);
    let words = [at, address(&secret), 0];
    let list = address(&words);
    assert_eq!(
        scene.at(list, address(&secret) + 8),
        Some(u32::from_le_bytes(*b"ord\0"))
    );
    assert_eq!(scene.at(list, address(&secret) + 12), None);
    assert_eq!(scene.at(list, list + 16), Some(0));
    assert!(!scene.may_put(list, at));
}

/// A call that repeats the one before it is not looked at again: a text may have become another one.
#[test]
fn a_text_that_has_grown_or_shrunk_is_measured_again() {
    let scene = Scene::new(&[Effect::In(0, Size::Text)]);
    let mut text = *b"a\0......................\0.......";
    let at = address(&text);
    for _ in 0..300 {
        assert!(scene.at(at, at).is_some());
    }
    assert_eq!(scene.at(at, at + 8), None);
    for round in 0..400 {
        text[1] = if round % 3 == 0 { b'b' } else { 0 };
        std::hint::black_box(&mut text);
        assert_eq!(scene.at(at, at + 20).is_some(), round % 3 == 0, "{round}");
    }
}

/// Texts are looked up some words at a time: wherever one begins and ends, all of it must be the module's to read.
#[test]
fn a_text_of_any_length_is_the_modules_to_its_end() {
    let scene = Scene::new(&[Effect::In(0, Size::Text)]);
    let mut text = [u32::from_ne_bytes(*b"aaaa"); 64];
    let at = address(&text);
    scene.own(&text[..40]);
    for end in (0..200).step_by(3).chain(155..165) {
        let (word, shift) = (end / 4, 8 * (end % 4));
        text[word] &= !(0xff << shift);
        std::hint::black_box(&mut text);
        for begin in [0, 1, 3, 63, 64, 65, 128] {
            if begin <= end {
                let is_its = scene.asks(at + begin as u64, 0, 0);
                assert_eq!(is_its, end < 160, "from {begin} to {end}");
            }
        }
        text[word] |= 0x61 << shift;
    }
}

#[test]
fn sizes_that_say_nothing_are_refused_when_a_module_is_loaded() {
    let host = Host::new().unwrap();
    let module = module("misfits", "gate f\n ret");
    let count = Sum::from(Number::of(1, Bits::U32));
    for effect in [
        Effect::Out(0, Size::Text),
        Effect::InOut(0, Size::List),
        Effect::Out(0, Size::Texts),
        Effect::Takes(0, Size::Vectors(count)),
        Effect::Gives(Size::Text),
        Effect::Moves(0, Size::List),
    ] {
        let policy = Policy::new().export("f", FunctionPolicy::of(&[effect]));
        let loaded = host.load(&module, policy).map(drop);
        assert!(
            matches!(loaded, Err(LoadError::Misfit { .. })),
            "{effect:?}"
        );
    }
    let beyond = Effect::In(0, Size::Sum(Number::field(6, 0, Bits::U32).into()));
    let policy = Policy::new().export("f", FunctionPolicy::of(&[beyond]));
    let loaded = host.load(&module, policy).map(drop);
    assert!(matches!(
        loaded,
        Err(LoadError::OnStack { argument: 6, .. })
    ));
}
