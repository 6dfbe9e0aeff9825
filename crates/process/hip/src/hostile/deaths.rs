//! An endpoint is handed over, and one of those who have to do with it dies: at each step, one after the other. What is at
//! the host is there as ever, with bridges and workers.

use mullion_sip::channel::TryRecvError;
use mullion_sip::process::{Service, open, serve};

use super::*;

/// A channel of the host's to the name of a domain, by which it sends an end: what waits for an answer, and the end's peer.
fn sent(to: &Fake) -> (talk::Client<talk::Answer>, ride::Server<ride::Go>) {
    let (mine, theirs) = ride::channel().expect("memory");
    (sent_on(to, mine), theirs)
}

fn sent_on(to: &Fake, end: ride::Client<ride::Go>) -> talk::Client<talk::Answer> {
    let (client, server) = talk::channel().expect("memory");
    assert!(open(&to.path, server.into_any()).is_ok());
    client.channel(end).expect("nobody knows better yet")
}

/// A service of the host's, a channel to it, and what the host has of it.
fn service(client: &Fake) -> (Service, Line, talk::Server<talk::Ask>) {
    let path = format!("{}/host", client.path);
    let service = serve(&path, talk::Contract::INFO).expect("free");
    client.opens(&path);
    let line = client.opened();
    let end = talk::Server::<talk::Ask>::from_any(service.accept()).expect("the contract");
    (service, line, end)
}

/// The endpoint that has come.
fn came(server: talk::Server<talk::Ask>) -> ride::Client<ride::Go> {
    match server.recv_timeout(PATIENCE) {
        Ok(talk::AskMessage::Channel(end, _)) => end,
        Err(error) => panic!("no endpoint: {error:?}"),
    }
}

fn waits_no_more(waits: ride::Client<ride::Wait>) {
    let heard = waits.recv_timeout(PATIENCE);
    assert!(matches!(heard, Err(TryRecvError::Closed(_))));
}

fn peer_waits_no_more(waits: ride::Server<ride::Go>) {
    let heard = waits.recv_timeout(PATIENCE);
    assert!(matches!(heard, Err(TryRecvError::Closed(_))));
}

#[test]
fn of_who_is_given_an_end_of_the_hosts() {
    let _alone = alone();
    let before = held();
    for step in 0..5 {
        let one = Fake::new("/given/one");
        let (asked, theirs) = sent(&one);
        let (request, line) = one.asked();
        if step > 0 {
            one.accepted(request);
        }
        let new = (step > 1).then(|| one.offered(&line).expect("a line"));
        match (&new, step) {
            (Some(_), 3) => one.say(&ToHost::Claimed { over: line.over }),
            (Some(new), 4) => {
                one.refuses(new);
                peer_waits_no_more(theirs);
                one.dies();
                assert!(asked.recv().is_err());
                continue;
            }
            _ => {}
        }
        one.dies();
        peer_waits_no_more(theirs);
        assert!(asked.recv().is_err(), "step {step}");
    }
    settled(before);
}

#[test]
fn of_who_sends_the_host_an_end() {
    let _alone = alone();
    let before = held();
    for step in 0..4 {
        let one = Fake::new("/sends/one");
        let (_service, line, server) = service(&one);
        if step == 0 {
            one.dies();
            assert!(server.recv().is_err());
            continue;
        }
        line.writes(0);
        let waits = came(server).say(7).expect("nobody knows better yet");
        // From 2 on the host has been told.
        let new = (step > 1).then(|| {
            one.offers(&line, 0, 5, None);
            one.given(5).expect("a line")
        });
        if let (Some(new), 3) = (&new, step) {
            until("what was said", || new.has_message());
            assert!(matches!(one.hear().0, ToDomain::Claimed { .. }));
        }
        one.dies();
        waits_no_more(waits);
    }
    settled(before);
}

/// Who sends the host an end has its peer behind a line to a third one.
#[test]
fn of_three_by_whom_an_end_comes_to_the_host() {
    let _alone = alone();
    let before = held();
    for (step, who) in (0..3).flat_map(|step| [(step, "sender"), (step, "peer")]) {
        let all = Three::new("comes");
        let Three { one, other, .. } = all;
        let (mine, others) = one.accepts(&other);
        let (_service, line, server) = service(&one);
        line.writes(0);
        let waits = came(server).say(7).expect("nobody knows better yet");
        if step == 0 {
            match who {
                "sender" => one.dies(),
                _ => {
                    other.dies();
                    // It hears so, and offers all the same.
                    one.is_down(&mine);
                    one.offers(&line, 0, 0, Some(&mine));
                }
            }
            waits_no_more(waits);
            continue;
        }
        one.offers(&line, 0, 0, Some(&mine));
        let new = other.moved(&others).expect("a line");
        until("what was said", || new.has_message());
        match (step, who) {
            (1, "sender") => {
                // It has nothing to do with it any more.
                one.dies();
                other.is_down(&others);
                let Err(TryRecvError::Empty(waits)) = waits.try_recv() else {
                    panic!("it goes on")
                };
                other.dies();
                waits_no_more(waits);
            }
            (1, _) => {
                other.dies();
                waits_no_more(waits);
            }
            _ => {
                other.refuses(&new);
                waits_no_more(waits);
            }
        }
    }
    settled(before);
}

