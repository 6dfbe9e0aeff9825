//! The channel graph as a picture: processes by domain, channels between them.
//!
//! ```text
//!   +- domain main -----------+      +- domain storage --+
//!   |  [ web ]      [ cache ] |      |  [ disk ]         |
//!   +-----\-----------/-------+      +----/--------------+
//!          \__ http: 12 / 12 ____________/
//! ```
//! Every process has a row of its own in its domain's column. Channels of one contract between the same two
//! processes are one line, with their number and the messages each way.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::view::{ChannelView, View};

const NODE: (f64, f64) = (190.0, 46.0);
const GAP: (f64, f64) = (340.0, 44.0);
const MARGIN: f64 = 40.0;
const PADDING: f64 = 24.0;
const TITLE: f64 = 26.0;

/// Who holds ends that no process of this supervisor holds.
const OUTSIDE: &str = "(elsewhere)";

/// Channels of one contract between the same two.
#[derive(Default)]
struct Bundle {
    channels: u64,
    to_server: u64,
    to_client: u64,
}

/// Paints a view.
pub fn svg(view: &View) -> String {
    let columns = columns(view);
    let bundles = bundles(&view.channels);
    let rows = columns
        .iter()
        .map(|(_, names)| names.len())
        .max()
        .unwrap_or(0) as f64;
    let width =
        2.0 * MARGIN + columns.len() as f64 * (NODE.0 + GAP.0) - GAP.0 + 2.0 * PADDING + SIDE;
    let height = 2.0 * MARGIN + TITLE + 2.0 * PADDING + rows * (NODE.1 + GAP.1) - GAP.1;
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    );
    let mut places = BTreeMap::new();
    for (column, (domain, names)) in columns.iter().enumerate() {
        let x = MARGIN + PADDING + column as f64 * (NODE.0 + GAP.0);
        frame(&mut out, domain, x, names.len());
        for (row, name) in names.iter().enumerate() {
            let y = MARGIN + TITLE + PADDING + row as f64 * (NODE.1 + GAP.1);
            places.insert(name.clone(), (x, y));
        }
    }
    let mut labels = String::new();
    let mut arrivals = BTreeMap::<&str, usize>::new();
    for ((client, server, contract), bundle) in &bundles {
        if let (Some(from), Some(to)) = (places.get(client), places.get(server)) {
            let number = arrivals.entry(server).or_default();
            let at = edge(&mut out, *from, *to, *number);
            label(&mut labels, at, contract, bundle);
            *number += 1;
        }
    }
    for (name, place) in &places {
        node(&mut out, view, name, *place);
    }
    out.push_str(&labels);
    out.push_str("</svg>\n");
    out
}

/// Room at the right for lines between processes of the last column.
const SIDE: f64 = 170.0;

