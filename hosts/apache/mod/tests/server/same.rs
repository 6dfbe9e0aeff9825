//! The same requests to a stock server and to one with modules behind the wall.

use crate::Place;
use crate::running::{self, Answer, Server};
use mullion_apache::Protection;

/// Modules, the lines that configure them, and what is asked. Where a line has `{root}`, the folder of the test is meant.
struct Case {
    modules: &'static [&'static str],
    /// Others that it needs, Debian's own.
    stock: &'static [&'static str],
    lines: &'static str,
    requests: &'static [(&'static str, &'static [(&'static str, &'static str)])],
}

const CASES: &[Case] = &[
    Case {
        modules: &[
            "expires",
            "headers",
            "mime",
            "setenvif",
            "env",
            "unique_id",
            "usertrack",
        ],
        stock: &[],
        lines: "ExpiresActive on\nExpiresDefault \"access plus 1 hour\"\nExpiresByType text/html \"access plus 1 day\"\n\
            ExpiresByType image/* A60\n\
            Header set X-One \"one %{REQUEST_URI}e\"\nHeader append X-One two\nHeader merge X-Two three\nHeader edit X-One o(n)e \"$1\"\n\
            Header always set X-Always yes\nHeader set X-Env marked env=marked\nRequestHeader set X-In in\n\
            Header echo ^X-Ask\nHeader set X-Expr expr=%{HTTP_USER_AGENT}\nHeader unset X-Nothing\n\
            SetEnvIf User-Agent Robot marked\nSetEnvIfNoCase X-Kind ^good$ kind=$0\nBrowserMatch Old old !marked\nSetEnv always 1\n\
            AddType text/x-own .own\nAddLanguage de .de\nAddLanguage en .en\nAddEncoding x-own .enc\nTypesConfig {root}/mime.types\n\
            CookieTracking on\nCookieName track\n",
        requests: &[
            ("/page.html", &[]),
            ("/page.txt", &[("User-Agent", "Robot"), ("X-Ask-Me", "yes")]),
            ("/page.txt", &[("User-Agent", "Robot Old")]),
            ("/image.gif", &[("X-Kind", "GOOD")]),
            ("/note.html.de", &[]),
            ("/none.html", &[]),
            ("HEAD /page.html", &[]),
            ("OPTIONS /page.html", &[]),
        ],
    },
    Case {
        modules: &["alias", "dir", "userdir", "actions", "vhost_alias"],
        stock: &["mime"],
        lines: "TypesConfig {root}/mime.types\nAlias /other {root}/htdocs/sub\nAliasMatch ^/match/(.*)$ {root}/htdocs/$1\nRedirect permanent /old /new\n\
            RedirectMatch 302 ^/moved/(.*)\\.html$ /page.txt?$1\nRedirect gone /gone\nDirectoryIndex none.html index.html\nFallbackResource /page.html\n\
            UserDir {root}/htdocs/*\n",
        requests: &[
            ("/other/index.html", &[]),
            ("/other/", &[]),
            ("/other", &[]),
            ("/match/page.txt", &[]),
            ("/old/thing?a=b", &[]),
            ("/moved/x.html", &[]),
            ("/gone", &[]),
            ("/sub/", &[]),
            ("/sub", &[]),
            ("/fallback/anywhere", &[]),
        ],
    },
    Case {
        modules: &[
            "auth_basic",
            "authn_file",
            "authn_core",
            "authz_user",
            "authz_host",
            "authz_groupfile",
            "access_compat",
            "allowmethods",
        ],
        stock: &[],
        lines: "<Location /secret>\nAuthType Basic\nAuthName secret\nAuthBasicProvider file\nAuthUserFile {root}/users\n\
            AuthGroupFile {root}/groups\nRequire user user\n</Location>\n\
            <Location /sub>\nAuthType Basic\nAuthName friends\nAuthUserFile {root}/users\nAuthGroupFile {root}/groups\nRequire group friends\n</Location>\n\
            <Location /list>\nRequire ip 10.0.0.0/8\n</Location>\n<Location /page.txt>\nRequire ip 127.0.0.0/8\n</Location>\n\
            <Location /image.gif>\nOrder deny,allow\nDeny from 127.0.0.1\n</Location>\n<Location /page.html>\nAllowMethods GET\n</Location>\n",
        requests: &[
            ("/secret/page.html", &[]),
            (
                "/secret/page.html",
                &[("Authorization", "Basic dXNlcjp3cm9uZw==")],
            ),
            (
                "/secret/page.html",
                &[("Authorization", "Basic dXNlcjp3b3Jk")],
            ),
            (
                "/sub/index.html",
                &[("Authorization", "Basic dXNlcjp3b3Jk")],
            ),
            (
                "/sub/index.html",
                &[("Authorization", "Basic b3RoZXI6d29yZA==")],
            ),
            ("/list/one.txt", &[]),
            ("/page.txt", &[]),
            ("/image.gif", &[]),
            ("POST /page.html", &[]),
            ("/page.html", &[]),
        ],
    },
    Case {
        modules: &["autoindex", "speling"],
        stock: &["mime", "dir", "negotiation", "asis"],
        lines: "TypesConfig {root}/mime.types\nAddLanguage de .de\nAddLanguage en .en\nCheckSpelling on\nAddHandler send-as-is asis\n\
            <Directory {root}/htdocs>\nOptions +MultiViews +Indexes\n</Directory>\n\
            <Directory {root}/htdocs/list>\nIndexOptions FancyIndexing HTMLTable SuppressLastModified ScanHTMLTitles\nAddDescription \"the first\" one.txt\n</Directory>\n",
        requests: &[
            ("/note.html", &[("Accept-Language", "de")]),
            ("/note.html", &[("Accept-Language", "en, de;q=0.5")]),
            ("/note", &[("Accept-Language", "de")]),
            ("/page", &[]),
            ("/list/", &[]),
            ("/list/?C=S;O=D", &[]),
            ("/pgae.html", &[]),
            ("/saved.asis", &[]),
        ],
    },
    Case {
        modules: &["rewrite"],
        stock: &["mime", "dir"],
        lines: "TypesConfig {root}/mime.types\nRewriteEngine on\nRewriteRule ^/short$ /page.html [L]\nRewriteRule ^/r/(.*)$ /$1 [R=301,L,QSA]\n\
            RewriteCond %{HTTP_USER_AGENT} Robot\nRewriteRule ^/bot$ - [F]\nRewriteRule ^/gone$ - [G]\nRewriteMap low int:tolower\n\
            RewriteRule ^/Map/(.*)$ /${low:$1} [PT]\nRewriteRule ^/env - [E=seen:1,CO=name:value:localhost]\n\
            <Directory {root}/htdocs/sub>\nRewriteEngine on\nRewriteRule ^here$ index.html\n</Directory>\n",
        requests: &[
            ("/short", &[]),
            ("/r/page.html?x=1", &[]),
            ("/bot", &[("User-Agent", "Robot")]),
            ("/bot", &[]),
            ("/gone", &[]),
            ("/Map/PAGE.HTML", &[]),
            ("/env", &[]),
            ("/sub/here", &[]),
        ],
    },
];

