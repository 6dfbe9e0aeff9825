//! Declaration specifiers and declarators: what type a declaration gives to which name.

use crate::scope::{Entity, Judge, Tag};
use crate::types::{Function, INT, INTS, LARGEST, Length, Member, Qualified, Record, Type};
use lang_c::ast::*;
use lang_c::span::{Node, Span};
use mullion_elastic::Rule;
use std::rc::Rc;

/// How long what is declared lives, and who sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Storage {
    Usual,
    Typedef,
    Extern,
    Static,
}

/// Specifiers as they are collected.
struct Specifiers {
    storage: Storage,
    constant: bool,
    volatile: bool,
    words: Vec<&'static str>,
    other: Option<Qualified>,
}

impl Judge<'_> {
    pub(crate) fn specifiers(
        &mut self,
        list: &[Node<DeclarationSpecifier>],
        span: Span,
    ) -> (Storage, Qualified) {
        let mut found = Specifiers::new();
        for specifier in list {
            let at = specifier.span;
            match &specifier.node {
                DeclarationSpecifier::StorageClass(class) => match class.node {
                    StorageClassSpecifier::Typedef => found.storage = Storage::Typedef,
                    StorageClassSpecifier::Extern => found.storage = Storage::Extern,
                    StorageClassSpecifier::Static => found.storage = Storage::Static,
                    StorageClassSpecifier::ThreadLocal => {
                        self.refuse(at, Rule::ThreadLocal, "`_Thread_local`")
                    }
                    StorageClassSpecifier::Auto | StorageClassSpecifier::Register => {}
                },
                DeclarationSpecifier::TypeSpecifier(specifier) => {
                    self.specifier(specifier, &mut found)
                }
                DeclarationSpecifier::TypeQualifier(qualifier) => {
                    self.qualifier(qualifier, &mut found)
                }
                DeclarationSpecifier::Function(function) => match function.node {
                    // It means nothing without a body: see `is_inline`.
                    FunctionSpecifier::Inline => {}
                    FunctionSpecifier::Noreturn => self.refuse(at, Rule::Attributes, "`_Noreturn`"),
                },
                DeclarationSpecifier::Alignment(_) => {
                    self.refuse(at, Rule::Alignment, "`_Alignas`")
                }
                DeclarationSpecifier::Extension(_) => {
                    self.refuse(at, Rule::Attributes, "an attribute")
                }
            }
        }
        let storage = found.storage;
        (storage, self.finished(found, span))
    }

    pub(crate) fn specifier_qualifiers(
        &mut self,
        list: &[Node<SpecifierQualifier>],
        span: Span,
    ) -> Qualified {
        let mut found = Specifiers::new();
        for specifier in list {
            match &specifier.node {
                SpecifierQualifier::TypeSpecifier(specifier) => {
                    self.specifier(specifier, &mut found)
                }
                SpecifierQualifier::TypeQualifier(qualifier) => {
                    self.qualifier(qualifier, &mut found)
                }
                SpecifierQualifier::Extension(_) => {
                    self.refuse(specifier.span, Rule::Attributes, "an attribute")
                }
            }
        }
        self.finished(found, span)
    }

    fn finished(&mut self, found: Specifiers, span: Span) -> Qualified {
        let ty = match (found.other, found.words.is_empty()) {
            (Some(mut q), true) => {
                q.constant |= found.constant;
                q.volatile |= found.volatile;
                return q;
            }
            (None, false) => match basic(&found.words) {
                Some(ty) => ty,
                None => {
                    self.refuse(
                        span,
                        Rule::Types,
                        format!("`{}` is no type", found.words.join(" ")),
                    );
                    Type::Poison
                }
            },
            _ => {
                self.refuse(span, Rule::Types, "a declaration without one type");
                Type::Poison
            }
        };
        if matches!(ty, Type::Float(_)) {
            self.unless_free(
                span,
                Rule::FloatingPoint,
                format!("`{}`", found.words.join(" ")),
            );
        }
        let mut q = Qualified::from(ty);
        (q.constant, q.volatile) = (found.constant, found.volatile);
        q
    }

    fn qualifier(&mut self, qualifier: &Node<TypeQualifier>, found: &mut Specifiers) {
        match qualifier.node {
            TypeQualifier::Const => found.constant = true,
            TypeQualifier::Restrict => {}
            TypeQualifier::Volatile => {
                self.unless_free(qualifier.span, Rule::Volatile, "`volatile`");
                found.volatile = true;
            }
            TypeQualifier::Atomic => self.refuse(qualifier.span, Rule::Atomics, "`_Atomic`"),
            TypeQualifier::Nonnull | TypeQualifier::NullUnspecified | TypeQualifier::Nullable => {
                self.refuse(qualifier.span, Rule::Extension, "a qualifier of clang's");
            }
        }
    }

    fn specifier(&mut self, specifier: &Node<TypeSpecifier>, found: &mut Specifiers) {
        let at = specifier.span;
        let other = match &specifier.node {
            TypeSpecifier::Void => return found.words.push("void"),
            TypeSpecifier::Char => return found.words.push("char"),
            TypeSpecifier::Short => return found.words.push("short"),
            TypeSpecifier::Int => return found.words.push("int"),
            TypeSpecifier::Long => return found.words.push("long"),
            TypeSpecifier::Float => return found.words.push("float"),
            TypeSpecifier::Double => return found.words.push("double"),
            TypeSpecifier::Signed => return found.words.push("signed"),
            TypeSpecifier::Unsigned => return found.words.push("unsigned"),
            TypeSpecifier::Bool => return found.words.push("_Bool"),
            TypeSpecifier::Complex => {
                self.refuse(at, Rule::Extension, "complex numbers");
                Type::Poison.into()
            }
            TypeSpecifier::Atomic(_) => {
                self.refuse(at, Rule::Atomics, "`_Atomic`");
                Type::Poison.into()
            }
            TypeSpecifier::TypeOf(_) => {
                self.refuse(at, Rule::TypeOf, "`typeof`");
                Type::Poison.into()
            }
            TypeSpecifier::TS18661Float(_) => {
                self.refuse(
                    at,
                    Rule::Extension,
                    "a floating-point type beside those of ISO C11",
                );
                Type::Poison.into()
            }
            TypeSpecifier::Struct(record) => self.record(record).into(),
            TypeSpecifier::Enum(found) => self.enumeration(found).into(),
            TypeSpecifier::TypedefName(name) => self.type_name_of(name),
        };
        if found.other.is_some() {
            self.refuse(at, Rule::Types, "a declaration with two types");
        }
        found.other = Some(other);
    }

    fn type_name_of(&mut self, name: &Node<Identifier>) -> Qualified {
        let text = &name.node.name;
        match self.find(text).cloned() {
            Some(Entity::Type(q)) => q,
            Some(Entity::Hidden) => {
                self.refuse(name.span, Rule::HiddenName, format!("`{text}`"));
                Type::Poison.into()
            }
            Some(_) => {
                self.refuse(name.span, Rule::Types, format!("`{text}` is no type here"));
                Type::Poison.into()
            }
            None => {
                self.refuse(name.span, Rule::UnknownName, format!("`{text}`"));
                Type::Poison.into()
            }
        }
    }

    /// The type that a type's name in parentheses says.
    pub(crate) fn type_name(&mut self, name: &Node<TypeName>) -> Qualified {
        let base = self.specifier_qualifiers(&name.node.specifiers, name.span);
        match &name.node.declarator {
            Some(declarator) => self.declarator(base, declarator).1,
            None => base,
        }
    }

    /// The name that is declared, and its type.
    pub(crate) fn declarator(
        &mut self,
        base: Qualified,
        declarator: &Node<Declarator>,
    ) -> (Option<Node<Identifier>>, Qualified) {
        let declarator = &declarator.node;
        let first = declarator.extensions.first();
        if let Some(extension) = first {
            match extension.node {
                Extension::AsmLabel(_) => self.refuse(
                    extension.span,
                    Rule::InlineAssembly,
                    "a name for the assembler",
                ),
                Extension::Attribute(_) | Extension::AvailabilityAttribute(_) => {
                    self.refuse(extension.span, Rule::Attributes, "an attribute");
                }
            }
        }
        let mut q = base;
        for derived in &declarator.derived {
            if let DerivedDeclarator::Pointer(qualifiers) = &derived.node {
                q = self.pointer(q, qualifiers);
            }
        }
        for derived in declarator.derived.iter().rev() {
            match &derived.node {
                DerivedDeclarator::Pointer(_) => {}
                DerivedDeclarator::Array(array) => q = self.array(q, array),
                DerivedDeclarator::Function(function) => {
                    q = self.function(q, function, derived.span)
                }
                DerivedDeclarator::KRFunction(_) => {
                    self.refuse(derived.span, Rule::OldStyle, "parameters without types");
                    let function = Function {
                        result: q,
                        parameters: Vec::new(),
                        variadic: self.trusted,
                    };
                    q = Type::Function(Rc::new(function)).into();
                }
                DerivedDeclarator::Block(_) => {
                    self.refuse(derived.span, Rule::Extension, "a block of clang's");
                    q = Type::Poison.into();
                }
            }
        }
        match &declarator.kind.node {
            DeclaratorKind::Abstract => (None, q),
            DeclaratorKind::Identifier(name) => (Some(name.clone()), q),
            DeclaratorKind::Declarator(inner) => self.declarator(q, inner),
        }
    }

    fn pointer(&mut self, to: Qualified, qualifiers: &[Node<PointerQualifier>]) -> Qualified {
        let mut found = Specifiers::new();
        for qualifier in qualifiers {
            match &qualifier.node {
                PointerQualifier::TypeQualifier(qualifier) => self.qualifier(qualifier, &mut found),
                PointerQualifier::Extension(_) => {
                    self.refuse(qualifier.span, Rule::Attributes, "an attribute")
                }
            }
        }
        let mut q = Qualified::from(Type::pointer_to(to));
        (q.constant, q.volatile) = (found.constant, found.volatile);
        q
    }

    fn array(&mut self, of: Qualified, array: &Node<ArrayDeclarator>) -> Qualified {
        let length = match &array.node.size {
            ArraySize::Unknown => Length::Unknown,
            ArraySize::VariableUnknown => {
                self.refuse(
                    array.span,
                    Rule::VariableArrays,
                    "an array of variable length",
                );
                Length::Unknown
            }
            ArraySize::StaticExpression(size) | ArraySize::VariableExpression(size) => {
                let value = self.expression(size);
                if !value.constant {
                    self.refuse(
                        size.span,
                        Rule::VariableArrays,
                        "an array of variable length",
                    );
                }
                Length::Given(value.text, value.number)
            }
        };
        let locked = of.locked;
        let mut q = Qualified::from(Type::Array(Rc::new(of), length));
        q.locked = locked;
        q
    }

    fn function(
        &mut self,
        result: Qualified,
        function: &Node<FunctionDeclarator>,
        span: Span,
    ) -> Qualified {
        let mut parameters = Vec::new();
        for parameter in &function.node.parameters {
            let (_, q) = self.parameter(parameter);
            parameters.push(q);
        }
        if let [only] = parameters.as_slice()
            && only.ty == Type::Void
        {
            parameters.clear();
        }
        let variadic = function.node.ellipsis == Ellipsis::Some;
        if variadic {
            self.refuse(span, Rule::Variadic, "`...`");
        }
        let function = Function {
            result,
            parameters,
            variadic,
        };
        Type::Function(Rc::new(function)).into()
    }

    /// A parameter's name and type: arrays and functions are pointers there.
    pub(crate) fn parameter(
        &mut self,
        parameter: &Node<ParameterDeclaration>,
    ) -> (Option<Node<Identifier>>, Qualified) {
        let node = &parameter.node;
        if let Some(extension) = node.extensions.first() {
            self.refuse(extension.span, Rule::Attributes, "an attribute");
        }
        let (storage, base) = self.specifiers(&node.specifiers, parameter.span);
        if storage != Storage::Usual {
            self.refuse(
                parameter.span,
                Rule::Types,
                "a storage class of a parameter",
            );
        }
        let (name, q) = match &node.declarator {
            Some(declarator) => self.declarator(base, declarator),
            None => (None, base),
        };
        let q = match &q.ty {
            Type::Array(of, _) => Type::pointer_to((**of).clone()).into(),
            Type::Function(_) => Type::pointer_to(q).into(),
            _ => q,
        };
        (name, q)
    }

    fn record(&mut self, record: &Node<StructType>) -> Type {
        let node = &record.node;
        let union = node.kind.node == StructKind::Union;
        if union {
            self.unless_free(record.span, Rule::Unions, "`union`");
        }
        let keyword = if union { "union" } else { "struct" };
        let tag = node.identifier.as_ref().map(|tag| tag.node.name.clone());
        let known = match (&tag, &node.declarations) {
            (None, None) => {
                self.refuse(
                    record.span,
                    Rule::Types,
                    format!("a `{keyword}` without a name and members"),
                );
                return Type::Poison;
            }
            (None, Some(_)) => None,
            (Some(tag), None) => self.find_tag(tag),
            (Some(tag), Some(_)) => self.scope().tags.get(tag).cloned(),
        };
        let index = match known {
            Some(Tag::Record(index)) => index,
            Some(Tag::Hidden) => {
                self.refuse(
                    record.span,
                    Rule::HiddenName,
                    format!("`{keyword} {}`", tag.unwrap_or_default()),
                );
                return Type::Poison;
            }
            Some(Tag::Enum(_)) => {
                self.refuse(record.span, Rule::Types, "a tag of another kind");
                return Type::Poison;
            }
            None => self.new_record(keyword, tag.as_deref(), union),
        };
        if self.records[index].union != union {
            self.refuse(record.span, Rule::Types, "a tag of another kind");
        }
        if let Some(declarations) = &node.declarations {
            if self.records[index].members.is_some() {
                self.refuse(
                    record.span,
                    Rule::Types,
                    format!("`{}` is defined twice", self.records[index].name.clone()),
                );
                return Type::Record(index);
            }
            self.members(index, declarations);
        }
        Type::Record(index)
    }

    fn new_record(&mut self, keyword: &str, tag: Option<&str>, union: bool) -> usize {
        let index = self.records.len();
        let name = format!("{keyword} {}", tag.unwrap_or("without a name"));
        let text = match (tag, self.trusted) {
            (None, true) => None,
            (tag, _) => {
                let own = self.own(tag.unwrap_or("record"));
                // Two records without a name are two.
                let own = if tag.is_none() {
                    format!("{own}_{index}")
                } else {
                    own
                };
                Some(format!("{keyword} {own}"))
            }
        };
        self.records.push(Record {
            name,
            text,
            union,
            environment: self.trusted,
            members: None,
        });
        if let Some(tag) = tag {
            self.scope().tags.insert(tag.to_owned(), Tag::Record(index));
        }
        index
    }

    fn members(&mut self, index: usize, declarations: &[Node<StructDeclaration>]) {
        let (mut members, mut text) = (Vec::new(), String::new());
        for declaration in declarations {
            let field = match &declaration.node {
                StructDeclaration::Field(field) => field,
                StructDeclaration::StaticAssert(_) => {
                    self.refuse(
                        declaration.span,
                        Rule::Extension,
                        "`_Static_assert` within a structure",
                    );
                    continue;
                }
            };
            let base = self.specifier_qualifiers(&field.node.specifiers, field.span);
            if field.node.declarators.is_empty() {
                match &base.ty {
                    Type::Record(_) => members.push(Member {
                        name: None,
                        q: base.clone(),
                        bit_field: false,
                        read_only: false,
                    }),
                    _ => self.refuse(field.span, Rule::Types, "a member without a name"),
                }
                // Its members are found through it, so it must be one within this text.
                if !self.trusted {
                    self.refuse(
                        field.span,
                        Rule::Extension,
                        "a structure without a name within a structure",
                    );
                }
            }
            for declarator in &field.node.declarators {
                self.member(index, base.clone(), declarator, &mut members, &mut text);
            }
        }
        if !self.trusted {
            let name = self.records[index].text.clone().unwrap_or_default();
            self.out.push_str(&format!("{name} {{{text}}};\n"));
            if self.checked() {
                // A null pointer with the offset of a member must stay where nothing is mapped.
                self.out.push_str(&format!(
                    "_Static_assert(sizeof({name}) <= {LARGEST}, \"a structure has at most 32 KiB\");\n"
                ));
            }
        }
        self.records[index].members = Some(members);
    }

    fn member(
        &mut self,
        index: usize,
        base: Qualified,
        declarator: &Node<StructDeclarator>,
        members: &mut Vec<Member>,
        text: &mut String,
    ) {
        let span = declarator.span;
        let (name, mut q) = match &declarator.node.declarator {
            Some(declarator) => self.declarator(base, declarator),
            None => (None, base),
        };
        let name = name.map(|name| name.node.name);
        let width = declarator.node.bit_width.as_ref().map(|width| {
            self.unless_free(span, Rule::BitFields, "a bit-field");
            let value = self.expression(width);
            if !value.constant {
                self.refuse(width.span, Rule::Types, "a width that is not constant");
            }
            value.text
        });
        match &q.ty {
            Type::Function(_) => self.refuse(span, Rule::Types, "a function as a member"),
            Type::Array(_, Length::Unknown) if !self.trusted => {
                self.refuse(span, Rule::UncheckedIndex, "a member without a length");
            }
            Type::Pointer(_) if !self.trusted => {
                self.unless_free(span, Rule::KeptPointers, "a pointer as a member");
            }
            _ => {}
        }
        if !self.trusted {
            let declared = self.written(span, &q, name.as_deref().unwrap_or_default());
            let width = width
                .as_ref()
                .map_or(String::new(), |width| format!(" : {width}"));
            text.push_str(&format!("{declared}{width}; "));
        }
        let Some(name) = name else { return };
        let whole = format!("{}.{name}", self.records[index].name);
        let listed = self.trusted && self.elastic.locked.contains(&whole);
        q.locked |= listed;
        members.push(Member {
            name: Some(name),
            read_only: self.trusted && self.elastic.read_only.contains(&whole),
            q,
            bit_field: width.is_some(),
        });
    }

    fn enumeration(&mut self, found: &Node<EnumType>) -> Type {
        let node = &found.node;
        let tag = node.identifier.as_ref().map(|tag| tag.node.name.clone());
        if node.enumerators.is_empty() {
            let tag = tag.unwrap_or_default();
            return match self.find_tag(&tag) {
                Some(Tag::Enum(text)) => Type::Enum(text),
                _ => {
                    self.refuse(found.span, Rule::UnknownName, format!("`enum {tag}`"));
                    Type::Poison
                }
            };
        }
        self.count += 1;
        let own = match &tag {
            Some(tag) => self.own(tag),
            None => format!("constants{}{}", self.suffix, self.count),
        };
        let (mut text, mut last) = (String::new(), Some(-1));
        for enumerator in &node.enumerators {
            let node = &enumerator.node;
            if let Some(extension) = node.extensions.first() {
                self.refuse(extension.span, Rule::Attributes, "an attribute");
            }
            let name = &node.identifier.node.name;
            let own = self.own(name);
            let mut given = String::new();
            last = match &node.expression {
                None => last.map(|last: i128| last + 1),
                Some(expression) => {
                    let value = self.expression(expression);
                    if !value.constant {
                        self.refuse(
                            expression.span,
                            Rule::Types,
                            "an enumerator that is not constant",
                        );
                    }
                    given = format!(" = {}", value.text);
                    value.number
                }
            };
            text.push_str(&format!("{own}{given}, "));
            self.name(
                name,
                Entity::Constant {
                    text: own,
                    value: last,
                },
            );
        }
        let own: Rc<str> = format!("enum {own}").into();
        if !self.trusted {
            self.out.push_str(&format!("{own} {{ {text} }};\n"));
        }
        if let Some(tag) = tag {
            self.scope().tags.insert(tag, Tag::Enum(own.clone()));
        }
        // The environment's enumerations without a tag have no name here.
        match self.trusted && node.identifier.is_none() {
            true => INT,
            false => Type::Enum(own),
        }
    }
}

