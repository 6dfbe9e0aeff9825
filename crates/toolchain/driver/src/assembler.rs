//! What gcc calls as its assembler: rewrites, then runs the real one.

use crate::arguments::{BASE, COUNT};
use crate::checked;
use crate::growth::{self, Original};
use crate::{DriverError, response, tools};
use mullion_abi::Protection;
use mullion_rewriter::{Options, Wall};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// Environment variable that hands the protection from the driver to here.
pub(crate) const PROTECTION: &str = "MULLION_PROTECTION";
/// Environment variable that hands `--mullion-keep` from the driver to here.
pub(crate) const KEEP: &str = "MULLION_KEEP";

/// Tells what a compiler will call how to rewrite.
pub(crate) fn hand_on(command: &mut Command, options: &Options, keep: Option<&Path>) {
    command.env(checked::WORD, "");
    command.env(PROTECTION, options.protection.name());
    command.env(BASE, options.base.name());
    command.env(COUNT, if options.count { "1" } else { "" });
    if let Some(directory) = keep {
        command.env(KEEP, directory);
    }
}

/// What `hand_on` told.
pub(crate) fn options_from_environment() -> Result<Options, DriverError> {
    let word = checked::from_environment()?;
    let protection = match std::env::var(PROTECTION) {
        _ if word.is_some() => Protection::ReadWriteCall,
        Ok(name) => crate::arguments::protection(PROTECTION, &name)?,
        Err(_) => Protection::ReadWriteCall,
    };
    Ok(Options {
        wall: word.map_or(Wall::Window, Wall::Word),
        protection,
        base: crate::arguments::base_from_environment()?,
        count: crate::arguments::count_from_environment(),
    })
}

/// The assembler's command line, as gcc writes it.
struct Invocation {
    forwarded: Vec<OsString>,
    output: PathBuf,
    inputs: Vec<PathBuf>,
}

/// Options of the assembler whose value is the next argument.
const WITH_VALUE: &[&str] = &["-I", "--MD", "-march", "--defsym", "--debug-prefix-map"];

impl Invocation {
    fn parse(arguments: impl IntoIterator<Item = OsString>) -> Self {
        let mut parsed = Self {
            forwarded: Vec::new(),
            output: PathBuf::from("a.out"),
            inputs: Vec::new(),
        };
        let mut arguments = response::expand(arguments).into_iter();
        while let Some(argument) = arguments.next() {
            let text = argument.to_string_lossy().into_owned();
            if text == "-o" {
                parsed.output = arguments.next().map(PathBuf::from).unwrap_or_default();
            } else if text == "-" || !text.starts_with('-') {
                parsed.inputs.push(PathBuf::from(argument));
            } else {
                parsed.forwarded.push(argument);
                if WITH_VALUE.contains(&text.as_str()) {
                    parsed.forwarded.extend(arguments.next());
                }
            }
        }
        parsed
    }

