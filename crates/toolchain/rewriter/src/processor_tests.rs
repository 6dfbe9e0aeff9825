//! Every row of the instruction table against the processor. Each form that the assembler takes of
//! it runs natively with random registers, flags and memory. What it was seen to do must be what
//! the table says it may do.
//!
//! `MULLION_STATES=N` runs each form in N states in place of 3; `MULLION_SEED=N` makes others.

use crate::operand::{FLAG_LETTERS, Operand, Set};
use crate::table::{self, Class, Effects, Role};
use crate::unit::Instruction;
use crate::{parser, table::Row};
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// Names of rows that are not run, with the reason.
const NOT_RUN: &[(&str, &[&str])] = &[
    (
        "goes elsewhere; what it does with registers is the calling convention's",
        &["call", "callq", "jmp", "jmpq", "ret", "retq"],
    ),
    ("ends the process", &["ud2", "int3"]),
];

/// What no image holds: the assembler would write rows with operands of these.
pub(crate) const ARCHITECTURE: &str =
    "\t.arch .noavx512f\n\t.arch .novaes\n\t.arch .novpclmulqdq\n";

/// How many forms run at least: what a new assembler or a mistake here would lose is seen.
const FORMS: usize = 11_000;

/// Operands by place; the last ones of each are registers that some forms demand.
const FIRST: &[&str] = &[
    "%sil",
    "%bh",
    "%si",
    "%esi",
    "%rsi",
    "MEMORY",
    "$5",
    "$0",
    "$1",
    "$33",
    "$-1",
    "%xmm1",
    "%ymm1",
    "%st",
    "%st(2)",
    "%cl",
    "%ax",
    "%xmm0",
    "8(%rsi,%rbp,4)",
    "8(%rsi)",
];
const SECOND: &[&str] = &[
    "%dil", "%dh", "%di", "%edi", "%rdi", "MEMORY", "%xmm2", "%ymm2", "%st", "%st(2)", "%sil",
    "%si", "%esi", "%rsi", "%eax", "%rax",
];
const THIRD: &[&str] = &[
    "%r8w", "%r8d", "%r8", "MEMORY", "%xmm3", "%ymm3", "%esi", "%rsi",
];
const FOURTH: &[&str] = &["MEMORY", "%xmm4", "%ymm4"];
/// The operand in memory, in harness/rows.c.
pub(crate) const MEMORY: &str = "pages+6144(%rip)";

