//! The books: who may touch what in this process, with the host's names.

use crate::identity::{self, Identity, Place};
use crate::shared;
use mullion_picture::State;
use mullion_runtime::PAGE;
use mullion_supervisor::{DomainId, Permission, Range, Snapshot};
use mullion_verifier::Permission as Segment;
use std::collections::HashMap;

/// Bytes of a window.
const WINDOW: u64 = 1 << 32;

/// What the supervisor holds now of all domains of this process, as [`State`] has it:
/// its `to_json` is what `mullion map` reads.
///
/// The host is domain 0. Domains and their windows, the parts of their images, the entry
/// points that other domains may call, and shared memory have names; the links are the
/// switch gates. An entry point that only the host calls is not in the books: the
/// host may enter at every export ([`Image::exports`](crate::Image::exports)).
///
/// It costs as much as there is, and holds back loading and sharing meanwhile, but no calls.
#[must_use]
pub fn snapshot() -> State {
    let books = mullion_runtime::snapshot();
    let mut state = State::from(&books).name(DomainId::SUPERVISOR, "host");
    let entries = entries(&books);
    for identity in identity::alive() {
        let place = identity.place();
        // It may have gone since, or have come.
        if let Some(place) = place.filter(|place| is_in(&books, place)) {
            let entries = entries.get(&place.record).map_or(&[][..], Vec::as_slice);
            state = describe(state, &identity, &place, entries);
        }
    }
    for (name, place) in shared::named() {
        if let Some(range) = range(place) {
            state = state.label(range, &name);
        }
    }
    state
}

fn is_in(books: &Snapshot, place: &Place) -> bool {
    let domains = &books.domains;
    let found = domains.binary_search_by_key(&place.record, |domain| domain.id);
    found.is_ok()
}

/// Where domains may be entered by others.
fn entries(books: &Snapshot) -> HashMap<DomainId, Vec<Range>> {
    let mut entries: HashMap<_, Vec<_>> = HashMap::new();
    for (range, holding) in &books.regions {
        let gate = holding
            .grants
            .iter()
            .find_map(|(_, grant)| match grant.access {
                Permission::SwitchGate { to } => Some(to),
                _ => None,
            });
        if let Some(to) = gate {
            entries.entry(to).or_default().push(*range);
        }
    }
    entries
}

/// Adds the names of one domain: of its window, and of what lies in it.
fn describe(mut state: State, identity: &Identity, place: &Place, entries: &[Range]) -> State {
    let name = identity.name();
    let file = identity.image().file();
    state = state.name(place.record, name);
    if let Some(window) = range(place.base..place.base + WINDOW) {
        state = state.label(window, name);
    }
    for segment in file.segments() {
        let part = match segment.permission() {
            Segment::Read => "constants",
            Segment::ReadWrite => "data",
            Segment::ReadExecute => "code",
        };
        let start = place.base + segment.offset();
        let end = (start + segment.size()).next_multiple_of(PAGE);
        if let Some(range) = range(start..end) {
            state = state.label(range, part);
        }
    }
    for entry in entries {
        let offset = entry.address() - place.base;
        // The books count in words of four bytes.
        let mut exports = file.exports().iter();
        if let Some(export) = exports.find(|export| export.offset & !3 == offset) {
            state = state.label(*entry, &export.name);
        }
    }
    state
}

/// Whole words that hold these bytes.
fn range(bytes: std::ops::Range<u64>) -> Option<Range> {
    let start = bytes.start & !3;
    Range::bytes(start, bytes.end.next_multiple_of(4) - start).ok()
}