    /// All inputs as one text; gcc gives one, or `-` with `-pipe`.
    fn text(&self) -> Result<String, DriverError> {
        let mut text = Vec::new();
        if self.inputs.is_empty() || self.inputs == [Path::new("-")] {
            std::io::stdin()
                .read_to_end(&mut text)
                .map_err(|cause| DriverError::io(Path::new("-"), cause))?;
        }
        for input in self.inputs.iter().filter(|input| *input != Path::new("-")) {
            text.extend(fs::read(input).map_err(|cause| DriverError::io(input, cause))?);
        }
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

/// `mullion as`: the assembler's command line in, an object out.
///
/// # Errors
/// What the rewriter refuses, with its place; files; the real assembler missing.
pub fn assemble(arguments: impl IntoIterator<Item = OsString>) -> Result<ExitCode, DriverError> {
    let invocation = Invocation::parse(arguments);
    let text = invocation.text()?;
    let name = invocation
        .inputs
        .first()
        .map_or(Path::new("-"), PathBuf::as_path);
    let options = options_from_environment()?;
    let rewritten = rewrite(&text, name, &options)?;
    if let Some(directory) = std::env::var_os(KEEP) {
        keep(Path::new(&directory), &invocation.output, &text, &rewritten)?;
    }
    run(
        &invocation.forwarded,
        Some(&text),
        &rewritten,
        &invocation.output,
    )
}

/// Rewrites one file's text. `name` stands in messages where the text names no source file.
pub(crate) fn rewrite(text: &str, name: &Path, options: &Options) -> Result<String, DriverError> {
    match mullion_rewriter::rewrite(text, &name.to_string_lossy(), options) {
        Ok(rewritten) => Ok(rewritten.text),
        Err(refusals) => {
            let lines = refusals.iter().map(|refusal| {
                let line = refusal.line as usize;
                let (place, hint) = match (source_of(text, line), unit_of(text)) {
                    (Some((file, line)), _) => (format!("{file}:{line}"), ""),
                    (None, Some(file)) => (file.to_owned(), "; with -g the line is known"),
                    (None, None) => (format!("{}:{line}", name.display()), ""),
                };
                let function = function_of(text, line);
                let within = function.map_or(String::new(), |name| format!(" in `{name}`"));
                format!(
                    "{place}: error: {}: `{}`{within}{hint}",
                    refusal.reason, refusal.instruction
                )
            });
            // A macro may bring an instruction twice in a line. Its author reads of it once.
            let mut lines: Vec<String> = lines.collect();
            lines.dedup();
            Err(DriverError::Rewrite(lines.join("\n")))
        }
    }
}

/// The source file and line that a line of assembler text (from 1) comes from,
/// as far as the text says: by `.loc`, or by the markers that gcc puts around
/// inline assembler and that the preprocessor leaves in `.S` files.
fn source_of(text: &str, line: usize) -> Option<(String, usize)> {
    let lines: Vec<&str> = text.lines().take(line).collect();
    for (index, candidate) in lines.iter().enumerate().rev() {
        let candidate = candidate.trim_start();
        if let Some((number, file)) = marker(candidate) {
            let preprocessed = !text.contains("#APP");
            let behind = if preprocessed {
                lines.len() - index - 1
            } else {
                1
            };
            return Some((file.to_owned(), number + behind - 1));
        }
        if let Some(location) = candidate.strip_prefix(".loc ") {
            let mut numbers = location.split_whitespace();
            let (file, number) = (
                numbers.next().unwrap_or_default(),
                numbers.next().unwrap_or_default(),
            );
            if let (Some(file), Ok(number)) = (file_name(text, file), number.parse()) {
                return Some((file, number));
            }
        }
        // What comes before this function says nothing about it.
        if candidate.starts_with(".cfi_startproc") {
            break;
        }
    }
    None
}

/// The file that was compiled, as the compiler names it at the top of its text.
fn unit_of(text: &str) -> Option<&str> {
    let lines = text.lines().map(str::trim_start);
    let mut names = lines.filter_map(|line| line.strip_prefix(".file")?.trim().strip_prefix('"'));
    names.next()?.strip_suffix('"')
}

/// The function that a line (from 1) is part of: the label in front of it that is not the compiler's own. People write
/// instructions behind labels.
fn function_of(text: &str, line: usize) -> Option<&str> {
    let lines: Vec<&str> = text.lines().take(line).collect();
    let mut labels = lines
        .into_iter()
        .rev()
        .filter_map(|line| Some(line.split_once(':')?.0));
    let plain = |label: &&str| {
        !label.starts_with(|first: char| first == '.' || first.is_ascii_digit())
            && label
                .chars()
                .all(|letter| letter.is_alphanumeric() || "_.$@".contains(letter))
            && !label.is_empty()
    };
    labels.find(plain)
}

/// `# 12 "file.c"`: the line behind it is that line.
fn marker(line: &str) -> Option<(usize, &str)> {
    let (number, file) = line.strip_prefix("# ")?.split_once(" \"")?;
    Some((number.parse().ok()?, file.split_once('"')?.0))
}

/// The name that `.file NUMBER "..."` gives.
fn file_name(text: &str, number: &str) -> Option<String> {
    let entry = text
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix(".file "))
        .find_map(|entry| {
            entry
                .strip_prefix(number)
                .filter(|rest| rest.starts_with(' '))
        })?;
    entry.split('"').rev().nth(1).map(str::to_owned)
}

/// Runs the real assembler on a text. The object appears under its name when it is complete,
/// and says how much longer its code is than that of the text `before`.
pub(crate) fn run(
    options: &[OsString],
    before: Option<&str>,
    text: &str,
    output: &Path,
) -> Result<ExitCode, DriverError> {
    let special = is_special(output);
    let temporary = if special {
        output.to_path_buf()
    } else {
        beside(output)
    };
    let mut command = Command::new("as");
    command
        .args(options)
        .arg("-o")
        .arg(&temporary)
        .arg("-")
        .stdin(Stdio::piped());
    let before = before.filter(|_| !special);
    let original = before.and_then(|before| Original::start(options, before));
    let mut child = command
        .spawn()
        .map_err(|cause| tools::cannot_start(&command, cause))?;
    let written = child.stdin.take().map_or(Ok(()), |mut input| {
        input.write_all(text.as_bytes())?;
        input.write_all(growth::RECORD.as_bytes())
    });
    let status = child
        .wait()
        .map_err(|cause| DriverError::io(output, cause))?;
    if special {
        return Ok(if status.success() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        });
    }
    let before = original.map_or(0, Original::code_bytes);
    if !status.success() {
        let _absent = fs::remove_file(&temporary);
        return Ok(ExitCode::FAILURE);
    }
    // Without the record the object is as good.
    let _unknown = growth::record(&temporary, before);
    written.map_err(|cause| DriverError::io(output, cause))?;
    fs::rename(&temporary, output).map_err(|cause| {
        let _absent = fs::remove_file(&temporary);
        DriverError::io(output, cause)
    })?;
    Ok(ExitCode::SUCCESS)
}

