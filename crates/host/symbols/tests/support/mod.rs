//! Programs by gcc, and images with debug information of one's own.
#![allow(dead_code, reason = "each test uses a part")]

/// A program that gcc makes of a source, without libraries; its entry point is `f`.
pub(crate) fn compiled(source: &str, kind: &str, options: &[&str]) -> Vec<u8> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let text = directory.path().join(format!("a.{kind}"));
    let program = directory.path().join("a");
    std::fs::write(&text, source).expect("a file");
    let mut gcc = std::process::Command::new("gcc");
    gcc.args(["-g", "-O2", "-nostdlib", "-static", "-Wl,-e,f"]);
    gcc.args(options).arg(&text).arg("-o").arg(&program);
    let status = gcc.current_dir(directory.path()).status();
    assert!(status.expect("gcc starts").success());
    std::fs::read(program).expect("a program")
}

/// Debug information of DWARF 5, written entry by entry, of one unit or of copies of it.
#[derive(Clone)]
pub(crate) struct Dwarf {
    abbreviations: Vec<u8>,
    number: u64,
    entries: Vec<u8>,
    copies: Vec<u8>,
    ranges: Vec<u8>,
    strings: Vec<u8>,
    lines: Vec<u8>,
    symbols: Vec<u8>,
}

/// Bytes of a unit's header.
const HEADER: usize = 12;

impl Dwarf {
    /// A unit with code from `begin` on.
    pub(crate) fn new(begin: u64, length: u32) -> Self {
        let mut dwarf = Self {
            abbreviations: Vec::new(),
            number: 0,
            entries: Vec::new(),
            copies: Vec::new(),
            ranges: Vec::new(),
            strings: Vec::new(),
            lines: Vec::new(),
            symbols: vec![0; 24],
        };
        let unit = dwarf.abbreviation(
            0x11,
            true,
            &[(0x11, 0x01), (0x12, 0x06), (0x10, 0x17), (0x74, 0x17)],
        );
        dwarf
            .entry(unit)
            .address(begin)
            .word(length)
            .word(0)
            .word(12);
        dwarf
    }

    /// A kind of entry: its tag, whether it has children, and its attributes with their forms.
    pub(crate) fn abbreviation(
        &mut self,
        tag: u64,
        children: bool,
        attributes: &[(u64, u64)],
    ) -> u64 {
        self.number += 1;
        leb(&mut self.abbreviations, self.number);
        leb(&mut self.abbreviations, tag);
        self.abbreviations.push(u8::from(children));
        for (name, form) in attributes.iter().chain([&(0, 0)]) {
            leb(&mut self.abbreviations, *name);
            leb(&mut self.abbreviations, *form);
        }
        self.number
    }

    /// Where the next entry stands in its unit.
    pub(crate) fn position(&self) -> u32 {
        (HEADER + self.entries.len()) as u32
    }

    pub(crate) fn entry(&mut self, kind: u64) -> &mut Self {
        leb(&mut self.entries, kind);
        self
    }

    pub(crate) fn address(&mut self, address: u64) -> &mut Self {
        self.entries.extend(address.to_le_bytes());
        self
    }

    pub(crate) fn word(&mut self, word: u32) -> &mut Self {
        self.entries.extend(word.to_le_bytes());
        self
    }

    pub(crate) fn byte(&mut self, byte: u8) -> &mut Self {
        self.entries.push(byte);
        self
    }

    /// One more range of the list at 16, which is number 0.
    pub(crate) fn range(&mut self, begin: u64, end: u64) {
        self.ranges.push(6);
        self.ranges.extend(begin.to_le_bytes());
        self.ranges.extend(end.to_le_bytes());
    }

    pub(crate) fn string(&mut self, text: &str) {
        self.strings.extend(text.as_bytes());
        self.strings.push(0);
    }

    pub(crate) fn symbol(&mut self, offset: u64) {
        self.symbols.extend([0, 0, 0, 0, 2, 0, 1, 0]);
        self.symbols.extend(offset.to_le_bytes());
        self.symbols.extend(1_u64.to_le_bytes());
    }

