//! A module that attacks, with and without the wall (`tests/hostile`).

use crate::running::{self, Server};
use crate::{Place, here, processes};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Each attack, and what the error log says of it.
const ATTACKS: &[(&str, &str)] = &[
    ("ending-pattern", "is no regular expression"),
    ("ending-folder", "is no folder"),
    ("ending-folder-read", "is no folder"),
    ("ending-mapping", "is no mapped file"),
    ("ending-cleanup", "is no folder"),
    ("ending-lock", "is no lock"),
    (
        "ending-segment",
        "memory that processes share, which may go",
    ),
    ("ending-allocator", "is no bucket of the module"),
    ("ending-allocator-passed", "may go before the request does"),
    ("ending-allocator-below", "goes before the brigade's pool"),
    ("ending-split", "is no brigade"),
    ("ending-file", "may go before the request does"),
    ("ending-under-way", "is no pool that the module has made"),
    ("text-key", "is no string"),
    ("text-value", "is no string"),
    ("text-hash", "is no string"),
    ("text-word", "is no string"),
    ("text-header", "is no string"),
    ("text-compare", "is no string"),
    ("text-number", "is no string"),
    ("text-upper", "is no string"),
    ("text-escape", "is no string"),
    ("text-copy", "is no string"),
    ("text-join", "is no string"),
    ("text-request", "is no string"),
    ("text-line", "NoMapping of 0x4000"),
    ("text-format", "is no string"),
    ("text-printed", "is no string"),
    ("text-printed-short", "is no string"),
    ("text-beyond-key", "is no string"),
    ("text-beyond-upper", "is no string"),
    ("text-beyond-printed", "is no string"),
    ("text-beyond-word", "is no string"),
    ("text-file", "is no string"),
    ("text-null", "is no string"),
    ("text-hash-bytes", "are not there"),
    ("text-copy-bytes", "are not there"),
    ("text-body", "are not there"),
    ("text-sum", "are not there"),
    ("text-written", "are not there"),
    ("text-address", "there is nothing at"),
    ("text-logged", "is no string"),
    ("text-logged-file", "is no string"),
    ("text-logged-index", "is the number of no module"),
    ("text-cookie", "is no string"),
    ("text-cookie-value", "is no string"),
    ("text-cookie-attributes", "is no string"),
    ("text-methods", "is no string"),
    ("text-encoding", "is no string"),
    ("text-encoding-number", "is no string"),
    ("text-more", "more arguments than the wall passes on"),
    ("text-list", "cannot be read"),
    ("match-elsewhere", "a part of a match from 2147483000"),
    ("match-further", "a part of a match from 2147483000"),
    ("match-appended", "a part of a match from 2147483000"),
    ("match-backwards", "a part of a match from 3 to 1"),
    (
        "match-behind",
        "a part of a match from 1 to 4, in a string of 3 bytes",
    ),
    ("match-error", "is no error"),
    (
        "places-joined",
        "apr_pstrcatv: 100 bytes at 0x4000 are not there",
    ),
    (
        "places-sent",
        "apr_socket_sendv: 100 bytes at 0x4000 are not there",
    ),
    (
        "places-written",
        "apr_file_writev_full: 100 bytes at 0x4000 are not there",
    ),
    ("places-encoded", "are not there"),
    ("places-bucket", "are not there"),
    ("places-compared", "are not there"),
    ("places-added", "cannot be read"),
    ("places-null", "is no place to write to"),
    (
        "statement-text",
        "apr_dbd_pvselect: value 1: 0x4000 is no string",
    ),
    (
        "statement-query",
        "apr_dbd_pvquery: value 1: 0x4000 is no string",
    ),
    ("statement-binary", "are not there"),
    ("statement-list", "value 0: 0x4000 is no string"),
    ("statement-nowhere", "cannot be read"),
    ("statement-large", "are not there"),
    (
        "structure-uri",
        "apr_uri_unparse: a piece: 0x4000 is no string",
    ),
    ("structure-entry", "the file's name: 0x4000 is no string"),
    ("structure-address", "cannot be read"),
    ("structure-family", "is no family of addresses"),
    ("structure-digest", "a block of 64 bytes with 2147483392"),
    ("structure-environment", "is no place in a table"),
    ("structure-score", "is no place in the scoreboard"),
    (
        "structure-host",
        "is no configuration of a section or of a request",
    ),
    (
        "merge-forged",
        "is no configuration of a section or of a request",
    ),
    (
        "merge-onto",
        "is no configuration of a section or of a request",
    ),
    ("swap-configuration", "is put where a Vector"),
    ("names-of-nothing", "is no regular expression"),
    ("names-elsewhere", "an array: "),
    ("writev-nowhere", "are not there"),
    ("lock-kept", "Access of 0x10"),
    ("statement-as-pool", "is no pool that the module was given"),
    ("table-nowhere", "is no table"),
    ("table-of-others", "is no table"),
    ("table-empty", "is no table"),
    ("hash-nowhere", "is no hash"),
    ("array-nowhere", "cannot be read"),
    ("array-behind", "cannot be read"),
    ("array-elements", "cannot be read"),
    ("receive", "`conn_rec.pool`"),
    ("unopened", "is no file"),
    ("scoreboard", "Access of"),
    ("configuration", "memory of expires_module"),
    ("freed", "Access of"),
    ("function", "Access of"),
    ("field", "`request_rec.pool`"),
    ("words", "Access of"),
    ("connection", "`conn_rec.pool`"),
    ("null", "Access of 0x10"),
    ("deputy", "`request_rec.pool`"),
    ("buffer", "`conn_rec.pool`"),
    ("table", "is no table"),
    ("hash-called", "is no hash"),
    ("hash-laid-over", "is no hash"),
    ("request-of-its-own", "is no request"),
    ("piped-log", "is no piped log"),
    ("score-elsewhere", "is no place in the scoreboard"),
    ("copied-table", "is no table"),
    ("directive", "is no state of a directive"),
    ("directive-walk", "is no state of this directive"),
    ("directive-pool", "is no pool that the module was given"),
    ("segment-ended", "Access of"),
    ("name-of-others", "which the module may not write"),
    ("table-pool", "is a pool that a call works with"),
    ("table-part", "is a pool that a call works with"),
    ("hash-pool", "is a pool that a call works with"),
    ("list-again", "a call works with the list"),
    ("hook-later", "the server serves already"),
    ("method-later", "the server serves already"),
    ("provider-later", "the server serves already"),
    ("function-later", "the server serves already"),
    ("context-name", "is no string"),
    ("name-later", "the server serves already"),
    ("table-above", "is a pool that a call works with"),
    ("pool", "is no pool that the module has made"),
    ("oldpool", "is no pool that the module has made"),
    ("format", "a format with %n"),
    ("exit", "exit: the host does not offer it"),
    ("trap", "Abort"),
    ("loop", "its time is over"),
    ("recurse", "its stack is full"),
    ("allocate", "used up"),
    ("jump", "a call of 0x4141"),
    ("characters", "Access of"),
    ("ring", "in a brigade is no bucket"),
    ("twice", "is in a brigade twice"),
    ("type", "changed into something else"),
    ("longer", "changed into something else"),
    ("elsewhere", "changed into something else"),
    ("forged", "is no bucket"),
    ("freed-bucket", "is no bucket"),
    ("scoreboard", "hostile.c:"),
    ("context-old-null", "a filter of others that follows a word"),
    (
        "context-core-null",
        "a filter of others that follows a word",
    ),
    (
        "context-core-input",
        "a filter of others that follows a word",
    ),
    ("context-core-called", "a call of"),
    ("context-of-part", "behind a filter of another request"),
    ("context-passed", "of another's filter"),
    ("context-of-old", "of another's filter"),
    ("context-by-record", "of another's filter"),
    ("context-of-input", "of another's filter"),
    ("context-of-input-record", "of another's filter"),
    ("context-written", "Access of"),
    ("context-called", "is not what this function has left"),
    ("filter", "Access of"),
    ("insert", "Access of"),
    ("kind", "in a brigade is no bucket"),
    ("bytes", "is no memory of the module's"),
    ("resource", "Access of 0x10"),
    (
        "end-whole",
        "is no part of a request that the module has made",
    ),
    (
        "end-twice",
        "is no part of a request that the module has made",
    ),
    ("end-pool", "is no pool that the module has made"),
    ("end-running", " runs"),
    ("end-ending", "is no pool that the module has made"),
    ("end-first", "is no pool that the module has made"),
    (
        "end-redirected",
        "is no part of a request that the module has made",
    ),
    ("ldap-forged", "is no Directory of the module"),
    ("ldap-answer", "is no Found of the module"),
    ("ldap-option", "the option 0x7005 of the whole process"),
    ("ldap-read", "`request_rec.pool`"),
    ("ldap-rebind", "is no Directory of the module"),
    ("ldap-search", "is no Directory of the module"),
    ("ldap-control", "controls are not passed on"),
    ("page-forged", "is no Parser of the module"),
    ("page-options", "is no Parser of the module"),
    ("page-function", "is no function of the module"),
    ("page-place", "a parser's function 0 is not passed on"),
    ("page-again", "is in use by another call"),
    ("page-length", "a length below zero"),
    ("descriptor", "is no socket of the module"),
    ("file-of-lines", "is no function of the module"),
    ("file-named", "Access of"),
    ("pattern-written", "Access of"),
    ("swap-filter", "is put where a Output"),
    ("swap-forged", "is put where a Output"),
    ("swap-crossed", "is put where a Output"),
    ("swap-socket", "is put where a Socket is"),
];

