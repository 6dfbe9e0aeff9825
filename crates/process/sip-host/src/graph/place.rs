//! Where boxes, lines and words go.
//!
//! ```text
//!   +- domain main ---+
//!   | +-------------+ |   words                 tracks
//!   | | web         o-|-- http: 12 → 12 ← ------+  |
//!   | |             o-|-- ask: 3 → 3 ← ---------|--+
//!   | +-------------+ |                         |  |
//!   | | disk        <-|-------------------------|--+
//!   | |             <-|-------------------------+
//! ```
//! All boxes stand in one column. Every line leaves its box at the right, at a height of its own. It goes to a track of
//! its own beyond all words, along it, and back. So no line can cross a box or a word, whatever the graph: to the right
//! of the boxes there are none. Words stand between two heights. Lines cross each other at right angles only.

use std::collections::BTreeMap;

/// A box, before it has a place.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// Which frame it is in: those of one frame follow each other.
    pub(super) frame: usize,
}

/// A line, before it has a place: from one box to another, or to itself.
#[derive(Clone, Debug)]
pub(super) struct Edge {
    pub(super) from: usize,
    pub(super) to: usize,
}

/// Where everything is, in pixels.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    /// Top and height of each box.
    pub(super) nodes: Vec<(f64, f64)>,
    /// Top and height of each frame.
    pub(super) frames: Vec<(f64, f64)>,
    /// Where each line begins and ends, and where its track is.
    pub(super) edges: Vec<Route>,
    /// What all of it takes.
    pub(super) height: f64,
    /// How many tracks there are.
    pub(super) tracks: usize,
}

/// A line's way.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Route {
    /// The heights at which it leaves one box, and comes to the other.
    pub(super) from: f64,
    pub(super) to: f64,
    /// Its track, from 0, the one next to the words.
    pub(super) track: usize,
}

/// Between two lines at a box: what a word needs above its line.
pub(super) const PITCH: f64 = 20.0;
const LEAST: f64 = 46.0;
const BETWEEN: f64 = 18.0;
const TITLE: f64 = 28.0;
const PADDING: f64 = 16.0;

/// One of a line's two ends, at its box.
#[derive(Clone, Copy)]
struct Port {
    edge: usize,
    arrives: bool,
    /// How many boxes away the other end is; downwards is positive.
    away: isize,
}

pub(super) fn place(nodes: &[Node], edges: &[Edge], top: f64) -> Places {
    let mut ports = vec![Vec::<Port>::new(); nodes.len()];
    for (index, edge) in edges.iter().enumerate() {
        let away = edge.to as isize - edge.from as isize;
        for (node, arrives, away) in [(edge.from, false, away), (edge.to, true, -away)] {
            ports[node].push(Port {
                edge: index,
                arrives,
                away,
            });
        }
    }
    let mut places = Places {
        edges: vec![Route::default(); edges.len()],
        ..Places::default()
    };
    let mut y = top;
    for (index, node) in nodes.iter().enumerate() {
        if node.frame == places.frames.len() {
            y += if index == 0 { 0.0 } else { BETWEEN };
            places.frames.push((y, 0.0));
            y += TITLE;
        }
        let height = (ports[index].len() as f64 * PITCH + 8.0).max(LEAST);
        places.nodes.push((y, height));
        // Those that go up are first, the nearest before the others; of those that go down the nearest is last. Then lines
        // that leave one box do not cross each other.
        let ports = &mut ports[index];
        ports.sort_by_key(|port| (port.away > 0, -port.away, port.edge, port.arrives));
        let first = y + (height - ports.len() as f64 * PITCH) / 2.0 + PITCH - 4.0;
        for (place, port) in ports.iter().enumerate() {
            let at = first + place as f64 * PITCH;
            let route = &mut places.edges[port.edge];
            *(if port.arrives {
                &mut route.to
            } else {
                &mut route.from
            }) = at;
        }
        y += height + PADDING;
        let frame = &mut places.frames[node.frame];
        frame.1 = y - frame.0;
    }
    places.height = y;
    places.tracks = tracks(&mut places.edges);
    places
}

/// Gives each line a track, the short ones the inner ones; two share one if they are apart. Gives how many there are.
fn tracks(routes: &mut [Route]) -> usize {
    let span = |route: &Route| (route.from.min(route.to), route.from.max(route.to));
    let mut order: Vec<usize> = (0..routes.len()).collect();
    order.sort_by(|a, b| {
        let length = |index: &usize| {
            let (low, high) = span(&routes[*index]);
            high - low
        };
        length(a).total_cmp(&length(b)).then(a.cmp(b))
    });
    let mut taken = BTreeMap::<usize, Vec<(f64, f64)>>::new();
    for index in order {
        let (low, high) = span(&routes[index]);
        let apart = |spans: &Vec<(f64, f64)>| {
            let clear = |(other_low, other_high): &(f64, f64)| {
                high + PITCH / 2.0 < *other_low || *other_high + PITCH / 2.0 < low
            };
            spans.iter().all(clear)
        };
        let free = (0..).find(|track| taken.get(track).is_none_or(apart));
        let track = free.unwrap_or(taken.len());
        taken.entry(track).or_default().push((low, high));
        routes[index].track = track;
    }
    taken.len()
}
