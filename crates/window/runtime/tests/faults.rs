//! One test for each kind of fault: it ends the invocation alone, and says what happened.

mod support;

use mullion_runtime::{Access, Attempt, CallEnd, Cause, Limits};
use support::{Program, host};

/// Programs that do one thing wrong each.
const WRONG: &str = "
    .section .rodata
constant: .quad 1
    .data
variable: .quad 2
    .text
    export null_read
        xorl %eax, %eax
        movq %gs:16(%eax), %rax
        ret
    export null_write
        movl %edi, %r11d
        movq %rax, (%r14,%r11)
        ret
    export upper_guard
        movl $-1, %r11d
        movq (%r14,%r11), %rax
        ret
    export write_constant
        movq $1, constant(%rip)
        ret
    export write_code
        leaq write_code(%rip), %rax
        movl %eax, %r11d
        movq %rax, (%r14,%r11)
        ret
    export jump_into_data
        leaq variable(%rip), %rax
        jmp *%rax
    export abort
        ud2
    export undefined
        .byte 0x0f, 0xff, 0xc0
        ret
    export failed_label
        ud1 %eax, %eax
    export trapped_access
        ud1 %ecx, %eax
    export divide
        xorl %edx, %edx
        movl $1, %eax
        xorl %ecx, %ecx
        divl %ecx
        ret
    export breakpoint
        int3
        ret
    export floating_point
        subq $16, %r15
        movl $0x1d80, (%r15)
        ldmxcsr (%r15)
        xorps %xmm0, %xmm0
        movl $1, %eax
        cvtsi2sd %eax, %xmm1
        divsd %xmm0, %xmm1
        addq $16, %r15
        ret
    export x87_pending
        subq $16, %r15
        movw $0x340, (%r15)
        fldcw (%r15)
        fld1
        fldz
        fdivrp
        addq $16, %r15
        ret
    export recurse
        call recurse
        ret
    export deep_data
        subq $0x1000, %r15
        movq $0, (%r15)
        jmp deep_data
    export unknown_gate
        call 0x10000 + 32 * 100
        ret
    export unknown_builtin
        call 0x10000 + 32 * 7
        ret
    export nested
        call inner
        ret
    inner:
        call innermost
        ret
    innermost:
        ud2
";

/// The fault of a function of [`WRONG`], and that the process goes on.
fn fault(name: &str) -> (mullion_runtime::RawFault, support::Loaded) {
    let loaded = Program::new(WRONG).load();
    let fault = loaded.fault(name, &[]);
    assert!(loaded.domain.has_ended());
    assert_eq!(fault.base, loaded.domain.memory().base());
    let fresh = Program::new(WRONG).load();
    fresh.fault("abort", &[]);
    (fault, loaded)
}

