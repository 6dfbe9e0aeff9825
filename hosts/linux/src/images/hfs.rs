//! The file system of the Macintosh: an empty one.

use super::{big, block, pad};

const SECTOR: usize = 512;
const SECTORS: usize = 16 << 10;
/// An allocation block.
const BLOCK: usize = 1024;
/// The sector in which the first of them begins. The map of those in use lies in front of it. An odd number: with larger blocks the head and
/// the map's beginning would share one, and the module would lock that block twice.
const FIRST: usize = 9;
const MAP: usize = 3;
/// Blocks of the two trees, which lie at the beginning.
const EXTENTS: usize = 64;
const CATALOG: usize = 256;
const NAME: &[u8] = b"walls";

fn short(word: usize) -> [u8; 2] {
    (word as u16).to_be_bytes()
}

/// A tree of it.
struct Tree {
    /// Bytes of a node, how many there are, and of the longest key.
    node: usize,
    nodes: usize,
    key: usize,
}

impl Tree {
    /// All nodes: the first one says where all is, and the second one has the records, if there are any.
    fn nodes(&self, records: &[Vec<u8>]) -> Vec<u8> {
        let used = 1 + usize::from(!records.is_empty());
        let root = used - 1;
        let head = [
            &short(root)[..],
            &big(root),
            &big(records.len()),
            &big(root),
            &big(root),
            &short(self.node),
            &short(self.key),
            &big(self.nodes),
            &big(self.nodes - used),
            &[0; 2],
            &big(self.node * self.nodes),
            &[0; 2],
            &[0; 4],
            &[0; 64],
        ];
        // Which nodes are in use, to the node's end.
        let map = block(self.node - 8 - 0xf8, &[(0, &[!(0xff_u8 >> used)])]);
        let mut nodes = self.node_of(1, 0, &[head.concat(), vec![0; 128], map]);
        if !records.is_empty() {
            nodes.extend(self.node_of(0xff, 1, records));
        }
        nodes.resize(self.node * self.nodes, 0);
        nodes
    }

    /// A node of a kind and a height. At its end it has where its records begin.
    fn node_of(&self, kind: u8, height: u8, records: &[Vec<u8>]) -> Vec<u8> {
        let mut node = [&[0; 8][..], &[kind, height], &short(records.len()), &[0; 2]].concat();
        let mut places = Vec::new();
        for record in records {
            places.push(node.len());
            node.extend_from_slice(record);
        }
        places.push(node.len());
        node.resize(self.node - 2 * places.len(), 0);
        node.extend(places.iter().rev().flat_map(|place| short(*place)));
        node
    }
}

/// An empty file system of 8 MiB.
#[must_use]
pub fn hfs() -> Vec<u8> {
    let blocks = (SECTORS - FIRST - 2) * SECTOR / BLOCK;
    let used = EXTENTS + CATALOG;
    let tree = |blocks: usize, key: usize| Tree {
        node: SECTOR,
        nodes: blocks * BLOCK / SECTOR,
        key,
    };
    let key = |parent: usize, name: &[u8]| {
        let bytes = [6 + name.len() as u8, 0];
        let mut key = [&bytes[..], &big(parent), &[name.len() as u8], name].concat();
        pad(&mut key, 2);
        key
    };
    // The root has the number 2, and is in 1. A second record says how it is called.
    let folder = block(70, &[(0, &[1]), (6, &big(2))]);
    let thread = block(
        46,
        &[
            (0, &[3]),
            (10, &big(1)),
            (14, &[NAME.len() as u8]),
            (15, NAME),
        ],
    );
    let records = [
        [key(1, NAME), folder].concat(),
        [key(2, b""), thread].concat(),
    ];
    let extent = |from: usize, blocks: usize| [short(from), short(blocks)].concat();
    let fields: [(usize, &[u8]); 17] = [
        (0, b"BD"),
        // It was unmounted.
        (10, &short(0x100)),
        (14, &short(MAP)),
        (18, &short(blocks)),
        (20, &big(BLOCK)),
        (24, &big(4 * BLOCK)),
        (28, &short(FIRST)),
        (30, &big(16)),
        (34, &short(blocks - used)),
        (36, &[NAME.len() as u8]),
        (37, NAME),
        (74, &big(EXTENTS * BLOCK)),
        (78, &big(CATALOG * BLOCK)),
        (130, &big(EXTENTS * BLOCK)),
        (134, &extent(0, EXTENTS)),
        (146, &big(CATALOG * BLOCK)),
        (150, &extent(EXTENTS, CATALOG)),
    ];
    let head = block(SECTOR, &fields);
    let map = block((FIRST - MAP) * SECTOR, &[(0, &vec![0xff; used / 8][..])]);
    let parts = [
        vec![0; 2 * SECTOR],
        head.clone(),
        map,
        tree(EXTENTS, 7).nodes(&[]),
        tree(CATALOG, 37).nodes(&records),
    ];
    let mut image = parts.concat();
    image.resize((SECTORS - 2) * SECTOR, 0);
    image.extend(head);
    pad(&mut image, SECTORS * SECTOR);
    image
}
