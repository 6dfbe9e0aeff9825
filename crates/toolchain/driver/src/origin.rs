//! What an image was made with, for its compilation record.

use crate::arguments::Arguments;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Tools, flags and files that an image was made with, as far as one command
/// line tells. Of an object on it, its own sources are not known.
#[derive(Clone, Debug)]
pub struct Origin {
    /// Tools by name, with what they say of their versions.
    pub tools: BTreeMap<String, String>,
    /// The arguments that the compiler was given, but for the files.
    pub flags: Vec<String>,
    /// The files on the command line, and the headers that its sources include,
    /// other than those of the C library, which `tools` names as a whole.
    pub sources: Vec<PathBuf>,
}

impl Origin {
    /// Of what `gcc` has just made.
    pub(crate) fn of(gcc: &Command, arguments: &Arguments) -> Self {
        let mut tools = BTreeMap::new();
        let compiler = Path::new(gcc.get_program());
        for (name, program) in [
            ("compiler", compiler),
            ("assembler", Path::new("as")),
            ("linker", Path::new("ld")),
        ] {
            tools.insert(name.to_owned(), version(program));
        }
        let mullion = concat!("mullion ", env!("CARGO_PKG_VERSION"));
        tools.insert("rewriter".to_owned(), mullion.to_owned());
        tools.insert("sysroot".to_owned(), env!("MULLION_SYSROOT_KEY").to_owned());
        let file = |argument: &&OsString| !arguments.inputs.iter().any(|input| input == *argument);
        let flags = arguments.forwarded.iter().filter(file);
        let mut sources: BTreeSet<PathBuf> = arguments.inputs.iter().cloned().collect();
        sources.extend(included(gcc));
        Origin {
            tools,
            flags: flags
                .map(|flag| flag.to_string_lossy().into_owned())
                .collect(),
            sources: sources.into_iter().filter(|file| file.is_file()).collect(),
        }
    }
}

/// The first line of what a tool says of itself; empty if it says nothing.
fn version(program: &Path) -> String {
    let output = Command::new(program).arg("--version").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let text = text.unwrap_or_default();
    text.lines().next().unwrap_or_default().to_owned()
}

/// The sources and headers that gcc reads for this command line; nothing, if it
/// cannot say (a source from a pipe).
fn included(gcc: &Command) -> Vec<PathBuf> {
    let mut asked = Command::new(gcc.get_program());
    asked.args(without_outputs(gcc.get_args().map(OsString::from)));
    let quiet = asked.arg("-M").stdin(Stdio::null()).stderr(Stdio::null());
    let Ok(output) = quiet.output() else {
        return Vec::new();
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let cache = mullion_fetch::cache_directory().unwrap_or_default();
    let mut files = prerequisites(&text);
    files.retain(|file| cache.as_os_str().is_empty() || !file.starts_with(&cache));
    files
}

/// A command line without what it writes.
fn without_outputs(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut kept = Vec::new();
    let mut skip = false;
    for argument in arguments {
        let text = argument.to_string_lossy();
        let with_value = ["-o", "-MF", "-MT", "-MQ"].contains(&text.as_ref());
        let alone = ["-MD", "-MMD", "-MP"].contains(&text.as_ref()) || text.starts_with("-o");
        if !skip && !with_value && !alone {
            kept.push(argument.clone());
        }
        skip = !skip && with_value;
    }
    kept
}

/// What stands behind the targets of make's rules.
fn prerequisites(rules: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for rule in rules.replace("\\\n", " ").lines() {
        let Some((_, list)) = rule.split_once(": ") else {
            continue;
        };
        // gcc writes blanks as `\\ ` and `$` as `$$`.
        let list = list.replace("\\ ", "\0").replace("$$", "$");
        let names = list.split_whitespace().map(|name| name.replace('\0', " "));
        files.extend(names.map(PathBuf::from));
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read() {
        let rules = "a.o: a.c my\\ header.h \\\n /x/$$y.h\nb.o: b.c\n";
        let names = ["a.c", "my header.h", "/x/$y.h", "b.c"];
        assert_eq!(prerequisites(rules), names.map(PathBuf::from));
    }

    #[test]
    fn what_is_written_is_left_out() {
        let line = "a.c -o a.mx -MD -MF a.d -O2 -ob.mx -MT x";
        let kept = without_outputs(line.split(' ').map(OsString::from));
        assert_eq!(kept, ["a.c", "-O2"]);
    }
}
