//! What C's headers declare, as far as the test of `httpd.txt` needs it: functions with their parameters, and whether a type has
//! pointers. gcc's preprocessor has gone through them before, so that macros are gone.

use crate::Place;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::process::Command;

/// What a parameter is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    Number,
    /// It points to characters or bytes that somebody may write, or to constant ones.
    Bytes {
        is_const: bool,
    },
    /// It points to a number, or to a structure that has no pointers.
    Plain {
        name: String,
        is_const: bool,
    },
    /// It points to a pointer.
    Pointer,
    /// It points to a structure with pointers, or to one of which the headers do not tell.
    Structure {
        name: String,
        is_const: bool,
    },
    Function,
    /// Two words: a place, and how many bytes are there.
    Datum,
    /// A list of variable arguments.
    List,
}

impl Shape {
    /// Arguments that it takes.
    pub(crate) fn words(&self) -> usize {
        1 + usize::from(*self == Shape::Datum)
    }
}

/// A type by its name, or the body of a structure.
enum Type {
    Alias {
        base: String,
        is_pointer: bool,
        is_function: bool,
    },
    Body(Vec<(String, bool)>),
}

pub(crate) struct Headers {
    types: HashMap<String, Type>,
    functions: BTreeMap<String, Vec<Vec<String>>>,
}

fn tokens(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut letters = text.chars().peekable();
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    while let Some(letter) = letters.next() {
        if letter.is_whitespace() {
            continue;
        }
        let mut token = letter.to_string();
        if is_part(letter) {
            while let Some(more) = letters.next_if(|next| is_part(*next)) {
                token.push(more);
            }
        } else if letter == '"' || letter == '\'' {
            while let Some(more) = letters.next() {
                match more {
                    '\\' => drop(letters.next()),
                    more if more == letter => break,
                    _ => {}
                }
            }
        }
        all.push(token);
    }
    all
}

