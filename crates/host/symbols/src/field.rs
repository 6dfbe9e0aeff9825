//! What an address is to the code that reaches for it: a member of what one of its variables points to.
//!
//! The debug information says which register has a variable at an instruction, or where in the function's frame it is. If that is a pointer, and the address lies in what
//! it points to, the type and the member are known. Globals are known by their name and place.

use crate::budget::Counted;
use crate::entry::{Entry, Opened, Place, Reading};
use crate::index::Found;
use crate::names::HOPS;
use crate::types::shortened;
use crate::{CodeState, DebugField, Plain, Symbols, types};
use gimli::{
    AttributeValue, BaseAddresses, CfaRule, EhFrame, Expression, Operation, Result, UnitRef,
    UnwindContext, UnwindSection, constants,
};
use std::cell::OnceCell;

/// Names of types, and `const`, that are gone through.
const DEPTH: usize = 32;
/// Members of members.
const MEMBERS: usize = 8;
/// Entries of a list of places of one variable.
const PLACES: usize = 256;
/// Numbers of registers in debug information, by their numbers in machine code.
const REGISTERS: [u16; 16] = [0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15];

/// The question.
struct Reach<'a> {
    /// Where the code is.
    offset: u64,
    state: &'a CodeState<'a>,
    address: u64,
}

impl Symbols {
    /// As [`Symbols::field`].
    pub(crate) fn field_at(
        &mut self,
        offset: u64,
        state: &CodeState<'_>,
        address: u64,
    ) -> Option<DebugField> {
        let reach = Reach {
            offset,
            state,
            address,
        };
        let answer = self.ask(offset, |_, reading, found| {
            by_pointer(reading, found, &reach)
        });
        answer.flatten()
    }

    /// As [`Symbols::field_of_global`].
    pub(crate) fn global_at(
        &mut self,
        offset: u64,
        name: &str,
        distance: u64,
    ) -> Option<DebugField> {
        let answer = self.ask(offset, |_, reading, found| {
            by_name(reading, found, name, distance)
        });
        answer.flatten()
    }
}

/// By a pointer that a variable of the function has. What has members comes before what has none.
fn by_pointer(reading: &Reading<'_>, found: &Found, reach: &Reach<'_>) -> Option<DebugField> {
    let function = found.function?;
    let opened = reading.open(function.unit).ok()?;
    let place = OnceCell::new();
    let frame = || *place.get_or_init(|| frame(reading, &opened, function, reach));
    let mut best: Option<DebugField> = None;
    // What was found before something went wrong is told.
    let _walked = variables(reading, &opened, function, |place, entry, parameter| {
        let Some(value) = value_of(reading, &opened, entry, (reach, &frame)) else {
            return false;
        };
        let Some(distance) = reach.address.checked_sub(value) else {
            return false;
        };
        let field = pointee(reading, place, entry)
            .and_then(|of| within(reading, of, distance))
            .and_then(|field| named(reading, place, entry, field))
            .map(|field| DebugField { parameter, ..field });
        match field {
            Some(field) if !field.member.is_empty() => {
                best = Some(field);
                true
            }
            Some(field) => {
                best.get_or_insert(field);
                false
            }
            None => false,
        }
    });
    best
}

/// By the name of a variable that the unit of `found` declares outside of functions.
fn by_name<'a>(
    reading: &Reading<'a>,
    found: &Found,
    name: &str,
    distance: u64,
) -> Option<DebugField> {
    let opened = reading.open(found.unit).ok()?;
    let root = Place {
        unit: found.unit,
        entry: opened.root_entry(),
    };
    let mut field = None;
    let _walked = reading.children(root, &[constants::DW_TAG_variable], |entry| {
        let is_it = || reading.text(&opened.unit, &entry.name).as_deref() == Some(name);
        if field.is_none() && entry.of.is_some() && is_it() {
            let of = entry.of.as_ref();
            let of = of.and_then(|of| reading.follow(found.unit, of));
            let within = of.and_then(|of| within(reading, of, distance));
            field = within.and_then(|field| named(reading, root, &entry, field));
        }
        Ok(())
    });
    field
}

fn named<'a>(
    reading: &Reading<'a>,
    place: Place,
    entry: &Entry<'a>,
    field: DebugField,
) -> Option<DebugField> {
    let variable = along(reading, place, entry, |place, entry| {
        let opened = reading.open(place.unit).ok()?;
        reading.text(&opened.unit, &entry.name)
    })?;
    let variable = shortened(&variable);
    Some(DebugField { variable, ..field })
}

