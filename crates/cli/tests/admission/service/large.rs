//! Modules that are large.

use super::*;

/// The most memory that the process had, in KiB.
fn peak(child: &Child) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number
        .and_then(|number| number.parse().ok())
        .expect("a number")
}

#[test]
fn sixteen_large_modules_take_no_more_than_the_total() {
    // Each is 16 MiB in the file, and counts three times that and what it may have.
    const TOTAL: u64 = 384;
    let service = Service::new(
        "",
        &[],
        &["--max-total-memory", "384M", "--max-memory", "24M"],
    );
    let source = "#include <mullion/ext.h>\nchar big[16 << 20] = {1};\n\
                  MULLION_EXPORT(int, touch, (int at)) { return big[at] += 1; }\n";
    service.world.write("large.c", source);
    let build = [
        "cc",
        "-O1",
        "-w",
        "--mullion-kind=extension",
        "large.c",
        "-o",
        "large.mx",
    ];
    service.world.succeed(&build);
    service.world.sign("large.mx");
    let before = peak(&service.child);
    let mut taken = 0;
    for _ in 0..16 {
        let load = ["load", "--credentials", "alice.kn"];
        let output = service.ask_as("alice", &load, &["large.mx"]);
        match output.status.success() {
            true => taken += 1,
            false => Service::refused(&output, "the loader is full"),
        }
    }
    let peak = (peak(&service.child) - before) >> 10;
    println!("{taken} modules of 16 MiB, at most {peak} MiB");
    assert!((1..16).contains(&taken), "{taken}");
    // One request is read and verified beside what has been taken: its frame, and a copy.
    assert!(peak < TOTAL + 2 * 16 + 16, "{peak} MiB");
    service.stop();
}
