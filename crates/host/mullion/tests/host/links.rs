//! Domains that call each other, and pages that they share.

use crate::support;
use mullion::{
    BoxedError, Callback, Caller, Candidate, Cause, Domain, Error, Function, Host, Identity, Image,
    Imports, Permission, Policy, Ptr, Question, Shared, Wish,
};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock, Mutex, OnceLock};

pub(crate) type Eight = fn(i32, i32, i32, i32, i32, i32, i8, i64) -> i64;

static BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/extensions/links.c");
    let image = directory.path().join("links.mx");
    support::build(&source, &image, &[]);
    std::fs::read(image).expect("it was built")
});
static IMAGE: LazyLock<Image> = LazyLock::new(|| open(&Host::new()));

fn open(host: &Host) -> Image {
    host.image("links", BYTES.as_slice())
        .expect("it is verified")
}

/// Imports that are to be linked; `host_who` tells by 1 that the host called.
fn imports() -> Imports {
    Imports::new()
        .link_later("other")
        .link_later("other_real")
        .function("host_who", |caller: &Caller<'_>| {
            let by = caller.called_by();
            by.map_or(1, |by| *by.user::<i32>().expect("its number"))
        })
        .function(
            "host_eight",
            |_: &Caller<'_>, a: i32, b: i32, c: i32, d: i32, e: i32, f: i32, g: i8, h: i64| {
                i64::from(a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * i32::from(g)) + 8 * h
            },
        )
}

fn named(image: &Image, name: &str, number: i32, imports: Imports) -> Result<Domain, Error> {
    let domain = image.domain().name(name).user(number);
    domain.imports(imports).load()
}

pub(crate) fn domain(name: &str, number: i32) -> Domain {
    named(&IMAGE, name, number, imports()).expect("a domain")
}

pub(crate) fn eight(domain: &Domain, name: &str) -> Function<Eight> {
    domain.function(name).expect("an export")
}

fn call_other(domain: &Domain) -> Result<i64, Error> {
    domain.function::<fn(i64) -> i64>("call_other")?.call(100)
}

#[test]
fn one_domain_calls_another_with_eight_arguments_or_floating_point() {
    let other = domain("callee", 7);
    let scale = other.function::<fn(f64, i32) -> f64>("scale").unwrap();
    let linked = imports()
        .link("other", &eight(&other, "weigh"))
        .link("other_real", &scale);
    let one = named(&IMAGE, "caller", 8, linked).unwrap();
    for _ in 0..3 {
        assert_eq!(call_other(&one).unwrap(), 91 - 49 + 800);
        one.restart().unwrap();
        other.restart().unwrap();
    }
    let real = one.function::<fn(f64) -> f64>("call_real").unwrap();
    assert_eq!(real.call(1.5).unwrap(), 4.5);
}

#[test]
fn a_host_function_takes_eight_integers() {
    let one = domain("one", 1);
    let call = one.function::<fn(i64) -> i64>("call_host").unwrap();
    assert_eq!(call.call(-3).unwrap(), 91 - 49 - 24);
}

#[test]
fn the_called_one_knows_who_calls_and_the_host_sees_the_graph() {
    let (one, two) = (domain("one", 7), domain("two", 8));
    let who = two.function::<fn() -> i64>("who").unwrap();
    one.link(None, "other", &who).unwrap();
    assert_eq!(call_other(&one).unwrap(), 7, "one calls");
    assert_eq!(who.call().unwrap(), 1, "the host calls");
    let links = one.links().unwrap();
    assert_eq!(links.len(), 1, "the other import leads nowhere");
    assert_eq!(links[0].import, "other");
    assert_eq!(links[0].export.as_deref(), Some("who"));
    assert_eq!(links[0].callee.as_ref(), Some(two.identity()));
    assert_eq!(links[0].calls, 1);
    assert!(two.links().unwrap().is_empty());
}

#[test]
fn domains_call_each_other_in_a_circle_as_deep_as_they_may() {
    let (one, two) = (domain("one", 1), domain("two", 2));
    one.link(None, "other", &eight(&two, "again")).unwrap();
    two.link(None, "other", &eight(&one, "again")).unwrap();
    let error = call_other(&one).unwrap_err();
    assert!(matches!(error, Error::Callee { .. }), "{error}");
    assert!(error.to_string().contains("are nested"), "{error}");
    for domain in [one, two] {
        assert!(!domain.has_ended().unwrap());
    }
}

