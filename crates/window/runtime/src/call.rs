//! What a call takes and gives.

use mullion_report::refused::CallError;
use std::ptr;
use std::sync::Arc;

/// Integer arguments in registers.
pub(crate) const REGISTERS: usize = 6;
/// Integer arguments that an [`CallArguments`] holds without further memory, beyond
/// those in registers.
const INLINE: usize = 8;
/// Greatest number of integer arguments.
pub const MAX_ARGUMENTS: usize = 64;

/// What to call a domain's function with.
#[derive(Clone, Debug, Default)]
pub struct CallArguments {
    /// Those in registers, and the first ones on the stack.
    words: [u64; REGISTERS + INLINE],
    /// How many there are.
    count: u32,
    /// Those beyond the registers, if `words` has no room for them.
    many: Option<Box<[u64]>>,
    vectors: Option<Box<[u128; 8]>>,
}

impl CallArguments {
    /// Integers and pointers, at most [`MAX_ARGUMENTS`]: six in registers, where
    /// those not given are 0, the others on the data stack.
    ///
    /// # Panics
    /// If there are more.
    #[inline]
    #[must_use]
    pub fn new(integers: &[u64]) -> Self {
        // Place by place: a loop would become a call of memmove, half as long as a call.
        let words = std::array::from_fn(|place| integers.get(place).copied().unwrap_or(0));
        let far = integers.len() > words.len();
        Self {
            words,
            count: integers.len() as u32,
            many: far.then(|| many(&integers[REGISTERS..])),
            vectors: None,
        }
    }

    /// One more integer or pointer, behind the others.
    ///
    /// # Panics
    /// If there are [`MAX_ARGUMENTS`] already.
    #[inline]
    pub fn push(&mut self, integer: u64) {
        match self.words.get_mut(self.count as usize) {
            Some(place) => *place = integer,
            None => {
                let stacked = [self.stacked(), &[integer]].concat();
                self.many = Some(many(&stacked));
            }
        }
        self.count += 1;
    }

    /// Up to eight floating-point numbers as well.
    ///
    /// # Panics
    /// If there are more than eight.
    #[must_use]
    pub fn with_doubles(mut self, doubles: &[f64]) -> Self {
        self.set_doubles(doubles);
        self
    }

    /// As [`CallArguments::with_doubles`].
    ///
    /// # Panics
    /// As there.
    pub fn set_doubles(&mut self, doubles: &[f64]) {
        let mut vectors = Box::new([0; 8]);
        for (place, double) in vectors[..doubles.len()].iter_mut().zip(doubles) {
            *place = u128::from(double.to_bits());
        }
        self.vectors = Some(vectors);
    }

    /// The registers of integers.
    #[inline]
    pub(crate) fn integers(&self) -> &[u64; REGISTERS] {
        let (registers, _) = self.words.split_at(REGISTERS);
        // Never the second: the array is longer than that.
        registers.try_into().unwrap_or(&[0; REGISTERS])
    }

    /// Those for the data stack.
    #[inline]
    pub(crate) fn stacked(&self) -> &[u64] {
        let end = (self.count as usize).max(REGISTERS);
        match self.words.get(REGISTERS..end) {
            Some(stacked) => stacked,
            None => self.many.as_deref().unwrap_or_default(),
        }
    }

    /// The vector registers, or null.
    #[inline]
    pub(crate) fn vectors(&self) -> *const [u128; 8] {
        self.vectors.as_deref().map_or(ptr::null(), ptr::from_ref)
    }
}

#[cold]
fn many(stacked: &[u64]) -> Box<[u64]> {
    assert!(
        stacked.len() <= MAX_ARGUMENTS - REGISTERS,
        "more arguments than a call takes"
    );
    stacked.into()
}

/// An address at which a domain may be entered: a labelled instruction of its
/// image. Only the domain that made it takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub(crate) address: u64,
    pub(crate) serial: u64,
}

/// What a domain's function returned.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Returned {
    /// `%rax`: an integer, or a pointer that nobody has checked.
    pub integer: u64,
    /// `%rdx`: the second half of a structure of two words.
    pub high: u64,
    /// `%xmm0`: a floating-point number.
    pub double: f64,
}

/// Makes the call at a thread's end, and sees what comes of it: see
/// [`WindowDomain::around_thread_end`](crate::WindowDomain::around_thread_end). A panic of a host
/// function is [`CallError::Refused`].
pub type AroundThreadEnd = Arc<dyn Fn(&mut dyn FnMut() -> Result<(), CallError>) + Send + Sync>;

/// [`CallError`] inside the crate: one register, so that results may be in registers too.
pub(crate) type NotReturned = Box<CallError>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_split_between_registers_and_stack() {
        let all: Vec<u64> = (1..=MAX_ARGUMENTS as u64).collect();
        for count in 0..=all.len() {
            let arguments = CallArguments::new(&all[..count]);
            let mut pushed = CallArguments::new(&all[..count / 2]);
            all[count / 2..count]
                .iter()
                .for_each(|word| pushed.push(*word));
            assert_eq!(pushed.integers(), arguments.integers());
            assert_eq!(pushed.stacked(), arguments.stacked());
            let registers = count.min(REGISTERS);
            assert_eq!(arguments.integers()[..registers], all[..registers]);
            assert!(
                arguments.integers()[registers..]
                    .iter()
                    .all(|word| *word == 0)
            );
            assert_eq!(*arguments.stacked(), all[registers..count]);
        }
    }
}
