//! `mullion inspect`.

use super::provenance::Provenance;
use crate::image_file::{ImageLimit, way_out};
use crate::listing::Symbols;
use crate::output::print;
use anyhow::{Context, bail};
use mullion_abi as abi;
use mullion_trust::Policy;
use mullion_verifier::{Image, Rule, Survey, survey};
use serde::Serialize;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Describe an image: segments, exports, imports, and what its code does.
///
/// Shows the protection and kind that the image's note names, its segments, the functions that it exports and
/// imports with the number of direct calls to each gate, how its code accesses memory and whether through `%gs`, and how much the rewriter
/// added to it, as whoever built it says. An image that does not
/// verify is described as far as it can be read, and the description says so: then it is a claim, not a fact.
/// If there is a compilation record beside it (FILE.record), that is described too.
///
/// Exit status: 0 if the file could be described, 1 if not, 2 if the command is misused.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Image file.
    file: PathBuf,
    /// Print a JSON object.
    #[arg(long)]
    json: bool,
    /// A policy: say whether it has the code verified when the image is loaded.
    #[arg(long, value_name = "FILE", env = "MULLION_POLICY")]
    policy: Option<PathBuf>,
    #[command(flatten)]
    image_limit: ImageLimit,
}

#[derive(Serialize)]
struct Description {
    file: String,
    verified: bool,
    violations: usize,
    violations_truncated: bool,
    kind: &'static str,
    protection: &'static str,
    base: &'static str,
    entry: u64,
    segments: Vec<SegmentLine>,
    thread_local_bytes: u64,
    relocations: u64,
    exports: Vec<ExportLine>,
    imports: Vec<GateLine>,
    built_in_gates: Vec<GateLine>,
    code: CodeCounts,
    growth: Option<Growth>,
    record: Option<Provenance>,
}

#[derive(Serialize)]
struct SegmentLine {
    offset: u64,
    size: u64,
    file_bytes: usize,
    permission: &'static str,
}

#[derive(Serialize)]
struct ExportLine {
    name: String,
    offset: u64,
    symbol: Option<String>,
}

#[derive(Serialize)]
struct GateLine {
    name: String,
    slot: u64,
    direct_branches: u64,
}

#[derive(Serialize)]
struct CodeCounts {
    bytes: u64,
    instructions: u64,
    labels: u64,
    indirect_branches: u64,
    accesses_gs: u64,
    accesses_base_plus_offset: u64,
    accesses_window_pointer: u64,
    accesses_stack: u64,
    accesses_rip: u64,
    reads_unconfined: u64,
    string_instructions: u64,
    uses_x87: bool,
    writes_mxcsr: bool,
}

#[derive(Serialize)]
struct Growth {
    bytes_before: u32,
    bytes_after: u32,
    ratio: f64,
}

const BUILT_IN: [&str; 5] = [
    "",
    "__mullion_setjmp",
    "__mullion_longjmp",
    "__mullion_control_read",
    "__mullion_control_unwind",
];

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let name = self.file.display().to_string();
        let bytes = self
            .image_limit
            .read(&self.file)
            .with_context(|| name.clone())?;
        let symbols = Symbols::read(&bytes);
        let policy = self.policy.as_deref().map(Policy::read).transpose()?;
        let record = Provenance::read(&self.file, &bytes, policy.as_ref());
        let survey = survey(bytes, 1000);
        let Some(image) = &survey.image else {
            let first = survey
                .violations
                .first()
                .map(ToString::to_string)
                .unwrap_or_default();
            let way_out = way_out(&self.file)
                .map_or(String::new(), |way_out| format!("\n  way out: {way_out}"));
            bail!("{name}: not an image: {first}{way_out}");
        };
        if let Some(missing) = survey
            .violations
            .iter()
            .find(|one| one.rule == Rule::NoteMissing)
        {
            bail!("{name}: not an image: {missing} {}", missing.rule.hint());
        }
        let mut description = describe(name, image, &survey, &symbols);
        description.record = record;
        let mut out = String::new();
        if self.json {
            writeln!(out, "{}", serde_json::to_string_pretty(&description)?)?;
        } else {
            description.write(&mut out)?;
        }
        print(&out)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn describe(file: String, image: &Image, survey: &Survey, symbols: &Symbols) -> Description {
    let stats = &survey.stats;
    let segments = image.segments();
    let code = segments
        .iter()
        .filter(|segment| segment.permission.is_executable());
    let gate = |name: &str, slot: u64, count: &u64| GateLine {
        name: name.into(),
        slot,
        direct_branches: *count,
    };
    let (before, after) = image.growth();
    Description {
        file,
        verified: survey.is_verified(),
        violations: survey.violations.len(),
        violations_truncated: survey.truncated,
        kind: image.kind().name(),
        protection: image.protection().name(),
        base: match stats.gs {
            0 => "register",
            _ => "segment",
        },
        entry: image.entry(),
        segments: segments
            .iter()
            .map(|segment| SegmentLine {
                offset: segment.offset,
                size: segment.size,
                file_bytes: image.contents(segment).len(),
                permission: segment.permission.name(),
            })
            .collect(),
        thread_local_bytes: image.tls().map_or(0, |tls| tls.size),
        relocations: image.relocations().count() as u64,
        exports: image
            .exports()
            .iter()
            .map(|export| ExportLine {
                name: export.name.clone(),
                offset: export.offset,
                symbol: symbols.nearest(export.offset),
            })
            .collect(),
        imports: (abi::GATE_FIRST_IMPORT..)
            .zip(image.imports().iter().zip(stats.import_branches()))
            .map(|(slot, (name, count))| gate(name, slot, count))
            .collect(),
        built_in_gates: (0..)
            .zip(BUILT_IN.iter().zip(stats.built_in_branches()))
            .skip(1)
            .map(|(slot, (name, count))| gate(name, slot, count))
            .collect(),
        code: CodeCounts {
            bytes: code.map(|segment| segment.size).sum(),
            instructions: stats.instructions,
            labels: stats.labels,
            indirect_branches: stats.indirect,
            accesses_gs: stats.gs,
            accesses_base_plus_offset: stats.offset,
            accesses_window_pointer: stats.pointer,
            accesses_stack: stats.stack,
            accesses_rip: stats.rip,
            reads_unconfined: stats.reads_unconfined,
            string_instructions: stats.strings,
            uses_x87: stats.x87,
            writes_mxcsr: stats.mxcsr,
        },
        growth: (before != 0).then(|| Growth {
            bytes_before: before,
            bytes_after: after,
            ratio: f64::from(after) / f64::from(before),
        }),
        record: None,
    }
}

