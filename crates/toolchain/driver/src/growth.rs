//! How much the rewriter adds: bytes of code before and after, carried from each object
//! into the image's note.
//!
//! What gcc wrote is assembled, too, beside what the rewriter made of it, only to be measured. Each
//! object says both sizes in a section of its own. The linker puts those of all objects one behind
//! the other, and `mullion ld` adds them up. Information, no more: where it cannot be had there are
//! zeros, and nobody relies on it.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};

/// Assembler text that makes room for a record: bytes before, bytes after.
pub(crate) const RECORD: &str = "\n\t.section .mullion.growth,\"\",@progbits\n\t.long 0, 0\n";
pub(crate) const SECTION: &str = ".mullion.growth";
const NOTE: &str = ".note.mullion";
/// Bytes of a record, and where a note's words begin: behind its header and its name.
const LENGTH: u64 = 8;
const IN_NOTE: u64 = 12 + 8;
/// How many words of a note come before the sum: in an image, and in a module of checked code.
pub(crate) const IN_IMAGE: u64 = 7;
pub(crate) const IN_MODULE: u64 = 6;

/// The assembler at work on the text before rewriting.
pub(crate) struct Original {
    assembler: Child,
    feeder: JoinHandle<()>,
    object: tempfile::NamedTempFile,
}

impl Original {
    /// Begins to assemble; none if that cannot be done.
    pub(crate) fn start(options: &[OsString], text: &str) -> Option<Self> {
        let object = tempfile::NamedTempFile::new().ok()?;
        let mut assembler = Command::new("as")
            .args(that_matter(options))
            .arg("-o")
            .arg(object.path())
            .arg("-")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut input = assembler.stdin.take()?;
        let text = text.to_owned();
        let feeder = thread::spawn(move || drop(input.write_all(text.as_bytes())));
        Some(Self {
            assembler,
            feeder,
            object,
        })
    }

    /// Bytes of its code; 0 if it could not be assembled.
    pub(crate) fn code_bytes(mut self) -> u64 {
        let success = self.assembler.wait().is_ok_and(|status| status.success());
        let _fed = self.feeder.join();
        match success {
            true => File::open(self.object.path()).map_or(0, |file| code_bytes(&file)),
            false => 0,
        }
    }
}

/// Options that change what instructions there are: no listings, no dependency files.
fn that_matter(options: &[OsString]) -> Vec<&OsString> {
    let mut kept = Vec::new();
    let mut options = options.iter();
    while let Some(option) = options.next() {
        match option.to_string_lossy().as_ref() {
            "-I" | "--defsym" | "-march" => {
                kept.push(option);
                kept.extend(options.next());
            }
            "--MD" | "--debug-prefix-map" => drop(options.next()),
            text if ["-I", "-m", "--64"]
                .iter()
                .any(|kind| text.starts_with(kind)) =>
            {
                kept.push(option);
            }
            _ => {}
        }
    }
    kept
}

/// Writes the record of the object at `path`, whose code had `before` bytes.
pub(crate) fn record(path: &Path, before: u64) -> io::Result<()> {
    let object = OpenOptions::new().read(true).write(true).open(path)?;
    let after = code_bytes(&object);
    match find(&object, SECTION)? {
        Some(place) if before != 0 => write_pair(&object, place.offset, [before, after]),
        _ => Ok(()),
    }
}

/// Adds up the records in an image, and writes the sum into its note, behind so many words.
pub(crate) fn add_up(image: &File, words: u64) -> io::Result<()> {
    let place = IN_NOTE + 4 * words;
    let (Some(records), Some(note)) = (find(image, SECTION)?, find(image, NOTE)?) else {
        return Ok(());
    };
    let mut sums = [0; 2];
    for number in 0..records.size / LENGTH {
        let record: [u8; 8] = read(image, records.offset + number * LENGTH)?;
        let (before, after) = record.split_at(4);
        for (sum, bytes) in sums.iter_mut().zip([before, after]) {
            *sum += u64::from(u32::from_le_bytes(bytes.try_into().unwrap_or([0; 4])));
        }
    }
    match note.size >= place + LENGTH {
        true => write_pair(image, note.offset + place, sums),
        false => Ok(()),
    }
}

fn write_pair(mut file: &File, at: u64, pair: [u64; 2]) -> io::Result<()> {
    let words = pair.map(|number| u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes());
    file.seek(SeekFrom::Start(at))?;
    file.write_all(words.as_flattened())
}

