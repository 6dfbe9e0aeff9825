//! The library's log, as lines for a function of the host's.

use crate::status::{Failure, IN_USE};
use crate::value::User;
use std::cell::Cell;
use std::ffi::{CString, c_char, c_int, c_void};
use std::fmt::{self, Write as _};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Metadata, Subscriber, span};

/// `mullion_log_function`.
pub(crate) type Function = unsafe extern "C" fn(*mut c_void, c_int, *const c_char, *const c_char);

/// Hands what is logged to `function`.
///
/// # Safety
/// It may be called with `user` from every thread.
pub(crate) unsafe fn set(function: Function, user: User, level: c_int) -> Result<(), Failure> {
    let level = match level {
        1 => Level::ERROR,
        2 => Level::WARN,
        3 => Level::INFO,
        4 => Level::DEBUG,
        5 => Level::TRACE,
        _ => return Err(Failure::argument("the level is none that there is")),
    };
    let log = Log {
        function,
        user,
        level,
    };
    let set = tracing::subscriber::set_global_default(log);
    set.map_err(|_| Failure::with(IN_USE, "there is a log already"))
}

thread_local! {
    /// Whether the host's function runs on this thread. What it does is not logged: that would be told to it.
    static TELLING: Cell<bool> = const { Cell::new(false) };
}

struct Log {
    function: Function,
    user: User,
    level: Level,
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        !metadata.is_span() && *metadata.level() <= self.level
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::from_level(self.level))
    }

    // The library logs events only.
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        if TELLING.replace(true) {
            return;
        }
        self.tell(event);
        TELLING.set(false);
    }
}

impl Log {
    fn tell(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        let data = event.metadata();
        let level = match *data.level() {
            Level::ERROR => 1,
            Level::WARN => 2,
            Level::INFO => 3,
            Level::DEBUG => 4,
            Level::TRACE => 5,
        };
        let text = |text: String| CString::new(text.replace('\0', "")).unwrap_or_default();
        let (target, line) = (text(data.target().to_owned()), text(line.finish()));
        // SAFETY: the host's promise when it set the log; both strings live
        // until it returns.
        unsafe { (self.function)(self.user.0, level, target.as_ptr(), line.as_ptr()) };
    }
}

/// `domain: message (more=...)`
#[derive(Default)]
struct Line {
    domain: String,
    message: String,
    rest: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string does not fail.
        let _written = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.rest, " {name}={value:?}"),
        };
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "domain" => value.clone_into(&mut self.domain),
            _ => self.record_debug(field, &value),
        }
    }
}

impl Line {
    fn finish(self) -> String {
        let mut line = self.message;
        if !self.domain.is_empty() {
            line = format!("{}: {line}", self.domain);
        }
        if !self.rest.is_empty() {
            line = format!("{line} ({})", self.rest.trim_start());
        }
        line
    }
}
