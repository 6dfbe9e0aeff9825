//! A module that attacks: each attack ends as an error of its command, and the server goes on. Without the wall it does harm.

use crate::place::{Place, Server, here};

/// An attack, what the wall answers, and what happens without the wall.
struct Attack {
    command: &'static str,
    expected: &'static str,
    native: Native,
}

#[derive(Clone, Copy)]
enum Native {
    /// The server is gone, or does not answer any more.
    Dies,
    /// It answers this instead of an error.
    Says(&'static str),
    /// What was in the database, or in another module, is gone or changed: this is said of it, and another thing before.
    Loses(&'static str, &'static str),
    /// It may or may not: nothing is demanded.
    Unknown,
}
use Native::{Dies, Loses, Says, Unknown};

const ATTACKS: [Attack; 33] = [
    attack("heap x", "memory of the host; at heap (", Unknown),
    attack("context", "; at context (", Unknown),
    attack("null", "Access of 0x0", Dies),
    attack(
        "other WHERE",
        "memory of victim",
        Loses("victim.precious", "42"),
    ),
    attack("tells", "are not the module's to read", Says("\\x")),
    attack("reads", "", Says("(integer)")),
    attack("prints", "are not the module's to read", Says("\"")),
    attack("counts", "`%n` in a format is not for modules", Unknown),
    attack("deputy 1", "8 bytes at 0x", Unknown),
    attack("length x", "8 bytes at 0x", Unknown),
    attack("random_bytes", "16 bytes at 0x", Unknown),
    attack("direct precious", "(integer) 1", Unknown),
    attack(
        "forged",
        "is no string that the module was given",
        Says("(integer)"),
    ),
    attack(
        "twice_closed precious",
        "is no key that the module has opened",
        Unknown,
    ),
    attack(
        "stale_reply",
        "is no reply that the module was given",
        Unknown,
    ),
    attack(
        "stale_string",
        "is no string that the module was given",
        Unknown,
    ),
    attack("not_held x", "is no string that the module holds", Dies),
    attack("type new", "is no type of the module's", Unknown),
    attack("frees", "is no block of the module's heap", Unknown),
    attack("again", "is no block of the module's heap", Unknown),
    attack("scans", "the key is Redis's to close", Dies),
    attack("callback", "is no function of the module", Unknown),
    attack("jump", "Call of 0x", Unknown),
    attack(
        "unnamed",
        "a call of RedisModule_ResetDataset, which `allow",
        Loses("GET precious", "\"stone\""),
    ),
    attack(
        "command",
        "the command FLUSHALL, which `commands = [\"FLUSHALL\"]`",
        Loses("GET precious", "\"stone\""),
    ),
    attack("timer", "(integer) 1", Dies),
    attack("loop", "its time is over", Dies),
    attack("recurse", "its stack is full", Dies),
    attack("eats", "(integer) 7", Unknown),
    attack("divide", "Arithmetic", Dies),
    attack(
        "half",
        "1) (integer) 1\n2) 1) (integer) 2\n3) (error) ERR the wall stopped hostile",
        Dies,
    ),
    attack("both", "(integer) 1", Unknown),
    attack("lines", "a reply of one line has more lines", Says("OK")),
];

const fn attack(command: &'static str, expected: &'static str, native: Native) -> Attack {
    Attack {
        command,
        expected,
        native,
    }
}

const POLICY: &str = "allow = [\"@plain\", \"@keys\", \"@scan\", \"@types\", \"@timers\", \"@call\"]\n\
    [limits]\ntime = \"2 s\"\nmemory = \"8 MiB\"\n[group]\ncommands = [\"GET\"]\n";

fn prepared(place: &Place, modules: &[String], folder: &str) -> (Server, String) {
    // A server that crashes without the wall is to end, and not to look at all of its memory first.
    let more = [
        "--crash-log-enabled",
        "no",
        "--crash-memcheck-enabled",
        "no",
    ];
    let more = if folder == "harmed" { &more[..] } else { &[] };
    let server = place.server(folder, modules, more);
    server.run("SET precious stone\n");
    let said = server.ask("victim.where");
    let at = said.trim().rsplit(' ').next().expect("a number").to_owned();
    (server, at)
}

/// Formatted as a terminal has it, so that kinds of replies differ.
fn command(server: &Server, attack: &Attack, at: &str) -> String {
    let command = attack.command.replace("WHERE", at);
    server.ask(&format!("--no-raw hostile.{command}"))
}

pub(crate) fn end_as_errors_and_the_server_goes_on(place: &Place) {
    let source = here("tests/hostile.c");
    let victim_policy = "entry = \"victim\"\nallow = [\"@plain\"]\n";
    for protection in ["--protection=read-write", "--protection=write"] {
        let reads_too = protection.ends_with("read-write");
        let hostile = place.walled(&source, "hostile", POLICY, &[protection]);
        let victim = place.walled(&source, "victim", victim_policy, &[]);
        let modules = [place.bridged(&hostile), place.bridged(&victim)];
        let (mut server, at) = prepared(place, &modules, "attacked");
        for attack in &ATTACKS {
            let said = command(&server, attack, &at);
            let name = attack.command;
            let expected = match (name, reads_too) {
                // A load is checked where loads are.
                ("reads", true) => "memory of the host; at reads (",
                ("reads", false) => "(integer)",
                _ => attack.expected,
            };
            assert!(said.contains(expected), "{name}, {protection}: {said}");
            if name == "timer" {
                while !server.ask("mullion.hostile").contains("the wall stopped") {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
            }
            let goes_on =
                ["direct precious", "eats"].contains(&name) || name == "reads" && !reads_too;
            let later = server.ask("--no-raw hostile.twice 3");
            assert_eq!(
                later.contains("(error) ERR the wall stopped hostile: "),
                !goes_on,
                "{name}: {later}"
            );
            assert!(
                server.ask("mullion.hostile restart").contains("OK"),
                "{name}"
            );
            assert!(
                server
                    .ask("--no-raw hostile.twice 3")
                    .contains("(integer) 6"),
                "{name}"
            );
            let kept = server.ask("GET precious");
            let is_kept = match name {
                // It may write the text of the key that it has opened, and no byte beside it.
                "direct precious" => kept.trim().len() == 5,
                _ => kept.trim() == "stone",
            };
            assert!(is_kept, "{name}: {kept}");
            server.run("SET precious stone\n");
            assert!(server.ask("victim.precious").contains("42"), "{name}");
        }
        assert!(server.is_alive());
        assert!(server.ask("DEBUG RELOAD").contains("OK"));
        println!(
            "{} attacks end, and the server goes on ({protection})",
            ATTACKS.len()
        );
    }
}

/// Whether harm was done, by what the server said.
type Harms = Box<dyn Fn(&mut Server, &str) -> bool>;

pub(crate) fn harm_without_the_wall(place: &Place) {
    let source = here("tests/hostile.c");
    let hostile = place.native(&source, "hostile", &[]);
    let victim = place.native(&source, "victim", &["-DVICTIM=1"]);
    let modules = [hostile.display().to_string(), victim.display().to_string()];
    let mut harmed = 0;
    for attack in &ATTACKS {
        let (is_demanded, harms): (bool, Harms) = match attack.native {
            Unknown => (false, Box::new(|server, _| !server.is_alive())),
            Dies => (true, Box::new(|server, _| !server.is_alive())),
            Says(what) => (
                true,
                Box::new(move |_, said| said.contains(what) && !said.contains("(error)")),
            ),
            Loses(question, before) => (
                true,
                Box::new(move |server, _| {
                    !server.ask(&format!("--no-raw {question}")).contains(before)
                }),
            ),
        };
        if attack.command == "eats" {
            // It would end the machine's memory, not only the server's.
            continue;
        }
        let (mut server, at) = prepared(place, &modules, "harmed");
        let ends = ["loop", "timer"].contains(&attack.command);
        let said = match ends {
            // A server that loops answers nobody: a moment is waited for, and its processor time is looked at.
            true => crate::cost::is_stuck(&server, &format!("hostile.{}", attack.command)),
            false => command(&server, attack, &at),
        };
        let is_harm = said == "stuck" || harms(&mut server, &said);
        harmed += usize::from(is_harm);
        assert!(is_harm || !is_demanded, "{}: {said}", attack.command);
    }
    println!(
        "{harmed} of {} attacks do harm without the wall that is seen at once",
        ATTACKS.len()
    );
    assert!(harmed >= 15, "{harmed}");
}