#[test]
fn a_fault_behind_a_link_names_the_one_that_did_it() {
    let (one, two) = (domain("innocent", 1), domain("guilty", 2));
    let crash = two.function::<fn() -> i64>("crash").unwrap();
    one.link(None, "other", &crash).unwrap();
    let error = call_other(&one).unwrap_err();
    let fault = error.fault().expect("of the other one");
    assert_eq!(fault.domain(), "guilty");
    assert_eq!(fault.symbol().as_deref(), Some("crash"));
    assert!(matches!(&error, Error::Callee { domain, .. } if domain == "innocent"));
    assert!(!one.has_ended().unwrap() && two.has_ended().unwrap());
    let Err(Error::Callee { source, .. }) = call_other(&one) else {
        panic!("the other one has ended");
    };
    assert!(matches!(*source, Error::Ended { .. }), "{source}");
    two.restart().unwrap();
    assert!(call_other(&one).unwrap_err().fault().is_some(), "again");
    drop(crash);
    two.unload().unwrap();
    let error = call_other(&one).unwrap_err();
    assert!(error.to_string().contains("guilty"), "{error}");
}

#[test]
fn a_failure_may_have_a_value_instead() {
    let two = domain("two", 2);
    let crash = two.function::<fn() -> i64>("crash").unwrap();
    let real = two.function::<fn() -> f64>("crash_real").unwrap();
    let linked = imports()
        .link("other", crash.or(-1))
        .link("other_real", real.or(0.25));
    let one = named(&IMAGE, "one", 1, linked).unwrap();
    assert_eq!(call_other(&one).unwrap(), -1);
    two.restart().unwrap();
    let call_real = one.function::<fn(f64) -> f64>("call_real").unwrap();
    assert_eq!(call_real.call(1.0).unwrap(), 0.25);
    two.unload().unwrap();
    assert_eq!(call_other(&one).unwrap(), -1);
}

#[test]
fn a_link_that_is_wrong_is_refused() {
    let (one, two) = (domain("one", 1), domain("two", 2));
    let weigh = eight(&two, "weigh");
    let Err(Error::Refused { source, .. }) = call_other(&one) else {
        panic!("it is not linked yet");
    };
    assert!(
        matches!(source.downcast_ref(), Some(Error::Unlinked { .. })),
        "{source}"
    );
    let nothing = one.link(None, "another", &weigh);
    assert!(
        matches!(nothing, Err(Error::NoImport { .. })),
        "{nothing:?}"
    );
    one.link(None, "other", &weigh).unwrap();
    let twice = one.link(None, "other", &weigh);
    assert!(matches!(twice, Err(Error::Linked { .. })), "{twice:?}");
    two.unload().unwrap();
    let gone = one.link(None, "other_real", &weigh);
    assert!(matches!(gone, Err(Error::Unloaded { .. })), "{gone:?}");
    let links = one.links().unwrap();
    assert_eq!(links[0].import, "other");
}

#[test]
fn a_domain_that_another_one_calls_is_in_use() {
    let own: Arc<OnceLock<Domain>> = Arc::default();
    let inside = own.clone();
    let meddling = imports().function("host_who", move |_: &Caller<'_>| {
        let domain = inside.get().expect("set before the call");
        let restarted = domain.restart();
        assert!(
            matches!(restarted, Err(Error::InUse { .. })),
            "{restarted:?}"
        );
        // Unloading keeps the window until the call returns.
        domain.unload().map(|()| 5)
    });
    let two = named(&IMAGE, "two", 2, meddling).unwrap();
    own.set(two.clone()).expect("set once");
    let one = domain("one", 1);
    let who = two.function::<fn() -> i64>("who").unwrap();
    one.link(None, "other", &who).unwrap();
    assert_eq!(call_other(&one).unwrap(), 5);
    assert!(call_other(&one).is_err(), "now it has gone");
}

