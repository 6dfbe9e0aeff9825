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
    /// A statement runs a second time.
    Added,
    /// An assignment takes its value from the function's first argument.
    Source,
    /// An assignment goes to the function's first argument.
    Destination,
    /// A call gets a wrong first argument.
    Interface,
    /// A store beyond a local variable.
    Stack,
    /// A store to what was released.
    AfterRelease,
    /// A lock is taken by its holder.
    Deadlock,
}

/// All kinds, in the order of the table.
pub const KINDS: [Kind; 17] = [
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
    Kind::Added,
    Kind::Source,
    Kind::Destination,
    Kind::Interface,
    Kind::Stack,
    Kind::AfterRelease,
    Kind::Deadlock,
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
            Kind::Added => "added",
            Kind::Source => "source",
            Kind::Destination => "destination",
            Kind::Interface => "interface",
            Kind::Stack => "stack",
            Kind::AfterRelease => "after-release",
            Kind::Deadlock => "deadlock",
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
    inject_within(sources, seed, &[])
}

/// As [`inject`], in functions of these names alone. None: in all of the source.
pub(crate) fn inject_within(
    sources: &[String],
    seed: u64,
    functions: &[&str],
) -> Option<(usize, Fault)> {
    let mut random = Random(seed);
    let kind = KINDS[random.below(KINDS.len())];
    let bit = random.below(40);
    let mut places = Vec::new();
    for (number, text) in sources.iter().enumerate() {
        let all = candidates(text, kind, bit).into_iter();
        let is_wanted = |line: usize| {
            let is_it = |name: &str| functions.contains(&name);
            functions.is_empty() || function_of(text, line).is_some_and(is_it)
        };
        let wanted = all.filter(|(line, _)| is_wanted(*line));
        places.extend(wanted.map(|(line, changed)| (number, line, changed)));
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

/// The name of the function that has a line: the last one that begins in front of it, if it has not ended.
fn function_of(text: &str, line: usize) -> Option<&str> {
    let mut name = None;
    for one in text.lines().take(line + 1) {
        let begins = one.starts_with(|c: char| c.is_ascii_alphabetic());
        match one.split_once('(') {
            Some((before, _)) if begins => {
                let word = |c: char| !c.is_ascii_alphanumeric() && c != '_';
                name = before.rsplit(word).next();
            }
            _ if one.starts_with('}') => name = None,
            _ => {}
        }
    }
    name
}

/// Lines within functions that the kind can change, and the changed lines.
fn candidates(text: &str, kind: Kind, bit: usize) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let (mut is_inside, mut is_first) = (false, false);
    let (mut header, mut first) = (String::new(), None);
    for (number, line) in text.lines().enumerate() {
        match line {
            "{" => {
                (is_inside, is_first) = (true, true);
                first = parameter(&header);
            }
            "}" => is_inside = false,
            _ if !is_inside => match line.starts_with([' ', '\t']) {
                true => header.push_str(line),
                false => line.clone_into(&mut header),
            },
            _ if line.ends_with('\\') || line.trim_start().starts_with(['*', '/', '#']) => {}
            _ => {
                if line.trim().is_empty() {
                    is_first = false;
                }
                let place = Place {
                    is_declaration: is_first,
                    first: first.as_deref(),
                };
                found.extend(change(line, kind, bit, &place).map(|changed| (number, changed)));
            }
        }
    }
    found
}

/// The first parameter's name, by a function's header.
fn parameter(header: &str) -> Option<String> {
    let (_, list) = header.split_once('(')?;
    let first = list.split([',', ')']).next()?.trim();
    let name = first.rsplit([' ', '*', '\t']).next()?;
    let is_name = first.contains([' ', '*']) && !name.is_empty();
    is_name.then(|| name.to_owned())
}

/// Where a line is.
struct Place<'p> {
    /// Among a function's first.
    is_declaration: bool,
    /// The function's first parameter.
    first: Option<&'p str>,
}

/// The first argument of the line's first call, and what is before and behind it.
fn argument(line: &str) -> Option<(&str, &str, &str)> {
    let open = line.find('(')?;
    let (before, rest) = line.split_at(open + 1);
    let mut depth = 0;
    let end = rest.find(|c| {
        let is_end = depth == 0 && matches!(c, ',' | ')');
        depth += i32::from(c == '(') - i32::from(c == ')');
        is_end
    })?;
    let (one, behind) = rest.split_at(end);
    (!one.trim().is_empty()).then_some((before, one, behind))
}

