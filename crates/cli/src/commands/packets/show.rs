//! What runs, as a table.

use mullion_packets::control::{ModuleStatus, Status};
use std::fmt::Write as _;
use std::time::Duration;

/// The status, and, beside an earlier one, what came in each second and how long it took since.
pub(super) fn table(status: &Status, before: Option<(&Status, Duration)>) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    if !status.ports.is_empty() {
        let _ = writeln!(
            text,
            "port  received      bytes       sent    dropped     unsent       lost      uncut  per second"
        );
    }
    for (number, port) in status.ports.iter().enumerate() {
        let old = before.and_then(|(before, time)| Some((before.ports.get(number)?, time)));
        let _ = writeln!(
            text,
            "{number:<4} {:>9} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>11}",
            port.received,
            port.received_bytes,
            port.sent,
            port.dropped,
            port.unsent,
            port.lost,
            port.uncut,
            rate(old.map(|(old, time)| (old.received, time)), port.received),
        );
    }
    if status.modules.is_empty() {
        return text;
    }
    let _ = writeln!(
        text,
        "\nmodule              frames    changed    dropped      added    refused   ns each  per second"
    );
    for module in &status.modules {
        let old = before.and_then(|(before, time)| {
            let mut old = before.modules.iter();
            Some((old.find(|old| old.module.name == module.module.name)?, time))
        });
        write_module(&mut text, module, old);
    }
    text
}

fn write_module(
    text: &mut String,
    module: &ModuleStatus,
    before: Option<(&ModuleStatus, Duration)>,
) {
    let _ = writeln!(
        text,
        "{:<16} {:>9} {:>10} {:>10} {:>10} {:>10} {:>9} {:>11}",
        module.module.name,
        module.frames,
        module.changed,
        module.dropped,
        module.added,
        module.refused,
        module.nanoseconds,
        rate(before.map(|(old, time)| (old.frames, time)), module.frames),
    );
    if let Some(warning) = &module.warning {
        let _ = writeln!(text, "    warning: {}", printable(warning));
    }
    if let Some(why) = &module.stopped {
        let why = printable(why);
        let _ = writeln!(
            text,
            "    taken out: {}",
            why.trim_end().replace('\n', "\n    ")
        );
    }
}

fn rate(before: Option<(u64, Duration)>, now: u64) -> String {
    match before {
        // A module of that name may be a new one.
        Some((before, time)) if now >= before && !time.is_zero() => {
            format!("{:.0}", (now - before) as f64 / time.as_secs_f64())
        }
        _ => "-".to_owned(),
    }
}

/// What somebody should do something about.
pub(super) fn hints(status: &Status) -> Vec<String> {
    let mut hints = Vec::new();
    for (number, port) in status.ports.iter().enumerate() {
        if port.uncut > 0 {
            hints.push(format!(
                "port {number}: {} frames were longer than the interface lets through. Their sender leaves it to its \
                 card to cut them; at the other end of a veth: ethtool -K INTERFACE tso off gso off",
                port.uncut
            ));
        }
        if port.lost > 0 {
            hints.push(format!(
                "port {number}: {} frames came faster than they were forwarded, and are lost. `ring` in the \
                 configuration keeps more of them waiting",
                port.lost
            ));
        }
    }
    hints
}

/// Without control characters but for the ends of lines: modules wrote it.
pub(super) fn printable(text: &str) -> String {
    let show = |c: char| match c.is_control() && c != '\n' {
        true => '\u{fffd}',
        false => c,
    };
    text.chars().map(show).collect()
}
