//! `mullion compile`: judges a program against its type's elastic language, compiles it, and signs that.

mod instructions;
mod program;
mod rust;
mod stack;
mod step;

pub(crate) use step::StepArgs;

use super::admission::{configured_policy, module_type as find_type};
use super::cc::{Signer, in_abi};
use super::keys::{KeyringArgs, add_credentials};
use crate::output::{file, outln, sayln};
use anyhow::{Context as _, bail};
use mullion_driver::Origin;
use mullion_elastic::{BaseLanguage, Elastic, Judged, Rule, Wall};
use mullion_judge::{JudgedProgram, SourceRefusal};
use mullion_trust::compile::may_compile;
use mullion_trust::keynote::Work;
use mullion_trust::log::Log;
use mullion_trust::{ModuleType, Policy, SecretKey, Sha256Digest};
use program::Built;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Compile C or Rust of a module type with an elastic language, and sign the record.
///
/// Asks whether the keys may have programs of that type compiled, judges the program as a whole against what the type
/// lets it say, compiles what was judged, and signs IMAGE.record. A program that is refused is not compiled.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The program's files: of C, one translation unit together; of Rust, the crate's root.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The module type's file.
    #[arg(long = "type", value_name = "FILE")]
    module_type: PathBuf,
    /// The image to write.
    #[arg(long, short, value_name = "FILE", required_unless_present = "check")]
    output: Option<PathBuf>,
    /// Judge the program only: nothing is asked, compiled or signed.
    #[arg(long)]
    check: bool,
    /// A directory with headers of the program. May be repeated.
    #[arg(short = 'I', value_name = "DIR")]
    include: Vec<PathBuf>,
    /// Define a macro. May be repeated.
    #[arg(short = 'D', value_name = "NAME=VALUE")]
    define: Vec<String>,
    /// The policy that says who may have what compiled [default: /etc/mullion/policy.toml].
    #[arg(long, value_name = "FILE", env = "MULLION_POLICY")]
    policy: Option<PathBuf>,
    /// A key to ask with; its secret part is needed. Repeat for more.
    #[arg(
        long = "as",
        value_name = "NAME",
        env = "MULLION_AS",
        value_delimiter = ','
    )]
    requesters: Vec<String>,
    /// A file or directory of credentials, beside the policy's. Repeat for more.
    #[arg(long, value_name = "PATH")]
    credentials: Vec<PathBuf>,
    /// The compiler's key, which signs the record.
    #[arg(long, value_name = "NAME", required_unless_present = "check")]
    key: Option<String>,
    /// Write the text that is compiled to this file too.
    #[arg(long, value_name = "FILE")]
    text: Option<PathBuf>,
    #[command(flatten)]
    keyring: KeyringArgs,
}

