//! From a host's header, untouched, and annotations beside it to an interface that policies of the word wall name.
//!
//! Types say what calls do with memory, where they can. A string that is constant is read to its end, a structure is
//! read, or read and written, and a function is called. All else needs an annotation, or the function is left out.

use crate::error::BindError;
use lang_c::ast::{
    Declaration, DeclarationSpecifier, Declarator, DeclaratorKind, DerivedDeclarator, Ellipsis,
    ExternalDeclaration, FunctionDeclarator, PointerQualifier, SpecifierQualifier,
    StorageClassSpecifier, StructDeclaration, StructKind, StructType, TypeQualifier, TypeSpecifier,
};
use lang_c::driver::{Config, parse_preprocessed};
use lang_c::span::Node;
use mullion_word_policy::{Call, File};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// Arguments of integers and pointers that come in registers.
const REGISTERS: usize = 6;

/// What a header says.
#[derive(Clone, Debug)]
pub struct Described {
    /// The interface.
    pub file: File,
    /// Functions that are left out, with the reason.
    pub left_out: Vec<(String, String)>,
}

#[derive(Clone, Debug)]
enum Type {
    Void,
    /// As policies call it.
    Character(&'static str),
    /// As policies call its type, if it is not 64 bits without a sign.
    Number(Option<&'static str>),
    Float,
    /// By its name in C.
    Struct(String),
    Function,
    /// What it points to, and whether that is constant.
    Pointer(Box<Type>, bool),
}

#[derive(Default)]
struct Reader {
    typedefs: HashMap<String, Type>,
    /// Structures with members, by their names in C: whether all members are constant.
    complete: HashMap<String, bool>,
    functions: BTreeMap<String, Function>,
}

struct Function {
    result: Type,
    parameters: Vec<(String, Type)>,
    is_variadic: bool,
}

/// Reads a header; `include` are directories that it includes from.
///
/// # Errors
/// What is wrong with the header or with the annotations.
pub fn describe(
    header: &Path,
    include: &[&Path],
    annotations: Option<&str>,
) -> Result<Described, BindError> {
    let gcc = |arguments: &[&str], file: &Path| {
        let mut gcc = Command::new("gcc");
        gcc.args(arguments).args(["-std=gnu11", "-x", "c"]);
        for directory in include {
            gcc.arg("-I").arg(directory);
        }
        let output = gcc.arg(file).output()?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => {
                let said = String::from_utf8_lossy(&output.stderr);
                Err(BindError::Preprocessor(said.trim_end().to_owned()))
            }
        }
    };
    let text = gcc(&["-E"], header)?;
    let own = own_names(&text, header);
    let mut reader = read(&text)?;
    reader.functions.retain(|name, _| own.contains(name));
    let sizes = reader.sizes(|probe| {
        let scratch = tempfile::tempdir()?;
        let file = scratch.path().join("sizes.c");
        let header = header.canonicalize()?;
        std::fs::write(&file, format!("#include \"{}\"\n{probe}", header.display()))?;
        gcc(&["-S", "-o", "-"], &file)
    })?;
    let named = |name: &str| {
        let function = reader.functions.get(name);
        function.map(Function::names).unwrap_or_default()
    };
    let annotated = File::parse_with(annotations.unwrap_or_default(), &named)?;
    if let Some(name) = annotated
        .calls
        .keys()
        .find(|name| !reader.functions.contains_key(*name))
    {
        return Err(BindError::NotDeclared(name.clone()));
    }
    let mut described = Described {
        file: annotated,
        left_out: Vec::new(),
    };
    for (name, function) in &reader.functions {
        if let Some(call) = described.file.calls.get_mut(name) {
            call.stacked = call.stacked.max(function.stacked());
            continue;
        }
        match reader.usual(name, function, &sizes) {
            Ok(call) => drop(described.file.calls.insert(name.clone(), call)),
            Err(reason) => described.left_out.push((name.clone(), reason)),
        }
    }
    Ok(described)
}

impl Described {
    /// The interface as text, with what is left out as comments.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (name, reason) in &self.left_out {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "# {name} is left out: {reason}");
        }
        let _ = write!(text, "{}", self.file);
        text
    }
}

