//! Units and entries of debug information, read one by one.

use crate::budget::{Budget, Counted};
use crate::elf::{Elf, LONGEST_NAME};
use gimli::{
    Abbreviation, AttributeValue, DebugAddrBase, DebugInfoOffset, DebugLineOffset,
    DebugTypeSignature, Dwarf, DwarfFileType, EhFrame, EntriesRaw, Error, Result, SectionId, Unit,
    UnitHeader, UnitOffset, UnitRef, UnitType, constants,
};
use gimli::{DebugLocListsBase, DebugRngListsBase, DebugStrOffsetsBase};
use std::cell::RefCell;
use std::convert::Infallible;
use std::rc::Rc;

/// Steps that reading one table of abbreviations, or the head of one line table, may take: gimli
/// keeps what it reads of these, up to 160 bytes a step. Large units of real programs take 30,000.
pub(crate) const TABLE: u64 = 200_000;
/// Units that are kept open.
const OPEN: usize = 8;
/// Ranges of an entry that are looked at. Functions in pieces have two.
const RANGES: usize = 1024;

pub(crate) type Value<'a> = AttributeValue<Counted<'a>>;

/// A pass over an image's debug information, for one question.
pub(crate) struct Reading<'a> {
    pub(crate) dwarf: Dwarf<Counted<'a>>,
    /// The tables of frames, and where they are in the window.
    pub(crate) frames: (EhFrame<Counted<'a>>, u64),
    pub(crate) budget: &'a Budget,
    open: RefCell<Vec<Rc<Opened<'a>>>>,
}

/// A unit, opened.
pub(crate) struct Opened<'a> {
    pub(crate) unit: Unit<Counted<'a>>,
    pub(crate) root: Entry<'a>,
}

/// Where a unit begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnitAt {
    /// In `.debug_types`; otherwise in `.debug_info`.
    types: bool,
    offset: usize,
}

impl UnitAt {
    pub(crate) fn of(header: &UnitHeader<Counted<'_>>) -> Self {
        Self {
            types: header.section() == SectionId::DebugTypes,
            offset: header.offset().0,
        }
    }
}

/// Where an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) unit: UnitAt,
    pub(crate) entry: UnitOffset,
}

/// What an entry says, as far as anybody asks.
#[derive(Default)]
pub(crate) struct Entry<'a> {
    pub(crate) tag: Option<constants::DwTag>,
    pub(crate) name: Option<Value<'a>>,
    pub(crate) linkage: Option<Value<'a>>,
    pub(crate) origin: Option<Value<'a>>,
    pub(crate) of: Option<Value<'a>>,
    pub(crate) size: Option<u64>,
    pub(crate) encoding: Option<constants::DwAte>,
    pub(crate) prototyped: bool,
    pub(crate) artificial: bool,
    pub(crate) call: (Option<u64>, Option<u64>),
    pub(crate) line: Option<DebugLineOffset>,
    pub(crate) directory: Option<Value<'a>>,
    pub(crate) split: bool,
    pub(crate) language: Option<constants::DwLang>,
    /// Of a variable: where it is.
    pub(crate) location: Option<Value<'a>>,
    /// Of a function: what its variables in memory are told by.
    pub(crate) frame: Option<Value<'a>>,
    /// Of a member: how many bytes into its structure it is.
    pub(crate) at: Option<u64>,
    /// Of an array: how many there are.
    pub(crate) count: Option<u64>,
    low: Option<Value<'a>>,
    high: Option<Value<'a>>,
    ranges: Option<Value<'a>>,
    bases: Bases,
}

#[derive(Clone, Copy, Default)]
struct Bases {
    strings: Option<DebugStrOffsetsBase>,
    addresses: Option<DebugAddrBase>,
    ranges: Option<DebugRngListsBase>,
    locations: Option<DebugLocListsBase>,
}

impl<'a> Reading<'a> {
    pub(crate) fn new(elf: &'a Elf, budget: &'a Budget) -> Self {
        let section = |id: gimli::SectionId| {
            Ok::<_, Infallible>(Counted::new(elf.section(id.name()), budget))
        };
        let Ok(dwarf) = Dwarf::load(section);
        let frames = elf.section(SectionId::EhFrame.name());
        Self {
            dwarf,
            frames: (EhFrame::from(Counted::new(frames, budget)), elf.frames()),
            budget,
            open: RefCell::default(),
        }
    }