/// A form that runs.
pub(crate) struct Form {
    pub(crate) name: &'static str,
    pub(crate) text: String,
    effects: Effects,
    pub(crate) class: Class,
    roles: Vec<(Operand<'static>, Role)>,
}

#[test]
fn every_row_is_what_the_processor_does() {
    let wide = std::arch::is_x86_feature_detected!("avx");
    let forms = forms();
    let number = |name: &str, default: u64| {
        let value = std::env::var(name).ok();
        value.map_or(default, |v| v.parse().expect(name))
    };
    let (seed, states) = (number("MULLION_SEED", 1), number("MULLION_STATES", 3));
    let output = run(&forms, wide, seed, states);
    let mut wrong = Vec::new();
    let mut ran: HashSet<&str> = HashSet::new();
    let mut silent: BTreeMap<&str, String> = BTreeMap::new();
    let mut count = 0;
    for (form, line) in forms.iter().zip(output.lines()) {
        let seen = Seen::read(line);
        if seen.runs == 0 {
            let why = if seen.illegal {
                "unknown to this processor"
            } else {
                "always faults"
            };
            silent.insert(form.name, format!("{} {why}", form.text));
            continue;
        }
        count += 1;
        ran.insert(form.name);
        wrong.extend(form.compare(&seen));
    }
    assert_eq!(
        output.lines().count(),
        forms.len(),
        "the harness stopped early"
    );
    assert!(
        wrong.is_empty(),
        "{} of {count} forms:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(count >= FORMS, "only {count} forms ran");
    let left_out: HashSet<&str> = NOT_RUN
        .iter()
        .flat_map(|(_, names)| *names)
        .copied()
        .collect();
    let mut missing: Vec<String> = table::names()
        .filter(|name| !ran.contains(name) && !left_out.contains(name))
        .map(|name| {
            format!(
                "{name}: {}",
                silent.get(name).map_or("no form", String::as_str)
            )
        })
        .collect();
    missing.sort();
    let surplus: Vec<&&str> = left_out
        .iter()
        .filter(|name| ran.contains(**name))
        .collect();
    assert!(
        surplus.is_empty(),
        "listed as not run, and ran: {surplus:?}"
    );
    println!(
        "{count} forms of {} names, seed {seed}, {states} states each",
        ran.len()
    );
    for name in &missing {
        println!("not run: {name}");
    }
    let absent = missing
        .iter()
        .all(|text| text.ends_with("unknown to this processor"));
    assert!(
        absent,
        "rows that no form was run of:\n{}",
        missing.join("\n")
    );
    if processor_is_recent() {
        assert!(missing.is_empty(), "{} rows were not run", missing.len());
    }
}

/// Whether this processor has everything that the table has rows for.
fn processor_is_recent() -> bool {
    let has = [
        std::arch::is_x86_feature_detected!("avx2"),
        std::arch::is_x86_feature_detected!("fma"),
        std::arch::is_x86_feature_detected!("f16c"),
        std::arch::is_x86_feature_detected!("bmi1"),
        std::arch::is_x86_feature_detected!("bmi2"),
        std::arch::is_x86_feature_detected!("lzcnt"),
        std::arch::is_x86_feature_detected!("adx"),
        std::arch::is_x86_feature_detected!("aes"),
        std::arch::is_x86_feature_detected!("pclmulqdq"),
        std::arch::is_x86_feature_detected!("sha"),
        std::arch::is_x86_feature_detected!("movbe"),
    ];
    has.into_iter().all(|has| has)
}

impl Form {
    /// What the processor did and the table does not say.
    fn compare(&self, seen: &Seen) -> Vec<String> {
        let mut wrong = Vec::new();
        let effects = &self.effects;
        let mut report =
            |what: String| wrong.push(format!("{}: {what}", self.text.replace('\n', ";")));
        let moves_stack = matches!(self.class, Class::Push | Class::Pop | Class::Leave);
        for register in 0..16_u8 {
            let bit: Set = 1 << register;
            let one = &seen.words[usize::from(register)];
            let name = crate::operand::Gpr::new(register, 8);
            if one.changed != 0 && effects.writes & bit == 0 && !(moves_stack && register == 4) {
                report(format!("changes {name} ({:#x})", one.changed));
            }
            let (low, high) = (one.read as u32, (one.read >> 32) as u32);
            if low != 0 && effects.reads & bit == 0 {
                report(format!("depends on {name} ({low:#x})"));
            }
            if high != 0 && effects.whole & bit == 0 {
                report(format!("depends on the upper half of {name} ({high:#x})"));
            }
            let (low, high) = (one.kept as u32, (one.kept >> 32) as u32);
            if effects.kills & bit != 0
                && ((low != 0 && effects.reads & bit == 0)
                    || (high != 0 && effects.whole & bit == 0))
            {
                report(format!("leaves a part of {name} ({:#x})", one.kept));
            }
        }
        let flags = &seen.words[16];
        for (index, letter) in FLAG_LETTERS.chars().enumerate() {
            let place = [0, 2, 4, 6, 7, 11][index];
            let has = |set: u64| set & (1 << place) != 0;
            let bit: Set = 1 << (16 + index);
            if has(flags.changed) && effects.writes & bit == 0 {
                report(format!("changes the flag {letter}"));
            }
            if has(flags.read) && effects.reads & bit == 0 {
                report(format!("depends on the flag {letter}"));
            }
            if has(flags.kept) && effects.kills & bit != 0 && effects.reads & bit == 0 {
                report(format!("leaves the flag {letter}"));
            }
        }
        self.compare_memory(seen, &mut report);
        wrong
    }

    fn compare_memory(&self, seen: &Seen, report: &mut impl FnMut(String)) {
        let memory = self
            .roles
            .iter()
            .find(|(o, _)| matches!(o, Operand::Mem(_)));
        let (reads, writes) = match (self.class, memory) {
            // The stack, and what their registers point to.
            (Class::String | Class::Push | Class::Pop | Class::Leave, _) => return,
            (_, Some((_, role))) => (role.reads(), role.writes()),
            (_, None) => (false, false),
        };
        if seen.memory.changed & !u64::from(writes) != 0 {
            report(format!("changes memory ({:#x})", seen.memory.changed));
        }
        if seen.memory.read & !u64::from(reads) != 0 {
            report(format!("depends on memory ({:#x})", seen.memory.read));
        }
        let all = u64::from(self.text.starts_with("vzero")) * 0xffff;
        // The mask, if it is not named.
        let implicit = all
            | u64::from(
                [
                    "blendv",
                    "pblendv",
                    "sha256rnds2",
                    "pcmpestrm",
                    "pcmpistrm",
                    "vpcmpestrm",
                    "vpcmpistrm",
                ]
                .iter()
                .any(|name| self.text.starts_with(name)),
            );
        let named = |wanted: fn(Role) -> bool| {
            let vectors = self
                .roles
                .iter()
                .filter_map(|(operand, role)| match operand {
                    Operand::Other(name) if wanted(*role) => name.get(4..)?.parse::<u32>().ok(),
                    _ => None,
                });
            vectors.fold(implicit, |set, number| set | 1 << number)
        };
        if seen.vectors.changed & !named(Role::writes) != 0 {
            report(format!(
                "changes vector registers ({:#x})",
                seen.vectors.changed
            ));
        }
        // What stays in a destination is no concern of the rewriter, which watches no vector registers.
        if seen.vectors.read & !named(|_| true) != 0 {
            report(format!(
                "depends on vector registers ({:#x})",
                seen.vectors.read
            ));
        }
    }
}

#[derive(Clone, Copy)]
struct Word {
    changed: u64,
    read: u64,
    kept: u64,
}

/// What the harness saw of one form.
struct Seen {
    runs: u64,
    illegal: bool,
    /// Registers, then flags.
    words: [Word; 17],
    memory: Word,
    vectors: Word,
}

impl Seen {
    fn read(line: &str) -> Self {
        let mut fields = line.split(' ');
        let mut next = |radix| {
            let field = fields.next().expect("a field of the harness's output");
            u64::from_str_radix(field, radix).expect("a number")
        };
        next(10);
        let (runs, illegal) = (next(10), next(10) != 0);
        let mut triple = || Word {
            changed: next(16),
            read: next(16),
            kept: next(16),
        };
        let words = [(); 17].map(|()| triple());
        let mut pair = || Word {
            changed: next(16),
            read: next(16),
            kept: 0,
        };
        let (memory, vectors) = (pair(), pair());
        Self {
            runs,
            illegal,
            words,
            memory,
            vectors,
        }
    }
}

/// Every form that both the rewriter and the assembler take.
pub(crate) fn forms() -> Vec<Form> {
    let mut names: Vec<&'static str> = table::names().collect();
    names.sort_unstable();
    let mut forms = Vec::new();
    for name in names {
        if NOT_RUN.iter().any(|(_, names)| names.contains(&name)) {
            continue;
        }
        for row in table::rows_of(name) {
            candidates(name, row, &mut forms);
        }
    }
    let refused = refused_by_assembler(&forms);
    let mut number = 0;
    forms.retain(|_| {
        number += 1;
        !refused.contains(&(number - 1))
    });
    forms
}

fn candidates(name: &'static str, row: &Row, forms: &mut Vec<Form>) {
    if row.class == Class::Jcc {
        // Seen by what is skipped.
        let mut form = form(name, format!("{name} 1f"), false).expect("a conditional jump");
        form.text.push_str("\nnotq %rsi\n1:");
        form.effects.reads |= 1 << 6;
        form.effects.whole |= 1 << 6;
        form.effects.writes |= 1 << 6;
        forms.push(form);
        return;
    }
    let mut texts = vec![String::new()];
    let places = [FIRST, SECOND, THIRD, FOURTH];
    for (index, role) in row.roles.iter().enumerate() {
        // The last places of few rows are of many kinds.
        let several = row.roles.len() >= 3;
        let (before, choices) = (texts, places[index]);
        texts = Vec::new();
        for text in before {
            for operand in choices {
                let small = [
                    "%sil", "%bh", "%ax", "%st", "%st(2)", "%dil", "%dh", "$1", "$33", "$-1",
                ];
                let vector = |o: &str| o.starts_with("%xmm") || o.starts_with("%ymm");
                let unlikely = (several && small.contains(operand))
                    || (row.roles.len() == 4
                        && index > 0
                        && !vector(operand)
                        && *operand != "MEMORY")
                    || (text.contains("MEMORY") && *operand == "MEMORY")
                    || (operand.contains("(%r") && *role != Role::Address)
                    || (operand.starts_with('$') && role.writes());
                if !unlikely {
                    let comma = if index == 0 { " " } else { ", " };
                    texts.push(format!("{text}{comma}{operand}"));
                }
            }
        }
    }
    for operands in texts {
        for prefix in ["", "lock ", "rep ", "repne "] {
            let suits = match prefix {
                "" => true,
                "lock " => operands.ends_with("MEMORY") && row.class != Class::String,
                _ => row.class == Class::String || (prefix == "rep " && name.starts_with("bs")),
            };
            if suits {
                forms.extend(form(name, format!("{prefix}{name}{operands}"), true));
            }
        }
    }
}

/// The form, if the rewriter takes it.
fn form(name: &'static str, text: String, placed: bool) -> Option<Form> {
    let text = if placed {
        text.replace("MEMORY", MEMORY)
    } else {
        text
    };
    // Operands borrow from the text; this is a test.
    let kept: &'static str = Box::leak(format!("\t{text}\n").into_boxed_str());
    let mut refusals = Vec::new();
    let unit = parser::parse(kept, &mut refusals);
    let [instruction]: &[Instruction<'static>; 1] = unit.instructions.as_slice().try_into().ok()?;
    refusals.is_empty().then(|| Form {
        name,
        text,
        effects: instruction.effects(),
        class: instruction.row.class,
        roles: instruction
            .operands
            .iter()
            .copied()
            .zip(instruction.row.roles.iter().copied())
            .collect(),
    })
}

fn refused_by_assembler(forms: &[Form]) -> HashSet<usize> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let source = directory.path().join("all.s");
    let before = ARCHITECTURE.lines().count();
    let lines: String = forms
        .iter()
        .map(|f| format!("{}\n", f.text.replace('\n', ";")))
        .collect();
    std::fs::write(&source, format!("{ARCHITECTURE}{lines}")).expect("a temporary file");
    let output = Command::new("as")
        .args(["-W", "-o", "/dev/null"])
        .arg(&source)
        .output()
        .expect("the assembler");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let errors = errors.lines().filter(|line| line.contains("Error"));
    errors
        .map(|line| {
            line.split(':')
                .nth(1)
                .and_then(|n| n.parse::<usize>().ok())
                .expect("a line")
                - 1
                - before
        })
        .collect()
}

fn run(forms: &[Form], wide: bool, seed: u64, states: u64) -> String {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut text = String::from("\t.text\n");
    let mut list = String::from(
        "\t.section .data.rel.ro,\"aw\"\n\t.balign 8\n\t.globl forms, form_count\nforms:\n",
    );
    for (number, form) in forms.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "form{number}: {}\n\tjmp returned", form.text);
        let string = form.class == Class::String;
        let counted = string && form.text.starts_with("rep");
        let addresses = if string {
            0xc0
        } else {
            u32::from(form.class == Class::Leave) << 5
        };
        let named = form
            .roles
            .iter()
            .fold(0, |set, (operand, _)| match operand {
                Operand::Gpr(register) => set | register.bit(),
                _ => set,
            });
        let looked_at = (form.effects.reads | form.effects.writes | named) & 0xffff;
        let count = u32::from(counted) << 1;
        let _ = writeln!(
            list,
            "\t.quad form{number}\n\t.long {looked_at}, {addresses}, {count}, 0"
        );
    }
    let _ = writeln!(
        list,
        "form_count: .quad {}\n\t.section .note.GNU-stack,\"\",@progbits",
        forms.len()
    );
    let path = |name: &str| directory.path().join(name);
    std::fs::write(path("forms.s"), text + &list).expect("a temporary file");
    let harness = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/harness/rows.c");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-w", "-Wa,-W", "-no-pie", "-o"])
        .arg(path("rows"));
    if wide {
        gcc.arg("-DWIDE");
    }
    let built = gcc
        .arg(harness)
        .arg(path("forms.s"))
        .output()
        .expect("the compiler");
    assert!(
        built.status.success(),
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );
    let output = Command::new(path("rows"))
        .args([seed.to_string(), states.to_string()])
        .output()
        .expect("the harness");
    assert!(output.status.success(), "{}", output.status);
    String::from_utf8(output.stdout).expect("text")
}
