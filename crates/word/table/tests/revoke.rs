//! When a right has been taken away, nobody uses it any more: threads that check and access in a loop, and a
//! thread that revokes.

use mullion_supervisor::{DomainId, Level, Permission, Range, Supervisor};
use mullion_word_table::{ADDRESS_BITS, Code, Inside, Limits, Settling, Table, View};
use std::arch::global_asm;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const ROOT: DomainId = DomainId::SUPERVISOR;

/// An address space has room for one shadow.
static ONE_TABLE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ONE_TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

// A module's loop. rdi: where it stores, rsi: where it is told to stop, rdx: the own number four times,
// rcx: what it stores. Between check and access it waits, so that it is nearly always there. eax: whether it was
// refused; else it was told to stop.
global_asm!(
    ".text",
    ".globl hammer, hammer_begin, hammer_checked",
    ".globl hammer_done, hammer_cold, hammer_refused",
    ".globl hammer_end",
    ".hidden hammer, hammer_begin, hammer_checked",
    ".hidden hammer_done, hammer_cold, hammer_refused",
    ".hidden hammer_end",
    ".p2align 4",
    "hammer_begin:",
    "hammer:",
    "push r14",
    "mov r14, rdx",
    "4: cmp dword ptr [rsi], 0",
    "jne 5f",
    "lea r11, [rdi]",
    "shr r11, 2",
    "cmp word ptr gs:[r11 + r11], r14w",
    "hammer_checked:",
    "jne 3f",
    "2: pause",
    "pause",
    "pause",
    "pause",
    "pause",
    "pause",
    "mov dword ptr [rdi], ecx",
    "hammer_done:",
    "jmp 4b",
    "hammer_cold:",
    "3: movzx r11d, word ptr gs:[r11 + r11]",
    "test byte ptr gs:[r14d + r11d], 2",
    "jne 2b",
    "hammer_refused:",
    "mov eax, 1",
    "pop r14",
    "ret",
    "5: xor eax, eax",
    "pop r14",
    "ret",
    "hammer_end:",
);

unsafe extern "C" {
    fn hammer(address: *const u32, stop: *const u32, own: u64, value: u32) -> u32;
    fn hammer_begin();
    fn hammer_checked();
    fn hammer_done();
    fn hammer_cold();
    fn hammer_refused();
    fn hammer_end();
}

fn code() -> Code {
    let at = |symbol: unsafe extern "C" fn()| symbol as usize;
    let checked = vec![
        at(hammer_checked)..at(hammer_done),
        at(hammer_cold)..at(hammer_refused),
    ];
    Code::new(at(hammer_begin)..at(hammer_end), checked).unwrap()
}

struct World {
    supervisor: Supervisor<Table>,
    module: DomainId,
    cells: Arc<[AtomicU32]>,
    range: Range,
}

fn world() -> World {
    let inside = Inside::new().unwrap();
    let space = Range::bytes(0, 1 << ADDRESS_BITS).unwrap();
    let table = Table::reserve(Limits::default(), inside).unwrap();
    let mut supervisor = Supervisor::new(space, table);
    let cells: Arc<[AtomicU32]> = (0..1024).map(|_| AtomicU32::new(0)).collect();
    let start = (cells.as_ptr() as u64).next_multiple_of(64);
    // Some memory of its own, at an address that nobody uses.
    let own = Range::bytes(0x1000, 64).unwrap();
    let module = supervisor
        .pd_subdivide(&ROOT, own, Permission::ReadWrite)
        .unwrap();
    let range = Range::bytes(start, 64).unwrap();
    World {
        supervisor,
        module,
        cells,
        range,
    }
}

impl World {
    /// The first granted word.
    fn cell(&self) -> &AtomicU32 {
        let offset = self.range.address() - self.cells.as_ptr() as u64;
        &self.cells[(offset / 4) as usize]
    }
}

/// What a thread of the module shares with the test.
#[derive(Default)]
struct Told {
    end: AtomicBool,
    rounds: AtomicU64,
}

