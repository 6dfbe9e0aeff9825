//! Restart in place, and windows used again: nothing of what was is left.

mod support;

use mullion_abi::GATE_BASE;
use mullion_runtime::{Access, Claimed, Limits, MappingError, PAGE};
use support::{Loaded, Program};

/// Data that is relocated, data that is not, zeroes, constants with relocations.
const STATE: &str = "
    .data
    .balign 8
    pointer: .quad value
    value: .quad 7
    .bss
    .balign 4096
    zero: .skip 0x3000
    export spoil
        movq $1, pointer(%rip)
        addq $1, value(%rip)
        addq $1, zero(%rip)
        addq $1, zero+0x2ff8(%rip)
        subq $64, %r15
        movq $99, (%r15)
        addq $64, %r15
        movq $5, 8(%r15)
        ret
    export value_at_pointer
        movq pointer(%rip), %rax
        movl %eax, %r11d
        movq (%r14,%r11), %rax
        ret
    export zeroes
        movq zero(%rip), %rax
        orq zero+0x2ff8(%rip), %rax
        orq -64(%r15), %rax
        orq 8(%r15), %rax
        ret
    export fail
        addq $1, value(%rip)
        ud2
    export poke
        movl %edi, %r11d
        movq %rsi, (%r14,%r11)
        ret
";

/// A large writable segment, whose pages are the file's.
const LARGE: &str = "
    .data
    .balign 8
    pointer: .quad value
    .fill 40000, 4, 3
    value: .quad 7
    .fill 40000, 4, 3
    export spoil
        movq $1, pointer(%rip)
        addq $1, value(%rip)
        ret
    export value_at_pointer
        movq pointer(%rip), %rax
        movl %eax, %r11d
        movq (%r14,%r11), %rax
        ret
    export zeroes
        xorl %eax, %eax
        ret
";

/// As the first, with more zeroes than are in the file.
fn with_many_zeroes() -> String {
    STATE
        .replace("0x3000", "0x9000")
        .replace("0x2ff8", "0x8ff8")
}

/// Data that a restart writes, and data that it drops, with few and with many zeroes;
/// code mapped and code copied.
fn layouts() -> [Program; 6] {
    [
        Program::new(STATE),
        Program::new(LARGE),
        Program::new(&with_many_zeroes()),
        Program::anonymous(STATE),
        Program::anonymous(LARGE),
        Program::anonymous(&with_many_zeroes()),
    ]
}

fn is_fresh(loaded: &Loaded) {
    assert_eq!(loaded.call("value_at_pointer", &[]).unwrap().integer, 7);
    assert_eq!(loaded.call("zeroes", &[]).unwrap().integer, 0);
}

#[test]
fn a_restarted_domain_is_as_new_in_the_same_window() {
    for program in layouts() {
        let mut loaded = program.load();
        let base = loaded.domain.memory().base();
        is_fresh(&loaded);
        for _ in 0..3 {
            loaded.call("spoil", &[]).unwrap();
            loaded.domain.restart().unwrap();
            assert_eq!(loaded.domain.memory().base(), base);
            is_fresh(&loaded);
        }
    }
}

#[test]
fn a_window_that_is_used_again_holds_nothing_of_its_last_domain() {
    for program in layouts() {
        let first = program.load();
        let base = first.domain.memory().base();
        first.call("spoil", &[]).unwrap();
        drop(first);
        let second = program.load();
        assert_eq!(second.domain.memory().base(), base, "it was parked");
        is_fresh(&second);
        // Another stack size: the parked stack is mapped anew.
        drop(second);
        let limits = Limits {
            stack: 0x10000,
            ..Limits::default()
        };
        is_fresh(&program.load_with(Vec::new(), limits));
    }
}

/// Windows that are mapped before anybody wants them are as those that are mapped for a domain.
#[test]
fn a_prepared_window_is_as_a_new_one() {
    for program in layouts() {
        let first = program.load();
        let file = file_at(first.domain.memory().base() + GATE_BASE);
        let of_one = windows_of(&file);
        program.image.prepare(3).unwrap();
        let all = windows_of(&file);
        assert_eq!(all, 4 * of_one, "three wait");
        let domains = [(); 3].map(|()| program.load());
        domains.iter().for_each(is_fresh);
        assert_eq!(windows_of(&file), all, "and are taken");
        // Nothing to do: they wait when their domains have gone.
        drop(domains);
        program.image.prepare(3).unwrap();
        assert_eq!(windows_of(&file), all);
    }
}

