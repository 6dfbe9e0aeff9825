//! How many instructions a call runs at most: the longest way through the compiler's own assembler text.
//!
//! A text without a way back has a longest way. A way back is a loop that the judge has counted. It wrote a mark into
//! the loop's body, with the rounds. The compiler keeps each mark as often as the source says. So what can come to
//! itself again (a component of the graph) runs its longest way between two marks, once more than it meets marks. The
//! rewriter's checks are not counted, and neither is what runs in the host.

use mullion_elastic::Elastic;
use mullion_judge::MARK;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The most instructions that a call of an entry point runs.
///
/// # Errors
/// What has no bound, in words.
pub(super) fn bound(
    texts: &[String],
    elastic: &Elastic,
    imports: &[String],
) -> Result<u64, String> {
    let mut graph = Graph::default();
    for (file, text) in texts.iter().enumerate() {
        graph.read(file, text);
    }
    let mut found = Found {
        graph: &graph,
        elastic,
        imports,
        known: BTreeMap::new(),
        path: Vec::new(),
    };
    let mut most = 0;
    for entry in &elastic.entries {
        most = most.max(found.function(entry)?);
    }
    Ok(most)
}

/// One instruction, or a mark.
struct Step<'a> {
    file: usize,
    /// The function's name, with its cold part's.
    function: &'a str,
    word: &'a str,
    operands: &'a str,
    /// The loop's number and rounds.
    mark: Option<(&'a str, u64)>,
    /// The text goes on behind it.
    falls: bool,
    /// How often the processor repeats it.
    repeats: Option<u64>,
}

