//! The host's side in Rust: a module with a type for the extension's functions,
//! a trait for the host's, and the structures of both.

use crate::model::{Count, Direction, Field, Function, Interface, Parameter, Struct, Type};
use std::fmt::Write as _;

/// Most bytes that a domain has its host copy in one go, in generated code.
const LONGEST: u64 = 1 << 20;

/// A module for a host. `header` is named in its first line.
#[must_use]
pub fn rust(interface: &Interface, header: &str) -> String {
    let (hosts, exports): (Vec<_>, Vec<_>) = interface
        .functions
        .iter()
        .partition(|function| function.is_hosts);
    let mut text = format!("//! Made by `mullion bind` from {header}; do not edit.\n");
    text.push_str(PRELUDE);
    for structure in &interface.structs {
        text.push_str(&structure_of(structure));
    }
    if !exports.is_empty() {
        text.push_str(&extension(&exports));
    }
    if !hosts.is_empty() {
        let _written = write!(text, "{}", host(&hosts));
    }
    text
}

const PRELUDE: &str = "
#![allow(dead_code, unused_imports, unreachable_pub, clippy::all, reason = \"generated\")]

use mullion::zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes};
use mullion::{Caller, Domain, Error, Function, Imports, Ptr, Within};
";

fn structure_of(structure: &Struct) -> String {
    let mut text = format!(
        "\n/// `struct {}`.\n\
         #[derive(Clone, Copy, Debug, PartialEq, FromBytes, IntoBytes, Immutable)]\n\
         #[zerocopy(crate = \"mullion::zerocopy\")]\n#[repr(C)]\npub struct {} {{\n",
        structure.name,
        camel(&structure.name)
    );
    for Field { name, kind, length } in &structure.fields {
        let kind = name_of(kind);
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
fn extension(functions: &[&Function]) -> String {
    let mut fields = String::new();
    let mut found = String::new();
    let mut methods = String::new();
    for function in functions {
        let name = word(&function.name);
        let kinds: Vec<_> = function
            .parameters
            .iter()
            .map(|p| name_of(&p.kind))
            .collect();
        let result = result_of(&function.result);
        let _written = writeln!(
            fields,
            "    {name}: Function<fn({}){result}>,",
            kinds.join(", ")
        );
        let _written = writeln!(
            found,
            "            {name}: domain.function(\"{}\")?,",
            function.name
        );
        methods.push_str(&call(function));
    }
    format!(
        "\n/// The extension's functions, in one domain.\npub struct Extension {{\n    domain: Domain,\n{fields}}}\n\
         \nimpl Extension {{\n    /// Finds them.\n    ///\n    /// # Errors\n    /// [`Error::NoExport`].\n    \
         pub fn new(domain: &Domain) -> Result<Self, Error> {{\n        Ok(Self {{\n            domain: domain.clone(),\n\
         {found}        }})\n    }}\n{methods}}}\n{COUNTED}"
    )
}

const COUNTED: &str = "
/// The length that all these slices have, as the extension counts.
fn mullion_length<N: TryFrom<usize>>(lengths: &[usize]) -> Result<N, Error> {
    let first = lengths.first().copied().unwrap_or(0);
    let wrong = |other: usize| Error::Index { index: first as u64, length: other as u64 };
    match lengths.iter().find(|length| **length != first) {
        Some(other) => Err(wrong(*other)),
        None => N::try_from(first).map_err(|_| wrong(0)),
    }
}
";

/// One method: what goes in is copied in, what comes out is copied out.
fn call(function: &Function) -> String {
    let mut parameters = String::new();
    let (mut before, mut after, mut arguments) = (String::new(), String::new(), Vec::new());
    for parameter in &function.parameters {
        let name = word(&parameter.name);
        let arrays: Vec<_> = function.arrays_counted_by(&parameter.name).collect();
        if !arrays.is_empty() {
            let lengths: Vec<_> = arrays
                .iter()
                .map(|array| format!("{}.len()", word(&array.name)))
                .collect();
            let kind = name_of(&parameter.kind);
            let _written = writeln!(
                before,
                "        let {name}: {kind} = mullion_length(&[{}])?;",
                lengths.join(", ")
            );
            arguments.push(name);
            continue;
        }
        let _written = write!(parameters, ", {name}: {}", host_type(parameter));
        arguments.push(match &parameter.direction {
            None => name,
            Some(direction) => {
                let is_one = direction.count() == Some(&Count::Number(1));
                let make = match direction {
                    Direction::Text => format!("string_in({name})"),
                    Direction::Out(_) if is_one => format!("alloc::<{}>(1)", element(parameter)),
                    Direction::Out(_) => {
                        format!("alloc::<{}>({name}.len() as u64)", element(parameter))
                    }
                    Direction::In(_) | Direction::InOut(_) if is_one => {
                        format!("copy_in(std::slice::from_ref(&*{name}))")
                    }
                    Direction::In(_) | Direction::InOut(_) => format!("copy_in(&{name}[..])"),
                };
                let place = match is_one {
                    true => format!("std::slice::from_mut({name})"),
                    false => format!("&mut {name}[..]"),
                };
                let _written = writeln!(before, "        let {name}_inside = self.domain.{make}?;");
                if let Direction::Out(_) | Direction::InOut(_) = direction {
                    let _written = writeln!(
                        after,
                        "        {name}_inside.slice(&self.domain)?.copy_to({place})?;"
                    );
                }
                format!("{name}_inside.ptr().cast()")
            }
        });
    }
    let result = name_of(&function.result);
    let result = if function.result == Type::Void {
        "()"
    } else {
        &result
    };
    format!(
        "\n    /// `{}`.\n    ///\n    /// # Errors\n    /// The call did not return; a length does not fit.\n    \
         pub fn {}(&self{parameters}) -> Result<{result}, Error> {{\n{before}        let result = self.{}.call({})?;\n\
         {after}        Ok(result)\n    }}\n",
        function.name,
        word(&function.name),
        word(&function.name),
        arguments.join(", ")
    )
}

/// The functions that the extension calls.
fn host(functions: &[&Function]) -> String {
    let mut methods = String::new();
    let mut offers = String::new();
    for function in functions {
        let visible = function
            .parameters
            .iter()
            .filter(|parameter| is_visible(function, parameter));
        let parameters: String = visible
            .map(|parameter| format!(", {}: {}", word(&parameter.name), host_type(parameter)))
            .collect();
        let result = name_of(&function.result);
        let result = if function.result == Type::Void {
            "()"
        } else {
            &result
        };
        let _written = write!(
            methods,
            "\n    /// `{}`.\n    ///\n    /// # Errors\n    /// Ends the extension's call.\n    \
             fn {}(&self, caller: &Caller<'_>{parameters}) -> Result<{result}, Error>;\n",
            function.name,
            word(&function.name)
        );
        offers.push_str(&offer(function));
    }
    format!(
        "\n/// Most bytes that are copied for one argument of a host function.\nconst LONGEST: u64 = {LONGEST};\n\
         \n/// The host's functions. What the extension passes by pointer has been copied.\n\
         pub trait Host: Send + Sync + 'static {{{methods}}}\n\
         \n/// The list of them.\npub fn imports(host: impl Host) -> Imports {{\n    \
         let host = std::sync::Arc::new(host);\n    let imports = Imports::new();\n{offers}    imports\n}}\n{BOUNDED}"
    )
}

const BOUNDED: &str = "
/// A number of elements as the extension states it, unless they are too many.
fn mullion_elements<T, N: TryInto<u64>>(count: N) -> Result<u64, Error> {
    let most = LONGEST / size_of::<T>() as u64;
    match count.try_into() {
        Ok(count) if count <= most => Ok(count),
        Ok(count) => Err(Error::Index { index: count, length: most }),
        Err(_) => Err(Error::Index { index: u64::MAX, length: most }),
    }
}
";

fn offer(function: &Function) -> String {
    let all = function.parameters.iter();
    let parameters: String = all
        .clone()
        .map(|parameter| format!(", {}: {}", word(&parameter.name), name_of(&parameter.kind)))
        .collect();
    let (mut before, mut after, mut arguments) = (String::new(), String::new(), String::new());
    for parameter in all.filter(|parameter| is_visible(function, parameter)) {
        let (name, element) = (word(&parameter.name), element(parameter));
        let Some(direction) = &parameter.direction else {
            let _written = write!(arguments, ", {name}");
            continue;
        };
        let slice = match direction.count() {
            Some(Count::Number(number)) => format!("{name}.slice(caller, {number})?"),
            Some(Count::Parameter(count)) => {
                format!(
                    "{name}.slice(caller, mullion_elements::<{element}, _>({})?)?",
                    word(count)
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
                    "        let {name}_copy = {name}.string(caller, LONGEST as usize)?;"
                )
            }
            (_, Some(1)) => writeln!(
                before,
                "        let mut {name}_copy = <{element}>::new_zeroed();"
            ),
            (_, Some(number)) => {
                writeln!(
                    before,
                    "        let mut {name}_copy = [<{element}>::new_zeroed(); {number}];"
                )
            }
            (_, None) => writeln!(
                before,
                "        let {name}_slice = {slice};\n        \
                 let mut {name}_copy = vec![<{element}>::new_zeroed(); {name}_slice.len() as usize];"
            ),
        };
        let slice = if fixed.is_some() {
            slice
        } else {
            format!("{name}_slice")
        };
        let (place, copy) = match fixed {
            Some(1) => (
                format!("std::slice::from_mut(&mut {name}_copy)"),
                format!("std::slice::from_ref(&{name}_copy)"),
            ),
            _ => (format!("&mut {name}_copy"), format!("&{name}_copy")),
        };
        if let Direction::In(_) | Direction::InOut(_) = direction {
            let _written = writeln!(before, "        {slice}.copy_to({place})?;");
        }
        if let Direction::Out(_) | Direction::InOut(_) = direction {
            let _written = writeln!(after, "        {slice}.copy_from({copy})?;");
            let _written = write!(arguments, ", &mut {name}_copy");
        } else {
            let _written = write!(arguments, ", &{name}_copy");
        }
    }
    format!(
        "    let own = host.clone();\n    let imports = imports.function(\"{}\", move |caller: &Caller<'_>{parameters}| {{\n\
         {before}        let result = own.{}(caller{arguments})?;\n{after}        Ok::<_, Error>(result)\n    }});\n",
        function.name,
        word(&function.name)
    )
}

/// Whether a parameter is one of the stub's: the lengths of slices are not.
fn is_visible(function: &Function, parameter: &Parameter) -> bool {
    function.arrays_counted_by(&parameter.name).next().is_none()
}

/// The type that a parameter has in a stub.
fn host_type(parameter: &Parameter) -> String {
    let element = element(parameter);
    let array = |count: &Count| match count {
        // By reference: the usual way to hand over a structure.
        Count::Number(1) => element.clone(),
        Count::Number(number) => format!("[{element}; {number}]"),
        Count::Parameter(_) => format!("[{element}]"),
    };
    match &parameter.direction {
        None => name_of(&parameter.kind),
        Some(Direction::Text) => "&str".to_owned(),
        Some(Direction::In(count)) => format!("&{}", array(count)),
        Some(Direction::Out(count) | Direction::InOut(count)) => format!("&mut {}", array(count)),
    }
}

/// What a pointer points to.
fn element(parameter: &Parameter) -> String {
    match &parameter.kind {
        Type::Pointer(to) => name_of(to),
        other => name_of(other),
    }
}

fn result_of(kind: &Type) -> String {
    match kind {
        Type::Void => String::new(),
        kind => format!(" -> {}", name_of(kind)),
    }
}

fn name_of(kind: &Type) -> String {
    match kind {
        // Behind a pointer: bytes.
        Type::Void => "u8".to_owned(),
        Type::Integer { bytes, signed } => {
            format!("{}{}", if *signed { 'i' } else { 'u' }, bytes * 8)
        }
        Type::Bool => "bool".to_owned(),
        Type::Float => "f32".to_owned(),
        Type::Double => "f64".to_owned(),
        Type::Struct(name) => camel(name),
        Type::Pointer(to) => format!("Ptr<{}>", name_of(to)),
    }
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

/// A name that Rust keeps for itself is written raw.
fn word(name: &str) -> String {
    const KEPT: [&str; 26] = [
        "as", "async", "await", "crate", "dyn", "enum", "fn", "impl", "in", "let", "loop", "match",
        "mod", "move", "mut", "pub", "ref", "self", "super", "trait", "type", "unsafe", "use",
        "where", "yield", "box",
    ];
    match name {
        "self" | "super" | "crate" => format!("{name}_"),
        name if KEPT.contains(&name) => format!("r#{name}"),
        name => name.to_owned(),
    }
}
