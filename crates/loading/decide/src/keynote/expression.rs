//! Expressions and clauses (RFC 2704, sections 4.3.2, 4.4 and 4.6.5).
//!
//! The grammar of the RFC cannot tell at a `(` whether a test, a number or a
//! string follows. The parser reads an expression of any kind and looks at the
//! kinds where an operator joins them.

use super::bounds;
use super::lexer::{self, Token};
use super::parser::ParseError;
use super::posix::Pattern;
use super::syntax::{Clause, ClauseValue, Float, Integer, Operator, Relation, Str, Test};

/// The tokens of one field, and how deep the parser is in them.
pub(super) struct Tokens<'a> {
    source: &'a [u8],
    list: Vec<(Token, usize)>,
    at: usize,
    depth: usize,
    /// In a `Licensees` field, where each `(` is closed; found in one pass.
    closed: Vec<usize>,
}

/// An expression of any kind.
enum Node {
    Test(Test),
    Integer(Integer),
    Float(Float),
    Str(Str),
}

impl Node {
    fn kind(&self) -> &'static str {
        match self {
            Node::Test(_) => "a test",
            Node::Integer(_) => "an integer",
            Node::Float(_) => "a floating point number",
            Node::Str(_) => "a string",
        }
    }
}

/// For each token that is a `(`, the index of the `)` that closes it.
fn closings(list: &[(Token, usize)]) -> Vec<usize> {
    let mut closed = vec![usize::MAX; list.len()];
    let mut open = Vec::new();
    for (index, (token, _)) in list.iter().enumerate() {
        match token {
            Token::Mark("(") => open.push(index),
            Token::Mark(")") => {
                if let Some(start) = open.pop() {
                    closed[start] = index;
                }
            }
            _ => {}
        }
    }
    closed
}

impl<'a> Tokens<'a> {
    pub(super) fn new(
        source: &'a [u8],
        start: usize,
        end: usize,
        licensees: bool,
    ) -> Result<Self, ParseError> {
        let list = lexer::tokens(source, start, end, licensees)?;
        Ok(Tokens {
            source,
            closed: if licensees {
                closings(&list)
            } else {
                Vec::new()
            },
            list,
            at: 0,
            depth: 0,
        })
    }

    /// For a file of `name = "value"`.
    pub(super) fn new_assignments(source: &'a [u8]) -> Result<Self, ParseError> {
        Tokens::new(source, 0, source.len(), false)
    }

    pub(super) fn peek(&self) -> &Token {
        &self.list[self.at.min(self.list.len() - 1)].0
    }

    /// One test and nothing else.
    pub(super) fn only_test(&mut self) -> Result<(), ParseError> {
        self.test()?;
        self.finish()
    }

    pub(super) fn take(&mut self) -> Token {
        let token = self.peek().clone();
        self.at = (self.at + 1).min(self.list.len());
        token
    }

    fn offset(&self) -> usize {
        self.list[self.at.min(self.list.len() - 1)].1
    }

    fn fail<T>(&self, problem: String, hint: &'static str) -> Result<T, ParseError> {
        Err(ParseError::at(self.source, self.offset(), problem, hint))
    }

    /// Fails at the token that was taken last.
    pub(super) fn fail_before<T>(
        &self,
        problem: String,
        hint: &'static str,
    ) -> Result<T, ParseError> {
        let offset = self.list[self.at.saturating_sub(1)].1;
        Err(ParseError::at(self.source, offset, problem, hint))
    }

    pub(super) fn accept(&mut self, mark: &'static str) -> bool {
        let found = self.peek() == &Token::Mark(mark);
        if found {
            self.at += 1;
        }
        found
    }

    pub(super) fn expect(
        &mut self,
        mark: &'static str,
        hint: &'static str,
    ) -> Result<(), ParseError> {
        if self.accept(mark) {
            return Ok(());
        }
        let problem = format!("{} stands where `{mark}` should", self.peek().describe());
        self.fail(problem, hint)
    }

    /// The `=` of an assignment.
    pub(super) fn assign(&mut self) -> Result<(), ParseError> {
        self.expect("=", "write name = \"value\"")
    }

    pub(super) fn finish(&self) -> Result<(), ParseError> {
        match self.peek() {
            Token::End => Ok(()),
            other => self.fail(
                format!("{} does not belong here", other.describe()),
                "the field is complete before it",
            ),
        }
    }

    pub(super) fn deeper(&mut self) -> Result<(), ParseError> {
        self.depth += 1;
        if self.depth > bounds::NESTING {
            let problem = format!("nesting is deeper than {}", bounds::NESTING);
            return self.fail(problem, "");
        }
        Ok(())
    }

    pub(super) fn shallower(&mut self) {
        self.depth -= 1;
    }

    /// In a `Licensees` field, whether the `(` here encloses an expression of
    /// principals. Otherwise it encloses a string, as in `("a" . "b") . c`.
    pub(super) fn parenthesis_opens_licensees(&self) -> bool {
        if self.peek() != &Token::Mark("(") {
            return false;
        }
        let closed = self.closed.get(self.at).copied().unwrap_or(usize::MAX);
        let next = closed.checked_add(1).and_then(|next| self.list.get(next));
        next.map(|(token, _)| token) != Some(&Token::Mark("."))
    }

