//! The paper's Figures 5, 7 and 8: time for each packet by the size of its payload, for walls side by side.
//! `make bench-packets`, or `cargo bench -p mullion-packets --bench packets -- [--json FILE] [--html FILE] [--quick]
//! [--pictures FOLDER] [--work NAMES] [--wall PART-OF-NAME] [--size BYTES]`.
//!
//! Each time is of one packet on its way through the forwarder without its sockets: into the forwarder's memory, headers
//! read, filter asked, through the module, and lengths and checksums made right if it was changed. Frames come in
//! batches of 32, as from a ring. Peers without a wall of ours have their frames where they lie, and nothing is copied
//! out of them. Walls take turns within each round, and a time is the best of all rounds.

mod build;
mod hip;
mod inside;
mod native;
mod page;
mod socket;
mod walls;
mod xdp;

use serde::Serialize;
use std::time::{Duration, Instant};

/// Bytes of payload.
const SIZES: [usize; 9] = [0, 64, 128, 256, 512, 768, 1024, 1280, 1470];
/// Frames in one go.
const TOGETHER: usize = 32;

/// What is measured: which module does it, and the filter in front of it.
pub(crate) struct Work {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) filter: &'static str,
}

const WORKS: [Work; 4] = [
    Work {
        name: "nothing",
        title: "A module that does nothing: a wall by itself (beside Figure 5)",
        filter: "ip",
    },
    Work {
        name: "monitor",
        title: "A monitor of headers (Figure 5)",
        filter: "dst host 10.0.0.2",
    },
    Work {
        name: "fec_send",
        title: "Forward error correction, the sender (Figure 7)",
        filter: "ip and udp and dst port 5001 and not fragment",
    },
    Work {
        name: "resample",
        title: "Audio to half the bits (Figure 8)",
        filter: "ip and udp and dst port 5001 and not fragment",
    },
];

/// A work by all walls.
#[derive(Debug, Serialize)]
pub(crate) struct Figure {
    pub(crate) title: String,
    pub(crate) sizes: Vec<usize>,
    pub(crate) lines: Vec<Line>,
}

