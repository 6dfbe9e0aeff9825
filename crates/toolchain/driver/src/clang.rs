//! `mullion clang`: C and C++ by clang, for a domain.
//!
//! ```text
//! mullion clang a.c -o a.mx
//!    clang -emit-llvm    a.c  -> a.bc      the machine's clang, 14 or later
//!    llc                 a.bc -> a.s       LLVM 23 (rustup's llvm-tools), which keeps three registers free
//!    rewrite, then as    a.s  -> a.o       as mullion rustc does
//!    mullion cc          a.o  -> a.mx      links
//! ```
//!
//! clang's own back end can be told to keep general registers free since release 23 alone. Its intermediate form is
//! read by later releases, so an older clang does with the back end that rustc brings.

use crate::DriverError;
use crate::arguments::{Arguments, Task};
use crate::compiler::{Language, compile};
use crate::rust::{self, Toolchain};
use crate::sysroot::Sysroot;
use crate::tools;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Options of every compilation, behind the user's own.
const CODE: &[&str] = &[
    "--target=x86_64-unknown-linux-musl",
    "-fPIE",
    "-ftls-model=initial-exec",
    "-fno-stack-protector",
    "-fno-stack-clash-protection",
    "-fcf-protection=none",
    "-fno-lto",
    "-mno-avx512f",
    "-Qunused-arguments",
    "-D__mullion__=1",
];

/// Options of the back end: three registers belong to the rewriter.
const BACK: &[&str] = &[
    "-mattr=+reserve-r11,+reserve-r14,+reserve-r15",
    "-relocation-model=pic",
    "-x86-asm-syntax=att",
];

/// Does what `mullion clang` or `mullion clang++` was asked for; the exit status.
///
/// # Errors
/// What is refused, what is missing; an error of clang is an exit status.
pub fn clang(language: Language, arguments: &[OsString]) -> Result<u8, DriverError> {
    let parsed = Arguments::parse(arguments)?;
    if parsed.help {
        return compile(language, &parsed).map(|compiled| compiled.code);
    }
    let front = Front::find(language)?;
    if parsed.task == Task::Question {
        return front.run(&parsed.forwarded, &[]);
    }
    if let mullion_rewriter::Wall::Word(_) = parsed.wall {
        return Err(DriverError::Refused {
            option: "--wall=word".into(),
            reason: "modules of checked code are compiled by mullion cc",
        });
    }
    let sysroot = Sysroot::prepare(&parsed.rewriting())?;
    let mut code: Vec<OsString> = CODE.iter().map(OsString::from).collect();
    code.extend(headers(language, &parsed, &sysroot));
    let says = |option: &str| parsed.forwarded.iter().any(|word| word == option);
    if ["-E", "-M", "-MM", "-fsyntax-only"]
        .iter()
        .any(|option| says(option))
    {
        return front.run(&parsed.forwarded, &code);
    }
    if let Some(option) = ["-emit-llvm", "-flto", "-x"]
        .iter()
        .find(|option| says(option))
    {
        return Err(DriverError::Refused {
            option: option.into(),
            reason: "mullion clang makes objects and images, each source by its name's end",
        });
    }
    let scratch =
        tempfile::tempdir().map_err(|cause| DriverError::io(&std::env::temp_dir(), cause))?;
    let step = Step {
        front: &front,
        parsed: &parsed,
        code: &code,
        scratch: scratch.path(),
    };
    let mut line = Vec::new();
    let (object, text) = (says("-c"), says("-S"));
    for (at, word) in parsed.forwarded.iter().enumerate() {
        let path = Path::new(word);
        if !(is_source(path) && parsed.inputs.iter().any(|input| input == path)) {
            line.push(word.clone());
            continue;
        }
        let made = match step.source(at, path, text)? {
            Ok(made) => made,
            Err(code) => return Ok(code),
        };
        if object || text {
            let stem = path.file_stem().unwrap_or_default();
            let usual = Path::new(stem).with_extension(if text { "s" } else { "o" });
            publish(&made, parsed.output.as_deref().unwrap_or(&usual))?;
        } else {
            line.push(made.into());
        }
    }
    if object || text {
        return Ok(0);
    }
    // The linker's line is gcc's: what only clang knows was about compiling.
    line.retain(|word| {
        !word.as_encoded_bytes().starts_with(b"-W") || word.as_encoded_bytes().starts_with(b"-Wl,")
    });
    let own = arguments
        .iter()
        .filter(|word| word.as_encoded_bytes().starts_with(b"--mullion-"));
    line.extend(own.cloned());
    compile(language, &Arguments::parse(&line)?).map(|compiled| compiled.code)
}

/// The machine's clang, and the back end.
struct Front {
    clang: OsString,
    mode: &'static str,
    llc: PathBuf,
}

