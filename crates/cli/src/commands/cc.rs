//! `mullion cc`, `mullion c++`, `mullion clang`, and `mullion as` and `mullion ld`, which they have gcc call.

use super::admission::{module_type as find_type, record_of};
use super::keys::KeyringArgs;
use crate::output::file;
use anyhow::{Context as _, bail};
use mullion_driver::{Arguments, Language, Origin};
use mullion_trust::module_type::{self, ModuleType, Protection, Verification};
use mullion_trust::record::{self, Compilation, TypeReference};
use mullion_trust::{SecretKey, Sha256Digest};
use mullion_verifier::{structure, verify};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// gcc's command line, as it is.
#[derive(clap::Args)]
#[command(disable_help_flag = true, disable_version_flag = true)]
pub(crate) struct Args {
    /// gcc's options and files; --mullion-help lists those of this command.
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGUMENTS"
    )]
    arguments: Vec<OsString>,
}

impl Args {
    pub(crate) fn cc(self) -> anyhow::Result<ExitCode> {
        compile(Language::C, &self.arguments)
    }

    pub(crate) fn cxx(self) -> anyhow::Result<ExitCode> {
        compile(Language::Cxx, &self.arguments)
    }

    pub(crate) fn clang(self) -> anyhow::Result<ExitCode> {
        Ok(mullion_driver::clang(Language::C, &self.arguments)?.into())
    }

    pub(crate) fn clangxx(self) -> anyhow::Result<ExitCode> {
        Ok(mullion_driver::clang(Language::Cxx, &self.arguments)?.into())
    }

    pub(crate) fn assemble(self) -> anyhow::Result<ExitCode> {
        Ok(mullion_driver::assemble(self.arguments)?)
    }

    pub(crate) fn link(self) -> anyhow::Result<ExitCode> {
        Ok(mullion_driver::link(self.arguments)?)
    }
}

fn compile(language: Language, arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let mut arguments = Arguments::parse(arguments)?;
    let signer = Signer::new(language, &mut arguments)?;
    let compiled = mullion_driver::compile(language, &arguments)?;
    if let (Some(signer), Some(origin)) = (signer, compiled.origin) {
        let image = arguments.output.unwrap_or_else(|| PathBuf::from("a.out"));
        let bytes = std::fs::read(&image).with_context(|| image.display().to_string())?;
        signer.sign(&image, bytes, origin, None)?;
    }
    Ok(ExitCode::from(compiled.code))
}

/// Signs what is linked.
pub(super) struct Signer {
    module_type: ModuleType,
    key: SecretKey,
}

impl Signer {
    /// What type and key the command line names; opened before anything is
    /// built, so that no image waits for a key that is not there.
    fn new(language: Language, arguments: &mut Arguments) -> anyhow::Result<Option<Self>> {
        let (path, key) = match (&arguments.module_type, &arguments.key) {
            (None, None) => return Ok(None),
            (Some(path), Some(key)) => (path, key),
            _ => bail!("a record has a type and a signer: give both --type FILE and --key NAME"),
        };
        let module_type = find_type(path)?;
        if module_type.elastic.is_some() {
            bail!(
                "the source of {} must be judged: use mullion compile",
                module_type.id
            );
        }
        if module_type.protection == Protection::None {
            bail!(
                "the type {} is for the language alone: use mullion compile",
                module_type.id
            );
        }
        let cxx = language == Language::Cxx || arguments.cxx;
        match module_type.language {
            module_type::Language::Rust => bail!("the type {} is of Rust", module_type.id),
            module_type::Language::C if cxx => {
                bail!("the type {} is of C, and this is C++", module_type.id)
            }
            _ => {}
        }
        if !arguments.protection_given {
            arguments.protection = in_abi(module_type.protection);
        }
        if from_abi(arguments.protection) < module_type.protection {
            bail!(
                "the type {} demands the protection {}, and {} was asked for",
                module_type.id,
                module_type.protection,
                arguments.protection.name()
            );
        }
        let key = KeyringArgs::from_environment().secret(key)?;
        Ok(Some(Signer { module_type, key }))
    }

    /// One of what has been judged.
    pub(super) fn of(module_type: ModuleType, key: SecretKey) -> Self {
        Signer { module_type, key }
    }

    /// Signs these bytes, and nothing that is in the image's file by now: others may be able to write there.
    pub(super) fn sign(
        &self,
        image: &Path,
        bytes: Vec<u8>,
        origin: Origin,
        elastic: Option<serde_json::Map<String, serde_json::Value>>,
    ) -> anyhow::Result<()> {
        let output = record_of(image);
        // A record of an earlier image, should this one not be signed.
        let _absent = std::fs::remove_file(&output);
        let read = |path: &Path| std::fs::read(path).with_context(|| path.display().to_string());
        let digest = Sha256Digest::of(&bytes);
        let (imports, protection) = match self.module_type.protection {
            // No window's loader takes it, and nothing can be read in it that would be believed.
            Protection::None => (Vec::new(), Protection::None),
            _ => self.check(image, bytes)?,
        };
        let mut sources = BTreeMap::new();
        for path in origin.sources {
            let digest = Sha256Digest::of(&read(&path)?).to_string();
            sources.insert(path.display().to_string(), digest);
        }
        let compilation = Compilation {
            module_type: TypeReference::to(&self.module_type),
            protection,
            imports,
            tools: origin.tools,
            flags: origin.flags,
            sources,
            elastic,
        };
        let name = image.file_name().unwrap_or_default().to_string_lossy();
        let text = record::sign(&name, &digest, &compilation, &self.key);
        file(&output, text)
    }

    /// What the image is found to be; nothing is signed that a loader would refuse.
    fn check(&self, image: &Path, bytes: Vec<u8>) -> anyhow::Result<(Vec<String>, Protection)> {
        let name = image.display();
        let found = match self.module_type.verification {
            Verification::Required => verify(bytes).map(|verified| (*verified).clone()),
            Verification::Trusted => structure(bytes),
        };
        let found = found.with_context(|| format!("{name} is not signed"))?;
        let mut imports = found.imports().iter();
        if let Some(import) = imports.find(|import| !self.module_type.imports.contains(import)) {
            bail!(
                "{name} is not signed: it imports `{import}`, which the type {} does not allow",
                self.module_type.id
            );
        }
        Ok((found.imports().to_vec(), from_abi(found.protection())))
    }
}

pub(super) fn in_abi(protection: Protection) -> mullion_abi::Protection {
    match protection {
        // The least that an image can have.
        Protection::None | Protection::WriteCall => mullion_abi::Protection::WriteCall,
        Protection::ReadWriteCall => mullion_abi::Protection::ReadWriteCall,
        Protection::Trap => mullion_abi::Protection::Trap,
    }
}

pub(super) fn from_abi(protection: mullion_abi::Protection) -> Protection {
    match protection {
        mullion_abi::Protection::WriteCall => Protection::WriteCall,
        mullion_abi::Protection::ReadWriteCall => Protection::ReadWriteCall,
        mullion_abi::Protection::Trap => Protection::Trap,
    }
}
