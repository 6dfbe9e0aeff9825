//! Modules for the walls, built from the same sources.

use crate::Work;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

pub(crate) fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// What is built; it goes with the process, but for what a signal ends.
pub(crate) static PLACE: LazyLock<tempfile::TempDir> =
    LazyLock::new(|| tempfile::tempdir().expect("a directory"));

/// The command beside this program's folder, or the one that MULLION names.
static MULLION: LazyLock<PathBuf> = LazyLock::new(|| {
    let own = std::env::current_exe().unwrap_or_default();
    let beside = own
        .ancestors()
        .nth(2)
        .unwrap_or(Path::new("/"))
        .join("mullion");
    std::env::var_os("MULLION").map_or(beside, PathBuf::from)
});

fn source(work: &Work) -> PathBuf {
    match work.name {
        "nothing" => here().join("benches/packets/nothing.c"),
        name => here().join(format!("modules/{name}.c")),
    }
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.current_dir(PLACE.path()).output();
    let output = output.map_err(|error| format!("{command:?}: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.success() {
        true => Ok(()),
        false => Err(said.lines().take(3).collect::<Vec<_>>().join(" | ")),
    }
}

fn to(work: &Work, kind: &str) -> PathBuf {
    PLACE.path().join(format!("{}.{kind}", work.name))
}

pub(crate) fn native(work: &Work) -> Result<PathBuf, String> {
    let file = to(work, "so");
    let include = here().join("benches/packets/native");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-w", "-I"]);
    run(gcc.arg(include).arg(source(work)).arg("-o").arg(&file)).map(|()| file)
}

pub(crate) fn window(work: &Work) -> Result<PathBuf, String> {
    let file = to(work, "mx");
    let mut cc = Command::new(&*MULLION);
    cc.args(["cc", "--mullion-kind=extension", "-O2", "-I"])
        .arg(here());
    run(cc.arg(source(work)).arg("-o").arg(&file)).map(|()| file)
}

fn id(work: &Work) -> &'static str {
    match work.name {
        "fec_send" => "fec",
        "resample" => "audio",
        _ => "monitor",
    }
}

pub(crate) fn elastic(work: &Work) -> Result<PathBuf, String> {
    let mut compile = compile(id(work))?;
    let file = to(work, "elastic.mx");
    compile.arg("-I").arg(here().join("elastic"));
    run(compile.arg("-o").arg(&file).arg(source(work))).map(|()| file)
}

fn source_of_rust(work: &Work) -> PathBuf {
    match work.name {
        "nothing" => here().join("benches/packets/nothing.rs"),
        name => here().join(format!("modules/{name}.rs")),
    }
}

pub(crate) fn elastic_rust(work: &Work) -> Result<PathBuf, String> {
    let mut compile = compile(&format!("{}-rust", id(work)))?;
    let file = to(work, "rust.mx");
    run(compile.arg("-o").arg(&file).arg(source_of_rust(work))).map(|()| file)
}

/// The same source and the same environment by the same rustc, as a library of this process.
pub(crate) fn rust_alone(work: &Work) -> Result<PathBuf, String> {
    const GLUE: &str = "#[unsafe(no_mangle)] pub extern \"C\" fn packets_next(frame: &mut environment::Frame) -> i32 \
                        { program::packets_next(frame) }\n#[allow(unused)] use environment as _;";
    let place = PLACE.path().join(format!("{}-alone", work.name));
    std::fs::create_dir_all(&place).map_err(|error| error.to_string())?;
    let glue = place.join("glue.rs");
    std::fs::write(&glue, GLUE).map_err(|error| error.to_string())?;
    let rustc = |name: &str, kind: &str, source: PathBuf| {
        let mut rustc = Command::new("rustc");
        rustc.args([
            "+1.99.1",
            "--edition=2024",
            "-Copt-level=3",
            "-Coverflow-checks=on",
        ]);
        rustc.args([
            "-Cpanic=abort",
            "-Ccodegen-units=1",
            "-Awarnings",
            "--cfg",
            "packets_alone",
        ]);
        rustc.args(["--crate-name", name, "--crate-type", kind, "--out-dir"]);
        rustc.arg(&place).arg("-L").arg(&place).arg(source);
        for external in ["environment", "program"] {
            let library = place.join(format!("lib{external}.rlib"));
            if external != name && library.exists() {
                rustc
                    .arg("--extern")
                    .arg(format!("{external}={}", library.display()));
            }
        }
        run(rustc
            .env_remove("RUSTFLAGS")
            .env_remove("RUSTC")
            .env_remove("RUSTUP_TOOLCHAIN"))
    };
    rustc("environment", "rlib", here().join("elastic/environment.rs"))?;
    rustc("program", "rlib", source_of_rust(work))?;
    rustc("glue", "cdylib", glue)?;
    Ok(place.join("libglue.so"))
}

