//! The files that the compiler reads for the author: those of the program, and no others.

use rustc_span::source_map::FileLoader;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Reads files below a directory. A file of others is empty: nothing of it is in any message, and `written.rs` refuses it by
/// its name.
pub struct Own {
    root: PathBuf,
}

impl Own {
    pub fn below(root: &str) -> Self {
        Own { root: root.into() }
    }

    /// Opens a file; nothing, if it is none of the program. Its place is asked of the open file: a name could lead elsewhere a
    /// moment later.
    fn open(&self, path: &Path) -> io::Result<Option<File>> {
        let file = File::open(path)?;
        let place = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        Ok(place.starts_with(&self.root).then_some(file))
    }
}

impl FileLoader for Own {
    fn file_exists(&self, path: &Path) -> bool {
        path.exists()
    }

    fn read_file(&self, path: &Path) -> io::Result<String> {
        let mut text = String::new();
        if let Some(mut file) = self.open(path)? {
            file.read_to_string(&mut text)?;
        }
        Ok(text)
    }

    fn read_binary_file(&self, path: &Path) -> io::Result<Arc<[u8]>> {
        let mut bytes = Vec::new();
        if let Some(mut file) = self.open(path)? {
            file.read_to_end(&mut bytes)?;
        }
        Ok(bytes.into())
    }

    fn current_directory(&self) -> io::Result<PathBuf> {
        std::env::current_dir()
    }
}
