//! Makes the bodies.

use crate::operand::{Gpr, Operand, Set};
use crate::parser;
use crate::processor_tests::{Form, MEMORY, forms};
use crate::table::{Class, Effects};
use std::fmt::Write;

/// Registers that bodies use: all but the stack pointer and the rewriter's own.
const REGISTERS: [u8; 12] = [0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 12, 13];
/// Those that a call preserves.
const PRESERVED: [u8; 4] = [3, 5, 12, 13];

/// The frame: scratch memory, counters of loops, spilled pointers, what is kept for the end.
const SCRATCH: i64 = 64;
const COUNTERS: i64 = 64;
const POINTERS: i64 = 96;
const STATE: i64 = 128;
const SAVED: i64 = 136;
const SAVED_FLAGS: i64 = 144;
const FRAME: i64 = 152;
/// Where pointers begin in the buffer.
const MIDDLE: i64 = 32768;

/// Numbers from a seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

/// Forms that a body may have, by how they are chosen.
pub(super) struct Templates {
    common: Vec<String>,
    general: Vec<String>,
    vector: Vec<String>,
}

/// What faults by its values, changes modes, or tells of this processor.
const LEFT_OUT: &[&str] = &[
    "div",
    "idiv",
    "cpuid",
    "xgetbv",
    "ldmxcsr",
    "vldmxcsr",
    "cmpxchg16b",
    "f",
    "pause",
    "lea",
];
/// What compilers write most, and what is made narrower.
const COMMON: &[&str] = &[
    "movq", "movl", "movslq", "movzbl", "addq", "addl", "subq", "andq", "orq", "xorq", "xorl",
    "imulq", "salq", "shrq", "sarq", "negq", "notq", "incq", "decq", "cltq", "cqto", "cltd",
    "cmpq", "testq", "testl", "adcq", "sbbq", "leaq", "leal", "cmovne", "cmovlq", "cmovb", "setg",
    "sete", "movb", "movw", "mulb", "mulw", "imulw", "cwtd", "bsfl", "bsrl", "xchgq", "shldq",
];

pub(super) fn templates() -> Templates {
    let mut templates = Templates {
        common: Vec::new(),
        general: Vec::new(),
        vector: Vec::new(),
    };
    // Of all that the table has, processors lack this most often.
    let has_sha = std::arch::is_x86_feature_detected!("sha");
    for Form {
        name, text, class, ..
    } in forms()
    {
        let out = LEFT_OUT.iter().any(|out| match *out {
            "f" | "div" | "idiv" => name.starts_with(out),
            // The address would be seen.
            "lea" => name.starts_with(out) && text.contains(MEMORY),
            _ => name == *out,
        });
        let absent = !has_sha && (name.starts_with("sha1") || name.starts_with("sha256"));
        if out || absent || !matches!(class, Class::Plain | Class::Bit | Class::Lea) {
            continue;
        }
        let vector = text.contains("mm");
        if COMMON.contains(&name) {
            templates.common.push(text);
        } else if vector || name.starts_with('v') {
            templates.vector.push(text);
        } else {
            templates.general.push(text);
        }
    }
    assert!(
        templates.common.len() > 500
            && templates.general.len() > 1000
            && templates.vector.len() > 1000
    );
    templates
}

/// What a register holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Number,
    /// An address in the buffer, which differs natively.
    Pointer,
}

struct Body<'t> {
    random: Random,
    templates: &'t Templates,
    text: String,
    kinds: [Kind; 16],
    /// Bytes pushed since the frame was made.
    pushed: i64,
    labels: usize,
    /// Which slots for pointers hold one.
    spilled: [bool; 4],
    loops: i64,
    number: u64,
    left: i64,
}

pub(super) fn body(number: u64, seed: u64, templates: &Templates) -> String {
    let mut body = Body {
        random: Random(seed),
        templates,
        text: String::new(),
        kinds: [Kind::Number; 16],
        pushed: 0,
        labels: 0,
        spilled: [false; 4],
        loops: 0,
        number,
        left: 0,
    };
    body.left = 10 + body.random.below(60) as i64;
    body.begin();
    while body.left > 0 {
        body.piece(0);
    }
    body.end();
    body.text
}

