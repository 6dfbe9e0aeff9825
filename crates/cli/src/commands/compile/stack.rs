//! How much stack a call takes at most: the compiler's own frames, along the longest way through its graph of calls.
//! gcc writes that graph down. Of Rust the frames and calls are read from the assembler text that is assembled.

use mullion_driver::rust::elastic::FLOOR;
use mullion_elastic::Elastic;
use mullion_judge::JudgedProgram;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

/// Functions that compilers call by themselves, with room for their frames.
const LEAVES: [(&str, u64); 6] = [
    // It ends the domain, as a stack that is at its end would.
    ("abort", 0),
    ("bcmp", 256),
    ("memcpy", 256),
    ("memset", 256),
    ("memmove", 256),
    ("memcmp", 256),
];

/// How deep the stack becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Depth {
    /// Bytes that the deepest call of an entry point takes, if it goes round each circle of calls once.
    pub(super) bytes: u64,
    /// Whether there is such a circle. Its functions then check the depth when they run.
    pub(super) recursion: bool,
}

impl Depth {
    /// Bytes that a call takes at most, where the type has this bound. Behind the last check that passes comes no more
    /// than one way without another check.
    pub(super) fn at_most(self, bound: u64) -> u64 {
        match self.recursion {
            true => bound.saturating_add(self.bytes),
            false => self.bytes,
        }
    }
}

/// How deep the deepest call of an entry point goes.
///
/// # Errors
/// What has no bound, in words.
pub(super) fn bound(
    graph: &str,
    elastic: &Elastic,
    judged: &JudgedProgram,
    imports: &[String],
) -> Result<Depth, String> {
    Graph::read(graph)?.bound(elastic, judged, imports)
}

/// The same of Rust, from the assembler text of every crate that is linked.
///
/// # Errors
/// As above. A circle of calls in which no function checks the depth is an error.
pub(super) fn bound_of_text(
    texts: &[String],
    elastic: &Elastic,
    imports: &[String],
) -> Result<Depth, String> {
    let mut graph = Graph::default();
    for text in texts {
        graph.read_text(text);
    }
    let judged = JudgedProgram {
        text: String::new(),
        loops: 0,
        functions: Vec::new(),
    };
    graph.bound(elastic, &judged, imports)
}

#[derive(Default)]
struct Graph<'a> {
    /// Bytes of the frames of functions that were compiled.
    frames: BTreeMap<&'a str, u64>,
    calls: BTreeMap<&'a str, BTreeSet<&'a str>>,
    /// Functions whose frame or calls no text says, and why.
    unknown: BTreeMap<&'a str, &'static str>,
    /// Functions that check the depth when they begin.
    checked: BTreeSet<&'a str>,
    /// A circle of calls was met.
    recursion: Cell<bool>,
}

impl<'a> Graph<'a> {
    fn bound(
        &self,
        elastic: &'a Elastic,
        judged: &JudgedProgram,
        imports: &[String],
    ) -> Result<Depth, String> {
        let mut deepest = 0;
        for entry in &elastic.entries {
            let (mut path, mut known) = (Vec::new(), BTreeMap::new());
            let depth = self.depth(entry, elastic, judged, imports, &mut path, &mut known)?;
            deepest = deepest.max(depth);
        }
        Ok(Depth {
            bytes: deepest,
            recursion: self.recursion.get(),
        })
    }

    /// Adds the functions of an assembler text in LLVM's form. Everything that a function pushes or takes is counted
    /// as if it were never given back before the end.
    fn read_text(&mut self, text: &'a str) {
        let mut at: Option<&'a str> = None;
        let mut functions = BTreeSet::new();
        for line in text.lines() {
            if let Some(label) = line
                .strip_suffix(':')
                .or_else(|| line.split_once(":\t").map(|(label, _)| label))
                && functions.contains(label)
            {
                at = Some(label);
                // The return address.
                self.frames.insert(label, 8);
                continue;
            }
            let Some(rest) = line.strip_prefix('\t') else {
                continue;
            };
            let (word, operands) = rest.split_once('\t').unwrap_or((rest, ""));
            match word {
                ".type" => {
                    if let Some(name) = operands.strip_suffix(",@function") {
                        functions.insert(name);
                    }
                }
                ".set" => {
                    if let Some((name, to)) = operands.split_once(", ") {
                        self.frames.entry(name).or_insert(0);
                        self.calls.entry(name).or_default().insert(to);
                    }
                }
                _ => {}
            }
            let Some(function) = at.filter(|_| !word.starts_with('.')) else {
                continue;
            };
            // Nothing that the program can write looks like this: it has no assembler.
            if (word, operands.split_once('(').map(|(name, _)| name)) == ("cmpq", Some(FLOOR)) {
                self.checked.insert(function);
            }
            if let Some(to) = target(word, operands) {
                match to.starts_with('*') {
                    true if word.starts_with("call") => {
                        self.unknown.insert(function, "which calls by a pointer");
                    }
                    // A table of a `match`.
                    true => {}
                    false => drop(self.calls.entry(function).or_default().insert(to)),
                }
                continue;
            }
            match taken(word, operands) {
                Some(bytes) => *self.frames.entry(function).or_default() += bytes,
                None => drop(self.unknown.insert(function, "whose frame has no bound")),
            }
        }
    }

