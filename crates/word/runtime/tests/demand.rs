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
