//! An image laid out in memory, ready to be mapped into windows.
//!
//! ```text
//! the image's sealed file           a window
//! +-----------------+               +-----------------+ 0x10000
//! | gate area       |  one private  | gate area       |
//! | code            |  mapping, as  | code            |
//! | constants       | ------------> | constants       |  protected in place
//! | relocated       |    code       | relocated       |
//! | data, few zeros |               | data, few zeros |
//! +-----------------+               +-----------------+
//!                                   | many zeros      |  the reservation, writable
//!                                   | heap (brk)      |
//!                                   +-----------------+
//! ```
//! A mapping takes the kernel longer than a change of protection, and a page that is written nearly as
//! long as that. So neighbours are mapped together, what is not code is made writable at once, and only
//! pages with relocations are touched. The others are the file's until the domain writes to them.
//! Windows of domains that have gone wait here, mapped and reset, for the next domain of the image.

use crate::access::{Access, PAGE};
use crate::assembly::uses;
use crate::gates;
use crate::packed::Packed;
use crate::records::{Decided, Vacant};
use crate::regions::{Owner, Regions};
use crate::sealed;
use crate::stacks::Mapped;
use crate::window::Window;
use mullion_abi::{GATE_AREA_SIZE, GATE_BASE, HEAP_END, IMAGE_BASE, LABEL};
use mullion_report::error::Error;
use std::borrow::Cow;
use std::fs::File;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::ptr;
use std::sync::{Mutex, PoisonError};

/// What an executable segment's last page is filled with: `int3`.
const FILL: u8 = 0xcc;
/// Greatest content of a writable segment that a restart writes anew, in the pages that
/// are there: to write so much takes as long as a few page faults.
const REWRITTEN: u64 = 64 << 10;
/// Zero bytes behind such content that are written anew as well, not dropped.
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
pub struct ImageLayout {
    file: OwnedFd,
    parts: Vec<Part>,
    /// What every domain of the image has at first.
    regions: Regions,
    /// Where the heap begins: behind the last segment.
    end: u64,
    parked: Mutex<Vec<Parked>>,
    /// Windows get a copy of what is in the file, and not the file.
    anonymous: bool,
    /// `assembly::uses`.
    uses: u32,
    /// Offset of what every thread calls before its first call: a labelled instruction.
    thread_start: Option<u64>,
    thread_end: Option<u64>,
    /// Offset of the number of steps.
    steps: Option<u64>,
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
    pub(crate) window: Vacant,
    pub(crate) stacks: Mapped,
    /// It has not waited.
    pub(crate) is_fresh: bool,
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
    /// What a restart writes; without it, it drops the pages.
    rewritten: Option<Rewritten>,
    /// Those within `range`; none in code.
    relocations: Vec<Relocation>,
    /// The same, of words whose contents are the addends.
    packed: Packed,
}

/// The first bytes of a writable segment, as they are at first.
#[derive(Debug)]
struct Rewritten {
    content: Vec<u8>,
    /// Whole pages that it takes, with zeros behind it.
    pages: u64,
}

