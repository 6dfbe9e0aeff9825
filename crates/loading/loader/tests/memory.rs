//! What laying an image out takes, measured in a process of its own: in proportion to the file,
//! whatever its tables stand for.

#[allow(dead_code, reason = "a test uses a part")]
#[path = "../../../window/verifier/tests/support/build.rs"]
mod build;

use mullion_loader::{Admitted, Imports, Loaded};
use mullion_runtime::{HostFunction, Limits};
use mullion_verifier::verify;
use std::process::Command;
use std::sync::Arc;

/// Where the data's program header lies, and the dynamic section's.
const DATA: usize = 64 + 2 * 56;
const DYNAMIC: usize = 64 + 3 * 56;
/// Words of the table: 4 MiB in the file.
const WORDS: usize = 512 << 10;
const PAGE: usize = 4096;
/// `ud1 %eax, %eax`: code that is accepted and ends the domain.
const UD1: [u8; 3] = [0x0f, 0xb9, 0xc0];

fn put(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// An image whose `DT_RELR` table says that each word of 252 MiB of zeros is to be relocated.
fn dense() -> Vec<u8> {
    let built = build::build(&UD1, mullion_abi::Protection::ReadWriteCall);
    let mut bytes = built.bytes;
    bytes.resize(bytes.len().next_multiple_of(PAGE), 0);
    let (file, address) = (bytes.len() as u64, built.data.0);
    let entries = [(36, address + 64), (35, 8 * WORDS as u64), (37, 8), (0, 0)];
    for (tag, value) in entries {
        bytes.extend(u64::to_le_bytes(tag));
        bytes.extend(value.to_le_bytes());
    }
    let content = (64 + 8 * WORDS) as u64;
    let first = address + content.next_multiple_of(PAGE as u64);
    bytes.extend(first.to_le_bytes());
    bytes.resize((file + content) as usize, 0xff);
    let size = first - address + 8 + 63 * 8 * (WORDS as u64 - 1);
    for (header, length, size) in [(DATA, content, size), (DYNAMIC, 64, 64)] {
        put(&mut bytes, header + 8, file);
        put(&mut bytes, header + 16, address);
        put(&mut bytes, header + 32, length);
        put(&mut bytes, header + 40, size);
    }
    bytes
}

/// An image with so many exports, all of them its entry.
fn exporting(count: usize) -> Vec<u8> {
    let built = build::build(&UD1, mullion_abi::Protection::ReadWriteCall);
    let mut bytes = built.bytes;
    bytes.resize(bytes.len().next_multiple_of(PAGE), 0);
    let (file, address) = (bytes.len(), built.data.0);
    // In front of them what the data began with: the dynamic section.
    bytes.extend_from_within(built.data.1..built.data.1 + 0x80);
    let first = address + 0x80;
    for number in 0..count {
        let at = first + 64 * number as u64;
        let mut record = (build::ENTRY as i32 - at as i32).to_le_bytes().to_vec();
        record.extend(format!("e{number}").bytes());
        record.resize(64, 0);
        bytes.extend(record);
    }
    let content = (bytes.len() - file) as u64;
    for (header, length) in [(DATA, content), (DYNAMIC, 64)] {
        put(&mut bytes, header + 8, file as u64);
        put(&mut bytes, header + 16, address);
        put(&mut bytes, header + 32, length);
        put(&mut bytes, header + 40, length);
    }
    let range = [first as u32, (first + 64 * count as u64) as u32];
    let words = range.map(u32::to_le_bytes).concat();
    bytes[built.note + 40..built.note + 48].copy_from_slice(&words);
    bytes
}

/// What is kept of an export takes several times its record, so there are no more than so many.
#[test]
fn exports_are_limited() {
    let most = mullion_abi::MAX_EXPORTS as usize;
    let verified = verify(exporting(most)).unwrap_or_else(|rejected| panic!("{rejected}"));
    assert_eq!(verified.exports().len(), most);
    let rejected = verify(exporting(most + 1)).expect_err("one more");
    let rules: Vec<_> = rejected.violations.iter().map(|found| found.rule).collect();
    assert_eq!(rules, [mullion_verifier::Rule::ExportTable]);
}

fn loaded(bytes: Vec<u8>) -> Loaded {
    let verified = verify(bytes).unwrap_or_else(|rejected| panic!("{rejected}"));
    Loaded::new(Admitted::trusting_everyone(verified)).expect("laid out")
}

/// The most memory that this process had, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number
        .and_then(|number| number.parse().ok())
        .expect("a number")
}

