//! From a [`File`] to text that [`File::parse`] reads as the same.

use crate::file::{Call, File};
use crate::text::{BYTES, TIMES};
use mullion_word_runtime::ErrorValue;
use std::fmt;

impl fmt::Display for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (key, value) in [("module", &self.module), ("entry", &self.entry)] {
            if let Some(value) = value {
                writeln!(f, "{key} = {}", quoted(value))?;
            }
        }
        if let Some(error) = &self.error {
            writeln!(f, "error = {}", value(error))?;
        }
        if self.stays_mapped {
            writeln!(f, "stays-mapped = true")?;
        }
        if self.instances {
            writeln!(f, "instances = true")?;
        }
        if !self.allow.is_empty() {
            writeln!(f, "allow = {}", list(&self.allow))?;
        }
        self.write_limits(f)?;
        if !self.reasons.is_empty() {
            writeln!(f, "\n[reasons]")?;
            for (name, reason) in &self.reasons {
                writeln!(f, "{} = {}", quoted(name), quoted(reason))?;
            }
        }
        if !self.groups.is_empty() {
            writeln!(f, "\n[group]")?;
            for (name, members) in &self.groups {
                writeln!(f, "{} = {}", quoted(name), list(members))?;
            }
        }
        if !self.lists.is_empty() {
            writeln!(f, "\n[list]")?;
            for (name, texts) in &self.lists {
                writeln!(f, "{} = {}", quoted(name), list(texts))?;
            }
        }
        for (name, call) in &self.calls {
            writeln!(f, "\n[call.{name}]")?;
            write_call(f, call)?;
            for (parameter, callback) in &call.callbacks {
                writeln!(f, "\n[call.{name}.callback.{parameter}]")?;
                write_call(f, callback)?;
            }
        }
        for (name, export) in &self.exports {
            writeln!(f, "\n[export.{name}]")?;
            write_call(f, &export.call)?;
            if let Some(error) = &export.error {
                writeln!(f, "error = {}", value(error))?;
            }
        }
        for (name, data) in &self.data {
            writeln!(f, "\n[data.{name}]")?;
            if let Some(bytes) = data.bytes {
                writeln!(f, "bytes = {bytes}")?;
            }
            if data.write {
                writeln!(f, "write = true")?;
            }
            if let Some(reason) = &data.reason {
                writeln!(f, "reason = {}", quoted(reason))?;
            }
        }
        Ok(())
    }
}

impl File {
    fn write_limits(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limits = &self.limits;
        if *limits == crate::Limits::default() {
            return Ok(());
        }
        writeln!(f, "\n[limits]")?;
        if let Some(time) = limits.time {
            let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
            writeln!(f, "time = \"{}\"", unit(micros, TIMES))?;
        }
        for (key, bytes) in [
            ("memory", limits.memory),
            ("stack", limits.stack),
            ("image", limits.image),
        ] {
            if let Some(bytes) = bytes {
                writeln!(f, "{key} = \"{}\"", unit(bytes, BYTES))?;
            }
        }
        Ok(())
    }
}

fn write_call(f: &mut fmt::Formatter<'_>, call: &Call) -> fmt::Result {
    if !call.parameters.is_empty() {
        writeln!(f, "parameters = {}", list(&call.parameters))?;
    }
    if !call.effects.is_empty() {
        writeln!(f, "effects = {}", list(&call.described()))?;
    }
    if call.stacked != 0 {
        writeln!(f, "stacked = {}", call.stacked)?;
    }
    if let Some(allocator) = &call.allocator {
        writeln!(f, "allocator = {}", quoted(allocator))?;
    }
    match &call.reason {
        Some(reason) => writeln!(f, "reason = {}", quoted(reason)),
        None => Ok(()),
    }
}

fn value(error: &ErrorValue) -> String {
    match error.float == 0.0 {
        true => error.integer.to_string(),
        false => format!("{:?}", error.float),
    }
}

/// In the largest unit that it is a whole number of.
fn unit(number: u64, units: &[(&str, u64)]) -> String {
    let fits = |(_, scale): &&(&str, u64)| number.is_multiple_of(*scale);
    let (name, scale) = units.iter().rev().find(fits).unwrap_or(&units[0]);
    format!("{} {name}", number / scale)
}

/// Short lists on a line, others with a line for each.
fn list(items: &[String]) -> String {
    let items: Vec<_> = items.iter().map(|item| quoted(item)).collect();
    let line = items.join(", ");
    match line.len() < 90 {
        true => format!("[{line}]"),
        false => format!("[\n    {},\n]", items.join(",\n    ")),
    }
}

fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}
