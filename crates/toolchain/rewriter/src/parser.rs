//! From statements to a [`Unit`].

use crate::cfi;
use crate::lexer::{self, StatementKind, is_symbol_byte, symbol_length};
use crate::operand::{Operand, number, operand, split_operands};
use crate::refusal::{Reason, Refusal};
use crate::spelled::Bytes;
use crate::table::{self, Class, DirectiveClass};
use crate::unit::{Instruction, Item, Label, LabelId, Position, Section, Unit, prefix};
use std::collections::HashMap;

/// Reads the whole file.
pub(crate) fn parse<'a>(source: &'a str, refusals: &mut Vec<Refusal>) -> Unit<'a> {
    let mut parser = Parser::new(refusals);
    let end = lexer::split(source, |statement| {
        parser.statement(statement.line, statement.kind)
    });
    if let Err(lexer::Unfinished(line)) = end {
        parser.refuse(line, "", Reason::Unfinished);
    }
    parser.finish()
}

struct Parser<'a, 'r> {
    unit: Unit<'a>,
    names: HashMap<&'a str, LabelId>,
    /// By name and group.
    section_names: HashMap<(&'a str, &'a str), usize>,
    section: usize,
    previous: usize,
    stack: Vec<(usize, usize)>,
    /// Local numeric labels: the latest, and the one that `f` means.
    backward: HashMap<&'a str, LabelId>,
    forward: HashMap<&'a str, LabelId>,
    /// Prefixes that stood alone, with the text and line of the first.
    prefixes: u8,
    cfa: cfi::Tracker,
    lsda: Lsda,
    refusals: &'r mut Vec<Refusal>,
}

/// Progress through a language-specific data area: its call-site table holds
/// fours of start, length, landing pad and action.
#[derive(Default)]
struct Lsda {
    /// The encoding of the call-site table, `.byte 1`, came last.
    encoding_seen: bool,
    /// The label that ends the table.
    end: Option<LabelId>,
    /// Entries seen of the table.
    seen: u32,
    start: Option<LabelId>,
}

impl<'a, 'r> Parser<'a, 'r> {
    fn new(refusals: &'r mut Vec<Refusal>) -> Self {
        let mut parser = Self {
            unit: Unit::default(),
            names: HashMap::new(),
            section_names: HashMap::new(),
            section: 0,
            previous: 0,
            stack: Vec::new(),
            backward: HashMap::new(),
            forward: HashMap::new(),
            prefixes: 0,
            cfa: cfi::Tracker::default(),
            lsda: Lsda::default(),
            refusals,
        };
        parser.section = parser.section_id(".text", "", (".text", ""));
        parser
    }

    fn refuse(&mut self, line: u32, text: &str, reason: Reason) {
        self.refusals.push(Refusal::new(line, text, reason));
    }

    fn item(&mut self, line: u32, item: Item<'a>) {
        self.unit.items.push((item, self.section, line));
    }

    fn statement(&mut self, line: u32, kind: StatementKind<'a>) {
        match kind {
            StatementKind::Marker(text) => self.item(line, Item::Marker(text)),
            StatementKind::Label(name) => self.label(line, name),
            StatementKind::Assign(name, expression) => self.assign(line, name, expression),
            StatementKind::Directive(name, arguments) => self.directive(line, name, arguments),
            StatementKind::Instruction(text) => {
                if let Err(reason) = self.instruction(line, text) {
                    self.refuse(line, text, reason);
                }
            }
        }
    }

    fn symbol(&mut self, name: &'a str) -> LabelId {
        let labels = &mut self.unit.labels;
        *self.names.entry(name).or_insert_with(|| {
            labels.push(Label {
                name,
                ..Label::default()
            });
            labels.len() - 1
        })
    }

    fn label(&mut self, line: u32, name: &'a str) {
        let id = if name.bytes().all(|b| b.is_ascii_digit()) {
            let id = self
                .forward
                .remove(name)
                .unwrap_or_else(|| self.anonymous(name));
            self.backward.insert(name, id);
            id
        } else {
            self.symbol(name)
        };
        if self.unit.labels[id].section.is_some() {
            return self.refuse(line, name, Reason::Redefined);
        }
        if self.lsda.end == Some(id) {
            self.lsda = Lsda::default();
        }
        self.unit.labels[id].section = Some(self.section);
        self.item(line, Item::Label(id));
    }

    fn anonymous(&mut self, name: &'a str) -> LabelId {
        self.unit.labels.push(Label {
            name,
            ..Label::default()
        });
        self.unit.labels.len() - 1
    }

