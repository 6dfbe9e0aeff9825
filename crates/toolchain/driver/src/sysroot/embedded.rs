//! The files of `sysroot/`, carried in the program, so that it works wherever
//! it is installed.

use crate::DriverError;
use std::fs;
use std::path::Path;

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// The text of one file.
pub(super) fn text(name: &str) -> Option<&'static str> {
    let (_, content) = FILES.iter().find(|(file, _)| *file == name)?;
    std::str::from_utf8(content).ok()
}

/// The files whose names begin so, with their content.
pub(super) fn below(beginnings: &[&str]) -> Vec<&'static (&'static str, &'static [u8])> {
    let wanted = |name: &str| beginnings.iter().any(|begin| name.starts_with(begin));
    FILES.iter().filter(|(name, _)| wanted(name)).collect()
}

/// Writes all of them below a directory.
pub(super) fn write(directory: &Path) -> Result<(), DriverError> {
    for (name, content) in FILES {
        let file = directory.join(name);
        let parent = file.parent().unwrap_or(directory);
        fs::create_dir_all(parent).map_err(|cause| DriverError::io(parent, cause))?;
        fs::write(&file, content).map_err(|cause| DriverError::io(&file, cause))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_file_is_good() {
        let lock = mullion_fetch::Lock::parse(text("sources.toml").unwrap()).unwrap();
        for name in ["musl", "compiler-rt", "zlib", "lua", "sqlite"] {
            lock.source(name).unwrap();
        }
    }
}
