//! The attack corpus: every file under `attacks/` is a list of attempts of one kind, and each must be stopped by
//! the rule and at the place that it names.
//!
//! An attempt starts with a line `== RULE PLACE: what it tries`, then has assembler text (`support/frame.s` is in
//! front of it), in which PLACE is a symbol. `singles.txt` has a rule and one instruction on each line. What is wrong
//! with files is in `FILES` below.

mod support;

use mullion_word_verifier::{Place, Rule, survey, verify};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

struct Attempt {
    rule: Rule,
    place: String,
    title: String,
    text: String,
}

fn attempts() -> Vec<Attempt> {
    let mut attempts: Vec<Attempt> = Vec::new();
    for text in [
        include_str!("attacks/accesses.txt"),
        include_str!("attacks/checks.txt"),
        include_str!("attacks/lines.txt"),
        include_str!("attacks/stack.txt"),
        include_str!("attacks/control.txt"),
    ] {
        for line in text.lines() {
            if let Some(head) = line.strip_prefix("== ") {
                let (what, title) = head.split_once(": ").expect("`== RULE PLACE: title`");
                let (rule, place) = what.split_once(' ').expect("a rule and a place");
                attempts.push(Attempt {
                    rule: rule.parse().expect("a rule"),
                    place: place.to_owned(),
                    title: title.to_owned(),
                    text: String::new(),
                });
            } else if let Some(attempt) = attempts.last_mut() {
                attempt.text += line;
                attempt.text += "\n";
            }
        }
    }
    attempts
}

fn judge(attempt: &Attempt) -> Result<(), String> {
    let module = support::assemble(&attempt.text);
    let place = Place::Address(module.symbols[&attempt.place]);
    let found: Vec<(Rule, Place)> = survey(module.bytes, 1000)
        .violations
        .iter()
        .map(|violation| (violation.rule, violation.place))
        .collect();
    if found.first() == Some(&(attempt.rule, place)) {
        return Ok(());
    }
    let Attempt { rule, title, .. } = attempt;
    Err(format!(
        "{title}: expected {rule} at {place}, found {found:x?}"
    ))
}

#[test]
fn every_attack_is_stopped_by_the_right_rule_at_the_right_place() {
    let attempts = attempts();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut failures = Vec::new();
        while let Some(attempt) = attempts.get(next.fetch_add(1, Ordering::Relaxed)) {
            failures.extend(judge(attempt).err());
        }
        failures
    };
    let failures: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().expect("a worker"))
            .collect()
    });
    assert!(
        failures.is_empty(),
        "{} of {} fail:\n{}",
        failures.len(),
        attempts.len(),
        failures.join("\n")
    );
    println!("{} attacks stopped", attempts.len());
    assert!(attempts.len() >= 250, "the corpus has shrunk");
}

