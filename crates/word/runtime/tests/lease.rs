//! What large hosts need: rights that last as long as a pool, variables of the host, structures of the module that the
//! host reads in place, and modules that stay mapped.

mod module;

use module::{function, load, module};
use mullion_supervisor::Permission;
use mullion_word_runtime::{
    Domain, Effect, FaultKind, FunctionPolicy, Host, Lease, LoadError, Policy, Size, caller,
};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

type Fn0 = extern "C" fn() -> u64;
type Fn1 = extern "C" fn(u64) -> u64;
type Fn2 = extern "C" fn(u64, u64) -> u64;

const TEXT: &str = "
    import  pool_get
    import  pool_clear
    gate    get
    call_import pool_get
    ret
    gate    clear
    call_import pool_clear
    mov     $1, %eax
    ret
    gate    store
    checked 2, 0, (%rdi), mov %esi, (%rdi)
    mov     $1, %eax
    ret
    gate    look
    checked 1, 0, (%rdi), mov (%rdi), %eax
    bts     $32, %rax
    ret
";

/// A pool of the host, which hands out the words of one block.
struct Pool {
    block: [AtomicU64; 512],
    used: AtomicU64,
    lease: Mutex<Option<Lease>>,
}

static POOL: Pool = Pool {
    block: [const { AtomicU64::new(0) }; 512],
    used: AtomicU64::new(0),
    lease: Mutex::new(None),
};

/// Tests that use the pool take turns.
static TURN: Mutex<()> = Mutex::new(());

extern "C" fn pool_get(bytes: u64) -> u64 {
    let at = POOL
        .used
        .fetch_add(bytes.next_multiple_of(8), Ordering::Relaxed);
    let at = POOL.block.as_ptr() as u64 + at;
    let mut lease = POOL.lease.lock().unwrap();
    let caller = caller().expect("a module calls");
    // SAFETY: the block is for the module's use.
    unsafe {
        lease
            .get_or_insert_default()
            .grant(caller, at as usize, bytes as usize, true)
    }
    .unwrap();
    at
}

extern "C" fn pool_clear() {
    POOL.used.store(0, Ordering::Relaxed);
    POOL.lease.lock().unwrap().take();
}

fn policy() -> Policy {
    // SAFETY: they take numbers.
    unsafe {
        Policy::new()
            .offer("pool_get", pool_get as *const () as usize, None)
            .offer("pool_clear", pool_clear as *const () as usize, None)
    }
}

/// The access was refused, at this address.
fn refused(domain: &Domain, at: u64) {
    let reports = domain.take_reports();
    assert_eq!(reports.len(), 1, "{reports:?}");
    assert_eq!(reports[0].kind, FaultKind::Access, "{}", reports[0]);
    assert_eq!(reports[0].address, Some(at), "{}", reports[0]);
    domain.restart().unwrap();
}

#[test]
fn what_a_pool_has_given_goes_with_the_pool() {
    let _turn = TURN.lock().unwrap_or_else(|dead| dead.into_inner());
    let (_host, domain) = load("pool", TEXT, policy());
    let get: Fn1 = function(&domain, "get");
    let (store, look): (Fn2, Fn1) = (function(&domain, "store"), function(&domain, "look"));
    let blocks: Vec<u64> = (0..20).map(|n| get(8 + 8 * (n % 3))).collect();
    for block in &blocks {
        assert_eq!(store(*block, 7), 1);
        assert_eq!(look(*block), 7 | 1 << 32);
    }
    // It is not the module's behind the last block.
    let behind = POOL.block.as_ptr() as u64 + POOL.used.load(Ordering::Relaxed);
    assert_eq!(store(behind, 7), 0);
    refused(&domain, behind);
    // A restart does not take what the host has lent.
    assert_eq!(store(blocks[3], 8), 1);
    // The module has the pool cleared, in its own call.
    assert_eq!(function::<Fn0>(&domain, "clear")(), 1);
    for block in &blocks {
        assert_eq!(look(*block), 0);
        refused(&domain, *block);
        assert_eq!(domain.permission(*block as usize), Permission::None);
    }
    assert!(caller().is_none(), "no module calls here");
}

