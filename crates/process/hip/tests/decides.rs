//! Who decides about domains is asked before a domain, memory in common, a link or a channel comes to be: whatever is
//! refused has not come about, and at the end nothing is recorded any more. This program is the host and, run again,
//! each of its domains; so it has a `main` of its own.

#[path = "../../../language/sip/tests/host/mod.rs"]
mod host;
mod listed;

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use host::host;
use listed::{listed, run};
use mullion_hip::{
    Decider, Launch, LaunchError, Member, Output, Pair, Sharing, Supervised, decided_by, enter,
    groups, launch,
};
use mullion_sip::channel::Contract;
use mullion_sip::contract;
use mullion_sip::process::names::NameError;
use mullion_sip::process::{Cause, Child, Options, Program, Rights, exit, open, serve, spawn};
use mullion_sip_hosting::{DecideError, Refused, Start};

contract! {
    /// One question.
    mod ask {
        Ask: client { Question(u32) -> Answer }
        Answer: server { Reply(u64) -> end }
    }
}

contract! {
    /// A channel is given, and the receiver says whether it could ask there.
    mod give {
        Give: client { End(ask::Client<ask::Ask>) -> Given, Nothing -> Given }
        Given: server { Asked(u32) -> end }
    }
}

#[global_allocator]
static HEAPS: mullion_sip::heap::ProcessHeaps = mullion_sip::heap::ProcessHeaps;

/// Takes one end from each client, and asks there.
fn server(_: u64) {
    let Ok(service) = serve("/give", give::Contract::INFO) else {
        exit(9);
    };
    loop {
        let Ok(end) = give::Server::<give::Give>::from_any(service.accept()) else {
            continue;
        };
        let asked = match end.recv() {
            Ok(give::GiveMessage::End(client, end)) => {
                let answered = client.question(1).and_then(|client| client.recv());
                end.asked(answered.is_ok().into())
            }
            Ok(give::GiveMessage::Nothing(end)) => end.asked(0),
            Err(_) => continue,
        };
        let _ = asked;
    }
}

/// Gives an end, and answers there.
fn client(_: u64) {
    let (giving, taking) = give::channel().expect("memory");
    match open("/give", taking.into_any()) {
        Ok(()) => {}
        Err((NameError::NotPermitted, _)) => exit(3),
        Err(_) => exit(4),
    }
    let (asking, answering) = ask::channel().expect("memory");
    let Ok(given) = giving.end(asking) else {
        exit(5);
    };
    if let Ok(ask::AskMessage::Question(_, end)) = answering.recv() {
        let _ = end.reply(1);
    }
    match given.recv() {
        Ok(give::GivenMessage::Asked(1)) => {}
        Ok(_) => exit(6),
        Err(_) => exit(7),
    }
}

fn load(configuration: &str, _: Vec<OwnedFd>) -> Result<Vec<Member>, String> {
    let main = match configuration {
        "server" => server,
        _ => client,
    };
    Ok(vec![Member {
        name: configuration.into(),
        begin: Box::new(move || {
            // SAFETY: the programs of this test keep nothing anywhere.
            let program = unsafe { Program::new("member", main) };
            let rights = Rights::all();
            let options = Options {
                rights,
                ..Options::default()
            };
            spawn(program, 0u64, &options)
        }),
    }])
}

fn domain(configuration: &str) -> Result<Child, Box<LaunchError>> {
    let launched = launch(&Launch {
        name: configuration.into(),
        configuration: configuration.into(),
        files: Vec::new(),
        workers: 1,
        processor: None,
        share: Some(Sharing::Open),
        rights: Rights::none().bind("/give").look_up("/give"),
        output: Output::Inherited,
        program: None,
    });
    launched.map_err(Box::new)
}

/// A supervisor that is asked, unless the question is to be refused.
#[derive(Debug, Default)]
struct Probe {
    supervised: Supervised,
    /// Questions until one is refused.
    left: AtomicUsize,
    asked: Mutex<Vec<&'static str>>,
}

impl Probe {
    fn ask(&self, question: &'static str) -> Result<(), Refused> {
        self.asked.lock().expect("no panic").push(question);
        match self.left.fetch_sub(1, Ordering::SeqCst) {
            0 => Err(Refused),
            _ => Ok(()),
        }
    }
}

#[derive(Debug)]
struct Handle(Arc<Probe>);

impl Decider for Handle {
    fn begin(&self, domain: u64, name: &str) -> Result<(), Refused> {
        self.0.ask("begin")?;
        self.0.supervised.begin(domain, name)
    }

    fn share(&self, domain: u64, sharing: Sharing) -> Result<(), Refused> {
        self.0.ask("share")?;
        self.0.supervised.share(domain, sharing)
    }

    fn link(&self, two: Pair) -> Result<(), Refused> {
        self.0.ask("link")?;
        self.0.supervised.link(two)
    }

    fn channel(&self, two: Pair, bytes: u64) -> Result<(), Refused> {
        self.0.ask("channel")?;
        self.0.supervised.channel(two, bytes)
    }

