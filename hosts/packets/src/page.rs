//! What runs, as a page of HTML for a browser on this machine, and as JSON. It shows; nothing can be changed there.

use crate::control::{ModuleStatus, PortStatus, Status, status};
use crate::forward::Forwarder;
use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long a browser may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes of what it asks.
const QUESTION: u64 = 16 << 10;

const HEAD: &str = "<!doctype html><html lang=en><meta charset=utf-8><meta http-equiv=refresh content=2>\
    <title>mullion packets</title><style>body{font:15px/1.5 sans-serif;margin:2em;color:#222}\
    table{border-collapse:collapse;margin:0 0 2em}th,td{padding:.2em .8em;border-bottom:1px solid #ddd;text-align:right}\
    th{text-align:right;font-weight:600}td:first-child,th:first-child,td.text,th.text{text-align:left}\
    .out{color:#a40000;white-space:pre-wrap}</style><h1>mullion packets</h1>";

/// Answers browsers until it is told to stop, one after the other.
pub fn serve(listener: &TcpListener, forwarder: &Forwarder, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        match listener.accept() {
            Ok((stream, _)) => {
                if let Err(error) = serve_one(stream, forwarder) {
                    tracing::debug!(%error, "a browser was not answered");
                }
            }
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

fn serve_one(stream: TcpStream, forwarder: &Forwarder) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let (mut first, mut host) = (String::new(), String::new());
    let mut lines = BufReader::new((&stream).take(QUESTION)).lines();
    if let Some(line) = lines.next() {
        first = line?;
    }
    for line in lines {
        let line = line?;
        match line.split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("host") => {
                value.trim().clone_into(&mut host)
            }
            _ if line.is_empty() => break,
            _ => {}
        }
    }
    let (code, kind, body) = answer(&first, &host, forwarder);
    let head = format!(
        "HTTP/1.1 {code}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {}\r\n\
         Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'\r\nConnection: close\r\n\r\n",
        body.len()
    );
    (&stream).write_all(head.as_bytes())?;
    (&stream).write_all(body.as_bytes())
}

/// A page of another name that has this address is not answered: it would be read by strangers' scripts.
fn answer(first: &str, host: &str, forwarder: &Forwarder) -> (&'static str, &'static str, String) {
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    if !["127.0.0.1", "localhost", "[::1]"].contains(&name) {
        return (
            "403 Forbidden",
            "text/plain",
            "this is for loopback\n".to_owned(),
        );
    }
    let mut words = first.split(' ');
    match (words.next(), words.next()) {
        (Some("GET"), Some("/")) => ("200 OK", "text/html", page(&status(forwarder))),
        (Some("GET"), Some("/status.json")) => {
            let text = serde_json::to_string(&status(forwarder)).unwrap_or_default();
            ("200 OK", "application/json", text)
        }
        _ => (
            "404 Not Found",
            "text/plain",
            "/ or /status.json\n".to_owned(),
        ),
    }
}

fn page(status: &Status) -> String {
    let mut text = HEAD.to_owned();
    text.push_str(
        "<table><tr><th>Port<th>Received<th>Bytes<th>Sent<th>Dropped by modules<th>Unsent<th>Lost<th>Uncut",
    );
    for (number, port) in status.ports.iter().enumerate() {
        port_row(&mut text, number, port);
    }
    text.push_str(
        "</table><table><tr><th>Module<th class=text>Kind<th class=text>Filter<th class=text>Of<th>Frames<th>ns each\
         <th>Changed<th>Dropped<th>Added<th>Refused<th class=text>State",
    );
    for module in &status.modules {
        module_row(&mut text, module);
    }
    text.push_str("</table>");
    text
}

// Writing to a string does not fail.

fn port_row(text: &mut String, number: usize, port: &PortStatus) {
    let _ = write!(
        text,
        "<tr><td>{number}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{}",
        port.received,
        port.received_bytes,
        port.sent,
        port.dropped,
        port.unsent,
        port.lost,
        port.uncut
    );
}

fn module_row(text: &mut String, module: &ModuleStatus) {
    let kind = format!("{:?}", module.module.kind).to_lowercase();
    let filter = module.module.filter.as_deref().unwrap_or("any");
    let owner = module.owner.as_deref().unwrap_or("operator");
    let state = module.stopped.as_deref();
    let state = match (state, &module.warning) {
        (Some(why), _) => format!("<span class=out>taken out: {}</span>", escaped(why)),
        (None, Some(warning)) => format!("<span class=out>runs {}</span>", escaped(warning)),
        (None, None) => "runs".to_owned(),
    };
    let _ = write!(
        text,
        "<tr><td>{}<td class=text>{kind}<td class=text>{}<td class=text>{}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{}\
         <td class=text>{state}",
        escaped(&module.module.name),
        escaped(filter),
        escaped(owner.get(..32).unwrap_or(owner)),
        module.frames,
        module.nanoseconds,
        module.changed,
        module.dropped,
        module.added,
        module.refused
    );
}

/// As text of HTML.
fn escaped(text: &str) -> String {
    let mut safe = String::new();
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use mullion::Host;

    #[test]
    fn the_page_answers_loopback_alone_and_shows_no_markup_of_others() {
        let forwarder = Forwarder::new(Host::new(), &[]).unwrap();
        let ask = |first: &str, host: &str| answer(first, host, &forwarder).0;
        assert_eq!(ask("GET / HTTP/1.1", "127.0.0.1:80"), "200 OK");
        assert_eq!(ask("GET /status.json HTTP/1.1", "localhost:1"), "200 OK");
        assert_eq!(ask("GET / HTTP/1.1", "evil.example:80"), "403 Forbidden");
        assert_eq!(ask("GET /x HTTP/1.1", "[::1]:8080"), "404 Not Found");
        assert_eq!(ask("POST / HTTP/1.1", "127.0.0.1"), "404 Not Found");
        assert_eq!(
            escaped("<a href=\"&\">"),
            "&lt;a href=&quot;&amp;&quot;&gt;"
        );
    }
}
