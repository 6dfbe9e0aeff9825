//! `mullion sign`.

use super::admission::{module_type as find_type, record_of};
use super::keys::{KeyringArgs, pair};
use crate::image_file::whole;
use crate::output::{file, outln};
use anyhow::{Context as _, bail};
use mullion_trust::Sha256Digest;
use mullion_trust::module_type::Protection;
use mullion_trust::record::{self, Compilation, TypeReference};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

/// Sign a compilation record: this image is of this module type.
///
/// The record binds the image, by SHA-256 over the whole file, to its module
/// type: an in-toto Statement in a DSSE envelope, IMAGE.record beside it.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The image.
    image: PathBuf,
    /// The module type: its file, or its identifier in the policy that is configured
    /// (MULLION_POLICY, or /etc/mullion/policy.toml).
    #[arg(long = "type", value_name = "FILE")]
    module_type: PathBuf,
    /// The key that signs.
    #[arg(long, value_name = "NAME")]
    key: String,
    /// What the image was confined in [default: what the type demands].
    #[arg(long)]
    protection: Option<Protection>,
    /// A tool that the image was made with. May be repeated.
    #[arg(long = "tool", value_name = "NAME=VERSION", value_parser = pair)]
    tools: Vec<(String, String)>,
    /// An argument of the compiler. May be repeated.
    #[arg(long = "flag", value_name = "FLAG", allow_hyphen_values = true)]
    flags: Vec<String>,
    /// A source file; its digest is recorded. May be repeated.
    #[arg(long = "source", value_name = "FILE")]
    sources: Vec<PathBuf>,
    /// A name that the image imports. May be repeated.
    #[arg(long = "import", value_name = "NAME")]
    imports: Vec<String>,
    /// Where to write the record [default: IMAGE.record].
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    keyring: KeyringArgs,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let read = |path: &PathBuf| whole(path).with_context(|| path.display().to_string());
        let image = read(&self.image)?;
        let module_type = find_type(&self.module_type)?;
        if module_type.elastic.is_some() {
            bail!(
                "the source of {} must be judged: mullion compile signs what it has compiled",
                module_type.id
            );
        }
        let mut sources = BTreeMap::new();
        for path in &self.sources {
            let digest = Sha256Digest::of(&read(path)?).to_string();
            sources.insert(path.display().to_string(), digest);
        }
        let compilation = Compilation {
            module_type: TypeReference::to(&module_type),
            protection: self.protection.unwrap_or(module_type.protection),
            imports: self.imports,
            tools: self.tools.into_iter().collect(),
            flags: self.flags,
            sources,
            elastic: None,
        };
        let key = self.keyring.secret(&self.key)?;
        let name = self.image.file_name().unwrap_or_default().to_string_lossy();
        let text = record::sign(&name, &Sha256Digest::of(&image), &compilation, &key);
        let output = self.output.unwrap_or_else(|| record_of(&self.image));
        file(&output, text)?;
        outln!("{}", output.display())?;
        Ok(ExitCode::SUCCESS)
    }
}
