//! What rustc calls as its linker: puts the crate's rewritten text in the place of its objects, and
//! hands the rest to `mullion cc`.

use super::{TEXT, object, shim};
use crate::arguments::{Kind, count_from_environment, protection};
use crate::assembler::{KEEP, PROTECTION};
use crate::{Arguments, DriverError, Language, compile, response, tools};
use mullion_abi::Protection;
use mullion_rewriter::{Options, Wall};
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What rustc asks of the linker, as far as an image can have it.
#[derive(Debug, Default)]
struct Request {
    output: PathBuf,
    /// Objects that rustc wrote of this crate, or by itself.
    objects: Vec<PathBuf>,
    /// Libraries, directories and options that go on, in order.
    rest: Vec<OsString>,
    /// The version script, which lists what a cdylib exports.
    exports: Option<PathBuf>,
    kind: Kind,
}

/// Options that say what `mullion cc` says by itself, or what no image has.
const DROPPED: &[&str] = &[
    "-m64",
    "-pie",
    "-no-pie",
    "-static",
    "-static-pie",
    "-nodefaultlibs",
    "-nostartfiles",
    "-Wl,--as-needed",
    "-Wl,--no-as-needed",
    "-Wl,-Bstatic",
    "-Wl,-Bdynamic",
    "-Wl,--eh-frame-hdr",
    "-Wl,--no-undefined-version",
    "-Wl,-O1",
];

impl Request {
    fn parse(arguments: impl IntoIterator<Item = OsString>) -> Self {
        let mut request = Self::default();
        let mut arguments = response::expand(arguments).into_iter();
        while let Some(argument) = arguments.next() {
            let text = argument.to_string_lossy().into_owned();
            if text == "-o" {
                request.output = arguments.next().unwrap_or_default().into();
            } else if text.ends_with(".rcgu.o") {
                request.objects.push(argument.into());
            } else if let Some(script) = argument.as_bytes().strip_prefix(b"-Wl,--version-script=")
            {
                request.exports = Some(OsStr::from_bytes(script).into());
            } else if text == "-shared" {
                request.kind = Kind::Extension;
            } else if text == "-L" {
                request.rest.push(argument);
                request.rest.extend(arguments.next());
            } else if !DROPPED.contains(&text.as_str())
                && !text.starts_with("-Wl,-z,")
                && !text.starts_with("-Wl,-rpath")
                && !text.starts_with("-fuse-ld")
            {
                request.rest.push(argument);
            }
        }
        request
    }

    /// Libraries and objects among what goes on.
    fn files(&self) -> impl Iterator<Item = &Path> {
        let files = self.rest.iter().map(Path::new);
        files.filter(|path| {
            let known = path.extension().and_then(OsStr::to_str);
            matches!(known, Some("rlib" | "a" | "o"))
        })
    }
}

/// Links what rustc compiled; the exit status.
///
/// # Errors
/// What the rewriter refuses; files; tools that are missing.
pub fn link(arguments: impl IntoIterator<Item = OsString>) -> Result<u8, DriverError> {
    let request = Request::parse(arguments);
    let options = options()?;
    let keep = std::env::var_os(KEEP).map(PathBuf::from);
    let scratch =
        tempfile::tempdir().map_err(|cause| DriverError::io(&std::env::temp_dir(), cause))?;
    let mut line: Vec<OsString> = Vec::new();
    for (number, written) in request.objects.iter().enumerate() {
        let object = scratch.path().join(format!("{number}.o"));
        let (text, name) = if object::is_codegen_unit(written) {
            let text = PathBuf::from(std::env::var_os(TEXT).unwrap_or_default());
            let read = fs::read_to_string(&text);
            (read.map_err(|cause| DriverError::io(&text, cause))?, text)
        } else {
            (shim::text(written)?, scratch.path().join("allocator.s"))
        };
        object::assemble(&text, &name, &options, keep.as_deref(), &object)?;
        line.push(object.into());
    }
    let object = scratch.path().join("backtrace.o");
    let name = scratch.path().join("backtrace.s");
    object::assemble(NO_BACKTRACE, &name, &options, None, &object)?;
    line.push(object.into());
    if let Some(script) = &request.exports {
        let objects = line.iter().map(Path::new).chain(request.files());
        let functions = functions(objects)?;
        let text = fs::read_to_string(script).map_err(|cause| DriverError::io(script, cause))?;
        let names: Vec<&str> = listed(&text)
            .filter(|name| functions.contains(*name) && is_exported(name))
            .collect();
        if let Some(name) = names.iter().find(|name| name.len() > LONGEST_EXPORT) {
            return Err(DriverError::Refused {
                option: (*name).into(),
                reason: "the name of an export has 59 bytes at most",
            });
        }
        if !names.is_empty() {
            line.push(format!("--mullion-export={}", names.join(",")).into());
        }
    }
    if request.kind == Kind::Extension {
        line.push("--mullion-kind=extension".into());
    }
    line.push(format!("--mullion-protection={}", options.protection.name()).into());
    line.extend(request.rest);
    line.push("-o".into());
    line.push(request.output.into());
    // gcc finds the assembler for its own start-up, of which there is none here.
    Ok(compile(Language::C, &Arguments::parse(&line)?)?.code)
}

