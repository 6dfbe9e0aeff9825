//! Blocks whose pages change hands, with both ends in this program: what a hostile peer can claim. What happens between
//! OS processes is in `crates/process/hip/tests/remapped.rs`.

mod host;

use std::collections::HashSet;
use std::fs::File;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use host::host;
use mullion_sip::channel::{ChannelClosed, Contract};
use mullion_sip::exchange::census;
use mullion_sip::{ExBox, ExVec, Exchange, contract};
use mullion_sip_hosting::Start;
use mullion_sip_hosting::common_memory::{BYTES, Member, Sharing, arrived, holders, share};
use mullion_sip_hosting::remote::{LINK_BYTES, Link, Memory, join, line_bytes};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};

contract! {
    mod talk {
        Ask: client { Bytes(ExVec<u8>) -> Answer, Deep((ExVec<u8>, super::Deep)) -> Answer }
        Answer: server { Back(ExVec<u8>) -> end }
    }
}

/// Boxes in each other.
#[derive(Exchange, Debug)]
#[repr(u8)]
enum Deep {
    Nothing,
    Box(ExBox<Deep>),
}

/// This program, which is both sides.
const ME: Member = Member { part: 2, life: 9 };
const LENT: u64 = 1 << 63;
/// Where the ring of messages to the server is: two lines, and behind it the client's ring of one slot.
const RING: u64 = 128 + 64;

fn file(bytes: usize) -> OwnedFd {
    let flags = MemfdFlags::ALLOW_SEALING | MemfdFlags::CLOEXEC;
    let file = memfd_create("shared", flags).expect("memory");
    ftruncate(&file, bytes as u64).expect("memory");
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL).expect("sealed");
    file
}

fn link() -> Arc<Link> {
    let bells = Memory::map(file(LINK_BYTES).as_fd(), LINK_BYTES).expect("mapped");
    Link::new(bells, 1, "peer", Some(ME.life)).expect("large enough")
}

/// A server's end, joined to a line whose other side has ended.
fn server(line: &OwnedFd) -> talk::Server<talk::Ask> {
    let link = link();
    let (far, server) = talk::channel().expect("memory");
    let memory = Memory::map(line.as_fd(), 1).expect("mapped");
    join(far.into_any(), &link, memory).expect("joined");
    link.take_down();
    server
}

/// What a server gets from a peer that says that it has lent ten bytes in a block.
fn lent(number: u32) -> Result<talk::AskMessage, ChannelClosed> {
    let line = file(line_bytes(talk::Contract::INFO));
    let memory = File::from(line.try_clone().expect("a descriptor"));
    let mut slot = [0; 28];
    slot[..8].copy_from_slice(&(1u64 << 16).to_le_bytes());
    slot[8..16].copy_from_slice(&12u64.to_le_bytes());
    slot[16..24].copy_from_slice(&(LENT | 10).to_le_bytes());
    slot[24..].copy_from_slice(&number.to_le_bytes());
    memory.write_all_at(&slot, RING).expect("written");
    server(&line).recv()
}

#[test]
fn only_blocks_of_pages_that_change_hands_are_taken() {
    host()
        .start(Start {
            workers: NonZeroUsize::new(1),
        })
        .expect("workers");
    host().on_fault(|_, _, _| {});
    let common_memory = file(BYTES);
    assert!(share(common_memory.as_fd(), ME, Sharing::Remapped).expect("shared"));
    assert!(!share(common_memory.as_fd(), ME, Sharing::Open).expect("shared already"));
    let common_memory = File::from(common_memory);
    let given = u32::from(ME.life) | (u32::from(ME.life) << 16);
    let claim = |number: u32, word: u32| {
        let (span, place) = (number >> 27, u64::from(number & 0x7ff_ffff));
        let at = (9 << 33) + (u64::from(span - 22) << 25) + 4 * place;
        common_memory
            .write_all_at(&word.to_le_bytes(), at)
            .expect("written");
    };
    // Of a member with part 17: of 256 KiB, which is no size here; of 1 MiB, given to another, and to us.
    let small = (26 << 27) | (17 * ((1 << 15) / 32));
    let large = (27 << 27) | (17 * ((1 << 13) / 32));
    claim(small, given);
    assert!(lent(small).is_err());
    claim(large, 8 | (u32::from(ME.life) << 16));
    assert!(lent(large).is_err());
    claim(large, given);
    assert!(lent((30 << 27) | 0x7ff_ffff).is_err());
    let Ok(talk::AskMessage::Bytes(mut taken, _)) = lent(large) else {
        panic!("not taken")
    };
    assert_eq!((taken.len(), arrived()), (10, 1));
    taken.fill(3);
    // Once it is ours it does not come again; and then it is nobody's.
    claim(large, given);
    assert!(lent(large).is_err());
    assert_eq!(*taken, [3; 10]);
    drop(taken);
    claim(small, 0);
    assert!(holders().is_empty(), "{:?}", holders());
    // Our own are made there, and only large ones.
    let place = |bytes: usize| ExVec::<u8>::with_capacity(bytes).capacity();
    assert_eq!([1 << 19, (1 << 19) + 1].map(place), [1 << 19, 1 << 20]);
    what_cannot_be_sent_after_all_is_used_again();
}

/// The vector has been closed when the boxes turn out to lie too deep.
fn what_cannot_be_sent_after_all_is_used_again() {
    let before = census().in_use;
    let mut places = HashSet::new();
    for value in 0..20 {
        let mut bytes = ExVec::copy_of(&vec![value; 1 << 20]);
        assert!(bytes.iter().all(|byte| *byte == value));
        bytes.fill(0);
        places.insert(bytes.as_ptr().addr());
        let mut deep = Deep::Nothing;
        for _ in 0..300 {
            deep = Deep::Box(ExBox::new(deep));
        }
        let (client, far) = talk::channel().expect("memory");
        let line = file(line_bytes(talk::Contract::INFO));
        let memory = Memory::map(line.as_fd(), 1).expect("mapped");
        join(far.into_any(), &link(), memory).expect("joined");
        let sent = client.deep((bytes, deep));
        assert!(sent.and_then(|asked| asked.recv()).is_err());
    }
    assert!(places.len() <= 3, "{places:?}");
    // What was still on its way back before may have come meanwhile.
    assert!(census().in_use <= before, "{before}: {:?}", census());
    assert!(holders().is_empty(), "{:?}", holders());
}
