//! What modules may call, and how the core calls them: httpd.txt and callbacks.txt, read once.

mod given;
mod groups;
mod policies;

pub(crate) use given::Given;
pub(crate) use policies::{REMOVAL, interface};

use crate::object::Kind;
use crate::outs;
use crate::slots;
use given::Care;
use groups::{BEFORE_SERVING, COMPUTE};
use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;

/// A parameter of a function of the host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Param {
    Any,
    Pool,
    Request {
        null: bool,
    },
    Connection {
        null: bool,
    },
    Server {
        null: bool,
    },
    /// The state of the directive that is read.
    Command,
    Object {
        kind: Kind,
        null: bool,
    },
    /// One that the object of this argument has a pointer to from then on.
    Kept(Kind, usize),
    /// One that the function ends: the module has it no more ([`crate::walled::Walled::take_object`]).
    Ended(Kind),
    /// The host writes so many bytes: to a place of ours until it returns (`outs.rs`), or `here`, in the module's.
    Out {
        bytes: u64,
        null: bool,
        here: bool,
    },
    /// As many as this argument says, times so many.
    OutBy {
        by: usize,
        scale: u64,
        null: bool,
    },
    /// As many as the number says that this argument points to, which has so many bytes.
    OutAt(usize, u64),
    OutObject(Kind),
    /// A string that the host reads, as a copy.
    Text {
        what: Text,
        null: bool,
    },
    /// Pointers to strings, up to a null pointer, as a copy that stays as long as the configuration.
    Names {
        null: bool,
    },
    /// An address of a socket that the host only reads, as a copy that leads to itself.
    Address {
        null: bool,
    },
    /// Where the parts of a match are in the string that this argument is, as many as that one says.
    Matches {
        text: usize,
        count: usize,
    },
    /// A number that must not be above this one; as an `int` that is not below zero, or as 64 bits.
    Most {
        most: u64,
        wide: bool,
    },
    /// Memory that the host reads in its place.
    Read {
        what: Extent,
        null: bool,
    },
    /// A word that the host writes, and that points to a string before.
    Moved,
    Callback(&'static Back),
    /// The word of a filter whose name or record is the first argument.
    Context,
    /// The name of a filter that is registered, as a copy.
    FilterName,
    /// A kind of locks, as a copy that is the module's own by name.
    LockName,
    /// `ap_filter_flush` with the filter behind it, or null.
    Flush,
}

/// A string of which the host gets a copy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Text {
    /// Until the function returns.
    Read,
    /// The function keeps its address: as long as the pool that the call is for.
    Kept,
    /// A string, or APR's word for the encoding of the locale, which is 1.
    Encoding,
}

/// How much of what lies there the host reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Extent {
    /// A string to its end, or as many characters as this argument says.
    Most(usize),
    /// The same, or as many bytes as this argument says, if it is not -1.
    Key(usize),
    Bytes(u64),
    /// As many bytes as this argument says, times so many.
    By(usize, u64),
    /// As many bytes as this argument says, which is an `int`.
    Int(usize),
    /// The same of an `unsigned int`.
    Unsigned(usize),
    /// As many bytes as the number says that this argument points to, which the host gets in a place of ours.
    At(usize),
}

impl Param {
    /// Whether it is looked at alone, before the call ([`crate::call::look`]).
    fn is_simple(&self) -> bool {
        use Param::{Any, Connection, Object, Pool, Read, Request, Server, Text};
        let is_object = matches!(
            self,
            Any | Pool
                | Request { .. }
                | Connection { .. }
                | Server { .. }
                | Object { .. }
                | Read { .. }
                | Text {
                    what: self::Text::Read | self::Text::Encoding,
                    ..
                }
        );
        is_object && !self.is_ring()
    }

