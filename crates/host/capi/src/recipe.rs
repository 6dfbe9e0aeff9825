//! What domains are to be made of.

use crate::pointers::text;
use crate::status::Failure;
use crate::table::{self, Handle, Object};
use crate::value;
use mullion_host::{DomainBuilder, Image, Imports, Limits};
use std::ffi::c_char;
use std::sync::PoisonError;
use std::time::Duration;

/// What domains are to be made of.
pub(crate) struct Recipe {
    image: Image,
    name: Option<String>,
    imports: Imports,
    limits: Limits,
}

impl Recipe {
    /// # Safety
    /// `name` is null or a string; `limits` is null or points to a structure whose `size` is set.
    pub(crate) unsafe fn new(
        image: Handle,
        name: *const c_char,
        imports: Handle,
        limits: *const value::Limits,
    ) -> Result<Self, Failure> {
        // SAFETY: `limits` is null or a structure that says its size, by mullion.h.
        let limits = unsafe { limits_of(limits) }?;
        let image = table::find(image, Object::image)?;
        // SAFETY: `name` is null or a string that stays as it is for the call, by mullion.h.
        let given = (!name.is_null()).then(|| unsafe { text(name) });
        let name = given.transpose()?.map(str::to_owned);
        let mut list = Imports::new();
        if !imports.is_none() {
            let given = table::find(imports, Object::imports)?;
            list = given.lock().unwrap_or_else(PoisonError::into_inner).clone();
        }
        Ok(Self {
            image,
            name,
            imports: list,
            limits,
        })
    }

    pub(crate) fn builder(&self) -> DomainBuilder {
        let builder = self.image.domain().limits(self.limits.clone());
        let builder = builder.imports(self.imports.clone());
        match &self.name {
            Some(name) => builder.name(name),
            None => builder,
        }
    }
}

/// # Safety
/// The pointer is null or points to a structure whose `size` is set.
unsafe fn limits_of(given: *const value::Limits) -> Result<Limits, Failure> {
    let mut limits = Limits::default();
    // SAFETY: `given` is null or a structure that says its size, by mullion.h.
    let Some(given) = (unsafe { value::limits(given) })? else {
        return Ok(limits);
    };
    let or = |given: u64, default: u64| if given == 0 { default } else { given };
    let some = |given: u64| (given != 0).then_some(given);
    limits.memory = or(given.memory, limits.memory);
    limits.stack = or(given.stack, limits.stack);
    limits.threads = or(given.threads.into(), limits.threads.into()) as u32;
    limits.depth = or(given.depth.into(), limits.depth.into()) as u32;
    limits.time = some(given.nanoseconds).map(Duration::from_nanos);
    limits.total_time = some(given.total_nanoseconds).map(Duration::from_nanos);
    limits.processor_time = some(given.processor_nanoseconds).map(Duration::from_nanos);
    let all = some(given.total_processor_nanoseconds);
    limits.total_processor_time = all.map(Duration::from_nanos);
    limits.gate_calls = some(given.gate_calls);
    limits.output = some(given.output);
    limits.start_wait = Duration::from_nanos(given.start_wait_nanoseconds);
    limits.mappings = or(given.mappings, limits.mappings as u64) as usize;
    limits.steps = some(given.steps);
    limits.measured = value::clock(given.measured)?;
    Ok(limits)
}

/// Puts another list in the place of one. The one before goes when nobody holds it any more,
/// and with it what was handed over: to functions of the host's, which may come here.
pub(crate) fn change(
    imports: Handle,
    change: impl FnOnce(Imports) -> Imports,
) -> Result<(), Failure> {
    let imports = table::find(imports, Object::imports)?;
    let mut list = imports.lock().unwrap_or_else(PoisonError::into_inner);
    let changed = change(list.clone());
    let before = std::mem::replace(&mut *list, changed);
    drop(list);
    drop(before);
    Ok(())
}
