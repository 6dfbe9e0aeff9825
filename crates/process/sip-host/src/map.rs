//! Who may touch which memory, as `mullion map` paints it: processes are domains. Pages of their heaps, stacks and
//! blocks of the exchange heap are regions, and so is what OS processes share.
//!
//! ```text
//!   upper 16 bits of an address in the records    whose address space
//!   0                                           the host's: addresses are what they are
//!   1 to 0xfffe                                 an OS process of `kind = "process"`, by its kernel's word
//!   0xffff                                      what several OS processes have mapped, once
//! ```
//! No program has addresses that use those bits, so address spaces lie beside each other in one space, and one
//! supervisor judges them all. What a domain says goes into its own part, which it owns, and nowhere else. What is
//! shared is shown where the host knows it. That is memory that is common to all who share. It is also that of channels
//! between two who both name it and have a link by the host's own list.

use std::collections::{BTreeMap, HashMap};

use mullion_hip::{DomainView, LineSeen, MemorySeen, Sharing, groups};
use mullion_picture::{DrawnDomain, Records, SupervisorState};
use mullion_recorder::Recorder;
use mullion_sip::owner::Owner;
use mullion_sip::process::{Kind, RecordsWriter};
use mullion_sip_hosting::Host;
use mullion_sip_hosting::common_memory;
use mullion_sip_hosting::remote::line_memory;
use mullion_supervisor::{
    DomainId, Error, Family, JoinPolicy, Level, Mechanism, Order, Permission, Range, Supervisor,
};

use crate::view::{RUNNING, Standing};

/// Bits of an address within an address space.
const SPACE: u32 = 48;
/// The place of what is shared.
const SHARED: u64 = 0xffff;
/// What lies there begins at multiples of this.
const APART: u64 = 1 << 21;
/// The host's own place, and its number among who shares.
const HOST: u64 = 0;

/// The state of this moment, of this host's processes alone.
///
/// # Errors
/// A process was made or ended while it was looked at, so that its memory seemed to be two processes'.
pub(crate) fn state(host: &Host, standings: &[Standing]) -> Result<SupervisorState, Error> {
    let supervisor = Supervisor::with(Range::everything(), Recorder::new(), Family, Order::Strict);
    let mut records = Records::new(supervisor);
    records.name(DomainId::SUPERVISOR, "host");
    add(host, &mut records, standings)?;
    let state = records.state().title("Software isolated processes");
    Ok(with_ended(state, standings))
}

/// Adds the processes that have no life now, which have no memory either, and are marked as ended.
fn with_ended(mut state: SupervisorState, standings: &[Standing]) -> SupervisorState {
    let ids = state.domains.iter().map(|domain| domain.id);
    let free = ids.max().map_or(0, |highest| highest + 1);
    let ended = standings
        .iter()
        .filter(|standing| standing.state != RUNNING);
    let ended = (free..).zip(ended).map(|(id, standing)| DrawnDomain {
        id,
        parent: Some(DomainId::SUPERVISOR.get()),
        name: standing.name.to_owned(),
        ended: true,
    });
    state.domains.extend(ended);
    state
}

/// Enters every process of this host in its records: those of this address space, and those of OS processes of their own.
/// These are asked, and have 400 ms to answer.
///
/// # Errors
/// As for [`Watch::map`](crate::supervisor::Watch::map), or the records have this memory as somebody else's.
pub fn add_to<M: Mechanism, P: JoinPolicy>(
    host: &Host,
    records: &mut Records<M, P>,
) -> Result<(), Error> {
    add(host, records, &[])
}

fn add<M: Mechanism, P: JoinPolicy>(
    host: &Host,
    records: &mut Records<M, P>,
    standings: &[Standing],
) -> Result<(), Error> {
    let group = groups();
    let answers = ask(&group.domains);
    here(host, records, &group.stands)?;
    let mut shared = Shared::new(group.links);
    shared.add(
        HOST,
        DomainId::SUPERVISOR,
        line_memory()
            .iter()
            .map(|line| (line.number, line.bytes as u64)),
    );
    for (place, (glass, memory)) in (1..SHARED).zip(group.domains.iter().zip(answers)) {
        // Of a domain that has ended meanwhile nothing is left.
        if memory.is_none() && glass.is_over() {
            continue;
        }
        let kernel = there(records, place, glass, memory.as_ref(), standings)?;
        let lines = memory.iter().flat_map(|memory| &memory.lines);
        shared.add(
            glass.id(),
            kernel,
            lines.map(|line: &LineSeen| (line.number, line.bytes)),
        );
        match glass.shares() {
            Some(Sharing::Open) => shared.members.push(kernel),
            Some(Sharing::Remapped) => shared.remapped = true,
            None => {}
        }
    }
    shared.enter(records)
}

