//! The host's side in Rust: a module with a type for the extension's functions,
//! a trait for the host's, and the structures of both.
//!
//! The header's names and those that are made here cannot meet, whatever the header says:
//!
//! | names of the header | are written | so that they cannot meet |
//! | --- | --- | --- |
//! | structures | in camel case, without `_`; else as `Struct_tag` | each other, `Extension`, `Host`, `Self` |
//! | functions, parameters, members | as they are, raw, or with one more `_` ([`word`]) | what Rust keeps, `new` |
//! | parameters | with a `_` in front of `mullion_` ([`local`]) | variables of stubs, which all begin with `mullion_` |
//! | parameters that begin with a capital | with one more `_` ([`local`]) | `None`, `Ok` and constants, none of which ends with `_` |
//! | functions, as members of `Extension` | as `call_name` | `domain` |
//!
//! What stubs use of others is named by its whole path, and what hosts offer is called by the path of its trait.

use crate::model::{
    BoundFunction, Count, Direction, Field, HeaderInterface, HeaderType, Parameter, Struct,
};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Most bytes that a domain has its host copy in one go, in generated code: 1 MiB.
const LONGEST: u64 = 1_048_576;

/// A module for a host. `header` is named in its first line.
#[must_use]
pub fn rust(interface: &HeaderInterface, header: &str) -> String {
    let (hosts, exports): (Vec<_>, Vec<_>) = interface
        .functions
        .iter()
        .partition(|function| function.is_hosts);
    let mut text = format!("//! Made by `mullion bind` from {header}; do not edit.\n");
    text.push_str(PRELUDE);
    let names = Names::new(interface);
    for structure in &interface.structs {
        text.push_str(&names.structure(structure));
    }
    if !exports.is_empty() {
        text.push_str(&names.extension(&exports));
    }
    if !hosts.is_empty() {
        text.push_str(&names.host(&hosts));
    }
    text
}

/// What structures are called.
struct Names<'a> {
    types: BTreeMap<&'a str, String>,
}

const PRELUDE: &str = "
#![allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    non_camel_case_types,
    non_snake_case,
    clippy::all,
    reason = \"generated\"
)]

use ::mullion::DomainMemory as _;
use ::mullion::zerocopy::FromZeros as _;
";

