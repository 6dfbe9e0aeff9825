//! The attack corpus: every file under `attacks/` is a list of escape
//! attempts of one kind, and each must be stopped by the rule and at the place
//! that it names. `good.txt` holds what must pass, headed by `== good: what`.
//!
//! An attempt starts with a line `== RULE PLACE: what it tries`, and then has
//! either assembler text (behind the label of `_start`; PLACE is a symbol, which
//! the text defines), or lines of the form `FIELD = VALUE` that change a good
//! image (PLACE is a field, or a number for an offset in the window):
//!
//! ```text
//! header.type = 2             a field of the ELF header
//! code.flags = 7              of a program header: code constants data dynamic note
//! note.protection = 9         a word of the note
//! rela.offset, dynamic.0.tag  and so on, see `field`
//! file+0x1005 = byte 0x90     any byte; `file.length = N` cuts or extends
//! ```

mod support;

use mullion_verifier::{Place, Rule, Survey, survey};
use object::{Object, ObjectSymbol};
use support::build::{self, Built};

struct Attempt {
    file: String,
    line: usize,
    rule: String,
    place: String,
    title: String,
    body: String,
}

fn attempts() -> Vec<Attempt> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/attacks");
    let mut paths: Vec<_> = std::fs::read_dir(directory)
        .expect("the corpus")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    let mut attempts = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("readable text");
        for (number, line) in text.lines().enumerate() {
            if let Some(head) = line.strip_prefix("== ") {
                let (what, title) = head
                    .split_once(": ")
                    .expect("a head `== RULE PLACE: title`");
                let (rule, place) = what.split_once(' ').unwrap_or((what, ""));
                attempts.push(Attempt {
                    file: path
                        .file_name()
                        .expect("a name")
                        .to_string_lossy()
                        .into_owned(),
                    line: number + 1,
                    rule: rule.to_owned(),
                    place: place.to_owned(),
                    title: title.to_owned(),
                    body: String::new(),
                });
            } else if let Some(attempt) = attempts.last_mut() {
                attempt.body += line;
                attempt.body += "\n";
            }
        }
    }
    attempts
}

/// Where a field lies in the file, and how many bytes it has.
fn field(built: &Built, name: &str) -> (usize, usize) {
    if let Some(offset) = name.strip_prefix("file+") {
        return (number(offset) as usize, 1);
    }
    let parts: Vec<&str> = name.split('.').collect();
    let (at, size) = match parts[..] {
        ["header", field] => match field {
            "magic" => (0, 4),
            "class" => (4, 1),
            "data" => (5, 1),
            "version" => (6, 1),
            "type" => (16, 2),
            "machine" => (18, 2),
            "entry" => (24, 8),
            "phoff" => (32, 8),
            "ehsize" => (52, 2),
            "phentsize" => (54, 2),
            "phnum" => (56, 2),
            _ => panic!("no field {name}"),
        },
        ["dynamic", entry, "tag"] if entry.parse::<usize>().is_ok() => {
            (built.data.1 + 16 * number(entry) as usize, 8)
        }
        ["dynamic", entry, "value"] if entry.parse::<usize>().is_ok() => {
            (built.data.1 + 16 * number(entry) as usize + 8, 8)
        }
        [
            segment @ ("code" | "constants" | "data" | "dynamic" | "note"),
            field @ ("type" | "flags" | "offset" | "address" | "filesize" | "size" | "align"),
        ] => {
            let number = ["code", "constants", "data", "dynamic", "note"]
                .iter()
                .position(|name| *name == segment);
            let (at, size) = match field {
                "type" => (0, 4),
                "flags" => (4, 4),
                "offset" => (8, 8),
                "address" => (16, 8),
                "filesize" => (32, 8),
                "size" => (40, 8),
                _ => (48, 8),
            };
            (64 + 56 * number.expect("a segment") + at, size)
        }
        ["note", field] => {
            let words = [
                "version",
                "protection",
                "kind",
                "import-start",
                "import-end",
                "export-start",
                "export-end",
            ];
            match field {
                "namesize" => (built.note, 4),
                "descsize" => (built.note + 4, 4),
                "notetype" => (built.note + 8, 4),
                "name" => (built.note + 12, 4),
                field => {
                    let word = words
                        .iter()
                        .position(|word| *word == field)
                        .unwrap_or_else(|| panic!("no field {name}"));
                    (built.note + 20 + word * 4, 4)
                }
            }
        }
        ["import", "name"] => (built.imports, 1),
        ["import", "padding"] => (built.imports + 63, 1),
        ["export", "target"] => (built.exports, 4),
        ["export", "name"] => (built.exports + 4, 1),
        ["export", "padding"] => (built.exports + 63, 1),
        ["rela", "offset"] => (built.rela, 8),
        ["rela", "info"] => (built.rela + 8, 8),
        ["rela", "addend"] => (built.rela + 16, 8),
        _ => panic!("no field {name}"),
    };
    (at, size)
}

