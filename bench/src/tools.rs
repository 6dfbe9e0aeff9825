//! What is installed here: each column's compilers and runners, or why it is left out.

use crate::column::Column;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The WebAssembly runtime's Python package; the environment for it is made on demand.
const WASMTIME: &str = "wasmtime==50.0.1";

/// The version of wasm2c whose generated names `peers/wasm2c_host.c` speaks.
const WASM2C: &str = "1.0.32";

/// The programs of the columns that can be built and run.
pub(crate) struct Tools {
    /// The `mullion` command.
    pub(crate) mullion: PathBuf,
    /// The host of modules behind the word wall: `word-host`, beside this program.
    pub(crate) word_host: PathBuf,
    /// A Python that can import wasmtime.
    pub(crate) python: PathBuf,
    /// Why a column is not there.
    pub(crate) missing: BTreeMap<Column, String>,
}

impl Tools {
    /// Looks for the tools of `columns`; makes wasmtime's environment under `build`.
    ///
    /// # Errors
    /// Only if native code cannot be built: without it there is nothing to compare with.
    pub(crate) fn find(columns: &[Column], mullion: PathBuf, build: &Path) -> Result<Tools> {
        if !works("gcc", &["--version"]) {
            bail!("gcc is needed to build the native column; install it (Debian: gcc)");
        }
        let own = std::env::current_exe().context("finding this program")?;
        let mut tools = Tools {
            word_host: own.with_file_name("word-host"),
            mullion,
            python: build.join("venv/bin/python"),
            missing: BTreeMap::new(),
        };
        for &column in columns {
            if let Err(reason) = tools.check(column, build) {
                tools.missing.insert(column, format!("{reason:#}"));
            }
        }
        Ok(tools)
    }

    fn check(&self, column: Column, build: &Path) -> Result<()> {
        match column {
            Column::Native | Column::Reserved => Ok(()),
            Column::Musl => need("musl-gcc", "musl-tools"),
            Column::WriteCall
            | Column::ReadWriteCall
            | Column::Register
            | Column::Counted
            | Column::Trap => self.check_mullion(),
            Column::WordWrite | Column::WordReadWrite => {
                self.check_mullion()?;
                match self.word_host.is_file() {
                    true => Ok(()),
                    false => bail!(
                        "no {} (cargo build -p mullion-bench-word)",
                        self.word_host.display()
                    ),
                }
            }
            Column::Asan => address_sanitizer(build),
            Column::Wasmtime => wasm_compiler(build).and_then(|()| self.make_environment(build)),
            Column::Wasm2c => wasm_compiler(build).and_then(|()| wasm2c()),
        }
    }

    fn check_mullion(&self) -> Result<()> {
        for command in ["cc", "run"] {
            if !works(&self.mullion, &[command, "--help"]) {
                bail!("{} has no working `{command}`", self.mullion.display());
            }
        }
        Ok(())
    }

    /// The shared library of wasmtime's Python package, which has the C interface; or why
    /// it is not there.
    pub(crate) fn wasmtime(&self, build: &Path) -> Result<PathBuf, String> {
        const WHERE: &str = "import glob, os, wasmtime\n\
            print(glob.glob(os.path.dirname(wasmtime.__file__) + '/*/_libwasmtime.so')[0])";
        let made = self.make_environment(build);
        made.map_err(|error| format!("{error:#}"))?;
        let found = Command::new(&self.python).args(["-c", WHERE]).output();
        let found = found.map_err(|error| error.to_string())?;
        let path = String::from_utf8_lossy(&found.stdout).trim().to_owned();
        match found.status.success() {
            true => Ok(path.into()),
            false => Err(format!(
                "{WASMTIME} has no shared library where it is looked for"
            )),
        }
    }

    /// A Python environment with wasmtime in it, made once.
    fn make_environment(&self, build: &Path) -> Result<()> {
        let usable = || works(&self.python, &["-c", "import wasmtime"]);
        if usable() {
            return Ok(());
        }
        eprintln!("bench: getting {WASMTIME} from PyPI");
        let venv = build.join("venv");
        let made = Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(&venv)
            .stdout(Stdio::null())
            .status();
        if !made.is_ok_and(|status| status.success()) {
            bail!("python3 cannot make an environment (Debian: python3-venv)");
        }
        let pip = Command::new(&self.python)
            .args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                WASMTIME,
            ])
            .output()
            .context("running pip")?;
        if !usable() {
            let said = String::from_utf8_lossy(&pip.stderr);
            bail!(
                "{WASMTIME} cannot be had: {}",
                said.lines().last().unwrap_or("pip said nothing")
            );
        }
        Ok(())
    }
}

/// clang, wasm-ld and a C library that can make a WebAssembly program together.
fn wasm_compiler(build: &Path) -> Result<()> {
    need("clang", "clang")?;
    need("wasm-ld", "lld")?;
    std::fs::create_dir_all(build)?;
    let source = build.join("probe.c");
    std::fs::write(
        &source,
        "#include <stdio.h>\nint main(void) { return puts(\"\") < 0; }\n",
    )?;
    let (program, source) = (
        build.join("probe.wasm").into_os_string(),
        source.into_os_string(),
    );
    if !works(
        "clang",
        &[
            OsString::from("--target=wasm32-wasi"),
            source,
            "-o".into(),
            program,
        ],
    ) {
        bail!("clang cannot link for wasm32-wasi (Debian: wasi-libc, libclang-rt-dev-wasm32)");
    }
    Ok(())
}

/// gcc and the run time of its AddressSanitizer.
fn address_sanitizer(build: &Path) -> Result<()> {
    std::fs::create_dir_all(build)?;
    let (source, program) = (build.join("probe-asan.c"), build.join("probe-asan"));
    std::fs::write(&source, "int main(void) { return 0; }\n")?;
    let mut arguments = [OsString::from("-fsanitize=address"), source.into()].to_vec();
    arguments.extend(["-o".into(), program.into_os_string()]);
    if !works("gcc", &arguments) {
        bail!("gcc cannot link with -fsanitize=address (Debian: libasan)");
    }
    Ok(())
}

fn wasm2c() -> Result<()> {
    need("wasm2c", "wabt")?;
    let out = Command::new("wasm2c").arg("--version").output()?;
    let version = String::from_utf8_lossy(&out.stdout);
    if version.trim() != WASM2C {
        bail!(
            "wasm2c is version {}, its host program here is written for {WASM2C}",
            version.trim()
        );
    }
    Ok(())
}

fn need(program: &str, package: &str) -> Result<()> {
    if works(program, &["--version"]) || works(program, &["-dumpversion"]) {
        return Ok(());
    }
    bail!("{program} is not installed (Debian: {package})")
}

/// Whether the program can be started with these arguments and is content with them.
pub(crate) fn works(
    program: impl AsRef<std::ffi::OsStr>,
    arguments: &[impl AsRef<std::ffi::OsStr>],
) -> bool {
    let status = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}
