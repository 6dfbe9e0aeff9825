//! What a host does wrong: typed errors, at once.

use crate::{IMAGE, domain, imports};
use mullion::{Caller, Domain, DomainMemory, Error, Ptr};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

#[test]
fn a_domain_is_neither_restarted_nor_unloaded_during_a_call() {
    let own: Arc<OnceLock<Domain>> = Arc::default();
    let seen: Arc<Mutex<Vec<Error>>> = Arc::default();
    let (inside, errors) = (own.clone(), seen.clone());
    let imports = imports().function("host_again", move |_: &Caller<'_>, _: i32| {
        let domain = inside.get().expect("set before the call");
        let mut errors = errors.lock().unwrap();
        errors.extend(domain.unload().err());
        errors.extend(domain.restart().err());
        // From another thread as well.
        std::thread::scope(|scope| {
            let other = scope.spawn(|| domain.unload().err());
            errors.extend(other.join().unwrap());
        });
        0
    });
    let domain = IMAGE.domain().imports(imports).load().unwrap();
    own.set(domain.clone()).expect("set once");
    assert_eq!(
        domain
            .function::<fn(i32) -> i32>("down")
            .unwrap()
            .call(1)
            .unwrap(),
        1
    );
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 3);
    assert!(
        seen.iter()
            .all(|error| matches!(error, Error::InUse { .. })),
        "{seen:?}"
    );
    domain.unload().expect("the call is over");
}

#[test]
fn a_slice_keeps_its_domain() {
    let domain = domain();
    let buffer = domain.copy_in(&[1u8, 2, 3]).unwrap();
    let slice = buffer.slice(&domain).unwrap();
    assert!(matches!(domain.restart(), Err(Error::InUse { .. })));
    assert!(matches!(domain.unload(), Err(Error::InUse { .. })));
    assert_eq!(slice.to_vec().unwrap(), [1, 2, 3]);
    drop(slice);
    domain.restart().unwrap();
}

#[test]
fn what_was_unloaded_is_gone_for_everything_that_refers_to_it() {
    let domain = domain();
    let count = domain.function::<fn() -> i32>("count").unwrap();
    let buffer = domain.copy_in(b"abc").unwrap();
    domain.clone().unload().unwrap();
    assert!(matches!(count.call(), Err(Error::Unloaded { .. })));
    assert!(matches!(
        buffer.to_vec(&domain),
        Err(Error::Unloaded { .. })
    ));
    assert!(matches!(domain.restart(), Err(Error::Unloaded { .. })));
    assert!(matches!(domain.unload(), Err(Error::Unloaded { .. })));
    assert!(matches!(domain.has_ended(), Err(Error::Unloaded { .. })));
    assert!(matches!(
        domain.alloc::<u8>(1).err(),
        Some(Error::Unloaded { .. })
    ));
}

#[test]
fn a_type_that_the_debug_information_contradicts_is_refused_with_both() {
    let domain = domain();
    let wrong = |error: Option<Error>, image: &str, host: &str| match error {
        Some(Error::WrongType {
            image_type,
            host: ours,
            ..
        }) => assert_eq!((image_type.as_str(), ours.as_str()), (image, host)),
        other => panic!("{other:?}"),
    };
    wrong(
        domain.function::<fn(i8) -> i8>("narrow").err(),
        "int8_t (int8_t, uint16_t)",
        "fn(i8) -> i8",
    );
    wrong(
        domain.function::<fn(i8, u32) -> i8>("narrow").err(),
        "int8_t (int8_t, uint16_t)",
        "fn(i8, u32) -> i8",
    );
    wrong(
        domain.function::<fn(i8, u16) -> f64>("narrow").err(),
        "int8_t (int8_t, uint16_t)",
        "fn(i8, u16) -> f64",
    );
    wrong(
        domain.function::<fn(f64) -> f32>("halve").err(),
        "float (float)",
        "fn(f64) -> f32",
    );
    wrong(
        domain.function::<fn() -> i32>("nothing").err(),
        "void (void)",
        "fn() -> i32",
    );
    wrong(
        domain
            .function::<fn(Ptr<u8>) -> i64>("length")
            .err()
            .or_else(|| domain.function::<fn(u32) -> u64>("length").err()),
        "uint64_t (const char *)",
        "fn(u32) -> u64",
    );
    // Signs and what a pointer leads to are not looked at, nor is a result that is not wanted.
    domain.function::<fn(u8, i16) -> u8>("narrow").unwrap();
    domain.function::<fn(u64)>("length").unwrap();
}

/// gcc splits functions of which a part is seldom run.
#[test]
fn a_type_of_a_function_in_two_pieces_is_compared() {
    let directory = tempfile::tempdir().unwrap();
    let (source, image) = (
        directory.path().join("cold.c"),
        directory.path().join("cold.mx"),
    );
    let text = "#include <mullion/ext.h>\n#include <stdint.h>\n\
        __attribute__((cold, noipa)) void bad(unsigned x) { *(volatile unsigned *)(uintptr_t)x = x; }\n\
        MULLION_EXPORT(int32_t, halves, (uint32_t x))\n\
        { if (x > 1000) { bad(1); bad(x); bad(x ^ 7); } return x + 1; }\n";
    std::fs::write(&source, text).unwrap();
    for (options, known) in [
        (&["-O2"][..], Ok("int32_t (uint32_t)".to_owned())),
        (&["-O2", "-gdwarf-4"], Ok("int32_t (uint32_t)".to_owned())),
        (&["-O2", "-g1"], Err(mullion::UnknownType::NoTypes)),
        (&["-O2", "-g0"], Err(mullion::UnknownType::NoInformation)),
    ] {
        crate::support::build(&source, &image, options);
        let image = mullion::Image::open(&image).unwrap();
        let domain = image.domain().load().unwrap();
        assert_eq!(image.find("halves").unwrap().type_in_image(), known);
        let wrong = domain.function::<fn(Ptr<u8>) -> f64>("halves");
        assert_eq!(wrong.is_err(), known.is_ok(), "{options:?}");
        let right = domain.function::<fn(u32) -> i32>("halves").unwrap();
        assert_eq!(right.call(2).unwrap(), 3);
    }
}

#[test]
fn a_wrong_type_gives_a_wrong_number_or_a_fault_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/extensions/everything.c");
    let image = directory.path().join("silent.mx");
    crate::support::build(&source, &image, &["-g0"]);
    let image = mullion::Image::open(&image).unwrap();
    let domain = image.domain().imports(imports()).load().unwrap();
    let count = domain
        .function::<fn(u64, f64, Ptr<u8>) -> f64>("count")
        .unwrap();
    assert!(count.call(1, 2.0, Ptr::null()).is_ok());
    let sum = domain.function::<fn() -> u64>("sum").unwrap();
    assert_eq!(
        sum.call().unwrap(),
        0,
        "registers that are not arguments are 0"
    );
    let length = domain.function::<fn(f64) -> u64>("length").unwrap();
    crate::fault(length.call(1.0));
}

#[test]
fn a_callback_into_data_is_no_function() {
    let domain = domain();
    let text = domain
        .function::<fn() -> Ptr<u8>>("greeting")
        .unwrap()
        .call()
        .unwrap();
    for address in [0, 1, text.address(), text.address() + 4, u64::MAX] {
        let callback = mullion::Callback::<fn()>::from_address(address);
        let called = callback.call(&domain);
        assert!(
            matches!(called, Err(Error::NotAFunction { .. })),
            "{address:#x}: {called:?}"
        );
    }
}
