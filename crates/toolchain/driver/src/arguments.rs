//! gcc's command line, read just far enough: our own options are taken out,
//! what cannot work in a domain is refused, everything else goes to gcc as it is.

use crate::{DriverError, response};
use mullion_abi::Protection;
use mullion_rewriter::{Base, Options, Wall, WordProtection};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The text of `mullion cc --mullion-help`.
pub const OPTIONS_HELP: &str = "\
mullion cc and mullion c++ take the options of gcc and g++, and:

  --mullion-protection=LEVEL  write-call, read-write-call (the default) or trap:
                              what is confined besides control flow; trap faults
                              at a wild access where the others wrap
  --wall=word                 makes modules of checked code instead of images (docs/word-form.md):
                              shared objects whose every access is checked word by word, in the
                              address space and with the headers of their host;
                              --protection=LEVEL is then write or read-write (the default):
                              whether stores alone are checked, or loads as well.
                              What a module calls and does not define is imported from the host,
                              but for functions of the C library that only compute
  --mullion-base=BASE         segment (the default) or register: whether memory may be
                              reached through %gs. Without that, calls between
                              domains are faster, and most computing a little slower;
                              it counts for an image if all that is linked has it
  --mullion-count             counts steps, so that a run can be limited to a number of them
                              and the same input ends at the same instruction
                              (mullion run --max-steps); slower; a tool for replaying, no wall
  --mullion-kind=KIND         program (the default): has main, is run once;
                              extension: has exports that a host calls
  --mullion-export=F,G...     exports these functions, as MULLION_EXPORT does
  --mullion-keep=DIRECTORY    keeps the assembler text, before and after rewriting
  --type FILE, --key NAME     signs a compilation record beside each image that is
                              linked (IMAGE.record): of the module type in FILE (or
                              of that identifier in the policy), with that key;
                              also --mullion-type=, --mullion-key=
  --mullion-help              this text

Environment:

  MULLION_PROTECTION          the protection, where the option is not given
                              (otherwise the module type's, if there is one)
  MULLION_WALL                the wall, where the option is not given
  MULLION_BASE                the base, where the option is not given
  MULLION_COUNT               1: as --mullion-count
  MULLION_KEYS                the directory of keys (~/.config/mullion/keys)
  MULLION_PASSPHRASE_FILE     the passphrase of the key, where no terminal is
  MULLION_CC, MULLION_CXX     the compilers to use instead of gcc-12 and g++-12, or
                              of gcc and g++ where there is no other
  MULLION_SOURCES             a directory with archives of third-party sources,
                              looked at before any package client is asked
  XDG_CACHE_HOME              where the C library is built, once (~/.cache)

A program whose name does not end in .mx can be started like any other: its
ELF interpreter is `mullion run`, with the options in MULLION_RUN. Scripts made
by autoconf start what they build and have it write a file:

  MULLION_RUN=\"--dir .::/\" CC=\"mullion cc\" ./configure && make

Not possible behind the word wall: exceptions (-fno-exceptions is always given), setjmp,
-static, names of imported functions of more than 63 bytes. configure takes it for a
cross compiler (--host), since a module is no program.

Not possible in a domain: shared libraries (-shared), 32-bit code (-m32),
-fsplit-stack, the sanitizers, large code models. -flto, -fstack-protector,
-fcf-protection and -fPIC are accepted and have no effect. -march=native and its
like are taken without AVX-512 (and AVX-VNNI, FMA4, XOP, TBM), which -v tells.
";

/// What an image is: the note's third word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// It has `main`, is run once and ends.
    #[default]
    Program,
    /// It has exports, called by a host as long as it likes.
    Extension,
}

/// What gcc was asked to produce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Questions that gcc answers without an input (`--version`, `-dumpmachine`).
    Question,
    /// Preprocessed text, assembler text or objects.
    Compile,
    /// An image, or a combined object (`-r`).
    Link,
}

