//! What must hold of a contract's states, without regard to names or syntax.
//!
//! Each state has one sender, so a queue grows only along a run of states with the same sender. Its bound is
//! the longest such run, in messages. The other side can send only when it has received all of them, so runs
//! do not add up.

/// Which side of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    Client,
    Server,
}

/// The states; the first is where a channel starts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    pub(crate) states: Vec<Node>,
}

/// A state: who sends in it, and where each of its messages leads; `None` is the end.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) sender: Side,
    pub(crate) edges: Vec<Option<usize>>,
}

/// The most messages that can wait in each queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Bounds {
    pub(crate) to_server: usize,
    pub(crate) to_client: usize,
}

/// Why a graph is no contract.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// There is no state.
    Empty,
    /// Nobody sends in this state: both sides would wait.
    Silent(usize),
    /// No way leads to this state.
    Unreachable(usize),
    /// No way leads from this state to the end.
    Endless(usize),
    /// A way that ends, in a contract that is declared endless; the state and the message.
    EndOfEndless(usize, usize),
    /// These states, each leading to the next and the last to the first, have the same sender.
    Flood(Vec<usize>),
}

/// The queues' bounds, or the first fault.
pub(crate) fn analyse(graph: &Graph, endless: bool) -> Result<Bounds, Fault> {
    if graph.states.is_empty() {
        return Err(Fault::Empty);
    }
    if let Some(silent) = graph.states.iter().position(|state| state.edges.is_empty()) {
        return Err(Fault::Silent(silent));
    }
    let reached = reachable(graph);
    if let Some(lost) = reached.iter().position(|reached| !reached) {
        return Err(Fault::Unreachable(lost));
    }
    if endless {
        check_endless(graph)?;
    } else if let Some(stuck) = ending(graph).iter().position(|ends| !ends) {
        return Err(Fault::Endless(stuck));
    }
    let mut runs = Runs {
        graph,
        longest: vec![None; graph.states.len()],
        path: Vec::new(),
    };
    let mut bounds = Bounds::default();
    for (index, state) in graph.states.iter().enumerate() {
        let run = runs.from(index)?;
        let bound = match state.sender {
            Side::Client => &mut bounds.to_server,
            Side::Server => &mut bounds.to_client,
        };
        *bound = run.max(*bound);
    }
    Ok(bounds)
}

fn reachable(graph: &Graph) -> Vec<bool> {
    let mut reached = vec![false; graph.states.len()];
    let mut left = vec![0];
    while let Some(index) = left.pop() {
        if !std::mem::replace(&mut reached[index], true) {
            left.extend(graph.states[index].edges.iter().flatten());
        }
    }
    reached
}

/// From which states the end can be reached.
fn ending(graph: &Graph) -> Vec<bool> {
    let mut ends = vec![false; graph.states.len()];
    loop {
        let before = ends.clone();
        for (index, state) in graph.states.iter().enumerate() {
            ends[index] |= state
                .edges
                .iter()
                .any(|next| next.is_none_or(|next| before[next]));
        }
        if ends == before {
            return ends;
        }
    }
}

fn check_endless(graph: &Graph) -> Result<(), Fault> {
    for (index, state) in graph.states.iter().enumerate() {
        if let Some(edge) = state.edges.iter().position(Option::is_none) {
            return Err(Fault::EndOfEndless(index, edge));
        }
    }
    Ok(())
}

/// Longest runs of one sender, depth first.
struct Runs<'a> {
    graph: &'a Graph,
    longest: Vec<Option<usize>>,
    path: Vec<usize>,
}

impl Runs<'_> {
    fn from(&mut self, index: usize) -> Result<usize, Fault> {
        if let Some(known) = self.longest[index] {
            return Ok(known);
        }
        if let Some(start) = self.path.iter().position(|&passed| passed == index) {
            return Err(Fault::Flood(self.path[start..].to_vec()));
        }
        self.path.push(index);
        let graph = self.graph;
        let mut longest = 0;
        for &next in graph.states[index].edges.iter().flatten() {
            if graph.states[next].sender == graph.states[index].sender {
                longest = longest.max(self.from(next)?);
            }
        }
        self.path.pop();
        self.longest[index] = Some(longest + 1);
        Ok(longest + 1)
    }
}

#[cfg(test)]
mod tests;
