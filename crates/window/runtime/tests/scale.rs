//! Ten thousand domains alive in one process, each called.

mod support;

use mullion_runtime::Limits;
use support::{Program, host};

const DOMAINS: usize = 10_000;

/// Mappings of this process.
fn mappings() -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().count()
}

#[test]
fn ten_thousand_domains_live_within_the_usual_limit_on_mappings() {
    let program = Program::new(
        "
        import host
        .data
        .balign 8
        pointer: .quad count
        count: .quad 0
        export go
            addq %rdi, count(%rip)
            call host
            addq count(%rip), %rax
            ret
        ",
    );
    let load = || program.load_with(vec![host(|_| Ok(1))], Limits::default());
    // What the process has once comes with the first domain.
    drop(load());
    let before = mappings();
    let domains: Vec<_> = (0..DOMAINS).map(|_| load()).collect();
    for round in 1..=2 {
        for (number, domain) in domains.iter().enumerate() {
            let returned = domain.call("go", &[number as u64]).unwrap();
            assert_eq!(returned.integer, round * number as u64 + 1);
        }
    }
    let each = (mappings() - before) as f64 / DOMAINS as f64;
    println!("{each:.2} mappings each");
    assert!(each < 6.1, "{each} mappings each");
    drop(domains);
    drop(program);
    assert!(mappings() < before + 10, "unloading gives them back");
}
