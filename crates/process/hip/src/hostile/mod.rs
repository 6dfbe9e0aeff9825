//! Domains that say anything, and die anywhere: played by this test, over sockets, with nobody else between them and the
//! host. What the host then says to whom, what ends, and that nothing stays behind.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::mpsc::channel;
use std::sync::{Mutex, MutexGuard, Once};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

use mullion_sip::channel::{Contract, Info};
use mullion_sip::contract;
use mullion_sip::exchange::wire::to_bytes;
use mullion_sip::process::names::NameError;
use mullion_sip::process::{Cause, Rights};
use mullion_sip_hosting::Start;
use mullion_sip_hosting::remote::{LINK_BYTES, Link, Memory, Passage, WINDOW, line_bytes};
use rustix::net::{SendFlags, send};

use crate::control::Control;
use crate::host::{Heard, Notice};
use crate::message::{End, LONGEST, Linked, Passing, Text, ToDomain, ToHost, error_number};
use crate::registry::{self, LINES};
use crate::reports::REPORTS;

pub(crate) mod deaths;

contract! {
    #[endless]
    mod talk {
        Ask: client { Channel(ride::Client<ride::Go>) -> Answer }
        Answer: server { Well -> Ask }
    }
}

contract! {
    #[endless]
    mod ride { Go: client { Say(u32) -> Wait } Wait: server { Heard(u32) -> Go } }
}

/// Where the server's ring is: behind the client's, of one slot as that is.
const TO_SERVER: u64 = 128 + 64;
const PATIENCE: Duration = Duration::from_secs(20);

/// What the host's listener was told of which domain.
static TOLD: Mutex<Vec<(String, Notice)>> = Mutex::new(Vec::new());

/// One test at a time: they count descriptors and mappings.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    static HOST: Once = Once::new();
    let alone = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    // This test's thread has it from here on.
    let _power = crate::power::host();
    HOST.call_once(|| {
        let workers = std::num::NonZeroUsize::new(1);
        crate::power::host()
            .start(Start { workers })
            .expect("a worker");
        crate::endpoints::serve().expect("a thread");
        crate::on_notice(|domain, notice| {
            let told = (domain.to_owned(), notice.clone());
            TOLD.lock().expect("whole").push(told);
        });
        // Whatever is made once is made now.
        let all = Three::new("first");
        all.one.accepts(&all.two);
        drop(all);
    });
    alone
}

/// A domain that says what the test likes. It ends when this is dropped.
struct Fake {
    control: Option<Control>,
    life: Option<JoinHandle<()>>,
    path: String,
}

impl Fake {
    fn new(path: &str) -> Fake {
        let (control, theirs) = Control::pair().expect("a socket");
        let time = rustix::net::sockopt::Timeout::Recv;
        rustix::net::sockopt::set_socket_timeout(&theirs, time, Some(PATIENCE)).expect("a time");
        let rights = Rights::none().bind(path).look_up("/");
        let (domain, _) = registry::add(path, &rights, None, control).expect("a domain");
        // As `host::live`, where Linux ends the domain when it is not listened to any more.
        let life = spawn(move || {
            let _power = crate::power::host();
            Heard::default().listen(&domain, &channel().0);
            domain.gone(Cause::Killed.into());
            registry::forget(domain.id);
        });
        let fake = Fake {
            control: Some(Control::new(theirs)),
            life: Some(life),
            path: path.into(),
        };
        fake.say(&ToHost::Bind {
            request: 1,
            path: Text::new(path),
            digest: talk::Contract::INFO.digest.0,
        });
        fake.is_answered(1, Ok(()));
        fake
    }

    fn control(&self) -> &Control {
        self.control.as_ref().expect("it lives")
    }

    fn say(&self, message: &ToHost) {
        assert!(self.tries_to_say(message), "{} has ended", self.path);
    }

    /// Waits for room, unlike a domain. False if the host listens no more.
    fn tries_to_say(&self, message: &ToHost) -> bool {
        let bytes = to_bytes(message, LONGEST).expect("a message");
        send(self.control().descriptor(), &bytes, SendFlags::NOSIGNAL).is_ok()
    }

