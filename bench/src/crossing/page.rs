//! The table "crossings" on the page.

use super::table::{aim, cell, kilobytes, notes, ratio};
use super::{Peer, Population, plot};
use crate::html::escape;
use crate::results::Crossings;
use std::fmt::Write as _;

/// A plot, all numbers, and what they mean.
pub(crate) fn render(out: &mut String, crossings: &Crossings) {
    let _ = write!(
        out,
        "<h2>Crossings</h2><p class=\"soft\">Medians of {} rounds; {}.</p>\
         <p>What a call into a domain and out of it costs, and what a wall's life costs. A bar is the time with one domain alive, \
         on a logarithmic scale, with its number in front; left is faster. Marks are the same with more domains: one of 100 or of 10,000 at work while the \
         others are idle, or all of them one after the other, so that each finds its memory further from the processor (the last \
         of these has its number behind it).</p>",
        crossings.rounds,
        escape(&crossings.processors)
    );
    for note in notes(crossings) {
        let _ = write!(out, "<p class=\"soft\">{}</p>", escape(&note));
    }
    *out += "<figure><figcaption>Each mark tells its number when pointed at.</figcaption>";
    legend(out);
    *out += &plot::bars(crossings);
    *out += "</figure>";
    numbers(out, crossings);
    memory(out, crossings);
    cited(out, crossings);
}

fn legend(out: &mut String) {
    *out += "<div class=\"legend\">";
    for peer in Peer::ALL {
        let _ = write!(
            out,
            "<span><svg viewBox=\"0 0 14 14\"><rect class=\"c-peer-{}\" x=\"1\" y=\"2\" width=\"12\" height=\"10\"/></svg>{}</span>",
            peer.name(),
            peer.title()
        );
    }
    for population in &Population::ALL[1..] {
        *out += "<span><svg viewBox=\"0 0 14 14\">";
        plot::mark(out, *population, 7.0, 7.0, "");
        let told = match population.is_in_turn() {
            true => format!("{} in turn", population.domains()),
            false => format!("one of {}", population.domains()),
        };
        let _ = write!(out, "</svg>{told}</span>");
    }
    *out += "<span><svg viewBox=\"0 0 14 14\"><path class=\"aim\" d=\"M7 1v12\"/></svg>at most, by this project's aims</span></div>";
}

fn numbers(out: &mut String, crossings: &Crossings) {
    *out += "<div class=\"scroll\"><table><tr><th>operation<th class=\"left\">what it does";
    for population in Population::ALL {
        let _ = write!(out, "<th>{}", population.title());
    }
    *out += "<th>spread<th>ratio<th class=\"left\">aim";
    for group in &crossings.groups {
        let _ = write!(
            out,
            "<tr class=\"head\"><td colspan=\"{}\">{}",
            Population::ALL.len() + 5,
            escape(&group.title)
        );
        for row in &group.rows {
            let _ = write!(
                out,
                "<tr><td>{}<td class=\"what long\">{}",
                escape(&row.title),
                escape(&row.what)
            );
            for population in Population::ALL {
                let _ = write!(out, "<td>{}", cell(row, population));
            }
            let spread = row
                .spread()
                .map(|spread| format!("{:.0} %", spread * 100.0));
            let class = if row.reaches() == Some(false) {
                "left high"
            } else {
                "left"
            };
            let _ = write!(
                out,
                "<td>{}<td>{}<td class=\"{class}\">{}",
                spread.as_deref().unwrap_or("–"),
                ratio(group, row),
                aim(row)
            );
        }
    }
    *out += "</table></div><p class=\"soft\">Columns: domains alive, one of them at work; \"turn\": all of them, one after the other. \
             The spread is the distance between the quartiles over the median, the widest of the row. A ratio is over the first row of \
             its group, both with one domain. Nothing is subtracted: loops, clocks and the work of a buffer are in every number.</p>";
}

fn memory(out: &mut String, crossings: &Crossings) {
    if crossings.memory.is_empty() {
        return;
    }
    *out += "<h2>An idle domain's memory</h2><p>Of each of 10,000: the difference to a process with one. Resident are the pages \
             that the process has to itself, the host's own books on the domain among them.</p>\
             <table><tr><th>whose<th class=\"left\">state<th>resident<th>page tables<th>mappings";
    for each in &crossings.memory {
        let _ = write!(
            out,
            "<tr><td>{}<td class=\"left\">{}<td>{}<td>{}<td>{:.2}",
            each.peer.title(),
            escape(&each.state),
            kilobytes(each.resident_bytes),
            kilobytes(each.page_table_bytes),
            each.mappings
        );
    }
    *out += "</table>";
}

fn cited(out: &mut String, crossings: &Crossings) {
    *out += "<h2>Figures of others</h2><p>Not of this run, nor of this machine.</p>\
             <table><tr><th>figure<th class=\"left\">of what<th class=\"left\">source";
    for cited in &crossings.cited {
        let _ = write!(
            out,
            "<tr><td>{}<td class=\"what long\">{}<td class=\"what long\">{}",
            escape(&cited.figure),
            escape(&cited.what),
            escape(&cited.source)
        );
    }
    *out += "</table>";
}
