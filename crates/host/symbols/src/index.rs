//! Which unit, function and line an address belongs to.
//!
//! A unit's tables are made when an address of it is asked about, and kept. What they take is
//! bounded by the size of the debug information: see [`Allowance`].

use crate::budget::{Budget, Counted, SPENT};
use crate::elf::Elf;
use crate::entry::{Entry, Opened, Place, Reading, TABLE, UnitAt};
use gimli::{DebugLineOffset, LineRow, Result, UnitOffset, constants};

/// Bytes of memory for a record, at most.
const RECORD: u64 = 24;
/// Records of one image, at most: with [`RECORD`], 96 MiB.
const RECORDS: u64 = 4 << 20;
/// Steps for all tables of one image, at most.
const STEPS: u64 = 256 << 20;
/// Steps for each byte of debug information. Programs of gcc and rustc take 1 to 3.
const STEPS_A_BYTE: u64 = 16;
/// Steps that an image may take beside.
const STEPS_FREE: u64 = 1 << 16;

/// What making an image's tables may still cost.
#[derive(Debug)]
pub(crate) struct Allowance {
    steps: u64,
    records: u64,
}

impl Allowance {
    pub(crate) fn new(elf: &Elf) -> Self {
        let bytes = elf.debug_bytes();
        Self {
            steps: (STEPS_FREE + STEPS_A_BYTE * bytes).min(STEPS),
            // No record of an honest image has less than a byte: a row of a line table.
            records: (1024 + bytes).min(RECORDS),
        }
    }

    pub(crate) const fn steps(&self) -> u64 {
        self.steps
    }

    pub(crate) const fn is_spent(&self) -> bool {
        self.steps == 0 || self.records == 0
    }

    fn record(&mut self) -> Result<()> {
        self.records = self.records.checked_sub(1).ok_or(SPENT)?;
        Ok(())
    }
}

/// The units of an image.
#[derive(Default)]
pub(crate) struct Index {
    units: Vec<Unit>,
}

struct Unit {
    at: UnitAt,
    ranges: Vec<(u64, u64)>,
    line: Option<DebugLineOffset>,
    split: bool,
    tables: Option<Tables>,
}

/// What a unit has at which address.
#[derive(Default)]
pub(crate) struct Tables {
    functions: Vec<DebugFunction>,
    scopes: Vec<Scope>,
    rows: Vec<Row>,
    /// Some entry has a type, or says that it has none.
    typed: bool,
}

/// A piece of a function's code.
#[derive(Clone, Copy)]
struct DebugFunction {
    begin: u64,
    end: u64,
    entry: u32,
}

/// A namespace or class: its entries have names within its own.
#[derive(Clone, Copy)]
struct Scope {
    entry: u32,
    end: u32,
    outer: Option<u32>,
}

/// A row of the line table.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    address: u64,
    file: u32,
    line: u32,
}

/// The file of the row behind a piece of code.
const END: u32 = u32::MAX;

/// What is known about the code at an address.
pub(crate) struct Found {
    pub(crate) unit: UnitAt,
    pub(crate) line: Option<DebugLineOffset>,
    pub(crate) function: Option<Place>,
    /// File and line.
    pub(crate) row: Option<(u64, u32)>,
    /// The function begins at the address, in one of its pieces.
    pub(crate) begins: bool,
    pub(crate) split: bool,
}

impl Index {
    /// Reads what the units say of themselves.
    pub(crate) fn read(elf: &Elf, allowance: &mut Allowance) -> Self {
        let budget = Budget::new(allowance.steps);
        let reading = Reading::new(elf, &budget);
        let mut index = Self::default();
        // What was read before something went wrong is kept.
        let _read = index.read_units(&reading, allowance);
        allowance.steps = budget.left();
        index
    }

    fn read_units(&mut self, reading: &Reading<'_>, allowance: &mut Allowance) -> Result<()> {
        let mut units = reading.dwarf.debug_info.units();
        while let Some(header) = units.next()? {
            allowance.record()?;
            let at = UnitAt::of(&header);
            let Ok(opened) = reading.open_header(header) else {
                continue;
            };
            let mut ranges = Vec::new();
            let whole = opened.ranges(reading, &opened.root, |begin, end| {
                let room = allowance.record().is_ok();
                if room {
                    ranges.push((begin, end));
                }
                !room
            });
            // A unit without code of its own, or one whose ranges cannot be read, is not asked.
            if whole.is_ok() && !ranges.is_empty() {
                self.units.push(Unit {
                    at,
                    ranges,
                    line: opened.root.line,
                    split: opened.root.split,
                    tables: None,
                });
            }
        }
        Ok(())
    }

