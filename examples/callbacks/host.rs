//! A domain that calls its host, which calls the domain again to answer.
//!
//!     mullion cc --mullion-kind=extension examples/callbacks/extension.c -o callbacks.mx
//!     cargo run -p mullion-examples --bin callbacks callbacks.mx

use mullion::{Caller, DomainMemory, Error, Image, Imports, Ptr};
use std::sync::atomic::{AtomicU32, Ordering};

/// How often the domain has asked: the host's own, attached to the domain.
#[derive(Default)]
struct Asked(AtomicU32);

fn main() -> Result<(), Error> {
    let path = std::env::args().nth(1).unwrap_or("callbacks.mx".to_owned());

    let imports = Imports::new().function("compare", |caller: &Caller<'_>, a: u32, b: u32| {
        let asked = caller.user::<Asked>().expect("attached below");
        asked.0.fetch_add(1, Ordering::Relaxed);
        // Back into the domain, on top of the sorting that is going on there.
        let weight = caller.export::<fn(u32) -> u32>("weight")?;
        let (a, b) = (weight.call(caller, a)?, weight.call(caller, b)?);
        Ok::<i32, Error>(a.cmp(&b) as i32)
    });
    let image = Image::open(path)?;
    let domain = image
        .domain()
        .imports(imports)
        .user(Asked::default())
        .load()?;

    let records = domain.copy_in(&(1..=12u32).collect::<Vec<_>>())?;
    let sort = domain.function::<fn(Ptr<u32>, u64)>("sort")?;
    sort.call(records.ptr(), records.len())?;

    println!("sorted by weight: {:?}", records.to_vec(&domain)?);
    let asked = domain.user::<Asked>().expect("attached above");
    println!("the domain asked {} times", asked.0.load(Ordering::Relaxed));
    Ok(())
}