/// Device and number of the file that is mapped there; of no file, nothing.
fn file_at(address: u64) -> Option<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let begins = format!("{address:x}-");
    let line = maps.lines().find(|line| line.starts_with(&begins)).unwrap();
    let file: Vec<_> = line.split_whitespace().skip(3).take(2).collect();
    (file[1] != "0").then(|| file.join(" "))
}

/// Windows in which the file is mapped: it is as code, once in each.
fn windows_of(file: &Option<String>) -> usize {
    let Some(file) = file else { return 0 };
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let lines = maps.lines().filter(|line| line.contains(" r-xp "));
    lines
        .filter(|line| {
            let of: Vec<_> = line.split_whitespace().skip(3).take(2).collect();
            of.join(" ") == *file
        })
        .count()
}

#[test]
fn after_a_fault_a_restart_gives_the_first_state_and_voids_entries() {
    let mut loaded = Program::new(STATE).load();
    let entry = loaded
        .domain
        .entry(Claimed(loaded.address("zeroes")))
        .unwrap();
    loaded.fault("fail", &[]);
    assert!(loaded.domain.has_ended());
    loaded.domain.restart().unwrap();
    assert!(!loaded.domain.has_ended());
    is_fresh(&loaded);
    let refused = loaded.domain.call(entry, &Default::default()).unwrap_err();
    assert!(refused.to_string().contains("another domain"), "{refused}");
}

/// What profilers go by: the mapping that holds the code has no file, and nobody may
/// write there.
#[test]
fn code_in_anonymous_memory_is_executable_and_not_writable() {
    for (program, has_file) in [
        (Program::new(STATE), true),
        (Program::anonymous(STATE), false),
    ] {
        let mut loaded = program.load();
        for _ in 0..2 {
            let code = loaded.address("spoil");
            let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
            let holds = |line: &&str| {
                let (start, rest) = line.split_once('-').unwrap();
                let end = rest.split(' ').next().unwrap();
                let number = |text| u64::from_str_radix(text, 16).unwrap();
                (number(start)..number(end)).contains(&code)
            };
            let line = maps.lines().find(holds).unwrap();
            assert!(line.contains(" r-xp "), "{line}");
            assert_eq!(line.contains("mullion-image"), has_file, "{line}");
            assert_eq!(line.contains('/'), has_file, "{line}");
            let fault = loaded.fault("poke", &[code & 0xffff_ffff, 0]);
            assert_eq!(fault.address, Some(code));
            loaded.domain.restart().unwrap();
        }
    }
}

#[test]
fn what_a_domain_had_mapped_is_gone_after_a_restart() {
    let mut loaded = Program::new(STATE).load();
    let memory = loaded.domain.memory();
    let before = memory.in_use();
    let mapped = memory.map(None, 3 * PAGE, Access::ReadWrite).unwrap();
    let end = memory.set_heap_end(Claimed(0));
    assert_eq!(memory.set_heap_end(Claimed(end + 100)), end + 100);
    memory.write(Claimed(mapped), &[1]).unwrap();
    memory.write(Claimed(end), &[1]).unwrap();
    loaded.domain.restart().unwrap();
    let memory = loaded.domain.memory();
    assert_eq!(memory.in_use(), before);
    assert_eq!(memory.set_heap_end(Claimed(0)), end);
    for address in [mapped, end] {
        let memory = loaded.domain.memory();
        assert!(memory.write(Claimed(address), &[1]).is_err());
        let offset = memory.offset(Claimed(address)).unwrap();
        let fault = loaded.fault("poke", &[offset]);
        assert_eq!(fault.offset(fault.address.unwrap()), Some(offset));
        loaded.domain.restart().unwrap();
    }
}

#[test]
fn the_images_pages_are_not_the_domains_to_drop() {
    let loaded = Program::new(STATE).load();
    let memory = loaded.domain.memory();
    let data = loaded.call("value_at_pointer", &[]).map(|_| {
        let end = memory.set_heap_end(Claimed(0));
        end - 4 * PAGE
    });
    let result = memory.discard(Claimed(data.unwrap()), PAGE);
    assert_eq!(result, Err(MappingError::Image));
    is_fresh(&loaded);
}

#[test]
fn memory_behind_the_image_comes_before_the_heap() {
    let loaded = Program::new(STATE).load();
    let memory = loaded.domain.memory();
    let end = memory.set_heap_end(Claimed(0));
    let block = memory.extend(100).unwrap();
    assert_eq!(block, end);
    memory.write(Claimed(block), &[1; 100]).unwrap();
    assert_eq!(memory.set_heap_end(Claimed(0)), end + PAGE);
    memory.set_heap_end(Claimed(end + PAGE + 1));
    assert_eq!(memory.extend(1), Err(MappingError::Range), "heap in use");
}
