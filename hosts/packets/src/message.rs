//! What goes between the forwarder and a module's process: a batch's frames there, answers and changed frames back.
//!
//! ```text
//!   question: [ header (32 bytes), bytes of the frame, to a multiple of 4 ]...
//!   answer:   answers (4 bytes each), added (4), refused (4), behind (4 each),
//!             [ length (4), end (4), bytes ]... of each frame that was changed, and of each that was added,
//!             what was refused besides (4), reports (4), [ length (4), bytes ]...
//! ```
//! Numbers are little endian. Whoever reads a message believes no length in it.

use crate::batch::BATCH;
use crate::room::{ADDED, Contents, Header, ROOM, Slot};
use crate::share::REPORT;

/// Bytes of a question, and of an answer, at most: of an answer what most reports could take, too.
pub(crate) const QUESTION: usize = BATCH * (32 + ROOM);
pub(crate) const ANSWER: usize =
    (BATCH + ADDED) * (8 + ROOM) + REPORTS * (4 + REPORT as usize) + 4096;
/// Reports that come with an answer.
const REPORTS: usize = 256;
/// The answer that a frame was changed.
const CHANGED: i32 = 1;

/// Frames for a module.
#[derive(Debug)]
pub(crate) struct Question(pub(crate) Vec<u8>);

/// What a module has made of them.
#[derive(Debug)]
pub(crate) struct Answer(pub(crate) Vec<u8>);

fn put(bytes: &mut Vec<u8>, number: u32) {
    bytes.extend_from_slice(&number.to_le_bytes());
}

fn put_bytes(bytes: &mut Vec<u8>, frame: &[u8]) {
    bytes.extend_from_slice(frame);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

/// Reads from the front.
struct Rest<'b>(&'b [u8]);

impl<'b> Rest<'b> {
    fn number(&mut self) -> Option<u32> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*number))
    }

    fn bytes(&mut self, length: u32) -> Option<&'b [u8]> {
        let length = length as usize;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest.get(length.next_multiple_of(4) - length..)?;
        Some(bytes)
    }
}

impl Question {
    /// The first `count` frames.
    pub(crate) fn of(contents: &Contents, count: usize) -> Question {
        let mut bytes = Vec::new();
        for slot in contents.of.iter().take(count.min(BATCH)) {
            let header = &slot.header;
            let length = header.length.min(ROOM as u32);
            for number in [
                length,
                header.original,
                header.packet,
                header.payload,
                header.end,
                header.port,
                header.nanoseconds as u32,
                (header.nanoseconds >> 32) as u32,
            ] {
                put(&mut bytes, number);
            }
            put_bytes(&mut bytes, &slot.bytes[..length as usize]);
        }
        Question(bytes)
    }

    /// Puts the frames to their places: how many there are.
    pub(crate) fn put_into(&self, contents: &mut Contents) -> Option<usize> {
        let mut rest = Rest(&self.0);
        let mut count = 0;
        while !rest.0.is_empty() {
            let slot = contents.of.get_mut(count)?;
            let mut numbers = [0; 8];
            for number in &mut numbers {
                *number = rest.number()?;
            }
            let [length, original, packet, payload, end, port, low, high] = numbers;
            let bytes = rest.bytes(length)?;
            slot.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
            slot.header = Header {
                length,
                original,
                packet,
                payload,
                end,
                port,
                nanoseconds: u64::from(low) | u64::from(high) << 32,
            };
            count += 1;
        }
        Some(count)
    }
}

fn put_frame(bytes: &mut Vec<u8>, slot: &Slot) {
    // What is too long is refused by who looks at the length; its bytes are nobody's.
    let length = slot.header.length;
    put(bytes, length);
    put(bytes, slot.header.end);
    let shown = if length as usize <= ROOM {
        length as usize
    } else {
        0
    };
    put_bytes(bytes, &slot.bytes[..shown]);
}

fn take_frame(rest: &mut Rest<'_>, slot: &mut Slot) -> Option<()> {
    (slot.header.length, slot.header.end) = (rest.number()?, rest.number()?);
    if slot.header.length as usize <= ROOM {
        let bytes = rest.bytes(slot.header.length)?;
        slot.bytes[..bytes.len()].copy_from_slice(bytes);
    }
    Some(())
}

