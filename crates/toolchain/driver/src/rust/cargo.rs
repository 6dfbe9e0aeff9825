//! `mullion cargo`: Cargo as it is, told by its environment to compile for a domain.

use super::TARGET;
use super::toolchain::Toolchain;
use crate::sysroot::{Sysroot, directory_of};
use crate::tools::{self, Tools};
use crate::{DriverError, arguments};
use mullion_abi::Protection;
use mullion_rewriter::{Options, Wall};
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Command;

/// Runs Cargo with these arguments; its exit status.
///
/// # Errors
/// The toolchain or the C library is missing.
pub fn cargo(arguments: &[OsString]) -> Result<u8, DriverError> {
    let toolchain = Toolchain::find()?;
    let options = Options {
        wall: Wall::Window,
        protection: arguments::protection_from_environment()?.unwrap_or(Protection::ReadWriteCall),
        base: arguments::base_from_environment()?,
        count: arguments::count_from_environment(),
    };
    // Built first, so that no two crates wait for it.
    let _library = super::library::Library::prepare(&toolchain, &options)?;
    let tools = Tools::prepare(&Sysroot::prepare(&options)?.overlay())?;
    let mut command = Command::new(toolchain.cargo());
    command.args(arguments);
    let own = |name: &str| tools.directory.join(name);
    let suffix = TARGET.replace('-', "_");
    command
        .env("CARGO_BUILD_TARGET", TARGET)
        .env("RUSTC", toolchain.rustc())
        .env("RUSTC_WRAPPER", own("mullion-rustc"))
        .env(format!("CC_{suffix}"), own("mullion-cc"))
        .env(format!("CXX_{suffix}"), own("mullion-c++"))
        .env(format!("AR_{suffix}"), "ar")
        .env_remove("RUSTC_WORKSPACE_WRAPPER");
    if std::env::var_os("CARGO_TARGET_DIR").is_none()
        && let Some(directory) = target_directory(&toolchain, arguments, &options)
    {
        command.env("CARGO_TARGET_DIR", directory);
    }
    let status = command.status();
    let status = status.map_err(|cause| tools::cannot_start(&command, cause))?;
    let code = status.code();
    let code = code.unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    Ok(u8::try_from(code).unwrap_or(1))
}

/// A directory of its own for each way to rewrite: `target/mullion`, `target/mullion-trap`. None
/// where there is no package, about which Cargo will say more.
fn target_directory(
    toolchain: &Toolchain,
    arguments: &[OsString],
    options: &Options,
) -> Option<PathBuf> {
    let mut command = Command::new(toolchain.cargo());
    command.args(["metadata", "--no-deps", "--format-version=1"]);
    let mut given = arguments.iter();
    while let Some(argument) = given.next() {
        let text = argument.to_string_lossy();
        if text == "--manifest-path" {
            command.arg(argument).args(given.next());
        } else if text.starts_with("--manifest-path=") {
            command.arg(argument);
        }
    }
    let said = tools::output(command.env("RUSTC", toolchain.rustc())).ok()?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let (_, behind) = said.split_once("\"target_directory\":\"")?;
    let (directory, _) = behind.split_once('"')?;
    let name = match directory_of(options).as_str() {
        "read-write-call" => "mullion".to_owned(),
        other => format!("mullion-{other}"),
    };
    Some(PathBuf::from(directory.replace("\\\\", "\\")).join(name))
}
