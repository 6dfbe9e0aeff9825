//! The fields of an assertion (RFC 2704, sections 4.1 and 4.6).

use super::bounds;
use super::expression::Tokens;
use super::lexer::Token;
use super::principal::Principal;
use super::syntax::{Assertion, Licensees, PrincipalRef};
use super::work::{Cost, Exhausted, Work};
pub use mullion_wire::keynote::ParseError;
use std::collections::BTreeMap;

/// Why an assertion was not read.
enum Stop {
    Text(ParseError),
    Work(Exhausted),
}

impl From<ParseError> for Stop {
    fn from(error: ParseError) -> Self {
        Stop::Text(error)
    }
}

impl From<Exhausted> for Stop {
    fn from(error: Exhausted) -> Self {
        Stop::Work(error)
    }
}

/// What a text of several assertions holds.
#[derive(Debug, Default)]
pub struct Parsed {
    /// Those that could be read.
    pub assertions: Vec<Assertion>,
    /// Why the others could not, the first [`bounds::LEFT_OUT`] of them. RFC 2704 leaves them out
    /// and goes on.
    pub left_out: Vec<ParseError>,
    /// How many others there are in all.
    pub others: usize,
}

/// The labels, as RFC 2704 spells them.
const LABELS: [&str; 7] = [
    "KeyNote-Version",
    "Local-Constants",
    "Authorizer",
    "Licensees",
    "Comment",
    "Conditions",
    "Signature",
];
const VERSION: usize = 0;
const CONSTANTS: usize = 1;
const AUTHORIZER: usize = 2;
const LICENSEES: usize = 3;
const COMMENT: usize = 4;
const CONDITIONS: usize = 5;
const SIGNATURE: usize = 6;

/// Where one field stands in the source.
#[derive(Clone, Copy)]
struct Field {
    label: usize,
    line_start: usize,
    start: usize,
    end: usize,
}

/// Reads one assertion, of a file of one's own: what it costs is not counted.
///
/// # Errors
/// The first thing that RFC 2704 does not allow, or that exceeds [`bounds`].
pub fn parse(text: &[u8]) -> Result<Assertion, ParseError> {
    let mut blocks = blocks(text);
    let fail =
        |offset, problem: &str, hint| Err(ParseError::at(text, offset, problem.to_owned(), hint));
    let (block, second) = (blocks.next(), blocks.next());
    if let Some((second, _)) = second {
        return fail(
            second,
            "a blank line ends an assertion, and something follows",
            "remove the blank line, or keep one assertion in a file",
        );
    }
    match block {
        None => fail(0, "there is no assertion here", ""),
        Some(block) => alone(text, block),
    }
}

/// Reads a file of assertions of one's own, separated by blank lines: all must be right, and what
/// it costs is not counted.
///
/// # Errors
/// As [`parse`], with the line in the whole file.
pub fn parse_all(text: &[u8]) -> Result<Vec<Assertion>, ParseError> {
    if text.len() > bounds::FILE {
        let problem = "the file is too large".to_owned();
        return Err(ParseError::at(text, 0, problem, ""));
    }
    blocks(text).map(|block| alone(text, block)).collect()
}

/// One assertion, whose errors have the line in the whole text.
fn alone(text: &[u8], (start, end): (usize, usize)) -> Result<Assertion, ParseError> {
    let mut unbounded = Work::unbounded();
    assertion(&text[start..end], &mut unbounded).map_err(|stop| match stop {
        Stop::Text(error) => error.below(newlines(&text[..start])),
        Stop::Work(error) => ParseError::at(text, start, error.to_string(), ""),
    })
}

