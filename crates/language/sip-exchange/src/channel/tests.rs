//! What channels promise, one test each. Threads of the host stand for processes.

use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use crate::exchange::life::{set_limit, share_of};
use crate::exchange::{HeapError, accounts, census};
use crate::interior::Parcel;
use crate::{ExBox, ExString, ExVec, Exchange, contract};
use mullion_sip_core::owner::Owner;

use super::{ChannelClosed, TryRecvError, select, select_for};

contract! {
    /// One question, one answer, as often as you like.
    mod ask {
        Ask: client { Question(u32) -> Answer, Bye -> end }
        Answer: server { Reply(u64) -> Ask }
    }
}

contract! {
    /// Whatever can be sent.
    mod goods {
        Ready: client {
            Bytes(ExVec<u8>) -> Ready2,
            Tree(ExBox<Node>) -> Ready2,
            Channel(ask::Client<ask::Ask>) -> Ready2,
            Text(ExString) -> Ready2,
            Wide(Wide) -> Ready2,
        }
        Ready2: client { Again(ExVec<u8>) -> Back, Done -> Back }
        Back: server { Ok -> Ready, Stop -> end }
    }
}

contract! {
    /// One side sends, and never receives.
    mod gift {
        Give: client { Gift(ExVec<u64>) -> end }
    }
}

#[derive(Exchange)]
struct Node {
    value: u64,
    left: Option<ExBox<Node>>,
    right: Option<ExBox<Node>>,
}

#[derive(Exchange, Clone, Copy, PartialEq, Debug)]
#[repr(align(32))]
struct Wide([u64; 4]);

fn tree(depth: u32) -> ExBox<Node> {
    let child = || (depth > 0).then(|| tree(depth - 1));
    ExBox::new(Node {
        value: depth.into(),
        left: child(),
        right: child(),
    })
}

fn held() -> u64 {
    share_of(Owner::HOST).held
}

/// Its queue has no slots, and lies where its peer's begins: closing it once freed what was in that.
#[test]
fn what_a_side_has_sent_that_never_receives_stays_its_peers() {
    let (client, server) = gift::channel().expect("memory");
    client.gift(ExVec::copy_of(&[7; 100])).expect("alive");
    let other = ExVec::copy_of(&[0u64; 100]);
    let Ok(gift::GiveMessage::Gift(gift)) = server.recv() else {
        panic!("it was sent");
    };
    assert_eq!((&gift[..], &other[..]), (&[7; 100][..], &[0; 100][..]));
}

/// Tests that count every block of the heap run one at a time; others do not disturb them since they count
/// their own thread's share only.
static COUNTING: Mutex<()> = Mutex::new(());

#[test]
fn question_and_answer() {
    let before = held();
    let (mut client, mut server) = ask::channel().expect("memory");
    for number in 0..100 {
        client = {
            let client = client.question(number).expect("alive");
            let Ok(ask::AskMessage::Question(question, answering)) = server.recv() else {
                panic!("no question")
            };
            server = answering.reply(u64::from(question) * 2).expect("alive");
            let ask::AnswerMessage::Reply(reply, client) = client.recv().expect("alive");
            assert_eq!(reply, u64::from(number) * 2);
            client
        };
    }
    client.bye().expect("alive");
    assert!(matches!(server.recv(), Ok(ask::AskMessage::Bye)));
    assert_eq!(held(), before);
}

#[test]
fn nothing_yet_is_no_end() {
    let (client, server) = ask::channel().expect("memory");
    let server = match server.try_recv() {
        Err(TryRecvError::Empty(server)) => server,
        other => panic!("{other:?}"),
    };
    let server = match server.recv_timeout(Duration::from_millis(2)) {
        Err(TryRecvError::Empty(server)) => server,
        other => panic!("{other:?}"),
    };
    drop(client);
    assert!(matches!(
        server.try_recv(),
        Err(TryRecvError::Closed(ChannelClosed))
    ));
}

#[test]
fn what_was_sent_before_the_end_arrives() {
    let (client, server) = ask::channel().expect("memory");
    drop(client.question(7).expect("alive"));
    let Ok(ask::AskMessage::Question(7, server)) = server.recv() else {
        panic!("lost")
    };
    assert!(matches!(server.reply(1), Err(ChannelClosed)));
}

#[test]
fn a_waiting_peer_is_told_of_the_end() {
    let (client, server) = ask::channel().expect("memory");
    let server = Parcel::pack(server);
    let waiting = thread::spawn(move || server.open().recv().map(|_| ()));
    thread::sleep(Duration::from_millis(5));
    drop(client);
    assert_eq!(waiting.join().expect("no panic"), Err(ChannelClosed));
}

