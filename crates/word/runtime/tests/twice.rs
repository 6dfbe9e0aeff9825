//! What a gate reads and the host's function reads again: a module that changes it in between, by another thread or by a call back
//! into it, must not have the host use what no gate has seen.

mod module;

use module::{function, load};
use mullion_supervisor::Permission;
use mullion_word_runtime::{
    Bits, Domain, Effect, FaultKind, FunctionPolicy, Host, LoadError, Number, Policy, Size, Sum,
    caller,
};
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

type Fn2 = extern "C" fn(u64, u64) -> u64;
type Fn3 = extern "C" fn(u64, u64, u64) -> u64;

const TEXT: &str = "
    import  asked
    import  get_block
    import  free
    gate    pass
    call_import asked
    ret
    gate    get_block
    call_import get_block
    ret
    gate    drop
    call_import free
    mov     $1, %eax
    ret
    gate    by_address              # calls %rdx
    mov     %rdx, %rax
    call_by %rax
    ret
    gate    put                     # %rsi to the eight bytes at %rdi
    checked 2, 0, (%rdi), mov %esi, (%rdi)
    shr     $32, %rsi
    checked 2, 4, (%rdi), mov %esi, 4(%rdi)
    mov     $1, %eax
    ret
    gate    get
    checked 1, 0, (%rdi), mov (%rdi), %eax
    ret
";

/// What the host does in the function that the module calls: with its arguments, and what it has found.
type Job = Box<dyn FnOnce(u64, u64, u64) -> Vec<u64> + Send>;
static JOB: Mutex<Option<Job>> = Mutex::new(None);
static FOUND: Mutex<Vec<u64>> = Mutex::new(Vec::new());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

extern "C" fn asked(a: u64, b: u64, c: u64) -> u64 {
    let job = lock(&JOB).take();
    let found = job.map_or_else(Vec::new, |job| job(a, b, c));
    let first = found.first().copied().unwrap_or(1);
    *lock(&FOUND) = found;
    first
}

struct Scene {
    host: Host,
    domain: Domain,
    _turn: MutexGuard<'static, ()>,
}

impl Scene {
    /// The host's function has these effects.
    fn new(effects: &[Effect]) -> Scene {
        static TURN: Mutex<()> = Mutex::new(());
        let turn = lock(&TURN);
        let of = |effects: &[Effect]| Some(FunctionPolicy::of(effects));
        let at = asked as *const () as usize;
        // SAFETY: it does what a test says, with what the module may have.
        let policy = unsafe {
            Policy::new()
                .offer("asked", at, of(effects))
                .offer("get_block", at, of(&[Effect::Gives(Size::Argument(0))]))
                .offer("free", at, of(&[Effect::Frees(0)]))
        };
        let (host, domain) = load("twice", TEXT, policy);
        Scene {
            host,
            domain,
            _turn: turn,
        }
    }

    /// The module may read and write these bytes.
    fn own<T>(&self, of: &[T]) {
        self.lend(of, true);
    }

    fn lend<T>(&self, of: &[T], write: bool) {
        let (at, bytes) = (of.as_ptr() as usize, size_of_val(of));
        // SAFETY: the test's own.
        unsafe { self.host.grant(&self.domain, at, bytes, write) }.unwrap();
    }

    /// The module calls the host by this function, which does this meanwhile: what it answers, and what the host has found.
    fn call(
        &self,
        by: &str,
        (a, b, c): (u64, u64, u64),
        job: impl FnOnce(u64, u64, u64) -> Vec<u64> + Send + 'static,
    ) -> (u64, Vec<u64>) {
        lock(&FOUND).clear();
        *lock(&JOB) = Some(Box::new(job));
        let answer = function::<Fn3>(&self.domain, by)(a, b, c);
        (answer, std::mem::take(&mut *lock(&FOUND)))
    }