/// Names that the header itself has in front of a parenthesis, by the preprocessor's marks of lines.
fn own_names(text: &str, header: &Path) -> BTreeSet<String> {
    let mark = format!("\"{}\"", header.display());
    let mut is_own = false;
    let mut names = BTreeSet::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# ") {
            is_own = rest.contains(&mark);
        } else if is_own {
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            for part in line.split('(') {
                let part = part.trim_end();
                let start = part.rfind(|c| !is_name(c)).map_or(0, |at| at + 1);
                names.insert(part[start..].to_owned());
            }
        }
    }
    names
}

fn read(text: &str) -> Result<Reader, BindError> {
    let lines = text
        .lines()
        .map(|line| if line.starts_with('#') { "" } else { line });
    let text = lines.collect::<Vec<_>>().join("\n");
    let parsed =
        parse_preprocessed(&Config::with_gcc(), text).map_err(|error| BindError::Syntax {
            line: error.line,
            column: error.column,
        })?;
    let mut reader = Reader::default();
    for item in &parsed.unit.0 {
        if let ExternalDeclaration::Declaration(declaration) = &item.node {
            reader.declaration(&declaration.node);
        }
    }
    Ok(reader)
}

fn name_of(declarator: &Declarator) -> Option<String> {
    match &declarator.kind.node {
        DeclaratorKind::Identifier(name) => Some(name.node.name.clone()),
        DeclaratorKind::Declarator(inner) => name_of(&inner.node),
        DeclaratorKind::Abstract => None,
    }
}

/// The types of a list of specifiers, and whether they are constant.
fn split(specifiers: &[Node<DeclarationSpecifier>]) -> (Vec<&TypeSpecifier>, bool) {
    let types = specifiers
        .iter()
        .filter_map(|specifier| match &specifier.node {
            DeclarationSpecifier::TypeSpecifier(kind) => Some(&kind.node),
            _ => None,
        });
    let is_constant = specifiers.iter().any(|specifier| {
        matches!(&specifier.node, DeclarationSpecifier::TypeQualifier(qualifier)
            if qualifier.node == TypeQualifier::Const)
    });
    (types.collect(), is_constant)
}

impl Reader {
    fn declaration(&mut self, declaration: &Declaration) {
        let (types, is_constant) = split(&declaration.specifiers);
        let is_typedef = declaration.specifiers.iter().any(|specifier| {
            matches!(&specifier.node, DeclarationSpecifier::StorageClass(class)
                if class.node == StorageClassSpecifier::Typedef)
        });
        let names = declaration.declarators.iter();
        let first = names
            .clone()
            .find_map(|declared| name_of(&declared.node.declarator.node));
        let base = self.base(&types, first.as_deref().filter(|_| is_typedef));
        for declared in names {
            let declarator = &declared.node.declarator.node;
            let Some(name) = name_of(declarator) else {
                continue;
            };
            if is_typedef {
                let kind = self.declared(base.clone(), is_constant, declarator);
                self.typedefs.insert(name, kind);
                continue;
            }
            let plain = matches!(declarator.kind.node, DeclaratorKind::Identifier(_));
            let Some(function) = function_of(declarator).filter(|_| plain) else {
                continue;
            };
            let result = pointers(base.clone(), is_constant, declarator);
            let function = self.function(result, function);
            self.functions.insert(name, function);
        }
    }

    fn function(&mut self, result: Type, function: &FunctionDeclarator) -> Function {
        let mut parameters = Vec::new();
        for (number, parameter) in function.parameters.iter().enumerate() {
            let (types, is_constant) = split(&parameter.node.specifiers);
            let base = self.base(&types, None);
            let usual = || format!("p{number}");
            let (name, kind) = match &parameter.node.declarator {
                None => (usual(), base),
                Some(declarator) => (
                    name_of(&declarator.node).unwrap_or_else(usual),
                    self.declared(base, is_constant, &declarator.node),
                ),
            };
            if !matches!(kind, Type::Void) {
                parameters.push((name, kind));
            }
        }
        Function {
            result,
            parameters,
            is_variadic: function.ellipsis == Ellipsis::Some,
        }
    }

