//! Rights that are granted when they are first needed: the access is looked at again, and what the hook does not grant is refused.

mod module;

use module::{build, function};
use mullion_word_runtime::{FaultKind, Granted, Host, Module, Policy};
use mullion_word_verifier::verify;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

type Fn2 = extern "C" fn(u64, u64) -> u64;

const TEXT: &str = "
    gate    put
    checked 2, 0, (%rdi), mov %esi, (%rdi)
    mov     %esi, %eax
    ret
    gate    pair
    checked 2, 0, (%rdi), mov %esi, (%rdi)
    checked 2, 8, (%rdi), mov %esi, 8(%rdi)
    mov     $1, %eax
    ret
";

/// A straight line of two checks: both words are looked at, then both are written.
const LINE: &str = "
    gate    line
    lea     (%rdi), %r11
    shr     $2, %r11
    cmp     %r14d, %gs:(%r11,%r11)
    jne     1f
2:  lea     (%rsi), %r11
    shr     $2, %r11
    cmp     %r14d, %gs:(%r11,%r11)
    jne     3f
4:  movl    $7, (%rdi)
    movl    $7, (%rsi)
    mov     $7, %eax
    ret
    .pushsection .text.cold, \"ax\", @progbits
1:  lea     (%rdi), %r11
    shr     $2, %r11
    movzwl  %gs:(%r11,%r11), %r11d
    testb   $2, %gs:(%r14d,%r11d)
    je      5f
    lea     3(%rdi), %r11
    shr     $2, %r11
    movzwl  %gs:(%r11,%r11), %r11d
    testb   $2, %gs:(%r14d,%r11d)
    jne     2b
5:  ud1     %ecx, %eax
3:  lea     (%rsi), %r11
    shr     $2, %r11
    movzwl  %gs:(%r11,%r11), %r11d
    testb   $2, %gs:(%r14d,%r11d)
    je      6f
    lea     3(%rsi), %r11
    shr     $2, %r11
    movzwl  %gs:(%r11,%r11), %r11d
    testb   $2, %gs:(%r14d,%r11d)
    jne     4b
6:  ud1     %ecx, %eax
    .popsection
    gate    other
    checked 2, 0, (%rdi), mov %esi, (%rdi)
    mov     %esi, %eax
    ret
";

/// A hook's deeds besides granting what is asked for.
#[derive(Clone, Copy, PartialEq)]
enum Besides {
    Nothing,
    /// It takes the line's first word away.
    Takes,
    /// Another thread takes it away, and the hook waits for that.
    OtherTakes,
    /// Another domain loses something.
    OtherLoses,
}

