//! The host's side in C. It is a header with a stub for each of the extension's
//! functions, and one for each of the host's that the extension calls.

use crate::error::BindError;
use crate::model::{BoundFunction, Count, Direction, HeaderInterface, HeaderType, Parameter};
use std::fmt::Write as _;

/// Integers and pointers that a host function is handed in registers.
const REGISTERS: usize = 6;

/// A header for a host, to be included beside the interface's own; `header` is its
/// name, and the beginning of the names that are made.
///
/// # Errors
/// A structure has pointers in it: in C they would look like the host's own. A name is one of
/// the made header's own.
pub fn c(interface: &HeaderInterface, header: &str) -> Result<String, BindError> {
    for structure in &interface.structs {
        let pointer = |kind: &HeaderType| matches!(kind, HeaderType::Pointer(_));
        if let Some(field) = structure.fields.iter().find(|field| pointer(&field.kind)) {
            return Err(BindError::Unsupported {
                place: format!("{}, {}", structure.name, field.name),
                reason: "a pointer in a structure would look like the host's own; take uint64_t"
                    .to_owned(),
            });
        }
    }
    let stem: String = header
        .strip_suffix(".h")
        .unwrap_or(header)
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    interface.functions.iter().try_for_each(check_names)?;
    check_made(interface, &stem)?;
    let functions: Vec<BoundFunction> = interface.functions.iter().map(renamed).collect();
    let (hosts, exports): (Vec<_>, Vec<_>) =
        functions.iter().partition(|function| function.is_hosts);
    let guard = format!("MULLION_BIND_{}_HOST", stem.to_uppercase());
    let mut text = format!(
        "/* Made by mullion bind from {header}; do not edit.\n *\n{} */\n#ifndef {guard}\n#define {guard}\n\n\
         #include <mullion.h>\n#include <stdint.h>\n#include <stdlib.h>\n#include \"{header}\"\n{FITS}",
        names(&stem, &exports, &hosts)
    );
    if !exports.is_empty() {
        text.push_str(&find(&stem, &exports));
        exports
            .iter()
            .for_each(|function| text.push_str(&call(&stem, function)));
    }
    if !hosts.is_empty() {
        let _written = write!(text, "\n{}", LOW_HALF.replace("STEM", &stem));
        text.push_str(&host(&stem, &hosts));
        hosts
            .iter()
            .for_each(|function| text.push_str(&answer(&stem, function)));
        text.push_str(&offer(&stem, &hosts));
    }
    Ok(text + "\n#endif\n")
}

/// Names that the header has for itself: of the extension's functions, and of the host's.
const OWN_OF_EXTENSIONS: [&str; 3] = ["domain", "find", "offer"];
const OWN_OF_HOSTS: [&str; 1] = ["user"];

/// Whether the function can have its name, and its parameters theirs, in the header.
fn check_names(function: &BoundFunction) -> Result<(), BindError> {
    let own = match function.is_hosts {
        true => &OWN_OF_HOSTS[..],
        false => &OWN_OF_EXTENSIONS[..],
    };
    let is_own = own.contains(&function.name.as_str());
    let parameters = function.parameters.iter().map(|parameter| &parameter.name);
    let mut names = parameters.chain([&function.name]);
    let reserved = names.find(|name| name.starts_with("mullion_"));
    match reserved.or(is_own.then_some(&function.name)) {
        None => Ok(()),
        Some(name) => Err(BindError::Unsupported {
            place: function.name.clone(),
            reason: format!("`{name}` is a name of the made header's own; take another one"),
        }),
    }
}