#[test]
fn leases_overlap_and_count_for_themselves() {
    let (host, domain) = load("overlap", TEXT, policy());
    let other = host.load(&module("other", TEXT), policy()).unwrap();
    let cells = [const { AtomicU64::new(0) }; 8];
    let at = cells.as_ptr() as usize;
    let (long, short) = (Lease::new(), Lease::new());
    let is = |domain: &Domain, word: usize| domain.permission(at + 4 * word);
    // SAFETY: they are the test's own.
    unsafe {
        long.grant(domain, at, 64, false).unwrap();
        long.grant(other, at, 16, true).unwrap();
        short.grant(domain, at + 8, 8, true).unwrap();
        short.grant(domain, at + 8, 8, true).unwrap();
    }
    assert_eq!((long.count(), short.count()), (2, 2));
    assert_eq!(is(&domain, 2), Permission::ReadWrite);
    assert_eq!(is(&domain, 4), Permission::Read);
    short.end();
    assert_eq!(
        (is(&domain, 2), is(&other, 2)),
        (Permission::Read, Permission::ReadWrite)
    );
    // What the host takes away altogether does not come back, nor does an older lease take a newer one's.
    host.revoke(at, 64).unwrap();
    // SAFETY: the cells are the test's own, and atomic.
    unsafe {
        short.grant(domain, at, 16, true).unwrap();
        short.grant(domain, at + 32, 8, false).unwrap();
    }
    drop(long);
    assert_eq!(is(&domain, 0), Permission::ReadWrite);
    assert_eq!(is(&domain, 8), Permission::Read);
    assert_eq!(
        (is(&domain, 5), is(&other, 0)),
        (Permission::None, Permission::None)
    );
    short.end();
    assert_eq!(is(&domain, 0), Permission::None);
}

#[test]
fn many_grants_of_one_lease_end_at_once() {
    let (_host, domain) = load("many", TEXT, policy());
    let cells = vec![0u32; 40_000];
    let at = cells.as_ptr() as usize;
    let lease = Lease::new();
    for n in 0..10_000 {
        // SAFETY: they are the test's own.
        unsafe { lease.grant(domain, at + 16 * n, 12, n % 2 == 0) }.unwrap();
    }
    assert_eq!(domain.permission(at + 16 * 9_998), Permission::ReadWrite);
    assert_eq!(domain.permission(at + 16 * 9_999), Permission::Read);
    assert_eq!(domain.permission(at + 12), Permission::None);
    lease.end();
    for n in 0..40_000 {
        assert_eq!(domain.permission(at + 4 * n), Permission::None);
    }
}

/// `record` has a table of functions, as servers' modules do. `spoil` writes a function of the host into it.
const RECORD: &str = "
    .globl  record, count
    gate    first
    mov     $11, %eax
    ret
    gate    spoil
    mov     %rdi, record+8(%rip)
    mov     $1, %eax
    ret
    gate    index
    mov     record(%rip), %rax
    ret
    gate    environment
    mov     variable(%rip), %rdi
    checked 1, 0, (%rdi), mov (%rdi), %eax
    mov     $1, %eax
    ret
    gate    change_environment
    mov     variable(%rip), %rdi
    checked 2, 0, (%rdi), movl $0, (%rdi)
    mov     $1, %eax
    ret
    .data
    .p2align 3
record:
    .quad   0, first, 0
count:
    .quad   5
    .section .data.rel.ro, \"aw\"
variable:
    .quad   environ
    .text
";

#[test]
fn a_host_reads_a_structure_of_the_module_in_place() {
    let (_host, domain) = load("record", RECORD, Policy::new());
    let record = domain.symbol("record").unwrap() as usize;
    assert!(domain.has_data(record, 24));
    assert!(!domain.has_data(&raw const record as usize, 8));
    assert!(!domain.has_data(record, usize::MAX));
    // SAFETY: the module has it, and does not run.
    let pointer = || unsafe { ((record + 8) as *const usize).read() };
    assert!(domain.has_function(pointer()));
    // SAFETY: as was asked.
    let first: Fn0 = unsafe { std::mem::transmute(pointer()) };
    assert_eq!(first(), 11);
    // The host writes there, too, and the module sees it.
    // SAFETY: the word is the module's variable, and the module does not run.
    unsafe { (record as *mut u64).write(77) };
    assert_eq!(function::<Fn0>(&domain, "index")(), 77);
    // A function of the host in the table is told apart, and so is the inside of a gate.
    for other in [
        libc::system as *const () as usize,
        first as usize + 4,
        first as usize + 32,
        0,
    ] {
        assert_eq!(function::<Fn1>(&domain, "spoil")(other as u64), 1);
        assert!(!domain.has_function(pointer()), "{other:#x}");
    }
}

