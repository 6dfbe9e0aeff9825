//! Objects whose code the rewriter has not seen: NASM's, other compilers', the system's archives. Some of it verifies. An
//! image that does not is refused where it is linked, and the object is named.

use crate::{DriverError, growth, tools};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Objects that are named at most.
const NAMED: usize = 4;

/// Refuses an image that does not verify, if something that was linked explains it.
pub(crate) fn check(image: &Path, inputs: &[PathBuf]) -> Result<(), DriverError> {
    let bytes = fs::read(image).map_err(|cause| DriverError::io(image, cause))?;
    let survey = mullion_verifier::survey(bytes, 1);
    let Some(violation) = survey.violations.first() else {
        return Ok(());
    };
    let mut foreign = Vec::new();
    for input in inputs {
        foreign.extend(foreign_of(input));
    }
    if foreign.is_empty() {
        return Ok(());
    }
    let more = foreign.len().saturating_sub(NAMED);
    foreign.truncate(NAMED);
    let mut objects = foreign.join(", ");
    if more > 0 {
        objects += &format!(" and {more} more");
    }
    let violation = violation.to_string();
    Err(DriverError::Foreign { objects, violation })
}

/// The objects of a file, or of an archive, that hold code and do not say how long it was before rewriting.
fn foreign_of(input: &Path) -> Vec<String> {
    let mut command = Command::new("readelf");
    command.env("LC_ALL", "C").arg("-SW").arg(input);
    // What is no object says nothing.
    let Ok(output) = tools::output(&mut command) else {
        return Vec::new();
    };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut foreign = Vec::new();
    let (mut name, mut code, mut rewritten) = (input.display().to_string(), false, false);
    for line in said.lines() {
        if let Some(next) = line.strip_prefix("File: ") {
            if code && !rewritten {
                foreign.push(name);
            }
            (name, code, rewritten) = (next.to_owned(), false, false);
        }
        rewritten |= line.contains(growth::SECTION);
        code |= is_code(line);
    }
    if code && !rewritten {
        foreign.push(name);
    }
    foreign
}

/// `[ 1] .text PROGBITS 0000000000000000 000040 000004 00 AX 0 0 16`: whether it has code.
fn is_code(line: &str) -> bool {
    let Some((_, section)) = line.split_once(']') else {
        return false;
    };
    let words: Vec<&str> = section.split_whitespace().collect();
    let [_, "PROGBITS", _, _, size, _, flags, ..] = words[..] else {
        return false;
    };
    flags.contains('X') && size.contains(|digit| digit != '0')
}
