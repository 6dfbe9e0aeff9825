//! gcc's specs: which start-up files, libraries and linker script it uses.

use crate::arguments::Kind;
use mullion_abi::Protection;
use std::path::Path;

/// The specs file for one kind of image. `library` holds the archives and
/// start-up objects of one protection, `script` is the finished linker script.
///
/// The linker sees no directory but ours (`link_libgcc`, and a script of our
/// own, which replaces the built-in search path): a host's `libz.a` is not
/// rewritten and must not be found.
pub(crate) fn text(library: &Path, script: &Path, start: &[&Path]) -> String {
    let library = library.display();
    let start: Vec<String> = start
        .iter()
        .map(|object| object.display().to_string())
        .collect();
    format!(
        "*link:\n-m elf_x86_64 %{{r:;:-static -pie --no-dynamic-linker -z text -z norelro -z noexecstack \
         -z nodynamic-undefined-weak --eh-frame-hdr --hash-style=gnu -T {script} %{{rdynamic:-export-dynamic}}}}\n\n\
         *link_libgcc:\n-L{library}\n\n\
         *libgcc:\n\n\n\
         *lib:\n--start-group -lc -lgcc --end-group\n\n\
         *startfile:\n{start}\n\n\
         *endfile:\n\n\n\
         *link_ssp:\n\n\n",
        script = script.display(),
        start = start.join(" "),
    )
}

/// The linker script, with the note's words and, for a program that can be
/// started directly, the interpreter's segment.
pub(crate) fn linker_script(
    template: &str,
    protection: Protection,
    kind: Kind,
    direct: bool,
) -> String {
    let (header, section) = if direct {
        (
            "interpreter PT_INTERP FLAGS(4);",
            ".interp : { KEEP(*(.interp)) } :constants :interpreter",
        )
    } else {
        ("", "")
    };
    template
        .replace("@INTERPRETER@", header)
        .replace("@INTERP_SECTION@", section)
        .replace("@PROTECTION@", &(protection as u32).to_string())
        .replace("@KIND@", if kind == Kind::Program { "0" } else { "1" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_carries_the_notes_words() {
        let template = include_str!("../../../../sysroot/mullion.ld");
        let script = linker_script(template, Protection::Trap, Kind::Extension, false);
        assert!(script.contains("LONG(2)\n\t\tLONG(1)\n\t\tLONG(__mullion_imports_start)"));
        let fields = script
            .lines()
            .filter(|line| !line.contains("@...@") && line.contains('@'));
        assert_eq!(fields.collect::<Vec<_>>(), Vec::<&str>::new());
        assert!(!script.contains("PT_INTERP"));
        assert!(
            linker_script(template, Protection::Trap, Kind::Program, true).contains("PT_INTERP")
        );
    }
}
