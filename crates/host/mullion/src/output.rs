//! A domain's standard output and error, as lines of the host's log.

use mullion_runtime::CallEnd;
use mullion_system::Stream;
use std::sync::{Arc, Mutex, PoisonError};

/// Where a line is cut that has no end.
const LONGEST: usize = 4096;

/// What has been written of the lines that are not finished, of both streams.
#[derive(Default)]
pub(crate) struct Lines {
    unfinished: Mutex<[Vec<u8>; 2]>,
}

impl Lines {
    /// Takes what the domain wrote; logs the lines that are finished.
    pub(crate) fn write(&self, domain: &str, stream: Stream, bytes: &[u8]) {
        let finished = self.change(|unfinished| {
            let line = &mut unfinished[usize::from(stream == Stream::Error)];
            let mut finished = Vec::new();
            for byte in bytes {
                if *byte == b'\n' || line.len() == LONGEST {
                    finished.push(std::mem::take(line));
                }
                if *byte != b'\n' {
                    line.push(*byte);
                }
            }
            finished
        });
        for line in finished {
            log(domain, stream, &line);
        }
    }

    /// Logs what is there of lines that were not finished.
    pub(crate) fn finish(&self, domain: &str) {
        let rest = self.change(std::mem::take);
        for (line, stream) in rest.iter().zip([Stream::Output, Stream::Error]) {
            if !line.is_empty() {
                log(domain, stream, line);
            }
        }
    }

    /// Under the lock. What logs may call the domain, which writes: so nothing is logged in here.
    fn change<R>(&self, change: impl FnOnce(&mut [Vec<u8>; 2]) -> R) -> R {
        let unfinished = self.unfinished.lock();
        change(&mut unfinished.unwrap_or_else(PoisonError::into_inner))
    }

    /// What the system interface hands the bytes to.
    pub(crate) fn receiver(self: &Arc<Self>, domain: &str) -> mullion_system::Receiver {
        let (lines, domain) = (self.clone(), domain.to_owned());
        Arc::new(move |stream, bytes| -> Result<(), CallEnd> {
            lines.write(&domain, stream, bytes);
            Ok(())
        })
    }
}

fn log(domain: &str, stream: Stream, line: &[u8]) {
    let line = mullion_symbols::Plain::from(&*String::from_utf8_lossy(line));
    match stream {
        Stream::Error => {
            tracing::warn!(target: "mullion::output", domain, stream = "stderr", "{line}")
        }
        _ => tracing::info!(target: "mullion::output", domain, stream = "stdout", "{line}"),
    }
}
