//! What a format reads by its arguments. A format has no other conversions than those that are known here, so that no argument is
//! taken for another one. None of them writes.

type Answer<T> = Result<T, String>;

/// Numbers of floating point that come in registers.
const FLOATS: usize = 8;

/// Arguments that are no numbers of floating point, in their order, and what they point to.
pub(crate) trait Arguments {
    /// Numbers of floating point that are left in registers.
    fn floats(&self) -> usize {
        FLOATS
    }
    /// One that a call may have; none: the wall does not pass it on.
    fn word(&self, place: usize) -> Option<u64>;
    /// A string that is read to its end, or so many characters of it.
    fn text(&self, at: u64, most: u64) -> Answer<()>;
    /// So many bytes that are read.
    fn bytes(&self, at: u64, bytes: u64) -> Answer<()>;
    /// A socket's address that is read, with what it points to.
    fn address(&self, at: u64) -> Answer<()>;
}

/// A format that is read from its beginning.
struct Reader<'a> {
    rest: &'a [u8],
    place: usize,
}

impl Reader<'_> {
    fn next(&mut self) -> u8 {
        match self.rest {
            [first, rest @ ..] if *first != 0 => {
                self.rest = rest;
                *first
            }
            _ => 0,
        }
    }

    fn takes(&mut self, wanted: impl Fn(u8) -> bool) -> Option<u8> {
        let first = self
            .rest
            .first()
            .copied()
            .filter(|byte| *byte != 0 && wanted(*byte))?;
        self.rest = &self.rest[1..];
        Some(first)
    }

    fn word(&mut self, arguments: &impl Arguments) -> Answer<u64> {
        self.place += 1;
        let word = arguments.word(self.place - 1);
        word.ok_or_else(|| "more arguments than the wall passes on".to_owned())
    }

    /// A width or a precision; none: there is none, or an argument that is below 0.
    fn number(&mut self, arguments: &impl Arguments) -> Answer<Option<u64>> {
        if self.takes(|byte| byte == b'*').is_some() {
            return Ok(u64::try_from(self.word(arguments)? as i32).ok());
        }
        let mut number = None::<u64>;
        while let Some(digit) = self.takes(|byte| byte.is_ascii_digit()) {
            let more = u64::from(digit - b'0');
            number = Some(number.unwrap_or(0).saturating_mul(10).saturating_add(more));
        }
        Ok(number)
    }
}

