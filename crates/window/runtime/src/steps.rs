//! The limit on steps: a number in the domain's memory. Images that count take it down by one
//! at each step, and trap where none is left (docs/window.md, "Steps").
//!
//! The domain can write that number. So nothing is relied on here: the host writes it when a life
//! begins, and reads it for people.

use crate::image::ImageLayout;
use crate::limits::Limits;
use crate::memory::{Claimed, Memory};
use mullion_report::error::Error;

/// A life begins: all its steps, if they are limited.
pub(crate) fn grant(limits: &Limits, image: &ImageLayout, memory: &Memory) -> Result<(), Error> {
    let Some(granted) = limits.steps else {
        return Ok(());
    };
    let place = place(image, memory).ok_or(Error::NotCounted)?;
    let number = granted.min(i64::MAX as u64).to_le_bytes();
    let written = memory.write(place, &number);
    written.map_err(|_| Error::NotCounted)
}

/// Steps that are left, as the domain's own memory says. `None` without that limit.
pub(crate) fn left(limits: &Limits, image: &ImageLayout, memory: &Memory) -> Option<u64> {
    limits.steps?;
    let number = memory.read_u64(place(image, memory)?).ok()?;
    Some(number.cast_signed().try_into().unwrap_or(0))
}

fn place(image: &ImageLayout, memory: &Memory) -> Option<Claimed> {
    Some(Claimed(memory.base() + image.steps()?))
}