    /// What the module does behind the gate's back: it writes eight bytes.
    fn put(&self) -> impl Fn(u64, u64) + Send + 'static {
        let put: Fn2 = function(&self.domain, "put");
        move |at, value| {
            put(at, value);
        }
    }

    /// The call was refused by a policy, for this reason, and the host was not called.
    fn is_refused(&self, arguments: (u64, u64, u64), reason: &str) {
        let called = self.call("pass", arguments, |_, _, _| vec![7]);
        assert_eq!(called, (0, vec![]));
        let reports = self.domain.take_reports();
        assert_eq!(reports.len(), 1);
        assert_eq!(reports[0].kind, FaultKind::Policy, "{}", reports[0]);
        let said = reports[0].to_string();
        assert!(said.contains(reason), "{said}");
        self.domain.restart().unwrap();
    }
}

fn address<T>(of: &[T]) -> u64 {
    of.as_ptr() as u64
}

/// What the host finds there.
fn word(at: u64) -> u64 {
    // SAFETY: the tests have put something there.
    unsafe { (at as *const u64).read_volatile() }
}

fn byte(at: u64) -> u64 {
    // SAFETY: the tests have put a byte there.
    u64::from(unsafe { (at as *const u8).read_volatile() })
}

fn argument(at: u8) -> Sum {
    Number::of(at, Bits::U64).into()
}

#[test]
fn vectors_are_those_that_the_gate_has_seen() {
    let scene = Scene::new(&[Effect::Out(0, Size::Vectors(argument(1)))]);
    let (buffer, secret) = ([0u64; 4], [5u64; 4]);
    let (own, theirs) = (address(&buffer), address(&secret));
    let vectors = [(own, 8u64), (own + 8, 8)];
    scene.own(&buffer);
    scene.own(&vectors);
    let (at, put) = (address(&vectors), scene.put());
    let (_, found) = scene.call("pass", (at, 2, 0), move |list, _, _| {
        put(at, theirs);
        put(at + 24, 4096);
        (0..4).map(|place| word(list + 8 * place)).collect()
    });
    assert_eq!(word(at), theirs, "the module has written there");
    assert_eq!(found, [own, 8, own + 8, 8]);
}

#[test]
fn lists_and_their_texts_are_those_that_the_gate_has_seen() {
    for size in [Size::List, Size::Texts] {
        let scene = Scene::new(&[Effect::In(0, size)]);
        let texts = [u64::from_le_bytes(*b"one\0two\0")];
        let secret = [u64::from_le_bytes(*b"secret!\0")];
        let (own, theirs) = (address(&texts), address(&secret));
        let list = [own, own + 4, 0];
        scene.own(&texts);
        scene.own(&list);
        let (at, put) = (address(&list), scene.put());
        let (_, found) = scene.call("pass", (at, 0, 0), move |list, _, _| {
            put(at + 8, theirs);
            put(at + 16, theirs);
            put(own, u64::MAX);
            let pointers = (0..3).map(|place| word(list + 8 * place));
            let texts = (0..4).map(|at| byte(word(list) + at));
            pointers.chain(texts).collect()
        });
        assert_eq!(word(at + 8), theirs, "the module has written there");
        assert_eq!(found.len(), 7);
        assert_ne!(found[1], theirs);
        assert_eq!(found[2], 0, "it ends where it ended");
        // Of a list alone the texts are the module's own.
        match size {
            Size::List => assert_eq!(found[..2], [own, own + 4]),
            _ => assert_eq!(found[3..], b"one\0".map(u64::from)),
        }
    }
}

/// Pages of which the last is no memory.
struct Pages(u64);

const PAGE: usize = 4096;

impl Pages {
    fn new() -> Pages {
        let (both, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
        );
        // SAFETY: no address is asked for; the second page is this mapping's own.
        let at = unsafe {
            let at = libc::mmap(ptr::null_mut(), 2 * PAGE, both, flags, -1, 0);
            assert_ne!(at, libc::MAP_FAILED);
            assert_eq!(libc::mprotect(at.byte_add(PAGE), PAGE, libc::PROT_NONE), 0);
            at
        };
        Pages(at as u64)
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's.
        unsafe { libc::munmap(self.0 as *mut _, 2 * PAGE) };
    }
}

