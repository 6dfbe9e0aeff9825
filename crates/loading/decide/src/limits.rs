//! What a domain may use at most: the lattice that types and credentials meet in.

pub use mullion_wire::reason::LimitError;
use std::fmt;

/// Upper bounds; `None` is none.
///
/// In credentials each is an attribute with the amount that is asked for, an
/// integer of 32 bits: `@heap_kib <= 1024`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Bytes of heap.
    pub heap: Option<u64>,
    /// Bytes of data stack, for each thread.
    pub stack: Option<u64>,
    /// Milliseconds that one call into the domain may take.
    pub time: Option<u64>,
    /// Calls that the domain may make through its imports during one call into it.
    pub calls: Option<u64>,
}

/// One of the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Limit {
    /// [`Limits::heap`].
    Heap,
    /// [`Limits::stack`].
    Stack,
    /// [`Limits::time`].
    Time,
    /// [`Limits::calls`].
    Calls,
}

/// What stands for "no limit" in an attribute.
const UNLIMITED: u64 = i32::MAX as u64;

impl Limit {
    /// All, in the order in which they are granted.
    pub const ALL: [Limit; 4] = [Limit::Heap, Limit::Stack, Limit::Time, Limit::Calls];

    /// Its name in files and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Limit::Heap => "heap",
            Limit::Stack => "stack",
            Limit::Time => "time",
            Limit::Calls => "calls",
        }
    }

    /// The attribute that holds it in a query, with its unit.
    #[must_use]
    pub fn attribute(self) -> &'static str {
        match self {
            Limit::Heap => "heap_kib",
            Limit::Stack => "stack_kib",
            Limit::Time => "time_ms",
            Limit::Calls => "calls",
        }
    }

    /// The limit of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Limit> {
        Limit::ALL.into_iter().find(|limit| limit.name() == name)
    }

    fn unit(self) -> u64 {
        match self {
            Limit::Heap | Limit::Stack => 1024,
            Limit::Time | Limit::Calls => 1,
        }
    }

    /// The number that an attribute has for this amount, rounded up: what is
    /// asked for is never less than what is used.
    #[must_use]
    pub fn to_attribute(self, amount: Option<u64>) -> i32 {
        let asked = amount.map_or(UNLIMITED, |amount| amount.div_ceil(self.unit()));
        asked.min(UNLIMITED) as i32
    }

    /// The amount that an attribute's number stands for.
    #[must_use]
    pub fn from_attribute(self, number: i32) -> Option<u64> {
        let number = u64::try_from(number).unwrap_or(0);
        (number < UNLIMITED).then(|| number * self.unit())
    }

    /// Reads an amount: `4M` or `64K` of bytes, `250ms` or `2s`, a plain count.
    ///
    /// # Errors
    /// A text that a person can act on.
    pub fn parse(self, text: &str) -> Result<u64, LimitError> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, suffix) = text.split_at(digits);
        let scale = match (self, suffix) {
            (Limit::Heap | Limit::Stack, "") => Some(1),
            (Limit::Heap | Limit::Stack, "K" | "KiB") => Some(1 << 10),
            (Limit::Heap | Limit::Stack, "M" | "MiB") => Some(1 << 20),
            (Limit::Heap | Limit::Stack, "G" | "GiB") => Some(1 << 30),
            (Limit::Time, "ms") => Some(1),
            (Limit::Time, "s") => Some(1000),
            (Limit::Calls, "") => Some(1),
            _ => None,
        };
        let number: Option<u64> = number.parse().ok();
        let amount = number
            .zip(scale)
            .and_then(|(number, scale)| number.checked_mul(scale));
        amount.ok_or_else(|| LimitError {
            limit: self.name(),
            text: text.to_owned(),
            form: match self {
                Limit::Heap | Limit::Stack => "bytes, as in 65536, 64K, 4M or 1G",
                Limit::Time => "a time, as in 250ms or 2s",
                Limit::Calls => "a count, as in 1000",
            },
        })
    }

    /// The amount as [`Limit::parse`] reads it.
    #[must_use]
    pub fn show(self, amount: u64) -> String {
        match self {
            Limit::Heap | Limit::Stack => {
                let scales = [(1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")];
                let fits =
                    |(scale, _): &(u64, _)| amount >= *scale && amount.is_multiple_of(*scale);
                match scales.into_iter().find(fits) {
                    Some((scale, suffix)) => format!("{}{suffix}", amount / scale),
                    None => amount.to_string(),
                }
            }
            Limit::Time if amount >= 1000 && amount.is_multiple_of(1000) => {
                format!("{}s", amount / 1000)
            }
            Limit::Time => format!("{amount}ms"),
            Limit::Calls => amount.to_string(),
        }
    }
}

impl Limits {
    /// No limit at all: the top of the lattice.
    pub const NONE: Limits = Limits {
        heap: None,
        stack: None,
        time: None,
        calls: None,
    };

    /// The amount of one limit.
    #[must_use]
    pub fn get(&self, limit: Limit) -> Option<u64> {
        match limit {
            Limit::Heap => self.heap,
            Limit::Stack => self.stack,
            Limit::Time => self.time,
            Limit::Calls => self.calls,
        }
    }

    /// Sets one limit.
    pub fn set(&mut self, limit: Limit, amount: Option<u64>) {
        match limit {
            Limit::Heap => self.heap = amount,
            Limit::Stack => self.stack = amount,
            Limit::Time => self.time = amount,
            Limit::Calls => self.calls = amount,
        }
    }

    /// The greatest limits that are within both: of each pair the stricter.
    #[must_use]
    pub fn meet(&self, other: &Limits) -> Limits {
        let mut met = Limits::NONE;
        for limit in Limit::ALL {
            met.set(limit, stricter(self.get(limit), other.get(limit)));
        }
        met
    }

    /// Whether nothing here exceeds `other`.
    #[must_use]
    pub fn within(&self, other: &Limits) -> bool {
        self.meet(other) == *self
    }
}

fn stricter(left: Option<u64>, right: Option<u64>) -> Option<u64> {
    match (left, right) {
        (Some(left), Some(right)) => Some(left.min(right)),
        (one, None) | (None, one) => one,
    }
}

impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for limit in Limit::ALL {
            if let Some(amount) = self.get(limit) {
                let comma = if first { "" } else { ", " };
                write!(f, "{comma}{} {}", limit.name(), limit.show(amount))?;
                first = false;
            }
        }
        if first {
            f.write_str("no limits")
        } else {
            Ok(())
        }
    }
}
