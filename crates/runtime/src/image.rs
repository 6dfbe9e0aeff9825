//! An image laid out in memory, ready to be mapped into windows.
//!
//! ```text
//! the image's sealed file           a window
//! +-----------------+               +-----------------+ 0x10000
//! | gate area       |  one private  | gate area       |
//! | constants       |  mapping, as  | constants       |  protected in place
//! | code            | ------------> | code            |
//! | relocated       |    code       | relocated       |
//! | large data      |               | large data      |
//! +-----------------+               +-----------------+
//!                                   | data            |  the reservation, writable, and
//!                                   | zero            |  a copy of what is in it
//!                                   | heap (brk)      |
//!                                   +-----------------+
//! ```
//! A mapping takes the kernel longer than a change of protection, and both longer
//! than to copy a few pages: so neighbours are mapped together, and data lie in the
//! window's reservation, made writable.
//! Windows of domains that have gone wait here, mapped and reset, for the next
//! domain of the image.

use crate::error::Error;
use crate::gates;
use crate::regions::{Owner, Regions};
use crate::sealed;
use crate::stacks::Mapped;
use crate::trampoline::uses;
use crate::window::{Access, PAGE, Window};
use mullion_abi::{GATE_AREA_SIZE, GATE_BASE, HEAP_END, IMAGE_BASE, LABEL};
use std::fs::File;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::ptr;
use std::sync::{Mutex, PoisonError};

/// What an executable segment's last page is filled with: `int3`.
const FILL: u8 = 0xcc;
/// Greatest content of a writable segment that is copied into anonymous memory:
/// a copy of so much takes as long as a few page faults.
const COPIED: u64 = 64 << 10;
/// Zero bytes behind such content that are written anew by a restart, not dropped.
const ZEROED: u64 = 16 << 10;
/// Windows that wait for the next domain of an image.
const PARKED: usize = 16;

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
    /// What every domain of the image has at first.
    regions: Regions,
    /// Where the heap begins: behind the last segment.
    end: u64,
    parked: Mutex<Vec<Parked>>,
    /// Windows get a copy of what is in the file, and not the file.
    anonymous: bool,
    /// `trampoline::uses`.
    uses: u32,
    /// Offset of what every thread calls before its first call: a labelled instruction.
    thread_start: Option<u64>,
    thread_end: Option<u64>,
}

/// Whether instructions of an image can see or change floating-point control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FloatingPoint {
    /// x87 or MMX registers, or the x87 control word.
    pub x87: bool,
    /// The SSE control and status word.
    pub mxcsr: bool,
}

