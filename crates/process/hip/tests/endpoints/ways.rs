//! From everywhere to everywhere, in any number and depth, and in order.

use super::*;

pub(crate) fn from_everywhere_by_everyone_to_everywhere() {
    for share in [None, Some(Sharing::Open), Some(Sharing::Remapped)] {
        let all = places(share);
        for (peer, sender, receiver) in
            (0..64u8).map(|index| (index / 16, index / 4 % 4, index % 4))
        {
            let client = end_of(peer, 5);
            let route = Route {
                to: ExVec::copy_of(&[receiver]),
                end: client,
            };
            let relay = place_end(sender).expect("bound");
            let asked = relay.pass(route).expect("alive");
            let sum = answer(asked).map(|(sum, _)| sum);
            assert_eq!(sum, Some(15), "peer {peer}, from {sender} to {receiver}");
        }
        assert_eq!(faults(), Vec::<String>::new());
        end(all);
    }
}

pub(crate) fn round_the_ring_and_back() {
    let all = places(None);
    for peer in 0..4 {
        let rounds: Vec<u8> = (0..60).map(|hop| hop % 3 + 1).collect();
        let route = Route {
            to: ExVec::copy_of(&rounds),
            end: end_of(peer, 1),
        };
        let relay = place_end(3).expect("bound");
        assert_eq!(
            answer(relay.pass(route).expect("alive")).map(|(sum, _)| sum),
            Some(11)
        );
        // To and fro over one channel, used in between.
        let mut relay = place_end(2).expect("bound");
        let mut client = end_of(peer, 1);
        for _ in 0..20 {
            (client, relay) = made(relay.r#return(client).expect("alive")).expect("returned");
            let (sum, same) = question(client).expect("an answer");
            assert_eq!(sum, 11);
            client = same;
        }
    }
    assert_eq!(faults(), Vec::<String>::new());
    end(all);
}

pub(crate) fn several_in_one_message_at_any_depth() {
    let all = places(None);
    let mut relay = place_end(1).expect("bound");
    for count in [1u32, 3, 100] {
        let items = (0..count).map(|index| {
            let one = |place: u32| end_of((place % 4) as u8, index);
            match index % 3 {
                0 => Item::One(one(index)),
                1 => Item::Pair(None, ExBox::new(Item::One(one(index)))),
                _ => Item::Pair(Some(one(index)), ExBox::new(Item::Nothing)),
            }
        });
        let items: ExVec<Item> = items.collect();
        let (sum, idle) = answer(relay.many(items).expect("alive")).expect("asked");
        assert_eq!(
            sum,
            (0..u64::from(count)).map(|index| index + 10).sum::<u64>()
        );
        relay = idle;
    }
    end(all);
}

/// What an endpoint has sent before it is sent itself arrives first.
pub(crate) fn what_was_sent_before_arrives_before() {
    let all = places(None);
    for _ in 0..20 {
        let (client, server) = burst::channel().expect("memory");
        let relay = place_end(1).expect("bound");
        let asked = relay.burst(client.first(1).expect("alive")).expect("alive");
        let burst::OneMessage::First(first, server) = server.recv().expect("first");
        let burst::TwoMessage::Second(second, server) = server.recv().expect("second");
        let burst::ThreeMessage::Third(third, server) = server.recv().expect("third");
        assert_eq!((first, second, third.len(), third[999]), (1, 2, 1000, 3));
        server.all(123).expect("alive");
        assert_eq!(answer(asked).map(|(sum, _)| sum), Some(123));
    }
    // An endpoint of the other side.
    let (mut client, server) = tell::channel().expect("memory");
    let relay = place_end(2).expect("bound");
    let asked = relay.tell(server).expect("alive");
    let mut number = 7;
    loop {
        let tell::TellMessage::Number(said, told) = client.recv().expect("a number");
        assert_eq!(said, number);
        number += 1;
        if number == 10 {
            break told.stop().expect("alive");
        }
        client = told.more().expect("alive");
    }
    assert_eq!(answer(asked).map(|(sum, _)| sum), Some(9));
    end(all);
}

/// More than are offered at a time, to a receiver who keeps them, and to one who does not read.
pub(crate) fn many_at_a_time() {
    let all = places(None);
    // The bells of each domain stay as long as it does.
    (1..4).for_each(|place| drop(place_end(place)));
    let before = quiet();
    let mut relay = place_end(1).expect("bound");
    let mut ends = Vec::new();
    for _ in 0..300 {
        let (client, server) = ask::channel().expect("memory");
        let (_, idle) = answer(relay.keep(client).expect("alive")).expect("kept");
        (relay, _) = (idle, ends.push(server));
    }
    let items: ExVec<Item> = (0..500)
        .map(|_| {
            let (client, server) = ask::channel().expect("memory");
            ends.push(server);
            Item::One(client)
        })
        .collect();
    let asked = place_end(2).expect("bound").many(items).expect("alive");
    drop((relay, ends));
    // Nobody answers.
    assert!(matches!(asked.recv(), Ok(relay::BusyMessage::Failed(_))));
    settled(before);
    end(all);
}
