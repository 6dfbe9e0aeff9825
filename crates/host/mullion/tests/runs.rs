//! Random runs: calls, gates, faults, restarts, links, shared pages, threads that come and go, limits,
//! cancels and signals, from a seed, against a plain model of what must be true.
//!
//! `MULLION_SEED` chooses the runs, `MULLION_STEPS` the steps of a run. There are 600 runs, and then 300,000 calls of
//! several threads at once; with `MULLION_SECONDS` each part takes so long (hours, by command). A run that fails is printed as its shortest list of
//! steps that still fails, with the seed.

mod support;

#[path = "runs/crowd.rs"]
mod crowd;
#[path = "runs/model.rs"]
mod model;
#[path = "runs/process.rs"]
mod process;
#[path = "runs/step.rs"]
mod step;
#[path = "runs/world.rs"]
mod world;

use mullion::Image;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, Instant};
use step::{Random, Step};

static IMAGE: LazyLock<Image> = LazyLock::new(|| {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/extensions/runs.c");
    let image = directory.path().join("runs.mx");
    support::build(&source, &image, &[]);
    Image::open(&image).expect("it is verified")
});

fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{name} is a number")),
        Err(_) => default,
    }
}

/// Runs the steps in a new world; what went wrong.
fn run(steps: &[Step]) -> Result<(), String> {
    let ran = catch_unwind(AssertUnwindSafe(|| {
        let mut world = world::World::new();
        for (index, step) in steps.iter().enumerate() {
            world
                .take(step)
                .map_err(|wrong| format!("step {index}, {step:?}: {wrong}"))?;
        }
        world.look().map_err(|wrong| format!("at the end: {wrong}"))
    }));
    ran.unwrap_or_else(|_| Err("a panic, see above".to_owned()))
}

/// Leaves out what is not needed for a run to fail, in ever smaller pieces.
fn shrink(mut steps: Vec<Step>) -> Vec<Step> {
    let mut piece = steps.len() / 2;
    while piece > 0 {
        let mut from = 0;
        while from < steps.len() {
            let mut fewer = steps.clone();
            fewer.drain(from..(from + piece).min(steps.len()));
            match run(&fewer) {
                Err(_) => steps = fewer,
                Ok(()) => from += piece,
            }
        }
        piece /= 2;
    }
    steps
}

/// In one function, as handlers, mappings and descriptors belong to the process.
#[test]
fn runs_do_what_the_model_says_and_leave_nothing_behind() {
    let seed = number("MULLION_SEED", 1);
    let length = number("MULLION_STEPS", 300) as usize;
    let seconds = number("MULLION_SECONDS", 0);
    // By count, unless a time is asked for: the same runs on each machine, however busy it is.
    let is_enough = |done: u64, wanted: u64, begun: Instant| match seconds {
        0 => done >= wanted,
        _ => begun.elapsed() >= Duration::from_secs(seconds),
    };
    process::make_signals();
    std::panic::set_hook(Box::new(process::say_panic));
    run(&Random::new(seed).steps(length)).unwrap_or_else(|wrong| fail(seed, length, &wrong));
    crowd::run(seed, |calls| calls >= 10_000);
    // The watchdog's thread is there, and those of calls that were given up are not.
    std::thread::sleep(Duration::from_millis(500));
    let before = process::Usage::now();

    let begun = Instant::now();
    let (mut runs, mut kinds) = (0, std::collections::BTreeMap::new());
    while !is_enough(runs, 600, begun) {
        let own = seed.wrapping_add(runs);
        let steps = Random::new(own).steps(length);
        for step in &steps {
            *kinds.entry(step.name()).or_insert(0_u64) += 1;
        }
        run(&steps).unwrap_or_else(|wrong| fail(own, length, &wrong));
        runs += 1;
    }
    println!("{runs} runs of {length} steps from seed {seed}: {kinds:?}");
    process::Usage::at_rest(before).assert_as(before);
    let begun = Instant::now();
    let calls = crowd::run(seed, |calls| is_enough(calls, 300_000, begun));
    println!("{calls} calls of several threads");
    process::Usage::at_rest(before).assert_as(before);
    process::assert_signals();
}

fn fail(seed: u64, length: usize, wrong: &str) -> ! {
    println!("seed {seed}: {wrong}; looking for a shorter run");
    let steps = shrink(Random::new(seed).steps(length));
    println!(
        "MULLION_SEED={seed} MULLION_STEPS={length}: {} steps are enough:",
        steps.len()
    );
    for step in &steps {
        println!("    {step:?},");
    }
    panic!("seed {seed}: {wrong}; the shortest: {:?}", run(&steps));
}
