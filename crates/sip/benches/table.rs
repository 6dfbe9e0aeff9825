//! The process side of the paper's Table 1, beside Linux: `cargo bench -p mullion-sip --bench table`.
//!
//! Everything runs on one core, in one run. Cycles are of the time-stamp counter; each figure is the median of
//! batches, with the least beside it.

use std::hint::black_box;
use std::num::NonZeroUsize;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mullion_sip::exchange::Handles;
use mullion_sip::heap::ProcessHeaps;
use mullion_sip::kernel::kernel;
use mullion_sip::process::names;
use mullion_sip::process::{Home, Options, Program, Rights, spawn};
use mullion_sip::wait::{self, Waiter};
use mullion_sip::{Start, thread};

#[global_allocator]
static HEAPS: ProcessHeaps = ProcessHeaps;

const BATCHES: usize = 101;

struct Row {
    name: &'static str,
    paper: &'static str,
    median: f64,
    least: f64,
}

static ROWS: Mutex<Vec<Row>> = Mutex::new(Vec::new());

fn ticks() -> u64 {
    // SAFETY: reads a counter.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// `batch` does the thing so many times; the row is per time.
fn measure(name: &'static str, paper: &'static str, times: u32, mut batch: impl FnMut(u32)) {
    batch(times);
    let mut samples: Vec<f64> = Vec::with_capacity(BATCHES);
    for _ in 0..BATCHES {
        let begin = ticks();
        batch(times);
        samples.push((ticks() - begin) as f64 / f64::from(times));
    }
    report(name, paper, samples);
}

fn report(name: &'static str, paper: &'static str, mut samples: Vec<f64>) {
    samples.sort_by(f64::total_cmp);
    let row = Row {
        name,
        paper,
        median: samples[samples.len() / 2],
        least: samples[0],
    };
    // Rows outlive the process that measures.
    let _host = mullion_sip::critical::as_host();
    ROWS.lock().expect("one at a time").push(row);
}

fn in_process<T: Handles>(main: fn(T), argument: T, home: usize) -> mullion_sip::process::Child {
    // SAFETY: rows are kept as the host; nothing else outlives the process.
    let program = unsafe { Program::new("bench", main) };
    let mut options = Options {
        home: Home::Worker(home),
        rights: Rights::all(),
        ..Options::default()
    };
    options.limits.slice = Duration::from_secs(100);
    options.limits.threads = 100_000;
    options.limits.children = 100_000;
    spawn(program, argument, &options).expect("a process")
}

fn calls(_: ()) {
    let kernel = black_box(kernel());
    measure("ABI call", "80", 100_000, |times| {
        for _ in 0..times {
            black_box((kernel.process)());
        }
    });
    measure("time", "", 10_000, |times| {
        for _ in 0..times {
            black_box((kernel.now)());
        }
    });
    measure(
        "page allocation (16 KiB) and release",
        "385 (4 KiB)",
        10_000,
        |times| {
            for _ in 0..times {
                let pages = (kernel.allocate_pages)(1);
                (kernel.release_pages)(black_box(pages));
            }
        },
    );
    measure("64-byte block of the heap and back", "", 10_000, |times| {
        for _ in 0..times {
            black_box(Box::new([0u64; 8]));
        }
    });
    measure("name bind and unbind", "39067", 1_000, |times| {
        for _ in 0..times {
            names::bind("/bench/name", [0; 32]).expect("free");
            names::unbind("/bench/name").expect("bound");
        }
    });
}

fn threads(_: ()) {
    const MANY: u32 = 64;
    let mut made = Vec::with_capacity(BATCHES);
    measure("thread: made, run and ended", "", MANY, |times| {
        let begin = ticks();
        for _ in 0..times {
            thread::spawn(|| ()).expect("a thread");
        }
        if made.len() < BATCHES {
            made.push((ticks() - begin) as f64 / f64::from(times));
        }
        thread::yield_now();
    });
    report("thread creation", "16933", made);
    thread::spawn(|| {
        loop {
            thread::yield_now();
        }
    })
    .expect("a thread");
    // Each turn of ours is one of the other's: two yields.
    measure("thread yield", "365", 10_000, |times| {
        for _ in 0..times / 2 {
            thread::yield_now();
        }
    });
}

fn processes(_: ()) {
    const MANY: u32 = 64;
    // SAFETY: it does nothing.
    let program = unsafe { Program::new("child", |()| ()) };
    let options = Options::default();
    let mut made = Vec::with_capacity(BATCHES);
    measure("process: made, run, ended, waited for", "", MANY, |times| {
        let begin = ticks();
        let children: Vec<_> = (0..times)
            .map(|_| spawn(program, (), &options).expect("a process"))
            .collect();
        if made.len() < BATCHES {
            made.push((ticks() - begin) as f64 / f64::from(times));
        }
        thread::yield_now();
        for child in children {
            child.wait();
        }
    });
    report("process creation", "388162", made);
}

static PARTNERS: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];
static BALL: AtomicU64 = AtomicU64::new(0);

fn echo(_: ()) {
    PARTNERS[1].store(wait::current().to_bits(), Ordering::Release);
    loop {
        while BALL.load(Ordering::Acquire) == 0 {
            wait::park();
        }
        BALL.store(0, Ordering::Release);
        wait::unpark(Waiter::from_bits(PARTNERS[0].load(Ordering::Relaxed)));
    }
}

