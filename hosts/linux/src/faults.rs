//! Faults put into a module's source, seeded: the same one for the plain kernel and for the walled module.
//!
//! The kinds are those of the Rio and Nooks projects, as far as C has them. Which one a seed gives depends on the seed and the
//! source alone.

use std::fmt;

/// What is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A statement is missing.
    Deleted,
    /// A condition is turned round.
    Branch,
    /// A comparison is off by one.
    OffByOne,
    /// A pointer is to what lies behind.
    NextObject,
    /// A pointer has one bit changed.
    BitOfPointer,
    /// A variable is not initialised.
    Initialisation,
    /// A copy is longer than its memory.
    Overrun,
    /// A release is made twice.
    Twice,
    /// A lock or a page stays locked.
    Unlock,
    /// A loop has no end.
    Endless,
}

/// All kinds, in the order of the table.
pub const KINDS: [Kind; 10] = [
    Kind::Deleted,
    Kind::Branch,
    Kind::OffByOne,
    Kind::NextObject,
    Kind::BitOfPointer,
    Kind::Initialisation,
    Kind::Overrun,
    Kind::Twice,
    Kind::Unlock,
    Kind::Endless,
];

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Kind::Deleted => "deleted",
            Kind::Branch => "branch",
            Kind::OffByOne => "off-by-one",
            Kind::NextObject => "next-object",
            Kind::BitOfPointer => "bit-of-pointer",
            Kind::Initialisation => "initialisation",
            Kind::Overrun => "overrun",
            Kind::Twice => "twice",
            Kind::Unlock => "unlock",
            Kind::Endless => "endless",
        })
    }
}

/// A changed source.
#[derive(Clone, Debug)]
pub struct Fault {
    /// What was changed.
    pub kind: Kind,
    /// Which line, from 1.
    pub line: usize,
    /// The whole text.
    pub text: String,
}

/// Numbers that follow from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound.max(1) as u64) as usize
    }
}

/// Puts the seed's fault into one of these sources: which one, and the fault. None: its kind has no place in any of them.
#[must_use]
pub fn inject(sources: &[String], seed: u64) -> Option<(usize, Fault)> {
    let mut random = Random(seed);
    let kind = KINDS[random.below(KINDS.len())];
    let bit = random.below(40);
    let mut places = Vec::new();
    for (number, text) in sources.iter().enumerate() {
        for (line, changed) in candidates(text, kind, bit) {
            places.push((number, line, changed));
        }
    }
    if places.is_empty() {
        return None;
    }
    let (number, line, changed) = places.swap_remove(random.below(places.len()));
    let lines = sources[number].lines().enumerate();
    let text: String = lines
        .flat_map(|(at, old)| [if at == line { &changed } else { old }, "\n"])
        .collect();
    let line = line + 1;
    Some((number, Fault { kind, line, text }))
}

/// Lines within functions that the kind can change, and the changed lines.
fn candidates(text: &str, kind: Kind, bit: usize) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let (mut is_inside, mut is_first) = (false, false);
    for (number, line) in text.lines().enumerate() {
        match line {
            "{" => (is_inside, is_first) = (true, true),
            "}" => is_inside = false,
            _ if !is_inside
                || line.ends_with('\\')
                || line.trim_start().starts_with(['*', '/', '#']) => {}
            _ => {
                if line.trim().is_empty() {
                    is_first = false;
                }
                found.extend(change(line, kind, bit, is_first).map(|changed| (number, changed)));
            }
        }
    }
    found
}

