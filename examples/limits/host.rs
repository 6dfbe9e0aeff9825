//! What happens at each limit: an error with a name, and the host goes on.
//!
//! Limits on loops are of processor time, which means the same on a busy machine. Beside them is a longer limit by the
//! clock, for calls that wait.
//!
//!     mullion cc --mullion-kind=extension -g examples/limits/extension.c -o limits.mx
//!     cargo run -p mullion-examples --bin limits limits.mx

use mullion::{CallLimits, Caller, Domain, Error, Image, Imports, Limits};
use std::time::Duration;

fn main() -> Result<(), Error> {
    let path = std::env::args().nth(1).unwrap_or("limits.mx".to_owned());
    let limits = Limits {
        processor_time: Some(Duration::from_millis(100)),
        time: Some(Duration::from_secs(60)),
        memory: 8 << 20,
        stack: 256 << 10,
        depth: 10,
        output: Some(1000),
        ..Limits::default()
    };
    let imports = Imports::new().function("again", |caller: &Caller<'_>, depth: i32| {
        caller.export::<fn(i32) -> i32>("nest")?.call(caller, depth)
    });
    let domain = Image::open(path)?
        .domain()
        .imports(imports)
        .limits(limits)
        .load()?;

    report(&domain, "time", domain.function::<fn()>("use_time")?.call());
    let megabytes = domain.function::<fn() -> u64>("use_memory")?.call();
    report(
        &domain,
        "memory",
        megabytes.map(|count| println!("memory: {count} MiB, then malloc gave none")),
    );
    report(
        &domain,
        "stack",
        domain.function::<fn(i32)>("use_stack")?.call(0),
    );
    report(
        &domain,
        "depth",
        domain.function::<fn(i32)>("nest")?.call(0),
    );

    // One call may have less than its domain.
    let few = CallLimits {
        processor_time: Some(Duration::from_millis(10)),
        gate_calls: Some(2),
        ..CallLimits::default()
    };
    let spin = domain.function::<fn()>("use_time")?.limited(few);
    report(&domain, "one call", spin.call());
    let print = domain.function::<fn()>("use_output")?;
    report(&domain, "gate calls", print.limited(few).call());
    report(&domain, "output", print.call());

    let limits = Limits {
        total_processor_time: Some(Duration::from_millis(50)),
        ..Limits::default()
    };
    let imports = Imports::new().function("again", |_: &Caller<'_>, depth: i32| depth);
    let domain = domain
        .image()
        .domain()
        .imports(imports)
        .limits(limits)
        .load()?;
    report(
        &domain,
        "all calls",
        domain.function::<fn()>("use_time")?.call(),
    );
    Ok(())
}

/// What came of a call; the domain is fresh again behind it.
fn report(domain: &Domain, name: &str, result: Result<(), Error>) {
    if let Err(error) = result {
        println!("{name}: {error}");
    }
    if let Err(error) = domain.restart() {
        println!("{name}: {error}");
    }
}
