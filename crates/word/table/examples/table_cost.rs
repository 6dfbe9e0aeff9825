//! What the table costs: `cargo run --release -p mullion-word-table --example table_cost`.
//!
//! Times are nanoseconds, the best of nine batches; for revocations with a thread inside, the median of 300.

use mullion_supervisor::{
    Change, DomainId, Holders, HoldingNumber, Level, Mechanism, Permission, Range, Supervisor,
};
use mullion_word_table::{ADDRESS_BITS, Code, Inside, Limits, Settling, Table, load4, store4};
use std::arch::global_asm;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Instant;

// A module's loop: rdi: where it stores, rsi: when to stop, rdx: the own number four times. It is refused nothing.
global_asm!(
    ".text",
    ".globl busy, busy_begin, busy_checked",
    ".globl busy_done, busy_end",
    ".hidden busy, busy_begin, busy_checked",
    ".hidden busy_done, busy_end",
    ".p2align 4",
    "busy_begin:",
    "busy:",
    "push r14",
    "mov r14, rdx",
    "2: lea r11, [rdi]",
    "shr r11, 2",
    "cmp word ptr gs:[r11 + r11], r14w",
    "busy_checked:",
    "jne 3f",
    "mov dword ptr [rdi], edx",
    "busy_done:",
    "cmp dword ptr [rsi], 0",
    "je 2b",
    "3: pop r14",
    "ret",
    "busy_end:",
);

unsafe extern "C" {
    fn busy(address: u64, stop: *const u32, own: u64);
    fn busy_begin();
    fn busy_checked();
    fn busy_done();
    fn busy_end();
}

fn busy_code() -> Code {
    let at = |symbol: unsafe extern "C" fn()| symbol as usize;
    let checked = at(busy_checked)..at(busy_done);
    Code::new(at(busy_begin)..at(busy_end), Vec::from([checked])).expect("as it is written above")
}

const ROOT: DomainId = DomainId::SUPERVISOR;
const RW: Permission = Permission::ReadWrite;
const BATCH: u32 = 20_000;

/// Is told by holding, and does nothing: what is the supervisor's own.
struct Nothing;

impl Mechanism for Nothing {
    const BY_DOMAIN: bool = false;
    const BY_HOLDING: bool = true;
    fn write(&mut self, _: DomainId, _: Range, _: Permission) {}
    fn flush(&mut self, _: DomainId, _: Range) {}
    fn hold(&mut self, range: Range, _: HoldingNumber, after: HoldingNumber, _: Holders<'_>) {
        black_box((range, after));
    }
}

fn space() -> Range {
    Range::bytes(0, 1 << ADDRESS_BITS).expect("whole words")
}

fn table() -> Supervisor<Table> {
    let inside = Inside::new().expect("Linux has membarrier");
    let table = Table::reserve(Limits::default(), inside).expect("address space");
    Supervisor::new(space(), table)
}

fn best(mut step: impl FnMut()) -> f64 {
    let batch = |_| {
        let start = Instant::now();
        (0..BATCH).for_each(|_| step());
        start.elapsed().as_secs_f64() * 1e9 / f64::from(BATCH)
    };
    (0..9).map(batch).fold(f64::MAX, f64::min)
}

/// A grant and its revocation: plain, prepared, in the same place again and again.
fn pair<M: Mechanism>(s: &mut Supervisor<M>, module: DomainId, range: Range) -> [f64; 2] {
    let plain = best(|| {
        s.mprot_export(&ROOT, module, range, RW)
            .expect("the owner may");
        s.mprot_export(&ROOT, module, range, Permission::None)
            .expect("the owner may");
    });
    let grant = s
        .prepare(&ROOT, module, range, RW, Level::None)
        .expect("the owner may");
    let prepared = best(|| {
        s.grant_prepared(&ROOT, grant).expect("the owner may");
        s.revoke_prepared(&ROOT, grant).expect("the owner may");
    });
    s.release(grant).expect("prepared");
    [plain, prepared]
}

/// Ten modules with memory of their own.
fn modules<M: Mechanism>(s: &mut Supervisor<M>) -> Vec<DomainId> {
    let own = |n: u64| Range::bytes(0x10_0000 + n * 0x1_0000, 0x8000).expect("whole words");
    let made = (0..10).map(|n| s.pd_subdivide(&ROOT, own(n), RW));
    made.collect::<Result<_, _>>().expect("free")
}