/// Another thread may free a block, or the host take its memory away, while a gate reads there. So a gate's own look must not be
/// what ends the process.
#[test]
fn a_gate_that_finds_no_memory_refuses_the_call() {
    let pages = Pages::new();
    let (first, second) = (pages.0, pages.0 + PAGE as u64);
    // SAFETY: it is mapped to be written.
    unsafe { (first as *mut u8).write_bytes(b'a', PAGE) };
    let field = Size::Sum(Number::field(1, 0, Bits::U64).into());
    let cases: [(Effect, (u64, u64, u64)); 5] = [
        (Effect::In(0, Size::Text), (second, 0, 0)),
        (Effect::In(0, Size::Text), (second - 9, 0, 0)),
        (Effect::In(0, Size::Texts), (second, 0, 0)),
        (
            Effect::In(0, Size::Vectors(argument(1))),
            (second - 16, 2, 0),
        ),
        (Effect::In(0, field), (first, second, 0)),
    ];
    for (effect, arguments) in cases {
        let scene = Scene::new(&[effect]);
        // SAFETY: the test's own, and not all of it memory.
        let granted = unsafe {
            scene
                .host
                .grant(&scene.domain, first as usize, 2 * PAGE, false)
        };
        granted.unwrap();
        scene.is_refused(arguments, "there is no memory");
        scene.host.revoke(first as usize, 2 * PAGE).unwrap();
    }
}

/// An allocator may give one address twice, with fewer bytes the second time.
#[test]
fn a_block_that_is_given_twice_goes_as_a_whole() {
    let scene = Scene::new(&[]);
    let block = [0u64; 8];
    let at = address(&block);
    let get: Fn2 = function(&scene.domain, "get");
    for bytes in [64, 16] {
        let (given, _) = scene.call("get_block", (bytes, 0, 0), move |_, _, _| vec![at]);
        assert_eq!(given, at);
    }
    let may = |place: u64| scene.domain.permission(place as usize) != Permission::None;
    assert!(may(at));
    scene.call("drop", (at, 0, 0), |_, _, _| vec![]);
    assert!(scene.domain.take_reports().is_empty());
    for place in (0..64).step_by(4) {
        assert!(!may(at + place), "byte {place} of a block that was freed");
    }
    assert_eq!(get(at + 32, 0), 0);
    assert_eq!(scene.domain.take_reports()[0].kind, FaultKind::Access);
}

/// The size of one argument, in a field of another.
fn field(of: u8, offset: u32) -> Size {
    Size::Sum(Number::field(of, offset, Bits::U32).into())
}

#[test]
fn a_size_where_the_module_may_write_is_read_from_a_copy_or_not_at_all() {
    let (buffer, room) = ([0u64; 4], [32u64, 0]);
    let (to, at) = (address(&buffer), address(&room));
    // As `uncompress(to, &room)` has it.
    let scene = Scene::new(&[
        Effect::Out(0, field(1, 0)),
        Effect::InOut(1, Size::Bytes(8)),
    ]);
    scene.own(&buffer);
    scene.own(&room[1..]);
    scene.lend(&room[..1], false);
    scene.is_refused((to, at, 0), "argument 1 is 8 bytes");
    scene.own(&room);
    scene.is_refused((to, at, 0), "`copyinout`");
    drop(scene);
    // A structure of the host, which the module may read alone, says what it says.
    let scene = Scene::new(&[Effect::Out(0, field(1, 0))]);
    scene.own(&buffer);
    scene.lend(&room, false);
    assert_eq!(scene.call("pass", (to, at, 0), |_, _, _| vec![7]).0, 7);
    drop(scene);
    // The order of the effects does not matter.
    let scene = Scene::new(&[
        Effect::Out(0, field(1, 0)),
        Effect::CopyInOut(1, Size::Bytes(16)),
    ]);
    scene.own(&buffer);
    scene.own(&room);
    let put = scene.put();
    let (answer, found) = scene.call("pass", (to, at, 0), move |_, copy, _| {
        put(at, 4096);
        put(at + 8, 4097);
        let found = vec![word(copy), u64::from(copy == at), word(copy + 8)];
        // SAFETY: the copy has 16 bytes, which are the host's for this call.
        unsafe { (copy as *mut u64).write(24) };
        found
    });
    assert_eq!((answer, found), (32, vec![32, 0, 0]));
    assert_eq!([word(at), word(at + 8)], [24, 0], "written back as a whole");
    // Too much, and a field that is not in the copy.
    for wrong in [33, 1 << 31] {
        scene.put()(at, wrong);
        scene.is_refused((to, at, 0), "argument 0 is");
    }
    drop(scene);
    let scene = Scene::new(&[
        Effect::CopyIn(1, Size::Bytes(4)),
        Effect::Out(0, field(1, 4)),
    ]);
    scene.own(&buffer);
    scene.own(&room);
    scene.is_refused((to, at, 0), "argument 0 has no size");
}