/// Looks at a format's arguments; the format ends with a zero, or with its bytes. `is_apr`: with APR's conversions, of which those with
/// `p` read what the argument points to; otherwise with the C library's.
pub(crate) fn look(format: &[u8], is_apr: bool, arguments: &impl Arguments) -> Answer<()> {
    let mut reader = Reader {
        rest: format,
        place: 0,
    };
    let mut floats = 0;
    loop {
        match reader.next() {
            0 => break,
            b'%' => {}
            _ => continue,
        }
        while reader.takes(|byte| b"-+ #0".contains(&byte)).is_some() {}
        reader.number(arguments)?;
        let most = match reader.takes(|byte| byte == b'.') {
            None => None,
            // A point alone is 0, and a number below 0 is none.
            Some(_) if reader.rest.first() == Some(&b'*') => reader.number(arguments)?,
            Some(_) => Some(reader.number(arguments)?.unwrap_or(0)),
        };
        let modifiers: &[u8] = if is_apr { b"qlh" } else { b"qlhjzt" };
        let modifier = reader.takes(|byte| modifiers.contains(&byte));
        let mut is_double = is_apr || matches!(modifier, None | Some(b'l' | b'h'));
        if let Some(twice @ (b'l' | b'h')) = modifier.filter(|_| !is_apr) {
            is_double &= reader.takes(|byte| byte == twice).is_none();
        }
        match reader.next() {
            0 => break,
            b'%' => {}
            b'd' | b'i' | b'o' | b'u' | b'x' | b'X' => drop(reader.word(arguments)?),
            // The C library has longer numbers, which lie elsewhere.
            b'f' | b'F' | b'e' | b'E' | b'g' | b'G' if is_double => floats += 1,
            b'c' if modifier.is_none() => drop(reader.word(arguments)?),
            b's' if modifier.is_none() => {
                let text = reader.word(arguments)?;
                if text != 0 {
                    arguments.text(text, most.unwrap_or(u64::MAX))?;
                }
            }
            b'p' if is_apr => {
                let at = reader.word(arguments)?;
                match reader.next() {
                    b'p' | 0 => {}
                    _ if at == 0 => {}
                    b'I' => arguments.address(at)?,
                    _ => arguments.bytes(at, 8)?,
                }
            }
            b'p' if modifier.is_none() => drop(reader.word(arguments)?),
            b'n' => return Err("a format with %n".to_owned()),
            other => {
                let other = char::from(other);
                return Err(format!(
                    "a format with {other:?}, which is no conversion that is known"
                ));
            }
        }
    }
    match floats > arguments.floats() {
        true => Err("more arguments than the wall passes on".to_owned()),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    /// Words that count up from 100, the first four of them alone; what is read.
    #[derive(Default)]
    struct Counted(RefCell<Vec<(u64, u64)>>);

    impl Arguments for Counted {
        fn word(&self, place: usize) -> Option<u64> {
            (place < 4).then_some(100 + place as u64)
        }

        fn text(&self, at: u64, most: u64) -> Answer<()> {
            self.bytes(at, most)
        }

        fn bytes(&self, at: u64, bytes: u64) -> Answer<()> {
            self.0.borrow_mut().push((at, bytes));
            Ok(())
        }

        fn address(&self, at: u64) -> Answer<()> {
            self.bytes(at, 56)
        }
    }

    fn read(format: &str, is_apr: bool) -> Answer<Vec<(u64, u64)>> {
        let counted = Counted::default();
        look(format.as_bytes(), is_apr, &counted)?;
        Ok(counted.0.into_inner())
    }

    #[test]
    fn each_string_is_looked_at_where_it_is() {
        for is_apr in [false, true] {
            let all = u64::MAX;
            let cases: [(&str, &[(u64, u64)]); 12] = [
                ("no conversion, 100%%", &[]),
                ("%s", &[(100, all)]),
                ("%d %-10s", &[(101, all)]),
                ("%*s", &[(101, all)]),
                ("%.9s", &[(100, 9)]),
                ("%.s", &[(100, 0)]),
                ("%.*s %s", &[(101, 100), (102, all)]),
                ("%*.*s", &[(102, 101)]),
                ("%f %s %g %s", &[(100, all), (101, all)]),
                ("%ld%hd%qd%s", &[(103, all)]),
                ("%c%%%s\0%s%s%s%s%s", &[(101, all)]),
                ("%", &[]),
            ];
            for (format, expected) in cases {
                assert_eq!(read(format, is_apr).as_deref(), Ok(expected), "{format}");
            }
            let wrong = [
                "%n",
                "%5n",
                "%hn",
                "%ls",
                "%lc",
                "%1$s",
                "%'s",
                "%5-s",
                "%Lf",
                "%S",
                "%m",
                "%y",
                "%llls",
                "%d%d%d%d%s",
                "%f%f%f%f%f%f%f%f%f",
            ];
            for format in wrong {
                assert!(read(format, is_apr).is_err(), "{format}");
            }
        }
        // Numbers that do not lie where others of floating point do.
        for format in ["%llf", "%qe", "%jg", "%hhf"] {
            assert!(read(format, false).is_err(), "{format}");
        }
        assert_eq!(read("%lf%s", false), Ok(vec![(100, u64::MAX)]));
        // One library knows these, and the other prints them as they are.
        assert_eq!(read("%zu%s", false), Ok(vec![(101, u64::MAX)]));
        assert!(read("%zu%s", true).is_err());
        assert_eq!(read("%lld%s", false), Ok(vec![(101, u64::MAX)]));
        assert!(read("%lld%s", true).is_err());
        assert!(read("%p%I", false).is_err());
        assert_eq!(
            read("%pI%pm%pp%s", true),
            Ok(vec![(100, 56), (101, 8), (103, u64::MAX)])
        );
        assert_eq!(read("%pI%s", false), Ok(vec![(101, u64::MAX)]));
    }
}