    fn assign(&mut self, line: u32, name: &'a str, expression: &'a str) {
        if name == "." {
            return self.refuse(
                line,
                name,
                Reason::Directive("moving the location counter is not supported; write .balign, or .skip in a section of data"),
            );
        }
        if symbol_length(expression) == expression.len()
            && !expression.starts_with(|c: char| c.is_ascii_digit())
            && expression != "."
        {
            let target = self.symbol(expression);
            let id = self.symbol(name);
            self.unit.labels[id].alias_of = Some(target);
        } else if self.unit.sections[self.section].executable
            && expression.contains('.')
            && expression.trim() == "."
        {
            return self.refuse(
                line,
                name,
                Reason::Directive("use a label in place of an assignment of the location counter"),
            );
        }
        self.item(line, Item::Assign(name, expression));
    }

    /// The symbols that an expression names; `1f` and `1b` as well.
    fn references(&mut self, expression: &'a str, mut each: impl FnMut(&mut Label<'a>)) {
        let bytes = expression.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            match bytes[at] {
                b'"' => at += symbol_length(&expression[at..]).max(1),
                b'@' => {
                    at += 1 + bytes[at + 1..]
                        .iter()
                        .take_while(|b| is_symbol_byte(**b))
                        .count()
                }
                b'\'' => at += 2,
                byte if is_symbol_byte(byte) => {
                    let length = symbol_length(&expression[at..]);
                    let name = &expression[at..at + length];
                    at += length;
                    if !byte.is_ascii_digit() {
                        if name != "." {
                            let id = self.symbol(name);
                            each(&mut self.unit.labels[id]);
                        }
                    } else if let Some(id) = self.local_label(name) {
                        each(&mut self.unit.labels[id]);
                    }
                }
                _ => at += 1,
            }
        }
    }

    /// What `1f` or `1b` means here.
    fn local_label(&mut self, name: &'a str) -> Option<LabelId> {
        let (digits, direction) = name.split_at(name.len() - 1);
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        match direction {
            "b" => self.backward.get(digits).copied(),
            "f" => Some(match self.forward.get(digits) {
                Some(&id) => id,
                None => {
                    let id = self.anonymous(digits);
                    self.forward.insert(digits, id);
                    id
                }
            }),
            _ => None,
        }
    }

    fn directive(&mut self, line: u32, name: &'a str, arguments: &'a str) {
        match name {
            ".text" | ".data" | ".bss" | ".section" | ".pushsection" | ".popsection"
            | ".previous" | ".subsection" => {
                if !self.section_directive(name, arguments) {
                    return self.refuse(line, name, Reason::SectionStack);
                }
                self.lsda = Lsda::default();
                return self.item(line, Item::Directive(name, arguments));
            }
            ".globl" | ".global" | ".weak" => {
                for symbol in arguments.split(',') {
                    let id = self.symbol(symbol.trim());
                    self.unit.labels[id].global = true;
                    self.unit.labels[id].weak |= name == ".weak";
                }
                return self.item(line, Item::Directive(name, arguments));
            }
            ".type" => {
                if let Some((symbol, kind)) = arguments.split_once([',', ' ']) {
                    let id = self.symbol(symbol.trim());
                    self.unit.labels[id].function |=
                        kind.contains("function") || kind.contains("STT_FUNC");
                }
                return self.item(line, Item::Directive(name, arguments));
            }
            ".set" | ".equ" | ".equiv" => {
                if let Some((symbol, expression)) = arguments.split_once(',') {
                    return self.assign(line, symbol.trim(), expression.trim());
                }
            }
            // LLVM's alignment of a function, as GNU as writes it: the power of two comes first, the
            // function's end and what to fill with behind it.
            ".prefalign" => {
                let power = arguments.split(',').next().unwrap_or_default().trim();
                return self.directive(line, ".p2align", power);
            }
            _ if name.starts_with(".cfi_") => {
                if !self.cfa.apply(name, arguments) {
                    return self.refuse(
                        line,
                        name,
                        Reason::Directive("call frame information that cannot be translated"),
                    );
                }
                return self.item(line, Item::Cfi(name, arguments));
            }
            _ => {}
        }
        match table::directive(name) {
            Some(DirectiveClass::Pass) => self.item(line, Item::Directive(name, arguments)),
            Some(DirectiveClass::Align) if self.unit.sections[self.section].executable => {
                self.item(line, Item::Align(name, arguments));
            }
            Some(DirectiveClass::Align) => self.item(line, Item::Directive(name, arguments)),
            Some(DirectiveClass::Data) => self.data(line, name, arguments),
            Some(DirectiveClass::Refuse(reason)) => {
                self.refuse(line, name, Reason::Directive(reason))
            }
            None => self.refuse(line, name, Reason::UnknownDirective),
        }
    }

    fn data(&mut self, line: u32, name: &'a str, arguments: &'a str) {
        let section = &self.unit.sections[self.section];
        if section.executable {
            if crate::spelled::width(name).is_some() {
                let place = self.unit.items.len();
                self.unit.bytes.push(Bytes {
                    name,
                    arguments,
                    place,
                    section: self.section,
                });
            }
            return self.refuse(line, name, Reason::DataInCode);
        }
        if section.unwind {
            self.unwind_data(name, arguments);
        } else if section.allocated && !arguments.starts_with('"') {
            self.references(arguments, |label| label.taken = true);
        }
        self.item(line, Item::Directive(name, arguments));
    }

    /// Data of unwind tables, where only landing pads are targets.
    fn unwind_data(&mut self, name: &str, arguments: &'a str) {
        // LLVM writes a small number of a call-site table as a byte.
        if self.lsda.end.is_some() && name == ".byte" {
            self.lsda.seen += 1;
            return;
        }
        if name != ".uleb128" {
            self.lsda.encoding_seen = name == ".byte" && matches!(arguments, "0x1" | "1");
            return;
        }
        let first = arguments.split(['-', '+']).next().unwrap_or("").trim();
        let is_symbol = first.starts_with(|c: char| !c.is_ascii_digit());
        if self.lsda.encoding_seen && is_symbol {
            self.lsda = Lsda {
                end: Some(self.symbol(first)),
                ..Lsda::default()
            };
            return;
        }
        if self.lsda.end.is_none() {
            return;
        }
        match self.lsda.seen % 4 {
            0 if is_symbol => self.lsda.start = Some(self.symbol(first)),
            2 if is_symbol => {
                let pad = self.symbol(first);
                self.unit.labels[pad].taken = true;
                if let Some(start) = self.lsda.start {
                    self.unit.landing_pads.push((start, pad));
                }
            }
            _ => {}
        }
        self.lsda.seen += 1;
    }

    /// Follows a change of section; false if the stack of sections is empty.
    fn section_directive(&mut self, name: &'a str, arguments: &'a str) -> bool {
        let (section, previous) = (self.section, self.previous);
        match name {
            ".previous" => (self.section, self.previous) = (previous, section),
            ".popsection" => match self.stack.pop() {
                Some(pair) => (self.section, self.previous) = pair,
                None => return false,
            },
            _ => {
                if name == ".pushsection" {
                    self.stack.push((section, previous));
                }
                let (id_name, flags) = match name {
                    ".section" | ".pushsection" => split_section(arguments),
                    ".subsection" => (self.unit.sections[section].name, ""),
                    _ => (name, ""),
                };
                let part = if matches!(name, ".section" | ".pushsection") {
                    flags
                } else {
                    arguments
                };
                let directive = if name == ".pushsection" {
                    (".section", arguments)
                } else {
                    (name, arguments)
                };
                self.section = self.section_id(id_name, part, directive);
                self.previous = section;
            }
        }
        true
    }

    fn section_id(&mut self, name: &'a str, rest: &'a str, directive: (&'a str, &'a str)) -> usize {
        // Flags are given when a section is first named and may be left out later; what
        // tells sections of one name apart is the group, or the number of the subsection.
        let quoted = rest.starts_with('"');
        let group = if quoted {
            rest.split(',')
                .nth(2)
                .filter(|_| rest.split('"').nth(1).is_some_and(|f| f.contains('G')))
        } else {
            Some(rest)
        };
        let key = (name, group.unwrap_or("").trim());
        if let Some(&id) = self.section_names.get(&key) {
            return id;
        }
        let flags = quoted.then(|| rest.split('"').nth(1).unwrap_or(""));
        let bare = name.trim_matches('"');
        let code = [".text", ".init", ".fini"]
            .iter()
            .any(|p| bare == *p || bare.strip_prefix(p).is_some_and(|r| r.starts_with('.')));
        // A section without content (the gates) holds no code, whatever its flags.
        let executable = flags.map_or(code, |f| f.contains('x')) && !rest.contains("@nobits");
        let debug = bare.starts_with(".debug")
            || bare.starts_with(".comment")
            || bare.starts_with(".gnu.lto");
        self.unit.sections.push(Section {
            name,
            directive,
            executable,
            allocated: flags.map_or(!debug, |f| f.contains('a')),
            unwind: bare.starts_with(".gcc_except_table") || bare.starts_with(".eh_frame"),
        });
        self.section_names.insert(key, self.unit.sections.len() - 1);
        self.unit.sections.len() - 1
    }

    fn instruction(&mut self, line: u32, text: &'a str) -> Result<(), Reason> {
        let (mut prefixes, mut rest) = (self.prefixes, text);
        let mnemonic = loop {
            let end = rest.find([' ', '\t']).unwrap_or(rest.len());
            let (word, after) = (&rest[..end], rest[end..].trim_start());
            prefixes |= match word {
                "lock" => prefix::LOCK,
                "rep" | "repe" | "repz" => prefix::REP,
                "repne" | "repnz" => prefix::REPNE,
                "notrack" | "bnd" => 0,
                _ => {
                    rest = after;
                    break word;
                }
            };
            if after.is_empty() {
                self.prefixes = prefixes;
                return Ok(());
            }
            rest = after;
        };
        self.prefixes = 0;
        if table::names_string_operands(mnemonic, rest) {
            rest = "";
        }
        let direct = mnemonic.starts_with('j') || mnemonic.starts_with("call");
        let mut operands = Vec::with_capacity(2);
        for part in split_operands(rest) {
            operands.push(operand(part, direct).map_err(Reason::Operand)?);
        }
        let row =
            table::row_for(mnemonic, &operands).ok_or_else(|| Reason::of_unknown(mnemonic))?;
        let mut instruction = Instruction {
            line,
            section: self.section,
            text,
            prefixes,
            mnemonic,
            operands,
            row,
            target: None,
            narrowed: false,
            cfa: self.cfa.current(),
            arguments: self.cfa.arguments(),
        };
        // What the rewriter's own registers are in goes on all the same: whoever reads bytes asks what stands before.
        let checked = check(&instruction);
        if checked.is_err_and(|reason| reason != Reason::ReservedRegister) {
            return checked;
        }
        if direct {
            instruction.target = self.branch_target(&instruction)?;
        }
        for part in split_operands(rest) {
            if !direct || part.starts_with('*') {
                self.references(part_without_registers(part), |label| label.taken = true);
            }
        }
        self.item(line, Item::Instruction(self.unit.instructions.len()));
        self.unit.instructions.push(instruction);
        checked
    }

    fn branch_target(&mut self, instruction: &Instruction<'a>) -> Result<Option<LabelId>, Reason> {
        let Some(Operand::Target(text)) = instruction.operands.first() else {
            return Ok(None);
        };
        let name = text.strip_suffix("@PLT").unwrap_or(text);
        if symbol_length(name) != name.len() {
            return Err(Reason::BranchTarget);
        }
        let id = if name.starts_with(|c: char| c.is_ascii_digit()) {
            self.local_label(name).ok_or(Reason::BranchTarget)?
        } else if name == "." {
            return Err(Reason::BranchTarget);
        } else {
            self.symbol(name)
        };
        let label = &mut self.unit.labels[id];
        if instruction.row.class == Class::Call {
            label.called = true;
        } else {
            label.jumped_to = true;
        }
        Ok(Some(id))
    }

    /// Puts the instructions in the order of their sections and ties the labels to them.
    fn finish(mut self) -> Unit<'a> {
        if self.prefixes != 0 {
            self.refuse(0, "", Reason::Unfinished);
        }
        let unit = &mut self.unit;
        let mut order: Vec<Position> = (0..unit.instructions.len()).collect();
        order.sort_by_key(|&i| unit.instructions[i].section);
        let mut place = vec![0; order.len()];
        for (new, &old) in order.iter().enumerate() {
            place[old] = new;
        }
        let mut slots: Vec<Option<Instruction<'a>>> = std::mem::take(&mut unit.instructions)
            .into_iter()
            .map(Some)
            .collect();
        unit.instructions = order.iter().filter_map(|&old| slots[old].take()).collect();
        unit.labels_at = vec![Vec::new(); unit.instructions.len()];
        let mut pending: Vec<Vec<LabelId>> = vec![Vec::new(); unit.sections.len()];
        for (item, section, _) in &mut unit.items {
            match item {
                Item::Label(id) => pending[*section].push(*id),
                Item::Instruction(position) => {
                    *position = place[*position];
                    for &id in &pending[*section] {
                        unit.labels[id].at = Some(*position);
                    }
                    unit.labels_at[*position] = std::mem::take(&mut pending[*section]);
                }
                _ => {}
            }
        }
        self.aliases();
        self.unit.find_functions();
        self.unit
    }

    /// What is known of another name holds for the symbol itself.
    fn aliases(&mut self) {
        for id in 0..self.unit.labels.len() {
            let target = self.unit.resolve(id);
            if target != id {
                let alias = &self.unit.labels[id];
                let (global, taken, called, jumped_to, function) = (
                    alias.global,
                    alias.taken,
                    alias.called,
                    alias.jumped_to,
                    alias.function,
                );
                let label = &mut self.unit.labels[target];
                label.global |= global;
                label.taken |= taken;
                label.called |= called;
                label.jumped_to |= jumped_to;
                label.function |= function;
            }
        }
    }
}

