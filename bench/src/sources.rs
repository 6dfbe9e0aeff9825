//! The libraries' published sources, from the list that the whole project uses
//! (`sysroot/sources.toml`), which holds their digests.

use anyhow::{Context, Result};
use mullion_fetch::{Lock, fetch as fetch_source};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// The libraries of `bench/workloads.toml`, by their names in the list.
const LIBRARIES: [&str; 5] = ["sqlite", "zlib", "lua", "bzip2", "zstd"];

/// Makes a folder under `build` in which each library has a link of its name to its
/// unpacked sources.
pub(crate) fn fetch(bench: &Path, build: &Path) -> Result<PathBuf> {
    let list = bench.join("../sysroot/sources.toml");
    let text = fs::read_to_string(&list).with_context(|| format!("reading {}", list.display()))?;
    let lock = Lock::parse(&text)?;
    let folder = build.join("sources");
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    for library in LIBRARIES {
        let unpacked = fetch_source(lock.source(library)?)?;
        let link = folder.join(library);
        if fs::read_link(&link).is_ok_and(|target| target == unpacked) {
            continue;
        }
        let _ = fs::remove_file(&link);
        symlink(&unpacked, &link).with_context(|| format!("linking {}", link.display()))?;
    }
    Ok(folder)
}
