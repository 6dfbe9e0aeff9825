//! What code that keeps to the verifier's rules may still try.

mod support;

use mullion_runtime::{CallArguments, Cause, Limits};
use std::arch::asm;
use std::sync::atomic::{AtomicUsize, Ordering};
use support::{Program, host};

/// A buffer for setjmp, and functions that use it well and badly.
const JUMPS: &str = "
    .bss
    .balign 16
buffer: .skip 64
    import host
    export good
        leaq buffer(%rip), %rdi
        movl $77, %ebx
        call setjmp
        label
        testl %eax, %eax
        jnz 1f
        xorl %ebx, %ebx
        leaq buffer(%rip), %rdi
        movl %eax, %esi
        call deep
        ud2
    1:  imull $100, %eax, %eax
        addl %ebx, %eax
        ret
    deep:
        call longjmp
        ud2
    export set
        leaq buffer(%rip), %rdi
        call setjmp
        label
        ret
    # rdi is added to the distance of the control stack, rsi to the target.
    export forged
        leaq buffer(%rip), %rdx
        movl %edx, %r11d
        movq %rdi, %rbp
        movq %rsi, %r12
        movq %rdx, %rdi
        call setjmp
        label
        testl %eax, %eax
        jnz 1f
        leaq buffer(%rip), %rdi
        movl %edi, %r11d
        addq %rbp, 40(%r14,%r11)
        addq %r12, 48(%r14,%r11)
        call longjmp
        ud2
    1:  movl $5, %eax
        ret
    export stack_is_masked
        leaq buffer(%rip), %rdi
        call setjmp
        label
        testl %eax, %eax
        jnz 1f
        leaq buffer(%rip), %rdi
        movl %edi, %r11d
        movq $-1, 32(%r14,%r11)
        call longjmp
        ud2
    1:  movq %r15, %rax
        subq %r14, %rax
        ret
    export no_buffer
        movl $16, %edi
        call setjmp
        label
        ret
    # A gate as the end of the function that the host has called.
    export set_at_the_end
        leaq buffer(%rip), %rdi
        jmp setjmp
    export no_buffer_at_the_end
        movl $16, %edi
        jmp longjmp
    export saved
        leaq buffer(%rip), %rdx
        movl %edx, %r11d
        movq 48(%r14,%r11), %rax
        ret
    export across
        leaq buffer(%rip), %rdi
        call setjmp
        label
        testl %eax, %eax
        jnz 1f
        call host
        ret
    1:  ud2
    export jump_out
        leaq buffer(%rip), %rdi
        movl $1, %esi
        call longjmp
        ud2
    export read
        call control_read
        ret
    export unwind
        subq $64, %r15
        movq $11, (%r15)
        movq $12, 8(%r15)
        movq $13, 16(%r15)
        movq $14, 24(%r15)
        movq $15, 32(%r15)
        movq $16, 40(%r15)
        movl $3, %edi
        leaq landing(%rip), %rsi
        movq %r15, %rcx
        leaq 64(%r15), %rdx
        call thrower
        ud2
        .nops 9, 9
        label
    landing:
        leaq (%rbx,%rbp), %rbx
        addq %r12, %rbx
        addq %r13, %rbx
        addq %rdx, %rax
        imulq $1000, %rax, %rax
        addq %rbx, %rax
        ret
    thrower:
        call control_unwind_by_gate
        ud2
    control_unwind_by_gate:
        call control_unwind
        ud2
    export unwind_too_far
        leaq landing(%rip), %rsi
        movq %r15, %rdx
        leaq buffer(%rip), %rcx
        call control_unwind
        ud2
    export unwind_unlabelled
        movl $1, %edi
        leaq thrower(%rip), %rsi
        movq %r15, %rdx
        leaq buffer(%rip), %rcx
        call control_unwind
        ud2
";

fn jumps() -> support::Loaded {
    Program::new(JUMPS).load_with(vec![host(|_| Ok(0))], Limits::default())
}

#[test]
fn longjmp_returns_where_setjmp_did_with_its_registers() {
    assert_eq!(
        jumps().call("good", &[]).unwrap().integer,
        177,
        "1 for 0, and the saved rbx"
    );
    assert_eq!(
        jumps().call("forged", &[0, 0]).unwrap().integer,
        5,
        "unchanged, it works"
    );
}

