//! The program on its way from files to an image.

use super::step::{self, Outcome, Told};
use anyhow::{Context as _, bail};
use mullion_elastic::{Elastic, Rule};
use mullion_judge::{JudgedProgram, ProgramSource, SourceRefusal};
use mullion_trust::Sha256Digest;
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// How judged text is compiled: as C reads without what it leaves undefined, and nothing left over on the stack.
const FLAGS: &[&str] = &[
    "-O2",
    "-g1",
    "-w",
    "-std=gnu11",
    "-fwrapv",
    "-fno-strict-aliasing",
    "-fno-delete-null-pointer-checks",
    "-ftrivial-auto-var-init=zero",
    "-Werror=vla",
    "-Werror=int-conversion",
    "-Werror=incompatible-pointer-types",
    "-Werror=implicit-function-declaration",
];
/// The most bytes of a source file.
const SOURCE: u64 = 1 << 20;

/// What was made, for its record.
#[derive(Default)]
pub(super) struct Built {
    pub(super) text: String,
    pub(super) tools: BTreeMap<String, String>,
    pub(super) flags: Vec<String>,
    pub(super) sources: Vec<PathBuf>,
    pub(super) stack: Option<u64>,
    pub(super) instructions: Option<u64>,
    pub(super) image: Option<Vec<u8>>,
}

/// A program, and where its steps leave what they make.
pub(super) struct Program<'a> {
    pub(super) scratch: &'a Path,
    pub(super) files: &'a [PathBuf],
    pub(super) include: &'a [PathBuf],
    pub(super) define: &'a [String],
    pub(super) protection: &'static str,
}