/// Cases of filters that change bodies, and of what is made of several pieces.
const BODIES: &[Case] = &[
    Case {
        modules: &[
            "substitute",
            "sed",
            "deflate",
            "brotli",
            "data",
            "buffer",
            "ratelimit",
            "charset_lite",
        ],
        stock: &["mime", "filter", "env"],
        lines: "TypesConfig {root}/mime.types\n\
            <Location /words.txt>\nAddOutputFilterByType SUBSTITUTE;DEFLATE text/plain\nSubstitute s/quick/slow/n\nSubstitute \"s|br(o)wn|$1-red|i\"\n</Location>\n\
            <Location /page.txt>\nSetOutputFilter SED\nOutputSed \"s/text/sentence/g\"\n</Location>\n\
            <Location /page.html>\nSetOutputFilter BROTLI_COMPRESS\n</Location>\n<Location /image.gif>\nSetOutputFilter DATA\n</Location>\n\
            <Location /big.txt>\nSetOutputFilter BUFFER\nCharsetSourceEnc ISO-8859-1\nCharsetDefault UTF-8\n</Location>\n\
            <Location /small.txt>\nSetOutputFilter RATE_LIMIT\nSetEnv rate-limit 40\n</Location>\n",
        requests: &[
            ("/words.txt", &[]),
            ("/words.txt", &[("Accept-Encoding", "gzip")]),
            ("/page.txt", &[]),
            ("/page.html", &[("Accept-Encoding", "br")]),
            ("/page.html", &[]),
            ("/image.gif", &[]),
            ("/big.txt", &[]),
            ("/small.txt", &[]),
        ],
    },
    Case {
        modules: &[
            "include",
            "asis",
            "negotiation",
            "imagemap",
            "reflector",
            "remoteip",
            "reqtimeout",
            "cern_meta",
        ],
        stock: &["mime"],
        lines: "TypesConfig {root}/mime.types\nAddType text/html .shtml\nAddOutputFilter INCLUDES .shtml\nAddHandler send-as-is asis\n\
            AddHandler imap-file map\nAddLanguage de .de\nAddLanguage en .en\nRemoteIPHeader X-For\nRequestReadTimeout header=20 body=20\nMetaFiles on\n\
            <Directory {root}/htdocs>\nSSILegacyExprParser on\nOptions +Includes +MultiViews\n</Directory>\n\
            <Location /reflect>\nSetHandler reflector\n</Location>\n",
        requests: &[
            ("/whole.shtml", &[]),
            ("/saved.asis", &[]),
            ("/note.html", &[("Accept-Language", "de")]),
            ("/note", &[("Accept-Language", "en, de;q=0.5")]),
            ("/links.map?5,5", &[]),
            ("/links.map", &[]),
            ("POST /reflect", &[("X-Any", "thing")]),
            ("/page.html", &[("X-For", "192.0.2.7")]),
        ],
    },
    Case {
        modules: &[
            "authn_anon",
            "authz_owner",
            "log_debug",
            "log_forensic",
            "dumpio",
            "status",
        ],
        stock: &[
            "auth_basic",
            "authn_core",
            "authz_user",
            "authn_file",
            "mime",
        ],
        lines: "TypesConfig {root}/mime.types\nLogMessage seen\nForensicLog {root}/forensic\nDumpIOInput On\nDumpIOOutput On\n\
            <Location /secret>\nAuthType Basic\nAuthName secret\nAuthBasicProvider anon\nAnonymous user\nRequire valid-user\n</Location>\n\
            <Location /sub>\nAuthType Basic\nAuthName owners\nAuthUserFile {root}/users\nRequire file-owner\n</Location>\n\
            <Location /state>\nSetHandler server-status\n</Location>\n",
        requests: &[
            ("/secret/page.html", &[]),
            (
                "/secret/page.html",
                &[("Authorization", "Basic dXNlcjp3b3Jk")],
            ),
            (
                "/sub/index.html",
                &[("Authorization", "Basic dXNlcjp3b3Jk")],
            ),
            ("/state?auto", &[]),
            ("/page.html", &[]),
        ],
    },
];

