//! What a domain says: two pipes, which the host reads and passes on.
//!
//! ```text
//!   domain --pipe--> a thread of the host's: so many bytes a second --> the host's output, the host's errors
//! ```
//! A descriptor of the host's own output would be more than a way to say something. Whoever has it can go back to
//! earlier lines and overwrite them, or map the file. Nothing that was said is lost: who says more than is passed on
//! waits.

use std::io::{self, PipeReader, Read, Write, pipe};
use std::os::fd::OwnedFd;
use std::process::Command;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_setfl};

/// Bytes of one domain's output that are passed on in a second, in the long run.
pub const OUTPUT_RATE: usize = 1 << 20;

/// Bytes that are passed on at once of a domain that has said nothing for a while.
pub const OUTPUT_BURST: usize = 4 << 20;

/// What is read at a time: as much as a pipe has.
const PIECE: usize = 64 << 10;

const NANOSECONDS: u128 = 1_000_000_000;

/// Both of a domain's.
#[derive(Debug)]
pub(crate) struct Pipes(Vec<Stream>);

/// One of them, from where it is read.
#[derive(Debug)]
struct Stream {
    from: PipeReader,
    errors: bool,
}

impl Pipes {
    /// For what is about to be started.
    pub(crate) fn of(command: &mut Command) -> io::Result<Pipes> {
        let mut stream = |errors| {
            let (from, into) = pipe()?;
            // What is not there is not waited for: the domain may have ended.
            fcntl_setfl(&from, OFlags::NONBLOCK)?;
            match errors {
                true => command.stderr(into),
                false => command.stdout(into),
            };
            io::Result::Ok(Stream { from, errors })
        };
        Ok(Pipes(vec![stream(false)?, stream(true)?]))
    }

    /// Passes on what comes until the OS process of this handle has ended, and everything that it has said.
    pub(crate) fn pass_on(self, name: &str, process: OwnedFd) -> io::Result<JoinHandle<()>> {
        let Pipes(mut streams) = self;
        Builder::new()
            .name(format!("output {name}"))
            .spawn(move || {
                let mut piece = vec![0; PIECE];
                let mut allowance = Allowance::new(Instant::now());
                while !wait(&streams, &process, allowance.pause(Instant::now())) {
                    let most = allowance.rest(Instant::now()).min(PIECE);
                    // A domain whose output nobody takes any more hears so.
                    streams.retain(|stream| {
                        let passed = stream.pass_on(&mut piece[..most]);
                        passed.inspect(|bytes| allowance.take(*bytes)).is_ok()
                    });
                }
                for stream in &streams {
                    while let Ok(1..) = stream.pass_on(&mut piece) {}
                }
            })
    }
}

/// Until there is something to pass on; for so long nothing is. True if the process has ended.
fn wait(streams: &[Stream], process: &OwnedFd, pause: Option<Duration>) -> bool {
    let mut all = vec![PollFd::new(process, PollFlags::IN)];
    if pause.is_none() {
        let streams = streams.iter();
        all.extend(streams.map(|stream| PollFd::new(&stream.from, PollFlags::IN)));
    }
    let limit = pause.map(|pause| Timespec {
        tv_sec: 0,
        tv_nsec: pause.subsec_nanos().into(),
    });
    // Interrupted, it is asked again.
    let _ = poll(&mut all, limit.as_ref());
    !all[0].revents().is_empty()
}

impl Stream {
    /// What is there, as much as there is room for. Gives how many bytes.
    fn pass_on(&self, piece: &mut [u8]) -> io::Result<usize> {
        let bytes = match (&self.from).read(piece) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(0),
            Ok(0) if !piece.is_empty() => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => read?,
        };
        let mut into: Box<dyn Write> = match self.errors {
            true => Box::new(io::stderr().lock()),
            false => Box::new(io::stdout().lock()),
        };
        into.write_all(&piece[..bytes])?;
        into.flush()?;
        Ok(bytes)
    }
}

/// How much may be passed on: it fills by the rate, up to the burst.
#[derive(Debug)]
struct Allowance {
    bytes: usize,
    at: Instant,
}

impl Allowance {
    fn new(now: Instant) -> Allowance {
        Allowance {
            bytes: OUTPUT_BURST,
            at: now,
        }
    }

    fn rest(&mut self, now: Instant) -> usize {
        let since = now.duration_since(self.at).as_nanos();
        let more = since * OUTPUT_RATE as u128 / NANOSECONDS;
        if more >= OUTPUT_BURST as u128 {
            (self.bytes, self.at) = (OUTPUT_BURST, now);
        } else {
            // Only the time of whole bytes is over.
            self.at += Duration::from_nanos((more * NANOSECONDS / OUTPUT_RATE as u128) as u64);
            self.bytes = (self.bytes + more as usize).min(OUTPUT_BURST);
        }
        self.bytes
    }

    fn take(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// How long until there is enough for a piece, if there is not anything.
    fn pause(&mut self, now: Instant) -> Option<Duration> {
        let empty = self.rest(now) == 0;
        empty.then(|| Duration::from_micros((PIECE * 1_000_000 / OUTPUT_RATE) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_says_more_than_the_rate_waits() {
        let begin = Instant::now();
        let mut allowance = Allowance::new(begin);
        let mut passed = 0;
        // Asked ten times in each millisecond, for 10 s.
        for tenths in 0..100_000 {
            let now = begin + Duration::from_micros(100 * tenths);
            if allowance.pause(now).is_none() {
                let most = allowance.rest(now).min(PIECE);
                allowance.take(most);
                passed += most;
            }
        }
        let most = OUTPUT_BURST + 10 * OUTPUT_RATE;
        assert!((most - PIECE..=most).contains(&passed), "{passed}");
    }

    #[test]
    fn what_is_saved_has_a_bound() {
        let begin = Instant::now();
        let mut allowance = Allowance::new(begin);
        assert_eq!(
            allowance.rest(begin + Duration::from_secs(1 << 40)),
            OUTPUT_BURST
        );
    }
}