impl Specifiers {
    fn new() -> Self {
        Specifiers {
            storage: Storage::Usual,
            constant: false,
            volatile: false,
            words: Vec::new(),
            other: None,
        }
    }
}

/// The type that these words name, in any order.
fn basic(words: &[&'static str]) -> Option<Type> {
    let has = |word: &str| words.contains(&word);
    let longs = words.iter().filter(|word| **word == "long").count();
    let count = |word: &str| words.iter().filter(|other| **other == word).count();
    let once = [
        "void", "char", "short", "int", "float", "double", "signed", "unsigned", "_Bool",
    ];
    if once.iter().any(|word| count(word) > 1) || longs > 2 || (has("signed") && has("unsigned")) {
        return None;
    }
    let text = match (has("unsigned"), has("signed")) {
        (false, false) if words == ["void"] => return Some(Type::Void),
        (false, false) if words == ["float"] => return Some(Type::Float("float")),
        (false, false) if words == ["double"] => return Some(Type::Float("double")),
        (false, false) if has("double") && longs == 1 && words.len() == 2 => {
            return Some(Type::Float("long double"));
        }
        (false, false) if words == ["_Bool"] => "_Bool",
        (unsigned, signed) if has("char") => {
            if words.len() != 1 + usize::from(unsigned || signed) {
                return None;
            }
            match (unsigned, signed) {
                (true, _) => "unsigned char",
                (_, true) => "signed char",
                _ => "char",
            }
        }
        (unsigned, _) => {
            if ["void", "float", "double", "_Bool"]
                .iter()
                .any(|word| has(word))
                || (has("short") && longs > 0)
            {
                return None;
            }
            match (unsigned, has("short"), longs) {
                (false, true, _) => "short",
                (true, true, _) => "unsigned short",
                (false, _, 1) => "long",
                (true, _, 1) => "unsigned long",
                (false, _, 2) => "long long",
                (true, _, 2) => "unsigned long long",
                (false, ..) => "int",
                (true, ..) => "unsigned int",
            }
        }
    };
    INTS.iter()
        .find(|int| int.text == text)
        .map(|int| Type::Int(*int))
}