fn lines(place: &Place, case: &Case, walled: Option<Protection>) -> String {
    let mut lines = String::new();
    for name in case.stock {
        lines.push_str(&place.stock(name));
    }
    if walled.is_some() {
        lines.push_str(&place.wall());
    }
    for name in case.modules {
        let line = match walled {
            Some(protection) => place.walled_by(name, protection),
            None => place.stock(name),
        };
        lines.push_str(&line);
    }
    let root = place.scratch.path().display().to_string();
    lines + &case.lines.replace("{root}", &root)
}

/// Answers to all requests of a case, each asked twice: the second time by a server that has already answered.
fn answers(place: &Place, case: &Case, walled: Option<Protection>) -> (Vec<Answer>, String) {
    let server = Server::start(place, &lines(place, case, walled), true);
    let twice = [case.requests, case.requests].concat();
    let answers = twice
        .iter()
        .map(|(path, headers)| {
            let mut answer = running::get(server.port, path, headers);
            // Ports differ from server to server, and times pass.
            let port = server.port.to_string();
            for (name, value) in &mut answer.headers {
                *value = value.replace(&port, "PORT");
                if name == "set-cookie" && value.starts_with("track=") {
                    value.truncate(6);
                }
                if name == "allow" {
                    // The core keeps methods in a hash, whose order is another one in each process.
                    let mut methods: Vec<&str> = value.split(',').collect();
                    methods.sort_unstable();
                    *value = methods.join(",");
                }
                if name == "expires" {
                    value.truncate(16);
                }
            }
            answer.body = answer.body.replace(&port, "PORT");
            if path.ends_with("/reflect") {
                // It is the time of the request.
                answer.headers.retain(|(name, _)| name != "last-modified");
            }
            if path.starts_with("/state") {
                // Figures differ, and so does the number of their digits.
                let rows = answer.body.lines();
                let names = rows.map(|row| row.split(':').next().unwrap_or_default());
                // These are there once the processor's time has been counted.
                let names = names.filter(|name| !name.contains("Per") && *name != "CPULoad");
                answer.body = names.collect::<Vec<_>>().join("\n");
                answer.headers.retain(|(name, _)| name != "content-length");
            }
            answer
        })
        .collect();
    (answers, server.log())
}

