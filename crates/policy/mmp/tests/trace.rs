//! The trace format: what is written is read, and no damage goes unnoticed or panics.

use mullion_mmp::event::{
    MAX_ACCESS_BYTES, MAX_FETCH_BYTES, TraceEvent, TraceRequest, TraceSpan, TraceTarget,
};
use mullion_mmp::trace::{Header, MAGIC, TraceError, TraceReader, TraceWriter};
use mullion_supervisor::{DomainId, Level, Permission};
use proptest::prelude::*;

const BITS: u32 = 40;

fn address() -> impl Strategy<Value = u64> {
    prop_oneof![0u64..1 << 20, 0u64..(1 << BITS) - 8192]
}

fn span() -> impl Strategy<Value = TraceSpan> {
    (any::<u64>(), any::<u64>()).prop_map(|(address, bytes)| TraceSpan { address, bytes })
}

fn permission() -> impl Strategy<Value = Permission> {
    prop_oneof![
        Just(Permission::None),
        Just(Permission::Read),
        Just(Permission::ReadWrite),
        Just(Permission::ExecuteRead),
        Just(Permission::ReturnGate),
        any::<u32>().prop_map(|to| Permission::SwitchGate {
            to: DomainId::new(to)
        }),
    ]
}

fn request() -> impl Strategy<Value = TraceRequest> {
    let number = any::<u32>();
    prop_oneof![
        (span(), permission())
            .prop_map(|(span, permission)| TraceRequest::Mprot { span, permission }),
        (number, any::<bool>(), span(), permission()).prop_map(|(to, group, span, permission)| {
            TraceRequest::MprotExport {
                to: if group {
                    TraceTarget::Group(to)
                } else {
                    TraceTarget::Domain(to)
                },
                span,
                permission,
                export: [Level::None, Level::Read, Level::Full][to as usize % 3],
            }
        }),
        (number, span(), permission()).prop_map(|(child, span, permission)| {
            TraceRequest::Subdivide {
                child,
                span,
                permission,
            }
        }),
        number.prop_map(|domain| TraceRequest::FreeDomain { domain }),
        span().prop_map(|span| TraceRequest::PermAlloc { span }),
        span().prop_map(|span| TraceRequest::PermFree { span }),
        (number, span()).prop_map(|(to, span)| TraceRequest::Chown { to, span }),
        number.prop_map(|group| TraceRequest::CreateGroup { group }),
        number.prop_map(|group| TraceRequest::FreeGroup { group }),
        number.prop_map(|group| TraceRequest::JoinGroup { group }),
        number.prop_map(|group| TraceRequest::LeaveGroup { group }),
        (number, number, span()).prop_map(|(thread, domain, stack)| TraceRequest::CreateThread {
            thread,
            domain,
            stack
        }),
        number.prop_map(|thread| TraceRequest::EndThread { thread }),
        (span(), any::<bool>())
            .prop_map(|(span, writable)| TraceRequest::StackGrant { span, writable }),
    ]
}

fn event() -> impl Strategy<Value = TraceEvent> {
    prop_oneof![
        4 => (address(), 1..=MAX_FETCH_BYTES, 1..=MAX_FETCH_BYTES).prop_map(|(address, bytes, count)| {
            TraceEvent::Fetch { address, bytes, instructions: count.min(bytes) }
        }),
        4 => (address(), 1..=MAX_ACCESS_BYTES).prop_map(|(address, bytes)| TraceEvent::Load { address, bytes }),
        4 => (address(), 1..=MAX_ACCESS_BYTES).prop_map(|(address, bytes)| TraceEvent::Store { address, bytes }),
        1 => (address(), address(), address()).prop_map(|(target, return_address, stack)| TraceEvent::Call {
            target,
            return_address,
            stack
        }),
        1 => (address(), address()).prop_map(|(at, target)| TraceEvent::Return { at, target }),
        1 => any::<u32>().prop_map(|thread| TraceEvent::Switch { thread }),
        1 => any::<u64>().prop_map(|cycles| TraceEvent::Idle { cycles }),
        2 => request().prop_map(TraceEvent::Supervisor),
    ]
}

fn write(events: &[TraceEvent]) -> Vec<u8> {
    let header = Header {
        address_bits: BITS,
        note: "a note".to_owned(),
    };
    let mut writer = TraceWriter::new(Vec::new(), &header).unwrap();
    for event in events {
        writer.write(event).unwrap();
    }
    assert_eq!(writer.events(), events.len() as u64);
    writer.finish().unwrap()
}