fn pinging((across, times): (bool, u32)) {
    let name = if across {
        "park and unpark, there and back, two workers"
    } else {
        "park and unpark, there and back, one worker"
    };
    PARTNERS[0].store(wait::current().to_bits(), Ordering::Release);
    while PARTNERS[1].load(Ordering::Acquire) == 0 {
        thread::yield_now();
    }
    let partner = Waiter::from_bits(PARTNERS[1].load(Ordering::Acquire));
    measure(name, "", times, |times| {
        for _ in 0..times {
            BALL.store(1, Ordering::Release);
            wait::unpark(partner);
            while BALL.load(Ordering::Acquire) == 1 {
                wait::park();
            }
        }
    });
}

fn ping(homes: [usize; 2], times: u32) {
    PARTNERS[1].store(0, Ordering::Release);
    BALL.store(0, Ordering::Release);
    let other = in_process(echo, (), homes[1]);
    in_process(pinging, (homes[0] != homes[1], times), homes[0]).wait();
    other.kill();
    other.wait();
}

fn linux() {
    measure("Linux: getppid", "", 10_000, |times| {
        for _ in 0..times {
            // SAFETY: asks only.
            black_box(unsafe { libc::syscall(libc::SYS_getppid) });
        }
    });
    measure("Linux: mmap, touch and munmap (16 KiB)", "", 200, |times| {
        for _ in 0..times {
            // SAFETY: a mapping of our own.
            unsafe {
                let (access, kind) = (
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                );
                let pages = libc::mmap(std::ptr::null_mut(), 16 << 10, access, kind, -1, 0);
                pages.cast::<u8>().write_volatile(1);
                libc::munmap(pages, 16 << 10);
            }
        }
    });
    measure("Linux: pthread create and join", "", 20, |times| {
        for _ in 0..times {
            std::thread::spawn(|| ()).join().expect("it returns");
        }
    });
    measure(
        "Linux: sched_yield, two threads on a core",
        "",
        2_000,
        |times| {
            let other =
                std::thread::spawn(move || (0..times / 2).for_each(|_| std::thread::yield_now()));
            (0..times / 2).for_each(|_| std::thread::yield_now());
            other.join().expect("it returns");
        },
    );
    measure("Linux: pipe and close", "", 200, |times| {
        for _ in 0..times {
            black_box(std::io::pipe().expect("a pipe"));
        }
    });
    measure("Linux: posix_spawn and wait (/bin/true)", "", 3, |times| {
        for _ in 0..times {
            Command::new("/bin/true").status().expect("true");
        }
    });
    measure("Linux: fork, exec and wait (/bin/true)", "", 3, |times| {
        for _ in 0..times {
            let path = c"/bin/true";
            // SAFETY: the child does nothing but exec or leave.
            unsafe {
                let child = libc::fork();
                if child == 0 {
                    let arguments = [path.as_ptr(), std::ptr::null()];
                    libc::execv(path.as_ptr(), arguments.as_ptr());
                    libc::_exit(1);
                }
                let mut status = 0;
                libc::waitpid(child, &mut status, 0);
            }
        }
    });
}

/// Bytes of memory that the program has for each of many processes that wait.
fn idle_memory() -> usize {
    const MANY: usize = 10_000;
    let before = resident();
    let many: Vec<_> = (0..MANY)
        .map(|number| in_process(|()| wait::park(), (), number % 2))
        .collect();
    while mullion_sip::process::statistics()
        .iter()
        .any(|process| process.threads == 0)
    {
        std::thread::yield_now();
    }
    std::thread::sleep(Duration::from_millis(100));
    let each = (resident() - before) / MANY;
    many.iter().for_each(|child| child.kill());
    many.iter().for_each(|child| {
        child.wait();
    });
    each
}

/// Bytes of memory that the program has.
fn resident() -> usize {
    let statistics = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages: usize = statistics
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse().ok())
        .expect("a number");
    pages * 4096
}

/// Ticks of the time-stamp counter in a nanosecond.
fn frequency() -> f64 {
    let (begin, ticks_begin) = (Instant::now(), ticks());
    std::thread::sleep(Duration::from_millis(200));
    (ticks() - ticks_begin) as f64 / begin.elapsed().as_nanos() as f64
}

fn main() {
    // `cargo test` runs benches too, with other arguments.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    mullion_sip::start(Start {
        workers: NonZeroUsize::new(2),
    })
    .expect("workers");
    let per_nanosecond = frequency();
    in_process(calls, (), 0).wait();
    in_process(threads, (), 0).wait();
    in_process(processes, (), 0).wait();
    ping([0, 0], 10_000);
    ping([0, 1], 1_000);
    // The system's rows on one core too.
    // SAFETY: plain data, written before it is read.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(0, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
    linux();
    // Last: ten thousand stacks make a fork slow.
    let idle = idle_memory();
    println!("time-stamp counter: {per_nanosecond:.3} GHz; medians of {BATCHES} batches");
    println!("memory for each of 10,000 processes that wait: {idle} bytes\n");
    println!("| operation | cycles | ns | least, cycles | paper, cycles |");
    println!("| --- | ---: | ---: | ---: | ---: |");
    for row in ROWS.lock().expect("nobody else").iter() {
        let (name, paper, median, least) = (row.name, row.paper, row.median, row.least);
        println!(
            "| {name} | {median:.0} | {:.1} | {least:.0} | {paper} |",
            median / per_nanosecond
        );
    }
}
