//! What modules may call, and how the core calls them: httpd.txt and callbacks.txt, read once.

use mullion_word_policy::{Call, File, Interface};
use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

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
        kind: u8,
        null: bool,
    },
    /// The host writes so many bytes there.
    Out(u64),
    /// As many as this argument says, times so many.
    OutBy(usize, u64),
    OutObject(u8),
    Callback(&'static Back),
    /// `ap_filter_flush` with the filter behind it, or null.
    Flush,
}

impl Param {
    /// Whether it has to do with buckets.
    pub(crate) fn is_ring(&self) -> bool {
        matches!(
            self,
            Param::Object {
                kind: b'b' | b'k',
                ..
            } | Param::OutObject(b'k')
        )
    }
}

/// A result of a function of the host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Answer {
    Plain,
    Request,
    Object(u8),
    Text,
}

impl Answer {
    pub(crate) fn is_ring(&self) -> bool {
        matches!(self, Answer::Object(b'b' | b'k'))
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
}

/// A function of the host.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    group: &'static str,
    pub(crate) way: Way,
}

/// A parameter of a module's function.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Given {
    Any,
    Pool,
    Request,
    Connection,
    Server,
    Filter,
    Brigade,
    Table,
    Command,
    Out(u64),
}

/// A kind of function of modules that the core calls.
#[derive(Debug, PartialEq)]
pub(crate) struct Back {
    pub(crate) name: &'static str,
    pub(crate) given: Vec<Given>,
    /// What an ended call answers; none: the text of a directive's error.
    pub(crate) error: Option<u64>,
}

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
            let mut words = head.split_ascii_whitespace();
            let name = words.next().unwrap_or_default();
            let given = words.map(|word| match word.trim_end_matches('?') {
                "p" => Given::Pool,
                "r" => Given::Request,
                "c" => Given::Connection,
                "s" => Given::Server,
                "f" => Given::Filter,
                "b" => Given::Brigade,
                "t" => Given::Table,
                "cmd" => Given::Command,
                word => match word.strip_prefix('w').and_then(|n| n.parse().ok()) {
                    Some(bytes) => Given::Out(bytes),
                    None => Given::Any,
                },
            });
            let error = error.trim().parse::<i64>().ok().map(|n| n as u64);
            let given = given.collect();
            (name, Back { name, given, error })
        });
        rows.collect()
    })
}

/// A kind of callback.
pub(crate) fn back(name: &str) -> &'static Back {
    let backs = backs();
    backs.get(name).unwrap_or_else(|| &backs["nothing"])
}

/// A parameter by its word in httpd.txt.
pub(crate) fn param(word: &str) -> Param {
    if let Some(name) = word.strip_prefix('&') {
        return Param::Callback(back(name));
    }
    if let Some(by) = word.strip_prefix("w*") {
        let (at, scale) = by.split_once('*').unwrap_or((by, "1"));
        return Param::OutBy(at.parse().unwrap_or(0), scale.parse().unwrap_or(1));
    }
    if let Some(bytes) = word.strip_prefix('w').and_then(|n| n.parse().ok()) {
        return Param::Out(bytes);
    }
    if let Some(kind) = word.strip_prefix('>') {
        return Param::OutObject(kind.as_bytes().first().copied().unwrap_or(b'?'));
    }
    let null = word.ends_with('?');
    match word.as_bytes().first() {
        None | Some(b'.') => Param::Any,
        Some(b'f') if word == "flush" => Param::Flush,
        Some(b'c') if word == "cmd" => Param::Command,
        Some(b'p') => Param::Pool,
        Some(b'r') => Param::Request { null },
        Some(b'c') => Param::Connection { null },
        Some(b's') => Param::Server { null },
        Some(kind) => Param::Object { kind: *kind, null },
    }
}

fn way(words: &[&'static str]) -> Way {
    match words {
        ["!"] => return Way::Own { variadic: false },
        ["!v"] => return Way::Own { variadic: true },
        _ => {}
    }
    let end = words.iter().position(|word| *word == "=");
    let (params, answer) = words.split_at(end.unwrap_or(words.len()));
    let params: Vec<Param> = params.iter().map(|word| param(word)).collect();
    let answer = match answer.get(1).copied() {
        None | Some(".") => Answer::Plain,
        Some("str") => Answer::Text,
        Some("r") => Answer::Request,
        Some(kind) => Answer::Object(kind.as_bytes()[0]),
    };
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
            table.rows.push(Row { name, group, way });
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

/// What the interface's file says of fields that only the core may write: it follows these pointers, or calls what it finds
/// there.
const NEVER: [&str; 14] = [
    "pool",
    "connection",
    "server",
    "next",
    "prev",
    "main",
    "per_dir_config",
    "log",
    "htaccess",
    "output_filters",
    "input_filters",
    "proto_output_filters",
    "proto_input_filters",
    "invoke_mtx",
];

/// The interface as policies speak of it: functions, groups of them, and fields of structures as `request_rec.user`.
pub(crate) fn interface() -> &'static Interface {
    static INTERFACE: OnceLock<Interface> = OnceLock::new();
    INTERFACE.get_or_init(|| {
        let mut file = File::default();
        let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for row in &table().rows {
            let stacked = match row.way {
                Way::Own { variadic: true } => 16,
                _ => 0,
            };
            let call = Call {
                stacked,
                ..Call::default()
            };
            file.calls.insert(row.name.to_owned(), call);
            let members = groups.entry(row.group.to_owned()).or_default();
            members.push(row.name.to_owned());
        }
        for (name, _, _) in crate::layout::fields() {
            let (structure, field) = name.split_once('.').unwrap_or((name, ""));
            let offered = match structure {
                "request_rec" | "conn_rec" => !NEVER.contains(&field),
                "server_rec" => field == "module_config",
                "cmd_parms" => matches!(field, "info" | "override" | "limited" | "path"),
                _ => false,
            };
            if matches!(
                *name,
                "request_rec.filename" | "request_rec.uri" | "request_rec.args"
            ) {
                file.calls
                    .insert(format!("{name}.characters"), Call::default());
            }
            if offered {
                file.calls.insert((*name).to_owned(), Call::default());
            }
        }
        let default = crate::load::DEFAULT;
        if let Ok(default) = File::parse(default) {
            groups.insert("default".to_owned(), default.allow);
        }
        file.groups = groups;
        Interface::new(&[file])
    })
}