/// Enters and hammers until it is refused, again and again.
fn visit(inside: &Arc<Inside>, module: DomainId, view: &View, cell: &AtomicU32, told: &Told) {
    let mut visit = inside.visit(module);
    // SAFETY: nothing else uses %gs in this thread; the test keeps the table until the thread has ended.
    unsafe { view.load() };
    let stop = AtomicU32::new(0);
    while !told.end.load(Ordering::Acquire) {
        visit.enter();
        // SAFETY: it stores into the cell, an atomic that the test keeps, and only while the table allows it.
        let refused = unsafe { hammer(cell.as_ptr(), stop.as_ptr(), view.own(), 1) };
        visit.leave();
        assert_eq!(refused, 1);
        told.rounds.fetch_add(1, Ordering::AcqRel);
        std::thread::yield_now();
    }
}

/// Grants, waits until the thread stores, revokes, and looks whether it still stores. How many rounds of them it did.
fn stores_after_revocation(w: &mut World, rounds: u32, threads: usize, settle: bool) -> u32 {
    let _code = code().load();
    let view = w.supervisor.mechanism().view(w.module).unwrap();
    let (told, module) = (Told::default(), w.module);
    let inside = Arc::clone(w.supervisor.mechanism().inside());
    let (cells, range) = (Arc::clone(&w.cells), w.range);
    let offset = (range.address() - cells.as_ptr() as u64) / 4;
    let cell = &cells[offset as usize];
    assert!(std::ptr::eq(cell, w.cell()));
    let settling = if settle {
        Settling::Now
    } else {
        Settling::Later
    };
    w.supervisor.mechanism_mut().set_settling(settling);
    let grant = w
        .supervisor
        .prepare(&ROOT, module, range, Permission::ReadWrite, Level::None)
        .unwrap();
    let mut late = 0;
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| visit(&inside, module, &view, cell, &told));
        }
        for round in 0..rounds {
            w.supervisor.grant_prepared(&ROOT, grant).unwrap();
            cell.store(0, Ordering::SeqCst);
            while cell.load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
            w.supervisor.revoke_prepared(&ROOT, grant).unwrap();
            cell.store(round + 2, Ordering::SeqCst);
            // Whoever is late comes now.
            let seen = told.rounds.load(Ordering::Acquire);
            for _ in 0..200 {
                std::hint::spin_loop();
            }
            while told.rounds.load(Ordering::Acquire) < seen + 2 * threads as u64 {
                std::thread::yield_now();
            }
            late += u32::from(cell.load(Ordering::SeqCst) != round + 2);
        }
        told.end.store(true, Ordering::Release);
    });
    w.supervisor.release(grant).unwrap();
    late
}

#[test]
fn no_access_comes_behind_its_revocation() {
    let _alone = alone();
    let mut w = world();
    for threads in [1, 2, 4] {
        let late = stores_after_revocation(&mut w, 150, threads, true);
        assert_eq!(late, 0, "{threads} threads");
    }
    // On a busy machine the threads may all be outside, each time.
    let is_nobody_inside = |w: &World| w.supervisor.mechanism().inside().signals() == 0;
    for _ in 0..20 {
        if is_nobody_inside(&w) {
            assert_eq!(stores_after_revocation(&mut w, 150, 4, true), 0);
        }
    }
    assert!(!is_nobody_inside(&w), "nobody was ever inside");
}

/// That the test above can fail. Whether it does without the waiting is a matter of time, so it only says.
#[test]
fn without_waiting_accesses_come_late() {
    let _alone = alone();
    let mut w = world();
    let late = stores_after_revocation(&mut w, 100, 2, false);
    println!("{late} of 100 revocations without waiting were followed by a store");
    // What was not waited for can be waited for.
    w.supervisor.mechanism_mut().settle_now();
}

