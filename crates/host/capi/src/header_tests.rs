//! The header and this library agree on every number: a C program that does not
//! compile if they do not.

use crate::{metrics, policy, pool, sharing, status, table, value};
use mullion_host::Permission;
use std::ffi::{CStr, c_int};
use std::fmt::Write as _;
use std::mem::offset_of;
use std::path::Path;
use std::process::Command;

/// Compiles `text` with warnings as errors; what the compiler said.
fn compile(compiler: &str, standard: &str, kind: &str, text: &str) -> Result<(), String> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let source = directory.path().join(format!("check.{kind}"));
    std::fs::write(&source, text).expect("written");
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../include");
    let output = Command::new(compiler)
        .args([standard, "-Wall", "-Wextra", "-pedantic", "-Werror", "-c"])
        .arg("-I")
        .arg(include)
        .arg(&source)
        .args(["-o", "/dev/null"])
        .output()
        .expect("a C compiler");
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// Lines that compile only if each expression has its value.
fn checks(header: &str, expected: &[(String, i64)]) -> String {
    let mut text = format!("#include <{header}>\n");
    for (index, (expression, number)) in expected.iter().enumerate() {
        writeln!(
            text,
            "typedef char check_{index}[({expression}) == {number} ? 1 : -1];"
        )
        .expect("a string");
    }
    text
}

fn layout() -> Vec<(String, i64)> {
    let mut list = Vec::new();
    macro_rules! structure {
        ($c:literal, $rust:ty, $($field:ident: $name:literal),*) => {
            list.push((concat!("sizeof(", $c, ")").to_owned(), size_of::<$rust>()));
            $(list.push((
                concat!("offsetof(", $c, ", ", $name, ")").to_owned(),
                offset_of!($rust, $field),
            ));)*
        };
    }
    for handle in [
        "image",
        "imports",
        "domain",
        "function",
        "shared",
        "call_handle",
        "pool",
        "live",
    ] {
        let of = format!("sizeof(mullion_{handle})");
        list.push((of, size_of::<table::Handle>()));
    }
    structure!("mullion_pointer", value::Pointer, address: "address");
    structure!("mullion_value", value::Value, kind: "kind", reserved: "reserved", bits: "as");
    structure!("mullion_arguments", value::HostArguments, integers: "integers", reals: "reals");
    structure!("mullion_limits", value::Limits, size: "size", memory: "memory", stack: "stack",
        nanoseconds: "nanoseconds", threads: "threads", depth: "depth",
        total_nanoseconds: "total_nanoseconds", gate_calls: "gate_calls", output: "output",
        processor_nanoseconds: "processor_nanoseconds",
        total_processor_nanoseconds: "total_processor_nanoseconds",
        start_wait_nanoseconds: "start_wait_nanoseconds", mappings: "mappings",
        measured: "measured", steps: "steps");
    structure!("mullion_metrics", metrics::Metrics, size: "size", number: "number", calls: "calls",
        host_calls: "host_calls", nanoseconds: "nanoseconds", faults: "faults", exits: "exits",
        refused: "refused", not_made: "not_made", restarts: "restarts", limit_hits: "limit_hits",
        memory: "memory", memory_highest: "memory_highest", memory_limit: "memory_limit");
    structure!("mullion_call_limits", value::CallLimits, size: "size", nanoseconds: "nanoseconds",
        gate_calls: "gate_calls", depth: "depth", reserved: "reserved",
        processor_nanoseconds: "processor_nanoseconds");
    structure!("mullion_pool_limits", value::PoolBounds, size: "size", most: "most", ready: "ready",
        memory: "memory");
    structure!("mullion_pool_figures", pool::Stats, size: "size", ready: "ready", taken: "taken",
        returned: "returned", made: "made", uses: "uses", waits: "waits", restarts: "restarts",
        ended: "ended", replaced: "replaced");
    structure!("mullion_link_options", sharing::LinkOptions, size: "size", reals: "reals",
        integers: "integers", limits: "limits", failed: "failed");
    structure!("mullion_link_info", sharing::LinkInfo, size: "size", import: "import",
        callee: "callee", export: "export_name", calls: "calls");
    structure!("mullion_question", policy::Question, size: "size", kind: "kind",
        permission: "permission", asker: "asker", domain: "domain", callee: "callee", name: "name",
        offset: "offset", length: "length");
    structure!("mullion_request", policy::Request, size: "size", keyring: "keyring", keys: "keys",
        key_count: "key_count", passphrase: "passphrase", record: "record",
        credentials: "credentials", credential_count: "credential_count");
    structure!("mullion_candidate", value::Candidate, size: "size", name: "name", path: "path",
        bytes: "bytes", length: "length");
    structure!("mullion_fault", status::Fault, size: "size", cause: "cause", line: "line",
        address: "address", instruction: "instruction", message: "message", domain: "domain",
        symbol: "symbol", file: "file", backtrace: "backtrace");
    list.push((
        "sizeof(mullion_status)".to_owned(),
        size_of::<status::Status>(),
    ));
    list.push(("sizeof(int)".to_owned(), size_of::<c_int>()));
    list.into_iter()
        .map(|(text, number)| (text, number as i64))
        .collect()
}