/// A command line, sorted.
#[derive(Debug)]
pub struct Arguments {
    /// What goes to gcc, in order.
    pub forwarded: Vec<OsString>,
    /// What is confined.
    pub protection: Protection,
    /// Whether option or environment say so; otherwise it is the default.
    pub protection_given: bool,
    /// The wall that the code is for; behind the word wall, what is checked.
    pub wall: Wall,
    /// Whether memory may be reached through `%gs`.
    pub base: Base,
    /// Whether steps are counted.
    pub count: bool,
    /// The file of the module type that a record is to be signed for.
    pub module_type: Option<PathBuf>,
    /// The name of the key that signs.
    pub key: Option<String>,
    /// The files on the command line: sources, objects, libraries.
    pub inputs: Vec<PathBuf>,
    /// What the image is to be.
    pub kind: Kind,
    /// Functions to export.
    pub exports: Vec<String>,
    /// Where to keep intermediate text.
    pub keep: Option<PathBuf>,
    /// What is produced.
    pub task: Task,
    /// The output, as given with `-o`.
    pub output: Option<PathBuf>,
    /// Whether gcc's and the sysroot's headers are wanted (no `-nostdinc`).
    pub standard_headers: bool,
    /// The same for C++ (no `-nostdinc++`).
    pub standard_cxx_headers: bool,
    /// Whether something here is C++.
    pub cxx: bool,
    /// Whether our help was asked for.
    pub help: bool,
    /// `-v`
    pub verbose: bool,
    /// Whether code is asked for that some processors alone can run.
    pub names_processor: bool,
}

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
        "-fsanitize=*",
        "the sanitizers' run time does not live in a domain; use --mullion-protection=trap to find wild accesses",
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

impl Arguments {
    /// Sorts a command line.
    ///
    /// # Errors
    /// An option that is refused, or a bad value of one of ours.
    pub fn parse(arguments: &[OsString]) -> Result<Self, DriverError> {
        let mut sorted = Self {
            forwarded: Vec::with_capacity(arguments.len()),
            protection: Protection::ReadWriteCall,
            protection_given: false,
            wall: Wall::Window,
            base: base_from_environment()?,
            count: count_from_environment(),
            module_type: None,
            key: None,
            inputs: Vec::new(),
            kind: Kind::default(),
            exports: Vec::new(),
            keep: None,
            task: Task::Question,
            output: None,
            standard_headers: true,
            standard_cxx_headers: true,
            cxx: false,
            help: false,
            verbose: false,
            names_processor: false,
        };
        let mut wishes = Wishes {
            wall: from_environment(WALL),
            protection: from_environment(PROTECTION).map(|value| (PROTECTION, value)),
        };
        let mut scan = Scan::default();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            if let Some(name) = short(argument).filter(|_| !scan.expects_value) {
                let value = match name.split_once('=') {
                    Some((_, value)) => value.to_owned(),
                    None => value_of(argument, arguments.next())?,
                };
                let name = name.split('=').next().unwrap_or_default();
                sorted.own(&format!("{name}={value}"), &mut wishes)?;
                continue;
            }
            if let Some(own) = argument
                .as_bytes()
                .strip_prefix(b"--mullion-")
                .filter(|_| !scan.expects_value)
            {
                sorted.own(&String::from_utf8_lossy(own), &mut wishes)?;
                continue;
            }
            sorted.forwarded.push(argument.clone());
            scan.read(argument, &mut sorted, 0)?;
        }
        sorted.task = scan.task();
        sorted.settle(wishes, &scan)?;
        Ok(sorted)
    }

    /// What the rewriter is to do.
    pub(crate) fn rewriting(&self) -> Options {
        Options {
            wall: self.wall,
            protection: self.protection,
            base: self.base,
            count: self.count,
        }
    }

    /// Whether gcc will print its help.
    pub(crate) fn asks_for_help(&self) -> bool {
        self.task == Task::Question
            && self
                .forwarded
                .iter()
                .any(|argument| argument.as_bytes().starts_with(b"--help"))
    }

    /// What wall and protection together mean, and what they have no use for.
    fn settle(&mut self, wishes: Wishes, scan: &Scan) -> Result<(), DriverError> {
        self.protection_given = wishes.protection.is_some();
        if !wishes.is_word()? {
            if let Some((option, value)) = &wishes.protection {
                self.protection = protection(option, value)?;
            }
            return match scan.shared {
                true => Err(DriverError::Refused {
                    option: "-shared".into(),
                    reason: "a domain has no shared libraries; link the objects or a static library into the image, \
                             or make a module of checked code with --wall=word",
                }),
                false => Ok(()),
            };
        }
        let checked = match &wishes.protection {
            Some((option, value)) => crate::checked::protection(option, value)?,
            None => WordProtection::default(),
        };
        self.wall = Wall::Word(checked);
        let nothing = |option: &str, given: bool| match given {
            true => Err(DriverError::Refused {
                option: option.into(),
                reason: "this has no meaning behind the word wall; leave the option out",
            }),
            false => Ok(()),
        };
        nothing("--mullion-count", self.count)?;
        nothing("--mullion-export", !self.exports.is_empty())?;
        nothing("--key", self.key.is_some())?;
        nothing("-static", scan.fixed)
    }

    /// One of our own options, without its prefix.
    fn own(&mut self, option: &str, wishes: &mut Wishes) -> Result<(), DriverError> {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        // What a protection is depends on the wall, which may be named behind it.
        if name == "protection" {
            wishes.protection = Some(("--mullion-protection", value.to_owned()));
            return Ok(());
        }
        let mut rewriting = self.rewriting();
        if from_own(option, &mut rewriting)? {
            (self.base, self.count) = (rewriting.base, rewriting.count);
            return Ok(());
        }
        match name {
            "wall" => wishes.wall = Some(value.to_owned()),
            "type" if !value.is_empty() => self.module_type = Some(PathBuf::from(value)),
            "key" if !value.is_empty() => self.key = Some(value.to_owned()),
            "kind" => self.kind = kind(value)?,
            "export" => self.exports.extend(
                value
                    .split(',')
                    .filter(|name| !name.is_empty())
                    .map(str::to_owned),
            ),
            "keep" if !value.is_empty() => self.keep = Some(PathBuf::from(value)),
            "help" => self.help = true,
            _ => return Err(DriverError::Unknown(format!("--mullion-{option}"))),
        }
        Ok(())
    }
}

