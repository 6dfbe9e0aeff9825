//! `mullion rewrite`.

use crate::output::{file, print, sayln};
use anyhow::{Context, bail};
use mullion_rewriter::{Base, Options, Protection, Stats, Wall, WordProtection, rewrite};
use mullion_trust::text::within;
use std::path::PathBuf;
use std::process::ExitCode;

/// Bytes of an assembler text.
const LARGEST: u64 = 1 << 30;

/// Confine the assembler text of a C or C++ compiler.
///
/// Reads the AT&T assembler text of a compiler and writes assembler text of the
/// same meaning whose memory accesses, calls and jumps cannot leave their window.
///
/// `mullion cc` does this by itself; the command is for looking at what comes out.
/// The compiler must have been told to keep clear of three registers:
/// `gcc -S -O2 -fPIE -ffixed-r11 -ffixed-r14 -ffixed-r15 -fcf-protection=none
/// -fno-stack-protector -fno-stack-clash-protection -ftls-model=initial-exec`.
///
/// Exit status: 0 when the file was written, 1 when something in it cannot be made
/// safe (each place is named on standard error), 2 for a wrong command line.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The assembler text; `-` for standard input.
    input: PathBuf,
    /// Where to write; `-` for standard output.
    #[arg(short, long, default_value = "-")]
    output: PathBuf,
    /// What is confined.
    #[arg(long, value_parser = protection, default_value = "read-write-call", value_name = "LEVEL",
          long_help = "What is confined: write-call (writes, calls and jumps), read-write-call (reads as well), or trap \
                       (as read-write-call, and an access outside the window stops the program where it happens)")]
    protection: Protection,
    /// Make code for the word wall: check writes (`write`), or reads as well (`read-write`).
    #[arg(long, value_parser = word, value_name = "CHECKED", conflicts_with_all = ["protection", "base", "count"])]
    word: Option<WordProtection>,
    /// Whether memory may be reached through `%gs`.
    #[arg(long, value_parser = base, default_value = "segment", value_name = "BASE",
          long_help = "Whether memory may be reached through %gs: segment (yes, where that is the shortest form), or \
                       register (no: calls of an image without it are faster)")]
    base: Base,
    /// Count steps, and trap where none is left.
    #[arg(long)]
    count: bool,
    /// Print how many accesses took which form, to standard error.
    #[arg(long)]
    stats: bool,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let name = self.input.display().to_string();
        let source = if name == "-" {
            within(std::io::stdin(), LARGEST)
        } else {
            std::fs::File::open(&self.input).and_then(|file| within(file, LARGEST))
        };
        let source = source.with_context(|| format!("cannot read {name}"))?;
        match rewrite(
            &source,
            &name,
            &Options {
                wall: self.word.map_or(Wall::Window, Wall::Word),
                protection: self.protection,
                base: self.base,
                count: self.count,
            },
        ) {
            Ok(rewritten) => {
                if self.output.as_os_str() == "-" {
                    print(&rewritten.text)?;
                } else {
                    file(&self.output, rewritten.text)?;
                }
                if self.stats {
                    print_stats(&rewritten.stats);
                }
                Ok(ExitCode::SUCCESS)
            }
            Err(refusals) => {
                for refusal in &refusals {
                    sayln!("mullion: {refusal}");
                }
                bail!("{name}: {} refused", refusals.len())
            }
        }
    }
}

fn protection(name: &str) -> Result<Protection, String> {
    [
        Protection::WriteCall,
        Protection::ReadWriteCall,
        Protection::Trap,
    ]
    .into_iter()
    .find(|p| p.name() == name)
    .ok_or_else(|| "expected write-call, read-write-call or trap".to_owned())
}

fn base(name: &str) -> Result<Base, String> {
    let known = Base::ALL.into_iter().find(|base| base.name() == name);
    known.ok_or_else(|| "expected segment or register".to_owned())
}

fn word(name: &str) -> Result<WordProtection, String> {
    let known = WordProtection::ALL
        .into_iter()
        .find(|level| level.name() == name);
    known.ok_or_else(|| "expected write or read-write".to_owned())
}

fn print_stats(stats: &Stats) {
    for (what, count) in stats.rows() {
        sayln!("{count:>9} {what}");
    }
}