/// The line with a fault of this kind. `is_declaration`: it is among a function's first.
fn change(line: &str, kind: Kind, bit: usize, is_declaration: bool) -> Option<String> {
    let trimmed = line.trim();
    let is_statement = trimmed.ends_with(");")
        && !is_declaration
        && !trimmed.starts_with("return")
        && trimmed.matches('(').count() == trimmed.matches(')').count()
        && !trimmed.starts_with(['"', ')', '&', '|']);
    let releases = [
        "brelse(",
        "kfree(",
        "iput(",
        "put_page(",
        "kmem_cache_free(",
        "ext2_put_page(",
    ];
    let unlocks = [
        "unlock(",
        "unlock_page(",
        "unlock_buffer(",
        "unlock_new_inode(",
    ];
    match kind {
        Kind::Deleted => {
            let is_whole = is_statement
                || trimmed.ends_with(';') && trimmed.contains("->") && trimmed.contains(" = ");
            let goes = is_whole && !is_declaration && !trimmed.starts_with("return");
            goes.then(|| ";".to_owned())
        }
        Kind::Branch => {
            let rest = trimmed.strip_prefix("if (")?.strip_suffix(')')?;
            Some(format!("if (!({rest}))"))
        }
        Kind::OffByOne => {
            let pairs = [
                (" < ", " <= "),
                (" <= ", " < "),
                (" > ", " >= "),
                (" >= ", " > "),
            ];
            let (old, new) = pairs.into_iter().find(|(old, _)| line.contains(old))?;
            Some(line.replacen(old, new, 1))
        }
        Kind::NextObject => pointer(line, |name| format!("({name} + 1)->")),
        Kind::BitOfPointer => pointer(line, |name| {
            format!("((typeof({name}))((unsigned long)({name}) ^ (1ul << {bit})))->")
        }),
        Kind::Initialisation => {
            let (left, right) = line.split_once(" = ")?;
            let is_plain = is_declaration && right.ends_with(';') && !left.contains("const");
            (is_plain && !left.contains(',') && !right.contains(", ")).then(|| format!("{left};"))
        }
        Kind::Overrun => {
            let copies = ["memcpy(", "memset(", "memmove("];
            let copies = is_statement && copies.iter().any(|name| trimmed.starts_with(name));
            let before = trimmed.strip_suffix(");")?;
            copies.then(|| format!("{before} + 4096);"))
        }
        Kind::Twice => {
            let is_release = is_statement && releases.iter().any(|name| trimmed.starts_with(name));
            is_release.then(|| format!("{{ {trimmed} {trimmed} }}"))
        }
        Kind::Unlock => {
            let is_unlock = is_statement && unlocks.iter().any(|name| trimmed.contains(name));
            is_unlock.then(|| ";".to_owned())
        }
        Kind::Endless => is_statement.then(|| format!("for (;;) {trimmed}")),
    }
}

/// The first `NAME->` with something else in its place.
fn pointer(line: &str, other: impl Fn(&str) -> String) -> Option<String> {
    let arrow = line.find("->")?;
    let before = &line[..arrow];
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let name = before.rsplit(|c| !is_name(c)).next()?;
    let head = &before[..before.len() - name.len()];
    let is_variable = name.starts_with(|c: char| c.is_ascii_lowercase());
    // `&p->x` and `a.p->x` are pointers, too; a member of something else is left alone.
    let stands_alone = !head.ends_with(['.', '>', '"']);
    (is_variable && stands_alone).then(|| format!("{head}{}{}", other(name), &line[arrow + 2..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "int f(struct s *p)\n{\n\tint n = p->length;\n\n\tif (n < 4)\n\t\tg(p);\n\tmemcpy(p->to, p->from, n);\n\tkfree(p);\n\tmutex_unlock(&lock);\n\treturn n;\n}\n";

    fn changed(kind: Kind) -> Vec<String> {
        let all = candidates(SOURCE, kind, 20);
        all.into_iter()
            .map(|(_, line)| line.trim().to_owned())
            .collect()
    }

    #[test]
    fn each_kind_finds_its_places() {
        assert_eq!(changed(Kind::Branch), ["if (!(n < 4))"]);
        assert_eq!(changed(Kind::OffByOne), ["if (n <= 4)"]);
        assert_eq!(changed(Kind::Initialisation), ["int n;"]);
        assert_eq!(changed(Kind::Twice), ["{ kfree(p); kfree(p); }"]);
        assert_eq!(changed(Kind::Unlock), [";"]);
        assert_eq!(
            changed(Kind::Overrun),
            ["memcpy(p->to, p->from, n + 4096);"]
        );
        assert_eq!(changed(Kind::Deleted).len(), 4);
        assert_eq!(
            changed(Kind::NextObject),
            [
                "int n = (p + 1)->length;",
                "memcpy((p + 1)->to, p->from, n);"
            ]
        );
    }

    #[test]
    fn a_seed_gives_the_same_fault_again() {
        let sources = [SOURCE.to_owned()];
        for seed in 0..50 {
            let one = inject(&sources, seed).map(|(_, fault)| fault.text);
            let again = inject(&sources, seed).map(|(_, fault)| fault.text);
            assert_eq!(one, again);
            assert!(one.is_none_or(|text| text != SOURCE));
        }
    }
}
