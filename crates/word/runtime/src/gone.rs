//! Rights that must go. The supervisor may refuse a change that takes something away: numbers have run out, or too many words
//! change at once. Nobody may go on as if the right were gone.

use mullion_supervisor::{DomainId, Permission, Range, Subject, Supervisor};
use mullion_word_table::Table;
use std::io::{self, Write};

/// Takes what a holder has on these words of one owner down to `wanted`, which is less. If the table cannot say that any more,
/// the holder has nothing there, and its next access is refused. If not even that is possible, the process ends.
pub(crate) fn lower_to(
    supervisor: &mut Supervisor<Table>,
    (holder, subject): (DomainId, Subject),
    (owner, words): (DomainId, Range),
    wanted: Permission,
) {
    if supervisor
        .mprot_export(&owner, subject, words, wanted)
        .is_ok()
    {
        return;
    }
    // The numbers of domains that have ended come back.
    Table::collect(supervisor);
    for less in [wanted, Permission::None] {
        if supervisor
            .mprot_export(&owner, subject, words, less)
            .is_ok()
        {
            return;
        }
    }
    // Piece by piece, each takes fewer numbers.
    let pieces: Vec<(Range, DomainId)> = supervisor
        .regions(words)
        .filter_map(|(region, holding)| Some((region.overlap(words)?, holding.owner)))
        .collect();
    for (piece, owner) in pieces {
        let _checked = supervisor.mprot_export(&owner, subject, piece, Permission::None);
    }
    must_be_gone(supervisor, (holder, subject), words, wanted);
}

/// Ends the process if a holder has more than `most` on words of others. The holder or an owner may have ended: then it has
/// nothing there, and the supervisor has refused for that.
fn must_be_gone(
    supervisor: &Supervisor<Table>,
    (holder, subject): (DomainId, Subject),
    words: Range,
    most: Permission,
) {
    let is_there = |held: Permission| held <= Permission::ReadWrite && held > most;
    let stays = supervisor
        .regions(words)
        .find(|(_, holding)| holding.owner != holder && is_there(holding.direct(subject).access));
    if let Some((region, _)) = stays {
        let said = writeln!(
            io::stderr(),
            "mullion: a module's right at {:#x} cannot be taken away, so the process ends",
            4 * region.start()
        );
        // There is nobody else to tell.
        drop(said);
        std::process::abort();
    }
}

#[cfg(test)]
mod tests {
    use crate::holder::Holder;
    use crate::rights::{self, Decider, GrantError, ROOT};
    use mullion_supervisor::{Error, Permission, Range, Supervisor};
    use mullion_word_abi::ADDRESS_BITS;
    use mullion_word_table::{Access, Inside, Limits, Table};
    use std::process::Command;

    /// In a process of its own, which has one table.
    const ALONE: &str = "MULLION_WORD_TEST_ALONE";

    #[test]
    fn a_right_goes_also_where_numbers_have_run_out() {
        if std::env::var_os(ALONE).is_some() {
            return numbers_run_out();
        }
        let this = "gone::tests::a_right_goes_also_where_numbers_have_run_out";
        let done = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", this, "--nocapture"])
            .env(ALONE, "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&done.stdout);
        let errors = String::from_utf8_lossy(&done.stderr);
        let is_run = said.contains("1 passed");
        assert!(done.status.success() && is_run, "{said}\n{errors}");
    }

    /// A table with few numbers, of which nearly all are in use.
    fn numbers_run_out() {
        let limits = Limits {
            domains: 8,
            words: 1 << 20,
            numbers: 24,
            reserve: 4,
        };
        let table = Table::reserve(limits, Inside::new().unwrap()).unwrap();
        let space = Range::bytes(0, 1 << ADDRESS_BITS).unwrap();
        let mut decider = Decider::new(Supervisor::new(space, table));
        let holders: Vec<&'static Holder> = (0..6)
            .map(|at| {
                let own = Range::bytes(0x10_0000 + 4096 * at, 4096).unwrap();
                let id = decider.pd_subdivide(&ROOT, own, Permission::None).unwrap();
                let view = decider.mechanism().view(id).unwrap();
                &*Box::leak(Box::new(Holder::new(id, id.into(), view)))
            })
            .collect();
        let (read, both) = (Permission::Read, Permission::ReadWrite);
        // By several owners' words and sizes: parts of slabs, and pieces.
        let places =
            [(0x20_0000, 64), (0x30_0ff0, 32)].map(|(at, bytes)| Range::bytes(at, bytes).unwrap());
        let mut raised = Vec::new();
        for range in places {
            rights::raise_for_good(&mut decider, holders[0], range, read).unwrap();
            raised.push(rights::raise(&mut decider, holders[0], range, both).unwrap());
        }
        let has = |range: Range, access| {
            let words = range.start()..range.end();
            words
                .clone()
                .all(|word| holders[0].view.access(4 * word).covers(access))
        };
        assert!(places.iter().all(|range| has(*range, Access::READ_WRITE)));
        // Who may read each of these words is another set of domains.
        let mut sets = 0;
        let full = (1..64u64).find_map(|set| {
            let word = Range::words(0x1000_0000 + 16 * set, 1).unwrap();
            sets += 1;
            (0..6)
                .filter(|at| set >> at & 1 == 1)
                .find_map(|at| rights::raise_for_good(&mut decider, holders[at], word, read).err())
        });
        assert!(
            matches!(full, Some(GrantError::Refused(Error::NoRoom { .. }))),
            "{full:?} after {sets}"
        );
        for right in &raised {
            rights::lower(&mut decider, right);
        }
        for range in places {
            for word in range.start()..range.end() {
                let access = holders[0].view.access(4 * word);
                assert!(!access.covers(Access::WRITE), "{access:?} at {word:#x}");
            }
        }
    }
}