#[test]
fn a_copy_is_written_back_only_where_the_module_may_write_still() {
    let scene = Scene::new(&[Effect::CopyInOut(0, Size::Argument(1))]);
    let cells = [7u64; 4];
    let at = address(&cells);
    scene.own(&cells);
    let host = scene.host;
    let (answer, _) = scene.call("pass", (at, 32, 0), move |copy, _, _| {
        // SAFETY: the copy has 32 bytes.
        unsafe { (copy as *mut u64).add(1).write(9) };
        host.revoke(at as usize + 16, 4).unwrap();
        vec![1]
    });
    assert_eq!(answer, 0);
    let said = scene.domain.take_reports()[0].to_string();
    assert!(said.contains("argument 0 is 32 bytes"), "{said}");
    assert_eq!(std::hint::black_box(&cells), &[7; 4]);
}

#[test]
fn a_text_ends_where_the_gate_has_found_its_end() {
    for effect in [Effect::In(0, Size::Text), Effect::CopyIn(0, Size::Text)] {
        a_text_ends_where_it_ended(effect);
    }
}

fn a_text_ends_where_it_ended(effect: Effect) {
    let scene = Scene::new(&[effect]);
    let texts = [u64::from_ne_bytes(*b"aaaaaaaa"); 32];
    let at = address(&texts);
    scene.own(&texts[..30]);
    let put = scene.put();
    for (begin, end) in [(0, 0), (0, 7), (3, 7), (1, 63), (0, 64), (5, 200), (0, 239)] {
        let place = at + end / 8 * 8;
        let ends = u64::from_ne_bytes(*b"aaaaaaaa") & !(0xff << (8 * (end % 8)));
        put(place, ends);
        let again = scene.put();
        let (_, found) = scene.call("pass", (at + begin, 0, 0), move |text, _, _| {
            again(place, u64::MAX);
            let copy = (0..=end - begin).map(|at| byte(text + at));
            copy.chain([text]).collect()
        });
        assert!(scene.domain.take_reports().is_empty(), "{begin} {end}");
        let length = (end - begin) as usize;
        assert!(found[..length].iter().all(|byte| *byte == u64::from(b'a')));
        assert_eq!(found[length], 0);
        assert_ne!(found[length + 1], at + begin);
        put(place, u64::from_ne_bytes(*b"aaaaaaaa"));
    }
    scene.is_refused((at, 0, 0), "argument 0 is 1 bytes");
    assert_eq!(scene.call("pass", (0, 0, 0), |text, _, _| vec![text]).0, 0);
}

