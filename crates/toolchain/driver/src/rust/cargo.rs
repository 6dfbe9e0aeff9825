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
    if runs_tests(arguments) {
        command.args(with_test_options(arguments));
        let given = std::env::var(RUN).unwrap_or_default();
        command.env(RUN, format!("{given} {TEST_GRANTS}"));
    } else {
        command.args(arguments);
    }
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

/// Options for `mullion run`, where a program is started by its own name.
const RUN: &str = "MULLION_RUN";

/// The harness measures time, and takes the options below from programs that say this.
const TEST_GRANTS: &str = "--clock --env RUSTC_BOOTSTRAP=1";

/// Tests run one by one, in the program itself: a domain starts no threads and no processes. What must
/// panic would end the program, so it is left out.
const TEST_OPTIONS: &[&str] = &[
    "-Zunstable-options",
    "--force-run-in-process",
    "--exclude-should-panic",
    "--test-threads=1",
];

/// Whether Cargo is to run tests: its first argument that is no option says so.
fn runs_tests(arguments: &[OsString]) -> bool {
    let mut words = arguments.iter().map(|argument| argument.to_string_lossy());
    let command = words.find(|word| !word.starts_with(['-', '+']));
    command.is_some_and(|word| word == "test" || word == "t")
}

/// The command line with options for the harness, behind `--`, in front of the user's.
fn with_test_options(arguments: &[OsString]) -> Vec<OsString> {
    let mut line = arguments.to_vec();
    let end = line.iter().position(|argument| argument == "--");
    let place = end.map_or(line.len(), |end| end + 1);
    let dashes = end.is_none().then_some("--");
    let options = dashes.into_iter().chain(TEST_OPTIONS.iter().copied());
    line.splice(place..place, options.map(OsString::from));
    line
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

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn the_harness_gets_its_options() {
        assert!(runs_tests(&words("--offline test --lib")));
        assert!(runs_tests(&words("t")));
        assert!(!runs_tests(&words("build --bin test")));
        let options = TEST_OPTIONS.join(" ");
        assert_eq!(
            with_test_options(&words("test --lib")),
            words(&format!("test --lib -- {options}"))
        );
        assert_eq!(
            with_test_options(&words("test -- adds")),
            words(&format!("test -- {options} adds"))
        );
    }
}
