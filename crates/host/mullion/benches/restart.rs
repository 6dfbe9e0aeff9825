//! What a restart takes, by how much memory was dirtied since the last one, and what of that a pool's
//! caller sees: `cargo bench -p mullion --bench restart`. Prints the minimum and the median.

#[path = "../tests/support/mod.rs"]
mod support;

use mullion::{Domain, DomainMemory, Error, Image, Imports, Pool, PoolLimits};
use std::path::Path;
use std::time::{Duration, Instant};

const PAGE: u64 = 4096;

fn main() -> Result<(), Error> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/extensions/version.c");
    let path = directory.path().join("version.mx");
    support::build(&source, &path, &["-O2", "-DVERSION=1"]);
    let image = Image::open(path)?;
    println!(
        "{:32} {:>12} {:>12}",
        "after so much was dirtied", "minimum", "median"
    );
    for (bytes, title) in [
        (0, "0"),
        (64 << 10, "64 KiB"),
        (1 << 20, "1 MiB"),
        (16 << 20, "16 MiB"),
        (64 << 20, "64 MiB"),
        (256 << 20, "256 MiB"),
    ] {
        let rounds = if bytes >= 64 << 20 { 11 } else { 101 };
        let domain = image.domain().imports(Imports::new()).load()?;
        print(&format!("restart, {title}"), rounds, || {
            dirty(&domain, bytes)?;
            let begun = Instant::now();
            domain.restart()?;
            Ok(begun.elapsed())
        })?;
        let made = image.clone();
        let limits = PoolLimits {
            most: 4,
            ready: 4,
            ..PoolLimits::default()
        };
        let pool = Pool::new(limits, move || made.domain().imports(Imports::new()).load())?;
        print(&format!("Pool::get, {title}"), rounds, || {
            let begun = Instant::now();
            let domain = pool.get()?;
            let taken = begun.elapsed();
            dirty(&domain, bytes)?;
            Ok(taken)
        })?;
    }
    Ok(())
}

/// Writes to each page of so much memory of the domain's.
fn dirty(domain: &Domain, bytes: u64) -> Result<(), Error> {
    domain.function::<fn() -> i32>("version")?.call()?;
    let memory = domain.alloc::<u8>(bytes.max(1))?;
    let memory = memory.slice(domain)?;
    for page in 0..bytes / PAGE {
        memory.set(page * PAGE, &1)?;
    }
    Ok(())
}

fn print(
    title: &str,
    rounds: usize,
    mut round: impl FnMut() -> Result<Duration, Error>,
) -> Result<(), Error> {
    let mut times = (0..rounds)
        .map(|_| round())
        .collect::<Result<Vec<_>, _>>()?;
    times.sort();
    let microseconds = |time: Duration| time.as_nanos() as f64 / 1000.0;
    let (least, middle) = (microseconds(times[0]), microseconds(times[rounds / 2]));
    println!("{title:32} {least:>9.1} us {middle:>9.1} us");
    Ok(())
}
