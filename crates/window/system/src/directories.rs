//! The granted directories, one operation at a time.

use crate::caller::Caller;
use crate::mount::Mount;
use crate::stop::told;
use mullion_calls::{CallStop, Directories, Errno, Handle, Moment, Place, STAT};
use std::sync::Arc;

impl Directories for Caller<'_, '_> {
    fn has_directories(&self) -> bool {
        !self.system.grants.mounts.is_empty()
    }

    fn open(&self, place: Place<'_>, flags: u32, mode: u32) -> Result<(Handle, bool), CallStop> {
        let open = self.mount(place)?.open(place.name, flags, mode);
        let open = open.map_err(told)?;
        let is_directory = open.is_directory();
        Ok((Arc::new(open), is_directory))
    }

    fn is_directory(&self, place: Place<'_>) -> Result<(), CallStop> {
        self.mount(place)?.is_directory(place.name).map_err(told)
    }

    fn stat(&self, place: Place<'_>, follow: bool) -> Result<[u8; STAT], CallStop> {
        self.mount(place)?.stat(place.name, follow).map_err(told)
    }

    fn access(&self, place: Place<'_>, wanted: u32) -> Result<(), CallStop> {
        self.mount(place)?.access(place.name, wanted).map_err(told)
    }

    fn make_directory(&self, place: Place<'_>, mode: u32) -> Result<(), CallStop> {
        let made = self.mount(place)?.make_directory(place.name, mode);
        made.map_err(told)
    }

    fn remove(&self, place: Place<'_>, directory: bool) -> Result<(), CallStop> {
        let removed = self.mount(place)?.remove(place.name, directory);
        removed.map_err(told)
    }

    fn rename(&self, from: Place<'_>, to: Place<'_>) -> Result<(), CallStop> {
        let (mount, other) = (self.mount(from)?, self.mount(to)?);
        mount.rename(from.name, other, to.name).map_err(told)
    }

    fn link(&self, from: Place<'_>, to: Place<'_>) -> Result<(), CallStop> {
        let (mount, other) = (self.mount(from)?, self.mount(to)?);
        mount.link(from.name, other, to.name).map_err(told)
    }

    fn make_link(&self, target: &[u8], place: Place<'_>) -> Result<(), CallStop> {
        let made = self.mount(place)?.make_link(target, place.name);
        made.map_err(told)
    }

    fn read_link(&self, place: Place<'_>) -> Result<Vec<u8>, CallStop> {
        self.mount(place)?.read_link(place.name).map_err(told)
    }

    fn set_length(&self, place: Place<'_>, length: u64) -> Result<(), CallStop> {
        self.mount(place)?.set_length(place.name, length)
    }

    fn set_mode(&self, place: Place<'_>, mode: u32) -> Result<(), CallStop> {
        self.mount(place)?.set_mode(place.name, mode).map_err(told)
    }

    fn set_times(&self, place: Place<'_>, times: [Moment; 2]) -> Result<(), CallStop> {
        let set = self.mount(place)?.set_times(place.name, times);
        set.map_err(told)
    }
}

impl Caller<'_, '_> {
    fn mount(&self, place: Place<'_>) -> Result<&Mount, CallStop> {
        let mount = self.system.grants.mounts.get(place.directory);
        mount.map(|mount| &**mount).ok_or(Errno::NOENT.into())
    }
}
