//! The file system of compact discs.

use super::{big, files, pad};

const SECTOR: usize = 2048;

/// Numbers stand in both orders.
fn both(word: usize) -> Vec<u8> {
    [(word as u32).to_le_bytes(), big(word)].concat()
}

fn both_short(word: u16) -> Vec<u8> {
    [word.to_le_bytes(), word.to_be_bytes()].concat()
}

/// An entry of a folder: where a file or a folder begins, and how long it is.
fn entry(sector: usize, bytes: usize, flags: u8, name: &[u8]) -> Vec<u8> {
    let mut entry = vec![0, 0];
    entry.extend(both(sector));
    entry.extend(both(bytes));
    entry.extend([126, 11, 27, 0, 0, 0, 0, flags, 0, 0]);
    entry.extend(both_short(1));
    entry.push(name.len() as u8);
    entry.extend_from_slice(name);
    pad(&mut entry, 2);
    entry[0] = entry.len() as u8;
    entry
}

/// A disc with one folder, in sector 20 and on; each file begins a sector.
#[must_use]
pub fn iso() -> Vec<u8> {
    const ROOT: usize = 20;
    let files = files();
    let folder = |bytes: usize, first: usize| {
        let (mut folder, mut sector) = (Vec::new(), first);
        let mut add = |entry: Vec<u8>| {
            if folder.len() % SECTOR + entry.len() > SECTOR {
                pad(&mut folder, SECTOR);
            }
            folder.extend(entry);
        };
        add(entry(ROOT, bytes, 2, b"\0"));
        add(entry(ROOT, bytes, 2, b"\x01"));
        for (name, content) in &files {
            let name = format!("{}.;1", name.to_uppercase());
            add(entry(sector, content.len(), 0, name.as_bytes()));
            sector += content.len().div_ceil(SECTOR);
        }
        pad(&mut folder, SECTOR);
        (folder, sector)
    };
    let bytes = folder(0, 0).0.len();
    let (root, end) = folder(bytes, ROOT + bytes / SECTOR);
    let mut volume = b"\x01CD001\x01\0".to_vec();
    volume.extend([b' '; 32]);
    volume.extend(format!("{:32}", "WALLS").bytes());
    volume.extend([0; 8]);
    volume.extend(both(end));
    volume.extend([0; 32]);
    volume.extend([1, 1, SECTOR as u16].map(both_short).concat());
    volume.extend(both(10));
    volume.extend([18_u32.to_le_bytes(), [0; 4]].concat());
    volume.extend([19_u32.to_be_bytes(), [0; 4]].concat());
    volume.extend(entry(ROOT, bytes, 2, b"\0"));
    volume.resize(881, b' ');
    volume.push(1);
    let path = |root: [u8; 4], one: [u8; 2]| [&[1, 0][..], &root, &one, &[0, 0]].concat();
    let parts = [
        vec![0; 16 * SECTOR],
        volume,
        b"\xffCD001\x01".to_vec(),
        path((ROOT as u32).to_le_bytes(), [1, 0]),
        path(big(ROOT), [0, 1]),
        root,
    ];
    let mut image = Vec::new();
    for part in parts.iter().chain(files.iter().map(|(_, content)| content)) {
        image.extend_from_slice(part);
        pad(&mut image, SECTOR);
    }
    image
}