/// Whether what is made has names that the interface does not have.
fn check_made(interface: &HeaderInterface, stem: &str) -> Result<(), BindError> {
    let functions = || interface.functions.iter();
    let has_name = |name: &str| functions().any(|function| function.name == name);
    let exports = functions().filter(|function| !function.is_hosts);
    let stubs = exports.map(|function| function.name.as_str());
    let stubs = stubs.chain(["find", "offer"]);
    let stub = stubs
        .map(|name| format!("{stem}_{name}"))
        .find(|name| has_name(name));
    let tags = ["extension", "host"].map(|name| format!("{stem}_{name}"));
    let tag = tags.into_iter().find(|tag| {
        let mut structs = interface.structs.iter();
        structs.any(|structure| structure.name == *tag)
    });
    match stub.or(tag) {
        None => Ok(()),
        Some(name) => Err(BindError::Unsupported {
            place: name.clone(),
            reason: format!("`{name}` is a name of the made header's own; take another one"),
        }),
    }
}

/// The function with parameters as stubs have them: their names are nobody's but the stub's. None of them begins
/// with `mullion_`, as all variables of stubs do ([`check_names`]).
fn renamed(function: &BoundFunction) -> BoundFunction {
    let mut function = function.clone();
    for parameter in &mut function.parameters {
        parameter.name = local(&parameter.name);
        if let Some(
            Direction::In(Count::Parameter(count))
            | Direction::Out(Count::Parameter(count))
            | Direction::InOut(Count::Parameter(count)),
        ) = &mut parameter.direction
        {
            *count = local(count);
        }
    }
    function
}

/// A parameter that would hide a type or a function that its stub uses has a `_` more, and so has each that would
/// then have the same name.
fn local(name: &str) -> String {
    let stem = name.trim_end_matches('_');
    let is_used = stem.ends_with("_t") || ["malloc", "calloc", "free"].contains(&stem);
    match is_used {
        true => format!("{name}_"),
        false => name.to_owned(),
    }
}

/// What the header names, for its reader.
fn names(stem: &str, exports: &[&BoundFunction], hosts: &[&BoundFunction]) -> String {
    let mut text = String::new();
    let mut line = |name: String, what: &str| {
        let _written = writeln!(text, " * {name}\n *     {what}");
    };
    if !exports.is_empty() {
        line(
            format!("struct {stem}_extension"),
            "the extension's functions, in one domain",
        );
        line(
            format!("{stem}_find(domain, &extension)"),
            "fills it, or says which function is missing or has another type",
        );
    }
    for function in exports {
        let result = match function.result {
            HeaderType::Void => "calls it",
            _ => "calls it; its result is in *mullion_result, unless that is NULL",
        };
        line(format!("{stem}_{}(&extension, ...)", function.name), result);
    }
    if !hosts.is_empty() {
        line(
            format!("struct {stem}_host"),
            "the host's functions, to be filled in; each is given `user`",
        );
        line(
            format!("{stem}_offer(imports, &host)"),
            "has extensions find them, before a domain is made with these imports",
        );
        line(
            format!("{}_LONGEST", stem.to_uppercase()),
            "most bytes that are copied for one argument of theirs",
        );
    }
    text
}

/// The structure of handles, and the function that fills it.
fn find(stem: &str, functions: &[&BoundFunction]) -> String {
    let mut text = format!(
        "\n/* The extension's functions, in one domain. */\nstruct {stem}_extension {{\n\tmullion_domain domain;\n"
    );
    for function in functions {
        let _written = writeln!(text, "\tmullion_function {};", function.name);
    }
    let _written = write!(
        text,
        "}};\n\n/* Finds them all, and compares their types with those of the header. */\nstatic inline mullion_status {stem}_find(mullion_domain domain, struct {stem}_extension *extension)\n{{\n\
         \tmullion_status status = MULLION_OK;\n\textension->domain = domain;\n"
    );
    for function in functions {
        let name = &function.name;
        let _written = writeln!(
            text,
            "\tif (!status)\n\t\tstatus = mullion_function_find(domain, \"{name}\", &extension->{name});\n\
             \tif (!status) {{\n{}\t}}",
            check(function)
        );
    }
    text + "\treturn status;\n}\n"
}