fn constants() -> Vec<(String, i64)> {
    let mut list: Vec<(String, i64)> = (0..)
        .map(|number| (status::name(number), number))
        .take_while(|(name, _)| *name != c"unknown status")
        .map(|(name, number): (&CStr, i32)| (name.to_string_lossy().into_owned(), number.into()))
        .collect();
    assert_eq!(list.len(), 36, "every status has a name");
    for (name, number) in [
        ("INTEGER", value::INTEGER),
        ("DOUBLE", value::DOUBLE),
        ("FLOAT", value::FLOAT),
        ("NOTHING", value::NOTHING),
        ("NONE", value::permission_number(Permission::None)),
        ("READ", value::permission_number(Permission::Read)),
        (
            "READ_WRITE",
            value::permission_number(Permission::ReadWrite),
        ),
        ("TYPE_NOTHING", value::TYPE_NOTHING),
        ("TYPE_INTEGER(short)", 2),
        ("TYPE_POINTER", 8),
        ("TYPE_DOUBLE", value::TYPE_REAL | 8),
        ("TYPE_FLOAT", value::TYPE_REAL | 4),
        ("QUESTION_LINK", policy::QUESTION_LINK),
        ("QUESTION_PAGES", policy::QUESTION_PAGES),
    ] {
        list.push((format!("MULLION_{name}"), number.into()));
    }
    list
}

#[test]
fn structures_and_constants_are_those_of_the_header() {
    let expected = [layout(), constants()].concat();
    let text = checks("mullion.h", &expected) + "int unit_is_not_empty;\n";
    compile("gcc", "-std=c99", "c", &text).expect("as C");
    compile("g++", "-std=c++17", "cc", &text).expect("as C++");
    let text = checks("mullion.hpp", &expected) + "int unit_is_not_empty;\n";
    compile("g++", "-std=c++17", "cc", &text).expect("with mullion.hpp");
}

#[test]
fn the_check_can_fail() {
    let wrong = [("sizeof(mullion_value)".to_owned(), 24)];
    let text = checks("mullion.h", &wrong);
    compile("gcc", "-std=c99", "c", &text).expect_err("a wrong size is an error");
}

#[test]
fn every_function_of_the_header_is_in_the_library_and_no_other() {
    let declared = functions(include_str!("../../../../include/mullion.h"), "mullion_");
    let files = [
        include_str!("lib.rs"),
        include_str!("call.rs"),
        include_str!("held.rs"),
        include_str!("live.rs"),
        include_str!("pool.rs"),
        include_str!("policy.rs"),
        include_str!("sharing.rs"),
        include_str!("metrics.rs"),
    ];
    let mut defined = functions(&files.concat(), "extern \"C\" fn mullion_");
    defined.sort();
    assert_eq!(declared, defined);
    assert!(declared.len() == 78, "{}: {declared:?}", declared.len());
}

/// Names of functions that lines declare.
fn functions(text: &str, before: &str) -> Vec<String> {
    let mut names: Vec<String> = text
        .lines()
        .filter(|line| !line.starts_with([' ', '\t', '/', '#']) && !line.contains("typedef"))
        .filter(|line| !line.contains("static inline") && !line.contains("(*"))
        .filter_map(|line| {
            let (head, _) = line.split_once('(')?;
            let start = head.rfind(before)? + before.len();
            Some(head[start..].to_owned())
        })
        .collect();
    names.sort();
    names
}

#[test]
fn what_must_not_compile_does_not() {
    let use_of = |line: &str| {
        format!(
            "#include <mullion.hpp>\nvoid f(mullion::tainted<int> number, mullion::tainted<int *> pointer,\n\
            mullion::function<int(int)> function) {{ (void)number; (void)pointer; (void)function; {line} }}\n"
        )
    };
    let good = "int a = number.unverified(); (void)a; (void)pointer[1].unverified(); function(number); function(2);";
    compile("g++", "-std=c++17", "cc", &use_of(good))
        .expect("what may be done with a tainted value");
    for bad in [
        "int a = number; (void)a;",
        "if (number) {}",
        "int a = number + 1; (void)a;",
        "if (number < 1) {}",
        "int a[4]; (void)a[number];",
        "(void)(number / 2);",
        "(void)(1 << number);",
        "number += pointer;",
        "bool a = number == 1; (void)a;",
        "*pointer = 1;",
        "int a = *pointer; (void)a;",
        "int a = pointer[0]; (void)a;",
        "int *a = pointer; (void)a;",
        "int a = function(1); (void)a;",
        "int a = 0; function(&a);",
    ] {
        let result = compile("g++", "-std=c++17", "cc", &use_of(bad));
        assert!(result.is_err(), "it compiles: {bad}");
    }
}
