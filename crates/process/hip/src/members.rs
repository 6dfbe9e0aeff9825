//! Who shares memory with whom. There is a file for each way to share, for all domains that are to share in that way, and for
//! the host. The host is in the memory of whoever shared first: an OS process has one such memory.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use mullion_sip_hosting::common_memory::{BYTES, MEMBERS, Member, Sharing, Table, share};

use crate::files;

/// Who shares, in either way.
#[derive(Debug, Default)]
pub(crate) struct Members {
    open: Option<Group>,
    remapped: Option<Group>,
    last: u16,
}

/// Who shares one file.
#[derive(Debug)]
struct Group {
    file: Arc<OwnedFd>,
    table: Table,
    /// The lives that are not over. The first is the host's, whether the host is in it or not.
    parts: [Option<u16>; MEMBERS],
    /// Whether the host is in it.
    host: bool,
}

/// A member of the memory that is shared in that way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub(crate) member: Member,
    pub(crate) sharing: Sharing,
}

const HOST: Member = Member { part: 0, life: 1 };

impl Members {
    /// The host, once it shares memory.
    pub(crate) fn host(&self) -> Option<Place> {
        let is_in = |group: &Option<Group>| group.as_ref().is_some_and(|group| group.host);
        let found = [Sharing::Open, Sharing::Remapped]
            .into_iter()
            .find(|sharing| is_in(self.group(*sharing)));
        found.map(|sharing| Place {
            member: HOST,
            sharing,
        })
    }

    /// A new member, and the memory.
    ///
    /// # Errors
    /// There are as many as there can be, or the system refuses.
    pub(crate) fn join(&mut self, sharing: Sharing) -> io::Result<(Place, Arc<OwnedFd>)> {
        let worn = || io::Error::other("no life of a domain that shares memory is left");
        let life = self.last.max(HOST.life).checked_add(1);
        let life = life.filter(|life| *life < u16::MAX).ok_or_else(worn)?;
        let group = match self.slot(sharing) {
            Some(group) => group,
            none => none.insert(Group::new(sharing)?),
        };
        let member = group.join(life)?;
        let file = group.file.clone();
        self.last = life;
        Ok((Place { member, sharing }, file))
    }

    /// Its OS process is no more.
    pub(crate) fn leave(&mut self, place: Place) {
        if let Some(group) = self.slot(place.sharing) {
            group.parts[usize::from(place.member.part)] = None;
            group.reclaim();
            group.table.discard(group.file.as_fd(), place.member.part);
        }
    }

    fn group(&self, sharing: Sharing) -> &Option<Group> {
        match sharing {
            Sharing::Open => &self.open,
            Sharing::Remapped => &self.remapped,
        }
    }

    fn slot(&mut self, sharing: Sharing) -> &mut Option<Group> {
        match sharing {
            Sharing::Open => &mut self.open,
            Sharing::Remapped => &mut self.remapped,
        }
    }
}

impl Group {
    fn new(sharing: Sharing) -> io::Result<Group> {
        let file = files::create("mullion-common_memory", BYTES)?;
        let mut parts = [None; MEMBERS];
        parts[usize::from(HOST.part)] = Some(HOST.life);
        Ok(Group {
            table: Table::map(file.as_fd())?,
            host: share(file.as_fd(), HOST, sharing)?,
            file: Arc::new(file),
            parts,
        })
    }

    fn join(&mut self, life: u16) -> io::Result<Member> {
        let full = || io::Error::other(format!("at most {} domains share memory", MEMBERS - 1));
        let free = self.parts.iter().position(Option::is_none);
        let part = free.ok_or_else(full)?;
        self.parts[part] = Some(life);
        // Of lives that were over already when something was sent to them, too.
        self.reclaim();
        Ok(Member {
            part: part as u8,
            life,
        })
    }

    fn reclaim(&self) {
        self.table.reclaim(|life| self.parts.contains(&Some(life)));
    }
}
