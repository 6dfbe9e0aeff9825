//! Modules of protection `read-write`, whose loads are checked.

use crate::running::{self, Server};
use crate::{Place, same};
use mullion_apache::Protection;
use std::io::Read;

pub(crate) fn modules_whose_loads_are_checked_answer_as_stock_ones(
    place: &Place,
    wanted: Option<&str>,
) {
    // One module of each case that works so.
    let all = ["expires"];
    let names = wanted.map_or(all.to_vec(), |name| vec![name]);
    for name in names {
        same::answer_as_stock_ones(place, Protection::ReadWrite, Some(name));
    }
}

/// What the module of the test reads, and what the log says of it.
const OWN: [(&str, &str); 2] = [
    ("scoreboard", "Access of"),
    ("configuration", "memory of expires_module"),
];

/// Ways to read where another one has a secret: by itself, or by a function of the host. `field` has the core read it later.
const WAYS: [(&str, &str); 7] = [
    ("address", "Access of"),
    ("copied", "may not read"),
    ("printed", "may not read"),
    ("listed", "may not"),
    ("folder", "may not read"),
    ("table", "may not read"),
    ("field", "`request_rec.handler`"),
];

fn lines(place: &Place, spy: &str, expires: &str) -> String {
    format!(
        "{}{}{expires}{spy}{}ExpiresActive on\n<Location /spy>\nSetHandler spy\n</Location>\n\
         <Location /victim>\nSetHandler victim\n</Location>\n",
        place.stock("mime"),
        place.wall(),
        place.native("victim"),
    )
}

/// Where another request, which stays, has its secret; where the process has one, and the configuration.
fn secrets(server: &Server) -> (Vec<String>, std::net::TcpStream) {
    let mut stream = running::begin(server.port, "/victim");
    let mut text = Vec::new();
    while !text.ends_with(b" \n") && !String::from_utf8_lossy(&text).contains(" \n") {
        let mut piece = [0; 512];
        let count = stream.read(&mut piece).expect("it answers");
        assert_ne!(count, 0, "it stays: {}", server.log());
        text.extend_from_slice(&piece[..count]);
    }
    let text = String::from_utf8_lossy(&text).into_owned();
    let line = text.lines().rev().find(|line| line.ends_with(' '));
    let words = line.expect("a line").split_ascii_whitespace();
    (words.map(str::to_owned).collect(), stream)
}

/// Each read is refused, and the log has module, object and line. The same module without loads checked, or without the wall, has it.
pub(crate) fn what_is_not_a_modules_is_not_read(place: &Place) {
    let walled = |protection| place.walled_by("spy", protection);
    let expires = place.walled_by("expires", Protection::ReadWrite);
    let server = Server::start(
        place,
        &lines(place, &walled(Protection::ReadWrite), &expires),
        true,
    );
    let (secrets_there, _stays) = secrets(&server);
    let addresses = WAYS.iter().flat_map(|(way, words)| {
        secrets_there
            .iter()
            .map(move |at| (format!("{way}?{at}"), *words))
    });
    let own = OWN.map(|(way, words)| (way.to_owned(), words));
    for (attack, words) in own.into_iter().chain(addresses) {
        let from = server.log().len();
        let answer = running::get(server.port, &format!("/spy/{attack}"), &[]);
        // What is planted is found when the module calls the core, which has sent a page by then.
        let is_late = attack.starts_with("field");
        let new = || server.log()[from..].to_owned();
        let said = match is_late {
            true => server.until(|| Some(new()).filter(|said| said.contains("spy_module"))),
            false => new(),
        };
        assert!(
            answer.status == 500 || is_late,
            "{attack}: {answer:?} {said}"
        );
        assert!(!answer.body.contains("secret"), "{attack}: {answer:?}");
        assert!(
            said.contains("the wall stopped spy_module: "),
            "{attack}: {said}"
        );
        assert!(said.contains(words), "{attack}: {said}");
        assert!(said.contains("spy.c:"), "{attack}: {said}");
        let page = running::get(server.port, "/page.html", &[]);
        assert_eq!(page.status, 200, "behind {attack}: {}", server.log());
    }
    drop(server);
    for spy in [walled(Protection::Write), place.native("spy")] {
        let expires = place.stock("expires");
        let server = Server::start(place, &lines(place, &spy, &expires), true);
        let (secrets_there, _stays) = secrets(&server);
        for at in &secrets_there {
            for (way, _) in WAYS.iter().filter(|(way, _)| *way != "field") {
                let answer = running::get(server.port, &format!("/spy/{way}?{at}"), &[]);
                assert_eq!(answer.status, 200, "{way}: {answer:?} {}", server.log());
                assert!(answer.body.starts_with('/'), "{way}: {answer:?}");
            }
        }
        for (way, _) in OWN {
            let answer = running::get(server.port, &format!("/spy/{way}"), &[]);
            assert!(answer.body.parse::<i64>().is_ok(), "{way}: {answer:?}");
        }
    }
}
