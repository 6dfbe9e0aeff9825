//! Functions, files and lines of an address.

use crate::budget::Counted;
use crate::entry::{Entry, Opened, Place, Reading, TABLE, Value};
use crate::index::{Found, program};
use crate::names;
use crate::{Location, Plain, Symbols};
use gimli::{AttributeValue, DebugLineOffset, LineProgramHeader, Result, UnitRef, constants};

/// Functions inlined into each other that are looked for.
const INLINED: usize = 64;

/// A function that was inlined where the address is.
struct Inlined {
    place: Place,
    depth: isize,
    /// File and line of the call.
    call: (Option<u64>, Option<u64>),
}

impl Symbols {
    /// What the debug information says about an address that it knows.
    pub(crate) fn locations(
        &mut self,
        reading: &Reading<'_>,
        found: &Found,
        offset: u64,
    ) -> Result<Vec<Location>> {
        let opened = reading.open(found.unit)?;
        let head = found.line.and_then(|line| head(reading, &opened, line));
        let file = |number: u64| file(reading, &opened, head.as_ref()?, number);
        let mut chain = Vec::new();
        if let Some(function) = found.function {
            // What was found before something went wrong is told.
            let _walked = inlined(reading, &opened, function, offset, &mut chain);
        }
        let mut place = found.row.map(|(file, line)| (Some(file), Some(line)));
        let mut locations = Vec::new();
        let mut tell = |function: Option<Plain>, place: Option<(Option<u64>, Option<u32>)>| {
            let (number, line) = place.unwrap_or_default();
            locations.push(Location {
                function,
                file: number.and_then(file),
                line: line.filter(|line| *line > 0),
            });
        };
        for inlined in chain.iter().rev() {
            tell(names::function(self, reading, inlined.place), place);
            let line = inlined.call.1.and_then(|line| u32::try_from(line).ok());
            place = Some((inlined.call.0, line));
        }
        let name = found
            .function
            .and_then(|function| names::function(self, reading, function));
        let name = name.or_else(|| self.function_at(offset));
        if name.is_some() || place.is_some() {
            tell(name, place);
        }
        Ok(locations)
    }
}

/// The functions inlined into `function` at `address`, the outermost first.
fn inlined<'a>(
    reading: &Reading<'a>,
    opened: &Opened<'a>,
    function: Place,
    address: u64,
    chain: &mut Vec<Inlined>,
) -> Result<()> {
    let mut entries = opened.unit.entries_raw(Some(function.entry))?;
    if let Some(first) = entries.read_abbreviation()? {
        reading.pass(&mut entries, first)?;
    }
    while entries.next_depth() > 0 && !entries.is_empty() && chain.len() < INLINED {
        let (offset, depth) = (entries.next_offset(), entries.next_depth());
        if chain
            .last()
            .is_some_and(|inner: &Inlined| depth <= inner.depth)
        {
            // All that is inlined into the innermost one so far has been looked at.
            break;
        }
        let Some(abbreviation) = entries.read_abbreviation()? else {
            continue;
        };
        if abbreviation.tag() != constants::DW_TAG_inlined_subroutine {
            reading.pass(&mut entries, abbreviation)?;
            continue;
        }
        let entry: Entry<'a> = reading.read(&mut entries, abbreviation)?;
        if opened.covers(reading, &entry, address)? {
            chain.push(Inlined {
                place: Place {
                    unit: function.unit,
                    entry: offset,
                },
                depth,
                call: entry.call,
            });
        }
    }
    Ok(())
}

type Head<'a> = LineProgramHeader<Counted<'a>>;

fn head<'a>(reading: &Reading<'a>, opened: &Opened<'a>, line: DebugLineOffset) -> Option<Head<'a>> {
    let program = reading
        .budget
        .within(TABLE, || program(reading, opened, line));
    program.ok().map(|program| program.header().clone())
}

/// The path of a file of a line table: below its directory, and that below the compiler's.
fn file<'a>(
    reading: &Reading<'a>,
    opened: &Opened<'a>,
    head: &Head<'a>,
    number: u64,
) -> Option<Plain> {
    let unit = UnitRef::new(&reading.dwarf, &opened.unit);
    let text = |value: &Value<'a>| reading.text(&unit, &Some(*value));
    let file = head.file(number)?;
    let mut path = match opened.unit.comp_dir {
        Some(directory) => text(&AttributeValue::String(directory)).unwrap_or_default(),
        None => String::new(),
    };
    if file.directory_index() != 0
        && let Some(directory) = file.directory(head)
    {
        below(&mut path, &text(&directory)?);
    }
    below(&mut path, &text(&file.path_name())?);
    Some(path.into())
}

fn below(path: &mut String, name: &str) {
    if name.starts_with('/') {
        path.clear();
    } else if !path.is_empty() && !path.ends_with('/') {
        path.push('/');
    }
    path.push_str(name);
}
