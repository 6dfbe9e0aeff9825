//! What the command writes: lines that somebody may have stopped reading, and files that are
//! there whole or not at all.

use mullion_runtime::quietly;
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A line to standard output, as `println!` takes it; an error where that would panic.
macro_rules! outln {
    ($($part:tt)*) => { $crate::output::print(&format!("{}\n", format_args!($($part)*))) };
}

/// A line to standard error, as `eprintln!` takes it.
macro_rules! sayln {
    ($($part:tt)*) => { $crate::output::say(format_args!($($part)*)) };
}

pub(crate) use {outln, sayln};

/// Characters of a line, and lines, that a message has at most; what it quotes may be anybody's.
const LONGEST: usize = 2000;
const LINES: usize = 200;

/// Writes a line to standard error, fit for a terminal. Whoever does not want to see it (a closed
/// pipe, a full disk) still gets the exit status.
pub(crate) fn say(line: impl Display) {
    let line = fit(&line.to_string());
    let _unseen = quietly(|| io::stderr().write_all(line.as_bytes()));
}

/// Lines as they are, but for control characters, which are escaped, and what is too long.
fn fit(text: &str) -> String {
    let mut fitting = String::new();
    let mut lines = text.trim_end_matches('\n').split('\n');
    for line in lines.by_ref().take(LINES) {
        let mut characters = line.chars();
        for character in characters.by_ref().take(LONGEST) {
            match character.is_control() && character != '\t' {
                true => fitting.extend(character.escape_default()),
                false => fitting.push(character),
            }
        }
        fitting.push_str(if characters.next().is_some() {
            " ...\n"
        } else {
            "\n"
        });
    }
    let left_out = lines.count();
    if left_out > 0 {
        fitting.push_str(&format!("... and {left_out} lines more\n"));
    }
    fitting
}

/// Writes to standard output; a reader that has gone away is no error.
///
/// # Errors
/// What else the system says: a full disk.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    let written = quietly(|| out.write_all(text.as_bytes()).and_then(|()| out.flush()));
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(anyhow::Error::new(error).context("standard output"))
        }
        _ => Ok(()),
    }
}

/// Writes a file, by `write`. It appears when it is whole: until then, and after an error, there
/// is what was there before. A device or a pipe is written as it is.
///
/// # Errors
/// What the system or `write` says, with the file's name.
pub(crate) fn file_by<E>(
    path: &Path,
    write: impl FnOnce(&File) -> Result<(), E>,
) -> anyhow::Result<()>
where
    anyhow::Error: From<E>,
{
    let context = |error: anyhow::Error| error.context(path.display().to_string());
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        let device = OpenOptions::new().write(true).open(path);
        return device
            .map_err(Into::into)
            .and_then(|file| Ok(write(&file)?))
            .map_err(context);
    }
    // Behind a symbolic link is the file that is meant.
    let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let part = beside(&place);
    let written = File::create_new(&part)
        .map_err(Into::into)
        .and_then(|file| Ok(write(&file)?))
        .and_then(|()| Ok(fs::rename(&part, &place)?));
    written.map_err(|error| {
        let _absent = fs::remove_file(&part);
        context(error)
    })
}

/// [`file_by`], of bytes.
///
/// # Errors
/// As there.
pub(crate) fn file(path: &Path, bytes: impl AsRef<[u8]>) -> anyhow::Result<()> {
    file_by(path, |mut file| file.write_all(bytes.as_ref()))
}

/// A name in the same directory that no other process uses.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or(OsStr::new("output"));
    let mut part = OsString::from(".");
    part.push(OsStr::from_bytes(
        name.as_bytes().get(..200).unwrap_or(name.as_bytes()),
    ));
    part.push(format!(".{}", std::process::id()));
    path.with_file_name(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<OsString> {
        let entries = fs::read_dir(directory).expect("a directory");
        let mut names: Vec<_> = entries
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_whole_or_as_it_was() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("x");
        file(&path, "first").expect("written");
        let failed = file_by(&path, |mut file| {
            file.write_all(b"half")?;
            Err(io::Error::other("the disk is full"))
        });
        let said = format!("{:#}", failed.expect_err("it failed"));
        assert_eq!(said, format!("{}: the disk is full", path.display()));
        assert_eq!(fs::read(&path).expect("a file"), b"first");
        assert_eq!(names(directory.path()), ["x"]);
    }

    #[test]
    fn messages_are_fit_for_a_terminal() {
        assert_eq!(fit("a\x1b[31m\tb\nc"), "a\\u{1b}[31m\tb\nc\n");
        let long = "x".repeat(LONGEST);
        assert_eq!(fit(&long), format!("{long}\n"));
        assert_eq!(fit(&format!("{long}y")), format!("{long} ...\n"));
        let many = fit(&"x\n".repeat(LINES + 3));
        assert!(many.ends_with("x\n... and 3 lines more\n"), "{many}");
    }

    #[test]
    fn a_link_stays_one_and_a_device_is_written() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let at = |name| directory.path().join(name);
        file(&at("x"), "first").expect("written");
        std::os::unix::fs::symlink("x", at("link")).expect("a link");
        file(&at("link"), "second").expect("written");
        assert_eq!(fs::read(at("x")).expect("a file"), b"second");
        assert_eq!(names(directory.path()), ["link", "x"]);
        file(Path::new("/dev/null"), "gone").expect("written");
        let full = file(Path::new("/dev/full"), "too much").expect_err("it is full");
        assert!(
            format!("{full:#}").starts_with("/dev/full: No space left"),
            "{full:#}"
        );
        assert!(file(directory.path(), "x").is_err());
    }
}
