//! Statements, and the declarations among them.

use crate::counted::MARK;
use crate::declare::Storage;
use crate::scope::{Entity, Judge, Scope};
use crate::types::{Length, Qualified, Type};
use lang_c::ast::*;
use lang_c::span::{Node, Span};
use mullion_elastic::Rule;

impl Judge<'_> {
    pub(crate) fn statement(&mut self, statement: &Node<Statement>) -> String {
        let line = self.line(statement.span);
        let direct = std::mem::take(&mut self.current.direct);
        let text = match &statement.node {
            Statement::Labeled(labeled) => return self.labeled(labeled, direct),
            Statement::Compound(items) => return self.block(items, false),
            Statement::Expression(None) => ";".to_owned(),
            Statement::Expression(Some(expression)) => {
                let value = self.expression(expression);
                if matches!(value.q.ty, Type::Function(_)) {
                    self.unless_free(
                        expression.span,
                        Rule::IndirectCalls,
                        "the address of a function",
                    );
                }
                format!("{};", value.text)
            }
            Statement::If(found) => {
                let condition = self.condition(&found.node.condition);
                let then = self.nested(&found.node.then_statement);
                let or = match &found.node.else_statement {
                    Some(or) => format!(" else {}", self.nested(or)),
                    None => String::new(),
                };
                format!("if ({condition}) {then}{or}")
            }
            Statement::Switch(switch) => self.switch(switch),
            Statement::While(found) => {
                self.looped(statement.span, "`while`");
                self.unless_free(statement.span, Rule::UnboundedLoops, "`while`");
                let condition = self.condition(&found.node.expression);
                let body = self.body(&found.node.statement);
                format!("while ({condition}) {body}")
            }
            Statement::DoWhile(found) => {
                self.looped(statement.span, "`do`");
                self.unless_free(statement.span, Rule::UnboundedLoops, "`do`");
                let body = self.body(&found.node.statement);
                self.current.depth += 1;
                let condition = self.condition(&found.node.expression);
                self.current.depth -= 1;
                format!("do {body} while ({condition});")
            }
            Statement::For(found) => self.for_loop(found, statement.span),
            Statement::Goto(label) => self.goto(label, statement.span),
            Statement::Continue => {
                if self.current.depth == 0 {
                    self.refuse(statement.span, Rule::Types, "`continue` outside of a loop");
                }
                "continue;".to_owned()
            }
            Statement::Break => {
                if self.current.depth + self.current.switches == 0 {
                    self.refuse(statement.span, Rule::Types, "`break` outside of a loop");
                }
                "break;".to_owned()
            }
            Statement::Return(value) => self.returned(value.as_deref(), statement.span),
            Statement::Asm(_) => {
                self.refuse(statement.span, Rule::InlineAssembly, "`asm`");
                String::new()
            }
        };
        format!("{line}{text}")
    }

    /// A statement within another, with braces: no `else` finds another `if`.
    fn nested(&mut self, statement: &Node<Statement>) -> String {
        self.scopes.push(Scope::default());
        let text = self.statement(statement);
        self.scopes.pop();
        format!("{{{text}}}")
    }

    /// The body of a loop.
    fn body(&mut self, statement: &Node<Statement>) -> String {
        self.current.depth += 1;
        let text = self.nested(statement);
        self.current.depth -= 1;
        text
    }

    fn looped(&mut self, span: Span, construct: &str) {
        self.unless_free(span, Rule::Loops, construct);
        self.loops += 1;
        if let Some(most) = self.elastic.loops
            && self.loops > most
        {
            let construct = format!(
                "{construct}, the loop number {} where {most} may be",
                self.loops
            );
            self.refuse(span, Rule::Loops, construct);
        }
        if self.current.depth == 0 {
            self.current.nests.push(span);
        }
        let depth = self.current.depth + 1;
        self.current.deepest = self.current.deepest.max(depth);
        if let Some(most) = self.elastic.loop_depth
            && depth > most
        {
            let construct = format!("{construct} at the depth {depth} where {most} may be");
            self.refuse(span, Rule::LoopDepth, construct);
        }
    }

    fn for_loop(&mut self, found: &Node<ForStatement>, span: Span) -> String {
        self.looped(span, "`for`");
        self.scopes.push(Scope::default());
        let first = match &found.node.initializer.node {
            ForInitializer::Empty => String::new(),
            ForInitializer::Expression(expression) => {
                format!("{};", self.expression(expression).text)
            }
            ForInitializer::Declaration(declaration) => self.local_declaration(declaration),
            ForInitializer::StaticAssert(assert) => self.static_assert(assert),
        };
        self.current.depth += 1;
        let condition = found
            .node
            .condition
            .as_ref()
            .map(|condition| self.condition(condition));
        let step = found
            .node
            .step
            .as_ref()
            .map(|step| self.expression(step).text);
        self.current.depth -= 1;
        let (number, counters) = (self.loops, self.counters.len());
        let counted = match self.elastic.forbids(Rule::UnboundedLoops) {
            true => self.counted(&found.node),
            false => None,
        };
        let mut mark = String::new();
        match counted {
            Some((counter, rounds)) => {
                if self.elastic.instructions.is_some() {
                    mark = format!("__asm__ volatile (\"{MARK} {number} {rounds}\");");
                }
                self.counters.push(counter);
            }
            None => self.unless_free(span, Rule::UnboundedLoops, "`for`"),
        }
        let body = self.body(&found.node.statement);
        self.counters.truncate(counters);
        let body = match mark.is_empty() {
            true => body,
            false => format!("{{{mark}{body}}}"),
        };
        self.scopes.pop();
        let (condition, step) = (condition.unwrap_or_default(), step.unwrap_or_default());
        format!("{{{first} for (; {condition}; {step}) {body}}}")
    }

    fn switch(&mut self, switch: &Node<SwitchStatement>) -> String {
        let value = self.value(&switch.node.expression);
        if !value.q.ty.is_integer() {
            self.refuse(
                switch.node.expression.span,
                Rule::Types,
                "`switch` of what is no integer",
            );
        }
        self.current.switches += 1;
        let body = match &switch.node.statement.node {
            Statement::Compound(items) => self.block(items, true),
            _ => {
                self.current.direct = true;
                self.nested(&switch.node.statement)
            }
        };
        self.current.switches -= 1;
        format!("switch ({}) {body}", value.text)
    }

    /// A label and what it stands at; `direct` if that is a statement of the `switch` itself.
    fn labeled(&mut self, labeled: &Node<LabeledStatement>, direct: bool) -> String {
        let head = match &labeled.node.label.node {
            Label::Identifier(name) => format!("{}:", name.node.name),
            Label::Case(expression) => {
                let value = self.expression(expression);
                if !value.constant || !value.q.ty.is_integer() {
                    self.refuse(expression.span, Rule::Types, "a case that is not constant");
                }
                format!("case {}:", value.text)
            }
            Label::CaseRange(range) => {
                self.refuse(range.span, Rule::Extension, "a range of cases");
                String::new()
            }
            Label::Default => "default:".to_owned(),
        };
        let case = !matches!(labeled.node.label.node, Label::Identifier(_));
        if case && self.current.switches == 0 {
            self.refuse(labeled.span, Rule::Types, "a case outside of `switch`");
        }
        // A jump to within a block or a loop passes over the declarations in front: a pointer or a counter would hold
        // what lay there.
        if case && !direct {
            let construct = "a case within another statement of `switch`";
            if self.checked() {
                self.refuse(labeled.span, Rule::Types, construct);
            }
            self.unless_free(labeled.span, Rule::UnboundedLoops, construct);
        }
        if !case && self.current.depth > 0 {
            self.unless_free(labeled.span, Rule::UnboundedLoops, "a label within a loop");
        }
        self.current.direct = direct;
        let line = self.line(labeled.span);
        let statement = self.statement(&labeled.node.statement);
        format!("{line}{head} {statement}")
    }

    fn goto(&mut self, label: &Node<Identifier>, span: Span) -> String {
        let name = &label.node.name;
        self.unless_free(span, Rule::Goto, format!("`goto {name}`"));
        match self.current.labels.get(name) {
            None => self.refuse(label.span, Rule::UnknownName, format!("the label `{name}`")),
            Some(place) if *place <= span.start => {
                self.unless_free(span, Rule::BackwardGoto, format!("`goto {name}`"));
            }
            Some(_) => {}
        }
        format!("goto {name};")
    }

    fn returned(&mut self, value: Option<&Node<Expression>>, span: Span) -> String {
        let result = self.current.result.clone().unwrap_or(Type::Poison.into());
        match value {
            None => {
                if !matches!(result.ty, Type::Void | Type::Poison) {
                    self.refuse(span, Rule::Types, "`return` without the function's result");
                }
                "return;".to_owned()
            }
            Some(expression) => {
                let value = self.expression(expression);
                if result.ty == Type::Void {
                    self.refuse(
                        span,
                        Rule::Types,
                        "`return` with a result, where the function has none",
                    );
                }
                format!(
                    "return {};",
                    self.converted(value, &result, expression.span)
                )
            }
        }
    }

    /// A block, which is the body of a `switch` or not.
    pub(crate) fn block(&mut self, items: &[Node<BlockItem>], switch: bool) -> String {
        self.scopes.push(Scope::default());
        let mut text = String::from("{");
        for item in items {
            let piece = match &item.node {
                BlockItem::Declaration(declaration) => {
                    if switch && self.checked() {
                        let construct = "a declaration that `switch` jumps over";
                        self.refuse(item.span, Rule::Types, construct);
                    }
                    let line = self.line(item.span);
                    format!("{line}{}", self.local_declaration(declaration))
                }
                BlockItem::StaticAssert(assert) => self.static_assert(assert),
                BlockItem::Statement(statement) => {
                    self.current.direct = switch;
                    self.statement(statement)
                }
            };
            text.push_str(&piece);
        }
        self.scopes.pop();
        text.push_str("\n}");
        text
    }

    pub(crate) fn static_assert(&mut self, assert: &Node<StaticAssert>) -> String {
        let value = self.expression(&assert.node.expression);
        if !value.constant {
            self.refuse(
                assert.span,
                Rule::Types,
                "an assertion that is not constant",
            );
        }
        format!("_Static_assert({}, \"\");\n", value.text)
    }

    fn local_declaration(&mut self, declaration: &Node<Declaration>) -> String {
        let (storage, base) = self.specifiers(&declaration.node.specifiers, declaration.span);
        let mut text = String::new();
        for declarator in &declaration.node.declarators {
            let (name, q) = self.declarator(base.clone(), &declarator.node.declarator);
            let Some(name) = name else { continue };
            text.push_str(&self.local_variable(storage, q, &name, declarator));
        }
        text
    }

    fn local_variable(
        &mut self,
        storage: Storage,
        q: Qualified,
        name: &Node<Identifier>,
        declarator: &Node<InitDeclarator>,
    ) -> String {
        let span = declarator.span;
        let plain = name.node.name.clone();
        let initialiser = declarator.node.initializer.as_ref();
        if storage == Storage::Typedef {
            self.name(&plain, Entity::Type(q));
            return String::new();
        }
        if storage == Storage::Extern || matches!(q.ty, Type::Function(_)) {
            self.refuse(span, Rule::ExternalLinkage, format!("`{plain}`"));
            return String::new();
        }
        let of_static = storage == Storage::Static;
        if of_static {
            self.outliving(&q, span, &plain);
        }
        self.complete(&q, initialiser.is_some(), span);
        let own = self.local(&plain);
        // Its own initialiser sees it already.
        let local = !of_static;
        let entity = |q: Qualified| Entity::Object {
            q,
            text: own.clone(),
            local,
        };
        self.name(&plain, entity(q.clone()));
        let (mut q, mut given) = (q, String::new());
        if let Some(initialiser) = initialiser {
            let (text, whole, constant) = self.initialiser(&q, initialiser);
            if of_static && !constant {
                self.refuse(span, Rule::Types, "an initialiser that is not constant");
            }
            given = format!(" = {text}");
            q = whole;
            self.name(&plain, entity(q.clone()));
        }
        let keyword = if of_static { "static " } else { "" };
        format!("{keyword}{}{given};", self.written(span, &q, &own))
    }

    /// A variable that outlives a call.
    pub(crate) fn outliving(&mut self, q: &Qualified, span: Span, name: &str) {
        let mut of = q;
        while let Type::Array(inner, _) = &of.ty {
            of = inner;
        }
        if !q.constant && !of.constant {
            self.unless_free(span, Rule::Statics, format!("`{name}`"));
        }
        let pointer = of.ty.is_pointer()
            || matches!(of.ty, Type::Record(index) if self.has(index, &|member| member.q.ty.is_pointer()));
        if pointer {
            self.unless_free(span, Rule::KeptPointers, format!("the pointer `{name}`"));
        }
    }

    /// Refuses variables of what has no size.
    pub(crate) fn complete(&mut self, q: &Qualified, initialised: bool, span: Span) {
        let sizeless = match &q.ty {
            Type::Void => true,
            Type::Array(_, Length::Unknown) => !initialised,
            Type::Record(index) => self.records[*index].members.is_none(),
            _ => false,
        };
        if sizeless {
            self.refuse(span, Rule::Types, "a variable of what has no size");
        }
        if self.checked() && matches!(&q.ty, Type::Pointer(to) if matches!(to.ty, Type::Array(..)))
        {
            self.refuse(span, Rule::UncheckedIndex, "a pointer to an array");
        }
    }

    /// The labels of a function's body, and where they stand.
    pub(crate) fn labels(&mut self, statement: &Node<Statement>) {
        match &statement.node {
            Statement::Labeled(labeled) => {
                if let Label::Identifier(name) = &labeled.node.label.node {
                    let place = name.span.start;
                    if self
                        .current
                        .labels
                        .insert(name.node.name.clone(), place)
                        .is_some()
                    {
                        self.refuse(name.span, Rule::Types, "a label that is there twice");
                    }
                }
                self.labels(&labeled.node.statement);
            }
            Statement::Compound(items) => {
                for item in items {
                    if let BlockItem::Statement(statement) = &item.node {
                        self.labels(statement);
                    }
                }
            }
            Statement::If(found) => {
                self.labels(&found.node.then_statement);
                if let Some(or) = &found.node.else_statement {
                    self.labels(or);
                }
            }
            Statement::Switch(found) => self.labels(&found.node.statement),
            Statement::While(found) => self.labels(&found.node.statement),
            Statement::DoWhile(found) => self.labels(&found.node.statement),
            Statement::For(found) => self.labels(&found.node.statement),
            Statement::Expression(_)
            | Statement::Goto(_)
            | Statement::Continue
            | Statement::Break
            | Statement::Return(_)
            | Statement::Asm(_) => {}
        }
    }
}
