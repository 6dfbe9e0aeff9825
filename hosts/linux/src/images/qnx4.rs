//! The file system of QNX 4.

use super::{files, pad};

/// A folder of entries of 64 bytes, which are the files' inodes, too. Blocks have 512 bytes, and their numbers begin with 1.
#[must_use]
pub fn qnx4() -> Vec<u8> {
    const BLOCK: usize = 512;
    let files = files();
    let folder = (files.len() + 1).div_ceil(8);
    let entry = |name: &str, block: usize, bytes: usize, mode: u16| {
        let mut entry = vec![0; 64];
        entry[..name.len()].copy_from_slice(name.as_bytes());
        let words = [(16, bytes), (20, block + 1), (24, bytes.div_ceil(BLOCK))];
        for (at, word) in words {
            entry[at..at + 4].copy_from_slice(&(word as u32).to_le_bytes());
        }
        // One extent, and one name; in use.
        entry[48] = 1;
        entry[50..52].copy_from_slice(&mode.to_le_bytes());
        entry[56] = 1;
        entry[63] = 1;
        entry
    };
    let mut block = 2 + folder;
    let mut entries = entry(".bitmap", block, 64, 0o100_600);
    let mut data = vec![0xff; BLOCK];
    for (name, content) in &files {
        block = 2 + folder + data.len() / BLOCK;
        entries.extend(entry(name, block, content.len(), 0o100_644));
        data.extend_from_slice(content);
        pad(&mut data, BLOCK);
    }
    let mut image = vec![0; BLOCK];
    image.extend(entry("/", 2, folder * BLOCK, 0o040_755));
    for part in [entries, data] {
        pad(&mut image, BLOCK);
        image.extend(part);
    }
    image
}
