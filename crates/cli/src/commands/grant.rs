//! `mullion grant`.

use super::admission::configured_policy;
use super::keys::{KeyringArgs, add_credentials, pair};
use crate::output::{outln, print, sayln};
use anyhow::{Context as _, bail};
use mullion_trust::bounds::upper_bounds;
use mullion_trust::grant::Grant;
use mullion_trust::keynote::{Attributes, Principal, Query, Work};
use mullion_trust::policy::{COMPILE, LOAD};
use mullion_trust::{Limit, Limits, Policy, clock, explain};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::process::ExitCode;

/// The condition under which leave is for the compiler's use alone.
const USE: &str = "purpose == \"use\"";

/// Grant somebody leave to load, as a signed credential; show and check grants.
///
/// A grant is a signed KeyNote assertion (RFC 2704) that a person can read.
/// Who holds one can grant part of it on, without asking.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    new: New,
    #[command(flatten)]
    keyring: KeyringArgs,
}

#[derive(clap::Args)]
struct New {
    /// The key that grants.
    #[arg(long, value_name = "NAME", required = true)]
    from: Option<String>,
    /// Who gets it: the name of a key, or a key. May be repeated.
    #[arg(long, value_name = "KEY", required = true)]
    to: Vec<String>,
    /// How many of them must ask together.
    #[arg(long, value_name = "K", default_value_t = 1)]
    together: usize,
    /// The module type that may be loaded; without it, every type. May be repeated.
    #[arg(long = "type", value_name = "ID")]
    types: Vec<String>,
    /// Leave to sign compilation records, instead of to load.
    #[arg(long)]
    compile: bool,
    /// Leave to have programs of the type compiled by `mullion compile`, instead of to load. It is no
    /// leave to sign records.
    #[arg(long, conflicts_with = "compile")]
    use_compiler: bool,
    /// A condition on the request's attributes, as in 'hour >= "09" && hour < "17"'.
    #[arg(long, value_name = "TEST")]
    when: Option<String>,
    /// The last day on which it holds, YYYYMMDD.
    #[arg(long, value_name = "DATE")]
    until: Option<String>,
    /// An upper bound: heap=1M, stack=64K, time=250ms, calls=1000. May be repeated.
    #[arg(long = "limit", value_name = "NAME=AMOUNT", value_parser = pair)]
    limits: Vec<(String, String)>,
    /// An import that may be used; without it, all of the type's. May be repeated.
    #[arg(long = "import", value_name = "NAME")]
    imports: Vec<String>,
    /// A remark for people.
    #[arg(long)]
    comment: Option<String>,
    /// Where to write it, a new file [default: the standard output].
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Say what credentials are, and whether their signatures are good.
    Show {
        /// Files or directories of credentials.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Say whether keys may load (or compile) a type under a policy: by whose
    /// leave, or why not.
    Check {
        /// The policy file.
        #[arg(long)]
        policy: PathBuf,
        /// A file or directory of credentials. May be repeated.
        #[arg(long, value_name = "PATH")]
        credentials: Vec<PathBuf>,
        /// Who asks. May be repeated.
        #[arg(long = "as", value_name = "KEY", required = true)]
        requesters: Vec<String>,
        /// The module type.
        #[arg(long = "type", value_name = "ID")]
        module_type: String,
        /// Ask for leave to sign compilation records, instead of to load.
        #[arg(long)]
        compile: bool,
        /// An attribute of the request. Also sets what is otherwise zero or
        /// the present: heap_kib, hour ... May be repeated.
        #[arg(long = "attribute", value_name = "NAME=VALUE", value_parser = pair)]
        attributes: Vec<(String, String)>,
    },
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match &self.action {
            None => self.grant(),
            Some(Action::Show { files }) => self.show(files),
            Some(Action::Check { .. }) => self.check(),
        }
    }