/// As `strtol` does: the host's function writes where in the text it has come to.
#[test]
fn a_pointer_into_the_copy_of_a_text_leads_into_the_text() {
    let scene = Scene::new(&[
        Effect::In(0, Size::Text),
        Effect::Into(1, Size::Bytes(24), 0),
    ]);
    let (text, ends) = ([u64::from_le_bytes(*b"12 rest\0")], [1u64, 2, 3]);
    let (at, to) = (address(&text), address(&ends));
    scene.own(&text);
    scene.own(&ends[..2]);
    scene.is_refused((at, to, 0), "argument 1 is 24 bytes");
    scene.own(&ends);
    let write = |to: u64, place: u64, value: u64| {
        // SAFETY: the test's own three words.
        unsafe { (to as *mut u64).add(place as usize).write(value) };
    };
    let (answer, found) = scene.call("pass", (at, to, 0), move |text, to, _| {
        write(to, 0, text + 2);
        write(to, 2, text + 7);
        vec![9, text]
    });
    assert_eq!(answer, 9);
    assert_ne!(found[1], at);
    assert_eq!(
        [0, 1, 2].map(|place| word(to + 8 * place)),
        [at + 2, 2, at + 7]
    );
    // Pointers beside the copy are left alone, and so is a null pointer.
    scene.call("pass", (at, to, 0), move |text, to, _| {
        write(to, 0, text + 8);
        write(to, 1, text - 1);
        vec![9, text]
    });
    assert_ne!(word(to), at + 8);
    assert_ne!(word(to + 8), at - 1);
    assert_eq!(scene.call("pass", (at, 0, 0), |_, _, _| vec![9]).0, 9);
    // Where the right has gone meanwhile, nothing is written.
    let host = scene.host;
    write(to, 1, 2);
    scene.call("pass", (at, to, 0), move |text, to, _| {
        host.revoke(to as usize + 8, 8).unwrap();
        write(to, 1, text);
        vec![9, text]
    });
    assert_ne!(word(to + 8), at);
    assert_eq!(scene.domain.take_reports().len(), 1);
}

/// Where the host calls, a field that the module may write is no size: the module would say how much it is granted.
#[test]
fn a_module_does_not_choose_by_a_field_how_much_it_is_granted() {
    let of = FunctionPolicy::of(&[
        Effect::InOut(0, field(1, 0)),
        Effect::InOut(1, Size::Bytes(8)),
    ]);
    let put = FunctionPolicy::of(&[Effect::InOut(0, Size::Bytes(8))]);
    let policy = Policy::new().export("get", of).export("put", put);
    let text = "
    gate    put
    checked 2, 0, (%rdi), mov %esi, (%rdi)
    ret
    gate    get                     # the last word that the field gives
    checked 1, 12, (%rdi), mov 12(%rdi), %eax
    ret
";
    let (host, domain) = load("chosen", text, policy);
    let (buffer, size) = ([3u32, 4, 5, 6, 7], [16u32, 0, 16, 0]);
    let (at, room) = (address(&buffer), address(&size));
    let get: Fn2 = function(&domain, "get");
    let put: Fn2 = function(&domain, "put");
    assert_eq!(get(at, room), 6);
    // The module no longer has the grant of an earlier call there, also where that is kept.
    for round in 0..200 {
        put(room, 16);
        assert_eq!(get(at, room), 6, "{round}: {:?}", domain.take_reports());
    }
    // One that the module may write, for good or for a call that runs.
    // SAFETY: the test's own.
    unsafe { host.grant(&domain, room as usize + 8, 4, true) }.unwrap();
    assert_eq!(get(at, room + 8), 0);
    let said = domain.take_reports()[0].to_string();
    assert!(said.contains("how much it is granted"), "{said}");
    domain.restart().unwrap();
    host.revoke(room as usize + 8, 4).unwrap();
    assert_eq!(get(at, room + 8), 6);
    // SAFETY: it is a word of the test's own array, which lives as long as the domain.
    unsafe { host.grant(&domain, room as usize + 8, 4, false) }.unwrap();
    assert_eq!(get(at, room + 8), 6, "to read is not to choose");
}

/// All effects of an argument are looked at, on what the host gets.
#[test]
fn what_is_copied_has_one_effect() {
    let host = Host::new().unwrap();
    let eight = Size::Bytes(8);
    let vectors = Size::Vectors(argument(1));
    let wrong: [&[Effect]; 13] = [
        &[Effect::CopyIn(0, Size::List)],
        &[Effect::CopyIn(0, vectors)],
        &[Effect::CopyInOut(0, Size::Text)],
        &[
            Effect::CopyInOut(0, eight),
            Effect::Out(0, Size::Argument(1)),
        ],
        &[Effect::CopyIn(0, eight), Effect::Frees(0)],
        &[Effect::Takes(0, eight), Effect::CopyIn(0, eight)],
        &[Effect::In(0, vectors), Effect::Out(0, vectors)],
        &[Effect::In(0, Size::Texts), Effect::In(0, Size::List)],
        &[Effect::In(0, Size::Text), Effect::Frees(0)],
        &[Effect::In(0, Size::Text), Effect::In(0, Size::Text)],
        &[Effect::In(0, eight), Effect::Into(1, eight, 0)],
        &[Effect::In(0, Size::Text), Effect::Into(1, eight, 2)],
        &[Effect::In(0, Size::Text), Effect::Into(1, vectors, 0)],
    ];
    for effects in wrong {
        let of = FunctionPolicy::of(effects);
        let at = asked as *const () as usize;
        // SAFETY: it is not called.
        let policy = unsafe { Policy::new().offer("asked", at, Some(of)) };
        let loaded = host.load(&module::module("twice", TEXT), policy);
        assert!(
            matches!(loaded, Err(LoadError::Misfit { .. })),
            "{effects:?}"
        );
    }
}

