//! Calls into a domain and out of it.

mod support;

use mullion_runtime::{Access, CallArguments, CallEnd, CallError, Claimed, Error, Limits, PAGE};
use support::{Program, host};

#[test]
fn arguments_go_in_and_results_come_out() {
    let program = Program::new(
        "
        export sum
            leaq (%rdi,%rsi), %rax
            addq %rdx, %rax
            addq %rcx, %rax
            addq %r8, %rax
            addq %r9, %rax
            movq %rdi, %rdx
            ret
        export add_doubles
            addsd %xmm7, %xmm0
            ret
        ",
    );
    let loaded = program.load();
    let returned = loaded
        .call("sum", &[1, 20, 300, 4000, 50000, 600000])
        .unwrap();
    assert_eq!((returned.integer, returned.high), (654321, 1));
    let doubles = CallArguments::new(&[]).with_doubles(&[1.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.25]);
    assert_eq!(
        loaded.call_with("add_doubles", &doubles).unwrap().double,
        3.75
    );
}

#[test]
fn data_is_relocated_and_private_to_each_domain() {
    let program = Program::new(
        "
        .data
        .balign 8
        pointer: .quad value
        value: .quad 7
        .bss
        zero: .skip 8
        export bump
            movq pointer(%rip), %rax
            movl %eax, %r11d
            addq $1, (%r14,%r11)
            movq (%r14,%r11), %rax
            addq $1, zero(%rip)
            addq zero(%rip), %rax
            ret
        ",
    );
    let (one, two) = (program.load(), program.load());
    assert_eq!(one.call("bump", &[]).unwrap().integer, 9);
    assert_eq!(one.call("bump", &[]).unwrap().integer, 11);
    assert_eq!(two.call("bump", &[]).unwrap().integer, 9);
}

#[test]
fn host_functions_are_called_with_arguments_and_return() {
    let program = Program::new(
        "
        import first
        import second
        export go
            movq $40, %rsi
            call second
            ret
        ",
    );
    let second = host(|caller| Ok(caller.integers()[0] + caller.integers()[1] + 2));
    let loaded = program.load_with(vec![host(|_| Ok(0)), second], Limits::default());
    assert_eq!(loaded.call("go", &[100]).unwrap().integer, 142);
}

#[test]
fn a_host_function_ends_the_invocation() {
    let program = Program::new(
        "
        import leave
        export go
            call leave
            ret
        ",
    );
    let mut loaded = program.load_with(vec![host(|_| Err(CallEnd::Exit(7)))], Limits::default());
    assert!(matches!(loaded.call("go", &[]), Err(CallError::Exit(7))));
    assert!(matches!(
        loaded.call("go", &[]),
        Err(CallError::NotMade(Error::Ended))
    ));
    loaded.domain.restart().unwrap();
    assert!(matches!(loaded.call("go", &[]), Err(CallError::Exit(7))));
}

#[test]
fn a_panic_of_a_host_function_reaches_its_host() {
    let program = Program::new(
        "
        import leave
        export go
            call leave
            ret
        export fine
            ret
        ",
    );
    let loaded = program.load_with(vec![host(|_| panic!("on purpose"))], Limits::default());
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| loaded.call("go", &[])));
    assert_eq!(result.unwrap_err().downcast_ref(), Some(&"on purpose"));
    loaded.call("fine", &[]).unwrap();
}

#[test]
fn calls_nest_and_nesting_is_limited() {
    let program = Program::new(
        "
        import down
        export go
            subq $24, %r15
            movq %rdi, 8(%r15)
            call down
            addq 8(%r15), %rax
            addq $24, %r15
            testb $0, -8(%r15)
            ret
        ",
    );
    let down = host(|caller| {
        let left = caller.integers()[0];
        let entry = caller.entry(caller.pointer(1)).unwrap();
        if left == 0 {
            return Ok(0);
        }
        let returned = caller.call(
            entry,
            &CallArguments::new(&[left - 1, caller.integers()[1]]),
            None,
        );
        match returned {
            Ok(returned) => Ok(returned.integer),
            Err(error) => Err(CallEnd::Refused(error.into())),
        }
    });
    let loaded = program.load_with(vec![down], Limits::default());
    let go = loaded.address("go");
    assert_eq!(loaded.call("go", &[50, go]).unwrap().integer, 50 * 51 / 2);
    assert_eq!(loaded.call("go", &[98, go]).unwrap().integer, 98 * 99 / 2);
    let error = loaded.call("go", &[200, go]).unwrap_err();
    assert!(error.to_string().contains("nested"), "{error}");
    assert_eq!(loaded.call("go", &[3, go]).unwrap().integer, 6);
}

