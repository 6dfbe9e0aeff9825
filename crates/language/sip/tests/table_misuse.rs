//! The kernel's table, misused: each argument of each call that can be wrong, and what the call answers. None does
//! anything but answer, and the caller goes on.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "one for each call: pointers are null, misaligned, or to as much as the call says"
)]

mod host;

use std::num::NonZeroUsize;
use std::ptr::{null, null_mut};
use std::sync::Mutex;

use host::host;
use mullion_sip::channel::Contract;
use mullion_sip::heap::ProcessHeaps;
use mullion_sip::kernel::{
    Argument, Channel, ProcessEnd, ProcessStatistics, Refusal, WAITS, Wish, kernel, number_of,
};
use mullion_sip::process::{Cause, Limits, Options, Program, Rights, spawn};
use mullion_sip::{ExBox, ExVec, Exchange, contract, thread, wait};
use mullion_sip_hosting::Start;

#[global_allocator]
static HEAPS: ProcessHeaps = ProcessHeaps;

contract! {
    /// For the test.
    pub mod word { Word: client { Say(bool) -> Said, Much(ExVec<u64>) -> Said } Said: server { Heard -> end } }
}
contract! {
    /// For the test.
    pub mod other { Word: client { Say(bool) -> end } }
}
contract! {
    /// For the test.
    pub mod bearer { Bear: client { Take(super::word::Client<super::word::Word>) -> end, Deep(ExBox<super::Chain>) -> end } }
}
contract! {
    /// For the test.
    pub mod unknown { Word: client { Say(u8) -> end } }
}

/// As deep as somebody makes it.
#[derive(Exchange)]
pub struct Chain(Option<ExBox<Chain>>);

const NOBODY: u64 = 77 << 32 | 5;
const SAY: u32 = 0;
const MUCH: u32 = 1;
const NOW: u64 = 0;

#[track_caller]
fn refused(answer: u32, refusal: Refusal) {
    assert_eq!(answer, refusal as u32, "{refusal:?}");
}

#[track_caller]
fn done(answer: u32) {
    assert_eq!(answer, 0);
}

/// One counts blocks of the whole heap.
static ONE: Mutex<()> = Mutex::new(());

/// Runs `main` in a process that may bind and look up names below `/m`, with the contracts `word`, `other` and `bearer` and
/// the program `idle` on offer.
fn in_process(main: fn(())) {
    let _one = ONE.lock();
    run(main);
}

fn run(main: fn(())) {
    let workers = NonZeroUsize::new(1);
    host().start(Start { workers }).expect("a worker");
    let contracts = [
        word::Contract::INFO,
        other::Contract::INFO,
        bearer::Contract::INFO,
    ];
    contracts
        .into_iter()
        .for_each(|contract| host().offer_contract(contract));
    // SAFETY: they keep nothing.
    let (idle, main) = unsafe { (Program::new("idle", idle), Program::new("misuse", main)) };
    host().offer_program(idle);
    let options = Options {
        limits: Limits {
            memory: 1 << 20,
            exchange: 64 << 10,
            children: 2,
            ..Limits::default()
        },
        rights: Rights::none().bind("/m").look_up("/m"),
        ..Options::default()
    };
    let exit = spawn(main, (), &options).expect("a process").wait();
    assert_eq!(exit.cause, Cause::Returned, "{}", exit.message);
}

fn idle(argument: Argument) {
    let _end = argument.end;
    loop {
        wait::park();
    }
}

fn number(contract: &'static mullion_sip::channel::Info) -> u32 {
    let mut number = 0;
    // SAFETY: both are there.
    done(unsafe { (kernel().contract)(contract.digest.0.as_ptr(), &mut number) });
    number
}

fn pair(contract: &'static mullion_sip::channel::Info) -> (u64, u64) {
    let (mut client, mut server) = (0, 0);
    // SAFETY: both are there.
    done(unsafe { (kernel().create_channel)(number(contract), &mut client, &mut server) });
    (client, server)
}

