//! Names by which modules find each other, and a little more memory than was asked for: what is another's is not taken.

use crate::attacks::{attacked, patient};
use crate::running::{self, Server};
use crate::{Place, processes};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// More attacks, and what the error log says of each (`tests/hostile/passed.c`).
pub(crate) const PASSED: [(&str, &str); 7] = [
    ("passed-decoded", "4 bytes are to be written at"),
    ("passed-method", "0x4000 is no string"),
    ("passed-page", "cannot be read"),
    ("passed-page-begun", "are not there"),
    ("passed-page-name", "0x4000 is no string"),
    ("passed-page-more", "are not there"),
    ("passed-beside", "cannot be read"),
];

/// A page for users of a file.
fn guarded(place: &Place) -> String {
    let users = place.scratch.path().join("users");
    format!(
        "<Location /page.html>\nAuthType Basic\nAuthName it\nAuthBasicProvider file\nAuthUserFile {}\nRequire valid-user\n</Location>\n",
        users.display()
    )
}

/// Behind a restart all is registered anew: the server has other children, and answers.
fn restarted(server: &Server) {
    let before = processes(server);
    server.signal(libc::SIGUSR1);
    server.until(|| {
        let now = processes(server);
        let are_new = !now.is_empty() && now.iter().all(|pid| !before.contains(pid));
        are_new.then_some(())
    });
}

pub(crate) fn what_others_offer_is_not_taken(place: &Place) {
    names_have_the_owners_that_the_source_says(place);
    providers_and_functions_are_not_taken(place);
    exported_functions_are_not_taken(place);
    locks_are_not_taken(place);
    expressions_are_not_answered(place);
}

fn providers_and_functions_are_not_taken(place: &Place) {
    let names = ["authn_core", "auth_basic", "authz_user"];
    let plain = names.map(|name| place.stock(name)).concat() + &place.stock("mime");
    let all = |file: String| {
        [&plain, &place.wall(), &file, &place.walled("hostile")]
            .map(String::as_str)
            .concat()
    };
    let is_first = [
        &plain,
        &place.wall(),
        &place.walled("hostile"),
        &place.walled("authn_file"),
    ];
    for (name, modules, words) in [
        (
            "TAKE_PROVIDER",
            all(place.stock("authn_file")),
            "authn file 0 is another module's",
        ),
        (
            "TAKE_PROVIDER",
            all(place.walled("authn_file")),
            "authn file 0 is another module's",
        ),
        (
            "TAKE_FIRST",
            is_first.map(String::as_str).concat(),
            "authn file 0 is another module's",
        ),
        (
            "TAKE_ABSENT",
            all(String::new()),
            "authn dbm 0 is another module's",
        ),
        (
            "TAKE_AGAIN",
            all(place.walled("optional_fn_export")),
            "TestOptionalFn is another module's",
        ),
        (
            "TAKE_FUNCTION",
            all(String::new()),
            "authz_some_auth_required is another module's",
        ),
        ("PROVIDER_NOWHERE", all(String::new()), "cannot be read"),
    ] {
        let (status, log) = Server::ends(place, &format!("Define {name}\n{modules}"));
        assert_eq!(status.code(), Some(1), "{name}: {status:?}: {log}");
        assert!(log.contains(words), "{name}: {log}");
    }
    // A module may register again what it has registered itself. A restart registers all anew.
    let lines = all(place.walled("authn_file")) + &guarded(place);
    let server = Server::start(place, &format!("Define TAKE_AGAIN\n{lines}"), false);
    let ask =
        |word: &str| running::get(server.port, "/page.html", &[("Authorization", word)]).status;
    for _ in 0..2 {
        assert_eq!(ask("Basic dXNlcjp3b3Jk"), 200, "{}", server.log());
        assert_eq!(ask("Basic dXNlcjpvdGhlcg=="), 401, "{}", server.log());
        restarted(&server);
    }
    assert!(
        !server.log().contains("the wall stopped"),
        "{}",
        server.log()
    );
    // The names in an element of a list of hooks lead nowhere.
    let server = Server::start(
        place,
        &format!("Define LIST_NOWHERE\n{}", all(String::new())),
        true,
    );
    assert_eq!(
        running::get(server.port, "/page.html", &[]).status,
        200,
        "{}",
        server.log()
    );
}

