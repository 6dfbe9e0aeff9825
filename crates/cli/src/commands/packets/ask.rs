//! What a running forwarder is asked: by its operator, or by a user who proves a key.

use super::show::printable;
use crate::commands::client::done as granted;
use crate::commands::keys::KeyringArgs;
use crate::image_file::whole;
use crate::output;
use anyhow::{Context, bail};
use mullion_packets::config::{Config, Description, Wall};
use mullion_packets::control::{self, Answer, Question, Status};
use mullion_packets::users::{self, List, Load, Named};
use mullion_service::wire::{self, Operation};
use mullion_service::{Address, Client};
use mullion_trust::credentials::files;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a user waits for the forwarder.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(clap::Args)]
pub(super) struct ControlArgs {
    /// Where the forwarder listens: its operator's socket, or with --as its users'.
    #[arg(long = "to", value_name = "SOCKET", env = "MULLION_PACKETS")]
    control: PathBuf,
    /// Ask as a user, with this key; its secret part is needed.
    #[arg(long = "as", value_name = "NAME")]
    requester: Option<String>,
    #[command(flatten)]
    keyring: KeyringArgs,
}

#[derive(clap::Args)]
pub(super) struct LoadArgs {
    #[command(flatten)]
    control: ControlArgs,
    /// A file with modules.
    config: PathBuf,
    /// In the place of modules of the same names.
    #[arg(long)]
    replace: bool,
    /// What holds them in, whatever the file says: window, or process for a process of its own without powers. For
    /// users' modules there is language, too, where the operator has agreed.
    #[arg(long, value_name = "WALL")]
    wall: Option<Wall>,
    /// A file or directory of credentials, for users. May be repeated.
    #[arg(long, value_name = "PATH", requires = "requester")]
    credentials: Vec<PathBuf>,
}

#[derive(clap::Args)]
pub(super) struct NameArgs {
    #[command(flatten)]
    control: ControlArgs,
    /// The module's name.
    name: String,
}

impl ControlArgs {
    fn ask(&self, question: &Question) -> anyhow::Result<Answer> {
        control::ask(&self.control, question).with_context(|| {
            let path = self.control.display();
            format!("{path}: no forwarder answers there (mullion packets run --control {path})")
        })
    }

    /// As a user, whose key it proves.
    fn ask_as(
        &self,
        name: &str,
        operation: Operation,
        object: &impl Serialize,
        bytes: &[u8],
    ) -> anyhow::Result<wire::Answer> {
        let key = self.keyring.secret(name)?;
        let address = Address::Unix(self.control.clone());
        let mut client = Client::connect(&address, key, PATIENCE).with_context(|| {
            let path = self.control.display();
            format!("no forwarder answers users there (mullion packets run --users {path})")
        })?;
        let answer = client.ask(operation, object, bytes, &mut |_, _| {})?;
        granted(&answer)?;
        Ok(answer)
    }

    /// What runs; as a user, what is theirs.
    pub(super) fn status(&self) -> anyhow::Result<Status> {
        if let Some(name) = &self.requester {
            let mut answer = self.ask_as(name, Operation::List, &List {}, &[])?;
            let modules = serde_json::from_value(answer.object["modules"].take())?;
            return Ok(Status {
                ports: Vec::new(),
                modules,
            });
        }
        match self.ask(&Question::Status)? {
            Answer::Status(status) => Ok(status),
            _ => bail!("the forwarder answers something else"),
        }
    }
}