fn word() -> (u64, u64) {
    pair(word::Contract::INFO)
}

fn send(channel: u64, message: u32, bytes: &[u8]) -> u32 {
    // SAFETY: the table is the kernel's, and the bytes live as long as the call.
    unsafe { (kernel().send)(channel, message, bytes.as_ptr(), bytes.len()) }
}

fn receive(channel: u64, deadline: u64, room: &mut [u8]) -> u32 {
    let (mut message, mut length) = (0, 0);
    let (start, bytes) = (room.as_mut_ptr(), room.len());
    unsafe { (kernel().receive)(channel, deadline, &mut message, start, bytes, &mut length) }
}

fn bind(path: &str, contract: u32) -> u32 {
    unsafe { (kernel().bind)(path.as_ptr(), path.len(), contract) }
}

fn accept(path: &str, deadline: u64) -> u32 {
    let mut channel = 0;
    unsafe { (kernel().accept)(path.as_ptr(), path.len(), deadline, &mut channel) }
}

fn look_up(path: &str, channel: u64) -> u32 {
    unsafe { (kernel().look_up)(path.as_ptr(), path.len(), channel) }
}

fn program(name: &str) -> u32 {
    let mut number = 0;
    done(unsafe { (kernel().program)(name.as_ptr(), name.len(), &mut number) });
    number
}

fn create(program: u32, wish: &Wish, channel: u64) -> (u32, u64) {
    let mut child = 0;
    let answer = unsafe { (kernel().create_process)(program, wish, 0, channel, &mut child) };
    (answer, child)
}

fn wish() -> Wish {
    Wish {
        size: size_of::<Wish>() as u32,
        ..Wish::default()
    }
}

fn wait_for(child: u64, deadline: u64) -> (u32, u32) {
    let mut end = ProcessEnd {
        cause: 99,
        status: 0,
        length: 0,
        message: [0; 124],
    };
    let answer = unsafe { (kernel().wait)(child, deadline, &mut end) };
    (answer, end.cause)
}

#[test]
fn the_host_has_nothing_by_number() {
    in_process(|()| ());
    let (mut client, mut server) = (0, 0);
    let contract = number(word::Contract::INFO);
    refused(
        unsafe { (kernel().create_channel)(contract, &mut client, &mut server) },
        Refusal::NoProcess,
    );
    refused(bind("/m/host", contract), Refusal::NoProcess);
    refused(create(program("idle"), &wish(), 0).0, Refusal::NoProcess);
    let mut about = Channel {
        contract: 0,
        side: 0,
        state: 0,
        sends: 0,
    };
    refused(
        unsafe { (kernel().channel)(NOBODY, &mut about) },
        Refusal::NoProcess,
    );
    refused((kernel().close)(NOBODY), Refusal::NoProcess);
    refused((kernel().kill)(NOBODY), Refusal::Unknown);
}

#[test]
fn contract_digest_and_number() {
    in_process(|()| {
        let mut number = 0;
        let digest = unknown::Contract::INFO.digest.0;
        refused(
            unsafe { (kernel().contract)(digest.as_ptr(), &mut number) },
            Refusal::Unknown,
        );
        refused(
            unsafe { (kernel().contract)(null(), &mut number) },
            Refusal::Null,
        );
        refused(
            unsafe { (kernel().contract)(digest.as_ptr(), null_mut()) },
            Refusal::Null,
        );
        let odd = (&raw mut number).wrapping_byte_add(1);
        refused(
            unsafe { (kernel().contract)(digest.as_ptr(), odd) },
            Refusal::Null,
        );
    });
}