#[test]
fn only_labelled_code_is_an_entry() {
    let program = Program::new(
        "
        .data
            label
        data: .quad 0
        export go
            nop
        export data_address
            leaq data(%rip), %rax
            ret
        ",
    );
    let loaded = program.load();
    let go = loaded.address("go");
    let data = loaded.call("data_address", &[]).unwrap().integer;
    for address in [
        go + 1,
        go - 7,
        data,
        0,
        1 << 63,
        loaded.domain.memory().base() + 0xffff_ffff,
    ] {
        let error = loaded.domain.entry(Claimed(address)).unwrap_err();
        assert!(matches!(error, Error::NotAnEntry { .. }), "{address:#x}");
    }
    let other = program.load();
    let entry = other.domain.entry(Claimed(other.address("go"))).unwrap();
    let error = loaded
        .domain
        .call(entry, &CallArguments::default())
        .unwrap_err();
    assert!(matches!(*error, CallError::NotMade(Error::WrongDomain)));
}

#[test]
fn arguments_beyond_the_registers_are_on_the_stack() {
    let program = Program::new(
        "
        import host
        export weigh
            imulq $2, (%r15), %rax
            imulq $3, 8(%r15), %rcx
            addq %rcx, %rax
            imulq $5, 128(%r15), %rcx
            addq %rcx, %rax
            addq %rdi, %rax
            ret
        export aligned
            movl %r15d, %eax
            andl $15, %eax
            ret
        export pass_on
            subq $32, %r15
            movq $70, (%r15)
            movq $80, 8(%r15)
            movl $60, %r9d
            call host
            addq $32, %r15
            testb $0, -8(%r15)
            ret
        ",
    );
    let sum = host(|caller| {
        let arguments = (5..8).map(|index| caller.argument(index));
        Ok(arguments.map(Result::unwrap).sum())
    });
    let loaded = program.load_with(vec![sum], Limits::default());
    let mut arguments: Vec<u64> = (1..=64).collect();
    let weighed = loaded.call("weigh", &arguments).unwrap().integer;
    assert_eq!(weighed, 2 * 7 + 3 * 8 + 5 * 23 + 1);
    arguments.truncate(23);
    let weighed = loaded.call("weigh", &arguments).unwrap().integer;
    assert_eq!(weighed, 2 * 7 + 3 * 8 + 5 * 23 + 1);
    for count in 0..=64 {
        let arguments = vec![0; count];
        assert_eq!(loaded.call("aligned", &arguments).unwrap().integer, 0);
    }
    assert_eq!(loaded.call("pass_on", &[]).unwrap().integer, 60 + 70 + 80);
}

#[test]
fn a_stack_that_has_no_room_for_arguments_is_the_domains_fault() {
    let program = Program::new(
        "
        import host
        export go
            movl $0x30, %r15d
            addq %r14, %r15
            call host
            ret
        export other
            ret
        ",
    );
    let again = host(|caller| {
        let entry = caller.entry(caller.pointer(0)).unwrap();
        let error = caller
            .call(entry, &CallArguments::new(&[0; 8]), None)
            .unwrap_err();
        assert!(matches!(*error, CallError::Fault(_)), "{error}");
        Err(CallEnd::Refused(error.into()))
    });
    let loaded = program.load_with(vec![again], Limits::default());
    let other = loaded.address("other");
    let error = loaded.call("go", &[other]).unwrap_err();
    assert!(error.to_string().contains("memory"), "{error}");
}