#[test]
fn what_was_checked_before_a_hook_is_not_written_if_it_was_taken_away_meanwhile() {
    let verified = verify(build("line", LINE)).expect("accepted");
    let module = Module::new("line", &verified).expect("a module");
    let host = std::sync::Arc::new(Host::new().expect("a host"));
    let domain = host.load(&module, Policy::new()).expect("a domain");
    let other = std::sync::Arc::new(host.load(&module, Policy::new()).expect("a domain"));
    let words = Box::leak(Box::new([0u32; 16]));
    let at = words.as_mut_ptr() as usize;
    let line: Fn2 = function(&domain, "line");
    let put: Fn2 = function(&domain, "other");
    // SAFETY: the words are the test's, here and below.
    let grant = |domain: &mullion_word_runtime::Domain, word: usize| unsafe {
        host.grant_for(domain, at + 4 * word, 4, true)
            .expect("a grant")
    };
    static HELD: Mutex<Vec<Granted>> = Mutex::new(Vec::new());
    static SECOND: Mutex<Vec<Granted>> = Mutex::new(Vec::new());
    static BESIDES: Mutex<Besides> = Mutex::new(Besides::Nothing);
    static OF_OTHER: Mutex<Vec<Granted>> = Mutex::new(Vec::new());
    let for_hook = std::sync::Arc::clone(&host);
    let shared = std::sync::Arc::new(domain);
    let weak = std::sync::Arc::downgrade(&shared);
    shared.on_demand(move |address, _, _| {
        let domain = weak.upgrade().expect("it lives");
        // SAFETY: the words are the test's.
        let granted = unsafe { for_hook.grant_for(&domain, address as usize, 4, true) };
        SECOND.lock().expect("no panic").extend(granted);
        match *BESIDES.lock().expect("no panic") {
            Besides::Nothing => {}
            Besides::Takes => HELD.lock().expect("no panic").clear(),
            Besides::OtherTakes => {
                let takes = std::thread::spawn(|| HELD.lock().expect("no panic").clear());
                takes.join().expect("it does not wait for this thread");
            }
            Besides::OtherLoses => OF_OTHER.lock().expect("no panic").clear(),
        }
        true
    });
    for besides in [
        Besides::Nothing,
        Besides::Takes,
        Besides::OtherTakes,
        Besides::OtherLoses,
    ] {
        *BESIDES.lock().expect("no panic") = besides;
        *HELD.lock().expect("no panic") = vec![grant(&shared, 0)];
        *OF_OTHER.lock().expect("no panic") = vec![grant(&other, 12)];
        // A second thread may be inside: otherwise nobody would look for one.
        std::thread::scope(|scope| {
            let other = scope.spawn(|| put(at as u64, 0));
            assert_eq!(other.join().expect("no panic"), 0);
        });
        let answer = line(at as u64, at as u64 + 32);
        // SAFETY: the words stay, and no code of the module runs.
        let first = unsafe { (at as *const u32).read_volatile() };
        let is_taken = matches!(besides, Besides::Takes | Besides::OtherTakes);
        if is_taken {
            assert_eq!((answer, first), (0, 0));
            let report = shared.take_reports().remove(0);
            assert_eq!((report.kind, report.address), (FaultKind::Access, None));
            assert!(report.object.contains("took something"), "{report}");
            shared.restart().expect("a fresh life");
        } else {
            assert_eq!((answer, first), (7, 7), "{:?}", shared.take_reports());
        }
        SECOND.lock().expect("no panic").clear();
        HELD.lock().expect("no panic").clear();
        OF_OTHER.lock().expect("no panic").clear();
        // SAFETY: the words stay, and no code of the module runs.
        unsafe { (at as *mut u32).write_volatile(0) };
    }
    // A check that stands alone is looked at again, whatever was taken away.
    *BESIDES.lock().expect("no panic") = Besides::Takes;
    *HELD.lock().expect("no panic") = vec![grant(&shared, 0)];
    assert_eq!(put(at as u64 + 32, 9), 9, "{:?}", shared.take_reports());
}

static ASKED: AtomicU64 = AtomicU64::new(0);
static GRANTED: Mutex<Vec<Granted>> = Mutex::new(Vec::new());

#[test]
fn a_right_is_granted_when_a_check_asks_for_it() {
    let verified = verify(build("demand", TEXT)).expect("accepted");
    let module = Module::new("demand", &verified).expect("a module");
    let host = Host::new().expect("a host");
    let domain = host.load(&module, Policy::new()).expect("a domain");
    let words = Box::leak(Box::new([0u32; 8]));
    let at = words.as_mut_ptr() as u64;
    let (put, pair): (Fn2, Fn2) = (function(&domain, "put"), function(&domain, "pair"));
    domain.on_demand(move |address, _, write| {
        ASKED.fetch_add(1, Ordering::Relaxed);
        // The third word says yes to nobody; of the fifth the hook says that it has granted it, and has not.
        match (address - at) / 4 {
            0 | 2 if write => {
                // SAFETY: the words are the test's.
                let granted = unsafe { host.grant_for(&domain, address as usize, 4, true) };
                GRANTED.lock().expect("no panic").extend(granted);
                true
            }
            word => word == 4,
        }
    });
    assert_eq!(pair(at, 7), 1);
    // SAFETY: the words stay, and no code of the module runs.
    let read = |word: usize| unsafe { (at as *const u32).add(word).read_volatile() };
    assert_eq!((read(0), read(2), ASKED.load(Ordering::Relaxed)), (7, 7, 2));
    assert_eq!(put(at, 8), 8, "it has it now");
    assert_eq!(ASKED.load(Ordering::Relaxed), 2);
    GRANTED.lock().expect("no panic").clear();
    assert_eq!(put(at, 9), 9, "it was taken back, and is asked for again");
    assert_eq!(ASKED.load(Ordering::Relaxed), 3);
    for (word, asked) in [(1, 4), (4, 5)] {
        assert_eq!(put(at + 4 * word, 5), 0);
        let report = domain.take_reports().remove(0);
        let expected = (FaultKind::Access, Some(at + 4 * word));
        assert_eq!((report.kind, report.address), expected);
        assert_eq!(ASKED.load(Ordering::Relaxed), asked);
        assert_eq!(read(word as usize), 0);
        domain.restart().expect("a fresh life");
    }
}
