//! Pictures: that the committed ones are of real states, that every picture is XML of its own, and that
//! what it says can be read.

#[allow(dead_code, reason = "the crowd is also for an example")]
mod scenes;

use mullion_picture::{
    AccessKind, ByteAddress, DrawnGrant, Excerpt, ExportLevel, FORMAT, Label, PaintOptions, Region,
    Space, StateError, SupervisorState, Theme, paint,
};
use proptest::prelude::*;
use roxmltree::{Document, Node};
use std::path::Path;

/// All of it.
fn picture(state: SupervisorState) -> String {
    picture_of(state, Excerpt::whole())
}

fn picture_of(state: SupervisorState, view: Excerpt) -> String {
    let options = PaintOptions {
        view,
        ..PaintOptions::default()
    };
    paint(&state.validate().expect("holds together"), &options)
}

#[test]
fn the_committed_pictures_are_of_real_states() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/pictures");
    for (name, state) in scenes::figures() {
        let committed = |extension| {
            std::fs::read_to_string(folder.join(format!("{name}.{extension}"))).unwrap()
        };
        let again = "run: cargo run -p mullion-picture --example figures docs/pictures";
        assert!(
            state.to_json() == committed("json"),
            "{name}.json differs; {again}"
        );
        let read = SupervisorState::from_json(&state.to_json()).unwrap();
        assert_eq!(read, state);
        assert!(
            picture(read) == committed("svg"),
            "{name}.svg differs; {again}"
        );
    }
}

/// Where a text is, as generously as the painter measures: left, right, top, bottom.
fn place(text: Node<'_, '_>) -> [f64; 4] {
    let number = |name: &str| {
        text.attribute(name)
            .map(|value| value.parse::<f64>().unwrap())
    };
    let words: String = text
        .children()
        .filter(Node::is_text)
        .filter_map(|node| node.text())
        .collect();
    let size = number("font-size").unwrap();
    let width = words.chars().count() as f64 * size * 0.6;
    match text.attribute("transform") {
        // Upright names: translate(x y) rotate(-90).
        Some(transform) => {
            let inside = transform.split(['(', ')']).nth(1).unwrap();
            let (x, y) = inside.split_once(' ').unwrap();
            let (x, y) = (x.parse::<f64>().unwrap(), y.parse::<f64>().unwrap());
            [x - size * 0.72, x, y - width, y]
        }
        None => {
            let (x, y) = (number("x").unwrap(), number("y").unwrap());
            let left = match text.attribute("text-anchor") {
                Some("middle") => x - width / 2.0,
                Some("end") => x - width,
                _ => x,
            };
            [left, left + width, y - size * 0.72, y]
        }
    }
}

fn overlap(a: [f64; 4], b: [f64; 4]) -> bool {
    a[0] < b[1] - 0.5 && b[0] < a[1] - 0.5 && a[2] < b[3] - 0.5 && b[2] < a[3] - 0.5
}

/// No two texts touch, and none leaves the page.
fn legible(svg: &str) {
    let document = Document::parse(svg).expect("well-formed");
    let root = document.root_element();
    let side = |name: &str| root.attribute(name).unwrap().parse::<f64>().unwrap();
    let (width, height) = (side("width"), side("height"));
    let texts: Vec<Node<'_, '_>> = document
        .descendants()
        .filter(|node| node.has_tag_name("text"))
        .collect();
    let mut places: Vec<([f64; 4], &str)> = texts
        .iter()
        .map(|text| (place(*text), text.text().unwrap_or("")))
        .collect();
    places.sort_by(|a, b| a.0[2].total_cmp(&b.0[2]));
    for (index, (here, text)) in places.iter().enumerate() {
        assert!(
            here[0] >= 0.0 && here[1] <= width && here[2] >= 0.0 && here[3] <= height,
            "{text} leaves the page: {here:?} of {width} {height}"
        );
        for (other, second) in places[index + 1..]
            .iter()
            .take_while(|(other, _)| other[2] < here[3])
        {
            assert!(
                !overlap(*here, *other),
                "{text:?} {here:?} and {second:?} {other:?} overlap"
            );
        }
    }
    for node in document.descendants() {
        for attribute in node.attributes() {
            let outside = attribute.value().contains("http") && attribute.name() != "xmlns";
            assert!(!outside, "the picture needs {}", attribute.value());
        }
    }
}

