//! Threads come and go; in a process of its own, because it counts the process's mappings.

mod module;

use module::{function, load};
use mullion_word_runtime::Policy;

type Fn0 = extern "C" fn() -> u64;

/// Stacks of threads that have ended serve those that come.
#[test]
fn threads_come_and_go() {
    let text = "
    gate    bump
    incl    counter(%rip)
    mov     counter(%rip), %eax
    ret
    .data
counter: .long 0
    .text
    ";
    let (_host, domain) = load("bump", text, Policy::new());
    let bump: Fn0 = function(&domain, "bump");
    let mappings = || {
        std::fs::read_to_string("/proc/self/maps")
            .unwrap()
            .lines()
            .count()
    };
    let one = || std::thread::spawn(move || bump()).join().unwrap();
    (0..20).for_each(|_| assert_ne!(one(), 0));
    let before = mappings();
    (0..300).for_each(|_| assert_ne!(one(), 0));
    assert!(mappings() < before + 20, "{before}, {}", mappings());
    assert_eq!(one(), 321);
}
