//! `mullion bind`: stubs for both sides of an interface that a C header declares.

use crate::output::{file, print, sayln};
use anyhow::Context;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Make stubs for both sides of an interface that a C header declares.
///
/// Make stubs from a C header, for a host and for an extension.
///
/// The header marks functions and pointers by the macros of <mullion/bind.h>, of which compilers
/// see nothing. A stub copies in and out what the marks say.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  mullion bind --rust spell.h -o spell.rs
  mullion bind --wall=word host.h --annotations host.toml -o interface.toml
  mullion bind --extension spell.h -o records.c
  mullion cc --mullion-kind=extension spell.c records.c -o spell.mx")]
pub(crate) struct Args {
    /// The header.
    header: PathBuf,
    /// A Rust module for the host: the extension's functions, a trait with the host's.
    #[arg(long, required_unless_present_any = ["extension", "c", "wall"], conflicts_with_all = ["extension", "c", "wall"])]
    rust: bool,
    /// A C header for the host: a function for each of the extension's, a structure of the host's.
    #[arg(long, conflicts_with = "extension")]
    c: bool,
    /// A C file to be linked with the extension: its exports and imports.
    #[arg(long)]
    extension: bool,
    /// An interface for policies of the word wall; the header needs no marks.
    #[arg(long, value_name = "WALL", value_parser = ["word"], conflicts_with_all = ["extension", "c"])]
    wall: Option<String>,
    /// What types do not say, with --wall=word: effects of functions, in the form of a policy.
    #[arg(long, value_name = "FILE", requires = "wall")]
    annotations: Option<PathBuf>,
    /// Look for included files here. Repeat for more.
    #[arg(short = 'I', value_name = "DIR")]
    include: Vec<PathBuf>,
    /// Write to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let shown = || self.header.display().to_string();
        let include: Vec<&Path> = self.include.iter().map(PathBuf::as_path).collect();
        if self.wall.is_some() {
            return self.describe(&include);
        }
        let interface = mullion_bind::read(&self.header, &include).with_context(shown)?;
        let name = self.header.file_name().unwrap_or_default();
        let name = name.to_string_lossy();
        let text = match (self.extension, self.c) {
            (true, _) => mullion_bind::extension(&interface, &name),
            (_, true) => mullion_bind::c(&interface, &name).with_context(shown)?,
            _ => mullion_bind::rust(&interface, &name),
        };
        self.write(&text)
    }

    fn write(&self, text: &str) -> anyhow::Result<ExitCode> {
        match &self.output {
            Some(path) => file(path, text)?,
            None => print(text)?,
        }
        Ok(ExitCode::SUCCESS)
    }

    /// For the word wall.
    fn describe(&self, include: &[&Path]) -> anyhow::Result<ExitCode> {
        let annotations = self
            .annotations
            .as_ref()
            .map(|path| std::fs::read_to_string(path).with_context(|| path.display().to_string()));
        let annotations = annotations.transpose()?;
        let described = mullion_bind::describe(&self.header, include, annotations.as_deref());
        let described = described.with_context(|| self.header.display().to_string())?;
        for (name, reason) in &described.left_out {
            sayln!("mullion: {name} is left out: {reason}");
        }
        self.write(&described.text())
    }
}