/// The module that attacks has a function of the name by which others register hooks of `session`. It is loaded first.
fn exported_functions_are_not_taken(place: &Place) {
    let names = ["hostile", "session", "session_cookie"];
    let modules = names.map(|name| place.walled(name)).concat();
    let lines = format!(
        "{}{}{modules}<Location />\nSession On\nSessionCookieName it\nSessionMaxAge 100\n</Location>\n",
        place.stock("mime"),
        place.wall(),
    );
    let server = Server::start(place, &lines, true);
    let answer = running::get(server.port, "/page.html", &[("Cookie", "it=a=b")]);
    let log = server.log();
    assert_eq!(answer.status, 200, "{answer:?}: {log}");
    assert!(answer.header("set-cookie").is_some(), "{answer:?}: {log}");
    assert!(!log.contains("the wall stopped"), "{log}");
}

/// The server tells of each kind of lock how it is made.
fn locks_are_not_taken(place: &Place) {
    let names = ["authn_core", "mime"];
    let plain = names.map(|name| place.stock(name)).concat();
    let line = |said: &str, name: &str| {
        let mut lines = said.lines();
        let found = lines.find(|line| line.starts_with(&format!("Mutex {name}: ")));
        found.map(str::to_owned)
    };
    for digest in [place.stock("auth_digest"), place.walled("auth_digest")] {
        let modules = [&plain, &place.wall(), &digest, &place.walled("hostile")]
            .map(String::as_str)
            .concat();
        let without = Server::tells(place, &modules);
        let kinds = ["authdigest-client", "default"];
        let before = kinds.map(|kind| line(&without, kind));
        assert!(before.iter().all(Option::is_some), "{without}");
        for name in ["TAKE_LOCK", "TAKE_ALL_LOCKS"] {
            let said = Server::tells(place, &format!("Define {name}\n{modules}"));
            assert_eq!(
                kinds.map(|kind| line(&said, kind)),
                before,
                "{name}: {said}"
            );
        }
    }
    // A module's own lock is its own by name, too, and can be configured.
    let modules = [&plain, &place.wall(), &place.walled("hostile")]
        .map(String::as_str)
        .concat();
    let said = Server::tells(
        place,
        &format!("{modules}Mutex sysvsem hostile_module:hostile\n"),
    );
    let own = line(&said, "hostile_module:hostile");
    assert!(own.is_some_and(|line| line.contains("sysvsem")), "{said}");
}

/// The module that attacks says that it has found a function of an expression. The server would call what lies where it is not.
fn expressions_are_not_answered(place: &Place) {
    let lines = format!(
        "Define TAKE_EXPRESSIONS\n{}{}{}{}<Location /page.html>\nRequire expr \"tolower('A') == 'a'\"\n</Location>\n",
        place.stock("mime"),
        place.stock("authn_core"),
        place.wall(),
        place.walled("hostile"),
    );
    let server = Server::start(place, &lines, true);
    assert_eq!(
        running::get(server.port, "/page.html", &[]).status,
        200,
        "{}",
        server.log()
    );
}