impl ImageLayout {
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
            rewritten: None,
            relocations: Vec::new(),
            packed: Packed::default(),
        }];
        let mut contents = vec![(0, Cow::Owned(gates::contents()))];
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
            let rewritten = Rewritten::of(segment);
            // Few zeros are in the file, too: they are then mapped with the content, or
            // with what is in front of them.
            let follows = parts.last().is_some_and(|part| part.end_in_file() == start);
            let in_file = match &rewritten {
                Some(rewritten) if content > 0 || follows => rewritten.pages,
                _ => content.next_multiple_of(PAGE),
            };
            if in_file > 0 {
                // Written from where it is: an image may be large.
                contents.push((position, Cow::Borrowed(segment.content)));
                let tail = fill(segment, in_file - content);
                contents.push((position + content, Cow::Owned(tail)));
            }
            regions.insert(range.clone(), segment.access, Owner::Image);
            parts.push(Part {
                range: range.clone(),
                in_file,
                position,
                access: segment.access,
                rewritten,
                relocations: Vec::new(),
                packed: Packed::default(),
            });
            end = range.end;
            position += in_file;
        }
        let pieces: Vec<_> = contents
            .iter()
            .map(|(position, bytes)| (*position, &**bytes))
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
            steps: None,
        })
    }

    /// Adds relocations of words whose contents are the addends: offsets of 8-byte words, not in
    /// code, in ascending order, none across another. They take no more memory than in an ELF
    /// file's `DT_RELR` table, however many there are.
    ///
    /// # Errors
    /// [`Error::Relocation`] for a place that is not so.
    pub fn with_packed(mut self, places: impl Iterator<Item = u32>) -> Result<Self, Error> {
        let mut index = 0;
        for place in places {
            let refused = Error::Relocation { offset: place };
            let start = u64::from(place);
            while self
                .parts
                .get(index)
                .is_some_and(|part| part.range.end <= start)
            {
                index += 1;
            }
            let part = self.parts.get_mut(index).filter(|part| part.holds(start));
            if !part.is_some_and(|part| part.packed.push(start)) {
                return Err(refused);
            }
        }
        Ok(self)
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

    /// Says that no instruction of the image accesses memory through `%gs`. Then
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

    /// Has every domain of the image keep its code in anonymous memory of its own, and not in a mapping
    /// of the image's file. Profilers look up the names of generated code in anonymous memory only
    /// (`perf` in `/tmp/perf-PID.map`). It takes the memory of the code, and the time to copy it, for
    /// each domain.
    #[must_use]
    pub fn in_anonymous_memory(mut self) -> Self {
        self.anonymous = true;
        self
    }

    /// In domains of the image every thread calls the instruction at `offset` before
    /// its first call, as by [`WindowDomain::set_thread_start`](crate::WindowDomain::set_thread_start),
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

    /// The image counts steps: the number that it has left lies at `offset`, in 8 bytes of its data.
    #[must_use]
    pub fn with_steps(mut self, offset: u64) -> Self {
        self.steps = Some(offset);
        self
    }

    pub(crate) fn steps(&self) -> Option<u64> {
        self.steps
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
        parked.map_or_else(|| self.fresh(), Ok)
    }

    fn fresh(&self) -> Result<Parked, Error> {
        let window = Vacant::new()?;
        self.map(window.window(), &window.decided())?;
        Ok(Parked {
            window,
            stacks: Mapped::default(),
            is_fresh: true,
        })
    }

    /// Maps windows in advance, until so many wait: as many domains of the image are then
    /// made in a third of the time. A window takes 4 GiB of address space, the mappings of
    /// a domain, and the image's pages with relocations. It waits until a domain takes it,
    /// or the image goes.
    ///
    /// # Errors
    /// No window or memory left; those that were mapped wait.
    pub fn prepare(&self, domains: usize) -> Result<(), Error> {
        while self.lock().len() < domains {
            let mut parked = self.fresh()?;
            parked.is_fresh = false;
            self.lock().push(parked);
        }
        Ok(())
    }

    /// Keeps a window that has been reset for the next domain, or gives it back.
    pub(crate) fn park(&self, mut parked: Parked) {
        parked.is_fresh = false;
        let mut all = self.lock();
        if all.len() < PARKED {
            all.push(parked);
        }
    }

    /// Whether as many windows wait as may.
    pub(crate) fn has_enough(&self) -> bool {
        self.lock().len() >= PARKED
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Parked>> {
        self.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Maps the image into an empty window, relocated: one mapping of the file, and what
    /// lies behind it out of the window's own reservation, in few steps. An anonymous image
    /// is all in the reservation; nobody runs it before its parts are protected.
    fn map(&self, window: &Window, decided: &Decided<'_>) -> Result<(), Error> {
        if !self.anonymous {
            self.map_file(window, decided)?;
        }
        // What is only read, too, relocated or not: with its neighbours it is one piece.
        let is_writable = |part: &&Part| self.anonymous || part.access != Access::ReadExecute;
        let writable = self.parts.iter().filter(is_writable);
        let writable = writable.map(|part| (part.range.clone(), Access::ReadWrite));
        protect(window, decided, writable)?;
        for part in &self.parts {
            if self.anonymous && part.in_file > 0 {
                part.read_into(window, self.file.as_fd())?;
            }
            part.relocate(window);
        }
        let is_so = |part: &&Part| match part.access {
            Access::ReadWrite => true,
            Access::ReadExecute => !self.anonymous && part.in_file == part.length(),
            _ => false,
        };
        let others = self.parts.iter().filter(|part| !is_so(part));
        let others = others.map(|part| (part.range.clone(), part.access));
        protect(window, decided, others)
    }

    /// Maps what is in the file, neighbours together, as code.
    fn map_file(&self, window: &Window, decided: &Decided<'_>) -> Result<(), Error> {
        let in_file: Vec<&Part> = self.parts.iter().filter(|part| part.in_file > 0).collect();
        for run in in_file.chunk_by(|part, next| part.end_in_file() == next.range.start) {
            if let (Some(first), Some(last)) = (run.first(), run.last()) {
                let range = first.range.start..last.end_in_file();
                let file = self.file.as_fd();
                window.map_copy(decided, range, Access::ReadExecute, file, first.position)?;
            }
        }
        Ok(())
    }

    /// Gives the writable segments of a window the contents that they had at
    /// first. Nobody runs in the window.
    pub(crate) fn reset(&self, window: &Window) -> Result<(), Error> {
        let writable = |part: &&Part| part.access == Access::ReadWrite;
        for part in self.parts.iter().filter(writable) {
            // Few pages stay: they are overwritten, which takes less than to free them and
            // to fault for new ones.
            let kept = part.rewritten.as_ref().map_or(0, |kept| kept.pages);
            if kept < part.length() {
                window.discard(part.range.start + kept..part.range.end)?;
            }
            match &part.rewritten {
                Some(rewritten) => rewritten.fill(window, part.range.start),
                None if self.anonymous => part.read_into(window, self.file.as_fd())?,
                None => {}
            }
            part.relocate(window);
        }
        Ok(())
    }
}

/// Protects pieces, in ascending order; neighbours with the same protection at once.
fn protect(
    window: &Window,
    decided: &Decided<'_>,
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
                    window.protect(decided, before, access)?;
                }
            }
        }
    }
    match pending {
        Some((range, access)) => window.protect(decided, range, access),
        None => Ok(()),
    }
}