pub(crate) fn attacked(lines: &str) -> String {
    format!(
        "{lines}ExpiresActive on\nExpiresDefault \"access plus 1 hour\"\n\
         <Location /hostile>\nSetHandler hostile\n</Location>\n"
    )
}

/// A server that is attacked one time after another, and begun anew where it takes harm.
pub(crate) struct Attacked<'a> {
    place: &'a Place,
    lines: String,
    pub(crate) server: Server,
    wrong: Vec<String>,
}

impl Attacked<'_> {
    pub(crate) fn new(place: &Place, lines: String) -> Attacked<'_> {
        let server = Server::start(place, &lines, true);
        Attacked {
            place,
            lines,
            server,
            wrong: Vec::new(),
        }
    }

    /// Notes an attack that did not end as it should, or behind which another module does not answer.
    pub(crate) fn look(&mut self, attack: &str, is_well: bool, what: String) {
        let page = running::try_get(self.server.port, "/page.html", &[]);
        let lives = page.is_ok_and(|page| page.header("cache-control") == Some("max-age=3600"));
        if !(is_well && lives) {
            self.wrong
                .push(format!("{attack}: it goes on: {lives}; {what}"));
            self.server = Server::start(self.place, &self.lines, true);
        }
    }

    /// An attack ends with 500, and the log says why.
    pub(crate) fn refused(&mut self, attack: &str, words: &str) {
        let from = self.server.log().len();
        let answer = running::try_get(self.server.port, &format!("/hostile/{attack}"), &[]);
        let said = self.server.log()[from..].to_owned();
        let is_well = matches!(&answer, Ok(answer) if answer.status == 500) && said.contains(words);
        self.look(attack, is_well, format!("{answer:?} {said}"));
    }

    /// An attack comes to nothing, and answers this.
    pub(crate) fn answered(&mut self, attack: &str, much: &str) {
        let answer = running::try_get(self.server.port, &format!("/hostile/{attack}"), &[]);
        let is_well = matches!(&answer, Ok(answer) if answer.body == much);
        let said = format!("{answer:?} {}", self.server.log());
        self.look(attack, is_well, said);
    }

    /// All ended as they should, and the server ends, too.
    pub(crate) fn end(mut self) {
        assert!(self.wrong.is_empty(), "{}", self.wrong.join("\n"));
        let ended = self.server.end();
        assert!(ended.is_ok(), "{ended:?}: {}", self.server.log());
    }
}

