//! From a header to an [`HeaderInterface`].

use crate::error::BindError;
use crate::model::{
    BoundFunction, Count, Direction, Field, HeaderInterface, HeaderType, Parameter, Struct,
};
use lang_c::ast::{
    ArraySize, Attribute, Constant, Declaration, DeclarationSpecifier, Declarator, DeclaratorKind,
    DerivedDeclarator, Expression, Extension, ExternalDeclaration, FunctionDeclarator, Integer,
    IntegerBase, ParameterDeclaration, SpecifierQualifier, StorageClassSpecifier,
    StructDeclaration, StructKind, StructType, TypeSpecifier,
};
use lang_c::driver::{Config, parse_preprocessed};
use lang_c::span::Node;
use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

/// Reads a header; `include` are directories that it includes from.
///
/// # Errors
/// What is wrong with it, or cannot be made into stubs.
pub fn read(header: &Path, include: &[&Path]) -> Result<HeaderInterface, BindError> {
    let own = tempfile::tempdir()?;
    std::fs::create_dir(own.path().join("mullion"))?;
    std::fs::write(
        own.path().join("mullion/bind.h"),
        include_str!("../../../../sysroot/include/mullion/bind.h"),
    )?;
    let mut preprocessor = Command::new("gcc");
    preprocessor.args(["-E", "-P", "-DMULLION_BIND", "-std=gnu11", "-x", "c", "-I"]);
    preprocessor.arg(own.path());
    for directory in include {
        preprocessor.arg("-I").arg(directory);
    }
    let output = preprocessor.arg(header).output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(BindError::Preprocessor(said.trim_end().to_owned()));
    }
    parse(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Reads preprocessed text.
fn parse(text: String) -> Result<HeaderInterface, BindError> {
    let parsed =
        parse_preprocessed(&Config::with_gcc(), text).map_err(|error| BindError::Syntax {
            line: error.line,
            column: error.column,
        })?;
    let mut reader = Reader::default();
    for item in &parsed.unit.0 {
        if let ExternalDeclaration::Declaration(declaration) = &item.node {
            reader.declaration(&declaration.node)?;
        }
    }
    match reader.interface.functions.is_empty() {
        true => Err(BindError::Empty),
        false => Ok(reader.interface),
    }
}

/// What was declared so far.
#[derive(Default)]
struct Reader {
    interface: HeaderInterface,
    typedefs: HashMap<String, HeaderType>,
    structs: HashMap<String, StructType>,
    /// Whose members are being read: they may point to one of its own kind.
    open: Vec<String>,
}

type Answer<T> = Result<T, BindError>;

fn unsupported<T>(place: &str, reason: &str) -> Answer<T> {
    Err(BindError::Unsupported {
        place: place.to_owned(),
        reason: reason.to_owned(),
    })
}

impl Reader {
    fn declaration(&mut self, declaration: &Declaration) -> Answer<()> {
        let specifiers: Vec<_> = declaration
            .specifiers
            .iter()
            .map(|node| &node.node)
            .collect();
        for specifier in types(&specifiers) {
            if let TypeSpecifier::Struct(kind) = specifier
                && let (Some(name), Some(_)) = (&kind.node.identifier, &kind.node.declarations)
            {
                self.structs
                    .insert(name.node.name.clone(), kind.node.clone());
            }
        }
        let is_typedef = specifiers.iter().any(|specifier| {
            matches!(specifier, DeclarationSpecifier::StorageClass(class)
                if class.node == StorageClassSpecifier::Typedef)
        });
        for declared in &declaration.declarators {
            let declarator = &declared.node.declarator.node;
            let Some(name) = name_of(declarator) else {
                continue;
            };
            if is_typedef {
                // System headers have many that no stub needs: those are left out.
                if is_function(declarator) {
                    // By pointer, an address like any other.
                    self.typedefs.insert(name, HeaderType::Void);
                } else if let Ok(kind) = self.declared(&name, types(&specifiers), declarator) {
                    self.typedefs.insert(name, kind);
                }
                continue;
            }
            let marks = attributes(specifiers.iter().filter_map(|specifier| match specifier {
                DeclarationSpecifier::Extension(list) => Some(list),
                _ => None,
            }));
            let is_hosts = marks.iter().any(|mark| mark.name.node == "mullion_host");
            if is_hosts
                || marks
                    .iter()
                    .any(|mark| mark.name.node == "mullion_extension")
            {
                self.function(&name, is_hosts, &specifiers, declarator)?;
            }
        }
        Ok(())
    }

    fn function(
        &mut self,
        name: &str,
        is_hosts: bool,
        specifiers: &[&DeclarationSpecifier],
        declarator: &Declarator,
    ) -> Answer<()> {
        let mut result = self.base(name, types(specifiers))?;
        let mut parameters = None;
        for part in &declarator.derived {
            match &part.node {
                DerivedDeclarator::Pointer(_) => result = HeaderType::Pointer(Box::new(result)),
                DerivedDeclarator::Function(function) => {
                    parameters = Some(self.parameters(name, &function.node)?);
                }
                DerivedDeclarator::KRFunction(names) if names.is_empty() => {
                    parameters = Some(Vec::new());
                }
                _ => return unsupported(name, "only plain functions can be marked"),
            }
        }
        let Some(parameters) = parameters else {
            return unsupported(name, "only functions can be marked");
        };
        if matches!(result, HeaderType::Struct(_)) {
            return unsupported(
                name,
                "a structure cannot be returned; return a pointer to one",
            );
        }
        if parameters.len() > 8 {
            return unsupported(name, "a call has at most eight arguments");
        }
        let function = BoundFunction {
            name: name.to_owned(),
            is_hosts,
            result,
            parameters,
        };
        check_counts(&function)?;
        self.interface.functions.push(function);
        Ok(())
    }

    fn parameters(&mut self, function: &str, list: &FunctionDeclarator) -> Answer<Vec<Parameter>> {
        if list.ellipsis == lang_c::ast::Ellipsis::Some {
            return unsupported(function, "variable arguments cannot cross the wall");
        }
        let mut parameters = Vec::new();
        for parameter in &list.parameters {
            if let Some(parameter) = self.parameter(function, &parameter.node)? {
                parameters.push(parameter);
            }
        }
        Ok(parameters)
    }

    /// `None` for the `void` of an empty list.
    fn parameter(
        &mut self,
        function: &str,
        given: &ParameterDeclaration,
    ) -> Answer<Option<Parameter>> {
        let specifiers: Vec<_> = given.specifiers.iter().map(|node| &node.node).collect();
        let Some(declarator) = &given.declarator else {
            return match self.base(function, types(&specifiers))? {
                HeaderType::Void => Ok(None),
                _ => unsupported(function, "each parameter must have a name"),
            };
        };
        let Some(name) = name_of(&declarator.node) else {
            return unsupported(function, "each parameter must have a name");
        };
        let place = format!("{function}, {name}");
        let kind = match self.declared(&place, types(&specifiers), &declarator.node)? {
            // A function as a parameter is a pointer to one.
            HeaderType::Void => HeaderType::Pointer(Box::new(HeaderType::Void)),
            kind => kind,
        };
        let lists = [&declarator.node.extensions, &given.extensions];
        let mut direction = None;
        for mark in attributes(lists) {
            let Some(found) = direction_of(&place, mark)? else {
                continue;
            };
            if direction.replace(found).is_some() {
                return unsupported(&place, "it has two marks");
            }
        }
        check_direction(&place, &kind, direction.as_ref())?;
        Ok(Some(Parameter {
            name,
            kind,
            direction,
        }))
    }

    /// The type that specifiers and declarator make together.
    fn declared<'a>(
        &mut self,
        place: &str,
        specifiers: impl Iterator<Item = &'a TypeSpecifier>,
        declarator: &Declarator,
    ) -> Answer<HeaderType> {
        if matches!(declarator.kind.node, DeclaratorKind::Declarator(_)) {
            // A pointer to a function or an array: an address like any other.
            return Ok(HeaderType::Pointer(Box::new(HeaderType::Void)));
        }
        let mut kind = self.base(place, specifiers)?;
        for part in &declarator.derived {
            kind = match &part.node {
                DerivedDeclarator::Pointer(_) => HeaderType::Pointer(Box::new(kind)),
                DerivedDeclarator::Array(array)
                    if matches!(array.node.size, ArraySize::Unknown) =>
                {
                    HeaderType::Pointer(Box::new(kind))
                }
                _ => return unsupported(place, "arrays and functions are passed by pointer"),
            };
        }
        Ok(kind)
    }

    fn base<'a>(
        &mut self,
        place: &str,
        specifiers: impl Iterator<Item = &'a TypeSpecifier>,
    ) -> Answer<HeaderType> {
        let (mut signed, mut unsigned, mut longs, mut bytes) = (false, false, 0, None);
        for specifier in specifiers {
            match specifier {
                TypeSpecifier::Void => return Ok(HeaderType::Void),
                TypeSpecifier::Bool => return Ok(HeaderType::Bool),
                TypeSpecifier::Float => return Ok(HeaderType::Float),
                TypeSpecifier::Double if longs == 0 => return Ok(HeaderType::Double),
                TypeSpecifier::Char => bytes = Some(1),
                TypeSpecifier::Short => bytes = Some(2),
                TypeSpecifier::Int => bytes = bytes.or(Some(4)),
                TypeSpecifier::Long => longs += 1,
                TypeSpecifier::Signed => signed = true,
                TypeSpecifier::Unsigned => unsigned = true,
                TypeSpecifier::Enum(_) => {
                    return Ok(HeaderType::Integer {
                        bytes: 4,
                        signed: false,
                    });
                }
                TypeSpecifier::TypedefName(name) => {
                    let known = self.typedefs.get(&name.node.name).cloned();
                    return known.map_or_else(
                        || unsupported(place, &format!("{} is not known", name.node.name)),
                        Ok,
                    );
                }
                TypeSpecifier::Struct(kind) => return self.structure(place, &kind.node),
                _ => return unsupported(place, "this type cannot cross the wall"),
            }
        }
        let bytes = match (longs, bytes) {
            (1.., _) => 8,
            (0, Some(bytes)) => bytes,
            (0, None) if signed || unsigned => 4,
            _ => return unsupported(place, "it has no type"),
        };
        Ok(HeaderType::Integer {
            bytes,
            signed: !unsigned,
        })
    }

    /// A structure by its tag; put on the list with those that it has in it.
    fn structure(&mut self, place: &str, kind: &StructType) -> Answer<HeaderType> {
        let Some(name) = &kind.identifier else {
            return unsupported(place, "give the structure a tag");
        };
        let name = name.node.name.clone();
        if kind.kind.node == StructKind::Union {
            return unsupported(place, "a union has no type that can be checked; pass bytes");
        }
        let is_known = self
            .interface
            .structs
            .iter()
            .any(|known| known.name == name);
        // Without members it is opaque: a pointer to it is an address.
        let Some(members) = self
            .structs
            .get(&name)
            .and_then(|kind| kind.declarations.clone())
        else {
            return Ok(HeaderType::Void);
        };
        if !is_known && !self.open.contains(&name) {
            self.open.push(name.clone());
            let fields = self.fields(&name, &members);
            self.open.pop();
            let fields = fields?;
            check_padding(&name, &fields, &self.interface.structs)?;
            self.interface.structs.push(Struct {
                name: name.clone(),
                fields,
            });
        }
        Ok(HeaderType::Struct(name))
    }

    fn fields(
        &mut self,
        structure: &str,
        members: &[Node<StructDeclaration>],
    ) -> Answer<Vec<Field>> {
        let mut fields = Vec::new();
        for member in members {
            let StructDeclaration::Field(member) = &member.node else {
                continue;
            };
            let specifiers: Vec<_> = member
                .node
                .specifiers
                .iter()
                .filter_map(|node| match &node.node {
                    SpecifierQualifier::TypeSpecifier(kind) => Some(kind.node.clone()),
                    _ => None,
                })
                .collect();
            for declared in &member.node.declarators {
                let name = declared
                    .node
                    .declarator
                    .as_ref()
                    .and_then(|declarator| name_of(&declarator.node));
                let (Some(declarator), Some(name), None) =
                    (&declared.node.declarator, name, &declared.node.bit_width)
                else {
                    return unsupported(
                        structure,
                        "bit fields and members without names cannot cross the wall",
                    );
                };
                let place = format!("{structure}, {name}");
                fields.push(self.field(&place, name, &specifiers, &declarator.node)?);
            }
        }
        Ok(fields)
    }

    fn field(
        &mut self,
        place: &str,
        name: String,
        specifiers: &[TypeSpecifier],
        declarator: &Declarator,
    ) -> Answer<Field> {
        let mut plain = declarator.clone();
        let mut length = None;
        if let Some(DerivedDeclarator::Array(array)) = plain.derived.last().map(|part| &part.node) {
            let ArraySize::VariableExpression(size) = &array.node.size else {
                return unsupported(place, "the array needs a length");
            };
            length = number(&size.node);
            if length.is_none() {
                return unsupported(place, "the array's length must be a number");
            }
            plain.derived.pop();
        }
        let kind = self.declared(place, specifiers.iter(), &plain)?;
        if matches!(kind, HeaderType::Void | HeaderType::Bool) {
            return unsupported(
                place,
                "a member is a number, a pointer or a structure (of _Bool, take uint8_t)",
            );
        }
        Ok(Field { name, kind, length })
    }
}

