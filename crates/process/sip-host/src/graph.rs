//! The channel graph as a picture: processes by domain, channels between them.
//!
//! ```text
//!   +- domain main ---------+
//!   | [ web               o-|-- http 12 → 12 ← ---+
//!   | [ cache             o-|-- read 3 → 3 ← --+  |
//!   +- domain storage ------+                  |  |
//!   | [ disk              <-|------------------+  |
//!   | [                   <-|---------------------+
//!   +-----------------------+
//! ```
//! Channels of one contract between the same two processes are one line, with their number and the messages each
//! way. A dot is at the client's end, an arrow at the server's. Where they go is `place`'s business: no line touches a box
//! that is not its end, and words stand free, in every graph.
//!
//! [`dot`] writes the same graph as text for Graphviz, for whoever wants one of its layouts.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::view::{ChannelView, ProcessView, RUNNING, RunView};

mod place;
#[cfg(test)]
mod tests;

use place::{Edge, Node, Places, Route};

const MARGIN: f64 = 24.0;
const PADDING: f64 = 16.0;
/// Between two tracks.
const TRACK: f64 = 14.0;
const BOLD: f64 = 13.0;
const SMALL: f64 = 11.0;
/// Of a name, so many characters are shown; all of them are in its tip.
const LONGEST: usize = 64;
/// One after the other, so that lines beside each other differ.
const COLOURS: [&str; 5] = ["#2f5d8a", "#8a3b2f", "#3f7040", "#6b4a8c", "#7a6117"];

/// Who holds ends that no process of this supervisor holds.
const OUTSIDE: &str = "(elsewhere)";

/// Channels of one contract between the same two.
#[derive(Default)]
struct Bundle {
    channels: u64,
    to_server: u64,
    to_client: u64,
}

/// Who asks whom, by which contract.
type Bundles = BTreeMap<(String, String, String), Bundle>;

/// Paints a view.
pub fn svg(view: &RunView) -> String {
    let picture = Picture::new(view);
    let mut out = String::new();
    let (width, height) = picture.size();
    // Writing to a string does not fail.
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"{BOLD}\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    );
    for (index, name) in picture.frames.iter().enumerate() {
        picture.frame(&mut out, index, name);
    }
    for index in 0..picture.names.len() {
        picture.node(&mut out, index, view);
    }
    for (index, (key, bundle)) in picture.bundles.iter().enumerate() {
        picture.edge(&mut out, index, key, bundle);
    }
    out.push_str("</svg>\n");
    out
}

/// Writes a view as text for Graphviz: a cluster for each domain, full names, and the same words on each line.
pub fn dot(view: &RunView) -> String {
    let picture = Picture::new(view);
    let mut out = String::from(
        "digraph channels {\n    rankdir=LR;\n    node [shape=box, style=\"rounded,filled\"];\n",
    );
    for (frame, title) in picture.frames.iter().enumerate() {
        // Writing to a string does not fail.
        let _ = writeln!(
            out,
            "    subgraph cluster_{frame} {{\n        label=\"{}\";",
            quoted(title)
        );
        let members = picture.nodes.iter().enumerate();
        for (index, _) in members.filter(|(_, node)| node.frame == frame) {
            let name = &picture.names[index];
            let (fill, words) = described(view, name);
            let _ = writeln!(
                out,
                "        n{index} [label=\"{}\\n{}\", fillcolor=\"{fill}\"];",
                quoted(name),
                quoted(&words)
            );
        }
        out.push_str("    }\n");
    }
    for (((_, _, contract), bundle), edge) in picture.bundles.iter().zip(&picture.edges) {
        let _ = writeln!(
            out,
            "    n{} -> n{} [label=\"{}\"];",
            edge.from,
            edge.to,
            quoted(&bundle.words(contract))
        );
    }
    out.push_str("}\n");
    out
}

/// What is to be painted, and where.
struct Picture {
    /// Frames by their titles, and boxes by their names, from top to bottom.
    frames: Vec<String>,
    names: Vec<String>,
    nodes: Vec<Node>,
    bundles: Vec<((String, String, String), Bundle)>,
    /// One for each bundle.
    edges: Vec<Edge>,
    places: Places,
    /// Of all boxes.
    width: f64,
    /// Of the longest words on a line.
    words: f64,
}

