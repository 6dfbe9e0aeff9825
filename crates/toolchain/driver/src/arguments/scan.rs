//! What gcc makes of its command line, as far as the driver must know it.

use super::{Arguments, Task};
use crate::{DriverError, response};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// gcc options whose value is the next argument: it must not be taken for an option.
const WITH_VALUE: &[&str] = &[
    "-o",
    "-x",
    "-I",
    "-D",
    "-U",
    "-L",
    "-l",
    "-T",
    "-u",
    "-z",
    "-e",
    "-G",
    "-A",
    "-B",
    "-MF",
    "-MT",
    "-MQ",
    "-include",
    "-imacros",
    "-idirafter",
    "-iprefix",
    "-iwithprefix",
    "-iwithprefixbefore",
    "-isystem",
    "-isysroot",
    "-iquote",
    "-imultilib",
    "-Xlinker",
    "-Xassembler",
    "-Xpreprocessor",
    "-aux-info",
    "-dumpbase",
    "-dumpdir",
    "-dumpbase-ext",
    "-wrapper",
    "--param",
    "-specs",
    "--entry",
    "--sysroot",
];

/// What is refused: the option or its beginning (with a final `*`), and why.
const REFUSED: &[(&str, &str)] = &[
    (
        "-m32",
        "a domain's code is 64-bit code; leave the option out",
    ),
    (
        "-mx32",
        "a domain's code is 64-bit code; leave the option out",
    ),
    (
        "-m16",
        "a domain's code is 64-bit code; leave the option out",
    ),
    (
        "-mabi=ms",
        "a domain uses the System V calling convention; leave the option out",
    ),
    (
        "-fsplit-stack",
        "a domain's stacks do not grow by pieces; leave the option out",
    ),
    (
        "-mcmodel=large",
        "an image is smaller than 4 GiB and position-independent; leave the option out",
    ),
    (
        "-mcmodel=medium",
        "an image is smaller than 4 GiB and position-independent; leave the option out",
    ),
    (
        "-mcmodel=kernel",
        "an image is smaller than 4 GiB and position-independent; leave the option out",
    ),
    (
        "-fgnu-tm",
        "transactions are not allowed in a domain; leave the option out",
    ),
    (
        "-static-libasan",
        "the sanitizers' run time does not live in a domain",
    ),
];

/// Suffixes by which gcc knows C++.
const CXX_SUFFIXES: &[&str] = &[
    "cc", "cp", "cxx", "cpp", "CPP", "c++", "C", "ii", "hh", "H", "hpp", "hxx", "tcc",
];

/// Options after which gcc answers and needs no input.
const QUESTIONS: &[&str] = &[
    "--version",
    "-dumpmachine",
    "-dumpversion",
    "-dumpfullversion",
    "-dumpspecs",
    "--help",
    "--target-help",
    "-print-search-dirs",
    "-print-multi-lib",
    "-print-multi-directory",
    "-print-multiarch",
    "-print-multi-os-directory",
    "-print-sysroot",
    "-print-libgcc-file-name",
    "--print-search-dirs",
    "--print-libgcc-file-name",
    "-###",
];

/// What has been seen so far on a command line.
#[derive(Default)]
pub(super) struct Scan {
    pub(super) expects_value: bool,
    expects_output: bool,
    expects_language: bool,
    /// `-x`
    language: bool,
    inputs: bool,
    stops_early: bool,
    questions: bool,
    /// `-shared`, `-static`
    pub(super) shared: bool,
    pub(super) fixed: bool,
    /// `-pg`, `-p`
    pub(super) counted_calls: bool,
}

