//! What a host's supervisor decided, written as a trace, leads the hardware model to the same state.

mod support;

use mullion::{Caller, Domain, Host, Image, Imports, Permission, Shared};
use mullion_mmp::config::Config;
use mullion_mmp::machine::Machine;
use mullion_mmp::recorder::{ADDRESS_BITS, TraceRecorder};
use mullion_mmp::trace::{Header, TraceReader, TraceWriter};
use mullion_supervisor::Snapshot;
use std::path::Path;

fn domain(image: &Image, name: &str) -> Domain {
    let imports = Imports::new()
        .link_later("other")
        .link_later("other_real")
        .function("host_who", |_: &Caller<'_>| 0)
        .function(
            "host_eight",
            |_: &Caller<'_>, _: i32, _: i32, _: i32, _: i32, _: i32, _: i32, _: i8, h: i64| h,
        );
    image.domain().name(name).imports(imports).load().unwrap()
}

/// The log as a file, read by a machine; nothing may be refused.
fn replayed(calls_at_least: u64) -> Snapshot {
    let books = mullion_runtime::supervisor();
    let header = Header {
        address_bits: ADDRESS_BITS,
        note: String::new(),
    };
    let mut writer = TraceWriter::new(Vec::new(), &header).unwrap();
    let mut recorder = TraceRecorder::new(|event| writer.write(&event));
    for decision in books.audit().expect("it was started").iter() {
        recorder.decision(decision).unwrap();
    }
    let file = writer.finish().unwrap();
    let mut reader = TraceReader::new(&file[..]).unwrap();
    let mut machine = Machine::new(&Config::default(), ADDRESS_BITS).unwrap();
    while let Some(block) = reader.next_block().unwrap() {
        for event in block.events() {
            machine.step(&event.unwrap()).unwrap();
        }
    }
    let report = machine.report();
    assert_eq!(report.refusals, []);
    assert!(
        report.supervisor_calls >= calls_at_least,
        "{}",
        report.supervisor_calls
    );
    machine.supervisor().snapshot()
}

/// Everything below the host's own memory at the end of the space, where the trace has its stacks.
fn below(snapshot: Snapshot) -> impl PartialEq + std::fmt::Debug {
    let mut regions = snapshot.regions;
    regions.retain(|(range, _)| range.end() < 1 << (ADDRESS_BITS - 3));
    assert!(regions.len() > 8, "{regions:?}");
    (snapshot.domains, snapshot.groups, regions)
}

#[test]
fn domains_links_and_shared_pages_are_replayed() {
    // Before the first domain.
    mullion_runtime::start_audit(10_000);
    let directory = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/extensions/links.c");
    let file = directory.path().join("links.mx");
    support::build(&source, &file, &[]);
    let image = Host::new().open(file).unwrap();

    let [caller, callee, third] = ["caller", "callee", "third"].map(|name| domain(&image, name));
    type Eight = fn(i32, i32, i32, i32, i32, i32, i8, i64) -> i64;
    let weigh = callee.function::<Eight>("weigh").unwrap();
    caller.link(None, "other", &weigh).unwrap();
    let other = caller.function::<fn(i64) -> i64>("call_other").unwrap();
    assert_eq!(other.call(0).unwrap(), 1 + 4 + 9 + 16 + 25 + 36 - 49);
    let page = Host::new().share("the page", Shared::PAGE).unwrap();
    for (domain, permission) in [(&caller, Permission::ReadWrite), (&third, Permission::Read)] {
        page.grant(None, domain, 0..Shared::PAGE, permission)
            .unwrap();
    }

    let own = mullion_runtime::snapshot();
    assert_eq!(own.domains.len(), 4);
    assert_eq!(below(own), below(replayed(15)));

    third.unload().unwrap();
    let own = mullion_runtime::snapshot();
    assert_eq!(own.domains.len(), 3);
    assert_eq!(below(own), below(replayed(16)));
}
