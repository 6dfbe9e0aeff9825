//! Reading an image's file, which may come from anybody.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;
use std::sync::Arc;

/// The whole file, where the verifier takes it: a regular file is never in memory twice. Nothing of one that has
/// more than `most` bytes is read.
///
/// # Errors
/// What the system says; [`ErrorKind::FileTooLarge`].
pub fn read_image(path: &Path, most: u64) -> io::Result<Arc<[u8]>> {
    let mut file = File::open(path)?;
    let about = file.metadata()?;
    if about.len() > most {
        return Err(ErrorKind::FileTooLarge.into());
    }
    if !about.is_file() {
        return collected(file, most);
    }
    let length = usize::try_from(about.len()).map_err(|_| ErrorKind::FileTooLarge)?;
    let mut whole: Arc<[u8]> = std::iter::repeat_n(0, length).collect();
    let Some(bytes) = Arc::get_mut(&mut whole) else {
        // Nobody else has it.
        return Err(ErrorKind::Other.into());
    };
    file.read_exact(bytes)?;
    // It may have grown since.
    match file.read(&mut [0])? {
        0 => Ok(whole),
        _ => Err(io::Error::other("the file grows while it is read")),
    }
}

/// Of what has no length, a pipe or a device.
fn collected(file: File, most: u64) -> io::Result<Arc<[u8]>> {
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(ErrorKind::FileTooLarge.into()),
        false => Ok(bytes.into()),
    }
}

#[cfg(test)]
#[allow(clippy::expect_used, reason = "a test")]
mod tests {
    use super::*;

    #[test]
    fn as_much_as_is_allowed_is_read() {
        let path = std::env::temp_dir().join(format!("mullion-image-{}", std::process::id()));
        std::fs::write(&path, [7; 1000]).expect("written");
        let read = read_image(&path, 1000).expect("read");
        assert_eq!(*read, [7; 1000]);
        let error = read_image(&path, 999).expect_err("too large");
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
        std::fs::remove_file(&path).expect("removed");
        let device = Path::new("/dev/zero");
        let error = read_image(device, 999).expect_err("too large");
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
        assert!(
            read_image(Path::new("/dev/null"), 0)
                .expect("read")
                .is_empty()
        );
    }
}