/// Compares an export's type, by its debug information, with the header's.
fn check(function: &BoundFunction) -> String {
    let parameters = function.parameters.iter();
    let types: Vec<_> = parameters
        .map(|parameter| type_of(&parameter.kind))
        .collect();
    let (name, result, count) = (&function.name, type_of(&function.result), types.len());
    let (types, place) = match types.is_empty() {
        true => (String::new(), "NULL"),
        false => (
            format!(
                "\t\tstatic const mullion_type types[] = {{ {} }};\n",
                types.join(", ")
            ),
            "types",
        ),
    };
    format!(
        "{types}\t\tstatus = mullion_function_check(extension->{name}, {result}, {place}, {count});\n"
    )
}

/// The `mullion_type` of a parameter or result.
fn type_of(kind: &HeaderType) -> String {
    match kind {
        HeaderType::Void => "MULLION_TYPE_NOTHING".to_owned(),
        HeaderType::Double => "MULLION_TYPE_DOUBLE".to_owned(),
        HeaderType::Float => "MULLION_TYPE_FLOAT".to_owned(),
        HeaderType::Pointer(_) => "MULLION_TYPE_POINTER".to_owned(),
        kind => format!("MULLION_TYPE_INTEGER({})", name_of(kind)),
    }
}

/// The stub of one of the extension's functions.
fn call(stem: &str, function: &BoundFunction) -> String {
    let name = &function.name;
    let mut parameters = format!("const struct {stem}_extension *mullion_own");
    if function.result != HeaderType::Void {
        let _written = write!(
            parameters,
            ", {} *mullion_result",
            name_of(&function.result)
        );
    }
    let (mut before, mut after, mut end, mut arguments) =
        (String::new(), String::new(), String::new(), String::new());
    for (index, parameter) in function.parameters.iter().enumerate() {
        let _written = write!(parameters, ", {}", declared(parameter));
        let p = &parameter.name;
        let value = match &parameter.direction {
            None => to_value(&parameter.kind, p),
            Some(direction) => {
                let _written = writeln!(before, "\tmullion_pointer mullion_inside_{p} = {{ 0 }};");
                let _written = write!(after, "{}", copied(direction, parameter));
                let _written = writeln!(
                    end,
                    "\tmullion_free(mullion_own->domain, mullion_inside_{p});"
                );
                format!("mullion_address(mullion_inside_{p})")
            }
        };
        let _written = writeln!(arguments, "\tmullion_arguments_[{index}] = {value};");
    }
    let outs: String = function.parameters.iter().map(|parameter| match &parameter.direction {
        Some(Direction::Out(count) | Direction::InOut(count)) => format!(
            "\tif (!mullion_status_)\n\t\tmullion_status_ = mullion_read(mullion_own->domain, mullion_inside_{0}, {0}, {1});\n",
            parameter.name,
            bytes(parameter, count)
        ),
        _ => String::new(),
    }).collect();
    let result = match &function.result {
        HeaderType::Void => String::new(),
        kind => format!(
            "\tif (!mullion_status_ && mullion_result)\n\t\t*mullion_result = {};\n",
            from_value(kind, "mullion_returned")
        ),
    };
    let kind = result_kind(&function.result);
    let count = function.parameters.len();
    format!(
        "\n/* {name}() in the extension: what it reads is copied in, what it writes is copied out. */\n\
         static inline mullion_status {stem}_{name}({parameters})\n{{\n\
         \tmullion_status mullion_status_ = MULLION_OK;\n\
         \tmullion_value mullion_arguments_[{}]{}, mullion_returned = {{ {kind}, 0, {{ 0 }} }};\n{before}{after}{arguments}\
         \tif (!mullion_status_)\n\t\tmullion_status_ = mullion_call(mullion_own->{name}, mullion_arguments_, {count}, &mullion_returned);\n\
         {outs}{result}{end}\treturn mullion_status_;\n}}\n",
        count.max(1),
        // Nothing else is written to it.
        if count == 0 {
            " = { { MULLION_INTEGER, 0, { 0 } } }"
        } else {
            ""
        }
    )
}

