//! What the host's log holds of a domain. A process of its own: the first use of a place that logs, on a thread
//! without a subscriber, may hide it from one that is set at that moment.

#[path = "host/everything.rs"]
mod everything;
mod support;

use everything::{IMAGE, imports};
use mullion::{DomainMemory, Host, Limits};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber, span};

/// Keeps every event as one line.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn during(run: impl FnOnce()) -> Vec<String> {
        let log = Self::default();
        tracing::subscriber::with_default(log.clone(), run);
        let lines = log.0.lock().unwrap();
        lines.clone()
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        write!(self.0, " {field}={value:?}").unwrap();
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, attributes: &span::Attributes<'_>) -> span::Id {
        let data = attributes.metadata();
        let mut line = Line(format!("SPAN {} {}", data.target(), data.name()));
        attributes.record(&mut line);
        self.0.lock().unwrap().push(line.0);
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &Event<'_>) {
        let data = event.metadata();
        let mut line = Line(format!("{} {}", data.level(), data.target()));
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

fn has(lines: &[String], parts: &[&str]) -> bool {
    lines
        .iter()
        .any(|line| parts.iter().all(|part| line.contains(part)))
}

#[test]
fn output_calls_faults_and_restarts_are_logged() {
    let lines = Log::during(|| {
        let host = Host::new();
        let image = host.image("loud", IMAGE.file().bytes().clone()).unwrap();
        let domain = image.domain().imports(imports()).load().unwrap();
        let text = domain.string_in("first\nsecond \x1b[31m").unwrap();
        let speak = domain
            .function::<fn(mullion::Ptr<u8>) -> i32>("speak")
            .unwrap();
        assert_eq!(speak.call(text.ptr()).unwrap(), 0);
        domain
            .function::<fn()>("fault")
            .unwrap()
            .call()
            .unwrap_err();
        speak.call(text.ptr()).unwrap_err();
        domain.restart().unwrap();
        mullion::log_metrics();
        domain.unload().unwrap();
        let limits = Limits {
            output: Some(30),
            ..Limits::default()
        };
        let limited = image.domain().imports(imports()).limits(limits);
        let limited = limited.load().unwrap();
        let text = limited
            .string_in("more than that is more than thirty")
            .unwrap();
        let speak = limited.function::<fn(mullion::Ptr<u8>) -> i32>("speak");
        speak.unwrap().call(text.ptr()).unwrap_err();
    });
    assert!(has(&lines, &["WARN mullion", "no policy"]), "{lines:#?}");
    assert!(has(
        &lines,
        &[
            "INFO mullion::output",
            "domain=\"loud\"",
            "stdout",
            "message=first"
        ]
    ));
    assert!(has(&lines, &["message=second \\u{1b}[31m"]), "{lines:#?}");
    assert!(has(
        &lines,
        &["WARN mullion::output", "stderr", "message=to stderr"]
    ));
    assert!(
        has(&lines, &["message=no end"]),
        "the last line has none: {lines:#?}"
    );
    assert!(has(
        &lines,
        &[
            "TRACE mullion::call",
            "domain=\"loud\"",
            "function=\"speak\""
        ]
    ));
    let span = [
        "SPAN mullion::call call",
        "domain=\"loud\"",
        "function=\"speak\"",
    ];
    assert!(has(&lines, &span), "{lines:#?}");
    let figures = [
        "INFO mullion::metrics",
        "domain=\"loud\"",
        " faults=1 ",
        " restarts=1 ",
        " memory=",
    ];
    assert!(has(&lines, &figures), "{lines:#?}");
    let fault = [
        "ERROR mullion::fault",
        "domain=\"loud\"",
        "write to memory",
        "scribble (",
    ];
    assert!(has(&lines, &fault), "{lines:#?}");
    // The backtrace, with lines of the source: who was called, and by whom.
    for function in ["scribble (", "fault ("] {
        let frame = ["INFO mullion::fault", "  at 0x", function, "everything.c:"];
        assert!(has(&lines, &frame), "{lines:#?}");
    }
    assert!(
        has(
            &lines,
            &["ERROR mullion::fault", "output limit of 30 bytes exceeded"]
        ),
        "{lines:#?}"
    );
    assert!(
        has(
            &lines,
            &[
                "DEBUG mullion::call",
                "takes no calls until it is restarted"
            ]
        ),
        "{lines:#?}"
    );
    assert!(
        has(&lines, &["INFO mullion::domain", "restarted"]),
        "{lines:#?}"
    );
}
