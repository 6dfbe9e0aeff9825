//! rustc's command line, read just far enough: what a domain decides is taken out, the rest goes on.

use super::TARGET;
use crate::DriverError;
use crate::arguments::{base_from_environment, count_from_environment, from_own};
use mullion_abi::Protection;
use mullion_rewriter::{Options, Wall};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A command line of rustc's, sorted.
#[derive(Debug)]
pub(super) struct Arguments {
    /// What goes to rustc, in order, without what this says in fields.
    pub(super) forwarded: Vec<OsString>,
    /// What `--emit` names: nothing if it is not there.
    pub(super) emit: Vec<OsString>,
    /// `-o`
    pub(super) output: Option<PathBuf>,
    /// `--out-dir`
    pub(super) directory: Option<PathBuf>,
    /// `--target`
    pub(super) target: Option<OsString>,
    /// Whether rustc is asked something (`--print`, `-V`) and compiles nothing.
    pub(super) question: bool,
    /// Whether a processor is named.
    pub(super) names_processor: bool,
    /// Whether tests are to be built.
    pub(super) test: bool,
    /// How the text is rewritten.
    pub(super) options: Options,
    /// Where to keep intermediate text.
    pub(super) keep: Option<PathBuf>,
    /// Whether our help was asked for.
    pub(super) help: bool,
    /// What is different for a crate of an elastic language.
    pub(super) elastic: Option<Elastic>,
}

/// What is different for a crate of an elastic language.
#[derive(Clone, Debug, Default)]
pub struct Elastic {
    /// rustc with a judge in it; otherwise the toolchain's own.
    pub compiler: Option<PathBuf>,
    /// The functions that the image exports, and no others.
    pub exports: Vec<String>,
    /// Whether functions that may come to themselves again check the depth of the stack, against [`FLOOR`].
    ///
    /// [`FLOOR`]: super::elastic::FLOOR
    pub checks_depth: bool,
    /// Whether the language is the only wall: then the code stays as rustc makes it, for the host's own process.
    pub alone: bool,
}

/// Options of rustc whose value is the next argument.
const WITH_VALUE: &[&str] = &[
    "--cfg",
    "--check-cfg",
    "-L",
    "-l",
    "--crate-type",
    "--crate-name",
    "--edition",
    "--print",
    "--explain",
    "-A",
    "--allow",
    "-W",
    "--warn",
    "--force-warn",
    "-D",
    "--deny",
    "-F",
    "--forbid",
    "--cap-lints",
    "--extern",
    "--error-format",
    "--json",
    "--color",
    "--diagnostic-width",
    "--remap-path-prefix",
    "--env-set",
    "-Z",
];

/// `-C` options that a domain decides.
const DECIDED: &[&str] = &[
    "codegen-units",
    "embed-bitcode",
    "incremental",
    "linker",
    "linker-features",
    "linker-flavor",
    "linker-plugin-lto",
    "link-self-contained",
    "lto",
    "panic",
    "prefer-dynamic",
    "relocation-model",
    "relro-level",
    "rpath",
    "save-temps",
];