/// The line with a fault of this kind.
fn change(line: &str, kind: Kind, bit: usize, place: &Place<'_>) -> Option<String> {
    let is_declaration = place.is_declaration;
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
        Kind::Added => {
            let is_lock = trimmed.contains("lock") || releases.iter().any(|r| trimmed.contains(r));
            let runs_again = is_statement && !is_lock;
            runs_again.then(|| format!("{{ {trimmed} {trimmed} }}"))
        }
        Kind::Source => {
            let (left, _) = assignment(trimmed, is_declaration)?;
            let first = place.first?;
            Some(format!(
                "{left} = (typeof({left}))(unsigned long)({first});"
            ))
        }
        Kind::Destination => {
            let (_, right) = assignment(trimmed, is_declaration)?;
            let first = place.first?;
            Some(format!(
                "{first} = (typeof({first}))(unsigned long)({right});"
            ))
        }
        Kind::Interface => {
            let (before, one, behind) = argument(line).filter(|_| is_statement)?;
            let other = match bit % 3 {
                0 => "0".to_owned(),
                1 => format!("(unsigned long)({one}) + 8"),
                _ => "0x5a5a5a5a5a5a5a5aul".to_owned(),
            };
            Some(format!("{before}(typeof({one}))({other}){behind}"))
        }
        Kind::Stack => is_statement.then(|| {
            let beyond = bit + 2;
            format!(
                "{{ volatile unsigned long own[2]; unsigned long at = {beyond}; asm(\"\" : \"+r\" (at)); own[at] = 0x5a5aul; {trimmed} }}"
            )
        }),
        Kind::AfterRelease => {
            let is_release = is_statement && releases.iter().any(|name| trimmed.starts_with(name));
            let (_, one, _) = argument(trimmed).filter(|_| is_release)?;
            Some(format!(
                "{{ void *gone = (void *)({one}); {trimmed} *(volatile unsigned long *)gone = 0x5a5a5a5a5a5a5a5aul; }}"
            ))
        }
        Kind::Deadlock => {
            let locks = [
                "mutex_lock(",
                "lock_page(",
                "lock_buffer(",
                "down_write(",
                "spin_lock(",
            ];
            let is_lock = is_statement && locks.iter().any(|name| trimmed.starts_with(name));
            is_lock.then(|| format!("{{ {trimmed} {trimmed} }}"))
        }
    }
}

/// The two sides of an assignment.
fn assignment(trimmed: &str, is_declaration: bool) -> Option<(&str, &str)> {
    let (left, right) = trimmed.strip_suffix(';')?.split_once(" = ")?;
    let is_place = |c: char| c.is_ascii_alphanumeric() || "_->.[]*".contains(c);
    (!is_declaration && left.chars().all(is_place)).then_some((left, right))
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

    #[test]
    fn a_line_has_the_function_that_begins_in_front_of_it() {
        let text = "static int a;\nint one(int x,\n        int y)\n{\n\tf(x);\nout:\n\treturn y;\n}\nstatic struct s all = {\n\t.x = 1,\n};\n\
                    static void *two(void)\n{\n\tg();\n}\n";
        let of: Vec<Option<&str>> = [0, 4, 6, 9, 13].map(|at| function_of(text, at)).to_vec();
        assert_eq!(of, [None, Some("one"), Some("one"), None, Some("two")]);
    }

    const SOURCE: &str = "int f(struct s *p)\n{\n\tint n = p->length;\n\n\tif (n < 4)\n\t\tg(p);\n\tmemcpy(p->to, p->from, n);\n\tkfree(p);\n\tmutex_lock(&lock);\n\tmutex_unlock(&lock);\n\tn = 3;\n\treturn n;\n}\n";

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
        assert_eq!(changed(Kind::Deleted).len(), 5);
        assert_eq!(
            changed(Kind::NextObject),
            [
                "int n = (p + 1)->length;",
                "memcpy((p + 1)->to, p->from, n);"
            ]
        );
        assert_eq!(
            changed(Kind::Deadlock),
            ["{ mutex_lock(&lock); mutex_lock(&lock); }"]
        );
        assert_eq!(
            changed(Kind::Source),
            ["n = (typeof(n))(unsigned long)(p);"]
        );
        assert_eq!(
            changed(Kind::Destination),
            ["p = (typeof(p))(unsigned long)(3);"]
        );
        let released = changed(Kind::AfterRelease);
        assert!(released[0].starts_with("{ void *gone = (void *)(p); kfree(p); *("));
        // The twentieth bit gives a wild argument.
        let interface = changed(Kind::Interface);
        assert!(interface.contains(&"kfree((typeof(p))(0x5a5a5a5a5a5a5a5aul));".to_owned()));
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
