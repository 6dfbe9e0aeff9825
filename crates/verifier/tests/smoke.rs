//! An image as the rewriter writes it is accepted, and says what it is.

mod support;

use mullion_verifier::{ImageKind, Permission, Place, Rule, verify};

const GOOD: &str = r#"
    subq $24, %r15
    movq %rbx, 8(%r15)
    movl %edi, %r11d
    movq (%r14,%r11), %rax
    addq %r14, %r11
    movl $5, 8(%r11)
    movb %cl, %gs:3(%edi,%esi,4)
    movl counter(%rip), %eax
    call import
    movl %eax, %r11d
    movl $-LABEL, %r10d
    addl -4(%r14,%r11), %r10d
    jne  1f
    addq %r14, %r11
    call *%r11
    movq 8(%r15), %rbx
    addq $24, %r15
    testb %al, -1(%r15)
    ret
1:  ud1 %eax, %eax
    .data
counter: .quad _start
"#;

#[test]
fn a_good_image_is_accepted() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let image = verify(support::assemble(directory.path(), GOOD))
        .unwrap_or_else(|rejected| panic!("{rejected}"));
    let permissions: Vec<_> = image
        .segments()
        .iter()
        .map(|segment| segment.permission())
        .collect();
    assert_eq!(
        permissions,
        [
            Permission::ReadExecute,
            Permission::Read,
            Permission::ReadWrite
        ]
    );
    assert_eq!(image.imports(), ["import"]);
    assert_eq!(image.export("export"), Some(image.entry()));
    assert_eq!(image.kind(), ImageKind::Extension);
    assert_eq!(image.growth(), (100, 120));
    assert!(image.is_labelled(image.entry()) && !image.is_labelled(image.entry() + 1));
    let relocations: Vec<_> = image.relocations().collect();
    assert_eq!(relocations.len(), 1);
    assert_eq!(relocations[0].addend, image.entry());
    let stats = image.stats();
    assert_eq!(
        (stats.labels, stats.indirect, stats.import_branches()),
        (1, 1, &[1][..])
    );
    assert_eq!(
        (
            stats.gs,
            stats.offset,
            stats.pointer,
            stats.stack,
            stats.rip
        ),
        (1, 2, 1, 3, 1)
    );
}

#[test]
fn a_wild_write_is_rejected() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let bytes = support::assemble(directory.path(), "movl $1, (%rdi)\n ret");
    let rejected = verify(bytes).expect_err("a wild write");
    let first = &rejected.violations[0];
    assert_eq!(
        (first.rule, first.place, &first.bytes[..]),
        (
            Rule::WriteUnconfined,
            Place::Window(0x20007),
            &[0xc7, 7, 1, 0, 0, 0][..]
        )
    );
}