#[test]
fn a_variable_of_the_host_is_the_modules_as_far_as_the_policy_says() {
    let host = Host::new().unwrap();
    let text = module("variable", RECORD);
    let nothing = host.load(&text, Policy::new()).unwrap();
    assert_eq!(function::<Fn0>(&nothing, "environment")(), 0);
    let policy = Policy::new().data("environ", None, false);
    let reads = host.load(&text, policy).unwrap();
    assert_eq!(function::<Fn0>(&reads, "environment")(), 1);
    unsafe extern "C" {
        static environ: u64;
    }
    let at = &raw const environ as usize;
    // Its symbol says eight bytes.
    let is = |by: usize| reads.permission(at + by);
    assert_eq!(
        (is(0), is(4), is(8)),
        (Permission::Read, Permission::Read, Permission::None)
    );
    assert_eq!(function::<Fn0>(&reads, "change_environment")(), 0);
    assert_eq!(reads.take_reports()[0].address, Some(at as u64));
    // Where no symbol table says the size, the policy has to.
    static CELL: AtomicU64 = AtomicU64::new(0);
    let resolve = |_: &str| Some(CELL.as_ptr() as usize);
    let of = |bytes| Policy::new().data("environ", bytes, true);
    let loaded = host.load_with(&text, of(None), &mut { resolve });
    assert!(matches!(loaded, Err(LoadError::NoSize(_))), "{loaded:?}");
    let writes = host
        .load_with(&text, of(Some(8)), &mut { resolve })
        .unwrap();
    assert_eq!(function::<Fn0>(&writes, "change_environment")(), 1);
    let missing = host.load_with(&text, of(Some(8)), &mut |_| None);
    assert!(matches!(missing, Err(LoadError::Missing { .. })));
}

/// What `/proc/self/maps` says of an address.
fn rights(at: usize) -> String {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let found = maps.lines().find(|line| {
        let (start, rest) = line.split_once('-').unwrap();
        let end = rest.split_once(' ').unwrap().0;
        let number = |text| usize::from_str_radix(text, 16).unwrap();
        (number(start)..number(end)).contains(&at)
    });
    let line = found.unwrap_or_default();
    line.split(' ').nth(1).unwrap_or("none").to_owned()
}

#[test]
fn a_module_stays_mapped_if_its_host_wants_that() {
    let host = Host::new().unwrap();
    let text = module("stays", RECORD);
    for stays in [false, true] {
        let policy = match stays {
            true => Policy::new().stays_mapped(),
            false => Policy::new(),
        };
        let domain = host
            .load(
                &text,
                policy.error(mullion_word_runtime::ErrorValue {
                    integer: -3,
                    float: 0.0,
                }),
            )
            .unwrap();
        let (count, first) = (
            domain.symbol("count").unwrap(),
            function::<Fn0>(&domain, "first"),
        );
        domain.set_tag(9);
        assert_eq!((first(), domain.tag()), (11, 9));
        domain.unload().unwrap();
        assert_eq!(first() as i64, -3, "it takes no calls");
        assert_eq!(rights(count as usize), if stays { "rw-p" } else { "---p" });
        if stays {
            // SAFETY: it is mapped.
            assert_eq!(unsafe { count.cast::<u64>().read() }, 5);
            assert_eq!(domain.permission(count as usize), Permission::None);
        }
    }
}

const TAKES: &str = "
    gate    take
    mov     $1, %eax
    ret
    gate    store
    checked 2, 0, (%rdi), mov %esi, (%rdi)
    mov     $1, %eax
    ret
";

#[test]
fn what_was_handed_over_does_not_survive_a_restart() {
    let host = Host::new().unwrap();
    let takes = FunctionPolicy::of(&[Effect::Takes(0, Size::Argument(1))]);
    let policy = Policy::new().export("take", takes);
    let domain = host.load(&module("takes", TAKES), policy).unwrap();
    let (take, store): (Fn2, Fn2) = (function(&domain, "take"), function(&domain, "store"));
    let cells = [const { AtomicU64::new(0) }; 4];
    let at = cells.as_ptr() as u64;
    // Twice, and a part of it again: what is longer counts.
    for bytes in [16, 32, 8] {
        assert_eq!(take(at, bytes), 1);
    }
    assert_eq!(store(at + 24, 1), 1, "it is the module's");
    // SAFETY: the cells are the test's own.
    unsafe { host.grant(&domain, at as usize, 4, true) }.unwrap();
    domain.restart().unwrap();
    assert_eq!(store(at, 2), 1, "what the host grants stays");
    assert_eq!(store(at + 24, 2), 0);
    refused(&domain, at + 24);
    assert_eq!(cells[3].load(Ordering::Relaxed), 1);
}
