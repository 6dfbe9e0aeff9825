//! Pointers, slices, strings and structures across the wall.

use crate::domain;
use mullion::zerocopy::{FromBytes, Immutable, IntoBytes};
use mullion::{DomainMemory, Error, Ptr};

/// `struct point` of the extension.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Point {
    x: i32,
    y: i32,
    weight: f64,
    name: Ptr<i8>,
}

/// A debugger is told where the image lies.
#[test]
fn the_base_of_the_window() {
    let domain = domain();
    let inside = domain.copy_in(&[1_u8]).unwrap();
    assert_eq!(inside.ptr().address() >> 32 << 32, domain.base());
    let base = domain.base();
    drop(inside);
    domain.restart().unwrap();
    assert_eq!(domain.base(), base);
}

#[test]
fn slices_by_reference() {
    let domain = domain();
    let sum = domain.function::<fn(Ptr<u32>, u64) -> u64>("sum").unwrap();
    let list: Vec<u32> = (0..10_000).collect();
    let inside = domain.copy_in(&list).unwrap();
    assert_eq!(sum.call(inside.ptr(), inside.len()).unwrap(), 49_995_000);
    let slice = inside.slice(&domain).unwrap();
    slice.set(9_999, &1_000_000).unwrap();
    slice.copy_from(&[7, 7]).unwrap();
    assert_eq!(slice.get(1).unwrap(), 7);
    assert_eq!(slice.get(9_999).unwrap(), 1_000_000);
    assert!(matches!(
        slice.get(10_000),
        Err(Error::Index {
            index: 10_000,
            length: 10_000
        })
    ));
    assert!(matches!(
        slice.copy_to(&mut vec![0; 10_001]),
        Err(Error::Index { .. })
    ));
    assert_eq!(inside.to_vec(&domain).unwrap()[2..10], list[2..10]);
}

#[test]
fn strings_in_and_out() {
    let domain = domain();
    let length = domain.function::<fn(Ptr<u8>) -> u64>("length").unwrap();
    let text = domain.string_in("façade").unwrap();
    assert_eq!(length.call(text.ptr()).unwrap(), 7);
    let greeting = domain.function::<fn() -> Ptr<u8>>("greeting").unwrap();
    let greeting = greeting.call().unwrap();
    assert_eq!(greeting.string(&domain, 100).unwrap(), "good day");
    let long = greeting.string(&domain, 8);
    assert!(matches!(long, Err(Error::LongString { longest: 8 })));
}

#[test]
fn structures_with_pointers_in_them() {
    let domain = domain();
    let middle = domain
        .function::<fn(Ptr<Point>, Ptr<Point>) -> Ptr<Point>>("middle")
        .unwrap();
    let name = domain.string_in("b").unwrap();
    let point = |x, weight, name| Point {
        x,
        y: -x,
        weight,
        name,
    };
    let a = domain.copy_in(&[point(2, 1.0, Ptr::null())]).unwrap();
    let b = domain
        .copy_in(&[point(10, 0.5, name.ptr().cast())])
        .unwrap();
    let result = middle.call(a.ptr(), b.ptr()).unwrap();
    assert_eq!(result, a.ptr());
    let result = result.read(&domain).unwrap();
    assert_eq!((result.x, result.y, result.weight), (6, -6, 1.5));
    assert_eq!(result.name.string(&domain, 10).unwrap(), "b");
}

#[test]
fn what_does_not_lie_in_the_domain_is_an_error_and_not_read() {
    let domain = domain();
    let secret = 5u64;
    let wild = domain.function::<fn(u64) -> Ptr<u64>>("wild").unwrap();
    let base = wild.domain().memory_in_use().map(|_| ()).and_then(|()| {
        let greeting = domain.function::<fn() -> Ptr<u8>>("greeting")?.call()?;
        Ok(greeting.address() & !0xffff_ffff)
    });
    let base = base.unwrap();
    let host = std::ptr::from_ref(&secret).addr() as u64;
    // The host's memory, null, the guards, what is not mapped, beyond the end, no address.
    let addresses = [
        host,
        0,
        base,
        base + 0xffff_0000,
        base + 0x8000_0000,
        base + (1 << 32) - 4,
        1 << 63,
        u64::MAX,
    ];
    for address in addresses {
        let pointer = wild.call(address).unwrap();
        assert_eq!(pointer.address(), address);
        assert!(
            matches!(pointer.read(&domain), Err(Error::Memory { .. })),
            "{address:#x}"
        );
        let written = pointer.write(&domain, &1);
        assert!(matches!(written, Err(Error::Memory { .. })), "{address:#x}");
        let string = pointer.cast::<u8>().string(&domain, 100);
        assert!(matches!(string, Err(Error::Memory { .. })), "{address:#x}");
    }
    let greeting = domain
        .function::<fn() -> Ptr<u32>>("greeting")
        .unwrap()
        .call()
        .unwrap();
    for count in [1 << 30, u64::MAX, u64::MAX / 4 + 1] {
        let slice = greeting.slice(&domain, count);
        assert!(matches!(slice, Err(Error::Memory { .. })), "{count}");
    }
    let constant = greeting.write(&domain, &0);
    assert!(
        matches!(constant, Err(Error::Memory { .. })),
        "read-only memory was written"
    );
    assert_eq!(secret, 5);
}

#[test]
fn a_pointer_of_one_domain_is_none_of_another_ones() {
    let (one, other) = (domain(), domain());
    let pointer = one
        .function::<fn() -> Ptr<u8>>("greeting")
        .unwrap()
        .call()
        .unwrap();
    assert!(matches!(pointer.read(&other), Err(Error::Memory { .. })));
    assert_eq!(pointer.read(&one).unwrap(), b'g');
}

#[test]
fn memory_given_back_is_zero_when_it_is_had_again() {
    let domain = domain();
    let mut addresses = Vec::new();
    for round in 0..50 {
        for length in [1u64, 16, 100, 5000, 300_000] {
            let buffer = domain.alloc::<u8>(length).unwrap();
            let content = buffer.to_vec(&domain).unwrap();
            assert!(content.iter().all(|byte| *byte == 0), "round {round}");
            buffer
                .slice(&domain)
                .unwrap()
                .copy_from(&vec![0xee; length as usize])
                .unwrap();
            addresses.push(buffer.ptr());
        }
    }
    assert_eq!(addresses[0], addresses[addresses.len() - 5], "used again");
    let live: Vec<_> = (0..500).map(|_| domain.alloc::<u64>(3).unwrap()).collect();
    let mut places: Vec<_> = live.iter().map(|buffer| buffer.ptr().address()).collect();
    places.sort_unstable();
    assert!(
        places.windows(2).all(|pair| pair[1] - pair[0] >= 24),
        "they overlap"
    );
}

#[test]
fn memory_ends_at_the_limit() {
    let limits = mullion::Limits {
        memory: 4 << 20,
        ..mullion::Limits::default()
    };
    let domain = crate::IMAGE
        .domain()
        .imports(crate::imports())
        .limits(limits)
        .load()
        .unwrap();
    let mut held = Vec::new();
    let error = loop {
        match domain.alloc::<u8>(100_000) {
            Ok(buffer) => held.push(buffer),
            Err(error) => break error,
        }
    };
    assert!(
        matches!(
            error,
            Error::NoMemory {
                count: 100_000,
                size: 1,
                ..
            }
        ),
        "{error}"
    );
    assert!((30..=40).contains(&held.len()), "{}", held.len());
    assert!(matches!(
        domain.alloc::<u64>(u64::MAX),
        Err(Error::NoMemory { .. })
    ));
}