    /// Clauses up to the end of the field or block.
    pub(super) fn program(&mut self) -> Result<Vec<Clause>, ParseError> {
        let mut clauses = Vec::new();
        while !matches!(self.peek(), Token::End | Token::Mark("}")) {
            clauses.push(self.clause()?);
            self.expect(";", "every clause ends with `;`, the last one too")?;
        }
        Ok(clauses)
    }

    fn clause(&mut self) -> Result<Clause, ParseError> {
        let test = self.test()?;
        let value = if !self.accept("->") {
            ClauseValue::Greatest
        } else if self.accept("{") {
            self.deeper()?;
            let clauses = self.program()?;
            self.expect("}", "a `{` is not closed")?;
            self.shallower();
            ClauseValue::Nested(clauses)
        } else {
            ClauseValue::Named(self.string()?)
        };
        Ok(Clause { test, value })
    }

    fn test(&mut self) -> Result<Test, ParseError> {
        let start = self.at;
        let node = self.any()?;
        self.as_test(node, start)
    }

    /// A string expression.
    pub(super) fn string(&mut self) -> Result<Str, ParseError> {
        let start = self.at;
        let node = self.sum()?;
        self.as_string(node, start)
    }

    fn any(&mut self) -> Result<Node, ParseError> {
        self.logical("||", Tokens::conjunction, Test::Or)
    }

    fn conjunction(&mut self) -> Result<Node, ParseError> {
        self.logical("&&", Tokens::negation, Test::And)
    }

    fn logical(
        &mut self,
        mark: &'static str,
        part: fn(&mut Self) -> Result<Node, ParseError>,
        join: fn(Vec<Test>) -> Test,
    ) -> Result<Node, ParseError> {
        let start = self.at;
        let first = part(self)?;
        if self.peek() != &Token::Mark(mark) {
            return Ok(first);
        }
        let mut parts = vec![self.as_test(first, start)?];
        while self.accept(mark) {
            let start = self.at;
            let next = part(self)?;
            parts.push(self.as_test(next, start)?);
        }
        Ok(Node::Test(join(parts)))
    }

    fn negation(&mut self) -> Result<Node, ParseError> {
        if !self.accept("!") {
            return self.relation();
        }
        self.deeper()?;
        let start = self.at;
        let inner = self.negation()?;
        let inner = self.as_test(inner, start)?;
        self.shallower();
        Ok(Node::Test(Test::Not(Box::new(inner))))
    }

    fn relation(&mut self) -> Result<Node, ParseError> {
        let left = self.sum()?;
        let &Token::Mark(mark) = self.peek() else {
            return Ok(left);
        };
        let relation = match mark {
            "==" => Relation::Equal,
            "!=" => Relation::NotEqual,
            "<" => Relation::Less,
            ">" => Relation::Greater,
            "<=" => Relation::LessOrEqual,
            ">=" => Relation::GreaterOrEqual,
            "~=" => return self.matching(left),
            "=" => return self.fail("`=` is no comparison".to_owned(), "equality is `==`"),
            _ => return Ok(left),
        };
        self.take();
        let right = self.sum()?;
        match (left, right) {
            (Node::Integer(left), Node::Integer(right)) => {
                Ok(Node::Test(Test::Integers(left, relation, right)))
            }
            (Node::Float(_), Node::Float(_))
                if matches!(relation, Relation::Equal | Relation::NotEqual) =>
            {
                self.fail_before(
                    "floating point numbers have no test for equality".to_owned(),
                    "compare with `<=` and `>=`, or use integers (`@`)",
                )
            }
            (Node::Float(left), Node::Float(right)) => {
                Ok(Node::Test(Test::Floats(left, relation, right)))
            }
            (Node::Str(left), Node::Str(right)) => {
                Ok(Node::Test(Test::Strings(left, relation, right)))
            }
            (left, right) => self.fail_before(
                format!("{} is compared with {}", left.kind(), right.kind()),
                "both sides must be of one kind: `@name` is an integer, `&name` a floating point \
                 number (whose literals have a point), `name` a string",
            ),
        }
    }

    fn matching(&mut self, left: Node) -> Result<Node, ParseError> {
        let left = self.as_string(left, self.at)?;
        self.take();
        let right = self.string()?;
        Ok(Node::Test(Test::Matches(
            left,
            Box::new(Pattern::new(right)),
        )))
    }

    fn sum(&mut self) -> Result<Node, ParseError> {
        let start = self.at;
        let first = self.product()?;
        if self.peek() == &Token::Mark(".") {
            let mut parts = vec![self.as_string(first, start)?];
            while self.accept(".") {
                let start = self.at;
                let next = self.product()?;
                parts.push(self.as_string(next, start)?);
            }
            return Ok(Node::Str(Str::Joined(parts)));
        }
        self.chain(
            first,
            &[("+", Operator::Add), ("-", Operator::Subtract)],
            Tokens::product,
        )
    }

