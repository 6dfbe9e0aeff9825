//! One host with every kind of domain: native extensions in windows, processes behind walls of the language, and
//! processes behind walls of the hardware. One supervisor has them all. This program is also the OS process of each
//! such domain; so it has a `main` of its own.

#![forbid(unsafe_code)]

mod arranged;
#[path = "built/mod.rs"]
mod built;
#[path = "../../../language/sip/tests/host/mod.rs"]
mod host;
#[path = "../../../host/mullion/tests/support/mod.rs"]
mod support;

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use arranged::configuration;
use host::host;
use mullion_picture::{AccessKind, DrawnDomain, Label, PaintOptions, SupervisorState, paint};
use mullion_sip_host::supervisor::{Stop, Watch};
use mullion_sip_host::{SipSupervisor, map};
use rustix::process::{Pid, Signal, kill_process};

/// Three processes here, and one in an OS process of its own, which all of them talk to.
const PROCESSES: &str = r#"
    workers = 2
    [domains.wall]
    kind = "process"
    heap = "shared"
    [processes.echo]
    library = "echo"
    domain = "wall"
    arguments = ["/echo", "1000000"]
    bind = ["/echo"]
    restart = "always"
    [processes.one]
    library = "asker"
    arguments = ["0", "1000", "/echo", "4000"]
    look-up = ["/echo"]
    restart = "always"
    [processes.two]
    library = "asker"
    arguments = ["0", "1000"]
    look-up = ["/echo"]
    restart = "always"
    [processes.three]
    library = "asker"
    arguments = ["0", "1000"]
    look-up = ["/echo"]
    restart = "always"
"#;

const EXTENSION: &str = "#include <mullion/ext.h>\nstatic int calls;\nMULLION_EXPORT(int, next, (void)) { return ++calls; }\n";

struct Run {
    watch: Watch,
    stop: Stop,
    running: std::thread::JoinHandle<()>,
}

fn run() -> Run {
    let supervisor = SipSupervisor::new(&host(), &configuration(PROCESSES)).expect("it is set up");
    let (watch, stop) = (supervisor.watch(), supervisor.stop());
    let running = std::thread::spawn(|| drop(supervisor.run()));
    let run = Run {
        watch,
        stop,
        running,
    };
    while run.os_process().is_none() || run.watch.view().channels.len() < 3 {
        std::thread::sleep(Duration::from_millis(5));
    }
    run
}

impl Run {
    fn os_process(&self) -> Option<u32> {
        let view = self.watch.view();
        let echo = view.processes.iter().find(|process| process.name == "echo");
        echo.and_then(|echo| echo.os_process)
    }

    fn end(self) {
        self.stop.stop();
        self.running.join().expect("no panic");
    }
}

fn named<'a>(state: &'a SupervisorState, name: &str) -> &'a DrawnDomain {
    let found: Vec<_> = state
        .domains
        .iter()
        .filter(|domain| domain.name == name)
        .collect();
    assert_eq!(found.len(), 1, "{name} in {:?}", state.domains);
    found[0]
}

fn labels<'a>(state: &'a SupervisorState, name: &str) -> Vec<&'a Label> {
    let all = state.labels.iter();
    all.filter(|label| label.name.starts_with(name)).collect()
}

/// Who may write there.
fn writers(state: &SupervisorState, label: &Label) -> HashSet<u32> {
    let there =
        |region: &&mullion_picture::Region| region.start < label.end && label.start < region.end;
    let grants = state
        .regions
        .iter()
        .filter(there)
        .flat_map(|region| &region.grants);
    let writes = grants.filter(|grant| grant.access == AccessKind::ReadWrite);
    writes.filter_map(|grant| grant.domain).collect()
}