    /// A line table with so many files, each of which takes a byte.
    pub(crate) fn files(&mut self, count: u32) {
        let mut head = vec![1, 1, 1, 0xfb, 14, 1];
        head.extend([1, 1, 0x25, 1, 0]);
        head.extend([1, 1, 0x25]);
        leb(&mut head, u64::from(count));
        head.extend(std::iter::repeat_n(0, count as usize));
        let mut table = vec![5, 0, 8, 0];
        table.extend((head.len() as u32).to_le_bytes());
        table.extend(head);
        self.lines.extend((table.len() as u32).to_le_bytes());
        self.lines.extend(table);
    }

    /// The unit, as it is so far.
    pub(crate) fn unit(&self) -> Vec<u8> {
        let mut unit = ((HEADER - 4 + self.entries.len()) as u32)
            .to_le_bytes()
            .to_vec();
        unit.extend([5, 0, 1, 8, 0, 0, 0, 0]);
        unit.extend(&self.entries);
        unit
    }

    pub(crate) fn more(&mut self, unit: &[u8]) {
        self.copies.extend(unit);
    }

    /// An ELF file with these sections.
    pub(crate) fn image(&self) -> Vec<u8> {
        if self.lines.is_empty() {
            let mut with_lines = self.clone();
            with_lines.files(1);
            return with_lines.image();
        }
        let mut information = self.unit();
        information.extend(&self.copies);
        let mut ranges = ((12 + self.ranges.len() + 1) as u32).to_le_bytes().to_vec();
        ranges.extend([5, 0, 8, 0, 1, 0, 0, 0, 4, 0, 0, 0]);
        ranges.extend(&self.ranges);
        ranges.push(0);
        let mut abbreviations = self.abbreviations.clone();
        abbreviations.push(0);
        let sections: [(&str, u32, &[u8]); 7] = [
            (".debug_info", 1, &information),
            (".debug_abbrev", 1, &abbreviations),
            (".debug_rnglists", 1, &ranges),
            (".debug_str", 1, &self.strings),
            (".debug_line", 1, &self.lines),
            (".symtab", 2, &self.symbols),
            (".strtab", 3, &self.strings),
        ];
        let mut names = vec![0];
        let mut file = vec![0; 64];
        let mut headers = vec![0; 64];
        let mut add = |name: &str, kind: u32, content: &[u8], names: &mut Vec<u8>, link: u32| {
            headers.extend((names.len() as u32).to_le_bytes());
            headers.extend(kind.to_le_bytes());
            headers.extend([0; 16]);
            headers.extend((file.len() as u64).to_le_bytes());
            headers.extend((content.len() as u64).to_le_bytes());
            headers.extend(link.to_le_bytes());
            headers.extend([0; 20]);
            names.extend(name.as_bytes());
            names.push(0);
            file.extend(content);
            file.resize(file.len().next_multiple_of(8), 0);
        };
        for (name, kind, content) in &sections {
            add(name, *kind, content, &mut names, 7);
        }
        let mut all = names.clone();
        all.extend(b".shstrtab\0");
        add(".shstrtab", 3, &all, &mut names, 0);
        let start = file.len() as u64;
        file.extend(headers);
        file[..8].copy_from_slice(b"\x7fELF\x02\x01\x01\0");
        file[0x10..0x14].copy_from_slice(&[3, 0, 62, 0]);
        file[0x28..0x30].copy_from_slice(&start.to_le_bytes());
        file[0x34..0x40].copy_from_slice(&[64, 0, 56, 0, 0, 0, 64, 0, 9, 0, 8, 0]);
        file
    }
}

fn leb(to: &mut Vec<u8>, mut number: u64) {
    loop {
        let byte = (number & 0x7f) as u8;
        number >>= 7;
        to.push(if number == 0 { byte } else { byte | 0x80 });
        if number == 0 {
            break;
        }
    }
}