    fn product(&mut self) -> Result<Node, ParseError> {
        let first = self.power()?;
        self.chain(
            first,
            &[
                ("*", Operator::Multiply),
                ("/", Operator::Divide),
                ("%", Operator::Modulo),
            ],
            Tokens::power,
        )
    }

    fn power(&mut self) -> Result<Node, ParseError> {
        let first = self.prefix()?;
        self.chain(first, &[("^", Operator::Power)], Tokens::prefix)
    }

    /// `first`, or `first op next op next ...` with operators of one class.
    fn chain(
        &mut self,
        first: Node,
        operators: &[(&'static str, Operator)],
        next: fn(&mut Self) -> Result<Node, ParseError>,
    ) -> Result<Node, ParseError> {
        let mut integers = Vec::new();
        let mut floats = Vec::new();
        while let Some((mark, operator)) = operators
            .iter()
            .find(|(mark, _)| self.peek() == &Token::Mark(mark))
        {
            self.take();
            match (&first, next(self)?) {
                (Node::Integer(_), Node::Integer(right)) => integers.push((*operator, right)),
                (Node::Float(_), Node::Float(right)) if *operator != Operator::Modulo => {
                    floats.push((*operator, right));
                }
                (left, right) => {
                    return self.fail_before(
                        format!("`{mark}` joins {} and {}", left.kind(), right.kind()),
                        "both must be integers, or both floating point numbers (without `%`); \
                         `@` and `&` make numbers of strings",
                    );
                }
            }
        }
        Ok(match first {
            Node::Integer(first) if !integers.is_empty() => {
                Node::Integer(Integer::Chain(Box::new(first), integers))
            }
            Node::Float(first) if !floats.is_empty() => {
                Node::Float(Float::Chain(Box::new(first), floats))
            }
            first => first,
        })
    }

    fn prefix(&mut self) -> Result<Node, ParseError> {
        let &Token::Mark(mark @ ("-" | "@" | "&" | "$")) = self.peek() else {
            return self.primary();
        };
        self.deeper()?;
        self.take();
        let start = self.at;
        let operand = self.prefix()?;
        let node = match (mark, operand) {
            ("-", Node::Integer(inner)) => Node::Integer(Integer::Negated(Box::new(inner))),
            ("-", Node::Float(inner)) => Node::Float(Float::Negated(Box::new(inner))),
            ("-", other) => {
                return self.fail_before(format!("{} is negated", other.kind()), "");
            }
            ("@", operand) => Node::Integer(Integer::Of(self.as_string(operand, start)?)),
            ("&", operand) => Node::Float(Float::Of(self.as_string(operand, start)?)),
            (_, operand) => Node::Str(Str::Dereference(Box::new(self.as_string(operand, start)?))),
        };
        self.shallower();
        Ok(node)
    }

    fn primary(&mut self) -> Result<Node, ParseError> {
        match self.peek().clone() {
            Token::Name(name) => {
                self.take();
                Ok(Node::Str(Str::Attribute(name)))
            }
            Token::Text(text) => {
                self.take();
                Ok(Node::Str(Str::Literal(text)))
            }
            Token::Integer(number) => {
                self.take();
                Ok(Node::Integer(Integer::Literal(number)))
            }
            Token::Float(number) => {
                self.take();
                Ok(Node::Float(Float::Literal(number)))
            }
            Token::Mark("(") => {
                self.deeper()?;
                self.take();
                let inner = self.any()?;
                self.expect(")", "a `(` is not closed")?;
                self.shallower();
                Ok(inner)
            }
            other => self.fail(
                format!(
                    "{} stands where an expression should begin",
                    other.describe()
                ),
                "",
            ),
        }
    }

    /// `true` and `false` are not reserved: they are names of attributes
    /// wherever a test is not asked for.
    fn as_test(&self, node: Node, start: usize) -> Result<Test, ParseError> {
        match node {
            Node::Test(test) => Ok(test),
            Node::Str(Str::Attribute(name)) if name.eq_ignore_ascii_case("true") => {
                Ok(Test::Constant(true))
            }
            Node::Str(Str::Attribute(name)) if name.eq_ignore_ascii_case("false") => {
                Ok(Test::Constant(false))
            }
            other => self.wrong_kind(start, "a test", &other),
        }
    }

    fn as_string(&self, node: Node, start: usize) -> Result<Str, ParseError> {
        match node {
            Node::Str(text) => Ok(text),
            other => self.wrong_kind(start, "a string", &other),
        }
    }

    fn wrong_kind<T>(&self, start: usize, wanted: &str, found: &Node) -> Result<T, ParseError> {
        if self.peek() == &Token::Mark("=") {
            return self.fail("`=` is no comparison".to_owned(), "equality is `==`");
        }
        Err(ParseError::at(
            self.source,
            self.list[start.min(self.list.len() - 1)].1,
            format!("{} stands where {wanted} should", found.kind()),
            "",
        ))
    }
}
