//! Values come back as they went, and no bytes do harm.

use std::mem::MaybeUninit;

use proptest::prelude::*;

use super::super::values::{from_bytes, to_bytes};
use super::*;
use crate::exchange::{ExBox, ExString, ExVec, HeapError};
use crate::{Exchange, contract};

/// Bytes of the longest message here. Miri has little memory, and takes a second for each thousand values.
const LONGEST: usize = if cfg!(miri) { 1 << 14 } else { 1 << 20 };
const MANY: u64 = if cfg!(miri) { 1000 } else { 1_000_000 };

#[derive(Exchange, PartialEq, Debug)]
struct Node {
    label: char,
    text: ExString,
    numbers: ExVec<u32>,
    pairs: [(bool, u8); 3],
    kind: Kind,
    children: ExVec<Node>,
    next: Option<ExBox<Node>>,
    verdict: Result<u16, i8>,
}

#[derive(Exchange, PartialEq, Debug)]
#[repr(u8)]
enum Kind {
    Nothing,
    Flag(bool),
    Sizes { low: u64, high: f32 },
}

/// Without padding, so it travels as it lies.
#[derive(Exchange, Clone, Copy, PartialEq, Debug)]
struct Plain {
    a: u64,
    b: [u16; 4],
}

#[derive(Exchange, Clone, Copy, PartialEq, Debug)]
struct Padded {
    a: u64,
    b: u8,
}

contract! {
    mod carries { Start: client { Take(ask::Client<ask::Ask>) -> end } }
}
contract! {
    mod ask { Ask: client { Question(Node) -> Answer, Bye -> end } Answer: server { Reply(Padded) -> Ask } }
}

/// A node as a description that owns nothing, for proptest.
#[derive(Clone, Debug)]
struct Sketch {
    label: char,
    text: String,
    numbers: Vec<u32>,
    flag: bool,
    kind: u8,
    children: Vec<Sketch>,
}

fn sketches() -> impl Strategy<Value = Sketch> {
    let leaf = (
        any::<char>(),
        prop::collection::vec(any::<char>(), 0..9),
        prop::collection::vec(any::<u32>(), 0..40),
        any::<bool>(),
        0..3u8,
    )
        .prop_map(|(label, text, numbers, flag, kind)| Sketch {
            label,
            text: text.into_iter().collect(),
            numbers,
            flag,
            kind,
            children: Vec::new(),
        });
    let (depth, size) = if cfg!(miri) { (2, 4) } else { (4, 24) };
    leaf.prop_recursive(depth, size, 4, |inner| {
        (inner.clone(), prop::collection::vec(inner, 0..4)).prop_map(|(mut sketch, children)| {
            sketch.children = children;
            sketch
        })
    })
}

fn build(sketch: &Sketch) -> Node {
    let mut children: Vec<Node> = sketch.children.iter().map(build).collect();
    let next = children.pop().map(ExBox::new);
    Node {
        label: sketch.label,
        text: ExString::from(sketch.text.as_str()),
        numbers: ExVec::copy_of(&sketch.numbers),
        pairs: [(sketch.flag, 1), (true, 2), (false, sketch.kind)],
        kind: match sketch.kind {
            0 => Kind::Nothing,
            1 => Kind::Flag(sketch.flag),
            _ => Kind::Sizes { low: 1, high: 0.5 },
        },
        children: children.into_iter().collect(),
        next,
        verdict: if sketch.flag { Ok(7) } else { Err(-7) },
    }
}

/// Through a place that is too small, so that the larger one is tried as well.
fn encode<T: Exchange>(value: &T) -> Result<Vec<u8>, EncodeError> {
    let bytes = to_bytes(value, LONGEST)?;
    let mut small = [MaybeUninit::uninit(); 48];
    let mut large = Vec::with_capacity(LONGEST);
    let mut writer = Writer::new(&mut small, &mut large.spare_capacity_mut()[..LONGEST]);
    value.encode(&mut writer)?;
    assert_eq!(writer.finish(), (bytes.len(), bytes.len() > 48));
    Ok(bytes)
}

use super::super::values::from_bytes as decode;

/// Blocks that this thread has taken and not given back.
fn taken() -> i64 {
    use std::sync::atomic::Ordering::Relaxed;
    let worker = crate::exchange::worker::current();
    worker.taken.load(Relaxed) as i64 - worker.returned.load(Relaxed) as i64
}

proptest! {
    #[test]
    fn what_is_read_is_what_was_written(sketch in sketches()) {
        let before = taken();
        let node = build(&sketch);
        let bytes = encode(&node).expect("neither long nor deep");
        let read: Node = decode(&bytes).expect("the same");
        prop_assert!(read == node);
        prop_assert_eq!(encode(&read).expect("as before"), bytes);
        drop((node, read));
        prop_assert_eq!(taken(), before);
    }

    #[test]
    fn damaged_bytes_are_a_value_or_an_error_and_lose_no_block(
        sketch in sketches(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let before = taken();
        let mut bytes = encode(&build(&sketch)).expect("neither long nor deep");
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok(node) = decode::<Node>(&bytes) {
            prop_assert_eq!(encode(&node).expect("it was read"), bytes.clone());
        }
        bytes.truncate(cut.index(bytes.len()));
        let _ = decode::<Node>(&bytes);
        prop_assert_eq!(taken(), before);
    }

    #[test]
    fn any_bytes_are_a_value_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let before = taken();
        let _ = decode::<Node>(&bytes);
        let _ = decode::<ExVec<ExVec<ExString>>>(&bytes);
        let _ = decode::<ExVec<Option<ExBox<Kind>>>>(&bytes);
        prop_assert_eq!(taken(), before);
    }
}