/// Calls `each` with the parameters and variables of a function, those of blocks and inlined functions in it included,
/// until it says that it has found. A parameter of the function itself has its number.
fn variables<'a>(
    reading: &Reading<'a>,
    opened: &Opened<'a>,
    function: Place,
    mut each: impl FnMut(Place, &Entry<'a>, Option<u8>) -> bool,
) -> Result<()> {
    let mut parameters = 0..=u8::MAX;
    let mut entries = opened.unit.entries_raw(Some(function.entry))?;
    if let Some(first) = entries.read_abbreviation()? {
        reading.pass(&mut entries, first)?;
    }
    while entries.next_depth() > 0 && !entries.is_empty() {
        let is_direct = entries.next_depth() == 1;
        let offset = entries.next_offset();
        let Some(abbreviation) = entries.read_abbreviation()? else {
            continue;
        };
        let tag = abbreviation.tag();
        if tag != constants::DW_TAG_formal_parameter && tag != constants::DW_TAG_variable {
            reading.pass(&mut entries, abbreviation)?;
            continue;
        }
        let entry: Entry<'a> = reading.read(&mut entries, abbreviation)?;
        let place = Place {
            unit: function.unit,
            entry: offset,
        };
        let is_own = is_direct && tag == constants::DW_TAG_formal_parameter;
        let parameter = is_own.then(|| parameters.next()).flatten();
        if each(place, &entry, parameter) {
            break;
        }
    }
    Ok(())
}

/// What a variable is where the code is, if a register or the frame says it.
fn value_of<'a>(
    reading: &Reading<'a>,
    opened: &Opened<'a>,
    entry: &Entry<'a>,
    (reach, frame): (&Reach<'_>, &dyn Fn() -> Option<u64>),
) -> Option<u64> {
    let location = entry.location?;
    let unit = UnitRef::new(&reading.dwarf, &opened.unit);
    if let AttributeValue::Exprloc(expression) = location {
        return value(expression, opened, reach, frame);
    }
    let mut places = unit.attr_locations(location).ok()??;
    for _ in 0..PLACES {
        let place = places.next().ok()??;
        if (place.range.begin..place.range.end).contains(&reach.offset) {
            return value(place.data, opened, reach, frame);
        }
    }
    None
}

/// A register, or one and a number, or a word of the frame. Other memory is not looked at: the debug information is not believed.
fn value<'a>(
    expression: Expression<Counted<'a>>,
    opened: &Opened<'a>,
    reach: &Reach<'_>,
    frame: &dyn Fn() -> Option<u64>,
) -> Option<u64> {
    let mut operations = expression.operations(opened.unit.encoding());
    match (operations.next().ok()??, operations.next().ok()?) {
        (Operation::Register { register }, None) => reach.register(register),
        (
            Operation::RegisterOffset {
                register, offset, ..
            },
            Some(Operation::StackValue),
        ) => Some(reach.register(register)?.wrapping_add_signed(offset)),
        (Operation::FrameOffset { offset }, None) => {
            (reach.state.memory)(frame()?.wrapping_add_signed(offset))
        }
        _ => None,
    }
}

impl Reach<'_> {
    fn register(&self, register: gimli::Register) -> Option<u64> {
        let at = REGISTERS.iter().position(|known| *known == register.0)?;
        self.state.registers.get(at).copied()
    }
}

/// The place from which a function's variables in memory are counted, where the code is. It is a register, or the frame's address
/// by the table of frames.
fn frame<'a>(
    reading: &Reading<'a>,
    opened: &Opened<'a>,
    function: Place,
    reach: &Reach<'_>,
) -> Option<u64> {
    let Some(AttributeValue::Exprloc(base)) = reading.entry(function).ok()?.frame else {
        return None;
    };
    let mut operations = base.operations(opened.unit.encoding());
    match (operations.next().ok()??, operations.next().ok()?) {
        (Operation::Register { register }, None) => reach.register(register),
        (Operation::CallFrameCFA, None) => {
            let (table, at) = &reading.frames;
            let bases = BaseAddresses::default().set_eh_frame(*at);
            let mut context = UnwindContext::new();
            let get = EhFrame::cie_from_offset;
            let row = table.unwind_info_for_address(&bases, &mut context, reach.offset, get);
            match *row.ok()?.cfa() {
                CfaRule::RegisterAndOffset { register, offset } => {
                    Some(reach.register(register)?.wrapping_add_signed(offset))
                }
                CfaRule::Expression(_) => None,
            }
        }
        _ => None,
    }
}

