//! Reading an image's file, which may come from anybody: not more of it than a limit.

use crate::units;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

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
pub(crate) fn whole(path: &Path) -> io::Result<Vec<u8>> {
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
    pub(crate) fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        if length > self.max_image {
            return Err(self.too_large());
        }
        // A pipe or a device has no length; a file may grow while it is read.
        let mut bytes = Vec::with_capacity(length as usize);
        file.take(self.max_image.saturating_add(1))
            .read_to_end(&mut bytes)?;
        match bytes.len() as u64 > self.max_image {
            true => Err(self.too_large()),
            false => Ok(bytes),
        }
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
