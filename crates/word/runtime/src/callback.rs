//! Functions that a module passes to the host, which calls them back. The policy of the host's function says what such calls mean.
//! That of an export does not, because the module chooses which function it passes.
//!
//! ```text
//!   the module ── walk(each, cookie) ──► the host ── each(row, bytes, cookie) ──► the module, granted `row`
//!        frame  ◄────── known for this frame, until `walk` returns ──────┘
//! ```
//!
//! A frame has one call of the host at a time. So a row is found by its frame, whatever else the thread has begun since.

use crate::core::Core;
use crate::gates::{Frame, Import, here};
use crate::load::behind_gate;
use crate::policy::FunctionPolicy;
use crate::thread;

/// A function that was passed, as long as the call runs that has passed it.
pub(crate) struct Callback {
    frame: *const Frame,
    core: *const Core,
    body: u64,
    policy: &'static FunctionPolicy,
}

/// Functions of a call of the host; they are forgotten with it.
#[must_use = "they are known as long as it lives"]
pub(crate) struct Passed(Option<*const Frame>);

impl Drop for Passed {
    fn drop(&mut self) {
        if let Some(frame) = self.0
            && let Ok(thread) = thread::this()
        {
            thread.callbacks.retain(|one| one.frame != frame);
        }
    }
}

/// Looks at a function that the module passes. What leads to no module's gate is looked at elsewhere.
pub(crate) fn look(
    core: &'static Core,
    policy: &FunctionPolicy,
    argument: u8,
    function: u64,
) -> Result<(), String> {
    let Some((callee, body)) = behind_gate(function) else {
        return Ok(());
    };
    let callee = callee.core();
    let meaning = policy.callbacks.iter().find(|(at, _)| *at == argument);
    if meaning.is_some() && !std::ptr::eq(callee, core) {
        return Err(format!(
            "argument {argument} is a function of another module, and would be granted what this module's is"
        ));
    }
    // The host may keep it, and call it when nothing here knows what for. Then it means what its export's policy says.
    let export = callee
        .export(body)
        .filter(|export| export.gives_rights())
        .filter(|export| meaning.is_none_or(|(_, said)| !said.gives_as(export)));
    match export {
        Some(_) => Err(format!(
            "argument {argument} is `{}`, which has rights by its export's policy, and the module would choose on what",
            callee.name_of(body)
        )),
        None => Ok(()),
    }
}

/// In front of the call: what calls of the functions mean that the module passes.
pub(crate) fn pass(
    core: &'static Core,
    import: &'static Import,
    arguments: &[u64; 6],
) -> Result<Passed, String> {
    let callbacks = import.policy.iter().flat_map(|policy| &policy.callbacks);
    let mut passed = Passed(None);
    for (at, policy) in callbacks {
        let function = arguments.get(usize::from(*at)).copied().unwrap_or(0);
        let Some((_, body)) = behind_gate(function) else {
            continue;
        };
        let thread = thread::this().map_err(|error| error.to_string())?;
        // SAFETY: the newest frame is that of the module that calls.
        let frame = unsafe { (*here()).frame.cast_const() };
        let is_it = |one: &&Callback| one.frame == frame && one.body == body;
        if thread
            .callbacks
            .iter()
            .find(is_it)
            .is_some_and(|one| one.policy != policy)
        {
            return Err(format!(
                "argument {at} is another argument, too, and the two mean different things"
            ));
        }
        thread.callbacks.push(Callback {
            frame,
            core,
            body,
            policy,
        });
        passed.0 = Some(frame);
    }
    Ok(passed)
}

/// The meaning of a call by the host, if the module's call that the host runs has passed this function.
pub(crate) fn of(core: &Core, body: u64) -> Option<&'static FunctionPolicy> {
    // SAFETY: it is the thread's own.
    let frame = unsafe { (*here()).frame.cast_const() };
    if frame.is_null() {
        return None;
    }
    let mut known = thread::this().ok()?.callbacks.iter();
    let found =
        known.find(|one| one.frame == frame && std::ptr::eq(one.core, core) && one.body == body);
    found.map(|one| one.policy)
}
