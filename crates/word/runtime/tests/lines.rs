//! How long a straight line of checks may be, and calls while a domain restarts.

mod module;

use module::{build, function, load};
use mullion_word_runtime::{Effect, FunctionPolicy, Host, Module, ModuleError, Policy, Size};
use mullion_word_verifier::verify;
use std::sync::atomic::{AtomicBool, Ordering};

type Fn1 = extern "C" fn(u64) -> u64;
type Fn2 = extern "C" fn(u64, u64) -> u64;

/// A thread is led through such a line one instruction at a time while somebody waits with a lock.
#[test]
fn a_line_in_which_checks_count_has_an_end() {
    let of = |nops: u32| {
        let text = format!(
            ".macro long\n .fill {nops}, 1, 0x90\n movl $1, (%rdi)\n .endm\n gate f\n checked 2, 0, (%rdi), long\n mov $1, %eax\n ret"
        );
        let bytes = build("line", &text);
        let verified = verify(bytes).unwrap();
        Module::new("line", &verified)
    };
    let short = of(8_000).unwrap();
    let of_word = FunctionPolicy::of(&[Effect::InOut(0, Size::Bytes(4))]);
    let domain = Host::new()
        .unwrap()
        .load(&short, Policy::new().export("f", of_word))
        .unwrap();
    let mut cell = 0u64;
    assert_eq!(function::<Fn1>(&domain, "f")(&raw mut cell as u64), 1);
    assert_eq!(cell, 1);
    let long = of(270_000).map(drop);
    assert!(
        matches!(long, Err(ModuleError::LongLine { bytes, .. }) if bytes > 270_000),
        "{long:?}"
    );
}

/// A thread that is led through a line goes by the points of each check there, too.
#[test]
fn the_points_of_a_line_s_checks_count_for_its_length() {
    let of = |checks: u32| {
        let mut text = String::from(" gate f\n");
        let mut cold = String::new();
        for number in 0..checks {
            let operand = ["(%rdi)", "(%rsi)"][number as usize % 2];
            text += &format!(
                " lea {operand}, %r11\n shr $2, %r11\n cmp %r14d, %gs:(%r11,%r11)\n jne cold{number}\nback{number}:\n"
            );
            // The bytes that the check before has covered are written behind this one.
            if number > 0 {
                let before = ["(%rsi)", "(%rdi)"][number as usize % 2];
                text += &format!(" movl $1, {before}\n");
            }
            cold += &format!("cold{number}:\n");
            for point in 0..64 {
                cold += &format!(
                    " lea {}{operand}, %r11\n shr $2, %r11\n movzwl %gs:(%r11,%r11), %r11d\n testb $2, %gs:(%r14d,%r11d)\n je trap{number}\n",
                    4 * point
                );
            }
            cold += &format!(" jmp back{number}\ntrap{number}: ud1 %ecx, %eax\n");
        }
        text += " movl $1, (%rdi)\n movl $1, (%rsi)\n mov $1, %eax\n ret\n";
        text += &format!(" .pushsection .text.cold, \"ax\", @progbits\n{cold} .popsection\n");
        Module::new("line", &verify(build("line", &text)).unwrap())
    };
    assert!(of(6).is_ok());
    let long = of(200).map(drop);
    assert!(
        matches!(long, Err(ModuleError::LongLine { bytes, .. }) if bytes > 270_000),
        "{long:?}"
    );
}

const RESTARTS: &str = "
    gate    put
    checked 2, 0, (%rdi), mov %esi, (%rdi)
    ret
    gate    seven
    mov     $7, %eax
    ret
";

#[test]
fn a_function_is_called_while_its_domain_restarts() {
    let (_host, domain) = load("restarts", RESTARTS, Policy::new());
    let put: Fn2 = function(&domain, "put");
    let seven: Fn1 = function(&domain, "seven");
    let cell = 0u64;
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let calls = || {
            let mut answers = [0u64; 8];
            while !is_over.load(Ordering::Relaxed) {
                answers[seven(0) as usize] += 1;
            }
            answers
        };
        let caller = scope.spawn(calls);
        for _ in 0..2_000 {
            put(&raw const cell as u64, 1);
            while domain.restart().is_err() {}
            drop(domain.take_reports());
        }
        is_over.store(true, Ordering::Relaxed);
        let answers = caller.join().unwrap();
        // The error value, or its own.
        assert_eq!(answers[1..7], [0; 6]);
    });
}
