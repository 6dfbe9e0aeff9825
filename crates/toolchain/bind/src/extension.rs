//! The extension's side: records of its exports and imports, checked against
//! the header by the compiler that compiles both.

use crate::HeaderInterface;
use std::fmt::Write as _;

/// A C file to be linked with the extension.
#[must_use]
pub fn extension(interface: &HeaderInterface, header: &str) -> String {
    let mut text = format!(
        "/* Made by mullion bind from {header}; do not edit. Link it with the extension. */\n\
         #include <mullion/ext.h>\n#include \"{header}\"\n\n"
    );
    for function in &interface.functions {
        let kind = if function.is_hosts {
            "IMPORT"
        } else {
            "EXPORT"
        };
        // Writing to a string does not fail.
        let _written = writeln!(text, "MULLION_{kind}_RECORD({});", function.name);
    }
    // An export that is not defined, or is of another type, is an error of the
    // linker or the compiler: each is mentioned once.
    let exports: Vec<&str> = interface
        .functions
        .iter()
        .filter(|function| !function.is_hosts)
        .map(|function| function.name.as_str())
        .collect();
    if !exports.is_empty() {
        let _written = write!(
            text,
            "\n__attribute__((used)) static void (*const mullion_exported[])(void) = {{\n\t(void (*)(void)){},\n}};\n",
            exports.join(",\n\t(void (*)(void))")
        );
    }
    text
}