pub(crate) fn attacks_end_as_500_and_the_process_goes_on(place: &Place) {
    let lines = [
        place.stock("mime"),
        place.wall(),
        place.walled("expires"),
        place.walled("hostile"),
    ];
    let access = place.scratch.path().join("access");
    let lines = format!("{}CustomLog {} %r\n", lines.concat(), access.display());
    let mut server = Server::start(place, &attacked(&lines), true);
    let pid = running::get(server.port, "/hostile/pid", &[]).body;
    // Whoever asks for drivers first gets an error, and no server that ends.
    let answer = running::get(server.port, "/hostile/drivers-early", &[]);
    assert!(answer.body.contains("1 1"), "{answer:?}: {}", server.log());
    // A file of keys and values, of which APR has its own kind, is no filter.
    let folder = place.scratch.path().join("open");
    fs::create_dir_all(&folder).expect("made");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).expect("ours");
    let from = server.log().len();
    let path = format!("/hostile/keys-as-filter?{}/keys", folder.display());
    let answer = running::get(server.port, &path, &[]);
    let said = server.log()[from..].to_owned();
    assert_eq!(answer.status, 500, "{answer:?}: {said}");
    assert!(said.contains("is no filter"), "{said}");
    let has_driver = Path::new("/usr/lib/x86_64-linux-gnu/apr-util-1/apr_dbd_sqlite3.so").is_file();
    for (attack, words) in ATTACKS.iter().copied().chain(crate::taken::PASSED) {
        if attack.starts_with("statement-") && !has_driver {
            continue;
        }
        let from = server.log().len();
        let answer = running::get(server.port, &format!("/hostile/{attack}"), &[]);
        assert_eq!(answer.status, 500, "{attack}: {answer:?}: {}", server.log());
        let said = server.log()[from..].to_owned();
        assert!(
            said.contains("the wall stopped hostile_module: "),
            "{attack}: {said}"
        );
        assert!(said.contains(words), "{attack}: {said}");
        let page = running::get(server.port, "/page.html", &[]);
        assert_eq!(
            page.header("cache-control"),
            Some("max-age=3600"),
            "behind {attack}"
        );
        let now = running::get(server.port, "/hostile/pid", &[]).body;
        assert_eq!(now, pid, "behind {attack}");
    }
    // The first function that the module has called has sent an answer. And the core does without a string that is none.
    for (attack, words) in [
        ("context-crossed", "is not what this function has left"),
        ("context-nested", "is not what this function has left"),
        ("scheme-nowhere", "0x4000 is no string"),
    ] {
        let from = server.log().len();
        let _answer = running::get(server.port, &format!("/hostile/{attack}"), &[]);
        let said = server.log()[from..].to_owned();
        assert!(said.contains(words), "{attack}: {said}");
        let now = running::get(server.port, "/hostile/pid", &[]).body;
        assert_eq!(now, pid, "behind {attack}");
    }
    // What a stopped call had locked, others can lock.
    let answer = running::get(server.port, "/hostile/lock-taken", &[]);
    assert_eq!(answer.body, "0 0", "{answer:?}");
    // The server does not follow what leads elsewhere in a structure.
    for (attack, much) in [
        ("address-followed", "127.0.0.3"),
        ("match-followed", "ab"),
        ("digest-followed", "9072"),
    ] {
        let answer = running::get(server.port, &format!("/hostile/{attack}"), &[]);
        assert_eq!(answer.body, much, "{attack}: {answer:?}");
    }
    // What is opened is looked at, and not its name. EACCES is 13, ENOENT 2.
    for (attack, much) in [
        ("opened-memory", "13"),
        ("opened-own", "13"),
        ("opened-by-library", "13"),
        ("opened-device", "13"),
        ("opened-segment", "2"),
        ("opened-null", "0"),
        ("opened-plain", "0"),
    ] {
        let answer = running::get(server.port, &format!("/hostile/{attack}"), &[]);
        assert_eq!(answer.body, much, "{attack}: {answer:?}");
    }
    // APR writes over the format itself, which is another one then.
    for attack in ["format-over", "scan-over"] {
        let answer = running::get(server.port, &format!("/hostile/{attack}"), &[]);
        assert_eq!(answer.body, "as before", "{attack}: {answer:?}");
    }
    // A function of the module's changes what APR goes through: that is what there was before.
    for (attack, much) in [("table-grown", "2"), ("hash-grown", "1")] {
        let answer = running::get(server.port, &format!("/hostile/{attack}"), &[]);
        assert_eq!(answer.body, much, "{attack}: {answer:?}");
    }
    // The core ends a pool, and a function of the module's ends it then, too.
    for attack in ["later", "later-first"] {
        let from = server.log().len();
        let answer = running::get(server.port, &format!("/hostile/{attack}"), &[]);
        assert_eq!(answer.status, 200, "{attack}: {}", server.log());
        server.until(|| {
            let said = server.log()[from..].to_owned();
            said.contains("is no pool that the module has made")
                .then_some(())
        });
        let now = running::get(server.port, "/hostile/pid", &[]).body;
        assert_eq!(now, pid, "behind {attack}");
    }
    // A request that was suspended goes on in another thread. Nobody answers it.
    let from = server.log().len();
    let _waits = running::begin(server.port, "/hostile/swap-later");
    server.until(|| {
        let said = server.log()[from..].to_owned();
        said.contains("is put where a Output").then_some(())
    });
    let now = running::get(server.port, "/hostile/pid", &[]).body;
    assert_eq!(now, pid, "behind swap-later");
    // Where the core asks several modules, those behind the stopped one are asked, too: the one that sends the header, and logs.
    assert_eq!(running::get(server.port, "/hostile/next", &[]).status, 200);
    let answer = running::get(server.port, "/page.html", &[]);
    assert_eq!(answer.status, 500, "{answer:?}");
    let page = running::get(server.port, "/page.html", &[]);
    assert_eq!(page.header("cache-control"), Some("max-age=3600"));
    running::get(server.port, "/hostile/log", &[]);
    let access = place.scratch.path().join("access");
    let access = server.until(|| {
        fs::read_to_string(&access)
            .ok()
            .filter(|text| text.contains("hostile/log"))
    });
    assert_eq!(access.matches("GET /hostile/log").count(), 1, "{access}");
    // What was sent cannot be taken back: the client sees that the rest is missing.
    let cut = running::get(server.port, "/hostile/late", &[]);
    assert_eq!(cut.status, 200, "{cut:?}");
    assert!(cut.body.contains("first"), "{cut:?}");
    assert!(!cut.body.contains("second"), "{cut:?}");
    assert!(!cut.body.ends_with("0\r\n\r\n"), "{cut:?}");
    let now = running::get(server.port, "/hostile/pid", &[]).body;
    assert_eq!(now, pid, "behind an answer that was cut");
    // What the calls had of a list of resources was given back: APR would abort otherwise.
    let ended = server.end();
    assert!(ended.is_ok(), "{ended:?}: {}", server.log());
}