/// Reads assertions that somebody brought, separated by blank lines. One that is wrong is left
/// out, as RFC 2704 has it. Every byte is paid for before it is read.
///
/// # Errors
/// The budget does not suffice.
pub fn parse_each(text: &[u8], work: &mut Work) -> Result<Parsed, Exhausted> {
    work.pay(Cost::Parsed, text.len())?;
    let mut parsed = Parsed::default();
    let (mut line, mut counted) = (0, 0);
    for (start, end) in blocks(text) {
        line += newlines(&text[counted..start]);
        counted = start;
        match assertion(&text[start..end], work) {
            Ok(assertion) => parsed.assertions.push(assertion),
            Err(Stop::Work(error)) => return Err(error),
            Err(Stop::Text(error)) => {
                parsed.others += 1;
                if parsed.left_out.len() < bounds::LEFT_OUT {
                    parsed.left_out.push(error.below(line));
                }
            }
        }
    }
    Ok(parsed)
}

fn newlines(text: &[u8]) -> usize {
    text.iter().filter(|byte| **byte == b'\n').count()
}

/// Runs of lines that are not empty, as offsets. A run of comments alone is
/// not an assertion.
fn blocks(text: &[u8]) -> impl Iterator<Item = (usize, usize)> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            while text.get(at) == Some(&b'\n') {
                at += 1;
            }
            if at >= text.len() {
                return None;
            }
            let start = at;
            while at < text.len() && text[at] != b'\n' {
                at = line_end(text, at) + 1;
            }
            let end = at.min(text.len());
            if text[start..end]
                .split(|byte| *byte == b'\n')
                .any(is_content)
            {
                return Some((start, end));
            }
        }
    })
}

fn line_end(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    rest.iter()
        .position(|byte| *byte == b'\n')
        .map_or(text.len(), |length| at + length)
}

fn is_content(line: &[u8]) -> bool {
    let first = line.iter().find(|byte| !matches!(byte, b' ' | b'\t'));
    first.is_some_and(|byte| *byte != b'#')
}

fn assertion(text: &[u8], work: &mut Work) -> Result<Assertion, Stop> {
    if text.len() > bounds::ASSERTION {
        let problem = format!("an assertion is longer than {} bytes", bounds::ASSERTION);
        return Err(ParseError::at(text, 0, problem, "").into());
    }
    let fields = fields(text)?;
    let find = |label| fields.iter().find(|field| field.label == label).copied();
    let tokens = |field: Field| Tokens::new(text, field.start, field.end, field.label == LICENSEES);

    if let Some(field) = find(VERSION) {
        version(&mut tokens(field)?)?;
    }
    let constants = match find(CONSTANTS) {
        Some(field) => assignments(&mut tokens(field)?, "a local constant")?,
        None => BTreeMap::new(),
    };
    let Some(field) = find(AUTHORIZER) else {
        let problem = "the assertion has no Authorizer field".to_owned();
        return Err(ParseError::at(text, 0, problem, "every assertion needs one").into());
    };
    let mut reader = Reader {
        constants: &constants,
        work,
    };
    let authorizer = whole(&mut tokens(field)?, |tokens| reader.principal(tokens))?;
    let licensees = find(LICENSEES)
        .map(|field| whole(&mut tokens(field)?, |tokens| reader.licensees(tokens)))
        .transpose()?;
    let conditions = find(CONDITIONS)
        .map(|field| whole(&mut tokens(field)?, |tokens| Ok(tokens.program()?)))
        .transpose()?;
    let signature_field = find(SIGNATURE);
    let signature = signature_field
        .map(|field| whole(&mut tokens(field)?, |tokens| Ok(tokens.string()?)))
        .transpose()?;
    let comment = find(COMMENT).map(|field| {
        let text = String::from_utf8_lossy(&text[field.start..field.end]);
        text.trim().to_owned()
    });
    Ok(Assertion {
        source: text.into(),
        signed_length: signature_field.map_or(text.len(), |field| field.line_start),
        constants,
        authorizer,
        licensees,
        conditions,
        comment,
        signature,
    })
}

