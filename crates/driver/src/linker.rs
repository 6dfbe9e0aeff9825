//! What gcc calls as its linker: the real one, and one correction.

use crate::tools;
use crate::{DriverError, assembler};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// `mullion ld`: the linker's command line in, an image out, whole or not at all.
///
/// # Errors
/// Files; the real linker missing.
pub fn link(arguments: impl IntoIterator<Item = OsString>) -> Result<ExitCode, DriverError> {
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    let place = arguments
        .iter()
        .position(|argument| argument == "-o")
        .map(|at| at + 1);
    let output = place.and_then(|at| arguments.get(at)).map(PathBuf::from);
    let whole = output.filter(|output| !assembler::is_special(output));
    let temporary = whole.as_deref().map(assembler::beside);
    if let (Some(at), Some(temporary)) = (place, &temporary) {
        arguments[at] = temporary.clone().into();
    }
    let mut command = Command::new("ld");
    command.args(&arguments);
    let status = command
        .status()
        .map_err(|cause| tools::cannot_start(&command, cause))?;
    let (Some(output), Some(temporary)) = (whole, temporary) else {
        return Ok(if status.success() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        });
    };
    let finished = if status.success() {
        finish(&temporary, &output)
    } else {
        Ok(())
    };
    if !status.success() || finished.is_err() {
        let _absent = fs::remove_file(&temporary);
    }
    finished.map(|()| {
        if status.success() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    })
}

/// Offset and length of the file's type in an ELF header.
const TYPE: (u64, usize) = (16, 2);
const ET_EXEC: [u8; 2] = [2, 0];
const ET_DYN: [u8; 2] = [3, 0];

/// GNU ld calls a position-independent executable whose lowest address is not
/// zero an executable at a fixed address. It is not: every relocation is there.
fn finish(temporary: &Path, output: &Path) -> Result<(), DriverError> {
    let file = OpenOptions::new().read(true).write(true).open(temporary);
    file.and_then(|file| correct_type(&file))
        .map_err(|cause| DriverError::io(temporary, cause))?;
    fs::rename(temporary, output).map_err(|cause| DriverError::io(output, cause))
}

fn correct_type(mut file: &File) -> std::io::Result<()> {
    let mut kind = [0; TYPE.1];
    file.seek(SeekFrom::Start(TYPE.0))?;
    file.read_exact(&mut kind)?;
    if kind == ET_EXEC {
        file.seek(SeekFrom::Start(TYPE.0))?;
        file.write_all(&ET_DYN)?;
    }
    Ok(())
}