/// Whether that is a function, and not a pointer to one.
fn is_function(declarator: &Declarator) -> bool {
    let last = declarator.derived.last().map(|part| &part.node);
    matches!(declarator.kind.node, DeclaratorKind::Identifier(_))
        && matches!(
            last,
            Some(DerivedDeclarator::Function(_) | DerivedDeclarator::KRFunction(_))
        )
}

fn types<'a>(specifiers: &[&'a DeclarationSpecifier]) -> impl Iterator<Item = &'a TypeSpecifier> {
    let found = specifiers.iter().filter_map(|specifier| match specifier {
        DeclarationSpecifier::TypeSpecifier(kind) => Some(&kind.node),
        _ => None,
    });
    found.collect::<Vec<_>>().into_iter()
}

fn attributes<'a>(lists: impl IntoIterator<Item = &'a Vec<Node<Extension>>>) -> Vec<&'a Attribute> {
    let all = lists.into_iter().flatten();
    let found = all.filter_map(|extension| match &extension.node {
        Extension::Attribute(attribute) => Some(attribute),
        _ => None,
    });
    found.collect()
}

fn name_of(declarator: &Declarator) -> Option<String> {
    match &declarator.kind.node {
        DeclaratorKind::Identifier(name) => Some(name.node.name.clone()),
        DeclaratorKind::Declarator(inner) => name_of(&inner.node),
        DeclaratorKind::Abstract => None,
    }
}