/// Does nothing, unless the test below asks for it.
#[test]
fn child() {
    if std::env::var_os("MULLION_MEASURE_LOADING").is_some() {
        let bytes = dense();
        let file = bytes.len() / 1024;
        let before = peak();
        let _loaded = loaded(bytes);
        println!("\npeak {} of a file of {file}", peak() - before);
    }
}

#[test]
fn a_table_of_relocations_stays_as_small_as_it_is_in_the_file() {
    let mut child = Command::new(std::env::current_exe().expect("this program"));
    child
        .args(["--exact", "child", "--nocapture"])
        .env("MULLION_MEASURE_LOADING", "1");
    let output = child.output().expect("started");
    let said = String::from_utf8_lossy(&output.stdout);
    let line = said.lines().find_map(|line| line.strip_prefix("peak "));
    let (peak, file) = line
        .and_then(|line| line.split_once(" of a file of "))
        .unwrap_or_else(|| panic!("{said}{}", String::from_utf8_lossy(&output.stderr)));
    let (peak, file): (u64, u64) = (
        peak.parse().expect("a number"),
        file.parse().expect("a number"),
    );
    println!("{peak} KiB more for a file of {file} KiB, with 33 million relocations");
    // The file, its copy and its tables: no more than `Admitted::footprint`, and some scratch.
    assert!(peak < 4 * file + 8192, "{peak} KiB for {file} KiB");
}

#[test]
fn what_an_image_takes_is_known_before_it_is_laid_out() {
    let bytes = dense();
    let file = bytes.len() as u64;
    let verified = verify(bytes).unwrap_or_else(|rejected| panic!("{rejected}"));
    let admitted = Admitted::trusting_everyone(verified);
    assert!(admitted.footprint() <= 3 * file, "{}", admitted.footprint());
    assert!(admitted.occupied() > 250 << 20);
    let loaded = Loaded::new(admitted).expect("laid out");
    let nothing: HostFunction = Arc::new(|_| Ok(0));
    let imports = loaded
        .image()
        .imports()
        .iter()
        .fold(Imports::new(), |imports, name| {
            imports.with(name, nothing.clone())
        });
    let limits = Limits {
        memory: 32 << 20,
        ..Limits::default()
    };
    assert!(
        loaded.instantiate(&imports, limits).is_err(),
        "over its limit"
    );
}

#[test]
fn packed_relocations_are_made_at_first_and_at_each_restart() {
    let mut bytes = dense();
    // One map word: the first 64 words behind the table.
    let table = bytes.len() - 8 * WORDS;
    let first = u64::from_le_bytes(bytes[table..table + 8].try_into().expect("8 bytes"));
    let content = first + 8 + 63 * 8
        - u64::from_le_bytes(bytes[DATA + 16..DATA + 24].try_into().expect("8 bytes"));
    put(&mut bytes, DATA + 40, content);
    let sizes = table - 64 + 16 + 8;
    put(&mut bytes, sizes, 16);
    let loaded = loaded(bytes);
    let nothing: HostFunction = Arc::new(|_| Ok(0));
    let imports = loaded
        .image()
        .imports()
        .iter()
        .fold(Imports::new(), |imports, name| {
            imports.with(name, nothing.clone())
        });
    let mut instance = loaded
        .instantiate(&imports, Limits::default())
        .expect("a domain");
    for _ in 0..2 {
        let memory = instance.domain().memory();
        let base = memory.base();
        let mut words = [0; 64 * 8];
        let piece = memory.piece(mullion_runtime::Claimed(base + first), 64 * 8);
        piece
            .and_then(|piece| piece.read(&mut words))
            .expect("read");
        for word in words.chunks(8) {
            assert_eq!(u64::from_le_bytes(word.try_into().expect("8 bytes")), base);
        }
        memory
            .write(mullion_runtime::Claimed(base + first), &[7; 64 * 8])
            .expect("written");
        instance.restart().expect("restarted");
    }
}
