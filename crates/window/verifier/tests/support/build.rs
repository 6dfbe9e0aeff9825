//! Images from bytes, without assembler and linker.
//!
//! ```text
//! file    0  header, 5 program headers
//!    0x1000  code at offset 0x20000: label, then the given bytes
//!         .  constants: note, import record, export record, RELA table
//!         .  data: 4096 bytes, of which the file holds 64; dynamic section first
//! ```

use mullion_abi as abi;

/// Where the code of a built image starts in the window, and in the file.
pub(crate) const CODE: u64 = abi::IMAGE_BASE;
/// File offset of the code.
pub(crate) const CODE_FILE: usize = 0x1000;
/// The entry: the first of the given bytes.
pub(crate) const ENTRY: u64 = CODE + abi::LABEL_NOP.len() as u64;

/// A built image, and where its parts lie in the file.
pub(crate) struct Built {
    pub(crate) bytes: Vec<u8>,
    /// Offset in the window, and in the file, of the constants.
    pub(crate) constants: (u64, usize),
    /// Offset in the window, and in the file, of the data.
    pub(crate) data: (u64, usize),
    /// File offset of the note.
    pub(crate) note: usize,
    /// File offset of the import records.
    pub(crate) imports: usize,
    /// File offset of the export records.
    pub(crate) exports: usize,
    /// File offset of the RELA table, of one entry.
    pub(crate) rela: usize,
}

fn put(bytes: &mut Vec<u8>, at: usize, content: &[u8]) {
    if bytes.len() < at + content.len() {
        bytes.resize(at + content.len(), 0);
    }
    bytes[at..at + content.len()].copy_from_slice(content);
}

fn record(name: &str, head: &[u8]) -> Vec<u8> {
    let mut record = [head, name.as_bytes()].concat();
    record.resize(abi::RECORD_SIZE as usize, 0);
    record
}

/// An image with `code` behind its entry's label, and one import.
pub(crate) fn build(code: &[u8], protection: abi::Protection) -> Built {
    let text = [&abi::LABEL_NOP[..], code].concat();
    let page = |length: usize| length.next_multiple_of(0x1000);
    let constants = (CODE + page(text.len()) as u64, CODE_FILE + page(text.len()));
    let data = (constants.0 + 0x1000, constants.1 + 0x1000);
    let (note, imports, exports, rela) = (
        constants.1,
        constants.1 + 0x100,
        constants.1 + 0x140,
        constants.1 + 0x200,
    );
    let window = |file: usize| (constants.0 + (file - constants.1) as u64) as u32;
    let mut bytes = Vec::new();
    put(&mut bytes, 0, b"\x7fELF\x02\x01\x01");
    for (at, value) in [(16, 3_u16), (18, 62), (52, 64), (54, 56), (56, 5), (58, 64)] {
        put(&mut bytes, at, &value.to_le_bytes());
    }
    put(&mut bytes, 20, &1_u32.to_le_bytes());
    put(&mut bytes, 24, &ENTRY.to_le_bytes());
    put(&mut bytes, 32, &64_u64.to_le_bytes());
    let headers = [
        (
            1_u32,
            5_u32,
            (CODE, CODE_FILE),
            text.len() as u64,
            text.len() as u64,
        ),
        (1, 4, constants, 0x300, 0x300),
        (1, 6, data, 0x80, 0x1000),
        (2, 6, data, 0x40, 0x40),
        (4, 4, constants, 56, 56),
    ];
    for (number, (kind, flags, (address, file), file_size, size)) in headers.into_iter().enumerate()
    {
        let at = 64 + number * 56;
        put(&mut bytes, at, &kind.to_le_bytes());
        put(&mut bytes, at + 4, &flags.to_le_bytes());
        for (field, value) in [file as u64, address, address, file_size, size, 0x1000]
            .into_iter()
            .enumerate()
        {
            put(&mut bytes, at + 8 + field * 8, &value.to_le_bytes());
        }
    }
    put(&mut bytes, CODE_FILE, &text);
    let words = [
        1,
        protection as u32,
        1,
        window(imports),
        window(exports),
        window(exports),
        window(exports) + 64,
        0,
        0,
    ];
    let words: Vec<u8> = words
        .iter()
        .flat_map(|word: &u32| word.to_le_bytes())
        .collect();
    let head: Vec<u8> = [8_u32, 36, abi::NOTE_TYPE]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    put(
        &mut bytes,
        note,
        &[&head[..], &abi::NOTE_NAME, &words].concat(),
    );
    put(&mut bytes, imports, &record("import", &[]));
    let distance = ENTRY as i32 - window(exports) as i32;
    put(
        &mut bytes,
        exports,
        &record("export", &distance.to_le_bytes()),
    );
    let entry: Vec<u8> = [data.0 + 0x60, 8, 0x1234]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    put(&mut bytes, rela, &entry);
    let dynamic = [7, u64::from(window(rela)), 8, 24, 9, 24, 0, 0];
    let dynamic: Vec<u8> = dynamic.iter().flat_map(|word| word.to_le_bytes()).collect();
    put(&mut bytes, data.1, &dynamic);
    put(&mut bytes, data.1 + 0x80 - 1, &[0]);
    Built {
        bytes,
        constants,
        data,
        note,
        imports,
        exports,
        rela,
    }
}