impl Arguments {
    /// Sorts a command line.
    pub(super) fn parse(arguments: &[OsString]) -> Result<Self, DriverError> {
        let protection = crate::arguments::protection_from_environment()?;
        let mut sorted = Self {
            forwarded: Vec::new(),
            emit: Vec::new(),
            output: None,
            directory: None,
            target: None,
            question: false,
            names_processor: false,
            test: false,
            options: Options {
                wall: Wall::Window,
                protection: protection.unwrap_or(Protection::ReadWriteCall),
                base: base_from_environment()?,
                count: count_from_environment(),
            },
            keep: None,
            help: false,
            elastic: None,
        };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().cloned().unwrap_or_default();
            if let Some(own) = argument.as_bytes().strip_prefix(b"--mullion-") {
                sorted.own(&String::from_utf8_lossy(own))?;
            } else if let Some(given) = value_of(argument, "--emit", &mut value) {
                let parts = given.as_bytes().split(|b| *b == b',');
                sorted
                    .emit
                    .extend(parts.map(|part| OsStr::from_bytes(part).to_owned()));
            } else if let Some(given) = value_of(argument, "-o", &mut value) {
                sorted.output = Some(given.into());
            } else if let Some(given) = value_of(argument, "--out-dir", &mut value) {
                sorted.directory = Some(given.into());
            } else if let Some(given) = value_of(argument, "--target", &mut value) {
                sorted.target = Some(given);
            } else if let Some(given) = value_of(argument, "--sysroot", &mut value) {
                return Err(DriverError::Refused {
                    option: given,
                    reason: "the library of a domain is mullion's own; leave --sysroot out",
                });
            } else if let Some(given) = codegen(argument, &mut value) {
                sorted.codegen(&given);
            } else {
                sorted.other(argument, &mut value);
            }
        }
        Ok(sorted)
    }

    fn own(&mut self, option: &str) -> Result<(), DriverError> {
        match option.split_once('=').unwrap_or((option, "")) {
            ("help", "") => self.help = true,
            ("keep", directory) if !directory.is_empty() => self.keep = Some(directory.into()),
            _ if from_own(option, &mut self.options)? => {}
            _ => return Err(DriverError::Unknown(format!("--mullion-{option}"))),
        }
        Ok(())
    }

    fn codegen(&mut self, given: &OsStr) {
        let text = given.to_string_lossy();
        let name = text.split('=').next().unwrap_or_default().replace('_', "-");
        self.names_processor |= name == "target-cpu";
        self.question |= name == "help";
        if !DECIDED.contains(&name.as_str()) {
            let mut option = OsString::from("-C");
            option.push(given);
            self.forwarded.push(option);
        }
    }

    fn other(&mut self, argument: &OsStr, value: &mut impl FnMut() -> OsString) {
        let text = argument.to_string_lossy();
        self.question |= ["-V", "-vV", "-Vv", "--version", "-h", "--help", "--explain"]
            .contains(&text.as_ref())
            || text.starts_with("--print");
        self.test |= text == "--test";
        self.forwarded.push(argument.to_owned());
        if WITH_VALUE.contains(&text.as_ref()) {
            self.forwarded.push(value());
        }
    }

    /// Whether machine code is to be made: rustc makes it where nothing is said.
    pub(super) fn makes_code(&self) -> bool {
        !self.question
            && (self.emit.is_empty() || self.emit.iter().any(|kind| kind_of(kind) == "link"))
    }

    /// What to tell rustc to emit: what was asked for, and the assembler text.
    pub(super) fn emit_with(&self, text: &Path) -> OsString {
        let mut emit: Vec<OsString> = self.emit.clone();
        if emit.is_empty() {
            emit.push("link".into());
        }
        if let Some(output) = &self.output {
            for kind in emit.iter_mut().filter(|kind| *kind == "link") {
                kind.push("=");
                kind.push(output);
            }
        }
        let mut own = OsString::from("asm=");
        own.push(text);
        emit.push(own);
        let mut option = OsString::from("--emit=");
        option.push(emit.join(OsStr::new(",")));
        option
    }

    /// Where `--emit link=FILE` or `-o` leads, if one of them is there.
    pub(super) fn named_output(&self) -> Option<PathBuf> {
        let named = self.emit.iter().find_map(|kind| {
            let path = kind.as_bytes().strip_prefix(b"link=")?;
            Some(PathBuf::from(OsStr::from_bytes(path)))
        });
        named.or_else(|| self.output.clone())
    }

    /// Whether this is compiled for a domain: a wrapper is also asked for build scripts.
    pub(super) fn is_for_domain(&self) -> bool {
        self.target.as_deref() == Some(OsStr::new(TARGET))
    }
}

fn kind_of(emit: &OsStr) -> String {
    let text = emit.to_string_lossy();
    text.split('=').next().unwrap_or_default().to_owned()
}

/// The value of an option that is this argument, or begins it.
fn value_of(argument: &OsStr, name: &str, next: &mut impl FnMut() -> OsString) -> Option<OsString> {
    let rest = argument.as_bytes().strip_prefix(name.as_bytes())?;
    match rest {
        [] => Some(next()),
        [b'=', value @ ..] => Some(OsStr::from_bytes(value).to_owned()),
        value if !name.starts_with("--") => Some(OsStr::from_bytes(value).to_owned()),
        _ => None,
    }
}

/// The value of `-C`, in each of its spellings.
fn codegen(argument: &OsStr, next: &mut impl FnMut() -> OsString) -> Option<OsString> {
    value_of(argument, "--codegen", next).or_else(|| value_of(argument, "-C", next))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Arguments {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        Arguments::parse(&words).unwrap()
    }

    #[test]
    fn cargos_command_lines_are_understood() {
        let sorted = parse(
            "--crate-name a src/lib.rs --error-format=json --emit=dep-info,metadata,link -C opt-level=3 \
             -C embed-bitcode=no -Clinker-plugin-lto -C codegen-units=16 --out-dir /t/deps --target x86_64-unknown-linux-musl -L dependency=/t",
        );
        assert!(sorted.is_for_domain() && sorted.makes_code());
        assert_eq!(
            sorted.forwarded,
            [
                "--crate-name",
                "a",
                "src/lib.rs",
                "--error-format=json",
                "-Copt-level=3",
                "-L",
                "dependency=/t"
            ]
        );
        assert_eq!(sorted.directory.as_deref(), Some(Path::new("/t/deps")));
        assert_eq!(
            sorted.emit_with(Path::new("/s/a.s")),
            "--emit=dep-info,metadata,link,asm=/s/a.s"
        );
    }

    #[test]
    fn an_output_names_the_image_and_not_the_text() {
        let sorted = parse("a.rs -O -o a.mx --mullion-protection=trap");
        assert_eq!(
            sorted.emit_with(Path::new("a.s")),
            "--emit=link=a.mx,asm=a.s"
        );
        assert_eq!(sorted.named_output().as_deref(), Some(Path::new("a.mx")));
        assert_eq!(sorted.options.protection, Protection::Trap);
    }

    #[test]
    fn what_makes_no_code_is_told() {
        for line in [
            "--print cfg",
            "-vV",
            "--emit=dep-info,metadata a.rs",
            "-C help",
        ] {
            assert!(!parse(line).makes_code(), "{line}");
        }
        assert!(parse("-C target-cpu=native a.rs").names_processor);
        assert!(!parse("a.rs").is_for_domain());
    }

    #[test]
    fn a_library_of_ones_own_is_refused() {
        let words = ["--sysroot", "/x"].map(OsString::from);
        assert!(matches!(
            Arguments::parse(&words),
            Err(DriverError::Refused { .. })
        ));
    }
}