impl Names<'_> {
    fn new(interface: &HeaderInterface) -> Names<'_> {
        let own = ["Extension", "Host", "Self"];
        let tags = || interface.structs.iter().map(|one| one.name.as_str());
        let name = |tag: &str| {
            let name = camel(tag);
            let is_alone = tags().filter(|other| camel(other) == name).count() == 1;
            let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic());
            match is_alone && is_name && !own.contains(&name.as_str()) {
                true => name,
                // No name in camel case has such a character.
                false => format!("Struct_{tag}"),
            }
        };
        Names {
            types: tags().map(|tag| (tag, name(tag))).collect(),
        }
    }

    fn structure(&self, structure: &Struct) -> String {
        let mut text = format!(
            "\n/// `struct {}`.\n\
             #[derive(Clone, Copy, Debug, PartialEq)]\n\
             #[derive(::mullion::zerocopy::FromBytes, ::mullion::zerocopy::IntoBytes, ::mullion::zerocopy::Immutable)]\n\
             #[zerocopy(crate = \"::mullion::zerocopy\")]\n#[repr(C)]\npub struct {} {{\n",
            structure.name,
            self.tag(&structure.name)
        );
        for Field { name, kind, length } in &structure.fields {
            let kind = self.name_of(kind);
            let _written = match length {
                Some(length) => writeln!(
                    text,
                    "    /// `{name}`.\n    pub {}: [{kind}; {length}],",
                    word(name)
                ),
                None => writeln!(text, "    /// `{name}`.\n    pub {}: {kind},", word(name)),
            };
        }
        text + "}\n"
    }

    /// The functions that the host calls.
    fn extension(&self, functions: &[&BoundFunction]) -> String {
        let mut fields = String::new();
        let mut found = String::new();
        let mut methods = String::new();
        for function in functions {
            let name = &function.name;
            let kinds = function.parameters.iter().map(|p| self.name_of(&p.kind));
            let kinds: Vec<_> = kinds.collect();
            let result = match &function.result {
                HeaderType::Void => String::new(),
                kind => format!(" -> {}", self.name_of(kind)),
            };
            let _written = writeln!(
                fields,
                "    call_{name}: ::mullion::Function<fn({}){result}>,",
                kinds.join(", ")
            );
            let _written = writeln!(
                found,
                "            call_{name}: domain.function(\"{name}\")?,"
            );
            methods.push_str(&self.call(function));
        }
        format!(
            "\n/// The extension's functions, in one domain.\npub struct Extension {{\n    domain: ::mullion::Domain,\n{fields}}}\n\
             \nimpl Extension {{\n    /// Finds them.\n    ///\n    /// # Errors\n    /// [`::mullion::Error::NoExport`].\n    \
             pub fn new(domain: &::mullion::Domain) -> {RESULT}<Self, {ERROR}> {{\n        Ok(Self {{\n            domain: domain.clone(),\n\
             {found}        }})\n    }}\n{methods}}}\n{COUNTED}"
        )
    }

    /// One method: what goes in is copied in, what comes out is copied out.
    fn call(&self, function: &BoundFunction) -> String {
        let mut parameters = String::new();
        let (mut before, mut after, mut arguments) = (String::new(), String::new(), Vec::new());
        for parameter in &function.parameters {
            let name = local(&parameter.name);
            let arrays: Vec<_> = function.arrays_counted_by(&parameter.name).collect();
            if !arrays.is_empty() {
                let lengths: Vec<_> = arrays
                    .iter()
                    .map(|array| format!("{}.len()", local(&array.name)))
                    .collect();
                let kind = self.name_of(&parameter.kind);
                let number = format!("mullion_{}_number", parameter.name);
                let _written = writeln!(
                    before,
                    "        let {number}: {kind} = mullion_length(&[{}])?;",
                    lengths.join(", ")
                );
                arguments.push(number);
                continue;
            }
            let _written = write!(parameters, ", {name}: {}", self.host_type(parameter));
            arguments.push(match &parameter.direction {
                None => name,
                Some(direction) => {
                    let element = self.element(parameter);
                    let is_one = direction.count() == Some(&Count::Number(1));
                    let make = match direction {
                        Direction::Text => format!("string_in({name})"),
                        Direction::Out(_) if is_one => format!("alloc::<{element}>(1)"),
                        Direction::Out(_) => {
                            format!("alloc::<{element}>({name}.len() as u64)")
                        }
                        Direction::In(_) | Direction::InOut(_) if is_one => {
                            format!("copy_in(::core::slice::from_ref(&*{name}))")
                        }
                        Direction::In(_) | Direction::InOut(_) => format!("copy_in(&{name}[..])"),
                    };
                    let place = match is_one {
                        true => format!("::core::slice::from_mut({name})"),
                        false => format!("&mut {name}[..]"),
                    };
                    let inside = format!("mullion_{}_inside", parameter.name);
                    let _written = writeln!(before, "        let {inside} = self.domain.{make}?;");
                    if let Direction::Out(_) | Direction::InOut(_) = direction {
                        let _written = writeln!(
                            after,
                            "        {inside}.slice(&self.domain)?.copy_to({place})?;"
                        );
                    }
                    format!("{inside}.ptr().cast()")
                }
            });
        }
        format!(
            "\n    /// `{name}`.\n    ///\n    /// # Errors\n    /// The call did not return; a length does not fit.\n    \
             pub fn {}(&self{parameters}) -> {RESULT}<{}, {ERROR}> {{\n{before}        let mullion_result = self.call_{name}.call({})?;\n\
             {after}        Ok(mullion_result)\n    }}\n",
            method(&function.name),
            self.returned(function),
            arguments.join(", "),
            name = function.name,
        )
    }

    /// The functions that the extension calls.
    fn host(&self, functions: &[&BoundFunction]) -> String {
        let mut methods = String::new();
        let mut offers = String::new();
        for function in functions {
            let visible = function
                .parameters
                .iter()
                .filter(|parameter| is_visible(function, parameter));
            let parameters: String = visible
                .map(|parameter| {
                    let kind = self.host_type(parameter);
                    format!(", {}: {kind}", local(&parameter.name))
                })
                .collect();
            let _written = write!(
                methods,
                "\n    /// `{}`.\n    ///\n    /// # Errors\n    /// Ends the extension's call.\n    \
                 fn {}(&self, mullion_caller: &::mullion::Caller<'_>{parameters}) -> {RESULT}<{}, {ERROR}>;\n",
                function.name,
                method(&function.name),
                self.returned(function)
            );
            offers.push_str(&self.offer(function));
        }
        format!(
            "\n/// The host's functions. What the extension passes by pointer has been copied: for one argument\n\
             /// {LONGEST} bytes at most.\n\
             pub trait Host: ::core::marker::Send + ::core::marker::Sync + 'static {{{methods}}}\n\
             \n/// The list of them.\npub fn imports(host: impl Host) -> ::mullion::Imports {{\n    \
             let mullion_host = ::std::sync::Arc::new(host);\n    let mullion_imports = ::mullion::Imports::new();\n\
             {offers}    mullion_imports\n}}\n{}",
            BOUNDED.replace("MOST", &LONGEST.to_string())
        )
    }

    fn offer(&self, function: &BoundFunction) -> String {
        let all = function.parameters.iter();
        let parameters: String = all
            .clone()
            .map(|parameter| {
                let kind = self.name_of(&parameter.kind);
                format!(", {}: {kind}", local(&parameter.name))
            })
            .collect();
        let (mut before, mut after, mut arguments) = (String::new(), String::new(), String::new());
        for parameter in all.filter(|parameter| is_visible(function, parameter)) {
            let (name, element) = (local(&parameter.name), self.element(parameter));
            let Some(direction) = &parameter.direction else {
                let _written = write!(arguments, ", {name}");
                continue;
            };
            let [copy, found] =
                ["copy", "slice"].map(|what| format!("mullion_{}_{what}", parameter.name));
            let slice = match direction.count() {
                Some(Count::Number(number)) => format!("{name}.slice(mullion_caller, {number})?"),
                Some(Count::Parameter(count)) => {
                    format!(
                        "{name}.slice(mullion_caller, mullion_elements::<{element}, _>({})?)?",
                        local(count)
                    )
                }
                None => String::new(),
            };
            let fixed = match direction.count() {
                Some(Count::Number(number)) => Some(*number),
                _ => None,
            };
            let _written = match (direction, fixed) {
                (Direction::Text, _) => {
                    writeln!(
                        before,
                        "        let {copy} = {name}.string(mullion_caller, {LONGEST})?;"
                    )
                }
                (_, Some(1)) => {
                    writeln!(
                        before,
                        "        let mut {copy} = <{element}>::new_zeroed();"
                    )
                }
                (_, Some(number)) => {
                    writeln!(
                        before,
                        "        let mut {copy} = [<{element}>::new_zeroed(); {number}];"
                    )
                }
                (_, None) => writeln!(
                    before,
                    "        let {found} = {slice};\n        \
                     let mut {copy} = ::std::vec![<{element}>::new_zeroed(); {found}.len() as usize];"
                ),
            };
            let slice = if fixed.is_some() { slice } else { found };
            let (place, whole) = match fixed {
                Some(1) => (
                    format!("::core::slice::from_mut(&mut {copy})"),
                    format!("::core::slice::from_ref(&{copy})"),
                ),
                _ => (format!("&mut {copy}"), format!("&{copy}")),
            };
            if let Direction::In(_) | Direction::InOut(_) = direction {
                let _written = writeln!(before, "        {slice}.copy_to({place})?;");
            }
            if let Direction::Out(_) | Direction::InOut(_) = direction {
                let _written = writeln!(after, "        {slice}.copy_from({whole})?;");
                let _written = write!(arguments, ", &mut {copy}");
            } else {
                let _written = write!(arguments, ", &{copy}");
            }
        }
        format!(
            "    let mullion_own = mullion_host.clone();\n    \
             let mullion_imports = mullion_imports.function(\"{}\", move |mullion_caller: &::mullion::Caller<'_>{parameters}| {{\n\
             {before}        let mullion_result = Host::{}(&*mullion_own, mullion_caller{arguments})?;\n{after}        \
             Ok::<_, {ERROR}>(mullion_result)\n    }});\n",
            function.name,
            method(&function.name)
        )
    }

    /// The type that a parameter has in a stub.
    fn host_type(&self, parameter: &Parameter) -> String {
        let element = self.element(parameter);
        let array = |count: &Count| match count {
            // By reference: the usual way to hand over a structure.
            Count::Number(1) => element.clone(),
            Count::Number(number) => format!("[{element}; {number}]"),
            Count::Parameter(_) => format!("[{element}]"),
        };
        match &parameter.direction {
            None => self.name_of(&parameter.kind),
            Some(Direction::Text) => "&str".to_owned(),
            Some(Direction::In(count)) => format!("&{}", array(count)),
            Some(Direction::Out(count) | Direction::InOut(count)) => {
                format!("&mut {}", array(count))
            }
        }
    }

    /// What a pointer points to.
    fn element(&self, parameter: &Parameter) -> String {
        match &parameter.kind {
            HeaderType::Pointer(to) => self.name_of(to),
            other => self.name_of(other),
        }
    }

    /// What a stub returns.
    fn returned(&self, function: &BoundFunction) -> String {
        match &function.result {
            HeaderType::Void => "()".to_owned(),
            kind => self.name_of(kind),
        }
    }

    fn name_of(&self, kind: &HeaderType) -> String {
        match kind {
            // Behind a pointer: bytes.
            HeaderType::Void => "u8".to_owned(),
            HeaderType::Integer { bytes, signed } => {
                format!("{}{}", if *signed { 'i' } else { 'u' }, bytes * 8)
            }
            HeaderType::Bool => "bool".to_owned(),
            HeaderType::Float => "f32".to_owned(),
            HeaderType::Double => "f64".to_owned(),
            HeaderType::Struct(name) => self.tag(name),
            HeaderType::Pointer(to) => format!("::mullion::Ptr<{}>", self.name_of(to)),
        }
    }

    /// What a structure is called.
    fn tag(&self, tag: &str) -> String {
        self.types.get(tag).cloned().unwrap_or_else(|| camel(tag))
    }
}