#[derive(Default)]
struct Graph<'a> {
    steps: Vec<Step<'a>>,
    /// Functions of all files, and labels of each.
    functions: HashMap<&'a str, usize>,
    labels: HashMap<(usize, &'a str), usize>,
    /// Other names of functions.
    aliases: HashMap<&'a str, &'a str>,
    /// Labels in tables of addresses.
    tables: BTreeSet<(usize, &'a str)>,
}

impl<'a> Graph<'a> {
    fn read(&mut self, file: usize, text: &'a str) {
        let named: BTreeSet<&str> = text
            .lines()
            .filter_map(|line| line.trim_start().strip_prefix(".type"))
            .filter_map(|rest| rest.trim().split_once(','))
            .filter(|(_, kind)| kind.trim() == "@function")
            .map(|(name, _)| name)
            .collect();
        let mut function = "";
        // The number that %ecx was given, until something else may have happened to it.
        let mut count = None;
        for line in text.lines() {
            let Some(rest) = line.strip_prefix('\t') else {
                if let Some((label, _)) = line.split_once(':')
                    && !label.contains(char::is_whitespace)
                {
                    count = None;
                    self.labels.insert((file, label), self.steps.len());
                    if named.contains(label) {
                        self.functions.insert(label, self.steps.len());
                        function = label.split(".cold").next().unwrap_or(label);
                    }
                }
                continue;
            };
            let (word, operands) = rest.split_once('\t').unwrap_or((rest, ""));
            let operands = operands.split(['\t', '#']).next().unwrap_or_default();
            let operands = operands.trim_end();
            if let Some(mark) = rest.strip_prefix(MARK) {
                let mut parts = mark.split_whitespace();
                if let (Some(number), Some(Ok(rounds))) =
                    (parts.next(), parts.next().map(str::parse))
                {
                    self.push(file, function, "", "", Some((number, rounds)));
                }
                continue;
            }
            match word {
                ".size" | ".cfi_endproc" => {
                    if let Some(last) = self.steps.last_mut() {
                        last.falls = false;
                    }
                }
                ".set" => {
                    if let Some((name, to)) = operands.split_once(',') {
                        self.aliases.insert(name, to.trim());
                    }
                }
                ".long" | ".quad" => {
                    let label = operands.split('-').next().unwrap_or_default();
                    self.tables.insert((file, label.trim()));
                }
                _ => {}
            }
            if word.starts_with(['.', '#']) || word.is_empty() {
                continue;
            }
            self.push(file, function, word, operands, None);
            if let Some(step) = self.steps.last_mut()
                && word.starts_with("rep")
            {
                step.repeats = count;
            }
            if matches!(word, "movl" | "movq") && operands.ends_with("cx") {
                let number = operands
                    .strip_prefix('$')
                    .and_then(|rest| rest.split_once(','));
                count = number.and_then(|(number, _)| number.parse().ok());
            } else if operands.contains("cx")
                || operands.contains("%cl")
                || word.starts_with("call")
            {
                count = None;
            }
        }
        if let Some(last) = self.steps.last_mut() {
            last.falls = false;
        }
    }

    fn push(
        &mut self,
        file: usize,
        function: &'a str,
        word: &'a str,
        operands: &'a str,
        mark: Option<(&'a str, u64)>,
    ) {
        let ends =
            word == "jmp" || word == "jmpq" || word == "ud2" || word == "hlt" || returns(word);
        self.steps.push(Step {
            file,
            function,
            word,
            operands,
            mark,
            falls: !ends,
            repeats: None,
        });
    }

    /// Where an instruction goes by a label of its file, and the function that it calls or ends with.
    fn goes(&self, at: usize) -> Result<(Vec<usize>, Option<&'a str>), String> {
        let step = &self.steps[at];
        let mut next = Vec::new();
        if step.falls && at + 1 < self.steps.len() {
            next.push(at + 1);
        }
        let calls = step.word.starts_with("call");
        if !calls && !step.word.starts_with('j') {
            return Ok((next, None));
        }
        let target = step.operands.split('@').next().unwrap_or_default();
        if target.starts_with('*') {
            // A table of a `match`: LLVM adds the table's address to what it finds there.
            let table = !calls && at > 0 && self.steps[at - 1].word == "addq";
            if !table {
                return Err(format!("`{}`, which goes on by a pointer", step.function));
            }
            let of = |label: &&(usize, &str)| label.0 == step.file;
            for label in self.tables.iter().filter(of) {
                if let Some(to) = self.labels.get(label)
                    && self
                        .steps
                        .get(*to)
                        .is_some_and(|to| to.function == step.function)
                {
                    next.push(*to);
                }
            }
            return Ok((next, None));
        }
        match self.labels.get(&(step.file, target)) {
            Some(to) if !self.functions.contains_key(target) => {
                next.push(*to);
                Ok((next, None))
            }
            _ => Ok((next, Some(target))),
        }
    }
}

fn returns(word: &str) -> bool {
    word == "ret" || word == "retq" || word.ends_with(" ret") || word.ends_with(";retq")
}

struct Found<'a, 'b> {
    graph: &'b Graph<'a>,
    elastic: &'b Elastic,
    imports: &'b [String],
    known: BTreeMap<String, u64>,
    path: Vec<String>,
}

impl Found<'_, '_> {
    fn function(&mut self, name: &str) -> Result<u64, String> {
        if let Some(known) = self.elastic.known_instructions.get(name) {
            return Ok(*known);
        }
        if let Some(known) = self.known.get(name) {
            return Ok(*known);
        }
        if self.path.iter().any(|other| other == name) {
            return Err(format!("`{name}`, which comes to itself again"));
        }
        // An import runs in the host, and `abort` ends the call.
        if name == "abort" || self.imports.iter().any(|import| import == name) {
            return Ok(0);
        }
        let real = self.graph.aliases.get(name).copied().unwrap_or(name);
        let Some(start) = self.graph.functions.get(real).copied() else {
            return Err(format!(
                "`{name}`, whose instructions nobody has counted; the type can say them in `known-instructions`"
            ));
        };
        self.path.push(name.to_owned());
        let most = self.from(start, name)?;
        self.path.pop();
        self.known.insert(name.to_owned(), most);
        Ok(most)
    }

    /// The longest way from an instruction to the end of its function.
    fn from(&mut self, start: usize, name: &str) -> Result<u64, String> {
        let mut part = Part::default();
        let mut number = HashMap::from([(start, 0)]);
        let mut order = vec![start];
        let mut at = 0;
        while let Some(step) = order.get(at).copied() {
            at += 1;
            let (next, callee) = self.graph.goes(step)?;
            let step = &self.graph.steps[step];
            let own = match (
                step.mark,
                step.word.starts_with("rep") && !returns(step.word),
            ) {
                (Some(_), _) => 0,
                (None, false) => 1,
                (None, true) => step.repeats.ok_or_else(|| {
                    format!("`{name}`, where the processor repeats an instruction")
                })?,
            };
            let behind = callee.map_or(Ok(0), |callee| self.function(callee))?;
            let next = next.into_iter().map(|to| {
                *number.entry(to).or_insert_with(|| {
                    order.push(to);
                    order.len() - 1
                })
            });
            part.next.push(next.collect());
            part.costs.push(own.saturating_add(behind));
            part.marks.push(step.mark);
        }
        part.longest()
            .ok_or_else(|| format!("`{name}`, with a way back that no counted loop makes"))
    }
}

/// Instructions of one function, from its first one.
#[derive(Default)]
struct Part<'a> {
    next: Vec<Vec<usize>>,
    costs: Vec<u64>,
    marks: Vec<Option<(&'a str, u64)>>,
}

impl Part<'_> {
    /// `None`: some way back has no mark.
    fn longest(&self) -> Option<u64> {
        let all: Vec<usize> = (0..self.next.len()).collect();
        let components = components(&all, &|at| &self.next[at]);
        // Components come behind all that they lead to.
        let mut whose = vec![0; self.next.len()];
        let mut most = vec![0u64; components.len()];
        for (index, component) in components.iter().enumerate() {
            component.iter().for_each(|at| whose[*at] = index);
            let behind = component.iter().flat_map(|at| &self.next[*at]);
            let behind = behind.filter(|to| whose[**to] != index);
            let behind = behind.map(|to| most[whose[*to]]).max().unwrap_or(0);
            most[index] = self.within(component)?.saturating_add(behind);
        }
        most.get(*whose.first()?).copied()
    }

    /// What a component runs at most until it is left.
    fn within(&self, component: &[usize]) -> Option<u64> {
        let [first, ..] = component else { return None };
        if component.len() == 1 && !self.next[*first].contains(first) {
            return Some(self.costs[*first]);
        }
        let inside: BTreeSet<usize> = component.iter().copied().collect();
        let marks: Vec<(&str, u64)> = component.iter().filter_map(|at| self.marks[*at]).collect();
        let loops: BTreeMap<&str, u64> = marks.iter().copied().collect();
        // Each of these marks stands in loops that are all among these.
        let rounds = loops
            .values()
            .fold(1u64, |product, rounds| product.saturating_mul(*rounds));
        let met = rounds.saturating_mul(u64::try_from(marks.len()).ok()?);
        // Without its marks nothing comes back.
        let plain: Vec<usize> = component
            .iter()
            .copied()
            .filter(|at| self.marks[*at].is_none())
            .collect();
        let goes = |at: usize| -> Vec<usize> {
            let next = self.next[at].iter().copied();
            next.filter(|to| inside.contains(to) && self.marks[*to].is_none())
                .collect()
        };
        let next: HashMap<usize, Vec<usize>> = plain.iter().map(|at| (*at, goes(*at))).collect();
        let mut most: HashMap<usize, u64> = HashMap::new();
        for single in components(&plain, &|at| &next[&at]) {
            let [at] = single[..] else { return None };
            if next[&at].contains(&at) {
                return None;
            }
            let behind = next[&at].iter().map(|to| most[to]).max().unwrap_or(0);
            most.insert(at, self.costs[at].saturating_add(behind));
        }
        let between = most.into_values().max().unwrap_or(0);
        Some(between.saturating_mul(met.saturating_add(1)))
    }
}

/// What comes to itself again, each behind all that it leads to (Tarjan, without recursion).
fn components<'n>(nodes: &[usize], next: &dyn Fn(usize) -> &'n Vec<usize>) -> Vec<Vec<usize>> {
    let mut state: HashMap<usize, (usize, usize)> = HashMap::new();
    let mut open: BTreeSet<usize> = BTreeSet::new();
    let (mut stack, mut found) = (Vec::new(), Vec::new());
    for root in nodes {
        if state.contains_key(root) {
            continue;
        }
        let mut work = vec![(*root, 0)];
        while let Some((at, edge)) = work.pop() {
            if edge == 0 {
                let clock = state.len();
                state.insert(at, (clock, clock));
                open.insert(at);
                stack.push(at);
            }
            // What the last edge led to may lead further back.
            if edge > 0 && open.contains(&next(at)[edge - 1]) {
                let low = state[&next(at)[edge - 1]].1;
                state.entry(at).and_modify(|own| own.1 = own.1.min(low));
            }
            if let Some(to) = next(at).get(edge).copied() {
                work.push((at, edge + 1));
                if !state.contains_key(&to) {
                    work.push((to, 0));
                }
                continue;
            }
            if state[&at].0 == state[&at].1 {
                let mut component = Vec::new();
                while let Some(top) = stack.pop() {
                    open.remove(&top);
                    component.push(top);
                    if top == at {
                        break;
                    }
                }
                found.push(component);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(body: &str) -> Result<u64, String> {
        let elastic = Elastic {
            entries: vec!["entry".to_owned()],
            ..Elastic::default()
        };
        let text = format!("\t.type\tentry, @function\nentry:\n{body}\t.cfi_endproc\n");
        bound(&[text], &elastic, &["host".to_owned()])
    }

    #[test]
    fn a_text_without_a_way_back_has_a_longest_way() {
        assert_eq!(found("\tnop\n\tret\n"), Ok(2));
        // The longer side is three instructions.
        let branch = "\tje\t.L1\n\tnop\n\tnop\n\tnop\n.L1:\n\tret\n";
        assert_eq!(found(branch), Ok(5));
        assert_eq!(found("\tcall\thost@PLT\n\tret\n"), Ok(2));
        assert_eq!(found("\tmovl\t$9, %ecx\n\trep stosq\n\tret\n"), Ok(11));
        let other = "\tcall\tother\n\tret\n\t.cfi_endproc\n\t.type\tother, @function\nother:\n\tnop\n\tret\n";
        assert_eq!(found(other), Ok(4));
    }

    #[test]
    fn a_counted_loop_runs_as_often_as_its_mark_says() {
        let one = "\tnop\n.L1:\n\t# mullion-loop 1 10\n\tnop\n\tjne\t.L1\n\tret\n";
        // Two instructions between two marks, and once more; then what is in front and behind.
        assert_eq!(found(one), Ok(1 + 11 * 2 + 1));
        let nest = ".L1:\n\t# mullion-loop 1 3\n.L2:\n\t# mullion-loop 2 4\n\tjne\t.L2\n\tjne\t.L1\n\tret\n";
        // Two marks, each met at most 12 times.
        assert_eq!(found(nest), Ok(25 * 2 + 1));
    }

    #[test]
    fn what_has_no_bound_is_an_error() {
        for (body, why) in [
            (".L1:\n\tjne\t.L1\n\tret\n", "a way back"),
            (
                ".L1:\n\t# mullion-loop 1 10\n.L2:\n\tjne\t.L2\n\tjne\t.L1\n\tret\n",
                "a way back",
            ),
            ("\tcall\tentry\n\tret\n", "comes to itself again"),
            ("\tcall\t*%rax\n\tret\n", "by a pointer"),
            ("\tjmp\t*%rax\n", "by a pointer"),
            ("\tcall\tmemset@PLT\n\tret\n", "nobody has counted"),
            ("\trep stosq\n\tret\n", "repeats"),
        ] {
            let said = found(body).expect_err(body);
            assert!(said.contains(why), "{body}: {said}");
        }
    }
}
