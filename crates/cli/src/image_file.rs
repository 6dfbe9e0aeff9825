//! Reading an image's file, which may come from anybody: not more of it than a limit.

use crate::units;
use mullion_loader::read_image;
use mullion_verifier::memory_for;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;

/// How large an image's file may be.
#[derive(clap::Args)]
pub(crate) struct ImageLimit {
    /// Refuse images whose file is larger, debug information included.
    #[arg(
        long,
        value_name = "SIZE",
        env = "MULLION_MAX_IMAGE",
        default_value = "1G",
        value_parser = units::bytes
    )]
    max_image: u64,
}

/// The whole file, if it is no larger than the usual limit.
///
/// # Errors
/// As [`ImageLimit::read`].
pub(crate) fn whole(path: &Path) -> io::Result<Arc<[u8]>> {
    ImageLimit { max_image: 1 << 30 }.read(path)
}

/// For a file that is no image by its name: what to do with it.
pub(crate) fn way_out(path: &Path) -> Option<String> {
    let (file, kind) = (path.display(), path.extension()?.to_str()?);
    let image = path.with_extension("mx");
    let tool = match kind {
        "c" | "s" | "S" | "o" | "a" => "cc",
        "cc" | "cpp" | "cxx" | "C" => "c++",
        _ => return None,
    };
    let what = if matches!(kind, "o" | "a") {
        "objects are linked"
    } else {
        "sources are compiled"
    };
    Some(format!(
        "{what} first: mullion {tool} {file} -o {}",
        image.display()
    ))
}

impl ImageLimit {
    /// The whole file.
    ///
    /// # Errors
    /// What the system says, or [`ErrorKind::FileTooLarge`]; nothing of a regular file has been
    /// read then.
    pub(crate) fn read(&self, path: &Path) -> io::Result<Arc<[u8]>> {
        read_image(path, self.max_image).map_err(|error| match error.kind() {
            ErrorKind::FileTooLarge => self.too_large(),
            _ => error,
        })
    }

    /// As [`ImageLimit::read`], if to verify the file takes no more than so many bytes.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn read_within(&self, path: &Path, memory: u64) -> io::Result<Arc<[u8]>> {
        let most = largest_within(memory);
        let is_too_large = || std::fs::metadata(path).is_ok_and(|file| file.len() > self.max_image);
        if most >= self.max_image || is_too_large() {
            return self.read(path);
        }
        read_image(path, most).map_err(|error| match error.kind() {
            ErrorKind::FileTooLarge => io::Error::new(
                ErrorKind::FileTooLarge,
                format!(
                    "larger than {most} bytes: to verify more takes more than {memory}, which is \
                     all the memory that it may have (strip its debug information, or raise \
                     --max-memory)"
                ),
            ),
            _ => error,
        })
    }

    fn too_large(&self) -> io::Error {
        io::Error::new(
            ErrorKind::FileTooLarge,
            format!(
                "larger than {} bytes, the limit for an image (strip its debug information, or \
                 raise the limit with --max-image where there is one)",
                self.max_image
            ),
        )
    }
}

/// The largest file that so much memory is enough to verify.
fn largest_within(memory: u64) -> u64 {
    // Three bits for each byte of the last, begun 64 bytes.
    let most = memory.saturating_sub(24) / 11 * 8;
    debug_assert!(memory_for(most) <= memory);
    most
}