pub(crate) fn walled_modules_answer_as_stock_ones(place: &Place) {
    answer_as_stock_ones(place, Protection::Write, None);
}

/// All cases, or those that have a module.
pub(crate) fn answer_as_stock_ones(place: &Place, protection: Protection, wanted: Option<&str>) {
    let has = |case: &&Case| wanted.is_none_or(|name| case.modules.contains(&name));
    for case in CASES.iter().chain(BODIES).filter(has) {
        let (stock, _) = answers(place, case, None);
        let (walled, log) = answers(place, case, Some(protection));
        let requests = [case.requests, case.requests].concat();
        for ((request, stock), walled) in requests.iter().zip(&stock).zip(&walled) {
            assert_eq!(stock, walled, "{request:?} of {:?}: {log}", case.modules);
        }
        assert!(!log.contains("mullion"), "{log}");
        println!("{} requests to {}", stock.len(), case.modules.join(" "));
    }
}

/// Processor time of the server for a request, and what the walled modules were called for.
pub(crate) fn cost(place: &Place) {
    const REQUESTS: u64 = 2000;
    const NAMES: [&str; 8] = [
        "expires", "headers", "alias", "dir", "mime", "setenvif", "env", "rewrite",
    ];
    let configured = "ExpiresActive on\nExpiresDefault \"access plus 1 hour\"\nHeader set X-One one\nAlias /other {root}/htdocs/sub\n\
        DirectoryIndex index.html\nTypesConfig {root}/mime.types\nSetEnvIf User-Agent Robot marked\nSetEnv always 1\n\
        RewriteEngine on\nRewriteRule ^/short$ /page.html [L]\nMaxKeepAliveRequests 0\n\
        <Location /status>\nSetHandler mullion-status\n</Location>\n";
    let configured = configured.replace("{root}", &place.scratch.path().display().to_string());
    let stock: String = NAMES.iter().map(|name| place.stock(name)).collect();
    // `cost read-write`: stores checked in the first, and loads in the second.
    let (first, second) = match std::env::args().nth(2).as_deref() {
        Some("read-write") => (Some(Protection::Write), Protection::ReadWrite),
        _ => (None, Protection::Write),
    };
    let named = |protection| -> String {
        let names = NAMES.iter();
        names
            .map(|name| place.walled_by(name, protection))
            .collect()
    };
    let walled = named(second);
    let stock = match first {
        Some(protection) => place.wall() + &named(protection),
        None => stock,
    };
    let stock = Server::start(place, &format!("{stock}{configured}"), true);
    let walled = Server::start(
        place,
        &format!("{}{walled}{configured}", place.wall()),
        true,
    );
    for path in ["/small.txt", "/big.txt"] {
        let mut times = [Vec::new(), Vec::new()];
        let mut counted = (0, 0);
        for server in [&stock, &walled] {
            running::many(server.port, path, 500);
        }
        for _ in 0..15 {
            for (server, times) in [&stock, &walled].into_iter().zip(&mut times) {
                let is_walled = std::ptr::eq(server, &walled);
                let before = (
                    running::time(server.pid()),
                    is_walled.then(|| counts(server)),
                );
                running::many(server.port, path, REQUESTS);
                let after = running::time(server.pid());
                times.push((after - before.0) * 1e6 / REQUESTS as f64);
                if let Some(old) = before.1 {
                    let now = counts(server);
                    counted = (now.0 - old.0, now.1 - old.1);
                }
            }
        }
        let [(stock, least), (walled, walled_least)] = times.map(|mut times| {
            times.sort_by(f64::total_cmp);
            (times[times.len() / 2], times[0])
        });
        println!(
            "{path}: stock, or stores checked, {stock:.1} us, walled {walled:.1} us a request, {:.2}; least {least:.1} and {walled_least:.1}, {:.2}; into modules {:.1}, out of them {:.1} calls a request",
            walled / stock,
            walled_least / least,
            counted.0 as f64 / REQUESTS as f64,
            counted.1 as f64 / REQUESTS as f64
        );
    }
}

/// Calls into modules, and calls of theirs that were mediated.
fn counts(server: &Server) -> (u64, u64) {
    let body = running::get(server.port, "/status", &[]).body;
    let rows = body.lines().skip(1).map(|line| {
        let mut numbers = line
            .split(' ')
            .skip(1)
            .map(|word| word.parse().unwrap_or(0));
        (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
    });
    rows.fold((0, 0), |sum: (u64, u64), row: (u64, u64)| {
        (sum.0 + row.0, sum.1 + row.1)
    })
}
