//! The paper's Table 1, as far as one process can measure it: calls of the kernel's interface.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mullion_sip::exchange::Handles;
use mullion_sip::kernel::kernel;
use mullion_sip::process::names;
use mullion_sip::process::{Child, Home, Options, Program, Rights, spawn};
use mullion_sip::thread;
use mullion_sip::wait::{self, Waiter};

use crate::clock;
use crate::messages::{Payload, ping};
use crate::row::{Of, Where, measure, report};

pub(crate) const BATCHES: usize = 201;

pub(crate) const fn of(operation: &'static str) -> Of {
    Of::new(operation, "mullion", Where::OneWorker)
}

pub(crate) fn in_process<T: Handles>(main: fn(T), argument: T, home: usize) -> Child {
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

pub(crate) fn run() {
    in_process(calls, (), 0).wait();
    in_process(blocks, (), 0).wait();
    in_process(threads, (), 0).wait();
    in_process(processes, (), 0).wait();
    park_and_unpark([0, 0], 1_000);
    park_and_unpark([0, 1], 200);
}

fn calls(_: ()) {
    let kernel = black_box(kernel());
    let call = of("ABI call").paper(80.0).aim(5.0);
    measure(call, BATCHES, 10_000, |times| {
        for _ in 0..times {
            black_box((kernel.process)());
        }
    });
    measure(of("time"), BATCHES, 1_000, |times| {
        for _ in 0..times {
            black_box((kernel.now)());
        }
    });
    let pages = of("page allocation (16 KiB) and release").paper(385.0);
    measure(pages, BATCHES, 1_000, |times| {
        for _ in 0..times {
            let pages = (kernel.allocate_pages)(1);
            (kernel.release_pages)(black_box(pages));
        }
    });
    let bind = of("name bind and unbind").paper(39_067.0).aim(1_000.0);
    measure(bind, BATCHES, 200, |times| {
        for _ in 0..times {
            names::bind("/bench/name", [0; 32]).expect("free");
            names::unbind("/bench/name").expect("bound");
        }
    });
}

fn blocks(_: ()) {
    let heap = of("block of the process's heap, made and dropped").bytes(64);
    measure(heap, BATCHES, 1_000, |times| {
        for _ in 0..times {
            drop(black_box(Box::new([0u64; 8])));
        }
    });
    let exchange = of("block of the exchange heap, made and dropped").bytes(64);
    measure(exchange, BATCHES, 1_000, |times| {
        for _ in 0..times {
            drop(black_box(mullion_sip::ExBox::new([0u64; 8])));
        }
    });
    let channel = of("channel, made and dropped").paper(4_007.0).aim(300.0);
    measure(channel, BATCHES, 1_000, |times| {
        for _ in 0..times {
            drop(black_box(ping::channel().expect("memory")));
        }
    });
    for bytes in crate::messages::SIZES {
        let (client, server) = ping::channel().expect("memory");
        let (mut client, mut server) = (Some(client), Some(server));
        let mut message = Some(Payload::of(bytes));
        let both = Of::new("send-receive", "mullion", Where::OneThread).bytes(bytes);
        measure(both, BATCHES, 500, |times| {
            let ends = (client.take().expect("left"), server.take().expect("left"));
            let (near, far, sent) =
                crate::messages::alone(ends, message.take().expect("left"), times);
            (client, server, message) = (Some(near), Some(far), Some(sent));
        });
    }
}

fn threads(_: ()) {
    const MANY: u32 = 64;
    let mut made = Vec::with_capacity(BATCHES);
    measure(of("thread made, run and ended"), BATCHES, MANY, |times| {
        let begin = clock::now();
        for _ in 0..times {
            thread::spawn(|| ()).expect("a thread");
        }
        if made.len() < BATCHES {
            made.push((clock::now() - begin) as f64 / f64::from(times));
        }
        thread::yield_now();
    });
    report(of("thread creation").paper(16_933.0).aim(150.0), made);
    thread::spawn(|| {
        loop {
            thread::yield_now();
        }
    })
    .expect("a thread");
    // Each turn of ours is one of the other's: two yields.
    let yields = of("thread yield").paper(365.0).aim(15.0);
    measure(yields, BATCHES, 1_000, |times| {
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
    let whole = of("process made, run, ended and waited for");
    measure(whole, BATCHES, MANY, |times| {
        let begin = clock::now();
        let children: Vec<_> = (0..times)
            .map(|_| spawn(program, (), &options).expect("a process"))
            .collect();
        if made.len() < BATCHES {
            made.push((clock::now() - begin) as f64 / f64::from(times));
        }
        thread::yield_now();
        for child in children {
            child.wait();
        }
    });
    report(of("process creation").paper(388_162.0).aim(5_000.0), made);
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
    let place = if across {
        Where::TwoWorkers
    } else {
        Where::OneWorker
    };
    let row = Of::new("park and unpark, there and back", "mullion", place);
    PARTNERS[0].store(wait::current().to_bits(), Ordering::Release);
    while PARTNERS[1].load(Ordering::Acquire) == 0 {
        thread::yield_now();
    }
    let partner = Waiter::from_bits(PARTNERS[1].load(Ordering::Acquire));
    measure(row, BATCHES, times, |times| {
        for _ in 0..times {
            BALL.store(1, Ordering::Release);
            wait::unpark(partner);
            while BALL.load(Ordering::Acquire) == 1 {
                wait::park();
            }
        }
    });
}

fn park_and_unpark(homes: [usize; 2], times: u32) {
    PARTNERS[1].store(0, Ordering::Release);
    BALL.store(0, Ordering::Release);
    let other = in_process(echo, (), homes[1]);
    in_process(pinging, (homes[0] != homes[1], times), homes[0]).wait();
    other.kill();
    other.wait();
}
