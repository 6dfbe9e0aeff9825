//! The block that an entry point is called with: laid out as the initial stack
//! of a Linux process (System V AMD64 supplement, figure 3.9).
//!
//! ```text
//! address ->  argc
//!             argv[0] ... argv[argc - 1]  0
//!             environment ...             0
//!             auxiliary vector: AT_PAGESZ, AT_RANDOM, AT_SECURE, AT_PHDR ... AT_NULL
//!             16 random bytes, strings
//! ```
//!
//! This crate is not trusted. It makes bytes, which the loader writes into memory of the domain that they are for. So a
//! fault here starts a domain with other arguments, or ends it at its start.
#![forbid(unsafe_code)]

/// Bytes of a page.
const PAGE: u64 = 4096;

const AT_NULL: u64 = 0;
const AT_PHDR: u64 = 3;
const AT_PHENT: u64 = 4;
const AT_PHNUM: u64 = 5;
const AT_PAGESZ: u64 = 6;
const AT_SECURE: u64 = 23;
const AT_RANDOM: u64 = 25;

const PT_TLS: u32 = 7;
/// Length of a program header, in bytes.
const HEADER: u64 = 56;
const RANDOM: u64 = 16;

/// Where the initial content of a thread's thread-local storage lies, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlsSource {
    /// Its address.
    pub address: u64,
    /// Bytes that are copied.
    pub file_size: u64,
    /// Bytes in all; the rest is zero.
    pub size: u64,
    /// A power of two.
    pub alignment: u64,
}

/// What an image is started with.
#[derive(Clone, Debug)]
pub struct Start {
    arguments: Vec<Vec<u8>>,
    environment: Vec<Vec<u8>>,
    /// What `AT_RANDOM` names: the C library's seed for its own protections.
    random: [u8; RANDOM as usize],
}

impl Start {
    /// The arguments, the program's name first, and the environment, `NAME=value` each; with random bytes of the
    /// kernel's. Without those the C library's protection against itself is weaker. No wall is.
    #[must_use]
    pub fn new(arguments: Vec<Vec<u8>>, environment: Vec<Vec<u8>>) -> Self {
        let mut random = [0; RANDOM as usize];
        let _unseeded = getrandom::fill(&mut random);
        Self {
            arguments,
            environment,
            random,
        }
    }

    /// For an extension that has this name.
    #[must_use]
    pub fn extension(name: &str) -> Self {
        Self::new(vec![name.replace('\0', "").into_bytes()], Vec::new())
    }

    fn strings(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.arguments.iter().chain(&self.environment)
    }

    /// Whether a string holds a zero byte: no program could see what follows.
    #[must_use]
    pub fn holds_zero(&self) -> bool {
        self.strings().any(|string| string.contains(&0))
    }

    /// Bytes of the block in front of the program header.
    fn words(&self) -> u64 {
        let words = 1 + self.arguments.len() + 1 + self.environment.len() + 1 + 2 * 7;
        8 * words as u64
    }

    /// Bytes of the block.
    #[must_use]
    pub fn length(&self) -> u64 {
        let bytes: usize = self.strings().map(|string| string.len() + 1).sum();
        self.words() + HEADER + RANDOM + bytes as u64
    }

    /// The block at the address `block`, for an image that has this thread-local template.
    #[must_use]
    pub fn layout(&self, block: u64, template: Option<TlsSource>) -> Vec<u8> {
        let header = block + self.words();
        let random = header + HEADER;
        let mut next = random + RANDOM;
        let mut place = |string: &Vec<u8>| {
            let here = next;
            next += string.len() as u64 + 1;
            here
        };
        let mut list = vec![self.arguments.len() as u64];
        list.extend(self.arguments.iter().map(&mut place));
        list.push(0);
        list.extend(self.environment.iter().map(&mut place));
        list.push(0);
        list.extend([AT_PAGESZ, PAGE, AT_SECURE, 0, AT_RANDOM, random]);
        list.extend([AT_PHENT, HEADER, AT_PHDR, header]);
        list.extend([AT_PHNUM, u64::from(template.is_some()), AT_NULL, 0]);
        let mut bytes: Vec<u8> = list.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend(template.map_or([0; HEADER as usize], thread_local_header));
        bytes.extend(self.random);
        for string in self.strings() {
            bytes.extend(string);
            bytes.push(0);
        }
        bytes
    }
}

/// A program header with the image's thread-local template, for the C library.
/// Its address is the whole one: the library adds no base, as it sees no PT_PHDR.
fn thread_local_header(template: TlsSource) -> [u8; HEADER as usize] {
    let mut header = [0; HEADER as usize];
    header[..4].copy_from_slice(&PT_TLS.to_le_bytes());
    for (at, value) in [
        (16, template.address),
        (32, template.file_size),
        (40, template.size),
        (48, template.alignment),
    ] {
        header[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
    header
}