/// A wall: nanoseconds for a packet, by size.
#[derive(Debug, Serialize)]
pub(crate) struct Line {
    pub(crate) wall: String,
    pub(crate) nanoseconds: Vec<f64>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Results {
    pub(crate) machine: String,
    pub(crate) figures: Vec<Figure>,
    /// Walls that are not there, and why.
    pub(crate) missing: Vec<String>,
}

fn frames(size: usize) -> Vec<Vec<u8>> {
    let frame = |n: usize| {
        let mut bytes = vec![2; 12];
        bytes.extend([0x08, 0x00, 0x45, 0, 0, 0, 0, 1, 0, 0, 64, 17, 0, 0]);
        bytes.extend([10, 0, 0, 1, 10, 0, 0, 2, 0x13, 0x88, 0x13, 0x89, 0, 0, 0, 0]);
        bytes.extend((0..size).map(|at| (at * 7 + n * 31) as u8));
        let end = bytes.len();
        mullion_packets::frame::repair(&mut bytes, end);
        bytes
    };
    (0..TOGETHER).map(frame).collect()
}

/// Nanoseconds for a frame, of `count` that go through at each pass.
pub(crate) fn time(count: usize, at_least: Duration, pass: &mut dyn FnMut()) -> f64 {
    let (mut passes, begun) = (0u32, Instant::now());
    let mut best = f64::INFINITY;
    while passes < 3 || begun.elapsed() < at_least {
        let start = Instant::now();
        pass();
        pass();
        best = best.min(start.elapsed().as_nanos() as f64 / (2 * count) as f64);
        passes += 1;
    }
    best
}

fn figure(
    work: &Work,
    quick: bool,
    only: &str,
    sizes: &[usize],
    missing: &mut Vec<String>,
) -> Figure {
    let mut walls = walls::all(work, missing);
    walls.retain(|(name, _)| name.contains(only));
    let (rounds, at_least) = match quick {
        true => (3, Duration::from_micros(500)),
        false => (12, Duration::from_millis(3)),
    };
    let mut lines: Vec<Line> = walls
        .iter()
        .map(|(name, _)| Line {
            wall: name.clone(),
            nanoseconds: vec![f64::INFINITY; sizes.len()],
        })
        .collect();
    let all: Vec<Vec<Vec<u8>>> = sizes.iter().map(|size| frames(*size)).collect();
    for _ in 0..rounds {
        for (size, frames) in all.iter().enumerate() {
            for ((_, wall), line) in walls.iter_mut().zip(&mut lines) {
                let found = wall.time(frames, at_least);
                line.nanoseconds[size] = line.nanoseconds[size].min(found);
            }
        }
    }
    let is_wanted = "eBPF/XDP".contains(only) || only.is_empty();
    if let Some(program) = xdp::program(work.name).filter(|_| is_wanted) {
        match xdp::measure(program, &all) {
            Ok(nanoseconds) => lines.push(Line {
                wall: "eBPF/XDP, by its own test run".to_owned(),
                nanoseconds,
            }),
            Err(why) => missing.push(format!("eBPF/XDP: {why}")),
        }
    }
    Figure {
        title: work.title.to_owned(),
        sizes: sizes.to_vec(),
        lines,
    }
}

fn print(figure: &Figure) {
    println!("\n{}: ns for a packet, and beside native C", figure.title);
    print!("{:<40}", "payload");
    figure.sizes.iter().for_each(|size| print!("{size:>14}"));
    println!();
    for line in &figure.lines {
        print!("{:<40}", line.wall);
        for (time, native) in line.nanoseconds.iter().zip(&figure.lines[0].nanoseconds) {
            print!("{:>8.1}{:>6.2}", time, time / native);
        }
        println!();
    }
}

#[global_allocator]
static HEAPS: mullion_sip::heap::ProcessHeaps = mullion_sip::heap::ProcessHeaps;

fn main() -> std::io::Result<()> {
    mullion_hip::enter(hip::load);
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let after = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1).cloned()
    };
    // The forwarder starts this program again for a module that gets a process.
    if let [_, word, told] = arguments.as_slice()
        && word == "inside"
    {
        return inside::run(told).map_err(std::io::Error::other);
    }
    if let Some(library) = after("--child") {
        socket::child(library.as_ref());
        return Ok(());
    }
    // `cargo test` runs benches too, with other arguments.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let quick = arguments.iter().any(|argument| argument == "--quick");
    let mut missing = Vec::new();
    let mut figures = Vec::new();
    let (works, only) = (after("--work"), after("--wall").unwrap_or_default());
    let size = after("--size").and_then(|size| size.parse().ok());
    let sizes = size.map_or(SIZES.to_vec(), |size| vec![size]);
    let is_wanted = |work: &&Work| {
        works
            .as_deref()
            .is_none_or(|works| works.contains(work.name))
    };
    for work in WORKS.iter().filter(is_wanted) {
        let figure = figure(work, quick, &only, &sizes, &mut missing);
        print(&figure);
        if let Some(folder) = after("--pictures") {
            let file = std::path::Path::new(&folder).join(format!("packets-{}.svg", work.name));
            std::fs::write(file, page::plot(&figure))?;
        }
        figures.push(figure);
    }
    missing.sort();
    missing.dedup();
    for why in &missing {
        println!("not measured: {why}");
    }
    let results = Results {
        machine: build::machine(),
        figures,
        missing,
    };
    if let Some(file) = after("--json") {
        std::fs::write(file, serde_json::to_string_pretty(&results)?)?;
    }
    if let Some(file) = after("--html") {
        std::fs::write(file, page::page(&results))?;
    }
    Ok(())
}