fn read(bytes: &[u8]) -> Result<Vec<TraceEvent>, TraceError> {
    let mut reader = TraceReader::new(bytes)?;
    let mut events = Vec::new();
    while let Some(block) = reader.next_block()? {
        for event in block.events() {
            events.push(event?);
        }
    }
    assert_eq!(reader.position(), bytes.len() as u64);
    Ok(events)
}

fn sample() -> Vec<TraceEvent> {
    (0..200)
        .map(|step| TraceEvent::Fetch {
            address: 0x1000 + step * 16,
            bytes: 16,
            instructions: 4,
        })
        .collect()
}

proptest! {
    #[test]
    fn what_is_written_is_read(events in proptest::collection::vec(event(), 1..300)) {
        prop_assert_eq!(read(&write(&events)).unwrap(), events);
    }

    #[test]
    fn every_flipped_bit_is_found(
        events in proptest::collection::vec(event(), 1..60),
        place: prop::sample::Index,
        bit in 0u8..8,
    ) {
        let mut bytes = write(&events);
        let at = place.index(bytes.len());
        bytes[at] ^= 1 << bit;
        prop_assert!(read(&bytes).is_err(), "byte {} bit {}", at, bit);
    }

    #[test]
    fn every_cut_is_found(
        events in proptest::collection::vec(event(), 1..60),
        place: prop::sample::Index,
    ) {
        let bytes = write(&events);
        let at = place.index(bytes.len());
        let error = read(&bytes[..at]).unwrap_err();
        prop_assert!(matches!(error, TraceError::Truncated { .. } | TraceError::Empty), "{}", error);
    }

    /// Nonsense whose checksum is right, as a hostile author would make it.
    #[test]
    fn nonsense_under_a_right_checksum_does_not_panic(
        payload in proptest::collection::vec(any::<u8>(), 1..400),
        count in 1u32..400,
    ) {
        let mut bytes = write(&[]);
        bytes.truncate(bytes.len() - 24);
        let mut head = b"BLK\n".to_vec();
        head.extend((payload.len() as u32).to_le_bytes());
        head.extend(count.to_le_bytes());
        let mut sum = crc32fast::Hasher::new();
        sum.update(&head);
        sum.update(&payload);
        bytes.extend(&head);
        bytes.extend(sum.finalize().to_le_bytes());
        bytes.extend(&payload);
        prop_assert!(read(&bytes).is_err(), "there is no end");
    }

    #[test]
    fn nonsense_does_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(read(&bytes).is_err());
    }
}

#[test]
fn blocks_split_and_join() {
    let events: Vec<TraceEvent> = (0..400_000)
        .map(|step| TraceEvent::Load {
            address: (step * 7919) % (1 << 30),
            bytes: 4,
        })
        .collect();
    let bytes = write(&events);
    assert!(bytes.len() > 1 << 20);
    assert_eq!(read(&bytes).unwrap(), events);
}

#[test]
fn an_empty_file_and_an_empty_trace_are_empty() {
    assert!(matches!(read(&[]), Err(TraceError::Empty)));
    assert!(matches!(read(&write(&[])), Err(TraceError::Empty)));
}

#[test]
fn other_files_are_no_traces() {
    assert!(matches!(read(b"\x7fELF"), Err(TraceError::NotATrace)));
    assert!(matches!(
        read(b"\x7fELF and much more"),
        Err(TraceError::NotATrace)
    ));
    assert!(matches!(
        read(&MAGIC[..5]),
        Err(TraceError::Truncated { at: 5 })
    ));
}

#[test]
fn another_version_is_named() {
    let mut bytes = write(&sample());
    bytes[8] = 9;
    assert!(matches!(
        read(&bytes),
        Err(TraceError::Version { found: 9 })
    ));
}

#[test]
fn what_follows_the_end_is_found() {
    let mut bytes = write(&sample());
    bytes.push(0);
    assert!(matches!(read(&bytes), Err(TraceError::End { .. })));
}

#[test]
fn a_missing_block_is_found() {
    let one = write(&sample());
    let header = 16 + "a note".len() + 4;
    let mut none = one[..header].to_vec();
    none.extend(&one[one.len() - 24..]);
    assert!(matches!(read(&none), Err(TraceError::End { .. })));
}

#[test]
fn an_address_beyond_the_space_is_found() {
    let bytes = write(&[TraceEvent::Load {
        address: (1 << BITS) - 3,
        bytes: 4,
    }]);
    assert!(matches!(
        read(&bytes),
        Err(TraceError::Event {
            block: 0,
            at: 0,
            ..
        })
    ));
}