/// What makes a parameter's copy in the domain.
fn copied(direction: &Direction, parameter: &Parameter) -> String {
    let p = &parameter.name;
    let make = match direction {
        Direction::Text => {
            format!("mullion_string_in(mullion_own->domain, {p}, &mullion_inside_{p})")
        }
        Direction::In(count) | Direction::InOut(count) => {
            format!(
                "mullion_copy_in(mullion_own->domain, {p}, {}, &mullion_inside_{p})",
                bytes(parameter, count)
            )
        }
        Direction::Out(count) => format!(
            "mullion_alloc(mullion_own->domain, {}, &mullion_inside_{p})",
            bytes(parameter, count)
        ),
    };
    let too_many = match direction.count() {
        Some(Count::Parameter(count)) => format!(
            "\tif (!mullion_fits({count}, sizeof *{p}, SIZE_MAX))\n\t\tmullion_status_ = MULLION_BAD_ARGUMENT;\n"
        ),
        _ => String::new(),
    };
    format!("{too_many}\tif (!mullion_status_)\n\t\tmullion_status_ = {make};\n")
}

/// Shared by all such headers.
const FITS: &str = "
#ifndef MULLION_BIND_FITS
#define MULLION_BIND_FITS
/* Whether so many elements have at most `most` bytes. */
static inline int mullion_fits(uint64_t count, size_t size, size_t most)
{
\treturn count <= most / size;
}
#endif
";

/// A `float` travels in the low half of its register.
const LOW_HALF: &str = "static inline float mullion_low_half_STEM(double real)
{
\tunion { double real; float single; } bits;
\tbits.real = real;
\treturn bits.single;
}
";

/// The structure of the host's functions.
fn host(stem: &str, functions: &[&BoundFunction]) -> String {
    let mut text = format!(
        "\n/* Most bytes that are copied for one argument of a host function. */\n#define {0}_LONGEST ((size_t)1 << 20)\n\
         \n/* The host's functions. What the extension passes by pointer has been copied. A status\n\
         * that is not MULLION_OK ends the extension's call. */\nstruct {stem}_host {{\n\tvoid *user;\n",
        stem.to_uppercase()
    );
    for function in functions {
        let _written = writeln!(
            text,
            "\tmullion_status (*{})({});",
            function.name,
            host_parameters(function)
        );
    }
    text + "};\n"
}

fn host_parameters(function: &BoundFunction) -> String {
    let mut parameters = "void *mullion_user".to_owned();
    if function.result != HeaderType::Void {
        let _written = write!(
            parameters,
            ", {} *mullion_result",
            name_of(&function.result)
        );
    }
    for parameter in &function.parameters {
        let _written = write!(parameters, ", {}", declared(parameter));
    }
    parameters
}

