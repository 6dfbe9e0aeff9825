//! The program's descriptors: numbers of its own, none of the host's.

use crate::above::Above;
use crate::device::Device;
use crate::errno::Errno;
use crate::handle::Handle;
use crate::pipes::End;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Greatest number of descriptors.
pub(crate) const LIMIT: usize = 256;

/// Of `open`, `dup3` and `pipe2`: the number would close if another program were run.
pub(crate) const O_CLOEXEC: u32 = 0o2_000_000;

/// What can be open.
#[derive(Clone, Debug)]
pub(crate) enum Object {
    /// What the trusted half has opened.
    Host(Handle),
    /// A device that every program has.
    Device(Device),
    /// An end of a pipe of the program's own.
    Pipe(End),
    /// A directory above a granted one.
    Above(Arc<Above>),
}

/// What a descriptor stands for.
#[derive(Clone, Debug)]
pub(crate) struct Open {
    pub(crate) object: Object,
    /// The program's path of a directory.
    pub(crate) directory: Option<Arc<str>>,
}

/// The table of descriptors.
pub(crate) struct Descriptors {
    list: Vec<Option<Numbered>>,
}

/// An object with a number, and the mark that is the number's own.
#[derive(Clone)]
struct Numbered {
    open: Open,
    /// It would close if another program were run (`FD_CLOEXEC`). None can be, so it is kept for who asks.
    closes: bool,
}

impl Descriptors {
    /// The three streams.
    pub(crate) fn new(streams: [Handle; 3]) -> Self {
        let open = |handle| {
            let open = Open {
                object: Object::Host(handle),
                directory: None,
            };
            Some(Numbered {
                open,
                closes: false,
            })
        };
        Self {
            list: streams.map(open).into(),
        }
    }

    /// What `number` stands for. A clone, so that the table is not locked while it is used.
    pub(crate) fn get(&self, number: i32) -> Result<Open, Errno> {
        let index = usize::try_from(number).map_err(|_| Errno::BADF)?;
        let numbered = self.list.get(index).and_then(Option::as_ref);
        numbered.map(|one| one.open.clone()).ok_or(Errno::BADF)
    }

    /// Whether `number` would close if another program were run; `set` says so from now on.
    pub(crate) fn closes(&mut self, number: i32, set: Option<bool>) -> Result<bool, Errno> {
        let index = usize::try_from(number).map_err(|_| Errno::BADF)?;
        let numbered = self.list.get_mut(index).and_then(Option::as_mut);
        let numbered = numbered.ok_or(Errno::BADF)?;
        numbered.closes = set.unwrap_or(numbered.closes);
        Ok(numbered.closes)
    }

    /// Gives `open` the lowest free number from `least` on.
    pub(crate) fn add(&mut self, open: Open, least: usize, closes: bool) -> Result<u64, Errno> {
        let free = (least..LIMIT)
            .find(|&index| self.list.get(index).is_none_or(Option::is_none))
            .ok_or(Errno::MFILE)?;
        self.put(free, Numbered { open, closes });
        Ok(free as u64)
    }

    /// Gives `open` this number, whatever it stood for.
    pub(crate) fn replace(&mut self, number: i32, open: Open, closes: bool) -> Result<u64, Errno> {
        let index = usize::try_from(number).map_err(|_| Errno::BADF)?;
        if index >= LIMIT {
            return Err(Errno::BADF);
        }
        self.put(index, Numbered { open, closes });
        Ok(index as u64)
    }

    fn put(&mut self, index: usize, open: Numbered) {
        if self.list.len() <= index {
            self.list.resize(index + 1, None);
        }
        if let Some(place) = self.list.get_mut(index) {
            *place = Some(open);
        }
    }

    /// Forgets `number`; gives what it stood for.
    pub(crate) fn close(&mut self, number: i32) -> Result<Open, Errno> {
        let index = usize::try_from(number).map_err(|_| Errno::BADF)?;
        let place = self.list.get_mut(index).ok_or(Errno::BADF)?;
        place.take().map(|one| one.open).ok_or(Errno::BADF)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_the_lowest_free_ones_and_limited() {
        let handle = || -> Handle { Arc::new(()) };
        let open = || Open {
            object: Object::Host(handle()),
            directory: None,
        };
        let mut table = Descriptors::new([handle(), handle(), handle()]);
        assert_eq!(table.add(open(), 0, false), Ok(3));
        table.close(0).expect("open");
        assert_eq!(table.add(open(), 0, false), Ok(0));
        assert_eq!(table.add(open(), 10, true), Ok(10));
        // The mark is the number's own, and goes with it.
        assert_eq!(table.closes(10, None), Ok(true));
        assert_eq!(table.closes(3, Some(true)), Ok(true));
        table.close(3).expect("open");
        assert_eq!(table.closes(3, None), Err(Errno::BADF));
        assert_eq!(table.add(open(), 0, false), Ok(3));
        assert_eq!(table.closes(3, None), Ok(false));
        assert_eq!(table.get(9).err(), Some(Errno::BADF));
        assert_eq!(table.get(-1).err(), Some(Errno::BADF));
        assert_eq!(table.close(9).err(), Some(Errno::BADF));
        while table.add(open(), 0, false).is_ok() {}
        assert_eq!(table.add(open(), 0, false), Err(Errno::MFILE));
        assert_eq!(table.replace(256, open(), false), Err(Errno::BADF));
    }
}
