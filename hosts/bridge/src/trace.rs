//! A run of a stock host as a trace. With `MULLION_WORD_TRACE=FILE` all decisions of the supervisor go into the file when
//! the process ends. The file is for `mullion model run FILE` (docs/word.md, "Traces").

use mullion_mmp::log::write_trace;
use mullion_word_runtime::Host;
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::sync::OnceLock;

const FILE: &str = "MULLION_WORD_TRACE";

/// So many decisions are kept. A longer run has no trace, and says so.
const DECISIONS: usize = 1 << 24;

struct Trace {
    host: Host,
    file: PathBuf,
    /// A copy of the process (`fork`) writes none.
    process: u32,
}

static TRACE: OnceLock<Option<Trace>> = OnceLock::new();

/// Before a module is loaded: the first call begins the trace, if somebody wants one.
pub(crate) fn begin(host: &Host) {
    TRACE.get_or_init(|| {
        let file = PathBuf::from(std::env::var_os(FILE)?);
        host.start_audit(DECISIONS);
        // SAFETY: the function is there until the library goes, and is called before that.
        let is_kept = unsafe { libc::atexit(end) } == 0;
        is_kept.then(|| Trace {
            host: *host,
            file,
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
    let Some(log) = trace.host.take_audit() else {
        return;
    };
    let name = std::env::current_exe().unwrap_or_default();
    let note = format!("a run of {}", name.display());
    let written = File::create(&trace.file)
        .map_err(|error| error.to_string())
        .and_then(|file| {
            let file = BufWriter::new(file);
            write_trace(&log, &note, file).map_err(|error| error.to_string())
        });
    if let Err(error) = written {
        eprintln!("mullion: {}: {error}", trace.file.display());
    }
}
