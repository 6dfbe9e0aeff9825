//! How much stack a call takes at most: the compiler's own frames, along the longest way through its graph of calls.

use mullion_judge::JudgedProgram;
use mullion_trust::elastic::Elastic;
use std::collections::{BTreeMap, BTreeSet};

/// Functions that gcc calls by itself, with room for their frames.
const LEAVES: [(&str, u64); 4] = [
    ("memcpy", 256),
    ("memset", 256),
    ("memmove", 256),
    ("memcmp", 256),
];

/// Bytes of stack that the deepest call of an entry point takes.
///
/// # Errors
/// What has no bound, in words.
pub(super) fn bound(
    graph: &str,
    elastic: &Elastic,
    judged: &JudgedProgram,
    imports: &[String],
) -> Result<u64, String> {
    let graph = Graph::read(graph)?;
    let mut deepest = 0;
    for entry in &elastic.entries {
        let mut path = Vec::new();
        deepest = deepest.max(graph.depth(
            entry,
            elastic,
            judged,
            imports,
            &mut path,
            &mut BTreeMap::new(),
        )?);
    }
    Ok(deepest)
}

struct Graph<'a> {
    /// Bytes of the frames of functions that were compiled.
    frames: BTreeMap<&'a str, u64>,
    calls: BTreeMap<&'a str, BTreeSet<&'a str>>,
}

impl<'a> Graph<'a> {
    fn read(text: &'a str) -> Result<Self, String> {
        let mut graph = Graph {
            frames: BTreeMap::new(),
            calls: BTreeMap::new(),
        };
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
            let own = |name: &&str| judged.functions.iter().any(|function| function == *name);
            return match path[start..].iter().any(own) {
                true => Ok(0),
                false => Err(format!(
                    "`{name}` of the environment, which comes to itself again"
                )),
            };
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

/// The function's name: static ones have their file's name in front.
fn plain(title: &str) -> &str {
    title.rsplit(':').next().unwrap_or(title)
}
