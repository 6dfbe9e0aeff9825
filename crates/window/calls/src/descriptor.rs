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
    list: Vec<Option<Open>>,
}

impl Descriptors {
    /// The three streams.
    pub(crate) fn new(streams: [Handle; 3]) -> Self {
        let open = |handle| {
            Some(Open {
                object: Object::Host(handle),
                directory: None,
            })
        };
        Self {
            list: streams.map(open).into(),
        }
    }

    /// What `number` stands for. A clone, so that the table is not locked while it is used.
    pub(crate) fn get(&self, number: i32) -> Result<Open, Errno> {
        let index = usize::try_from(number).map_err(|_| Errno::BADF)?;
        self.list.get(index).cloned().flatten().ok_or(Errno::BADF)
    }

    /// Gives `open` the lowest free number from `least` on.
    pub(crate) fn add(&mut self, open: Open, least: usize) -> Result<u64, Errno> {
        let free = (least..LIMIT)
            .find(|&index| self.list.get(index).is_none_or(Option::is_none))
            .ok_or(Errno::MFILE)?;
        self.put(free, open);
        Ok(free as u64)
    }

    /// Gives `open` this number, whatever it stood for.
    pub(crate) fn replace(&mut self, number: i32, open: Open) -> Result<u64, Errno> {
        let index = usize::try_from(number).map_err(|_| Errno::BADF)?;
        if index >= LIMIT {
            return Err(Errno::BADF);
        }
        self.put(index, open);
        Ok(index as u64)
    }

    fn put(&mut self, index: usize, open: Open) {
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
        place.take().ok_or(Errno::BADF)
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
        assert_eq!(table.add(open(), 0), Ok(3));
        table.close(0).expect("open");
        assert_eq!(table.add(open(), 0), Ok(0));
        assert_eq!(table.add(open(), 10), Ok(10));
        assert_eq!(table.get(9).err(), Some(Errno::BADF));
        assert_eq!(table.get(-1).err(), Some(Errno::BADF));
        assert_eq!(table.close(9).err(), Some(Errno::BADF));
        while table.add(open(), 0).is_ok() {}
        assert_eq!(table.add(open(), 0), Err(Errno::MFILE));
        assert_eq!(table.replace(256, open()), Err(Errno::BADF));
    }
}