#[test]
fn a_panic_behind_a_link_goes_on_in_the_host() {
    let panicking =
        imports().function("host_who", |_: &Caller<'_>| -> i32 { panic!("on purpose") });
    let two = named(&IMAGE, "two", 2, panicking).unwrap();
    let one = domain("one", 1);
    let who = two.function::<fn() -> i64>("who").unwrap();
    one.link(None, "other", &who).unwrap();
    let call = std::panic::AssertUnwindSafe(|| call_other(&one));
    let payload = std::panic::catch_unwind(call).unwrap_err();
    assert_eq!(payload.downcast_ref(), Some(&"on purpose"));
}

fn page(host: &Host) -> Shared {
    host.share("page", Shared::PAGE).expect("a page")
}

fn give(shared: &Shared, domain: &Domain, permission: Permission) {
    let all = 0..shared.len();
    shared.grant(None, domain, all, permission).unwrap();
}

#[test]
fn a_page_is_writable_here_readable_there_and_absent_elsewhere() {
    let [one, two, three] = [1, 2, 3].map(|number| domain("sharing", number));
    let shared = page(&Host::new());
    give(&shared, &one, Permission::ReadWrite);
    give(&shared, &two, Permission::Read);
    let place = shared.ptr::<u32>(&one, 8).unwrap();
    let put = |domain: &Domain, value: u32| {
        let put = domain.function::<fn(Ptr<u32>, u32)>("put")?;
        put.call(place, value)
    };
    let get = |domain: &Domain| {
        let get = domain.function::<fn(Ptr<u32>) -> u32>("get")?;
        get.call(place)
    };
    put(&one, 0x1234).unwrap();
    // A pointer of the one works in the other.
    assert_eq!(get(&two).unwrap(), 0x1234);
    let mut bytes = [0; 4];
    shared.read(8, &mut bytes).unwrap();
    assert_eq!(u32::from_le_bytes(bytes), 0x1234);
    shared.write(8, &99u32.to_le_bytes()).unwrap();
    assert_eq!(get(&one).unwrap(), 99);
    assert_eq!(shared.bytes()[8].load(Ordering::Relaxed), 99);
    assert!(matches!(
        *crate::fault(put(&two, 1)).cause(),
        Cause::Access { .. }
    ));
    crate::fault(get(&three));
    // It can be read in the host's way too, as the domain may.
    let in_two = shared.ptr::<u32>(&two, 8).unwrap();
    assert_eq!(in_two.read(&two).unwrap(), 99);
    assert!(in_two.write(&two, &1).is_err());

    give(&shared, &one, Permission::None);
    crate::fault(get(&one));
    give(&shared, &one, Permission::ReadWrite);
    one.restart().unwrap();
    crate::fault(get(&one));
    assert_eq!(shared.bytes()[8].load(Ordering::Relaxed), 99);
}

#[test]
fn a_protection_changes_while_a_domain_runs() {
    let (reader, writer) = (domain("reader", 1), domain("writer", 2));
    let shared = page(&Host::new());
    give(&shared, &reader, Permission::Read);
    let place = shared.ptr::<u32>(&reader, 0).unwrap();
    std::thread::scope(|scope| {
        let wait = reader.function::<fn(Ptr<u32>) -> u32>("wait").unwrap();
        let waits = scope.spawn(move || wait.call(place).unwrap());
        for _ in 0..100 {
            give(&shared, &reader, Permission::ReadWrite);
            give(&shared, &reader, Permission::Read);
            give(&shared, &writer, Permission::ReadWrite);
        }
        let put = writer.function::<fn(Ptr<u32>, u32)>("put").unwrap();
        put.call(place, 5).unwrap();
        assert_eq!(waits.join().unwrap(), 5);
    });
}

#[test]
fn what_cannot_be_shared_is_refused() {
    let one = domain("one", 1);
    let shared = page(&Host::new());
    for (bytes, permission) in [
        (0..100, Permission::Read),
        (0..0, Permission::Read),
        (0..2 * Shared::PAGE, Permission::Read),
        (0..Shared::PAGE, Permission::ReadExecute),
    ] {
        let refused = shared.grant(None, &one, bytes, permission);
        assert!(matches!(refused, Err(Error::Share { .. })), "{refused:?}");
    }
    assert!(matches!(
        shared.read(Shared::PAGE - 1, &mut [0; 2]),
        Err(Error::Index { .. })
    ));
    assert!(matches!(
        shared.write(u64::MAX, &[0; 2]),
        Err(Error::Index { .. })
    ));
    one.unload().unwrap();
    let gone = shared.grant(None, &one, 0..Shared::PAGE, Permission::Read);
    assert!(matches!(gone, Err(Error::Unloaded { .. })), "{gone:?}");
}

/// Keeps what it was asked; says yes to the host, and to domains for themselves.
#[derive(Clone, Default)]
struct Asked(Arc<Mutex<Vec<String>>>);

impl Policy for Asked {
    fn admit(&self, _: &Candidate<'_>) -> Result<(), BoxedError> {
        Ok(())
    }
    fn allow(&self, question: &Question<'_>) -> Result<(), BoxedError> {
        if matches!(question.wish, Wish::Call { export, .. } if export == "crash") {
            return Err("nobody needs that".into());
        }
        let name = question.asker.map_or("host", Identity::name);
        self.0.lock().unwrap().push(format!("{name}: {question}"));
        match question.asker {
            Some(asker) if asker != question.domain => Err("not for others".into()),
            _ => Ok(()),
        }
    }
}

#[test]
fn the_policy_is_asked_for_entry_points_and_pages_with_who_asks() {
    let asked = Asked::default();
    let host = Host::builder().policy(asked.clone()).build();
    let image = open(&host);
    let two = named(&image, "two", 2, imports()).unwrap();
    let weigh = eight(&two, "weigh");
    let one = named(&image, "one", 1, imports().link("other", &weigh)).unwrap();
    let crash = two.function::<fn() -> i64>("crash").unwrap();
    let refused = named(&image, "three", 3, imports().link("other", &crash));
    let Err(Error::NotAllowed { asker: None, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(
        refused.unwrap_err().to_string(),
        "the host may not let three call `crash` of two: nobody needs that"
    );
    let (me, other) = (Some(&**one.identity()), Some(&**two.identity()));
    let refused = one.link(other, "other_real", &weigh);
    assert!(
        matches!(&refused, Err(Error::NotAllowed { asker: Some(asker), .. }) if asker == "two"),
        "{refused:?}"
    );
    one.link(me, "other_real", &weigh).unwrap();

    let shared = page(&host);
    let all = 0..shared.len();
    shared
        .grant(me, &one, all.clone(), Permission::Read)
        .unwrap();
    let refused = shared.grant(me, &two, all.clone(), Permission::Read);
    assert!(
        matches!(refused, Err(Error::NotAllowed { .. })),
        "{refused:?}"
    );
    let get = two.function::<fn(Ptr<u32>) -> u32>("get").unwrap();
    crate::fault(get.call(shared.ptr(&two, 0).unwrap()));
    assert_eq!(
        *asked.0.lock().unwrap(),
        [
            "host: let one call `weigh` of two",
            "two: let one call `weigh` of two",
            "one: let one call `weigh` of two",
            "one: give one the bytes 0x0 to 0x1000 of page as Read",
            "one: give two the bytes 0x0 to 0x1000 of page as Read",
        ]
    );
}

/// What a domain asks for itself, it may read, on the first page.
struct OnlyReading;

impl Policy for OnlyReading {
    fn admit(&self, _: &Candidate<'_>) -> Result<(), BoxedError> {
        Ok(())
    }
    fn allow(&self, question: &Question<'_>) -> Result<(), BoxedError> {
        let by_itself = question.asker == Some(question.domain);
        match &question.wish {
            Wish::Pages {
                bytes, permission, ..
            } if by_itself && *permission == Permission::Read && bytes.end <= Shared::PAGE => {
                Ok(())
            }
            _ => question.host_alone(),
        }
    }
}

#[test]
fn a_policy_tells_askers_ranges_and_permissions_apart() {
    let host = Host::builder().policy(OnlyReading).build();
    let image = open(&host);
    let [one, two] = [1, 2].map(|number| named(&image, "asking", number, imports()).unwrap());
    let shared = host.share("pages", 2 * Shared::PAGE).unwrap();
    let ask = |asker: &Domain, to: &Domain, bytes, permission| {
        shared.grant(Some(asker.identity()), to, bytes, permission)
    };
    let (first, all) = (0..Shared::PAGE, 0..2 * Shared::PAGE);
    ask(&one, &one, first.clone(), Permission::Read).unwrap();
    for refused in [
        ask(&one, &two, first.clone(), Permission::Read),
        ask(&one, &one, first, Permission::ReadWrite),
        ask(&one, &one, all, Permission::Read),
        one.link(Some(one.identity()), "other", &eight(&two, "weigh")),
    ] {
        assert!(
            matches!(refused, Err(Error::NotAllowed { .. })),
            "{refused:?}"
        );
    }
    let place = shared.ptr::<u32>(&one, 0).unwrap();
    let get = |domain: &Domain| {
        let get = domain.function::<fn(Ptr<u32>) -> u32>("get").unwrap();
        get.call(place)
    };
    assert_eq!(get(&one).unwrap(), 0, "it may read");
    let put = one.function::<fn(Ptr<u32>, u32)>("put").unwrap();
    crate::fault(put.call(place, 1));
    crate::fault(get(&two));
    assert!(one.links().unwrap().is_empty());
}

#[test]
fn without_a_policy_domains_may_ask_for_nothing() {
    let (one, two) = (domain("one", 1), domain("two", 2));
    let asker = Some(&**one.identity());
    let refused = one.link(asker, "other", &eight(&two, "weigh"));
    assert!(
        matches!(refused, Err(Error::NotAllowed { .. })),
        "{refused:?}"
    );
    let shared = page(&Host::new());
    let refused = shared.grant(asker, &one, 0..Shared::PAGE, Permission::Read);
    assert!(
        matches!(refused, Err(Error::NotAllowed { .. })),
        "{refused:?}"
    );
}

#[test]
fn a_function_pointer_of_one_domain_is_none_of_another() {
    let (one, two) = (domain("one", 1), domain("two", 2));
    // Both have the same code at the same offsets, in different windows.
    let pointer = one.function::<fn() -> Callback<fn() -> i64>>("get_who");
    let who = pointer.unwrap().call().unwrap();
    assert_eq!(who.call(&one).unwrap(), 1);
    let refused = who.call(&two);
    assert!(
        matches!(refused, Err(Error::NotAFunction { .. })),
        "{refused:?}"
    );
}
