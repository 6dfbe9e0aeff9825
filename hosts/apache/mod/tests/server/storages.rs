//! A storage for mod_dav that attacks it, and servers in which only one of the two has a wall.

use crate::Place;
use crate::running::{self, Server};

/// How it attacks (`tests/storage.c`): the method, and what the error log says. All end as 500.
const ATTACKS: [(&str, &str, &str); 20] = [
    ("PROPFIND", "forged", "the wall stopped dav_module"),
    ("PROPFIND", "nowhere", "the wall stopped dav_module"),
    ("PROPFIND", "structure", "the wall stopped dav_module"),
    ("PROPFIND", "beside", "the wall stopped dav_fs_module"),
    ("PROPFIND", "pool", "the wall stopped dav_fs_module"),
    ("PROPFIND", "config", "the wall stopped dav_fs_module"),
    ("PROPFIND", "tree", "ap_xml_parse_input: "),
    (
        "PROPFIND",
        "tree-of-another",
        "is no request that the module was given",
    ),
    ("PROPFIND", "error", "the wall stopped dav_module"),
    (
        "PROPFIND",
        "written-error",
        "the wall stopped dav_fs_module",
    ),
    ("PROPFIND", "buffer", "dav_buffer_init: "),
    ("PROPFIND", "buffer-pool", "dav_buffer_init: "),
    ("PROPFIND", "namespaces", "the wall stopped dav_module"),
    ("PROPFIND", "late", "the server serves already"),
    ("PROPFIND", "walker", "the wall stopped dav_fs_module"),
    ("PROPFIND", "walker-nowhere", "repository_walker: "),
    ("PROPFIND", "walker-of-theirs", "repository_walker: "),
    (
        "PROPFIND",
        "walker-changed",
        "the wall stopped dav_fs_module",
    ),
    (
        "PROPFIND",
        "property-nowhere",
        "the wall stopped dav_module",
    ),
    ("PROPFIND", "property-forged", "the wall stopped dav_module"),
];

const LINES: &str = "<Location /dav>\nDav On\nFileETag Digest\n</Location>\n";
const ASKED: &str = "<?xml version=\"1.0\"?><D:propfind xmlns:D=\"DAV:\" xmlns:x=\"x\"><D:prop><x:one/></D:prop></D:propfind>";

fn storage(place: &Place) -> String {
    let module = place.walled("dav_fs");
    let policy = module.split(' ').next_back().unwrap_or_default();
    let storage = place.walled("storage");
    let file = storage.split(' ').nth(2).unwrap_or_default();
    format!("MullionLoadModule dav_fs_module {file} {policy}")
}

pub(crate) fn storages_do_not_misuse_mod_dav(place: &Place) {
    let lines = [
        place.stock("mime"),
        place.wall(),
        place.walled("dav"),
        storage(place),
    ]
    .concat();
    let mut server = Server::start(place, &(lines.clone() + LINES), true);
    let pid = server.pid();
    for (method, how, words) in ATTACKS {
        let from = server.log().len();
        let line = format!("{method} /dav/{how}");
        let fields = [("Depth", "0"), ("Content-Type", "text/xml")];
        let answer = running::ask(server.port, &line, &fields, ASKED);
        let answer = answer.unwrap_or_else(|error| panic!("{how}: {error}: {}", server.log()));
        let said = server.log()[from..].to_owned();
        assert_eq!(answer.status, 500, "{how}: {answer:?}: {said}");
        assert!(said.contains(words), "{how}: {said}");
        let page = running::get(server.port, "/page.html", &[]);
        assert_eq!(
            (page.status, server.pid()),
            (200, pid),
            "{how}: {}",
            server.log()
        );
    }
    for (how, words) in [
        ("etag-info", "ap_make_etag_ex: "),
        ("etag-path", "ap_make_etag_ex: "),
        ("etag-file", "is no file that the module has opened"),
    ] {
        let from = server.log().len();
        let answer = running::ask(
            server.port,
            &format!("PUT /dav/{how}"),
            &[("If", "([\"a\"])")],
            "a",
        );
        let said = server.log()[from..].to_owned();
        assert!(said.contains(words), "{how}: {answer:?}: {said}");
        assert_eq!(running::get(server.port, "/page.html", &[]).status, 200);
    }
    // The server reads a whole file for its sum: one that a module may read.
    let page = place.scratch.path().join("htdocs/page.html");
    for (path, begins) in [
        ("/proc/self/environ", "it is <>"),
        (&page.display().to_string(), "it is <\""),
    ] {
        let from = server.log().len();
        let line = format!("PUT /dav/etag-file-of?{path}");
        let answer = running::ask(server.port, &line, &[("If", "([\"a\"])")], "a");
        let said = server.log()[from..].to_owned();
        assert!(said.contains(begins), "{path}: {answer:?}: {said}");
    }
    server.end().expect("it ends well");
    // Hooks of modules are put in order before the server has its children.
    let names = ["dav", "dav_fs", "dav_lock"];
    let all = names.map(|name| place.walled(name)).concat();
    let lines_of_all = [place.stock("mime"), place.wall(), all].concat() + LINES;
    let server = Server::start(place, &lines_of_all, false);
    let answer = running::ask(server.port, "OPTIONS /dav/", &[], "").expect("an answer");
    let offered = answer.header("dav").unwrap_or_default();
    assert!(offered.starts_with("1,2"), "{answer:?}: {}", server.log());
    drop(server);
    for (name, words) in [
        ("STORAGE_CUT", "cannot be read"),
        ("STORAGE_MORE", "a structure that is not known"),
        ("STORAGE_FOREIGN", "is no function of the module"),
    ] {
        let (status, log) = Server::ends(place, &format!("Define {name}\n{lines}{LINES}"));
        assert_eq!(status.code(), Some(1), "{name}: {status:?}: {log}");
        assert!(log.contains(words), "{name}: {log}");
    }
    for (what, modules, words) in [
        (
            "a storage alone",
            [place.stock("dav"), place.wall(), place.walled("dav_fs")],
            "dav_module works with modules that have a wall if it has one itself",
        ),
        (
            "locks alone",
            [place.stock("dav"), place.wall(), place.walled("dav_lock")],
            "dav_module works with modules that have a wall if it has one itself",
        ),
        (
            "mod_dav with a storage without a wall",
            [place.wall(), place.walled("dav"), place.stock("dav_fs")],
            "undefined symbol: dav_",
        ),
        (
            "mod_dav alone",
            [place.wall(), place.walled("dav"), String::new()],
            "Unknown DAV provider: filesystem",
        ),
    ] {
        let (status, log) = Server::ends(place, &(modules.concat() + LINES));
        assert_eq!(status.code(), Some(1), "{what}: {status:?}: {log}");
        assert!(log.contains(words), "{what}: {log}");
    }
}
