//! Domains as OS processes, of the same libraries: one line of the configuration moves them. This program is
//! the supervisor and, run again, each of its domains; so it has a `main` of its own.

#![forbid(unsafe_code)]

mod arranged;
#[path = "built/mod.rs"]
mod built;
#[path = "../../../language/sip/tests/host/mod.rs"]
mod host;
#[path = "../../hip/tests/listed/mod.rs"]
mod listed;

use std::collections::BTreeSet;

use std::time::{Duration, Instant};

use arranged::{configuration, every_end_is_told};
use host::host;
use listed::{listed, run};
use mullion_picture::{AccessKind, Label, Region, SupervisorState};
use mullion_sip::process::Cause;
use mullion_sip_host::domain::DomainError;
use mullion_sip_host::supervisor::{RunOutcome, RunSetupError, Stop, Watch};
use mullion_sip_host::view::{ProcessView, RunView};
use mullion_sip_host::{SipSupervisor, graph};
use rustix::process::{Pid, Signal, kill_process};

fn setup(text: &str) -> Result<SipSupervisor, RunSetupError> {
    SipSupervisor::new(&host(), &configuration(text))
}

fn ready(text: &str) -> SipSupervisor {
    setup(text).unwrap_or_else(|error| panic!("{error}"))
}

/// A supervisor that runs, and what looks at it and ends it.
struct Run {
    watch: Watch,
    stop: Stop,
    running: std::thread::JoinHandle<Vec<RunOutcome>>,
}

impl Run {
    fn of(text: &str) -> Run {
        let supervisor = ready(text);
        Run {
            watch: supervisor.watch(),
            stop: supervisor.stop(),
            running: std::thread::spawn(|| supervisor.run()),
        }
    }

    /// A view that is as wanted.
    fn until(&self, wanted: impl Fn(&RunView) -> bool) -> RunView {
        loop {
            let view = self.watch.view();
            if wanted(&view) {
                return view;
            }
            assert!(!self.running.is_finished(), "it runs: {view:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn end(self) -> Vec<RunOutcome> {
        self.stop.stop();
        self.running.join().expect("no panic")
    }
}

fn process<'a>(view: &'a RunView, name: &str) -> Option<&'a ProcessView> {
    view.processes.iter().find(|process| process.name == name)
}

const ECHO: &str = r#"
    [domains.service]
    kind = "same"
    [processes.echo]
    library = "echo"
    arguments = ["/echo", "3"]
    domain = "service"
    bind = ["/echo"]
    [processes.large]
    library = "asker"
    arguments = ["20", "0", "/echo", "1500000"]
    look-up = ["/echo"]
    [processes.one]
    library = "asker"
    arguments = ["1000"]
    look-up = ["/echo"]
    [processes.two]
    library = "asker"
    arguments = ["1000", "0", "/echo", "10000"]
    look-up = ["/echo"]
"#;

fn one_line_moves_a_domain_behind_a_wall() {
    let here = ECHO.to_owned();
    let apart = ECHO.replace("\"same\"", "\"process\"");
    let all = ECHO.replace(
        "[domains.service]\n    kind = \"same\"",
        "[domains.main]\n    kind = \"process\"\n    [domains.service]\n    kind = \"process\"",
    );
    let with = |heap: &str| {
        all.replace(
            "\"process\"",
            &format!("\"process\"\n    heap = \"{heap}\""),
        )
    };
    let [own, remapped, shared] = ["own", "remapped", "shared"].map(with);
    assert!(apart != here && all != here && own != all && remapped != shared);
    for text in [here, apart, all, own, remapped, shared] {
        for outcome in ready(&text).run() {
            let cause = outcome.exit.map(|exit| exit.cause);
            assert_eq!(cause, Some(Cause::Returned), "{outcome:?} of {text}");
        }
    }
}

const BROKER: &str = r#"
    [domains.one]
    kind = "ONE"
    [domains.two]
    kind = "TWO"
    [domains.three]
    kind = "THREE"
    [processes.broker]
    library = "broker"
    arguments = ["60"]
    domain = "one"
    bind = ["/broker"]
    [processes.server]
    library = "guest"
    arguments = ["serve", "60"]
    domain = "two"
    look-up = ["/broker"]
    [processes.client]
    library = "guest"
    arguments = ["ask", "60", "20"]
    domain = "three"
    look-up = ["/broker"]