/// Whether an option of ours, without its prefix, says how to rewrite; then `options` says it, too.
///
/// # Errors
/// Its value is not known.
pub(crate) fn from_own(option: &str, options: &mut Options) -> Result<bool, DriverError> {
    match option.split_once('=').unwrap_or((option, "")) {
        ("protection", value) => options.protection = protection("--mullion-protection", value)?,
        ("base", value) => options.base = base("--mullion-base", value)?,
        ("count", "") => options.count = true,
        _ => return Ok(false),
    }
    Ok(true)
}

/// The options that are also had without their long name: `type`, `key`, `wall` and `protection`, with
/// their value if it is in the same argument.
fn short(argument: &OsStr) -> Option<String> {
    let name = argument.to_str()?.strip_prefix("--")?;
    let known =
        ["type", "key", "wall", "protection"].contains(&name.split('=').next().unwrap_or_default());
    known.then(|| name.to_owned())
}

fn value_of(option: &OsStr, value: Option<&OsString>) -> Result<String, DriverError> {
    let value = value.and_then(|value| value.to_str());
    value
        .map(str::to_owned)
        .ok_or_else(|| DriverError::Refused {
            option: option.to_owned(),
            reason: "a value must follow, as in --type monitor.toml --key compiler",
        })
}

/// Reads a protection's name.
///
/// # Errors
/// There is no such protection.
pub(crate) fn protection(option: &'static str, value: &str) -> Result<Protection, DriverError> {
    let known = [
        Protection::WriteCall,
        Protection::ReadWriteCall,
        Protection::Trap,
    ];
    known
        .into_iter()
        .find(|protection| protection.name() == value)
        .ok_or_else(|| DriverError::Value {
            option,
            value: value.to_owned(),
            known: "write-call, read-write-call, trap",
        })
}

/// Environment variables of wall and protection.
const WALL: &str = "MULLION_WALL";
const PROTECTION: &str = "MULLION_PROTECTION";