/// A window in which the image is mapped as in a new domain.
#[derive(Debug)]
pub(crate) struct Parked {
    pub(crate) window: Window,
    pub(crate) stacks: Mapped,
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
    /// The content, if it is copied and not mapped.
    copied: Option<Vec<u8>>,
    /// Those within `range`; none in code.
    relocations: Vec<Relocation>,
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
        let mut parts = vec![Part {
            range: GATE_BASE..GATE_BASE + GATE_AREA_SIZE,
            in_file: GATE_AREA_SIZE,
            position: 0,
            access: Access::ReadExecute,
            copied: None,
            relocations: Vec::new(),
        }];
        let mut contents = vec![(0, gates::contents())];
        let mut regions = Regions::default();
        let (mut end, mut position) = (IMAGE_BASE, GATE_AREA_SIZE);
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
            // What is only read stays in the file, relocated or not: neighbours that
            // are protected alike are one mapping.
            let copied = content <= COPIED && segment.access == Access::ReadWrite;
            let in_file = if copied {
                0
            } else {
                content.next_multiple_of(PAGE)
            };
            if in_file > 0 {
                contents.push((position, padded(segment, in_file as usize)));
            }
            regions.insert(range.clone(), segment.access, Owner::Image);
            parts.push(Part {
                range: range.clone(),
                in_file,
                position,
                access: segment.access,
                copied: copied.then(|| segment.content.to_vec()),
                relocations: Vec::new(),
            });
            end = range.end;
            position += in_file;
        }
        let pieces: Vec<_> = contents
            .iter()
            .map(|(position, bytes)| (*position, bytes.as_slice()))
            .collect();
        for relocation in relocations {
            place(&mut parts, relocation)?;
        }
        Ok(Self {
            file: sealed::file(c"mullion-image", &pieces, position)?,
            parts,
            regions,
            end,
            parked: Mutex::default(),
            anonymous: false,
            uses: uses::X87 | uses::MXCSR | uses::GS,
            thread_start: None,
            thread_end: None,
        })
    }

    /// Says what the image's instructions can do with floating-point control:
    /// anything, unless this says otherwise. Calls that need not save it are faster.
    ///
    /// # Safety
    /// What is said not to be used occurs in no executable segment: then nothing
    /// is saved, cleared or restored.
    #[must_use]
    pub unsafe fn with_floating_point(mut self, used: FloatingPoint) -> Self {
        let x87 = if used.x87 { uses::X87 } else { 0 };
        let mxcsr = if used.mxcsr { uses::MXCSR } else { 0 };
        self.uses = x87 | mxcsr | self.uses & uses::GS;
        self
    }

    /// Says that no instruction of the image accesses memory through `%gs`: then
    /// the base is not written when its domains are entered, which takes longer
    /// than the rest of a call.
    ///
    /// # Safety
    /// None does, in any executable segment; reads that nothing confines included.
    #[must_use]
    pub unsafe fn without_gs(mut self) -> Self {
        self.uses &= !uses::GS;
        self
    }

    /// Has every domain of the image keep its code in anonymous memory of its own, and
    /// not in a mapping of the image's file: profilers look up the names of generated code
    /// in anonymous memory only (`perf` in `/tmp/perf-PID.map`). It takes the memory of
    /// the code, and the time to copy it, for each domain.
    #[must_use]
    pub fn in_anonymous_memory(mut self) -> Self {
        self.anonymous = true;
        self
    }

    /// In domains of the image every thread calls the instruction at `offset` before
    /// its first call, as by [`Domain::set_thread_start`](crate::Domain::set_thread_start),
    /// and again after a restart. Nothing, if no label is in front of it.
    #[must_use]
    pub fn with_thread_start(mut self, offset: u64) -> Self {
        self.thread_start = self.is_labelled(offset).then_some(offset);
        self
    }

    /// In domains of the image every thread that ends, and has called the domain, calls the
    /// instruction at `offset`, in at most [`THREAD_END`](crate::THREAD_END). Nothing, if
    /// no label is in front of it.
    #[must_use]
    pub fn with_thread_end(mut self, offset: u64) -> Self {
        self.thread_end = self.is_labelled(offset).then_some(offset);
        self
    }

    /// Whether the instruction at `offset`, in code, has a label in front.
    fn is_labelled(&self, offset: u64) -> bool {
        let label = offset.saturating_sub(LABEL.to_le_bytes().len() as u64);
        let holds = |part: &&Part| {
            part.access == Access::ReadExecute
                && part.range.start >= IMAGE_BASE
                && part.range.contains(&label)
                && part.range.contains(&offset)
        };
        let Some(part) = self.parts.iter().find(holds) else {
            return false;
        };
        let mut bytes = [0; 4];
        let position = part.position + (label - part.range.start);
        let file = self.file.try_clone().map(File::from);
        let read = file.and_then(|file| file.read_exact_at(&mut bytes, position));
        read.is_ok() && bytes == LABEL.to_le_bytes()
    }

    pub(crate) fn thread_start(&self) -> Option<u64> {
        self.thread_start
    }

    pub(crate) fn thread_end(&self) -> Option<u64> {
        self.thread_end
    }

    pub(crate) fn uses(&self) -> u32 {
        self.uses
    }

    /// Offset of the first page behind the image.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// What a new domain of the image has mapped.
    pub(crate) fn regions(&self) -> &Regions {
        &self.regions
    }

    /// Whether `offset` lies in an executable segment.
    pub(crate) fn is_code(&self, offset: u64) -> bool {
        let holds = |part: &Part| {
            part.access == Access::ReadExecute
                && part.range.start >= IMAGE_BASE
                && part.range.contains(&offset)
        };
        self.parts.iter().any(holds)
    }

    /// A window with the image as in a new domain: a parked one, or one newly mapped.
    pub(crate) fn window(&self) -> Result<Parked, Error> {
        let parked = self.lock().pop();
        if let Some(parked) = parked {
            return Ok(parked);
        }
        let window = Window::new()?;
        self.map(&window)?;
        Ok(Parked {
            window,
            stacks: Mapped::default(),
        })
    }

    /// Keeps a window that has been reset for the next domain, or gives it back.
    pub(crate) fn park(&self, parked: Parked) {
        let mut all = self.lock();
        if all.len() < PARKED {
            all.push(parked);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Parked>> {
        self.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Maps the image into an empty window, relocated: one mapping of the file, and what
    /// lies behind it out of the window's own reservation, in few steps. An anonymous image
    /// is all in the reservation; nobody runs it before its parts are protected.
    fn map(&self, window: &Window) -> Result<(), Error> {
        if !self.anonymous {
            self.map_file(window)?;
        }
        let is_written = |part: &&Part| {
            self.anonymous || part.access == Access::ReadWrite || !part.relocations.is_empty()
        };
        let written = self.parts.iter().filter(is_written);
        let written = written.map(|part| (part.range.clone(), Access::ReadWrite));
        protect(window, written)?;
        for part in &self.parts {
            if self.anonymous && part.in_file > 0 {
                part.read_into(window, self.file.as_fd())?;
            }
            part.fill(window);
            part.relocate(window);
        }
        let is_so = |part: &&Part| match part.access {
            Access::ReadWrite => true,
            Access::ReadExecute => !self.anonymous && part.in_file == part.length(),
            _ => false,
        };
        let others = self.parts.iter().filter(|part| !is_so(part));
        protect(window, others.map(|part| (part.range.clone(), part.access)))
    }

    /// Maps what is in the file, neighbours together, as code.
    fn map_file(&self, window: &Window) -> Result<(), Error> {
        let end = |part: &Part| part.range.start + part.in_file;
        let in_file: Vec<&Part> = self.parts.iter().filter(|part| part.in_file > 0).collect();
        for run in in_file.chunk_by(|part, next| end(part) == next.range.start) {
            if let (Some(first), Some(last)) = (run.first(), run.last()) {
                let range = first.range.start..end(last);
                let file = self.file.as_fd();
                window.map_copy(range, Access::ReadExecute, file, first.position)?;
            }
        }
        Ok(())
    }

    /// Gives the writable segments of a window the contents that they had at
    /// first. Nobody runs in the window.
    pub(crate) fn reset(&self, window: &Window) -> Result<(), Error> {
        let writable = |part: &&Part| part.access == Access::ReadWrite;
        for part in self.parts.iter().filter(writable) {
            let length = part.copied.as_ref().map_or(0, Vec::len) as u64;
            // The pages with copied content stay, and few others: they are overwritten,
            // which takes less than to free them and to fault for new ones.
            let mut kept = part.range.start + length.next_multiple_of(PAGE);
            if part.copied.is_some() && part.range.end - kept <= ZEROED {
                // SAFETY: as in `fill`: the part is readable and writable.
                unsafe { window.zero(kept..part.range.end) };
                kept = part.range.end;
            }
            if kept < part.range.end {
                window.discard(kept..part.range.end)?;
            }
            if self.anonymous {
                part.read_into(window, self.file.as_fd())?;
            }
            part.fill(window);
            part.relocate(window);
        }
        Ok(())
    }
}

/// Protects pieces, in ascending order; neighbours with the same protection at once.
fn protect(
    window: &Window,
    pieces: impl Iterator<Item = (Range<u64>, Access)>,
) -> Result<(), Error> {
    let mut pending: Option<(Range<u64>, Access)> = None;
    for (range, access) in pieces {
        match &mut pending {
            Some((before, same)) if before.end == range.start && *same == access => {
                before.end = range.end;
            }
            _ => {
                if let Some((before, access)) = pending.replace((range, access)) {
                    window.protect(before, access)?;
                }
            }
        }
    }
    match pending {
        Some((range, access)) => window.protect(range, access),
        None => Ok(()),
    }
}

impl Part {
    fn length(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Copies what is in the file to pages that are writable.
    fn read_into(&self, window: &Window, file: BorrowedFd<'_>) -> Result<(), Error> {
        let content = self.range.start..self.range.start + self.in_file;
        window.read_into(content, file, self.position)
    }

    /// Copies the content that is not mapped, and zeroes the rest of its last page.
    fn fill(&self, window: &Window) {
        let Some(content) = &self.copied else {
            return;
        };
        let to: *mut u8 =
            ptr::with_exposed_provenance_mut((window.base() + self.range.start) as usize);
        let rest = content.len().next_multiple_of(PAGE as usize) - content.len();
        // SAFETY: `new` made the part's range at least as long as the content's
        // whole pages; `map` has mapped it readable and writable, and domains
        // cannot change that; nobody runs in the window.
        unsafe {
            ptr::copy_nonoverlapping(content.as_ptr(), to, content.len());
            to.add(content.len()).write_bytes(0, rest);
        }
    }

    fn relocate(&self, window: &Window) {
        for relocation in &self.relocations {
            let place: *mut u64 = ptr::with_exposed_provenance_mut(
                (window.base() + u64::from(relocation.place)) as usize,
            );
            // SAFETY: `place` found the word within this segment, which is not code
            // and mapped readable and writable (in `map`, or for
            // good), and nobody runs in the window.
            unsafe { place.write_unaligned(window.base() + u64::from(relocation.addend)) };
        }
    }
}

/// Gives a relocation to the segment that it lies in.
fn place(parts: &mut [Part], relocation: Relocation) -> Result<(), Error> {
    let start = u64::from(relocation.place);
    let holds = |part: &&mut Part| {
        part.access != Access::ReadExecute
            && part.range.start <= start
            && start + 8 <= part.range.end
    };
    let part = parts.iter_mut().find(holds).ok_or(Error::Relocation {
        offset: relocation.place,
    })?;
    part.relocations.push(relocation);
    Ok(())
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