impl Program<'_> {
    /// The environment and the program behind the preprocessor.
    pub(super) fn read(
        &self,
        elastic: &Elastic,
    ) -> anyhow::Result<Result<ProgramSource, SourceRefusal>> {
        self.prepare()?;
        let mut source = ProgramSource::default();
        let macros = self.scratch.join("macros.h");
        std::fs::write(&macros, "")?;
        if let Some(path) = environment(elastic)? {
            source.environment = self.environment(&path, &macros)?;
        }
        let roots = self.roots()?;
        for given in self.files {
            match self.preprocessed(given, &macros, &roots, &mut source)? {
                Ok(()) => {}
                Err(refusal) => return Ok(Err(refusal)),
            }
        }
        Ok(Ok(source))
    }

    /// The sysroot is built when it is first needed, which no limit may hinder.
    fn prepare(&self) -> anyhow::Result<()> {
        let empty = self.scratch.join("empty.c");
        std::fs::write(&empty, "int main(void) { return 0; }\n")?;
        let mut words: Vec<OsString> = vec!["cc".into(), "-c".into()];
        words.push(format!("--mullion-protection={}", self.protection).into());
        words.extend([empty.into(), "-o".into()]);
        words.push(self.scratch.join("empty.o").into());
        match step::prepare(self.scratch, &words)? {
            Outcome::Done => Ok(()),
            Outcome::Failed(said) => bail!(
                "the compiler does not compile an empty program; see mullion cc --mullion-help: {said}"
            ),
            Outcome::Lost(refusal) => bail!("an empty program: {}", refusal.construct),
        }
    }

    /// The environment's text; its macros go to a file.
    fn environment(&self, path: &Path, macros: &Path) -> anyhow::Result<String> {
        let out = self.scratch.join("environment.i");
        for (dump, to) in [(false, &out), (true, &macros.to_owned())] {
            let mut words: Vec<OsString> = vec!["cc".into(), "-E".into(), "-std=gnu11".into()];
            if dump {
                words.push("-dM".into());
            }
            words.extend([path.into(), "-o".into(), to.into()]);
            let beside = path.parent().unwrap_or(path).to_owned();
            match step::run(self.scratch, &[beside], &words)? {
                Outcome::Done => {}
                Outcome::Failed(said) => bail!("the environment {}: {said}", path.display()),
                Outcome::Lost(refusal) => {
                    bail!("the environment {}: {}", path.display(), refusal.construct)
                }
            }
        }
        // What begins with `_` is the compiler's, or private.
        let all = std::fs::read_to_string(macros)?;
        let own = |line: &&str| {
            line.strip_prefix("#define ")
                .is_some_and(|rest| !rest.starts_with('_'))
        };
        let own: Vec<&str> = all.lines().filter(own).collect();
        std::fs::write(macros, own.join("\n") + "\n")?;
        Ok(std::fs::read_to_string(&out)?)
    }

    /// The directories that the program's files may lie in.
    fn roots(&self) -> anyhow::Result<Vec<PathBuf>> {
        let mut roots = Vec::new();
        for file in self.files {
            let file = file
                .canonicalize()
                .with_context(|| file.display().to_string())?;
            roots.extend(file.parent().map(Path::to_owned));
        }
        for directory in self.include {
            roots.push(
                directory
                    .canonicalize()
                    .with_context(|| directory.display().to_string())?,
            );
        }
        Ok(roots)
    }

    fn preprocessed(
        &self,
        given: &Path,
        macros: &Path,
        roots: &[PathBuf],
        source: &mut ProgramSource,
    ) -> anyhow::Result<Result<(), SourceRefusal>> {
        let (out, rules) = (
            self.scratch.join("program.i"),
            self.scratch.join("program.d"),
        );
        // The name that was given is the one that is told.
        let name = std::path::absolute(given)?;
        let mut words: Vec<OsString> = vec![
            "cc".into(),
            "-E".into(),
            "-std=gnu11".into(),
            "-nostdinc".into(),
            // It tells of each file that it opens, also if it fails.
            "-H".into(),
        ];
        words.extend(["-imacros".into(), macros.into()]);
        for directory in self.include {
            words.extend(["-I".into(), directory.canonicalize()?.into()]);
        }
        for define in self.define {
            words.extend(["-D".into(), define.into()]);
        }
        words.extend([
            "-MD".into(),
            "-MT".into(),
            "program".into(),
            "-MF".into(),
            rules.clone().into(),
        ]);
        words.extend([name.into(), "-o".into(), out.clone().into()]);
        match step::run(self.scratch, roots, &words)? {
            Outcome::Done => {}
            Outcome::Lost(refusal) => return Ok(Err(refusal)),
            Outcome::Failed(said) => {
                let mut refusal =
                    SourceRefusal::nowhere(Rule::Syntax, "a program that the preprocessor refuses");
                // Whether there is a file of others is nobody's business.
                let said = said.replace(": Permission denied", ": No such file or directory");
                // Its words quote files that it has read. Of a file of others no line is for the author.
                let (opened, said) = opened(&said);
                if let Some(path) = opened.iter().find(|path| !is_own(path, roots)) {
                    let construct = format!("`{}`", path.display());
                    return Ok(Err(SourceRefusal::nowhere(Rule::Includes, construct)));
                }
                if let Some(path) = said.iter().find_map(|line| wanted(line, roots)) {
                    let construct = format!("`{path}`");
                    return Ok(Err(SourceRefusal::nowhere(Rule::Includes, construct)));
                }
                refusal.note = Some(said.into_iter().take(8).collect::<Vec<_>>().join(" | "));
                return Ok(Err(refusal));
            }
        }
        let read = prerequisites(&std::fs::read_to_string(&rules)?);
        for path in read.iter().filter(|path| path.as_path() != macros) {
            let place = path.canonicalize().unwrap_or_default();
            if !is_own(path, roots) {
                let construct = format!("`{}`", path.display());
                return Ok(Err(SourceRefusal::nowhere(Rule::Includes, construct)));
            }
            if std::fs::metadata(&place)?.len() > SOURCE {
                let construct = format!("`{}`, a file of more than 1 MiB", path.display());
                return Ok(Err(SourceRefusal::nowhere(Rule::Bounds, construct)));
            }
            let bytes = std::fs::read(&place)?;
            source.files.insert(
                path.display().to_string(),
                String::from_utf8_lossy(&bytes).into_owned(),
            );
        }
        let Ok(text) = String::from_utf8(std::fs::read(&out)?) else {
            return Ok(Err(SourceRefusal::nowhere(
                Rule::Syntax,
                "text that is not UTF-8",
            )));
        };
        source.program.push_str(&text);
        source.program.push('\n');
        Ok(Ok(()))
    }

    /// Judges the program in a process of its own.
    pub(super) fn judge(
        &self,
        module_type: &str,
        path: &Path,
        source: &ProgramSource,
    ) -> anyhow::Result<Result<JudgedProgram, Vec<SourceRefusal>>> {
        let told = Told {
            path: std::path::absolute(path)?,
            module_type: module_type.to_owned(),
            environment: source.environment.clone(),
            program: source.program.clone(),
            files: HashMap::clone(&source.files),
        };
        let (from, to) = (
            self.scratch.join("told.json"),
            self.scratch.join("judged.json"),
        );
        std::fs::write(&from, serde_json::to_vec(&told)?)?;
        match step::run(
            self.scratch,
            &[told.path],
            &["judge".into(), from.into(), to.clone().into()],
        )? {
            Outcome::Done => Ok(serde_json::from_slice(&std::fs::read(&to)?)?),
            Outcome::Failed(said) => bail!("the judge: {said}"),
            Outcome::Lost(refusal) => Ok(Err(vec![refusal])),
        }
    }

    /// Compiles judged text; gives the graph of its calls.
    pub(super) fn compile(
        &self,
        elastic: &Elastic,
        text: &str,
    ) -> anyhow::Result<Result<String, SourceRefusal>> {
        let (whole, object) = (self.scratch.join("whole.i"), self.scratch.join("whole.o"));
        std::fs::write(&whole, text)?;
        let mut words: Vec<OsString> = vec!["cc".into(), "-c".into()];
        words.push(format!("--mullion-protection={}", self.protection).into());
        words.extend(FLAGS.iter().map(OsString::from));
        if elastic.stack.is_some() {
            words.push("-fcallgraph-info=su".into());
        }
        if elastic.instructions.is_some() {
            // A jump by a pointer could go anywhere; and what is counted is read from the text.
            words.push("-fno-jump-tables".into());
            let mut keep = OsString::from("--mullion-keep=");
            keep.push(self.scratch.join("text"));
            words.push(keep);
        }
        words.extend([whole.into(), "-o".into(), object.into()]);
        match step::run(self.scratch, &[], &words)? {
            Outcome::Done => {}
            Outcome::Lost(refusal) => return Ok(Err(refusal)),
            Outcome::Failed(said) => {
                let mut refusal = SourceRefusal::nowhere(Rule::Types, "a program that gcc refuses");
                refusal.note = Some(said.lines().take(12).collect::<Vec<_>>().join(" | "));
                return Ok(Err(refusal));
            }
        }
        Ok(Ok(match elastic.stack {
            Some(_) => std::fs::read_to_string(self.scratch.join("whole.ci"))?,
            None => String::new(),
        }))
    }

    /// The compiler's assembler text, where it was kept.
    pub(super) fn texts(&self) -> anyhow::Result<Vec<String>> {
        kept(&self.scratch.join("text"))?
            .iter()
            .map(|path| read(path))
            .collect()
    }

    /// Links what was compiled; gives the image.
    pub(super) fn link(&self, elastic: &Elastic) -> anyhow::Result<Vec<u8>> {
        let image = self.scratch.join("image.mx");
        let mut words: Vec<OsString> = vec!["cc".into()];
        words.push(format!("--mullion-protection={}", self.protection).into());
        if !elastic.exports.iter().any(|export| export == "main") {
            words.push("--mullion-kind=extension".into());
            words.push(format!("--mullion-export={}", elastic.exports.join(",")).into());
        }
        words.extend([
            self.scratch.join("whole.o").into(),
            "-o".into(),
            image.clone().into(),
        ]);
        match step::run(self.scratch, &[], &words)? {
            Outcome::Done => Ok(std::fs::read(&image)?),
            Outcome::Failed(said) => bail!("linking: {said}"),
            Outcome::Lost(refusal) => bail!("linking: {}", refusal.construct),
        }
    }

    /// What is recorded of it.
    pub(super) fn built(text: &str, mut sources: Vec<PathBuf>) -> Built {
        let version = Command::new("gcc")
            .arg("--version")
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .output();
        let version = version
            .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
            .unwrap_or_default();
        let mut tools = BTreeMap::new();
        tools.insert(
            "compiler".to_owned(),
            version.lines().next().unwrap_or_default().to_owned(),
        );
        tools.insert(
            "judge".to_owned(),
            concat!("mullion ", env!("CARGO_PKG_VERSION")).to_owned(),
        );
        sources.sort();
        Built {
            text: text.to_owned(),
            tools,
            flags: FLAGS.iter().map(|flag| (*flag).to_owned()).collect(),
            sources,
            stack: None,
            instructions: None,
            image: None,
        }
    }
}

