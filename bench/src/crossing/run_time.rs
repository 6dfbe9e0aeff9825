//! The rows of the run time: `mullion-runtime` under `mullion-loader`, nothing above.

use super::answer::{Measured, timed};
use super::domains::{CHAIN, Domains, Member, load};
use anyhow::{Context, Result, bail};
use mullion_loader::Instance;
use mullion_runtime::{Access, CallArguments, Limits, PAGE};
use std::hint::black_box;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Calls that a domain makes for each call of it.
const CALLS: u64 = 1000;

/// Domains that are made before any is dropped, so that none gets another one's window.
const BATCH: u64 = 32;

/// The rows over one population.
pub(crate) struct RunTime {
    domains: Domains,
    /// What copied buffers are copied from and to.
    bytes: [u8; 4096],
}

impl RunTime {
    pub(crate) fn new(domains: Domains) -> Self {
        Self {
            domains,
            bytes: [1; 4096],
        }
    }

    /// Whose turn it is: the first one's always, or everybody's.
    fn who(&self, in_turn: bool) -> usize {
        if in_turn { self.domains.all.len() } else { 1 }
    }

    fn calls(&self, in_turn: bool, count: u64) -> Result<Duration> {
        let members = &self.domains.all[..self.who(in_turn)];
        timed(|| calls(members, count))
    }

    fn two(&self, one: &Member, two: &Member, count: u64) -> Result<Duration> {
        timed(|| {
            for _ in 0..count / 2 {
                black_box(one.call(one.entries.nothing, &[])?);
                black_box(two.call(two.entries.nothing, &[])?);
            }
            Ok(())
        })
    }

    fn eight(&self, count: u64) -> Result<Duration> {
        let one = &self.domains.all[0];
        timed(|| {
            for _ in 0..count {
                let sum = one.call(one.entries.eight, black_box(&[1, 2, 3, 4, 5, 6, 7, 8]))?;
                if sum != 36 {
                    bail!("eight arguments add up to {sum}");
                }
            }
            Ok(())
        })
    }

    fn copied(&mut self, length: usize, in_turn: bool, count: u64) -> Result<Duration> {
        let who = self.who(in_turn);
        let bytes = &mut self.bytes[..length];
        let members = &self.domains.all[..who];
        timed(|| {
            turns(members, count, |member| {
                let memory = member.instance.domain().memory();
                memory.write(member.buffer, bytes)?;
                member.call(member.entries.work, &[member.buffer.0, length as u64])?;
                memory.piece(member.buffer, length as u64)?.read(bytes)?;
                Ok(())
            })
        })
    }

    fn shared(&self, length: u64, in_turn: bool, count: u64) -> Result<Duration> {
        let sharing = &self.domains.sharing;
        let members = if in_turn { sharing } else { &sharing[..1] };
        let (page, offset) = (self.domains.page.bytes(), self.domains.page.offset());
        timed(|| {
            turns(members, count, |member| {
                let place = member.instance.domain().memory().base() + offset;
                page[0].store(1, Ordering::Relaxed);
                member.call(member.entries.work, &[place, length])?;
                match page[0].load(Ordering::Relaxed) {
                    2 => Ok(()),
                    other => bail!("the domain made {other} of 1"),
                }
            })
        })
    }

    /// Calls that one domain makes: of the host, or of the domain that it is linked to.
    fn outward(&self, one: &Member, host: bool, count: u64) -> Result<Duration> {
        let entry = match host {
            true => one.entries.call_host,
            false => one.entries.call_next,
        };
        timed(|| {
            for _ in 0..count / CALLS {
                one.call(entry, &[CALLS])?;
            }
            Ok(())
        })
    }

    fn chain(&self, count: u64) -> Result<Duration> {
        let first = self.domains.all.chunks(CHAIN).map(|chain| &chain[0]);
        let mut first = first.cycle();
        timed(|| {
            for _ in 0..count / CHAIN as u64 {
                let member = first.next().context("no domains")?;
                let passed = member.call(member.entries.chain, &[CHAIN as u64 - 1])?;
                if passed != CHAIN as u64 - 1 {
                    bail!("a chain of {passed} calls");
                }
            }
            Ok(())
        })
    }

    fn instance(&self) -> Result<Instance> {
        let domains = &self.domains;
        Ok(domains
            .loaded
            .instantiate(&domains.imports, Limits::default())?)
    }

    fn new_parked(&self, count: u64) -> Result<Duration> {
        timed(|| {
            for _ in 0..count {
                drop(self.instance()?);
            }
            Ok(())
        })
    }

    /// Of an image that no window waits for, or, `prepared`, one for each; `called`: each is
    /// called once.
    fn new_fresh(&self, prepared: bool, called: bool, count: u64) -> Result<Duration> {
        let domains = &self.domains;
        let mut time = Duration::ZERO;
        for _ in 0..count / BATCH {
            let loaded = load(domains.image.clone())?;
            if prepared {
                loaded.prepare(BATCH as usize)?;
            }
            let offset = loaded.image().export("nothing").context("no `nothing`")?;
            let mut batch = Vec::with_capacity(BATCH as usize);
            time += timed(|| {
                for _ in 0..BATCH {
                    let made = loaded.instantiate(&domains.imports, Limits::default())?;
                    if called {
                        let base = made.domain().memory().base();
                        let entry = made
                            .domain()
                            .entry(mullion_runtime::Claimed(base + offset))?;
                        made.domain().call(entry, &CallArguments::default())?;
                    }
                    batch.push(made);
                }
                Ok(())
            })?;
        }
        Ok(time)
    }

