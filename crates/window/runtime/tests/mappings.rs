//! Mappings of the kernel: what domains take of them is bounded, and comes back though there are none left.
//! A process of its own, which uses them up.
#![expect(clippy::disallowed_methods, reason = "the test maps memory of its own")]

mod support;

use mullion_runtime::{Access, Claimed, Limits, MappingError, PAGE};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use support::{Loaded, Program};

const PROGRAM: &str = "
    .data
    value: .quad 7
    .text
    export get
        movq value(%rip), %rax
        ret
";

/// The process has one number of mappings.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// As many as the process has now.
fn mappings() -> usize {
    std::fs::read_to_string("/proc/self/maps")
        .unwrap()
        .lines()
        .count()
}

fn granted() -> usize {
    let text = std::fs::read_to_string("/proc/sys/vm/max_map_count").unwrap();
    text.trim().parse().unwrap()
}

/// Fills a domain with `count` pages that have gaps between them, or as many as there are.
fn scatter(loaded: &Loaded, count: u64) -> u64 {
    let memory = loaded.domain.memory();
    let first = memory.base() + 0x4000_0000;
    let map = |piece: &u64| {
        let address = first + 2 * piece * PAGE;
        let mapped = memory.map(Some(Claimed(address)), PAGE, Access::ReadWrite);
        // Used, so that the kernel keeps each apart.
        mapped.is_ok() && memory.write(Claimed(address), &[1]).is_ok()
    };
    (0..count).take_while(map).count() as u64
}

/// A thread of the host that has every mapping that there is, and takes each that is given back, until dropped.
struct Greedy {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<usize>>,
}

impl Greedy {
    fn new(granted: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (told, none_left) = (stop.clone(), Arc::new(Barrier::new(2)));
        let reached = none_left.clone();
        let length = 2 * granted * 4096;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at a place of the kernel's choice.
        let start = unsafe { libc::mmap(ptr::null_mut(), length, libc::PROT_NONE, flags, -1, 0) };
        assert_ne!(start, libc::MAP_FAILED);
        let start = start.expose_provenance();
        let run = move || {
            let (mut taken, mut waits) = (0, true);
            // Their list grows while nothing can be mapped.
            let mut lasts: Vec<usize> = Vec::with_capacity(granted);
            while !told.load(Ordering::Relaxed) && taken < granted {
                let page = ptr::with_exposed_provenance_mut(start + 2 * taken * 4096);
                // SAFETY: a page of the mapping made above, of which nobody else knows.
                let page = unsafe {
                    libc::mmap(page, 4096, libc::PROT_READ, flags | libc::MAP_FIXED, -1, 0)
                };
                if page != libc::MAP_FAILED {
                    taken += 1;
                    continue;
                }
                // Linux refuses to cut a mapping in two a little earlier than it refuses a new one.
                let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
                // SAFETY: a new mapping at a place of the kernel's choice, never touched.
                let last =
                    unsafe { libc::mmap(ptr::null_mut(), 4096, libc::PROT_READ, flags, -1, 0) };
                if last != libc::MAP_FAILED && lasts.len() < lasts.capacity() {
                    lasts.push(last.expose_provenance());
                } else if std::mem::take(&mut waits) {
                    none_left.wait();
                }
            }
            for last in &lasts {
                // SAFETY: a mapping made above.
                let unmapped =
                    unsafe { libc::munmap(ptr::with_exposed_provenance_mut(*last), 4096) };
                assert_eq!(unmapped, 0);
            }
            // SAFETY: the mapping made above.
            let unmapped = unsafe { libc::munmap(ptr::with_exposed_provenance_mut(start), length) };
            assert_eq!(unmapped, 0);
            taken + lasts.len()
        };
        let thread = Some(std::thread::spawn(run));
        reached.wait();
        Self { stop, thread }
    }

    fn end(&mut self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        self.thread
            .take()
            .map_or(0, |thread| thread.join().unwrap())
    }
}

impl Drop for Greedy {
    fn drop(&mut self) {
        self.end();
    }
}

/// Leaves the C library's allocator with so much memory that this test's own needs are met.
fn room_for_the_allocator() {
    // SAFETY: plain calls.
    unsafe {
        libc::mallopt(libc::M_TRIM_THRESHOLD, 1 << 30);
        libc::mallopt(libc::M_MMAP_THRESHOLD, 1 << 30);
    }
    drop((0..64).map(|_| vec![1_u8; 1 << 20]).collect::<Vec<_>>());
}