    /// The unit at that place.
    pub(crate) fn open(&self, at: UnitAt) -> Result<Rc<Opened<'a>>> {
        let mut open = self.open.borrow_mut();
        let known = open.iter().find(|known| known.at() == at);
        if let Some(known) = known {
            return Ok(known.clone());
        }
        let header = match at.types {
            false => self
                .dwarf
                .debug_info
                .header_from_offset(DebugInfoOffset(at.offset))?,
            true => self.type_unit_at(at)?,
        };
        let opened = Rc::new(self.open_header(header)?);
        if open.len() >= OPEN {
            open.remove(0);
        }
        open.push(opened.clone());
        Ok(opened)
    }

    pub(crate) fn open_header(&self, header: UnitHeader<Counted<'a>>) -> Result<Opened<'a>> {
        let read = || header.abbreviations(&self.dwarf.debug_abbrev);
        let abbreviations = self.budget.within(TABLE, read)?;
        let root = {
            let mut entries = header.entries_raw(&abbreviations, None)?;
            let abbreviation = entries.read_abbreviation()?.ok_or(Error::MissingUnitDie)?;
            self.read(&mut entries, abbreviation)?
        };
        let (encoding, kind) = (header.encoding(), DwarfFileType::Main);
        let strings = DebugStrOffsetsBase::default_for_encoding_and_file(encoding, kind);
        let ranges = DebugRngListsBase::default_for_encoding_and_file(encoding, kind);
        let locations = DebugLocListsBase::default_for_encoding_and_file(encoding, kind);
        let mut unit = Unit {
            abbreviations: abbreviations.into(),
            name: None,
            comp_dir: None,
            low_pc: 0,
            str_offsets_base: root.bases.strings.unwrap_or(strings),
            addr_base: root.bases.addresses.unwrap_or(DebugAddrBase(0)),
            loclists_base: root.bases.locations.unwrap_or(locations),
            rnglists_base: root.bases.ranges.unwrap_or(ranges),
            line_program: None,
            dwo_id: None,
            header,
        };
        let string = |value: &Option<Value<'a>>| {
            let value = value.as_ref()?;
            self.dwarf.attr_string(&unit, *value).ok()
        };
        let (name, directory) = (string(&root.name), string(&root.directory));
        let low = root.low;
        let low = low.and_then(|low| self.dwarf.attr_address(&unit, low).ok().flatten());
        (unit.name, unit.comp_dir, unit.low_pc) = (name, directory, low.unwrap_or(0));
        Ok(Opened { unit, root })
    }

    fn type_unit_at(&self, at: UnitAt) -> Result<UnitHeader<Counted<'a>>> {
        let mut units = self.dwarf.debug_types.units();
        while let Some(header) = units.next()? {
            if UnitAt::of(&header) == at {
                return Ok(header);
            }
        }
        Err(Error::MissingUnitDie)
    }

    /// What the entry that begins with that abbreviation says. All attributes are charged,
    /// those included that take no bytes.
    pub(crate) fn read(
        &self,
        entries: &mut EntriesRaw<'_, Counted<'a>>,
        abbreviation: &Abbreviation,
    ) -> Result<Entry<'a>> {
        self.budget.charge(abbreviation.attributes().len() as u64)?;
        let mut entry = Entry {
            tag: Some(abbreviation.tag()),
            ..Entry::default()
        };
        for specification in abbreviation.attributes() {
            let attribute = entries.read_attribute(*specification)?;
            entry.take(attribute.name(), attribute.value());
        }
        Ok(entry)
    }

    /// Passes over the entry that begins with that abbreviation.
    pub(crate) fn pass(
        &self,
        entries: &mut EntriesRaw<'_, Counted<'a>>,
        abbreviation: &Abbreviation,
    ) -> Result<()> {
        self.budget.charge(abbreviation.attributes().len() as u64)?;
        entries.skip_attributes(abbreviation.attributes())
    }

    /// The entry at a place.
    pub(crate) fn entry(&self, place: Place) -> Result<Entry<'a>> {
        let opened = self.open(place.unit)?;
        let mut entries = opened.unit.entries_raw(Some(place.entry))?;
        let abbreviation = entries.read_abbreviation()?.ok_or(Error::MissingUnitDie)?;
        self.read(&mut entries, abbreviation)
    }

    /// Calls `each` with the entry at a place, and with those directly below it that have `tag`.
    pub(crate) fn children(
        &self,
        place: Place,
        tags: &[constants::DwTag],
        mut each: impl FnMut(Entry<'a>) -> Result<()>,
    ) -> Result<()> {
        let opened = self.open(place.unit)?;
        let mut entries = opened.unit.entries_raw(Some(place.entry))?;
        let first = entries.read_abbreviation()?.ok_or(Error::MissingUnitDie)?;
        self.pass(&mut entries, first)?;
        while entries.next_depth() > 0 && !entries.is_empty() {
            let depth = entries.next_depth();
            let Some(abbreviation) = entries.read_abbreviation()? else {
                continue;
            };
            if depth == 1 && tags.contains(&abbreviation.tag()) {
                each(self.read(&mut entries, abbreviation)?)?;
            } else {
                self.pass(&mut entries, abbreviation)?;
            }
        }
        Ok(())
    }

    /// Where a reference leads to, which stands in the unit at `from`.
    pub(crate) fn follow(&self, from: UnitAt, reference: &Value<'a>) -> Option<Place> {
        match reference {
            AttributeValue::UnitRef(entry) => Some(Place {
                unit: from,
                entry: *entry,
            }),
            AttributeValue::DebugInfoRef(offset) => self.unit_of(*offset).ok().flatten(),
            AttributeValue::DebugTypesRef(signature) => self.type_unit(*signature).ok().flatten(),
            _ => None,
        }
    }

    /// The unit that holds an entry of `.debug_info`.
    fn unit_of(&self, offset: DebugInfoOffset) -> Result<Option<Place>> {
        let holds = |header: &UnitHeader<Counted<'a>>| {
            let begin = header.debug_info_offset()?.0;
            let within = offset.0.checked_sub(begin)?;
            (within < header.length_including_self()).then_some(Place {
                unit: UnitAt::of(header),
                entry: UnitOffset(within),
            })
        };
        let near = self.open.borrow();
        let near = near.iter().find_map(|opened| holds(&opened.unit.header));
        if near.is_some() {
            return Ok(near);
        }
        let mut units = self.dwarf.debug_info.units();
        while let Some(header) = units.next()? {
            if let Some(place) = holds(&header) {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    /// The type that stands in a unit of its own.
    fn type_unit(&self, wanted: DebugTypeSignature) -> Result<Option<Place>> {
        let is = |header: &UnitHeader<Counted<'a>>| match header.type_() {
            UnitType::Type {
                type_signature,
                type_offset,
            } => (type_signature == wanted).then_some(Place {
                unit: UnitAt::of(header),
                entry: type_offset,
            }),
            _ => None,
        };
        let mut units = self.dwarf.debug_info.units();
        while let Some(header) = units.next()? {
            if let Some(found) = is(&header) {
                return Ok(Some(found));
            }
        }
        let mut units = self.dwarf.debug_types.units();
        while let Some(header) = units.next()? {
            if let Some(found) = is(&header) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The first bytes of a string.
    pub(crate) fn text(
        &self,
        unit: &Unit<Counted<'a>>,
        value: &Option<Value<'a>>,
    ) -> Option<String> {
        let text = self.dwarf.attr_string(unit, (*value)?).ok()?.slice();
        let text = text.get(..LONGEST_NAME).unwrap_or(text);
        self.budget.charge(text.len() as u64).ok()?;
        Some(String::from_utf8_lossy(text).into_owned())
    }
}

impl<'a> Opened<'a> {
    pub(crate) fn at(&self) -> UnitAt {
        UnitAt::of(&self.unit.header)
    }

    /// Where its first entry is.
    pub(crate) fn root_entry(&self) -> UnitOffset {
        self.unit.header.root_offset()
    }

    /// Calls `each` with the pieces of code that an entry is of, until it says that it has found.
    pub(crate) fn ranges(
        &self,
        reading: &Reading<'a>,
        entry: &Entry<'a>,
        mut each: impl FnMut(u64, u64) -> bool,
    ) -> Result<bool> {
        let unit = UnitRef::new(&reading.dwarf, &self.unit);
        if let Some(ranges) = &entry.ranges
            && let Some(mut ranges) = unit.attr_ranges(*ranges)?
        {
            for _ in 0..RANGES {
                reading.budget.charge(1)?;
                match ranges.next()? {
                    Some(range) if range.begin > 0 && range.begin < range.end => {
                        if each(range.begin, range.end) {
                            return Ok(true);
                        }
                    }
                    Some(_) => {}
                    None => break,
                }
            }
            return Ok(false);
        }
        let Some(low) = &entry.low else {
            return Ok(false);
        };
        let Some(low) = unit.attr_address(*low)? else {
            return Ok(false);
        };
        let high = match &entry.high {
            None => return Ok(false),
            Some(high) => match high.udata_value() {
                Some(size) => low.saturating_add(size),
                None => unit.attr_address(*high)?.unwrap_or(low),
            },
        };
        // What the linker left out is at 0.
        Ok(low > 0 && low < high && each(low, high))
    }

    /// Whether the entry is of the code at `address`.
    pub(crate) fn covers(
        &self,
        reading: &Reading<'a>,
        entry: &Entry<'a>,
        address: u64,
    ) -> Result<bool> {
        self.ranges(reading, entry, |begin, end| (begin..end).contains(&address))
    }
}

impl<'a> Entry<'a> {
    fn take(&mut self, name: constants::DwAt, value: Value<'a>) {
        match name {
            constants::DW_AT_name => self.name = Some(value),
            constants::DW_AT_linkage_name | constants::DW_AT_MIPS_linkage_name => {
                self.linkage = Some(value)
            }
            constants::DW_AT_abstract_origin | constants::DW_AT_specification => {
                self.origin = Some(value)
            }
            constants::DW_AT_type => self.of = Some(value),
            constants::DW_AT_byte_size => self.size = value.udata_value(),
            constants::DW_AT_encoding => {
                if let AttributeValue::Encoding(encoding) = value {
                    self.encoding = Some(encoding);
                }
            }
            constants::DW_AT_language => {
                if let AttributeValue::Language(language) = value {
                    self.language = Some(language);
                }
            }
            constants::DW_AT_location => self.location = Some(value),
            constants::DW_AT_frame_base => self.frame = Some(value),
            constants::DW_AT_data_member_location => self.at = number(&value),
            constants::DW_AT_data_bit_offset => self.at = number(&value).map(|bits| bits / 8),
            constants::DW_AT_count => self.count = number(&value),
            constants::DW_AT_upper_bound => {
                self.count = number(&value).map(|last| last.saturating_add(1));
            }
            constants::DW_AT_prototyped => self.prototyped = true,
            constants::DW_AT_artificial => self.artificial = true,
            constants::DW_AT_low_pc => self.low = Some(value),
            constants::DW_AT_high_pc => self.high = Some(value),
            constants::DW_AT_ranges => self.ranges = Some(value),
            constants::DW_AT_call_file => {
                self.call.0 = match value {
                    AttributeValue::FileIndex(file) => Some(file),
                    other => other.udata_value(),
                }
            }
            constants::DW_AT_call_line => self.call.1 = value.udata_value(),
            constants::DW_AT_comp_dir => self.directory = Some(value),
            constants::DW_AT_dwo_name | constants::DW_AT_GNU_dwo_name => self.split = true,
            _ => self.take_base(value),
        }
    }

    fn take_base(&mut self, value: Value<'a>) {
        match value {
            AttributeValue::DebugLineRef(offset) => self.line = Some(offset),
            AttributeValue::DebugStrOffsetsBase(base) => self.bases.strings = Some(base),
            AttributeValue::DebugAddrBase(base) => self.bases.addresses = Some(base),
            AttributeValue::DebugRngListsBase(base) => self.bases.ranges = Some(base),
            AttributeValue::DebugLocListsBase(base) => self.bases.locations = Some(base),
            _ => {}
        }
    }
}

/// A number that an attribute has, where it is one.
fn number(value: &Value<'_>) -> Option<u64> {
    match value {
        AttributeValue::Sdata(number) => u64::try_from(*number).ok(),
        other => other.udata_value(),
    }
}
