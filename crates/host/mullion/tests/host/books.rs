//! The graph that the host sees, as `mullion map` paints it.

use crate::links::{domain, eight};
use crate::{IMAGE, fault, imports, support};
use mullion::picture::{AccessKind, Label, SupervisorState};
use mullion::{DomainMemory, Host, Permission, Shared};
use std::process::Command;

/// The number that a name has.
fn number(state: &SupervisorState, name: &str) -> u32 {
    let mut domains = state.domains.iter();
    domains.find(|domain| domain.name == name).unwrap().id
}

/// Who has what on the piece of the second name, within that of the first.
fn grants(
    state: &SupervisorState,
    outer: &str,
    inner: &str,
) -> Vec<(u32, AccessKind, Option<u32>)> {
    let outer = state.labels.iter().find(|label| label.name == outer);
    let outer = outer.unwrap();
    let is_it = |label: &&Label| {
        label.name == inner && outer.start <= label.start && label.end <= outer.end
    };
    let label = state.labels.iter().find(is_it).unwrap();
    let mut regions = state.regions.iter();
    let region = regions.find(|region| (region.start..region.end).contains(&label.start));
    let grants = region.unwrap().grants.iter();
    let mut all: Vec<_> = grants
        .map(|grant| (grant.domain.unwrap(), grant.access, grant.to))
        .collect();
    all.sort();
    all
}

#[test]
fn a_host_with_three_domains_a_link_and_a_shared_page_can_be_painted() {
    let [caller, callee, alone] =
        ["the caller", "the called one", "the third"].map(|name| domain(name, 0));
    caller
        .link(None, "other", &eight(&callee, "weigh"))
        .unwrap();
    let page = Host::new().share("the page", Shared::PAGE).unwrap();
    for (domain, permission) in [(&caller, Permission::ReadWrite), (&alone, Permission::Read)] {
        page.grant(None, domain, 0..Shared::PAGE, permission)
            .unwrap();
    }

    let books = mullion::snapshot();
    let [one, two, three] = [&caller, &callee, &alone].map(|of| number(&books, of.name()));
    assert_eq!(number(&books, "host"), 0);
    let gate = (one, AccessKind::SwitchGate, Some(two));
    assert!(grants(&books, "the called one", "weigh").contains(&gate));
    let code = (three, AccessKind::ExecuteRead, None);
    assert!(grants(&books, "the third", "code").contains(&code));
    let of_page = grants(&books, "the page", "the page");
    assert!(of_page.contains(&(one, AccessKind::ReadWrite, None)));
    assert!(of_page.contains(&(three, AccessKind::Read, None)));
    assert!(of_page.iter().all(|(domain, ..)| *domain != two));

    let directory = tempfile::tempdir().unwrap();
    let (json, svg) = (
        directory.path().join("books.json"),
        directory.path().join("books.svg"),
    );
    std::fs::write(&json, books.title("a running host").to_json()).unwrap();
    let mut map = Command::new(&*support::MULLION);
    let output = map.arg("map").arg(&json).arg("-o").arg(&svg).output();
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let picture = std::fs::read_to_string(svg).unwrap();
    for name in [
        "a running host",
        "the caller",
        "the called one",
        "the third",
        "the page",
        "weigh",
    ] {
        assert!(picture.contains(name), "{name}");
    }

    alone.unload().unwrap();
    let books = mullion::snapshot();
    assert!(books.domains.iter().all(|domain| domain.id != three));
    assert!(books.labels.iter().all(|label| label.name != "the third"));
}

/// Heaps and stacks are what the domain may write behind its image.
#[test]
fn heaps_and_stacks_have_names_and_a_domain_that_has_faulted_is_marked() {
    let [whole, faulty] = ["one that is whole", "one that faults"]
        .map(|name| IMAGE.domain().name(name).imports(imports()).load().unwrap());
    let _inside = whole.copy_in(&[1u8; 100_000]).unwrap();
    let ended = |name: &str| {
        let state = mullion::snapshot();
        let of = number(&state, name);
        let mut domains = state.domains.iter();
        domains.find(|domain| domain.id == of).unwrap().ended
    };
    assert!(!ended(faulty.name()));
    fault(faulty.function::<fn()>("fault").unwrap().call());
    assert!(ended(faulty.name()) && !ended(whole.name()));

    let state = mullion::snapshot();
    for domain in [&whole, &faulty] {
        let own = (number(&state, domain.name()), AccessKind::ReadWrite, None);
        for part in ["data", "heap", "stack"] {
            assert_eq!(grants(&state, domain.name(), part), [own], "{part}");
        }
    }
    let picture = mullion::picture::paint(
        &state.validate().unwrap(),
        &mullion::picture::PaintOptions::default(),
    );
    assert!(picture.contains(">one that faults (ended)<"));

    faulty.restart().unwrap();
    assert!(!ended(faulty.name()));
}
