//! Calls of a module's exports, with bytes that are laid into its memory for the call.

use super::Failure;
use crate::wire::{self, Answer};
use mullion_loader::{Instance, LoadError};
use mullion_runtime::{Access, CallArguments, Claimed, Entry, PAGE};
use serde_json::{Value, json};

/// Calls an export, on the module's thread.
pub(super) fn call(instance: &Instance, content: &[u8]) -> Result<Answer, Failure> {
    let (call, bytes): (wire::Call, _) = wire::decode(content)?;
    let entry = instance.export(&call.export).map_err(LoadError::from)?;
    let entry = entry.ok_or_else(|| Failure::NoExport(call.export.clone()))?;
    let more = if bytes.is_empty() { 0 } else { 2 };
    if call.arguments.len() + more > 6 {
        return Err(Failure::Arguments);
    }
    let mut integers = call.arguments;
    if bytes.is_empty() {
        return Ok(Answer::done(enter(
            instance,
            entry,
            &integers,
            &call.export,
        )?));
    }
    let memory = instance.domain().memory();
    let length = (bytes.len() as u64).next_multiple_of(PAGE);
    let failed = |error: &dyn std::fmt::Display| Failure::Bytes(error.to_string());
    let address = memory.map(None, length, Access::ReadWrite);
    let address = address.map_err(|error| failed(&error))?;
    integers.extend([address, bytes.len() as u64]);
    let result = (|| {
        let written = memory.write(Claimed(address), bytes);
        written.map_err(|error| failed(&error))?;
        let mut answer = Answer::done(enter(instance, entry, &integers, &call.export)?);
        answer.bytes = vec![0; bytes.len()];
        let left = memory.piece(Claimed(address), bytes.len() as u64);
        let left = left.and_then(|piece| piece.read(&mut answer.bytes));
        left.map_err(|error| failed(&error))?;
        Ok(answer)
    })();
    let _the_module_unmapped_it_itself = memory.unmap(Claimed(address), length);
    result
}

fn enter(
    instance: &Instance,
    entry: Entry,
    integers: &[u64],
    export: &str,
) -> Result<Value, Failure> {
    let called = instance.domain().call(entry, &CallArguments::new(integers));
    let returned = called.map_err(|error| Failure::Call(*error, export.to_owned()))?;
    Ok(json!({ "result": returned.integer, "high": returned.high }))
}