#[test]
fn a_thread_that_another_signal_has_interrupted_is_waited_for() {
    static HELD: AtomicBool = AtomicBool::new(false);
    static GO_ON: AtomicBool = AtomicBool::new(false);
    extern "C" fn hold(_: i32) {
        HELD.store(true, Ordering::SeqCst);
        while !GO_ON.load(Ordering::SeqCst) {
            std::hint::spin_loop();
        }
    }
    let _alone = alone();
    let mut w = world();
    let _code = code().load();
    let view = w.supervisor.mechanism().view(w.module).unwrap();
    let inside = Arc::clone(w.supervisor.mechanism().inside());
    let (told, module, range) = (Told::default(), w.module, w.range);
    let cells = Arc::clone(&w.cells);
    let cell = &cells[((range.address() - cells.as_ptr() as u64) / 4) as usize];
    let own_memory = w
        .supervisor
        .mprot_export(&ROOT, module, range, Permission::ReadWrite);
    own_memory.unwrap();
    // SAFETY: the handler waits for an atomic, and nothing else.
    unsafe { libc::signal(libc::SIGUSR1, hold as *const () as usize) };
    std::thread::scope(|scope| {
        let id = Arc::new(AtomicU32::new(0));
        let (its_id, told_too, inside) = (Arc::clone(&id), &told, &inside);
        let view = &view;
        scope.spawn(move || {
            // SAFETY: it asks for a number.
            its_id.store(unsafe { libc::gettid() } as u32, Ordering::SeqCst);
            visit(inside, module, view, cell, told_too);
        });
        while cell.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        // SAFETY: the thread lives until it is told to end, and has a handler.
        unsafe {
            libc::syscall(
                libc::SYS_tgkill,
                libc::getpid(),
                id.load(Ordering::SeqCst),
                libc::SIGUSR1,
            )
        };
        while !HELD.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        let revoked = Arc::new(AtomicBool::new(false));
        let revoked_too = Arc::clone(&revoked);
        let supervisor = &mut w.supervisor;
        scope.spawn(move || {
            let none = Permission::None;
            supervisor.mprot_export(&ROOT, module, range, none).unwrap();
            revoked_too.store(true, Ordering::SeqCst);
        });
        // It may not return while the thread is held between check and access, or nearly so.
        let asked = inside.signals();
        while inside.signals() < asked + 3 && !revoked.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        let early = revoked.load(Ordering::SeqCst);
        told.end.store(true, Ordering::Release);
        GO_ON.store(true, Ordering::SeqCst);
        assert!(!early, "it returned while the thread could still store");
    });
}

/// A thread may have read a number at a word that has another one by now. A right that the number gets for other
/// words must not serve there.
#[test]
fn a_number_gives_more_only_behind_all_checks_that_may_have_read_it() {
    let _alone = alone();
    let mut w = world();
    let _code = code().load();
    let view = w.supervisor.mechanism().view(w.module).unwrap();
    let inside = Arc::clone(w.supervisor.mechanism().inside());
    let (module, cells) = (w.module, Arc::clone(&w.cells));
    let cell = &cells[((w.range.address() - cells.as_ptr() as u64) / 4) as usize];
    let s = &mut w.supervisor;
    s.mprot_export(&ROOT, module, w.range, Permission::ReadWrite)
        .unwrap();
    let piece = |n: u64| Range::bytes(0x10_0000 + 0x1000 * n, 64).unwrap();
    let other = s
        .pd_subdivide(&ROOT, piece(9), Permission::ReadWrite)
        .unwrap();
    let group = s.group_create(&ROOT).unwrap();
    for n in [0, 1] {
        s.mprot_export(&ROOT, module, piece(n), Permission::Read)
            .unwrap();
        s.mprot_export(&ROOT, group, piece(n), Permission::ReadWrite)
            .unwrap();
    }
    let stop = AtomicU32::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut visit = inside.visit(module);
            // SAFETY: nothing else uses %gs in this thread; the test keeps the table until the thread has ended.
            unsafe { view.load() };
            visit.enter();
            // SAFETY: it stores into the cell, an atomic that the test keeps.
            unsafe { hammer(cell.as_ptr(), stop.as_ptr(), view.own(), 1) };
            visit.leave();
        });
        while cell.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        let before = inside.signals();
        // The module loses nothing by this, so nobody is waited for.
        s.mprot_export(&ROOT, other, piece(0), Permission::Read)
            .unwrap();
        let moved = inside.signals();
        s.group_join(&module, group).unwrap();
        let joined = inside.signals();
        stop.store(1, Ordering::SeqCst);
        assert_eq!(moved, before);
        assert!(
            joined > moved,
            "a thread could still have the number of the first piece"
        );
    });
}