/// Files of assembler text in front of the rewriter, in a directory where they were kept.
pub(super) fn kept(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    if directory.is_dir() {
        for file in std::fs::read_dir(directory)? {
            let path = file?.path();
            if path.to_string_lossy().ends_with(".gcc.s") {
                files.push(path);
            }
        }
    }
    Ok(files)
}

pub(super) fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| path.display().to_string())
}

/// The environment's file, which must be the one that the type names.
pub(super) fn environment(elastic: &Elastic) -> anyhow::Result<Option<PathBuf>> {
    let Some(environment) = &elastic.environment else {
        return Ok(None);
    };
    let path = environment
        .path
        .canonicalize()
        .with_context(|| environment.path.display().to_string())?;
    let bytes = std::fs::read(&path).with_context(|| path.display().to_string())?;
    let digest = Sha256Digest::of(&bytes);
    if digest != environment.digest {
        bail!(
            "{} is not the environment that the type names: its SHA-256 is {digest}, and the type says {}",
            path.display(),
            environment.digest
        );
    }
    Ok(Some(path))
}

/// Whether a file lies in one of the directories, whatever its name says.
fn is_own(path: &Path, roots: &[PathBuf]) -> bool {
    let place = path.canonicalize().unwrap_or_default();
    roots.iter().any(|root| place.starts_with(root))
}