/// Finds the fields and checks their order.
fn fields(text: &[u8]) -> Result<Vec<Field>, ParseError> {
    let mut fields: Vec<Field> = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let line = at;
        let stop = line_end(text, line);
        at = stop + 1;
        match text[line] {
            b'#' => continue,
            b' ' | b'\t' => {
                match fields.last_mut() {
                    Some(field) => field.end = stop,
                    None if !is_content(&text[line..stop]) => {}
                    None => {
                        let problem = "the first line is indented".to_owned();
                        let hint = "a field begins at the start of its line";
                        return Err(ParseError::at(text, line, problem, hint));
                    }
                }
                continue;
            }
            _ => {}
        }
        let field = label(text, line, stop)?;
        let fail = |problem: &str, hint| {
            let problem = format!("{} {problem}", LABELS[field.label]);
            Err(ParseError::at(text, line, problem, hint))
        };
        if fields.iter().any(|other| other.label == field.label) {
            return fail("is there twice", "each field may stand once");
        }
        if fields.iter().any(|other| other.label == SIGNATURE) {
            return fail("stands behind Signature", "the signature is the last field");
        }
        if field.label == VERSION && !fields.is_empty() {
            return fail("is not the first field", "move it to the top");
        }
        fields.push(field);
    }
    Ok(fields)
}

fn label(text: &[u8], line: usize, stop: usize) -> Result<Field, ParseError> {
    let colon = text[line..stop].iter().position(|byte| *byte == b':');
    let name = colon.map(|length| &text[line..line + length]);
    let known = name.and_then(|name| {
        LABELS
            .iter()
            .position(|label| label.as_bytes().eq_ignore_ascii_case(name))
    });
    match (known, colon) {
        (Some(label), Some(length)) => Ok(Field {
            label,
            line_start: line,
            start: line + length + 1,
            end: stop,
        }),
        _ => Err(ParseError::at(
            text,
            line,
            "this line begins no field that is known".to_owned(),
            "indent it by a blank if it continues the field above; the fields are KeyNote-Version, \
             Local-Constants, Authorizer, Licensees, Comment, Conditions, Signature",
        )),
    }
}

/// Runs `read` and demands that nothing is left.
fn whole<T>(
    tokens: &mut Tokens<'_>,
    read: impl FnOnce(&mut Tokens<'_>) -> Result<T, Stop>,
) -> Result<T, Stop> {
    let value = read(tokens)?;
    tokens.finish()?;
    Ok(value)
}

fn version(tokens: &mut Tokens<'_>) -> Result<(), ParseError> {
    match tokens.take() {
        Token::Integer(2) => tokens.finish(),
        Token::Text(text) if text == b"2" => tokens.finish(),
        other => tokens.fail_before(
            format!("the version is {}, and only 2 is known", other.describe()),
            "",
        ),
    }
}

fn assignments(
    tokens: &mut Tokens<'_>,
    what: &str,
) -> Result<BTreeMap<String, Vec<u8>>, ParseError> {
    let mut found = BTreeMap::new();
    for (name, value) in list(tokens, what)? {
        if name.starts_with('_') {
            return tokens.fail_before(
                format!("the name `{name}` begins with `_`, which is for KeyNote itself"),
                "",
            );
        }
        if found.contains_key(&name) {
            return tokens.fail_before(format!("`{name}` is defined twice"), "");
        }
        found.insert(name, value);
    }
    Ok(found)
}

fn list(tokens: &mut Tokens<'_>, what: &str) -> Result<Vec<(String, Vec<u8>)>, ParseError> {
    let mut found = Vec::new();
    loop {
        let name = match tokens.take() {
            Token::End => return Ok(found),
            Token::Name(name) => name,
            other => {
                let problem = format!(
                    "{} stands where the name of {what} should",
                    other.describe()
                );
                return tokens.fail_before(problem, "");
            }
        };
        tokens.assign()?;
        match tokens.take() {
            Token::Text(value) => found.push((name, value)),
            other => {
                let problem = format!("`{name}` is given {}", other.describe());
                return tokens.fail_before(problem, "only a string in quotes can be given");
            }
        }
    }
}

pub(super) fn environment(text: &[u8]) -> Result<Vec<(String, Vec<u8>)>, ParseError> {
    list(&mut Tokens::new_assignments(text)?, "an attribute")
}

pub(super) fn one_test(text: &[u8]) -> Result<(), ParseError> {
    Tokens::new(text, 0, text.len(), false)?.only_test()
}

pub(super) fn one_string(text: &[u8]) -> Result<Vec<u8>, ParseError> {
    let mut tokens = Tokens::new(text, 0, text.len(), false)?;
    match tokens.take() {
        Token::Text(value) => tokens.finish().map(|()| value),
        other => tokens.fail_before(
            format!("{} stands where a string should", other.describe()),
            "a key file holds one key, in quotes",
        ),
    }
}

/// Reads fields that name principals.
struct Reader<'a> {
    constants: &'a BTreeMap<String, Vec<u8>>,
    work: &'a mut Work,
}