const RESULT: &str = "::core::result::Result";
const ERROR: &str = "::mullion::Error";

const COUNTED: &str = "
/// The length that all these slices have, as the extension counts.
fn mullion_length<N: ::core::convert::TryFrom<usize>>(lengths: &[usize]) -> ::core::result::Result<N, ::mullion::Error> {
    let first = lengths.first().copied().unwrap_or(0);
    let wrong = |other: usize| ::mullion::Error::Index { index: first as u64, length: other as u64 };
    match lengths.iter().find(|length| **length != first) {
        Some(other) => Err(wrong(*other)),
        None => N::try_from(first).map_err(|_| wrong(0)),
    }
}
";

const BOUNDED: &str = "
/// A number of elements as the extension states it, unless they are too many.
fn mullion_elements<T, N: ::core::convert::TryInto<u64>>(count: N) -> ::core::result::Result<u64, ::mullion::Error> {
    let most = MOST / ::core::mem::size_of::<T>() as u64;
    match count.try_into() {
        Ok(count) if count <= most => Ok(count),
        Ok(count) => Err(::mullion::Error::Index { index: count, length: most }),
        Err(_) => Err(::mullion::Error::Index { index: u64::MAX, length: most }),
    }
}
";

/// Whether a parameter is one of the stub's: the lengths of slices are not.
fn is_visible(function: &BoundFunction, parameter: &Parameter) -> bool {
    function.arrays_counted_by(&parameter.name).next().is_none()
}

