//! What crossing the wall costs. `cargo bench -p mullion-runtime [-- WORD]`; a table
//! of the least and the median on standard output, of rows with the word.

mod peer;
#[path = "../tests/support/mod.rs"]
mod support;

use mullion_runtime::{
    Access, CallArguments, Claimed, Clock, Limits, LinkOptions, PAGE, SharedPages, WindowDomain,
};
use std::hint::black_box;
use std::time::{Duration, Instant};
use support::{Program, host};

const SAMPLES: usize = 51;

const PROGRAM: &str = "
    import nothing
    export null
        ret
    export calls
        movl %edi, %ebx
    1:  call nothing
        subl $1, %ebx
        jnz 1b
        ret
    export fail
        xorl %eax, %eax
        movq %gs:(%eax), %rax
        ret
";

extern "C" fn plain(value: u64) -> u64 {
    value
}

fn main() {
    if std::env::args().any(|argument| argument == peer::ANSWER) {
        return peer::answer();
    }
    println!(
        "{:44} {:>10} {:>10}",
        "of 51 runs, in ns", "least", "median"
    );
    let function: extern "C" fn(u64) -> u64 = black_box(plain);
    row("plain call", 10_000, || {
        black_box(function(1));
    });
    row("getppid", 1_000, || {
        // SAFETY: the call has no operands.
        black_box(unsafe { libc::getppid() });
    });
    let mut peer = peer::Peer::start().unwrap();
    row("another process and back, by pipes", 200, || {
        peer.ask().unwrap();
    });
    peer.stop().unwrap();
    let program = Program::lean(PROGRAM);
    let load = |limits| program.load_with(vec![host(|_| Ok(0))], limits);
    let (one, two) = (load(Limits::default()), load(Limits::default()));
    let arguments = CallArguments::default();
    let entry = |loaded: &support::Loaded, name| {
        loaded.domain.entry(Claimed(loaded.address(name))).unwrap()
    };
    let (null, other) = (entry(&one, "null"), entry(&two, "null"));
    row("host -> domain -> host, same domain", 10_000, || {
        black_box(one.domain.call(null, &arguments)).unwrap();
    });
    row("host -> domain -> host, two domains in turn", 5_000, || {
        black_box(one.domain.call(null, &arguments)).unwrap();
        black_box(two.domain.call(other, &arguments)).unwrap();
    });
    let any = Program::new(PROGRAM).load_with(vec![host(|_| Ok(0))], Limits::default());
    let any_null = entry(&any, "null");
    row("host -> domain -> host, with x87 and MXCSR", 10_000, || {
        black_box(any.domain.call(any_null, &arguments)).unwrap();
    });
    row("host -> domain -> host, 8 arguments", 10_000, || {
        let arguments = CallArguments::new(black_box(&[1, 2, 3, 4, 5, 6, 7, 8]));
        black_box(one.domain.call(null, &arguments)).unwrap();
    });
    let timed = load(Limits {
        time: Some(Duration::from_secs(10)),
        ..Limits::default()
    });
    let timed_null = entry(&timed, "null");
    row("host -> domain -> host, with a time limit", 10_000, || {
        black_box(timed.domain.call(timed_null, &arguments)).unwrap();
    });
    for (clock, name) in [
        (Clock::Wall, "host -> domain -> host, time measured"),
        (
            Clock::Processor,
            "host -> domain -> host, time on a processor",
        ),
    ] {
        let measured = load(Limits {
            measured: Some(clock),
            ..Limits::default()
        });
        let null = entry(&measured, "null");
        row(name, 10_000, || {
            black_box(measured.domain.call(null, &arguments)).unwrap();
        });
    }
    let calls = entry(&one, "calls");
    row("domain -> host -> domain", 10, || {
        one.domain
            .call(calls, &CallArguments::new(&[1000]))
            .unwrap();
    });
    let linked = load(Limits::default());
    let options = LinkOptions::default();
    linked
        .domain
        .link(0, &two.domain, other, options.clone())
        .unwrap();
    let calls = entry(&linked, "calls");
    row("domain -> domain -> domain", 10, || {
        linked
            .domain
            .call(calls, &CallArguments::new(&[1000]))
            .unwrap();
    });
    let leanest = Program::leanest(PROGRAM.split("export fail").next().unwrap());
    let load_leanest = || leanest.load_with(vec![host(|_| Ok(0))], Limits::default());
    let (three, four) = (load_leanest(), load_leanest());
    let (null, calls) = (entry(&four, "null"), entry(&three, "calls"));
    let first = entry(&three, "null");
    row("two domains in turn, without %gs", 5_000, || {
        black_box(three.domain.call(first, &arguments)).unwrap();
        black_box(four.domain.call(null, &arguments)).unwrap();
    });
    three.domain.link(0, &four.domain, null, options).unwrap();
    row("domain -> domain -> domain, without %gs", 10, || {
        three
            .domain
            .call(calls, &CallArguments::new(&[1000]))
            .unwrap();
    });
    row("new domain, and drop it", 100, || drop(new(&program)));
    row("new domain, one call, and drop it", 100, || {
        let domain = new(&program);
        let entry = domain.entry(Claimed(
            domain.memory().base() + one.address("null") - one.domain.memory().base(),
        ));
        domain.call(entry.unwrap(), &arguments).unwrap();
    });
    let mut again = load(Limits::default());
    row("restart", 100, || again.domain.restart().unwrap());
    let object = SharedPages::new(PAGE).unwrap();
    let share = |access| object.grant(&one.domain, 0..PAGE, access).unwrap();
    row("share a page, and take it away", 100, || {
        share(Access::ReadWrite);
        share(Access::None);
    });
    let mut bad = load(Limits::default());
    let mut faults: Vec<u128> = Vec::new();
    for _ in 0..500 {
        let fail = entry(&bad, "fail");
        let start = Instant::now();
        black_box(bad.domain.call(fail, &arguments)).unwrap_err();
        faults.push(start.elapsed().as_nanos());
        bad.domain.restart().unwrap();
    }
    faults.sort_unstable();
    println!(
        "{:44} {:>10} {:>10}",
        "fault to error",
        faults[0],
        faults[faults.len() / 2]
    );
}

fn new(program: &Program) -> WindowDomain {
    program
        .load_with(vec![host(|_| Ok(0))], Limits::default())
        .domain
}

/// The row's names say how many operations one call of `operation` does.
fn row(name: &str, count: u32, mut operation: impl FnMut()) {
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    if words.next_back().is_some_and(|word| !name.contains(&word)) {
        return;
    }
    let per_call = match name {
        _ if name.starts_with("domain ->") => 1000,
        _ if name.contains("two domains") => 2,
        _ => 1,
    };
    let mut samples: Vec<f64> = (0..SAMPLES)
        .map(|_| {
            let start = Instant::now();
            (0..count).for_each(|_| operation());
            start.elapsed().as_nanos() as f64 / f64::from(count * per_call)
        })
        .collect();
    samples.sort_by(f64::total_cmp);
    println!(
        "{name:44} {:>10.1} {:>10.1}",
        samples[0],
        samples[SAMPLES / 2]
    );
}
