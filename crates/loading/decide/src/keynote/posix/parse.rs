//! The grammar of POSIX extended regular expressions (POSIX 1003.2, section 2.8).

use super::{PatternError, Set};
use crate::keynote::bounds;

/// An expression.
pub(super) enum Node {
    /// One byte of that set.
    Set(u32),
    /// The beginning of the text.
    Start,
    /// Its end.
    End,
    /// A group, by its number from 1.
    Group(usize, Box<Node>),
    /// One after the other.
    All(Vec<Node>),
    /// One of them.
    One(Vec<Node>),
    /// At least and at most so often.
    Repeat(Box<Node>, usize, Option<usize>),
}

impl Node {
    /// States that it takes, its repetitions written out.
    pub(super) fn states(&self) -> usize {
        match self {
            Node::Set(_) | Node::Start | Node::End => 1,
            Node::Group(_, inner) => inner.states(),
            Node::All(list) => sum(list),
            Node::One(list) => sum(list).saturating_add(2 * list.len()),
            Node::Repeat(inner, least, most) => {
                let times = most.unwrap_or(least + 1).max(1);
                inner.states().saturating_add(2).saturating_mul(times)
            }
        }
    }

    /// Whether groups that are kept lie within.
    pub(super) fn has_groups(&self) -> bool {
        match self {
            Node::Set(_) | Node::Start | Node::End => false,
            Node::Group(number, inner) => *number <= bounds::GROUPS || inner.has_groups(),
            Node::All(list) | Node::One(list) => list.iter().any(Node::has_groups),
            Node::Repeat(inner, ..) => inner.has_groups(),
        }
    }
}

fn sum(list: &[Node]) -> usize {
    let states = list.iter().map(Node::states);
    states.fold(0, usize::saturating_add)
}

/// A pattern, understood.
pub(super) struct Parsed {
    pub(super) root: Node,
    pub(super) sets: Vec<Set>,
    pub(super) groups: usize,
}

pub(super) fn parse(pattern: &[u8]) -> Result<Parsed, PatternError> {
    let mut parser = Parser {
        pattern,
        at: 0,
        depth: 0,
        sets: Vec::new(),
        groups: 0,
    };
    if pattern.len() > bounds::PATTERN {
        return parser.fail("it is too long");
    }
    let root = parser.alternatives()?;
    if parser.at < pattern.len() {
        return parser.fail("a `)` closes nothing");
    }
    Ok(Parsed {
        root,
        sets: parser.sets,
        groups: parser.groups,
    })
}

struct Parser<'a> {
    pattern: &'a [u8],
    at: usize,
    depth: usize,
    sets: Vec<Set>,
    groups: usize,
}