/// The module that attacks, with time enough to wait, and memory.
pub(crate) fn patient(place: &Place) -> String {
    let patient = place.scratch.path().join("patient.toml");
    let policy = fs::read_to_string(here("tests/hostile/hostile.toml")).expect("it is there");
    let policy = policy.replace("time = \"500 ms\"", "time = \"60 s\"");
    let policy = policy.replace("memory = \"8 MiB\"", "memory = \"128 MiB\"");
    fs::write(&patient, policy).expect("written");
    let own = here("tests/hostile/hostile.toml").display().to_string();
    let module = place.walled("hostile");
    let module = module.replace(&own, &patient.display().to_string());
    assert!(module.contains("patient.toml"), "{module}");
    module
}

/// One request has a table and waits in a function that APR calls for it. Another one, in another thread, attacks that table.
pub(crate) fn what_another_thread_works_with_is_not_ended_nor_used(place: &Place) {
    let lines = [
        place.stock("mime"),
        place.wall(),
        place.walled("expires"),
        patient(place),
    ];
    let server = Server::start(place, &attacked(&lines.concat()), true);
    let pid = running::get(server.port, "/hostile/pid", &[]).body;
    // Two threads change a table, a hash and a pool at the same time, and wait for each other before. All of it must be there.
    let port = server.port;
    let second = std::thread::spawn(move || running::try_get(port, "/hostile/raced-second", &[]));
    let first = running::try_get(port, "/hostile/raced-first", &[]);
    let second = second.join().expect("it ends");
    let bodies = [&first, &second].map(|answer| answer.as_ref().map(|answer| &answer.body));
    assert!(
        matches!(bodies, [Ok(first), Ok(_)] if first == "80000 80000 80000"),
        "{first:?} {second:?}: {}",
        server.log()
    );
    // APR follows the word that it has just written, or reads so many bytes. Another thread of the module writes there meanwhile.
    for (forged, open, times) in [
        ("/hostile/put-forged", "/hostile/put-open", "50000"),
        ("/hostile/fill-forged", "/hostile/fill-open", "20000"),
        // The host writes to what another thread gives back: that is no memory of the host's.
        ("/hostile/heap-given", "/hostile/heap-written", "5"),
    ] {
        let second = std::thread::spawn(move || running::try_get(port, forged, &[]));
        let first = running::try_get(port, open, &[]);
        let second = second.join().expect("it ends");
        let bodies = [&first, &second].map(|answer| answer.as_ref().map(|answer| &answer.body));
        assert!(
            matches!(bodies, [Ok(first), Ok(second)] if first == times && second == "done"),
            "{open}: {first:?} {second:?}: {}",
            server.log()
        );
    }
    for (keeps, attack, words) in [
        (
            "keep-merging",
            "use-kept",
            "is in use by another thread's call",
        ),
        (
            "keep-lasting",
            "end-kept",
            "is a pool that a call works with",
        ),
        ("keep-own", "change-kept", "is no table"),
        ("keep-own", "use-kept", "is a pool of another request"),
    ] {
        // Until the thread of the attack before is out of the module, the module's calls end with errors.
        server.until(|| {
            let now = running::get(server.port, "/hostile/is-kept", &[]);
            (now.body == "no").then_some(())
        });
        let from = server.log().len();
        let _waits = running::begin(server.port, &format!("/hostile/{keeps}"));
        server.until(|| {
            let now = running::get(server.port, "/hostile/is-kept", &[]);
            (now.body == "yes").then_some(())
        });
        let answer = running::get(server.port, &format!("/hostile/{attack}"), &[]);
        assert_eq!(answer.status, 500, "{attack}: {}", server.log());
        // The thread that waits may be the one that tells why.
        server.until(|| server.log()[from..].contains(words).then_some(()));
        let now = running::get(server.port, "/page.html", &[]);
        assert_eq!(now.header("cache-control"), Some("max-age=3600"));
    }
    let now = server.until(|| {
        let now = running::get(server.port, "/hostile/pid", &[]);
        (now.status == 200).then_some(now.body)
    });
    assert_eq!(now, pid);
}

