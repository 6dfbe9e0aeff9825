//! Random functions of the form, as assembler text.

use super::Random;
use std::fmt::Write;

// Not %rax and %rdx, which `cmpxchg16b` writes.
const BASES: [&str; 6] = ["rbx", "rcx", "rsi", "rdi", "r8", "r13"];

/// Stores and loads with their bytes; `@` is the operand.
const STORES: [(&str, i32); 15] = [
    ("movb %r9b, @", 1),
    ("movw %r9w, @", 2),
    ("movl %r9d, @", 4),
    ("movq %r9, @", 8),
    ("addl $3, @", 4),
    ("lock xaddq %r9, @", 8),
    ("movups %xmm0, @", 16),
    ("movaps %xmm0, @", 16),
    ("vmovdqu %ymm1, @", 32),
    ("movsd %xmm0, @", 8),
    ("fstpt @", 10),
    ("sete @", 1),
    ("lock cmpxchg16b @", 16),
    ("fnstenv @", 28),
    ("vmaskmovps %xmm0, %xmm1, @", 16),
];
const LOADS: [(&str, i32); 9] = [
    ("movzbl @, %r9d", 1),
    ("movswq @, %r9", 2),
    ("cmpl $3, @", 4),
    ("movq @, %r9", 8),
    ("movaps @, %xmm2", 16),
    ("vmovdqa @, %ymm2", 32),
    ("vaddpd @, %ymm2, %ymm3", 32),
    ("fldt @", 10),
    ("pmovzxbw @, %xmm4", 8),
];
/// Those of them that fault at addresses that are no multiple of 16.
const ALIGNED: [&str; 3] = ["movaps", "vmovdqa", "movapd"];
const OTHERS: [&str; 12] = [
    "leaq 8(%r9,%r10), %r10",
    "imulq $7, %r9, %r9",
    "movl variable(%rip), %r9d",
    "addq %r9, variable+8(%rip)",
    "movq %r9, 0x18(%r15)",
    "prefetcht0 (%r9)",
    "nop",
    "call stub",
    // Indexes that are known to be small.
    "movzbl %r9b, %r10d\n    movq %r9, -0x78(%r15,%r10,8)",
    "andl $63, %r10d\n    movl 8(%r15,%r10,4), %r9d",
    "shrl $24, %r10d\n    addq %r9, -0x40(%r15,%r10,8)",
    // What a check will read is fetched ahead.
    "leaq 0x40(%rbx), %r11\n    shr $2, %r11\n    prefetcht0 %gs:(%r11,%r11)",
];

/// So many functions, and what they need.
pub(crate) fn functions(random: &mut Random, count: usize) -> String {
    let mut text = String::from("    ret\nstub: jmp *IMPORT(%rip)\n");
    let mut number = 0;
    for function in 0..count {
        let _ = writeln!(
            text,
            "    .balign 16, 0xcc\nf{function}: gate g{function}\n    .balign 16, 0xcc\ng{function}:"
        );
        let mut cold = String::new();
        let _ = writeln!(text, "    leaq -64(%r15), %r15\n    movq %rbx, 8(%r15)");
        for _ in 0..2 + random.below(6) {
            number += 1;
            match random.below(10) {
                9 => {
                    text += &format!("    near rbx, far{number}\n    call *%r11\n");
                    let _ = writeln!(cold, "far{number}: ud2");
                }
                0..=4 => checked(random, number, &mut text, &mut cold),
                5 => {
                    text += &format!("    enter rbx, away{number}\n    call *%rbx\nback{number}:\n")
                }
                6 => {
                    let check = random.of(&["own", "within"]);
                    let jump = random.of(&["*%rcx", "*%r11"]);
                    let copy = if jump == "*%r11" {
                        "    movq %rcx, %r11\n    movq %rbx, %rcx\n"
                    } else {
                        ""
                    };
                    text += &format!(
                        "    {check} rcx, trap{number}\n{copy}    jmp {jump}\n    label\n"
                    );
                }
                7 => {
                    text += "    movq %rbx, %r11\n    xor %r15, %r11\n    and $0x7fffff, %r11d\n    xor %r11, %r15\n"
                }
                _ => text += &format!("    {}\n", random.of(&OTHERS)),
            }
            if text.ends_with(&format!("back{number}:\n")) {
                let _ = writeln!(
                    cold,
                    "away{number}: mov %rbx, %r11\n    call *LEAVE(%rip)\n    jmp back{number}"
                );
            }
            if text.contains(&format!("trap{number}\n")) {
                let _ = writeln!(cold, "trap{number}: ud1 %eax, %eax");
            }
            if random.below(5) == 0 {
                let _ = writeln!(text, "    jne g{function}");
            }
        }
        let _ = writeln!(
            text,
            "    addq $64, %r15\n    movq -56(%r15), %rbx\n    ret\n{cold}"
        );
    }
    text + "text_end:\n"
}

