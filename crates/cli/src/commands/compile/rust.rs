//! A program in Rust on its way to an image: the environment, the program and what joins them are a crate each.
//!
//! ```text
//! environment.rs --rustc--> libenvironment.rlib --+-------------------------------+
//!                                                 |                               |
//! program.rs -------------- rustc with the judge in it --> libprogram.rlib --> glue.rs --rustc--> image
//! ```
//!
//! Behind the language alone nothing is rewritten, and the image is a library of machine code as rustc makes it.

use super::counted;
use super::program::{Built, environment, kept, read};
use super::stack;
use super::step::{self, Outcome};
use crate::output::sayln;
use anyhow::{Context as _, bail};
use mullion_driver::rust::{Toolchain, elastic as rustc};
use mullion_elastic::{Elastic, Rule};
use mullion_judge::SourceRefusal;
use mullion_judge::rust::{Answer, SOURCES, glue, told};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// How each of the three is compiled. What overflows is a panic.
const FLAGS: &[&str] = &[
    "--edition=2024",
    "-Copt-level=3",
    "-Cdebuginfo=1",
    "-Coverflow-checks=on",
    "-Cdebug-assertions=off",
    "-Awarnings",
];

/// A program, and where its steps leave what they make.
pub(super) struct Crate<'a> {
    pub(super) scratch: &'a Path,
    pub(super) file: &'a Path,
    pub(super) protection: &'static str,
    /// Whether the language is the only wall: then the code stays as rustc makes it.
    pub(super) alone: bool,
}

/// A program that was judged and may be linked.
pub(super) struct Judged {
    answer: Answer,
    environment: bool,
}