/// One request's directive has httpd set a field of the module's, and another request changes where that field is.
pub(crate) fn the_distance_of_a_field_is_looked_at_and_used_once(place: &Place) {
    let lines = [
        place.stock("mime"),
        place.wall(),
        place.walled("expires"),
        patient(place),
    ];
    let folder = place.scratch.path().join("htdocs/raced");
    fs::create_dir_all(&folder).expect("made");
    fs::write(folder.join(".htaccess"), "HostileSlots on\n").expect("written");
    fs::write(folder.join("page.html"), "raced").expect("written");
    let lines = format!(
        "{}<Directory {}>\nAllowOverride All\n</Directory>\n",
        attacked(&lines.concat()),
        folder.display()
    );
    let server = Server::start(place, &lines, true);
    let pid = running::get(server.port, "/hostile/pid", &[]).body;
    for _ in 0..5 {
        let port = server.port;
        let second =
            std::thread::spawn(move || running::try_get(port, "/hostile/slots-forged", &[]));
        let first = running::try_get(port, "/raced/page.html", &[]);
        let second = second.join().expect("it ends");
        assert!(
            first.is_ok() && second.is_ok(),
            "{first:?} {second:?}: {}",
            server.log()
        );
        let now = server.until(|| {
            let now = running::get(server.port, "/hostile/pid", &[]);
            (now.status == 200).then_some(now.body)
        });
        assert_eq!(now, pid);
    }
}

/// A request ends behind the function that ends it, and a filter of a connection has its record as long as that. A directive's error
/// that is no string is not followed.
pub(crate) fn what_is_used_behind_a_request_lives(place: &Place) {
    let folder = place.scratch.path().join("htdocs/answers");
    fs::create_dir_all(&folder).expect("made");
    fs::write(folder.join(".htaccess"), "HostileAnswer on\n").expect("written");
    let lines = [
        place.stock("mime"),
        place.wall(),
        place.walled("expires"),
        place.walled("hostile"),
    ];
    let lines = format!(
        "{}<Directory {}>\nAllowOverride All\n</Directory>\n",
        attacked(&lines.concat()),
        folder.display()
    );
    let server = Server::start(place, &lines, true);
    let ask = |path: &str| running::get(server.port, path, &[]);
    let pid = ask("/hostile/pid").body;
    let answer = running::try_get(server.port, "/answers/page.html", &[]);
    let log = server.log();
    assert!(answer.is_ok_and(|answer| answer.status == 500), "{log}");
    assert!(log.contains("0x4000 is no string"), "{log}");
    let _waits = running::begin(server.port, "/hostile/lasting-timer");
    let order =
        server.until(|| Some(ask("/hostile/lasting-order").body).filter(|order| order != "0"));
    assert_eq!(order, "2", "{}", server.log());
    running::many(server.port, "/hostile/lasting-filter", 50);
    assert_eq!(ask("/hostile/pid").body, pid, "{}", server.log());
}

/// The string that a word of a call is, by itself or by a name that the module's folder says it for.
fn literal(word: &str, folder: &Path) -> Option<String> {
    let quoted = |text: &str| text.split('"').nth(1).map(str::to_owned);
    if word.starts_with('"') {
        return quoted(word);
    }
    let is_constant = word.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    let ends = [
        "_type",
        "_id",
        "_name",
        "Name",
        "_filter",
        "_coalesce",
        "_buffer",
    ];
    if !(is_constant || ends.iter().any(|end| word.ends_with(end))) {
        return None;
    }
    let folders = [folder.to_owned(), folder.join("../../include")];
    let files = folders
        .iter()
        .filter_map(|folder| fs::read_dir(folder).ok());
    let files = files.flat_map(Iterator::flatten);
    let mut texts = files.filter_map(|entry| fs::read_to_string(entry.path()).ok());
    texts.find_map(|text| {
        let mut places = text
            .match_indices(word)
            .map(|(at, _)| &text[at + word.len()..]);
        let is_said = |rest: &&str| {
            rest.trim_start_matches([' ', '=', '\t', '[', ']'])
                .starts_with('"')
        };
        places.find(is_said).and_then(quoted)
    })
}

/// Words of each call of a function, or of a macro.
fn calls<'a>(text: &'a str, name: &str) -> Vec<Vec<&'a str>> {
    let calls = text.split(name).skip(1);
    let calls = calls.filter_map(|rest| rest.strip_prefix('(')?.split_once(')'));
    calls
        .map(|(words, _)| words.split(',').map(str::trim).collect())
        .collect()
}

