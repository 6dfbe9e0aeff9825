//! What a module leaves behind, holds, or makes work later (`tests/hostile/left.c`).

use crate::Place;
use crate::attacks::{Attacked, attacked, patient};
use crate::running;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

/// Attacks that end with 500, and what the error log says.
const REFUSED: &[(&str, &str)] = &[
    ("left-twice", "is not out of the list"),
    // It registers so many that a busy machine needs more than the time that the others have.
    ("ending-never", "cleanups were registered in this pool"),
    ("left-foreign", "is not out of the list"),
    ("left-passed-in", "is no filter of this request"),
    ("left-flushed-in", "is no filter"),
    ("left-got-out", "is no filter of this request"),
    ("left-called-in", "is a filter of what comes in"),
    ("left-option", "of the whole process is not for modules"),
    ("left-option-later", "the server serves already"),
    ("left-address", "goes before"),
    ("left-statement", "is nothing of"),
];

/// Attacks that are answered: what was meant to go stays, or is a copy.
const ANSWERED: [(&str, &str); 4] = [
    ("left-out", "done"),
    ("left-again", "done"),
    ("left-id", "own"),
    ("left-beside", "0"),
];

/// Two requests on one connection, and all that comes back.
fn two(port: u16, first: &str, second: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    let ask = |path: &str, more: &str| {
        format!("GET /hostile/{path} HTTP/1.1\r\nHost: localhost\r\n{more}\r\n")
    };
    let both = ask(first, "") + &ask(second, "Connection: close\r\n");
    stream.write_all(both.as_bytes()).expect("it reads");
    let mut bytes = Vec::new();
    // A server that has ended says nothing.
    let _ended = stream.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

pub(crate) fn what_is_left_does_no_harm(place: &Place) {
    let lines = [
        place.stock("mime"),
        place.wall(),
        place.walled("expires"),
        patient(place),
    ];
    let lines = format!("ErrorLogFormat \"%L %M\"\n{}", attacked(&lines.concat()));
    let has_driver = Path::new("/usr/lib/x86_64-linux-gnu/apr-util-1/apr_dbd_sqlite3.so").is_file();
    let mut attacked = Attacked::new(place, lines);
    for (attack, words) in REFUSED {
        if *attack == "left-statement" && !has_driver {
            continue;
        }
        attacked.refused(attack, words);
    }
    for (attack, much) in ANSWERED {
        attacked.answered(attack, much);
    }
    // A segment that a filter ends is sent whole.
    let from = attacked.server.log().len();
    let answer = running::try_get(attacked.server.port, "/hostile/left-segment", &[]);
    let bytes = answer
        .as_ref()
        .map_or(0, |answer| answer.body.matches('a').count());
    let said = format!(
        "{bytes} bytes: {:?} {}",
        answer.map(|answer| answer.headers),
        &attacked.server.log()[from..]
    );
    attacked.look("left-segment", bytes >= 1 << 16, said);
    // A brigade's pool stays as long as the core has the brigade: the filter that ends it is stopped.
    let from = attacked.server.log().len();
    let answer = running::try_get(attacked.server.port, "/hostile/left-pool", &[]);
    let said = attacked.server.log()[from..].to_owned();
    let is_well = said.contains("is a pool that a call works with");
    attacked.look("left-pool", is_well, format!("{answer:?} {said}"));
    // The bucket is read behind its request. 20014 is APR's general error.
    let answers = two(attacked.server.port, "left-bucket", "left-bucket-read");
    let is_well = answers.contains("left") && answers.contains("read 20014");
    let said = format!("{answers:?} {}", attacked.server.log());
    attacked.look("left-bucket", is_well, said);
    attacked.end();
}
