//! The program under gdb. gdb runs this command again, which stops itself when the program is in
//! its window and has left a script that tells gdb where.

use anyhow::{Context, bail};
use rustix::process::{Signal, getpid, kill_process};
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitCode};

/// What gdb is told before the script: the real-time signals are the run time's watchdog, and the
/// stop is for gdb alone.
const SETTINGS: [&str; 5] = [
    "set confirm off",
    "set debuginfod enabled off",
    "handle SIG62 SIG63 SIG64 nostop noprint pass",
    "handle SIGSTOP stop print nopass",
    "run",
];

/// Runs gdb on this very command line, and returns its status.
pub(super) fn start(path: &Path) -> anyhow::Result<ExitCode> {
    if path.to_str().is_none_or(|text| text.contains(['\'', '\n'])) {
        bail!("{}: gdb cannot take such a name", path.display());
    }
    let work = tempfile::tempdir()?;
    let script = work.path().join("window.gdb");
    let mut gdb = Command::new("gdb");
    gdb.arg("--quiet");
    for setting in SETTINGS {
        gdb.args(["-ex", setting]);
    }
    gdb.args(["-ex", &format!("source {}", script.display()), "--args"]);
    gdb.arg(std::env::current_exe()?);
    gdb.args(without_gdb(std::env::args_os().skip(1), &script));
    let status = gdb
        .status()
        .context("gdb does not start; is it installed?")?;
    Ok(ExitCode::from(status.code().unwrap_or(1) as u8))
}

/// The arguments of this command, with the script in the place of the first `--gdb`: those
/// behind it may be the program's own.
fn without_gdb(arguments: impl Iterator<Item = OsString>, script: &Path) -> Vec<OsString> {
    let mut replaced = false;
    arguments
        .flat_map(|argument| {
            if !replaced && argument == "--gdb" {
                replaced = true;
                return vec!["--debugger-script".into(), script.into()];
            }
            vec![argument]
        })
        .collect()
}

/// Tells gdb where the program lies, by the script, and lets it take over.
pub(super) fn hand_over(script: &Path, image: &Path, base: u64) -> anyhow::Result<()> {
    // First away with our own symbols, so that names are the program's.
    let text = format!(
        "symbol-file\nadd-symbol-file '{}' -o {base:#x}\n",
        image.display()
    );
    std::fs::write(script, text).with_context(|| script.display().to_string())?;
    kill_process(getpid(), Signal::STOP)?;
    Ok(())
}
