//! A run of a stock host as a trace. With `MULLION_WORD_TRACE=FILE` all decisions of the supervisor go into the file when
//! the process ends. With `MULLION_WORD_STEPS=1` so do calls, instructions and accesses of modules. The file is for
//! `mullion model run FILE` (docs/word.md, "Traces").

use mullion_word_runtime::Host;
use mullion_word_trace as trace;
use std::path::PathBuf;
use std::sync::OnceLock;

/// Set: what modules do is in the trace, too.
const STEPS: &str = "MULLION_WORD_STEPS";

const FILE: &str = "MULLION_WORD_TRACE";

struct Trace {
    file: PathBuf,
    steps: bool,
    /// A copy of the process (`fork`) writes none.
    process: u32,
}

static TRACE: OnceLock<Option<Trace>> = OnceLock::new();

/// Before a module is loaded: the first call begins the trace, if somebody wants one.
pub(crate) fn begin(host: &Host) {
    TRACE.get_or_init(|| {
        let file = PathBuf::from(std::env::var_os(FILE)?);
        let steps = std::env::var_os(STEPS).is_some_and(|value| value == "1");
        if let Err(error) = trace::begin(host, steps) {
            eprintln!("mullion: {}: {error}", file.display());
            return None;
        }
        // SAFETY: the function is there until the library goes, and is called before that.
        let is_kept = unsafe { libc::atexit(end) } == 0;
        is_kept.then(|| Trace {
            file,
            steps,
            process: std::process::id(),
        })
    });
}

extern "C" fn end() {
    let Some(trace) = TRACE.get().and_then(Option::as_ref) else {
        return;
    };
    if trace.process != std::process::id() {
        return;
    }
    let name = std::env::current_exe().unwrap_or_default();
    let what = match trace.steps {
        false => "decisions alone",
        true => "decisions, and calls, instructions and accesses of modules",
    };
    let note = format!("a run of {}: {what}", name.display());
    if let Err(error) = trace::end(&trace.file, &note) {
        eprintln!("mullion: {}: {error}", trace.file.display());
    }
}