/// A program that was refused; the refusals have been told.
struct Refused;

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let module_type = find_type(&self.module_type)?;
        let Some(elastic) = &Elastic::of(&module_type)? else {
            bail!(
                "the type {} has no elastic language: mullion cc --type compiles for it, or add [elastic] to its file",
                module_type.id
            );
        };
        let leave = match self.check {
            true => None,
            false => match self.leave(&module_type)? {
                Some(leave) => Some(leave),
                None => return Ok(ExitCode::from(1)),
            },
        };
        let built = self.build(&module_type, elastic)?;
        let code = match (&built, leave) {
            (Err(Refused), leave) => {
                if let Some((_, policy)) = leave {
                    self.log(&policy, &module_type, None)?;
                }
                ExitCode::from(1)
            }
            (Ok(_), None) => ExitCode::SUCCESS,
            (Ok(built), Some((key, policy))) => {
                let (Some(image), Some(output)) = (&built.image, &self.output) else {
                    bail!("there is no image");
                };
                file(output, image)?;
                let origin = Origin {
                    tools: built.tools.clone(),
                    flags: built.flags.clone(),
                    sources: built.sources.clone(),
                };
                let judged = Judged {
                    wall: elastic.wall,
                    memory: elastic.memory,
                    rules: elastic.rules().collect(),
                    text: Sha256Digest::of(built.text.as_bytes()).to_string(),
                    environment: elastic
                        .environment
                        .as_ref()
                        .map(|found| found.digest.to_string()),
                    stack: built.stack,
                    instructions: built.instructions,
                };
                Signer::of(module_type.clone(), key).sign(
                    output,
                    image.clone(),
                    origin,
                    Some(serde_json::from_value(serde_json::to_value(judged)?)?),
                )?;
                self.log(&policy, &module_type, Some(&Sha256Digest::of(image)))?;
                outln!("{}", output.display())?;
                ExitCode::SUCCESS
            }
        };
        Ok(code)
    }

    /// The compiler's key and the policy, if the requesters may have programs of that type.
    fn leave(&self, module_type: &ModuleType) -> anyhow::Result<Option<(SecretKey, Policy)>> {
        let path = configured_policy(self.policy.as_deref());
        let path = path.context(
            "no policy is configured: name one with --policy FILE, or judge only, with --check",
        )?;
        let policy = Policy::read(&path)?;
        let mut store = policy.store();
        for path in policy.credentials().iter().chain(&self.credentials) {
            add_credentials(&mut store, path)?;
        }
        if self.requesters.is_empty() {
            bail!("nobody asks: name the key to ask with, as in --as alice");
        }
        let mut requesters = Vec::new();
        for name in &self.requesters {
            requesters.push(self.keyring.secret(name)?.public());
        }
        let key = self
            .keyring
            .secret(self.key.as_deref().unwrap_or_default())?;
        let names = self.keyring.names();
        let mut work = Work::unbounded();
        match may_compile(
            &policy,
            &store,
            module_type,
            &requesters,
            &key.public(),
            &names,
            &mut work,
        ) {
            Ok(_) => Ok(Some((key, policy))),
            Err(refusal) => {
                sayln!("mullion: refused: {}", refusal.reason);
                for line in &refusal.obstacles {
                    sayln!("  {line}");
                }
                sayln!("  way out: {}", refusal.way_out);
                Ok(None)
            }
        }
    }

    fn log(
        &self,
        policy: &Policy,
        module_type: &ModuleType,
        image: Option<&Sha256Digest>,
    ) -> anyhow::Result<()> {
        let Some(path) = policy.log() else {
            return Ok(());
        };
        let mut event = json!({
            "kind": if image.is_some() { "compiled" } else { "not-compiled" },
            "type": module_type.id,
            "type_sha256": module_type.digest.to_string(),
            "requesters": self.requesters,
        });
        if let Some(image) = image {
            event["image"] = json!(image.to_string());
        }
        Log::new(path).append(event)?;
        Ok(())
    }

    /// Judges the program, and unless that is all compiles it.
    fn build(
        &self,
        module_type: &ModuleType,
        elastic: &Elastic,
    ) -> anyhow::Result<Result<Built, Refused>> {
        if elastic.base == BaseLanguage::Rust {
            return self.build_rust(module_type, elastic);
        }
        let scratch = tempfile::tempdir()?;
        let program = program::Program {
            scratch: scratch.path(),
            files: &self.files,
            include: &self.include,
            define: &self.define,
            protection: in_abi(module_type.protection).name(),
        };
        let text = std::fs::read_to_string(&self.module_type);
        let text =
            text.with_context(|| format!("{}: name the type's file", self.module_type.display()))?;
        if Sha256Digest::of(text.as_bytes()) != module_type.digest {
            bail!("{} has changed meanwhile", self.module_type.display());
        }
        let outcome = program.read(elastic)?;
        let source = match outcome {
            Ok(source) => source,
            Err(refusal) => return Ok(Err(tell(module_type, &[refusal]))),
        };
        let judged = match program.judge(&text, &self.module_type, &source)? {
            Ok(judged) => judged,
            Err(refusals) => return Ok(Err(tell(module_type, &refusals))),
        };
        let text = format!("{}\n{}", source.environment, judged.text);
        if let Some(path) = &self.text {
            file(path, &text)?;
        }
        if self.check {
            return Ok(Ok(Built::default()));
        }
        let files = source.files.keys().map(PathBuf::from).collect();
        self.compiled(module_type, elastic, &program, (&judged, files), text)
    }

    fn build_rust(
        &self,
        module_type: &ModuleType,
        elastic: &Elastic,
    ) -> anyhow::Result<Result<Built, Refused>> {
        let [file] = &self.files[..] else {
            bail!("a program in Rust is named by its root: other files are its modules");
        };
        if !self.include.is_empty() || !self.define.is_empty() || self.text.is_some() {
            bail!("-I, -D and --text are for programs in C");
        }
        let scratch = tempfile::tempdir()?;
        let program = rust::Crate {
            scratch: scratch.path(),
            file,
            protection: in_abi(module_type.protection).name(),
            alone: elastic.wall == Wall::Language,
        };
        Ok(match program.judge(elastic, self.check)? {
            Err(refusals) => Err(tell(module_type, &refusals)),
            Ok(_) if self.check => Ok(Built::default()),
            Ok(judged) => match program.link(elastic, &judged, &module_type.imports)? {
                Ok(built) => Ok(built),
                Err(refusal) => Err(tell(module_type, &[refusal])),
            },
        })
    }

    fn compiled(
        &self,
        module_type: &ModuleType,
        elastic: &Elastic,
        program: &program::Program<'_>,
        (judged, files): (&JudgedProgram, Vec<PathBuf>),
        text: String,
    ) -> anyhow::Result<Result<Built, Refused>> {
        let graph = match program.compile(elastic, &text)? {
            Ok(graph) => graph,
            Err(refusal) => return Ok(Err(tell(module_type, &[refusal]))),
        };
        let stack = match elastic.stack {
            None => None,
            Some(bound) => match stack::bound(&graph, elastic, judged, &module_type.imports) {
                Ok(depth) if depth.bytes <= bound => Some(depth.at_most(bound)),
                Ok(depth) => {
                    let construct = format!("{} bytes, where {bound} may be", depth.bytes);
                    return Ok(Err(tell(
                        module_type,
                        &[SourceRefusal::nowhere(Rule::Stack, construct)],
                    )));
                }
                Err(construct) => {
                    return Ok(Err(tell(
                        module_type,
                        &[SourceRefusal::nowhere(Rule::Stack, construct)],
                    )));
                }
            },
        };
        let instructions = match counted(elastic, &program.texts()?, &module_type.imports) {
            Ok(found) => found,
            Err(refusal) => return Ok(Err(tell(module_type, &[*refusal]))),
        };
        let mut built = program::Program::built(&text, files);
        built.instructions = instructions;
        built.image = Some(program.link(elastic)?);
        built.stack = stack;
        Ok(Ok(built))
    }
}