/// Words that change places are taken away like others: no thread that is inside comes behind that with an earlier check.
#[test]
fn a_part_that_moves_waits_for_those_who_are_inside() {
    let _alone = alone();
    let mut w = world();
    let _code = code().load();
    let view = w.supervisor.mechanism().view(w.module).unwrap();
    let inside = Arc::clone(w.supervisor.mechanism().inside());
    let (module, cells) = (w.module, Arc::clone(&w.cells));
    let cell = &cells[((w.range.address() - cells.as_ptr() as u64) / 4) as usize];
    let s = &mut w.supervisor;
    // The thread stores there all the time, and is not refused.
    s.mprot_export(&ROOT, module, w.range, Permission::ReadWrite)
        .unwrap();
    let slab = Range::bytes(0x10_0000, 0x1000).unwrap();
    let slab = s
        .prepare(&ROOT, module, slab, Permission::ReadWrite, Level::None)
        .unwrap();
    let part = |n: u64| Range::bytes(0x10_0000 + 16 * n, 8).unwrap();
    assert_eq!(s.grant_part(&ROOT, slab, part(0)), Ok(true));
    // The first one finds out what the others come to.
    let mut at = 0;
    let mut moves = |s: &mut Supervisor<Table>| {
        at += 1;
        assert!(s.move_part(&ROOT, slab, part(at - 1), part(at)));
    };
    (0..3).for_each(|_| moves(s));
    let stop = AtomicU32::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut visit = inside.visit(module);
            // SAFETY: nothing else uses %gs in this thread; the test keeps the table until the thread has ended.
            unsafe { view.load() };
            visit.enter();
            // SAFETY: it stores into the cell, an atomic that the test keeps.
            unsafe { hammer(cell.as_ptr(), stop.as_ptr(), view.own(), 1) };
            visit.leave();
        });
        while cell.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        let asked = [Settling::Now, Settling::Later].map(|settling| {
            s.mechanism_mut().set_settling(settling);
            let before = inside.signals();
            moves(s);
            let moved = inside.signals();
            s.mechanism_mut().settle_now();
            (moved > before, inside.signals() > moved)
        });
        stop.store(1, Ordering::SeqCst);
        assert_eq!(asked, [(true, false), (false, true)]);
    });
}

/// Threads register while another one revokes, and sees without a lock whether they are there.
#[test]
fn a_thread_that_registers_meanwhile_is_waited_for_or_sees_what_was_written() {
    let _alone = alone();
    let mut w = world();
    let _code = code().load();
    let rounds: u32 = match std::env::var("MULLION_WORD_REGISTERS") {
        Ok(rounds) => rounds.parse().expect("a number"),
        Err(_) => 1_500,
    };
    let grant = w
        .supervisor
        .prepare(&ROOT, w.module, w.range, Permission::ReadWrite, Level::None)
        .unwrap();
    let view = w.supervisor.mechanism().view(w.module).unwrap();
    let inside = Arc::clone(w.supervisor.mechanism().inside());
    let cell: *const AtomicU32 = w.cell();
    // SAFETY: the cells outlive the threads.
    let cell: &AtomicU32 = unsafe { &*cell };
    let (turn, done) = (AtomicU64::new(0), AtomicU64::new(0));
    let (module, turn, done) = (w.module, &turn, &done);
    let (mut behind, mut stores) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // SAFETY: nothing else uses %gs in this thread; the table lives on.
            unsafe { view.load() };
            for round in 1..=u64::from(rounds) {
                while turn.load(Ordering::Acquire) < round {
                    std::hint::spin_loop();
                }
                let mut visit = inside.visit(module);
                visit.enter();
                // It stores until it is refused.
                let never = AtomicU32::new(0);
                // SAFETY: it is the test's memory, and the code is loaded.
                unsafe { hammer(cell.as_ptr(), never.as_ptr(), view.own(), round as u32) };
                let stored = cell.load(Ordering::SeqCst) == round as u32;
                visit.leave();
                drop(visit);
                done.store(round << 1 | u64::from(stored), Ordering::Release);
            }
        });
        let mut state = 1u64;
        for round in 1..=u64::from(rounds) {
            w.supervisor.grant_prepared(&ROOT, grant).unwrap();
            cell.store(0, Ordering::SeqCst);
            turn.store(round, Ordering::Release);
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            for _ in 0..(state >> 33) % 800 {
                std::hint::spin_loop();
            }
            w.supervisor.revoke_prepared(&ROOT, grant).unwrap();
            let now = cell.load(Ordering::SeqCst);
            while done.load(Ordering::Acquire) >> 1 < round {
                std::hint::spin_loop();
            }
            stores += done.load(Ordering::Acquire) & 1;
            behind += u32::from(cell.load(Ordering::SeqCst) != now);
        }
    });
    println!("{stores} of {rounds} stores were in time");
    assert_eq!(behind, 0, "stores behind the revocation");
}