    /// Whether it has to do with buckets.
    pub(crate) fn is_ring(&self) -> bool {
        match *self {
            Param::Object { kind, .. } => matches!(kind, Kind::Brigade | Kind::Bucket),
            Param::OutObject(kind) => kind == Kind::Bucket,
            Param::Any
            | Param::Pool
            | Param::Request { .. }
            | Param::Connection { .. }
            | Param::Server { .. }
            | Param::Command
            | Param::Ended(_)
            | Param::Kept(..)
            | Param::Out { .. }
            | Param::OutBy { .. }
            | Param::OutAt(..)
            | Param::Text { .. }
            | Param::Names { .. }
            | Param::Address { .. }
            | Param::Matches { .. }
            | Param::Most { .. }
            | Param::Read { .. }
            | Param::Moved
            | Param::Callback(_)
            | Param::Context
            | Param::FilterName
            | Param::LockName
            | Param::Flush => false,
        }
    }

    /// Whether nothing has to be done for it but a look at it alone, a copy of a string until the call returns, or a small place of ours
    /// that the host writes (`crate::call::with_answer`).
    fn is_nearly_simple(&self) -> bool {
        let is_small_out = self.out().is_some_and(|(_, is_object)| !is_object);
        let is_by_place = matches!(
            self,
            Param::Read {
                what: Extent::At(_),
                ..
            }
        );
        is_small_out || matches!(self, Param::Most { .. }) || self.is_simple() && !is_by_place
    }

    /// How many bytes the host writes for it to a small place of ours, and whether that is an object.
    pub(crate) fn out(&self) -> Option<(u64, bool)> {
        match *self {
            Param::Out {
                bytes, here: false, ..
            } if bytes <= outs::MOST => Some((bytes, false)),
            Param::OutObject(_) => Some((8, true)),
            Param::Any
            | Param::Pool
            | Param::Request { .. }
            | Param::Connection { .. }
            | Param::Server { .. }
            | Param::Command
            | Param::Object { .. }
            | Param::Ended(_)
            | Param::Kept(..)
            | Param::Out { .. }
            | Param::OutBy { .. }
            | Param::OutAt(..)
            | Param::Text { .. }
            | Param::Names { .. }
            | Param::Address { .. }
            | Param::Matches { .. }
            | Param::Most { .. }
            | Param::Read { .. }
            | Param::Moved
            | Param::Callback(_)
            | Param::Context
            | Param::FilterName
            | Param::LockName
            | Param::Flush => None,
        }
    }
}

/// A result of a function of the host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Answer {
    Plain,
    Request,
    Object(Kind),
    Text,
    /// A string of the server's. A module gets a copy if it could not read it.
    Shown,
    /// As many bytes as this argument's place says behind the call: a module whose loads are checked gets a copy for its own call.
    Bytes(usize),
    /// Nothing: the core would follow it.
    Null,
    /// A structure of so many bytes. The core gets a copy.
    Copied(usize),
    /// `DECLINED`, whatever the function says. The core would follow what it has not been given.
    Declined,
}

impl Answer {
    /// Whether the core gets what a function of a module answers as it is.
    pub(crate) fn is_plain(self) -> bool {
        match self {
            Answer::Null
            | Answer::Text
            | Answer::Declined
            | Answer::Copied(_)
            | Answer::Object(_)
            | Answer::Request => false,
            Answer::Plain | Answer::Shown | Answer::Bytes(_) => true,
        }
    }

    pub(crate) fn is_ring(&self) -> bool {
        matches!(self, Answer::Object(Kind::Brigade | Kind::Bucket))
    }