impl Parser<'_> {
    fn fail<T>(&self, problem: &'static str) -> Result<T, PatternError> {
        Err(PatternError {
            at: self.at,
            problem,
        })
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.pattern.get(self.at + ahead).copied()
    }

    fn alternatives(&mut self) -> Result<Node, PatternError> {
        let mut list = vec![self.branch()?];
        while self.peek(0) == Some(b'|') {
            self.at += 1;
            list.push(self.branch()?);
        }
        Ok(only(list, Node::One))
    }

    fn branch(&mut self) -> Result<Node, PatternError> {
        let mut list = Vec::new();
        while let Some(byte) = self.peek(0).filter(|byte| !matches!(byte, b'|' | b')')) {
            list.push(self.piece(byte)?);
        }
        match list.is_empty() {
            true => self.fail("an alternative is empty"),
            false => Ok(only(list, Node::All)),
        }
    }

    fn piece(&mut self, byte: u8) -> Result<Node, PatternError> {
        let atom = match byte {
            b'^' | b'$' => {
                self.at += 1;
                self.unrepeated()?;
                return Ok(if byte == b'^' { Node::Start } else { Node::End });
            }
            b'*' | b'+' | b'?' | b'{' => return self.fail("a repetition has nothing to repeat"),
            b'(' => self.group()?,
            b'[' => self.bracket()?,
            b'.' => {
                self.at += 1;
                self.set([u64::MAX; 4])
            }
            b'\\' => self.escaped()?,
            byte => {
                self.at += 1;
                self.byte(byte)
            }
        };
        let (least, most) = match self.peek(0) {
            Some(b'*') => (0, None),
            Some(b'+') => (1, None),
            Some(b'?') => (0, Some(1)),
            Some(b'{') => self.bound()?,
            _ => return Ok(atom),
        };
        self.at += 1;
        self.unrepeated()?;
        Ok(Node::Repeat(Box::new(atom), least, most))
    }

    /// What POSIX leaves undefined: a repetition of an anchor, or of a repetition.
    fn unrepeated(&self) -> Result<(), PatternError> {
        match self.peek(0) {
            Some(b'*' | b'+' | b'?' | b'{') => self.fail("a repetition has nothing to repeat"),
            _ => Ok(()),
        }
    }

    fn group(&mut self) -> Result<Node, PatternError> {
        self.depth += 1;
        if self.depth > bounds::NESTING {
            return self.fail("groups are nested too deeply");
        }
        self.at += 1;
        self.groups += 1;
        let number = self.groups;
        let inner = self.alternatives()?;
        if self.peek(0) != Some(b')') {
            return self.fail("a `(` is not closed");
        }
        self.at += 1;
        self.depth -= 1;
        Ok(Node::Group(number, Box::new(inner)))
    }

    fn escaped(&mut self) -> Result<Node, PatternError> {
        match self.peek(1) {
            None => self.fail("a backslash is the last character"),
            Some(next) if next.is_ascii_alphanumeric() => {
                self.fail("POSIX gives a backslash before a letter or digit no meaning")
            }
            Some(next) => {
                self.at += 2;
                Ok(self.byte(next))
            }
        }
    }

    fn set(&mut self, set: Set) -> Node {
        self.sets.push(set);
        Node::Set(self.sets.len() as u32 - 1)
    }

    fn byte(&mut self, byte: u8) -> Node {
        let mut set = [0; 4];
        insert(&mut set, byte);
        self.set(set)
    }

    fn number(&mut self) -> Option<usize> {
        let rest = self.pattern.get(self.at..)?;
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let text = std::str::from_utf8(&rest[..digits]).ok()?;
        self.at += digits;
        text.parse().ok().filter(|number| *number <= 255)
    }

    /// `{m}`, `{m,}` or `{m,n}`, up to its last character.
    fn bound(&mut self) -> Result<(usize, Option<usize>), PatternError> {
        const FORM: &str = "a bound is {m}, {m,} or {m,n}, up to 255";
        self.at += 1;
        let Some(least) = self.number() else {
            return self.fail(FORM);
        };
        let mut most = Some(least);
        if self.peek(0) == Some(b',') {
            self.at += 1;
            most = match self.peek(0) {
                Some(b'}') => None,
                _ => match self.number() {
                    Some(most) if most >= least => Some(most),
                    _ => return self.fail(FORM),
                },
            };
        }
        match self.peek(0) {
            Some(b'}') => Ok((least, most)),
            _ => self.fail(FORM),
        }
    }

    /// A bracket expression, as the set of its bytes.
    fn bracket(&mut self) -> Result<Node, PatternError> {
        let mut set = [0; 4];
        self.at += 1;
        let negated = self.peek(0) == Some(b'^');
        if negated {
            self.at += 1;
        }
        let mut first = true;
        loop {
            match self.peek(0) {
                None => return self.fail("a `[` is not closed"),
                Some(b']') if !first => break,
                Some(b'[') if self.peek(1) == Some(b':') => self.class(&mut set)?,
                _ => self.range(&mut set)?,
            }
            first = false;
        }
        self.at += 1;
        if negated {
            set = set.map(|word| !word);
        }
        Ok(self.set(set))
    }

    fn class(&mut self, set: &mut Set) -> Result<(), PatternError> {
        let rest = &self.pattern[self.at + 2..];
        // The longest name of a class, and what closes it.
        let length = rest.windows(2).take(7).position(|pair| pair == b":]");
        let member: fn(&u8) -> bool = match length.map(|length| &rest[..length]) {
            Some(b"alpha") => u8::is_ascii_alphabetic,
            Some(b"digit") => u8::is_ascii_digit,
            Some(b"alnum") => u8::is_ascii_alphanumeric,
            Some(b"upper") => u8::is_ascii_uppercase,
            Some(b"lower") => u8::is_ascii_lowercase,
            Some(b"space") => |byte| matches!(byte, b' ' | 0x09..=0x0d),
            Some(b"blank") => |byte| matches!(byte, b' ' | b'\t'),
            Some(b"punct") => u8::is_ascii_punctuation,
            Some(b"print") => |byte| matches!(byte, 0x20..=0x7e),
            Some(b"graph") => u8::is_ascii_graphic,
            Some(b"cntrl") => u8::is_ascii_control,
            Some(b"xdigit") => u8::is_ascii_hexdigit,
            _ => return self.fail("there is no such character class"),
        };
        for byte in (0..=255).filter(member) {
            insert(set, byte);
        }
        self.at += length.unwrap_or(0) + 4;
        Ok(())
    }

    fn range(&mut self, set: &mut Set) -> Result<(), PatternError> {
        let start = self.element()?;
        let mut end = start;
        if self.peek(0) == Some(b'-') && self.peek(1).is_some_and(|next| next != b']') {
            self.at += 1;
            if self.peek(0) == Some(b'[') && self.peek(1) == Some(b':') {
                return self.fail("a range ends with a character class");
            }
            end = self.element()?;
        }
        if start > end {
            return self.fail("a range runs backwards");
        }
        (start..=end).for_each(|byte| insert(set, byte));
        Ok(())
    }

    /// One character: itself, `[.x.]` or `[=x=]`.
    fn element(&mut self) -> Result<u8, PatternError> {
        let Some(byte) = self.peek(0) else {
            return self.fail("a `[` is not closed");
        };
        if byte == b'[' && matches!(self.peek(1), Some(b'.' | b'=')) {
            let mark = self.peek(1);
            let (Some(byte), true) = (
                self.peek(2),
                self.peek(3) == mark && self.peek(4) == Some(b']'),
            ) else {
                return self.fail("a collating element is one character: [.x.] or [=x=]");
            };
            self.at += 5;
            return Ok(byte);
        }
        self.at += 1;
        Ok(byte)
    }
}

fn only(mut list: Vec<Node>, many: fn(Vec<Node>) -> Node) -> Node {
    match (list.len(), list.pop()) {
        (1, Some(one)) => one,
        (_, last) => {
            list.extend(last);
            many(list)
        }
    }
}

fn insert(set: &mut Set, byte: u8) {
    set[usize::from(byte >> 6)] |= 1 << (byte & 63);
}

/// Whether a byte is in a set.
pub(super) fn contains(set: &Set, byte: u8) -> bool {
    set[usize::from(byte >> 6)] >> (byte & 63) & 1 == 1
}
