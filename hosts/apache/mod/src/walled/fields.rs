//! Fields of requests, connections and filters that a module may write. One is granted when the module first writes it in a
//! request (`demand`), because a module has a right to many and writes few. One that was written of late is granted when the
//! module is first called for a request.

use super::{Answer, Walled};
use crate::configs;
use crate::deeds;
use crate::filters;
use crate::frame::{Frame, Root};
use crate::layout::{self, read};
use crate::object::Kind;
use std::sync::atomic::{AtomicU32, Ordering};

/// A field that was written is granted for so many requests without being asked for.
const WARM: u32 = 1024;

/// Part of a structure that the module may write.
pub(crate) struct Piece {
    pub(crate) at: u64,
    pub(crate) bytes: u64,
    /// For how many more requests it is granted without being asked for.
    warm: AtomicU32,
}

impl Piece {
    pub(crate) fn new((at, bytes): (u64, u64)) -> Piece {
        Piece {
            at,
            bytes,
            warm: AtomicU32::new(0),
        }
    }

    /// Whether it is granted now; counts down, roughly if several threads do.
    pub(crate) fn is_warm(&self) -> bool {
        let warm = self.warm.load(Ordering::Relaxed);
        if warm != 0 {
            self.warm.store(warm - 1, Ordering::Relaxed);
        }
        warm != 0
    }
}
impl Walled {
    /// Parts that the module may write of a structure at an address, each with where it is; and the pool that it goes with.
    ///
    /// # Safety
    /// The structure is the core's, of this kind.
    pub(crate) unsafe fn pieces(&self, root: Root) -> (u64, impl Iterator<Item = (u64, &Piece)>) {
        // SAFETY: by the caller; modules write nothing that is followed here.
        let (at, pool, fields, place) = unsafe {
            match root {
                Root::Request(r) => {
                    let place = self.places.0.then(|| {
                        let all = read(r + layout::R_REQUEST_CONFIG);
                        (all + 8 * self.index(), &self.request_place)
                    });
                    (r, read(r + layout::R_POOL), &self.request[..], place)
                }
                Root::Connection(c) => {
                    let place = self.places.1.then(|| {
                        let all = read(c + layout::C_CONN_CONFIG);
                        (all + 8 * self.index(), &self.connection_place)
                    });
                    (c, read(c + layout::C_POOL), &self.connection[..], place)
                }
                Root::Filter(f) => {
                    let pool = match read(f + layout::F_R) {
                        0 => read(read(f + layout::F_C) + layout::C_POOL),
                        r => read(r + layout::R_POOL),
                    };
                    (f, pool, &[][..], Some((f, &self.filter_place)))
                }
                _ => (0, 0, &[][..], None),
            }
        };
        let fields = fields.iter().map(move |piece| (at, piece));
        (pool, fields.chain(place))
    }

    /// Whether the policy lets the module write a field of requests.
    pub(crate) fn may_set(&self, at: u64, bytes: u64) -> bool {
        let mut pieces = self.request.iter();
        pieces.any(|piece| piece.at <= at && at + bytes <= piece.at + piece.bytes)
    }

    /// Lets the module write what it has of late written of a connection or a filter, once for each. Requests are `warm.rs`.
    #[inline]
    pub(crate) fn touch(&'static self, frame: &Frame, root: Root) -> Answer<()> {
        match root {
            Root::Connection(_) | Root::Filter(_) if self.deeds.has(deeds::WROTE) => {
                self.touch_warm(frame, root)
            }
            _ => Ok(()),
        }
    }

    fn touch_warm(&'static self, frame: &Frame, root: Root) -> Answer<()> {
        let is_warm = |piece: &Piece| piece.warm.load(Ordering::Relaxed) != 0;
        // SAFETY: the core has passed it.
        let (pool, mut pieces) = unsafe { self.pieces(root) };
        if !pieces.any(|(_, piece)| is_warm(piece)) {
            return Ok(());
        }
        // SAFETY: the core has passed it, and it is there until the call returns.
        let (_, pieces) = unsafe { self.pieces(root) };
        let (Root::Request(at) | Root::Connection(at) | Root::Filter(at)) = root else {
            return Ok(());
        };
        self.with(frame, pool, |state| {
            let ledger = state.ledgers.get_or_insert_with(pool, Box::default);
            if ledger.touched.contains(&at) {
                return Ok(());
            }
            ledger.touched.push(at);
            for (at, piece) in pieces.filter(|(_, piece)| piece.is_warm()) {
                let granted = self.grant(at + piece.at, piece.bytes)?;
                ledger.lend(self, pool, granted);
            }
            Ok(())
        })
    }

    /// The connection that the module has made and that an address is in. Other threads may work with its other ones.
    fn connection_at(&self, at: u64) -> Option<u64> {
        let is_it = |c: &u64| at.wrapping_sub(*c) < layout::CONNECTION;
        let made = self.made_at(Kind::Connection, is_it);
        made.filter(|c| self.knows(*c, Kind::Connection))
    }

    /// Grants what the policy lets the module write at an address, in what its call was given. Runs in the handler of a signal, too.
    pub(crate) fn demand(&'static self, at: u64) -> bool {
        let Some(frame) = crate::frame::now().filter(|frame| std::ptr::eq(frame.walled, self))
        else {
            return false;
        };
        let filter = (at & !7).wrapping_sub(layout::F_CTX);
        // The word of a filter that the module has added, and that is another's, is for that one's function.
        // SAFETY: filters that are known are the core's, and live.
        let is_own =
            || unsafe { self.knows(filter, Kind::Filter) && filters::is_own(self, filter) };
        let filters = frame.has_filter(filter) || is_own();
        let roots = frame.requests().chain(self.made(Kind::Request));
        let roots = roots.map(Root::Request);
        let connections = frame.connections().chain(self.connection_at(at));
        let roots = roots.chain(connections.map(Root::Connection));
        let roots = roots.chain(filters.then_some(Root::Filter(filter)));
        for root in roots {
            // SAFETY: frames have the core's structures, and so have the module's known filters.
            let (pool, mut pieces) = unsafe { self.pieces(root) };
            let inside =
                |(start, piece): &(u64, &Piece)| at.wrapping_sub(start + piece.at) < piece.bytes;
            let Some((start, piece)) = pieces.find(inside) else {
                continue;
            };
            // The module's word is the one of its number in the list.
            let list = start.wrapping_sub(8 * self.index());
            if std::ptr::eq(piece, &raw const self.request_place) && configs::is_ours(list) {
                return configs::grant(self, list).is_ok();
            }
            let done = self.with(frame, pool, |state| {
                let granted = self.grant(start + piece.at, piece.bytes)?;
                let ledger = state.ledgers.get_or_insert_with(pool, Box::default);
                ledger.lend(self, pool, granted);
                Ok(())
            });
            piece.warm.store(WARM, Ordering::Relaxed);
            match root {
                Root::Request(_) => crate::warm::add(self),
                _ => self.deeds.add(deeds::WROTE),
            }
            return done.is_ok();
        }
        self.demand_text(frame, at)
            || self.demand_backend(frame, at)
            || self.demand_score(frame, at)
            || self.demand_words(frame, at)
            || self.demand_shared(at)
    }
}
