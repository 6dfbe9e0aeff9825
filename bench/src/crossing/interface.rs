//! The rows of the host's interface: the crate `mullion`, as a host uses it.

use super::answer::{Measured, Question, timed};
use super::run_time::turn;
use anyhow::{Result, bail};
use mullion::{
    Buffer, Caller, Domain, DomainMemory, Function, Image, Imports, Pool, PoolLimits, Ptr,
};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Calls that a domain makes for each call of it.
const CALLS: u64 = 1000;

type Eight = fn(u64, u64, u64, u64, u64, u64, u64, u64) -> u64;

/// A population of typed domains.
pub(crate) struct Interface {
    image: Image,
    imports: Imports,
    domains: Vec<Domain>,
    nothing: Vec<Function<fn()>>,
    eight: Function<Eight>,
    work: Function<fn(Ptr<u8>, u64)>,
    call_host: Function<fn(u64)>,
    buffer: Buffer<u8>,
    bytes: [u8; 64],
}

impl Interface {
    pub(crate) fn new(question: &Question) -> Result<Self> {
        let image = Image::open(&question.extension)?;
        let imports = Imports::new()
            .function("host_nothing", |_: &Caller<'_>| {})
            .function("next", |_: &Caller<'_>, _: u64| 0u64);
        let load = || image.domain().imports(imports.clone()).load();
        let domains = (0..question.domains.max(1))
            .map(|_| load())
            .collect::<Result<Vec<Domain>, _>>()?;
        let nothing = domains.iter().map(|domain| domain.function("nothing"));
        let first = &domains[0];
        Ok(Self {
            nothing: nothing.collect::<Result<_, _>>()?,
            eight: first.function("eight")?,
            work: first.function("work")?,
            call_host: first.function("call_host")?,
            buffer: first.copy_in(&[1u8; 64])?,
            bytes: [1; 64],
            image,
            imports,
            domains,
        })
    }

    fn load(&self) -> Result<Domain> {
        Ok(self.image.domain().imports(self.imports.clone()).load()?)
    }

    fn calls(&self, count: u64) -> Result<Duration> {
        let one = &self.nothing[0];
        timed(|| {
            for _ in 0..count {
                one.call()?;
            }
            Ok(())
        })
    }

    fn calls_in_turn(&self, count: u64) -> Result<Duration> {
        timed(|| {
            for _ in 0..count / self.nothing.len() as u64 {
                for one in &self.nothing {
                    one.call()?;
                }
            }
            Ok(())
        })
    }

    fn eight(&self, count: u64) -> Result<Duration> {
        timed(|| {
            for i in 0..count {
                let sum = self.eight.call(black_box(i), 2, 3, 4, 5, 6, 7, 8)?;
                if sum != i + 35 {
                    bail!("eight arguments add up to {sum}");
                }
            }
            Ok(())
        })
    }

    fn copied(&mut self, count: u64) -> Result<Duration> {
        let domain = &self.domains[0];
        timed(|| {
            for _ in 0..count {
                self.buffer.slice(domain)?.copy_from(&self.bytes)?;
                self.work.call(self.buffer.ptr(), self.buffer.len())?;
                self.buffer.slice(domain)?.copy_to(&mut self.bytes)?;
            }
            Ok(())
        })
    }

    /// The restarts alone are timed, each behind a call.
    fn restart(&self, count: u64) -> Result<Duration> {
        let domain = self.load()?;
        let nothing = domain.function::<fn()>("nothing")?;
        let mut time = Duration::ZERO;
        for _ in 0..count {
            nothing.call()?;
            let start = Instant::now();
            domain.restart()?;
            time += start.elapsed();
        }
        Ok(time)
    }
}

/// The bytes that a row's name ends with, if it begins so.
fn bytes_of(row: &str, beginning: &str) -> Option<u64> {
    row.strip_prefix(beginning)?.parse().ok()
}

/// Writes to each page of so much memory of the domain's, as a call that works would.
fn dirty(domain: &Domain, bytes: u64) -> Result<()> {
    domain.function::<fn()>("nothing")?.call()?;
    let memory = domain.alloc::<u8>(bytes.max(1))?;
    let memory = memory.slice(domain)?;
    for page in 0..bytes / 4096 {
        memory.set(4096 * page, &1)?;
    }
    Ok(())
}

impl Interface {
    /// The restarts alone are timed, each after so much was dirtied.
    fn restart_dirty(&self, count: u64, bytes: u64) -> Result<Duration> {
        let domain = self.load()?;
        let mut time = Duration::ZERO;
        for _ in 0..count {
            dirty(&domain, bytes)?;
            let start = Instant::now();
            domain.restart()?;
            time += start.elapsed();
        }
        Ok(time)
    }

    /// What a pool's caller waits, who dirties so much in each domain before he gives it back.
    fn pooled(&self, count: u64, bytes: u64) -> Result<Duration> {
        let limits = PoolLimits {
            most: 4,
            ready: 4,
            ..PoolLimits::default()
        };
        let (image, imports) = (self.image.clone(), self.imports.clone());
        let pool = Pool::new(limits, move || {
            image.domain().imports(imports.clone()).load()
        })?;
        let mut time = Duration::ZERO;
        for _ in 0..count {
            let start = Instant::now();
            let domain = pool.get()?;
            time += start.elapsed();
            dirty(&domain, bytes)?;
        }
        Ok(time)
    }
}

impl Measured for Interface {
    fn unit(&self, row: &str) -> Option<u64> {
        Some(match turn(row) {
            ("call", true) => self.domains.len() as u64,
            ("call" | "eight" | "copied-64" | "new" | "restart", false) => 1,
            (row, false) if row.starts_with("restart-dirty-") || row.starts_with("pool-dirty-") => {
                1
            }
            ("host", false) => CALLS,
            _ => return None,
        })
    }

    fn run(&mut self, row: &str, count: u64) -> Result<Duration> {
        match turn(row) {
            ("call", false) => self.calls(count),
            ("call", true) => self.calls_in_turn(count),
            ("eight", false) => self.eight(count),
            ("copied-64", false) => self.copied(count),
            ("host", false) => timed(|| {
                for _ in 0..count / CALLS {
                    self.call_host.call(CALLS)?;
                }
                Ok(())
            }),
            ("new", false) => timed(|| {
                for _ in 0..count {
                    drop(self.load()?);
                }
                Ok(())
            }),
            ("restart", false) => self.restart(count),
            (row, false) if bytes_of(row, "restart-dirty-").is_some() => {
                self.restart_dirty(count, bytes_of(row, "restart-dirty-").unwrap_or(0))
            }
            (row, false) if bytes_of(row, "pool-dirty-").is_some() => {
                self.pooled(count, bytes_of(row, "pool-dirty-").unwrap_or(0))
            }
            (other, _) => bail!("there is no row `{other}` here"),
        }
    }
}