#[test]
fn longjmp_keeps_the_control_stack_within_the_invocation() {
    for distance in [-8_i64, -16, -64, 64, 1 << 20, 1 << 40, i64::MIN, 1, 4] {
        let fault = jumps().fault("forged", &[distance as u64, 0]);
        assert_eq!(fault.cause, Cause::BadUnwind, "{distance}");
    }
}

#[test]
fn longjmp_goes_to_labels_only() {
    for distance in [1_i64, -7, 100, 5] {
        let fault = jumps().fault("forged", &[0, distance as u64]);
        assert_eq!(fault.cause, Cause::UnlabelledUnwind, "{distance}");
    }
}

#[test]
fn longjmp_masks_the_data_stack() {
    assert_eq!(
        jumps().call("stack_is_masked", &[]).unwrap().integer,
        0xffff_ffff
    );
}

/// A frame that has returned: at the same depth of another invocation the buffer
/// is one that the domain could have written itself. It stays within it.
#[test]
fn a_stale_buffer_leads_nowhere_else() {
    let loaded = jumps();
    loaded.call("set", &[]).unwrap();
    assert_eq!(loaded.call("jump_out", &[0, 7]).unwrap().integer, 1);
}

#[test]
fn longjmp_does_not_cross_invocations() {
    let program = Program::new(JUMPS);
    let jump_out = std::sync::Arc::new(std::sync::OnceLock::new());
    let target: std::sync::Arc<std::sync::OnceLock<u64>> = jump_out.clone();
    let again = host(move |caller| {
        let entry = caller
            .entry(mullion_runtime::Claimed(*target.get().unwrap()))
            .unwrap();
        match caller
            .call(entry, &CallArguments::default(), None)
            .map_err(|error| *error)
        {
            Err(mullion_runtime::CallError::Fault(fault)) => {
                assert_eq!(fault.cause, Cause::BadUnwind);
                Ok(99)
            }
            other => panic!("{other:?}"),
        }
    });
    let loaded = program.load_with(vec![again], Limits::default());
    jump_out.set(loaded.address("jump_out")).unwrap();
    assert_eq!(loaded.call("across", &[]).unwrap().integer, 99);
}

#[test]
fn a_bad_buffer_is_the_domains_fault() {
    let fault = jumps().fault("no_buffer", &[]);
    assert!(
        matches!(fault.cause, Cause::Access { .. }),
        "{:?}",
        fault.cause
    );
    assert_eq!(fault.offset(fault.address.unwrap()), Some(16));
}

/// Faults in built-in gates are reported by addresses of the domain's own.
#[test]
fn a_fault_in_a_gate_is_where_the_domain_called_it() {
    let loaded = jumps();
    let fault = loaded.fault("no_buffer", &[]);
    let call = loaded.address("no_buffer") + 5;
    assert_eq!((fault.instruction, fault.backtrace.len()), (call + 5, 0));
    let registers = fault.registers.as_ref().unwrap();
    assert_eq!(registers.get("rip"), Some(fault.instruction));
    assert_eq!(registers.get("rdi"), Some(16));
    for changed in ["rax", "rcx", "r10", "r11"] {
        assert_eq!(registers.get(changed), Some(0), "{changed}");
    }
    assert!(fault.to_string().ends_with(&format!(
        "by the instruction at offset {:#x}",
        fault.offset(fault.instruction).unwrap()
    )));
    // Jumped to by a function that the host has called, it has no caller in the domain.
    let fault = jumps().fault("no_buffer_at_the_end", &[]);
    let offset = fault.offset(fault.instruction).unwrap();
    assert_eq!(
        offset,
        mullion_abi::GATE_BASE + 2 * mullion_abi::GATE_SLOT_SIZE
    );
    let fault = jumps().fault("unwind_too_far", &[9]);
    assert!(fault.offset(fault.instruction).is_some(), "{fault:?}");
}

/// What stands below the outermost function's frame is an address of the host's.
#[test]
fn setjmp_does_not_tell_where_the_host_is() {
    let mut loaded = jumps();
    let fault = loaded.fault("set_at_the_end", &[]);
    assert_eq!(fault.cause, Cause::BadUnwind);
    assert!(fault.offset(fault.instruction).is_some(), "{fault:?}");
    loaded.domain.restart().unwrap();
    assert_eq!(loaded.call("saved", &[]).unwrap().integer, 0);
}

#[test]
fn control_read_ends_at_the_return_gate() {
    let loaded = jumps();
    let read = loaded.address("read");
    assert_eq!(loaded.call("read", &[0]).unwrap().integer, read + 5);
    for depth in [1, 2, 1 << 19, 1 << 61, u64::MAX] {
        assert_eq!(loaded.call("read", &[depth]).unwrap().integer, 0, "{depth}");
    }
}