#[test]
fn instructions_by_themselves_are_stopped_by_the_right_rule() {
    let mut text = String::new();
    let mut expected = Vec::new();
    for (number, line) in include_str!("attacks/singles.txt").lines().enumerate() {
        let (rule, instruction) = line.split_once(": ").expect("a rule and an instruction");
        // Whatever it is taken for, `ret` and a label begin anew.
        text += &format!("single_{number}: {instruction}\n.fill 16, 1, 0x90\nret\nlabel\n");
        expected.push((rule.parse::<Rule>().expect("a rule"), line));
    }
    let module = support::assemble(&text);
    let violations = survey(module.bytes, usize::MAX).violations;
    let mut failures = Vec::new();
    for (number, (rule, line)) in expected.iter().enumerate() {
        let at = Place::Address(module.symbols[&format!("single_{number}")]);
        let found = violations.iter().find(|violation| violation.place == at);
        if found.map(|violation| violation.rule) != Some(*rule) {
            failures.push(format!("{line}: {found:?}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(expected.len() >= 150, "the corpus has shrunk");
}

/// Where a field of a file lies, its size and a value that breaks it, and what must be said.
/// Program headers: 0 code, 1 constants, 2 data, 3 dynamic, 4 what becomes read-only, 5 note.
const HEADERS: usize = 64;
const fn header(number: usize, field: usize) -> usize {
    HEADERS + 56 * number + field
}
/// The note is at the beginning of the constants, behind one import record.
const NOTE: usize = 0x2040;
const fn word(number: usize) -> usize {
    NOTE + 20 + 4 * number
}

const FILES: &[(&str, usize, usize, u64, Rule)] = &[
    ("magic", 0, 4, 0, Rule::ElfHeader),
    ("32 bits", 4, 1, 1, Rule::ElfHeader),
    ("an executable", 16, 2, 2, Rule::ElfHeader),
    ("another machine", 18, 2, 3, Rule::ElfHeader),
    ("no program headers", 56, 2, 0, Rule::ProgramHeader),
    ("many program headers", 56, 2, 33, Rule::ProgramHeader),
    (
        "program headers elsewhere",
        32,
        8,
        u64::MAX - 7,
        Rule::ElfTruncated,
    ),
    ("writable code", header(0, 4), 4, 7, Rule::SegmentPermission),
    (
        "writable and executable data",
        header(2, 4),
        4,
        7,
        Rule::SegmentPermission,
    ),
    (
        "no right at all",
        header(1, 4),
        4,
        0,
        Rule::SegmentPermission,
    ),
    (
        "code between pages",
        header(0, 16),
        8,
        0x10010,
        Rule::SegmentAlignment,
    ),
    (
        "data above 2 GiB",
        header(2, 16),
        8,
        0x8000_0000,
        Rule::SegmentRange,
    ),
    (
        "data around the end",
        header(2, 40),
        8,
        u64::MAX,
        Rule::SegmentRange,
    ),
    (
        "data on constants' page",
        header(2, 16),
        8,
        0x11000,
        Rule::SegmentOverlap,
    ),
    (
        "two segments of code",
        header(1, 4),
        4,
        5,
        Rule::SegmentCode,
    ),
    (
        "code longer than its file",
        header(0, 40),
        8,
        0x900,
        Rule::SegmentSize,
    ),
    (
        "content behind the file",
        header(2, 8),
        8,
        1 << 40,
        Rule::ElfTruncated,
    ),
    (
        "content in common",
        header(1, 8),
        8,
        0x1000,
        Rule::SegmentOverlap,
    ),
    (
        "an unknown header",
        header(4, 0),
        4,
        0x6fff_0000,
        Rule::ProgramHeader,
    ),
    (
        "two dynamic sections",
        header(5, 0),
        4,
        2,
        Rule::ProgramHeader,
    ),
    (
        "a part of a page that becomes read-only",
        header(4, 40),
        8,
        0x800,
        Rule::Relro,
    ),
    (
        "constants that become read-only",
        header(4, 16),
        8,
        0x11000,
        Rule::Relro,
    ),
    (
        "nothing that becomes read-only",
        header(4, 0),
        4,
        0,
        Rule::SlotTable,
    ),
    ("no note", header(5, 0), 4, 0, Rule::NoteMissing),
    (
        "a note of another type",
        NOTE + 8,
        4,
        1,
        Rule::NoteMalformed,
    ),
    ("a note too short", NOTE + 4, 4, 28, Rule::NoteMalformed),
    ("a note too long", NOTE + 4, 4, 0x1000, Rule::NoteMalformed),
    (
        "another name of the note",
        NOTE + 12,
        1,
        0x6d,
        Rule::NoteMissing,
    ),
    ("another version", word(0), 4, 2, Rule::NoteVersion),
    ("an unknown protection", word(1), 4, 2, Rule::NoteProtection),
    ("slots in constants", word(2), 4, 0x11000, Rule::SlotTable),
    ("slots between words", word(2), 4, 0x12004, Rule::SlotTable),
    ("slots too few", word(3), 4, 0x12080, Rule::SlotTable),
    ("slots too many", word(3), 4, 0x12090, Rule::SlotTable),
    ("slots in data", word(2), 4, 0x13000, Rule::SlotTable),
    ("imports in data", word(4), 4, 0x13000, Rule::ImportTable),
    (
        "imports outside",
        word(5),
        4,
        0x7fff_0000,
        Rule::ImportTable,
    ),
    ("half an import", word(5), 4, 0x11020, Rule::ImportTable),
    ("an import without a name", 0x2000, 1, 0, Rule::RecordName),
    (
        "an import's name with a space",
        0x2000,
        1,
        0x20,
        Rule::RecordName,
    ),
    (
        "code that begins with the end of a label",
        0x1000,
        1,
        0x4e,
        Rule::LabelFragment,
    ),
    ("an import's padding", 0x203f, 1, 0x20, Rule::RecordName),
];

/// The entries of the dynamic section, by tag: a value that breaks it.
const TAGS: &[(&str, u64, Option<u64>, u64, Rule)] = &[
    (
        "a procedure linkage table",
        6,
        Some(23),
        0x11000,
        Rule::DynamicCode,
    ),
    ("an init function", 10, Some(12), 0x10000, Rule::DynamicCode),
    ("a fini function", 10, Some(13), 0x10000, Rule::DynamicCode),
    ("relocated code", 16, Some(22), 0, Rule::TextRelocation),
    ("relocated code in flags", 30, None, 4, Rule::TextRelocation),
    ("an unknown tag", 16, Some(0x6000_0001), 0, Rule::DynamicTag),
    (
        "early init functions",
        25,
        Some(32),
        0x12088,
        Rule::DynamicTag,
    ),
    ("a tag twice", 16, Some(5), 0, Rule::DynamicTag),
    (
        "relocations outside",
        7,
        None,
        0x7000_0000,
        Rule::RelocationTable,
    ),
    (
        "relocations of half an entry",
        8,
        None,
        12,
        Rule::RelocationTable,
    ),
    ("entries of relocations", 9, None, 16, Rule::RelocationTable),
    ("symbols outside", 6, None, 0x7000_0000, Rule::SymbolTable),
    ("names outside", 10, None, 1 << 30, Rule::SymbolTable),
    ("entries of symbols", 11, None, 16, Rule::SymbolTable),
    ("names that are none", 5, None, 0x11000, Rule::SymbolTable),
    ("an array elsewhere", 25, None, 0x7000_0000, Rule::InitArray),
    (
        "an array without relocations",
        25,
        None,
        0x12000,
        Rule::InitArray,
    ),
    ("half an entry of an array", 27, None, 4, Rule::InitArray),
];

fn number(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

fn patched(bytes: &[u8], at: usize, size: usize, value: u64) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
    bytes
}

#[test]
fn broken_files_are_stopped_by_the_right_rule() {
    let module = support::assemble("ret");
    assert!(verify(module.bytes.clone()).is_ok());
    let bytes = &module.bytes;
    let mut failures = Vec::new();
    let mut expect = |title: &str, bytes: Vec<u8>, rule: Rule| {
        let violations = survey(bytes, 100).violations;
        if !violations.iter().any(|violation| violation.rule == rule) {
            failures.push(format!("{title}: expected {rule}, found {violations:?}"));
        }
    };
    for &(title, at, size, value, rule) in FILES {
        expect(title, patched(bytes, at, size, value), rule);
    }
    let dynamic = number(bytes, header(3, 8)) as usize;
    let tags = (0..number(bytes, header(3, 32)) as usize / 16).map(|entry| dynamic + 16 * entry);
    let tags: Vec<(u64, usize)> = tags.map(|at| (number(bytes, at), at)).collect();
    let tag = |wanted: u64| {
        let mut tags = tags.iter();
        tags.find(|(tag, _)| *tag == wanted).expect("the tag").1
    };
    for &(title, old, new, value, rule) in TAGS {
        let at = tag(old);
        let bytes = patched(bytes, at + 8, 8, value);
        let bytes = new.map_or(bytes.clone(), |new| patched(&bytes, at, 8, new));
        expect(title, bytes, rule);
    }
    // The first relocation is the init array's, the last one is of a symbol.
    let rela = number(bytes, tag(7) + 8) as usize - 0x11000 + 0x2000;
    let last = rela + number(bytes, tag(8) + 8) as usize - 24;
    for (title, at, value, rule) in [
        ("a relocation of code", last, 0x10000, Rule::RelocationPlace),
        (
            "a relocation of constants",
            last,
            0x11000,
            Rule::RelocationPlace,
        ),
        (
            "a relocation of a slot",
            last,
            0x12008,
            Rule::RelocationPlace,
        ),
        (
            "a relocation across a slot",
            last,
            0x12084,
            Rule::RelocationPlace,
        ),
        (
            "a relocation behind the end",
            last,
            0x1306d,
            Rule::RelocationPlace,
        ),
        (
            "a relocation of another type",
            last + 8,
            1 << 32 | 18,
            Rule::RelocationType,
        ),
        ("a resolver function", last + 8, 37, Rule::RelocationType),
        (
            "a symbol for what has none",
            last + 8,
            1 << 32 | 8,
            Rule::RelocationType,
        ),
        ("no symbol", last + 8, 1, Rule::RelocationType),
        (
            "a symbol that is not there",
            last + 8,
            0x7000_0000 << 32 | 1,
            Rule::SymbolTable,
        ),
        (
            "an array's entry that is no gate",
            rela + 16,
            0x10010,
            Rule::InitArray,
        ),
        (
            "an array's entry in data",
            rela + 16,
            0x13000,
            Rule::InitArray,
        ),
        ("an array's entry twice", last, 0x12088, Rule::InitArray),
    ] {
        expect(title, patched(bytes, at, 8, value), rule);
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn every_rule_has_an_attack() {
    let mut rules: BTreeSet<Rule> = attempts().iter().map(|attempt| attempt.rule).collect();
    rules.extend(FILES.iter().map(|file| file.4));
    rules.extend(TAGS.iter().map(|tag| tag.4));
    rules.extend([Rule::RelocationPlace, Rule::RelocationType]);
    rules.extend([Rule::Instruction]);
    // Asserted in the tests of this file.
    let missing: Vec<_> = Rule::ALL
        .iter()
        .filter(|rule| !rules.contains(rule))
        .collect();
    assert_eq!(
        missing,
        [&Rule::TlsTemplate, &Rule::InstructionLength],
        "no attack breaks these"
    );
}

#[test]
fn a_template_that_is_too_long_and_an_instruction_that_is() {
    let module = support::assemble("ret");
    // The header of the dynamic section, made one of thread-locals.
    let bytes = patched(&module.bytes, header(3, 0), 4, 7);
    assert!(verify(bytes.clone()).is_ok());
    let bytes = patched(&bytes, header(3, 40), 8, 0x10_0001);
    let violations = survey(bytes, 10).violations;
    assert_eq!(
        violations.first().map(|violation| violation.rule),
        Some(Rule::TlsTemplate)
    );
    // Prefixes, each once, and a displacement and an immediate: 16 bytes.
    let long = support::assemble(
        "bad: .byte 0xf0, 0x66, 0x65, 0x67, 0x41, 0x81, 0x84, 0x24\n.long 1\n.long 2\nret",
    );
    let rules: Vec<Rule> = survey(long.bytes, 10)
        .violations
        .iter()
        .map(|v| v.rule)
        .collect();
    assert!(rules.first() != Some(&Rule::Instruction), "{rules:?}");
    assert!(!rules.is_empty());
}
