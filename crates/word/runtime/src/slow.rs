//! Calls that are not just gone through with: first calls of threads, policies, limits, refusals.

use crate::blocks::{Caller, free, give, hand_over, has_room, take_over};
use crate::callback;
use crate::core::Core;
use crate::fault;
use crate::follow;
use crate::gates::{self, Import, Inner, Registers, Seat, here, state};
use crate::holder::Holder;
use crate::instance;
use crate::keep::Granted;
use crate::learn;
use crate::measure::{Arguments, Copy, Lacks, Wrong};
use crate::note::Want;
use crate::object::object;
use crate::policy::{Effect, FunctionPolicy};
use crate::refuse::{Refusal, refuse_by};
use crate::report::FaultKind;
use crate::rights::words;
use crate::size::{Bits, Number, Size};
use crate::thread::{self, Words};
use crate::wanted::Wanted;
use crate::watchdog;
use mullion_supervisor::Permission;
use mullion_word_abi::{STACK_MARGIN, STACK_REGION};
use mullion_word_table::Access;
use std::sync::atomic::{Ordering, compiler_fence};

/// Words of arguments on the stack.
type Stacked = [u64; 16];

pub(crate) fn no_arguments() -> Registers {
    // SAFETY: all zeros are registers.
    unsafe { std::mem::zeroed() }
}

impl Registers {
    pub(crate) fn argument(&self, at: u8) -> u64 {
        self.integers.get(usize::from(at)).copied().unwrap_or(0)
    }

    fn answer(&mut self, integer: i64, float: f64) {
        self.integers[0] = integer as u64;
        self.integers[1] = 0;
        self.vectors[0] = [float.to_bits(), 0];
        self.vectors[1] = [0; 2];
    }

    /// The call is not made, or was ended.
    #[cold]
    fn refuse(&mut self, core: &'static Core, body: u64, report: Option<(FaultKind, String)>) {
        let error = core.error_of(body);
        if let Some((kind, what)) = report {
            let what = format!("{}: {what}", core.name_of(body));
            fault::report_refused(core, body, kind, what);
        }
        self.answer(error.integer, error.float);
    }
}