    /// The type of specifiers; `alias` is a name of it, if it has no other.
    fn base(&mut self, specifiers: &[&TypeSpecifier], alias: Option<&str>) -> Type {
        let mut found = Type::Number(integer(specifiers));
        for specifier in specifiers {
            found = match specifier {
                TypeSpecifier::Void => Type::Void,
                TypeSpecifier::Char => Type::Character(character(specifiers)),
                TypeSpecifier::Float | TypeSpecifier::Double => Type::Float,
                TypeSpecifier::Struct(kind) => self.structure(&kind.node, alias),
                TypeSpecifier::TypedefName(name) => {
                    let known = self.typedefs.get(&name.node.name);
                    // What is not known is nobody's to describe.
                    known.cloned().unwrap_or(Type::Void)
                }
                _ => continue,
            };
        }
        found
    }

    fn structure(&mut self, kind: &StructType, alias: Option<&str>) -> Type {
        let word = match kind.kind.node {
            StructKind::Struct => "struct",
            StructKind::Union => "union",
        };
        let tag = kind
            .identifier
            .as_ref()
            .map(|tag| format!("{word} {}", tag.node.name));
        let Some(name) = tag.or(alias.map(str::to_owned)) else {
            return Type::Void;
        };
        if let Some(members) = &kind.declarations {
            let is_constant = members.iter().all(|member| match &member.node {
                StructDeclaration::Field(field) => field.node.specifiers.iter().any(|specifier| {
                    matches!(&specifier.node, SpecifierQualifier::TypeQualifier(qualifier)
                        if qualifier.node == TypeQualifier::Const)
                }),
                StructDeclaration::StaticAssert(_) => true,
            });
            self.complete.insert(name.clone(), is_constant);
        }
        Type::Struct(name)
    }

    fn declared(&mut self, base: Type, is_constant: bool, declarator: &Declarator) -> Type {
        let is_function = function_of(declarator).is_some();
        match (&declarator.kind.node, is_function) {
            (_, true) => Type::Function,
            // A pointer to an array.
            (DeclaratorKind::Declarator(_), false) => Type::Pointer(Box::new(Type::Void), false),
            (_, false) => pointers(base, is_constant, declarator),
        }
    }

    /// Sizes of the structures that functions point to.
    fn sizes(
        &self,
        compile: impl FnOnce(&str) -> Result<String, BindError>,
    ) -> Result<HashMap<String, u64>, BindError> {
        let all = self
            .functions
            .values()
            .flat_map(|function| &function.parameters);
        let names: BTreeSet<&String> = all
            .filter_map(|(_, kind)| match kind {
                Type::Pointer(to, _) => match &**to {
                    Type::Struct(name) => self.complete.contains_key(name).then_some(name),
                    _ => None,
                },
                _ => None,
            })
            .collect();
        if names.is_empty() {
            return Ok(HashMap::new());
        }
        let mut probe = String::new();
        for (number, name) in names.iter().enumerate() {
            let _ = writeln!(
                probe,
                "const unsigned long mullion_size_{number} = sizeof({name});"
            );
        }
        let assembler = compile(&probe)?;
        let size = |number: usize| {
            let label = format!("mullion_size_{number}:");
            let behind = assembler.lines().skip_while(|line| line.trim() != label);
            behind.skip(1).find_map(|line| {
                let line = line.trim();
                match line.strip_prefix(".quad") {
                    Some(value) => value.trim().parse().ok(),
                    None => line.starts_with(".zero").then_some(0),
                }
            })
        };
        let sizes = names.iter().enumerate();
        Ok(sizes
            .filter_map(|(number, name)| Some(((*name).clone(), size(number)?)))
            .collect())
    }