#[test]
fn control_unwind_drops_frames_and_sets_registers() {
    assert_eq!(
        jumps().call("unwind", &[]).unwrap().integer,
        31_000 + 11 + 12 + 13 + 14
    );
    for depth in [2, 3, 1 << 19, 1 << 61, u64::MAX] {
        assert_eq!(
            jumps().fault("unwind_too_far", &[depth]).cause,
            Cause::BadUnwind,
            "{depth}"
        );
    }
    assert_eq!(
        jumps().fault("unwind_unlabelled", &[]).cause,
        Cause::UnlabelledUnwind
    );
}

/// The host's callee-saved registers and control words survive a domain that changes all.
#[test]
fn the_hosts_registers_are_restored_whatever_the_domain_did() {
    let program = Program::new(
        "
        export spoil
            movq $-1, %rbx
            movq $-1, %rbp
            movq $-1, %r12
            movq $-1, %r13
            subq $16, %r15
            movl $0x7fc0, (%r15)
            ldmxcsr (%r15)
            movw $0x0c7f, 8(%r15)
            fldcw 8(%r15)
            fld1
            fld1
            fld1
            fld1
            fld1
            fld1
            fld1
            fld1
            addq $16, %r15
            testb $0, -16(%r15)
            testl %edi, %edi
            jnz 1f
            ret
        1:  ud2
        ",
    );
    for fault in [0, 1] {
        let loaded = program.load();
        let (mut mxcsr, mut x87): (u32, u16) = (0, 0);
        let _ = loaded.call("spoil", &[fault]);
        let mut one = 0_f64;
        // SAFETY: stores control words and pushes one number on the x87 stack and pops it.
        unsafe {
            asm!("stmxcsr [{}]", "fnstcw [{}]", "fld1", "fstp qword ptr [{}]",
                in(reg) &mut mxcsr, in(reg) &mut x87, in(reg) &mut one);
        }
        assert_eq!(
            (mxcsr & 0xffc0, x87, one),
            (0x1f80, 0x37f, 1.0),
            "fault: {fault}"
        );
    }
}

/// Registers at entry and after a gate hold nothing of the host's.
#[test]
fn nothing_of_the_hosts_is_left_in_registers() {
    let program = Program::new(
        "
        .data
        .balign 64
        saved: .skip 512
        import secret
        export at_entry
            orq %rbx, %rbp
            orq %r10, %rbp
            orq %r12, %rbp
            orq %r13, %rbp
            orq %rax, %rbp
            jmp collect
        export after_gate
            call secret
            orq %rcx, %rdx
            orq %rsi, %rdx
            orq %rdi, %rdx
            orq %r8, %rdx
            orq %r9, %rdx
            orq %r10, %rdx
            orq %r11, %rdx
            movq %rdx, %rbp
        collect:
            orps %xmm1, %xmm0
            orps %xmm2, %xmm0
            orps %xmm7, %xmm0
            orps %xmm8, %xmm0
            orps %xmm15, %xmm0
            movq %xmm0, %rax
            psrldq $8, %xmm0
            movq %xmm0, %rdx
            orq %rdx, %rax
            orq %rbp, %rax
            movq %mm0, %rdx
            orq %rdx, %rax
            movq %mm7, %rdx
            orq %rdx, %rax
            emms
            ret
        ",
    );
    let secret = host(|_| {
        // SAFETY: fills registers that a function may change.
        unsafe {
            asm!("pcmpeqd xmm8, xmm8", "pcmpeqd xmm1, xmm1", "mov rcx, -1", "mov r8, -1", out("rcx") _, out("r8") _, out("xmm8") _, out("xmm1") _)
        };
        Ok(0)
    });
    let loaded = program.load_with(vec![secret], Limits::default());
    let entry = loaded
        .domain
        .entry(mullion_runtime::Claimed(loaded.address("at_entry")))
        .unwrap();
    // SAFETY: fills registers that a function may change; the x87 stack is left empty.
    unsafe {
        asm!("pcmpeqd xmm8, xmm8", "pcmpeqd xmm15, xmm15", "movdq2q mm0, xmm8", "movdq2q mm7, xmm8", "emms", out("xmm8") _, out("xmm15") _, out("mm0") _, out("mm7") _);
    }
    assert_eq!(
        loaded
            .domain
            .call(entry, &CallArguments::default())
            .unwrap()
            .integer,
        0
    );
    assert_eq!(loaded.call("after_gate", &[]).unwrap().integer, 0);
}

