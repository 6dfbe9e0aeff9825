//! `mullion load`.

use super::admission::record_of;
use super::client::{ClientArgs, done};
use super::keys::pair;
use crate::image_file::whole;
use crate::output::{outln, sayln};
use anyhow::Context as _;
use mullion_service::wire::{Load, Operation};
use mullion_trust::Limit;
use mullion_trust::credentials::files;
use std::path::PathBuf;
use std::process::ExitCode;

/// Load an extension into a loader that runs as a service.
///
/// Load an extension into a loader, with its record and credentials, and print the number that it
/// has there.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    client: ClientArgs,
    /// The compilation record [default: IMAGE.record].
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// A file or directory of credentials. May be repeated.
    #[arg(long, value_name = "PATH")]
    credentials: Vec<PathBuf>,
    /// A limit to be content with: heap=1M ... May be repeated.
    #[arg(long = "limit", value_name = "NAME=AMOUNT", value_parser = pair)]
    limits: Vec<(String, String)>,
    /// An attribute for conditions to look at. May be repeated.
    #[arg(long = "attribute", value_name = "NAME=VALUE", value_parser = pair)]
    attributes: Vec<(String, String)>,
    /// Print the whole answer, a JSON object.
    #[arg(long)]
    json: bool,
    /// Say by whose leave, and with which limits.
    #[arg(long, short)]
    verbose: bool,
    /// The image.
    image: PathBuf,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let image = whole(&self.image).with_context(|| self.image.display().to_string())?;
        let load = self.object()?;
        let answer = self.client.ask(Operation::Load, &load, &image)?;
        done(&answer)?;
        if self.verbose {
            sayln!(
                "mullion: {}",
                answer.object["explanation"].as_str().unwrap_or_default()
            );
        }
        match self.json {
            true => outln!("{}", answer.object)?,
            false => outln!("{}", answer.object["module"])?,
        }
        Ok(ExitCode::SUCCESS)
    }

    fn object(&self) -> anyhow::Result<Load> {
        let record = match &self.record {
            Some(path) => {
                Some(mullion_trust::text::read(path).with_context(|| path.display().to_string())?)
            }
            None => mullion_trust::text::read(record_of(&self.image)).ok(),
        };
        let mut credentials = Vec::new();
        for path in &self.credentials {
            for file in files(path).with_context(|| path.display().to_string())? {
                let text = mullion_trust::text::read(&file);
                credentials.push(text.with_context(|| file.display().to_string())?);
            }
        }
        let mut load = Load {
            name: self
                .image
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            record,
            credentials,
            attributes: self.attributes.iter().cloned().collect(),
            ..Load::default()
        };
        for (name, amount) in &self.limits {
            let limit = Limit::named(name)
                .with_context(|| format!("there is no limit `{name}`: heap, stack, time, calls"))?;
            load.limits.insert(name.clone(), limit.parse(amount)?);
        }
        Ok(load)
    }
}