/// What was asked for; the last word counts, and the protection means nothing before the wall is known.
struct Wishes {
    wall: Option<String>,
    /// With the option or variable that says so.
    protection: Option<(&'static str, String)>,
}

impl Wishes {
    fn is_word(&self) -> Result<bool, DriverError> {
        match self.wall.as_deref() {
            None | Some("window") => Ok(false),
            Some("word") => Ok(true),
            Some(value) => Err(DriverError::Value {
                option: "--wall",
                value: value.to_owned(),
                known: "window, word",
            }),
        }
    }
}

/// The protection of windows that the environment names, if it names one.
pub(crate) fn protection_from_environment() -> Result<Option<Protection>, DriverError> {
    let named = from_environment(PROTECTION);
    named
        .map(|value| protection(PROTECTION, &value))
        .transpose()
}

fn from_environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Reads a base's name.
///
/// # Errors
/// There is no such base.
fn base(option: &'static str, value: &str) -> Result<Base, DriverError> {
    let known = Base::ALL.into_iter().find(|base| base.name() == value);
    known.ok_or_else(|| DriverError::Value {
        option,
        value: value.to_owned(),
        known: "segment, register",
    })
}

/// The base that the environment names; the segment if it names none.
pub(crate) fn base_from_environment() -> Result<Base, DriverError> {
    match std::env::var(BASE) {
        Ok(value) if !value.is_empty() => base(BASE, &value),
        _ => Ok(Base::Segment),
    }
}

/// Environment variable of the base, of the user's and from the driver to assembler and linker.
pub(crate) const BASE: &str = "MULLION_BASE";

/// Whether the environment asks for steps to be counted.
pub(crate) fn count_from_environment() -> bool {
    std::env::var_os(COUNT).is_some_and(|value| !value.is_empty())
}

/// Environment variable that hands `--mullion-count` from the driver to the assembler.
pub(crate) const COUNT: &str = "MULLION_COUNT";

fn kind(value: &str) -> Result<Kind, DriverError> {
    match value {
        "program" => Ok(Kind::Program),
        "extension" => Ok(Kind::Extension),
        _ => Err(DriverError::Value {
            option: "--mullion-kind",
            value: value.to_owned(),
            known: "program, extension",
        }),
    }
}

/// What has been seen so far on a command line.
#[derive(Default)]
struct Scan {
    expects_value: bool,
    expects_output: bool,
    expects_language: bool,
    inputs: bool,
    stops_early: bool,
    questions: bool,
    /// `-shared`, `-static`
    shared: bool,
    fixed: bool,
}

impl Scan {
    fn read(
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

    fn task(&self) -> Task {
        if self.stops_early {
            Task::Compile
        } else if self.questions || !self.inputs {
            Task::Question
        } else {
            Task::Link
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Arguments, DriverError> {
        Arguments::parse(
            &line
                .split_whitespace()
                .map(OsString::from)
                .collect::<Vec<_>>(),
        )
    }

    #[test]
    fn own_options_are_taken_out() {
        let sorted = parse("--mullion-kind=extension -O2 --mullion-protection=trap a.c --mullion-export=f,g -o a.mx").unwrap();
        assert_eq!(sorted.forwarded, ["-O2", "a.c", "-o", "a.mx"]);
        assert_eq!(
            (sorted.kind, sorted.protection),
            (Kind::Extension, Protection::Trap)
        );
        assert_eq!(sorted.exports, ["f", "g"]);
        assert_eq!(sorted.output.as_deref(), Some(Path::new("a.mx")));
    }

    #[test]
    fn a_named_processor_is_noticed() {
        let sorted = parse("-v -O3 -march=native a.c").unwrap();
        assert!(sorted.verbose && sorted.names_processor);
        assert!(!parse("-O3 -mtune=native a.c").unwrap().names_processor);
    }

    #[test]
    fn gccs_help_is_told_from_ours() {
        assert!(parse("--help").unwrap().asks_for_help());
        assert!(parse("--help=target").unwrap().asks_for_help());
        assert!(!parse("--mullion-help").unwrap().asks_for_help());
        assert!(!parse("-c a.c").unwrap().asks_for_help());
    }

    #[test]
    fn the_base_is_read() {
        assert_eq!(parse("a.c").unwrap().base, Base::Segment);
        let asked = parse("--mullion-base=register a.c").unwrap();
        assert_eq!((asked.base, asked.forwarded.len()), (Base::Register, 1));
        assert!(matches!(
            parse("--mullion-base=gs a.c"),
            Err(DriverError::Value { value, .. }) if value == "gs"
        ));
    }

    #[test]
    fn counting_is_read() {
        assert!(!parse("a.c").unwrap().count);
        assert!(parse("--mullion-count a.c").unwrap().rewriting().count);
        assert!(matches!(
            parse("--mullion-count=5 a.c"),
            Err(DriverError::Unknown(_))
        ));
    }

    #[test]
    fn tasks_are_told_apart() {
        for (line, task) in [
            ("a.c", Task::Link),
            ("a.o -lm -ofoo", Task::Link),
            ("-c a.c", Task::Compile),
            ("-E -", Task::Compile),
            ("-S a.c b.c", Task::Compile),
            ("--version", Task::Question),
            ("-v", Task::Question),
            ("-dumpmachine", Task::Question),
            ("-print-prog-name=ld", Task::Question),
            ("-x c -c -", Task::Compile),
        ] {
            assert_eq!(parse(line).unwrap().task, task, "{line}");
        }
    }

    #[test]
    fn what_cannot_work_is_refused_by_name() {
        for option in [
            "-shared",
            "-m32",
            "-fsplit-stack",
            "-fsanitize=address",
            "-mcmodel=large",
        ] {
            match parse(&format!("a.c {option}")) {
                Err(DriverError::Refused { option: named, .. }) => assert_eq!(named, option),
                other => panic!("{option}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_record_is_asked_for_in_each_spelling() {
        for line in [
            "--type t.toml --key cc a.c",
            "a.c --type=t.toml --key=cc",
            "--mullion-type=t.toml a.c --mullion-key=cc",
        ] {
            let sorted = parse(line).unwrap();
            assert_eq!(sorted.module_type.as_deref(), Some(Path::new("t.toml")));
            assert_eq!(sorted.key.as_deref(), Some("cc"));
            assert_eq!(sorted.forwarded, ["a.c"]);
        }
        assert!(matches!(
            parse("a.c --key"),
            Err(DriverError::Refused { .. })
        ));
        assert_eq!(parse("-Xlinker --key a.c").unwrap().key, None);
    }

    #[test]
    fn a_value_is_not_an_option() {
        let sorted = parse("-Xlinker -shared -include -m32 a.c").unwrap();
        assert_eq!(sorted.task, Task::Link);
        assert_eq!(sorted.forwarded.len(), 5);
    }

    #[test]
    fn cxx_is_known_by_suffix_and_option() {
        for (line, cxx) in [
            ("a.cc", true),
            ("-x c++ -", true),
            ("-xc++ -", true),
            ("a.c b.o", false),
            ("-x c a.C", true),
        ] {
            assert_eq!(parse(line).unwrap().cxx, cxx, "{line}");
        }
    }

    #[test]
    fn a_bad_protection_is_refused() {
        assert!(
            matches!(parse("--mullion-protection=none a.c"), Err(DriverError::Value { value, .. }) if value == "none")
        );
        assert!(matches!(
            parse("--mullion-protect=trap a.c"),
            Err(DriverError::Unknown(_))
        ));
    }

    #[test]
    fn response_files_are_looked_into() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("r");
        std::fs::write(&file, "-c -o x.o 'y z.c'").unwrap();
        let sorted = parse(&format!("@{}", file.display())).unwrap();
        assert_eq!(
            (sorted.task, sorted.output.as_deref()),
            (Task::Compile, Some(Path::new("x.o")))
        );
        std::fs::write(&file, "-shared").unwrap();
        assert!(matches!(
            parse(&format!("@{}", file.display())),
            Err(DriverError::Refused { .. })
        ));
        assert_eq!(parse("@does/not/exist a.c").unwrap().task, Task::Link);
    }
}