#[test]
fn everything_arrives_as_it_was() {
    let before = held();
    let (client, server) = goods::channel().expect("memory");
    let client = client.tree(tree(5)).expect("alive");
    let client = client.again(ExVec::copy_of(b"more")).expect("alive");
    let Ok(goods::ReadyMessage::Tree(tree, server)) = server.recv() else {
        panic!("no tree")
    };
    fn sum(node: &Node) -> u64 {
        let below = |child: &Option<ExBox<Node>>| child.as_ref().map_or(0, |node| sum(node));
        node.value + below(&node.left) + below(&node.right)
    }
    assert_eq!(sum(&tree), 57);
    let Ok(goods::Ready2Message::Again(bytes, server)) = server.recv() else {
        panic!("no bytes")
    };
    assert_eq!(&*bytes, b"more");
    let server = server.ok().expect("alive");
    let Ok(goods::BackMessage::Ok(client)) = client.recv() else {
        panic!("no answer")
    };
    let _waiting = client.wide(Wide([1, 2, 3, 4])).expect("alive");
    let Ok(goods::ReadyMessage::Wide(wide, _server)) = server.recv() else {
        panic!("nothing wide")
    };
    assert_eq!(wide, Wide([1, 2, 3, 4]));
    drop((_waiting, _server, tree, bytes));
    assert_eq!(held(), before);
}

#[test]
fn an_endpoint_travels_and_works_elsewhere() {
    let (client, server) = goods::channel().expect("memory");
    let (asking, answering) = ask::channel().expect("memory");
    let server = Parcel::pack(server);
    let far = thread::spawn(move || {
        let Ok(goods::ReadyMessage::Channel(asking, server)) = server.open().recv() else {
            panic!("no channel")
        };
        let ask::AnswerMessage::Reply(reply, _asking) =
            asking.question(20).expect("alive").recv().expect("alive");
        drop(server);
        reply
    });
    let _client = client.channel(asking).expect("alive");
    let Ok(ask::AskMessage::Question(20, answering)) = answering.recv() else {
        panic!("no question")
    };
    let _answering = answering.reply(21).expect("alive");
    assert_eq!(far.join().expect("no panic"), 21);
}

#[test]
fn an_endpoint_in_a_lost_message_is_closed() {
    let (client, server) = goods::channel().expect("memory");
    let (asking, answering) = ask::channel().expect("memory");
    let client = client.channel(asking).expect("alive");
    drop(server);
    assert!(matches!(answering.recv(), Err(ChannelClosed)));
    assert!(matches!(client.done(), Err(ChannelClosed)));
}

#[test]
fn lost_messages_are_freed_once() {
    let _counting = COUNTING.lock();
    let before = held();
    for order in 0..2 {
        let (client, server) = goods::channel().expect("memory");
        let client = client.tree(tree(4)).expect("alive");
        let client = client.again(ExVec::copy_of(&[0; 5000])).expect("alive");
        if order == 0 {
            drop(client);
            drop(server);
        } else {
            drop(server);
            drop(client);
        }
        assert_eq!(held(), before);
    }
}

#[test]
fn a_deep_tree_costs_no_stack() {
    let before = held();
    let list = |length: u64| {
        let mut list = None;
        for value in 0..length {
            list = Some(ExBox::new(Node {
                value,
                left: list,
                right: None,
            }));
        }
        list.expect("not empty")
    };
    let length = if cfg!(miri) { 300 } else { 1_000_000 };
    thread::Builder::new()
        .stack_size(128 << 10)
        .spawn(move || {
            drop(list(length));
            let (client, server) = goods::channel().expect("memory");
            let client = client.tree(list(length)).expect("alive");
            let Ok(goods::ReadyMessage::Tree(received, server)) = server.recv() else {
                panic!("lost")
            };
            drop(received);
            drop((client, server));
            let (client, server) = goods::channel().expect("memory");
            let client = client.tree(list(length)).expect("alive");
            drop(server);
            drop(client);
            assert_eq!(held(), 0);
        })
        .expect("a thread")
        .join()
        .expect("no overflow");
    assert_eq!(held(), before);
}

#[test]
fn select_finds_messages_and_ends() {
    let (a, server_a) = ask::channel().expect("memory");
    let (b, server_b) = ask::channel().expect("memory");
    let both = || select_for(&[&server_a, &server_b], Duration::from_millis(1));
    assert_eq!(both(), None);
    let b = b.question(1).expect("alive");
    assert_eq!(both(), Some(1));
    drop(a);
    assert_eq!(select(&[&server_a, &server_b]), 0);
    drop(b);
}