impl Body<'_> {
    fn put(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "\t{line}");
    }

    fn label(&mut self) -> String {
        self.labels += 1;
        format!(".L{}{:03}", self.number + 1, self.labels)
    }

    fn slot(&self, at: i64) -> String {
        format!("{}(%rsp)", at + self.pushed)
    }

    /// Registers are loaded from the state, whose address is in `%rdi`; some are pointers.
    fn begin(&mut self) {
        let n = self.number;
        let _ = writeln!(
            self.text,
            "\t.globl\tbody{n}\n\t.type\tbody{n}, @function\nbody{n}:"
        );
        for register in PRESERVED {
            self.put(format_args!("pushq\t{}", Gpr::new(register, 8)));
        }
        self.put(format_args!("subq\t${FRAME}, %rsp"));
        self.put(format_args!("movq\t%rdi, {STATE}(%rsp)"));
        for at in (0..SCRATCH).step_by(8) {
            self.put(format_args!("movq\t${at}, {at}(%rsp)"));
        }
        for vector in 0..8 {
            self.put(format_args!(
                "movups\t{}(%rdi), %xmm{vector}",
                144 + 16 * vector
            ));
        }
        self.put(format_args!("movzwl\t128(%rdi), %eax"));
        self.put(format_args!("addb\t$127, %al"));
        self.put(format_args!("sahf"));
        for register in REGISTERS.into_iter().filter(|r| *r != 7).chain([7]) {
            let name = Gpr::new(register, 8);
            if self.random.one_in(4) {
                self.kinds[usize::from(register)] = Kind::Pointer;
                let at = MIDDLE + self.random.below(512) as i64;
                self.put(format_args!("leaq\t{at}(%rdi), {name}"));
            } else {
                self.put(format_args!("movq\t{}(%rdi), {name}", 8 * register));
            }
        }
    }

    /// Some of what registers and flags hold is stored; the rest is dead.
    fn end(&mut self) {
        let flags = self.random.one_in(2);
        self.put(format_args!("movq\t%rax, {SAVED}(%rsp)"));
        if flags {
            self.put(format_args!("lahf"));
            self.put(format_args!("seto\t%al"));
            self.put(format_args!("movw\t%ax, {SAVED_FLAGS}(%rsp)"));
        }
        self.put(format_args!("movq\t{STATE}(%rsp), %rax"));
        for register in REGISTERS.into_iter().filter(|r| *r != 0) {
            let (at, pointer) = (
                8 * register,
                self.kinds[usize::from(register)] == Kind::Pointer,
            );
            let width = if pointer {
                8
            } else {
                self.random.of(&[0, 0, 1, 2, 4, 8, 8])
            };
            if pointer {
                self.put(format_args!("subq\t%rax, {}", Gpr::new(register, 8)));
            }
            if width != 0 {
                self.put(format_args!(
                    "mov\t{}, {at}(%rax)",
                    Gpr::new(register, width)
                ));
            }
        }
        for vector in 0..8 {
            self.put(format_args!(
                "movups\t%xmm{vector}, {}(%rax)",
                144 + 16 * vector
            ));
        }
        for (slot, spilled) in self.spilled.into_iter().enumerate() {
            if spilled {
                self.put(format_args!(
                    "movq\t{}(%rsp), %rcx",
                    POINTERS + 8 * slot as i64
                ));
                self.put(format_args!("subq\t%rax, %rcx"));
                self.put(format_args!("movq\t%rcx, {}(%rax)", 512 + 8 * slot));
            }
        }
        for at in (0..SCRATCH).step_by(8) {
            self.put(format_args!("movq\t{at}(%rsp), %rcx"));
            self.put(format_args!("movq\t%rcx, {}(%rax)", 576 + at));
        }
        if flags {
            self.put(format_args!("movzwl\t{SAVED_FLAGS}(%rsp), %ecx"));
            self.put(format_args!("movq\t%rcx, 128(%rax)"));
        }
        self.put(format_args!("movq\t{SAVED}(%rsp), %rcx"));
        if self.kinds[0] == Kind::Pointer {
            self.put(format_args!("subq\t%rax, %rcx"));
        }
        self.put(format_args!("movq\t%rcx, (%rax)"));
        self.put(format_args!("addq\t${FRAME}, %rsp"));
        for register in PRESERVED.into_iter().rev() {
            self.put(format_args!("popq\t{}", Gpr::new(register, 8)));
        }
        let n = self.number;
        let _ = writeln!(self.text, "\tret\n\t.size\tbody{n}, .-body{n}");
    }

    fn piece(&mut self, depth: usize) {
        self.left -= 1;
        match self.random.below(100) {
            0..70 => self.instruction(),
            70..84 => self.pointer(),
            84..88 if depth < 3 => self.pushes(depth),
            88..92 if depth < 3 => self.choice(depth),
            92..94 if depth < 2 => self.repeat(depth),
            94..95 if depth < 2 => self.switch(depth),
            95..97 => self.string(),
            97..98 => self.division(),
            98..99 => self.call(),
            _ => self.instruction(),
        }
    }

    fn pieces(&mut self, depth: usize) {
        for _ in 0..=self.random.below(6) {
            self.piece(depth);
        }
    }

    fn register(&mut self, kind: Kind) -> Option<u8> {
        let of = REGISTERS
            .into_iter()
            .filter(|r| self.kinds[usize::from(*r)] == kind);
        let of: Vec<u8> = of.collect();
        (!of.is_empty()).then(|| self.random.of(&of))
    }

    /// An instruction of the table with other operands.
    fn instruction(&mut self) {
        for _ in 0..20 {
            let templates = self.templates;
            let of = match self.random.below(20) {
                0..11 => &templates.common,
                11..18 => &templates.general,
                _ => &templates.vector,
            };
            let template = &of[self.random.below(of.len())];
            let Some((setup, text, addressed)) = self.instantiate(template) else {
                continue;
            };
            let Some(effects) = effects(&text, addressed) else {
                continue;
            };
            let pointers = self.set(Kind::Pointer);
            // A pointer's value differs: it may be followed, and overwritten as a whole.
            let reads = effects.reads & !addressed;
            if reads & pointers != 0 || effects.writes & !effects.kills & pointers != 0 {
                continue;
            }
            if let Some(setup) = setup {
                self.put(format_args!("{setup}"));
            }
            self.put(format_args!("{text}"));
            for register in REGISTERS {
                if effects.writes & (1 << register) != 0 {
                    self.kinds[usize::from(register)] = Kind::Number;
                }
            }
            return;
        }
    }

    fn set(&self, kind: Kind) -> Set {
        REGISTERS
            .iter()
            .filter(|r| self.kinds[usize::from(**r)] == kind)
            .fold(0, |set, r| set | 1 << r)
    }

    /// Other registers of the same width, and a place in memory: what has to be done before, the
    /// instruction, and the registers that are its address.
    fn instantiate(&mut self, template: &str) -> Option<(Option<String>, String, Set)> {
        let high = ["%bh", "%dh"].iter().any(|name| template.contains(name));
        if high && template.contains("cmpxchg") {
            // Refused beside memory: the other byte of %rax is named by nobody.
            return None;
        }
        let vector = template.contains("mm");
        let (mut out, mut setup, mut addressed) = (String::new(), None, 0);
        let mut rest = template;
        while let Some(at) = rest.find(['%', 'p']) {
            out.push_str(&rest[..at]);
            rest = &rest[at..];
            if let Some(after) = rest.strip_prefix(MEMORY) {
                let (before, place, registers) = self.memory(template, vector, high)?;
                (setup, addressed) = (before, registers);
                out.push_str(&place);
                rest = after;
                continue;
            }
            let end = rest[1..]
                .find(|c: char| !c.is_ascii_alphanumeric())
                .map_or(rest.len(), |n| n + 1);
            let (name, after) = rest.split_at(end);
            rest = after;
            match name {
                "%bh" | "%dh" => {
                    let number = self.random.of(&[0, 1, 2, 3]);
                    let _ = write!(
                        out,
                        "{}",
                        Gpr {
                            number,
                            width: 1,
                            high: true
                        }
                    );
                }
                "%xmm1" | "%xmm2" | "%xmm3" | "%xmm4" | "%ymm1" | "%ymm2" | "%ymm3" | "%ymm4" => {
                    let _ = write!(out, "{}{}", &name[..4], self.random.below(8));
                }
                _ if ["%si", "%di", "%es", "%ed", "%rs", "%rd", "%r8", "%rb"]
                    .iter()
                    .any(|p| name.starts_with(p)) =>
                {
                    let width = crate::operand::gpr(&name[1..])?.width;
                    let legacy: &[u8] = if width == 1 {
                        &[0, 1, 2, 3]
                    } else {
                        &[0, 1, 2, 3, 6, 7]
                    };
                    let number = self.random.of(if high { legacy } else { &REGISTERS });
                    let _ = write!(out, "{}", Gpr::new(number, width));
                }
                _ => out.push_str(name),
            }
        }
        out.push_str(rest);
        Some((setup, out, addressed))
    }

    /// A place in memory, what must be done before, and the registers that it is made of.
    fn memory(
        &mut self,
        template: &str,
        vector: bool,
        high: bool,
    ) -> Option<(Option<String>, String, Set)> {
        let aligned = vector
            && (!template.starts_with('v')
                || ["vmova", "vmovdqa", "vmovnt"]
                    .iter()
                    .any(|p| template.starts_with(p)));
        let at = self.random.below(64) as i64 * 32;
        if aligned || self.random.one_in(8) {
            return Some((None, format!("buffer+{}(%rip)", MIDDLE + at), 0));
        }
        if !vector && self.random.one_in(4) {
            let place = self.random.below(SCRATCH as usize / 2) as i64;
            return Some((None, self.slot(place), 0));
        }
        let at = at + self.random.below(32) as i64 - 512;
        let base = self.register(Kind::Pointer).filter(|r| !high || *r < 8)?;
        let whole = Gpr::new(base, 8);
        if self.random.one_in(3)
            && let Some(index) = self.register(Kind::Number).filter(|r| !high || *r < 8)
        {
            let setup = format!("andl\t${}, {}", 0x1ff, Gpr::new(index, 4));
            let scale = self.random.of(&[1, 2, 4, 8]);
            let place = format!("{at}({whole},{},{scale})", Gpr::new(index, 8));
            return Some((Some(setup), place, 1 << base));
        }
        Some((None, format!("{at}({whole})"), 1 << base))
    }

    /// What is done with pointers.
    fn pointer(&mut self) {
        let to = self.random.of(&REGISTERS);
        let Some(from) = self.register(Kind::Pointer) else {
            let at = MIDDLE + self.random.below(512) as i64;
            self.put(format_args!("leaq\tbuffer+{at}(%rip), {}", Gpr::new(to, 8)));
            self.kinds[usize::from(to)] = Kind::Pointer;
            return;
        };
        let (p, q) = (Gpr::new(from, 8), Gpr::new(to, 8));
        let by = self.random.below(17) as i64 - 8;
        let both = self.kinds[usize::from(to)] == Kind::Pointer;
        match self.random.below(10) {
            0..3 => self.put(format_args!("movq\t{p}, {q}")),
            3 => self.put(format_args!("leaq\t{by}({p}), {q}")),
            4 => return self.put(format_args!("addq\t${by}, {p}")),
            5 if both => return self.put(format_args!("cmpq\t{p}, {q}")),
            6 if both && to != from => {
                self.put(format_args!("subq\t{p}, {q}"));
                self.kinds[usize::from(to)] = Kind::Number;
                return;
            }
            7 if both => return self.put(format_args!("cmovaq\t{p}, {q}")),
            8 => {
                let slot = self.random.below(4);
                self.put(format_args!(
                    "movq\t{p}, {}",
                    self.slot(POINTERS + 8 * slot as i64)
                ));
                self.spilled[slot] = true;
                return;
            }
            _ => {
                let slot = self.random.below(4);
                if !self.spilled[slot] {
                    return;
                }
                self.put(format_args!(
                    "movq\t{}, {q}",
                    self.slot(POINTERS + 8 * slot as i64)
                ));
            }
        }
        self.kinds[usize::from(to)] = Kind::Pointer;
    }

    /// Makes every register of the kind that it was, without touching flags.
    fn restore(&mut self, kinds: [Kind; 16]) {
        for register in REGISTERS {
            let at = usize::from(register);
            if self.kinds[at] != kinds[at] {
                let value = self.random.below(512) as i64;
                match kinds[at] {
                    Kind::Number => {
                        self.put(format_args!("movl\t${value}, {}", Gpr::new(register, 4)))
                    }
                    Kind::Pointer => {
                        let name = Gpr::new(register, 8);
                        self.put(format_args!(
                            "leaq\tbuffer+{}(%rip), {name}",
                            MIDDLE + value
                        ));
                    }
                }
            }
        }
        self.kinds = kinds;
    }

    fn pushes(&mut self, depth: usize) {
        let count = 1 + self.random.below(3);
        let mut pushed = Vec::new();
        for _ in 0..count {
            let register = self.random.of(&REGISTERS);
            self.put(format_args!("pushq\t{}", Gpr::new(register, 8)));
            self.pushed += 8;
            pushed.push(self.kinds[usize::from(register)]);
        }
        self.pieces(depth + 1);
        while let Some(kind) = pushed.pop() {
            let register = self.random.of(&REGISTERS);
            self.put(format_args!("popq\t{}", Gpr::new(register, 8)));
            self.pushed -= 8;
            self.kinds[usize::from(register)] = kind;
        }
    }

    fn condition(&mut self) -> &'static str {
        self.random.of(&[
            "o", "no", "b", "ae", "e", "ne", "be", "a", "s", "ns", "p", "np", "l", "ge", "le", "g",
        ])
    }

    fn choice(&mut self, depth: usize) {
        let (other, end) = (self.label(), self.label());
        let condition = self.condition();
        self.put(format_args!("j{condition}\t{other}"));
        let (kinds, spilled) = (self.kinds, self.spilled);
        self.pieces(depth + 1);
        self.restore(kinds);
        self.spilled = spilled;
        if self.random.one_in(2) {
            self.put(format_args!("jmp\t{end}"));
            let _ = writeln!(self.text, "{other}:");
            self.pieces(depth + 1);
            self.restore(kinds);
            self.spilled = spilled;
            let _ = writeln!(self.text, "{end}:");
        } else {
            let _ = writeln!(self.text, "{other}:");
        }
    }

    fn repeat(&mut self, depth: usize) {
        if self.loops == 4 {
            return;
        }
        let counter = COUNTERS + 8 * self.loops;
        self.loops += 1;
        let (kinds, spilled) = (self.kinds, self.spilled);
        let times = 1 + self.random.below(3);
        self.put(format_args!("movq\t${times}, {}", self.slot(counter)));
        let start = self.label();
        let _ = writeln!(self.text, "{start}:");
        self.pieces(depth + 1);
        self.restore(kinds);
        self.spilled = spilled;
        self.put(format_args!("decq\t{}", self.slot(counter)));
        self.put(format_args!("jne\t{start}"));
        self.loops -= 1;
    }

    /// As compilers write it.
    fn switch(&mut self, depth: usize) {
        let Some(index) = self.register(Kind::Number) else {
            return;
        };
        let others = REGISTERS.into_iter().filter(|r| *r != index);
        let others: Vec<u8> = others.collect();
        let base = self.random.of(&others);
        let offset = self.random.of(&[base, index]);
        let offset = if offset == base { index } else { offset };
        let table = self.label();
        let cases: Vec<String> = (0..4).map(|_| self.label()).collect();
        let end = self.label();
        let (base, index, offset) = (Gpr::new(base, 8), Gpr::new(index, 8), Gpr::new(offset, 8));
        self.put(format_args!("andl\t$3, {}", Gpr::new(index.number, 4)));
        self.put(format_args!("leaq\t{table}(%rip), {base}"));
        self.put(format_args!("movslq\t({base},{index},4), {offset}"));
        self.put(format_args!("addq\t{base}, {offset}"));
        if self.random.one_in(2) {
            let number = self
                .register(Kind::Number)
                .filter(|r| *r != base.number && *r != offset.number);
            if let Some(number) = number {
                self.put(format_args!("testb\t$5, {}", Gpr::new(number, 1)));
            }
        }
        self.put(format_args!("jmp\t*{offset}"));
        self.put(format_args!(".section\t.rodata"));
        let _ = writeln!(self.text, "\t.align 4\n{table}:");
        for case in &cases {
            self.put(format_args!(".long\t{case}-{table}"));
        }
        self.put(format_args!(".text"));
        self.kinds[usize::from(base.number)] = Kind::Number;
        self.kinds[usize::from(offset.number)] = Kind::Number;
        let (kinds, spilled) = (self.kinds, self.spilled);
        for case in &cases {
            let _ = writeln!(self.text, "{case}:");
            for register in [base, offset] {
                let value = self.random.below(1000);
                self.put(format_args!(
                    "movl\t${value}, {}",
                    Gpr::new(register.number, 4)
                ));
            }
            if offset.number != index.number {
                let name = Gpr::new(index.number, 4);
                self.put(format_args!("movl\t$7, {name}"));
            }
            // The flags of sums of addresses differ.
            let number = self.random.below(256);
            self.put(format_args!(
                "cmpb\t${number}, {}",
                Gpr::new(offset.number, 1)
            ));
            self.pieces(depth + 1);
            self.restore(kinds);
            self.spilled = spilled;
            self.put(format_args!("jmp\t{end}"));
        }
        let _ = writeln!(self.text, "{end}:");
    }

    fn string(&mut self) {
        let value = self.random.below(2048) as i64;
        self.put(format_args!("leaq\tbuffer+{}(%rip), %rdi", MIDDLE + value));
        self.put(format_args!(
            "leaq\tbuffer+{}(%rip), %rsi",
            MIDDLE + value / 2
        ));
        let repeated = self.random.one_in(2);
        if repeated {
            let times = self.random.below(9);
            self.put(format_args!("movl\t${times}, %ecx"));
        }
        let name = self.random.of(&["movs", "stos", "lods", "scas", "cmps"]);
        let size = self.random.of(&["b", "w", "l", "q"]);
        let rep = match (repeated, name) {
            (false, _) => "",
            (true, "scas" | "cmps") => self.random.of(&["repz ", "repnz "]),
            _ => "rep ",
        };
        for (register, kind) in [(7, Kind::Pointer), (6, Kind::Pointer), (1, Kind::Number)] {
            if register != 1 || repeated {
                self.kinds[register] = kind;
            }
        }
        if matches!(name, "stos" | "lods" | "scas") {
            self.put(format_args!("movq\t${value}, %rax"));
            self.kinds[0] = Kind::Number;
        }
        self.put(format_args!("{rep}{name}{size}"));
    }

    fn division(&mut self) {
        let by = self.random.of(&[3, 5, 6, 8, 9, 12]);
        if self.kinds[by] == Kind::Pointer || self.kinds[0] == Kind::Pointer {
            return;
        }
        let by = Gpr::new(by as u8, self.random.of(&[1, 2, 4, 8]));
        self.put(format_args!(
            "or{}\t$1, {by}",
            ["b", "w", "l", "q"][by.width.trailing_zeros() as usize]
        ));
        match by.width {
            1 => self.put(format_args!("movzbl\t%al, %eax")),
            2 => self.put(format_args!("movw\t$0, %dx")),
            4 => self.put(format_args!("movl\t$0, %edx")),
            _ => self.put(format_args!("xorl\t%edx, %edx")),
        }
        if by.width == 2 && self.kinds[2] == Kind::Pointer {
            self.put(format_args!("movl\t$0, %edx"));
        }
        self.put(format_args!("div\t{by}"));
        if by.width > 1 {
            self.kinds[2] = Kind::Number;
        }
        // Its flags are undefined.
        self.put(format_args!("testb\t%al, %al"));
    }

    fn call(&mut self) {
        for register in [7, 6] {
            if self.kinds[register] == Kind::Pointer {
                self.put(format_args!("movl\t$77, {}", Gpr::new(register as u8, 4)));
                self.kinds[register] = Kind::Number;
            }
        }
        self.put(format_args!("call\thelper"));
        self.kinds[0] = Kind::Number;
        for register in REGISTERS
            .into_iter()
            .filter(|r| *r != 0 && !PRESERVED.contains(r))
        {
            let value = self.random.below(1000);
            self.put(format_args!("movl\t${value}, {}", Gpr::new(register, 4)));
            self.kinds[usize::from(register)] = Kind::Number;
        }
        for vector in 0..8 {
            self.put(format_args!(
                "movups\tbuffer+{}(%rip), %xmm{vector}",
                MIDDLE + 16 * vector
            ));
        }
        self.put(format_args!("cmpb\t$9, %al"));
    }
}

/// What the instruction does, if the rewriter takes it.
fn effects(text: &str, addressed: Set) -> Option<Effects> {
    let line = format!("\t{text}\n");
    let mut refusals = Vec::new();
    let unit = parser::parse(&line, &mut refusals);
    let [instruction] = unit.instructions.as_slice() else {
        return None;
    };
    // What makes the address may not be what is computed with, too.
    let value = instruction.roles().any(|(operand, role)| {
        matches!(operand, Operand::Gpr(register) if register.bit() & addressed != 0 && role.reads())
    });
    let twice = value || instruction.row.implicit.reads & addressed != 0;
    (refusals.is_empty() && !twice).then(|| instruction.effects())
}