/// Into a domain, from gates.s or from the host's own code. `from` is the domain that calls, or null.
// SAFETY: no other symbol has this name.
#[unsafe(export_name = "mullion_word_enter_slowly")]
pub(crate) extern "C" fn enter_slowly(
    inner: *const Inner,
    body: u64,
    registers: *mut Registers,
    from: *const Inner,
) {
    let _paused = follow::pause();
    // SAFETY: gates give a domain, which lives for ever, and their own frame's registers.
    let (core, registers) = unsafe { ((*inner).core(), &mut *registers) };
    // SAFETY: as above, or null. The domain that calls has the newest frame.
    let from = unsafe {
        from.as_ref()
            .map(|inner| Caller::of((*(*here()).frame).seat, inner.core()))
    };
    if core.is_ended() {
        return registers.refuse(core, body, None);
    }
    let chosen = match &core.instances {
        None => Ok(None),
        Some(instances) => {
            let called_back = callback::of(core, body).filter(|_| from.is_none());
            instances.choose(core, called_back.or_else(|| core.export(body)), registers)
        }
    };
    let chosen = match chosen {
        Ok(chosen) => chosen,
        Err(what) => {
            return registers.refuse(core, body, Some((FaultKind::Policy, what)));
        }
    };
    let of = chosen.map(|(principal, _)| principal);
    let seat = match thread::known_seat(core, of).map_or_else(|| thread::seat(core, of), Ok) {
        Ok(seat) => seat,
        Err(error) => {
            let what = format!("no stack for the thread: {error}");
            return registers.refuse(core, body, Some((FaultKind::NoMemory, what)));
        }
    };
    let mark = 0u8;
    // SAFETY: it is the thread's own.
    let room = unsafe {
        let here = here();
        let left = (&raw const mark as u64).wrapping_sub((*here).host_low);
        (*here).control >= (*here).limit && left >= gates::HOST_RESERVE
    };
    if !room {
        let what = "calls are nested too deeply".to_owned();
        return registers.refuse(core, body, Some((FaultKind::ControlStack, what)));
    }
    // SAFETY: the seat is the thread's own. It is counted as in gates.s: before the state is read.
    let (depth, entries) = unsafe { (&(*seat).depth, &(*seat).entries) };
    let before = depth.load(Ordering::Relaxed);
    if before == 0 {
        entries.fetch_add(1, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
    }
    depth.store(before + 1, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
    watchdog::begin(core);
    core.keep.enter(core, seat);
    // SAFETY: the seat is the thread's own, and lives as long as the thread.
    unsafe { (*seat).is_used.store(true, Ordering::Relaxed) };
    match core.is_ended() || !instance::lives(chosen) {
        true => registers.refuse(core, body, None),
        false => match enter_by_policy(core, body, registers, seat, from) {
            Ok(()) => {}
            Err(what) => registers.refuse(core, body, Some((FaultKind::Policy, what))),
        },
    }
    if before == 0 {
        // SAFETY: the seat is the thread's own, and what is written is atomic.
        unsafe { (*seat).settled.store(0, Ordering::Relaxed) };
        compiler_fence(Ordering::SeqCst);
    }
    depth.store(before, Ordering::Relaxed);
    if before == 0 {
        core.keep.leave(core, seat);
    }
    if let Some(from) = from {
        from.takes_back();
    }
}

fn enter_by_policy(
    core: &'static Core,
    body: u64,
    registers: &mut Registers,
    seat: *mut Seat,
    from: Option<Caller>,
) -> Result<(), String> {
    // SAFETY: the seat is the thread's own.
    let (known, outermost) = unsafe { (&mut *seat, (*seat).depth.load(Ordering::Relaxed) == 1) };
    if known.latest != body {
        known.policy = core
            .export(body)
            .map_or(std::ptr::null(), |policy| std::ptr::from_ref(policy).cast());
        known.latest = body;
    }
    // SAFETY: a policy lives as long as its domain's `Core`, for ever; or null.
    let usual = unsafe { known.policy.cast::<FunctionPolicy>().as_ref() };
    // Where the host calls what the module has passed to it, the host's function says what that means.
    let called_back = match from {
        None => callback::of(core, body),
        Some(_) => None,
    };
    let Some(policy) = called_back.or(usual) else {
        let none = Wanted::default();
        return enter_granted(core, body, None, registers, seat, (from, &none, outermost));
    };
    let callee = (core, seat, outermost && core.instances.is_none());
    let wanted = grant_arguments(callee, body, policy, registers, from)?;
    enter_granted(
        core,
        body,
        Some(policy),
        registers,
        seat,
        (from, &wanted, outermost),
    )
}

fn enter_granted(
    core: &'static Core,
    body: u64,
    policy: Option<&FunctionPolicy>,
    registers: &mut Registers,
    seat: *mut Seat,
    (from, wanted, outermost): (Option<Caller>, &Wanted, bool),
) -> Result<(), String> {
    // SAFETY: the seat is the thread's in this domain, and its depth was counted.
    let granted = unsafe {
        let may_keep = outermost && core.instances.is_none();
        let granted = core
            .keep
            .grant(core, instance::of_seat(seat), seat, wanted, may_keep);
        if outermost {
            compiler_fence(Ordering::SeqCst);
            (*seat).settled.store(1, Ordering::Relaxed);
        }
        granted.map_err(|error| error.to_string())?
    };
    if let (Granted::Kept, None, Some(policy)) = (&granted, from, policy) {
        // SAFETY: the seat is the thread's own.
        let seat = unsafe { &mut *seat };
        // The meaning of a callback is looked up each time.
        if std::ptr::eq(seat.policy.cast(), policy) {
            remember(seat, body, policy, registers);
        }
    }
    // SAFETY: the seat is the thread's own.
    let before = unsafe { (*seat).stack };
    let pushed = match policy.filter(|policy| policy.stacked != 0) {
        Some(policy) => push_stacked(policy, registers, seat, from),
        None => Ok(()),
    };
    let invoked = pushed.and_then(|()| invoke_noting(core, body, registers, seat, from));
    if invoked.is_ok() {
        // SAFETY: as above; a call that ends leaves the seat as it found it.
        unsafe { (*seat).stack = before };
    }
    // SAFETY: the seat is the thread's own, and the call is over.
    unsafe { granted.end(seat) };
    invoked
}

/// The next call may repeat this one without coming here, if the policy says no more than what is granted for it.
fn remember(seat: &mut Seat, body: u64, policy: &FunctionPolicy, registers: &Registers) {
    seat.repeated = 0;
    seat.masks = [0; 6];
    for effect in &policy.effects {
        let Some((at, size, _)) = effect.lent() else {
            return;
        };
        if !size.is_in_registers() {
            return;
        }
        for used in [Number::of(at, Bits::U64)]
            .into_iter()
            .chain(size.numbers())
        {
            if let Some(mask) = seat.masks.get_mut(usize::from(used.argument)) {
                *mask |= used.bits.mask();
            }
        }
    }
    if policy.stacked == 0 {
        (seat.arguments, seat.repeated) = (registers.integers, body);
    }
}

/// What the callee gets for the length of the call. What it gets for good, it has when this returns.
fn grant_arguments(
    callee: (&'static Core, *mut Seat, bool),
    body: u64,
    policy: &FunctionPolicy,
    registers: &Registers,
    from: Option<Caller>,
) -> Result<Wanted, String> {
    let mut wanted = Wanted::default();
    let caller = from.map(|from| from.holder);
    let (core, seat, _) = callee;
    let holder = instance::of_seat(seat);
    // The callee may read a size again. That harms nobody: each of its accesses is checked.
    let arguments = Arguments {
        registers,
        caller,
        host: None,
        callee: Some(callee),
    };
    for effect in &policy.effects {
        let (argument, size, permission, stays) = match (effect.lent(), effect) {
            (Some((at, size, permission)), _) => (at, size, permission, false),
            (None, Effect::Takes(at, size)) => (*at, size, Permission::ReadWrite, true),
            (None, _) => continue,
        };
        let judge = |lacks: Lacks| match from {
            Some(caller) => lacks.judge(caller.core, core.name_of(body), argument),
            None => Err("the host lacks nothing".to_owned()),
        };
        let grant = &mut |address, bytes, is_main| -> Result<(), Stop> {
            let permission = if is_main {
                permission
            } else {
                Permission::Read
            };
            if let Some(from) = from.filter(|_| !stays) {
                from.loans().lend(address, bytes);
            }
            // A module cannot give what it does not have.
            match arguments.check(address, bytes, access(permission)) {
                Err(Wrong::Lacks(lacks)) => judge(lacks)?,
                other => other?,
            }
            match stays {
                true => hand_on((core, holder), from, argument, address, bytes)?,
                false => {
                    let range = words(address, bytes).map_err(|error| error.to_string())?;
                    wanted.add(range, permission == Permission::ReadWrite);
                }
            }
            Ok(())
        };
        match arguments.pieces(argument, size, grant) {
            Ok(_) => {}
            Err(Stop::Wrong(Wrong::Lacks(lacks))) => judge(lacks)?,
            Err(Stop::Wrong(wrong)) => return Err(wrong.of(argument)),
            Err(Stop::Said(what)) => return Err(what),
        }
    }
    Ok(wanted)
}

/// Why a call is not made.
enum Stop {
    Wrong(Wrong),
    Said(String),
}

impl From<Wrong> for Stop {
    fn from(wrong: Wrong) -> Stop {
        Stop::Wrong(wrong)
    }
}

impl From<String> for Stop {
    fn from(what: String) -> Stop {
        Stop::Said(what)
    }
}

/// Memory becomes a module's, from the host or from another module.
fn hand_on(
    (core, to): (&'static Core, &'static Holder),
    from: Option<Caller>,
    argument: u8,
    address: u64,
    bytes: u64,
) -> Result<(), String> {
    let block = match from {
        Some(caller) => hand_over(caller, argument, address, bytes)?,
        None => None,
    };
    let done = match block {
        Some(block) => give(core, to, address, block.bytes, block.allocator),
        None => words(address, bytes).and_then(|range| take_over(to, range)),
    };
    done.map_err(|error| error.to_string())
}

fn access(permission: Permission) -> Access {
    match permission {
        Permission::ReadWrite => Access::READ_WRITE,
        _ => Access::READ,
    }
}

/// Copies stack arguments to the domain's data stack, below what is on it.
fn push_stacked(
    policy: &FunctionPolicy,
    registers: &Registers,
    seat: *mut Seat,
    from: Option<Caller>,
) -> Result<(), String> {
    if policy.stacked == 0 {
        return Ok(());
    }
    let arguments = read_stacked(policy.stacked, registers.stacked, from)?;
    // SAFETY: the seat is the thread's own.
    let (stack, low, top) = unsafe { ((*seat).stack, (*seat).low, (*seat).top) };
    let to = (stack.wrapping_sub(8 * u64::from(policy.stacked))) & !15;
    // A callback's stack is wherever the module had it, and above the top there may be no memory.
    if to < low || stack > top {
        return Err("the data stack is full".to_owned());
    }
    for (at, word) in arguments.iter().take(policy.stacked.into()).enumerate() {
        // SAFETY: it is in the mapped part of the stack, by the bounds above, and nobody else runs on it.
        unsafe { (to as *mut u64).add(at).write(*word) };
    }
    // SAFETY: the seat is the thread's own, and lives as long as it is inside.
    unsafe { (*seat).stack = to };
    Ok(())
}

/// Stack arguments of a caller: the host's are on its stack, a module's on its data stack.
fn read_stacked(count: u8, at: u64, from: Option<Caller>) -> Result<Stacked, String> {
    let mut arguments = [0; 16];
    let mut count = usize::from(count).min(arguments.len());
    if let Some(caller) = from {
        let _who = caller;
        // SAFETY: the newest frame is the caller's, on a seat of this thread.
        let low = unsafe { (*(*(*here()).frame).seat).low };
        let end = (low & !(STACK_REGION - 1)) + STACK_REGION - STACK_MARGIN;
        if at < low || at > end || !at.is_multiple_of(8) {
            return Err("stack arguments are not on the data stack".to_owned());
        }
        // A variadic call may have fewer than its policy passes on, near the top of the stack: the others are zero.
        count = count.min(((end - at) / 8) as usize);
    }
    for (word, argument) in arguments.iter_mut().take(count).enumerate() {
        // SAFETY: on the caller's stack: the host's, by its policy for this function, or a data stack, as checked.
        *argument = unsafe { (at as *const u64).add(word).read() };
    }
    Ok(arguments)
}

/// A domain that learns has the arguments of its calls kept.
fn invoke_noting(
    core: &'static Core,
    body: u64,
    registers: &mut Registers,
    seat: *mut Seat,
    from: Option<Caller>,
) -> Result<(), String> {
    let thread = match core.learning {
        Some(_) => thread::this().ok(),
        None => None,
    };
    let depth = thread.map(|thread| {
        thread.calls.push(registers.integers);
        thread.calls.len()
    });
    let invoked = invoke(core, body, registers, seat, from);
    if let (Some(depth), Ok(thread)) = (depth, thread::this()) {
        thread.calls.truncate(depth - 1);
    }
    invoked
}

fn invoke(
    core: &'static Core,
    body: u64,
    registers: &mut Registers,
    seat: *mut Seat,
    from: Option<Caller>,
) -> Result<(), String> {
    let changes =
        |core: &Core| core.inner.state.load(Ordering::Relaxed) & state::CONTROL_WORDS != 0;
    let theirs = from.is_some_and(|from| changes(from.core));
    let mut words = None;
    if theirs || changes(core) {
        let thread = thread::this().map_err(|error| error.to_string())?;
        let before = (Words::now(), thread.words);
        // The callee begins with the host's, whatever the caller has made of them.
        match theirs {
            true => thread.words.load_behind_a_domain(),
            false => thread.words = before.0,
        }
        words = Some(before);
    }
    let inner = &raw const core.inner;
    let followed = follow::enter(core, body);
    // SAFETY: the seat is this thread's, there is room, and the host runs.
    unsafe { gates::mullion_word_invoke(inner, body, registers, seat) };
    drop(followed);
    if let Some((now, before)) = words {
        now.load_behind_a_domain();
        if let Ok(thread) = thread::this() {
            thread.words = before;
        }
    }
    Ok(())
}

impl Lacks {
    /// A refusal, unless the module learns: then it is told.
    fn judge(self, core: &'static Core, function: &str, argument: u8) -> Result<(), String> {
        let Lacks {
            address,
            bytes,
            right,
        } = self;
        let want = Want::Argument {
            function,
            argument,
            address,
            bytes,
            write: right.covers(Access::WRITE),
        };
        match learn::note(core, 0, want) {
            true => Ok(()),
            false => Err(format!(
                "argument {argument} is {bytes} bytes at {address:#x}, {}, and the module has no {right:?} there",
                object(core, address)
            )),
        }
    }
}

/// Out of a domain, from gates.s. The thread is the host's, and on the host's stack.
// SAFETY: no other symbol has this name.
#[unsafe(export_name = "mullion_word_leave_slowly")]
pub(crate) extern "C" fn leave_slowly(import: *const Import, registers: *mut Registers) {
    // SAFETY: gates give an import, which lives for ever, and their own frame's registers. The newest frame is the
    // caller's.
    let (import, registers, from) = unsafe {
        let seat = (*(*here()).frame).seat;
        let core = (*(*seat).inner).core();
        (&*import, &mut *registers, Caller::of(seat, core))
    };
    let core = from.core;
    let _paused = follow::pause();
    // What is told of the call's end comes behind all that follows from it.
    let mut followed = None;
    let changes = core.inner.state.load(Ordering::Relaxed) & state::CONTROL_WORDS != 0;
    let words = changes.then(Words::now);
    if words.is_some()
        && let Ok(thread) = thread::this()
    {
        thread.words.load_behind_a_domain();
    }
    let none = FunctionPolicy::default();
    let outcome = match &import.policy {
        _ if import.target == 0 => Err("the host does not offer it".to_owned()),
        _ if import.is_learned => {
            followed = Some(follow::leave(core, import));
            leave_learning(from, import, registers);
            Ok(())
        }
        policy => {
            let policy = policy.as_ref().unwrap_or(&none);
            leave_by_policy(&from, import, policy, registers, &mut followed)
        }
    };
    if let Some(words) = words {
        words.load();
    }
    from.takes_back();
    drop(followed);
    if let Err(what) = outcome {
        registers.answer(0, 0.0);
        // The trap behind the return takes the frame down.
        refuse_by(Refusal {
            what: format!("{}: {what}", import.name),
            allow: (import.target == 0).then(|| format!("allow = [\"{}\"]", import.name)),
        });
    }
}

/// A function that is not offered: told, and called with whatever lies on the stack.
fn leave_learning(who: Caller, import: &Import, registers: &mut Registers) {
    // SAFETY: the gate has pushed two registers on top of the return address, on the thread's own control stack.
    let from = unsafe { (((*here()).control + 16) as *const u64).read() }.wrapping_sub(1);
    let want = Want::Call {
        function: &import.name,
        address: import.target,
        arguments: registers.integers,
    };
    learn::note(who.core, from, want);
    let end = (registers.stacked & !(STACK_REGION - 1)) + STACK_REGION - STACK_MARGIN;
    let room = end.saturating_sub(registers.stacked) / 8;
    let count = room.min(16) as u8;
    let stacked = read_stacked(count, registers.stacked, Some(who)).unwrap_or([0; 16]);
    // SAFETY: the host bears what a learning module does.
    unsafe { gates::mullion_word_call_host(import.target, registers, stacked.as_ptr(), 16) };
}

// The caller goes by reference: to copy it waits for what was just written.
fn leave_by_policy(
    who: &Caller,
    import: &'static Import,
    policy: &FunctionPolicy,
    registers: &mut Registers,
    followed: &mut Option<follow::Following>,
) -> Result<(), String> {
    let mut moved = None;
    let mut copies: Vec<Box<Copy>> = Vec::new();
    let is_host = import.gate.is_none();
    // A macro, and no closure: what it refers to changes in between.
    macro_rules! arguments {
        () => {
            Arguments {
                registers: &*registers,
                caller: Some(who.holder),
                host: is_host.then_some((who.core, &copies[..])),
                callee: None,
            }
        };
    }
    let mut is_wanted = true;
    // Where the loans of the argument begin that the effect is about: its effects stand together (`Import::new`).
    let mut beside = (None, *who);
    for effect in &policy.effects {
        if effect.argument() != beside.0 {
            beside = (effect.argument(), who.beside(who.loans().mark()));
        }
        let mut copy = None;
        is_wanted = is_wanted
            && before_call(
                &beside.1,
                import,
                effect,
                policy,
                &arguments!(),
                (&mut moved, &mut copy),
            )?;
        if let Some(copy) = copy {
            copies.push(copy);
        }
    }
    // Before the call: the result takes the place of an argument.
    let given = policy.effects.iter().find_map(|effect| match effect {
        Effect::Gives(size) | Effect::Moves(_, size) => arguments!().bytes(size).ok(),
        _ => None,
    });
    if !is_wanted {
        registers.answer(0, 0.0);
        return Ok(());
    }
    let stacked = match policy.stacked {
        0 => [0; 16],
        count => read_stacked(count, registers.stacked, Some(*who))?,
    };
    // What the host's function may write pointers to, which lead into a copy. The registers have other values behind the call.
    let mut led: Vec<(u8, u64, u64)> = Vec::new();
    for effect in &policy.effects {
        if let Effect::Into(at, size, _) = effect {
            let bytes = arguments!().bytes(size).map_err(|wrong| wrong.of(*at))?;
            led.push((*at, registers.argument(*at), bytes));
        }
    }
    led.retain(|(_, at, _)| is_host && *at != 0);
    let callbacks = match policy.callbacks.is_empty() {
        true => None,
        false => Some(callback::pass(who.core, import, &registers.integers)?),
    };
    match import.gate {
        // Of another module: it is called by this one, and not by the host, which would be believed.
        Some((callee, body)) => enter_slowly(callee, body, registers, &raw const who.core.inner),
        // SAFETY: the host offers this function, with what its policy has checked.
        None => unsafe {
            for copy in &copies {
                registers.integers[usize::from(copy.argument)] = copy.address();
            }
            let _passed = callbacks;
            *followed = Some(follow::leave(who.core, import));
            let count = policy.stacked.into();
            gates::mullion_word_call_host(import.target, registers, stacked.as_ptr(), count);
        },
    }
    let judge = |argument: u8, done: Result<(), Wrong>| match done {
        Ok(()) => Ok(()),
        Err(Wrong::Lacks(lacks)) => lacks.judge(who.core, &import.name, argument),
        Err(wrong) => Err(wrong.of(argument)),
    };
    for copy in &copies {
        judge(copy.argument, arguments!().write_back(copy))?;
        for &(argument, at, bytes) in &led {
            judge(argument, arguments!().lead_back(at, bytes, copy))?;
        }
    }
    let result = registers.integers[0];
    match (given, moved) {
        (Some(bytes), _) if result != 0 => {
            give(who.core, who.holder, result, bytes, policy.allocator).map_err(|e| e.to_string())
        }
        // It was not moved: the module has it as before.
        (Some(bytes), Some((address, held))) if bytes != 0 => {
            give(who.core, who.holder, address, held, policy.allocator).map_err(|e| e.to_string())
        }
        _ => Ok(()),
    }
}

/// Whether a module that the import leads to takes the argument over itself.
fn is_taken_behind(import: &Import, argument: u8) -> bool {
    let policy = import
        .gate
        .and_then(|(callee, body)| callee.core().export(body));
    let mut effects = policy.into_iter().flat_map(|policy| &policy.effects);
    effects.any(|effect| matches!(effect, Effect::Takes(at, _) if *at == argument))
}

/// Whether the call is to be made; if not, it answers 0.
fn before_call(
    who: &Caller,
    import: &Import,
    effect: &Effect,
    policy: &FunctionPolicy,
    arguments: &Arguments<'_>,
    (moved, copy): (&mut Option<(u64, u64)>, &mut Option<Box<Copy>>),
) -> Result<bool, String> {
    let registers = arguments.registers;
    let core = who.core;
    // None: no copy. Otherwise whether it is written back.
    let mut demand = |argument: u8, size: &Size, right, lends: bool, copies: Option<bool>| {
        let check = &mut |address, bytes, is_main| {
            if lends {
                who.loans().lend(address, bytes);
            }
            match is_main {
                true => arguments.check(address, bytes, right),
                false => arguments.check(address, bytes, Access::READ),
            }
        };
        let done = match copies {
            None => arguments.pieces::<Wrong>(argument, size, check),
            Some(back) => arguments.copied::<Wrong>(argument, (size, back), check),
        };
        match done {
            Ok(made) => *copy = made,
            Err(Wrong::Lacks(lacks)) => lacks.judge(core, &import.name, argument)?,
            Err(wrong) => return Err(wrong.of(argument)),
        }
        Ok(())
    };
    match effect {
        Effect::In(at, size) => {
            let copies = (*size == Size::Text).then_some(false);
            demand(*at, size, Access::READ, true, copies)?;
        }
        Effect::Out(at, size) | Effect::Into(at, size, _) | Effect::InOut(at, size) => {
            demand(*at, size, Access::READ_WRITE, true, None)?;
        }
        Effect::CopyIn(at, size) => demand(*at, size, Access::READ, true, Some(false))?,
        Effect::CopyInOut(at, size) => demand(*at, size, Access::READ_WRITE, true, Some(true))?,
        Effect::Takes(at, size) => {
            demand(*at, size, Access::READ_WRITE, false, None)?;
            let bytes = arguments.bytes(size).unwrap_or(0);
            let address = registers.argument(*at);
            if address != 0 && bytes != 0 && !is_taken_behind(import, *at) {
                hand_over(*who, *at, address, bytes)?;
            }
        }
        Effect::Gives(size) => return Ok(has_room(core, arguments.bytes(size).ok())),
        Effect::Frees(at) => {
            free(*who, import, registers.argument(*at), policy.allocator)?;
        }
        Effect::Moves(at, size) => {
            if !has_room(core, arguments.bytes(size).ok()) {
                return Ok(false);
            }
            let address = registers.argument(*at);
            *moved =
                free(*who, import, address, policy.allocator)?.map(|held| (address, held.bytes));
        }
        Effect::Instance(_) => {}
        Effect::Callback(at) => {
            let function = registers.argument(*at);
            let view = &who.holder.view;
            let may = view.allows(function, 1, Access::ENTER) && function.is_multiple_of(16);
            let want = Want::Callback {
                function: &import.name,
                argument: *at,
                address: function,
            };
            if function != 0 && !may && !learn::note(core, 0, want) {
                return Err(format!(
                    "argument {at} is {function:#x}, which the module may not call"
                ));
            }
            if import.gate.is_none() && core.learning.is_none() {
                callback::look(core, policy, *at, function)?;
            }
        }
    }
    Ok(true)
}
