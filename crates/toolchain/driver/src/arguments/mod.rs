//! gcc's command line, read just far enough. Our own options are taken out,
//! what cannot work in a domain is refused, everything else goes to gcc as it is.

mod help;
mod scan;
#[cfg(test)]
mod tests;
mod values;

use crate::DriverError;
use crate::checked::Heap;
pub use help::OPTIONS_HELP;
use mullion_abi::Protection;
use mullion_rewriter::{Base, Options, Wall, WordProtection};
use scan::Scan;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
pub(crate) use values::{
    BASE, COUNT, base_from_environment, count_from_environment, from_own, protection,
    protection_from_environment,
};
use values::{HEAP, PROTECTION, WALL, Wishes, from_environment, kind};

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
    /// Behind the word wall, where `malloc` takes memory from.
    pub heap: Heap,
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
    /// Libraries, and folders of them, that the program may open.
    pub opened: Vec<PathBuf>,
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
    /// `-shared`, for a window.
    pub shared: bool,
    /// Whether undefined behaviour is to trap.
    pub traps_undefined: bool,
    /// Whether code is asked for that some processors alone can run.
    pub names_processor: bool,
}

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
            heap: Heap::default(),
            base: base_from_environment()?,
            count: count_from_environment(),
            module_type: None,
            key: None,
            inputs: Vec::new(),
            kind: Kind::default(),
            exports: Vec::new(),
            opened: Vec::new(),
            keep: None,
            task: Task::Question,
            output: None,
            standard_headers: true,
            standard_cxx_headers: true,
            cxx: false,
            help: false,
            verbose: false,
            names_processor: false,
            shared: false,
            traps_undefined: false,
        };
        let mut wishes = Wishes {
            wall: from_environment(WALL),
            protection: from_environment(PROTECTION).map(|value| (PROTECTION, value)),
            heap: None,
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
            if wishes.heap.is_some() {
                return Err(DriverError::Refused {
                    option: "--heap".into(),
                    reason: "a domain in a window has its own heap; this is for --wall=word",
                });
            }
            if let Some((option, value)) = &wishes.protection {
                self.protection = protection(option, value)?;
            }
            self.shared = scan.shared;
            return Ok(());
        }
        let checked = match &wishes.protection {
            Some((option, value)) => crate::checked::protection(option, value)?,
            None => WordProtection::default(),
        };
        self.wall = Wall::Word(checked);
        if let Some(name) = wishes.heap.or_else(|| from_environment(HEAP)) {
            self.heap = Heap::named(&name)?;
        }
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
        nothing("-pg", scan.counted_calls)?;
        nothing("--mullion-dlopen", !self.opened.is_empty())?;
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
            "heap" => wishes.heap = Some(value.to_owned()),
            "type" if !value.is_empty() => self.module_type = Some(PathBuf::from(value)),
            "key" if !value.is_empty() => self.key = Some(value.to_owned()),
            "kind" => self.kind = kind(value)?,
            "export" => self.exports.extend(
                value
                    .split(',')
                    .filter(|name| !name.is_empty())
                    .map(str::to_owned),
            ),
            "dlopen" => self.opened.extend(
                value
                    .split(',')
                    .filter(|name| !name.is_empty())
                    .map(PathBuf::from),
            ),
            "keep" if !value.is_empty() => self.keep = Some(PathBuf::from(value)),
            "help" => self.help = true,
            _ => return Err(DriverError::Unknown(format!("--mullion-{option}"))),
        }
        Ok(())
    }
}

/// The options that are also had without their long name: `type`, `key`, `wall`, `heap` and `protection`, with
/// their value if it is in the same argument.
fn short(argument: &OsStr) -> Option<String> {
    let name = argument.to_str()?.strip_prefix("--")?;
    let known = ["type", "key", "wall", "heap", "protection"]
        .contains(&name.split('=').next().unwrap_or_default());
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
