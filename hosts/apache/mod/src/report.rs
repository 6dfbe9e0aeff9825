//! What ended a module's call, for the error log.

use crate::apr;
use crate::layout;
use crate::walled::{Walled, lock};
use mullion_symbols::Symbols;
use mullion_word_runtime::{FaultKind, Report};
use std::sync::atomic::Ordering;

impl Walled {
    /// Writes what ended it to the error log.
    ///
    /// Another thread of the module may have taken a report of this thread's call. It holds the lock until the report is in the
    /// log. So no call answers before the log has its reason.
    pub(crate) fn tell(&self) -> String {
        let mut symbols = lock(&self.symbols);
        let mut first = String::new();
        for report in self.domain.take_reports() {
            self.faults.fetch_add(1, Ordering::Relaxed);
            let what = format!(
                "the wall stopped {}: {}",
                self.name,
                self.describe(&report, &mut symbols)
            );
            apr::log(0, &what);
            if first.is_empty() {
                first = what;
            }
        }
        first
    }

    fn describe(&self, report: &Report, symbols: &mut Symbols) -> String {
        let mut text = match report.kind {
            FaultKind::Time => "its time is over (`time` in [limits])".to_owned(),
            FaultKind::DataStack | FaultKind::ControlStack => {
                "calls are nested too deeply, or its stack is full".to_owned()
            }
            FaultKind::Policy => report.object.to_string(),
            FaultKind::Call => {
                let at = report.address.unwrap_or(0);
                format!("a call of {at:#x}, {}", self.object(at))
            }
            kind => match report.address {
                Some(at) => format!("{kind:?} of {at:#x}, {}", self.object(at)),
                None => format!("{kind:?}"),
            },
        };
        let place = match report.instruction {
            0 => None,
            at => symbols.find(at).into_iter().next(),
        };
        match place.filter(|place| place.line.is_some()) {
            Some(place) => text.push_str(&format!("; at {place}")),
            None => text.push_str(&format!("; in {}", report.function)),
        }
        if let Some(field) = &report.field {
            text.push_str(&format!("; it is {field}"));
        }
        text
    }

    /// What is at an address, for people.
    pub(crate) fn object(&self, at: u64) -> String {
        if let Some(frame) = crate::frame::now() {
            let structures = [
                (
                    "request_rec",
                    layout::REQUEST,
                    frame.requests().collect::<Vec<_>>(),
                ),
                (
                    "conn_rec",
                    layout::CONNECTION,
                    frame.connections().collect(),
                ),
            ];
            for (structure, bytes, all) in structures {
                let inside = |start: &&u64| (**start..**start + bytes).contains(&at);
                if let Some(start) = all.iter().find(inside) {
                    let field = layout::field_at(structure, at - start);
                    let field = field.map_or_else(|| structure.to_owned(), str::to_owned);
                    return format!("`{field}`, which its policy does not name");
                }
            }
        }
        crate::load::owner(self, at).unwrap_or_else(|| symbol(at))
    }
}

fn symbol(at: u64) -> String {
    // SAFETY: zeros are a description without names, which the call fills in; its strings stay.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(at as *const _, &mut info) == 0 || info.dli_fname.is_null() {
            return "memory of the server".to_owned();
        }
        let file = String::from_utf8_lossy(apr::text(info.dli_fname as u64)).into_owned();
        match info.dli_sname.is_null() {
            true => format!("memory of {file}"),
            false => {
                let name = String::from_utf8_lossy(apr::text(info.dli_sname as u64));
                format!("`{name}` of {file}")
            }
        }
    }
}
