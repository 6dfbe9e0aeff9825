//! Sections of the configuration: a module has the core read the directives that a section of its own has inside.

use crate::apr;
use crate::call::{self, mediate};
use crate::copied;
use crate::frame::{Frame, Root};
use crate::interface::Answer as Result_;
use crate::layout::{self, read};
use crate::object::Kind;
use crate::pools;
use crate::states::by_row;

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

/// A configuration that a module has made, or that a request of this call has.
fn is_vector(frame: &Frame, at: u64) -> bool {
    // SAFETY: it is a field of a request of the core's.
    let of = |r: u64| unsafe { frame.walled.word(r + layout::R_PER_DIR_CONFIG) };
    // SAFETY: modules may not write what is followed here, and `any_server` has the core's structures.
    let first = frame
        .any_server()
        .map(|s| unsafe { read(s + layout::S_LOOKUP_DEFAULTS) });
    let is_default = at != 0 && first == Some(at);
    is_default || frame.requests().any(|r| of(r) == at) || call::has(frame, Kind::Vector, at)
}

/// The core calls functions of modules that merge what is theirs, each with what is in the module's place. Both configurations are in the
/// core's memory, and what they have there was put there by the core. So is the result, which the module may give to a request
/// (`swaps.rs`).
pub(crate) extern "C" fn ap_merge_per_dir_configs(pool: u64, base: u64, new: u64) -> u64 {
    const NAME: &str = "ap_merge_per_dir_configs";
    mediate(|frame| {
        frame.walled.pool(frame, pool)?;
        if let Some(wrong) = [base, new].into_iter().find(|at| !is_vector(frame, *at)) {
            return Err(format!(
                "{NAME}: {wrong:#x} is no configuration of a section or of a request"
            ));
        }
        let real = apr::symbol(NAME).ok_or("the server does not have it")?;
        // SAFETY: it is httpd's function, with a pool that lives and configurations that the core has made.
        let real: extern "C" fn(u64, u64, u64) -> u64 = unsafe { std::mem::transmute(real) };
        let made = real(pool, base, new);
        frame.walled.know(frame, Some(pool), made, Kind::Vector)?;
        Ok(made)
    })
}

/// The core looks into the configuration whether names are to be looked up.
pub(crate) extern "C" fn ap_get_remote_host(c: u64, vector: u64, kind: u64, is_number: u64) -> u64 {
    const NAME: &str = "ap_get_remote_host";
    mediate(|frame| {
        if vector != 0 && !is_vector(frame, vector) {
            return Err(format!(
                "{NAME}: {vector:#x} is no configuration of a section or of a request"
            ));
        }
        let arguments = [c, vector, kind, is_number];
        by_row(frame, NAME, "c . . w4?", Result_::Plain, &arguments)
    })
}

/// The core has the module make what it lacks for a section and a server. It gets our structure of the module, and a copy of the name.
pub(crate) extern "C" fn ap_set_config_vectors(
    server: u64,
    vector: u64,
    section: u64,
    _: u64,
    pool: u64,
) -> u64 {
    const NAME: &str = "ap_set_config_vectors";
    mediate(|frame| {
        let walled = frame.walled;
        pools::before_serving(NAME)?;
        if !call::has(frame, Kind::Vector, vector) {
            return Err(format!(
                "{NAME}: {vector:#x} is no configuration that the module has made"
            ));
        }
        let section = match section {
            0 => 0,
            // SAFETY: the server does not serve yet.
            section => unsafe { pools::lasting_copy(&copied::name(frame, section)?)? },
        };
        let arguments = [server, vector, section, walled.stand_in, pool];
        by_row(frame, NAME, "s . . . p", Result_::Plain, &arguments)
    })
}

/// A connection to a server that others take for a client of theirs. Modules look into the configuration.
pub(crate) extern "C" fn ap_ssl_bind_outgoing(c: u64, vector: u64, enable: u64) -> u64 {
    const NAME: &str = "ap_ssl_bind_outgoing";
    mediate(|frame| {
        if vector != 0 && !is_vector(frame, vector) {
            return Err(format!(
                "{NAME}: {vector:#x} is no configuration of a section or of a request"
            ));
        }
        let arguments = [c, vector, enable];
        by_row(frame, NAME, "c . .", Result_::Plain, &arguments)
    })
}

/// What a directive's row says is the answer.
pub(crate) extern "C" fn ap_set_deprecated(cmd: u64, _: u64, _: u64) -> u64 {
    const NAME: &str = "ap_set_deprecated";
    mediate(|frame| by_row(frame, NAME, "cmd . .", Result_::Plain, &[cmd, 0, 0]))
}