impl Answer {
    /// Of the first `count` frames, and those that were added.
    pub(crate) fn of(contents: &Contents, count: usize) -> Answer {
        let mut bytes = Vec::new();
        let count = count.min(BATCH);
        let answers = &contents.answers[..count];
        answers
            .iter()
            .for_each(|answer| put(&mut bytes, answer.cast_unsigned()));
        put(&mut bytes, contents.added);
        put(&mut bytes, contents.refused);
        let added = (contents.added as usize).min(ADDED);
        let behind = &contents.behind[..added];
        behind.iter().for_each(|behind| put(&mut bytes, *behind));
        for (slot, _) in contents
            .of
            .iter()
            .zip(answers)
            .filter(|(_, answer)| **answer == CHANGED)
        {
            put_frame(&mut bytes, slot);
        }
        for slot in contents.of.iter().skip(BATCH).take(added) {
            put_frame(&mut bytes, slot);
        }
        Answer(bytes)
    }

    /// Adds what the module has reported, and how much of that was refused.
    pub(crate) fn add_reports(&mut self, refused: u64, reports: &[Vec<u8>]) {
        put(&mut self.0, u32::try_from(refused).unwrap_or(u32::MAX));
        put(&mut self.0, reports.len() as u32);
        for report in reports {
            put(&mut self.0, report.len() as u32);
            put_bytes(&mut self.0, report);
        }
    }

    /// Puts it where the module itself would have left it: what was refused besides.
    pub(crate) fn put_into(
        &self,
        contents: &mut Contents,
        count: usize,
        report: &mut dyn FnMut(Vec<u8>),
    ) -> Option<u64> {
        let mut rest = Rest(&self.0);
        let count = count.min(BATCH);
        for answer in &mut contents.answers[..count] {
            *answer = rest.number()?.cast_signed();
        }
        (contents.added, contents.refused) = (rest.number()?, rest.number()?);
        let added = (contents.added as usize).min(ADDED);
        for behind in &mut contents.behind[..added] {
            *behind = rest.number()?;
        }
        let answers = contents.answers;
        let own = contents.of.iter_mut().zip(answers).take(count);
        for (slot, _) in own.filter(|(_, answer)| *answer == CHANGED) {
            take_frame(&mut rest, slot)?;
        }
        for slot in contents.of.iter_mut().skip(BATCH).take(added) {
            take_frame(&mut rest, slot)?;
        }
        let refused = rest.number()?;
        for _ in 0..rest.number()? {
            let length = rest.number()?;
            // No module can say more at once, and nobody who reads it later expects more.
            if u64::from(length) > REPORT {
                return None;
            }
            report(rest.bytes(length)?.to_vec());
        }
        rest.0.is_empty().then_some(refused.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::room::own;
    use proptest::prelude::*;

    #[test]
    fn frames_go_there_and_answers_come_back() {
        let (mut here, mut there) = (own(), own());
        for (at, slot) in here.of.iter_mut().take(3).enumerate() {
            slot.header.length = 60 + at as u32;
            slot.header.nanoseconds = 1 << 40 | 7;
            slot.bytes[..100].fill(at as u8);
        }
        assert_eq!(Question::of(&here, 3).put_into(&mut there), Some(3));
        assert_eq!(there.of[2].header.length, 62);
        assert_eq!(there.of[2].header.nanoseconds, 1 << 40 | 7);
        assert_eq!(&there.of[2].bytes[..63], [&[2; 62][..], &[0]].concat());
        there.answers[..3].copy_from_slice(&[0, 1, 2]);
        there.of[1].bytes[5] = 9;
        (there.added, there.behind[0]) = (1, 2);
        there.of[BATCH].header.length = 99999;
        let mut answer = Answer::of(&there, 3);
        answer.add_reports(4, &[b"told".to_vec()]);
        let mut told = Vec::new();
        let refused = answer.put_into(&mut here, 3, &mut |report| told.push(report));
        assert_eq!((refused, told), (Some(4), vec![b"told".to_vec()]));
        assert_eq!(here.answers[..3], [0, 1, 2]);
        assert_eq!((here.of[1].bytes[5], here.of[2].bytes[5]), (9, 2));
        assert_eq!((here.added, here.of[BATCH].header.length), (1, 99999));
        for length in 0..answer.0.len() {
            let cut = Answer(answer.0[..length].to_vec());
            assert_eq!(cut.put_into(&mut here, 3, &mut |_| {}), None, "{length}");
        }
        // A report that no module could make is none.
        for (length, expected) in [(4096, Some(0)), (4097, None)] {
            let mut answer = Answer::of(&there, 3);
            answer.add_reports(0, &[vec![b'x'; length]]);
            let mut count = 0;
            let refused = answer.put_into(&mut here, 3, &mut |_| count += 1);
            assert_eq!((refused, count == 1), (expected, expected.is_some()));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_answer_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..600), count in 0..32usize) {
            let mut contents = own();
            let _ = Question(bytes.clone()).put_into(&mut contents);
            let _ = Answer(bytes).put_into(&mut contents, count, &mut |_| {});
        }
    }
}
