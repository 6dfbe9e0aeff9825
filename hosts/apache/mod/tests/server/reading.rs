//! Modules of protection `read-write`, whose loads are checked.

use crate::running::{self, Server};
use crate::{Place, same};
use mullion_apache::Protection;
use std::fmt::Write as _;
use std::io::Read;
use std::process::Command;

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
const OWN: [(&str, &str); 3] = [
    ("scoreboard", "Access of"),
    ("deleted", "Access of"),
    ("configuration", "memory of expires_module"),
];

/// Ways to read where another one has a secret: by itself, or by a function of the host. `field` has the core read it later, and
/// `planted` and `filters` read what they have just put into a field.
const WAYS: [(&str, &str); 9] = [
    ("planted", "Access of"),
    ("filters", "Access of"),
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
    // `spy WAY` tries one way alone.
    let wanted = std::env::args().nth(2).unwrap_or_default();
    let all = own.into_iter().chain(addresses);
    for (attack, words) in all.filter(|(attack, _)| attack.starts_with(&wanted)) {
        let from = server.log().len();
        let answer = running::get(server.port, &format!("/spy/{attack}"), &[]);
        // The word in the field is found when the module calls the core. Its answer is then not an error in all cases.
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

/// Numbers of `reading/structures.rs`, with how C has them.
const NUMBERS: [(&str, &[&str]); 15] = [
    ("SERVER", &["sizeof(server_rec)"]),
    (
        "SERVER_NAMES",
        &[
            "offsetof(server_rec, names)",
            "offsetof(server_rec, wild_names)",
        ],
    ),
    ("SERVER_ADDRESSES", &["offsetof(server_rec, addrs)"]),
    (
        "SERVER_DEFAULTS",
        &["offsetof(server_rec, lookup_defaults)"],
    ),
    ("SERVER_ADDRESS", &["sizeof(server_addr_rec)"]),
    ("ADDRESS", &["sizeof(apr_sockaddr_t)"]),
    ("PROCESS", &["sizeof(process_rec)"]),
    ("FILTER_RECORD", &["sizeof(ap_filter_rec_t)"]),
    ("DIRECTIVE", &["sizeof(ap_directive_t)"]),
    (
        "DIRECTIVE_TEXTS",
        &[
            "offsetof(ap_directive_t, directive)",
            "offsetof(ap_directive_t, args)",
            "offsetof(ap_directive_t, filename)",
        ],
    ),
    ("COMMAND_STATE", &["sizeof(cmd_parms)"]),
    ("COMMAND_PATH", &["offsetof(cmd_parms, path)"]),
    ("CORE_DIRECTORY", &["sizeof(core_dir_config)"]),
    ("CORE_SERVER", &["sizeof(core_server_config)"]),
    ("ENTRY", &["sizeof(apr_table_entry_t)"]),
];

/// The numbers by which the wall grants reads are those of the headers.
pub(crate) fn structures_are_as_large_as_the_headers_have_them(place: &Place) {
    let text = include_str!("../../src/reading/structures.rs");
    let mut source = String::from("#include <stdio.h>\n#include <stddef.h>\n");
    for header in ["httpd", "http_config", "http_core", "util_filter"] {
        writeln!(source, "#include \"{header}.h\"").expect("a string");
    }
    source.push_str("int main(void) {\n");
    let mut ours = String::new();
    for (name, all) in NUMBERS {
        let line = text
            .lines()
            .find(|line| line.starts_with(&format!("pub(super) const {name}: ")));
        let (_, numbers) = line.expect(name).split_once(" = ").expect(name);
        for number in numbers.split(|c: char| !c.is_ascii_digit()) {
            if !number.is_empty() {
                writeln!(ours, "{name} {number}").expect("a string");
            }
        }
        for one in all {
            writeln!(source, "printf(\"{name} %zu\\n\", {one});").expect("a string");
        }
    }
    source.push_str("}\n");
    let file = place.scratch.path().join("numbers.c");
    let program = place.scratch.path().join("numbers");
    std::fs::write(&file, source).expect("written");
    let mut gcc = Command::new("gcc");
    gcc.args(["-D_GNU_SOURCE", "-DLINUX", "-I/usr/include/apache2"]);
    gcc.arg("-I/usr/include/apr-1.0").arg(&file);
    let made = gcc.arg("-o").arg(&program).status().expect("gcc starts");
    assert!(made.success());
    let output = Command::new(&program).output().expect("it starts");
    assert_eq!(String::from_utf8_lossy(&output.stdout), ours);
}
