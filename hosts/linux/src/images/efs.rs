//! The file system of IRIX, before XFS.

use super::{big, files, pad};

/// One group: inodes of 128 bytes, and behind them the folder and the files.
#[must_use]
pub fn efs() -> Vec<u8> {
    const BLOCK: usize = 512;
    const FIRST: usize = 2;
    const INODES: usize = 16;
    let files = files();
    let inode = |block: usize, bytes: usize, mode: u16| {
        let mut inode = [mode.to_be_bytes(), [0, 1], [0; 2], [0; 2]].concat();
        inode.extend(big(bytes));
        inode.resize(28, 0);
        inode.extend([0, 1, 0, 0]);
        // An extent: where, how long, and from where in the file on.
        let length = bytes.div_ceil(BLOCK);
        inode.extend([big(block), big(length << 24)].concat());
        inode.resize(128, 0);
        inode
    };
    // Names lie at a block's end, and their places, halved, at its beginning.
    let mut blocks: Vec<Vec<u8>> = Vec::new();
    let (mut slots, mut end) = (0, 0);
    for (number, (name, _)) in files.iter().enumerate() {
        let length = (5 + name.len()).next_multiple_of(2);
        if blocks.is_empty() || end - length < 4 + slots + 1 {
            blocks.push([&[0xbe, 0xef][..], &[0; BLOCK - 2]].concat());
            (slots, end) = (0, BLOCK);
        }
        end -= length;
        let Some(block) = blocks.last_mut() else {
            continue;
        };
        block[end..end + 4].copy_from_slice(&big(3 + number));
        block[end + 4] = name.len() as u8;
        block[end + 5..end + 5 + name.len()].copy_from_slice(name.as_bytes());
        block[4 + slots] = (end / 2) as u8;
        slots += 1;
        block[2] = (end / 2) as u8;
        block[3] = slots as u8;
    }
    let mut data = blocks.concat();
    let mut inodes = vec![0; 2 * 128];
    inodes.extend(inode(FIRST + INODES, data.len(), 0o040_755));
    for (_, content) in &files {
        let block = FIRST + INODES + data.len() / BLOCK;
        inodes.extend(inode(block, content.len(), 0o100_644));
        data.extend_from_slice(content);
        pad(&mut data, BLOCK);
    }
    inodes.resize(INODES * BLOCK, 0);
    let total = INODES + data.len() / BLOCK;
    let mut superblock = [big(FIRST + total), big(FIRST), big(total)].concat();
    superblock.extend([0, INODES as u8, 0, 1, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0]);
    pad(&mut superblock, 4);
    superblock.extend(big(0x0007_2959));
    pad(&mut superblock, BLOCK);
    [vec![0; BLOCK], superblock, inodes, data].concat()
}
