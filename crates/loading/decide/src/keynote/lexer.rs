//! Tokens of a field's contents (RFC 2704, sections 4.2 and 4.3).

use super::parser::ParseError;

/// A token without its place.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Name(String),
    Text(Vec<u8>),
    Integer(i32),
    Float(f64),
    /// `<K>-of`, in the `Licensees` field only.
    AtLeast(usize),
    /// One of the operators and marks of the language.
    Mark(&'static str),
    End,
}

impl Token {
    /// As a person would name it in an error.
    pub(super) fn describe(&self) -> String {
        match self {
            Token::Name(name) => format!("`{name}`"),
            Token::Text(_) => "a string".to_owned(),
            Token::Integer(number) => format!("`{number}`"),
            Token::Float(number) => format!("`{number:?}`"),
            Token::AtLeast(count) => format!("`{count}-of`"),
            Token::Mark(mark) => format!("`{mark}`"),
            Token::End => "the end of the field".to_owned(),
        }
    }
}

/// Longest first, so that the first that fits is the token.
const MARKS: [&str; 28] = [
    "->", "&&", "||", "==", "!=", "<=", ">=", "~=", "=", "(", ")", "{", "}", ";", ",", ".", "$",
    "@", "&", "+", "-", "*", "/", "%", "^", "!", "<", ">",
];

/// Splits `source[start..end]` into tokens, each with its offset in `source`.
///
/// `licensees` lets `2-of` be one token.
pub(super) fn tokens(
    source: &[u8],
    start: usize,
    end: usize,
    licensees: bool,
) -> Result<Vec<(Token, usize)>, ParseError> {
    let mut lexer = Lexer {
        source: &source[..end],
        at: start,
        licensees,
    };
    let mut found = Vec::new();
    loop {
        lexer.skip_blanks();
        let at = lexer.at;
        let token = lexer.next()?;
        let done = token == Token::End;
        found.push((token, at));
        if done {
            return Ok(found);
        }
    }
}

struct Lexer<'a> {
    source: &'a [u8],
    at: usize,
    licensees: bool,
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.source.get(self.at + ahead).copied()
    }

    fn fail<T>(&self, at: usize, problem: &str, hint: &'static str) -> Result<T, ParseError> {
        Err(ParseError::at(self.source, at, problem.to_owned(), hint))
    }

    fn skip_blanks(&mut self) {
        while let Some(byte) = self.peek(0) {
            match byte {
                b' ' | b'\t' | b'\n' => self.at += 1,
                b'#' => {
                    while self.peek(0).is_some_and(|byte| byte != b'\n') {
                        self.at += 1;
                    }
                }
                _ => return,
            }
        }
    }

    fn next(&mut self) -> Result<Token, ParseError> {
        let Some(byte) = self.peek(0) else {
            return Ok(Token::End);
        };
        match byte {
            b'"' => self.text(),
            b'0'..=b'9' => self.number(),
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => Ok(Token::Name(self.name())),
            _ => self.mark(),
        }
    }

    fn name(&mut self) -> String {
        let start = self.at;
        while self
            .peek(0)
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            self.at += 1;
        }
        String::from_utf8_lossy(&self.source[start..self.at]).into_owned()
    }

    fn digits(&mut self) -> &str {
        let start = self.at;
        while self.peek(0).is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        std::str::from_utf8(&self.source[start..self.at]).unwrap_or_default()
    }

    fn number(&mut self) -> Result<Token, ParseError> {
        let start = self.at;
        let digits = self.digits().to_owned();
        if self.licensees && self.source[self.at..].starts_with(b"-of") {
            self.at += 3;
            return match digits.parse() {
                Ok(count) if !digits.starts_with('0') => Ok(Token::AtLeast(count)),
                _ => self.fail(start, "the count of `-of` is not a number from 1 up", ""),
            };
        }
        if self.peek(0) == Some(b'.') && self.peek(1).is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
            let fraction = self.digits().to_owned();
            return match format!("{digits}.{fraction}").parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(Token::Float(number)),
                _ => self.fail(start, "the number is too large", ""),
            };
        }
        match digits.parse() {
            Ok(number) => Ok(Token::Integer(number)),
            Err(_) => self.fail(
                start,
                "the integer is larger than 2147483647",
                "use a larger unit, or floating point: 4294967296.0 and `&`",
            ),
        }
    }

    fn mark(&mut self) -> Result<Token, ParseError> {
        let rest = &self.source[self.at..];
        if let Some(mark) = MARKS
            .iter()
            .copied()
            .find(|mark| rest.starts_with(mark.as_bytes()))
        {
            self.at += mark.len();
            return Ok(Token::Mark(mark));
        }
        let hint = match rest[0] {
            b'|' => "the logical or is `||`",
            b'~' => "a regular expression is matched with `~=`",
            b'\'' => "strings are in double quotes",
            b'\r' => "lines end with a newline alone, not with carriage return and newline",
            b'\\' => "a backslash is for strings only",
            _ => "",
        };
        let problem = match rest[0] {
            byte @ 0x21..=0x7e => format!("`{}` is not of the language", char::from(byte)),
            byte => format!("the byte {byte:#04x} may not stand outside strings and comments"),
        };
        self.fail(self.at, &problem, hint)
    }

    /// A string literal, section 4.3.1.
    fn text(&mut self) -> Result<Token, ParseError> {
        let start = self.at;
        let mut value = Vec::new();
        self.at += 1;
        loop {
            let Some(byte) = self.peek(0) else {
                return self.fail(start, "the string has no end", "close it with `\"`");
            };
            self.at += 1;
            match byte {
                b'"' => return Ok(Token::Text(value)),
                b'\n' | b'\r' => {
                    return self.fail(
                        self.at - 1,
                        "a string goes over the end of its line",
                        "end the line with a backslash to continue the string, or write \\n",
                    );
                }
                0 => return self.fail(self.at - 1, "a NUL byte in a string", ""),
                b'\\' => self.escape(start, &mut value)?,
                byte => value.push(byte),
            }
        }
    }

    fn escape(&mut self, start: usize, value: &mut Vec<u8>) -> Result<(), ParseError> {
        let Some(byte) = self.peek(0) else {
            return self.fail(start, "the string has no end", "close it with `\"`");
        };
        if let Some((byte, length)) = octal(&self.source[self.at..]) {
            self.at += length;
            value.push(byte);
            return Ok(());
        }
        self.at += 1;
        match byte {
            b'n' => value.push(b'\n'),
            b'r' => value.push(b'\r'),
            b't' => value.push(b'\t'),
            b'f' => value.push(0x0c),
            b'\n' => {
                while self
                    .peek(0)
                    .is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\n'))
                {
                    self.at += 1;
                }
            }
            0 => return self.fail(self.at - 1, "a NUL byte in a string", ""),
            byte => value.push(byte),
        }
        Ok(())
    }
}

/// The byte that an octal escape stands for, and the number of its digits.
///
/// `0o`, `0oo` and `ooo`; never NUL, and never more than 255: those are the
/// digits themselves.
fn octal(rest: &[u8]) -> Option<(u8, usize)> {
    let digit = |index: usize| match rest.get(index) {
        Some(byte @ b'0'..=b'7') => Some(u32::from(byte - b'0')),
        _ => None,
    };
    let (first, second) = (digit(0)?, digit(1)?);
    let (value, length) = match (first, digit(2)) {
        (0, None) => (second, 2),
        (_, Some(third)) => (first * 64 + second * 8 + third, 3),
        (_, None) => return None,
    };
    match u8::try_from(value) {
        Ok(byte) if byte != 0 => Some((byte, length)),
        _ => None,
    }
}
