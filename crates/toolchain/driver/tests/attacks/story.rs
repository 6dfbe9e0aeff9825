//! Attacks in which the host does something between two calls: rights that end, lives that end, threads.

use crate::scene::{self, Fn3, Scene, function};
use mullion_word_runtime::{Domain, Effect, FaultKind, FunctionPolicy, Host, Module, Policy, Size};
use std::collections::BTreeMap;
use std::sync::Arc;

type Modules<'a> = BTreeMap<&'a str, Arc<Module>>;
type Story = fn(&Host, &Modules<'_>);

pub const STORIES: [(&str, Story); 14] = [
    (
        "what was lent for a call is written after it",
        lent_for_a_call,
    ),
    (
        "what was lent for a call is read after it",
        read_after_a_call,
    ),
    ("what was lent to be read is written", lent_to_be_read),
    (
        "what was lent for a call is written by another thread after it",
        by_another_thread,
    ),
    ("what was revoked is written", revoked),
    (
        "what is revoked in a call is written behind that",
        revoked_inside,
    ),
    (
        "what is revoked in a call does not come back at its end",
        not_at_the_end,
    ),
    (
        "a thread stores in a loop while its right is taken",
        hammered,
    ),
    (
        "a block of the life before a restart is written",
        of_the_life_before,
    ),
    ("a pointer into an ended domain is called", ended),
    ("a pointer into an unloaded domain is called", unloaded),
    (
        "a module calls another one that was unloaded",
        calls_the_unloaded,
    ),
    ("a module keeps its caller's stack", keeps_a_stack),
    (
        "a callee is granted what its caller does not have",
        deputy_of_a_module,
    ),
];

fn with(policy: Policy, host: &Host, modules: &Modules<'_>) -> Domain {
    host.load(&modules["time"], policy).expect("it is loaded")
}

fn of(name: &str, effect: Effect) -> Policy {
    scene::policy().export(name, FunctionPolicy::of(&[effect]))
}

fn call(domain: &Domain, name: &str, a: u64) -> u64 {
    function::<Fn3>(domain, name)(a, 0, 0)
}

/// The domain's one report.
fn refused(domain: &Domain, kind: FaultKind, address: Option<u64>) {
    let reports = domain.take_reports();
    let [report] = &reports[..] else {
        panic!("{reports:?}");
    };
    assert_eq!(report.kind, kind, "{report}");
    assert!(address.is_none() || report.address == address, "{report}");
    assert!(domain.is_ended());
    domain.restart().expect("it begins anew");
}

fn cells() -> &'static [std::sync::atomic::AtomicU64; 8] {
    Box::leak(Box::new(
        [const { std::sync::atomic::AtomicU64::new(3) }; 8],
    ))
}

fn at(cells: &'static [std::sync::atomic::AtomicU64; 8]) -> u64 {
    cells.as_ptr() as u64
}

fn lent_for_a_call(host: &Host, modules: &Modules<'_>) {
    let domain = with(of("keeps", Effect::InOut(0, Size::Bytes(8))), host, modules);
    let place = at(cells());
    assert_eq!(call(&domain, "keeps", place), 3);
    assert_eq!(call(&domain, "uses_kept", 0), 0);
    refused(&domain, FaultKind::Access, Some(place));
}

fn read_after_a_call(host: &Host, modules: &Modules<'_>) {
    let domain = with(of("keeps", Effect::In(0, Size::Bytes(8))), host, modules);
    let place = at(cells());
    assert_eq!(call(&domain, "keeps", place), 3);
    assert_eq!(call(&domain, "reads_kept", 0), 0);
    refused(&domain, FaultKind::Access, Some(place));
}

fn lent_to_be_read(host: &Host, modules: &Modules<'_>) {
    let domain = with(of("writes", Effect::In(0, Size::Bytes(8))), host, modules);
    let place = at(cells());
    assert_eq!(call(&domain, "writes", place), 0);
    refused(&domain, FaultKind::Access, Some(place));
}

fn by_another_thread(host: &Host, modules: &Modules<'_>) {
    let domain = with(of("keeps", Effect::InOut(0, Size::Bytes(8))), host, modules);
    let place = at(cells());
    let keeps = function::<Fn3>(&domain, "keeps");
    std::thread::spawn(move || keeps(place, 0, 0))
        .join()
        .expect("a thread");
    assert_eq!(call(&domain, "uses_kept", 0), 0);
    refused(&domain, FaultKind::Access, Some(place));
}

fn revoked(host: &Host, modules: &Modules<'_>) {
    let domain = with(scene::policy(), host, modules);
    let place = at(cells());
    // SAFETY: nobody minds what is written there.
    unsafe { host.grant(&domain, place as usize, 64, true) }.expect("a grant");
    assert_eq!(call(&domain, "writes", place), 1);
    host.revoke(place as usize, 8).expect("it is taken back");
    assert_eq!(call(&domain, "writes", place + 8), 1, "the rest is left");
    assert_eq!(call(&domain, "writes", place), 0);
    refused(&domain, FaultKind::Access, Some(place));
}

/// Cells at a multiple of 64, as `take_back` takes them.
fn line() -> u64 {
    let cells = Box::leak(vec![0u64; 32].into_boxed_slice());
    (cells.as_ptr() as u64).next_multiple_of(64)
}