impl Part {
    fn length(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// One past the last offset that is in the file.
    fn end_in_file(&self) -> u64 {
        self.range.start + self.in_file
    }

    /// Copies what is in the file to pages that are writable.
    fn read_into(&self, window: &Window, file: BorrowedFd<'_>) -> Result<(), Error> {
        let content = self.range.start..self.range.start + self.in_file;
        window.read_into(content, file, self.position)
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
        for place in self.packed.iter() {
            let place: *mut u64 =
                ptr::with_exposed_provenance_mut((window.base() + place) as usize);
            // SAFETY: the part is mapped readable and writable, and nobody runs in the window; `with_packed` found the
            // word within this segment. It holds what the image's file has there, the addend: no place is added
            // twice, and the segment's contents are fresh, here as at each relocation.
            unsafe {
                let addend = place.cast::<u32>().read_unaligned();
                place.write_unaligned(window.base() + u64::from(addend));
            }
        }
    }

    /// Whether a relocation may lie at `start`.
    fn holds(&self, start: u64) -> bool {
        self.access != Access::ReadExecute
            && self.range.start <= start
            && start + 8 <= self.range.end
    }
}

impl Rewritten {
    /// Nothing of a segment that is not writable, or is too large.
    fn of(segment: &Segment<'_>) -> Option<Self> {
        let content = segment.content.len() as u64;
        if segment.access != Access::ReadWrite || content > REWRITTEN {
            return None;
        }
        let length = u64::from(segment.length).next_multiple_of(PAGE);
        let pages = content.next_multiple_of(PAGE);
        let few = length - pages <= ZEROED;
        Some(Self {
            content: segment.content.to_vec(),
            pages: if few { length } else { pages },
        })
    }

    /// Writes the content, and zeros behind it, at `start` (an offset).
    fn fill(&self, window: &Window, start: u64) {
        let to: *mut u8 = ptr::with_exposed_provenance_mut((window.base() + start) as usize);
        let length = self.content.len();
        // SAFETY: the segment is no shorter than `pages`, which are no fewer than the
        // content takes (`of`: `ImageLayout::new` has refused content longer than the segment);
        // it is mapped readable and writable, and domains cannot change that; nobody
        // runs in the window.
        unsafe {
            ptr::copy_nonoverlapping(self.content.as_ptr(), to, length);
            to.add(length).write_bytes(0, self.pages as usize - length);
        }
    }
}

/// Gives a relocation to the segment that it lies in.
fn place(parts: &mut [Part], relocation: Relocation) -> Result<(), Error> {
    let start = u64::from(relocation.place);
    let holds = |part: &&mut Part| part.holds(start);
    let part = parts.iter_mut().find(holds).ok_or(Error::Relocation {
        offset: relocation.place,
    })?;
    part.relocations.push(relocation);
    Ok(())
}

/// What is behind a segment's content in its last page; the file has zeros where nothing is written.
fn fill(segment: &Segment<'_>, length: u64) -> Vec<u8> {
    match segment.access {
        Access::ReadExecute => vec![FILL; length as usize],
        _ => Vec::new(),
    }
}