extern "C" fn end_thread() {
    // SAFETY: nothing on this thread's stack is to be dropped.
    unsafe { libc::pthread_exit(ptr::null_mut()) }
}

static AGAIN: Mutex<Option<Fn2>> = Mutex::new(None);
static SAID: Mutex<Vec<(bool, u64)>> = Mutex::new(Vec::new());

extern "C" fn at_end(_: *mut libc::c_void) {
    let again = lock(&AGAIN).expect("it is set");
    let has_caller = caller().is_some();
    let answer = again(0, 0);
    lock(&SAID).push((has_caller, answer));
}

extern "C" fn begin(key: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: the key is there. A value that is not null has its function called at the thread's end.
    unsafe { libc::pthread_setspecific(key as usize as u32, ptr::without_provenance(1)) };
    let call = AGAIN.lock().map_or(None, |call| *call);
    call.map(|call| call(0, 1));
    ptr::null_mut()
}

/// A policy that is offered with an address is as whole as one that is loaded: otherwise the call is refused.
#[test]
fn what_is_offered_by_address_is_looked_at_as_a_whole() {
    let vectors = Size::Vectors(argument(1));
    let cases: [(&[Effect], bool); 4] = [
        (&[Effect::In(0, vectors)], true),
        (&[Effect::In(0, vectors), Effect::Out(0, vectors)], false),
        (&[Effect::Out(6, Size::Bytes(8))], false),
        (&[Effect::CopyInOut(0, Size::Text)], false),
    ];
    for (effects, is_whole) in cases {
        let scene = Scene::new(&[]);
        let at = asked as *const () as usize;
        let row = (
            0x1230,
            "found".to_owned(),
            at,
            Some(FunctionPolicy::of(effects)),
        );
        // SAFETY: it does what the test says.
        unsafe { scene.host.offer(&scene.domain, [row]) };
        let (answer, _) = scene.call("by_address", (0, 0, 0x1230), |_, _, _| vec![7]);
        assert_eq!(answer, if is_whole { 7 } else { 0 }, "{effects:?}");
        let reports = scene.domain.take_reports();
        assert_eq!(reports.len(), usize::from(!is_whole), "{effects:?}");
        let is_it = |report: &mullion_word_runtime::Report| {
            report
                .to_string()
                .contains("found: the host does not offer it")
        };
        assert!(reports.iter().all(is_it), "{reports:?}");
    }
}

/// A thread that the host ends within a call has no call any more: its last functions may ask who calls, and call again.
#[test]
fn a_thread_that_ends_within_a_call_begins_anew() {
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
    let (_host, domain) = load("ends", text, policy);
    *lock(&AGAIN) = Some(function(&domain, "f"));
    let (mut key, mut thread) = (0, 0);
    // SAFETY: the functions are as they must be, and the thread is waited for.
    unsafe {
        assert_eq!(libc::pthread_key_create(&raw mut key, Some(at_end)), 0);
        let given = ptr::without_provenance_mut(key as usize);
        let made = libc::pthread_create(&raw mut thread, ptr::null(), begin, given);
        assert_eq!(made, 0);
        assert_eq!(libc::pthread_join(thread, ptr::null_mut()), 0);
    }
    assert_eq!(lock(&SAID)[..], [(false, 1)]);
    assert!(domain.take_reports().is_empty());
}