/// What the library calls for one of the host's functions.
fn answer(stem: &str, function: &BoundFunction) -> String {
    let BoundFunction {
        name, parameters, ..
    } = function;
    let (mut declarations, mut before, mut after, mut end) =
        (String::new(), String::new(), String::new(), String::new());
    let (mut integers, mut reals) = (0_usize, 0);
    for parameter in parameters {
        let p = &parameter.name;
        let register = match parameter.kind {
            HeaderType::Float | HeaderType::Double => {
                reals += 1;
                format!("mullion_arguments_->reals[{}]", reals - 1)
            }
            _ => {
                integers += 1;
                match integers {
                    1..=REGISTERS => format!("mullion_arguments_->integers[{}]", integers - 1),
                    _ => format!("mullion_stacked_[{}]", integers - 1 - REGISTERS),
                }
            }
        };
        let Some(direction) = &parameter.direction else {
            let _written = match parameter.kind {
                HeaderType::Pointer(_) => {
                    writeln!(declarations, "\tmullion_pointer {p} = {{ {register} }};")
                }
                HeaderType::Bool => {
                    writeln!(declarations, "\t_Bool {p} = (uint8_t){register} != 0;")
                }
                HeaderType::Float => writeln!(
                    declarations,
                    "\tfloat {p} = mullion_low_half_{stem}({register});"
                ),
                _ => writeln!(
                    declarations,
                    "\t{0} {p} = ({0}){register};",
                    name_of(&parameter.kind)
                ),
            };
            continue;
        };
        let element = element(parameter);
        let _written = writeln!(
            declarations,
            "\tmullion_pointer mullion_inside_{p} = {{ {register} }};\n\t{element} *{p} = NULL;"
        );
        let _written = writeln!(end, "\tfree({p});");
        let limit = format!("{}_LONGEST", stem.to_uppercase());
        if *direction == Direction::Text {
            let _written = writeln!(
                before,
                "\tif (!mullion_status_ && !({p} = ({element} *)malloc({limit})))\n\t\tmullion_status_ = MULLION_NO_MEMORY;\n\
                 \tif (!mullion_status_)\n\t\tmullion_status_ = mullion_read_string(mullion_domain_, mullion_inside_{p}, (char *){p}, {limit}, NULL);"
            );
            continue;
        }
        let Some(count) = direction.count() else {
            continue;
        };
        let size = bytes(parameter, count);
        if let Count::Parameter(count) = count {
            let _written = writeln!(
                before,
                "\tif (!mullion_fits({count}, sizeof *{p}, {limit}))\n\t\tmullion_status_ = MULLION_BAD_ARGUMENT;"
            );
        }
        // At least one byte: malloc of none may answer with a null pointer.
        let _written = writeln!(
            before,
            "\tif (!mullion_status_ && !({p} = ({element} *)calloc(1, {size} + 1)))\n\t\tmullion_status_ = MULLION_NO_MEMORY;"
        );
        if !matches!(direction, Direction::Out(_)) {
            let _written = writeln!(
                before,
                "\tif (!mullion_status_)\n\t\tmullion_status_ = mullion_read(mullion_domain_, mullion_inside_{p}, {p}, {size});"
            );
        }
        if !matches!(direction, Direction::In(_)) {
            let _written = writeln!(
                after,
                "\tif (!mullion_status_)\n\t\tmullion_status_ = mullion_write(mullion_domain_, mullion_inside_{p}, {p}, {size});"
            );
        }
    }
    let stacked = stacked(integers);
    let names: String = parameters
        .iter()
        .map(|parameter| format!(", {}", parameter.name))
        .collect();
    let (declare, pass, result) = match &function.result {
        HeaderType::Void => (String::new(), "", String::new()),
        kind => (
            format!(
                "\t{0} mullion_value_ = {1};\n",
                name_of(kind),
                if matches!(kind, HeaderType::Pointer(_)) {
                    "{ 0 }"
                } else {
                    "0"
                }
            ),
            ", &mullion_value_",
            format!(
                "\tif (!mullion_status_)\n\t\t*mullion_result = {};\n",
                to_value(kind, "mullion_value_")
            ),
        ),
    };
    format!(
        "\nstatic inline mullion_status mullion_answer_{stem}_{name}(mullion_domain mullion_domain_, void *mullion_user,\n\
         \tconst mullion_arguments *mullion_arguments_, mullion_value *mullion_result)\n{{\n\
         \tconst struct {stem}_host *mullion_own = (const struct {stem}_host *)mullion_user;\n\
         \tmullion_status mullion_status_ = MULLION_OK;\n{stacked}{declare}{declarations}\
         \t(void)mullion_domain_, (void)mullion_arguments_, (void)mullion_result;\n{before}\
         \tif (!mullion_status_)\n\t\tmullion_status_ = mullion_own->{name}(mullion_own->user{pass}{names});\n\
         {after}{result}{end}\treturn mullion_status_;\n}}\n"
    )
}