    fn read(text: &'a str) -> Result<Self, String> {
        let mut graph = Graph::default();
        for line in text.lines() {
            let quoted: Vec<&str> = line.split('"').skip(1).step_by(2).collect();
            match (line.split(':').next(), quoted.as_slice()) {
                (Some("node"), [title, label, ..]) => {
                    let Some(size) = label.split("\\n").find(|part| part.contains(" bytes ("))
                    else {
                        continue;
                    };
                    if size.contains("(dynamic)") {
                        return Err(format!("`{}`, whose frame has no bound", plain(title)));
                    }
                    let bytes = size.split(' ').next().and_then(|bytes| bytes.parse().ok());
                    let bytes: u64 =
                        bytes.ok_or("the compiler's graph of calls is not understood")?;
                    graph.frames.insert(plain(title), bytes);
                }
                (Some("edge"), [from, to, ..]) => {
                    graph
                        .calls
                        .entry(plain(from))
                        .or_default()
                        .insert(plain(to));
                }
                _ => {}
            }
        }
        Ok(graph)
    }

    fn depth(
        &self,
        name: &'a str,
        elastic: &Elastic,
        judged: &JudgedProgram,
        imports: &[String],
        path: &mut Vec<&'a str>,
        known: &mut BTreeMap<&'a str, u64>,
    ) -> Result<u64, String> {
        if let Some(found) = known.get(name) {
            return Ok(*found);
        }
        if let Some(start) = path.iter().position(|other| *other == name) {
            // A circle of the module's own functions checks its depth when it runs.
            let own = |name: &&str| {
                self.checked.contains(name)
                    || judged.functions.iter().any(|function| function == *name)
            };
            self.recursion.set(true);
            return match path[start..].iter().any(own) {
                true => Ok(0),
                false => Err(format!(
                    "`{name}`, which comes to itself again, and nothing checks how deep"
                )),
            };
        }
        if let Some(why) = self.unknown.get(name) {
            let listed = elastic.known_stack.get(name).copied();
            return listed
                .ok_or_else(|| format!("`{name}`, {why}; the type can say it in `known-stack`"));
        }
        let Some(frame) = self.frames.get(name) else {
            let listed = elastic.known_stack.get(name).copied();
            let leaf = LEAVES
                .iter()
                .find(|(leaf, _)| *leaf == name)
                .map(|(_, bytes)| *bytes);
            // An import runs on the host's stack.
            let import = imports.iter().any(|import| import == name).then_some(0);
            return listed.or(leaf).or(import).ok_or_else(|| {
                format!("`{name}`, whose frame is not known; the type can say it in `known-stack`")
            });
        };
        path.push(name);
        let mut deepest = 0;
        for callee in self.calls.get(name).into_iter().flatten() {
            deepest = deepest.max(self.depth(callee, elastic, judged, imports, path, known)?);
        }
        path.pop();
        known.insert(name, frame + deepest);
        Ok(frame + deepest)
    }
}

/// Where an instruction goes beyond its function.
fn target<'a>(word: &str, operands: &'a str) -> Option<&'a str> {
    let goes = word.starts_with("call") || word.starts_with('j');
    let to = operands
        .split(['@', '\t', ' ', '#'])
        .next()
        .unwrap_or_default();
    (goes && !to.starts_with(".L") && !to.is_empty()).then_some(to)
}

