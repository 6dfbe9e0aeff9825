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
        .map(|segment| segment.permission)
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

/// Forms of access through `%gs`, and whether they must be confined where reads are free.
const THROUGH_GS: [&str; 6] = [
    "movl %gs:8(%edi), %eax",
    "movl %eax, %gs:8(%edi)",
    "movzbl %gs:(%edi,%esi,2), %ecx",
    "prefetcht0 %gs:(%edi)",
    "addsd %gs:(%edi), %xmm0",
    "movl $-LABEL, %r11d\n addl %gs:-4(%eax), %r11d\n jne 1f\n movl %eax, %r11d\n addq %r14, %r11\n call *%r11\n 1: nop",
];

/// A stale base would have another domain's memory looked at: whoever sets it asks this.
#[test]
fn what_needs_the_gs_base() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let image = |protection: u32, code: &str| {
        let text = format!(".globl PROTECTION\n.set PROTECTION, {protection}\n{code}\n ret\n");
        let bytes = support::assemble(directory.path(), &text);
        verify(bytes).unwrap_or_else(|rejected| panic!("{protection}: {code}: {rejected}"))
    };
    for protection in [0, 1] {
        for code in THROUGH_GS {
            let image = image(protection, code);
            assert!(image.needs_gs_base(), "{protection}: {code}");
            assert_eq!(
                (image.stats().gs, image.stats().reads_unconfined),
                (1, 0),
                "{protection}: {code}"
            );
        }
        let without = "movl %edi, %r11d\n movl 8(%r14,%r11), %eax\n movl 4(%r15), %ecx";
        assert!(!image(protection, without).needs_gs_base());
    }
    // Reads that nothing confines are no reason to set it.
    let free = image(0, "movl (%rdi), %eax");
    assert!(!free.needs_gs_base() && free.stats().reads_unconfined == 1);
}
