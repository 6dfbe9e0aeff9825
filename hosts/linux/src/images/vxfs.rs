//! Veritas' file system, as UnixWare has it.

use super::{block, files, little, pad};

const BLOCK: usize = 1024;
/// The table of objects, the first inodes, headers of both sets of files, and the list of inodes.
const OBJECTS: usize = 2;
const FIRST: usize = 3;
const HEADERS: usize = 7;
const INODES: usize = 9;
/// Bytes of an inode.
const INODE: usize = 256;
const HEADER: usize = 1;
const FIRST_LIST: usize = 2;
const LIST: usize = 3;
const ROOT: usize = 2;

/// The inode of what lies in blocks one behind the other.
fn inode(mode: usize, start: usize, bytes: usize) -> Vec<u8> {
    let fields: [(usize, &[u8]); 5] = [
        (0, &[mode, 1].map(little).concat()),
        (16, &(bytes as u64).to_le_bytes()),
        // Extents.
        (49, &[1]),
        (64, &little(bytes.div_ceil(BLOCK))),
        (96, &[start, bytes.div_ceil(BLOCK)].map(little).concat()),
    ];
    block(INODE, &fields)
}

/// Inodes are a file, whose inode is in a short list. That list is a file, too: its inode is in the first list of all.
#[must_use]
pub fn freevxfs() -> Vec<u8> {
    let files = files();
    let inodes = (ROOT + 1 + files.len()) * INODE;
    let first = INODES + inodes.div_ceil(BLOCK);
    let (mut list, mut data) = (vec![0; ROOT * INODE], vec![0; BLOCK]);
    list.extend(inode(0o040_755, first, BLOCK));
    // Behind a head without a table of names.
    let mut at = 4;
    for (number, (name, content)) in files.iter().enumerate() {
        list.extend(inode(0o100_644, first + data.len() / BLOCK, content.len()));
        data.extend_from_slice(content);
        pad(&mut data, BLOCK);
        let length = (10 + name.len()).next_multiple_of(4);
        let is_last = number + 1 == files.len();
        let length = if is_last { BLOCK - at } else { length };
        let words = [length as u16, name.len() as u16, 0].map(u16::to_le_bytes);
        let entry = [
            &little(ROOT + 1 + number)[..],
            &words.concat(),
            name.as_bytes(),
        ]
        .concat();
        data[at..at + entry.len()].copy_from_slice(&entry);
        at += length;
    }
    let total = first + data.len() / BLOCK;
    let superblock: [(usize, &[u8]); 3] = [
        (0, &[0xa501_fcf5, 4].map(little).concat()),
        (32, &[BLOCK, total].map(little).concat()),
        (368, &[OBJECTS, OBJECTS, 1].map(little).concat()),
    ];
    // Headers, first inodes, and a record of what is left.
    let objects: [(usize, &[u8]); 3] = [
        (0, &[0xa504_fcf5, 56].map(little).concat()),
        (
            56,
            &[2, 16, HEADER, HEADER, 4, 16, FIRST, FIRST]
                .map(little)
                .concat(),
        ),
        (88, &[1, BLOCK - 88].map(little).concat()),
    ];
    let first_inodes: [(usize, &[u8]); 3] = [
        (HEADER * INODE, &inode(0x1000_0000, HEADERS, 2 * BLOCK)),
        (FIRST_LIST * INODE, &inode(0x2000_0000, FIRST, 4 * BLOCK)),
        (LIST * INODE, &inode(0x2000_0000, INODES, inodes)),
    ];
    // Which inode has the list.
    let header = |list: usize| block(BLOCK, &[(48, &[list, list].map(little).concat())]);
    let parts: [(usize, &[u8]); 7] = [
        (BLOCK, &block(BLOCK, &superblock)),
        (OBJECTS * BLOCK, &block(BLOCK, &objects)),
        (FIRST * BLOCK, &block(4 * BLOCK, &first_inodes)),
        (HEADERS * BLOCK, &header(FIRST_LIST)),
        ((HEADERS + 1) * BLOCK, &header(LIST)),
        (INODES * BLOCK, &list),
        (first * BLOCK, &data),
    ];
    block(total * BLOCK, &parts)
}