#[test]
fn create_channel_contract_and_places() {
    in_process(|()| {
        let (mut client, mut server) = (3, 4);
        for contract in [0, 1000, u32::MAX] {
            refused(
                unsafe { (kernel().create_channel)(contract, &mut client, &mut server) },
                Refusal::Unknown,
            );
        }
        let contract = number(word::Contract::INFO);
        refused(
            unsafe { (kernel().create_channel)(contract, null_mut(), &mut server) },
            Refusal::Null,
        );
        refused(
            unsafe { (kernel().create_channel)(contract, &mut client, null_mut()) },
            Refusal::Null,
        );
        assert_eq!((client, server), (3, 4), "nothing was written");
    });
}

#[test]
fn create_channel_beyond_the_limit() {
    in_process(|()| {
        let contract = number(word::Contract::INFO);
        let (mut client, mut server, mut made) = (0, 0, 0);
        let last = loop {
            match unsafe { (kernel().create_channel)(contract, &mut client, &mut server) } {
                0 => made += 1,
                refusal => break refusal,
            }
        };
        refused(last, Refusal::NoMemory);
        assert!((10..1000).contains(&made), "{made}");
        done((kernel().close)(client));
        done((kernel().close)(server));
        word();
    });
}

/// Any number that is not the caller's own end.
#[test]
fn numbers_of_channels() {
    in_process(|()| {
        let (client, server) = word();
        done((kernel().close)(server));
        let (_, again) = word();
        assert_ne!(server, again, "an old number is nobody's");
        for number in [
            0,
            1,
            NOBODY,
            server,
            client + 1000,
            client ^ 1 << 63,
            u64::MAX,
        ] {
            let mut about = Channel {
                contract: 0,
                side: 0,
                state: 0,
                sends: 0,
            };
            refused(
                unsafe { (kernel().channel)(number, &mut about) },
                Refusal::Unknown,
            );
            refused(send(number, SAY, &[1]), Refusal::Unknown);
            refused(receive(number, NOW, &mut [0; 8]), Refusal::Unknown);
            refused((kernel().close)(number), Refusal::Unknown);
            refused(look_up("/m/x", number), Refusal::Unknown);
            let mut index = 0;
            refused(
                unsafe { (kernel().wait_any)(&number, 1, NOW, &mut index) },
                Refusal::Unknown,
            );
            if number != 0 {
                refused(create(program("idle"), &wish(), number).0, Refusal::Unknown);
            }
        }
        refused(
            unsafe { (kernel().channel)(client, null_mut()) },
            Refusal::Null,
        );
    });
}

#[test]
fn send_message_and_bytes() {
    in_process(|()| {
        let (client, server) = word();
        for message in [2, 3, 0xffff, 0x1_0000, u32::MAX] {
            refused(send(client, message, &[]), Refusal::OutOfTurn);
        }
        refused(send(server, 2, &[]), Refusal::OutOfTurn);
        refused(
            unsafe { (kernel().send)(client, SAY, null(), 1) },
            Refusal::Null,
        );
        refused(
            unsafe { (kernel().send)(client, SAY, null(), usize::MAX) },
            Refusal::Null,
        );
        let byte = 1;
        refused(
            unsafe { (kernel().send)(client, SAY, &byte, usize::MAX) },
            Refusal::TooLong,
        );
        refused(send(client, SAY, &[]), Refusal::NotAMessage);
        refused(send(client, SAY, &[2]), Refusal::NotAMessage);
        refused(send(client, SAY, &[1, 0]), Refusal::NotAMessage);
        // A count without values, one that no memory has, and a byte too many behind a good one.
        refused(
            send(client, MUCH, &9u64.to_le_bytes()),
            Refusal::NotAMessage,
        );
        refused(send(client, MUCH, &[0xff; 8]), Refusal::NotAMessage);
        let mut much = 1u64.to_le_bytes().to_vec();
        much.extend([7; 9]);
        refused(send(client, MUCH, &much), Refusal::NotAMessage);
        // More than the sender may hold: as bytes, and as what they become.
        refused(send(client, MUCH, &vec![0; 70_000]), Refusal::NoMemory);
        let mut much = 8_100u64.to_le_bytes().to_vec();
        much.resize(8 + 8 * 8_100, 0);
        refused(send(client, MUCH, &much), Refusal::NoMemory);
        let mut statistics = usage();
        let held = statistics.exchange;
        // After all of that it is as it was.
        done(send(client, SAY, &[1]));
        refused(send(client, SAY, &[1]), Refusal::OutOfTurn);
        done(receive(server, NOW, &mut [0; 1]));
        done((kernel().close)(client));
        refused(send(server, 2, &[]), Refusal::Closed);
        done((kernel().close)(server));
        statistics = usage();
        assert_eq!((held > 0, statistics.exchange), (true, 0));
    });
}