    fn unlink(&self, two: Pair) {
        self.0.supervised.unlink(two);
    }

    fn end(&self, domain: u64) {
        self.0.supervised.end(domain);
    }
}

/// What became of it all, until something was refused.
fn all(probe: &Probe) -> String {
    let refused = |who: &str, error: Box<LaunchError>| match *error {
        LaunchError::Refused => format!("no {who}"),
        error => panic!("{who}: {error}"),
    };
    let server = match domain("server") {
        Ok(server) => server,
        Err(error) => return refused("server", error),
    };
    let outcome = beside(&refused);
    if outcome == "well" {
        // The root, the two domains (the client has ended), and their link is gone; the host's is there.
        let (snapshot, domains) = probe.supervised.snapshot();
        assert_eq!((snapshot.domains.len(), domains.len()), (2, 1));
        assert_eq!(exported(probe), 1, "the host's link alone");
    }
    server.kill();
    server.wait();
    // What stood for it has ended. Its OS process is buried by a thread of its own.
    while !probe.supervised.snapshot().1.is_empty() {
        std::thread::yield_now();
    }
    outcome
}

fn beside(refused: &dyn Fn(&str, Box<LaunchError>) -> String) -> String {
    let (giving, taking) = give::channel().expect("memory");
    let mut taking = taking.into_any();
    loop {
        match open("/give", taking) {
            Ok(()) => break,
            Err((NameError::Unbound, end)) => {
                taking = end;
                std::thread::yield_now();
            }
            Err((error, _)) => return format!("host: {error:?}"),
        }
    }
    let nothing = giving.nothing().and_then(|end| end.recv());
    if !matches!(nothing, Ok(give::GivenMessage::Asked(0))) {
        return "host: closed".into();
    }
    let client = match domain("client") {
        Ok(client) => client,
        Err(error) => return refused("client", error),
    };
    match client.wait().cause {
        Cause::Returned => "well".into(),
        cause => format!("client: {cause:?}"),
    }
}

/// Words that are exported to a domain.
fn exported(probe: &Probe) -> u64 {
    let (snapshot, domains) = probe.supervised.snapshot();
    let of_domain = |subject: &mullion_supervisor::Subject| {
        let known = |(id, _): &(mullion_supervisor::DomainId, u64)| *subject == (*id).into();
        domains.iter().any(known)
    };
    let regions = snapshot.regions.iter();
    let exported =
        regions.filter(|(_, holding)| holding.grants.iter().any(|(one, _)| of_domain(one)));
    exported.map(|(range, _)| range.count()).sum()
}

fn whatever_is_refused_has_not_come_about() {
    let probe = Arc::new(Probe::default());
    assert_eq!(decided_by(Box::new(Handle(probe.clone()))), Ok(()));
    let again = decided_by(Box::new(Supervised::new()));
    assert_eq!(again, Err(DecideError::Decided));
    let files = || std::fs::read_dir("/proc/self/fd").expect("proc").count();
    let mut seen = BTreeSet::new();
    // Once without a refusal, so that what the host has from its first domain on is there.
    for question in (0..).map(|number: usize| number.wrapping_sub(1)) {
        probe.left.store(question, Ordering::SeqCst);
        probe.asked.lock().expect("no panic").clear();
        let before = files();
        let outcome = all(&probe);
        let asked = probe.asked.lock().expect("no panic").clone();
        println!("question {question}: {asked:?}: {outcome}");
        let (snapshot, domains) = probe.supervised.snapshot();
        assert_eq!((snapshot.domains.len(), domains.len()), (1, 0));
        assert_eq!(exported(&probe), 0);
        assert_eq!((groups().domains.len(), groups().links.len()), (0, 0));
        if question == usize::MAX {
            assert_eq!(outcome, "well");
            continue;
        }
        // The thread of an ended domain gives back what it has, last of all.
        while files() != before {
            std::thread::yield_now();
        }
        match asked.get(question) {
            Some(refused) => seen.insert((*refused, outcome)),
            None => {
                assert_eq!(outcome, "well");
                break;
            }
        };
    }
    let expected = [
        ("begin", "no server"),
        ("share", "no server"),
        ("channel", "host: NotPermitted"),
        ("link", "host: NotPermitted"),
        ("begin", "no client"),
        ("share", "no client"),
        ("channel", "client: Exited(3)"),
        ("link", "client: Exited(3)"),
        // The end that was given is closed.
        ("channel", "client: Exited(6)"),
    ];
    let expected: BTreeSet<_> = expected
        .map(|(question, outcome)| (question, outcome.to_owned()))
        .into();
    assert_eq!(seen, expected);
    let late = decided_by(Box::new(Supervised::new()));
    assert_eq!(late, Err(DecideError::Started));
}

fn main() {
    enter(load);
    host().start(Start::default()).expect("workers");
    run(listed![whatever_is_refused_has_not_come_about]);
}