impl Scan {
    pub(super) fn read(
        &mut self,
        argument: &OsStr,
        sorted: &mut Arguments,
        depth: usize,
    ) -> Result<(), DriverError> {
        let bytes = argument.as_bytes();
        if std::mem::take(&mut self.expects_value) {
            if std::mem::take(&mut self.expects_output) {
                sorted.output = Some(PathBuf::from(argument));
            }
            if std::mem::take(&mut self.expects_language) {
                sorted.cxx |= argument.to_string_lossy().starts_with("c++");
            }
            return Ok(());
        }
        if bytes.len() > 1 && bytes[0] == b'@' && depth < 8 {
            return self.read_response(Path::new(OsStr::from_bytes(&bytes[1..])), sorted, depth);
        }
        if bytes.first() != Some(&b'-') || bytes == b"-" {
            self.inputs = true;
            sorted.inputs.push(PathBuf::from(argument));
            let extension = Path::new(argument).extension().and_then(OsStr::to_str);
            let nasm = extension.is_some_and(|name| ["asm", "nasm"].contains(&name));
            if nasm && !self.language {
                return Err(DriverError::Refused {
                    option: argument.to_owned(),
                    reason: "a source of NASM's, which is not read; leave it out for the library's C \
                             (-DWITH_SIMD=0, --disable-asm and their like), or write it for GNU as (.s, .S)",
                });
            }
            sorted.cxx |= extension.is_some_and(|extension| CXX_SUFFIXES.contains(&extension));
            return Ok(());
        }
        let text = argument.to_string_lossy();
        if let Some(reason) = refusal(&text) {
            return Err(DriverError::Refused {
                option: argument.to_owned(),
                reason,
            });
        }
        if let Some(names) = text.strip_prefix("-fsanitize=") {
            sorted.traps_undefined |= undefined_alone(names).ok_or(DriverError::Refused {
                option: argument.to_owned(),
                reason: "the sanitizers' run time does not live in a domain; -fsanitize=undefined traps, and \
                         --mullion-protection=trap finds wild accesses",
            })?;
        }
        if depth > 0 && text.starts_with("--mullion-") {
            let reason = "the options of mullion are not read from response files; give it on the command line";
            return Err(DriverError::Refused {
                option: argument.to_owned(),
                reason,
            });
        }
        match text.as_ref() {
            "-c" | "-S" | "-E" | "-M" | "-MM" | "-fsyntax-only" => self.stops_early = true,
            "-shared" => self.shared = true,
            "-static" => self.fixed = true,
            "-pg" | "-p" => self.counted_calls = true,
            "-nostdinc" => sorted.standard_headers = false,
            "-nostdinc++" => sorted.standard_cxx_headers = false,
            "-o" => self.expects_output = true,
            "-x" => self.expects_language = true,
            "-v" => sorted.verbose = true,
            _ => {}
        }
        if let Some(output) = text.strip_prefix("-o").filter(|output| !output.is_empty()) {
            sorted.output = Some(PathBuf::from(output));
        }
        sorted.cxx |= text.starts_with("-xc++");
        self.language |= text.starts_with("-x");
        sorted.names_processor |= [
            "-march=",
            "-mavx512",
            "-mavxvnni",
            "-mfma4",
            "-mxop",
            "-mtbm",
        ]
        .iter()
        .any(|option| text.starts_with(option));
        self.questions |= QUESTIONS.contains(&text.as_ref())
            || text.starts_with("--help=")
            || text.contains("-print-file-name=")
            || text.contains("-print-prog-name=");
        self.inputs |= text.starts_with("-l");
        self.expects_value = WITH_VALUE.contains(&text.as_ref());
        Ok(())
    }

    /// The arguments in a response file. A file that does not exist is, to gcc,
    /// an ordinary argument.
    fn read_response(
        &mut self,
        path: &Path,
        sorted: &mut Arguments,
        depth: usize,
    ) -> Result<(), DriverError> {
        let text = match std::fs::read(path) {
            Ok(text) => text,
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {
                self.inputs = true;
                return Ok(());
            }
            Err(cause) => {
                return Err(DriverError::Response {
                    path: path.to_path_buf(),
                    cause,
                });
            }
        };
        for argument in response::split(&text) {
            self.read(OsStr::from_bytes(&argument), sorted, depth + 1)?;
        }
        Ok(())
    }

    pub(super) fn task(&self) -> Task {
        if self.stops_early {
            Task::Compile
        } else if self.questions || !self.inputs {
            Task::Question
        } else {
            Task::Link
        }
    }
}

/// Whether what `-fsanitize=` names is undefined behaviour that can be found without a run time of its own.
fn undefined_alone(names: &str) -> Option<bool> {
    const KNOWN: &[&str] = &[
        "undefined",
        "shift",
        "shift-exponent",
        "shift-base",
        "integer-divide-by-zero",
        "unreachable",
        "vla-bound",
        "null",
        "return",
        "signed-integer-overflow",
        "bounds",
        "bounds-strict",
        "alignment",
        "object-size",
        "float-divide-by-zero",
        "float-cast-overflow",
        "nonnull-attribute",
        "returns-nonnull-attribute",
        "bool",
        "enum",
        "pointer-overflow",
        "builtin",
    ];
    names
        .split(',')
        .all(|name| KNOWN.contains(&name))
        .then_some(true)
}

fn refusal(option: &str) -> Option<&'static str> {
    let fits = |pattern: &str| match pattern.strip_suffix('*') {
        Some(beginning) => option.starts_with(beginning),
        None => option == pattern,
    };
    REFUSED
        .iter()
        .find(|(pattern, _)| fits(pattern))
        .map(|(_, reason)| *reason)
}