/// What was sent counts until it is answered.
#[test]
fn flooding_by_bytes_is_bounded_by_the_share() {
    in_process(|()| {
        let mut much = 1000u64.to_le_bytes().to_vec();
        much.resize(8 + 8 * 1000, 0);
        let ends: Vec<_> = (0..8).map(|_| word()).collect();
        let sent = ends
            .iter()
            .take_while(|(client, _)| send(*client, MUCH, &much) == 0);
        assert_eq!(sent.count(), 7, "of 64 KiB, 8 each, and the channels");
    });
}

fn usage() -> ProcessStatistics {
    let mut all = std::mem::MaybeUninit::uninit();
    unsafe {
        done((kernel().statistics)(0, all.as_mut_ptr()));
        all.assume_init()
    }
}

#[test]
fn receive_deadline_places_and_room() {
    in_process(|()| {
        let (client, server) = word();
        refused(receive(server, NOW, &mut [0; 8]), Refusal::Deadline);
        refused(
            receive(server, (kernel().now)() + 1_000_000, &mut [0; 8]),
            Refusal::Deadline,
        );
        refused(receive(client, NOW, &mut [0; 8]), Refusal::OutOfTurn);
        done(send(client, SAY, &[1]));
        let (mut message, mut length, mut room) = (5, 6, [9; 8]);
        let bytes = room.as_mut_ptr();
        let receive = kernel().receive;
        refused(
            unsafe { receive(server, NOW, null_mut(), bytes, 8, &mut length) },
            Refusal::Null,
        );
        refused(
            unsafe { receive(server, NOW, &mut message, null_mut(), 8, &mut length) },
            Refusal::Null,
        );
        refused(
            unsafe { receive(server, NOW, &mut message, bytes, 8, null_mut()) },
            Refusal::Null,
        );
        refused(
            unsafe { receive(server, NOW, &mut message, bytes, usize::MAX, &mut length) },
            Refusal::TooLong,
        );
        refused(
            unsafe { receive(server, NOW, &mut message, null_mut(), 0, &mut length) },
            Refusal::TooLong,
        );
        assert_eq!(
            (message, length, room),
            (5, 6, [9; 8]),
            "nothing was written"
        );
        done(unsafe { receive(server, NOW, &mut message, bytes, 8, &mut length) });
        assert_eq!((message, length, room[0]), (SAY, 1, 1));
    });
}

/// A typed thread of the same process sends what has no bytes.
#[test]
fn a_message_that_has_no_bytes() {
    in_process(|()| {
        let (client, server) = bearer::channel().expect("memory");
        let server = number_of(server.into_any()).expect("few");
        let (inner, _server) = word::channel().expect("memory");
        client.take(inner).expect("there");
        refused(receive(server, NOW, &mut [0; 64]), Refusal::NoBytes);
        done((kernel().close)(server));
        let (client, server) = bearer::channel().expect("memory");
        let server = number_of(server.into_any()).expect("few");
        let chain = (0..300).fold(Chain(None), |chain, _| Chain(Some(ExBox::new(chain))));
        client.deep(ExBox::new(chain)).expect("there");
        refused(receive(server, NOW, &mut [0; 1024]), Refusal::NoBytes);
        done((kernel().close)(server));
    });
}