impl Crate<'_> {
    /// Judges the program. If it is not only to be judged, it is compiled in the same breath.
    pub(super) fn judge(
        &self,
        elastic: &Elastic,
        check: bool,
    ) -> anyhow::Result<Result<Judged, Vec<SourceRefusal>>> {
        let compiler = rustc::judge(SOURCES)?;
        self.prepare()?;
        let file = std::path::absolute(self.file)?;
        let root = file
            .canonicalize()
            .with_context(|| self.file.display().to_string())?;
        let root = root.parent().context("a file in no directory")?;
        let environment = match environment(elastic)? {
            None => false,
            Some(path) => {
                self.environment(&path)?;
                true
            }
        };
        std::fs::write(self.scratch.join("told"), told(elastic, root))?;
        let mut words = self.step(match recursion_is_checked(elastic) {
            true => step::DEEP,
            false => "judge-rust",
        });
        words.push(compiler.into());
        words.extend(self.of_crate("program", "rlib", check));
        words.extend([
            file.clone().into(),
            "-o".into(),
            self.output("program", check).into(),
        ]);
        if environment {
            words.push(self.external("environment", false));
        }
        let outcome = step::run(self.scratch, &[root.to_owned()], &words)?;
        let answer = std::fs::read_to_string(self.scratch.join("answer")).ok();
        let answer = answer.as_deref().and_then(Answer::read);
        let mut answer = answer.unwrap_or_default();
        match outcome {
            Outcome::Done if !answer.refusals.is_empty() => Ok(Err(answer.refusals)),
            Outcome::Done if answer.whole => Ok(Ok(Judged {
                answer,
                environment,
            })),
            Outcome::Done => bail!("the judge did not judge"),
            Outcome::Failed(said) => {
                // A macro that reads may have put what it read into any message.
                let reads = |refusal: &SourceRefusal| {
                    matches!(refusal.rule, Rule::Includes | Rule::EscapingMacros)
                };
                if !answer.refusals.iter().any(reads) {
                    sayln!("{}", about(&said, root, &file));
                }
                answer.refusals.push(SourceRefusal::nowhere(
                    Rule::Types,
                    "a program that rustc refuses",
                ));
                Ok(Err(answer.refusals))
            }
            Outcome::Lost(refusal) => Ok(Err(vec![refusal])),
        }
    }

    /// The library and the C library are built when they are first needed, which no limit may hinder.
    fn prepare(&self) -> anyhow::Result<()> {
        let empty = self.scratch.join("empty.rs");
        std::fs::write(&empty, "#![no_std]\n")?;
        let mut words = self.step("rustc");
        words.push(OsString::new());
        words.extend(self.of_crate("empty", "rlib", false));
        words.extend([
            empty.into(),
            "-o".into(),
            self.output("empty", false).into(),
        ]);
        match step::prepare(self.scratch, &words)? {
            Outcome::Done => Ok(()),
            Outcome::Failed(said) => bail!("rustc does not compile an empty crate: {said}"),
            Outcome::Lost(refusal) => bail!("an empty crate: {}", refusal.construct),
        }
    }

    /// With its code, also where the program is only judged: the judge looks at all that would run.
    fn environment(&self, path: &Path) -> anyhow::Result<()> {
        let mut words = self.step("rustc");
        words.push(OsString::new());
        words.extend(self.of_crate("environment", "rlib", false));
        words.extend([
            path.into(),
            "-o".into(),
            self.output("environment", false).into(),
        ]);
        let beside = path.parent().unwrap_or(path).to_owned();
        match step::run(self.scratch, &[beside], &words)? {
            Outcome::Done => Ok(()),
            Outcome::Failed(said) => bail!("the environment {}: {said}", path.display()),
            Outcome::Lost(refusal) => {
                bail!("the environment {}: {}", path.display(), refusal.construct)
            }
        }
    }

    /// Joins what was judged with its environment; gives the image.
    pub(super) fn link(
        &self,
        elastic: &Elastic,
        judged: &Judged,
        imports: &[String],
    ) -> anyhow::Result<Result<Built, SourceRefusal>> {
        if !judged.environment {
            bail!("the type has no environment, so nothing declares entry points or calls them");
        }
        let program = elastic.exports.iter().any(|export| export == "main");
        let (source, image) = (self.scratch.join("glue.rs"), self.scratch.join("image.mx"));
        let text = glue(elastic, &judged.answer.entries, program);
        std::fs::write(&source, &text)?;
        let (kind, glue) = match (self.alone, program) {
            (true, _) => ("rlib", self.output("glue", false)),
            (false, true) => ("bin", image.clone()),
            (false, false) => ("cdylib", image.clone()),
        };
        let exports: OsString = elastic.exports.join(",").into();
        let mut words = self.step("rustc");
        words.push(exports.clone());
        words.extend(self.of_crate("glue", kind, false));
        words.extend([source.into(), "-o".into(), glue.clone().into()]);
        words.push(self.external("environment", false));
        words.push(self.external("program", false));
        self.linked(&words)?;
        if self.alone {
            let mut words = self.step("link");
            words.extend([exports, image.clone().into(), glue.into()]);
            words.push(self.output("program", false).into());
            words.push(self.output("environment", false).into());
            self.linked(&words)?;
        }
        let mut built = self.built(elastic, judged, &text)?;
        built.image = Some(std::fs::read(&image)?);
        if elastic.stack.is_none() && elastic.instructions.is_none() {
            return Ok(Ok(built));
        }
        let texts = self.texts()?;
        built.instructions = match counted(elastic, &texts, imports) {
            Ok(found) => found,
            Err(refusal) => return Ok(Err(*refusal)),
        };
        if let Some(bound) = elastic.stack {
            let construct = match stack::bound_of_text(&texts, elastic, imports) {
                Ok(depth) if depth.bytes <= bound => {
                    built.stack = Some(depth.at_most(bound));
                    return Ok(Ok(built));
                }
                Ok(depth) => format!("{} bytes, where {bound} may be", depth.bytes),
                Err(construct) => construct,
            };
            return Ok(Err(SourceRefusal::nowhere(Rule::Stack, construct)));
        }
        Ok(Ok(built))
    }

    fn linked(&self, words: &[OsString]) -> anyhow::Result<()> {
        match step::run(self.scratch, &[], words)? {
            Outcome::Done => Ok(()),
            Outcome::Failed(said) => bail!("linking: {said}"),
            Outcome::Lost(refusal) => bail!(
                "linking: {} {}",
                refusal.construct,
                refusal.note.unwrap_or_default()
            ),
        }
    }

    /// A step's first words.
    fn step(&self, name: &str) -> Vec<OsString> {
        let alone = self.alone.then(|| OsString::from("alone"));
        alone.into_iter().chain([name.into()]).collect()
    }

    /// The assembler text of everything that is linked but the C library.
    fn texts(&self) -> anyhow::Result<Vec<String>> {
        let mut files = rustc::texts()?;
        for name in ["environment", "program", "glue"] {
            files.extend(kept(&self.text_of(name))?);
        }
        files.iter().map(|path| read(path)).collect()
    }

    fn text_of(&self, name: &str) -> PathBuf {
        self.scratch.join(format!("text-{name}"))
    }

    /// What is recorded of it: the digest is of the environment, the glue and the program's files.
    fn built(&self, elastic: &Elastic, judged: &Judged, glue: &str) -> anyhow::Result<Built> {
        let mut text = String::new();
        if let Some(path) = environment(elastic)? {
            text.push_str(&std::fs::read_to_string(path)?);
        }
        text.push_str(glue);
        for file in &judged.answer.files {
            text.push_str(&std::fs::read_to_string(file).with_context(|| file.clone())?);
        }
        let version = Toolchain::find()?.version()?;
        let mut tools = BTreeMap::new();
        tools.insert(
            "compiler".to_owned(),
            version.lines().next().unwrap_or_default().to_owned(),
        );
        tools.insert(
            "judge".to_owned(),
            concat!("mullion ", env!("CARGO_PKG_VERSION")).to_owned(),
        );
        Ok(Built {
            text,
            tools,
            flags: FLAGS.iter().map(|flag| (*flag).to_owned()).collect(),
            sources: judged.answer.files.iter().map(PathBuf::from).collect(),
            stack: None,
            instructions: None,
            image: None,
        })
    }

    fn of_crate(&self, name: &str, kind: &str, check: bool) -> Vec<OsString> {
        let mut words: Vec<OsString> = FLAGS.iter().map(OsString::from).collect();
        words.push(format!("--mullion-protection={}", self.protection).into());
        if self.alone {
            // An environment may get at what the host offers by another way.
            words.push("--cfg=language_alone".into());
        }
        words.push(format!("--crate-name={name}").into());
        words.push(format!("--crate-type={kind}").into());
        if check {
            words.push("--emit=metadata".into());
        } else {
            // Frames are read from the text.
            let mut keep = OsString::from("--mullion-keep=");
            keep.push(self.text_of(name));
            words.push(keep);
        }
        words.push("-L".into());
        let mut place = OsString::from("dependency=");
        place.push(self.scratch);
        words.push(place);
        words
    }

    fn output(&self, name: &str, check: bool) -> PathBuf {
        let end = if check { "rmeta" } else { "rlib" };
        self.scratch.join(format!("lib{name}.{end}"))
    }

    fn external(&self, name: &str, check: bool) -> OsString {
        let mut word = OsString::from(format!("--extern={name}="));
        word.push(self.output(name, check));
        word
    }
}

