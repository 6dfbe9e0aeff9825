//! The figures of domains, and the text by which Prometheus and its like gather them:
//! exposition format 0.0.4.
//!
//! ```text
//! # HELP mullion_domain_calls_total Invocations that have begun.
//! # TYPE mullion_domain_calls_total counter
//! mullion_domain_calls_total{domain="resizer",image="resizer.mx",number="3"} 1027
//! ```
//! A domain is told from others of its name by its number, which no other one of the
//! process ever has.
#![forbid(unsafe_code)]

use mullion_runtime::{Counts, FaultKind, LimitKind};
use std::fmt::{self, Write};

/// The figures of one domain at a moment, and whose they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// The domain's name.
    pub domain: String,
    /// Its image's name.
    pub image: String,
    /// Its number, which no other domain of the process ever has.
    pub number: u64,
    /// The figures.
    pub counts: Counts,
}

/// What the text is to be called where it is served (`Content-Type`).
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A family that has one value for each domain.
struct Family {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    value: fn(&Counts) -> Option<u64>,
}

const FAMILIES: [Family; 9] = [
    Family {
        name: "calls_total",
        kind: "counter",
        help: "Invocations that have begun.",
        value: |counts| Some(counts.calls),
    },
    Family {
        name: "host_calls_total",
        kind: "counter",
        help: "Calls of host functions and of linked domains that the domain has made.",
        value: |counts| Some(counts.host_calls),
    },
    Family {
        name: "exits_total",
        kind: "counter",
        help: "Invocations that ended since the domain ended itself.",
        value: |counts| Some(counts.exits),
    },
    Family {
        name: "refused_total",
        kind: "counter",
        help: "Invocations that a host function ended, without a fault.",
        value: |counts| Some(counts.refused),
    },
    Family {
        name: "calls_not_made_total",
        kind: "counter",
        help: "Calls that were not made: the domain had ended or was closed, or a limit forbade them.",
        value: |counts| Some(counts.not_made),
    },
    Family {
        name: "restarts_total",
        kind: "counter",
        help: "Restarts of the domain.",
        value: |counts| Some(counts.restarts),
    },
    Family {
        name: "memory_bytes",
        kind: "gauge",
        help: "Bytes of image and heap that the domain can access.",
        value: |counts| Some(counts.memory),
    },
    Family {
        name: "memory_highest_bytes",
        kind: "gauge",
        help: "The most bytes of image and heap that the domain could ever access.",
        value: |counts| Some(counts.memory_highest),
    },
    Family {
        name: "memory_limit_bytes",
        kind: "gauge",
        help: "Bytes of image and heap that the domain may have.",
        value: |counts| Some(counts.memory_limit),
    },
];

/// The figures of all these domains as text: [`CONTENT_TYPE`]. No two may have the same number.
#[must_use]
pub fn prometheus(all: &[Metrics]) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write(&mut text, all);
    text
}

fn write(text: &mut String, all: &[Metrics]) -> fmt::Result {
    let labels: Vec<String> = all.iter().map(labels).collect();
    let each = || all.iter().map(|metrics| &metrics.counts).zip(&labels);
    for family in &FAMILIES {
        head(text, family.name, family.kind, family.help)?;
        for (counts, labels) in each() {
            if let Some(value) = (family.value)(counts) {
                writeln!(text, "mullion_domain_{}{{{labels}}} {value}", family.name)?;
            }
        }
    }
    if all.iter().any(|metrics| metrics.counts.time.is_some()) {
        let help = "What outermost invocations took that have ended, where that is measured.";
        head(text, "call_seconds_total", "counter", help)?;
        for (counts, labels) in each() {
            if let Some(time) = counts.time {
                let (seconds, rest) = (time.as_secs(), time.subsec_nanos());
                writeln!(
                    text,
                    "mullion_domain_call_seconds_total{{{labels}}} {seconds}.{rest:09}"
                )?;
            }
        }
    }
    // Those that are 0 too: what gathers them tells the first fault from a new domain by that.
    let help = "Invocations that ended by a fault, by its kind.";
    head(text, "faults_total", "counter", help)?;
    for (counts, labels) in each() {
        for kind in FaultKind::ALL {
            let (name, value) = (kind.name(), counts.faults_of(*kind));
            writeln!(
                text,
                "mullion_domain_faults_total{{{labels},kind=\"{name}\"}} {value}"
            )?;
        }
    }
    let help = "How often a limit was hit, by its name.";
    head(text, "limit_hits_total", "counter", help)?;
    for (counts, labels) in each() {
        for limit in LimitKind::ALL {
            let (name, value) = (limit.name(), counts.limit_hits_of(*limit));
            writeln!(
                text,
                "mullion_domain_limit_hits_total{{{labels},limit=\"{name}\"}} {value}"
            )?;
        }
    }
    Ok(())
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) -> fmt::Result {
    writeln!(text, "# HELP mullion_domain_{name} {help}")?;
    writeln!(text, "# TYPE mullion_domain_{name} {kind}")
}