fn grants(s: &mut Supervisor<Table>, modules: &[DomainId]) {
    println!("a grant and its revocation, ns for both, no thread of the domain elsewhere:");
    println!(
        "{:>8} {:>16} {:>16} {:>16} {:>16}",
        "bytes", "supervisor plain", "with table", "prepared", "with table"
    );
    let mut bare = Supervisor::new(space(), Nothing);
    let bare_modules = self::modules(&mut bare);
    for bytes in [4, 64, 256, 1024, 4096] {
        let range = Range::bytes(0x4000_0000, bytes).expect("whole words");
        let [plain, prepared] = pair(&mut bare, bare_modules[3], range);
        let [plain_too, prepared_too] = pair(s, modules[3], range);
        println!(
            "{bytes:>8} {plain:>16.0} {plain_too:>16.0} {prepared:>16.1} {prepared_too:>16.1}"
        );
    }
    let export = |place: u64, permission| {
        let range = Range::bytes(0x5000_0000 + place * 4096, 64).expect("whole words");
        let target = modules[4].into();
        (
            ROOT,
            Change::Export {
                target,
                range,
                permission,
                export: Level::None,
            },
        )
    };
    let on: Vec<_> = (0..10).map(|place| export(place, RW)).collect();
    let off: Vec<_> = (0..10)
        .map(|place| export(place, Permission::None))
        .collect();
    let batch = best(|| {
        s.change_all(&on).expect("the owner may");
        s.change_all(&off).expect("the owner may");
    });
    println!(
        "ten of 64 bytes as a batch, and their revocation as one: {:.0} for each pair\n",
        batch / 10.0
    );
}

fn checks(s: &mut Supervisor<Table>, module: DomainId) {
    let cells: Vec<AtomicU32> = (0..64).map(|_| AtomicU32::new(0)).collect();
    let start = (cells.as_ptr() as u64).next_multiple_of(64);
    let at = |offset| Range::bytes(start + offset, 32).expect("whole words");
    s.mprot_export(&ROOT, module, at(0), RW)
        .expect("the owner may");
    let other = s
        .pd_subdivide(&ROOT, Range::bytes(0x3000, 64).expect("whole"), RW)
        .expect("free");
    s.mprot_export(&ROOT, module, at(64), RW)
        .expect("the owner may");
    s.mprot_export(&ROOT, other, at(64), RW)
        .expect("the owner may");
    let view = s.mechanism().view(module).expect("it lives");
    // SAFETY: nothing else uses %gs; the table lives on.
    unsafe { view.load() };
    println!("a checked access in a function of its own, ns:");
    for (name, offset) in [("own number", 0), ("shared, by the map", 64)] {
        // SAFETY: it is our memory, on which nothing depends.
        let store = best(|| assert!(black_box(unsafe { store4(&view, start + offset, 1) })));
        // SAFETY: it is our memory, which is only read.
        let load = best(|| assert!(black_box(unsafe { load4(&view, start + offset) }).is_some()));
        println!("{name:>20}: store {store:.1}, load {load:.1}");
    }
    s.perm_free(&ROOT, at(0)).expect("shared");
    s.perm_free(&ROOT, at(64)).expect("shared");
    println!();
}

/// A revocation while a thread of the domain is elsewhere: outside, or inside and checking all the time.
fn revocations(s: &mut Supervisor<Table>, module: DomainId) {
    let _code = busy_code().load();
    let cells: Vec<AtomicU32> = (0..64).map(|_| AtomicU32::new(0)).collect();
    let start = (cells.as_ptr() as u64).next_multiple_of(64);
    let range = Range::bytes(start, 64).expect("whole words");
    let always = Range::bytes(start + 64, 4).expect("whole words");
    s.mprot_export(&ROOT, module, always, RW)
        .expect("the owner may");
    let view = s.mechanism().view(module).expect("it lives");
    let inside = Arc::clone(s.mechanism().inside());
    println!("a revocation of 64 bytes, ns, median and 99th of a hundred:");
    for (name, enters, threads) in [
        ("one thread registered, outside", false, 1),
        ("one thread inside", true, 1),
        ("four threads inside", true, 4),
    ] {
        let (end, ready) = (AtomicBool::new(false), AtomicU32::new(0));
        let stop = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    let mut visit = inside.visit(module);
                    // SAFETY: nothing else uses %gs here; the table lives on.
                    unsafe { view.load() };
                    ready.fetch_add(1, Ordering::SeqCst);
                    while !end.load(Ordering::Relaxed) {
                        if enters {
                            visit.enter();
                            // SAFETY: it is our memory, on which nothing depends; the atomic outlives the loop.
                            unsafe { busy(start + 64, stop.as_ptr(), view.own()) };
                            visit.leave();
                        } else {
                            std::thread::park_timeout(std::time::Duration::from_millis(1));
                        }
                    }
                });
            }
            while ready.load(Ordering::SeqCst) < threads {
                std::thread::yield_now();
            }
            let grant = s
                .prepare(&ROOT, module, range, RW, Level::None)
                .expect("the owner may");
            let mut times: Vec<f64> = (0..300)
                .map(|_| {
                    s.grant_prepared(&ROOT, grant).expect("the owner may");
                    let start = Instant::now();
                    s.revoke_prepared(&ROOT, grant).expect("the owner may");
                    start.elapsed().as_secs_f64() * 1e9
                })
                .collect();
            s.mechanism_mut().set_settling(Settling::Later);
            let later = best(|| {
                s.grant_prepared(&ROOT, grant).expect("the owner may");
                s.revoke_prepared(&ROOT, grant).expect("the owner may");
            });
            s.mechanism_mut().set_settling(Settling::Now);
            s.release(grant).expect("prepared");
            end.store(true, Ordering::Relaxed);
            stop.store(1, Ordering::Relaxed);
            times.sort_unstable_by(f64::total_cmp);
            println!(
                "{name:>32}: {:>8.0} {:>9.0}; with its grant, to be settled later: {later:.0}",
                times[150], times[297]
            );
        });
    }
    println!("{} signals sent\n", inside.signals());
}