impl Description {
    fn write(&self, out: &mut String) -> std::fmt::Result {
        writeln!(
            out,
            "{}: {}, {}, base {}",
            self.file,
            self.kind,
            self.protection,
            match self.base {
                "register" => "in a register (no access through %gs)",
                _ => "in %gs, too",
            }
        )?;
        if self.verified {
            writeln!(out, "verified")?;
        } else {
            let more = if self.violations_truncated {
                "more than "
            } else {
                ""
            };
            writeln!(
                out,
                "NOT verified ({more}{} violations, see `mullion verify`): what follows is a claim",
                self.violations
            )?;
        }
        writeln!(out, "entry      {:#x}", self.entry)?;
        writeln!(out, "\nsegments   offset      bytes       in the file")?;
        for segment in &self.segments {
            writeln!(
                out,
                "  {}      {:<#10x}  {:<10}  {}",
                segment.permission, segment.offset, segment.size, segment.file_bytes
            )?;
        }
        writeln!(
            out,
            "relocations {}, thread-local bytes {}",
            self.relocations, self.thread_local_bytes
        )?;
        writeln!(out, "\nexports    {}", self.exports.len())?;
        for export in &self.exports {
            writeln!(out, "  {:<#10x} {}", export.offset, export.name)?;
        }
        writeln!(
            out,
            "\nimports    {} (slot, direct branches, name)",
            self.imports.len()
        )?;
        for gate in self.imports.iter().chain(
            self.built_in_gates
                .iter()
                .filter(|gate| gate.direct_branches > 0),
        ) {
            writeln!(
                out,
                "  {:<6} {:<8} {}",
                gate.slot, gate.direct_branches, gate.name
            )?;
        }
        self.code.write(out)?;
        if let Some(growth) = &self.growth {
            let percent = (growth.ratio - 1.0) * 100.0;
            writeln!(
                out,
                "rewriting  {} -> {} bytes ({percent:+.1} %), as the builder claims",
                growth.bytes_before, growth.bytes_after
            )?;
        }
        self.record
            .as_ref()
            .map_or(Ok(()), |record| record.write(out))
    }
}

impl CodeCounts {
    fn write(&self, out: &mut String) -> std::fmt::Result {
        writeln!(
            out,
            "\ncode       {} bytes, {} instructions",
            self.bytes, self.instructions
        )?;
        let lines = [
            ("labels", self.labels),
            ("indirect branches", self.indirect_branches),
            ("accesses %gs:", self.accesses_gs),
            ("accesses (%r14,%rN)", self.accesses_base_plus_offset),
            (
                "accesses (%rN), a window pointer",
                self.accesses_window_pointer,
            ),
            ("accesses (%r15)", self.accesses_stack),
            ("accesses (%rip)", self.accesses_rip),
            ("reads that nothing confines", self.reads_unconfined),
            ("string instructions", self.string_instructions),
        ];
        for (what, count) in lines.iter().filter(|(_, count)| *count > 0) {
            writeln!(out, "  {what:<34} {count}")?;
        }
        if self.uses_x87 {
            writeln!(out, "  uses x87")?;
        }
        if self.writes_mxcsr {
            writeln!(out, "  writes %mxcsr")?;
        }
        Ok(())
    }
}