/// Whether functions that may come to themselves again check the depth of the stack.
fn recursion_is_checked(elastic: &Elastic) -> bool {
    elastic.stack.is_some() && !elastic.forbids(Rule::Recursion)
}

/// What rustc says of the program's own files. A program may name other files, whose lines are not for its author.
fn about(said: &str, root: &Path, file: &Path) -> String {
    let mut told = String::new();
    let mut diagnostics: Vec<Vec<&str>> = Vec::new();
    for line in said.lines() {
        let begins = line.starts_with("error") || line.starts_with("warning");
        match diagnostics.last_mut() {
            Some(last) if !begins => last.push(line),
            _ => diagnostics.push(vec![line]),
        }
    }
    for lines in diagnostics {
        let places = lines.iter().filter_map(|line| {
            let line = line.trim_start();
            line.strip_prefix("--> ").or(line.strip_prefix("::: "))
        });
        let own = |place: &str| {
            let path = place.split(':').next().unwrap_or_default();
            let path = Path::new(path);
            path == file || path.canonicalize().is_ok_and(|path| path.starts_with(root))
        };
        let places: Vec<bool> = places.map(own).collect();
        if !places.is_empty() && places.iter().all(|own| *own) {
            told.push_str(&printable(&lines.join("\n")));
            told.push('\n');
        }
    }
    told
}

/// Text of rustc's about a stranger's program, without control characters.
fn printable(text: &str) -> String {
    let shown = |letter: char| match letter {
        '\n' => '\n',
        '\t' => ' ',
        _ if letter.is_control() => '?',
        _ => letter,
    };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_other_files_are_not_told() {
        let place = tempfile::tempdir().expect("a directory");
        let root = place.path().canonicalize().expect("it is there");
        let file = root.join("program.rs");
        std::fs::write(&file, "").expect("room");
        let said = format!(
            "error: one\n --> {}:1:2\n  |\n1 | own\n\nerror: two\n --> /etc/passwd:1:5\n  |\n1 | root:x\n\nhelp: this\n  |\n1 | root\n\
             error: could not read /etc/shadow\n\nerror: aborting\n",
            file.display()
        );
        let told = about(&said, &root, &file);
        assert!(
            told.contains("own") && !told.contains("root:x") && !told.contains("1 | root"),
            "{told}"
        );
        assert!(!told.contains("shadow"), "{told}");
    }
}