/// Kibibytes that this process has in memory, with its page tables.
fn memory() -> [u64; 2] {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    ["VmRSS:", "VmPTE:"].map(|name| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        number.unwrap_or(0)
    })
}

fn domains(s: &mut Supervisor<Table>) {
    println!("memory, KiB (and page tables):");
    let mut before = memory();
    let mut step = |name: &str| {
        let now = memory();
        println!(
            "{name:>58}: {:>8} ({:>6})",
            now[0].saturating_sub(before[0]),
            now[1].saturating_sub(before[1])
        );
        before = now;
    };
    let own = |n: u64| Range::bytes((1 << 36) + n * 0x1_0000, 4096).expect("whole words");
    let made = (0..10_000).map(|n| s.pd_subdivide(&ROOT, own(n), RW));
    let made: Vec<DomainId> = made.collect::<Result<_, _>>().expect("free");
    step("10,000 domains with a page of their own, 64 KiB apart");
    let common = Range::bytes(1 << 40, 1 << 20).expect("whole words");
    let start = Instant::now();
    for domain in &made {
        s.mprot_export(&ROOT, *domain, common, Permission::Read)
            .expect("the owner may");
    }
    let each = start.elapsed().as_secs_f64() * 1e9 / made.len() as f64;
    step("one piece of 1 MiB granted to all of them");
    println!("{:>58}  {each:.0} ns for each", "");
    let pairs = made.chunks(2).zip((1 << 41..).step_by(1 << 16));
    for (pair, at) in pairs.take(1000) {
        let range = Range::bytes(at, 4096).expect("whole words");
        for domain in pair {
            s.mprot_export(&ROOT, *domain, range, RW)
                .expect("the owner may");
        }
    }
    step("a page for each of 1,000 pairs, 64 KiB apart");
    let group = s.group_create(&ROOT).expect("free");
    let shared = Range::bytes(1 << 42, 4096).expect("whole words");
    s.mprot_export(&ROOT, group, shared, Permission::Read)
        .expect("the owner may");
    let written = s.mechanism().usage().words_written;
    let start = Instant::now();
    for domain in &made {
        s.group_join(domain, group).expect("the creator's family");
    }
    let join = start.elapsed().as_secs_f64() * 1e9 / made.len() as f64;
    step("all of them join a group that may read a page");
    println!("{:>58}  {join:.0} ns for each", "");
    let start = Instant::now();
    for domain in &made {
        s.pd_free(&ROOT, *domain).expect("a child");
    }
    let end = start.elapsed().as_secs_f64() * 1e9 / made.len() as f64;
    println!(
        "{:>58}  {end:.0} ns for each; shadow words written since the group: {}",
        "their ends,",
        s.mechanism().usage().words_written - written
    );
    let start = Instant::now();
    Table::collect(s);
    println!(
        "{:>58}  {:.2} ms",
        "to collect all that,",
        start.elapsed().as_secs_f64() * 1e3
    );
    step("after that");
}

fn main() {
    let mut s = table();
    if std::env::args().nth(1).as_deref() == Some("--domains") {
        return domains(&mut s);
    }
    let modules = modules(&mut s);
    grants(&mut s, &modules);
    checks(&mut s, modules[5]);
    revocations(&mut s, modules[6]);
    domains(&mut s);
}
