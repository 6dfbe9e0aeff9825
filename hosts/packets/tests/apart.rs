//! Modules behind the wall of a process: the same images and the same answers as in a window, attackers that are stopped,
//! and processes that have nothing.

#[path = "../../../crates/host/mullion/tests/support/mod.rs"]
mod support;

use mullion_packets::{frame, pcap};
use std::fs::{self, File};
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Frames in a capture.
const FRAMES: u8 = 120;

struct Place(tempfile::TempDir);

impl Place {
    /// With a capture of frames that modules of the benchmark's port get.
    fn new() -> Place {
        let place = Place(tempfile::tempdir().unwrap());
        let to = BufWriter::new(File::create(place.at("in.pcap")).unwrap());
        let mut writer = pcap::Writer::new(to).unwrap();
        for n in 0..FRAMES {
            let frame = udp(&vec![n; usize::from(n) * 9]);
            writer.write(Duration::from_secs(n.into()), &frame).unwrap();
        }
        writer.finish().unwrap();
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A module of the tree, or of this text.
    fn build(&self, name: &str, text: Option<&str>) {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let own = self.at(name).with_extension("c");
        let source = match text {
            None => here.join("modules").join(name).with_extension("c"),
            Some(text) => {
                fs::write(&own, format!("#include \"packets.h\"\n{text}\n")).unwrap();
                own
            }
        };
        let image = self.at(name).with_extension("mx");
        let include = here.display().to_string();
        support::build(&source, &image, &["-O1", "-w", "-I", &include]);
    }

    /// A file of modules: name, wall, kind, time for a frame.
    fn describe(&self, modules: &[(&str, &str, &str, &str)]) {
        let one = |(name, wall, kind, time): &(&str, &str, &str, &str)| {
            format!(
                "[[module]]\nname = \"{name}\"\nimage = \"{name}.mx\"\nwall = \"{wall}\"\nkind = \"{kind}\"\ntime = \"{time}\"\n"
            )
        };
        let text: String = modules.iter().map(one).collect();
        fs::write(self.at("modules.toml"), text).unwrap();
    }

    fn start(&self) -> Child {
        Command::new(&*support::MULLION)
            .args(["packets", "file", "modules.toml", "in.pcap", "out.pcap"])
            .current_dir(self.0.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// What is said of a whole run.
    fn end(&self, started: Child) -> String {
        let output = started.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}{error}");
        said
    }

    fn frames(&self, name: &str) -> Vec<Vec<u8>> {
        let file = BufReader::new(File::open(self.at(name)).unwrap());
        let reader = pcap::Reader::new(file).unwrap();
        reader.map(|frame| frame.unwrap().bytes).collect()
    }
}

fn udp(payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![2; 12];
    bytes.extend([0x08, 0x00, 0x45, 0, 0, 0, 0, 1, 0, 0, 64, 17, 0, 0]);
    bytes.extend([10, 0, 0, 1, 10, 0, 0, 2, 0x13, 0x88, 0x13, 0x89, 0, 0, 0, 0]);
    bytes.extend(payload);
    let end = bytes.len();
    frame::repair(&mut bytes, end);
    bytes
}

/// Without the times, which differ.
fn without_times(said: &str) -> Vec<Vec<&str>> {
    said.lines()
        .map(|line| line.split_whitespace().take(6).collect())
        .collect()
}

#[test]
fn a_module_says_the_same_in_a_process_as_in_a_window() {
    let place = Place::new();
    let kinds = [
        ("monitor", "monitor"),
        ("fec_send", "transcoder"),
        ("flows", "monitor"),
        ("fec_receive", "transcoder"),
        ("resample", "transcoder"),
        ("mirror", "transcoder"),
    ];
    kinds.iter().for_each(|(name, _)| place.build(name, None));
    let mut found = Vec::new();
    for wall in ["window", "process"] {
        let modules = kinds.map(|(name, kind)| (name, wall, kind, "1s"));
        place.describe(&modules);
        let said = place.end(place.start());
        found.push((said, place.frames("out.pcap")));
    }
    let [(window, frames), (process, others)] = found.try_into().unwrap();
    assert!(window.starts_with("100 "), "{window}");
    assert_eq!(without_times(&window), without_times(&process));
    assert!(frames.len() > FRAMES.into(), "{}", frames.len());
    assert!(frames == others);
}

/// Loops, faults, grows, floods, answers nonsense: what is stopped is told why, and each frame goes on.
#[test]
fn an_attacker_in_a_process_is_stopped_and_no_frame_is_lost() {
    let place = Place::new();
    place.build("fragments", None);
    let loops = "int packets_next(struct packets_frame *f) { static int n; if (n++ > 3) for (;;) __asm__ volatile (\"\"); return PACKETS_PASS; }";
    let faults = "int packets_next(struct packets_frame *f) { static int n; if (n++ > 3) *(volatile int *)8 = 1; return PACKETS_PASS; }";
    let recurses = "static int deep(volatile int n) { volatile char a[4096]; a[0] = n; return deep(n + 1) + a[0]; }\nint packets_next(struct packets_frame *f) { return deep(0); }";
    let grows = "#include <stdlib.h>\nint packets_next(struct packets_frame *f) { for (;;) { char *p = malloc(1 << 20); if (!p) __builtin_trap(); p[0] = 1; } }";
    let keeps = "static struct packets_frame *kept; int packets_next(struct packets_frame *f) { if (kept && kept != f) kept->length = 1u << 30, kept->end = 7; kept = f; return 77; }";
    let floods = "int packets_next(struct packets_frame *f) { for (int i = 0; i < 1000; i++) { packets_emit(f->bytes, 10, 10); packets_tell(1, 2, 3); } return PACKETS_CHANGED; }";
    let attackers = [
        ("loops", loops, Some("time limit")),
        ("faults", faults, Some("offset 0x8")),
        ("recurses", recurses, Some("stack")),
        ("grows", grows, Some("trap")),
        ("keeps", keeps, None),
        ("floods", floods, None),
    ];
    for (name, text, reason) in attackers {
        place.build(name, Some(text));
        let kind = match reason {
            Some(_) => "monitor",
            None => "transcoder",
        };
        place.describe(&[
            (name, "process", kind, "20ms"),
            ("fragments", "process", "monitor", "10s"),
        ]);
        let said = place.end(place.start());
        assert!(
            place.frames("out.pcap") == place.frames("in.pcap"),
            "{said}"
        );
        let line = said.lines().find(|line| line.starts_with("fragments "));
        let frames = line.and_then(|line| line.split_whitespace().nth(1));
        assert_eq!(frames, Some(FRAMES.to_string().as_str()), "{said}");
        match reason {
            Some(reason) => assert!(
                said.contains("taken out") && said.contains(reason),
                "{said}"
            ),
            None => assert!(!said.contains("taken out"), "{said}"),
        }
    }
}

/// The process of a program's module.
fn process_of(program: &Child) -> Option<u32> {
    let program = program.id().to_string();
    fs::read_dir("/proc").unwrap().flatten().find_map(|entry| {
        let number = entry.file_name().to_str()?.parse().ok()?;
        let status = fs::read_to_string(entry.path().join("status")).ok()?;
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
        (parent.trim() == program).then_some(number)
    })
}

/// A process in which a module loops has no powers and no calls of the system; and if it ends, the frames go on.
#[test]
fn a_modules_process_has_nothing_and_may_end() {
    let place = Place::new();
    let loops = "int packets_next(struct packets_frame *f) { for (;;) __asm__ volatile (\"\"); }";
    place.build("loops", Some(loops));
    place.describe(&[("loops", "process", "monitor", "60s")]);
    let mut started = place.start();
    // There is a place for what comes out when all modules are loaded.
    while !place.at("out.pcap").exists() {
        assert!(started.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(10));
    }
    let process = process_of(&started).expect("it loops");
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    for line in [
        "Seccomp:\t2",
        "CapPrm:\t0000000000000000",
        "CapEff:\t0000000000000000",
        "NoNewPrivs:\t1",
    ] {
        assert!(status.contains(line), "{status}");
    }
    // SAFETY: it takes numbers; the process is a child of our child, which has not waited for it.
    let killed = unsafe { libc::kill(process.cast_signed(), libc::SIGKILL) };
    assert_eq!(killed, 0);
    let said = place.end(started);
    assert!(said.contains("its process has ended: signal 9"), "{said}");
    assert!(
        place.frames("out.pcap") == place.frames("in.pcap"),
        "{said}"
    );
}