/// What exists and is no regular file (`/dev/null`) is written to, not replaced.
pub(crate) fn is_special(output: &Path) -> bool {
    fs::metadata(output).is_ok_and(|metadata| !metadata.is_file())
}

/// A temporary name in the output's directory, so that the rename is one step.
pub(crate) fn beside(output: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(output.file_name().unwrap_or(OsStr::from_bytes(b"out")));
    name.push(format!(".{}", std::process::id()));
    output.with_file_name(name)
}

/// Keeps the text before and after rewriting.
pub(crate) fn keep(
    directory: &Path,
    output: &Path,
    before: &str,
    after: &str,
) -> Result<(), DriverError> {
    fs::create_dir_all(directory).map_err(|cause| DriverError::io(directory, cause))?;
    let stem = output.file_stem().unwrap_or_default().to_string_lossy();
    for (suffix, text) in [("gcc.s", before), ("mullion.s", after)] {
        let file = directory.join(format!("{stem}.{suffix}"));
        fs::write(&file, text).map_err(|cause| {
            let _absent = fs::remove_file(&file);
            DriverError::io(&file, cause)
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Invocation {
        Invocation::parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn gccs_command_lines_are_understood() {
        let plain = parse("-I inc --gdwarf-5 --64 -o a.o /tmp/x.s");
        assert_eq!(
            (plain.output.as_path(), plain.inputs.len()),
            (Path::new("a.o"), 1)
        );
        assert_eq!(plain.forwarded, ["-I", "inc", "--gdwarf-5", "--64"]);
        let piped = parse("--64 -o a.o -");
        assert_eq!(piped.inputs, [Path::new("-")]);
    }

    #[test]
    fn a_refusal_names_the_source() {
        let inline =
            "f:\n\t.cfi_startproc\n#APP\n# 12 \"a.c\" 1\n\tsyscall\n# 0 \"\" 2\n#NO_APP\n\tret\n";
        assert_eq!(source_of(inline, 5), Some(("a.c".to_owned(), 12)));
        assert_eq!(function_of(inline, 5), Some("f"));
        let preprocessed = "# 1 \"b.S\"\nf:\n\tnop\n\tsyscall\n";
        assert_eq!(source_of(preprocessed, 4), Some(("b.S".to_owned(), 3)));
        let debug = "\t.file 1 \"c.c\"\nf:\n\t.cfi_startproc\n\t.loc 1 7 3\n\tsyscall\n";
        assert_eq!(source_of(debug, 5), Some(("c.c".to_owned(), 7)));
        assert_eq!(source_of("f:\n\tsyscall\n", 2), None);
    }

    #[test]
    fn a_refusal_without_lines_names_file_and_function() {
        let text = "\t.file\t\"d.c\"\n\t.text\nfirst:\n\tret\nsecond:\n.L2:\n\tsyscall\n\tret\n";
        let options = Options {
            wall: Wall::Window,
            protection: Protection::ReadWriteCall,
            base: mullion_rewriter::Base::Segment,
            count: false,
        };
        let said = |text: &str| {
            let refused = rewrite(text, Path::new("/tmp/ccAbc.s"), &options);
            refused.expect_err("a system call").to_string()
        };
        let found = said(text);
        assert!(found.starts_with("d.c: error: "), "{found}");
        assert!(
            found.ends_with("`syscall` in `second`; with -g the line is known"),
            "{found}"
        );
        // Written by hand, its own lines count, and a label may have an instruction behind it.
        let found = said("g:\n\tnop\nf:\tsyscall\n");
        assert!(found.ends_with("`syscall` in `f`"), "{found}");
        let found = said("f:\n\tsyscall\n");
        assert!(found.starts_with("/tmp/ccAbc.s:2: error: "), "{found}");
        assert!(found.ends_with("`syscall` in `f`"), "{found}");
    }

    #[test]
    fn an_object_appears_whole_or_not_at_all() {
        let directory = tempfile::tempdir().unwrap();
        let output = directory.path().join("a.o");
        assert_eq!(
            run(&[], None, "\t.text\n\tnop\n", &output).unwrap(),
            ExitCode::SUCCESS
        );
        assert!(output.is_file());
        let bad = directory.path().join("b.o");
        assert_eq!(
            run(&[], None, "\tno such instruction\n", &bad).unwrap(),
            ExitCode::FAILURE
        );
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        assert_eq!(
            run(&[], None, "\tnop\n", Path::new("/dev/null")).unwrap(),
            ExitCode::SUCCESS
        );
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }
}
