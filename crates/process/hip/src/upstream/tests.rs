//! A host that is played: what a domain's kernel makes of its answers, in whatever order they come, and of its end. The host is
//! trusted, so nothing here is hostile; but messages cross, and a host that ends leaves some unsaid.

use std::os::fd::BorrowedFd;
use std::sync::mpsc::{Receiver, channel as pipe};
use std::thread;
use std::time::{Duration, Instant};

use mullion_sip::channel::{ChannelClosed, Contract};
use mullion_sip::contract;

use super::*;
use crate::files;
use crate::hostile::alone;

contract! {
    #[endless]
    mod ask { Ask: client { Question(u32) -> Answer } Answer: server { Reply(u32) -> Ask } }
}

const PATIENCE: Duration = Duration::from_secs(20);

/// A domain's kernel, and the test as its host.
struct Played {
    domain: &'static Host,
    host: Control,
    /// The domain's thread that listens has come to its end.
    deaf: Receiver<()>,
}

impl Played {
    fn new() -> Played {
        let (mine, theirs) = Control::pair().expect("a socket");
        let time = rustix::net::sockopt::Timeout::Recv;
        rustix::net::sockopt::set_socket_timeout(mine.descriptor(), time, Some(PATIENCE))
            .expect("a time");
        let domain: &'static Host = Box::leak(Box::new(Host::new(Control::new(theirs))));
        let (told, deaf) = pipe();
        // As `serve`, but the end of the host is not the end of this program.
        thread::spawn(move || {
            let _power = crate::power::host();
            while let Ok(Some((message, descriptors))) = domain.control.receive(2) {
                domain.act(message, &descriptors);
            }
            let _ = told.send(());
        });
        Played {
            domain,
            host: mine,
            deaf,
        }
    }

    fn hears(&self) -> (ToHost, Vec<OwnedFd>) {
        let heard = self.host.receive(2).expect("in time, and a message");
        heard.expect("it lives")
    }