    fn hear(&self) -> (ToDomain, Vec<OwnedFd>) {
        let heard = self.control().receive(2).expect("in time, and a message");
        heard.expect("it lives")
    }

    fn is_answered(&self, wanted: u64, result: Result<(), NameError>) -> Option<Linked> {
        match self.hear().0 {
            ToDomain::Answer {
                request,
                error,
                link,
            } => {
                assert_eq!((request, error), (wanted, error_number(result)));
                link
            }
            other => panic!("{} heard {other:?}", self.path),
        }
    }

    /// Everything that it has said was acted on, and it has heard nothing of it.
    fn hears_nothing(&self) {
        self.say(&ToHost::Open {
            request: 77,
            path: Text::new("/nobody"),
            digest: [0; 32],
            side: 0,
            bytes: *LINES.start(),
        });
        self.is_answered(77, Err(NameError::Unbound));
    }

    /// Opens a name.
    fn opens(&self, path: &str) {
        self.say(&ToHost::Open {
            request: 2,
            path: Text::new(path),
            digest: talk::Contract::INFO.digest.0,
            side: 1,
            bytes: line_bytes(talk::Contract::INFO) as u64,
        });
    }

    fn opened(&self) -> Line {
        let (message, files) = self.hear();
        match message {
            ToDomain::Answer {
                request: 2,
                error: 0,
                link: Some(link),
            } => Line::new(&link, files),
            other => panic!("{} heard {other:?}", self.path),
        }
    }

    fn asked(&self) -> (u64, Line) {
        let (message, files) = self.hear();
        match message {
            ToDomain::Accept { request, link, .. } => (request, Line::new(&link, files)),
            other => panic!("{} heard {other:?}", self.path),
        }
    }

    fn accepted(&self, request: u64) {
        self.say(&ToHost::Accepted { request, error: 0 });
    }

    /// A channel that the other one opens: this one's end and the other's.
    fn accepts(&self, other: &Fake) -> (Line, Line) {
        other.opens(&self.path);
        let (request, mine) = self.asked();
        self.accepted(request);
        (mine, other.opened())
    }

    fn offers(&self, over: &Line, ticket: u32, number: u64, behind: Option<&Line>) {
        self.say(&offer(
            over.over,
            over.number,
            ticket,
            number,
            behind.map(|line| (line.over, line.number)),
        ));
    }

    /// The line that it is given for its own end.
    fn given(&self, wanted: u64) -> Option<Line> {
        let (message, files) = self.hear();
        match message {
            ToDomain::Given { number, path } if number == wanted => Line::of(path, files),
            other => panic!("{} heard {other:?}", self.path),
        }
    }

    /// The line that it is given for an end that comes.
    fn offered(&self, wanted: &Line) -> Option<Line> {
        let (message, files) = self.hear();
        match message {
            ToDomain::Offer {
                over, line, path, ..
            } if (over, line) == (wanted.over, wanted.number) => Line::of(path, files),
            other => panic!("{} heard {other:?}", self.path),
        }
    }

    /// The line on which one of its own goes on.
    fn moved(&self, wanted: &Line) -> Option<Line> {
        let (message, files) = self.hear();
        match message {
            ToDomain::Moved {
                over, line, path, ..
            } if (over, line) == (wanted.over, wanted.number) => Line::of(path, files),
            other => panic!("{} heard {other:?}", self.path),
        }
    }

    fn is_down(&self, wanted: &Line) {
        match self.hear().0 {
            ToDomain::Down { link } if link == wanted.over.link => {}
            other => panic!("{} heard {other:?}", self.path),
        }
    }

    /// Says that it cannot have a line.
    fn refuses(&self, line: &Line) {
        let refused = ToHost::Refused { over: line.over };
        let sent = self.control().send(&refused, &[line.file.as_fd()]);
        sent.expect("it lives");
    }

    /// The host ends it.
    fn is_ended(&mut self) {
        let begin = Instant::now();
        let life = self.life.take().expect("once");
        while !life.is_finished() {
            assert!(begin.elapsed() < PATIENCE, "{} lives", self.path);
            sleep(Duration::from_millis(1));
        }
        life.join().expect("no panic");
    }