    /// What there is at an address, of each unit that has it.
    pub(crate) fn find(
        &mut self,
        elf: &Elf,
        address: u64,
        allowance: &mut Allowance,
    ) -> Option<Found> {
        let covers = |unit: &&mut Unit| {
            let mut ranges = unit.ranges.iter();
            ranges.any(|(begin, end)| (*begin..*end).contains(&address))
        };
        let unit = self.units.iter_mut().find(covers)?;
        let (at, line, split) = (unit.at, unit.line, unit.split);
        let tables = unit.tables(elf, allowance);
        let function = tables.function(address);
        Some(Found {
            unit: at,
            line,
            function: function.map(|function| Place {
                unit: at,
                entry: UnitOffset(function.entry as usize),
            }),
            row: tables.row(address),
            begins: function.is_some_and(|function| function.begin == address),
            split,
        })
    }

    /// The tables of the unit that begins there.
    pub(crate) fn tables(
        &mut self,
        elf: &Elf,
        at: UnitAt,
        allowance: &mut Allowance,
    ) -> Option<&Tables> {
        let position = match self.units.iter().position(|unit| unit.at == at) {
            Some(position) => position,
            // A unit without code, of which others' entries are copies: link-time optimisation.
            None => {
                allowance.record().ok()?;
                self.units.push(Unit {
                    at,
                    ranges: Vec::new(),
                    line: None,
                    split: false,
                    tables: None,
                });
                self.units.len() - 1
            }
        };
        let unit = self.units.get_mut(position)?;
        Some(unit.tables(elf, allowance))
    }
}

impl Unit {
    fn tables(&mut self, elf: &Elf, allowance: &mut Allowance) -> &Tables {
        let (at, line) = (self.at, self.line);
        self.tables.get_or_insert_with(|| {
            let budget = Budget::new(allowance.steps);
            let reading = Reading::new(elf, &budget);
            let mut tables = Tables::default();
            if let Ok(opened) = reading.open(at) {
                // What was read before something went wrong is kept.
                let _entries = tables.read_entries(&reading, &opened, allowance);
                let _rows = tables.read_rows(&reading, &opened, line, allowance);
            }
            tables.functions.sort_by_key(|function| function.begin);
            // Where one piece ends and the next begins, the end comes first.
            tables
                .rows
                .sort_by_key(|row| (row.address, row.file != END));
            allowance.steps = budget.left();
            tables
        })
    }
}

