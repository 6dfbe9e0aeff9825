//! The books: who may touch what in this process, with the host's names.

use crate::identity::{self, Identity, Place};
use crate::shared;
use mullion_picture::{Books, State};
use mullion_runtime::{PAGE, PageTables};
use mullion_supervisor::{DomainId, Permission, Range, Supervisor};
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
    books().state()
}

/// What [`snapshot`] shows, in a supervisor of its own, which enforces nothing: whoever has domains of another kind in this
/// process enters them there, so that one picture and one audit ([`Supervisor::check`]) have them all.
#[must_use]
pub fn books() -> Books<PageTables> {
    let mut books = Books::new(mullion_runtime::books());
    books.name(DomainId::SUPERVISOR, "host");
    let entries = entries(&books.supervisor);
    for identity in identity::alive() {
        let place = identity.place();
        // It may have gone since, or have come.
        if let Some(place) = place.filter(|place| books.supervisor.exists(place.record)) {
            let entries = entries.get(&place.record).map_or(&[][..], Vec::as_slice);
            describe(&mut books, &identity, &place, entries);
        }
    }
    for (name, place) in shared::named() {
        if let Some(range) = range(place) {
            books.label(range, &name);
        }
    }
    books
}

/// Where domains may be entered by others.
fn entries(books: &Supervisor<PageTables>) -> HashMap<DomainId, Vec<Range>> {
    let mut entries: HashMap<_, Vec<_>> = HashMap::new();
    for (range, holding) in books.regions(books.space()) {
        let gate = holding
            .grants
            .iter()
            .find_map(|(_, grant)| match grant.access {
                Permission::SwitchGate { to } => Some(to),
                _ => None,
            });
        if let Some(to) = gate {
            entries.entry(to).or_default().push(range);
        }
    }
    entries
}

/// Adds the names of one domain: of its window, and of what lies in it.
fn describe(books: &mut Books<PageTables>, identity: &Identity, place: &Place, entries: &[Range]) {
    let name = identity.name();
    let file = identity.image().file();
    books.name(place.record, name);
    if let Some(window) = range(place.base..place.base + WINDOW) {
        books.label(window, name);
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
            books.label(range, part);
        }
    }
    for entry in entries {
        let offset = entry.address() - place.base;
        // The books count in words of four bytes.
        let mut exports = file.exports().iter();
        if let Some(export) = exports.find(|export| export.offset & !3 == offset) {
            books.label(*entry, &export.name);
        }
    }
}

/// Whole words that hold these bytes.
fn range(bytes: std::ops::Range<u64>) -> Option<Range> {
    let start = bytes.start & !3;
    Range::bytes(start, bytes.end.next_multiple_of(4) - start).ok()
}