    fn dies(self) {
        drop(self);
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.control = None;
        if self.life.take().is_some_and(|life| life.join().is_err()) {
            eprintln!("the host's thread of {} has panicked", self.path);
        }
    }
}

fn offer(over: End, line: u64, ticket: u32, number: u64, behind: Option<(End, u64)>) -> ToHost {
    ToHost::Offer {
        over,
        line,
        ticket,
        passage: passing(ride::Contract::INFO),
        bytes: line_bytes(ride::Contract::INFO) as u64,
        number,
        behind,
    }
}

/// A client's end in the first state.
fn passing(contract: &Info) -> Passing {
    Passing::from(Passage {
        digest: contract.digest.0,
        side: mullion_sip::channel::Side::Client,
        state: 0,
    })
}

/// One half of a line, that a domain has been told of.
struct Line {
    over: End,
    number: u64,
    bells: OwnedFd,
    file: OwnedFd,
}

impl Line {
    fn new(linked: &Linked, files: Vec<OwnedFd>) -> Line {
        let Ok([bells, file]) = <[OwnedFd; 2]>::try_from(files) else {
            panic!("two descriptors")
        };
        Line {
            over: linked.over(),
            number: linked.line,
            bells,
            file,
        }
    }

    fn of(path: Option<Linked>, files: Vec<OwnedFd>) -> Option<Line> {
        path.map(|linked| Line::new(&linked, files))
    }

    fn memory(&self) -> File {
        File::from(self.file.try_clone().expect("a descriptor"))
    }

    /// Whether it says that the other half is nobody's.
    fn is_refused(&self) -> bool {
        let mut heads = [0; 128];
        self.memory().read_exact_at(&mut heads, 0).expect("read");
        heads[0] == 1 && heads[64] == 1
    }

    /// Whether the other half is closed.
    fn is_closed(&self) -> bool {
        let mut heads = [0; 128];
        self.memory().read_exact_at(&mut heads, 0).expect("read");
        heads[0] == 1 || heads[64] == 1
    }

    /// Whether the server's half has a first message, with the first number.
    fn has_message(&self) -> bool {
        let mut word = [0; 8];
        let read = self.memory().read_exact_at(&mut word, TO_SERVER);
        read.expect("read");
        u64::from_le_bytes(word) == 1 << 16
    }

    /// How often this half's bells were rung.
    fn rung(&self) -> u32 {
        let mut bells = [0; LINK_BYTES];
        let file = File::from(self.bells.try_clone().expect("a descriptor"));
        file.read_exact_at(&mut bells, 0).expect("read");
        let mine = &bells[usize::from(self.over.end) * 32 * 64..][..32 * 64];
        mine.iter().step_by(64).map(|byte| u32::from(*byte)).sum()
    }

    /// The client's half writes the first message, with an endpoint of that number, and rings.
    fn writes(&self, ticket: u32) {
        let (file, at) = (self.memory(), TO_SERVER);
        file.write_all_at(&4u64.to_le_bytes(), at + 8)
            .expect("written");
        file.write_all_at(&ticket.to_le_bytes(), at + 16)
            .expect("written");
        file.write_all_at(&(1u64 << 16).to_le_bytes(), at)
            .expect("written");
        self.ring();
    }

    /// Has the worker at the other end look.
    fn ring(&self) {
        let memory = Memory::map(self.bells.as_fd(), LINK_BYTES).expect("mapped");
        let link = Link::new(memory, self.over.end.into(), "other", None).expect("large");
        // The only way to ring from here: a line of nobody's.
        let spare = crate::files::create("spare", 4096).expect("memory");
        let spare = Memory::map(spare.as_fd(), 1).expect("mapped");
        mullion_sip_hosting::remote::refuse(&spare, &link);
    }
}

/// What there is of the host's: descriptors, and lines that are mapped.
fn held() -> (usize, usize) {
    let files = std::fs::read_dir("/proc/self/fd").expect("proc").count();
    let maps = std::fs::read_to_string("/proc/self/maps").expect("proc");
    (files, maps.matches("mullion-").count())
}