    /// What types say of a function.
    fn usual(
        &self,
        name: &str,
        function: &Function,
        sizes: &HashMap<String, u64>,
    ) -> Result<Call, String> {
        if function.is_variadic {
            return Err("it takes a variable number of arguments".to_owned());
        }
        if matches!(function.result, Type::Pointer(..) | Type::Function) {
            return Err("nobody says what its result points to".to_owned());
        }
        let mut effects = Vec::new();
        let integers = function
            .parameters
            .iter()
            .filter(|(_, kind)| !matches!(kind, Type::Float));
        for (number, (parameter, kind)) in integers.enumerate() {
            let effect = match kind {
                Type::Number(_) | Type::Character(_) => continue,
                Type::Function => Some(format!("callback({parameter})")),
                Type::Pointer(to, is_constant) => match &**to {
                    Type::Character(_) if *is_constant => Some(format!("string({parameter})")),
                    Type::Function => Some(format!("callback({parameter})")),
                    Type::Struct(tag) => sizes.get(tag).map(|bytes| {
                        let is_read = *is_constant || self.complete.get(tag) == Some(&true);
                        let word = if is_read { "in" } else { "inout" };
                        format!("{word}({parameter}, {bytes})")
                    }),
                    _ => None,
                },
                _ => return Err(format!("{parameter} is passed by value")),
            };
            let effect =
                effect.ok_or_else(|| format!("nobody says how much {parameter} points to"))?;
            if number >= REGISTERS {
                return Err(format!("{parameter} is not passed in a register"));
            }
            effects.push(effect);
        }
        let quoted: Vec<_> = effects
            .iter()
            .map(|effect| format!("\"{effect}\""))
            .collect();
        let text = format!("[call.{name}]\neffects = [{}]\n", quoted.join(", "));
        let file = File::parse_with(&text, &|_| function.names()).map_err(|error| error.what)?;
        let mut call = file.calls.get(name).cloned().unwrap_or_default();
        call.stacked = function.stacked();
        Ok(call)
    }
}

impl Function {
    /// Names of the parameters that effects can be of: floating-point numbers come in registers of their own.
    fn names(&self) -> Vec<String> {
        let integers = self
            .parameters
            .iter()
            .filter(|(_, kind)| !matches!(kind, Type::Float));
        let typed = |(name, kind): &(String, Type)| match kind {
            Type::Number(Some(kind)) => format!("{kind} {name}"),
            Type::Character(kind) => format!("{kind} {name}"),
            _ => name.clone(),
        };
        integers.map(typed).collect()
    }

    fn stacked(&self) -> u8 {
        let words = self.names().len().saturating_sub(REGISTERS);
        u8::try_from(words).unwrap_or(u8::MAX).min(16)
    }
}

fn character(specifiers: &[&TypeSpecifier]) -> &'static str {
    let unsigned = |one: &&TypeSpecifier| matches!(one, TypeSpecifier::Unsigned);
    match specifiers.iter().any(unsigned) {
        true => "unsigned char",
        false => "char",
    }
}

/// The type of an integer, in the words of policies. A register has it in its lower part, and anything above.
fn integer(specifiers: &[&TypeSpecifier]) -> Option<&'static str> {
    let has = |wanted: fn(&TypeSpecifier) -> bool| specifiers.iter().any(|one| wanted(one));
    let is_unsigned = has(|one| matches!(one, TypeSpecifier::Unsigned));
    let (signed, unsigned) = if has(|one| matches!(one, TypeSpecifier::Bool)) {
        ("bool", "bool")
    } else if has(|one| matches!(one, TypeSpecifier::Enum(_))) {
        ("u32", "u32")
    } else if has(|one| matches!(one, TypeSpecifier::Short)) {
        ("short", "unsigned short")
    } else if has(|one| matches!(one, TypeSpecifier::Long)) {
        return (!is_unsigned).then_some("long");
    } else {
        ("int", "unsigned int")
    };
    Some(if is_unsigned { unsigned } else { signed })
}

fn function_of(declarator: &Declarator) -> Option<&FunctionDeclarator> {
    declarator.derived.iter().find_map(|part| match &part.node {
        DerivedDeclarator::Function(function) => Some(&function.node),
        _ => None,
    })
}