impl Front {
    fn find(language: Language) -> Result<Self, DriverError> {
        let named = std::env::var_os("MULLION_CLANG").filter(|name| !name.is_empty());
        let clang = named.unwrap_or_else(|| "clang".into());
        let mode = match language {
            Language::C => "--driver-mode=gcc",
            Language::Cxx => "--driver-mode=g++",
        };
        let llc = Toolchain::find()?.llc();
        if !llc.is_file() {
            return Err(DriverError::NoLlc {
                release: rust::RELEASE,
            });
        }
        Ok(Self { clang, mode, llc })
    }

    fn run(&self, arguments: &[OsString], more: &[OsString]) -> Result<u8, DriverError> {
        let mut command = Command::new(&self.clang);
        command.arg(self.mode).args(arguments).args(more);
        status(&mut command)
    }
}

fn status(command: &mut Command) -> Result<u8, DriverError> {
    let status = command
        .status()
        .map_err(|cause| tools::cannot_start(command, cause))?;
    let code = status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    Ok(u8::try_from(code).unwrap_or(1))
}

struct Step<'a> {
    front: &'a Front,
    parsed: &'a Arguments,
    code: &'a [OsString],
    scratch: &'a Path,
}

impl Step<'_> {
    /// Compiles a source; gives its object (or its text before rewriting), or clang's exit status.
    fn source(
        &self,
        at: usize,
        source: &Path,
        text_only: bool,
    ) -> Result<Result<PathBuf, u8>, DriverError> {
        // Two sources may have one name.
        let place = self.scratch.join(at.to_string());
        fs::create_dir(&place).map_err(|cause| DriverError::io(&place, cause))?;
        let stem = source.file_stem().unwrap_or_default();
        let file = |end: &str| place.join(stem).with_extension(end);
        let (form, text, object) = (file("bc"), file("s"), file("o"));
        let mut clang = Command::new(&self.front.clang);
        clang.arg(self.front.mode);
        let mut words = self.parsed.forwarded.iter();
        while let Some(word) = words.next() {
            let other = self
                .parsed
                .inputs
                .iter()
                .any(|input| input == Path::new(word));
            match word.to_str() {
                Some("-c" | "-S") => {}
                Some("-o") => drop(words.next()),
                _ if other => {}
                _ => drop(clang.arg(word)),
            }
        }
        clang
            .args(self.code)
            .args(["-emit-llvm", "-c"])
            .arg(source)
            .arg("-o")
            .arg(&form);
        let code = status(&mut clang)?;
        if code != 0 {
            return Ok(Err(code));
        }
        let level = self
            .parsed
            .forwarded
            .iter()
            .rev()
            .find_map(|word| word.to_str()?.strip_prefix("-O"));
        let level = match level {
            None | Some("0") => "-O0",
            Some("1" | "g") => "-O1",
            Some("3" | "fast") => "-O3",
            Some(_) => "-O2",
        };
        let mut llc = Command::new(&self.front.llc);
        llc.args(BACK).arg(level).arg(&form).arg("-o").arg(&text);
        tools::step(&mut llc)?;
        if text_only {
            return Ok(Ok(text));
        }
        let before = fs::read_to_string(&text).map_err(|cause| DriverError::io(&text, cause))?;
        let keep = self.parsed.keep.as_deref();
        rust::assemble(&before, &text, &self.parsed.rewriting(), keep, &object)?;
        Ok(Ok(object))
    }
}

/// The sysroot's headers, behind those that belong to clang itself (`stddef.h`).
fn headers(language: Language, parsed: &Arguments, sysroot: &Sysroot) -> Vec<OsString> {
    let mut words: Vec<OsString> = Vec::new();
    if !parsed.standard_headers {
        return words;
    }
    words.push("-nostdlibinc".into());
    let mut place = |directory: PathBuf| words.extend(["-isystem".into(), directory.into()]);
    if language == Language::Cxx {
        sysroot.cxx_headers().into_iter().for_each(&mut place);
    }
    sysroot.headers().into_iter().take(1).for_each(&mut place);
    words
}

fn is_source(path: &Path) -> bool {
    let end = path.extension().and_then(OsStr::to_str);
    matches!(end, Some("c" | "i" | "cc" | "cpp" | "cxx" | "C" | "ii"))
}

/// Puts a file in its place as a whole.
fn publish(made: &Path, to: &Path) -> Result<(), DriverError> {
    let beside = to.with_extension(format!("{}.new", std::process::id()));
    fs::copy(made, &beside).map_err(|cause| DriverError::io(&beside, cause))?;
    fs::rename(&beside, to).map_err(|cause| DriverError::io(to, cause))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_known_by_the_ends_of_their_names() {
        assert!(is_source(Path::new("a/b.c")) && is_source(Path::new("b.cpp")));
        assert!(
            !is_source(Path::new("b.o"))
                && !is_source(Path::new("c"))
                && !is_source(Path::new("b.s"))
        );
    }
}