"#;

/// An end of a channel goes from one process to another by way of a third, wherever the three are.
fn processes_are_introduced_in_every_arrangement() {
    for [one, two, three] in [
        ["same", "same", "same"],
        ["process", "same", "same"],
        ["same", "process", "same"],
        ["same", "same", "process"],
        ["same", "process", "process"],
        ["process", "process", "process"],
    ] {
        let text = BROKER
            .replace("ONE", one)
            .replace("TWO", two)
            .replace("THREE", three);
        let sharing = text.replace("\"process\"", "\"process\"\n    heap = \"shared\"");
        // The broker and the server together behind a wall.
        let together = text.replace("domain = \"two\"", "domain = \"one\"");
        for text in [text, sharing, together] {
            for outcome in ready(&text).run() {
                let cause = outcome.exit.map(|exit| exit.cause);
                assert_eq!(cause, Some(Cause::Returned), "{outcome:?} of {text}");
            }
        }
    }
}

/// A guest and a client of its, who have met by way of a broker.
const MET: &str = r#"
    [domains.one]
    kind = "ONE"
    [domains.two]
    kind = "TWO"
    [domains.three]
    kind = "THREE"
    [processes.broker]
    library = "broker"
    domain = "one"
    bind = ["/broker"]
    [processes.server]
    library = "guest"
    arguments = ["serve", "1"]
    domain = "two"
    look-up = ["/broker"]
    [processes.client]
    library = "guest"
    arguments = ["ask", "1", "1000000000"]
    domain = "WHERE"
    look-up = ["/broker"]
"#;

/// An end has gone from one process to another by way of a third: the views have it where it is, and what it goes through.
fn an_end_that_has_travelled_is_seen_where_it_is() {
    let (here, apart) = ("same", "process");
    // Where the broker, the server and the client are, the client's domain, and who has the channel's memory.
    for (kinds, client, writers) in [
        ([apart, apart, apart], "three", &["three", "two"][..]),
        ([here, apart, apart], "three", &["three", "two"]),
        ([apart, here, apart], "three", &["host", "three"]),
        ([apart, apart, here], "three", &["host", "two"]),
        // It has come home.
        ([apart, apart, here], "two", &["two"]),
        ([apart, here, here], "two", &["host"]),
        ([here, here, here], "three", &[]),
    ] {
        let mut text = MET.replace("WHERE", client);
        for (name, kind) in ["ONE", "TWO", "THREE"].into_iter().zip(kinds) {
            text = text.replace(name, kind);
        }
        let run = Run::of(&text);
        let talks = |view: &RunView| {
            let [channel] = &view.channels[..] else {
                return false;
            };
            let holders = (channel.client.as_deref(), channel.server.as_deref());
            let mut both = ["client", "server"].into_iter();
            channel.contract == "echo"
                && holders == (Some("client"), Some("server"))
                && channel.to_client > 20
                && channel.to_server >= channel.to_client
                && both.all(|name| process(view, name).is_some_and(|one| one.messages > 20))
        };
        let view = run.until(talks);
        let count = view.channels[0].to_client;
        run.until(|view| talks(view) && view.channels[0].to_client > count);
        let picture = graph::svg(&view);
        assert!(picture.contains(">echo ") && !picture.contains("(elsewhere)"));
        let state = loop {
            // A moment at which nothing begins or ends.
            if let Ok(state) = run.watch.map() {
                break state;
            }
        };
        let channels: Vec<_> = state
            .labels
            .iter()
            .filter(|label| label.name.starts_with("channel "))
            .collect();
        assert_eq!(channels.len(), usize::from(!writers.is_empty()), "{text}");
        let writing: Vec<_> = channels
            .iter()
            .flat_map(|label| writers_of(&state, label))
            .collect();
        assert_eq!(writing, writers, "{text}");
        run.end();
    }
}