/// Domains with the names of their processes; in the last place, who holds ends outside of all.
fn columns(view: &View) -> Vec<(String, Vec<String>)> {
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

fn bundles(channels: &[ChannelView]) -> BTreeMap<(String, String, String), Bundle> {
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

fn frame(out: &mut String, domain: &str, x: f64, rows: usize) {
    let (left, top) = (x - PADDING, MARGIN);
    let width = NODE.0 + 2.0 * PADDING;
    let height = TITLE + 2.0 * PADDING + rows as f64 * (NODE.1 + GAP.1) - GAP.1;
    let _ = writeln!(
        out,
        "<rect x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" rx=\"10\" fill=\"#f4f1ea\" \
         stroke=\"#8a8376\"/>\n<text x=\"{}\" y=\"{}\" fill=\"#5b554a\">{}</text>",
        left + 12.0,
        top + 20.0,
        escaped(domain)
    );
}

fn node(out: &mut String, view: &View, name: &str, (x, y): (f64, f64)) {
    let found = view.processes.iter().find(|process| process.name == name);
    let (fill, detail) = match found {
        None => ("#ffffff", String::new()),
        Some(process) if process.state == "running" => {
            let restarts = match process.restarts {
                0 => String::new(),
                number => format!(", {number} restarts"),
            };
            (
                "#dcebdd",
                format!(
                    "{} threads, {} KiB{restarts}",
                    process.threads,
                    process.heap >> 10
                ),
            )
        }
        Some(process) => (
            "#eedcd8",
            format!("{}, {} restarts", process.state, process.restarts),
        ),
    };
    let _ = writeln!(
        out,
        "<rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\" rx=\"6\" fill=\"{fill}\" stroke=\"#3c3a36\"/>\n\
         <text x=\"{}\" y=\"{}\" font-weight=\"bold\" fill=\"#1d1c1a\">{}</text>\n\
         <text x=\"{}\" y=\"{}\" font-size=\"11\" fill=\"#44413b\">{}</text>",
        NODE.0,
        NODE.1,
        x + 10.0,
        y + 19.0,
        escaped(&shortened(name)),
        x + 10.0,
        y + 36.0,
        escaped(&detail)
    );
}

/// A line from client to server; within a column it goes round at the right. Lines that arrive at one process keep
/// a distance. Gives where there is room for words: at the arrival, or at the bend.
fn edge(out: &mut String, from: (f64, f64), to: (f64, f64), number: usize) -> (f64, f64) {
    let shift = 14.0 * number as f64;
    let start = from.1 + NODE.1 / 2.0;
    let end = to.1 + 12.0 + shift;
    let (path, words) = if from.0 == to.0 {
        let x = from.0 + NODE.0;
        let by = 40.0 + (end - start).abs() / 4.0;
        let reach = x + by;
        (
            format!("M{x} {start} C{reach} {start} {reach} {end} {x} {end}"),
            (x + 0.75 * by + 6.0, (start + end) / 2.0 + 4.0),
        )
    } else {
        let rightwards = to.0 > from.0;
        let x = (
            if rightwards { from.0 + NODE.0 } else { from.0 },
            if rightwards { to.0 } else { to.0 + NODE.0 },
        );
        let half = (x.0 + x.1) / 2.0;
        (
            format!(
                "M{} {start} C{half} {start} {half} {end} {} {end}",
                x.0, x.1
            ),
            (if rightwards { x.1 - 120.0 } else { x.1 + 8.0 }, end - 3.0),
        )
    };
    let _ = writeln!(
        out,
        "<path d=\"{path}\" fill=\"none\" stroke=\"#2f5d8a\" stroke-width=\"1.6\"/>"
    );
    words
}

/// What goes through: the contract, how many channels, messages to the server and back.
fn label(out: &mut String, at: (f64, f64), contract: &str, bundle: &Bundle) {
    let times = match bundle.channels {
        1 => String::new(),
        channels => format!("{channels} × "),
    };
    let _ = writeln!(
        out,
        "<text x=\"{}\" y=\"{}\" font-size=\"11\" fill=\"#2f5d8a\" stroke=\"#ffffff\" stroke-width=\"3\" \
         paint-order=\"stroke\">{times}{} {} → {} ←</text>",
        at.0,
        at.1,
        escaped(contract),
        bundle.to_server,
        bundle.to_client
    );
}

fn shortened(name: &str) -> String {
    if name.chars().count() <= 22 {
        return name.to_owned();
    }
    let mut short: String = name.chars().take(21).collect();
    short.push('…');
    short
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::ProcessView;

    fn process(name: &str, domain: &str) -> ProcessView {
        ProcessView {
            name: name.into(),
            domain: domain.into(),
            state: "running".into(),
            ..ProcessView::default()
        }
    }

    fn channel(client: Option<&str>, server: Option<&str>, to_server: u32) -> ChannelView {
        ChannelView {
            contract: "ask".into(),
            client: client.map(str::to_owned),
            server: server.map(str::to_owned),
            to_server,
            ..ChannelView::default()
        }
    }

    #[test]
    fn every_process_domain_and_contract_is_there_once() {
        let view = View {
            processes: vec![
                process("a<b", "main"),
                process("b", "other"),
                process("c", "main"),
            ],
            channels: vec![
                channel(Some("a<b"), Some("b"), 5),
                channel(Some("a<b"), Some("b"), 6),
                channel(Some("c"), None, 1),
            ],
            ..View::default()
        };
        let picture = svg(&view);
        let document = roxmltree::Document::parse(&picture).expect("well formed");
        let texts: Vec<&str> = document
            .descendants()
            .filter(|node| node.is_text())
            .filter_map(|node| node.text())
            .collect();
        for wanted in [
            "a<b",
            "b",
            "c",
            "domain main",
            "domain other",
            "2 × ask 11 → 0 ←",
            "ask 1 → 0 ←",
            OUTSIDE,
        ] {
            assert_eq!(
                texts.iter().filter(|text| **text == wanted).count(),
                1,
                "{wanted}"
            );
        }
        let lines = document
            .descendants()
            .filter(|node| node.has_tag_name("path"));
        assert_eq!(lines.count(), 2);
    }

    #[test]
    fn nothing_is_a_picture_too() {
        assert!(roxmltree::Document::parse(&svg(&View::default())).is_ok());
    }
}