/// Bytes of all executable sections; 0 if they cannot be read.
fn code_bytes(file: &File) -> u64 {
    const EXECUTABLE: u64 = 4;
    let all = sections(file).unwrap_or_default();
    let code = all.iter().filter(|section| section.flags & EXECUTABLE != 0);
    code.map(|section| section.size).sum()
}

/// What a section header of ELF64 says, as far as it is of use here.
struct Section {
    name: u32,
    flags: u64,
    offset: u64,
    size: u64,
    link: u32,
}

fn find(file: &File, name: &str) -> io::Result<Option<Section>> {
    let all = sections(file)?;
    let index = u16::from_le_bytes(read(file, 0x3e)?);
    // Of very many sections the first one's header says which has the names.
    let index = match (index, all.first()) {
        (u16::MAX, Some(first)) => first.link as usize,
        _ => usize::from(index),
    };
    let Some(names) = all.get(index).map(|names| names.offset) else {
        return Ok(None);
    };
    for section in all {
        let mut found = vec![0; name.len() + 1];
        let mut reader = file;
        reader.seek(SeekFrom::Start(names + u64::from(section.name)))?;
        let complete = reader.read_exact(&mut found).is_ok();
        if complete && found.strip_suffix(&[0]) == Some(name.as_bytes()) {
            return Ok(Some(section));
        }
    }
    Ok(None)
}

fn sections(file: &File) -> io::Result<Vec<Section>> {
    let table = u64::from_le_bytes(read(file, 0x28)?);
    let count = match u16::from_le_bytes(read(file, 0x3c)?) {
        0 => u64::from_le_bytes(read(file, table + 32)?),
        count => u64::from(count),
    };
    (0..count)
        .map(|number| {
            let header: [u8; 64] = read(file, table + number * 64)?;
            let word = |at| u32::from_le_bytes(part(&header, at));
            let long = |at| u64::from_le_bytes(part(&header, at));
            Ok(Section {
                name: word(0),
                flags: long(8),
                offset: long(24),
                size: long(32),
                link: word(40),
            })
        })
        .collect()
}

fn part<const N: usize>(header: &[u8; 64], at: usize) -> [u8; N] {
    let bytes = header.get(at..).and_then(|tail| tail.first_chunk());
    bytes.copied().unwrap_or([0; N])
}

fn read<const N: usize>(mut file: &File, at: u64) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn code_is_measured_before_and_after() {
        let directory = tempfile::tempdir().unwrap();
        let text = "\t.text\n\tnop\n\t.section .text.f,\"ax\"\n\tud2\n\t.data\n\t.quad 1\n";
        let before = Original::start(&["--64".into(), "-al".into()], text).unwrap();
        let (source, path) = (directory.path().join("x.s"), directory.path().join("x.o"));
        fs::write(&source, format!("{text}\t.text\n\tud2{RECORD}")).unwrap();
        let status = Command::new("as").arg("-o").args([&path, &source]).status();
        assert!(status.unwrap().success());
        record(&path, before.code_bytes()).unwrap();
        let object = File::open(&path).unwrap();
        let place = find(&object, SECTION).unwrap().unwrap();
        assert_eq!(
            read(&object, place.offset).unwrap(),
            [3, 0, 0, 0, 5, 0, 0, 0]
        );
    }

    #[test]
    fn what_cannot_be_measured_is_zero() {
        let bad = Original::start(&[], "\tno such instruction\n").unwrap();
        assert_eq!(bad.code_bytes(), 0);
        let directory = tempfile::tempdir().unwrap();
        for content in [&b""[..], b"\x7fELF", &[0xff; 200]] {
            let path = directory.path().join("junk");
            fs::write(&path, content).unwrap();
            assert_eq!(code_bytes(&File::open(&path).unwrap()), 0);
            assert!(record(&path, 1).is_err(), "{content:?}");
        }
    }

    #[test]
    fn only_options_that_change_code_are_passed_on() {
        let options = [
            "--MD",
            "x.d",
            "-al=list",
            "-I",
            "inc",
            "--gdwarf-5",
            "-mtune=generic64",
        ];
        let options = options.map(OsString::from);
        assert_eq!(that_matter(&options), ["-I", "inc", "-mtune=generic64"]);
    }
}
