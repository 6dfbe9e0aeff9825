//! What would run: every function with its types filled in, from the program's own through the library's, as the code
//! generator will find them. Loops, recursion, panics and calls by pointers are seen where they are, even if a
//! generic of the library hides them. They are told at the author's call.

use crate::addresses;
use crate::closed;
use crate::counted::is_mark;
use crate::loops::{components, nests, uncounted};
use crate::places::refusal;
use crate::told::{Refusal, Told};
use crate::typed::is_whole;
use rustc_data_structures::fx::{FxHashMap, FxHashSet};
use rustc_hir::attrs::lang_items::LangItem;
use rustc_hir::def::DefKind;
use rustc_hir::def_id::DefId;
use rustc_middle::mir::{
    self, AssertKind, BasicBlockData, BinOp, Body, Operand, Rvalue, StatementKind, TerminatorKind,
};
use rustc_middle::mono::{CollectionMode, MonoItem};
use rustc_middle::ty::adjustment::PointerCoercion;
use rustc_middle::ty::{
    self, EarlyBinder, Instance, InstanceKind, ShimKind, Ty, TyCtxt, TypingEnv,
};
use rustc_span::Span;
use std::collections::BTreeMap;

/// The most functions that are looked at.
const NODES: usize = 20_000;

/// What a function does by itself.
#[derive(Clone, Copy, Default)]
struct Does {
    loops: u32,
    /// Loops that no other one of its own stands around.
    outermost: u32,
    panics: bool,
    indirect: bool,
    allocates: bool,
    /// It makes a number of a pointer.
    addresses: bool,
    /// It is compiled apart, so that only its name is known.
    apart: bool,
}

#[derive(Default)]
struct Node<'tcx> {
    does: Does,
    /// The deepest nest of its own loops.
    depth: u32,
    calls: Vec<Call<'tcx>>,
    /// Functions that it hands on, which may be called by a pointer.
    hands_on: Vec<Instance<'tcx>>,
    /// Of a function of the program: what is refused in it.
    own: Vec<(&'static str, String, Span)>,
}

struct Call<'tcx> {
    to: Instance<'tcx>,
    span: Span,
    /// How many loops stand around it.
    depth: u32,
}

pub fn judge(tcx: TyCtxt<'_>, told: &Told, told_loops: bool) -> (Vec<Refusal>, u32) {
    let mut graph = Graph {
        tcx,
        told,
        nodes: FxHashMap::default(),
        order: Vec::new(),
    };
    for id in tcx.hir_body_owners() {
        if is_whole(tcx, id) {
            graph.add(Instance::mono(tcx, id.to_def_id()));
        }
    }
    let mut next = 0;
    loop {
        let Some(instance) = graph.order.get(next).copied() else {
            // Behind a static, functions are found by the code generator alone.
            if told.forbids("indirect-calls") || !graph.add_rest() {
                break;
            }
            continue;
        };
        next += 1;
        if next > NODES {
            let construct =
                format!("a program of more than {NODES} functions with their types filled in");
            let refusal = Refusal {
                place: None,
                rule: "compiler-bounds",
                construct,
                note: String::new(),
            };
            return (vec![refusal], 0);
        }
        graph.read(instance);
    }
    graph.verdict(told_loops)
}

struct Graph<'a, 'tcx> {
    tcx: TyCtxt<'tcx>,
    told: &'a Told,
    nodes: FxHashMap<Instance<'tcx>, Node<'tcx>>,
    order: Vec<Instance<'tcx>>,
}

/// Whose text it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    Author,
    Environment,
    Library,
}

