//! Rights that come and go: for the length of a call, or until they are taken away.

use crate::core::Core;
use crate::memory::lock;
use mullion_supervisor::{DomainId, Error, Level, Permission, PreparedGrant, Range, Supervisor};
use mullion_word_table::{self as table, Table};
use std::collections::HashMap;
use thiserror::Error;

pub(crate) const ROOT: DomainId = DomainId::SUPERVISOR;

/// Exports with the level that cannot be passed on.
pub(crate) const NOT_FURTHER: Level = Level::None;

/// Why memory was not granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum GrantError {
    /// The supervisor refuses.
    #[error("{0}")]
    Refused(#[from] Error),
    /// It is no memory that can be granted.
    #[error("{bytes} bytes at {address:#x} are no memory that can be granted")]
    NoMemory {
        /// Where.
        address: u64,
        /// How much.
        bytes: u64,
    },
}

/// What was changed for a domain, to be put back.
#[must_use = "put it back"]
pub(crate) enum Raised {
    /// Nothing: it was there.
    Already,
    /// A grant that comes and goes.
    Prepared(&'static Core, Key),
    /// Piece by piece.
    Pieces(Pieces),
}

/// What pieces of memory had before.
#[derive(Debug)]
pub(crate) struct Pieces {
    id: DomainId,
    /// What was given instead.
    given: Permission,
    /// Owner, words, and the permission that was there.
    pieces: Vec<(DomainId, Range, Permission)>,
}

/// The words that bytes lie in.
pub(crate) fn words(address: u64, bytes: u64) -> Result<Range, GrantError> {
    let wrong = GrantError::NoMemory { address, bytes };
    let last = address.checked_add(bytes.max(1) - 1).ok_or(wrong)?;
    Range::words(address / 4, last / 4 - address / 4 + 1).map_err(|_| wrong)
}

/// Gives `id` at least `permission` on these bytes. Acts for who owns them, because the host decides.
pub(crate) fn raise(
    supervisor: &mut Supervisor<Table>,
    id: DomainId,
    range: Range,
    permission: Permission,
) -> Result<Raised, GrantError> {
    let mut raised = Pieces {
        id,
        given: permission,
        pieces: Vec::new(),
    };
    let found: Vec<_> = supervisor
        .regions(range)
        .map(|(piece, holding)| (piece, holding.owner, holding.direct(id.into()).access))
        .collect();
    for (piece, owner, held) in found {
        if held == permission || held == Permission::ReadWrite {
            continue;
        }
        let Some(piece) = piece.overlap(range) else {
            continue;
        };
        if let Err(error) = supervisor.mprot_export(&owner, id, piece, permission) {
            lower(supervisor, Raised::Pieces(raised));
            return Err(error.into());
        }
        raised.pieces.push((owner, piece, held));
    }
    Ok(Raised::Pieces(raised))
}

/// Puts back what [`raise`] found.
pub(crate) fn lower(supervisor: &mut Supervisor<Table>, raised: Raised) {
    // The domain or the owner may have ended meanwhile: then it has nothing there.
    match raised {
        Raised::Already => {}
        Raised::Prepared(core, key) => Prepared::lower(supervisor, core, key),
        Raised::Pieces(raised) => {
            for (owner, piece, held) in raised.pieces.iter().rev() {
                // What was taken away meanwhile stays away.
                let same: Vec<_> = supervisor
                    .regions(*piece)
                    .filter(|(_, now)| {
                        now.owner == *owner && now.direct(raised.id.into()).access == raised.given
                    })
                    .filter_map(|(part, _)| part.overlap(*piece))
                    .collect();
                for part in same {
                    let _gone = supervisor.mprot_export(owner, raised.id, part, *held);
                }
            }
        }
    }
}

/// Grants for the length of calls, by first and last word and whether to write: the same memory comes again and again.
#[derive(Default)]
pub(crate) struct Prepared(HashMap<Key, Standing>);

type Key = (u64, u64, bool);

struct Standing {
    grant: PreparedGrant,
    /// Calls that have it now.
    calls: u64,
}

impl Prepared {
    /// So many are remembered.
    const MOST: usize = 256;
    /// Larger pieces are not looked through word by word.
    const WORDS: u64 = 256;

    /// As [`raise`], for the length of a call. Calls that have the same piece at the same time have it until the last ends.
    pub(crate) fn raise(
        supervisor: &mut Supervisor<Table>,
        core: &'static Core,
        range: Range,
        permission: Permission,
    ) -> Result<Raised, GrantError> {
        let plain = |supervisor: &mut _| raise(supervisor, core.id, range, permission);
        if range.count() > Self::WORDS {
            return plain(supervisor);
        }
        let key = (
            range.start(),
            range.end(),
            permission == Permission::ReadWrite,
        );
        let mut prepared = lock(&core.prepared);
        if let Some(standing) = prepared
            .0
            .get_mut(&key)
            .filter(|standing| standing.calls > 0)
        {
            standing.calls += 1;
            return Ok(Raised::Prepared(core, key));
        }
        let wanted = table::Access::of(permission, core.id);
        let (mut has_all, mut has_some) = (true, false);
        for word in range.start()..range.end() {
            let access = core.view.access(4 * word);
            has_all &= access.covers(wanted);
            has_some |= access != table::Access::NONE;
        }
        match (has_all, has_some) {
            (true, _) => return Ok(Raised::Already),
            (false, true) => return plain(supervisor),
            (false, false) => {}
        }
        if !prepared.0.contains_key(&key) {
            let grant = supervisor.prepare(&ROOT, core.id, range, permission, NOT_FURTHER);
            // Another domain's memory.
            let Ok(grant) = grant else {
                return plain(supervisor);
            };
            if prepared.0.len() >= Self::MOST {
                prepared.0.retain(|_, old| {
                    let stays = old.calls > 0;
                    if !stays {
                        let _gone = supervisor.release(old.grant);
                    }
                    stays
                });
            }
            prepared.0.insert(key, Standing { grant, calls: 0 });
        }
        let standing = prepared.0.get_mut(&key).expect("it was just put there");
        supervisor.grant_prepared(&ROOT, standing.grant)?;
        standing.calls = 1;
        Ok(Raised::Prepared(core, key))
    }

    fn lower(supervisor: &mut Supervisor<Table>, core: &Core, key: Key) {
        if let Some(standing) = lock(&core.prepared).0.get_mut(&key) {
            standing.calls -= 1;
            if standing.calls == 0 {
                let _gone = supervisor.revoke_prepared(&ROOT, standing.grant);
            }
        }
    }
}

/// To read, or to read and write.
pub(crate) fn right(write: bool) -> Permission {
    match write {
        true => Permission::ReadWrite,
        false => Permission::Read,
    }
}
