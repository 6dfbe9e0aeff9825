//! Threads: domains change only through gates, frames belong to who made them, and the write table opens
//! what its domain says and no longer than its frame lives.

use crate::words;
use mullion_recorder::Recorder;
use mullion_supervisor::{
    CallStack, DomainId, Error, Mechanism, Permission, Range, StackRegisters, Supervisor,
};
use mullion_supervisor::{Family, Order, ThreadId};

const ROOT: DomainId = DomainId::SUPERVISOR;
/// Entry of the allocator, its return, and the memory that it deals in.
const ENTRY: u64 = 4;
const RETURN: u64 = 5;

/// A kernel with an allocator at words 4 and 5, and a module that may call it.
fn world() -> (Supervisor<Recorder>, DomainId, DomainId) {
    let mut s = Supervisor::new(words(0, 64), Recorder::new());
    let kernel = s
        .pd_subdivide(&ROOT, words(0, 64), Permission::ReadWrite)
        .unwrap();
    let module = s
        .pd_subdivide(&kernel, words(32, 32), Permission::ReadWrite)
        .unwrap();
    let gate = Permission::SwitchGate { to: kernel };
    s.mprot(&kernel, words(ENTRY, 1), gate).unwrap();
    s.mprot(&kernel, words(RETURN, 1), Permission::ReturnGate)
        .unwrap();
    s.mprot_export(&kernel, module, words(ENTRY, 1), gate)
        .unwrap();
    (s, kernel, module)
}

#[test]
fn an_allocator_gives_memory_to_the_domain_that_called_it() {
    let (mut s, kernel, module) = world();
    let mut thread = s.thread_create(&module, words(48, 16)).unwrap();
    assert_eq!(
        s.perm_alloc(&thread, words(8, 2)),
        Err(Error::NoCaller { domain: module })
    );
    assert_eq!(s.thread_call(&mut thread, ENTRY, 0x90, 60), Ok(kernel));
    assert_eq!(
        (thread.current(), thread.previous()),
        (kernel, Some(module))
    );
    s.perm_alloc(&thread, words(8, 2)).unwrap();
    assert_eq!(s.thread_return(&mut thread, RETURN, 0x90), Ok(module));
    assert_eq!((thread.current(), thread.previous()), (module, None));
    assert_eq!(s.permission(module, 9), Permission::ReadWrite);
    assert_eq!(s.permission(module, 10), Permission::None);
}

#[test]
fn a_frame_is_writable_by_its_domain_and_by_later_ones_only_where_it_says_so() {
    let (mut s, _, module) = world();
    let mut thread = s.thread_create(&module, words(48, 16)).unwrap();
    s.stack_grant(&mut thread, words(61, 1), true).unwrap();
    s.thread_call(&mut thread, ENTRY, 0x90, 60).unwrap();
    assert_eq!(
        thread.registers(),
        StackRegisters {
            base: 64,
            frame: 60,
            limit: 48
        }
    );
    let writable: Vec<u64> = (40..70).filter(|word| thread.may_write(*word)).collect();
    assert_eq!(writable, (48..60).chain([61]).collect::<Vec<_>>());
    assert!((48..64).all(|word| thread.may_read(word)));
    assert!(!thread.may_read(47) && !thread.may_read(64));
    assert!(s.mechanism().stack_writable(thread.id(), 61));

    // What the callee opened of its own frame is gone with the frame; what the caller opened stays.
    s.stack_grant(&mut thread, words(50, 4), true).unwrap();
    s.thread_return(&mut thread, RETURN, 0x90).unwrap();
    assert!(!s.mechanism().stack_writable(thread.id(), 51));
    assert!(s.mechanism().stack_writable(thread.id(), 61));
    s.stack_grant(&mut thread, words(61, 1), false).unwrap();
    s.thread_call(&mut thread, ENTRY, 0x90, 60).unwrap();
    assert!(!thread.may_write(61));
}

#[test]
fn a_call_to_executable_code_stays_in_its_domain() {
    let (mut s, kernel, module) = world();
    s.mprot(&module, words(33, 1), Permission::ExecuteRead)
        .unwrap();
    let mut thread = s.thread_create(&module, words(48, 16)).unwrap();
    assert_eq!(s.thread_call(&mut thread, 33, 0x90, 60), Ok(module));
    assert!(thread.calls().is_empty());
    // A domain that calls its own exported function goes through the gate like everybody (section 2.2).
    let mut own = s.thread_create(&kernel, words(20, 8)).unwrap();
    assert_eq!(s.thread_call(&mut own, ENTRY, 0x10, 25), Ok(kernel));
    assert_eq!(own.previous(), Some(kernel));
    assert_eq!(s.thread_return(&mut own, RETURN, 0x10), Ok(kernel));
}