#[test]
fn no_texts_overlap_from_2_domains_to_100_and_from_a_handful_of_regions_to_thousands() {
    for (domains, grants) in [
        (2, 4),
        (3, 12),
        (5, 20),
        (8, 40),
        (12, 30),
        (20, 60),
        (40, 200),
        (100, 300),
        (100, 2500),
        (160, 20),
    ] {
        legible(&picture(scenes::crowd(domains, grants)));
    }
    legible(&picture(scenes::slab()));
    for (_, state) in scenes::figures() {
        legible(&picture(state));
    }
}

/// In red, struck through, and with the word: also where columns are narrow.
#[test]
fn a_domain_that_takes_no_calls_is_marked() {
    for domains in [2, 12, 30] {
        let mut state = scenes::crowd(domains, 2 * domains);
        state.domains[1].name = "parser".into();
        state.domains[1].ended = true;
        let svg = picture(state);
        legible(&svg);
        let document = Document::parse(&svg).unwrap();
        let marked = |node: &Node<'_, '_>| node.attribute("class") == Some("name ended");
        let words: Vec<_> = document.descendants().filter(marked).collect();
        assert_eq!(words.len(), 1, "{domains} domains");
        let said = words[0].children().filter_map(|node| node.text());
        assert!(said.into_iter().any(|text| text == "parser (ended)"));
    }
}

/// A name of forty letters is a name that people give.
#[test]
fn names_of_columns_are_whole() {
    for domains in [2, 6, 12, 30] {
        let long = "for untrusted images of the second kind";
        let mut state = scenes::crowd(domains, 2 * domains);
        state.domains[1].name = long.into();
        let svg = picture(state);
        legible(&svg);
        let document = Document::parse(&svg).unwrap();
        let whole = |node: Node<'_, '_>| node.is_text() && node.text() == Some(long);
        assert!(document.descendants().any(whole), "{domains} domains");
    }
}

#[test]
fn what_repeats_a_thousand_times_is_shown_once() {
    let svg = picture(scenes::slab());
    assert!(svg.contains("these 4 rows 998 times more"), "no fold");
    assert!(svg.len() < 40_000, "{} bytes", svg.len());
}

fn space(start: u128, end: u128) -> Option<Space> {
    let (start, end) = (ByteAddress(start), ByteAddress(end));
    Some(Space { start, end })
}

/// What stands in a picture.
fn texts(svg: &str) -> Vec<String> {
    let document = Document::parse(svg).expect("well-formed");
    let texts = document
        .descendants()
        .filter(|node| node.has_tag_name("text"));
    let words = texts.filter_map(|text| {
        let mut inside = text.children().filter(Node::is_text);
        inside.find_map(|node| node.text())
    });
    words.map(str::to_owned).collect()
}

