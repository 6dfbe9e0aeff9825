use std::collections::HashSet;

use proptest::prelude::*;

use super::{Bounds, Fault, Graph, Node, Side, analyse};

fn side() -> impl Strategy<Value = Side> {
    prop_oneof![Just(Side::Client), Just(Side::Server)]
}

fn graphs() -> impl Strategy<Value = Graph> {
    (1usize..7).prop_flat_map(|count| {
        let edge = prop_oneof![1 => Just(None), 4 => (0..count).prop_map(Some)];
        let node = (side(), prop::collection::vec(edge, 0..4));
        prop::collection::vec(node, count).prop_map(|nodes| Graph {
            states: nodes
                .into_iter()
                .map(|(sender, edges)| Node { sender, edges })
                .collect(),
        })
    })
}

/// Both sides step by step, each with its own state and with the queues between them: the second opinion.
/// A queue longer than any contract of this size could need is a flood.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Configuration {
    client: Option<usize>,
    server: Option<usize>,
    to_server: Vec<usize>,
    to_client: Vec<usize>,
}

/// What walking every configuration finds: the greatest occupancies, or none if a queue grows past the number
/// of states.
fn walk(graph: &Graph) -> Option<Bounds> {
    let mut bounds = Bounds::default();
    let mut seen = HashSet::new();
    let mut left = vec![Configuration {
        client: Some(0),
        server: Some(0),
        to_server: Vec::new(),
        to_client: Vec::new(),
    }];
    while let Some(at) = left.pop() {
        if !seen.insert(at.clone()) {
            continue;
        }
        bounds.to_server = bounds.to_server.max(at.to_server.len());
        bounds.to_client = bounds.to_client.max(at.to_client.len());
        if bounds.to_server.max(bounds.to_client) > graph.states.len() {
            return None;
        }
        let steps = [
            (Side::Client, at.client, &at.to_client),
            (Side::Server, at.server, &at.to_server),
        ];
        for (side, state, incoming) in steps {
            let Some(state) = state else { continue };
            let node = &graph.states[state];
            if node.sender == side {
                for (message, &next) in node.edges.iter().enumerate() {
                    let mut after = at.clone();
                    match side {
                        Side::Client => (after.client, _) = (next, after.to_server.push(message)),
                        Side::Server => (after.server, _) = (next, after.to_client.push(message)),
                    }
                    left.push(after);
                }
            } else if let Some(&message) = incoming.first() {
                let mut after = at.clone();
                let next = node.edges[message];
                match side {
                    Side::Client => (after.client, _) = (next, after.to_client.remove(0)),
                    Side::Server => (after.server, _) = (next, after.to_server.remove(0)),
                };
                left.push(after);
            }
        }
    }
    Some(bounds)
}

/// Whether some way leads from `from` to `to`, in at least one step; `None` is the end.
fn leads(graph: &Graph, from: usize, to: Option<usize>) -> bool {
    let mut seen = HashSet::new();
    let mut left = graph.states[from].edges.clone();
    while let Some(at) = left.pop() {
        if at == to {
            return true;
        }
        if let (Some(index), true) = (at, seen.insert(at)) {
            left.extend(graph.states[index].edges.iter());
        }
    }
    false
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn bounds_are_the_greatest_occupancies(graph in graphs()) {
        match analyse(&graph, false) {
            Ok(bounds) => prop_assert_eq!(walk(&graph), Some(bounds)),
            Err(Fault::Flood(states)) => {
                prop_assert_eq!(walk(&graph), None);
                let next = states.iter().cycle().skip(1);
                for (&from, &to) in states.iter().zip(next) {
                    prop_assert!(graph.states[from].edges.contains(&Some(to)));
                    prop_assert_eq!(graph.states[from].sender, graph.states[to].sender);
                }
            }
            Err(Fault::Silent(state)) => prop_assert!(graph.states[state].edges.is_empty()),
            Err(Fault::Unreachable(state)) => {
                prop_assert!(state != 0 && !leads(&graph, 0, Some(state)));
            }
            Err(Fault::Endless(state)) => prop_assert!(!leads(&graph, state, None)),
            Err(fault) => prop_assert!(false, "{fault:?}"),
        }
    }
}

fn graph<const N: usize>(states: [(Side, &[Option<usize>]); N]) -> Graph {
    Graph {
        states: states
            .into_iter()
            .map(|(sender, edges)| Node {
                sender,
                edges: edges.to_vec(),
            })
            .collect(),
    }
}

#[test]
fn request_and_answer_need_one_place_each() {
    let contract = graph([
        (Side::Client, &[Some(1), None]),
        (Side::Server, &[Some(0), Some(0)]),
    ]);
    let one = Bounds {
        to_server: 1,
        to_client: 1,
    };
    assert_eq!(analyse(&contract, false), Ok(one));
}

#[test]
fn a_run_is_counted_to_the_end() {
    let contract = graph([
        (Side::Client, &[Some(1)]),
        (Side::Client, &[Some(2)]),
        (Side::Client, &[None]),
    ]);
    assert_eq!(
        analyse(&contract, false).map(|bounds| bounds.to_server),
        Ok(3)
    );
}

#[test]
fn every_fault_is_named() {
    use Side::{Client, Server};
    let cases = [
        (graph([]), false, Fault::Empty),
        (graph([(Client, &[])]), false, Fault::Silent(0)),
        (
            graph([(Client, &[None]), (Server, &[None])]),
            false,
            Fault::Unreachable(1),
        ),
        (
            graph([(Client, &[Some(1), None]), (Server, &[Some(1)])]),
            false,
            Fault::Endless(1),
        ),
        (
            graph([(Client, &[Some(1)]), (Server, &[Some(0), None])]),
            true,
            Fault::EndOfEndless(1, 1),
        ),
        (
            graph([
                (Server, &[Some(1)]),
                (Client, &[Some(2)]),
                (Client, &[Some(1), None]),
            ]),
            false,
            Fault::Flood(vec![1, 2]),
        ),
    ];
    for (contract, endless, fault) in cases {
        assert_eq!(analyse(&contract, endless), Err(fault));
    }
}