fn number(text: &str) -> u64 {
    let text = text.trim();
    let (negative, digits) = text
        .strip_prefix('-')
        .map_or((false, text), |digits| (true, digits));
    let value = digits
        .strip_prefix("0x")
        .map_or_else(|| digits.parse(), |hex| u64::from_str_radix(hex, 16));
    let value = value.unwrap_or_else(|_| panic!("{text} is no number"));
    if negative {
        value.wrapping_neg()
    } else {
        value
    }
}

/// A good image, changed.
fn changed(attempt: &Attempt) -> (Vec<u8>, Place) {
    let mut built = build::build(&[0xc3], mullion_abi::Protection::ReadWriteCall);
    let mut bytes = std::mem::take(&mut built.bytes);
    for line in attempt.body.lines().filter(|line| line.contains(" = ")) {
        let (name, value) = line.split_once(" = ").expect("FIELD = VALUE");
        if name == "file.length" {
            bytes.resize(number(value) as usize, 0);
            continue;
        }
        let (at, size) = field(&built, name);
        bytes[at..at + size].copy_from_slice(&number(value).to_le_bytes()[..size]);
    }
    let place = match attempt.place.strip_prefix('@') {
        Some(offset) => Place::Window(number(offset)),
        None if attempt.place.starts_with(|c: char| c.is_ascii_digit()) => {
            Place::File(number(&attempt.place))
        }
        None => Place::File(field(&built, &attempt.place).0 as u64),
    };
    (bytes, place)
}

/// An image from assembler text, and the offset of the symbol `place`.
fn assembled(attempt: &Attempt) -> (Vec<u8>, Place) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let bytes = support::assemble(directory.path(), &attempt.body);
    let elf = object::File::parse(&*bytes).expect("an ELF file");
    let address = elf
        .symbols()
        .find(|symbol| symbol.name() == Ok(&attempt.place))
        .map(|symbol| symbol.address());
    let place = address.unwrap_or_else(|| {
        panic!(
            "{}:{}: no symbol {}",
            attempt.file, attempt.line, attempt.place
        )
    });
    (bytes, Place::Window(place))
}

fn judge(attempt: &Attempt) -> Result<(), String> {
    let good = attempt.rule == "good";
    let structural =
        attempt.body.lines().any(|line| line.contains(" = ")) && !attempt.file.starts_with("good");
    let (bytes, place) = if structural {
        changed(attempt)
    } else if good {
        (
            support::assemble(
                tempfile::tempdir().expect("a directory").path(),
                &attempt.body,
            ),
            Place::File(0),
        )
    } else {
        assembled(attempt)
    };
    let Survey { violations, .. } = survey(bytes, 1000);
    let found: Vec<String> = violations
        .iter()
        .map(|v| format!("{} at {}", v.rule, v.place))
        .collect();
    let first = violations
        .first()
        .map(|violation| (violation.rule, violation.place));
    let expected = attempt.rule.parse::<Rule>().ok().map(|rule| (rule, place));
    if first == expected && (good || expected.is_some()) {
        return Ok(());
    }
    let Attempt {
        file,
        line,
        rule,
        title,
        ..
    } = attempt;
    Err(format!(
        "{file}:{line}: {title}: expected {rule} at {place}, found {found:?}"
    ))
}

#[test]
fn every_attack_is_stopped_by_the_right_rule_at_the_right_place() {
    let attempts = attempts();
    let next = std::sync::atomic::AtomicUsize::new(0);
    let mut failures: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut failures = Vec::new();
                    while let Some(attempt) =
                        attempts.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
                    {
                        failures.extend(judge(attempt).err());
                    }
                    failures
                })
            })
            .collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().expect("a worker"))
            .collect()
    });
    failures.sort();
    let good = attempts
        .iter()
        .filter(|attempt| attempt.rule == "good")
        .count();
    let attacks = attempts.len() - good;
    assert!(
        failures.is_empty(),
        "{} of {} fail:\n{}",
        failures.len(),
        attempts.len(),
        failures.join("\n")
    );
    let rules: std::collections::BTreeSet<&str> = attempts
        .iter()
        .map(|attempt| attempt.rule.as_str())
        .collect();
    for rule in Rule::ALL {
        assert!(rules.contains(rule.name()), "no attack breaks {rule}");
    }
    println!("{attacks} attacks stopped, {good} good images accepted");
    assert!(attacks >= 200, "the corpus has shrunk to {attacks}");
}
