//! Pages with a protection of their own in each window.

mod support;

use mullion_runtime::{Access, Claimed, Limits, PAGE, ShareError, SharedPages};
use std::ops::Range;
use std::sync::atomic::Ordering;
use support::{Loaded, Program};

const PROGRAM: &str = "
    export get
        movl %edi, %r11d
        movq (%r14,%r11), %rax
        ret
    export put
        movl %edi, %r11d
        movq %rsi, (%r14,%r11)
        ret
    export wait
        movl %edi, %r11d
    1:  movq (%r14,%r11), %rax
        testq %rax, %rax
        jz 1b
        ret
";

fn shared(pages: u64) -> SharedPages {
    SharedPages::new(pages * PAGE).unwrap()
}

fn give(shared: &SharedPages, to: &Loaded, pages: Range<u64>, access: Access) {
    let bytes = pages.start * PAGE..pages.end * PAGE;
    shared.grant(&to.domain, bytes, access).unwrap();
}

#[test]
fn each_window_has_its_own_protection_of_the_same_page() {
    let program = Program::new(PROGRAM);
    let [one, two, three] = [(); 3].map(|()| program.load());
    let object = shared(2);
    let at = object.offset() + PAGE;
    give(&object, &one, 1..2, Access::ReadWrite);
    give(&object, &two, 0..2, Access::Read);
    // A pointer of one domain works in the other: the same offset.
    let pointer = one.domain.memory().base() + at;
    one.call("put", &[pointer, 77]).unwrap();
    assert_eq!(two.call("get", &[pointer]).unwrap().integer, 77);
    assert_eq!(object.bytes()[PAGE as usize].load(Ordering::Relaxed), 77);
    object.bytes()[PAGE as usize].store(78, Ordering::Relaxed);
    assert_eq!(one.call("get", &[at]).unwrap().integer, 78);
    for (domain, function, at) in [
        (&two, "put", at),
        (&three, "get", at),
        (&one, "get", object.offset()),
    ] {
        let fault = domain.fault(function, &[at, 1]);
        assert_eq!(fault.offset(fault.address.unwrap()), Some(at));
    }
}

#[test]
fn a_protection_changes_while_the_domain_runs() {
    let program = Program::new(PROGRAM);
    let (reader, mut writer) = (program.load(), program.load());
    let object = shared(1);
    give(&object, &reader, 0..1, Access::Read);
    give(&object, &writer, 0..1, Access::ReadWrite);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| reader.call("wait", &[object.offset()]).unwrap().integer);
        for _ in 0..200 {
            give(&object, &reader, 0..1, Access::ReadWrite);
            give(&object, &reader, 0..1, Access::Read);
        }
        writer.call("put", &[object.offset(), 5]).unwrap();
        assert_eq!(waits.join().unwrap(), 5);
    });
    give(&object, &writer, 0..1, Access::None);
    writer.fault("get", &[object.offset()]);
    // After a restart nothing is shared with it any more.
    give(&object, &writer, 0..1, Access::ReadWrite);
    writer.domain.restart().unwrap();
    writer.fault("get", &[object.offset()]);
    assert_eq!(reader.call("get", &[object.offset()]).unwrap().integer, 5);
}

#[test]
fn a_domain_cannot_change_what_is_shared_with_it() {
    let loaded = Program::new(PROGRAM).load();
    let object = shared(2);
    give(&object, &loaded, 0..1, Access::Read);
    let memory = loaded.domain.memory();
    let address = Claimed(memory.base() + object.offset());
    assert!(memory.protect(address, PAGE, Access::ReadWrite).is_err());
    assert!(memory.unmap(address, PAGE).is_err());
    assert!(memory.discard(address, PAGE).is_err());
    assert!(memory.map(Some(address), PAGE, Access::ReadWrite).is_err());
    // Nor can the host give what the domain has in use.
    let own = Claimed(address.0 + PAGE);
    memory.map(Some(own), PAGE, Access::ReadWrite).unwrap();
    let taken = object.grant(&loaded.domain, 0..2 * PAGE, Access::Read);
    assert!(matches!(taken, Err(ShareError::Mapping(_))));
}

#[test]
fn ranges_are_whole_pages_and_never_code() {
    let loaded = Program::new(PROGRAM).load();
    let object = shared(1);
    for (bytes, access) in [
        (1..PAGE, Access::Read),
        (0..100, Access::Read),
        (0..0, Access::Read),
        (0..2 * PAGE, Access::Read),
        (0..PAGE, Access::ReadExecute),
    ] {
        let result = object.grant(&loaded.domain, bytes, access);
        assert!(matches!(result, Err(ShareError::Range)));
    }
}

#[test]
fn offsets_are_used_again_only_when_nobody_has_the_object() {
    let program = Program::new(PROGRAM);
    let mut loaded = program.load_with(Vec::new(), Limits::default());
    let first = shared(1);
    let place = first.offset();
    give(&first, &loaded, 0..1, Access::ReadWrite);
    loaded.call("put", &[place, 9]).unwrap();
    drop(first);
    let second = shared(1);
    assert_ne!(second.offset(), place, "the domain still has it");
    assert_eq!(loaded.call("get", &[place]).unwrap().integer, 9);
    loaded.domain.restart().unwrap();
}