/// The host hands on an end whose peer is elsewhere.
#[test]
fn of_those_between_whom_the_host_was() {
    let _alone = alone();
    let before = held();
    for (step, who) in (0..3).flat_map(|step| [(step, "receiver"), (step, "peer")]) {
        let Three { one, other, .. } = Three::new("between");
        let (_service, line, server) = service(&other);
        line.writes(0);
        other.offers(&line, 0, 5, None);
        let first = other.given(5).expect("a line");
        let end = came(server);
        assert!(matches!(other.hear().0, ToDomain::Claimed { .. }));
        let asked = sent_on(&one, end);
        let (request, to_one) = one.asked();
        if step == 0 {
            match who {
                "receiver" => {
                    one.dies();
                    until("it is closed", || first.is_closed());
                    assert!(first.rung() > 0);
                }
                _ => {
                    other.dies();
                    one.accepted(request);
                    // An end whose peer has gone, or none.
                    let closed = one.offered(&to_one).is_none_or(|new| {
                        until("it is closed", || new.is_closed());
                        true
                    });
                    assert!(closed);
                }
            }
            continue;
        }
        one.accepted(request);
        let new = one.offered(&to_one).expect("a line");
        let moved = other.moved(&first).expect("a line");
        assert_eq!(moved.number, new.number);
        match (step, who) {
            (1, "receiver") => {
                one.dies();
                other.is_down(&moved);
            }
            (1, _) => {
                other.dies();
                one.is_down(&new);
            }
            (_, "receiver") => {
                one.refuses(&new);
                until("it is closed", || moved.is_refused());
                assert!(moved.rung() > 0);
            }
            _ => {
                other.refuses(&moved);
                until("it is closed", || new.is_refused());
                assert!(new.rung() > 0);
            }
        }
        drop(asked);
    }
    settled(before);
}

/// What happens between the moment when the host knows the line that it answers with, and the answer.
static BEFORE_THE_ANSWER: Mutex<Option<Box<dyn FnOnce() + Send>>> = Mutex::new(None);

/// Called by the host there.
pub(crate) fn before_the_answer() {
    let meanwhile = BEFORE_THE_ANSWER.lock().expect("whole").take();
    meanwhile.into_iter().for_each(|meanwhile| meanwhile());
}

/// How long the other thread has to do what it must not: it does it in microseconds, if nothing holds it.
const LONG: Duration = Duration::from_millis(200);

/// The host is about to tell a client of a channel to a service, as another thread of the host finds the service dead: the
/// client hears of the end after it has heard of the channel.
#[test]
fn of_a_service_as_its_client_is_answered() {
    let _alone = alone();
    let client = Fake::new("/answered");
    let service = Fake::new("/dying");
    client.opens("/dying");
    let (request, _line) = service.asked();
    let dying = {
        let all = registry::registry();
        let mut domains = all.domains.values();
        let dying = domains.find(|domain| domain.name == "/dying");
        dying.expect("it lives").clone()
    };
    let (tell, told) = channel();
    let (begin, begun) = channel::<()>();
    let other = spawn(move || {
        let _power = crate::power::host();
        // Whoever answers has come so far, or has gone.
        if begun.recv().is_ok() {
            dying.gone(Cause::Killed.into());
            let _ = tell.send(());
        }
    });
    let early = std::sync::Arc::new(Mutex::new(None));
    let seen = early.clone();
    let meanwhile = move || {
        begin.send(()).expect("it waits");
        *seen.lock().expect("whole") = Some(told.recv_timeout(LONG).is_ok());
    };
    *BEFORE_THE_ANSWER.lock().expect("whole") = Some(Box::new(meanwhile));
    service.accepted(request);
    let ToDomain::Answer { link, .. } = client.hear().0 else {
        panic!("told of its end before")
    };
    let given = link.expect("it lived").link;
    let ToDomain::Down { link } = client.hear().0 else {
        panic!("not told of its end")
    };
    assert_eq!(link, given);
    other.join().expect("no panic");
    assert_eq!(*early.lock().expect("whole"), Some(false));
    service.dies();
}