#[test]
fn only_what_has_no_padding_travels_as_it_lies() {
    const { assert!(Plain::PLAIN && !Padded::PLAIN && !Kind::PLAIN && !Node::PLAIN) };
    const { assert!(<(u32, u32)>::PLAIN && !<(u64, u8)>::PLAIN && !bool::PLAIN && !char::PLAIN) };
    let plain = Plain { a: 1, b: [2; 4] };
    assert_eq!(encode(&plain).expect("short").len(), 16);
    assert_eq!(encode(&Padded { a: 1, b: 2 }).expect("short").len(), 9);
    assert_eq!(decode(&encode(&plain).expect("short")), Ok(plain));
    let many: ExVec<Plain> = (0..100).map(|a| Plain { a, b: [3; 4] }).collect();
    assert_eq!(decode(&encode(&many).expect("short")), Ok(many));
}

#[test]
fn what_is_no_value_is_named() {
    assert_eq!(decode::<bool>(&[2]), Err(DecodeError::Invalid("bool")));
    assert_eq!(
        decode::<char>(&0xD800u32.to_le_bytes()),
        Err(DecodeError::Invalid("char"))
    );
    assert_eq!(
        decode::<Option<u8>>(&[7, 0]),
        Err(DecodeError::Invalid("Option"))
    );
    assert_eq!(
        decode::<Result<u8, u8>>(&[2, 0]),
        Err(DecodeError::Invalid("Result"))
    );
    assert_eq!(decode::<Kind>(&[3, 0]), Err(DecodeError::Invalid("Kind")));
    assert_eq!(
        decode::<ExString>(&[1, 0, 0, 0, 0, 0, 0, 0, 0xFF]),
        Err(DecodeError::Invalid("UTF-8"))
    );
    assert_eq!(decode::<u32>(&[1, 2, 3]), Err(DecodeError::Short));
    assert_eq!(decode::<u8>(&[1, 2, 3]), Err(DecodeError::Long(2)));
}

#[test]
fn counts_and_depths_are_bounded() {
    assert_eq!(
        decode::<ExVec<u8>>(&u64::MAX.to_le_bytes()),
        Err(DecodeError::Short)
    );
    // A million values of 1 KiB from a byte each would be a gigabyte.
    let mut many = MANY.to_le_bytes().to_vec();
    many.resize(8 + MANY as usize, 0);
    assert_eq!(
        decode::<ExVec<Option<[u64; 127]>>>(&many),
        Err(DecodeError::TooLarge)
    );
    // One block each, of a byte each.
    #[derive(Exchange)]
    struct Chain(Option<ExBox<Chain>>);
    assert!(matches!(
        decode::<Chain>(&[1; 300]),
        Err(DecodeError::TooDeep)
    ));
    let mut chain = Chain(None);
    for _ in 0..DEPTH {
        chain = Chain(Some(ExBox::new(chain)));
    }
    assert!(decode::<Chain>(&encode(&chain).expect("not too deep")).is_ok());
    let chain = Chain(Some(ExBox::new(chain)));
    assert_eq!(encode(&chain), Err(EncodeError::TooDeep));
    let long = ExVec::copy_of(&vec![0u8; LONGEST]);
    assert_eq!(encode(&long), Err(EncodeError::TooLong(LONGEST)));
}

#[test]
fn endpoints_stay() {
    let (client, _server) = ask::channel().expect("memory");
    assert_eq!(encode(&client), Err(EncodeError::Endpoint));
    assert!(decode::<ask::Client<ask::Ask>>(&[]).is_err());
    let _ = carries::channel().map_err(|error: HeapError| error);
}

#[test]
fn a_contract_knows_its_steps() {
    use crate::channel::Contract;
    let step = |from, next| Step { from, next };
    assert_eq!(
        ask::Contract::INFO.wire.steps,
        [step(0, 1), step(0, Step::END), step(1, 0)]
    );
    let wire = ask::Contract::INFO.wire;
    let mut payload = MaybeUninit::<Padded>::uninit();
    let mut reader = Reader::new(&[1, 0, 0, 0, 0, 0, 0, 0, 9]);
    // SAFETY: message 2 carries a `Padded`.
    unsafe { (wire.decode)(2, payload.as_mut_ptr().cast(), &mut reader) }.expect("a reply");
    // SAFETY: it was read.
    assert_eq!(unsafe { payload.assume_init() }, Padded { a: 1, b: 9 });
    // SAFETY: there is no such message.
    let none = unsafe { (wire.decode)(3, payload.as_mut_ptr().cast(), &mut reader) };
    assert!(none.is_err());
}

/// Who reads bytes has the blocks, and they count: not even by this may anybody hold more than his share.
#[test]
fn what_is_read_counts_for_its_reader() {
    let held = || crate::exchange::life::share_of(mullion_sip_core::owner::Owner::HOST).held;
    let bytes = to_bytes(&ExVec::copy_of(&[1u8; 1000]), LONGEST).expect("short");
    let before = held();
    let value: ExVec<u8> = from_bytes(&bytes).expect("a vector");
    assert_eq!(held(), before + 1024);
    drop(value);
    assert_eq!(held(), before);
}