/// The files that gcc's `-H` has told of, in lines of points and a name; and the lines that are not of these.
fn opened(said: &str) -> (Vec<PathBuf>, Vec<&str>) {
    let (mut opened, mut others) = (Vec::new(), Vec::new());
    for line in said.lines() {
        let name = line.trim_start_matches('.').strip_prefix(' ');
        match name.filter(|_| line.starts_with('.')) {
            Some(name) => opened.push(PathBuf::from(name)),
            None => others.push(line),
        }
    }
    (opened, others)
}

/// A file outside of these directories that gcc says it cannot open.
fn wanted<'a>(line: &'a str, roots: &[PathBuf]) -> Option<&'a str> {
    let (_, said) = line.split_once("fatal error: ")?;
    let (path, _) = said.rsplit_once(": ")?;
    let rises = Path::new(path)
        .components()
        .any(|part| part == Component::ParentDir);
    let is_outside =
        path.starts_with('/') && !roots.iter().any(|root| Path::new(path).starts_with(root));
    (rises || is_outside).then_some(path)
}

/// What stands behind the target of make's rules.
fn prerequisites(rules: &str) -> Vec<PathBuf> {
    let rules = rules.replace("\\\n", " ");
    let list = rules
        .lines()
        .filter_map(|rule| rule.split_once(": "))
        .map(|(_, list)| list);
    let names = list.flat_map(|list| {
        let list = list
            .replace("\\ ", "\0")
            .replace("$$", "$")
            .replace("\\#", "#");
        let names: Vec<String> = list
            .split_whitespace()
            .map(|name| name.replace('\0', " "))
            .collect();
        names
    });
    names.map(PathBuf::from).collect()
}
