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
const GAP: (f64, f64) = (260.0, 44.0);
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
    let rows = columns.values().map(Vec::len).max().unwrap_or(0) as f64;
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
    let mut between = BTreeMap::<(&str, &str), usize>::new();
    for ((client, server, contract), bundle) in &bundles {
        if let (Some(from), Some(to)) = (places.get(client), places.get(server)) {
            let number = between.entry((client, server)).or_default();
            edge(&mut out, *from, *to, *number, contract, bundle);
            *number += 1;
        }
    }
    for (name, place) in &places {
        node(&mut out, view, name, *place);
    }
    out.push_str("</svg>\n");
    out
}

/// Room at the right for lines between processes of the last column.
const SIDE: f64 = 170.0;

/// Domains with the names of their processes.
fn columns(view: &View) -> BTreeMap<String, Vec<String>> {
    let mut columns = BTreeMap::<String, Vec<String>>::new();
    for process in &view.processes {
        let column = columns.entry(process.domain.clone()).or_default();
        column.push(process.name.clone());
    }
    let outside = |channel: &ChannelView| channel.client.is_none() || channel.server.is_none();
    if view.channels.iter().any(outside) {
        columns.insert(OUTSIDE.to_owned(), vec![OUTSIDE.to_owned()]);
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
         stroke=\"#8a8376\"/>\n<text x=\"{}\" y=\"{}\" fill=\"#5b554a\">domain {}</text>",
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

/// A line from client to server. Within a column it goes round at the right; further lines between the same two
/// keep a distance.
fn edge(
    out: &mut String,
    from: (f64, f64),
    to: (f64, f64),
    number: usize,
    contract: &str,
    bundle: &Bundle,
) {
    let shift = 16.0 * number as f64;
    let middle = |place: (f64, f64)| place.1 + NODE.1 / 2.0;
    let (path, label) = if from.0 == to.0 {
        let x = from.0 + NODE.0;
        let (start, end) = (middle(from), middle(to));
        let out_by = 60.0 + shift + (end - start).abs() / 6.0;
        let reach = x + out_by;
        (
            format!("M{x} {start} C{reach} {start} {reach} {end} {x} {end}"),
            (x + 0.75 * out_by + 6.0, (start + end) / 2.0 + shift),
        )
    } else {
        let rightwards = to.0 > from.0;
        let start = (
            if rightwards { from.0 + NODE.0 } else { from.0 },
            middle(from) + shift,
        );
        let end = (
            if rightwards { to.0 } else { to.0 + NODE.0 },
            middle(to) + shift,
        );
        let half = (start.0 + end.0) / 2.0;
        (
            format!(
                "M{} {} C{half} {} {half} {} {} {}",
                start.0, start.1, start.1, end.1, end.0, end.1
            ),
            (half - 60.0, (start.1 + end.1) / 2.0 - 6.0),
        )
    };
    let times = match bundle.channels {
        1 => String::new(),
        channels => format!("{channels} × "),
    };
    let _ = writeln!(
        out,
        "<path d=\"{path}\" fill=\"none\" stroke=\"#2f5d8a\" stroke-width=\"1.6\"/>\n\
         <text x=\"{}\" y=\"{}\" font-size=\"11\" fill=\"#2f5d8a\" stroke=\"#ffffff\" stroke-width=\"3\" \
         paint-order=\"stroke\">{times}{}</text>\n\
         <text x=\"{}\" y=\"{}\" font-size=\"10\" fill=\"#2f5d8a\" stroke=\"#ffffff\" stroke-width=\"3\" \
         paint-order=\"stroke\">{} → {} ←</text>",
        label.0,
        label.1,
        escaped(contract),
        label.0,
        label.1 + 13.0,
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
            .filter_map(|node| node.text())
            .collect();
        for wanted in [
            "a<b",
            "b",
            "c",
            "domain main",
            "domain other",
            "2 × ask",
            "11 → 0 ←",
            "1 → 0 ←",
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
