//! What is relied on of an image file: its bytes, where its segments lie, how many imports it has, what it confines.
//!
//! All of it is said by `crates/window/image`, which is not trusted. So it is checked here, and kept.

use crate::Report;
use mullion_abi as abi;
use mullion_image::{Outline, Permission, Segment};
use mullion_rules::{Place, Rule, Violation};
use std::ops::Deref;
use std::sync::Arc;

const PAGE: u64 = 4096;

/// An image file. By itself it proves nothing. Dereferences to what the file says of itself.
#[derive(Clone, Debug)]
pub struct Image {
    bytes: Arc<[u8]>,
    /// Of its segments [`check`] has said yes. Nothing changes it afterwards.
    outline: Outline,
}

impl Image {
    /// Reads `bytes`, and reports what breaks a rule. None: too little is right to go on.
    pub(crate) fn read(bytes: Arc<[u8]>, report: &mut Report) -> Option<Self> {
        let outline = Outline::read(bytes.clone(), report)?;
        let checked = check(&outline, bytes.len());
        checked.map_err(|wrong| report.add(|| wrong)).ok()?;
        Some(Self { bytes, outline })
    }

    /// The file.
    #[must_use]
    pub fn bytes(&self) -> &Arc<[u8]> {
        &self.bytes
    }

    /// The segments, in ascending order, on distinct pages.
    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        &self.outline.segments
    }

    /// The bytes that a segment starts with; the rest of it is zero.
    #[must_use]
    pub fn contents(&self, segment: &Segment) -> &[u8] {
        self.bytes.get(segment.file.clone()).unwrap_or(&[])
    }

    /// The names of the imports; import `i` has gate slot 16 + `i`.
    #[must_use]
    pub fn imports(&self) -> &[String] {
        &self.outline.imports
    }

    /// What the image claims to confine; for a verified one, what it does.
    #[must_use]
    pub const fn protection(&self) -> abi::Protection {
        self.outline.protection
    }
}

impl Deref for Image {
    type Target = Outline;

    fn deref(&self) -> &Outline {
        &self.outline
    }
}

/// Whether code and data lie where a window has room for them, each piece apart from the others, and whether each
/// import has a slot.
fn check(outline: &Outline, length: usize) -> Result<(), Violation> {
    let wrong = |offset, rule| Violation {
        place: Place::Window(offset),
        rule,
        bytes: Vec::new(),
    };
    let mut free = abi::IMAGE_BASE;
    let mut taken = 0;
    let mut segments: Vec<&Segment> = outline.segments.iter().collect();
    for segment in &segments {
        let (start, content) = (segment.offset, segment.file.len() as u64);
        let end = start
            .checked_add(segment.size)
            .filter(|end| *end <= abi::HEAP_END)
            .ok_or(wrong(start, Rule::SegmentRange))?;
        if !start.is_multiple_of(PAGE) {
            return Err(wrong(start, Rule::SegmentAlignment));
        }
        if start < free {
            return Err(wrong(start, Rule::SegmentOverlap));
        }
        let is_code = matches!(segment.permission, Permission::ReadExecute);
        if content > segment.size || is_code && content != segment.size {
            return Err(wrong(start, Rule::SegmentSize));
        }
        free = end.next_multiple_of(PAGE);
    }
    // Otherwise a short file is a large image in memory: each segment's content is copied.
    segments.retain(|segment| !segment.file.is_empty());
    segments.sort_by_key(|segment| segment.file.start);
    for segment in segments {
        if segment.file.start < taken || segment.file.end > length {
            return Err(wrong(segment.offset, Rule::ElfTruncated));
        }
        taken = segment.file.end;
    }
    match outline.imports.len() as u64 <= abi::MAX_IMPORTS {
        true => Ok(()),
        false => Err(wrong(abi::IMAGE_BASE, Rule::ImportTable)),
    }
}

#[cfg(test)]
#[allow(dead_code, clippy::indexing_slicing, reason = "a test uses a part")]
#[path = "../tests/support/build.rs"]
mod build;

#[cfg(test)]
#[allow(clippy::indexing_slicing, clippy::expect_used, reason = "a test")]
mod tests {
    use super::*;
    use std::ops::Range;

    /// The rule that refuses the outline of a good file when `change` has been at it.
    fn refused(change: impl FnOnce(&mut Outline)) -> Option<Rule> {
        let built = build::build(&[0xc3], abi::Protection::ReadWriteCall);
        let bytes: Arc<[u8]> = built.bytes.into();
        let mut outline = Outline::read(bytes.clone(), &mut Report::new(1)).expect("an image");
        change(&mut outline);
        check(&outline, bytes.len()).err().map(|found| found.rule)
    }

    fn moved(range: &mut Range<usize>, by: usize) {
        *range = range.start + by..range.end + by;
    }

    /// Whatever is said of a file, no segment lies where another one or the run time does.
    #[test]
    fn what_is_said_of_segments_is_checked() {
        assert_eq!(refused(|_| ()), None);
        let rules = [
            refused(|said| said.segments[0].offset = abi::IMAGE_BASE - PAGE),
            refused(|said| said.segments[0].offset += 1),
            refused(|said| said.segments[1].offset = said.segments[0].offset),
            refused(|said| said.segments.swap(0, 1)),
            refused(|said| said.segments[2].offset = abi::HEAP_END),
            refused(|said| said.segments[2].size = u64::MAX),
            refused(|said| said.segments[2].size = 1),
            refused(|said| said.segments[0].size += 1),
            refused(|said| said.segments[2].permission = Permission::ReadExecute),
            refused(|said| moved(&mut said.segments[0].file, 0x1000)),
            refused(|said| moved(&mut said.segments[2].file, 0x10_0000)),
            refused(|said| {
                said.imports
                    .resize(abi::MAX_IMPORTS as usize + 1, String::new())
            }),
        ];
        let wanted = [
            Rule::SegmentOverlap,
            Rule::SegmentAlignment,
            Rule::SegmentOverlap,
            Rule::SegmentOverlap,
            Rule::SegmentRange,
            Rule::SegmentRange,
            Rule::SegmentSize,
            Rule::SegmentSize,
            Rule::SegmentSize,
            Rule::ElfTruncated,
            Rule::ElfTruncated,
            Rule::ImportTable,
        ];
        assert_eq!(rules, wanted.map(Some));
    }
}
