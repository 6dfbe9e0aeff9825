//! Each parameter of each function of `httpd.txt` gets what it should not be. A pointer is null, or leads nowhere, or to memory whose
//! words lead nowhere. A number is below zero, or far too large. All others are as they should be, and the server must go on. The calls
//! are made of the headers, so a new row is swept without anybody's doing.

use crate::headers::{Headers, Shape};
use crate::rows::{self, Row};
use crate::running::{self, Server};
use crate::{Place, SERVER, here};
use mullion_apache::{Module, Outcome, Protection};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io::{Error, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// The values that a parameter gets, as C has them.
const VALUES: [(&str, &str); 7] = [
    ("null", "0"),
    ("nowhere", "0x4000"),
    ("beyond", "0x4141414141414141"),
    ("forged", "(unsigned long)forged"),
    ("below", "-1UL"),
    ("least", "-0x80000000UL"),
    ("much", "0x10000000"),
];
/// So many of them are for pointers, and the others for numbers.
const FOR_POINTERS: usize = 4;

/// An argument as it should be.
fn proper(shape: &Shape) -> String {
    match shape {
        Shape::Number => "1UL".to_owned(),
        Shape::Bytes { is_const: true } => "\"a\"".to_owned(),
        Shape::Bytes { is_const: false } => "room".to_owned(),
        Shape::Pointer => "strings".to_owned(),
        Shape::Plain { .. } => "room".to_owned(),
        Shape::Structure { name, .. } => {
            format!("thing(\"{}\")", name.trim_start_matches("struct "))
        }
        Shape::Function => "nothing".to_owned(),
        Shape::Datum => "\"a\", 1UL".to_owned(),
        Shape::List => "room".to_owned(),
    }
}

/// Functions that may have null pointers by their documentation, and that are not reached here, with the reason.
const UNTRIED: [(&str, &str); 3] = [
    (
        "ap_add_input_filter_handle 2",
        "the word behind the record is that of another's filter",
    ),
    (
        "apr_ldap_ssl_init",
        "APR loads these with its first directory server",
    ),
    ("apr_ldap_url_parse", "the same"),
];

/// Functions that take as long as a number says. A limit on time does not end them (README, limits).
const LONG: [&str; 6] = [
    "apr_sleep",
    "apr_bcrypt_encode",
    "apr_crypto_passphrase",
    "apr_poll",
    "apr_pollset_poll",
    "apr_reslist_create",
];

/// Functions that the server has, with its libraries and those that modules may use.
fn symbols() -> BTreeSet<String> {
    const FOLDER: &str = "/usr/lib/x86_64-linux-gnu/";
    let mut files = vec![SERVER.to_owned()];
    let output = Command::new("ldd")
        .arg(SERVER)
        .output()
        .expect("ldd starts");
    let listed = String::from_utf8_lossy(&output.stdout).into_owned();
    files.extend(
        listed
            .split_ascii_whitespace()
            .filter(|word| word.starts_with('/'))
            .map(str::to_owned),
    );
    let others = ["libz.so.1", "libbrotlienc.so.1", "libldap-2.5.so.0"];
    files.extend(others.map(|name| format!("{FOLDER}{name}")));
    let output = Command::new("nm")
        .args(["-D", "--defined-only"])
        .args(files)
        .output();
    let output = output.expect("nm starts");
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let names = lines
        .lines()
        .filter_map(|line| line.split_ascii_whitespace().nth(2));
    names
        .filter_map(|name| Some(name.split('@').next()?.to_owned()))
        .collect()
}

pub(crate) fn wrong_arguments_end_no_server(place: &Place) {
    let headers = Headers::read(place);
    let rows = rows::rows().into_iter();
    let rows: Vec<(Row, Vec<Shape>)> = rows
        .filter_map(|row| headers.function(row.name).map(|shapes| (row, shapes)))
        .collect();
    let heads = include_str!("../../src/httpd.txt").lines();
    let groups = heads.filter_map(|line| line.strip_prefix('[')?.split(']').next());
    let mut source = String::from(
        "/* Made of httpd.txt and the headers. */\n\
         extern unsigned long room[], forged[];\nextern char *strings[];\n\
         void *thing(const char *);\nint nothing(void);\n",
    );
    let mut cases = String::new();
    let mut calls = Vec::new();
    let known = symbols();
    // Functions of other modules, and those that a header has whole.
    let is_left = |row: &Row| row.words.first() == Some(&"^") || !known.contains(row.name);
    for (row, shapes) in rows.iter().filter(|(row, _)| !is_left(row)) {
        writeln!(source, "unsigned long {}();", row.name).expect("memory");
        for (at, shape) in shapes.iter().enumerate() {
            let is_number = *shape == Shape::Number;
            if is_number && LONG.contains(&row.name) {
                continue;
            }
            let arguments = shapes.iter().enumerate().map(|(other, shape)| match shape {
                Shape::Datum if other == at => "value, 1UL".to_owned(),
                _ if other == at => "value".to_owned(),
                shape => proper(shape),
            });
            let mut arguments: Vec<String> = arguments.collect();
            if row.words.first() == Some(&"!v") {
                arguments.extend(["0UL".to_owned(), "0UL".to_owned()]);
            }
            writeln!(
                cases,
                "case {}: return {}({});",
                calls.len(),
                row.name,
                arguments.join(", ")
            )
            .expect("memory");
            calls.push((row, at, is_number));
        }
    }
    let values: Vec<&str> = VALUES.iter().map(|(_, value)| *value).collect();
    write!(
        source,
        "unsigned long sweep(int call, int which)\n{{\nconst unsigned long values[] = {{ {} }};\n\
         const unsigned long value = values[which];\nswitch (call) {{\n{cases}}}\nreturn 0;\n}}\n",
        values.join(", ")
    )
    .expect("memory");
    let folder = place.scratch.path().join("sweep");
    fs::create_dir_all(&folder).expect("made");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).expect("ours");
    let file = folder.join("calls.c");
    fs::write(&file, source).expect("written");
    let module = Module {
        name: "sweep".to_owned(),
        files: vec![here("tests/sweep/things.c"), file],
    };
    let row = place.maker.make(&module, Protection::Write).expect("tools");
    assert!(
        matches!(row.outcome, Outcome::Verified { .. }),
        "{:?}",
        row.outcome
    );
    let policy = folder.join("sweep.toml");
    let all: Vec<String> = groups.map(|group| format!("\"@{group}\"")).collect();
    let text = format!(
        "allow = [{}]\n[limits]\ntime = \"5 s\"\nmemory = \"64 MiB\"\n[list]\nwrites = [\"{}\"]\n",
        all.join(", "),
        folder.display()
    );
    fs::write(&policy, text).expect("written");
    let lines = format!(
        "{}{}MullionLoadModule sweep_module {} {}\n<Location /sweep>\nSetHandler sweep\n</Location>\n",
        place.stock("mime"),
        place.wall(),
        place.maker.place(&module, Protection::Write).display(),
        policy.display()
    );
    // Names of files are in this folder.
    let before = std::env::current_dir().expect("there is one");
    std::env::set_current_dir(&folder).expect("it is there");
    let mut server = Server::start(place, &lines, true);
    let (mut ended, mut silent, mut refused, mut count) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for (number, (row, at, is_number)) in calls.iter().enumerate() {
        let values = match is_number {
            true => FOR_POINTERS..VALUES.len(),
            false => 0..FOR_POINTERS,
        };
        for value in values {
            let path = format!("/sweep/{number}-{value}?{}", folder.display());
            let answer = running::try_get(server.port, &path, &[]);
            let status = answer.as_ref().map_or(0, |answer| answer.status);
            let goes_on = status != 0 || running::try_get(server.port, "/page.html", &[]).is_ok();
            count += 1;
            let what = VALUES[value].0;
            let call = format!("{} {at} `{}` {what}", row.name, headers.text(row.name, *at));
            if !goes_on {
                // A request's pool ends behind its answer, so it may have been the call before.
                println!("ended: {call}");
                ended.push(call);
                server.stop();
                server = Server::start(place, &lines, true);
                continue;
            }
            // The server may close the connection, as `ap_send_fd` does at the end of the file.
            let is_late =
                |why: &Error| [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&why.kind());
            if answer.as_ref().is_err_and(is_late) {
                println!("without an answer: {call}");
                silent.push(call.clone());
            }
            // The function itself has seen the null pointer, and has returned.
            let may_be_null = row.words.get(*at).is_some_and(|word| word.ends_with('?'));
            let is_late = row.name.starts_with("ap_hook_");
            if what == "null" && may_be_null && !is_late && status != 200 {
                refused.push(call);
            }
        }
    }
    std::env::set_current_dir(before).expect("it is there");
    let log = server.log();
    assert!(ended.is_empty(), "{} of {count}: {ended:?}", ended.len());
    // A thread of the server may be in such a call for ever.
    assert!(silent.is_empty(), "{silent:?}");
    assert!(count > 7000, "{count}");
    refused.retain(|call| UNTRIED.iter().all(|(name, _)| !call.starts_with(name)));
    assert!(refused.is_empty(), "not tried: {refused:?}: {log}");
}
