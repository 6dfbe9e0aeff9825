//! The walk of `docs/supervisor.md` through Figure 5 of the paper, run. Every block of Rust on that page
//! stands here, in the same order.

use mullion_picture::{PaintOptions, SupervisorState, paint};
use mullion_recorder::Recorder;
use mullion_supervisor::{
    CallStack, Change, DomainId, Error, Level, Permission, Range, Rule, Supervisor, word_of,
};

#[test]
fn figure_5() -> Result<(), Error> {
    let memory = Range::bytes(0, 0x20000)?;
    let mut supervisor = Supervisor::new(memory, Recorder::new());
    let root = DomainId::SUPERVISOR;

    let kernel = supervisor.pd_subdivide(&root, memory, Permission::ReadWrite)?;
    supervisor.mprot(&kernel, Range::bytes(0, 0x6000)?, Permission::ExecuteRead)?;
    supervisor.mprot(&kernel, Range::bytes(0x6000, 0x2000)?, Permission::Read)?;

    let image = Range::bytes(0x10000, 0x3000)?;
    let module = supervisor.pd_subdivide(&kernel, image, Permission::ReadWrite)?;
    assert_eq!(supervisor.owner(word_of(0x10000)), Some(module));
    assert_eq!(
        supervisor.permission(kernel, word_of(0x10000)),
        Permission::None
    );
    assert_eq!(supervisor.parent(module)?, Some(kernel));

    let text = Range::bytes(0x10000, 0x1400)?;
    let rodata = Range::bytes(0x11400, 0xc00)?;
    supervisor.mprot(&module, text, Permission::ExecuteRead)?;
    supervisor.mprot(&module, rodata, Permission::Read)?;

    let entry = Range::bytes(0x10000, 4)?;
    let exit = Range::bytes(0x101fc, 4)?;
    let gate = Permission::SwitchGate { to: module };
    supervisor.mprot(&module, entry, gate)?;
    supervisor.mprot(&module, exit, Permission::ReturnGate)?;
    supervisor.mprot_export_up_to(&module, kernel, entry, gate, Level::None)?;

    let kmalloc = Range::bytes(0x2000, 4)?;
    let kmalloc_exit = Range::bytes(0x20fc, 4)?;
    let kmalloc_gate = Permission::SwitchGate { to: kernel };
    supervisor.mprot(&kernel, kmalloc, kmalloc_gate)?;
    supervisor.mprot(&kernel, kmalloc_exit, Permission::ReturnGate)?;
    supervisor.mprot_export(&kernel, module, kmalloc, kmalloc_gate)?;

    let stack = Range::bytes(0x1f000, 0x1000)?;
    let mut thread = supervisor.thread_create(&kernel, stack)?;
    supervisor.thread_call(&mut thread, entry.start(), 0x2500, word_of(0x1ff00))?;
    assert_eq!(
        (thread.current(), thread.previous()),
        (module, Some(kernel))
    );

    let page = Range::bytes(0x18000, 0x1000)?;
    supervisor.thread_call(&mut thread, kmalloc.start(), 0x10080, word_of(0x1fe00))?;
    supervisor.perm_alloc(&thread, page)?;
    supervisor.thread_return(&mut thread, kmalloc_exit.start(), 0x10080)?;
    assert_eq!(
        supervisor.permission(module, word_of(0x18000)),
        Permission::ReadWrite
    );

    let greedy = supervisor.mprot(&thread, Range::bytes(0x8000, 4)?, Permission::ReadWrite);
    let refusal = greedy.unwrap_err();
    assert_eq!(refusal.rule(), Rule::Row(2));
    assert_eq!(
        refusal.to_string(),
        "domain 2 asks for read-write on 0x8000..0x8004 and has none \
         [Table 1, row 2 (mprot A: who does not own can only lower what it has)]; \
         ask for less, or have the owner export more to you first"
    );

    supervisor.thread_return(&mut thread, exit.start(), 0x2500)?;
    let state = SupervisorState::from(&supervisor.snapshot())
        .name(kernel, "kernel")
        .name(module, "module");
    let json = state.to_json();
    let picture = paint(
        &state.validate().expect("it holds together"),
        &PaintOptions::default(),
    );
    assert!(json.contains("switch-gate") && picture.starts_with("<svg"));

    supervisor.perm_free(&kernel, page)?;
    supervisor.pd_free(&kernel, module)?;
    assert_eq!(supervisor.owner(word_of(0x10000)), Some(kernel));
    assert_eq!(
        supervisor.permission(kernel, word_of(0x10000)),
        Permission::None
    );
    assert!(
        supervisor
            .mechanism()
            .ranges()
            .all(|(domain, _, _)| domain != module)
    );
    Ok(())
}

#[test]
fn many_changes_and_grants_that_come_and_go() -> Result<(), Box<dyn std::error::Error>> {
    let mut supervisor = Supervisor::new(Range::bytes(0, 0x20000)?, Recorder::new());
    let (root, rw) = (DomainId::SUPERVISOR, Permission::ReadWrite);
    let kernel = supervisor.pd_subdivide(&root, Range::bytes(0, 0x10000)?, rw)?;
    let module = supervisor.pd_subdivide(&kernel, Range::bytes(0x8000, 0x1000)?, rw)?;

    let buffer = Range::bytes(0x1000, 64)?;
    let name = Range::bytes(0x2000, 16)?;
    let export = |range, permission| Change::Export {
        target: module.into(),
        range,
        permission,
        export: Level::None,
    };
    supervisor.change_all(&[
        (kernel, export(buffer, Permission::ReadWrite)),
        (kernel, export(name, Permission::Read)),
    ])?;
    assert_eq!(
        supervisor.permission(module, name.start()),
        Permission::Read
    );
    supervisor.perm_free(&kernel, buffer)?;

    let permission = Permission::ReadWrite;
    let grant = supervisor.prepare(&kernel, module, buffer, permission, Level::None)?;
    supervisor.grant_prepared(&kernel, grant)?;
    supervisor.revoke_prepared(&kernel, grant)?;
    supervisor.release(grant)?;
    assert_eq!(
        supervisor.permission(module, buffer.start()),
        Permission::None
    );

    let pages = Range::bytes(0x4000, 0x2000)?;
    let object = Range::bytes(0x4100, 64)?;
    let slab = supervisor.prepare(&kernel, module, pages, permission, Level::None)?;
    if !supervisor.grant_part(&kernel, slab, object)? {
        supervisor.mprot_export(&kernel, module, object, permission)?;
    }
    assert_eq!(supervisor.permission(module, object.start()), permission);
    assert!(supervisor.revoke_part(&kernel, slab, object)?);
    assert_eq!(
        supervisor.permission(module, object.start()),
        Permission::None
    );
    Ok(())
}

#[test]
fn the_page_shows_what_runs_here() {
    let page = include_str!("../../../../docs/supervisor.md");
    let mut here = include_str!("figure_5.rs");
    let blocks: Vec<&str> = page
        .split("```rust\n")
        .skip(1)
        .filter_map(|rest| rest.split("\n```").next())
        .collect();
    assert!(blocks.len() > 8, "{} blocks", blocks.len());
    for block in blocks {
        let indented: Vec<String> = block
            .lines()
            .map(|line| {
                if line.is_empty() {
                    String::new()
                } else {
                    format!("    {line}")
                }
            })
            .collect();
        let indented = indented.join("\n");
        let Some(at) = here.find(&indented) else {
            panic!(
                "this block of docs/supervisor.md is not in tests/figure_5.rs, in this order:\n{block}"
            );
        };
        here = &here[at + indented.len()..];
    }
}
