//! What the judge is told, and how it answers: lines of fields between tabs.

use std::collections::BTreeSet;

/// What is forbidden, from the type's file.
pub struct Told {
    /// Rules that hold, by their names in types' files.
    pub forbid: BTreeSet<String>,
    pub loops: Option<u32>,
    pub loop_depth: Option<u32>,
    pub loop_nests: Option<u32>,
    /// Names of the environment that the module sees.
    pub public: BTreeSet<String>,
    pub entries: Vec<String>,
    pub locked: BTreeSet<String>,
    pub read_only: BTreeSet<String>,
    /// The directory that the program's files lie in.
    pub root: String,
    answer: String,
}

/// A construct that the language does not have.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Refusal {
    pub place: Option<Place>,
    pub rule: &'static str,
    pub construct: String,
    pub note: String,
}

/// A place in a source file: from 1, in bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub file: String,
    pub line: usize,
    pub column: usize,
    pub length: usize,
}

impl Refusal {
    /// Whether more than the program was to be read, so that what was read may be in the compiler's messages.
    pub fn has_read(&self) -> bool {
        matches!(self.rule, "includes" | "escaping-macros")
    }
}

impl Told {
    pub fn read(path: &str, answer: String) -> Self {
        let text = std::fs::read_to_string(path).expect("what is told");
        let mut told = Told {
            forbid: BTreeSet::new(),
            loops: None,
            loop_depth: None,
            loop_nests: None,
            public: BTreeSet::new(),
            entries: Vec::new(),
            locked: BTreeSet::new(),
            read_only: BTreeSet::new(),
            root: String::new(),
            answer,
        };
        for line in text.lines() {
            let (kind, value) = line.split_once('\t').expect("two fields");
            let value = value.to_owned();
            match kind {
                "forbid" => drop(told.forbid.insert(value)),
                "loops" => told.loops = Some(value.parse().expect("a number")),
                "loop-depth" => told.loop_depth = Some(value.parse().expect("a number")),
                "loop-nests" => told.loop_nests = Some(value.parse().expect("a number")),
                "public" => drop(told.public.insert(value)),
                "entry" => told.entries.push(value),
                "locked" => drop(told.locked.insert(value)),
                "read-only" => drop(told.read_only.insert(value)),
                "root" => told.root = value,
                // A rule that is not understood must not be passed over.
                _ => panic!("the judge is told what it does not know: {kind}"),
            }
        }
        told
    }

    pub fn forbids(&self, rule: &str) -> bool {
        self.forbid.contains(rule)
    }

    /// Writes refusals and other lines. Without this file, nothing was judged.
    pub fn answer(&self, refusals: &[Refusal], lines: &[String]) {
        let mut sorted = refusals.to_vec();
        sorted.sort();
        sorted.dedup_by(|one, other| {
            one.place.is_some() && one.place == other.place && one.rule == other.rule
        });
        let mut text = String::from("judged\n");
        let plain = |text: &str| text.replace(['\t', '\n', '\r'], " ");
        for refusal in sorted.iter().take(40) {
            let place = match &refusal.place {
                None => "\t\t\t".to_owned(),
                Some(place) => format!(
                    "{}\t{}\t{}\t{}",
                    plain(&place.file),
                    place.line,
                    place.column,
                    place.length
                ),
            };
            text.push_str(&format!(
                "refused\t{}\t{}\t{place}\t{}\n",
                refusal.rule,
                plain(&refusal.construct),
                plain(&refusal.note)
            ));
        }
        for line in lines {
            text.push_str(line);
            text.push('\n');
        }
        std::fs::write(&self.answer, text).expect("room for the answer");
    }
}
