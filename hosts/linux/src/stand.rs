//! The module that stands for a walled one: an ordinary module with the same name and the same exports, each of which is
//! a jump to the walled module's gate. kbuild makes it, and the kernel's own loader loads it.

use crate::kernel::{Built, Setup, at};
use crate::modules::{Maker, Module};
use mullion_word_policy::File;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Makes `NAME.ko` in the folder, for a module with this policy. Exports that the policy does not describe are not
/// offered: nobody has said what the module may touch in their calls.
///
/// # Errors
/// The policy asks for what is not done, or kbuild fails.
pub fn stand(
    built: &Built,
    maker: &Maker<'_>,
    module: &Module,
    file: &File,
    folder: &Path,
) -> Result<PathBuf, Setup> {
    if let Some((name, _)) = file.exports.iter().find(|(_, one)| one.call.stacked != 0) {
        let why = format!("{name}: arguments on the stack do not come through");
        return Err(Setup::Build(why));
    }
    let mut exports = maker.exports(module)?;
    exports.retain(|(name, _)| file.exports.contains_key(name));
    let text = text(&module.name, &exports);
    let place = folder.join(format!("{}.ko", module.name));
    kbuild_module(built, maker, &module.name, &text, "", &place)?;
    Ok(place)
}

/// The source of the module for recovery.
const RECOVERY: &str = include_str!("../patch/mullion_recover.c");

/// The module for recovery, made into the folder.
///
/// # Errors
/// kbuild fails.
pub(crate) fn recovery(built: &Built, maker: &Maker<'_>, folder: &Path) -> Result<(), Setup> {
    let place = folder.join("mullion_recover.ko");
    let flags = "ccflags-y := -I$(srctree)\n";
    kbuild_module(built, maker, "mullion_recover", RECOVERY, flags, &place)
}

/// Makes an ordinary module of one source, unless that was done already.
fn kbuild_module(
    built: &Built,
    maker: &Maker<'_>,
    name: &str,
    text: &str,
    flags: &str,
    place: &Path,
) -> Result<(), Setup> {
    let known = maker.folder().join("stands");
    fs::create_dir_all(&known).map_err(at(&known))?;
    let key = known.join(format!("{name}.c"));
    let known = known.join(format!("{name}.ko"));
    if !known.is_file() || fs::read_to_string(&key).ok().as_deref() != Some(text) {
        let work = tempfile::tempdir_in(maker.folder()).map_err(at(maker.folder()))?;
        let write = |name: &str, text: &str| {
            let path = work.path().join(name);
            fs::write(&path, text).map_err(at(&path))
        };
        write(&format!("{name}.c"), text)?;
        write("Kbuild", &format!("{flags}obj-m := {name}.o\n"))?;
        let mut make = built.kbuild();
        make.arg(format!("M={}", work.path().display()))
            .arg("modules");
        let output = make.stdin(Stdio::null()).output();
        let output = output.map_err(at(work.path()))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(Setup::Build(format!("{name}: {said}")));
        }
        let made = work.path().join(format!("{name}.ko"));
        // The text comes last: it says that the module is whole.
        let _absent = fs::remove_file(&key);
        fs::rename(&made, &known).map_err(at(&made))?;
        fs::write(&key, text).map_err(at(&key))?;
    }
    fs::copy(&known, place).map_err(at(&known))?;
    Ok(())
}

/// The source of such a module.
fn text(name: &str, exports: &[(String, bool)]) -> String {
    let mut text = format!(
        "// SPDX-License-Identifier: GPL-2.0\n/* Stands for {name}, which is behind a wall. */\n\
         #include <linux/module.h>\n#include <asm/mullion.h>\n\n\
         /* They are there if the module for recovery is. */\n\
         extern void mullion_watch(struct mullion_module *module) __attribute__((weak));\n\
         extern void mullion_unwatch(struct mullion_module *module) __attribute__((weak));\n\n\
         static struct mullion_slot slots[] __used = {{\n"
    );
    // Writing to a string cannot fail.
    for (name, _) in exports {
        let _ = writeln!(text, "\t{{ 0, \"{name}\" }},");
    }
    text.push_str("};\n");
    for (at, (name, gpl)) in exports.iter().enumerate() {
        let ending = if *gpl { "_GPL" } else { "" };
        let _ = write!(
            text,
            "\nextern void {name}(void);\n\
             asm(\"\t.text\\n\t.globl {name}\\n\t.type {name}, @function\\n{name}:\\n\"\n\
             \x20   \"\tmovabs $slots + {at} * 16, %r11\\n\tjmp *(%r11)\\n\"\n\
             \x20   \"\t.size {name}, .-{name}\\n\");\n\
             EXPORT_SYMBOL{ending}({name});\n"
        );
    }
    let _ = write!(
        text,
        "\nstatic struct mullion_module walled = {{\n\t.name = \"{name}\",\n\t.owner = THIS_MODULE,\n\
         \t.slots = slots,\n\t.count = ARRAY_SIZE(slots),\n}};\n\n\
         static int __init begin(void)\n{{\n\tint error = mullion_insert(&walled);\n\n\
         \tif (!error && mullion_watch)\n\t\tmullion_watch(&walled);\n\treturn error;\n}}\n\n\
         static void __exit end(void)\n{{\n\tif (mullion_unwatch)\n\t\tmullion_unwatch(&walled);\n\
         \tmullion_remove(&walled);\n}}\n\n\
         module_init(begin);\nmodule_exit(end);\nMODULE_LICENSE(\"GPL\");\n"
    );
    text
}