impl Reader<'_> {
    fn principal(&mut self, tokens: &mut Tokens<'_>) -> Result<PrincipalRef, Stop> {
        let text = tokens.string()?;
        self.work.pay(Cost::Edge, 1)?;
        match text.constant(self.constants, self.work)? {
            Some(name) => {
                self.work.pay(Cost::Parsed, name.len())?;
                Ok(PrincipalRef::Constant(Principal::new(&name)))
            }
            None => Ok(PrincipalRef::Computed(text)),
        }
    }

    fn licensees(&mut self, tokens: &mut Tokens<'_>) -> Result<Licensees, Stop> {
        if tokens.peek() == &Token::End {
            return Ok(Licensees::Empty);
        }
        self.any_of(tokens)
    }

    fn any_of(&mut self, tokens: &mut Tokens<'_>) -> Result<Licensees, Stop> {
        let mut parts = vec![self.all_of(tokens)?];
        while tokens.accept("||") {
            parts.push(self.all_of(tokens)?);
        }
        Ok(one_or(parts, Licensees::Or))
    }

    fn all_of(&mut self, tokens: &mut Tokens<'_>) -> Result<Licensees, Stop> {
        let mut parts = vec![self.licensee(tokens)?];
        while tokens.accept("&&") {
            parts.push(self.licensee(tokens)?);
        }
        Ok(one_or(parts, Licensees::And))
    }

    fn licensee(&mut self, tokens: &mut Tokens<'_>) -> Result<Licensees, Stop> {
        if let &Token::AtLeast(count) = tokens.peek() {
            return self.at_least(tokens, count);
        }
        if !tokens.parenthesis_opens_licensees() {
            return Ok(Licensees::One(self.principal(tokens)?));
        }
        tokens.deeper()?;
        tokens.expect("(", "")?;
        let inner = self.any_of(tokens)?;
        tokens.expect(")", "a `(` is not closed")?;
        tokens.shallower();
        Ok(inner)
    }

    fn at_least(&mut self, tokens: &mut Tokens<'_>, count: usize) -> Result<Licensees, Stop> {
        tokens.take();
        tokens.expect("(", "write 2-of(\"a\", \"b\", \"c\")")?;
        let mut list = vec![self.principal(tokens)?];
        while tokens.accept(",") {
            list.push(self.principal(tokens)?);
        }
        tokens.expect(")", "the list of `-of` is not closed")?;
        if list.len() < count {
            let problem = format!("{count}-of has a list of {} only", list.len());
            return Ok(tokens.fail_before(problem, "such an assertion can never hold")?);
        }
        Ok(Licensees::AtLeast(count, list))
    }
}

fn one_or(mut parts: Vec<Licensees>, many: fn(Vec<Licensees>) -> Licensees) -> Licensees {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        Some(last) => {
            parts.push(last);
            many(parts)
        }
        None => Licensees::Empty,
    }
}