/// All at once: each may keep us waiting.
fn ask(domains: &[DomainView]) -> Vec<Option<MemorySeen>> {
    std::thread::scope(|scope| {
        let asked: Vec<_> = domains
            .iter()
            .map(|glass| scope.spawn(|| glass.memory()))
            .collect();
        asked
            .into_iter()
            .map(|one| one.join().unwrap_or_default())
            .collect()
    })
}

/// The processes of this OS process; some stand for domains elsewhere. What is the kernel's is the root's.
fn here<M: Mechanism, P: JoinPolicy>(
    host: &Host,
    records: &mut Records<M, P>,
    stands: &[(Owner, String)],
) -> Result<(), Error> {
    let memory = host.memory();
    let domains = memory.enter(host, &mut records.supervisor, DomainId::SUPERVISOR)?;
    for (domain, process) in &domains {
        if process.exit.is_some() {
            records.ended(*domain);
        }
        match stands.iter().find(|(owner, _)| *owner == process.owner) {
            Some((_, name)) => records.name(*domain, &format!("for {name}")),
            None => records.name(*domain, process.name),
        }
    }
    for holding in &memory.holdings {
        let range = Range::bytes(holding.start as u64, holding.bytes as u64)?;
        records.label(range, what(holding.kind));
    }
    Ok(())
}

/// A domain that is an OS process of its own: the domain of its kernel, which has an address space to itself.
fn there<M: Mechanism, P: JoinPolicy>(
    records: &mut Records<M, P>,
    place: u64,
    glass: &DomainView,
    memory: Option<&MemorySeen>,
    standings: &[Standing],
) -> Result<DomainId, Error> {
    let base = place << SPACE;
    let all = Range::bytes(base, 1 << SPACE)?;
    let root = DomainId::SUPERVISOR;
    let kernel = records
        .supervisor
        .pd_subdivide(&root, all, Permission::None)?;
    records.name(kernel, glass.name());
    if glass.is_over() {
        records.ended(kernel);
    }
    let process = glass.process().unwrap_or_default();
    let said = match memory {
        None => " does not answer".to_owned(),
        Some(memory) if memory.left_out > 0 => format!(", and {} pieces more", memory.left_out),
        Some(_) => String::new(),
    };
    records.label(all, &format!("{} ({process}){said}", glass.name()));
    let Some(memory) = memory else {
        return Ok(kernel);
    };
    let mut entering = RecordsWriter::new(&mut records.supervisor, kernel);
    for piece in &memory.pieces {
        entering.enter(piece.holder, Range::bytes(base + piece.start, piece.bytes)?)?;
    }
    let known = |holder| entering.domain(&holder);
    let domains: Vec<_> = (0..memory.holders.len()).map(known).collect();
    for (domain, (life, name)) in domains.iter().zip(&memory.holders) {
        // The host's own word for it, if it has one.
        let mut own = standings.iter().filter(|standing| {
            let place = standing.place.as_ref();
            place.is_some_and(|place| place.glass.is(glass) && place.life == *life)
        });
        if let Some(domain) = domain {
            if glass.is_over() {
                records.ended(*domain);
            }
            records.name(*domain, own.next().map_or(name, |standing| standing.name));
        }
    }
    for piece in &memory.pieces {
        records.label(
            Range::bytes(base + piece.start, piece.bytes)?,
            what(piece.kind),
        );
    }
    Ok(kernel)
}

fn what(kind: Kind) -> &'static str {
    match kind {
        Kind::Heap => "heap",
        Kind::Stack => "stack",
        Kind::Exchange => "exchange heap",
        Kind::Queues => "queues",
        Kind::Waiting => "waiting",
    }
}

/// What several OS processes have mapped.
struct Shared {
    links: Vec<(u64, u64)>,
    names: HashMap<u64, DomainId>,
    /// By their numbers: who names them, and how many bytes it says that they have.
    lines: BTreeMap<u64, Vec<(u64, u64)>>,
    /// Who has the memory that is common to all who share, and can touch all of it.
    members: Vec<DomainId>,
    /// Whether there is memory of which everybody can touch what it has, which is among its own pieces, and no more.
    remapped: bool,
}