/// Shared, every page is everybody's who shares; remapped, it is shown with whoever has it.
fn memory_in_common_is_shown_with_who_can_touch_it() {
    for (heap, name, writers) in [
        ("shared", "common memory", &["host", "service"][..]),
        ("remapped", "remapped memory", &[]),
    ] {
        let text = ECHO
            .replace("\"same\"", &format!("\"process\"\n    heap = \"{heap}\""))
            .replace("\"20\"", "\"0\"");
        let run = Run::of(&text);
        let state = loop {
            assert!(!run.running.is_finished(), "{text}");
            // A process may begin or end meanwhile.
            if let Ok(state) = run.watch.map()
                && state.labels.iter().any(|label| label.name == name)
            {
                break state;
            }
        };
        let label = state.labels.iter().find(|label| label.name == name);
        let found = label.map(|label| writers_of(&state, label));
        assert_eq!(found, Some(writers.iter().copied().collect()), "{heap}");
        run.end();
    }
}

/// Who may write there, in the order of their names.
fn writers_of<'a>(state: &'a SupervisorState, label: &Label) -> BTreeSet<&'a str> {
    let there = |region: &&Region| region.start < label.end && label.start < region.end;
    let grants = state
        .regions
        .iter()
        .filter(there)
        .flat_map(|region| &region.grants);
    let writes = grants.filter(|grant| grant.access == AccessKind::ReadWrite);
    let name = |id: u32| state.domains.iter().find(|domain| domain.id == id);
    let named = writes.filter_map(|grant| name(grant.domain?));
    named.map(|domain| &*domain.name).collect()
}

/// How a process of a domain ends that is told to end in this way.
fn odd(way: &str) -> (Cause, String) {
    let text = format!(
        "[domains.wall]\nkind = \"process\"\n[processes.odd-{way}]\nlibrary = \"odd\"\n\
         domain = \"wall\"\narguments = [\"{way}\"]\nbind = [\"/odd\"]"
    );
    let exit = ready(&text).run()[0].exit.expect("an end");
    (exit.cause, exit.message.to_string())
}

fn every_end_is_the_one_that_it_has_in_one_address_space() {
    every_end_is_told(odd);
}

fn a_file_is_out_of_reach() {
    let text = "[domains.wall]\nkind = \"process\"\n[processes.native]\nlibrary = \"native\"\ndomain = \"wall\"";
    let exit = ready(text).run()[0].exit.expect("an end");
    let message = exit.message.as_str();
    assert_eq!(exit.cause, Cause::Fault);
    assert!(message.starts_with("signal 31: a system call"), "{message}");
}

/// A life that ends takes nothing of its neighbours along, and the next one finds its statics as at first.
fn a_process_is_started_again_within_its_domain() {
    let run = Run::of(
        r#"
        [domains.wall]
        kind = "process"
        [processes.mayfly]
        library = "odd"
        arguments = ["statics"]
        domain = "wall"
        restart = "always"
        [processes.sleeper]
        library = "odd"
        arguments = ["sleep"]
        domain = "wall"
        "#,
    );
    let lives = |view: &RunView| process(view, "mayfly").map_or(0, |mayfly| mayfly.restarts);
    let before = run
        .until(|view| process(view, "sleeper").is_some_and(|sleeper| sleeper.os_process.is_some()));
    let after = run.until(|view| lives(view) > lives(&before) + 50);
    let ends: Vec<_> = after
        .processes
        .iter()
        .map(|process| process.last_end.as_deref())
        .collect();
    assert_eq!(ends, [Some("Exited(3)"), None]);
    let number = |view: &RunView| process(view, "sleeper").and_then(|process| process.os_process);
    assert!(number(&after).is_some());
    assert_eq!(number(&after), number(&before));
    run.end();
}