impl<'tcx> Graph<'_, 'tcx> {
    fn whose(&self, instance: Instance<'tcx>) -> Whose {
        let id = instance.def_id();
        // Code that the compiler writes to drop or copy a value belongs to the library.
        match instance.def {
            InstanceKind::Item(_) if id.is_local() => Whose::Author,
            InstanceKind::Item(_) if self.tcx.crate_name(id.krate).as_str() == "environment" => {
                Whose::Environment
            }
            _ => Whose::Library,
        }
    }

    fn add(&mut self, instance: Instance<'tcx>) {
        if !self.nodes.contains_key(&instance) {
            self.nodes.insert(instance, Node::default());
            self.order.push(instance);
        }
    }

    /// Adds what the code generator will make, and nothing has led to. Whether there was any.
    fn add_rest(&mut self) -> bool {
        let before = self.order.len();
        for unit in self.tcx.collect_and_partition_mono_items(()).codegen_units {
            for item in unit.items().keys() {
                if let MonoItem::Fn(instance) = item {
                    self.add(*instance);
                }
            }
        }
        self.order.len() > before
    }

    fn read(&mut self, instance: Instance<'tcx>) {
        let mut node = self.node(instance);
        node.hands_on = self.handed_on(instance);
        for call in &node.calls {
            self.add(call.to);
        }
        for to in &node.hands_on {
            self.add(*to);
        }
        self.nodes.insert(instance, node);
    }

    /// What a function hands on, as the code generator will see it: functions behind pointers, trait objects and
    /// constants. Where calls by pointers are forbidden, nothing calls them.
    fn handed_on(&self, instance: Instance<'tcx>) -> Vec<Instance<'tcx>> {
        let has_text = self.unread(instance).is_none();
        if !has_text || self.told.forbids("indirect-calls") {
            return Vec::new();
        }
        let used = self
            .tcx
            .items_of_instance((instance, CollectionMode::UsedItems));
        let used = used.map_or(&[][..], |(used, _)| used);
        let functions = used.iter().filter_map(|item| match item.node {
            MonoItem::Fn(to) => Some(to),
            _ => None,
        });
        functions.collect()
    }

    /// What a function without a text that could be read does.
    fn unread(&self, instance: Instance<'tcx>) -> Option<Node<'tcx>> {
        let tcx = self.tcx;
        let id = instance.def_id();
        let mut node = Node::default();
        match instance.def {
            InstanceKind::Virtual(..) => node.does.indirect = true,
            InstanceKind::Intrinsic(_) | InstanceKind::LlvmIntrinsic(_) => {
                // The code generator's own: no calls, and only this one ends the call.
                node.does.panics = tcx.item_name(id).as_str() == "abort";
            }
            InstanceKind::Item(_)
                if tcx.crate_name(id.krate).as_str() == "alloc" && is_heap(tcx, id) =>
            {
                node.does.allocates = true;
            }
            _ if tcx.is_foreign_item(id) => {
                node.does.apart = self.whose(instance) != Whose::Environment
            }
            InstanceKind::Item(_) if ends(tcx, id) => node.does.panics = true,
            InstanceKind::Item(_) if !tcx.is_mir_available(id) => {
                node.does.apart = self.whose(instance) == Whose::Library;
            }
            _ => return None,
        }
        Some(node)
    }

    fn node(&self, instance: Instance<'tcx>) -> Node<'tcx> {
        if let Some(node) = self.unread(instance) {
            return node;
        }
        let tcx = self.tcx;
        let body = tcx.instance_mir(instance.def);
        let whose = self.whose(instance);
        let mut node = Node::default();
        let reached = mir::traversal::mono_reachable_as_bitset(body, tcx, instance);
        let loops = nests(body, &reached);
        if whose != Whose::Environment {
            node.does.loops = loops.all;
            node.does.outermost = loops.outermost;
            node.depth = loops.around.values().copied().max().unwrap_or(0);
        }
        if whose == Whose::Library && self.told.forbids("raw-pointers") {
            node.does.addresses = addresses::told(tcx, instance, body, &reached);
        }
        if whose == Whose::Author {
            node.own = closed::judge(tcx, self.told, instance, body);
            let uncounted = uncounted(body, &reached).into_iter();
            let told = |span| {
                (
                    "unbounded-loops",
                    "a way back that no counted `for` makes".to_owned(),
                    span,
                )
            };
            node.own.extend(uncounted.map(told));
        }
        for (block, data) in body.basic_blocks.iter_enumerated() {
            if !reached.contains(block) {
                continue;
            }
            let depth = if whose == Whose::Environment {
                0
            } else {
                loops.around.get(&block).copied().unwrap_or(0)
            };
            if whose == Whose::Author {
                for statement in &data.statements {
                    if let StatementKind::Assign(assigned) = &statement.kind {
                        self.assigned(
                            instance,
                            body,
                            &assigned.1,
                            statement.source_info.span,
                            &mut node,
                        );
                    }
                }
            }
            let Some(terminator) = &data.terminator else {
                continue;
            };
            let span = terminator.source_info.span;
            match &terminator.kind {
                TerminatorKind::Call { func, fn_span, .. }
                | TerminatorKind::TailCall { func, fn_span, .. } => {
                    let spans = (span, *fn_span);
                    self.call(instance, body, func, spans, depth, whose, &mut node);
                }
                TerminatorKind::Drop { place, .. } => {
                    let ty = self.filled(instance, place.ty(body, tcx).ty);
                    let to = Instance::resolve_drop_glue(tcx, ty);
                    if !matches!(to.def, InstanceKind::Shim(ShimKind::DropGlue(_, None))) {
                        node.calls.push(Call { to, span, depth });
                    }
                }
                TerminatorKind::Assert { cond, expected, .. }
                    if self.value(instance, data, data.statements.len(), cond)
                        == Some(u128::from(*expected)) => {}
                TerminatorKind::Assert { msg, .. } => match whose {
                    Whose::Author => node.own.push(("panics", asserted(msg).to_owned(), span)),
                    Whose::Library => node.does.panics = true,
                    Whose::Environment => {}
                },
                TerminatorKind::InlineAsm { .. } if whose == Whose::Author && is_mark(data) => {}
                TerminatorKind::InlineAsm { .. } if whose != Whose::Environment => {
                    node.does.apart = true
                }
                _ => {}
            }
        }
        node
    }

    fn assigned(
        &self,
        instance: Instance<'tcx>,
        body: &Body<'tcx>,
        value: &Rvalue<'tcx>,
        span: Span,
        node: &mut Node<'tcx>,
    ) {
        let mut own = |rule, construct: &str| node.own.push((rule, construct.to_owned(), span));
        match value {
            Rvalue::BinaryOp(BinOp::Div | BinOp::Rem, operands)
                if !matches!(operands.1, Operand::Constant(_)) =>
            {
                own("division", "a divisor that is no constant");
            }
            // Calls by way of these are not on the graph.
            Rvalue::Cast(mir::CastKind::PointerCoercion(coercion, _), _, to) => match coercion {
                PointerCoercion::ReifyFnPointer(_) | PointerCoercion::ClosureFnPointer(_) => {
                    own("indirect-calls", "a function that becomes a pointer");
                }
                PointerCoercion::Unsize => {
                    let from = value.ty(body, self.tcx);
                    let to = [self.filled(instance, *to), self.filled(instance, from)];
                    let object = |ty: Ty<'tcx>| {
                        ty.walk().any(|part| {
                            part.as_type()
                                .is_some_and(|ty| matches!(ty.kind(), ty::Dynamic(..)))
                        })
                    };
                    if to.into_iter().any(object) {
                        own("indirect-calls", "a value that becomes a trait object");
                    }
                }
                _ => {}
            },
            _ => {}
        }
    }

    /// What an operand is at a place of a block, if constants decide it: so a check that cannot fail is none.
    fn value(
        &self,
        instance: Instance<'tcx>,
        block: &BasicBlockData<'tcx>,
        before: usize,
        operand: &Operand<'tcx>,
    ) -> Option<u128> {
        let body = self.tcx.instance_mir(instance.def);
        let local = match operand {
            Operand::Constant(constant) => {
                let constant = self.filled(instance, constant.const_);
                return constant.try_eval_bits(self.tcx, TypingEnv::fully_monomorphized());
            }
            Operand::Copy(place) | Operand::Move(place) => place.as_local()?,
            _ => return None,
        };
        // A variable of the author's may be changed by way of a reference; what the compiler sets aside is not.
        let named = |info: &mir::VarDebugInfo<'tcx>| matches!(info.value, mir::VarDebugInfoContents::Place(place) if place.local == local);
        if !instance.def_id().is_local() || body.var_debug_info.iter().any(named) {
            return None;
        }
        let (at, value) = block.statements[..before]
            .iter()
            .enumerate()
            .rev()
            .find_map(|(at, statement)| {
                let StatementKind::Assign(assigned) = &statement.kind else {
                    return None;
                };
                (assigned.0.as_local() == Some(local)).then_some((at, &assigned.1))
            })?;
        let value_of = |operand| self.value(instance, block, at, operand);
        match value {
            Rvalue::Use(operand, ..) => value_of(operand),
            // Of a number below this, every type has the same reading.
            Rvalue::Cast(mir::CastKind::IntToInt, operand, _) => {
                value_of(operand).filter(|value| *value < 128)
            }
            Rvalue::BinaryOp(BinOp::Eq, operands) => {
                Some((value_of(&operands.0)? == value_of(&operands.1)?).into())
            }
            Rvalue::BinaryOp(BinOp::BitAnd, operands) => {
                let no = |operand| value_of(operand) == Some(0);
                (no(&operands.0) || no(&operands.1)).then_some(0)
            }
            Rvalue::BinaryOp(BinOp::Lt, operands) if !self.is_signed(instance, &operands.1) => {
                Some((value_of(&operands.0)? < value_of(&operands.1)?).into())
            }
            _ => None,
        }
    }

    /// Whether a constant has a sign; what is no constant is taken for one that has.
    fn is_signed(&self, instance: Instance<'tcx>, operand: &Operand<'tcx>) -> bool {
        match operand {
            Operand::Constant(constant) => self.filled(instance, constant.const_.ty()).is_signed(),
            _ => true,
        }
    }

    fn filled<T: ty::TypeFoldable<TyCtxt<'tcx>>>(&self, instance: Instance<'tcx>, value: T) -> T {
        let env = TypingEnv::fully_monomorphized();
        instance.instantiate_mir_and_normalize_erasing_regions(
            self.tcx,
            env,
            EarlyBinder::bind(self.tcx, value),
        )
    }

    #[allow(clippy::too_many_arguments, reason = "a call has as many parts")]
    fn call(
        &self,
        instance: Instance<'tcx>,
        body: &Body<'tcx>,
        func: &Operand<'tcx>,
        (span, function_span): (Span, Span),
        depth: u32,
        whose: Whose,
        node: &mut Node<'tcx>,
    ) {
        let tcx = self.tcx;
        let ty: Ty<'tcx> = self.filled(instance, func.ty(body, tcx));
        let shown = if function_span.is_dummy() {
            span
        } else {
            function_span
        };
        match ty.kind() {
            ty::FnDef(id, arguments) => {
                let env = TypingEnv::fully_monomorphized();
                match Instance::try_resolve(tcx, env, *id, arguments.no_bound_vars().expect("mono"))
                {
                    Ok(Some(to)) => node.calls.push(Call {
                        to,
                        span: shown,
                        depth,
                    }),
                    _ => node.does.apart = true,
                }
            }
            _ => match whose {
                Whose::Author => {
                    node.own
                        .push(("indirect-calls", "a call by a pointer".to_owned(), shown))
                }
                Whose::Library => node.does.indirect = true,
                Whose::Environment => {}
            },
        }
    }

    /// What the library does on behalf of a call, until it comes back to the program.
    fn behind(
        &self,
        instance: Instance<'tcx>,
        known: &mut FxHashMap<Instance<'tcx>, Does>,
    ) -> Does {
        if let Some(found) = known.get(&instance) {
            return *found;
        }
        let mut does = Does::default();
        let mut seen = FxHashSet::default();
        let mut left = vec![instance];
        while let Some(at) = left.pop() {
            // The environment is believed, with what it calls.
            if self.whose(at) != Whose::Library || !seen.insert(at) {
                continue;
            }
            let Some(node) = self.nodes.get(&at) else {
                continue;
            };
            does.loops += node.does.loops;
            does.panics |= node.does.panics;
            does.indirect |= node.does.indirect;
            does.allocates |= node.does.allocates;
            does.addresses |= node.does.addresses;
            does.apart |= node.does.apart;
            left.extend(node.calls.iter().map(|call| call.to));
            left.extend(&node.hands_on);
        }
        known.insert(instance, does);
        does
    }

    fn verdict(&self, told_loops: bool) -> (Vec<Refusal>, u32) {
        let mut found = Vec::new();
        let mut known = FxHashMap::default();
        let circles = self.circles();
        let forbids = |rule: &str| self.told.forbids(rule);
        let mut refuse =
            |rule, construct: String, span| found.push(refusal(self.tcx, rule, construct, span));
        for instance in &self.order {
            let node = &self.nodes[instance];
            if self.whose(*instance) != Whose::Author {
                continue;
            }
            for (rule, construct, span) in &node.own {
                if forbids(rule) || ["locked", "read-only"].contains(rule) {
                    refuse(rule, construct.clone(), *span);
                }
            }
            // A way back that no word shows, so that it was not told yet.
            if forbids("loops") && node.does.loops > 0 && !told_loops {
                refuse(
                    "loops",
                    "a way back".to_owned(),
                    self.tcx.def_span(instance.def_id()),
                );
            }
            for call in &node.calls {
                let name = format!("`{}`", self.tcx.def_path_str(call.to.def_id()));
                if forbids("recursion") && circles.contains(&(*instance, call.to)) {
                    refuse(
                        "recursion",
                        format!("{name} comes to itself again"),
                        call.span,
                    );
                }
                let own = self.whose(call.to) == Whose::Author;
                let does = if own {
                    Does::default()
                } else {
                    self.behind(call.to, &mut known)
                };
                let apart = |what: &str| match does.apart {
                    true => format!(
                        "{name}, which is compiled apart, so that nothing says whether it {what}"
                    ),
                    false => format!("{name}, which {what}"),
                };
                if forbids("loops") && (does.loops > 0 || does.apart) {
                    refuse("loops", apart("loops"), call.span);
                }
                if forbids("unbounded-loops") && (does.loops > 0 || does.apart) {
                    refuse("unbounded-loops", apart("loops"), call.span);
                }
                if forbids("panics") && (does.panics || does.apart) {
                    refuse("panics", apart("panics"), call.span);
                }
                if forbids("indirect-calls") && (does.indirect || does.apart) {
                    refuse("indirect-calls", apart("calls by pointers"), call.span);
                }
                if forbids("allocation") && does.allocates {
                    refuse(
                        "allocation",
                        format!("{name}, which takes memory"),
                        call.span,
                    );
                }
                if forbids("raw-pointers") && does.addresses {
                    refuse(
                        "raw-pointers",
                        format!("{name}, which tells an address"),
                        call.span,
                    );
                }
                let bounds = [self.told.loops, self.told.loop_depth, self.told.loop_nests];
                if bounds.iter().any(Option::is_some) && does.apart {
                    refuse("loops", apart("loops"), call.span);
                }
            }
        }
        let loops = self.loops();
        let whole = |rule, construct| Refusal {
            place: None,
            rule,
            construct,
            note: String::new(),
        };
        if let Some(most) = self.told.loops
            && loops > most
        {
            found.push(whole(
                "loops",
                format!("{loops} loops, where {most} may be"),
            ));
        }
        if let Some(most) = self.told.loop_nests {
            let nests = self.nests();
            if nests > most {
                let construct = format!("{nests} nests of loops, where {most} may be");
                found.push(whole("loops", construct));
            }
        }
        if let Some(most) = self.told.loop_depth
            && circles.is_empty()
        {
            let mut known = FxHashMap::default();
            let deepest = self
                .order
                .iter()
                .map(|at| self.depth(*at, &mut known))
                .max()
                .unwrap_or(0);
            if deepest > most {
                found.push(whole(
                    "loop-depth",
                    format!("a nest {deepest} deep, where {most} may be"),
                ));
            }
        }
        (found, loops)
    }

    /// Loops of the program's text, and of what it calls of the library; each once, whatever its types.
    fn loops(&self) -> u32 {
        let mut each: BTreeMap<_, u32> = BTreeMap::new();
        let mut seen = FxHashSet::default();
        let own = |instance: &&Instance<'tcx>| self.whose(**instance) == Whose::Author;
        let mut left: Vec<Instance<'tcx>> = self.order.iter().filter(own).copied().collect();
        while let Some(instance) = left.pop() {
            if self.whose(instance) == Whose::Environment || !seen.insert(instance) {
                continue;
            }
            let node = &self.nodes[&instance];
            left.extend(node.calls.iter().map(|call| call.to));
            let loops = node.does.loops;
            let most = each
                .entry(self.tcx.def_path_hash(instance.def_id()))
                .or_default();
            *most = loops.max(*most);
        }
        each.values().sum()
    }

    /// Loops that no other one stands around, in functions that are called outside of loops; each once, whatever its
    /// types.
    fn nests(&self) -> u32 {
        let called: FxHashSet<Instance<'tcx>> = self
            .nodes
            .values()
            .flat_map(|node| node.calls.iter().map(|call| call.to))
            .collect();
        let is_entry = |instance: &Instance<'tcx>| {
            let name = self.tcx.opt_item_name(instance.def_id());
            name.is_some_and(|name| self.told.entries.iter().any(|entry| name.as_str() == entry))
        };
        let begins = |instance: &&Instance<'tcx>| {
            self.whose(**instance) == Whose::Author
                && (is_entry(instance) || !called.contains(*instance))
        };
        let mut each: BTreeMap<_, u32> = BTreeMap::new();
        let mut seen = FxHashSet::default();
        let mut left: Vec<Instance<'tcx>> = self.order.iter().filter(begins).copied().collect();
        while let Some(instance) = left.pop() {
            if !seen.insert(instance) {
                continue;
            }
            let node = &self.nodes[&instance];
            let outside = node.calls.iter().filter(|call| call.depth == 0);
            left.extend(outside.map(|call| call.to));
            let place = self.tcx.def_path_hash(instance.def_id());
            let most = each.entry(place).or_default();
            *most = node.does.outermost.max(*most);
        }
        each.values().sum()
    }

    /// Without circles.
    fn depth(&self, instance: Instance<'tcx>, known: &mut FxHashMap<Instance<'tcx>, u32>) -> u32 {
        if let Some(found) = known.get(&instance) {
            return *found;
        }
        let node = &self.nodes[&instance];
        let believed = self.whose(instance) == Whose::Environment;
        let counted = |call: &&Call<'tcx>| !believed || self.whose(call.to) == Whose::Author;
        let calls = node
            .calls
            .iter()
            .filter(counted)
            .map(|call| call.depth + self.depth(call.to, known));
        let deepest = calls.max().unwrap_or(0).max(node.depth);
        known.insert(instance, deepest);
        deepest
    }

    /// Calls that lie on a circle, by strongly connected components (Tarjan, without recursion of its own).
    fn circles(&self) -> FxHashSet<(Instance<'tcx>, Instance<'tcx>)> {
        let number: FxHashMap<_, _> = self
            .order
            .iter()
            .enumerate()
            .map(|(at, instance)| (*instance, at))
            .collect();
        let next: Vec<Vec<usize>> = self
            .order
            .iter()
            .map(|instance| {
                self.nodes[instance]
                    .calls
                    .iter()
                    .filter_map(|call| number.get(&call.to).copied())
                    .collect()
            })
            .collect();
        let component = components(&next);
        let mut circles = FxHashSet::default();
        for (from, to) in next.iter().enumerate() {
            for to in to {
                if component[from] == component[*to] {
                    circles.insert((self.order[from], self.order[*to]));
                }
            }
        }
        // A circle within the library alone is told at the call that leads there.
        let inner: FxHashSet<_> = circles
            .iter()
            .filter(|(from, _)| self.whose(*from) != Whose::Author)
            .map(|(from, _)| *from)
            .collect();
        let mut known: FxHashMap<Instance<'tcx>, bool> = FxHashMap::default();
        for instance in &self.order {
            if self.whose(*instance) == Whose::Author {
                for call in &self.nodes[instance].calls {
                    if self.whose(call.to) != Whose::Author
                        && self.leads(call.to, &inner, &mut known)
                    {
                        circles.insert((*instance, call.to));
                    }
                }
            }
        }
        circles
    }

    fn leads(
        &self,
        from: Instance<'tcx>,
        to: &FxHashSet<Instance<'tcx>>,
        known: &mut FxHashMap<Instance<'tcx>, bool>,
    ) -> bool {
        if let Some(found) = known.get(&from) {
            return *found;
        }
        let mut seen = FxHashSet::default();
        let mut left = vec![from];
        let mut found = false;
        while let Some(at) = left.pop() {
            if self.whose(at) == Whose::Author || !seen.insert(at) {
                continue;
            }
            if to.contains(&at) {
                found = true;
                break;
            }
            left.extend(
                self.nodes
                    .get(&at)
                    .into_iter()
                    .flat_map(|node| node.calls.iter().map(|call| call.to)),
            );
        }
        known.insert(from, found);
        found
    }
}

/// Whether a function never returns: so the library panics.
fn ends(tcx: TyCtxt<'_>, id: DefId) -> bool {
    if id.is_local() || !matches!(tcx.def_kind(id), DefKind::Fn | DefKind::AssocFn) {
        return false;
    }
    let never = tcx
        .fn_sig(id)
        .skip_binder()
        .output()
        .skip_binder()
        .is_never();
    never || tcx.is_lang_item(id, LangItem::PanicNounwind)
}

/// Whether a function is one by which `alloc` takes memory.
fn is_heap(tcx: TyCtxt<'_>, id: DefId) -> bool {
    tcx.opt_item_name(id)
        .is_some_and(|name| name.as_str().starts_with("__rust_"))
}

/// A check of the compiler's, in words.
fn asserted<T>(what: &AssertKind<T>) -> &'static str {
    match what {
        AssertKind::BoundsCheck { .. } => "an index that may be beyond the end",
        AssertKind::Overflow(..) | AssertKind::OverflowNeg(_) => "arithmetic that may overflow",
        AssertKind::DivisionByZero(_) | AssertKind::RemainderByZero(_) => "a divisor that may be 0",
        _ => "a check that may fail",
    }
}