/// The x87 unit's environment has the addresses of the last instruction and of its operand.
#[test]
fn the_x87_unit_does_not_tell_where_the_host_is() {
    let program = Program::new(
        "
        import secret
        .bss
        .balign 16
        words: .skip 32
        export at_entry
            jmp store
        export after_gate
            call secret
        store:
            leaq words(%rip), %rdx
            movl %edx, %r11d
            fnstenv (%r14,%r11)
            movl 12(%r14,%r11), %eax
            orl 20(%r14,%r11), %eax
            shlq $32, %rax
            movzwl 4(%r14,%r11), %ecx
            orq %rcx, %rax
            movl 16(%r14,%r11), %edx
            movzwl 24(%r14,%r11), %ecx
            orl %ecx, %edx
            ret
        ",
    );
    // What the host may have done last: nothing special, something that raised a flag, and a comparison
    // that left conditions.
    let exact = || {
        let mut one = 0_f64;
        // SAFETY: pushes a number, divides it, and takes it off again.
        unsafe { asm!("fld1", "fdiv st(0), st(0)", "fstp qword ptr [{}]", in(reg) &mut one) };
        assert_eq!(one, 1.0);
    };
    let inexact = || {
        let (seven, mut part) = (7_f64, 0_f64);
        // SAFETY: pushes a number, divides it, and takes it off again.
        unsafe {
            asm!("fld1", "fdiv qword ptr [{}]", "fstp qword ptr [{}]", in(reg) &seven, in(reg) &mut part)
        };
        assert!(part < 1.0);
    };
    let less = || {
        let two = 2_f64;
        // SAFETY: pushes a number, and takes it off again.
        unsafe { asm!("fld1", "fcomp qword ptr [{}]", in(reg) &two) };
    };
    let all: [(&str, fn()); 3] = [("exact", exact), ("inexact", inexact), ("less", less)];
    let done = std::sync::Arc::new(AtomicUsize::new(0));
    let secret = host({
        let done = done.clone();
        move |_| {
            all[done.load(Ordering::Relaxed)].1();
            Ok(0)
        }
    });
    let loaded = program.load_with(vec![secret], Limits::default());
    // By `fninit`, or what the page of the last instruction leaves: that one's address, its operand's, the
    // segment of the code and the operation.
    let nothing = (0, 0);
    let ours = (0x8000_0000 + (6 | 16), 0x33);
    for name in ["at_entry", "after_gate"] {
        let entry = mullion_runtime::Claimed(loaded.address(name));
        let entry = loaded.domain.entry(entry).unwrap();
        for (number, (what, last)) in all.iter().enumerate() {
            done.store(number, Ordering::Relaxed);
            last();
            let called = loaded
                .domain
                .call(entry, &CallArguments::default())
                .unwrap();
            assert_eq!(called.integer as u32, 0, "the status, {name}, {what}");
            // Bits 16 to 26 name the operation, as each processor has it.
            let found = (called.integer >> 32, called.high & 0xffff);
            assert!(
                [nothing, ours].contains(&found),
                "{found:x?}, {name}, {what}"
            );
        }
    }
}

/// Built-in gates of an image that does not use %gs do not, either: the base is
/// another domain's there, and every slot can be reached by an indirect branch.
#[test]
fn built_in_gates_keep_to_the_window_of_the_domain_that_runs() {
    let other = Program::new(
        "
        .bss
        .balign 4096
        bytes: .skip 0x4000
        export sum
            leaq bytes(%rip), %rdi
            movl $0x800, %ecx
            xorl %eax, %eax
        1:  orq %gs:(%edi), %rax
            addq $8, %rdi
            subl $1, %ecx
            jnz 1b
            ret
        ",
    )
    .load();
    let mut jumper = Program::leanest(JUMPS).load();
    for _ in 0..3 {
        assert_eq!(other.call("sum", &[]).unwrap().integer, 0);
        assert_eq!(jumper.call("good", &[]).unwrap().integer, 177);
        assert_eq!(other.call("sum", &[]).unwrap().integer, 0, "untouched");
        let fault = jumper.fault("no_buffer", &[]);
        assert_eq!(fault.address, Some(fault.base + 16));
        jumper.domain.restart().unwrap();
    }
}