/// `owners.txt` has the names that httpd's modules offer, each with its module; and functions that modules call by their names.
fn names_have_the_owners_that_the_source_says(place: &Place) {
    let mut owned = BTreeSet::new();
    let mut beginnings = Vec::new();
    for line in include_str!("../../src/owners.txt").lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        if let [kind, module, names @ ..] = &words[..]
            && *kind != "#"
        {
            for name in names {
                assert!(
                    owned.insert((*kind, (*module).to_owned(), (*name).to_owned())),
                    "{line}"
                );
                beginnings.extend(name.strip_suffix('*').filter(|_| *kind == "exports"));
            }
        }
    }
    let groups = [
        ("AUTHN_PROVIDER_GROUP", "authn"),
        ("AUTHZ_PROVIDER_GROUP", "authz"),
        ("AP_SOCACHE_PROVIDER_GROUP", "socache"),
        ("AP_SLOTMEM_PROVIDER_GROUP", "slotmem"),
        ("CACHE_PROVIDER_GROUP", "cache"),
        ("PROXY_LBMETHOD", "proxylbmethod"),
        ("PROXY_FDPASS_FLUSHER", "proxy_fdpass_flusher"),
    ];
    let mut expected = BTreeSet::new();
    for module in &place.modules {
        if ["hostile", "slots", "spy", "reader"].contains(&&*module.name) {
            continue;
        }
        for file in &module.files {
            let bytes = fs::read(file).expect("httpd's source");
            let text = String::from_utf8_lossy(&bytes);
            // Examples offer names for examples.
            let folder = file.parent().expect("a folder");
            if folder.ends_with("examples") && module.name != "example_ipc"
                || folder.ends_with("test")
            {
                continue;
            }
            let owner = format!("{}_module", module.name);
            let mut expect = |kind, name: String| {
                expected.insert((kind, owner.clone(), name));
            };
            for words in calls(&text, "APR_REGISTER_OPTIONAL_FN") {
                expect("functions", words[0].to_owned());
            }
            for words in calls(&text, "ap_mutex_register") {
                let name = words.get(1).and_then(|word| literal(word, folder));
                expect(
                    "locks",
                    name.unwrap_or_else(|| panic!("{words:?} of {owner}")),
                );
            }
            for name in [
                "ap_register_output_filter",
                "ap_register_output_filter_protocol",
                "ap_register_input_filter",
            ] {
                for words in calls(&text, name) {
                    // Some modules have the configuration name their filters.
                    let is_named = !words[0].contains("->")
                        && words[0] != "filter"
                        && !words[0].contains("const char");
                    if is_named {
                        let name = literal(words[0], folder);
                        let name = name.unwrap_or_else(|| panic!("{words:?} of {owner}"));
                        // Those of `ssl` have spaces, and one beginning.
                        if !name.starts_with("SSL/TLS ") {
                            expect("filters", name.to_ascii_lowercase());
                        }
                    }
                }
            }
            for name in ["ap_register_provider", "ap_register_auth_provider"] {
                for words in calls(&text, name) {
                    let group = groups.iter().find(|(group, _)| words.get(1) == Some(group));
                    let name = words.get(2).and_then(|word| literal(word, folder));
                    if let (Some((_, group)), Some(name)) = (group, name) {
                        expect("providers", format!("{group}:{name}"));
                    }
                }
            }
        }
    }
    let missing: Vec<_> = expected.difference(&owned).collect();
    assert!(missing.is_empty(), "owners.txt lacks {missing:?}");
    assert!(expected.len() > 90, "{}", expected.len());
    let crossed = include_str!("../../src/httpd.txt").lines();
    let crossed = crossed.filter_map(|line| line.strip_suffix(" ^"));
    let nobodys: Vec<&str> = crossed
        .filter(|name| {
            !beginnings
                .iter()
                .any(|beginning| name.starts_with(beginning))
        })
        .collect();
    assert!(nobodys.is_empty(), "no module has {nobodys:?}");
}