/// `mullion compile` for a type.
fn compile(id: &str) -> Result<Command, String> {
    let keys = PLACE.path().join("keys");
    let mullion = || {
        let mut command = Command::new(&*MULLION);
        command.env("MULLION_KEYS", &keys).env_remove("MULLION_AS");
        command
    };
    let policy = PLACE.path().join("policy.toml");
    if !policy.exists() {
        run(mullion().args(["key", "new", "own"]))?;
        let key =
            std::fs::read_to_string(keys.join("own.pub")).map_err(|error| error.to_string())?;
        let ids = [
            "fec",
            "audio",
            "monitor",
            "fec-rust",
            "audio-rust",
            "monitor-rust",
        ];
        let types: Vec<PathBuf> = ids
            .iter()
            .map(|id| here().join(format!("types/{id}.toml")))
            .collect();
        let text = format!(
            "version = 1\ntypes = {types:?}\n[keys]\nown = \"{}\"\n[allow]\nload = [\"own\"]\ncompile = [\"own\"]\n",
            key.trim()
        );
        std::fs::write(&policy, text).map_err(|error| error.to_string())?;
    }
    let mut compile = mullion();
    compile.args(["compile", "--as", "own", "--key", "own", "--policy"]);
    compile.args(["policy.toml", "--type"]);
    compile.arg(here().join(format!("types/{id}.toml")));
    Ok(compile)
}

/// The module for WebAssembly, and the peer that runs it.
pub(crate) fn wasm(work: &Work) -> Result<(PathBuf, PathBuf), String> {
    let (module, peer) = (to(work, "wasm"), to(work, "wasmtime.so"));
    let native = here().join("benches/packets/native");
    let mut clang = Command::new("clang");
    clang.args([
        "--target=wasm32",
        "-O3",
        "-msimd128",
        "-nostdlib",
        "-ffreestanding",
        "-w",
        "-I",
    ]);
    clang.arg(&native).args([
        "-Wl,--no-entry",
        "-Wl,--export=packets_place",
        "-Wl,--export=packets_steps",
    ]);
    run(clang.arg(source(work)).arg("-o").arg(&module))?;
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-shared", "-fPIC", "-w"])
        .arg(native.join("wasmtime.c"));
    run(gcc.arg("-o").arg(&peer)).map(|()| (module, peer))
}

/// Wasmtime's library, from the Python package that `scripts/setup-bench --wasmtime` gets.
pub(crate) fn wasmtime() -> Result<PathBuf, String> {
    let python = here().join("../../build/bench/venv/bin/python");
    let find = "import glob, os, wasmtime; print(glob.glob(os.path.dirname(wasmtime.__file__) + '/*/_libwasmtime.so')[0])";
    let output = Command::new(python).args(["-c", find]).output();
    let path = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    match path {
        Ok(path) if !path.is_empty() => Ok(path.into()),
        _ => Err("scripts/setup-bench --wasmtime installs it".to_owned()),
    }
}

pub(crate) fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let name = name.map_or("an unknown processor", |(_, name)| name);
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{name}, Linux {}", kernel.trim())
}
