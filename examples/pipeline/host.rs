//! An image pipeline whose filters are somebody else's: one of them crashes on
//! bright rows. The host says what happened and where, restarts the domain, keeps
//! the row as it was, and goes on.
//!
//!     mullion cc --mullion-kind=extension -g -O2 examples/pipeline/filters.c -o filters.mx
//!     cargo run -p mullion-examples --bin pipeline filters.mx picture.pgm

use mullion::{DomainMemory, Error, Function, Image, Limits, Ptr};
use std::time::Duration;

const WIDTH: usize = 256;
const HEIGHT: usize = 256;

type Filter = fn(Ptr<u8>, u32);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap_or("filters.mx".to_owned());
    let output = arguments.next().unwrap_or("picture.pgm".to_owned());

    // A filter that computes longer than this for a row is as good as crashed. Time on a processor, since a busy machine
    // is not the filter's fault.
    let limits = Limits {
        processor_time: Some(Duration::from_secs(1)),
        memory: 1 << 20,
        ..Limits::default()
    };
    let domain = Image::open(path)?.domain().limits(limits).load()?;
    let filters = ["blur", "sharpen", "invert"];
    let filters = filters.map(|name| (name, domain.function::<Filter>(name)));

    let mut picture = gradient();
    let mut crashes = 0;
    for (name, filter) in filters {
        let filter = filter?;
        let mut skipped = 0;
        for row in picture.chunks_mut(WIDTH) {
            match apply(&filter, row) {
                Ok(()) => {}
                Err(Error::Fault(fault)) => {
                    if skipped == 0 {
                        println!("{fault}");
                    }
                    skipped += 1;
                    filter.domain().restart()?;
                }
                Err(other) => return Err(other.into()),
            }
        }
        println!("{name}: {} rows, {skipped} skipped", HEIGHT - skipped);
        crashes += skipped;
    }

    let mut file = format!("P5\n{WIDTH} {HEIGHT}\n255\n").into_bytes();
    file.extend(&picture);
    std::fs::write(&output, file)?;
    println!("{output}: written, in spite of {crashes} crashes");
    Ok(())
}

/// One row through one filter; it stays as it was if the filter fails.
fn apply(filter: &Function<Filter>, row: &mut [u8]) -> Result<(), Error> {
    let domain = filter.domain();
    let inside = domain.copy_in(row)?;
    filter.call(inside.ptr(), row.len() as u32)?;
    inside.slice(domain)?.copy_to(row)
}

/// Dark at the top, bright at the bottom, with stripes.
fn gradient() -> Vec<u8> {
    let pixel = |at: usize| {
        let (x, y) = (at % WIDTH, at / WIDTH);
        (y * 3 / 4 + if x % 16 < 8 { 0 } else { 60 }) as u8
    };
    (0..WIDTH * HEIGHT).map(pixel).collect()
}