fn labels(metrics: &Metrics) -> String {
    let (domain, image) = (escaped(&metrics.domain), escaped(&metrics.image));
    let number = metrics.number;
    format!("domain=\"{domain}\",image=\"{image}\",number=\"{number}\"")
}

/// A label's value: names may be of anybody's making.
fn escaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for character in value.chars() {
        match character {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            other => text.push(other),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    /// Names as a hostile host or author would choose them.
    const NAMES: [&str; 7] = [
        "plain",
        "",
        "with \"quotes\" and \\ and a\nnew line",
        "} 1\n# TYPE x counter",
        "\\n",
        "ümläut €",
        "a\r\tb\u{1}",
    ];

    fn samples() -> Vec<Metrics> {
        let sample = |(place, name): (usize, &&str)| {
            let mut counts = Counts::default();
            counts.calls = 1000 + place as u64;
            counts.memory = u64::from(u32::MAX) + place as u64;
            counts.time = (place == 1).then_some(Duration::new(3, 7));
            Metrics {
                domain: (*name).to_owned(),
                image: (*name).to_owned(),
                number: place as u64,
                counts,
            }
        };
        NAMES.iter().enumerate().map(sample).collect()
    }

    /// For which Debian has the package; another one may be first in the path.
    const DEBIANS: &str = "/usr/bin/python3";

    /// The parser that Prometheus' project offers for Python reads back what was written.
    #[test]
    fn another_implementation_reads_the_same() {
        const READ: &str = "
import sys
from prometheus_client.parser import text_string_to_metric_families as parse
for family in parse(sys.stdin.buffer.read().decode()):
    assert family.type != 'unknown' and family.documentation, family
    for sample in family.samples:
        row = [sample.name, repr(sample.value)]
        row += [key + '=' + sample.labels[key] for key in sorted(sample.labels)]
        print('|'.join(field.encode().hex() for field in row))
";
        let text = prometheus(&samples());
        let mut python = Command::new(if std::path::Path::new(DEBIANS).exists() {
            DEBIANS
        } else {
            "python3"
        })
        .args(["-c", READ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("python3");
        let mut input = python.stdin.take().expect("a pipe");
        let sent = text.clone();
        let writer = std::thread::spawn(move || input.write_all(sent.as_bytes()));
        let output = python.wait_with_output().expect("python3");
        let said = String::from_utf8_lossy(&output.stderr);
        if said.contains("No module named") {
            assert!(
                std::env::var_os("MULLION_REQUIRE_PROMETHEUS").is_none(),
                "python3-prometheus-client is missing"
            );
            println!("not run: python3-prometheus-client is not installed");
            return;
        }
        assert!(output.status.success(), "{said}");
        writer.join().expect("the writer").expect("written");
        let hex = |field: &str| -> String { field.bytes().map(|b| format!("{b:02x}")).collect() };
        let lines = String::from_utf8(output.stdout).expect("hexadecimal");
        let rows: Vec<&str> = lines.lines().collect();
        let samples = samples();
        let mut expected = 0;
        for metrics in &samples {
            let labels = [
                format!("domain={}", metrics.domain),
                format!("image={}", metrics.image),
                format!("number={}", metrics.number),
            ];
            let mut find = |name: &str, value: String, more: &[String]| {
                let mut labels = [&labels[..], more].concat();
                labels.sort();
                let fields = [&[format!("mullion_domain_{name}"), value][..], &labels].concat();
                let row: Vec<String> = fields.iter().map(|field| hex(field)).collect();
                let row = row.join("|");
                assert!(rows.contains(&row.as_str()), "{fields:?}\n{text}");
                expected += 1;
            };
            for family in &FAMILIES {
                let value = (family.value)(&metrics.counts).expect("always");
                find(family.name, format!("{value}.0"), &[]);
            }
            if metrics.counts.time.is_some() {
                find("call_seconds_total", "3.000000007".to_owned(), &[]);
            }
            for kind in FaultKind::ALL {
                let label = format!("kind={}", kind.name());
                find("faults_total", "0.0".to_owned(), &[label]);
            }
            for limit in LimitKind::ALL {
                let label = format!("limit={}", limit.name());
                find("limit_hits_total", "0.0".to_owned(), &[label]);
            }
        }
        assert_eq!(rows.len(), expected, "nothing else");
    }

    #[test]
    fn a_name_makes_no_lines_of_its_own() {
        let lines = |metrics: &[Metrics]| prometheus(metrics).lines().count();
        let plain = Metrics {
            number: 1,
            ..Metrics::default()
        };
        let each = lines(std::slice::from_ref(&plain)) - lines(&[]);
        let all: Vec<Metrics> = samples()
            .into_iter()
            .filter(|one| one.counts.time.is_none())
            .collect();
        assert_eq!(lines(&all), lines(&[]) + all.len() * each);
        assert!(!prometheus(&all).contains("\n# TYPE x"));
    }
}