/// Takes the integers and pointers beyond those in registers from the domain's stack.
fn stacked(integers: usize) -> String {
    if integers <= REGISTERS {
        return String::new();
    }
    let more = integers - REGISTERS;
    let mut text = format!("\tuint64_t mullion_stacked_[{more}] = {{ 0 }};\n");
    for index in 0..more {
        let _written = writeln!(
            text,
            "\tif (!mullion_status_)\n\t\tmullion_status_ = mullion_argument(mullion_domain_, {}, &mullion_stacked_[{index}]);",
            REGISTERS + index
        );
    }
    text
}

fn offer(stem: &str, functions: &[&BoundFunction]) -> String {
    let mut text = format!(
        "\n/* Puts the host's functions on a list. `host` stays as long as the list and the domains that\n\
         * were loaded with it. */\nstatic inline mullion_status {stem}_offer(mullion_imports imports, const struct {stem}_host *host)\n{{\n\
         \tmullion_status status = MULLION_OK;\n"
    );
    for BoundFunction { name, .. } in functions {
        let _written = writeln!(
            text,
            "\tif (!status)\n\t\tstatus = mullion_imports_add(imports, \"{name}\", mullion_answer_{stem}_{name}, (void *)(uintptr_t)host);"
        );
    }
    text + "\treturn status;\n}\n"
}

/// A parameter as a stub declares it.
fn declared(parameter: &Parameter) -> String {
    let p = &parameter.name;
    match &parameter.direction {
        None => format!("{} {p}", name_of(&parameter.kind)),
        Some(Direction::In(_) | Direction::Text) => format!("const {} *{p}", element(parameter)),
        Some(_) => format!("{} *{p}", element(parameter)),
    }
}

fn bytes(parameter: &Parameter, count: &Count) -> String {
    match count {
        Count::Number(number) => format!("{number} * sizeof *{}", parameter.name),
        Count::Parameter(count) => format!("(size_t){count} * sizeof *{}", parameter.name),
    }
}

fn element(parameter: &Parameter) -> String {
    match (&parameter.kind, &parameter.direction) {
        (_, Some(Direction::Text)) => "char".to_owned(),
        (HeaderType::Pointer(to), _) => name_of(to),
        (other, _) => name_of(other),
    }
}

fn to_value(kind: &HeaderType, name: &str) -> String {
    match kind {
        HeaderType::Double => format!("mullion_double({name})"),
        HeaderType::Float => format!("mullion_float({name})"),
        HeaderType::Pointer(_) => format!("mullion_address({name})"),
        HeaderType::Integer { signed: true, .. } => {
            format!("mullion_integer((uint64_t)(int64_t){name})")
        }
        _ => format!("mullion_integer({name})"),
    }
}

fn from_value(kind: &HeaderType, name: &str) -> String {
    match kind {
        HeaderType::Double => format!("{name}.as.real"),
        HeaderType::Float => format!("{name}.as.single"),
        HeaderType::Pointer(_) => format!("mullion_as_pointer({name})"),
        HeaderType::Bool => format!("(uint8_t){name}.as.integer != 0"),
        kind => format!("({}){name}.as.integer", name_of(kind)),
    }
}

fn result_kind(kind: &HeaderType) -> &'static str {
    match kind {
        HeaderType::Void => "MULLION_NOTHING",
        HeaderType::Double => "MULLION_DOUBLE",
        HeaderType::Float => "MULLION_FLOAT",
        _ => "MULLION_INTEGER",
    }
}

fn name_of(kind: &HeaderType) -> String {
    match kind {
        HeaderType::Void => "void".to_owned(),
        // C's char is signed here, and strings are made of it.
        HeaderType::Integer {
            bytes: 1,
            signed: true,
        } => "char".to_owned(),
        HeaderType::Integer { bytes, signed } => {
            format!("{}int{}_t", if *signed { "" } else { "u" }, bytes * 8)
        }
        HeaderType::Bool => "_Bool".to_owned(),
        HeaderType::Float => "float".to_owned(),
        HeaderType::Double => "double".to_owned(),
        HeaderType::Struct(name) => format!("struct {name}"),
        // Of the domain's.
        HeaderType::Pointer(_) => "mullion_pointer".to_owned(),
    }
}