/// What is left out is said, and how to see it.
#[test]
fn a_server_of_a_thousand_domains_has_a_picture_that_can_be_drawn() {
    let state = scenes::server(1000, 100);
    assert_eq!(state.regions.len(), 100_000);
    let svg = picture_of(state.clone(), Excerpt::default());
    legible(&svg);
    assert!(svg.len() < 1_000_000, "{} bytes", svg.len());
    let document = Document::parse(&svg).unwrap();
    let side = |name| {
        document
            .root_element()
            .attribute(name)
            .unwrap()
            .parse::<u32>()
    };
    let sides = [side("width").unwrap(), side("height").unwrap()];
    assert!(sides.iter().all(|side| *side < 8000), "{sides:?}");
    let said = texts(&svg).join("\n");
    for line in [
        "1000 domains  ·  7 groups  ·  100000 regions  ·  6.1 GiB",
        "Left out: 5 of 7 groups.",
        "worker-8 and 141 alike",
        "Left out: 713 of 1000 domains, which have nothing at these addresses. See them with --domain NAME.",
        "Left out: 23661 of 23861 rows, from 0xc8",
        "See them with --range START..END, or more with --most-rows N.",
        "rows more, ",
        "worker-3 (ended)",
    ] {
        assert!(said.contains(line), "{line}\n{said}");
    }

    // The 500th window, and who has anything there.
    let view = Excerpt {
        range: space(0x64_0000 * 499, 0x64_0000 * 500),
        ..Excerpt::default()
    };
    let svg = picture_of(state.clone(), view);
    legible(&svg);
    let said = texts(&svg);
    for name in ["worker-500", "worker-501", "group 4"] {
        assert!(said.iter().any(|text| text == name), "{name}\n{said:?}");
    }
    assert!(
        said.iter()
            .all(|text| text != "worker-498" && text != "group 5")
    );
    assert!(said.iter().all(|text| !text.contains("rows")), "{said:?}");

    // Two domains that are chosen, wherever they are.
    let view = Excerpt {
        domains: vec![500, 900],
        ..Excerpt::default()
    };
    let svg = picture_of(state, view);
    legible(&svg);
    let said = texts(&svg);
    let document = Document::parse(&svg).unwrap();
    let names = document
        .descendants()
        .filter(|node| node.attribute("class") == Some("name"));
    let names: Vec<_> = names.filter_map(|name| name.last_child()?.text()).collect();
    assert_eq!(names, ["worker-500", "worker-900"]);
    assert!(said.contains(&"Shown: 2 chosen of 1000 domains.".to_owned()));
}

/// A hundred readers of one page are one column.
#[test]
fn domains_that_may_do_the_same_share_a_column() {
    let mut state = scenes::server(120, 10);
    for region in &mut state.regions[..10] {
        region.grants.retain(|grant| grant.domain == Some(1));
    }
    let read = |domain| DrawnGrant {
        domain: Some(domain),
        group: None,
        access: AccessKind::Read,
        to: None,
        export: ExportLevel::None,
    };
    state.regions[4].grants.extend((10..110).map(read));
    state.domains[50].ended = true;
    let view = Excerpt {
        range: space(0, 0xa_0000),
        ..Excerpt::default()
    };
    let svg = picture_of(state, view);
    legible(&svg);
    let said = texts(&svg);
    assert!(
        said.contains(&"worker-10 and 98 alike".to_owned()),
        "{said:?}"
    );
    assert!(said.contains(&"worker-50 (ended)".to_owned()), "{said:?}");
    let idle = "Left out: 19 of 120 domains, which have nothing at these addresses. See them with --domain NAME.";
    assert!(said.contains(&idle.to_owned()), "{said:?}");
    assert!(svg.contains("alike: worker-11, worker-12,"), "{svg}");
}

/// As many blocks as there can be: everybody may do something else everywhere.
#[test]
fn no_picture_is_larger_than_six_megabytes() {
    let mut state = scenes::server(60, 10);
    for (index, region) in state.regions.iter_mut().enumerate() {
        let access =
            |domain: u32| [AccessKind::Read, AccessKind::ReadWrite][(index + domain as usize) % 2];
        let grants = (1..=60).map(|domain| DrawnGrant {
            domain: Some(domain),
            group: None,
            access: access(domain),
            to: None,
            export: ExportLevel::None,
        });
        region.grants = grants.collect();
    }
    let svg = picture_of(state, Excerpt::default());
    legible(&svg);
    assert!(svg.len() < 6_000_000, "{} bytes", svg.len());
}