#[test]
fn a_full_control_stack_is_the_domains_fault_at_gates_too() {
    let program = Program::new(
        "
        import host
        export at_the_gate
            call host
            call at_the_gate
            ret
        export deep
            subq $1, %rsi
            jz 1f
            call deep
            ret
        1:  call host
            ret
        export other
            ret
        ",
    );
    let again = host(|caller| {
        if caller.integers()[0] == 0 {
            return Ok(0);
        }
        let entry = caller.entry(caller.pointer(0)).unwrap();
        match caller.call(entry, &CallArguments::default(), None) {
            Ok(_) => Ok(0),
            Err(error) => Err(CallEnd::Refused(error.into())),
        }
    });
    let mut loaded = program.load_with(vec![again], Limits::default());
    let fault = loaded.fault("at_the_gate", &[0]);
    assert_eq!(fault.cause, mullion_runtime::Cause::ControlStackOverflow);
    // MAX_CONTROL_STACK / 8 return addresses, less what an invocation needs: near
    // the end either the domain overflows or the host's call back is refused.
    for left in (0..600).step_by(7) {
        loaded.domain.restart().unwrap();
        let other = loaded.address("other");
        let depth = (mullion_runtime::MAX_CONTROL_STACK + 64) / 8 - left;
        let result = loaded.call("deep", &[other, depth]);
        match result {
            Ok(_) => assert!(left > 500, "{left}"),
            Err(CallError::Fault(fault)) => {
                assert_eq!(fault.cause, mullion_runtime::Cause::ControlStackOverflow);
                assert!(left < 100, "{left}");
            }
            Err(error) => assert!(error.to_string().contains("nested"), "{error}"),
        }
    }
}

#[test]
fn host_functions_return_in_three_registers_and_leave_zeroes_in_those_not_set() {
    let program = Program::new(
        "
        import give
        export ask
            movl $-1, %edx
            pcmpeqd %xmm0, %xmm0
            call give
            ret
        ",
    );
    let give = host(|caller| {
        match caller.integers()[0] {
            1 => caller.return_high(7),
            2 => caller.return_double(0.5),
            3 => {
                caller.return_double(0.5);
                caller.return_high(7);
            }
            _ => {}
        }
        Ok(9)
    });
    let loaded = program.load_with(vec![give], Limits::default());
    for (kind, high, double) in [(0, 0, 0.0), (1, 7, 0.0), (2, 0, 0.5), (3, 7, 0.5)] {
        let returned = loaded.call("ask", &[kind]).unwrap();
        assert_eq!((returned.integer, returned.high), (9, high), "{kind}");
        assert_eq!(returned.double, double, "{kind}");
    }
}

/// Copies of every small length and some large ones, in front of a page's end and over it.
#[test]
fn copies_of_every_length_are_whole_or_an_error() {
    let loaded = Program::new("export nothing\n ret").load();
    let memory = loaded.domain.memory();
    let start = memory.map(None, 2 * PAGE, Access::ReadWrite).unwrap();
    let end = start + PAGE;
    memory.unmap(Claimed(end), PAGE).unwrap();
    let lengths = (0..=80).chain([255, 256, 511, 512, 513, 600, 1025]);
    for length in lengths {
        let bytes: Vec<u8> = (0..length)
            .map(|index| index as u8 ^ length as u8)
            .collect();
        let mut before = vec![0xee; length as usize + 2];
        let place = Claimed(end - length - 2);
        memory.write(place, &before).unwrap();
        memory.write(Claimed(place.0 + 1), &bytes).unwrap();
        let mut back = vec![0; length as usize + 2];
        memory
            .piece(place, length + 2)
            .unwrap()
            .read(&mut back)
            .unwrap();
        before[1..=length as usize].copy_from_slice(&bytes);
        assert_eq!(back, before, "{length} bytes");
        for beyond in 1..=length.min(40) {
            let place = Claimed(end - length + beyond);
            memory.write(place, &bytes).unwrap_err();
            let mut room = vec![0; length as usize];
            let piece = memory.piece(place, length).unwrap();
            piece.read(&mut room).unwrap_err();
        }
    }
}
