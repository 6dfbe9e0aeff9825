//! What one line of a log holds, and its bound: the only way to make a line.

use super::{Head, LogEntry};
use crate::record::Sha256Digest;
use serde_json::{Map, Value, json};

/// Bytes of a line that a writer writes, its newline included.
pub const LINE: usize = 64 << 10;

/// Bounds that an event is cut to, one after the other, until it fits: bytes of a text, members of
/// a list or an object, depth.
const CUTS: [(usize, usize, usize); 5] = [
    (4096, 256, 8),
    (1024, 64, 6),
    (256, 32, 4),
    (128, 16, 3),
    (64, 8, 2),
];

/// A line with its newline, at most as long as its maker says.
pub(super) struct Line {
    pub(super) bytes: Vec<u8>,
    /// The head of a log that ends with it.
    pub(super) head: Head,
}

impl Line {
    /// The line behind `head` that says `event`, in at most so many bytes: [`LINE`], or some kilobytes. An event that is too long is
    /// cut, and the line says of how many bytes, with which digest, it is a cut.
    pub(super) fn new(head: &Head, time: u64, event: Value, most: usize) -> Line {
        let mut entry = LogEntry {
            seq: head.lines,
            prev: head.last.clone(),
            time,
            event,
        };
        let mut bytes = encode(&entry);
        if bytes.len() >= most {
            entry.event = cut(&entry.event, most - FRAME);
            bytes = encode(&entry);
        }
        let head = Head {
            lines: head.lines + 1,
            last: Sha256Digest::of(&bytes).to_string(),
        };
        bytes.push(b'\n');
        Line { bytes, head }
    }
}

/// More bytes than an entry takes around its event: three members, two numbers, a digest.
const FRAME: usize = 256;

fn encode(entry: &LogEntry) -> Vec<u8> {
    serde_json::to_vec(entry).unwrap_or_default()
}

/// What is left of an event within `room` bytes.
fn cut(event: &Value, room: usize) -> Value {
    let whole = event.to_string();
    let note = json!({
        "bytes": whole.len(),
        "sha256": Sha256Digest::of(whole.as_bytes()).to_string(),
    });
    for bounds in CUTS {
        let mut shorter = match shortened(event, bounds) {
            Value::Object(members) => members,
            other => Map::from_iter([("event".to_owned(), other)]),
        };
        shorter.insert("cut".to_owned(), note.clone());
        let shorter = Value::Object(shorter);
        if shorter.to_string().len() <= room {
            return shorter;
        }
    }
    json!({ "kind": "cut", "cut": note })
}

fn shortened(value: &Value, (text, members, depth): (usize, usize, usize)) -> Value {
    let inner = (text, members, depth.saturating_sub(1));
    let more = |length: usize| format!("... {} more", length - members);
    match value {
        Value::String(whole) => Value::String(crate::text::shortened(whole, text).into_owned()),
        Value::Array(_) | Value::Object(_) if depth == 0 => json!("..."),
        Value::Array(list) => {
            let mut short: Vec<_> = list
                .iter()
                .take(members)
                .map(|one| shortened(one, inner))
                .collect();
            if list.len() > members {
                short.push(Value::String(more(list.len())));
            }
            Value::Array(short)
        }
        Value::Object(map) => {
            let kept = map
                .iter()
                .filter(|(name, _)| name.len() <= text)
                .take(members);
            kept.map(|(name, one)| (name.clone(), shortened(one, inner)))
                .collect()
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start() -> Head {
        super::super::empty()
    }

    #[test]
    fn every_event_makes_a_line_within_the_bound() {
        let text = |length: usize| Value::String("\u{1}\u{fffd}\"".repeat(length));
        let mut deep = json!("x".repeat(9000));
        for _ in 0..100 {
            deep = json!([deep, "y".repeat(900)]);
        }
        let names = (0..9000).map(|number| (format!("{number}"), json!(number)));
        let wide = (0..300).map(|number| (format!("{number}"), text(300)));
        let events = [
            text(1 << 20),
            json!({ "kind": "refused", "obstacles": vec![text(500); 5000] }),
            json!({ "kind": "refused", "x".repeat(1 << 20): 1 }),
            json!(vec![vec![vec![text(40); 40]; 40]; 40]),
            deep,
            Value::Object(names.collect()),
            Value::Object(wide.collect()),
        ];
        for event in events {
            let whole = event.to_string();
            let line = Line::new(&start(), u64::MAX, event.clone(), LINE);
            assert!(line.bytes.len() <= LINE, "{}", line.bytes.len());
            let entry: LogEntry = serde_json::from_slice(&line.bytes).expect("a line");
            assert_eq!(entry.event["cut"]["bytes"], whole.len());
            let digest = Sha256Digest::of(whole.as_bytes()).to_string();
            assert_eq!(entry.event["cut"]["sha256"], digest);
            let most = super::super::strangers::SHORT;
            let short = Line::new(&start(), u64::MAX, event, most);
            assert!(short.bytes.len() <= most, "{}", short.bytes.len());
        }
    }

    #[test]
    fn what_fits_is_kept_whole() {
        let event = json!({ "kind": "refused", "reason": "x".repeat(60_000) });
        let line = Line::new(&start(), 0, event.clone(), LINE);
        let entry: LogEntry = serde_json::from_slice(&line.bytes).expect("a line");
        assert_eq!(entry.event, event);
    }

    #[test]
    fn of_a_long_decision_the_kind_and_the_first_lines_are_kept() {
        let obstacles: Vec<_> = (0..9000)
            .map(|number| format!("obstacle {number}"))
            .collect();
        let event = json!({ "kind": "refused", "reason": "no", "obstacles": obstacles });
        let line = Line::new(&start(), 0, event, LINE);
        let entry: LogEntry = serde_json::from_slice(&line.bytes).expect("a line");
        assert_eq!(entry.event["kind"], "refused");
        assert_eq!(entry.event["reason"], "no");
        let kept = entry.event["obstacles"].as_array().expect("a list");
        assert_eq!(kept[0], "obstacle 0");
        assert_eq!(kept[kept.len() - 1], "... 8744 more");
    }
}
