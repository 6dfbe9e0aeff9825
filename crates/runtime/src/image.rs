//! An image laid out in memory, ready to be mapped into windows.

use crate::error::Error;
use crate::regions::{Owner, Regions};
use crate::sealed;
use crate::window::{Access, PAGE, Window};
use mullion_abi::{HEAP_END, IMAGE_BASE};
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr;

/// What an executable segment's last page is filled with: `int3`.
const FILL: u8 = 0xcc;

/// A segment as its file describes it.
#[derive(Clone, Debug)]
pub struct Segment<'a> {
    /// Where it begins; a multiple of a page.
    pub offset: u32,
    /// Bytes in memory: those behind the content are zero.
    pub length: u32,
    /// What the domain may do with it.
    pub access: Access,
    /// The first bytes.
    pub content: &'a [u8],
}

/// A relocation: the word at `place` becomes the window's base plus `addend`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// Offset of the 8-byte word, not in code.
    pub place: u32,
    /// Offset that it names.
    pub addend: u32,
}

/// An image: its pages in a sealed file, mapped privately by every domain of it.
#[derive(Debug)]
pub struct Image {
    file: OwnedFd,
    parts: Vec<Part>,
    relocations: Vec<Relocation>,
    /// Where the heap begins: behind the last segment.
    end: u64,
}

/// A segment with its place in the file.
#[derive(Debug)]
struct Part {
    /// Whole pages, offsets in the window.
    range: Range<u64>,
    /// The first pages, which are in the file; the others are zero.
    in_file: u64,
    position: u64,
    access: Access,
}

impl Image {
    /// Lays out segments, in ascending order, and checks that they do not overlap.
    ///
    /// # Safety
    /// The content of executable segments is what the verifier accepted, at these
    /// offsets: once in a window, the processor runs it with nothing else checked.
    pub unsafe fn new(
        segments: &[Segment<'_>],
        relocations: Vec<Relocation>,
    ) -> Result<Self, Error> {
        let mut parts = Vec::new();
        let mut contents = Vec::new();
        let (mut end, mut position) = (IMAGE_BASE, 0);
        for segment in segments {
            let start = u64::from(segment.offset);
            let range = start..(start + u64::from(segment.length)).next_multiple_of(PAGE);
            let content = segment.content.len() as u64;
            let fits = start >= end && range.end <= HEAP_END && start.is_multiple_of(PAGE);
            if !fits || content > u64::from(segment.length) {
                return Err(Error::Segment {
                    offset: segment.offset,
                });
            }
            let in_file = content.next_multiple_of(PAGE);
            contents.push((position, padded(segment, in_file as usize)));
            parts.push(Part {
                range: range.clone(),
                in_file,
                position,
                access: segment.access,
            });
            end = range.end;
            position += in_file;
        }
        let pieces: Vec<_> = contents
            .iter()
            .map(|(position, bytes)| (*position, bytes.as_slice()))
            .collect();
        let image = Self {
            file: sealed::file(c"mullion-image", &pieces, position)?,
            parts,
            relocations,
            end,
        };
        image.check_relocations()?;
        Ok(image)
    }

    /// Offset of the first page behind the image.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.end
    }

    fn check_relocations(&self) -> Result<(), Error> {
        for relocation in &self.relocations {
            let place = u64::from(relocation.place);
            let inside = |part: &Part| {
                part.access != Access::ReadExecute
                    && part.range.start <= place
                    && place + 8 <= part.range.end
            };
            if !self.parts.iter().any(inside) {
                return Err(Error::Relocation {
                    offset: relocation.place,
                });
            }
        }
        Ok(())
    }

    /// Whether `offset` lies in an executable segment.
    pub(crate) fn is_code(&self, offset: u64) -> bool {
        let holds =
            |part: &Part| part.access == Access::ReadExecute && part.range.contains(&offset);
        self.parts.iter().any(holds)
    }

    /// Maps the image into an empty window, relocated.
    pub(crate) fn map(&self, window: &Window) -> Result<Regions, Error> {
        let mut regions = Regions::default();
        for part in &self.parts {
            let written = part.access != Access::ReadExecute && self.is_relocated(&part.range);
            let access = if written {
                Access::ReadWrite
            } else {
                part.access
            };
            let copied = part.range.start + part.in_file;
            if part.range.start < copied {
                window.map_copy(
                    part.range.start..copied,
                    access,
                    self.file.as_fd(),
                    part.position,
                )?;
            }
            if copied < part.range.end {
                window.map_zeroed(copied..part.range.end, access)?;
            }
            regions.insert(part.range.clone(), part.access, Owner::Image);
        }
        self.relocate(window);
        for part in &self.parts {
            if part.access == Access::Read && self.is_relocated(&part.range) {
                window.protect(part.range.clone(), part.access)?;
            }
        }
        Ok(regions)
    }

    fn is_relocated(&self, range: &Range<u64>) -> bool {
        self.relocations
            .iter()
            .any(|relocation| range.contains(&u64::from(relocation.place)))
    }

    fn relocate(&self, window: &Window) {
        for relocation in &self.relocations {
            let place: *mut u64 = ptr::with_exposed_provenance_mut(
                (window.base() + u64::from(relocation.place)) as usize,
            );
            // SAFETY: `check_relocations` found the word within a segment that is
            // not code, `map` has just mapped it readable and writable, and
            // nobody runs in the window yet.
            unsafe { place.write_unaligned(window.base() + u64::from(relocation.addend)) };
        }
    }
}

/// The segment's whole pages, as far as they have content.
fn padded(segment: &Segment<'_>, length: usize) -> Vec<u8> {
    let mut pages = segment.content.to_vec();
    let fill = if segment.access == Access::ReadExecute {
        FILL
    } else {
        0
    };
    pages.resize(length, fill);
    pages
}