impl Tables {
    fn read_entries<'a>(
        &mut self,
        reading: &Reading<'a>,
        opened: &Opened<'a>,
        allowance: &mut Allowance,
    ) -> Result<()> {
        let mut entries = opened.unit.entries_raw(None)?;
        let mut open: Vec<(isize, u32)> = Vec::new();
        while !entries.is_empty() {
            let (offset, depth) = (entries.next_offset().0 as u32, entries.next_depth());
            while let Some((_, scope)) = open.pop_if(|(outer, _)| *outer >= depth) {
                self.close(scope, offset);
            }
            let Some(abbreviation) = entries.read_abbreviation()? else {
                continue;
            };
            match abbreviation.tag() {
                constants::DW_TAG_subprogram => {
                    let entry = reading.read(&mut entries, abbreviation)?;
                    self.add_function(reading, opened, &entry, offset, allowance)?;
                }
                tag => {
                    self.typed |= abbreviation
                        .attributes()
                        .iter()
                        .any(|of| of.name() == constants::DW_AT_type);
                    reading.pass(&mut entries, abbreviation)?;
                    if abbreviation.has_children() && is_scope(tag) {
                        allowance.record()?;
                        let outer = open.last().map(|(_, outer)| *outer);
                        open.push((depth, self.scopes.len() as u32));
                        self.scopes.push(Scope {
                            entry: offset,
                            end: u32::MAX,
                            outer,
                        });
                    }
                }
            }
        }
        Ok(())
    }

    fn close(&mut self, scope: u32, end: u32) {
        if let Some(scope) = self.scopes.get_mut(scope as usize) {
            scope.end = end;
        }
    }

    fn add_function<'a>(
        &mut self,
        reading: &Reading<'a>,
        opened: &Opened<'a>,
        entry: &Entry<'a>,
        offset: u32,
        allowance: &mut Allowance,
    ) -> Result<()> {
        self.typed |= entry.prototyped || entry.of.is_some();
        let full = opened.ranges(reading, entry, |begin, end| {
            let room = allowance.record().is_ok();
            if room {
                self.functions.push(DebugFunction {
                    begin,
                    end,
                    entry: offset,
                });
            }
            !room
        });
        match full {
            Ok(true) => Err(SPENT),
            // Ranges that cannot be read are those of this function alone.
            Ok(false) => Ok(()),
            Err(error) if reading.budget.left() == 0 => Err(error),
            Err(_) => Ok(()),
        }
    }

    fn read_rows<'a>(
        &mut self,
        reading: &Reading<'a>,
        opened: &Opened<'a>,
        line: Option<DebugLineOffset>,
        allowance: &mut Allowance,
    ) -> Result<()> {
        let Some(line) = line else {
            return Ok(());
        };
        let program = reading
            .budget
            .within(TABLE, || program(reading, opened, line))?;
        let mut rows = program.rows();
        let mut dropped = false;
        let mut begins = true;
        while let Some((_, row)) = rows.next_row()? {
            // What the linker left out begins at 0.
            dropped = if begins { row.address() == 0 } else { dropped };
            begins = row.end_sequence();
            if !dropped {
                allowance.record()?;
                self.rows.push(Row::of(row));
            }
        }
        Ok(())
    }

    /// The function that has the address, and of several the one that begins last.
    fn function(&self, address: u64) -> Option<DebugFunction> {
        let next = self
            .functions
            .partition_point(|function| function.begin <= address);
        let function = *self.functions.get(next.checked_sub(1)?)?;
        (address < function.end).then_some(function)
    }

    fn row(&self, address: u64) -> Option<(u64, u32)> {
        let next = self.rows.partition_point(|row| row.address <= address);
        let row = self.rows.get(next.checked_sub(1)?)?;
        (row.file != END).then_some((u64::from(row.file), row.line))
    }

    /// The innermost scope around an entry, and the scopes around that, at most `most`.
    pub(crate) fn scopes(&self, entry: UnitOffset, most: usize) -> Vec<UnitOffset> {
        let before = self
            .scopes
            .partition_point(|scope| (scope.entry as usize) < entry.0);
        let mut next = before.checked_sub(1);
        let mut found = Vec::new();
        // An outer scope begins in front of its inner ones, so this ends; and it costs no more
        // than there are scopes.
        while let Some(scope) = next.and_then(|next| self.scopes.get(next))
            && found.len() < most
        {
            if entry.0 < scope.end as usize {
                found.push(UnitOffset(scope.entry as usize));
            }
            next = scope.outer.map(|outer| outer as usize);
        }
        found
    }

    pub(crate) const fn is_typed(&self) -> bool {
        self.typed
    }
}

impl Row {
    fn of(row: &LineRow) -> Self {
        let line = row
            .line()
            .map_or(0, |line| u32::try_from(line.get()).unwrap_or(0));
        let file = u32::try_from(row.file_index()).unwrap_or(END);
        Self {
            address: row.address(),
            file: if row.end_sequence() { END } else { file },
            line,
        }
    }
}

/// The head of a unit's line table.
pub(crate) fn program<'a>(
    reading: &Reading<'a>,
    opened: &Opened<'a>,
    line: DebugLineOffset,
) -> Result<gimli::IncompleteLineProgram<Counted<'a>>> {
    let unit = &opened.unit;
    let (directory, name) = (unit.comp_dir, unit.name);
    reading
        .dwarf
        .debug_line
        .program(line, unit.header.address_size(), directory, name)
}

fn is_scope(tag: constants::DwTag) -> bool {
    matches!(
        tag,
        constants::DW_TAG_namespace
            | constants::DW_TAG_class_type
            | constants::DW_TAG_structure_type
            | constants::DW_TAG_union_type
    )
}

const _: () = assert!(
    size_of::<DebugFunction>() as u64 <= RECORD
        && size_of::<Row>() as u64 <= RECORD
        && size_of::<Scope>() as u64 <= RECORD
);