/// Bytes that an instruction takes of the stack; `None`: nobody knows.
fn taken(word: &str, operands: &str) -> Option<u64> {
    let operands = operands
        .split(['\t', '#'])
        .next()
        .unwrap_or_default()
        .trim_end();
    let number = |text: &str| {
        text.strip_prefix('$')
            .and_then(|text| text.parse::<i64>().ok())
    };
    match word {
        _ if word.starts_with("push") => Some(8),
        "subq" | "addq" | "andq" if operands.ends_with(", %rsp") => {
            let amount = number(operands.split(',').next()?)?;
            Some(match word {
                "subq" => amount.unsigned_abs(),
                // Given back, or taken by the way of a negative number.
                "addq" => amount.min(0).unsigned_abs(),
                _ => amount.unsigned_abs(),
            })
        }
        "leaq" if operands.ends_with(", %rsp") => {
            let (offset, base) = operands.strip_suffix(", %rsp")?.split_once('(')?;
            let offset: i64 = if offset.is_empty() {
                0
            } else {
                offset.parse().ok()?
            };
            match base {
                "%rsp)" => Some(offset.min(0).unsigned_abs()),
                "%rbp)" => Some(0),
                _ => None,
            }
        }
        "movq" if operands == "%rbp, %rsp" => Some(0),
        // A frame of many pages is taken in a loop, until the stack is as deep as a register says.
        _ if word.starts_with("cmp") && operands.starts_with('%') && operands.contains("%rsp") => {
            None
        }
        _ if operands.ends_with(", %rsp")
            && !word.starts_with("cmp")
            && !word.starts_with("test") =>
        {
            None
        }
        _ => Some(0),
    }
}

/// The function's name: static ones have their file's name in front.
fn plain(title: &str) -> &str {
    title.rsplit(':').next().unwrap_or(title)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(text: &str) -> Result<u64, String> {
        let elastic = Elastic {
            entries: vec!["entry".to_owned()],
            ..Elastic::default()
        };
        bound_of_text(&[text.to_owned()], &elastic, &["host".to_owned()])
            .map(|depth| depth.at_most(1000))
    }

    const LEAF: &str =
        "\t.type\tleaf,@function\nleaf:\n\tsubq\t$24, %rsp\n\taddq\t$24, %rsp\n\tretq\n";

    #[test]
    fn frames_along_the_deepest_way_are_added_up() {
        let entry = "\t.type\tentry,@function\nentry:\n\tpushq\t%rbx\n\tcallq\tleaf\n\tcallq\thost@PLT\n.LBB0_1:\n\tje\t.LBB0_1\n\tpopq\t%rbx\n\tretq\n";
        assert_eq!(bound(&format!("{LEAF}{entry}")), Ok(8 + 8 + 8 + 24));
        let tail = "\t.type\tentry,@function\nentry:\n\tjmp\tleaf\n";
        assert_eq!(bound(&format!("{LEAF}{tail}")), Ok(8 + 8 + 24));
        let aligned = "\t.type\tentry,@function\nentry:\n\tpushq\t%rbp\n\tmovq\t%rsp, %rbp\n\tandq\t$-32, %rsp\n\tleaq\t-8(%rbp), %rsp\n";
        assert_eq!(bound(aligned), Ok(8 + 8 + 32));
    }

    #[test]
    fn a_circle_that_checks_itself_goes_beyond_the_bound_by_one_way() {
        let circle = |check: &str| {
            format!(
                "\t.type\tentry,@function\nentry:\n{check}\tpushq\t%rbx\n\tcallq\tentry\n\tcallq\tleaf\n\tretq\n"
            )
        };
        let check = "\tcmpq\tmullion_stack_floor(%rip), %rsp\n\tjae\t.L\n\tud2\n.L:\n";
        assert_eq!(
            bound(&format!("{LEAF}{}", circle(check))),
            Ok(1000 + 8 + 8 + 8 + 24)
        );
        bound(&format!("{LEAF}{}", circle(""))).expect_err("no check");
    }

    #[test]
    fn what_has_no_bound_is_an_error() {
        let entry = |text: &str| format!("\t.type\tentry,@function\nentry:\n{text}");
        for (text, why) in [
            ("\tcallq\t*%rax\n", "calls by a pointer"),
            ("\tsubq\t%rax, %rsp\n", "no bound"),
            ("\tcallq\tentry\n", "comes to itself again"),
            ("\tcallq\tnowhere\n", "not known"),
            ("\tmovq\t%rdi, %rsp\n", "no bound"),
            (
                "\tmovq\t%rsp, %r11\n\tsubq\t$196608, %r11\n.LBB0_1:\n\tsubq\t$4096, %rsp\n\tmovq\t$0, (%rsp)\n\t\
                 cmpq\t%r11, %rsp\n\tjne\t.LBB0_1\n",
                "no bound",
            ),
        ] {
            let said = bound(&entry(text)).expect_err(text);
            assert!(said.contains(why), "{text}: {said}");
        }
    }
}