fn settled(before: (usize, usize)) {
    until("everything is back", || held() == before);
}

fn until(what: &str, done: impl Fn() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < PATIENCE, "{what}: {:?}", held());
        sleep(Duration::from_millis(1));
    }
}

/// Three domains.
struct Three {
    one: Fake,
    two: Fake,
    other: Fake,
}

impl Three {
    fn new(name: &str) -> Three {
        let [one, two, other] =
            ["one", "two", "other"].map(|number| Fake::new(&format!("/{name}/{number}")));
        Three { one, two, other }
    }
}

/// Whoever looks at domains asks those that have begun: one that has not takes a question for the order to begin, and ends.
#[test]
fn a_domain_is_asked_once_it_is_ready() {
    let _alone = alone();
    let one = Fake::new("/ready/one");
    let is_asked = || {
        let group = registry::groups();
        group.domains.iter().any(|glass| glass.name() == one.path)
    };
    assert!(!is_asked());
    one.say(&ToHost::Ready { landlock: true });
    until("it is asked", is_asked);
}

#[test]
fn what_is_said_of_links_of_others_is_said_of_nothing() {
    let _alone = alone();
    let before = held();
    let all = Three::new("others");
    let (one, two) = all.one.accepts(&all.two);
    let end = |link, end| End { link, end };
    let link = one.over.link;
    let forged = [
        // Of two others.
        one.over,
        two.over,
        end(link, 2),
        end(link, u8::MAX),
        // Of nobody.
        end(0, 0),
        end(link + 1, 0),
        end(u64::MAX, 1),
    ];
    for over in forged {
        // Its peer is to be with it, or behind whatever.
        all.other.say(&offer(over, one.number, 0, 5, None));
        assert!(all.other.given(5).is_none(), "{over:?}");
        for behind in forged {
            let message = offer(over, one.number, 0, 0, Some((behind, two.number)));
            all.other.say(&message);
        }
        all.other.say(&ToHost::Claimed { over });
        let refused = ToHost::Refused { over };
        let sent = all.other.control().send(&refused, &[one.file.as_fd()]);
        sent.expect("it lives");
    }
    for fake in [&all.one, &all.two, &all.other] {
        fake.hears_nothing();
    }
    assert!(!one.is_refused() && one.rung() + two.rung() == 0);
    // Of a link of its own, but of the other's end of it.
    all.one.say(&offer(two.over, two.number, 0, 6, None));
    assert!(all.one.given(6).is_none());
    all.one.say(&ToHost::Claimed { over: two.over });
    // Its own end, with a peer behind what is not its own.
    all.one.say(&offer(
        one.over,
        one.number,
        0,
        0,
        Some((two.over, two.number)),
    ));
    assert!(all.two.offered(&two).is_none());
    for fake in [&all.one, &all.two, &all.other] {
        fake.hears_nothing();
    }
    drop((all, one, two));
    settled(before);
}

#[test]
fn who_offers_more_than_it_may_is_ended_and_nobody_else() {
    let _alone = alone();
    let before = held();
    let mut all = Three::new("window");
    let (one, two) = all.one.accepts(&all.two);
    // What nobody has offered cannot be claimed in advance, by nobody.
    for claims in [&all.one, &all.two, &all.other] {
        for over in [one.over, two.over] {
            claims.say(&ToHost::Claimed { over });
        }
        claims.hears_nothing();
    }
    let next = |ticket: u32| {
        all.one.offers(&one, ticket, u64::from(ticket) + 1, None);
        let mine = all.one.given(u64::from(ticket) + 1).expect("a line");
        let its = all.two.offered(&two).expect("a line");
        assert_eq!(mine.number, its.number);
        assert_eq!(mine.over, its.over.other());
    };
    (0..WINDOW).for_each(next);
    // Who has offered them cannot claim them.
    all.one.say(&ToHost::Claimed { over: one.over });
    all.one.say(&ToHost::Claimed { over: two.over });
    all.one.hears_nothing();
    all.two.say(&ToHost::Claimed { over: two.over });
    let (claimed, _) = all.one.hear();
    assert!(matches!(claimed, ToDomain::Claimed { over } if over == one.over));
    next(WINDOW);
    all.one.offers(&one, WINDOW + 1, 99, None);
    all.one.is_ended();
    all.two.is_down(&two);
    // The others go on.
    drop(all.two.accepts(&all.other));
    drop((all, one, two));
    settled(before);
}

