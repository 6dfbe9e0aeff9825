//! Who shares memory with whom: one file, for the host and all domains that are to share.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use mullion_sip::exchange::commons::{self, BYTES, MEMBERS, Member};

use crate::files;

/// The members that live; the first is the host.
#[derive(Debug, Default)]
pub(crate) struct Members {
    file: Option<Arc<OwnedFd>>,
    /// The lives that are not over.
    parts: [Option<u16>; MEMBERS],
    last: u16,
}

const HOST: Member = Member { part: 0, life: 1 };

impl Members {
    /// The host, once it shares memory.
    pub(crate) fn host(&self) -> Option<Member> {
        self.file.as_ref().map(|_| HOST)
    }

    /// A new member, and the memory.
    ///
    /// # Errors
    /// There are as many as there can be, or the system refuses.
    pub(crate) fn join(&mut self) -> io::Result<(Member, Arc<OwnedFd>)> {
        let file = match &self.file {
            Some(file) => file.clone(),
            None => self.file.insert(Arc::new(make()?)).clone(),
        };
        (self.parts[0], self.last) = (Some(HOST.life), self.last.max(HOST.life));
        let full = || io::Error::other(format!("at most {} domains share memory", MEMBERS - 1));
        let part = self
            .parts
            .iter()
            .position(Option::is_none)
            .ok_or_else(full)?;
        let worn = || io::Error::other("no life of a domain that shares memory is left");
        self.last = self
            .last
            .checked_add(1)
            .filter(|life| *life < u16::MAX)
            .ok_or_else(worn)?;
        self.parts[part] = Some(self.last);
        // Of lives that were over already when something was sent to them, too.
        self.reclaim();
        let member = Member {
            part: part as u8,
            life: self.last,
        };
        Ok((member, file))
    }

    /// Its OS process is no more.
    pub(crate) fn leave(&mut self, member: Member) {
        self.parts[usize::from(member.part)] = None;
        self.reclaim();
    }

    fn reclaim(&self) {
        commons::reclaim(|life| self.parts.contains(&Some(life)));
    }
}

fn make() -> io::Result<OwnedFd> {
    let file = files::create("mullion-commons", BYTES)?;
    commons::share(file.as_fd(), HOST)?;
    Ok(file)
}
