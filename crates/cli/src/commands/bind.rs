//! `mullion bind`: stubs for both sides of an interface that a C header declares.

use crate::output::{file, print};
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
  mullion bind --extension spell.h -o records.c
  mullion cc --mullion-kind=extension spell.c records.c -o spell.mx")]
pub(crate) struct Args {
    /// The header.
    header: PathBuf,
    /// A Rust module for the host: the extension's functions, a trait with the host's.
    #[arg(long, required_unless_present_any = ["extension", "c"], conflicts_with_all = ["extension", "c"])]
    rust: bool,
    /// A C header for the host: a function for each of the extension's, a structure of the host's.
    #[arg(long, conflicts_with = "extension")]
    c: bool,
    /// A C file to be linked with the extension: its exports and imports.
    #[arg(long)]
    extension: bool,
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
        let interface = mullion_bind::read(&self.header, &include).with_context(shown)?;
        let name = self.header.file_name().unwrap_or_default();
        let name = name.to_string_lossy();
        let text = match (self.extension, self.c) {
            (true, _) => mullion_bind::extension(&interface, &name),
            (_, true) => mullion_bind::c(&interface, &name).with_context(shown)?,
            _ => mullion_bind::rust(&interface, &name),
        };
        match &self.output {
            Some(path) => file(path, text)?,
            None => print(&text)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}
