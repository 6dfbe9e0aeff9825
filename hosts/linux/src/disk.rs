//! Work for walled modules: a disk in memory that compresses what is written to it (zram), with the kernel's compressors.

use crate::boot::Boot;
use crate::kernel::{Built, Setup, at};
use crate::modules::{Maker, Module, Protection};
use crate::row::{Outcome, Row};
use crate::stand::stand;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Modules that can be walled, with their policies.
const POLICIES: [(&str, &str); 5] = [
    (
        "lz4_compress",
        include_str!("../policies/lz4_compress.toml"),
    ),
    (
        "lz4_decompress",
        include_str!("../policies/lz4_decompress.toml"),
    ),
    (
        "lz4hc_compress",
        include_str!("../policies/lz4hc_compress.toml"),
    ),
    (
        "842_compress",
        include_str!("../policies/842_compress.toml"),
    ),
    (
        "842_decompress",
        include_str!("../policies/842_decompress.toml"),
    ),
];

/// Ways to compress of which both directions can be walled.
pub const ALGORITHMS: [&str; 3] = ["lz4", "lz4hc", "842"];

/// Modules in the place of kbuild's own.
#[derive(Clone, Copy, Debug)]
pub enum Instead<'f> {
    /// None.
    Nothing,
    /// Those of a folder, which stand for walled ones; and the wall's library.
    Walled(&'f Path, &'f Path),
    /// Those of a folder, without a wall.
    Plain(&'f Path),
}

/// A kernel with such a disk.
pub struct Disk<'b> {
    built: &'b Built,
    maker: Maker<'b>,
    all: Vec<Module>,
}

impl<'b> Disk<'b> {
    /// Walled modules are made in the folder.
    ///
    /// # Errors
    /// The build's lists cannot be read, the folder not be written.
    pub fn new(built: &'b Built, folder: &Path) -> Result<Disk<'b>, Setup> {
        let maker = Maker::new(built, folder)?;
        let all = maker.modules()?;
        Ok(Disk { built, maker, all })
    }

    /// What the disk needs, in an order in which it can be loaded.
    fn order(&self, algorithm: &str) -> Result<Vec<&Module>, Setup> {
        let names = ["cryptomgr", algorithm, "zram"];
        self.maker.in_order(&self.all, &names)
    }

    /// Makes all of the disk's modules that have policies, with the modules that stand for them, in a folder. `source` may
    /// name another file in the place of one of a module's sources.
    ///
    /// # Errors
    /// Programs fail, or a module is not accepted.
    pub fn wall(
        &self,
        algorithm: &str,
        protection: Protection,
        folder: &Path,
        source: &mut dyn FnMut(&str) -> Option<PathBuf>,
    ) -> Result<Vec<Row>, Setup> {
        fs::create_dir_all(folder).map_err(at(folder))?;
        let mut rows = Vec::new();
        for module in self.order(algorithm)? {
            let policy = POLICIES.iter().find(|(name, _)| *name == module.name);
            let Some((name, policy)) = policy else {
                continue;
            };
            let row = self.maker.make_with(module, protection, source)?;
            if !matches!(row.outcome, Outcome::Verified { .. }) {
                return Err(Setup::Build(format!("{name}: {:?}", row.outcome)));
            }
            let image = self.maker.place(module, protection);
            fs::copy(&image, folder.join(format!("{name}.so"))).map_err(at(&image))?;
            let beside = folder.join(format!("{name}.toml"));
            fs::write(&beside, policy).map_err(at(&beside))?;
            stand(self.built, &self.maker, module, policy, folder)?;
            rows.push(row);
        }
        Ok(rows)
    }

    /// Boots, loads what the disk needs, sets it up, and goes on with `more`, in the first program's words. What the
    /// console showed.
    ///
    /// # Errors
    /// The kernel cannot be started.
    pub fn boot(&self, algorithm: &str, instead: Instead<'_>, more: &str) -> Result<String, Setup> {
        let folder = match instead {
            Instead::Nothing => None,
            Instead::Walled(folder, _) | Instead::Plain(folder) => Some(folder),
        };
        let (mut files, mut script) = (Vec::new(), String::new());
        for module in self.order(algorithm)? {
            let name = format!("{}.ko", module.name);
            let ours = folder.map(|folder| folder.join(&name));
            let file = ours.filter(|file| file.is_file());
            files.push((name, file.unwrap_or_else(|| self.maker.plain(module))));
            script.push_str(&format!("insmod {}\n", module.name));
        }
        let disk = "/sys/block/zram0";
        script.push_str(&format!(
            "set {disk}/comp_algorithm {algorithm}\nset {disk}/disksize 8M\nshow {disk}/comp_algorithm\n{more}"
        ));
        let wall = match instead {
            Instead::Walled(folder, library) => Some((library.to_path_buf(), folder.to_path_buf())),
            Instead::Nothing | Instead::Plain(_) => None,
        };
        let boot = Boot {
            files,
            script,
            wall,
        };
        boot.run(self.built)
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