/// The bytes of a payload with an end in it do not exist.
#[test]
fn an_end_cannot_be_made_of_bytes() {
    in_process(|()| {
        let (client, _server) = pair(bearer::Contract::INFO);
        for length in 0..32 {
            refused(send(client, 0, &vec![0; length]), Refusal::NotAMessage);
        }
        // As deep as it may be, on a stack of any depth; and one deeper.
        let deep = |depth: usize| {
            let mut bytes = vec![1; depth];
            bytes.push(0);
            bytes
        };
        refused(send(client, 1, &deep(400)), Refusal::NotAMessage);
        done(send(client, 1, &deep(200)));
    });
}

#[test]
fn wait_any_channels_count_deadline_and_index() {
    in_process(|()| {
        let (client, server) = word();
        let wait_any = kernel().wait_any;
        let many = vec![server; WAITS + 1];
        let mut index = 9;
        refused(
            unsafe { wait_any(null(), 1, NOW, &mut index) },
            Refusal::Null,
        );
        refused(
            unsafe { wait_any(many.as_ptr().wrapping_byte_add(4), 1, NOW, &mut index) },
            Refusal::Null,
        );
        refused(
            unsafe { wait_any(many.as_ptr(), many.len(), NOW, &mut index) },
            Refusal::TooLong,
        );
        refused(
            unsafe { wait_any(many.as_ptr(), usize::MAX, NOW, &mut index) },
            Refusal::TooLong,
        );
        refused(
            unsafe { wait_any(many.as_ptr(), 1, NOW, null_mut()) },
            Refusal::Null,
        );
        refused(
            unsafe { wait_any(null(), 0, NOW, &mut index) },
            Refusal::Deadline,
        );
        refused(
            unsafe { wait_any(&client, 1, NOW, &mut index) },
            Refusal::OutOfTurn,
        );
        // One of several that is none spoils all.
        refused(
            unsafe { wait_any([server, NOBODY].as_ptr(), 2, NOW, &mut index) },
            Refusal::Unknown,
        );
        // The same one twice is no harm.
        let soon = (kernel().now)() + 1_000_000;
        refused(
            unsafe { wait_any([server, server].as_ptr(), 2, soon, &mut index) },
            Refusal::Deadline,
        );
        assert_eq!(index, 9, "nothing was written");
        done((kernel().close)(client));
        done(unsafe { wait_any(many.as_ptr(), WAITS, u64::MAX, &mut index) });
        assert_eq!(index, 0);
    });
}

/// While one thread waits at an end no other can take it away.
#[test]
fn an_end_where_another_thread_waits() {
    in_process(|()| {
        let (client, server) = word();
        thread::spawn(move || done(receive(server, u64::MAX, &mut [0; 8]))).expect("a thread");
        thread::yield_now();
        refused(receive(server, NOW, &mut [0; 8]), Refusal::Busy);
        refused((kernel().close)(server), Refusal::Busy);
        refused(look_up("/m/x", server), Refusal::Busy);
        refused(create(program("idle"), &wish(), server).0, Refusal::Busy);
        refused(send(server, 2, &[]), Refusal::Busy);
        done(send(client, SAY, &[1]));
        thread::yield_now();
        done((kernel().close)(server));
    });
}

#[test]
fn bind_path_and_contract() {
    in_process(|()| {
        let contract = number(word::Contract::INFO);
        refused(
            unsafe { (kernel().bind)(null(), 4, contract) },
            Refusal::Null,
        );
        refused(
            unsafe { (kernel().bind)([0xff, 0xfe].as_ptr(), 2, contract) },
            Refusal::Malformed,
        );
        refused(bind("", contract), Refusal::Malformed);
        refused(bind("m", contract), Refusal::Malformed);
        refused(
            bind(&format!("/m/{}", "x".repeat(255)), contract),
            Refusal::Malformed,
        );
        refused(bind("/elsewhere", contract), Refusal::NotPermitted);
        for contract in [0, 1000, u32::MAX] {
            refused(bind("/m/bind", contract), Refusal::Unknown);
        }
        done(bind("/m/bind", contract));
        refused(bind("/m/bind", contract), Refusal::Taken);
        let path = "/m/bind";
        refused(unsafe { (kernel().unbind)(null(), 4) }, Refusal::Null);
        refused(
            unsafe { (kernel().unbind)(path.as_ptr(), 4) },
            Refusal::Unbound,
        );
        done(unsafe { (kernel().unbind)(path.as_ptr(), path.len()) });
        refused(
            unsafe { (kernel().unbind)(path.as_ptr(), path.len()) },
            Refusal::Unbound,
        );
        for name in 0..mullion_sip::process::names::NAMES {
            done(bind(&format!("/m/{name}"), contract));
        }
        refused(bind("/m/bind", contract), Refusal::TooMany);
    });
}