/// The place behind the bracket that closes the one at a place.
fn closing(tokens: &[String], open: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.as_str() {
            "(" | "{" | "[" => depth += 1,
            ")" | "}" | "]" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

/// Without what says nothing of a type.
fn bare(tokens: Vec<String>) -> Vec<String> {
    let (mut all, mut at) = (Vec::new(), 0);
    while let Some(token) = tokens.get(at) {
        match token.as_str() {
            "__attribute__" | "__asm__" | "__asm" => at = closing(&tokens, at + 1),
            "__extension__" | "__restrict" | "restrict" | "__inline" | "inline" | "extern"
            | "static" | "volatile" | "__volatile__" | "_Noreturn" | "__const" => at += 1,
            _ => {
                all.push(token.clone());
                at += 1;
            }
        }
    }
    all
}

/// Parts between commas outside of brackets.
fn parts(tokens: &[String]) -> Vec<Vec<String>> {
    let (mut all, mut now, mut depth) = (Vec::new(), Vec::new(), 0);
    for token in tokens {
        match token.as_str() {
            "(" | "{" | "[" => depth += 1,
            ")" | "}" | "]" => depth -= 1,
            "," if depth == 0 => {
                all.push(std::mem::take(&mut now));
                continue;
            }
            _ => {}
        }
        now.push(token.clone());
    }
    all.push(now);
    all
}

/// The type that a declaration begins with.
fn base(declaration: &[String]) -> String {
    let words = declaration
        .iter()
        .take_while(|token| !matches!(token.as_str(), "*" | "(" | "[" | ":"));
    let mut words: Vec<&String> = words.filter(|word| *word != "const").collect();
    if let ["struct" | "union" | "enum", tag, ..] =
        words.iter().map(|word| word.as_str()).collect::<Vec<_>>()[..]
    {
        return format!("{} {tag}", words[0]);
    }
    let is_of_c = |word: &&&String| {
        let all = [
            "unsigned", "signed", "long", "short", "int", "char", "double",
        ];
        all.contains(&word.as_str())
    };
    let numbers: Vec<&String> = words.iter().take_while(is_of_c).copied().collect();
    match numbers.is_empty() {
        true if words.is_empty() => String::new(),
        true => words.swap_remove(0).clone(),
        false if numbers.iter().any(|word| *word == "char") => "char".to_owned(),
        false => "int".to_owned(),
    }
}

/// It includes headers of libxml2, which need not be installed.
const FOREIGN: &str = "mod_xml2enc.h";

/// All headers whose functions modules call; those of httpd and APR are found.
const OTHERS: [&str; 11] = [
    "stdio.h",
    "stdlib.h",
    "string.h",
    "time.h",
    "locale.h",
    "errno.h",
    "unistd.h",
    "sys/socket.h",
    "zlib.h",
    "brotli/encode.h",
    "ldap.h",
];
const FOLDERS: [&str; 2] = ["/usr/include/apr-1.0", "/usr/include/apache2"];

impl Headers {
    /// Lines that include all of them.
    pub(crate) fn includes() -> String {
        let mut names: Vec<String> = OTHERS.iter().map(|name| (*name).to_owned()).collect();
        for folder in FOLDERS {
            let files = fs::read_dir(folder).expect("headers").flatten();
            let files = files.map(|entry| entry.file_name().to_string_lossy().into_owned());
            let mut files: Vec<String> = files
                .filter(|name| name.ends_with(".h") && name != FOREIGN)
                .collect();
            files.sort();
            names.extend(files);
        }
        let lines = names
            .iter()
            .map(|name| format!("#if __has_include(<{name}>)\n#include <{name}>\n#endif\n"));
        lines.collect()
    }

    pub(crate) fn options() -> Vec<String> {
        let names = ["_GNU_SOURCE", "LINUX", "_REENTRANT", "LDAP_DEPRECATED"];
        let names = names.map(|name| format!("-D{name}"));
        let folders = FOLDERS.map(|folder| format!("-I{folder}"));
        names.into_iter().chain(folders).collect()
    }

    pub(crate) fn read(place: &Place) -> Headers {
        let file = place.scratch.path().join("headers.c");
        fs::write(&file, Headers::includes()).expect("written");
        let mut gcc = Command::new("gcc");
        gcc.args(["-E", "-P", "-w"]).args(Headers::options());
        let output = gcc.arg(&file).output().expect("gcc starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        Headers::of(&String::from_utf8_lossy(&output.stdout))
    }

    fn of(text: &str) -> Headers {
        let mut headers = Headers {
            types: HashMap::new(),
            functions: BTreeMap::new(),
        };
        let all = bare(tokens(text));
        let (mut at, mut item) = (0, Vec::new());
        while let Some(token) = all.get(at) {
            match token.as_str() {
                ";" => {
                    headers.declare(&std::mem::take(&mut item));
                    at += 1;
                }
                "{" => {
                    let end = closing(&all, at);
                    let body = &all[at + 1..end - 1];
                    let last = item.last().map(String::as_str);
                    if last == Some(")") {
                        // A function with its body.
                        headers.declare(&std::mem::take(&mut item));
                    } else if last != Some("=") {
                        headers.define(&mut item, body);
                    }
                    at = end;
                }
                _ => {
                    item.push(token.clone());
                    at += 1;
                }
            }
        }
        headers
    }

    /// The body of a structure, which may have no name.
    fn define(&mut self, item: &mut Vec<String>, body: &[String]) {
        let is_keyword = |word: &String| matches!(word.as_str(), "struct" | "union" | "enum");
        if item.last().is_some_and(is_keyword) {
            item.push(format!("#{}", self.types.len()));
        }
        let [.., keyword, tag] = item.as_slice() else {
            return;
        };
        let name = format!("{keyword} {tag}");
        if keyword == "enum" {
            return;
        }
        let (mut members, mut member, mut at) = (Vec::new(), Vec::new(), 0);
        while let Some(token) = body.get(at) {
            match token.as_str() {
                ";" => {
                    let is_pointer = member.iter().any(|token| token == "*" || token == "(");
                    members.push((base(&member), is_pointer));
                    member.clear();
                    at += 1;
                }
                "{" => {
                    let end = closing(body, at);
                    self.define(&mut member, &body[at + 1..end - 1]);
                    at = end;
                }
                _ => {
                    member.push(token.clone());
                    at += 1;
                }
            }
        }
        self.types.insert(name, Type::Body(members));
    }

    fn declare(&mut self, item: &[String]) {
        if let Some(("typedef", rest)) =
            item.split_first().map(|(word, rest)| (word.as_str(), rest))
        {
            let (whole, base) = (parts(rest), base(rest));
            for declarator in whole {
                let is_pointer = declarator.iter().any(|token| token == "*" || token == "(");
                let inside = declarator.iter().position(|token| token == "(");
                let name = match inside {
                    // A function, or what points to one: its name is the last word before the parameters.
                    Some(open) => {
                        let end = closing(&declarator, open);
                        let inner = &declarator[open..end];
                        match declarator.get(end) {
                            Some(_) => inner.iter().rfind(|token| token.len() > 1),
                            None => declarator[..open].last(),
                        }
                    }
                    None => declarator.iter().rfind(|token| {
                        token.starts_with(|letter: char| {
                            letter.is_ascii_alphabetic() || letter == '_'
                        })
                    }),
                };
                if let Some(name) = name {
                    let alias = Type::Alias {
                        base: base.clone(),
                        is_pointer,
                        is_function: inside.is_some(),
                    };
                    self.types.entry(name.clone()).or_insert(alias);
                }
            }
            return;
        }
        let Some(open) = item.iter().position(|token| token == "(") else {
            return;
        };
        let Some(name) = open.checked_sub(1).map(|at| &item[at]) else {
            return;
        };
        let end = closing(item, open);
        let parameters = parts(&item[open + 1..end - 1]);
        self.functions.entry(name.clone()).or_insert(parameters);
    }

    /// Whether something of this type leads elsewhere; none: the headers do not say what it is.
    fn leads(&self, name: &str) -> Option<bool> {
        match self.types.get(name) {
            Some(Type::Alias {
                is_pointer: true, ..
            }) => Some(true),
            Some(Type::Alias { base, .. }) => self.leads(base),
            Some(Type::Body(members)) => Some(
                members
                    .iter()
                    .any(|(base, is_pointer)| *is_pointer || self.leads(base) != Some(false)),
            ),
            None if name.starts_with("enum ") => Some(false),
            None if name.starts_with("struct ") || name.starts_with("union ") => None,
            None if name == "__builtin_va_list" => Some(true),
            None => Some(false),
        }
    }

    /// The name behind aliases, whether one of these is a pointer, and whether one is a function.
    fn real<'a>(&'a self, name: &'a str) -> (&'a str, bool, bool) {
        match self.types.get(name) {
            Some(Type::Alias {
                base,
                is_pointer,
                is_function,
            }) if base != name => {
                let (real, pointer, function) = self.real(base);
                (real, *is_pointer || pointer, *is_function || function)
            }
            _ => (name, false, false),
        }
    }

    fn shape(&self, parameter: &[String]) -> Shape {
        let name = base(parameter);
        let stars = parameter
            .iter()
            .filter(|token| *token == "*" || *token == "[");
        let mut stars = stars.count();
        let (real, mut is_pointer, is_function) = self.real(&name);
        let before = parameter.iter().take_while(|token| *token != "*");
        let is_const = before.into_iter().any(|word| word == "const");
        if is_function || parameter.iter().any(|token| token == "(") {
            return Shape::Function;
        }
        if is_pointer && stars == 0 {
            (stars, is_pointer) = (1, false);
        }
        if real == "__builtin_va_list" {
            return Shape::List;
        }
        if real.starts_with("union ") && stars == 0 {
            // glibc's word for any of several addresses.
            return Shape::Structure { name, is_const };
        }
        match (stars, is_pointer) {
            (0, _) if real.starts_with("struct ") => Shape::Datum,
            (0, _) => Shape::Number,
            (1, true) => Shape::Pointer,
            (1, false) if matches!(real, "char" | "void") => Shape::Bytes { is_const },
            (1, false) => match self.leads(real) {
                Some(false) => Shape::Plain { name, is_const },
                _ => Shape::Structure { name, is_const },
            },
            _ => Shape::Pointer,
        }
    }

    /// A function's parameters; an ellipsis is none.
    pub(crate) fn function(&self, name: &str) -> Option<Vec<Shape>> {
        let all = self.functions.get(name)?;
        let is_none =
            |part: &&Vec<String>| !part.is_empty() && **part != ["void"] && part[0] != ".";
        Some(
            all.iter()
                .filter(is_none)
                .map(|part| self.shape(part))
                .collect(),
        )
    }

    pub(crate) fn text(&self, name: &str, at: usize) -> String {
        let all = self.functions.get(name);
        all.and_then(|all| all.get(at))
            .map_or(String::new(), |part| part.join(" "))
    }
}