impl Picture {
    fn new(view: &RunView) -> Picture {
        let columns = columns(view);
        let bundles: Vec<_> = bundles(&view.channels).into_iter().collect();
        let (mut nodes, mut names) = (Vec::new(), Vec::new());
        for (frame, (_, processes)) in columns.iter().enumerate() {
            nodes.extend(processes.iter().map(|_| Node { frame }));
            names.extend(processes.iter().cloned());
        }
        let at = |name: &String| names.iter().position(|known| known == name);
        // A channel of a process that is not there, is nobody's.
        let known = |((client, server, _), _): &(_, Bundle)| {
            Some(Edge {
                from: at(client)?,
                to: at(server)?,
            })
        };
        let (bundles, edges): (Vec<_>, Vec<_>) = bundles
            .into_iter()
            .filter_map(|bundle| known(&bundle).map(|edge| (bundle, edge)))
            .unzip();
        let details = view.processes.iter().map(detail);
        let wide = names
            .iter()
            .map(|name| width(&shortened(name), BOLD))
            .chain(details.map(|(_, words)| width(&words, SMALL)))
            .chain(
                columns
                    .iter()
                    .map(|(title, _)| width(&shortened(title), BOLD)),
            )
            .fold(150.0, f64::max);
        let words = bundles
            .iter()
            .map(|((_, _, contract), bundle)| width(&bundle.words(contract), SMALL));
        Picture {
            words: words.fold(0.0, f64::max),
            places: place::place(&nodes, &edges, MARGIN),
            frames: columns.into_iter().map(|(title, _)| title).collect(),
            names,
            nodes,
            bundles,
            edges,
            width: wide + 20.0,
        }
    }

    /// Where boxes end.
    fn right(&self) -> f64 {
        MARGIN + PADDING + self.width
    }

    fn track(&self, track: usize) -> f64 {
        self.right() + PADDING + 14.0 + self.words + 10.0 + track as f64 * TRACK
    }

    fn size(&self) -> (f64, f64) {
        let tracks = self.places.tracks;
        (self.track(tracks) + MARGIN, self.places.height + MARGIN)
    }

    fn frame(&self, out: &mut String, index: usize, title: &str) {
        let (top, height) = self.places.frames[index];
        let _ = writeln!(
            out,
            "<rect class=\"frame\" x=\"{MARGIN}\" y=\"{top}\" width=\"{}\" height=\"{height}\" rx=\"10\" \
             fill=\"#f4f1ea\" stroke=\"#8a8376\"/>\n<text x=\"{}\" y=\"{}\" fill=\"#5b554a\">{}</text>",
            self.width + 2.0 * PADDING,
            MARGIN + PADDING,
            top + 19.0,
            escaped(&shortened(title))
        );
    }

    fn node(&self, out: &mut String, index: usize, view: &RunView) {
        let (name, (y, height)) = (&self.names[index], self.places.nodes[index]);
        let (fill, words) = described(view, name);
        let x = MARGIN + PADDING;
        let _ = writeln!(
            out,
            "<rect class=\"process\" data-name=\"{full}\" x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{height}\" rx=\"6\" \
             fill=\"{fill}\" stroke=\"#3c3a36\"><title>{full}</title></rect>\n\
             <text x=\"{}\" y=\"{}\" font-weight=\"bold\" fill=\"#1d1c1a\">{}</text>\n\
             <text x=\"{}\" y=\"{}\" font-size=\"{SMALL}\" fill=\"#44413b\">{}</text>",
            self.width,
            x + 10.0,
            y + 19.0,
            escaped(&shortened(name)),
            x + 10.0,
            y + 36.0,
            escaped(&words),
            full = escaped(name),
        );
    }