/// The most instructions of a call, if the type bounds them.
fn counted(
    elastic: &Elastic,
    texts: &[String],
    imports: &[String],
) -> Result<Option<u64>, Box<SourceRefusal>> {
    let Some(most) = elastic.instructions else {
        return Ok(None);
    };
    let construct = match instructions::bound(texts, elastic, imports) {
        Ok(found) if found <= most => return Ok(Some(found)),
        Ok(found) => format!("{found} instructions, where {most} may be"),
        Err(construct) => construct,
    };
    let refusal = SourceRefusal::nowhere(Rule::Instructions, construct);
    Err(Box::new(refusal))
}

/// Judges files as a program of a type whose file has this text. Nothing is asked, compiled or signed.
pub(super) fn check(
    text: &str,
    path: &Path,
    (module_type, elastic): (&ModuleType, Option<&Elastic>),
    files: &[PathBuf],
) -> anyhow::Result<Vec<SourceRefusal>> {
    let elastic = elastic.context("the type has no elastic language")?;
    let scratch = tempfile::tempdir()?;
    if elastic.base == BaseLanguage::Rust {
        let [file] = files else {
            bail!("a program in Rust is named by its root");
        };
        let program = rust::Crate {
            scratch: scratch.path(),
            file,
            protection: in_abi(module_type.protection).name(),
            alone: elastic.wall == Wall::Language,
        };
        return Ok(program.judge(elastic, true)?.err().unwrap_or_default());
    }
    let program = program::Program {
        scratch: scratch.path(),
        files,
        include: &[],
        define: &[],
        protection: in_abi(module_type.protection).name(),
    };
    Ok(match program.read(elastic)? {
        Err(refusal) => vec![refusal],
        Ok(source) => match program.judge(text, path, &source)? {
            Err(refusals) => refusals,
            Ok(_) => Vec::new(),
        },
    })
}

/// Tells refusals, one below the other.
fn tell(module_type: &ModuleType, refusals: &[SourceRefusal]) -> Refused {
    for refusal in refusals {
        sayln!("{}\n", refusal.render(&module_type.id, false));
    }
    let count = refusals.len();
    let (many, verb) = if count == 1 {
        ("", "stands")
    } else {
        ("s", "stand")
    };
    sayln!(
        "mullion: refused: {count} construct{many} {verb} against the module type {}",
        module_type.id
    );
    Refused
}