/// A thread of the module changes a text, or ends the memory that has it, while another one has passed it to the host. No answer has
/// what lies behind the text, nothing is written behind what was taken for a shorter one, and the server goes on.
pub(crate) fn texts_that_change_are_read_once(place: &Place) {
    let lines = [
        place.stock("mime"),
        place.wall(),
        place.walled("expires"),
        patient(place),
    ];
    let lines = attacked(&lines.concat());
    let mut wrong = Vec::new();
    for path in ["words", "tables", "paths", "matches", "segments"] {
        let server = Server::start(place, &lines, true);
        let port = server.port;
        let second = std::thread::spawn(move || running::try_get(port, "/hostile/two-change", &[]));
        let first = running::try_get(port, &format!("/hostile/two-{path}"), &[]);
        let second = second.join().expect("it ends");
        let bodies = [&first, &second].map(|answer| answer.as_ref().map(|answer| &answer.body));
        let is_well = matches!(bodies, [Ok(first), Ok(second)] if first == "0" && second == "done");
        // A call that reads memory which has gone is stopped.
        let is_stopped = path == "segments" && server.log().contains("is no string");
        let page = running::try_get(port, "/page.html", &[]).map(|answer| answer.status);
        if !matches!(page, Ok(200)) || !is_well && !is_stopped {
            wrong.push(format!("{path}: {page:?} {bodies:?} {}", server.log()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A thread waits in a function of the host for good, and another one stops the module. It cannot begin anew in this child, which takes
/// no more connections; the server starts another one.
pub(crate) fn a_child_in_which_a_module_stays_stopped_is_replaced(place: &Place) {
    let lines = [
        place.stock("mime"),
        place.wall(),
        place.walled("expires"),
        patient(place),
    ];
    let lines = format!(
        "{}StartServers 1\nServerLimit 4\nThreadsPerChild 8\nMaxRequestWorkers 16\nMinSpareThreads 1\nMaxSpareThreads 32\n",
        attacked(&lines.concat())
    );
    let server = Server::start(place, &lines, false);
    let ask = |path: &str| running::get(server.port, path, &[]);
    let first = server.until(|| Some(processes(&server)).filter(|all| all.len() == 1));
    assert_eq!(ask("/hostile/pid").body, first[0]);
    let _waits = running::begin(server.port, "/hostile/wait-for-good");
    server.until(|| (ask("/hostile/is-kept").body == "yes").then_some(()));
    assert_eq!(ask("/hostile/null").status, 500);
    let second = server.until(|| {
        let answer = running::try_get(server.port, "/hostile/pid", &[]).ok()?;
        (answer.status == 200).then_some(answer.body)
    });
    assert_ne!(second, first[0]);
    let said = server.log();
    assert!(said.contains("takes no more connections"), "{said}");
    // The first one has its thread still, and answers nothing new.
    for _ in 0..10 {
        assert_ne!(ask("/hostile/pid").body, first[0]);
        let page = ask("/page.html");
        assert_eq!(page.header("cache-control"), Some("max-age=3600"));
    }
    assert!(processes(&server).contains(&first[0]));
}

/// Without the wall: the process is gone, or what it answers is not what it was.
pub(crate) fn the_same_attacks_end_or_corrupt_a_stock_server(place: &Place) {
    let lines = [
        place.stock("mime"),
        place.stock("expires"),
        place.native("hostile"),
    ];
    let lines = attacked(&lines.concat());
    let mut harmless = Vec::new();
    for attack in [
        "configuration",
        "function",
        "field",
        "connection",
        "null",
        "table",
        "exit",
        "recurse",
        "ring",
        "type",
        "hash-called",
        "request-of-its-own",
        "piped-log",
        "score-elsewhere",
        "directive",
        "text-key",
        "text-null",
        "text-word",
        "text-compare",
        "text-body",
        "text-printed",
        "text-beyond-upper",
        "match-elsewhere",
        "match-error",
        "places-joined",
        "places-null",
        "structure-uri",
        "structure-entry",
        "structure-address",
        "structure-digest",
        "structure-environment",
        "structure-score",
        "structure-host",
        "statement-text",
        "statement-large",
        "address-followed",
        "digest-followed",
    ] {
        let mut server = Server::start(place, &lines, true);
        let pid = running::get(server.port, "/hostile/pid", &[]).body;
        let _gone = running::try_get(server.port, &format!("/hostile/{attack}"), &[]);
        let page = running::try_get(server.port, "/page.html", &[]);
        let is_well = page.is_ok_and(|page| page.header("cache-control") == Some("max-age=3600"));
        let now = running::try_get(server.port, "/hostile/pid", &[]);
        let is_same = now.is_ok_and(|now| now.body == pid);
        if is_well && is_same {
            harmless.push(attack);
        }
        server.stop();
    }
    assert!(
        harmless.is_empty(),
        "no harm to a stock server: {harmless:?}"
    );
}