    fn grant(&self) -> anyhow::Result<ExitCode> {
        let new = &self.new;
        let Some(from) = &new.from else {
            bail!("--from is needed");
        };
        let keyring = self.keyring.open()?;
        let mut to = Vec::new();
        for name in &new.to {
            let key = keyring.resolve(name)?;
            let name = if name.contains(':') { "licensee" } else { name };
            to.push((name.to_owned(), key));
        }
        let mut limits = Limits::NONE;
        for (name, amount) in &new.limits {
            let limit = Limit::named(name)
                .with_context(|| format!("there is no limit `{name}`: heap, stack, time, calls"))?;
            limits.set(limit, Some(limit.parse(amount)?));
        }
        let grant = Grant {
            from: from.clone(),
            to,
            together: new.together,
            compile: new.compile || new.use_compiler,
            types: new.types.clone(),
            imports: (!new.imports.is_empty()).then(|| new.imports.clone()),
            limits,
            when: match (new.use_compiler, &new.when) {
                (false, when) => when.clone(),
                (true, None) => Some(USE.to_owned()),
                (true, Some(when)) => Some(format!("{USE} && ({when})")),
            },
            until: new.until.clone(),
            comment: new.comment.clone(),
        };
        warn(&grant);
        let text = grant.sign(&self.keyring.secret(from)?)?;
        match &new.output {
            None => print(&text)?,
            Some(path) => {
                let mut options = std::fs::OpenOptions::new();
                let file = options.write(true).create_new(true).mode(0o644).open(path);
                let written = file.and_then(|mut file| {
                    file.write_all(text.as_bytes()).inspect_err(|_| {
                        let _absent = std::fs::remove_file(path);
                    })
                });
                written.with_context(|| path.display().to_string())?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn show(&self, files: &[PathBuf]) -> anyhow::Result<ExitCode> {
        let mut store = mullion_trust::keynote::Store::default();
        for file in files {
            add_credentials(&mut store, file)?;
        }
        let names = self.keyring.names();
        if store.is_empty() {
            bail!("there is no credential in what was named");
        }
        let mut good = true;
        for id in store.ids() {
            let assertion = store.assertion(id);
            outln!("{}:", store.origin(id))?;
            outln!("  {}", assertion.comment().unwrap_or("no comment"))?;
            if let Some(authorizer) = assertion.authorizer() {
                outln!("  from {}", names.of(authorizer))?;
            }
            for licensee in assertion.licensees() {
                outln!("  to {}", names.of(licensee))?;
            }
            for bound in upper_bounds(assertion) {
                outln!("  {} at most {}", bound.name, bound.at_most)?;
            }
            match store.verify(id) {
                Ok(()) => outln!("  the signature is good")?,
                Err(error) => {
                    outln!("  it does not count: {error}")?;
                    good = false;
                }
            }
        }
        Ok(ExitCode::from(u8::from(!good)))
    }

    fn check(&self) -> anyhow::Result<ExitCode> {
        let Some(Action::Check {
            policy,
            credentials,
            requesters,
            module_type,
            compile,
            attributes,
        }) = &self.action
        else {
            bail!("nothing to check");
        };
        let policy = Policy::read(policy)?;
        let mut store = policy.store();
        for path in policy.credentials().iter().chain(credentials) {
            add_credentials(&mut store, path)?;
        }
        let keyring = self.keyring.open()?;
        let mut names = self.keyring.names();
        for (name, key) in policy.keys() {
            names.add(key.principal(), name);
        }
        let mut all: Attributes =
            clock::attributes(std::time::SystemTime::now(), policy.utc_offset());
        let domain = if *compile { COMPILE } else { LOAD };
        for (name, value) in [
            ("app_domain", domain),
            ("type", module_type),
            ("imports", " "),
        ] {
            all.insert(name.to_owned(), value.as_bytes().to_vec());
        }
        for (name, value) in attributes {
            all.insert(name.clone(), value.clone().into_bytes());
        }
        let mut keys = Vec::new();
        for name in requesters {
            let named = policy.keys().get(name).copied();
            keys.push(named.map_or_else(|| keyring.resolve(name), Ok)?);
        }
        let identifiers: Vec<_> = keys.iter().map(ToString::to_string).collect();
        let identifiers: Vec<_> = identifiers.iter().map(|id| id.as_bytes()).collect();
        let query = Query::new(&["refuse", "allow"], &identifiers, all)?;
        let mut work = Work::unbounded();
        let answer = store.query(&query, &mut work)?;
        if answer.granted {
            outln!("yes:")?;
            for line in explain::chain(&store, &answer, &names) {
                outln!("  {line}")?;
            }
            return Ok(ExitCode::SUCCESS);
        }
        outln!("no:")?;
        let principals: Vec<Principal> = keys.iter().map(|key| key.principal()).collect();
        let obstacles = explain::obstacles(&store, &query, &answer, &principals, &names, &mut work);
        for line in obstacles.all {
            outln!("  {line}")?;
        }
        Ok(ExitCode::from(1))
    }
}

/// Says what is written well and will hardly hold: a date that is past, a type that the configured
/// policy does not know.
fn warn(grant: &Grant) {
    let configured = std::env::var_os("MULLION_POLICY").filter(|path| !path.is_empty());
    let configured = configured_policy(configured.as_ref().map(std::path::Path::new));
    let policy = configured.and_then(|path| Some((Policy::read(&path).ok()?, path)));
    let offset = policy.as_ref().map_or(0, |(policy, _)| policy.utc_offset());
    let today = clock::attributes(std::time::SystemTime::now(), offset).remove("date");
    if let (Some(until), Some(today)) = (&grant.until, today)
        && until.as_bytes() < today.as_slice()
    {
        sayln!("mullion: warning: {until} is past, so the grant never holds");
    }
    let Some((policy, path)) = policy else {
        return;
    };
    for id in grant
        .types
        .iter()
        .filter(|id| policy.module_type(id).is_none())
    {
        let known: Vec<_> = policy
            .module_types()
            .map(|known| known.id.as_str())
            .collect();
        sayln!(
            "mullion: warning: the policy {} knows no module type `{id}`; it knows {}",
            path.display(),
            if known.is_empty() {
                "none".to_owned()
            } else {
                known.join(", ")
            }
        );
    }
}