/// The name of a section and what follows it.
fn split_section(arguments: &str) -> (&str, &str) {
    let (name, rest) = arguments.split_once(',').unwrap_or((arguments, ""));
    (name.trim(), rest.trim())
}

/// The part of an operand in which symbols may occur.
fn part_without_registers(part: &str) -> &str {
    if part.starts_with('%') && !part.contains(':') {
        return "";
    }
    let part = part
        .strip_prefix('%')
        .map_or(part, |p| p.split_once(':').map_or("", |(_, rest)| rest));
    match part.find("(%").or_else(|| part.find("(,")) {
        Some(open) => &part[..open],
        None => part,
    }
}

/// Rules that hold for every instruction, whatever its row says.
fn check(instruction: &Instruction<'_>) -> Result<(), Reason> {
    let mut memories = 0;
    for (operand, role) in instruction.roles() {
        let (registers, narrow_stack) = match operand {
            Operand::Gpr(r) => {
                let stack = r.number == number::RSP && r.width != 8;
                (r.bit(), stack && (role.writes() || r.width != 4))
            }
            Operand::ThroughGpr(r) => (r.bit(), r.number == number::RSP || r.width != 8),
            Operand::Mem(m) | Operand::ThroughMem(m) => {
                memories += 1;
                let narrow = [m.base, m.index]
                    .into_iter()
                    .flatten()
                    .any(|r| r.number == number::RSP && r.width != 8);
                (m.registers(), narrow)
            }
            Operand::Other(_) | Operand::Imm(_) | Operand::Target(_) => (0, false),
        };
        if registers & (1 << number::R11 | 1 << number::R14 | 1 << number::R15) != 0 {
            return Err(Reason::ReservedRegister);
        }
        if narrow_stack {
            return Err(Reason::NarrowStackPointer);
        }
    }
    let string = instruction.row.class == Class::String;
    let repeats = prefix::REP | prefix::REPNE;
    let fits = match instruction.row.class {
        Class::Ret => instruction.prefixes & !repeats == 0,
        Class::Nop | Class::Drop => instruction.prefixes == 0 || instruction.mnemonic == "nop",
        _ if string => instruction.prefixes & prefix::LOCK == 0,
        // gcc's way to write a tzcnt that older machines take for bsf.
        _ if instruction.mnemonic.starts_with("bsf") && instruction.prefixes == prefix::REP => true,
        _ => {
            instruction.prefixes == 0
                || (instruction.prefixes == prefix::LOCK
                    && memories == 1
                    && instruction
                        .roles()
                        .any(|(o, r)| matches!(o, Operand::Mem(_)) && r.reads() && r.writes()))
        }
    };
    if !fits {
        return Err(Reason::Prefix);
    }
    if memories > 1 || is_another(instruction) {
        return Err(Reason::UnknownInstruction);
    }
    if instruction.row.class == Class::Bit
        && memories == 1
        && matches!(instruction.operands[0], Operand::Gpr(_))
    {
        return Err(Reason::BitString);
    }
    Ok(())
}

/// The assembler takes `crc32q %al, %rcx` and `bextrq $5, %rax, %rcx` for other instructions.
fn is_another(instruction: &Instruction<'_>) -> bool {
    let name = instruction.mnemonic;
    match (instruction.operands.first(), name.strip_prefix("crc32")) {
        (Some(Operand::Gpr(from)), Some(suffix)) => {
            let suffixes = ["b", "w", "l", "q"];
            let at = suffixes.iter().position(|s| *s == suffix);
            at.is_some_and(|at| from.width != 1 << at)
        }
        (Some(Operand::Imm(_)), _) => name.starts_with("bextr"),
        _ => false,
    }
}