#[test]
fn accept_path_deadline_and_channel() {
    in_process(|()| {
        refused(accept("/m/accept", NOW), Refusal::Unbound);
        done(bind("/m/accept", number(word::Contract::INFO)));
        let path = "/m/accept";
        refused(
            unsafe { (kernel().accept)(null(), 4, NOW, &mut 0) },
            Refusal::Null,
        );
        refused(
            unsafe { (kernel().accept)(path.as_ptr(), path.len(), NOW, null_mut()) },
            Refusal::Null,
        );
        refused(accept(path, NOW), Refusal::Deadline);
        refused(
            accept(path, (kernel().now)() + 1_000_000),
            Refusal::Deadline,
        );
        thread::spawn(move || refused(accept(path, u64::MAX), Refusal::Unbound)).expect("a thread");
        thread::yield_now();
        refused(accept(path, NOW), Refusal::Busy);
        // Who waits is told that the name is gone.
        done(unsafe { (kernel().unbind)(path.as_ptr(), path.len()) });
        thread::yield_now();
        assert_eq!(usage().threads, 1);
    });
}

#[test]
fn look_up_path_and_channel() {
    in_process(|()| {
        done(bind("/m/look", number(word::Contract::INFO)));
        let (_client, server) = pair(other::Contract::INFO);
        refused(look_up("/m/look", server), Refusal::ContractDiffers);
        refused(look_up("/m/nobody", server), Refusal::Unbound);
        refused(look_up("/elsewhere", server), Refusal::NotPermitted);
        refused(
            unsafe { (kernel().look_up)(null(), 4, server) },
            Refusal::Null,
        );
        refused(
            unsafe { (kernel().look_up)([0xff].as_ptr(), 1, server) },
            Refusal::Malformed,
        );
        // Each time the caller has kept it.
        done((kernel().close)(server));
        let answers = (0..).map(|_| look_up("/m/look", word().1));
        let taken = answers.take_while(|answer| *answer == 0).count();
        assert_eq!(taken, mullion_sip::process::BACKLOG);
        refused(look_up("/m/look", word().1), Refusal::Busy);
    });
}

#[test]
fn program_name_and_number() {
    in_process(|()| {
        let mut number = 0;
        let ask = kernel().program;
        refused(
            unsafe { ask("idler".as_ptr(), 5, &mut number) },
            Refusal::Unknown,
        );
        refused(unsafe { ask(null(), 0, &mut number) }, Refusal::Unknown);
        refused(unsafe { ask(null(), 4, &mut number) }, Refusal::Null);
        refused(
            unsafe { ask([0xff].as_ptr(), 1, &mut number) },
            Refusal::Malformed,
        );
        refused(
            unsafe { ask("idle".as_ptr(), 4, null_mut()) },
            Refusal::Null,
        );
    });
}

