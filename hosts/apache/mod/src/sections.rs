//! Sections of the configuration: a module has the core read the directives that a section of its own has inside.

use crate::apr;
use crate::call::{self, mediate};
use crate::frame::Root;
use crate::layout::{self, read};
use crate::object::Kind;

/// The tree is the section's own inside, and what is filled in is what the core fills in now, or a vector that the module has made.
/// The core's functions and those of modules get the same state of directives.
pub(crate) extern "C" fn ap_walk_config(tree: u64, cmd: u64, vector: u64) -> u64 {
    const NAME: &str = "ap_walk_config";
    mediate(|frame| {
        if !frame.roots.contains(&Root::Command(cmd)) {
            return Err(format!("{NAME}: {cmd:#x} is no state of this directive"));
        }
        // SAFETY: it is the state of this directive. Modules may write neither these two fields nor the core's tree.
        let (inside, context) = unsafe {
            let directive = read(cmd + layout::CMD_DIRECTIVE);
            let inside = match directive {
                0 => 0,
                at => read(at + layout::D_FIRST_CHILD),
            };
            (inside, read(cmd + layout::CMD_CONTEXT))
        };
        if tree != 0 && tree != inside {
            return Err(format!(
                "{NAME}: {tree:#x} is not what the section has inside"
            ));
        }
        if vector != context && !call::has(frame, Kind::Vector, vector) {
            return Err(format!(
                "{NAME}: {vector:#x} is no configuration of the section"
            ));
        }
        let real = apr::symbol(NAME).ok_or("the server does not have it")?;
        // SAFETY: it is httpd's function, with a part of its own tree, its own state, and a vector that it has made.
        let real: extern "C" fn(u64, u64, u64) -> u64 = unsafe { std::mem::transmute(real) };
        // What it answers is a text of the core's, or of a module's, which the module reads.
        Ok(real(tree, cmd, vector))
    })
}