    /// Whether it follows from the result, and from what the arguments live in (`crate::call::answered`).
    fn is_simple(self) -> bool {
        match self {
            Answer::Object(kind) => {
                !self.is_ring() && !matches!(kind, Kind::Allocator | Kind::Filter)
            }
            Answer::Plain | Answer::Null | Answer::Text | Answer::Shown => true,
            Answer::Request | Answer::Bytes(_) | Answer::Copied(_) | Answer::Declined => false,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Way {
    /// Called as it is: it takes numbers, or only reads.
    Direct,
    Mediated(Vec<Param>, Answer),
    /// A function of ours stands for it (`own.rs`), a variadic one with words of arguments on the stack.
    Own {
        variadic: bool,
    },
    /// Another module's function, whose row is in callbacks.txt.
    Cross,
}

/// What parameters ask for, read once for all calls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Needs {
    /// Some are of buckets, or the result is.
    pub(crate) rings: bool,
    /// The function writes to places of ours.
    pub(crate) outs: bool,
}

impl Needs {
    pub(crate) fn of(params: &[Param], answer: Answer) -> Needs {
        Needs {
            rings: params.iter().any(Param::is_ring) || answer.is_ring(),
            outs: params.iter().any(|param| param.out().is_some()),
        }
    }
}

/// A function of the host.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    group: &'static str,
    pub(crate) way: Way,
    /// Parameters that are looked at, with their places, if all arguments are objects alone, and nothing is written or given.
    pub(crate) simple: Option<Vec<(usize, Param)>>,
    /// Whether the same may be said, but that small places are written, or the result is looked at.
    pub(crate) is_nearly_simple: bool,
    pub(crate) needs: Needs,
    /// The function that copies what this one would put into a table as it is: others read what a module puts there.
    pub(crate) copies: Option<&'static str>,
    /// Where the function is, once somebody has asked.
    pub(crate) real: AtomicUsize,
    /// Whether it registers a function in a list that the core goes through without a lock.
    pub(crate) is_hook: bool,
    /// Whether it only computes, and waits for nobody.
    pub(crate) computes: bool,
}

/// What an ended call leaves behind, besides what it answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Ends {
    Plain,
    /// An answer that is under way.
    OutputFilter,
    /// A request that would be answered without a filter.
    Insert,
    /// A request that would be answered without what the module makes ready for it.
    Create,
}

