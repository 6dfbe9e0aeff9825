//! `mullion keynote`.

use crate::output::{outln, sayln};
use anyhow::{Context as _, bail};
use mullion_trust::credentials;
use mullion_trust::keynote::{self, Algorithms, Attributes, Outcome, Query, Store, Work};
use std::path::PathBuf;
use std::process::ExitCode;

/// Evaluate KeyNote assertions (RFC 2704).
///
/// KeyNote (RFC 2704) by itself.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Print the compliance value of a query. Takes what `keynote verify` of
    /// the reference implementation takes.
    Verify(Verify),
    /// Measure queries: chains of credentials, and many that are stored.
    Bench,
}

#[derive(clap::Args)]
struct Verify {
    /// Attributes: a file of lines NAME = "VALUE", or NAME=VALUE itself. May be repeated.
    #[arg(short = 'e', value_name = "FILE")]
    environment: Vec<String>,
    /// A file of trusted assertions. May be repeated.
    #[arg(short = 'l', value_name = "FILE", required = true)]
    local: Vec<PathBuf>,
    /// The compliance values, ascending, separated by commas.
    #[arg(
        short = 'r',
        value_name = "VALUES",
        required = true,
        value_delimiter = ','
    )]
    values: Vec<String>,
    /// Who asks: a file that holds one key in quotes, or the key itself. May be repeated.
    #[arg(short = 'k', value_name = "FILE", required = true)]
    keys: Vec<String>,
    /// Accept RSA signatures with SHA-1 (RFC 2792), SHA-256 and SHA-512.
    #[arg(long)]
    rsa: bool,
    /// Files of credentials, which must be signed.
    credentials: Vec<PathBuf>,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.action {
            Action::Verify(verify) => verify.run(),
            Action::Bench => super::keynote_bench::run(),
        }
    }
}

impl Verify {
    fn run(&self) -> anyhow::Result<ExitCode> {
        let mut store = Store::new(Algorithms {
            rsa_sha1: self.rsa,
            rsa_sha2: self.rsa,
        });
        for path in &self.local {
            for assertion in read(path)? {
                store.add_policy(assertion, &path.display().to_string());
            }
        }
        for path in &self.credentials {
            for left_out in credentials::read_into(&mut store, path)? {
                sayln!("mullion: warning: {left_out}");
            }
        }
        let keys = self.keys()?;
        let keys: Vec<_> = keys.iter().map(Vec::as_slice).collect();
        let values: Vec<_> = self.values.iter().map(String::as_str).collect();
        let query = Query::new(&values, &keys, self.attributes()?)?;
        let answer = store.query(&query, &mut Work::unbounded())?;
        outln!("Query result = {}", answer.value)?;
        for (id, outcome) in &answer.considered {
            if let Outcome::Signature(error) = outcome {
                sayln!("mullion: warning: {}: {error}", store.origin(*id));
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn attributes(&self) -> anyhow::Result<Attributes> {
        let mut attributes = Attributes::new();
        for argument in &self.environment {
            if let Some((name, value)) = argument.split_once('=') {
                attributes.insert(name.to_owned(), value.as_bytes().to_vec());
                continue;
            }
            let text = mullion_trust::text::read(argument).with_context(|| argument.clone())?;
            attributes.extend(keynote::parse_environment(&text).with_context(|| argument.clone())?);
        }
        Ok(attributes)
    }

    fn keys(&self) -> anyhow::Result<Vec<Vec<u8>>> {
        let read = |argument: &String| match mullion_trust::text::read(argument) {
            Ok(text) => keynote::parse_key_file(&text).with_context(|| argument.clone()),
            Err(_) if argument.contains(':') => Ok(argument.clone().into_bytes()),
            Err(error) => {
                bail!("{argument}: {error}; a key itself has a colon, as in rsa-hex:3048...")
            }
        };
        self.keys.iter().map(read).collect()
    }
}

fn read(path: &PathBuf) -> anyhow::Result<Vec<keynote::Assertion>> {
    let text = mullion_trust::text::read_bytes(path).with_context(|| path.display().to_string())?;
    keynote::parse_all(&text).with_context(|| path.display().to_string())
}