/// What the standard library asks for a backtrace. Return addresses lie where a domain cannot reach,
/// so there are no frames: the stack is at its end (`_URC_END_OF_STACK`). Weak, so that a program with
/// an unwinder has its own.
const NO_BACKTRACE: &str = "\
\t.section\t.text._Unwind_Backtrace,\"ax\",@progbits
\t.weak\t_Unwind_Backtrace
\t.type\t_Unwind_Backtrace,@function
_Unwind_Backtrace:
\tmovl\t$5, %eax
\tret
\t.size\t_Unwind_Backtrace, .-_Unwind_Backtrace
\t.section\t.text._Unwind_GetIP,\"ax\",@progbits
\t.weak\t_Unwind_GetIP
\t.type\t_Unwind_GetIP,@function
_Unwind_GetIP:
\txorl\t%eax, %eax
\tret
\t.size\t_Unwind_GetIP, .-_Unwind_GetIP
\t.section\t.text._Unwind_GetCFA,\"ax\",@progbits
\t.weak\t_Unwind_GetCFA
\t.type\t_Unwind_GetCFA,@function
_Unwind_GetCFA:
\txorl\t%eax, %eax
\tret
\t.size\t_Unwind_GetCFA, .-_Unwind_GetCFA
\t.section\t.text._Unwind_FindEnclosingFunction,\"ax\",@progbits
\t.weak\t_Unwind_FindEnclosingFunction
\t.type\t_Unwind_FindEnclosingFunction,@function
_Unwind_FindEnclosingFunction:
\txorl\t%eax, %eax
\tret
\t.size\t_Unwind_FindEnclosingFunction, .-_Unwind_FindEnclosingFunction
\t.section\t.note.GNU-stack,\"\",@progbits
";

/// Bytes of the name in an export's record, without its terminating zero.
const LONGEST_EXPORT: usize = 59;

/// What the wrapper handed on.
fn options() -> Result<Options, DriverError> {
    let protection = match std::env::var(PROTECTION) {
        Ok(name) if !name.is_empty() => protection(PROTECTION, &name)?,
        _ => Protection::ReadWriteCall,
    };
    Ok(Options {
        wall: Wall::Window,
        protection,
        base: crate::arguments::base_from_environment()?,
        count: count_from_environment(),
    })
}

/// Whether the image is to export a function: without a list, all that rustc does.
fn is_exported(name: &str) -> bool {
    let Ok(listed) = std::env::var(super::EXPORTS) else {
        return true;
    };
    listed.split(',').any(|listed| listed == name)
}

/// The names that a version script makes global.
fn listed(script: &str) -> impl Iterator<Item = &str> {
    let behind = script.split_once("global:").map_or("", |(_, rest)| rest);
    let list = behind.split_once("local:").map_or(behind, |(list, _)| list);
    let names = list.split(';').map(str::trim);
    names.filter(|name| !name.is_empty() && !name.contains(['*', '}']))
}

/// The functions that objects and libraries define for others.
fn functions<'a>(files: impl Iterator<Item = &'a Path>) -> Result<HashSet<String>, DriverError> {
    let mut command = Command::new("nm");
    command.args([
        "--defined-only",
        "--extern-only",
        "--quiet",
        "--format=posix",
    ]);
    let said = tools::output(command.args(files))?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let rows = said.lines().filter_map(|row| {
        let mut fields = row.split(' ');
        Some((fields.next()?, fields.next()?))
    });
    let functions = rows.filter(|(_, kind)| ["T", "W", "i"].contains(kind));
    Ok(functions.map(|(name, _)| name.to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rustcs_command_lines_are_understood() {
        let line = "-Wl,--version-script=/t/list -Wl,--no-undefined-version -m64 /t/symbols.o c.c.a4-cgu.0.rcgu.o \
                    c.80to.rcgu.o -Wl,-Bstatic /s/libstd-b.rlib -Wl,-Bdynamic -lgcc_s -lc -L /t/raw -Wl,-z,noexecstack \
                    -o libc.so -Wl,--gc-sections -shared -nodefaultlibs";
        let request = Request::parse(line.split_whitespace().map(OsString::from));
        assert_eq!(request.objects.len(), 2);
        assert_eq!(request.kind, Kind::Extension);
        assert_eq!(request.exports.as_deref(), Some(Path::new("/t/list")));
        assert_eq!(request.output, Path::new("libc.so"));
        assert_eq!(
            request.rest,
            [
                "/t/symbols.o",
                "/s/libstd-b.rlib",
                "-lgcc_s",
                "-lc",
                "-L",
                "/t/raw",
                "-Wl,--gc-sections"
            ]
        );
        assert_eq!(request.files().count(), 2);
    }

    #[test]
    fn a_version_script_lists_names() {
        let script = "{\n  global:\n    DATA;\n    sum;\n\n  local:\n    *;\n};\n";
        assert_eq!(listed(script).collect::<Vec<_>>(), ["DATA", "sum"]);
        assert_eq!(listed("{\n  local:\n    *;\n};\n").count(), 0);
    }
}
