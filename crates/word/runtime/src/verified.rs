//! A module that the verifier has accepted.

use crate::module::{
    Access, Cold, Gate, Module, ModuleError, Parts, Relocation, Segment, Symbol, Tls, Value,
};
use mullion_plain::Plain;
use mullion_word_verifier as verifier;
use std::sync::Arc;

impl Module {
    /// A module that was verified: the one way that needs no trust in its caller.
    pub fn new(name: &str, verified: &verifier::Verified) -> Result<Arc<Module>, ModuleError> {
        let parts = parts(verified);
        // SAFETY: only the verifier makes a `Verified`, and the parts are what it says.
        unsafe { Module::from_parts(name, parts) }
    }
}

fn parts(verified: &verifier::Verified) -> Parts {
    let segments = verified.segments().iter().map(|segment| Segment {
        address: segment.address(),
        bytes: segment.size(),
        content: segment.file(),
        access: match segment.permission() {
            verifier::Permission::Read => Access::Read,
            verifier::Permission::ReadWrite => Access::Write,
            verifier::Permission::ReadExecute => Access::Execute,
        },
    });
    let relocations = verified.relocations().map(|relocation| {
        let (value, addend) = match relocation.value {
            verifier::Value::Base(addend) => (Value::Base, addend),
            verifier::Value::Symbol(number, addend) => (Value::Symbol(number as usize), addend),
        };
        Relocation {
            at: relocation.address,
            value,
            addend: addend as i64,
        }
    });
    let gates = verified.gates().iter().map(|gate| Gate {
        address: gate.address,
        body: gate.body,
    });
    Parts {
        bytes: Arc::clone(verified.bytes()),
        segments: segments.collect(),
        relocations: relocations.collect(),
        symbols: symbols(verified),
        relro: verified.relro(),
        tls: tls(verified),
        init: verified.init().to_vec(),
        fini: verified.fini().to_vec(),
        slots: verified.slots(),
        imports: verified.imports().to_vec(),
        gates: gates.collect(),
        checked: verified.checked_ranges().to_vec(),
        colds: colds(verified),
        protection: verified.protection(),
        control_words: verified.stats().x87 || verified.stats().mxcsr,
    }
}

/// Where the first jump of each check leads, and whether another answer of the table is relied on around it.
fn colds(verified: &verifier::Verified) -> Vec<Cold> {
    let segments = verified.segments();
    let cold = |check: u64| {
        let inside = |segment: &&verifier::Segment| {
            (segment.address()..segment.address() + segment.size()).contains(&check)
        };
        let home = segments.iter().find(inside)?;
        let code = verified.bytes().get(home.file())?;
        let at = usize::try_from(check - home.address()).ok()?;
        let (length, distance) = match code.get(at..)? {
            [0x75, distance, ..] => (2, i64::from(*distance as i8)),
            [0x0f, 0x85, a, b, c, d, ..] => (6, i32::from_le_bytes([*a, *b, *c, *d]).into()),
            _ => return None,
        };
        Some((check + length).wrapping_add_signed(distance))
    };
    let checked = verified.checked_ranges();
    // A check's own range begins at this jump.
    let is_alone = |check: u64| {
        let behind = checked.partition_point(|range| range.end <= check);
        let around = checked.get(behind).filter(|range| range.start < check);
        around.is_none()
    };
    let refused = verified.refused().iter();
    refused
        .filter_map(|refused| {
            Some(Cold {
                trap: refused.trap,
                start: cold(refused.check)?,
                check: refused.check,
                is_alone: is_alone(refused.check),
            })
        })
        .collect()
}

fn tls(verified: &verifier::Verified) -> Option<Tls> {
    let tls = verified.tls()?;
    let inside = |segment: &&verifier::Segment| {
        (segment.address()..=segment.address() + segment.size()).contains(&tls.address)
    };
    let home = verified.segments().iter().find(inside)?;
    let start = home.file().start + usize::try_from(tls.address - home.address()).ok()?;
    Some(Tls {
        content: start..start + usize::try_from(tls.file_size).ok()?,
        bytes: tls.size,
        alignment: tls.alignment,
    })
}

/// By their numbers. Those without a name are nobody's.
fn symbols(verified: &verifier::Verified) -> Vec<Symbol> {
    let mut all = Vec::new();
    for (number, symbol) in verified.symbols() {
        let number = number as usize;
        if all.len() <= number {
            all.resize_with(number + 1, || Symbol {
                name: Plain::default(),
                value: None,
                weak: true,
            });
        }
        all[number] = Symbol {
            name: symbol.name.into(),
            value: symbol.address,
            weak: symbol.is_weak,
        };
    }
    all
}