fn access(name: &str) -> (Attempt, Option<Access>, Option<u64>) {
    let (fault, _) = fault(name);
    let address = fault.address.map(|address| fault.offset(address).unwrap());
    match fault.cause {
        Cause::Access { attempt, permitted } => (attempt, permitted, address),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_null_pointer_is_a_fault_at_its_offset() {
    assert_eq!(access("null_read"), (Attempt::Read, None, Some(16)));
    assert_eq!(access("null_write"), (Attempt::Write, None, Some(0)));
}

#[test]
fn the_upper_guard_is_never_mapped() {
    assert_eq!(
        access("upper_guard"),
        (Attempt::Read, None, Some(0xffff_ffff))
    );
}

#[test]
fn constants_and_code_cannot_be_written() {
    let (attempt, permitted, _) = access("write_constant");
    assert_eq!((attempt, permitted), (Attempt::Write, Some(Access::Read)));
    let (attempt, permitted, _) = access("write_code");
    assert_eq!(
        (attempt, permitted),
        (Attempt::Write, Some(Access::ReadExecute))
    );
}

#[test]
fn data_cannot_be_executed() {
    let (attempt, permitted, _) = access("jump_into_data");
    assert_eq!(
        (attempt, permitted),
        (Attempt::Execute, Some(Access::ReadWrite))
    );
}

#[test]
fn failed_checks_are_told_apart() {
    for (name, cause) in [
        ("abort", Cause::Trap),
        ("undefined", Cause::IllegalInstruction),
        ("failed_label", Cause::FailedLabel),
        ("trapped_access", Cause::TrappedAccess),
        ("divide", Cause::Division),
        ("breakpoint", Cause::Breakpoint),
        ("floating_point", Cause::FloatingPoint),
        ("unknown_gate", Cause::UnknownGate),
        ("unknown_builtin", Cause::UnknownGate),
        ("recurse", Cause::ControlStackOverflow),
    ] {
        assert_eq!(fault(name).0.cause, cause, "{name}");
    }
}

#[test]
fn an_exception_left_pending_on_the_x87_unit_does_not_reach_the_host() {
    let loaded = Program::new(WRONG).load();
    loaded.call("x87_pending", &[]).unwrap();
    let (mut word, mut top): (u16, u16) = (0, 0);
    // SAFETY: stores two words; `fwait` would report what is pending.
    unsafe {
        std::arch::asm!("fwait", "fnstcw [{}]", "fnstsw [{}]", in(reg) &mut word, in(reg) &mut top);
    }
    assert_eq!(
        (word, top & 0x80),
        (0x37f, 0),
        "control word, and no summary of exceptions"
    );
}

#[test]
fn a_full_data_stack_is_told_from_a_wild_pointer() {
    let limits = Limits {
        stack: 0x10000,
        ..Limits::default()
    };
    let loaded = Program::new(WRONG).load_with(Vec::new(), limits);
    let fault = loaded.fault("deep_data", &[]);
    assert_eq!(fault.cause, Cause::DataStackOverflow { size: 0x10000 });
}

#[test]
fn the_backtrace_is_read_from_the_control_stack() {
    let (fault, loaded) = fault("nested");
    let inner = loaded.address("nested");
    assert_eq!(
        fault.backtrace.len(),
        2,
        "innermost to inner, inner to nested; the host is not the domain's to see"
    );
    assert_eq!(fault.backtrace[1], inner + 5);
    assert_eq!(
        fault.instruction,
        fault.backtrace[0] + 1,
        "`innermost` stands right behind `inner`"
    );
    assert_eq!(fault.omitted, 0);
    let registers = fault.registers.unwrap();
    assert_eq!(registers.get("rip"), Some(fault.instruction));
    assert_eq!(registers.get("r14"), Some(fault.base));
}

#[test]
fn a_deep_backtrace_keeps_both_ends() {
    let (fault, loaded) = fault("recurse");
    assert_eq!(
        fault.backtrace.len(),
        mullion_runtime::INNERMOST + mullion_runtime::OUTERMOST
    );
    assert!(fault.omitted > 400_000, "{}", fault.omitted);
    assert!(
        fault
            .backtrace
            .iter()
            .all(|address| *address == loaded.address("recurse") + 5)
    );
}

#[test]
fn a_domain_may_raise_a_signal_against_itself() {
    let program = Program::new(
        "
        import raise
        export go
            call raise
            ret
        ",
    );
    let loaded = program.load_with(vec![host(|_| Err(CallEnd::Raised(6)))], Limits::default());
    let fault = loaded.fault("go", &[]);
    assert_eq!(fault.cause, Cause::Raised { signal: 6 });
    assert_eq!(
        fault.instruction,
        loaded.address("go") + 5,
        "behind the call of the gate"
    );
    assert_eq!(
        fault.to_string(),
        format!(
            "aborted, by the instruction at offset {:#x}",
            fault.instruction - fault.base
        )
    );
}

#[test]
fn faults_in_nested_invocations_end_the_inner_one_alone() {
    let inner = std::sync::Arc::new(Program::new(WRONG).load());
    let program = Program::new(
        "
        import risky
        export go
            subq $24, %r15
            movq %rdi, 8(%r15)
            call risky
            addq 8(%r15), %rax
            addq $24, %r15
            testb $0, -8(%r15)
            ret
        ",
    );
    let risky = host(move |_| {
        let fault = inner.fault("divide", &[]);
        assert_eq!(fault.cause, Cause::Division);
        Ok(1)
    });
    let outer = program.load_with(vec![risky], Limits::default());
    assert_eq!(outer.call("go", &[41]).unwrap().integer, 42);
}

#[test]
fn a_host_that_reads_what_a_domain_has_not_gets_an_error() {
    let loaded = Program::new(WRONG).load();
    let memory = loaded.domain.memory();
    let base = memory.base();
    for offset in [0, 0xd000_0000, 0xffff_0000, 0xffff_ffff] {
        assert!(
            memory
                .read_u64(mullion_runtime::Claimed(base + offset))
                .is_err(),
            "{offset:#x}"
        );
    }
    for address in [0, base - 8, base + (1 << 32), u64::MAX] {
        assert!(
            memory
                .write(mullion_runtime::Claimed(address), &[0; 8])
                .is_err(),
            "{address:#x}"
        );
    }
    let code = mullion_runtime::Claimed(loaded.address("abort"));
    assert_eq!(memory.read(code), Ok([0x0f, 0x0b]));
    assert!(
        memory.write(code, &[0x90, 0x90]).is_err(),
        "code is read-only to the host too"
    );
}