/// The stars of a declarator around a type.
fn pointers(base: Type, mut is_constant: bool, declarator: &Declarator) -> Type {
    let mut kind = base;
    for part in &declarator.derived {
        match &part.node {
            DerivedDeclarator::Pointer(qualifiers) => {
                kind = Type::Pointer(Box::new(kind), is_constant);
                is_constant = qualifiers.iter().any(|qualifier| {
                    matches!(&qualifier.node, PointerQualifier::TypeQualifier(qualifier)
                        if qualifier.node == TypeQualifier::Const)
                });
            }
            DerivedDeclarator::Array(_) => {
                kind = Type::Pointer(Box::new(kind), is_constant);
                is_constant = false;
            }
            _ => break,
        }
    }
    kind
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "
        #include <stddef.h>
        struct point { int x, y; double z; };
        struct fixed { const int a; const char *const b; };
        typedef struct { long n; } record;
        typedef struct hidden hidden;
        typedef int (*visit)(void *user, int at);
        #define SELDOM(x) (x)
        int set_title(const char *title);
        void move(struct point *to, const struct point *from, double by, int times);
        int look(struct fixed *what, record *into);
        int walk(visit callback, int depth);
        int open_it(hidden *what);
        size_t read_into(void *buffer, size_t bytes);
        int print(const char *format, ...);
        char *title(void);
        int many(int a, int b, int c, int d, int e, int f, int g, double h);
        int late(int a, int b, int c, int d, int e, int f, const char *g);
        void by_value(struct point p);
        void nothing(void);
        void widths(short a, unsigned b, unsigned short c, long d, size_t e, _Bool f, enum { X } g, unsigned char h);
    ";
    const WIDTHS: [&str; 8] = [
        "short a",
        "unsigned int b",
        "unsigned short c",
        "long d",
        "e",
        "bool f",
        "u32 g",
        "unsigned char h",
    ];

    fn described(annotations: &str) -> Result<Described, BindError> {
        let scratch = tempfile::tempdir().expect("a temporary directory");
        let header = scratch.path().join("host.h");
        std::fs::write(&header, HEADER).expect("written");
        describe(&header, &[], Some(annotations))
    }

    #[test]
    fn types_say_what_they_can() {
        let described = described("").expect("a good header");
        let effects = |name: &str| described.file.calls[name].described();
        assert_eq!(effects("set_title"), ["string(title)"]);
        assert_eq!(effects("move"), ["inout(to, 16)", "in(from, 16)"]);
        assert_eq!(effects("look"), ["in(what, 16)", "inout(into, 8)"]);
        assert_eq!(effects("walk"), ["callback(callback)"]);
        assert_eq!(described.file.calls["many"].stacked, 1);
        assert_eq!(
            described.file.calls["move"].parameters,
            ["to", "from", "int times"]
        );
        assert_eq!(described.file.calls["widths"].parameters, WIDTHS);
        assert_eq!(effects("nothing"), [""; 0]);
        let left_out: Vec<&str> = described
            .left_out
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        let expected = ["by_value", "late", "open_it", "print", "read_into", "title"];
        assert_eq!(left_out, expected);
        assert_eq!(
            described.file.calls.len() + left_out.len(),
            13,
            "and none of the system's"
        );
    }

    #[test]
    fn annotations_come_before_types() {
        let text = "[call.read_into]\neffects = [\"out(buffer, bytes)\"]\n[call.title]\n[call.move]\neffects = []\n";
        let described = described(text).expect("good annotations");
        assert_eq!(
            described.file.calls["read_into"].described(),
            ["out(buffer, bytes)"]
        );
        assert_eq!(described.file.calls["move"].described(), [""; 0]);
        // An `int` is read as one, whether the annotation says so or not.
        let text = "[call.move]\neffects = [\"out(to, times)\"]";
        let sized = super::tests::described(text).expect("good annotations");
        let explicit =
            "[call.f]\nparameters = [\"to\", \"from\", \"n\"]\neffects = [\"out(to, n:i32)\"]";
        let explicit = File::parse(explicit).expect("it is right");
        assert_eq!(
            sized.file.calls["move"].effects,
            explicit.calls["f"].effects
        );
        assert!(described.file.calls.contains_key("title"));
        let again = File::parse(&described.text()).expect("what it writes can be read");
        assert_eq!(again, described.file);
    }

    #[test]
    fn annotations_of_nothing_are_errors() {
        let wrong = |text| described(text).expect_err("wrong").to_string();
        assert!(wrong("[call.absent]").contains("no function absent"));
        let said = wrong("[call.read_into]\neffects = [\"out(buffer, size)\"]");
        assert!(
            said.contains("line 2, column 25") && said.contains("buffer, bytes"),
            "{said}"
        );
    }
}