impl Shared {
    fn new(links: Vec<(u64, u64)>) -> Shared {
        Shared {
            links,
            names: HashMap::new(),
            lines: BTreeMap::new(),
            members: Vec::new(),
            remapped: false,
        }
    }

    /// What a kernel names.
    fn add(&mut self, number: u64, kernel: DomainId, lines: impl Iterator<Item = (u64, u64)>) {
        self.names.insert(number, kernel);
        for (line, bytes) in lines {
            self.lines.entry(line).or_default().push((number, bytes));
        }
    }

    /// The host owns what is shared, since it has made it.
    fn enter<M: Mechanism, P: JoinPolicy>(self, records: &mut Records<M, P>) -> Result<(), Error> {
        let mut at = SHARED << SPACE;
        let mut place = |bytes: u64| {
            let range = Range::bytes(at, bytes.next_multiple_of(4));
            at += bytes.next_multiple_of(APART) + APART;
            range
        };
        if !self.members.is_empty() {
            let range = place(common_memory::BYTES as u64)?;
            give(records, range, DomainId::SUPERVISOR)?;
            for member in &self.members {
                give(records, range, *member)?;
            }
            records.label(range, "common memory");
        }
        if self.remapped {
            records.label(place(common_memory::BYTES as u64)?, "remapped memory");
        }
        for (number, named) in &self.lines {
            // Whoever names the line of others has no link with them, or is one too many. Of a channel that has come home
            // both ends are one's own.
            let [(one, bytes), (other, same)] = named[..] else {
                continue;
            };
            let link = (one.min(other), one.max(other));
            if !self.links.contains(&link) || bytes != same || bytes > LARGEST {
                continue;
            }
            let range = place(bytes)?;
            for end in [one, other] {
                give(records, range, self.names[&end])?;
            }
            records.label(range, &format!("channel {number}"));
        }
        Ok(())
    }
}

/// A channel's memory is smaller.
const LARGEST: u64 = 1 << 30;

fn give<M: Mechanism, P: JoinPolicy>(
    records: &mut Records<M, P>,
    range: Range,
    to: DomainId,
) -> Result<(), Error> {
    let (root, all) = (DomainId::SUPERVISOR, Permission::ReadWrite);
    match to == root {
        true => records.supervisor.mprot(&root, range, all),
        false => records
            .supervisor
            .mprot_export_up_to(&root, to, range, all, Level::None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_is_shown_between_two_that_have_a_link_and_agree_and_nobody_else() {
        let supervisor =
            Supervisor::with(Range::everything(), Recorder::new(), Family, Order::Strict);
        let mut records = Records::new(supervisor);
        let root = DomainId::SUPERVISOR;
        let mut kernel = |place: u64| {
            let space = Range::bytes(place << SPACE, 1 << SPACE).expect("a range");
            let made = records
                .supervisor
                .pd_subdivide(&root, space, Permission::None);
            made.expect("it is free")
        };
        let [one, two, liar] = [1, 2, 3].map(&mut kernel);
        let mut shared = Shared::new(vec![(HOST, 1), (1, 2), (1, 3), (2, 2)]);
        let lines = |numbers: &'static [(u64, u64)]| numbers.iter().copied();
        // 5 is between the first two; 6 is named by three; 7 and 8 by two, who differ, or have no link. 10 has both ends in
        // one, as 11 would have, whose has no link with itself.
        shared.add(1, one, lines(&[(5, 64), (6, 64), (7, 64)]));
        shared.add(
            2,
            two,
            lines(&[(5, 64), (6, 64), (8, 64), (10, 64), (10, 64)]),
        );
        let lies = [(6, 64), (7, 1 << 40), (8, 64), (9, 64), (11, 64), (11, 64)];
        shared.add(3, liar, lies.into_iter());
        shared.enter(&mut records).expect("each has a place");
        assert_eq!(records.supervisor.check(), Ok(()));
        let state = records.state();
        let names: Vec<_> = state.labels.iter().map(|label| &*label.name).collect();
        assert_eq!(names, ["channel 5", "channel 10"]);
        let (all, none) = (Permission::ReadWrite, Permission::None);
        for (label, wanted) in state
            .labels
            .iter()
            .zip([[all, all, none], [none, all, none]])
        {
            let word = (label.start.0 / 4) as u64;
            let may = [one, two, liar].map(|domain| records.supervisor.permission(domain, word));
            assert_eq!(may, wanted, "{}", label.name);
        }
    }
}