#[test]
fn a_thread_does_not_return_into_a_domain_that_is_gone() {
    let (mut s, kernel, module) = world();
    let mut thread = s.thread_create(&module, words(48, 16)).unwrap();
    s.thread_call(&mut thread, ENTRY, 0x90, 60).unwrap();
    s.pd_free(&kernel, module).unwrap();
    let error = s.thread_return(&mut thread, RETURN, 0x90).unwrap_err();
    assert_eq!(error, Error::DeletedDomain { domain: module });
    assert_eq!(thread.current(), kernel);
    s.thread_end(thread);
    assert!(
        s.thread_create(&kernel, words(48, 16)).is_ok(),
        "the stack is free again"
    );
}

#[test]
fn a_thread_unwinds_to_the_nearest_frame_that_lives() {
    let (mut s, kernel, module) = world();
    // From the module into the kernel, and from there into a helper of the kernel's.
    let helper = s
        .pd_subdivide(&kernel, words(24, 4), Permission::ExecuteRead)
        .unwrap();
    let gate = Permission::SwitchGate { to: helper };
    s.mprot(&helper, words(24, 1), gate).unwrap();
    s.mprot_export(&helper, kernel, words(24, 1), gate).unwrap();
    let mut thread = s.thread_create(&module, words(48, 16)).unwrap();
    s.stack_grant(&mut thread, words(62, 1), true).unwrap();
    s.thread_call(&mut thread, ENTRY, 0x90, 60).unwrap();
    s.stack_grant(&mut thread, words(57, 1), true).unwrap();
    s.thread_call(&mut thread, 24, 0xa0, 56).unwrap();
    assert_eq!(thread.current(), helper);
    // The helper is deleted while the thread is in it: the kernel is next.
    s.pd_free(&kernel, helper).unwrap();
    assert!(s.thread_return(&mut thread, RETURN, 0xa0).is_err());
    assert_eq!(s.thread_unwind(&mut thread), Ok(kernel));
    assert_eq!((thread.calls().len(), thread.registers().frame), (1, 60));
    assert!(thread.may_write(57) && thread.may_write(62));
    // Then the thread leaves the kernel, which lives; what was open in its frame is closed.
    assert_eq!(s.thread_unwind(&mut thread), Ok(module));
    assert_eq!((thread.current(), thread.registers().frame), (module, 64));
    assert!(!s.mechanism().stack_writable(thread.id(), 57));
    assert!(s.mechanism().stack_writable(thread.id(), 62));
    let nothing = Error::NothingToReturn {
        thread: thread.id(),
    };
    assert_eq!(s.thread_unwind(&mut thread), Err(nothing));
}

#[test]
fn a_thread_unwinds_past_frames_of_domains_that_are_gone() {
    let (mut s, kernel, module) = world();
    let mut thread = s.thread_create(&module, words(48, 16)).unwrap();
    s.thread_call(&mut thread, ENTRY, 0x90, 60).unwrap();
    // The kernel calls itself through its gate; then the module, the first caller, is deleted.
    s.thread_call(&mut thread, ENTRY, 0x94, 58).unwrap();
    s.pd_free(&kernel, module).unwrap();
    assert_eq!(s.thread_unwind(&mut thread), Ok(kernel));
    let before = thread.registers();
    assert!(s.thread_unwind(&mut thread).is_err());
    assert_eq!((thread.current(), thread.registers()), (kernel, before));
    s.thread_end(thread);
}

#[test]
fn a_gate_into_a_deleted_domain_goes_with_it() {
    let (mut s, kernel, module) = world();
    let gate = Permission::SwitchGate { to: module };
    s.mprot_export(&kernel, ROOT, words(6, 1), gate).unwrap();
    assert_eq!(s.permission(ROOT, 6), gate);
    s.pd_free(&kernel, module).unwrap();
    assert_eq!(s.permission(ROOT, 6), Permission::None);
    assert_eq!(s.mechanism().permission(ROOT, 6), Permission::None);
}

/// Notes stack registers and flushes in the order in which they come.
#[derive(Default)]
struct Switches(Vec<(ThreadId, Option<StackRegisters>)>);

impl Mechanism for Switches {
    fn write(&mut self, _: DomainId, _: Range, _: Permission) {}

    fn flush(&mut self, _: DomainId, _: Range) {}

    fn load_stack(&mut self, thread: ThreadId, registers: StackRegisters) {
        self.0.push((thread, Some(registers)));
    }

    fn flush_stack(&mut self, thread: ThreadId) {
        self.0.push((thread, None));
    }
}

#[test]
fn a_context_switch_flushes_one_stack_and_loads_the_other() {
    let mut s = Supervisor::with(words(0, 16), Switches::default(), Family, Order::Paper);
    let one = s.thread_create(&ROOT, words(0, 4)).unwrap();
    let two = s.thread_create(&ROOT, words(4, 4)).unwrap();
    s.thread_switch(Some(&one), Some(&two));
    let expected = vec![(one.id(), None), (two.id(), Some(two.registers()))];
    assert_eq!(s.mechanism().0, expected);
}
