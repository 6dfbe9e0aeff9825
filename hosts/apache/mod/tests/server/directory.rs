//! A directory on loopback, as LDAP has it: one user, `uid=user,dc=example` with the password `word`, in one group.

use std::io::{Read, Write};
use std::net::TcpStream;

const USER: &str = "uid=user,dc=example";
const GROUP: &str = "cn=friends,dc=example";

/// A value with its tag and length.
fn value(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).expect("answers are short");
    let [high, low] = length.to_be_bytes();
    [&[tag, 0x82, high, low], content].concat()
}

/// The next value: its tag, its content, and what is behind it.
fn next(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, first) = (*bytes.first()?, usize::from(*bytes.get(1)?));
    let (start, length) = match first {
        0..0x80 => (2, first),
        more => {
            let count = more & 0x7f;
            let digits = bytes.get(2..2 + count)?;
            let length = digits
                .iter()
                .fold(0, |sum, digit| sum << 8 | usize::from(*digit));
            (2 + count, length)
        }
    };
    let content = bytes.get(start..start + length)?;
    Some((tag, content, &bytes[start + length..]))
}

/// The result of an operation.
fn result(tag: u8, code: u8) -> Vec<u8> {
    let content = [value(10, &[code]), value(4, b""), value(4, b"")].concat();
    value(tag, &content)
}

fn entry(name: &str, attributes: &[(&str, &str)]) -> Vec<u8> {
    let attributes: Vec<u8> = attributes
        .iter()
        .flat_map(|(name, text)| {
            let values = value(0x31, &value(4, text.as_bytes()));
            value(0x30, &[value(4, name.as_bytes()), values].concat())
        })
        .collect();
    let content = [value(4, name.as_bytes()), value(0x30, &attributes)].concat();
    value(0x64, &content)
}

/// What is answered to an operation; nothing to one that ends the connection.
fn answers(tag: u8, content: &[u8]) -> Option<Vec<Vec<u8>>> {
    const SUCCESS: u8 = 0;
    const FALSE: u8 = 5;
    const TRUE: u8 = 6;
    const INVALID: u8 = 49;
    match tag {
        // A version, a name, and a password.
        0x60 => {
            let (_, _, rest) = next(content)?;
            let (_, name, rest) = next(rest)?;
            let (_, password, _) = next(rest)?;
            let is_right = name.is_empty() || name == USER.as_bytes() && password == b"word";
            let code = if is_right { SUCCESS } else { INVALID };
            Some(vec![result(0x61, code)])
        }
        // A search for the user, or of the user itself.
        0x63 => {
            let (_, base, rest) = next(content)?;
            let is_found = base == USER.as_bytes() || rest.windows(4).any(|four| four == b"user");
            let found = entry(USER, &[("uid", "user"), ("mail", "user@example")]);
            let mut all = vec![result(0x65, SUCCESS)];
            if is_found {
                all.insert(0, found);
            }
            Some(all)
        }
        // A name, and an attribute with what it may be.
        0x6e => {
            let (_, name, rest) = next(content)?;
            let (_, pair, _) = next(rest)?;
            let (_, attribute, rest) = next(pair)?;
            let (_, wanted, _) = next(rest)?;
            let known: [(&str, &[u8], &[u8]); 3] = [
                (USER, b"uid", b"user"),
                (USER, b"mail", b"user@example"),
                (GROUP, b"member", USER.as_bytes()),
            ];
            let is_true = known.iter().any(|(of, known, text)| {
                of.as_bytes() == name && *known == attribute && *text == wanted
            });
            let code = if is_true { TRUE } else { FALSE };
            Some(vec![result(0x6f, code)])
        }
        _ => None,
    }
}

/// Messages, one after the other.
pub(crate) fn serve(mut stream: TcpStream) -> Option<()> {
    let mut read = Vec::new();
    loop {
        let Some((_, message, rest)) = next(&read) else {
            let mut piece = [0; 1024];
            let count = stream.read(&mut piece).ok().filter(|count| *count != 0)?;
            read.extend_from_slice(&piece[..count]);
            continue;
        };
        let (_, number, operation) = next(message)?;
        let (tag, content, _) = next(operation)?;
        for answer in answers(tag, content)? {
            let whole = value(0x30, &[value(2, number), answer].concat());
            stream.write_all(&whole).ok()?;
        }
        read = rest.to_vec();
    }
}