fn camel(name: &str) -> String {
    let words = name.split('_').filter(|word| !word.is_empty());
    words
        .map(|word| {
            let (first, rest) = word.split_at(word.chars().next().map_or(0, char::len_utf8));
            first.to_uppercase() + rest
        })
        .collect()
}

/// A method's name: `Extension` has a `new` of its own.
fn method(name: &str) -> String {
    match name.trim_end_matches('_') {
        "new" => format!("{name}_"),
        _ => word(name),
    }
}

/// A parameter's name.
fn local(name: &str) -> String {
    let stem = name.trim_start_matches('_');
    match stem {
        stem if stem.starts_with("mullion_") => format!("_{name}"),
        stem if stem.starts_with(char::is_uppercase) => format!("{name}_"),
        _ => word(name),
    }
}

/// A name that Rust keeps for itself is written raw. Those that cannot be raw have a `_` more, and so has each name
/// that would then be the same.
fn word(name: &str) -> String {
    const KEPT: [&str; 48] = [
        "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do",
        "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in",
        "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref",
        "return", "static", "struct", "trait", "true", "try", "type", "typeof", "unsafe",
        "unsized", "use", "virtual", "where", "while", "yield",
    ];
    match name.trim_end_matches('_') {
        "" | "self" | "Self" | "super" | "crate" => format!("{name}_"),
        _ if KEPT.contains(&name) => format!("r#{name}"),
        _ => name.to_owned(),
    }
}
