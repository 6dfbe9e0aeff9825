//! Who decides about ends of channels is asked about those in a value.

use std::ptr::NonNull;

use mullion_sip_core::ChannelEnd;
use mullion_sip_core::Refused;
use mullion_sip_core::owner::Owner;

use crate::exchange::region::Region;
use crate::exchange::sendable::Handles;
use crate::exchange::sizes::Id;
use crate::exchange::visitor::{Scan, Visitor};
use crate::inner::CORE;

use super::place::EndpointPlace;

/// The ends in a value, of which nothing changes.
#[derive(Default)]
struct Ends {
    found: Vec<ChannelEnd>,
    work: Vec<(NonNull<u8>, Scan, usize)>,
}

impl Visitor for Ends {
    fn block(&mut self, id: Id, scan: Option<Scan>, count: usize) {
        let block = Region::get().block(id);
        self.work.extend(scan.map(|scan| (block, scan, count)));
    }

    fn endpoint(&mut self, place: NonNull<()>) {
        // SAFETY: an endpoint's handle is of its place. Whoever has the value has it alone, and looks at it here.
        let place: &EndpointPlace = unsafe { place.cast().as_ref() };
        self.found.push(place.described());
    }
}

/// Asks whether an owner may have every end in a value.
///
/// # Errors
/// It may not have one of them.
#[cold]
pub(crate) fn ask<T: Handles>(value: &T, owner: Owner) -> Result<(), Refused> {
    let _host = CORE.as_host();
    let mut ends = Ends::default();
    value.visit(&mut ends);
    while let Some((values, scan, count)) = ends.work.pop() {
        // SAFETY: the handle that was visited said what is in its block, which nobody touches meanwhile.
        unsafe { scan(values, count, &mut ends) };
    }
    let mut found = ends.found.into_iter();
    found.try_for_each(|end| CORE.may_have(owner, end))
}
