//! Compiled programs do the same rewritten as natively, at every level of
//! optimisation and protection, and everything that comes out verifies.

use mullion_rewriter::{Base, Options, Protection, Wall, rewrite};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What `mullion cc` tells gcc.
const FLAGS: &[&str] = &[
    "-fPIE",
    "-ffixed-r11",
    "-ffixed-r14",
    "-ffixed-r15",
    "-fno-stack-protector",
    "-fcf-protection=none",
    "-fno-stack-clash-protection",
    "-ftls-model=initial-exec",
    "-fno-exceptions",
    "-fno-rtti",
    "-w",
];
const LEVELS: &[&[&str]] = &[
    &["-O0"],
    &["-O1", "-g"],
    &["-O2"],
    &["-O3"],
    &["-Os"],
    &["-O2", "-fno-omit-frame-pointer"],
];
const AVX: &[&str] = &["-O3", "-mavx2", "-mfma", "-mbmi2"];
const PROTECTIONS: [Protection; 3] = [
    Protection::WriteCall,
    Protection::ReadWriteCall,
    Protection::Trap,
];

#[test]
fn control() {
    check("control.c");
}

#[test]
fn memory() {
    check("memory.c");
}

#[test]
fn numbers() {
    check("numbers.c");
}

#[test]
fn assembly() {
    check("assembly.c");
}

#[test]
fn classes() {
    check("classes.cc");
}

fn check(program: &str) {
    let work = Work {
        directory: tempfile::tempdir().expect("a temporary directory"),
    };
    run(Command::new("gcc")
        .args(["-O1", "-o"])
        .arg(work.path("harness"))
        .arg(tests("harness/harness.c")));
    let support = work.compile(
        "harness/support.c",
        &["-O2", "-fno-tree-loop-distribute-patterns"],
    );
    let avx = std::arch::is_x86_feature_detected!("avx2")
        && std::arch::is_x86_feature_detected!("fma")
        && std::arch::is_x86_feature_detected!("bmi2");
    if !avx {
        println!("{program}: not run with AVX2, which this machine does not have");
    }
    for level in LEVELS.iter().copied().chain(avx.then_some(AVX)) {
        let expected = work.native(program, level);
        let source = work.compile(&format!("programs/{program}"), level);
        let forms = [
            (Base::Segment, false),
            (Base::Register, false),
            (Base::Register, true),
        ];
        for (protection, (base, count)) in PROTECTIONS
            .into_iter()
            .flat_map(|protection| forms.map(|form| (protection, form)))
        {
            let options = Options {
                wall: Wall::Window,
                protection,
                base,
                count,
            };
            let image = work.image(&[("program", &source), ("support", &support)], &options);
            let counted = if count { "counted" } else { "" };
            let case = format!(
                "{program} {level:?} {} {} {counted}",
                protection.name(),
                base.name()
            );
            let bytes = std::fs::read(&image).expect("the image");
            let verified = mullion_verifier::verify(bytes)
                .unwrap_or_else(|rejected| panic!("{case}: {rejected}"));
            let without = verified.stats().gs == 0;
            assert!(without || base == Base::Segment, "{case}: uses %gs");
            let actual = run(Command::new(work.path("harness")).arg(&image));
            assert_eq!(actual, expected, "{case}");
        }
    }
}

struct Work {
    directory: tempfile::TempDir,
}

impl Work {
    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Assembler text of a source file.
    fn compile(&self, source: &str, level: &[&str]) -> String {
        let output = self.path("out.s");
        run(Command::new("gcc")
            .args(level)
            .args(FLAGS)
            .args(["-S", "-o"])
            .arg(&output)
            .arg(tests(source)));
        std::fs::read_to_string(output).expect("assembler text")
    }

    fn native(&self, program: &str, level: &[&str]) -> String {
        let output = self.path("native");
        let mut gcc = Command::new("gcc");
        gcc.args(level)
            .args(["-fno-exceptions", "-fno-rtti", "-w", "-o"])
            .arg(&output);
        run(gcc
            .arg(tests(&format!("programs/{program}")))
            .arg(tests("harness/native.c")));
        run(&mut Command::new(output))
    }

    /// Rewritten, assembled and linked.
    fn image(&self, sources: &[(&str, &str)], options: &Options) -> PathBuf {
        let image = self.path("image.mx");
        let mut ld = Command::new("ld");
        ld.args([
            "-pie",
            "--no-dynamic-linker",
            "-e",
            "entry",
            "-z",
            "text",
            "-z",
            "norelro",
        ]);
        ld.args(["-z", "max-page-size=4096", "--defsym"])
            .arg(format!("PROTECTION={}", options.protection as u32));
        ld.arg("-T")
            .arg(tests("harness/image.ld"))
            .arg("-o")
            .arg(&image);
        for (name, source) in sources {
            let rewritten = rewrite(source, name, options).unwrap_or_else(|refusals| {
                let lines: Vec<String> = refusals.iter().map(ToString::to_string).collect();
                panic!("{}", lines.join("\n"))
            });
            let (text, object) = (
                self.path(&format!("{name}.s")),
                self.path(&format!("{name}.o")),
            );
            std::fs::write(&text, rewritten.text).expect("a temporary file");
            run(Command::new("as")
                .arg("-W")
                .arg("-o")
                .arg(&object)
                .arg(text));
            ld.arg(object);
        }
        run(&mut ld);
        position_independent(&image);
        image
    }
}

/// GNU ld calls a position-independent file that does not start at address 0 and has no
/// interpreter `ET_EXEC`; everything in it is as in `ET_DYN`.
fn position_independent(image: &Path) {
    let mut bytes = std::fs::read(image).expect("the image");
    bytes[16] = 3;
    std::fs::write(image, bytes).expect("the image");
}

fn tests(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(name)
}

/// Standard output of a command that must succeed.
fn run(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}