#[test]
fn select_is_woken() {
    let (a, server_a) = ask::channel().expect("memory");
    let (b, server_b) = ask::channel().expect("memory");
    let clients = Parcel::pack((a, b));
    let far = thread::spawn(move || {
        let (a, b) = clients.open();
        thread::sleep(Duration::from_millis(3));
        let b = b.question(5).expect("alive");
        // Not before the other has been woken, however busy the machine is.
        let _b = b.recv().expect("an answer");
        thread::sleep(Duration::from_millis(3));
        drop(a);
    });
    assert_eq!(select(&[&server_a, &server_b]), 1);
    let Ok(ask::AskMessage::Question(5, server_b)) = server_b.recv() else {
        panic!("lost")
    };
    let _server_b = server_b.reply(6).expect("alive");
    assert_eq!(select(&[&server_a]), 0);
    far.join().expect("no panic");
}

#[test]
fn what_is_sent_counts_until_the_answer() {
    let before = held();
    let (client, server) = goods::channel().expect("memory");
    let channel = held() - before;
    let client = client.bytes(ExVec::copy_of(&[0; 4096])).expect("alive");
    assert_eq!(held() - before, channel + 4096);
    let Ok(goods::ReadyMessage::Bytes(bytes, server)) = server.recv() else {
        panic!("lost")
    };
    assert_eq!(held() - before, channel + 2 * 4096, "sender and receiver");
    let client = client.done().expect("alive");
    let Ok(goods::Ready2Message::Done(server)) = server.recv() else {
        panic!("lost")
    };
    let _server = server.ok().expect("alive");
    let Ok(goods::BackMessage::Ok(_client)) = client.recv() else {
        panic!("lost")
    };
    assert_eq!(held() - before, channel + 4096, "the receiver alone");
    drop(bytes);
    assert_eq!(held() - before, channel);
}

#[test]
fn a_share_is_a_limit() {
    thread::spawn(|| {
        set_limit(Owner::HOST, 8192);
        let first = ExBox::try_new([0u8; 4000]).expect("within the limit");
        let second = ExBox::try_new([0u8; 4000]).expect("within the limit");
        let third = ExBox::try_new([0u8; 1]);
        assert_eq!(
            third.err(),
            Some(HeapError::Limit {
                held: 8192,
                limit: 8192,
                wanted: 64
            })
        );
        assert!(matches!(ask::channel(), Err(HeapError::Limit { .. })));
        drop((first, second));
        assert!(ask::channel().is_ok());
    })
    .join()
    .expect("no panic");
}

#[test]
fn who_holds_too_much_receives_no_more() {
    let (client, server) = goods::channel().expect("memory");
    let _client = client.bytes(ExVec::copy_of(&[0; 4096])).expect("alive");
    let server = Parcel::pack(server);
    let ended = thread::spawn(move || {
        let server = server.open();
        set_limit(Owner::HOST, 64);
        server.recv().map(|_| ())
    });
    let reason = ended.join().expect_err("over the limit");
    assert!(matches!(
        reason.downcast_ref(),
        Some(HeapError::Limit { limit: 64, .. })
    ));
}

#[test]
fn contracts_are_told_apart() {
    let (client, _server) = ask::channel().expect("memory");
    let any = client.into_any();
    assert_eq!((any.info().name, any.state()), ("ask", "Ask"));
    let any = goods::Client::<goods::Ready>::from_any(any)
        .expect_err("another contract")
        .0;
    let any = ask::Server::<ask::Ask>::from_any(any)
        .expect_err("another side")
        .0;
    let any = ask::Client::<ask::Answer>::from_any(any)
        .expect_err("another state")
        .0;
    assert!(ask::Client::<ask::Ask>::from_any(any).is_ok());
}

#[test]
fn a_leaked_endpoint_and_block_are_on_their_owners_list() {
    thread::spawn(|| {
        let (client, server) = ask::channel().expect("memory");
        std::mem::forget(server);
        std::mem::forget(tree(3));
        let held_before = held();
        assert!(held_before > 15 * 64);
        let book = accounts::of(Owner::HOST);
        crate::exchange::walk::end(book);
        assert_eq!(held(), 0);
        std::mem::forget(client);
    })
    .join()
    .expect("no panic");
}

#[test]
fn bounds_are_the_contracts() {
    use super::{Contract, Side};
    assert_eq!(goods::Contract::INFO.bound(Side::Server), 2);
    assert_eq!(goods::Contract::INFO.bound(Side::Client), 1);
    assert_ne!(goods::Contract::INFO.digest, ask::Contract::INFO.digest);
    assert!(census().in_use <= census().ever);
}
