//! The supervisor's records: who may touch what in this process, with the host's names.

use crate::identity::{self, Identity, Place};
use crate::shared;
use mullion_abi::{GATE_AREA_SIZE, GATE_BASE, HEAP_END, WINDOW_SIZE};
use mullion_picture::{Records, SupervisorState};
use mullion_runtime::{Meter, PAGE, PageTables};
use mullion_supervisor::{DomainId, Permission, Range, Subject, Supervisor};
use mullion_verifier::Permission as Segment;
use std::collections::HashMap;

/// What the supervisor holds now of all domains of this process, as [`SupervisorState`] has it:
/// its `to_json` is what `mullion map` reads.
///
/// The host is domain 0. Names are given to domains and their windows, the parts of their images, their heaps and
/// stacks. Entry points that other domains may call have names, too, and so has shared memory. The links are the
/// switch gates. A domain that has faulted or exited, and was not restarted, is marked as ended. An entry point that
/// only the host calls is not in the records: the host may enter at every export
/// ([`Image::exports`](crate::Image::exports)).
///
/// It costs as much as there is, and holds back loading and sharing meanwhile, but no calls.
#[must_use]
pub fn snapshot() -> SupervisorState {
    records().state()
}

/// What [`snapshot`] shows, in a supervisor of its own, which enforces nothing. Whoever has domains of another kind in
/// this process enters them there, so that one picture has them all. So has one audit: `Supervisor::check`, a feature of
/// that crate.
#[must_use]
pub fn records() -> Records<PageTables> {
    let mut records = Records::new(mullion_runtime::supervisor());
    records.name(DomainId::SUPERVISOR, "host");
    let entries = entries(&records.supervisor);
    for identity in identity::alive() {
        let place = identity.place();
        // It may have gone since, or have come.
        if let Some(place) = place.filter(|place| records.supervisor.exists(place.record)) {
            let entries = entries.get(&place.record).map_or(&[][..], Vec::as_slice);
            describe(&mut records, &identity, &place, entries);
        }
    }
    for (name, place) in shared::named() {
        if let Some(range) = range(place) {
            records.label(range, &name);
        }
    }
    records
}

/// Where domains may be entered by others.
fn entries(records: &Supervisor<PageTables>) -> HashMap<DomainId, Vec<Range>> {
    let mut entries: HashMap<_, Vec<_>> = HashMap::new();
    for (range, holding) in records.regions(records.space()) {
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
fn describe(
    records: &mut Records<PageTables>,
    identity: &Identity,
    place: &Place,
    entries: &[Range],
) {
    let name = identity.name();
    let file = identity.image().file();
    records.name(place.record, name);
    if identity.meter().is_some_and(Meter::has_ended) {
        records.ended(place.record);
    }
    if let Some(window) = range(place.base..place.base + WINDOW_SIZE) {
        records.label(window, name);
    }
    let gates = place.base + GATE_BASE;
    let mut parts = vec![("gates", gates..gates + GATE_AREA_SIZE)];
    for segment in file.segments() {
        let part = match segment.permission {
            Segment::Read => "constants",
            Segment::ReadWrite => "data",
            Segment::ReadExecute => "code",
        };
        let start = place.base + segment.offset;
        let end = (start + segment.size).next_multiple_of(PAGE);
        add(&mut parts, part, start..end);
    }
    let image_end = parts.last().map_or(place.base, |(_, part)| part.end);
    for written in written(&records.supervisor, place, image_end) {
        let part = match written.start < place.base + HEAP_END {
            true => "heap",
            false => "stack",
        };
        add(&mut parts, part, written);
    }
    for (part, bytes) in parts {
        if let Some(range) = range(bytes) {
            records.label(range, part);
        }
    }
    for entry in entries {
        let offset = entry.address() - place.base;
        // The records count in words of four bytes.
        let mut exports = file.exports().iter();
        if let Some(export) = exports.find(|export| export.offset & !3 == offset) {
            records.label(*entry, &export.name);
        }
    }
}

/// Adds a part; one that goes on where another of its name ends makes that longer.
fn add(
    parts: &mut Vec<(&str, std::ops::Range<u64>)>,
    name: &'static str,
    bytes: std::ops::Range<u64>,
) {
    match parts.last_mut() {
        Some((last, before)) if *last == name && before.end == bytes.start => {
            before.end = bytes.end;
        }
        _ => parts.push((name, bytes)),
    }
}

/// What the domain may write of its window behind its image.
fn written(
    records: &Supervisor<PageTables>,
    place: &Place,
    image_end: u64,
) -> Vec<std::ops::Range<u64>> {
    let Some(behind) = range(image_end..place.base + WINDOW_SIZE) else {
        return Vec::new();
    };
    let own = Subject::Domain(place.record);
    let pieces = records.regions(behind);
    let written = pieces.filter(|(_, holding)| holding.direct(own).access == Permission::ReadWrite);
    written
        .map(|(range, _)| range.address()..range.address() + range.byte_count())
        .collect()
}

/// Whole words that hold these bytes.
fn range(bytes: std::ops::Range<u64>) -> Option<Range> {
    let start = bytes.start & !3;
    Range::bytes(start, bytes.end.next_multiple_of(4) - start).ok()
}