/// A check, and accesses that rely on it.
fn checked(random: &mut Random, number: usize, text: &mut String, cold: &mut String) {
    let base = random.of(&BASES);
    let index = random.of(&["", "", ",%r12,4", ",%rbp"]);
    let near = random.of(&[0, 0, 8, -16, 0x1234]);
    let writes = random.below(2) == 0;
    let mut accesses = Vec::new();
    let (mut bytes, mut moved, mut exact, mut told) = (0, 0, true, false);
    for _ in 0..1 + random.below(3) {
        if random.below(4) == 0 {
            let by = random.of(&[8, -16, 4, 1]);
            moved += by;
            accesses.push(match random.below(3) {
                0 => format!("    addq ${by}, %{base}\n"),
                1 => format!("    subq ${}, %{base}\n", -by),
                _ => format!("    leaq {by}(%{base}), %{base}\n"),
            });
        }
        let offset = random.of(&[0, 0, 1, 4, 7]);
        let list: &[(&str, i32)] = if writes && random.below(3) > 0 {
            &STORES
        } else {
            &LOADS
        };
        let (form, size) = random.of(list);
        bytes = bytes.max(offset + size);
        // One of them tells those behind it that the address is a multiple of four.
        told |= ALIGNED.iter().any(|name| form.starts_with(name)) && offset % 4 == 0;
        exact &= told;
        let operand = format!("{}(%{base}{index})", near + offset - moved);
        accesses.push(format!("    {}\n", form.replace('@', &operand)));
    }
    // As many words as the bytes touch, wherever they begin; fewer, if they cannot begin anywhere.
    let mut words = match exact {
        true => (bytes + 3) / 4,
        false => (bytes + 2) / 4 + 1,
    };
    let lines = random.below(3) == 0;
    if lines {
        words = match exact {
            true => (bytes + 59) / 64 + 1,
            false => (bytes + 62) / 64 + 1,
        };
    }
    let shift = if lines {
        "not %r11\n    sar $6, %r11"
    } else {
        "shr $2, %r11"
    };
    let _ = writeln!(text, "    lea {near}(%{base}{index}), %r11\n    {shift}");
    let mut place = 0;
    while words > 0 {
        let (register, count) = match words {
            1 => ("r14w", 1),
            2 => ("r14d", 2),
            _ => ("r14", 4),
        };
        // Lines lie the other way around.
        let distance = if lines { -place - 2 * count + 2 } else { place };
        let _ = writeln!(
            text,
            "    cmp %{register}, %gs:{distance}(%r11,%r11)\n    jne cold{number}"
        );
        (place, words) = (place + 2 * count, words - count);
    }
    let _ = writeln!(text, "behind{number}:");
    accesses.iter().for_each(|access| *text += access);
    let right = if writes { 2 } else { 1 };
    let mut point = 0;
    let _ = write!(cold, "cold{number}:");
    loop {
        let _ = writeln!(
            cold,
            "    look \"{}(%{base}{index})\", {right}",
            near + point
        );
        if point == bytes - 1 {
            break;
        }
        let _ = writeln!(cold, "    je refuse{number}");
        point = (point + 4).min(bytes - 1);
    }
    let _ = match random.below(2) {
        0 => writeln!(cold, "    jne behind{number}"),
        _ => writeln!(cold, "    je refuse{number}\n    jmp behind{number}"),
    };
    let _ = writeln!(cold, "refuse{number}: refuse");
}