    fn says(&self, message: &ToDomain, files: &[BorrowedFd<'_>]) {
        self.host.send(message, files).expect("it lives");
    }

    fn answers(&self, request: u64, result: Result<(), NameError>) {
        let answer = ToDomain::Answer {
            request,
            error: error_number(result),
            link: None,
        };
        self.says(&answer, &[]);
    }

    /// A process of the domain binds a name.
    fn binds(&self, path: &'static str) -> thread::JoinHandle<Result<(), NameError>> {
        let domain = self.domain;
        thread::spawn(move || domain.bind(path, ask::Contract::INFO))
    }

    fn is_asked_to_bind(&self) -> (u64, String) {
        match self.hears().0 {
            ToHost::Bind { request, path, .. } => (request, path.to_string()),
            other => panic!("heard {other:?}"),
        }
    }

    /// A process of the domain opens a name: what `open` gave, and what its client's end hears then.
    fn opens(&self) -> thread::JoinHandle<(bool, Result<u32, ChannelClosed>)> {
        let domain = self.domain;
        thread::spawn(move || {
            let (client, server) = ask::channel().expect("memory");
            let opened = domain.open("/there", server.into_any());
            let heard = client.question(7).and_then(|client| client.recv());
            let ask::AnswerMessage::Reply(reply, _) = match heard {
                Ok(reply) => reply,
                Err(closed) => return (opened.is_ok(), Err(closed)),
            };
            (opened.is_ok(), Ok(reply))
        })
    }

    fn is_asked_to_open(&self) -> (u64, u64) {
        match self.hears().0 {
            ToHost::Open { request, bytes, .. } => (request, bytes),
            other => panic!("heard {other:?}"),
        }
    }
}

fn joined<T>(thread: thread::JoinHandle<T>) -> T {
    let begin = Instant::now();
    while !thread.is_finished() {
        assert!(begin.elapsed() < PATIENCE, "it waits for ever");
        thread::sleep(Duration::from_millis(1));
    }
    thread.join().expect("no panic")
}

fn linked(link: u64, line: u64) -> Linked {
    Linked {
        link,
        line,
        end: 0,
        peer: Text::new("peer"),
        sharer: None,
    }
}

fn answer(request: u64, linked: Linked) -> ToDomain {
    ToDomain::Answer {
        request,
        error: 0,
        link: Some(linked),
    }
}

#[test]
fn an_answer_goes_to_who_has_asked() {
    let _alone = alone();
    let played = Played::new();
    let one = played.binds("/one");
    let (first, path) = played.is_asked_to_bind();
    assert_eq!(path, "/one");
    let other = played.binds("/other");
    let (second, path) = played.is_asked_to_bind();
    assert_eq!(path, "/other");
    // To nobody, then the later one first, and one of them twice.
    played.answers(1000, Err(NameError::Busy));
    played.answers(second, Err(NameError::Taken));
    assert_eq!(joined(other), Err(NameError::Taken));
    played.answers(second, Ok(()));
    assert!(!one.is_finished());
    played.answers(first, Ok(()));
    assert_eq!(joined(one), Ok(()));
    assert!(played.domain.requests().is_empty());
}

#[test]
fn who_asks_a_host_that_has_gone_is_refused_and_keeps_its_end() {
    let _alone = alone();
    let Played { domain, host, deaf } = Played::new();
    drop(host);
    deaf.recv_timeout(PATIENCE).expect("it hears of the end");
    assert_eq!(
        domain.bind("/one", ask::Contract::INFO),
        Err(NameError::Busy)
    );
    let (client, server) = ask::channel().expect("memory");
    let (error, back) = domain.open("/there", server.into_any()).expect_err("gone");
    assert_eq!(error, NameError::Busy);
    let waits = client.question(1).expect("its peer is still there");
    drop(back);
    assert!(waits.recv().is_err());
    domain.unbind("/one");
    assert!(domain.requests().is_empty());
}

/// The peer dies as the channel to it is made: the two messages come at once.
#[test]
fn a_channel_to_who_is_down_already_is_closed() {
    let _alone = alone();
    let played = Played::new();
    let opens = played.opens();
    let (request, bytes) = played.is_asked_to_open();
    let bells = files::create("bells", LINK_BYTES).expect("memory");
    let line = files::create("line", bytes as usize).expect("memory");
    played.says(
        &answer(request, linked(5, 6)),
        &[bells.as_fd(), line.as_fd()],
    );
    played.says(&ToDomain::Down { link: 5 }, &[]);
    assert_eq!(joined(opens), (true, Err(ChannelClosed)));
    assert!(played.domain.links().is_empty());
}

#[test]
fn a_line_that_does_not_come_is_a_closed_channel_and_the_host_is_told() {
    let _alone = alone();
    let played = Played::new();
    let small = files::create("small", 64).expect("memory");
    let nothing: [BorrowedFd<'_>; 0] = [];
    for files in [&nothing[..], &[small.as_fd(), small.as_fd()][..]] {
        let opens = played.opens();
        let (request, _) = played.is_asked_to_open();
        played.says(&answer(request, linked(5, 6)), files);
        assert_eq!(joined(opens), (true, Err(ChannelClosed)));
        match played.hears() {
            (ToHost::Refused { over }, back) => {
                assert_eq!((over.link, over.end), (5, 0));
                assert_eq!(back.len(), files.len() / 2, "the line, if it came");
            }
            (other, _) => panic!("heard {other:?}"),
        }
    }
}

#[test]
fn what_the_host_wants_of_links_and_names_that_are_gone_is_answered() {
    let _alone = alone();
    let played = Played::new();
    let bells = files::create("bells", LINK_BYTES).expect("memory");
    let line = files::create("line", 4096).expect("memory");
    let accept = ToDomain::Accept {
        request: 9,
        path: Text::new("/nobody's"),
        digest: [0; 32],
        side: 0,
        link: linked(5, 6),
    };
    played.says(&accept, &[bells.as_fd(), line.as_fd()]);
    match played.hears().0 {
        ToHost::Accepted { request: 9, error } => {
            assert_eq!(error_of(error), Err(NameError::Unbound));
        }
        other => panic!("heard {other:?}"),
    }
    // Of links that are down: nobody waits, and what is offered is answered, since the host counts it.
    let over = End { link: 77, end: 0 };
    played.says(&ToDomain::Down { link: 77 }, &[]);
    played.says(&ToDomain::Claimed { over }, &[]);
    let passage = mullion_sip_hosting::remote::Passage {
        digest: [0; 32],
        side: mullion_sip::channel::Side::Client,
        state: 0,
    };
    let offer = ToDomain::Offer {
        over,
        line: 1,
        ticket: 1,
        passage: passage.into(),
        path: None,
    };
    played.says(&offer, &[]);
    match played.hears().0 {
        ToHost::Claimed { over: claimed } => assert_eq!(claimed, over),
        other => panic!("heard {other:?}"),
    }
}

#[test]
fn orders_are_carried_out_in_the_order_in_which_they_came() {
    let _alone = alone();
    let played = Played::new();
    played.says(&ToDomain::Start { member: 3, life: 1 }, &[]);
    played.says(&ToDomain::Look { request: 2 }, &[]);
    played.says(&ToDomain::End { life: 1 }, &[]);
    played.says(&ToDomain::Map { request: 4 }, &[]);
    let (begin, mut orders) = (Instant::now(), Vec::new());
    while orders.len() < 4 {
        assert!(begin.elapsed() < PATIENCE, "{orders:?}");
        orders.extend(played.domain.orders());
    }
    assert!(matches!(
        orders[..],
        [
            Order::Start { member: 3, life: 1 },
            Order::Look { request: 2 },
            Order::End { life: 1 },
            Order::Map { request: 4 },
        ]
    ));
}