    /// A line from client to server, and the words on it, where it leaves the client.
    fn edge(
        &self,
        out: &mut String,
        index: usize,
        (client, server, contract): &(String, String, String),
        bundle: &Bundle,
    ) {
        let Route { from, to, track } = self.places.edges[index];
        let (x, bend) = (self.right(), self.track(track));
        let colour = COLOURS[index % COLOURS.len()];
        let tip = format!("{client} asks {server}: {contract}");
        let _ = writeln!(
            out,
            "<path class=\"channel\" data-from=\"{}\" data-to=\"{}\" d=\"M{x} {from}H{bend}V{to}H{}\" fill=\"none\" \
             stroke=\"{colour}\" stroke-width=\"1.6\" stroke-linejoin=\"round\"><title>{}</title></path>\n\
             <circle cx=\"{x}\" cy=\"{from}\" r=\"3\" fill=\"{colour}\"/>\n\
             <polygon points=\"{x},{to} {},{} {},{}\" fill=\"{colour}\"/>\n\
             <text class=\"words\" x=\"{}\" y=\"{}\" font-size=\"{SMALL}\" fill=\"{colour}\">{}</text>",
            escaped(client),
            escaped(server),
            x + 7.0,
            escaped(&tip),
            x + 9.0,
            to - 4.0,
            x + 9.0,
            to + 4.0,
            x + PADDING + 8.0,
            from - 4.0,
            escaped(&bundle.words(contract))
        );
    }
}

/// Domains with the names of their processes; in the last place, who holds ends outside of all.
fn columns(view: &RunView) -> Vec<(String, Vec<String>)> {
    let mut columns = BTreeMap::<&str, Vec<String>>::new();
    for process in &view.processes {
        let column = columns.entry(&process.domain).or_default();
        column.push(process.name.clone());
    }
    let columns = columns.into_iter();
    let mut columns: Vec<_> = columns
        .map(|(domain, names)| (format!("domain {domain}"), names))
        .collect();
    let outside = |channel: &ChannelView| channel.client.is_none() || channel.server.is_none();
    if view.channels.iter().any(outside) {
        columns.push(("other holders".to_owned(), vec![OUTSIDE.to_owned()]));
    }
    columns
}

fn bundles(channels: &[ChannelView]) -> Bundles {
    let mut bundles = BTreeMap::<_, Bundle>::new();
    let name = |end: &Option<String>| end.clone().unwrap_or_else(|| OUTSIDE.to_owned());
    for channel in channels {
        let key = (
            name(&channel.client),
            name(&channel.server),
            channel.contract.clone(),
        );
        let bundle = bundles.entry(key).or_default();
        bundle.channels += 1;
        bundle.to_server += u64::from(channel.to_server);
        bundle.to_client += u64::from(channel.to_client);
    }
    bundles
}

/// What is known of who has this name: a colour, and words.
fn described(view: &RunView, name: &str) -> (&'static str, String) {
    let found = view.processes.iter().find(|process| process.name == name);
    found.map_or(("#ffffff", String::new()), detail)
}

/// A box's colour, and what is said in it.
fn detail(process: &ProcessView) -> (&'static str, String) {
    if process.state != RUNNING {
        let words = format!("{}, {} restarts", process.state, process.restarts);
        return ("#eedcd8", words);
    }
    let restarts = match process.restarts {
        0 => String::new(),
        number => format!(", {number} restarts"),
    };
    let heap = process.heap >> 10;
    let words = format!("{} threads, {heap} KiB{restarts}", process.threads);
    ("#dcebdd", words)
}

impl Bundle {
    /// What goes through: the contract, how many channels, messages to the server and back.
    fn words(&self, contract: &str) -> String {
        let times = match self.channels {
            1 => String::new(),
            channels => format!("{channels} × "),
        };
        let contract = shortened(contract);
        format!(
            "{times}{contract} {} → {} ←",
            self.to_server, self.to_client
        )
    }
}

fn shortened(name: &str) -> String {
    if name.chars().count() <= LONGEST {
        return name.to_owned();
    }
    let mut short: String = name.chars().take(LONGEST - 1).collect();
    short.push('…');
    short
}

/// The width of words in pixels, from above.
fn width(text: &str, size: f64) -> f64 {
    let wide = |character: char| if character.is_ascii() { 0.64 } else { 1.0 };
    text.chars().map(wide).sum::<f64>() * size
}

/// As it stands in a label of Graphviz, where a backslash begins an escape.
fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