#[test]
fn giving_back_needs_no_mapping_whatever_other_threads_take() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let granted = granted();
    if granted > 100_000 {
        println!("not tried: this system lets a process have {granted} mappings");
        return;
    }
    room_for_the_allocator();
    let program = Program::new(PROGRAM);
    let limits = Limits {
        mappings: usize::MAX,
        ..Limits::default()
    };
    let load = |_| program.load_with(Vec::new(), limits.clone());
    let mut all: Vec<Loaded> = (0..40).map(load).collect();
    // A thread's stack in a domain is taken at its first call, and stays.
    let call = |loaded: &Loaded| assert_eq!(loaded.call("get", &[]).unwrap().integer, 7);
    all.iter().for_each(call);
    let (before, own) = (mappings(), all[0].domain.memory().mappings());
    let fill = |(number, loaded): (usize, &Loaded)| {
        let memory = loaded.domain.memory();
        // One with the image's last pages, one behind a gap, or neither.
        if number % 3 == 0 {
            let end = memory.set_heap_end(Claimed(0));
            assert_eq!(memory.set_heap_end(Claimed(end + 5 * PAGE)), end + 5 * PAGE);
            assert!(memory.write(Claimed(end), &[1; 100]).is_ok());
        }
        if number % 2 == 0 {
            scatter(loaded, 500);
        }
    };
    all.iter().enumerate().for_each(fill);
    let mut greedy = Greedy::new(granted);
    let mut refused = 0;
    for round in 0..20 {
        // The greedy thread takes a while for what a round gives back.
        let begin = Instant::now();
        while host_can_map() {
            assert!(begin.elapsed() < Duration::from_secs(20), "round {round}");
        }
        for (number, loaded) in all.iter_mut().enumerate() {
            let restarted = loaded.domain.restart();
            restarted.unwrap_or_else(|error| panic!("{round}, domain {number}: {error}"));
            call(loaded);
            refused += usize::from(!host_can_map());
            // What the life before had there is gone.
            let memory = loaded.domain.memory();
            let (heap, page) = (memory.set_heap_end(Claimed(0)), memory.base() + 0x4000_0000);
            let mut byte = [1];
            let ready = memory.piece(Claimed(heap), 1).unwrap().read(&mut byte);
            assert!(ready.is_err() || byte == [0], "{round}, domain {number}");
            assert!(memory.read::<1>(Claimed(page)).is_err());
            if memory.access(Claimed(heap)).is_some() {
                // What stayed mapped is the heap's first.
                assert_eq!(
                    memory.set_heap_end(Claimed(heap + 5 * PAGE)),
                    heap + 5 * PAGE
                );
                assert!(memory.write(Claimed(heap), &[1; 100]).is_ok());
            }
        }
    }
    assert!(
        refused > 400,
        "there were mappings most of the time: {refused} of 800"
    );
    let half = all.split_off(20);
    drop(half);
    println!(
        "the greedy thread had {} mappings, {} are refused",
        greedy.end(),
        refused
    );
    for loaded in &mut all {
        loaded.domain.restart().unwrap();
        assert_eq!(loaded.domain.memory().mappings(), own);
    }
    drop(all);
    let left = mappings();
    assert!(left < before + 100, "{before}, then {left}");
    let again: Vec<Loaded> = (0..80).map(load).collect();
    again.iter().for_each(call);
}

fn host_can_map() -> bool {
    // SAFETY: a mapping of one page at a place of the kernel's choice, and its end.
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let page = libc::mmap(ptr::null_mut(), 4096, libc::PROT_READ, flags, -1, 0);
        page != libc::MAP_FAILED && libc::munmap(page, 4096) == 0
    }
}

#[test]
fn what_has_used_all_mappings_up_gives_them_back() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let (granted, domains, pieces) = (granted(), 82, 1000);
    if granted > 100_000 {
        println!("not tried: this system lets a process have {granted} mappings");
        return;
    }
    let program = Program::new(PROGRAM);
    drop(program.load());
    let before = mappings();
    let limits = Limits {
        mappings: usize::MAX,
        ..Limits::default()
    };
    let load = |_| program.load_with(Vec::new(), limits.clone());
    let mut all: Vec<Loaded> = (0..domains).map(load).collect();
    let scattered: u64 = all.iter().map(|loaded| scatter(loaded, pieces)).sum();
    println!("{scattered} pieces, {} mappings of {granted}", mappings());
    assert!(scattered < domains * pieces, "there were enough");
    for round in 0..2 {
        for (number, loaded) in all.iter_mut().enumerate() {
            let restarted = loaded.domain.restart();
            restarted.unwrap_or_else(|error| panic!("{round}, domain {number}: {error}"));
            assert_eq!(loaded.call("get", &[]).unwrap().integer, 7);
        }
        assert!(mappings() < granted / 2, "{}", mappings());
        assert!(host_can_map());
        if round == 0 {
            all.iter().for_each(|loaded| _ = scatter(loaded, pieces));
        }
    }
    all.iter().for_each(|loaded| _ = scatter(loaded, pieces));
    drop(all);
    let left = mappings();
    assert!(left < before + 1000, "{before}, then {left}");
    assert!(host_can_map());
    assert_eq!(program.load().call("get", &[]).unwrap().integer, 7);
}

#[test]
fn mappings_are_limited_as_memory_is() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let program = Program::new(PROGRAM);
    let own = program.load().domain.memory().mappings();
    let limits = |mappings| Limits {
        mappings,
        ..Limits::default()
    };
    let loaded = program.load_with(Vec::new(), limits(own + 20));
    assert_eq!(scatter(&loaded, 1000), 10, "a page and a gap each");
    let memory = loaded.domain.memory();
    let refused = memory.map(
        Some(Claimed(memory.base() + 0x6000_0000)),
        PAGE,
        Access::Read,
    );
    let (needed, limit) = (own + 22, own + 20);
    assert_eq!(refused, Err(MappingError::Mappings { needed, limit }));
    let image = program.image.clone();
    let few = mullion_runtime::WindowDomain::new(image, Vec::new(), limits(own - 1));
    assert!(matches!(few, Err(mullion_runtime::Error::Mappings { .. })));
}
