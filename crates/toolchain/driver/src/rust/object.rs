//! A crate's objects: from its assembler text, in the place of those that rustc wrote.

use super::{impossible, probes};
use crate::{DriverError, assembler, tools};
use mullion_rewriter::Options;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Rewrites a crate's text and assembles it.
pub(crate) fn assemble(
    text: &str,
    name: &Path,
    options: &Options,
    keep: Option<&Path>,
    object: &Path,
) -> Result<(), DriverError> {
    let file = name.file_name().unwrap_or_default().to_string_lossy();
    let text = &*probes::without(text);
    let text = &*impossible::without(text, &file, options);
    let after = assembler::rewrite(text, name, options)?;
    if let Some(directory) = keep {
        assembler::keep(directory, name, text, &after)?;
    }
    // GNU as takes the directories of a line table from version 5 on; without lines of its source it
    // would write those of the text.
    let lines = text
        .contains("\t.loc\t")
        .then(|| OsString::from("--gdwarf-5"));
    let lines: Vec<OsString> = lines.into_iter().collect();
    match assembler::run(&lines, Some(&known_to_gas(text)), &after, object)? {
        ExitCode::SUCCESS => Ok(()),
        _ => Err(DriverError::Step {
            command: format!("as {}", name.display()),
            said: String::new(),
        }),
    }
}

/// The text as GNU as reads it, to be measured: without lines of its source.
fn known_to_gas(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let bare = line.trim_start();
        if ![".prefalign", ".file\t", ".loc\t"]
            .iter()
            .any(|name| bare.starts_with(name))
        {
            out.push_str(line);
        }
        out.push('\n');
    }
    out
}

/// Whether an object comes from a codegen unit of a crate, or from rustc itself.
pub(super) fn is_codegen_unit(object: &Path) -> bool {
    let name = object.file_name().unwrap_or_default().to_string_lossy();
    name.strip_suffix(".rcgu.o")
        .and_then(|name| name.rsplit_once("-cgu."))
        .is_some_and(|(_, number)| number.bytes().all(|b| b.is_ascii_digit()))
}

/// Puts the crate's object into an archive that rustc wrote, in the place of what it put there.
/// `text` is the crate's assembler text; none was written if the crate has no code.
pub(super) fn replace(
    archive: &Path,
    text: &Path,
    options: &Options,
    keep: Option<&Path>,
    scratch: &Path,
) -> Result<(), DriverError> {
    let said = tools::step(Command::new("ar").arg("t").arg(archive))?;
    let said = String::from_utf8_lossy(&said);
    let members = said.lines().map(Path::new).filter(|m| is_codegen_unit(m));
    let members: Vec<&Path> = members.collect();
    match members.as_slice() {
        [] => Ok(()),
        [member] => {
            let object = scratch.join(member);
            let before = fs::read_to_string(text).map_err(|cause| DriverError::io(text, cause))?;
            assemble(&before, text, options, keep, &object)?;
            tools::step(Command::new("ar").arg("rD").arg(archive).arg(&object)).map(drop)
        }
        [_, second, ..] => Err(DriverError::Step {
            command: format!("ar t {}", archive.display()),
            said: format!("a second codegen unit: {}", second.display()),
        }),
    }
}

/// The rlibs in a directory.
pub(super) fn rlibs(directory: &Path) -> Result<Vec<PathBuf>, DriverError> {
    let mut found = crate::sysroot::entries(directory)?;
    found.retain(|path| path.extension() == Some(OsStr::new("rlib")));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_codegen_unit_is_known_by_its_name() {
        assert!(is_codegen_unit(Path::new("/x/h.h.ab5cc244-cgu.0.rcgu.o")));
        assert!(!is_codegen_unit(Path::new("h.4i44fri3z4m4qx.rcgu.o")));
        assert!(!is_codegen_unit(Path::new("symbols.o")));
        assert!(!is_codegen_unit(Path::new("x-cgu.a.rcgu.o")));
    }
}