/// The first answer along an entry and those that it is a copy of.
fn along<'a, R>(
    reading: &Reading<'a>,
    mut place: Place,
    entry: &Entry<'a>,
    answer: impl Fn(Place, &Entry<'a>) -> Option<R>,
) -> Option<R> {
    if let Some(found) = answer(place, entry) {
        return Some(found);
    }
    let mut origin = entry.origin;
    for _ in 0..HOPS {
        place = reading.follow(place.unit, origin.as_ref()?)?;
        let entry = reading.entry(place).ok()?;
        if let Some(found) = answer(place, &entry) {
            return Some(found);
        }
        origin = entry.origin;
    }
    None
}

/// The type that a variable points to.
fn pointee<'a>(reading: &Reading<'a>, place: Place, entry: &Entry<'a>) -> Option<Place> {
    let of = along(reading, place, entry, |place, entry| {
        reading.follow(place.unit, entry.of.as_ref()?)
    })?;
    let (place, entry) = bare(reading, of)?;
    match entry.tag? {
        constants::DW_TAG_pointer_type
        | constants::DW_TAG_reference_type
        | constants::DW_TAG_rvalue_reference_type => reading.follow(place.unit, entry.of.as_ref()?),
        _ => None,
    }
}

/// A type without its names, `const` and `volatile`.
fn bare<'a>(reading: &Reading<'a>, mut place: Place) -> Option<(Place, Entry<'a>)> {
    for _ in 0..DEPTH {
        let entry = reading.entry(place).ok()?;
        match entry.tag? {
            constants::DW_TAG_typedef
            | constants::DW_TAG_const_type
            | constants::DW_TAG_volatile_type
            | constants::DW_TAG_restrict_type
            | constants::DW_TAG_atomic_type => {
                place = reading.follow(place.unit, entry.of.as_ref()?)?;
            }
            _ => return Some((place, entry)),
        }
    }
    None
}

/// What is so many bytes into a type, if it is so large.
fn within(reading: &Reading<'_>, of: Place, distance: u64) -> Option<DebugField> {
    let name = types::resolve(reading, of).map(|of| of.name);
    let (mut place, mut entry) = bare(reading, of)?;
    let bytes = size(reading, place, &entry)?;
    if distance >= bytes {
        return None;
    }
    let (mut member, mut left) = (String::new(), distance);
    for _ in 0..MEMBERS {
        let next = match entry.tag? {
            constants::DW_TAG_array_type => {
                let of = reading.follow(place.unit, entry.of.as_ref()?)?;
                let (of, element) = bare(reading, of)?;
                let bytes = size(reading, of, &element).filter(|bytes| *bytes != 0)?;
                member.push_str(&format!("[{}]", left / bytes));
                left %= bytes;
                (of, element)
            }
            constants::DW_TAG_structure_type
            | constants::DW_TAG_class_type
            | constants::DW_TAG_union_type => match member_at(reading, place, left) {
                Some((name, of, at)) => {
                    if !name.is_empty() {
                        let dot = if member.is_empty() { "" } else { "." };
                        member.push_str(&format!("{dot}{name}"));
                    }
                    left -= at;
                    bare(reading, of)?
                }
                // Between two members, or a bit field.
                None => break,
            },
            _ => break,
        };
        (place, entry) = next;
    }
    Some(DebugField {
        variable: Plain::default(),
        of: name?,
        bytes,
        member: member.into(),
        distance,
        parameter: None,
    })
}

/// The member that a byte is in, of a union the first one: its name, its type and where it begins.
fn member_at(reading: &Reading<'_>, of: Place, left: u64) -> Option<(Plain, Place, u64)> {
    let opened = reading.open(of.unit).ok()?;
    let tags = [constants::DW_TAG_member, constants::DW_TAG_inheritance];
    let mut found = None;
    let _read = reading.children(of, &tags, |member| {
        let at = member.at.unwrap_or(0);
        let is_before = found.is_none() && at <= left;
        let place = member.of.as_ref().filter(|_| is_before);
        let place = place.and_then(|member| reading.follow(of.unit, member));
        if let Some(place) = place
            && let Some((bare, entry)) = bare(reading, place)
            && size(reading, bare, &entry).is_some_and(|bytes| left - at < bytes)
        {
            let name = reading.text(&opened.unit, &member.name);
            found = Some((shortened(&name.unwrap_or_default()), place, at));
        }
        Ok(())
    });
    found
}