impl LoadArgs {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let config = Config::read(&self.config)?;
        for mut module in config.modules {
            module.wall = self.wall.unwrap_or(module.wall);
            let name = module.name.clone();
            match &self.control.requester {
                Some(user) => self.load_as(user, module),
                None => self.load(module),
            }
            .with_context(|| name)?;
        }
        Ok(())
    }

    fn load(&self, module: Description) -> anyhow::Result<()> {
        // The forwarder may run elsewhere in the file system.
        let image = std::path::absolute(&module.image)?;
        let module = Description { image, ..module };
        let replace = self.replace;
        done(self.control.ask(&Question::Load { module, replace })?)
    }

    fn load_as(&self, user: &str, mut module: Description) -> anyhow::Result<()> {
        let path = module.image;
        let image = whole(&path).with_context(|| path.display().to_string())?;
        module.image = path.file_name().map(PathBuf::from).unwrap_or_default();
        let mut record = path.clone().into_os_string();
        record.push(".record");
        let load = Load {
            module,
            replace: self.replace,
            record: mullion_trust::text::read(Path::new(&record)).ok(),
            credentials: self.credentials()?,
        };
        self.control
            .ask_as(user, Operation::Load, &load, &image)
            .map(|_| ())
    }

    fn credentials(&self) -> anyhow::Result<Vec<String>> {
        let mut texts = Vec::new();
        for path in &self.credentials {
            for file in files(path).with_context(|| path.display().to_string())? {
                let text = mullion_trust::text::read(&file);
                texts.push(text.with_context(|| file.display().to_string())?);
            }
        }
        Ok(texts)
    }
}

impl NameArgs {
    pub(super) fn unload(self) -> anyhow::Result<()> {
        let name = self.name;
        match &self.control.requester {
            Some(user) => {
                let named = Named {
                    name,
                    memory: false,
                };
                self.control
                    .ask_as(user, Operation::Unload, &named, &[])
                    .map(|_| ())
            }
            None => done(self.control.ask(&Question::Unload { name })?),
        }
    }
}

/// How often memory is looked at for reports.
const PAUSE: Duration = Duration::from_millis(10);

#[derive(clap::Args)]
pub(super) struct ReportsArgs {
    #[command(flatten)]
    module: NameArgs,
    /// Go on until the module is taken out or replaced: reports come by memory that the forwarder shares.
    #[arg(long)]
    follow: bool,
}

impl ReportsArgs {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let NameArgs { control, name } = self.module;
        if !self.follow {
            return show(&reports(&control, name)?.concat());
        }
        let mut reader = match &control.requester {
            Some(user) => {
                let named = Named {
                    name: name.clone(),
                    memory: true,
                };
                let answer = control.ask_as(user, Operation::Call, &named, &[])?;
                let token = answer.object["token"].as_str().unwrap_or_default();
                users::fetch_memory(&control.control, token)?
            }
            None => control::ask_for_memory(&control.control, &name)?,
        };
        loop {
            // Asked first: what was put before it was closed is there then.
            let is_closed = reader.is_closed();
            let mut text = Vec::new();
            while let Some(report) = reader.next_report() {
                text.extend(report);
            }
            if !text.is_empty() {
                show(&String::from_utf8_lossy(&text))?;
            }
            if reader.is_damaged() {
                bail!(
                    "the memory of the reports of `{name}` is damaged: somebody else has written there; ask for it again"
                );
            }
            if is_closed {
                return Ok(());
            }
            std::thread::sleep(PAUSE);
        }
    }
}

fn show(text: &str) -> anyhow::Result<()> {
    output::print(&printable(text))
}

fn reports(control: &ControlArgs, name: String) -> anyhow::Result<Vec<String>> {
    if let Some(user) = &control.requester {
        let named = Named {
            name,
            memory: false,
        };
        let mut answer = control.ask_as(user, Operation::Call, &named, &[])?;
        return Ok(serde_json::from_value(answer.object["reports"].take())?);
    }
    match control.ask(&Question::Reports { name })? {
        Answer::Reports(reports) => Ok(reports),
        other => done(other).map(|()| Vec::new()),
    }
}

fn done(answer: Answer) -> anyhow::Result<()> {
    match answer {
        Answer::Refused(why) => bail!("{}", printable(&why)),
        _ => Ok(()),
    }
}