#[test]
fn lines_of_impossible_sizes_are_not_made() {
    let _alone = alone();
    let before = held();
    let all = Three::new("sizes");
    let (one, two) = all.one.accepts(&all.two);
    for bytes in [
        0,
        1,
        127,
        LINES.start() - 1,
        LINES.end() + 1,
        1 << 40,
        u64::MAX,
    ] {
        let mut message = offer(one.over, one.number, 0, 7, None);
        if let ToHost::Offer { bytes: said, .. } = &mut message {
            *said = bytes;
        }
        all.one.say(&message);
        assert!(all.one.given(7).is_none() && all.two.offered(&two).is_none());
        all.two.say(&ToHost::Claimed { over: two.over });
        assert!(matches!(all.one.hear().0, ToDomain::Claimed { .. }));
        all.one.say(&ToHost::Open {
            request: 3,
            path: Text::new(&all.two.path),
            digest: [0; 32],
            side: 0,
            bytes,
        });
        all.one.is_answered(3, Err(NameError::Busy));
    }
    all.two.hears_nothing();
    drop((all, one, two));
    settled(before);
}

/// Endpoints of which each domain says nonsense by the thousand; one that reads its answers, and one that does not.
#[test]
fn floods_end_nobody_else_and_leave_nothing() {
    let _alone = alone();
    let before = held();
    for reads in [true, false] {
        let mut all = Three::new("flood");
        let (one, two) = all.one.accepts(&all.two);
        let forged = [
            offer(
                End {
                    link: 1 << 40,
                    end: 0,
                },
                3,
                0,
                5,
                None,
            ),
            ToHost::Claimed { over: one.over },
            ToHost::Claimed {
                over: End { link: 9, end: 9 },
            },
            ToHost::Accepted {
                request: 1 << 40,
                error: 0,
            },
            offer(
                End { link: 0, end: 1 },
                3,
                0,
                0,
                Some((one.over, one.number)),
            ),
        ];
        let mut said = 0;
        'flood: for _ in 0..4000 {
            for message in &forged {
                if !all.other.tries_to_say(message) {
                    break 'flood;
                }
                said += 1;
            }
            if reads {
                assert!(all.other.given(5).is_none());
            }
        }
        // The host has not kept what nobody reads.
        assert_eq!(said == 20_000, reads, "{said}");
        match reads {
            true => all.other.hears_nothing(),
            false => all.other.is_ended(),
        }
        // The others have not noticed.
        all.one.offers(&one, 0, 1, None);
        assert!(all.one.given(1).is_some() && all.two.offered(&two).is_some());
        drop((all, one, two));
    }
    settled(before);
}

