//! The places of a prepared statement, read as APR reads them (`apr_dbd_prepare`).

/// What a driver reads for one place of a statement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value {
    Text,
    /// A number of so many bytes, if values are not texts.
    Number(u64),
    /// Four words: bytes, how many, and the names of a table and of a column.
    Large,
    Nothing,
}

/// The places of a statement, as `apr_dbd_prepare` finds them: a `%` with a letter, and the letters that go with it.
pub(crate) fn places(query: &[u8]) -> Vec<Value> {
    let mut all = Vec::new();
    let at = |place: usize| query.get(place).copied().unwrap_or(0);
    let mut place = 0;
    while place < query.len() {
        if at(place) != b'%' {
            place += 1;
            continue;
        }
        let letters = [1, 2, 3].map(|behind| at(place + behind));
        if !letters[0].is_ascii_alphabetic() {
            // APR skips the second of two of them.
            place += 1 + usize::from(letters[0] == b'%');
            continue;
        }
        let (value, length) = match letters {
            [b'd' | b'u', ..] => (Value::Number(4), 1),
            [b'f', ..] => (Value::Number(4), 1),
            [b'h', b'h', b'd' | b'u'] => (Value::Number(1), 3),
            [b'h', b'd' | b'u', _] => (Value::Number(2), 2),
            [b'l', b'l', b'd' | b'u'] => (Value::Number(8), 3),
            [b'l', b'd' | b'u', _] => (Value::Number(8), 2),
            [b'p', b'D', b't' | b'i' | b'd' | b'a' | b's' | b'z'] => (Value::Text, 3),
            [b'p', b'D', b'b' | b'c'] => (Value::Large, 3),
            [b'p', b'D', b'n'] => (Value::Nothing, 3),
            // Others are texts, and one letter long.
            _ => (Value::Text, 1),
        };
        all.push(value);
        place += 1 + length;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::{Value, places};

    #[test]
    fn places_are_those_that_apr_finds() {
        let none: [Value; 0] = [];
        assert_eq!(places(b"SELECT 1"), none);
        assert_eq!(places(b"LIKE 'a%%s' AND %"), none);
        use Value::{Large, Nothing, Number, Text};
        assert_eq!(
            places(b"%s %d %hhu %hd %lld %lu %f %pDt %pDb %pDn %px %%%s"),
            [
                Text,
                Number(4),
                Number(1),
                Number(2),
                Number(8),
                Number(8),
                Number(4),
                Text,
                Large,
                Nothing,
                Text,
                Text
            ]
        );
    }
}