    /// Each domain is called, then restarted: the restarts are timed one by one.
    fn restart(&mut self, in_turn: bool, count: u64) -> Result<Duration> {
        let who = self.who(in_turn);
        each(&mut self.domains.all[..who], count, |member| {
            member.call(member.entries.nothing, &[])?;
            member.restart()
        })
    }

    fn fault(&mut self, in_turn: bool, count: u64) -> Result<Duration> {
        let who = self.who(in_turn);
        let arguments = CallArguments::default();
        each(&mut self.domains.all[..who], count, |member| {
            // Not by `Member::call`, whose error takes a backtrace of this program if the
            // environment asks for it.
            let domain = member.instance.domain();
            let start = Instant::now();
            let faulted = black_box(domain.call(member.entries.fail, &arguments));
            let time = start.elapsed();
            if faulted.is_ok() {
                bail!("a read of address 8 was no fault");
            }
            member.restart()?;
            Ok(time)
        })
    }

    /// The time to share, or that to take away again.
    fn share(&mut self, taking: bool, in_turn: bool, count: u64) -> Result<Duration> {
        let who = self.who(in_turn);
        let page = self.domains.spare.clone();
        each(&mut self.domains.all[..who], count, |member| {
            let domain = member.instance.domain();
            let start = Instant::now();
            page.grant(domain, 0..PAGE, Access::ReadWrite)?;
            let shared = start.elapsed();
            page.grant(domain, 0..PAGE, Access::None)?;
            let both = start.elapsed();
            Ok(if taking { both - shared } else { shared })
        })
    }

    fn load(&self, count: u64) -> Result<Duration> {
        let mut time = Duration::ZERO;
        for _ in 0..count {
            let start = Instant::now();
            let loaded = load(self.domains.large.clone())?;
            let made = loaded.instantiate(&self.domains.imports, Limits::default())?;
            time += start.elapsed();
            drop(made);
        }
        Ok(time)
    }
}

impl Measured for RunTime {
    fn unit(&self, row: &str) -> Option<u64> {
        let (row, in_turn) = turn(row);
        Some(match row {
            "call" | "copied-64" | "copied-4096" | "restart" | "fault" | "share" | "unshare" => {
                self.who(in_turn) as u64
            }
            "shared-64" | "shared-4096" if in_turn => self.domains.sharing.len() as u64,
            "shared-64" | "shared-4096" => 1,
            "domain" if in_turn => self.who(in_turn) as u64,
            "limited" | "floating" | "eight" | "new-parked" | "load" => 1,
            "two" | "two-register" => 2,
            "host" | "domain" | "domain-register" | "domain-mixed" => CALLS,
            "new-prepared" | "new-fresh" | "first-call" => BATCH,
            _ => return None,
        })
    }

    fn run(&mut self, row: &str, count: u64) -> Result<Duration> {
        let (row, in_turn) = turn(row);
        match row {
            "call" => self.calls(in_turn, count),
            "two" => self.two(&self.domains.all[0], &self.domains.second, count),
            "two-register" => {
                let [one, two] = &self.domains.register;
                self.two(one, two, count)
            }
            "limited" => timed(|| calls(std::slice::from_ref(&self.domains.limited), count)),
            "floating" => timed(|| calls(std::slice::from_ref(&self.domains.floating), count)),
            "eight" => self.eight(count),
            "copied-64" => self.copied(64, in_turn, count),
            "copied-4096" => self.copied(4096, in_turn, count),
            "shared-64" => self.shared(64, in_turn, count),
            "shared-4096" => self.shared(4096, in_turn, count),
            "host" => self.outward(&self.domains.all[0], true, count),
            "domain" if in_turn => self.chain(count),
            "domain" => self.outward(&self.domains.all[0], false, count),
            "domain-register" => self.outward(&self.domains.register[0], false, count),
            "domain-mixed" => self.outward(&self.domains.mixed, false, count),
            "new-parked" => self.new_parked(count),
            "new-prepared" => self.new_fresh(true, false, count),
            "new-fresh" => self.new_fresh(false, false, count),
            "first-call" => self.new_fresh(false, true, count),
            "restart" => self.restart(in_turn, count),
            "fault" => self.fault(in_turn, count),
            "share" => self.share(false, in_turn, count),
            "unshare" => self.share(true, in_turn, count),
            "load" => self.load(count),
            other => bail!("there is no row `{other}` here"),
        }
    }
}

/// The row's name, and whether everybody takes a turn.
pub(crate) fn turn(row: &str) -> (&str, bool) {
    row.strip_suffix(" in turn")
        .map_or((row, false), |row| (row, true))
}

fn calls(members: &[Member], count: u64) -> Result<()> {
    // Not by `cycle`: of one domain it would be measured with the call.
    if let [one] = members {
        let (domain, arguments) = (one.instance.domain(), CallArguments::default());
        for _ in 0..count {
            black_box(domain.call(one.entries.nothing, &arguments)?);
        }
        return Ok(());
    }
    let arguments = CallArguments::default();
    turns(members, count, |member| {
        let domain = member.instance.domain();
        black_box(domain.call(member.entries.nothing, &arguments)?);
        Ok(())
    })
}

fn turns(
    members: &[Member],
    count: u64,
    mut operation: impl FnMut(&Member) -> Result<()>,
) -> Result<()> {
    for _ in 0..count / members.len() as u64 {
        members.iter().try_for_each(&mut operation)?;
    }
    Ok(())
}

/// The sum of the times that the operations say they took.
fn each(
    members: &mut [Member],
    count: u64,
    mut operation: impl FnMut(&mut Member) -> Result<Duration>,
) -> Result<Duration> {
    let mut time = Duration::ZERO;
    for _ in 0..count / members.len() as u64 {
        for member in &mut *members {
            time += operation(member)?;
        }
    }
    Ok(time)
}
