//! `mullion verify`.

use crate::image_file::{ImageLimit, way_out};
use crate::listing::{Symbols, disassemble, hexadecimal};
use crate::output::{print, sayln};
use mullion_verifier::{DEFAULT_LIMIT, Place, Rule, Violation, survey};
use mullion_word_verifier as word;
use serde::Serialize;
use std::collections::HashSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// Check that an image keeps to every rule of the window, or a module to those of the word wall.
///
/// Decodes every byte of every executable segment, and checks the file's structure, its relocations, imports and
/// exports. An image that passes can neither write nor jump outside its window but through its gates, and from
/// protection read-write-call up it cannot read outside either. The compiler, the rewriter, the assembler and the
/// linker need not be trusted. A module of the word wall (docs/word-form.md) is known by its note: one that passes
/// touches memory only behind a check of those very words.
///
/// Exit status: 0 if every file verifies, 1 if one does not or cannot be read, 2 if the command is misused.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  mullion verify plugin.mx\n  mullion verify --json --all *.mx\n  mullion verify --explain stack-probe"
)]
pub(crate) struct Args {
    /// Image files.
    #[arg(value_name = "FILE", required_unless_present_any = ["explain", "rules"])]
    files: Vec<PathBuf>,
    /// Print one JSON array with an object for each file.
    #[arg(long)]
    json: bool,
    /// Print every violation, not only the first ones.
    #[arg(long)]
    all: bool,
    /// Print nothing about files that verify.
    #[arg(long, short)]
    quiet: bool,
    /// Say what a rule demands, and what usually breaks it.
    #[arg(long, value_name = "RULE", conflicts_with = "files")]
    explain: Option<Rule>,
    /// List every rule.
    #[arg(long, conflicts_with_all = ["files", "explain"])]
    rules: bool,
    #[command(flatten)]
    image_limit: ImageLimit,
}

/// Violations that are printed unless `--all` is given.
const SHOWN: usize = 10;

#[derive(Serialize)]
struct FileReport {
    file: String,
    verified: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip)]
    summary: String,
    violations: Vec<Entry>,
    truncated: bool,
}

#[derive(Serialize)]
struct Entry {
    #[serde(skip)]
    place: String,
    rule: &'static str,
    /// Offset in the window; absent if the file's structure is at fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_offset: Option<u64>,
    symbol: Option<String>,
    bytes: String,
    disassembly: Option<String>,
    explanation: &'static str,
    hint: &'static str,
}

impl Entry {
    fn new(violation: &Violation, symbols: &Symbols) -> Self {
        let (address, file_offset) = match violation.place {
            Place::Window(offset) => (Some(offset), None),
            Place::File(offset) => (None, Some(offset)),
        };
        let rule = violation.rule;
        Self {
            place: violation.place.to_string(),
            rule: rule.name(),
            address,
            file_offset,
            explanation: rule.explanation(),
            hint: rule.hint(),
            ..Self::at(address, &violation.bytes, symbols)
        }
    }

    /// Of a module of the word wall.
    fn word(violation: &word::Violation, symbols: &Symbols) -> Self {
        let (address, file_offset) = match violation.place {
            word::Place::Address(address) => (Some(address), None),
            word::Place::File(offset) => (None, Some(offset)),
        };
        let rule = violation.rule;
        Self {
            place: violation.place.to_string(),
            rule: rule.name(),
            address,
            file_offset,
            explanation: rule.explanation(),
            hint: rule.hint(),
            ..Self::at(address, &violation.bytes, symbols)
        }
    }

