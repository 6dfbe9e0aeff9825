//! What every picture must be, and that it is.

use super::*;
use crate::view::ProcessView;
use std::io::Write as _;
use std::process::{Command, Stdio};

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
    let view = RunView {
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
        ..RunView::default()
    };
    let picture = svg(&view);
    let document = roxmltree::Document::parse(&picture).expect("well formed");
    let texts: Vec<&str> = document
        .descendants()
        .filter(|node| node.has_tag_name("text"))
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

/// Names that mean something to Graphviz, unless they are quoted.
fn awkward() -> RunView {
    let names = ["a\" -> b [", "\\N\\", "<b>c</b>", "d;}"];
    let processes: Vec<_> = names
        .iter()
        .map(|name| process(name, &format!("of {name}")))
        .collect();
    let mut view = all_to_all(processes);
    let outside = channel(Some(names[0]), None, 3);
    view.channels.push(ChannelView {
        contract: "\\G\"".into(),
        ..outside
    });
    view
}

#[test]
fn graphviz_is_told_every_process_domain_and_line() {
    let text = dot(&awkward());
    for line in [
        r#"label="domain of a\" -> b [";"#,
        r#"n1 [label="\\N\\\n0 threads, 0 KiB", fillcolor="\#dcebdd"];"#,
        r#"label="other holders";"#,
        r#"[label="\\G\" 3 → 0 ←"];"#,
    ] {
        let line = line.replace(r"\#", "#");
        assert_eq!(text.matches(&line).count(), 1, "{line} in {text}");
    }
    assert_eq!(text.matches("[label=\"ask 7 → 0 ←\"];").count(), 16);
}

/// `MULLION_NEED_DOT` makes it a failure that there is none.
#[test]
fn graphviz_lays_it_out() {
    let dot_there = || {
        let mut child = Command::new("dot")
            .arg("-Tsvg")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .ok()?;
        let mut input = child.stdin.take()?;
        let text = dot(&awkward());
        // Its own thread: dot may write before it has read all.
        std::thread::spawn(move || input.write_all(text.as_bytes()));
        child.wait_with_output().ok()
    };
    let Some(output) = dot_there() else {
        assert!(std::env::var_os("MULLION_NEED_DOT").is_none(), "no dot");
        println!("not tried: Graphviz's dot is not installed");
        return;
    };
    assert!(output.status.success(), "{output:?}");
    let drawn = String::from_utf8(output.stdout).expect("text");
    let options = roxmltree::ParsingOptions {
        allow_dtd: true,
        ..roxmltree::ParsingOptions::default()
    };
    let document = roxmltree::Document::parse_with_options(&drawn, options).expect("well formed");
    let texts: Vec<&str> = document
        .descendants()
        .filter(|node| node.has_tag_name("text"))
        .filter_map(|node| node.text())
        .collect();
    let view = awkward();
    for process in &view.processes {
        for words in [process.name.clone(), format!("domain {}", process.domain)] {
            let found = texts.iter().filter(|text| ***text == *words).count();
            assert_eq!(found, 1, "{words} in {texts:?}");
        }
    }
    let lines = texts.iter().filter(|text| **text == "ask 7 → 0 ←").count();
    assert_eq!(lines, 16);
}

#[test]
fn nothing_is_a_picture_too() {
    assert!(roxmltree::Document::parse(&svg(&RunView::default())).is_ok());
}

/// A rectangle: left, top, right, bottom.
type Area = [f64; 4];

fn number(node: roxmltree::Node, name: &str) -> f64 {
    let value = node.attribute(name).expect(name);
    value.parse().expect("a number")
}

fn area(node: roxmltree::Node) -> Area {
    let [x, y, width, height] = ["x", "y", "width", "height"].map(|name| number(node, name));
    [x, y, x + width, y + height]
}

/// What words take at least, for any usual font: from above, as the picture itself has it.
fn words_area(node: roxmltree::Node, size: f64) -> Area {
    let (x, y) = (number(node, "x"), number(node, "y"));
    let wide = width(node.text().unwrap_or_default(), size);
    [x, y - 0.8 * size, x + wide, y + 0.25 * size]
}

fn overlap(one: &Area, other: &Area) -> bool {
    one[0] < other[2] && other[0] < one[2] && one[1] < other[3] && other[1] < one[3]
}

