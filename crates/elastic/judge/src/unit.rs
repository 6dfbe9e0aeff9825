//! The environment, the module's external declarations, and the text that is made of both.

use crate::JudgedProgram;
use crate::declare::Storage;
use crate::express::INDEX;
use crate::refusal::SourceRefusal;
use crate::scope::{Current, Defined, Entity, Judge, Scope, first};
use crate::types::{Function, LARGEST, Qualified, Type};
use lang_c::ast::*;
use lang_c::span::{Node, Span};
use mullion_elastic::{Memory, Rule};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Checks the depth of the stack; it is in front of what is written.
const DEPTH: &str = "__mullion_depth";

impl Judge<'_> {
    /// Learns what an environment declares.
    pub(crate) fn environment(&mut self, unit: &TranslationUnit) {
        self.trusted = true;
        for declaration in &unit.0 {
            match &declaration.node {
                ExternalDeclaration::Declaration(declaration) => {
                    let (storage, base) =
                        self.specifiers(&declaration.node.specifiers, declaration.span);
                    for declarator in &declaration.node.declarators {
                        let (name, q) = self.declarator(base.clone(), &declarator.node.declarator);
                        if let Some(name) = name {
                            self.learn(&name.node.name, storage, q);
                        }
                    }
                }
                ExternalDeclaration::FunctionDefinition(function) => {
                    let (_, base) = self.specifiers(&function.node.specifiers, function.span);
                    let (name, q) = self.declarator(base, &function.node.declarator);
                    if let Some(name) = name {
                        self.learn(&name.node.name, Storage::Usual, q);
                    }
                }
                ExternalDeclaration::StaticAssert(_) => {}
            }
        }
        self.trusted = false;
        self.out.clear();
    }

    fn learn(&mut self, name: &str, storage: Storage, mut q: Qualified) {
        let entity = match (&q.ty, storage) {
            (_, Storage::Typedef) => {
                if let Type::Record(index) = q.ty
                    && self.records[index].text.is_none()
                {
                    self.records[index].text = Some(name.to_owned());
                    self.records[index].name = name.to_owned();
                }
                q.locked |= self.elastic.locked.contains(name);
                Entity::Type(q)
            }
            (Type::Function(ty), _) => Entity::Function {
                ty: ty.clone(),
                text: name.to_owned(),
            },
            _ => Entity::Object {
                q,
                text: name.to_owned(),
                local: false,
            },
        };
        self.name(name, entity);
    }

    /// Judges the module.
    pub(crate) fn module(
        mut self,
        unit: &[Node<ExternalDeclaration>],
    ) -> Result<JudgedProgram, Vec<SourceRefusal>> {
        self.check_type();
        for declaration in unit {
            match &declaration.node {
                ExternalDeclaration::Declaration(declaration) => self.declaration(declaration),
                ExternalDeclaration::StaticAssert(assert) => {
                    let text = self.static_assert(assert);
                    self.out.push_str(&text);
                }
                ExternalDeclaration::FunctionDefinition(function) => self.definition(function),
            }
        }
        self.undefined();
        let circles = self.circles();
        self.depths(&circles);
        self.nests();
        let entries = self.entries();
        if !self.refusals.is_empty() {
            let start = |refusal: &SourceRefusal| match &refusal.place {
                Some(place) => (0, place.line),
                None => (1, 0),
            };
            self.refusals.sort_by_key(start);
            return Err(self.refusals);
        }
        Ok(self.whole(&circles, &entries))
    }

    /// What a type says of names that its environment does not have.
    fn check_type(&mut self) {
        let wraps = [&self.elastic.before, &self.elastic.after];
        for name in wraps.into_iter().flatten() {
            let good = match self.scopes[0].names.get(name) {
                Some(Entity::Function { ty, .. }) => {
                    ty.parameters.is_empty() && ty.result.ty == Type::Void
                }
                _ => false,
            };
            if !good {
                let construct = format!(
                    "the type wraps with `{name}`, which its environment does not have as `void {name}(void)`"
                );
                self.refusals
                    .push(SourceRefusal::nowhere(Rule::Entry, construct));
            }
        }
        // A name that is written wrongly would lock nothing.
        for whole in self.elastic.locked.iter().chain(&self.elastic.read_only) {
            let found = match whole.split_once('.') {
                Some((record, member)) => self.records.iter().any(|known| {
                    let members = known.members.iter().flatten();
                    known.name == record
                        && members
                            .into_iter()
                            .any(|own| own.name.as_deref() == Some(member))
                }),
                None => matches!(self.scopes[0].names.get(whole), Some(Entity::Type(_))),
            };
            if !found {
                let construct =
                    format!("the type locks `{whole}`, which its environment does not have");
                self.refusals
                    .push(SourceRefusal::nowhere(Rule::Locked, construct));
            }
        }
        for name in &self.elastic.handles {
            let points = match self.scopes[0].names.get(name) {
                Some(Entity::Type(q)) => match q.ty {
                    Type::Record(index) => self.has(index, &|member| member.q.ty.is_pointer()),
                    ref ty => !ty.is_integer(),
                },
                _ => continue,
            };
            if points {
                let construct = format!(
                    "the handle `{name}` has a pointer in it; its environment must give a number instead"
                );
                self.refusals
                    .push(SourceRefusal::nowhere(Rule::Locked, construct));
            }
        }
        for record in &self.records {
            // A member of a type without a name was not found by the name of its type.
            let late = |member: &crate::types::Member| {
                let whole = format!(
                    "{}.{}",
                    record.name,
                    member.name.as_deref().unwrap_or_default()
                );
                (self.elastic.locked.contains(&whole) && !member.q.locked)
                    || (self.elastic.read_only.contains(&whole) && !member.read_only)
            };
            if record.members.iter().flatten().any(late) {
                let construct = format!(
                    "`{}` has locked members and no tag; give it one",
                    record.name
                );
                self.refusals
                    .push(SourceRefusal::nowhere(Rule::Locked, construct));
            }
        }
    }

    fn declaration(&mut self, declaration: &Node<Declaration>) {
        let (storage, base) = self.specifiers(&declaration.node.specifiers, declaration.span);
        for declarator in &declaration.node.declarators {
            let (name, q) = self.declarator(base.clone(), &declarator.node.declarator);
            let Some(name) = name else { continue };
            let plain = name.node.name.clone();
            match (&q.ty, storage) {
                (_, Storage::Typedef) => {
                    if self.scopes[0].names.contains_key(&plain) {
                        self.refuse(name.span, Rule::HiddenName, format!("`{plain}` again"));
                    }
                    self.name(&plain, Entity::Type(q));
                }
                (Type::Function(ty), _) => {
                    let ty = ty.clone();
                    if self.is_environments(&plain, &ty, storage) {
                        continue;
                    }
                    self.declare(&plain, &ty, name.span);
                    self.declared.entry(plain).or_insert((name.span, false));
                }
                _ => self.variable(&plain, q, storage, declarator),
            }
        }
    }

    /// Whether this declares what the environment has, as it has it.
    fn is_environments(&mut self, name: &str, ty: &Rc<Function>, storage: Storage) -> bool {
        let known =
            matches!(self.find(name), Some(Entity::Function { ty: known, .. }) if known == ty);
        known
            && storage != Storage::Static
            && !self.scopes[1].names.contains_key(name)
            && !self.is_entry(name)
    }

    fn is_entry(&self, name: &str) -> bool {
        self.elastic.entries.iter().any(|entry| entry == name)
    }

    fn declare(&mut self, name: &str, ty: &Rc<Function>, span: Span) {
        if self.elastic.forbids(Rule::KeptPointers) && ty.result.ty.is_pointer() {
            self.refuse(span, Rule::KeptPointers, format!("the result of `{name}`"));
        }
        if matches!(ty.result.ty, Type::Array(..) | Type::Function(_)) {
            self.refuse(span, Rule::Types, format!("the result of `{name}`"));
        }
        if let Some(Entity::Function { ty: known, .. }) = self.scopes[1].names.get(name)
            && known != ty
        {
            self.refuse(
                span,
                Rule::Types,
                format!("`{name}` as it was not declared before"),
            );
        }
        if let Some(other) = self.scopes[1].names.get(name)
            && !matches!(other, Entity::Function { .. })
        {
            self.refuse(span, Rule::Types, format!("`{name}` again"));
        }
        let text = self.own(name);
        let q = Qualified::from(Type::Function(ty.clone()));
        let prototype = self.written(span, &q, &text);
        self.out.push_str(&format!("static {prototype};\n"));
        let ty = ty.clone();
        self.name(name, Entity::Function { ty, text });
    }

    fn variable(
        &mut self,
        name: &str,
        q: Qualified,
        storage: Storage,
        declarator: &Node<InitDeclarator>,
    ) {
        let span = declarator.span;
        if storage == Storage::Extern {
            self.refuse(span, Rule::ExternalLinkage, format!("`{name}`"));
            return;
        }
        self.outliving(&q, span, name);
        let initialiser = declarator.node.initializer.as_ref();
        self.complete(&q, initialiser.is_some(), span);
        if matches!(self.scopes[1].names.get(name), Some(other) if !matches!(other, Entity::Object { .. }))
        {
            self.refuse(span, Rule::Types, format!("`{name}` again"));
        }
        let text = self.own(name);
        let entity = |q: Qualified| Entity::Object {
            q,
            text: text.clone(),
            local: false,
        };
        self.name(name, entity(q.clone()));
        let (mut whole, mut given) = (q, String::new());
        if let Some(initialiser) = initialiser {
            let (text, known, constant) = self.initialiser(&whole, initialiser);
            if !constant {
                self.refuse(span, Rule::Types, "an initialiser that is not constant");
            }
            given = format!(" = {text}");
            whole = known;
            self.name(name, entity(whole.clone()));
        }
        let declared = self.written(span, &whole, &text);
        let line = self.line(span);
        self.out
            .push_str(&format!("{line}static {declared}{given};\n"));
    }

    fn definition(&mut self, function: &Node<FunctionDefinition>) {
        let node = &function.node;
        let (storage, base) = self.specifiers(&node.specifiers, function.span);
        if storage == Storage::Typedef {
            self.refuse(function.span, Rule::Types, "a type with a body");
        }
        let (name, q) = self.declarator(base, &node.declarator);
        let Some(name) = name else { return };
        let plain = name.node.name.clone();
        let Type::Function(ty) = &q.ty else {
            self.refuse(name.span, Rule::OldStyle, format!("`{plain}`"));
            return;
        };
        if !node.declarations.is_empty() {
            self.refuse(
                first(&node.declarations),
                Rule::OldStyle,
                "parameters behind the parentheses",
            );
            return;
        }
        if matches!(self.declared.get(&plain), Some((_, true))) {
            self.refuse(
                name.span,
                Rule::Types,
                format!("`{plain}` is defined twice"),
            );
        }
        self.declare(&plain, ty, name.span);
        self.declared.insert(plain.clone(), (name.span, true));
        let text = self.own(&plain);
        self.current = Current {
            result: Some(ty.result.clone()),
            ..Current::default()
        };
        self.labels(&node.statement);
        self.scopes.push(Scope::default());
        let mut parameters = Vec::new();
        for parameter in parameters_of(&node.declarator) {
            let (name, q) = self.parameter(parameter);
            if q.ty == Type::Void {
                continue;
            }
            let Some(name) = name else {
                self.refuse(parameter.span, Rule::OldStyle, "a parameter without a name");
                continue;
            };
            self.complete(&q, true, parameter.span);
            let own = self.local(&name.node.name);
            parameters.push(self.written(parameter.span, &q, &own));
            let entity = Entity::Object {
                q,
                text: own,
                local: true,
            };
            self.name(&name.node.name, entity);
        }
        if parameters.is_empty() {
            parameters.push("void".to_owned());
        }
        let line = self.line(function.span);
        let declared = format!("{text}({})", parameters.join(", "));
        // The author's wish: gcc copies more to callers that way, and then often computes with vectors.
        let inline = if is_inline(&node.specifiers) {
            "inline "
        } else {
            ""
        };
        let head = format!(
            "{line}static {inline}{}",
            self.written(name.span, &ty.result, &declared)
        );
        let body = match &node.statement.node {
            Statement::Compound(items) => self.block(items, false),
            _ => {
                self.refuse(function.span, Rule::Syntax, "a function without a block");
                String::new()
            }
        };
        self.scopes.pop();
        let current = std::mem::take(&mut self.current);
        self.functions.push(Defined {
            name: plain,
            text,
            ty: ty.clone(),
            span: name.span,
            head,
            body,
            depth: current.deepest,
            nests: current.nests,
            calls: current.calls,
        });
    }

    fn undefined(&mut self) {
        let mut missing: Vec<(String, Span)> = self
            .declared
            .iter()
            .filter(|(_, (_, defined))| !defined)
            .map(|(name, (span, _))| (name.clone(), *span))
            .collect();
        missing.sort_by_key(|(_, span)| span.start);
        for (name, span) in missing {
            let rule = match self.scopes[0].names.contains_key(&name) && !self.sees(&name) {
                true => Rule::HiddenName,
                false => Rule::ExternalLinkage,
            };
            self.refuse(
                span,
                rule,
                format!("`{name}`, which is declared and not defined"),
            );
        }
    }

    /// The functions that can come to themselves again.
    fn circles(&mut self) -> BTreeSet<String> {
        let calls: BTreeMap<&str, BTreeSet<&str>> = self
            .functions
            .iter()
            .map(|function| {
                let names = function.calls.iter().map(|(name, ..)| name.as_str());
                (function.name.as_str(), names.collect())
            })
            .collect();
        let reaches = |from: &str| {
            let mut seen: BTreeSet<&str> = BTreeSet::new();
            let mut open: Vec<&str> = calls.get(from).into_iter().flatten().copied().collect();
            while let Some(name) = open.pop() {
                if seen.insert(name) {
                    open.extend(calls.get(name).into_iter().flatten());
                }
            }
            seen.contains(from)
        };
        let circles: BTreeSet<String> = calls
            .keys()
            .filter(|name| reaches(name))
            .map(|name| (*name).to_owned())
            .collect();
        let bounds = [
            self.elastic.loop_depth,
            self.elastic.loops,
            self.elastic.loop_nests,
        ];
        let bounded = bounds.iter().any(Option::is_some);
        if self.elastic.forbids(Rule::Recursion) || bounded || self.elastic.forbids(Rule::Loops) {
            let mut found = Vec::new();
            for function in self
                .functions
                .iter()
                .filter(|function| circles.contains(&function.name))
            {
                let inside = |(name, ..): &&(String, u32, Span)| circles.contains(name);
                if let Some((callee, _, span)) = function.calls.iter().find(inside) {
                    found.push((
                        *span,
                        format!(
                            "`{}` calls `{callee}`, and comes to itself again",
                            function.name
                        ),
                    ));
                }
            }
            for (span, construct) in found {
                self.refuse(span, Rule::Recursion, construct);
            }
        }
        circles
    }

    /// Loops in functions that are called in loops.
    fn depths(&mut self, circles: &BTreeSet<String>) {
        let Some(most) = self.elastic.loop_depth else {
            return;
        };
        if !circles.is_empty() {
            return;
        }
        let mut whole: BTreeMap<String, u32> = BTreeMap::new();
        // Without circles, each pass settles at least one more function.
        for _ in 0..self.functions.len() {
            for function in &self.functions {
                let called = function
                    .calls
                    .iter()
                    .map(|(name, depth, _)| depth + whole.get(name).copied().unwrap_or(0));
                let deepest = called.max().unwrap_or(0).max(function.depth);
                whole.insert(function.name.clone(), deepest);
            }
        }
        let mut found = Vec::new();
        for function in &self.functions {
            for (name, depth, span) in &function.calls {
                let inner = whole.get(name).copied().unwrap_or(0);
                if *depth > 0 && inner > 0 && depth + inner > most {
                    let construct = format!(
                        "`{name}` brings loops to the depth {} where {most} may be",
                        depth + inner
                    );
                    found.push((*span, construct));
                }
            }
        }
        for (span, construct) in found {
            self.refuse(span, Rule::LoopDepth, construct);
        }
    }

    /// Loops that no other one stands around, in functions that are called outside of loops.
    fn nests(&mut self) {
        let Some(most) = self.elastic.loop_nests else {
            return;
        };
        let calls = || self.functions.iter().flat_map(|function| &function.calls);
        let called: BTreeSet<&str> = calls().map(|(name, ..)| name.as_str()).collect();
        let is_entry = |name: &String| self.elastic.entries.contains(name);
        let names = self.functions.iter().map(|function| &function.name);
        let mut left: Vec<&str> = names
            .filter(|name| is_entry(name) || !called.contains(name.as_str()))
            .map(String::as_str)
            .collect();
        let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
        while let Some(name) = left.pop() {
            if !seen.insert(name) {
                continue;
            }
            for function in self
                .functions
                .iter()
                .filter(|function| function.name == name)
            {
                found.extend(function.nests.iter().copied());
                let outside = function.calls.iter().filter(|(_, depth, _)| *depth == 0);
                left.extend(outside.map(|(name, ..)| name.as_str()));
            }
        }
        found.sort_by_key(|span| span.start);
        for (at, span) in found.into_iter().enumerate().skip(most as usize) {
            let construct = format!("the nest of loops number {} where {most} may be", at + 1);
            self.refuse(span, Rule::Loops, construct);
        }
    }

    /// The functions behind the names of the entry points.
    fn entries(&mut self) -> String {
        let mut text = String::new();
        for entry in &self.elastic.entries {
            let Some(function) = self
                .functions
                .iter()
                .find(|function| function.name == *entry)
            else {
                let construct = format!("the program does not define `{entry}`");
                self.refusals
                    .push(SourceRefusal::nowhere(Rule::Entry, construct));
                continue;
            };
            let (span, ty, own) = (function.span, function.ty.clone(), function.text.clone());
            match self.scopes[0].names.get(entry).cloned() {
                Some(Entity::Function { ty: wanted, .. }) if wanted != ty => {
                    let q = Qualified::from(Type::Function(wanted));
                    let note = crate::types::written(&self.records, &q, entry);
                    let note = note.map(|note| format!("the environment declares `{note};`"));
                    let construct = format!("`{entry}` with another type");
                    self.refuse_with(span, Rule::Entry, construct, note);
                }
                Some(Entity::Function { .. }) => {}
                None if self.elastic.environment.is_none() => {}
                _ => {
                    let construct =
                        format!("`{entry}`, which the environment does not declare as a function");
                    self.refuse(span, Rule::Entry, construct);
                }
            }
            text.push_str(&self.wrapped(entry, &own, &ty, span));
        }
        text
    }

    fn wrapped(&mut self, entry: &str, own: &str, ty: &Rc<Function>, span: Span) -> String {
        let (mut parameters, mut arguments) = (Vec::new(), Vec::new());
        for (index, parameter) in ty.parameters.iter().enumerate() {
            let name = format!("p{index}");
            parameters.push(self.written(span, parameter, &name));
            arguments.push(name);
        }
        if parameters.is_empty() {
            parameters.push("void".to_owned());
        }
        let declared = format!("{entry}({})", parameters.join(", "));
        let head = self.written(span, &ty.result, &declared);
        let call = |name: &Option<String>| {
            name.as_ref()
                .map_or(String::new(), |name| format!(" {name}();"))
        };
        let (before, after) = (call(&self.elastic.before), call(&self.elastic.after));
        let arguments = arguments.join(", ");
        let depth = match self.elastic.stack {
            Some(_) => format!(" {DEPTH}_first = (char *)__builtin_frame_address(0);"),
            None => String::new(),
        };
        match ty.result.ty {
            Type::Void => format!("{head} {{{depth}{before} {own}({arguments});{after} }}\n"),
            _ => {
                let result = self.written(span, &ty.result, "result");
                format!(
                    "{head} {{{depth}{before} {result} = {own}({arguments});{after} return result; }}\n"
                )
            }
        }
    }

    /// The whole text: checks, declarations, functions, entry points. The environment stands in front of it.
    fn whole(self, circles: &BTreeSet<String>, entries: &str) -> JudgedProgram {
        let mut text = String::from("# 1 \"mullion-judge\"\n");
        text.push_str(&format!(
            "static inline __attribute__((always_inline, unused)) unsigned long {INDEX}(unsigned long index, unsigned \
             long length) {{ if (index >= length) __builtin_trap(); return index; }}\n"
        ));
        if let Some(stack) = self.elastic.stack {
            text.push_str(&format!(
                "static __attribute__((unused)) char *{DEPTH}_first;\nstatic inline __attribute__((always_inline, \
                 unused)) void {DEPTH}(void) {{ if ((unsigned long)({DEPTH}_first - (char \
                 *)__builtin_frame_address(0)) > {stack}ul) __builtin_trap(); }}\n"
            ));
        }
        if self.elastic.memory == Memory::Checked {
            // As for the module's own: a null pointer with the offset of a member is nowhere.
            for record in self
                .records
                .iter()
                .filter(|record| record.environment && record.members.is_some())
            {
                if let Some(name) = &record.text {
                    text.push_str(&format!(
                        "_Static_assert(sizeof({name}) <= {LARGEST}, \"\");\n"
                    ));
                }
            }
        }
        text.push_str(&self.out);
        let checks = self.elastic.stack.is_some();
        for function in &self.functions {
            text.push_str(&function.head);
            match (
                checks && circles.contains(&function.name),
                function.body.strip_prefix('{'),
            ) {
                (true, Some(rest)) => text.push_str(&format!("{{ {DEPTH}();{rest}\n")),
                _ => {
                    text.push_str(&function.body);
                    text.push('\n');
                }
            }
        }
        text.push_str("\n# 1 \"mullion-entries\"\n");
        text.push_str(entries);
        let functions = self
            .functions
            .iter()
            .map(|function| function.text.clone())
            .collect();
        JudgedProgram {
            text,
            loops: self.loops,
            functions,
        }
    }
}

/// The parameters of the function that a definition's declarator names.
fn parameters_of(declarator: &Node<Declarator>) -> &[Node<ParameterDeclaration>] {
    let node = &declarator.node;
    if let DeclaratorKind::Declarator(inner) = &node.kind.node {
        // `int (f)(int x)` has them outside, `int (*f(int x))(void)` inside.
        let own = inner
            .node
            .derived
            .iter()
            .any(|derived| matches!(derived.node, DerivedDeclarator::Function(_)));
        if own {
            return parameters_of(inner);
        }
    }
    let functions = node.derived.iter().find_map(|derived| match &derived.node {
        DerivedDeclarator::Function(function) => Some(function.node.parameters.as_slice()),
        _ => None,
    });
    functions.unwrap_or_default()
}

/// Whether a definition says `inline`.
fn is_inline(specifiers: &[Node<DeclarationSpecifier>]) -> bool {
    specifiers.iter().any(|specifier| match &specifier.node {
        DeclarationSpecifier::Function(function) => function.node == FunctionSpecifier::Inline,
        _ => false,
    })
}