/// "stack" and "heap" of one size are two things.
#[test]
fn rows_of_other_names_are_not_folded() {
    let mut state = scenes::slab();
    let svg = picture(state.clone());
    assert!(svg.contains("these 4 rows 998 times more"));
    let start = state
        .regions
        .iter()
        .position(|region| region.start.0 == 0x10000 + 0x80 * 500);
    let Region { start, end, .. } = state.regions[start.unwrap()].clone();
    state.labels.push(Label {
        start,
        end,
        name: "the one".to_owned(),
    });
    let svg = picture(state);
    legible(&svg);
    assert!(!svg.contains("these 4 rows 998 times more"));
    assert!(texts(&svg).contains(&"the one".to_owned()));
}

#[test]
fn every_block_says_what_it_is() {
    let (_, state) = scenes::figures()
        .into_iter()
        .find(|(name, _)| *name == "figure-5-after")
        .unwrap();
    let svg = picture(state);
    for tip in [
        "module (domain 2)\n0x10000 to 0x10004, 4 B\nswitch gate to domain 2",
        "kernel (domain 1)\n0x10000 to 0x10004, 4 B\nswitch gate to domain 2; may not pass it on",
        "module (domain 2)\nowns 0x10000 to 0x13000, 12 KiB",
        "module (domain 2)\n0x18000 to 0x19000, 4 KiB\nread-write",
    ] {
        assert!(svg.contains(tip), "{tip}");
    }
}

#[test]
fn every_label_that_has_room_is_written() {
    for (name, state) in scenes::figures() {
        let labels = state.labels.len();
        assert_eq!(
            picture(state).matches("class=\"label\"").count(),
            labels,
            "{name}"
        );
    }
}

#[test]
fn the_theme_can_be_fixed() {
    let state = || scenes::figures().remove(0).1.validate().unwrap();
    let style = |theme| {
        let svg = paint(
            &state(),
            &PaintOptions {
                theme,
                ..PaintOptions::default()
            },
        );
        svg[svg.find("<style>").unwrap()..svg.find("</style>").unwrap()].to_owned()
    };
    assert!(style(Theme::Auto).contains("prefers-color-scheme: dark"));
    assert!(!style(Theme::Light).contains("#17171b"));
    assert!(style(Theme::Dark).contains("#17171b") && !style(Theme::Dark).contains("@media"));
}

#[test]
fn names_of_all_kinds_stay_inside_their_texts() {
    let (_, state) = scenes::figures().remove(0);
    let mut state = state.title("</text><script>alert(1)</script> & \"more\" \u{1}");
    for domain in &mut state.domains {
        domain.name = "<b>nämé that goes on and on & on</b>".repeat(domain.id as usize);
    }
    legible(&picture(state));
}

/// What to replace by what, and whether the error is the right one.
type Break = (&'static str, &'static str, fn(&StateError) -> bool);

/// A small state that holds together, to be broken.
const WHOLE: &str = r#"{"mullion_state": 1, "space": {"start": 0, "end": "0x2000"},
    "domains": [{"id": 0}, {"id": 1, "parent": 0}, {"id": 2, "parent": 1}],
    "groups": [{"id": 0, "creator": 0}, {"id": 1, "creator": 1, "members": [2]}],
    "regions": [
        {"start": 0, "end": 4096, "owner": 1, "grants": [{"domain": 1, "access": "read", "export": "read"}]},
        {"start": 4096, "end": 8192, "owner": 2, "grants": [{"group": 1, "access": "switch-gate", "to": 1}]}]}"#;