/// The pieces of a line of horizontal and vertical ones.
fn pieces(path: &str) -> Vec<Area> {
    let mut numbers = path.split(|c: char| c.is_ascii_alphabetic() || c == ' ');
    let mut commands = path.chars().filter(char::is_ascii_alphabetic);
    let mut next = || {
        let text = numbers.by_ref().find(|text| !text.is_empty());
        text.and_then(|text| text.parse::<f64>().ok())
    };
    assert_eq!(commands.next(), Some('M'));
    let (mut x, mut y) = (next().expect("x"), next().expect("y"));
    commands
        .map(|command| {
            let before = (x, y);
            let to = next().expect("a number");
            match command {
                'H' => x = to,
                'V' => y = to,
                other => panic!("{other} in {path}"),
            }
            [
                before.0.min(x),
                before.1.min(y),
                before.0.max(x),
                before.1.max(y),
            ]
        })
        .collect()
}

/// How thick lines are: what is nearer touches.
const THICK: f64 = 1.0;

fn thick(piece: &Area) -> Area {
    let [left, top, right, bottom] = *piece;
    [left - THICK, top - THICK, right + THICK, bottom + THICK]
}

/// What is wrong in a picture.
fn faults(picture: &str) -> Vec<String> {
    let document = roxmltree::Document::parse(picture).expect("well formed");
    let of = |class: &'static str| {
        let nodes = document.descendants();
        nodes.filter(move |node| node.attribute("class") == Some(class))
    };
    let page = document.root_element();
    let page = [0.0, 0.0, number(page, "width"), number(page, "height")];
    let boxes: Vec<_> = of("process")
        .map(|node| (node.attribute("data-name").expect("a name"), area(node)))
        .collect();
    let words: Vec<_> = of("words").map(|node| words_area(node, SMALL)).collect();
    let mut faults = Vec::new();
    let mut lines = Vec::new();
    for line in of("channel") {
        let ends = ["data-from", "data-to"].map(|end| line.attribute(end).expect("an end"));
        let pieces = pieces(line.attribute("d").expect("a way"));
        for (name, place) in &boxes {
            let first =
                pieces[0][0] == place[2] && pieces[0][1] > place[1] && pieces[0][3] < place[3];
            let last = pieces[2][1] > place[1] && pieces[2][3] < place[3];
            if first != (*name == ends[0]) || last != (*name == ends[1]) {
                faults.push(format!("{ends:?} is not where its ends are: {name}"));
            }
            // Its own box it touches from without.
            if pieces.iter().any(|piece| overlap(piece, place)) {
                faults.push(format!("{ends:?} crosses {name}"));
            }
            let other = !ends.contains(name);
            if other && pieces.iter().any(|piece| overlap(&thick(piece), place)) {
                faults.push(format!("{ends:?} touches {name}"));
            }
        }
        for piece in &pieces {
            if words.iter().any(|place| overlap(&thick(piece), place)) {
                faults.push(format!("{ends:?} goes through words"));
            }
            if !overlap(piece, &page) && piece[0] < page[2] {
                // A line has no area of its own.
                let inside = piece[0] >= 0.0 && piece[2] <= page[2] && piece[3] <= page[3];
                if !inside {
                    faults.push(format!("{ends:?} leaves the page"));
                }
            }
        }
        // Two lines may cross; they do not go together.
        for (others, before) in &lines {
            let beside = |one: &Area, other: &Area| {
                let upright = |piece: &Area| piece[0] == piece[2];
                upright(one) == upright(other) && overlap(&thick(one), &thick(other))
            };
            let before: &Vec<Area> = before;
            if pieces
                .iter()
                .any(|one| before.iter().any(|other| beside(one, other)))
            {
                faults.push(format!("{ends:?} and {others:?} go together"));
            }
        }
        lines.push((ends, pieces));
    }
    for (index, one) in words.iter().enumerate() {
        if words[..index].iter().any(|other| overlap(one, other)) {
            faults.push("words lie on each other".into());
        }
        if boxes.iter().any(|(_, place)| overlap(one, place)) || one[2] > page[2] {
            faults.push("words lie on a box, or leave the page".into());
        }
    }
    for (index, (name, place)) in boxes.iter().enumerate() {
        if boxes[..index]
            .iter()
            .any(|(_, other)| overlap(place, other))
        {
            faults.push(format!("{name} lies on another box"));
        }
    }
    faults
}

/// Everybody talks to everybody.
fn all_to_all(processes: Vec<ProcessView>) -> RunView {
    let names: Vec<String> = processes.iter().map(|one| one.name.clone()).collect();
    let channels = names.iter().flat_map(|client| {
        let servers = names.iter();
        servers.map(move |server| channel(Some(client.as_str()), Some(server.as_str()), 7))
    });
    RunView {
        channels: channels.collect(),
        processes,
        ..RunView::default()
    }
}

