use super::*;

const WHOLE: &str = r#"
workers = 3

[domains.storage]
kind = "process"
heap = "own"

[domains.main]

[processes.disk]
library = "libdisk.so"
sha256 = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eFF"
arguments = ["a", "b c"]
domain = "storage"
worker = 1
restart = "on-failure"
back-off = { first = "5 ms", most = "1 s" }
bind = ["/disk"]
look-up = ["/", "/cache/one"]

[processes.disk.limits]
memory = 65536
exchange = "2 MiB"
threads = 4
slice = "100 ms"

[processes.web]
library = "/abs/libweb.so"
"#;

#[test]
fn everything_that_can_be_said_is_heard() {
    let all = Configuration::parse(WHOLE).expect("well formed");
    assert_eq!(all.workers.map(NonZeroUsize::get), Some(3));
    assert_eq!(
        all.domain_of("disk"),
        DomainConfig {
            kind: DomainKind::Process,
            heap: Some(ExchangeHeap::Own)
        }
    );
    assert_eq!(all.domain_of("web"), DomainConfig::default());
    let disk = &all.processes["disk"];
    assert_eq!(disk.arguments, ["a", "b c"]);
    assert_eq!(disk.home(), Home::Worker(1));
    assert_eq!(disk.sha256.map(|digest| digest.0.0[31]), Some(0xff));
    assert_eq!(
        disk.policy(),
        Policy::OnFailure {
            first: Duration::from_millis(5),
            most: Duration::from_secs(1)
        }
    );
    assert_eq!(
        disk.rights(),
        Rights::none()
            .bind("/disk")
            .look_up("/")
            .look_up("/cache/one")
    );
    let limits = disk.limits.over(Limits::default());
    assert_eq!((limits.memory, limits.exchange), (65536, 2 << 20));
    assert_eq!((limits.threads, limits.slice.as_millis()), (4, 100));
    assert_eq!(limits.children, Limits::default().children);
    let web = &all.processes["web"];
    assert_eq!((web.policy(), web.home()), (Policy::Never, Home::Next));
    assert_eq!(web.rights(), Rights::none());
}

/// The message for a configuration with this line in the place of `restart = ...`, which is line 16.
fn refused(line: &str) -> String {
    let text = WHOLE.replace("restart = \"on-failure\"", line);
    Configuration::parse(&text)
        .expect_err("refused")
        .to_string()
}

#[test]
fn what_is_wrong_is_named_with_line_and_key() {
    for (line, key) in [
        ("restart = \"sometimes\"", "sometimes"),
        ("restrat = \"never\"", "restrat"),
        ("restart = 5", "restart"),
        ("look_up = [\"/\"]", "look_up"),
    ] {
        let message = refused(line);
        assert!(message.contains("line 16"), "{message}");
        assert!(message.contains(key), "{message}");
    }
}

#[test]
fn values_are_judged_where_they_stand() {
    for (good, bad, says) in [
        ("\"2 MiB\"", "\"2 MB\"", "no size"),
        ("\"2 MiB\"", "-1", "not negative"),
        ("\"2 MiB\"", "\"99999999999 GiB\"", "too large"),
        ("\"100 ms\"", "100", "a time like"),
        ("\"100 ms\"", "\"1 week\"", "no time"),
        ("[\"/disk\"]", "[\"disk\"]", "no beginning"),
        ("[\"/disk\"]", "[\"/disk//a\"]", "no beginning"),
        ("1d1eFF", "1d1eFG", "no SHA-256"),
        ("1d1eFF", "1d1e", "no SHA-256"),
        ("worker = 1", "worker = -1", "worker"),
        (
            "[processes.web]",
            "[services.door]\nlisten = \"localhost:80\"\n[processes.web]",
            "\"localhost:80\" is no address to listen on",
        ),
        (
            "heap = \"own\"",
            "heap = \"any\"",
            "`own`, `remapped`, `shared`",
        ),
        (
            "kind = \"process\"",
            "kind = \"any\"",
            "`same` or `process`",
        ),
    ] {
        let text = WHOLE.replacen(good, bad, 1);
        assert_ne!(text, WHOLE);
        let message = Configuration::parse(&text)
            .expect_err("refused")
            .to_string();
        assert!(
            message.contains(says) && message.contains("line "),
            "{message}"
        );
    }
}

#[test]
fn a_domain_must_be_declared() {
    let text = WHOLE.replace("domain = \"storage\"", "domain = \"sotrage\"");
    match Configuration::parse(&text) {
        Err(ConfigurationError::NoSuchDomain {
            line,
            process,
            domain,
        }) => {
            assert_eq!((line, &*process, &*domain), (14, "disk", "sotrage"));
        }
        other => panic!("{other:?}"),
    }
    for empty in ["", "workers = 2", "[processes]"] {
        let empty = Configuration::parse(empty);
        assert!(matches!(empty, Err(ConfigurationError::Nothing)));
    }
}

#[test]
fn libraries_lie_beside_the_configuration() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("sips.toml");
    std::fs::write(&path, WHOLE).expect("written");
    let all = Configuration::read(&path).expect("well formed");
    assert_eq!(
        all.processes["disk"].library,
        directory.path().join("libdisk.so")
    );
    assert_eq!(all.processes["web"].library, Path::new("/abs/libweb.so"));
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let parse = |good: &str, bad: &str| {
        assert!(WHOLE.contains(good), "{good}");
        Configuration::parse(&WHOLE.replace(good, bad))
    };
    assert!(parse("workers = 3", "workers = 1024").is_ok());
    assert!(matches!(
        parse("workers = 3", "workers = 1025"),
        Err(ConfigurationError::Workers(1025))
    ));
    assert!(parse("\"5 ms\"", "\"1 s\"").is_ok());
    match parse("\"5 ms\"", "\"1001 ms\"") {
        Err(ConfigurationError::BackOff { process, .. }) => assert_eq!(process, "disk"),
        other => panic!("{other:?}"),
    }
    // The longest that is usual is 10 s.
    let first = parse(
        "{ first = \"5 ms\", most = \"1 s\" }",
        "{ first = \"20 s\" }",
    );
    assert!(matches!(first, Err(ConfigurationError::BackOff { .. })));
}

#[test]
fn names_can_be_shown() {
    let named = |table: &str, name: &str| {
        let more = match table {
            "processes" => "library = \"a\"",
            "services" => "directory = \"a\"",
            _ => "",
        };
        Configuration::parse(&format!("{WHOLE}\n[{table}.{name:?}]\n{more}\n"))
    };
    for table in ["processes", "domains", "services"] {
        for good in ["a", "name of ä domain", &"x".repeat(NAME)] {
            assert!(named(table, good).is_ok(), "{table} {good}");
        }
        for bad in ["", "two\nlines", "a\ttab", &"x".repeat(NAME + 1)] {
            match named(table, bad) {
                Err(ConfigurationError::Name { table: of, .. }) => assert_eq!(of, table),
                other => panic!("{table} {bad:?}: {other:?}"),
            }
        }
    }
}
