//! Work for walled modules: a disk in memory that compresses what is written to it (zram), with the kernel's compressors.

use crate::kernel::{Built, Setup};
use crate::machine::{Instead, Machine, Work};
use crate::modules::Protection;
use crate::row::Row;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Ways to compress of which both directions can be walled.
pub const ALGORITHMS: [&str; 3] = ["lz4", "lz4hc", "842"];

/// A kernel with such a disk.
pub struct Disk<'b>(Machine<'b>);

impl<'b> Disk<'b> {
    /// Walled modules are made in the folder.
    ///
    /// # Errors
    /// The build's lists cannot be read, the folder not be written.
    pub fn new(built: &'b Built, folder: &Path) -> Result<Disk<'b>, Setup> {
        Machine::new(built, folder, &Machine::own_policies()).map(Disk)
    }

    /// What the disk needs.
    fn modules(algorithm: &str) -> Vec<String> {
        ["cryptomgr", algorithm, "zram"].map(str::to_owned).into()
    }

    /// Makes all of the disk's modules that have policies, as [`Machine::wall`] does.
    ///
    /// # Errors
    /// As there.
    pub fn wall(
        &self,
        algorithm: &str,
        protection: Protection,
        folder: &Path,
        source: &mut dyn FnMut(&str) -> Option<PathBuf>,
    ) -> Result<Vec<Row>, Setup> {
        let modules = Disk::modules(algorithm);
        self.0.wall(&modules, protection, folder, source)
    }

    /// Boots, loads what the disk needs, sets it up, and goes on with `more`, in the first program's words. What the
    /// console showed.
    ///
    /// # Errors
    /// The kernel cannot be started.
    pub fn boot(&self, algorithm: &str, instead: Instead<'_>, more: &str) -> Result<String, Setup> {
        let disk = "/sys/block/zram0";
        let script = format!(
            "set {disk}/comp_algorithm {algorithm}\nset {disk}/disksize 8M\nshow {disk}/comp_algorithm\n{more}"
        );
        let work = Work {
            modules: Disk::modules(algorithm),
            script,
            ..Work::default()
        };
        self.0.boot(&work, instead)
    }
}

/// How long the first program's transfer took, by its console: `fill` or `check`. None: it did not work.
#[must_use]
pub fn took(console: &str, transfer: &str) -> Option<Duration> {
    let begin = format!("init: {transfer} ");
    let line = console.lines().find_map(|line| line.strip_prefix(&begin))?;
    if !line.contains(" 0 failed, 0 wrong, ") {
        return None;
    }
    let time = line.strip_suffix(" us")?.rsplit(' ').next()?;
    Some(Duration::from_micros(time.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_s_time_is_read() {
        let said = "init: fill /dev/zram0: 4096 KiB, 0 failed, 0 wrong, 66218 us\n\
                    init: check /dev/zram0: 4096 KiB, 0 failed, 1 wrong, 21912 us\n";
        assert_eq!(took(said, "fill"), Some(Duration::from_micros(66218)));
        assert_eq!(took(said, "check"), None);
    }
}