#[test]
fn no_line_crosses_a_box_and_no_words_lie_on_others_in_every_example() {
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../examples/sip");
    let mut count = 0;
    for entry in std::fs::read_dir(examples).expect("examples").flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|end| end != "toml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("text");
        let Ok(configuration) = toml::from_str::<toml::Table>(&text) else {
            panic!("{path:?}");
        };
        let Some(processes) = configuration
            .get("processes")
            .and_then(toml::Value::as_table)
        else {
            continue;
        };
        let processes = processes.iter().map(|(name, how)| {
            let domain = how.get("domain").and_then(toml::Value::as_str);
            process(name, domain.unwrap_or("main"))
        });
        let view = all_to_all(processes.collect());
        assert_eq!(faults(&svg(&view)), Vec::<String>::new(), "{path:?}");
        count += 1;
    }
    assert!(count >= 3, "{count} examples");
}

/// For whoever wants to look: `MULLION_PICTURE=FILE` gets one of them.
#[test]
fn a_host_of_two_domains_can_be_looked_at() {
    let ask = |contract: &str, client: &str, server: &str, sent| ChannelView {
        contract: contract.into(),
        to_client: sent,
        ..channel(Some(client), Some(server), sent)
    };
    let mut processes = vec![
        process("web", "main"),
        process("parser (untrusted)", "apart"),
        process("cache", "main"),
        process("disk", "storage"),
        process("sockets", "storage"),
    ];
    processes[1].state = "waiting".into();
    let view = RunView {
        channels: vec![
            ask("mullion::socket", "web", "sockets", 412),
            ask("http::parse", "web", "parser (untrusted)", 409),
            ask("cache::read", "web", "cache", 900),
            ask("disk::read", "cache", "disk", 31),
            ask("disk::read", "web", "disk", 2),
            channel(Some("web"), None, 1),
        ],
        processes,
        ..RunView::default()
    };
    let picture = svg(&view);
    assert_eq!(faults(&picture), Vec::<String>::new());
    if let Some(path) = std::env::var_os("MULLION_PICTURE") {
        std::fs::write(path, picture).expect("written");
    }
}

#[test]
fn nor_in_any_other_graph() {
    let mut seed = 7u64;
    let mut random = |below: u64| {
        seed = seed
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (seed >> 33) % below
    };
    for _ in 0..300 {
        let count = 1 + random(12);
        let name = |index: u64| format!("{}-{index}", "process".repeat(1 + index as usize % 14));
        let processes: Vec<_> = (0..count)
            .map(|index| ProcessView {
                state: ["running", "waiting", "over"][random(3) as usize].into(),
                restarts: random(1 << 40),
                ..process(&name(index), &format!("domain {}", random(4)))
            })
            .collect();
        let channels = (0..random(40)).map(|_| {
            let mut end = || (random(8) > 0).then(|| name(random(count)));
            let (client, server) = (end(), end());
            let contract = "contract".repeat(1 + random(12) as usize);
            ChannelView {
                contract,
                to_client: random(1 << 32) as u32,
                ..channel(client.as_deref(), server.as_deref(), random(1 << 32) as u32)
            }
        });
        let view = RunView {
            channels: channels.collect(),
            processes,
            ..RunView::default()
        };
        let picture = svg(&view);
        assert_eq!(faults(&picture), Vec::<String>::new(), "{picture}");
    }
}

/// What [`faults`] is for, it finds.
#[test]
fn what_is_wrong_is_found() {
    let view = all_to_all(["a", "b", "c"].map(|name| process(name, "main")).into());
    let whole = svg(&view);
    assert_eq!(faults(&whole), Vec::<String>::new());
    // The longest line's.
    let bends = whole.split('H').filter_map(|rest| rest.split_once('V'));
    let bends = bends.filter_map(|(bend, _)| bend.parse::<f64>().ok());
    let bend = bends.fold(0.0, f64::max);
    for (what, to) in [
        // Another box's end, a line through boxes, one through words, and words moved onto a box.
        ("data-to=\"c\"", "data-to=\"b\"".to_owned()),
        (&format!("H{bend}V")[..], "H100V".into()),
        (&format!("H{bend}V")[..], "H260V".into()),
        (
            "class=\"words\" x=\"",
            "class=\"words\" x=\"60\" data-x=\"".into(),
        ),
    ] {
        let broken = whole.replace(what, &to);
        assert_ne!(faults(&broken), Vec::<String>::new(), "{what}");
    }
}