fn number(expression: &Expression) -> Option<u64> {
    let Expression::Constant(constant) = expression else {
        return None;
    };
    let Constant::Integer(Integer { base, number, .. }) = &constant.node else {
        return None;
    };
    let radix = match base {
        IntegerBase::Decimal => 10,
        IntegerBase::Octal => 8,
        IntegerBase::Hexadecimal => 16,
        IntegerBase::Binary => 2,
    };
    u64::from_str_radix(number, radix).ok()
}

fn direction_of(place: &str, mark: &Attribute) -> Answer<Option<Direction>> {
    let make: fn(Count) -> Direction = match mark.name.node.as_str() {
        "mullion_string" => return Ok(Some(Direction::Text)),
        "mullion_in" => Direction::In,
        "mullion_out" => Direction::Out,
        "mullion_inout" => Direction::InOut,
        _ => return Ok(None),
    };
    let count = mark
        .arguments
        .first()
        .and_then(|argument| match &argument.node {
            Expression::Identifier(name) => Some(Count::Parameter(name.node.name.clone())),
            other => number(other).map(Count::Number),
        });
    match count {
        Some(count) => Ok(Some(make(count))),
        None => unsupported(place, "the count is a number or a parameter"),
    }
}

fn check_direction(place: &str, kind: &HeaderType, direction: Option<&Direction>) -> Answer<()> {
    match (kind, direction) {
        (HeaderType::Struct(_), _) => unsupported(place, "a structure is passed by pointer"),
        (_, None) => Ok(()),
        (HeaderType::Pointer(to), Some(Direction::Text)) => match **to {
            HeaderType::Integer { bytes: 1, .. } => Ok(()),
            _ => unsupported(place, "a string is made of char"),
        },
        (HeaderType::Pointer(to), Some(_)) => match **to {
            HeaderType::Void | HeaderType::Bool => {
                unsupported(place, "what is copied has a type: take uint8_t")
            }
            _ => Ok(()),
        },
        _ => unsupported(place, "only pointers can be marked"),
    }
}