fn revoked_inside(host: &Host, modules: &Modules<'_>) {
    let domain = with(scene::policy(), host, modules);
    let place = line();
    // SAFETY: the cells are leaked for this test, and nobody minds what is written there.
    unsafe { host.grant(&domain, place as usize, 64, true) }.expect("a grant");
    assert_eq!(call(&domain, "loses_and_writes", place), 0);
    refused(&domain, FaultKind::Access, Some(place));
}

fn not_at_the_end(host: &Host, modules: &Modules<'_>) {
    let domain = with(
        of("loses", Effect::InOut(0, Size::Bytes(64))),
        host,
        modules,
    );
    let place = line();
    // SAFETY: the cells are leaked for this test, and nobody minds what is written there.
    unsafe { host.grant(&domain, place as usize, 64, false) }.expect("a grant");
    assert_eq!(call(&domain, "loses", place), 1);
    assert_eq!(call(&domain, "keeps", place), 0);
    refused(&domain, FaultKind::Access, Some(place));
}

fn hammered(host: &Host, modules: &Modules<'_>) {
    use std::sync::atomic::Ordering;
    let domain = with(scene::policy(), host, modules);
    let cells = cells();
    let place = at(cells);
    // SAFETY: the cells are leaked for this test, and nobody minds what is written there.
    unsafe { host.grant(&domain, place as usize, 8, true) }.expect("a grant");
    let hammers = function::<Fn3>(&domain, "hammers");
    let thread = std::thread::spawn(move || hammers(place, 0, 0));
    while cells[0].load(Ordering::SeqCst) == 3 {
        std::thread::yield_now();
    }
    host.revoke(place as usize, 8).expect("it is taken back");
    // No access comes that was checked before.
    cells[0].store(99, Ordering::SeqCst);
    assert_eq!(thread.join().expect("a thread"), 0);
    assert_eq!(cells[0].load(Ordering::SeqCst), 99);
    refused(&domain, FaultKind::Access, Some(place));
}

fn of_the_life_before(host: &Host, modules: &Modules<'_>) {
    let domain = with(scene::policy(), host, modules);
    let block = call(&domain, "gets", 0);
    assert_eq!(call(&domain, "writes", block), 1);
    domain.restart().expect("it begins anew");
    assert_eq!(call(&domain, "writes", block), 0);
    refused(&domain, FaultKind::Access, Some(block));
}

fn ended(host: &Host, modules: &Modules<'_>) {
    let domain = with(scene::policy(), host, modules);
    assert_eq!(call(&domain, "fine", 0), 4711);
    assert_eq!(call(&domain, "writes", line()), 0);
    assert!(domain.is_ended());
    assert_eq!(call(&domain, "fine", 0), 0);
}

fn unloaded(host: &Host, modules: &Modules<'_>) {
    let domain = with(scene::policy(), host, modules);
    let fine = function::<Fn3>(&domain, "fine");
    assert_eq!(fine(0, 0, 0), 4711);
    domain.unload().expect("it ends");
    // Its number may be another domain's by now.
    let next = with(scene::policy(), host, modules);
    assert_eq!((fine(0, 0, 0), call(&next, "fine", 0)), (0, 4711));
    assert!(next.take_reports().is_empty());
}

fn calls_the_unloaded(host: &Host, modules: &Modules<'_>) {
    let callee = with(scene::policy(), host, modules);
    let caller = with(scene::policy(), host, modules);
    host.link(&caller, &callee, "fine").expect("a link");
    let fine = callee.function("fine").expect("it has it") as u64;
    assert_eq!(call(&caller, "calls", fine), 4712);
    callee.unload().expect("it ends");
    let _next = with(scene::policy(), host, modules);
    // The right to enter went with it.
    assert_eq!(call(&caller, "calls", fine), 0);
    refused(&caller, FaultKind::Call, Some(fine));
}

fn keeps_a_stack(host: &Host, modules: &Modules<'_>) {
    let callee = with(of("keeps", Effect::InOut(0, Size::Bytes(8))), host, modules);
    let caller = with(scene::policy(), host, modules);
    host.link(&caller, &callee, "keeps").expect("a link");
    let keeps = callee.function("keeps").expect("it has it") as u64;
    assert_eq!(call(&caller, "passes_stack", keeps), 10);
    assert_eq!(call(&callee, "uses_kept", 0), 0);
    refused(&callee, FaultKind::Access, None);
    assert!(!caller.is_ended());
}

fn deputy_of_a_module(host: &Host, modules: &Modules<'_>) {
    let callee = with(
        of("writes", Effect::InOut(0, Size::Bytes(8))),
        host,
        modules,
    );
    let caller = with(scene::policy(), host, modules);
    host.link(&caller, &callee, "writes").expect("a link");
    let writes = callee.function("writes").expect("it has it") as u64;
    let scene = Scene::plain();
    let got = function::<Fn3>(&caller, "calls")(writes, scene.victim(), 0);
    // The callee's call never began: its caller had not what it passed.
    assert_eq!(got, 1);
    scene.unharmed().expect("nothing was changed");
    let reports = callee.take_reports();
    assert_eq!(reports.len(), 1);
    assert_eq!(reports[0].kind, FaultKind::Policy, "{}", reports[0]);
}
