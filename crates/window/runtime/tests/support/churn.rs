//! Domains made, called and unloaded, and faults injected, over and over; what
//! the process has before and after.

use super::{Loaded, Program, host};
use mullion_runtime::{CallEnd, CallError, Cause, Limits};
use std::time::Duration;

const PROGRAM: &str = "
    import leave
    .data
    .balign 8
    pointer: .quad value
    value: .quad 0
    .bss
    .balign 4096
    zero: .skip 0x4000
    export touch
        addq $1, value(%rip)
        addq $1, zero(%rip)
        addq $1, zero+0x3000(%rip)
        subq $0x3000, %r15
        movq $1, (%r15)
        addq $0x3000, %r15
        testb $0, -8(%r15)
        movq value(%rip), %rax
        addq zero(%rip), %rax
        ret
    export read
        movl %edi, %r11d
        movq (%r14,%r11), %rax
        ret
    export trap
        ud2
    export label
        ud1 %eax, %eax
    export divide
        xorl %edx, %edx
        xorl %ecx, %ecx
        divl %ecx
        ret
    export recurse
        call recurse
        ret
    export deep
        subq $0x1000, %r15
        movq $0, (%r15)
        jmp deep
    export leave_by_host
        call leave
        ret
    export forever
        jmp forever
";

/// What must not grow.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    pub resident_kib: u64,
    pub descriptors: usize,
    pub mappings: usize,
}

impl Usage {
    pub fn now() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        let number = line.unwrap().split_whitespace().nth(1).unwrap();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        Self {
            resident_kib: number.parse().unwrap(),
            descriptors: std::fs::read_dir("/proc/self/fd").unwrap().count(),
            mappings: maps.lines().count(),
        }
    }

    /// The allocator may keep a little; neither descriptors nor mappings.
    pub fn assert_as(self, before: Self) {
        assert_eq!(self.descriptors, before.descriptors);
        assert!(
            self.mappings <= before.mappings + 4,
            "{before:?}, then {self:?}"
        );
        assert!(
            self.resident_kib <= before.resident_kib + 2048,
            "{before:?}, then {self:?}"
        );
    }
}

pub fn program() -> Program {
    Program::new(PROGRAM)
}

fn load(program: &Program) -> Loaded {
    let limits = Limits {
        time: Some(Duration::from_secs(10)),
        ..Limits::default()
    };
    program.load_with(vec![host(|_| Err(CallEnd::Raised(6)))], limits)
}

/// `count` domains one after the other, each called and dropped.
pub fn cycles(program: &Program, count: u64) {
    for _ in 0..count {
        let loaded = load(program);
        assert_eq!(loaded.call("touch", &[]).unwrap().integer, 2);
    }
}

/// `count` faults of all kinds in one domain, which is restarted after each.
pub fn faults(program: &Program, count: u64) {
    let mut loaded = load(program);
    for turn in 0..count {
        let (name, argument) = match turn % 7 {
            0 => ("read", 8),
            1 => ("trap", 0),
            2 => ("label", 0),
            3 => ("divide", 0),
            4 => ("leave_by_host", 0),
            5 => ("read", 0xffff_fff0),
            // The full stacks take long: one in a hundred of the seventh kind.
            _ if turn % 700 == 6 => ("recurse", 0),
            _ if turn % 700 == 13 => ("deep", 0),
            _ => ("read", 0x8000_0000),
        };
        assert_eq!(loaded.call("touch", &[]).unwrap().integer, 2);
        match loaded.call(name, &[argument]) {
            Err(CallError::Fault(fault)) => assert_ne!(
                fault.cause,
                Cause::TimeLimit {
                    granted: Duration::from_secs(10)
                }
            ),
            other => panic!("{name}: {other:?}"),
        }
        loaded.domain.restart().unwrap();
    }
}
