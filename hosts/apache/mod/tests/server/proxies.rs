//! A mod_proxy that attacks modules of protocols, and a protocol that attacks mod_proxy.

use crate::Place;
use crate::running::{self, Server};

/// How mod_proxy attacks (`tests/backend.c`), and what the error log says. All end as 500.
const PROXIES: [(&str, &str); 11] = [
    ("core", "is no connection of mod_proxy's"),
    ("nowhere", "is no connection of mod_proxy's"),
    ("shared", "the wall stopped proxy_http_module: Access of "),
    (
        "shared-nowhere",
        "the wall stopped proxy_http_module: Access of 0x4",
    ),
    (
        "shared-beyond",
        "the wall stopped proxy_http_module: Access of ",
    ),
    ("pool", "is no pool that the module was given"),
    ("socket", "is no socket that the module was given"),
    ("connection", "is no connection that the module was given"),
    ("brigade", "is no brigade that the module was given"),
    ("worker", "is no object of another module that"),
    ("conf", "is no object of another module that"),
];

/// How a protocol attacks (`tests/protocol.c`).
const PROTOCOLS: [(&str, &str); 15] = [
    ("name", "memory of proxy_module"),
    ("shared-word", "memory of proxy_module"),
    ("configuration", "memory of proxy_module"),
    ("conf-as-worker", "the wall stopped proxy_http_module"),
    ("own-worker", "is no object of another module that"),
    ("late", "the server serves already"),
    ("copy", "ap_proxy_strncpy: "),
    ("status", "ap_proxy_set_wstatus: "),
    ("pool-word", "memory of proxy_module"),
    ("worker-word", "memory of proxy_module"),
    ("request", "with a backend is no request of the module"),
    ("end-pool", "is no pool that the module has made"),
    ("own-connection", "is no connection to a backend that"),
    ("twice", "is no connection to a backend that"),
    ("behind", "is no connection to a backend that"),
];

/// A module of the tests in the place of one of httpd's, with that one's policy.
fn instead(place: &Place, own: &str, name: &str) -> String {
    let module = place.walled(name);
    let policy = module.split(' ').next_back().unwrap_or_default();
    let own = place.walled(own);
    let file = own.split(' ').nth(2).unwrap_or_default();
    format!("MullionLoadModule {name}_module {file} {policy}")
}

/// Asks a server for paths that attack. Each ends as 500, and the process goes on. The answer is what was otherwise.
fn attack(server: &mut Server, folder: &str, attacks: &[(&str, &str)]) -> Vec<String> {
    let pid = server.pid();
    let mut wrong = Vec::new();
    for (how, words) in attacks {
        let from = server.log().len();
        let answer = running::ask(server.port, &format!("GET {folder}/{how}"), &[], "");
        let said = server.log()[from..].to_owned();
        let status = answer.as_ref().map_or(0, |answer| answer.status);
        if status != 500 || !said.contains(words) {
            wrong.push(format!("{how}: {answer:?}: {said}"));
        }
        let page = running::ask(server.port, "GET /page.html", &[], "");
        let page = page.map_or(0, |page| page.status);
        if (page, server.pid()) != (200, pid) {
            wrong.push(format!("{how}: the server does not go on"));
            break;
        }
    }
    wrong
}

pub(crate) fn proxies_and_protocols_do_not_misuse_each_other(place: &Place) {
    let protocol = instead(place, "protocol", "proxy_http");
    let first = [place.stock("mime"), place.wall()].concat();
    let lines = [&*first, &*instead(place, "backend", "proxy"), &*protocol].concat();
    let mut server = Server::start(place, &lines, true);
    // What the policy names is granted where it is mod_proxy's own memory.
    let answer = running::get(server.port, "/proxy/counts", &[]);
    assert_eq!(answer.body, "done", "{answer:?}: {}", server.log());
    let mut wrong = attack(&mut server, "/proxy", &PROXIES);
    let ended = server.end();

    let lines = [&*first, &*place.walled("proxy"), &*protocol].concat()
        + "ProxyPass /proxy http://127.0.0.1:9\n";
    let mut server = Server::start(place, &lines, true);
    for how in ["counts", "nothing"] {
        let answer = running::get(server.port, &format!("/proxy/{how}"), &[]);
        assert_eq!(answer.body, "done", "{answer:?}: {}", server.log());
    }
    wrong.extend(attack(&mut server, "/proxy", &PROTOCOLS));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    ended.expect("it ends well");
    let answer = running::get(server.port, "/proxy/counts", &[]);
    assert_eq!(answer.body, "done", "{answer:?}: {}", server.log());
    server.end().expect("it ends well");
}

/// Health checks find out that a member is not there, and requests go to the other one.
pub(crate) fn a_member_that_is_down_is_found_and_left_out(place: &Place) {
    const DISABLED: &str = "Health check DISABLING http://127.0.0.1:";
    let port = crate::backends::start("http", place.scratch.path());
    let modules = [
        "slotmem_shm",
        "proxy",
        "proxy_balancer",
        "proxy_http",
        "proxy_hcheck",
        "lbmethod_byrequests",
    ];
    let modules: String = modules.iter().map(|name| place.walled(name)).collect();
    let members = format!(
        "<Proxy balancer://one>\n\
         BalancerMember http://127.0.0.1:{port} hcmethod=TCP hcinterval=1\n\
         BalancerMember http://127.0.0.1:9 hcmethod=TCP hcinterval=1\n\
         ProxySet lbmethod=byrequests\n</Proxy>\nProxyPass /one balancer://one\nLogLevel proxy_hcheck:info\n"
    );
    let lines = [place.stock("mime"), place.wall(), modules, members].concat();
    let server = Server::start(place, &lines, true);
    let is_found = |_| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        server.log().contains(&format!("{DISABLED}9\n"))
    };
    assert!((0..600).any(is_found), "{}", server.log());
    for _ in 0..6 {
        let answer = running::get(server.port, "/one/thing", &[]);
        assert_eq!(answer.status, 201, "{answer:?}: {}", server.log());
    }
    let log = server.log();
    assert!(!log.contains(&format!("{DISABLED}{port}")), "{log}");
    assert!(!log.contains("mullion: "), "{log}");
    // Those that say so are health checks.
    let mut tries = log
        .lines()
        .filter(|line| line.contains(" attempt to connect "));
    assert!(tries.all(|line| line.contains(" HC")), "{log}");
}