    /// What there is at an address.
    fn at(address: Option<u64>, bytes: &[u8], symbols: &Symbols) -> Self {
        Self {
            place: String::new(),
            rule: "",
            address,
            file_offset: None,
            symbol: address.and_then(|address| symbols.nearest(address)),
            bytes: hexadecimal(bytes),
            disassembly: address
                .filter(|_| !bytes.is_empty())
                .map(|address| disassemble(bytes, address)),
            explanation: "",
            hint: "",
        }
    }
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let mut out = String::new();
        if self.rules {
            for rule in Rule::ALL {
                writeln!(out, "{:24}{}", rule.name(), rule.explanation())?;
            }
        }
        if let Some(rule) = self.explain {
            writeln!(out, "{rule}\n\n  {}\n  {}", rule.explanation(), rule.hint())?;
        }
        let mut reports = Vec::new();
        for file in &self.files {
            let report = self.file(file);
            if !self.json {
                report.write(&mut out, self.quiet)?;
            }
            reports.push(report);
        }
        if self.json {
            writeln!(out, "{}", serde_json::to_string_pretty(&reports)?)?;
        }
        print(&out)?;
        let good = reports.iter().all(|report| report.verified);
        Ok(if good {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(1)
        })
    }

    fn file(&self, path: &Path) -> FileReport {
        let mut report = FileReport {
            file: path.display().to_string(),
            verified: false,
            error: None,
            summary: String::new(),
            violations: Vec::new(),
            truncated: false,
        };
        match self.image_limit.read(path) {
            Ok(bytes) => self.check(bytes, &mut report),
            Err(error) => {
                sayln!("mullion: {}: {error}", report.file);
                report.error = Some(error.to_string());
            }
        }
        report
    }

    fn check(&self, bytes: Arc<[u8]>, report: &mut FileReport) {
        let symbols = Symbols::read(&bytes);
        let limit = match (self.all, self.json) {
            (true, _) => usize::MAX,
            (false, true) => DEFAULT_LIMIT,
            (false, false) => SHOWN,
        };
        if word::is_module(&bytes) {
            return word_module(bytes, limit, &symbols, report);
        }
        let survey = survey(bytes, limit);
        report.verified = survey.is_verified();
        report.truncated = survey.truncated;
        let entries = survey.violations.iter();
        report.violations = entries
            .map(|violation| Entry::new(violation, &symbols))
            .collect();
        if let Some(image) = survey.image {
            let (kind, protection) = (image.kind().name(), image.protection().name());
            report.summary = format!(
                "{kind}, {protection}, {} instructions",
                survey.stats.instructions
            );
        }
    }
}

fn word_module(bytes: Arc<[u8]>, limit: usize, symbols: &Symbols, report: &mut FileReport) {
    let survey = word::survey(bytes, limit);
    report.verified = survey.is_verified();
    report.truncated = survey.truncated;
    let entries = survey.violations.iter();
    report.violations = entries
        .map(|violation| Entry::word(violation, symbols))
        .collect();
    if let Some(module) = survey.module {
        let (protection, stats) = (module.protection().name(), survey.stats);
        report.summary = format!(
            "module of the word wall, {protection}, {} instructions, {} checks",
            stats.instructions, stats.checks
        );
    }
}

impl FileReport {
    fn write(&self, out: &mut String, quiet: bool) -> std::fmt::Result {
        if self.verified {
            return if quiet {
                Ok(())
            } else {
                writeln!(out, "{}: verified: {}", self.file, self.summary)
            };
        }
        if self.error.is_some() {
            return Ok(());
        }
        let count = self.violations.len();
        let (more, plural) = (
            if self.truncated { " at least" } else { "" },
            if count == 1 { "" } else { "s" },
        );
        writeln!(
            out,
            "{}: rejected:{more} {count} violation{plural}",
            self.file
        )?;
        let mut explained = HashSet::new();
        for entry in &self.violations {
            entry.write(out, explained.insert(entry.rule))?;
        }
        if self.truncated {
            writeln!(out, "  ... (--all prints every violation)")?;
        }
        if let Some(way_out) = way_out(Path::new(&self.file)) {
            writeln!(out, "  way out: {way_out}")?;
        }
        Ok(())
    }
}

impl Entry {
    fn write(&self, out: &mut String, explain: bool) -> std::fmt::Result {
        let symbol = self.symbol.as_ref().map(|symbol| format!(" <{symbol}>"));
        writeln!(
            out,
            "  {}{}: {}",
            self.place,
            symbol.unwrap_or_default(),
            self.rule
        )?;
        if let Some(disassembly) = &self.disassembly {
            writeln!(out, "      {}    {disassembly}", self.bytes)?;
        }
        if explain {
            writeln!(out, "      {}\n      hint: {}", self.explanation, self.hint)?;
        }
        Ok(())
    }
}
