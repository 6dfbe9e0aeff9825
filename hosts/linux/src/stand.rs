//! The module that stands for a walled one: an ordinary module with the same name and the same exports. Each of these is
//! a jump to the walled module's gate. kbuild makes it, and the kernel's own loader loads it.

use crate::kernel::{Built, Setup, at};
use crate::modules::{Maker, Module};
use mullion_word_policy::File;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Stdio;

/// The source of the module that stands for one with this policy. Exports that the policy does not describe are not
/// offered: nobody has said what the module may touch in their calls.
///
/// # Errors
/// The policy asks for what is not done.
pub fn stand(maker: &Maker<'_>, module: &Module, file: &File) -> Result<String, Setup> {
    if let Some((name, _)) = file.exports.iter().find(|(_, one)| one.call.stacked != 0) {
        let why = format!("{name}: arguments on the stack do not come through");
        return Err(Setup::Build(why));
    }
    let mut exports = maker.exports(module)?;
    exports.retain(|(name, _)| file.exports.contains_key(name));
    Ok(text(&module.name, &exports))
}

/// One that begins with what several have.
macro_rules! with_slots {
    ($name:literal) => {
        concat!(
            include_str!("../patch/mullion_slots.h"),
            include_str!(concat!("../patch/", $name, ".c"))
        )
    };
}

/// The modules for recovery, for timers and the like, for trees, for questions, for networks, their kinds and disks, and for calls of libraries, and their
/// sources.
pub(crate) const ORDINARY: [(&str, &str); 10] = [
    (
        "mullion_recover",
        include_str!("../patch/mullion_recover.c"),
    ),
    ("mullion_block", with_slots!("mullion_block")),
    ("mullion_later", include_str!("../patch/mullion_later.c")),
    ("mullion_link", with_slots!("mullion_link")),
    ("mullion_live", include_str!("../patch/mullion_live.c")),
    ("mullion_net", with_slots!("mullion_net")),
    ("mullion_register", with_slots!("mullion_register")),
    (
        "mullion_streams",
        include_str!("../patch/mullion_streams.c"),
    ),
    ("mullion_tree", include_str!("../patch/mullion_tree.c")),
    ("mullion_try", include_str!("../patch/mullion_try.c")),
];

/// Makes ordinary modules of one source each, by name and text, into the folder. Those that were made already are not made
/// again.
///
/// # Errors
/// kbuild fails.
pub(crate) fn kbuild(
    built: &Built,
    maker: &Maker<'_>,
    all: &[(String, String)],
    folder: &Path,
) -> Result<(), Setup> {
    let known = maker.folder().join("stands");
    fs::create_dir_all(&known).map_err(at(&known))?;
    let source = |name: &str| known.join(format!("{name}.c"));
    let module = |name: &str| known.join(format!("{name}.ko"));
    let is_old = |(name, text): &&(String, String)| {
        let old = fs::read_to_string(source(name)).ok();
        !module(name).is_file() || old.as_deref() != Some(text)
    };
    let fresh: Vec<&(String, String)> = all.iter().filter(is_old).collect();
    if !fresh.is_empty() {
        let work = tempfile::tempdir_in(maker.folder()).map_err(at(maker.folder()))?;
        let mut rules = String::from("ccflags-y := -I$(srctree)\n");
        for (name, text) in &fresh {
            let path = work.path().join(format!("{name}.c"));
            fs::write(&path, text).map_err(at(&path))?;
            // Writing to a string cannot fail.
            let _ = writeln!(rules, "obj-m += {name}.o");
        }
        let path = work.path().join("Kbuild");
        fs::write(&path, rules).map_err(at(&path))?;
        let mut make = built.kbuild();
        make.arg(format!("M={}", work.path().display()));
        let output = make.arg("modules").stdin(Stdio::null()).output();
        let output = output.map_err(at(work.path()))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(Setup::Build(said));
        }
        for (name, text) in fresh {
            let made = work.path().join(format!("{name}.ko"));
            // The text comes last: it says that the module is whole.
            let _absent = fs::remove_file(source(name));
            fs::rename(&made, module(name)).map_err(at(&made))?;
            fs::write(source(name), text).map_err(at(&known))?;
        }
    }
    for (name, _) in all {
        let place = folder.join(format!("{name}.ko"));
        fs::copy(module(name), &place).map_err(at(&place))?;
    }
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
