//! `mullion admit`.

use super::admission::{configured_policy, record_of};
use super::keys::{KeyringArgs, add_credentials, pair};
use crate::image_file::ImageLimit;
use crate::output::{outln, sayln};
use anyhow::Context as _;
use mullion_trust::event;
use mullion_trust::keynote::Work;
use mullion_trust::log::Log;
use mullion_trust::module_type::WallKind;
use mullion_trust::{Limit, Policy, Refusal, Request, Sha256Digest, decide};
use std::path::PathBuf;
use std::process::ExitCode;

/// Say whether an image may be loaded: by whose leave, with which limits, or why not.
///
/// Asks the loader's question without loading: may these keys load this image,
/// as what, by whose leave, with which limits? Ends with 0 if so, 1 if not.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The image.
    image: PathBuf,
    /// The policy file [default: /etc/mullion/policy.toml].
    #[arg(long, value_name = "FILE", env = "MULLION_POLICY")]
    policy: Option<PathBuf>,
    /// A file or directory of credentials, beside the policy's. May be repeated.
    #[arg(long, value_name = "PATH")]
    credentials: Vec<PathBuf>,
    /// The compilation record [default: IMAGE.record].
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Who asks: a key, or the name of one. May be repeated.
    #[arg(
        long = "as",
        value_name = "KEY",
        env = "MULLION_AS",
        value_delimiter = ',',
        required = true
    )]
    requesters: Vec<String>,
    /// An attribute for conditions to look at. May be repeated.
    #[arg(long = "attribute", value_name = "NAME=VALUE", value_parser = pair)]
    attributes: Vec<(String, String)>,
    /// A limit to be content with: heap=1M ... May be repeated.
    #[arg(long = "limit", value_name = "NAME=AMOUNT", value_parser = pair)]
    limits: Vec<(String, String)>,
    /// A name that the image imports; with any, all are needed. May be repeated.
    #[arg(long = "import", value_name = "NAME")]
    imports: Vec<String>,
    /// The mechanism: window, word, language, process [default: the best granted].
    #[arg(long)]
    mechanism: Option<WallKind>,
    /// Append the decision to the policy's log.
    #[arg(long)]
    log: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    image_limit: ImageLimit,
    #[command(flatten)]
    keyring: KeyringArgs,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let path = configured_policy(self.policy.as_deref());
        let path = path.context("no policy is configured: name one with --policy FILE")?;
        let policy = Policy::read(&path)?;
        let mut store = policy.store();
        for path in policy.credentials().iter().chain(&self.credentials) {
            add_credentials(&mut store, path)?;
        }
        let image = self
            .image_limit
            .read(&self.image)
            .with_context(|| self.image.display().to_string())?;
        let record = self.record.clone();
        let record = record.unwrap_or_else(|| record_of(&self.image));
        let record = mullion_trust::text::read(&record)
            .with_context(|| format!("compilation record {}", record.display()))?;
        let request = self.request(&policy, &image)?;
        let (names, mut work) = (self.keyring.names(), Work::unbounded());
        let answer = decide(&policy, &store, &record, &request, &names, &mut work);
        let event = match &answer {
            Ok(decision) => event::admitted(decision),
            Err(refusal) => event::not_granted(refusal, &request.requesters, &request.image),
        };
        if self.log {
            let path = policy.log().context("the policy names no `log`")?;
            Log::new(path).append(event.clone())?;
        }
        if self.json {
            outln!("{event}")?;
        } else {
            match &answer {
                Ok(decision) => outln!("{}", decision.explanation)?,
                Err(refusal) => print(refusal),
            }
        }
        Ok(ExitCode::from(u8::from(answer.is_err())))
    }

    fn request(&self, policy: &Policy, image: &[u8]) -> anyhow::Result<Request> {
        let keyring = self.keyring.open()?;
        let mut requesters = Vec::new();
        for name in &self.requesters {
            let named = policy.keys().get(name).copied();
            requesters.push(named.map_or_else(|| keyring.resolve(name), Ok)?);
        }
        let mut request = Request::new(requesters, Sha256Digest::of(image));
        request.imports = (!self.imports.is_empty()).then(|| self.imports.clone());
        request.mechanism = self.mechanism;
        for (name, value) in &self.attributes {
            request
                .attributes
                .insert(name.clone(), value.clone().into_bytes());
        }
        for (name, amount) in &self.limits {
            let limit = Limit::named(name)
                .with_context(|| format!("there is no limit `{name}`: heap, stack, time, calls"))?;
            request.limits.set(limit, Some(limit.parse(amount)?));
        }
        Ok(request)
    }
}

fn print(refusal: &Refusal) {
    sayln!("mullion: refused: {}", refusal.reason);
    for line in &refusal.obstacles {
        sayln!("  {line}");
    }
    sayln!("  way out: {}", refusal.way_out);
}
