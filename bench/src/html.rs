//! The page: one file, no script, nothing loaded from elsewhere.

use crate::column::Column;
use crate::crossing;
use crate::plots;
use crate::results::{Results, Row};
use std::fmt::Write as _;

/// Above this a ratio of a wall is set in red.
const HIGH: f64 = 1.10;

/// Renders everything.
pub(crate) fn render(results: &Results) -> String {
    let mut out = String::from("<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">");
    out += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>What each wall costs</title><style>";
    out += include_str!("page.css");
    out += "</style><h1>What each wall costs</h1>";
    let machine = &results.machine;
    let _ = write!(
        out,
        "<p class=\"soft\">{} · {} · {}{}</p>",
        escape(&machine.cpu),
        escape(&machine.system),
        escape(&machine.compiler),
        if results.rows.is_empty() {
            String::new()
        } else {
            format!(
                " · medians of {} rounds of {} turns of {} s, on one processor; native <code>gcc -O2</code> is 1.0",
                results.rounds, results.turns, results.seconds
            )
        }
    );
    out += "<p>Foreign C code, kept in by different walls, beside the same code without any: Mullion's three protections \
            (<b>write-call</b>: writes, calls and jumps; <b>read-write-call</b>: reads too; <b>trap</b>: all of it, faulting at once), \
            and WebAssembly through two compilers.</p>";
    cards(&mut out, results);
    errors(&mut out, results);
    if !results.rows.is_empty() {
        workloads(&mut out, results);
    }
    if let Some(crossings) = &results.crossings {
        crossing::page::render(&mut out, crossings);
    }
    side(&mut out, results);
    method(&mut out, results);
    out
}

/// Every workload in every column.
fn workloads(out: &mut String, results: &Results) {
    let told = "Time relative to native code, logarithmic; the line through a mark joins the quartiles, and each mark tells its numbers when pointed at. Left is faster.";
    figure(
        out,
        "Case by case",
        told,
        &plots::shown(results),
        &plots::cases(results),
    );
    let told = "Over each group of workloads, and over all of them.";
    figure(out, "Geometric means", told, &[], &plots::means(results));
    if results.mean_growth(Column::ReadWriteCall, None).is_some() {
        let told = "Machine code of the workload and its library, without the C library.";
        figure(out, "Growth of code", told, &[], &plots::growth(results));
    }
    *out += "<h2>All numbers</h2>";
    numbers(out, results);
    above(out, results);
}

fn cards(out: &mut String, results: &Results) {
    *out += "<div class=\"cards\">";
    for column in plots::shown(results) {
        let Some((mean, count)) = results.mean(column, None) else {
            continue;
        };
        let _ = write!(
            out,
            "<div class=\"card c-{name}\"><span>{name}</span><b>{mean:.3}</b><small>geometric mean of {count}</small></div>",
            name = column.name()
        );
    }
    *out += "</div>";
}

fn errors(out: &mut String, results: &Results) {
    for note in &results.notes {
        let _ = write!(out, "<p class=\"soft\">{}</p>", escape(note));
    }
    let mut errors = results.errors().peekable();
    if errors.peek().is_some() {
        *out += "<h2 class=\"bad\">Failed</h2><ul>";
        for (row, column, error) in errors {
            let _ = write!(
                out,
                "<li class=\"bad\"><b>{}</b>, {}: {}",
                escape(row),
                column.name(),
                escape(error)
            );
        }
        *out += "</ul>";
    }
}

/// A plot under its title; the legend names the marks of these columns.
fn figure(out: &mut String, title: &str, caption: &str, legend: &[Column], svg: &str) {
    let _ = write!(
        out,
        "<h2>{title}</h2><figure><figcaption>{caption}</figcaption><div class=\"legend\">"
    );
    for &column in legend {
        *out += "<span><svg viewBox=\"0 0 14 14\">";
        plots::mark(out, column, 7.0, 7.0, column.name());
        let _ = write!(out, "</svg>{}</span>", column.name());
    }
    let _ = write!(out, "</div>{svg}</figure>");
}

fn numbers(out: &mut String, results: &Results) {
    let columns: Vec<Column> = results
        .columns
        .iter()
        .copied()
        .filter(|c| *c != Column::Native)
        .collect();
    *out += "<div class=\"scroll\"><table><tr><th>workload<th class=\"left\">what it does<th>native, ms";
    for column in &columns {
        let _ = write!(out, "<th>{}", column.name());
    }
    *out += "<th>spread<th>code";
    let width = columns.len() + 5;
    for (group, title) in &results.groups {
        let _ = write!(
            out,
            "<tr class=\"head\"><td colspan=\"{width}\">{}",
            escape(title)
        );
        for row in results.rows_of(Some(group)) {
            number_row(out, row, &columns);
        }
        mean_row(out, results, &columns, "geometric mean", Some(group));
    }
    if results.groups.len() > 1 {
        mean_row(out, results, &columns, "all of them", None);
    }
    *out += "</table></div>";
}

fn number_row(out: &mut String, row: &Row, columns: &[Column]) {
    let native = row
        .cells
        .get(&Column::Native)
        .and_then(|cell| cell.median());
    let _ = write!(
        out,
        "<tr><td>{}<td class=\"what\">{}<td>{}",
        escape(&row.name),
        escape(&row.what),
        milliseconds(native)
    );
    for column in columns {
        let failed = row
            .cells
            .get(column)
            .is_some_and(|cell| cell.error.is_some());
        *out += &match row.ratio(*column) {
            Some(ratio) if column.is_wall() && ratio > HIGH => {
                format!("<td class=\"high\">{ratio:.3}")
            }
            None if failed => "<td class=\"high\">failed".to_owned(),
            value => format!("<td>{}", ratio(value)),
        };
    }
    *out += &row.spread().map_or("<td>–".to_owned(), |spread| {
        format!("<td>{:.1} %", spread * 100.0)
    });
    let _ = write!(out, "<td>{}", ratio(row.growth(Column::ReadWriteCall)));
}

fn mean_row(
    out: &mut String,
    results: &Results,
    columns: &[Column],
    title: &str,
    group: Option<&str>,
) {
    let _ = write!(out, "<tr class=\"mean\"><td>{title}<td><td>");
    for column in columns {
        let _ = write!(
            out,
            "<td>{}",
            ratio(results.mean(*column, group).map(|(mean, _)| mean))
        );
    }
    let _ = write!(
        out,
        "<td><td>{}",
        ratio(results.mean_growth(Column::ReadWriteCall, group))
    );
}

fn above(out: &mut String, results: &Results) {
    let above = results.above(HIGH);
    if above.is_empty() {
        return;
    }
    let _ = write!(
        out,
        "<h2>Above {HIGH:.2}</h2><p>The reasons are in <code>docs/benchmarks.md</code>.</p><table><tr><th>workload<th class=\"left\">wall<th>ratio<th>quartiles"
    );
    for (row, column, value) in above {
        let _ = write!(
            out,
            "<tr><td>{}<td class=\"left\">{}<td>{:.3}<td>{:.3} to {:.3}",
            escape(&row.name),
            column.name(),
            value.median,
            value.low,
            value.high
        );
    }
    *out += "</table>";
}

fn side(out: &mut String, results: &Results) {
    if !results.requests.is_empty() {
        *out += "<h2>One request behind a wall</h2><p>The same small piece of work on a request, reached in different ways; the work is included.</p><table><tr><th>way<th>bytes<th>ns for each request";
        for request in &results.requests {
            let _ = write!(
                out,
                "<tr><td>{}<td>{}<td>{:.0}",
                escape(&request.way),
                request.request_bytes,
                request.nanoseconds
            );
        }
        *out += "</table>";
    }
    if !results.loads.is_empty() {
        *out += "<h2>Loading</h2><p>From the start to the end of a process whose program does nothing. For walls that is reading, verifying and mapping the image; wasmtime loads machine code that it kept.</p><table><tr><th>program<th class=\"left\">column<th>file, KB<th>ms";
        for load in &results.loads {
            let _ = write!(
                out,
                "<tr><td>{}<td class=\"left\">{}<td>{:.0}<td>{:.2}",
                escape(&load.workload),
                load.column.name(),
                load.image_bytes as f64 / 1e3,
                load.milliseconds
            );
        }
        *out += "</table>";
    }
    if let Some(verifier) = &results.verifier {
        let _ = write!(
            out,
            "<h2>The verifier</h2><p><b>{:.0} MB/s</b> on the {} KB of machine code in {}, on one processor, reading the file included.</p>",
            verifier.megabytes_per_second,
            verifier.code_bytes / 1000,
            escape(&verifier.workload)
        );
    }
}

fn method(out: &mut String, results: &Results) {
    let _ = write!(
        out,
        "<h2>How it was measured</h2><p>Every workload is one C program, the same source in all columns, that times its kernel alone \
         with a monotonic clock and prints a checksum; a column whose checksum differs from native code is an error and has no number. \
         The number of iterations is chosen so that a native run takes about {} s. In each of {} rounds every workload has {} turns; in a turn \
         it runs once in every column, one after the other, on the same processor, every other turn in reverse order. A column's ratio in a \
         turn is its time over that of native code in the same turn; in a round, the median of its turns; the number shown is the median \
         over rounds, with the quartiles over rounds. The spread is the distance between the quartiles over the median, the widest of the walls.</p>\
         <p>wasmtime runs code of clang -O2 with 128-bit vectors. wasm2c's C comes from a module without vectors and is compiled by \
         gcc -O2 with guard pages for its bounds checks; a translated function loses its <code>noinline</code>, so gcc may inline what \
         is a call elsewhere. The controls, where shown, are native code: <code>reserved</code> without the three registers that \
         walls reserve, <code>musl</code> with the C library that domains use.</p>\
         <p>Crossings: every peer is a process of its own, all on one processor, which answers one question at a time and waits in \
         between; in each round each is asked for each of its rows. It does an eighth of the operations to warm up, then measures \
         so many that they take a few milliseconds.</p>",
        results.seconds, results.rounds, results.turns
    );
}

fn milliseconds(nanoseconds: Option<f64>) -> String {
    nanoseconds.map_or("–".to_owned(), |ns| format!("{:.1}", ns / 1e6))
}

fn ratio(value: Option<f64>) -> String {
    value.map_or("–".to_owned(), |value| format!("{value:.3}"))
}

/// Text as it may stand in an element or an attribute.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Cell;
    use crate::results::tests::{crossings, row};

    #[test]
    fn the_page_needs_nothing_else_and_its_elements_balance() {
        let mut failed = row(100.0, 250.0);
        failed.name = "y".into();
        failed
            .cells
            .insert(Column::Trap, Cell::failed("<oops>".into()));
        let mut results = Results::of(vec![row(100.0, 104.0), failed]);
        results.crossings = Some(crossings());
        let page = render(&results);
        for loaded in ["http", "src=", "url(", "@import", "<script"] {
            assert!(!page.contains(loaded), "{loaded}");
        }
        for element in ["svg", "g", "text", "figure", "table", "div", "style"] {
            let opened = page.matches(&format!("<{element} ")).count()
                + page.matches(&format!("<{element}>")).count();
            assert_eq!(
                opened,
                page.matches(&format!("</{element}>")).count(),
                "{element}"
            );
        }
        for told in [
            "1.040",
            "2.500",
            "&lt;oops&gt;",
            "&lt;cpu&gt;",
            "200 MB/s",
            "A group",
            "&lt;what&gt;",
            "12 ns",
            "MISSED",
        ] {
            assert!(page.contains(told), "{told}");
        }
    }

    #[test]
    fn what_programs_say_cannot_become_markup() {
        assert_eq!(
            escape("<b class=\"x\">&"),
            "&lt;b class=&quot;x&quot;&gt;&amp;"
        );
    }
}