fn every_kind_of_domain_is_in_one_state_and_one_audit() {
    let directory = tempfile::tempdir().expect("a directory");
    let (source, image) = (
        directory.path().join("next.c"),
        directory.path().join("next.mx"),
    );
    std::fs::write(&source, EXTENSION).expect("written");
    support::build(&source, &image, &[]);
    let image = mullion::Host::new().open(&image).expect("it is verified");
    let extensions =
        ["filter", "codec"].map(|name| image.domain().name(name).load().expect("loaded"));
    let run = run();

    let mut records = mullion::records();
    map::add_to(&host(), &mut records).expect("nobody has another one's memory");
    assert_eq!(records.supervisor.check(), Ok(()));
    let state = records.state();
    assert!(state.clone().validate().is_ok());
    let picture = paint(
        &state.clone().validate().expect("whole"),
        &PaintOptions::default(),
    );
    if let Some(path) = std::env::var_os("MULLION_PICTURE") {
        std::fs::write(path, picture).expect("written");
    }

    let host = named(&state, "host");
    assert_eq!(host.parent, None);
    let kernel = named(&state, "wall");
    for name in ["filter", "codec", "one", "two", "three", "wall", "for wall"] {
        assert_eq!(named(&state, name).parent, Some(host.id), "{name}");
    }
    let echo = named(&state, "echo");
    assert_eq!(echo.parent, Some(kernel.id));
    // Each has memory; each piece has one owner, and nobody but the owner writes what is not shared.
    let mut owned = HashMap::<u32, u128>::new();
    let shared: Vec<_> = [labels(&state, "channel "), labels(&state, "common memory")]
        .concat()
        .into_iter()
        .map(|label| (label.start, label.end))
        .collect();
    for region in &state.regions {
        *owned.entry(region.owner).or_default() += region.end.0 - region.start.0;
        let writers = region
            .grants
            .iter()
            .filter(|grant| grant.access == AccessKind::ReadWrite);
        let is_shared = shared
            .iter()
            .any(|(start, end)| region.start < *end && *start < region.end);
        for writer in writers.filter(|_| !is_shared) {
            assert_eq!(writer.domain, Some(region.owner), "{region:?}");
        }
    }
    for domain in &state.domains {
        assert!(
            owned.get(&domain.id).is_some_and(|bytes| *bytes > 0),
            "{domain:?}"
        );
    }
    // The process behind the wall has its memory in its kernel's address space, which nobody else has any of.
    let space = labels(&state, "wall (")[0];
    let process = run.os_process().expect("it runs");
    assert_eq!(space.name, format!("wall ({process})"));
    let family = [kernel.id, echo.id];
    for region in &state.regions {
        let inside = space.start <= region.start && region.end <= space.end;
        assert_eq!(inside, family.contains(&region.owner), "{region:?}");
    }
    // What is shared is written by those who share it.
    let common = labels(&state, "common memory");
    assert_eq!(common.len(), 1);
    assert_eq!(
        writers(&state, common[0]),
        HashSet::from([host.id, kernel.id])
    );
    let channels = labels(&state, "channel ");
    assert!(!channels.is_empty());
    for channel in channels {
        assert_eq!(
            writers(&state, channel),
            HashSet::from([host.id, kernel.id])
        );
    }
    // The host's own records are what they were, and its extensions too.
    assert_eq!(mullion::snapshot().domains.len(), 3);
    for extension in &extensions {
        let next = extension.function::<fn() -> i32>("next").expect("exported");
        assert_eq!(next.call().expect("it returns"), 1);
    }
    run.end();
}

/// A domain that is killed while it is asked leaves the picture, nobody waits for it for long, and its next OS process
/// is not disturbed by questions that come before it has begun.
fn a_domain_that_dies_while_it_is_asked_is_left_out() {
    let run = run();
    let has_echo = || match run.watch.map() {
        Ok(state) => {
            assert!(state.clone().validate().is_ok());
            state.domains.iter().any(|domain| domain.name == "echo")
        }
        // A process has begun or ended meanwhile: said, and not painted.
        Err(_) => false,
    };
    let kills = [0, 300, 1000, 3000];
    for pause in kills {
        let number = run.os_process().expect("it lives");
        let process = number.try_into().ok().and_then(Pid::from_raw);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_micros(pause));
                kill_process(process.expect("a number"), Signal::KILL).expect("it lives");
            });
            let began = Instant::now();
            let another = || run.os_process().is_some_and(|now| now != number);
            while !(another() && has_echo()) {
                assert!(began.elapsed() < Duration::from_secs(20), "{pause} µs");
            }
        });
    }
    let view = run.watch.view();
    let echo = view.processes.iter().find(|process| process.name == "echo");
    assert_eq!(echo.map(|echo| echo.restarts), Some(kills.len() as u64));
    run.end();
}

fn main() {
    mullion_sip_host::enter();
    every_kind_of_domain_is_in_one_state_and_one_audit();
    a_domain_that_dies_while_it_is_asked_is_left_out();
    println!("one picture: as it should be");
}