#[test]
fn create_process_program_wish_and_child() {
    in_process(|()| {
        let idle = program("idle");
        for program in [0, idle + 1000, u32::MAX] {
            refused(create(program, &wish(), 0).0, Refusal::Unknown);
        }
        refused(
            unsafe { (kernel().create_process)(idle, &wish(), 0, 0, null_mut()) },
            Refusal::Null,
        );
        let odd = (&raw const *Box::leak(Box::new([wish(); 2])))
            .cast::<Wish>()
            .wrapping_byte_add(1);
        refused(
            unsafe { (kernel().create_process)(idle, odd, 0, 0, &mut 0) },
            Refusal::Null,
        );
        let wrong = [
            Wish { size: 0, ..wish() },
            Wish {
                size: wish().size + 8,
                ..wish()
            },
            Wish {
                rights: 2,
                ..wish()
            },
            Wish {
                reserved: 1,
                ..wish()
            },
        ];
        for wish in wrong {
            refused(create(idle, &wish, 0).0, Refusal::Malformed);
        }
        // Any worker and any limit are possible, and none is more than there is.
        let (answer, child) = create(
            idle,
            &Wish {
                home: u32::MAX,
                memory: u64::MAX,
                slice: u64::MAX,
                ..wish()
            },
            0,
        );
        done(answer);
        let (answer, second) = create(
            idle,
            &Wish {
                memory: 1,
                threads: 1,
                ..wish()
            },
            0,
        );
        done(answer);
        let (_client, server) = word();
        refused(create(idle, &wish(), server).0, Refusal::TooMany);
        refused((kernel().close)(server), Refusal::Unknown);
        for child in [child, second] {
            done((kernel().kill)(child));
            assert_eq!(wait_for(child, u64::MAX), (0, 3));
        }
    });
}

#[test]
fn kill_and_wait_child_deadline_and_end() {
    in_process(|()| {
        let (answer, child) = create(program("idle"), &wish(), 0);
        done(answer);
        let own = (kernel().process)();
        for number in [0, own, child ^ 1 << 32, child + 1, u64::MAX] {
            refused((kernel().kill)(number), Refusal::Unknown);
            refused(wait_for(number, NOW).0, Refusal::Unknown);
            if number != 0 && number != own {
                let mut all = std::mem::MaybeUninit::<ProcessStatistics>::uninit();
                refused(
                    unsafe { (kernel().statistics)(number, all.as_mut_ptr()) },
                    Refusal::Unknown,
                );
            }
        }
        refused(
            unsafe { (kernel().statistics)(0, null_mut()) },
            Refusal::Null,
        );
        refused(
            unsafe { (kernel().wait)(child, NOW, null_mut()) },
            Refusal::Null,
        );
        refused(wait_for(child, NOW).0, Refusal::Deadline);
        thread::spawn(move || assert_eq!(wait_for(child, u64::MAX), (0, 3))).expect("a thread");
        thread::yield_now();
        refused(wait_for(child, NOW).0, Refusal::Busy);
        done((kernel().kill)(child));
        while usage().threads > 1 {
            thread::yield_now();
        }
        refused((kernel().kill)(child), Refusal::Unknown);
        // A child that the process has as a value is not one by number.
        // SAFETY: it keeps nothing.
        let typed = unsafe { Program::new("typed", |()| wait::park()) };
        let typed = spawn(typed, (), &Options::default()).expect("a process");
        refused((kernel().kill)(typed.owner().to_bits()), Refusal::Unknown);
        refused(wait_for(typed.owner().to_bits(), NOW).0, Refusal::Unknown);
        typed.kill();
        assert_eq!(typed.wait().cause, Cause::Killed);
    });
}

/// What a process has by number goes with it, however it ends, and nothing stays.
#[test]
fn nothing_is_left_of_a_process_that_is_ended_with_ends_by_number() {
    host()
        .start(Start {
            workers: NonZeroUsize::new(1),
        })
        .expect("a worker");
    let _one = ONE.lock();
    let before = mullion_sip::exchange::census().in_use;
    run(|()| {
        let (client, _) = word();
        done(send(client, SAY, &[1]));
        done(bind("/m/left", number(word::Contract::INFO)));
        done(look_up("/m/left", word().1));
    });
    assert_eq!(mullion_sip::exchange::census().in_use, before);
}