/// A kind of function of modules that the core or another module calls.
#[derive(Debug, PartialEq)]
pub(crate) struct Back {
    pub(crate) name: &'static str,
    pub(crate) given: Vec<Given>,
    /// Arguments that say what the call may use, with their places.
    pub(crate) roots: Vec<(usize, Given)>,
    /// Whether an argument is more than that: something is granted, copied or shown for the length of the call.
    pub(crate) is_seen_to: bool,
    /// Whether something is granted or offered, a string copied, a brigade shown.
    pub(crate) grants: bool,
    pub(crate) copies: bool,
    pub(crate) shows: bool,
    /// Whether it is a filter's function: the brigade behind the filter is shown, and that is all.
    pub(crate) is_filter: bool,
    /// The same as words: for a module that calls it, its arguments are looked at.
    words: &'static str,
    /// Whether a call works with what its caller was given, too.
    pub(crate) inherits: bool,
    /// Whether other modules call it only while the configuration is read, with a pool of the configuration.
    pub(crate) is_early: bool,
    /// Arguments that point to the address of a structure behind the call, with its name: the caller may call its functions.
    pub(crate) structures: Vec<(usize, &'static str)>,
    pub(crate) answer: Answer,
    pub(crate) ends: Ends,
    /// What an ended call answers; none: the text of a directive's error.
    pub(crate) error: Option<u64>,
}

/// The word of a row whose call works with what its caller was given, too.
const INHERITS: &str = "^";
/// The word of a row that other modules call before the server serves.
const EARLY: &str = "!";

/// Whether a word of a row says something of the function, and is no argument.
fn is_sign(word: &str) -> bool {
    [INHERITS, EARLY].contains(&word)
}

/// The word of a request that a module with a wall looks at itself.
const OF_CALLEE: &str = "r!";

fn lines(text: &'static str) -> impl Iterator<Item = &'static str> {
    let lines = text.lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// By their names.
pub(crate) fn backs() -> &'static HashMap<&'static str, Back> {
    static BACKS: OnceLock<HashMap<&'static str, Back>> = OnceLock::new();
    BACKS.get_or_init(|| {
        let rows = lines(include_str!("callbacks.txt")).map(|line| {
            let (head, error) = line.split_once('=').unwrap_or((line, "0"));
            let (head, answer) = head.split_once("->").unwrap_or((head, "."));
            let (_, all) = head.split_once(' ').unwrap_or((head, ""));
            let mut words = head.split_ascii_whitespace();
            let name = words.next().unwrap_or_default();
            let words: Vec<&'static str> = words.collect();
            let inherits = words.contains(&INHERITS);
            let is_early = words.contains(&EARLY);
            let words = words.into_iter().filter(|word| !is_sign(word));
            let structures = words.clone().enumerate();
            let structures =
                structures.filter_map(|(at, word)| Some((at, word.strip_prefix('%')?)));
            let structures = structures.collect();
            let given = words.map(|word| match word.trim_end_matches('?') {
                "p" => Given::Pool,
                "r" => Given::Request,
                "c" => Given::Connection,
                "s" => Given::Server,
                "f" => Given::Filter,
                "b" => Given::Brigade,
                "t" => Given::Table,
                "cmd" => Given::Command,
                "o" => Given::Thing,
                "ow" => Given::Worker,
                "ob" => Given::Balancer,
                "$" => Given::Copy,
                "\"" => Given::Shown,
                word if word.starts_with('>') => Given::Out(8),
                word if word.starts_with('&') => Given::Callback(&word[1..]),
                "w\"" => Given::OutText,
                "w$" => Given::OutString,
                word if word.starts_with('%') => Given::Out(8),
                word if word.starts_with('@') => match word[1..].split_once(':') {
                    Some((at, name)) => Given::Within(at.parse().unwrap_or(0), name),
                    None => Given::Any,
                },
                word => match word.strip_prefix('w') {
                    Some(at) if at.starts_with('@') => {
                        Given::OutAt(at[1..].parse().unwrap_or(slots::WIDE))
                    }
                    Some(at) if at.starts_with('*') => {
                        Given::OutBy(at[1..].parse().unwrap_or(slots::WIDE))
                    }
                    Some(bytes) => bytes.parse().map_or(Given::Any, Given::Out),
                    None => Given::Any,
                },
            });
            let error = match error.trim() {
                "dav" => Some(crate::dav::ended()),
                number => number.parse::<i64>().ok().map(|n| n as u64),
            };
            let given: Vec<Given> = given.collect();
            let has = |care: Care| given.iter().any(|given| given.care() == care);
            let is_cared_for = given.iter().any(|given| given.care() != Care::Nothing);
            let roots = given.iter().copied().enumerate().take(slots::WIDE);
            let roots = roots.filter(|(_, given)| given.is_root());
            let back = Back {
                name,
                roots: roots.collect(),
                grants: has(Care::Granted),
                copies: has(Care::Copied),
                shows: has(Care::Shown),
                is_filter: matches!(given[..], [Given::Filter, Given::Brigade, ..])
                    && given[2..].iter().all(|given| *given == Given::Any)
                    && given.len() <= 6
                    && result(answer.trim()) == Answer::Plain,
                is_seen_to: name == "register" || is_cared_for,
                given,
                words: all.trim(),
                inherits,
                is_early,
                structures,
                answer: result(answer.trim()),
                ends: match name {
                    "output_filter" => Ends::OutputFilter,
                    "insert_filter" => Ends::Insert,
                    "create_request" => Ends::Create,
                    _ => Ends::Plain,
                },
                error,
            };
            (name, back)
        });
        rows.collect()
    })
}

impl Back {
    /// Whether the host does without such a function.
    pub(crate) fn may_be_null(&self) -> bool {
        matches!(
            self.name,
            "filter_init" | "hash_merge" | "cleanup" | "cleanup_of"
        )
    }

    /// Places of requests that a module with a wall looks at itself.
    pub(crate) fn of_callee(&self) -> impl Iterator<Item = usize> {
        let words = self.words.split_ascii_whitespace().enumerate();
        words.filter_map(|(at, word)| (word == OF_CALLEE).then_some(at))
    }

    /// What is looked at when another module calls such a function.
    pub(crate) fn params(&self) -> Vec<Param> {
        let words = self.words.split_ascii_whitespace();
        let words = words.filter(|word| !is_sign(word));
        let params = words.map(|word| match word.as_bytes() {
            [b'%', ..] => param("w8"),
            [b'@', ..] => Param::Any,
            _ => param(word),
        });
        params.collect()
    }
}

/// Whether there is such a kind.
pub(crate) fn find_back(name: &str) -> Option<&'static Back> {
    backs().get(name)
}

/// A kind of callback.
pub(crate) fn back(name: &str) -> &'static Back {
    let backs = backs();
    backs.get(name).unwrap_or_else(|| &backs["nothing"])
}

/// A word that is no kind, which a test of the files finds, is one of which no module has an object.
fn kind_of(word: &str) -> Kind {
    let letter = word.as_bytes().first();
    letter
        .and_then(|letter| Kind::of(*letter))
        .unwrap_or(Kind::Unknown)
}

/// The rest of a word, behind the sign for memory that is read in its place. A word without meaning is of more bytes than there
/// are; a test of the file finds it.
fn extent(word: &str) -> Extent {
    let number = |word: &str| word.parse().unwrap_or(slots::WIDE);
    let (first, rest) = word.split_at(word.len().min(1));
    match first {
        "<" => Extent::Most(number(rest)),
        "-" => Extent::Key(number(rest)),
        "@" => Extent::At(number(rest)),
        "i" => Extent::Int(number(rest)),
        "u" => Extent::Unsigned(number(rest)),
        "*" => {
            let (at, scale) = rest.split_once('*').unwrap_or((rest, "1"));
            Extent::By(number(at), scale.parse().unwrap_or(u64::MAX))
        }
        _ => Extent::Bytes(word.parse().unwrap_or(u64::MAX)),
    }
}

/// A parameter by its word in httpd.txt.
pub(crate) fn param(word: &str) -> Param {
    if let Some(name) = word.strip_prefix('&') {
        return Param::Callback(back(name));
    }
    if let Some(at) = word.strip_prefix("w@@") {
        return Param::OutAt(at.parse().unwrap_or(slots::WIDE), 8);
    }
    if let Some(at) = word.strip_prefix("w@") {
        return Param::OutAt(at.parse().unwrap_or(slots::WIDE), 4);
    }
    let null = word.ends_with('?');
    if let Some(by) = word.trim_end_matches('?').strip_prefix("w*") {
        let (by, scale) = by.split_once('*').unwrap_or((by, "1"));
        let (by, scale) = (by.parse().unwrap_or(0), scale.parse().unwrap_or(1));
        return Param::OutBy { by, scale, null };
    }
    if let Some(rest) = word.strip_prefix('#') {
        let most = rest.trim_start_matches('#').parse().unwrap_or(0);
        let wide = rest.starts_with('#');
        return Param::Most { most, wide };
    }
    if let Some((text, count)) = word.strip_prefix("<=").and_then(|by| by.split_once('*')) {
        let number = |word: &str| word.parse().unwrap_or(slots::WIDE);
        let (text, count) = (number(text), number(count));
        return Param::Matches { text, count };
    }
    if word.trim_end_matches('?') == "<a" {
        return Param::Address { null };
    }
    if matches!(word, "w\"" | "w$") {
        return Param::Out {
            bytes: 8,
            null: false,
            here: false,
        };
    }
    if word == "w'" {
        return Param::Moved;
    }
    if let Some(what) = word.strip_prefix('\'') {
        let null = what.ends_with('?');
        let what = extent(what.trim_end_matches('?'));
        return Param::Read { what, null };
    }
    let bytes = word.trim_end_matches('?').strip_prefix('w');
    let here = bytes.and_then(|bytes| bytes.strip_prefix('!'));
    if let Some(bytes) = here.or(bytes).and_then(|n| n.parse().ok()) {
        let here = here.is_some();
        return Param::Out { bytes, null, here };
    }
    if let Some(kind) = word.strip_prefix('>') {
        return Param::OutObject(kind_of(kind));
    }
    if let Some((kind, by)) = word.split_once('+')
        && let Ok(by) = by.parse()
    {
        return Param::Kept(kind_of(kind), by);
    }
    match word.as_bytes().first() {
        None | Some(b'.' | b'$') => Param::Any,
        Some(b'"') if word.starts_with("\"[") => Param::Names { null },
        Some(b'"') => Param::Text {
            what: match word.as_bytes().get(1) {
                Some(b'p') => Text::Kept,
                Some(b'1') => Text::Encoding,
                _ => Text::Read,
            },
            null,
        },
        Some(b'f') if word == "flush" => Param::Flush,
        Some(b'c') if word == "ctx" => Param::Context,
        Some(b'n') if word == "name" => Param::FilterName,
        Some(b'l') if word == "lock" => Param::LockName,
        Some(b'c') if word == "cmd" => Param::Command,
        Some(b'p') => Param::Pool,
        Some(b'r') => Param::Request { null },
        Some(b'c') => Param::Connection { null },
        Some(b's') => Param::Server { null },
        Some(_) if word.ends_with('-') => Param::Ended(kind_of(word)),
        Some(_) => Param::Object {
            kind: kind_of(word),
            null,
        },
    }
}

fn result(word: &str) -> Answer {
    match word {
        "." | "" => Answer::Plain,
        "str" => Answer::Text,
        "null" => Answer::Null,
        "declined" => Answer::Declined,
        "r" => Answer::Request,
        "text" => Answer::Shown,
        word if word.starts_with("copy") => Answer::Copied(word[4..].parse().unwrap_or(0)),
        word if word.starts_with('@') => Answer::Bytes(word[1..].parse().unwrap_or(slots::WIDE)),
        kind => Answer::Object(kind_of(kind)),
    }
}

fn way(words: &[&'static str]) -> Way {
    match words {
        ["!"] => return Way::Own { variadic: false },
        ["!v"] => return Way::Own { variadic: true },
        ["^"] => return Way::Cross,
        _ => {}
    }
    let end = words.iter().position(|word| *word == "=");
    let (params, answer) = words.split_at(end.unwrap_or(words.len()));
    let params: Vec<Param> = params.iter().map(|word| param(word)).collect();
    let answer = result(answer.get(1).copied().unwrap_or("."));
    match answer == Answer::Plain && params.iter().all(|param| *param == Param::Any) {
        true => Way::Direct,
        false => Way::Mediated(params, answer),
    }
}

/// All functions, and for each group what it is for.
pub(crate) struct Table {
    pub(crate) rows: Vec<Row>,
    by_name: HashMap<&'static str, usize>,
}

pub(crate) fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut table = Table {
            rows: Vec::new(),
            by_name: HashMap::new(),
        };
        let mut group = "";
        for line in lines(include_str!("httpd.txt")) {
            if let Some(head) = line.strip_prefix('[') {
                group = head.split(']').next().unwrap_or_default();
                continue;
            }
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let Some((name, words)) = words.split_first() else {
                continue;
            };
            table.by_name.entry(name).or_insert(table.rows.len());
            let way = way(words);
            let (simple, is_nearly_simple, needs) = match &way {
                Way::Mediated(params, answer) => {
                    let is_few = params.len() <= 6;
                    let all = is_few && params.iter().all(Param::is_simple);
                    let is_nearly_simple =
                        is_few && answer.is_simple() && params.iter().all(Param::is_nearly_simple);
                    let looked_at = || {
                        let params = params.iter().copied().enumerate();
                        params.filter(|(_, param)| *param != Param::Any).collect()
                    };
                    let simple = (all && *answer == Answer::Plain).then(looked_at);
                    (simple, is_nearly_simple, Needs::of(params, *answer))
                }
                _ => (None, false, Needs::of(&[], Answer::Plain)),
            };
            table.rows.push(Row {
                name,
                group,
                way,
                simple,
                is_nearly_simple,
                needs,
                copies: crate::reading::copies(name),
                real: AtomicUsize::new(0),
                computes: COMPUTE.contains(&group),
                is_hook: name.starts_with("ap_hook_")
                    || name.starts_with("ap_register_")
                    || name.starts_with("proxy_hook_")
                    || name.starts_with("dav_hook_")
                    || name.starts_with("dav_register_")
                    || BEFORE_SERVING.contains(name),
            });
        }
        table
    })
}

impl Table {
    pub(crate) fn find(&self, name: &str) -> Option<(usize, &Row)> {
        let at = *self.by_name.get(name)?;
        Some((at, &self.rows[at]))
    }
}