/// The bytes of a type without names. None if it is only declared.
fn size<'a>(reading: &Reading<'a>, mut place: Place, entry: &Entry<'a>) -> Option<u64> {
    if let Some(bytes) = entry.size {
        return Some(bytes);
    }
    let mut count = 1u64;
    let (mut tag, mut of) = (entry.tag?, entry.of);
    for _ in 0..MEMBERS {
        match tag {
            constants::DW_TAG_pointer_type
            | constants::DW_TAG_reference_type
            | constants::DW_TAG_rvalue_reference_type => return count.checked_mul(8),
            constants::DW_TAG_array_type => {}
            _ => return None,
        }
        let _read = reading.children(place, &[constants::DW_TAG_subrange_type], |range| {
            // Without either it is an array without an end.
            count = count.saturating_mul(range.count.unwrap_or(0));
            Ok(())
        });
        let element = reading.follow(place.unit, of.as_ref()?)?;
        let (at, element) = bare(reading, element)?;
        if let Some(bytes) = element.size {
            return count.checked_mul(bytes);
        }
        (place, tag, of) = (at, element.tag?, element.of);
    }
    None
}

#[cfg(test)]
mod tests {
    use crate::{CodeState, DebugField, Symbols};

    /// A program's machine code, as `objdump` shows it, and its symbols.
    fn program(source: &str, more: &[&str]) -> (Symbols, String) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let text = directory.path().join("a.c");
        let program = directory.path().join("a");
        std::fs::write(&text, source).expect("a file");
        let mut gcc = std::process::Command::new("gcc");
        gcc.args(["-g", "-O2", "-nostdlib", "-static", "-Wl,-e,first"]);
        let status = gcc.args(more).arg(&text).arg("-o").arg(&program).status();
        assert!(status.expect("gcc starts").success());
        let mut objdump = std::process::Command::new("objdump");
        let shown = objdump
            .args(["-d", "--no-show-raw-insn"])
            .arg(&program)
            .output();
        let shown = String::from_utf8(shown.expect("objdump starts").stdout).expect("text");
        (
            Symbols::new(std::fs::read(program).expect("a program")),
            shown,
        )
    }

    /// Registers, and no memory.
    fn state(registers: &[u64; 16]) -> CodeState<'_> {
        CodeState {
            registers,
            memory: &|_| None,
        }
    }

    /// The address of the first instruction with this text.
    fn at(shown: &str, instruction: &str) -> u64 {
        let line = shown.lines().find(|line| line.contains(instruction));
        let line = line.unwrap_or_else(|| panic!("no {instruction} in {shown}"));
        let address = line.trim().split([':', ' ']).next().expect("an address");
        u64::from_str_radix(address, 16).expect("a number")
    }

    const SOURCE: &str = "
        struct point { int x, y; };
        typedef struct node { struct node *next; struct point at[3]; union { long whole; int half[2]; }; const char *name; } Node;
        extern Node outside;
        struct hidden;
        __attribute__((noinline)) void first(Node *node, int value, struct hidden *secret) {
            node->at[2].y = value;
            asm volatile (\"\" : : \"r\"(node), \"r\"(secret));
        }
        void second(const Node *node) { first((Node *)node->next, node->at[0].x, 0); }
        long third(int *numbers) { return outside.whole + numbers[0]; }
        Node outside;
    ";

    #[test]
    fn an_address_is_a_member_of_what_a_variable_points_to() {
        for version in ["-gdwarf-5", "-gdwarf-4"] {
            let (mut symbols, shown) = program(SOURCE, &[version]);
            let store = at(&shown, "mov    %esi,0x1c(%rdi)");
            let mut registers = [0; 16];
            registers[7] = 0x7000;
            registers[6] = 5;
            let field = |symbols: &mut Symbols, address| {
                let found = symbols.field(store, &state(&registers), address);
                found.map(|field| field.to_string())
            };
            let says = |text: &str| Some(format!("{text} of `Node`, by `node`"));
            assert_eq!(field(&mut symbols, 0x701c), says("`at[2].y`"));
            assert_eq!(field(&mut symbols, 0x7000), says("`next`"));
            assert_eq!(field(&mut symbols, 0x7008), says("`at[0].x`"));
            assert_eq!(field(&mut symbols, 0x7024), says("`whole`"));
            assert_eq!(field(&mut symbols, 0x702f), says("`name`"));
            let parameter = symbols.field(store, &state(&registers), 0x701c);
            let parameter = parameter.and_then(|field| field.parameter);
            assert_eq!(parameter, Some(0), "the first");
            assert_eq!(field(&mut symbols, 0x7030), None, "behind it");
            assert_eq!(field(&mut symbols, 0x6fff), None, "before it");
            assert_eq!(field(&mut symbols, 5), None, "a number is no pointer");
            // A structure of which nobody knows the size.
            let mut registers = [0; 16];
            registers[2] = 0x9000;
            assert_eq!(symbols.field(store, &state(&registers), 0x9000), None);
        }
    }

    /// Without optimisation variables lie in the frame.
    #[test]
    fn a_variable_in_the_frame_is_looked_at() {
        for options in [
            ["-O0", "-gdwarf-5"],
            ["-O0", "-gdwarf-4"],
            ["-O0", "-fomit-frame-pointer"],
        ] {
            let (mut symbols, shown) = program(SOURCE, &options);
            let at = at(&shown, "mov    %edx,0x1c(%rax)");
            let mut registers = [0; 16];
            // `%rsp` or `%rbp`, and the first parameter below it.
            let top = 0x10_0000;
            (registers[4], registers[5]) = (top, top);
            let memory = |address: u64| (address == top - 8).then_some(0x7000);
            let state = CodeState {
                registers: &registers,
                memory: &memory,
            };
            let found = symbols.field(at, &state, 0x701c);
            let found = found.map(|field| (field.to_string(), field.parameter));
            let says = "`at[2].y` of `Node`, by `node`".to_owned();
            assert_eq!(found, Some((says, Some(0))), "{options:?}");
            assert_eq!(symbols.field(at, &state, 0x7030), None, "behind it");
            assert_eq!(symbols.field(at, &self::state(&registers), 0x701c), None);
        }
    }

    #[test]
    fn a_global_is_known_by_its_name() {
        let (mut symbols, shown) = program(SOURCE, &[]);
        let near = at(&shown, "<third>:");
        let found = symbols.field_of_global(near, "outside", 16);
        let wanted = DebugField {
            variable: "outside".into(),
            of: "Node".into(),
            bytes: 48,
            member: "at[1].x".into(),
            distance: 16,
            parameter: None,
        };
        assert_eq!(found, Some(wanted));
        assert_eq!(symbols.field_of_global(near, "outside", 48), None);
        assert_eq!(symbols.field_of_global(near, "inside", 0), None);
        let mut registers = [0; 16];
        registers[7] = 0x5000;
        let number = symbols.field(near, &state(&registers), 0x5002);
        let number = number.map(|field| field.to_string());
        assert_eq!(number.as_deref(), Some("byte 2 of `int`, by `numbers`"));
    }

    /// Debug information that lies, byte by byte: there are answers or none, and they come.
    #[test]
    fn what_is_forged_has_an_end() {
        let (_, shown) = program(SOURCE, &[]);
        let store = at(&shown, "mov    %esi,0x1c(%rdi)");
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (text, program) = (directory.path().join("a.c"), directory.path().join("a"));
        std::fs::write(&text, SOURCE).expect("a file");
        let mut gcc = std::process::Command::new("gcc");
        gcc.args(["-g", "-O2", "-nostdlib", "-static", "-Wl,-e,first"]);
        let status = gcc.arg(&text).arg("-o").arg(&program).status();
        assert!(status.expect("gcc starts").success());
        let bytes = std::fs::read(program).expect("a program");
        let registers = [0x7000; 16];
        let mut answers = 0;
        let memory = |address: u64| Some(address);
        let state = CodeState {
            registers: &registers,
            memory: &memory,
        };
        for place in (0x1000..bytes.len()).step_by(7) {
            let mut bytes = bytes.clone();
            bytes[place] ^= 0x15;
            let mut symbols = Symbols::new(bytes);
            answers += u32::from(symbols.field(store, &state, 0x701c).is_some());
            let _global = symbols.field_of_global(store, "outside", 8);
            assert!(symbols.steps() < 64 << 20);
        }
        assert!(answers > 0);
    }
}