#[test]
fn each_way_to_break_a_state_has_its_own_error() {
    assert!(
        SupervisorState::from_json(WHOLE)
            .unwrap()
            .validate()
            .is_ok()
    );
    let cases: [Break; 18] = [
        ("\"mullion_state\": 1", "\"mullion_state\": 2", |e| {
            matches!(e, StateError::Version { found: 2 })
        }),
        ("\"end\": \"0x2000\"", "\"end\": \"0x2001\"", |e| {
            matches!(e, StateError::Range { what: "space", .. })
        }),
        (
            "\"start\": 0, \"end\": 4096",
            "\"start\": 4096, \"end\": 4096",
            |e| matches!(e, StateError::Range { what: "region", .. }),
        ),
        ("\"start\": 4096", "\"start\": 4092", |e| {
            matches!(e, StateError::Cover { .. })
        }),
        ("\"end\": 8192", "\"end\": 8196", |e| {
            matches!(e, StateError::Cover { .. })
        }),
        (
            "\"id\": 2, \"parent\": 1",
            "\"id\": 1, \"parent\": 1",
            |e| {
                matches!(
                    e,
                    StateError::Twice {
                        what: "domain",
                        id: 1
                    }
                )
            },
        ),
        ("\"parent\": 1", "\"parent\": 7", |e| {
            matches!(
                e,
                StateError::Unknown {
                    what: "domain",
                    id: 7,
                    ..
                }
            )
        }),
        (
            "\"id\": 1, \"parent\": 0",
            "\"id\": 1, \"parent\": 2",
            |e| matches!(e, StateError::Tree { id: 1, .. }),
        ),
        ("{\"id\": 0}", "{\"id\": 0, \"parent\": 1}", |e| {
            matches!(e, StateError::Tree { id: 0, .. })
        }),
        ("{\"id\": 0},", "", |e| {
            matches!(e, StateError::Tree { id: 0, .. })
        }),
        ("\"members\": [2]", "\"members\": [2, 2]", |e| {
            matches!(
                e,
                StateError::Twice {
                    what: "member",
                    id: 2
                }
            )
        }),
        ("\"creator\": 0", "\"creator\": 0, \"members\": [1]", |e| {
            matches!(e, StateError::GlobalMembers)
        }),
        ("\"owner\": 2", "\"owner\": 5", |e| {
            matches!(e, StateError::Unknown { id: 5, .. })
        }),
        ("{\"group\": 1,", "{\"group\": 1, \"domain\": 1,", |e| {
            matches!(e, StateError::Holder { .. })
        }),
        ("\"switch-gate\", \"to\": 1", "\"switch-gate\"", |e| {
            matches!(e, StateError::Destination { .. })
        }),
        ("\"export\": \"read\"", "\"export\": \"full\"", |e| {
            matches!(e, StateError::Export { .. })
        }),
        ("\"access\": \"read\"", "\"access\": \"write\"", |e| {
            matches!(e, StateError::Json(_))
        }),
        ("\"space\"", "\"spice\"", |e| {
            matches!(e, StateError::Json(_))
        }),
    ];
    for (from, to, expected) in cases {
        assert!(WHOLE.contains(from), "{from}");
        let error = SupervisorState::from_json(&WHOLE.replacen(from, to, 1))
            .and_then(SupervisorState::validate)
            .unwrap_err();
        assert!(expected(&error), "{from} -> {to}: {error}");
    }
}

#[test]
fn the_documentation_shows_the_format_as_it_is() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/supervisor.md");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(
        page.contains(FORMAT.trim_end()),
        "docs/supervisor.md does not show src/format.txt as it is"
    );
    for field in [
        "mullion_state",
        "space",
        "domains",
        "groups",
        "regions",
        "labels",
        "creator",
        "members",
        "owner",
    ] {
        assert!(FORMAT.contains(field));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Bytes changed, taken out or doubled: an error or a picture, never a panic.
    #[test]
    fn a_damaged_state_is_refused_or_painted(at in 0..WHOLE.len(), byte in 32u8..127, how in 0..3) {
        let mut text = WHOLE.as_bytes().to_vec();
        match how {
            0 => text[at] = byte,
            1 => { text.remove(at); }
            _ => text.insert(at, byte),
        }
        let text = String::from_utf8(text).unwrap();
        if let Ok(valid) = SupervisorState::from_json(&text).and_then(SupervisorState::validate) {
            prop_assert!(Document::parse(&paint(&valid, &PaintOptions::default())).is_ok());
        }
    }
}