/// Descriptors that nobody wants go at once, and no more than a message may have come in at all.
/// What a domain has the host log is bounded, and nothing else of it is held up.
#[test]
fn who_reports_fault_upon_fault_fills_no_log() {
    let _alone = alone();
    let begin = Instant::now();
    let chatty = Fake::new("/chatty");
    const FAULTS: u64 = 3000;
    for number in 0..FAULTS {
        chatty.say(&ToHost::Fault {
            contract: Text::new("talk"),
            peer: Text::new(&format!("peer {number}")),
            fault: Text::new("nonsense"),
        });
        // Lives that nobody began, and a domain that begins again and again.
        chatty.say(&ToHost::Ended {
            life: number + 1,
            name: Text::new("nobody"),
            cause: 1,
            status: 0,
            message: Text::new(""),
        });
        chatty.say(&ToHost::Ready { landlock: true });
    }
    chatty.hears_nothing();
    chatty.dies();
    let seconds = begin.elapsed().as_secs() + 2;
    let (mut told, mut left_out) = (0, 0);
    for (_, notice) in (TOLD.lock().expect("whole").iter()).filter(|told| told.0 == "/chatty") {
        match notice {
            Notice::Fault(..) => told += 1,
            Notice::LeftOut(faults) => left_out += faults,
            Notice::Ready { .. } => assert_eq!((told, left_out), (1, 0), "once, after a fault"),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(told + left_out, FAULTS);
    assert!(
        told <= u64::from(REPORTS) * seconds,
        "{told} in {seconds} s"
    );
}

#[test]
fn descriptors_in_messages_do_not_stay() {
    let _alone = alone();
    let before = held();
    let fake = Fake::new("/files");
    let file = crate::files::create("spare", 4096).expect("memory");
    let many = [file.as_fd(); 200];
    for _ in 0..50 {
        let claimed = ToHost::Claimed {
            over: End { link: 0, end: 0 },
        };
        fake.control().send(&claimed, &many).expect("it lives");
        fake.hears_nothing();
    }
    let (files, _) = held();
    // This one, the domain's socket and the host's.
    assert_eq!(files, before.0 + 3);
    drop((fake, file));
    settled(before);
}

/// Who cannot map a line says so, and whoever has the other half finds it closed and is rung for.
#[test]
fn a_line_that_is_refused_is_closed_at_its_other_end() {
    let _alone = alone();
    let before = held();
    let all = Three::new("refused");
    let (one, two) = all.one.accepts(&all.two);
    let (mine, others) = all.one.accepts(&all.other);
    // An end whose peer is with who sends it.
    for receiver_refuses in [true, false] {
        all.one.offers(&one, 0, 5, None);
        let here = all.one.given(5).expect("a line");
        let there = all.two.offered(&two).expect("a line");
        match receiver_refuses {
            true => all.two.refuses(&there),
            false => all.one.refuses(&here),
        }
        until("it is closed", || here.is_refused());
        let heard = if receiver_refuses { &here } else { &there };
        until("it is rung for", || heard.rung() > 0);
    }
    // Behind another line: the peer is a third one.
    for receiver_refuses in [true, false] {
        all.one.offers(&one, 0, 0, Some(&mine));
        let peers = all.other.moved(&others).expect("a line");
        let there = all.two.offered(&two).expect("a line");
        assert_eq!(
            (peers.number, peers.over),
            (there.number, there.over.other())
        );
        match receiver_refuses {
            true => all.two.refuses(&there),
            false => all.other.refuses(&peers),
        }
        until("it is closed", || there.is_refused());
        let heard = if receiver_refuses { &peers } else { &there };
        until("it is rung for", || heard.rung() > 0);
    }
    // A channel to a name: the one that has opened it cannot map it.
    let (mine_too, others_too) = all.one.accepts(&all.other);
    all.other.refuses(&others_too);
    until("it is closed", || mine_too.is_refused());
    drop((all, one, two, mine, others, mine_too, others_too));
    settled(before);
}

#[test]
fn who_refuses_without_a_line_is_ended() {
    let _alone = alone();
    let before = held();
    let null = File::open("/dev/null").expect("there");
    let sealed = crate::files::sealed("sealed", &[7; 4096]).expect("memory");
    let log = tempfile();
    for files in [
        vec![],
        vec![null.as_fd()],
        vec![sealed.as_fd()],
        vec![log.as_fd()],
    ] {
        let mut all = Three::new("nothing");
        let (one, two) = all.one.accepts(&all.two);
        let refused = ToHost::Refused { over: two.over };
        all.two.control().send(&refused, &files).expect("it lives");
        all.two.is_ended();
        all.one.is_down(&one);
    }
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut &log, &mut bytes).expect("read");
    assert_eq!(bytes, b"");
    drop((null, sealed, log));
    settled(before);
}

/// A file that a domain may have as its output.
fn tempfile() -> File {
    let name = std::env::temp_dir().join(format!("mullion-hostile-{}", std::process::id()));
    let file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&name);
    std::fs::remove_file(&name).expect("it is there");
    file.expect("a file")
}