/// The signal is what a panic would be: the service is started again, and its clients, who hear of it, go on.
fn a_domain_that_is_killed_is_started_again() {
    let run = Run::of(
        r#"
        [domains.service]
        kind = "process"
        [domains.clients]
        kind = "process"
        [processes.echo]
        library = "echo"
        domain = "service"
        bind = ["/echo"]
        restart = "on-failure"
        back-off = { first = "1 ms", most = "2 ms" }
        [processes.near]
        library = "asker"
        arguments = ["0", "50"]
        look-up = ["/echo"]
        restart = "on-failure"
        [processes.far]
        library = "asker"
        arguments = ["0", "50"]
        domain = "clients"
        look-up = ["/echo"]
        restart = "on-failure"
        "#,
    );
    let talks = |view: &RunView, client: &str| {
        view.channels.iter().any(|channel| {
            channel.client.as_deref() == Some(client)
                && channel.server.as_deref() == Some("echo")
                && channel.to_client > 20
        })
    };
    // Both clients live, too: one that found nobody to serve it ended, and waits for its next life.
    let talked_in = |life| {
        run.until(|view| {
            process(view, "echo").is_some_and(|echo| echo.restarts == life && echo.heap > 0)
                && talks(view, "near")
                && talks(view, "far")
        })
    };
    for life in 0..3 {
        let view = talked_in(life);
        let domain = process(&view, "echo").and_then(|echo| echo.os_process);
        let domain = domain.and_then(|number| Pid::from_raw(number.cast_signed()));
        kill_process(domain.expect("a number"), Signal::KILL).expect("it lives");
        run.until(|view| process(view, "echo").is_some_and(|echo| echo.restarts > life));
    }
    let view = talked_in(3);
    let echo = process(&view, "echo").expect("there");
    assert_eq!(echo.last_end.as_deref(), Some("Killed: signal 9"));
    assert_eq!((&*echo.domain, &*echo.state), ("service", "running"));
    assert_eq!(echo.heap_limit, 4 << 20, "what its manifest says");
    for outcome in run.end() {
        let cause = outcome.exit.map(|exit| exit.cause);
        assert_eq!(cause, Some(Cause::Killed), "{outcome:?}");
    }
}

/// To begin a life waits within the supervisor, and must not take from it that somebody has asked it to stop.
fn a_run_is_stopped_while_a_domain_begins_again() {
    for pause in [0, 1, 4, 16, 64] {
        let run = Run::of(
            r#"
            [domains.service]
            kind = "process"
            [processes.echo]
            library = "echo"
            arguments = ["/echo", "1000000"]
            domain = "service"
            bind = ["/echo"]
            restart = "always"
            "#,
        );
        let lives = |view: &RunView| process(view, "echo").and_then(|echo| echo.os_process);
        let domain = lives(&run.until(|view| lives(view).is_some()));
        let domain = domain.and_then(|number| Pid::from_raw(number.cast_signed()));
        kill_process(domain.expect("a number"), Signal::KILL).expect("it lives");
        std::thread::sleep(Duration::from_millis(pause));
        run.stop.stop();
        let asked = Instant::now();
        while !run.running.is_finished() {
            assert!(asked.elapsed() < Duration::from_secs(20), "{pause} ms");
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(run.end().len(), 1);
    }
}

/// A domain that carries out an order waits for its workers, and must not miss the next order.
fn questions_that_come_at_once_are_all_answered() {
    let text = ECHO
        .replace("\"same\"", "\"process\"")
        .replace("\"3\"", "\"1000000\"");
    let run = Run::of(&text);
    run.until(|view| process(view, "echo").is_some_and(|echo| echo.os_process.is_some()));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..100 {
                    let view = run.watch.view();
                    let echo = process(&view, "echo").expect("it is known");
                    assert!(!echo.silent, "{echo:?}");
                }
            });
        }
    });
    run.end();
}

fn nothing_is_left_of_a_run() {
    let tasks = std::fs::read_dir("/proc/self/task").expect("of this system");
    let children = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("children"));
    let left: String = tasks.flatten().flat_map(children).collect();
    assert_eq!(left, "");
}

fn what_there_is_not_is_said() {
    let text = ECHO.replace("\"same\"", "\"same\"\n    heap = \"own\"");
    assert!(matches!(
        setup(&text).err(),
        Some(RunSetupError::Domain(DomainError::HeapOfItsOwn(domain))) if domain == "service"
    ));
}

fn main() {
    mullion_sip_host::enter();
    run(listed![
        processes_are_introduced_in_every_arrangement,
        an_end_that_has_travelled_is_seen_where_it_is,
        one_line_moves_a_domain_behind_a_wall,
        memory_in_common_is_shown_with_who_can_touch_it,
        every_end_is_the_one_that_it_has_in_one_address_space,
        a_file_is_out_of_reach,
        a_process_is_started_again_within_its_domain,
        a_domain_that_is_killed_is_started_again,
        a_run_is_stopped_while_a_domain_begins_again,
        questions_that_come_at_once_are_all_answered,
        nothing_is_left_of_a_run,
        what_there_is_not_is_said,
    ]);
}