/// Every count names a parameter of an integer type.
fn check_counts(function: &BoundFunction) -> Answer<()> {
    for parameter in &function.parameters {
        let Some(Count::Parameter(name)) = parameter.direction.as_ref().and_then(Direction::count)
        else {
            continue;
        };
        let counted = function.parameters.iter().find(|other| other.name == *name);
        if !counted.is_some_and(|other| matches!(other.kind, HeaderType::Integer { .. })) {
            let place = format!("{}, {}", function.name, parameter.name);
            return unsupported(&place, &format!("{name} is no integer parameter"));
        }
    }
    Ok(())
}

/// Padding would leak what was in memory, and is no value: it must be named.
fn check_padding(name: &str, fields: &[Field], structs: &[Struct]) -> Answer<()> {
    let (mut at, mut alignment) = (0, 1);
    for field in fields {
        let (size, align) = layout(&field.kind, structs);
        if at % align != 0 {
            let place = format!("{name}, {}", field.name);
            return unsupported(
                &place,
                "there is padding in front of it: put a member there",
            );
        }
        at += size * field.length.unwrap_or(1);
        alignment = alignment.max(align);
    }
    match at % alignment == 0 && at > 0 {
        true => Ok(()),
        false => unsupported(name, "there is padding at its end: put a member there"),
    }
}

/// Size and alignment.
fn layout(kind: &HeaderType, structs: &[Struct]) -> (u64, u64) {
    match kind {
        HeaderType::Void | HeaderType::Bool => (1, 1),
        HeaderType::Integer { bytes, .. } => (u64::from(*bytes), u64::from(*bytes)),
        HeaderType::Float => (4, 4),
        HeaderType::Double | HeaderType::Pointer(_) => (8, 8),
        HeaderType::Struct(name) => {
            let fields = structs.iter().find(|known| known.name == *name);
            let fields = fields
                .map(|known| known.fields.as_slice())
                .unwrap_or_default();
            fields.iter().fold((0, 1), |(size, align), field| {
                let (bytes, alignment) = layout(&field.kind, structs);
                (
                    size + bytes * field.length.unwrap_or(1),
                    align.max(alignment),
                )
            })
        }
    }
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
