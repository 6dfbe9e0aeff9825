//! Devices that every program has, since they lead nowhere: `/dev/null`, `/dev/zero`, `/dev/urandom`, `/dev/random`.
//! Names of the program's own descriptors are here as well: `/dev/stdin` and its like.

use crate::handle::STAT;

/// A device of the program's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Device {
    /// At its end for readers; takes whatever is written.
    Null,
    /// Zero bytes for readers.
    Zero,
    /// Random bytes for readers.
    Random,
}

/// What a name in `/dev` stands for, whatever was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Special {
    /// A device.
    Device(Device),
    /// A descriptor of the program's.
    Descriptor(i32),
}

impl Special {
    /// That of an absolute path.
    pub(crate) fn of(path: &str) -> Option<Self> {
        let name = path.strip_prefix("/dev/")?;
        Some(match name {
            "null" => Self::Device(Device::Null),
            "zero" => Self::Device(Device::Zero),
            "random" | "urandom" => Self::Device(Device::Random),
            "stdin" => Self::Descriptor(0),
            "stdout" => Self::Descriptor(1),
            "stderr" => Self::Descriptor(2),
            _ => Self::Descriptor(name.strip_prefix("fd/")?.parse().ok()?),
        })
    }
}

impl Device {
    /// Linux' number of it.
    const fn number(self) -> u64 {
        match self {
            Device::Null => 0x103,
            Device::Zero => 0x105,
            Device::Random => 0x109,
        }
    }

    /// `struct stat`.
    pub(crate) fn stat(self) -> [u8; STAT] {
        /// A device of characters that everybody may read and write.
        const MODE: u32 = 0o020_666;
        stat(self.number(), MODE, self.number())
    }
}

/// `struct stat` of what is no file.
pub(crate) fn stat(inode: u64, mode: u32, device: u64) -> [u8; STAT] {
    let mut bytes = [0; STAT];
    bytes[8..16].copy_from_slice(&inode.to_le_bytes());
    bytes[16..24].copy_from_slice(&1_u64.to_le_bytes());
    bytes[24..28].copy_from_slice(&mode.to_le_bytes());
    bytes[40..48].copy_from_slice(&device.to_le_bytes());
    bytes[56..64].copy_from_slice(&4096_u64.to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_devices_and_descriptors() {
        assert_eq!(
            Special::of("/dev/null"),
            Some(Special::Device(Device::Null))
        );
        assert_eq!(Special::of("/dev/fd/17"), Some(Special::Descriptor(17)));
        assert_eq!(Special::of("/dev/stderr"), Some(Special::Descriptor(2)));
        for other in [
            "/dev",
            "/dev/",
            "/dev/tty",
            "/dev/fd/",
            "/dev/fd/x",
            "/null",
            "dev/null",
        ] {
            assert_eq!(Special::of(other), None, "{other}");
        }
    }
}
