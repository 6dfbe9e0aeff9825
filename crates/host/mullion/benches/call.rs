//! What the typed interface adds to a crossing: `cargo bench -p mullion`.
//!
//! The run time's own call, without names, locks and logs, is measured beside it by
//! `cargo bench -p mullion-runtime`. Prints the minimum and the median of rounds.

#[path = "../tests/support/mod.rs"]
mod support;

use mullion::{Callback, Caller, Domain, DomainMemory, Image, Imports, Ptr};
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

const ROUNDS: usize = 31;
/// What a round takes.
const ROUND: Duration = Duration::from_millis(5);

fn main() -> Result<(), mullion::Error> {
    let domain = domain()?;
    let nothing = domain.function::<fn()>("nothing")?;
    measure("call of an empty function", || nothing.call())?;
    let narrow = domain.function::<fn(i8, u16) -> i8>("narrow")?;
    measure("call with two integers", || {
        narrow.call(black_box(1), black_box(2))
    })?;
    let halve = domain.function::<fn(f32) -> f32>("halve")?;
    measure("call with one float", || halve.call(black_box(1.0)))?;
    let sum = domain.function::<fn(Ptr<u32>, u64) -> u64>("sum")?;
    let list = [1u32; 16];
    measure("call with 64 bytes by reference, copied in", || {
        let inside = domain.copy_in(black_box(&list))?;
        sum.call(inside.ptr(), inside.len())
    })?;
    let inside = domain.copy_in(&list)?;
    measure("the same, in memory that is there", || {
        inside.slice(&domain)?.copy_from(black_box(&list))?;
        sum.call(inside.ptr(), inside.len())
    })?;
    let down = domain.function::<fn(i32) -> i32>("down")?;
    measure("call that calls a host function", || {
        down.call(black_box(1))
    })?;
    let apply = domain.function::<fn(i32) -> i32>("apply_here")?;
    measure("call that calls a host function, which calls back", || {
        apply.call(black_box(1))
    })?;
    measure("restart, constructors run", || domain.restart())?;
    measure("load and unload, constructors run", || {
        domain.image().domain().imports(imports()).load()?.unload()
    })?;
    Ok(())
}

/// A call that fails is an error and no fast call.
fn measure<R>(
    name: &str,
    mut call: impl FnMut() -> Result<R, mullion::Error>,
) -> Result<(), mullion::Error> {
    let mut round = |calls: u32| {
        let begin = Instant::now();
        for _ in 0..calls {
            black_box(call()?);
        }
        Ok::<_, mullion::Error>(begin.elapsed())
    };
    let mut calls = 16;
    while round(calls)? < ROUND {
        calls *= 2;
    }
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        times.push(round(calls)?.as_nanos() as f64 / f64::from(calls));
    }
    times.sort_by(f64::total_cmp);
    println!("{name:52} {:8.1} ns {:8.1} ns", times[0], times[ROUNDS / 2]);
    Ok(())
}

fn domain() -> Result<Domain, mullion::Error> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/extensions/everything.c");
    let image = directory.path().join("everything.mx");
    support::build(&source, &image, &["-O2"]);
    Image::open(image)?.domain().imports(imports()).load()
}

fn imports() -> Imports {
    Imports::new()
        .function("host_log", |_: &Caller<'_>, _: u32, _: Ptr<i8>| {})
        .function(
            "host_mix",
            |_: &Caller<'_>, _: f64, _: u32, _: f32, _: i8| 0.0,
        )
        .function("host_again", |_: &Caller<'_>, _: i32| 0)
        .function(
            "host_apply",
            |caller: &Caller<'_>, function: Callback<fn(i32) -> i32>, value: i32| {
                function.call(caller, value)
            },
        )
        .function("host_lock", |_: &Caller<'_>| 0u64)
        .function("host_unlock", |_: &Caller<'_>, _: u64| 0)
}
