//! Calls that are not just gone through with: first calls of threads, policies, limits, refusals.

use crate::core::{Core, Held};
use crate::fault;
use crate::gates::{self, Import, Inner, Registers, Seat, here, state};
use crate::keep::Granted;
use crate::learn;
use crate::memory::lock;
use crate::note::Want;
use crate::policy::{Effect, FunctionPolicy, Size};
use crate::report::FaultKind;
use crate::rights::{self, GrantError, Wanted, words};
use crate::thread::{self, Words};
use crate::watchdog;
use crate::world::world;
use mullion_supervisor::{Holding, Permission};
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
    fn argument(&self, at: u8) -> u64 {
        self.integers.get(usize::from(at)).copied().unwrap_or(0)
    }

    fn bytes(&self, size: Size) -> Option<u64> {
        match size {
            Size::Bytes(bytes) => Some(bytes),
            Size::Argument(at) => Some(self.argument(at)),
            Size::Product(a, b) => self.argument(a).checked_mul(self.argument(b)),
            Size::Text => None,
        }
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
    // SAFETY: gates give a domain, which lives for ever, and their own frame's registers.
    let (core, registers) = unsafe { ((*inner).core(), &mut *registers) };
    // SAFETY: as above, or null.
    let from = unsafe { from.as_ref().map(Inner::core) };
    if core.is_ended() {
        return registers.refuse(core, body, None);
    }
    let seat = match thread::known_seat(core).map_or_else(|| thread::seat(core), Ok) {
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
    let depth = unsafe { &(*seat).depth };
    let before = depth.load(Ordering::Relaxed);
    depth.store(before + 1, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
    core.keep.enter(core, seat);
    match core.is_ended() {
        true => registers.refuse(core, body, None),
        false => match enter_by_policy(core, body, registers, seat, from) {
            Ok(()) => {}
            Err(what) => registers.refuse(core, body, Some((FaultKind::Policy, what))),
        },
    }
    depth.store(before, Ordering::Relaxed);
    if before == 0 {
        core.keep.leave(core, seat);
    }
}

fn enter_by_policy(
    core: &'static Core,
    body: u64,
    registers: &mut Registers,
    seat: *mut Seat,
    from: Option<&'static Core>,
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
    let Some(policy) = (unsafe { known.policy.cast::<FunctionPolicy>().as_ref() }) else {
        let none = Wanted::default();
        return enter_granted(core, body, None, registers, seat, (from, &none, outermost));
    };
    let wanted = grant_arguments(core, body, policy, registers, from)?;
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
    (from, wanted, outermost): (Option<&'static Core>, &Wanted, bool),
) -> Result<(), String> {
    // SAFETY: the seat is the thread's in this domain, and its depth was counted.
    let granted = unsafe { core.keep.grant(core, seat, wanted, outermost) };
    let granted = granted.map_err(|error| error.to_string())?;
    if let (Granted::Kept, None, Some(policy)) = (&granted, from, policy) {
        // SAFETY: the seat is the thread's own.
        remember(unsafe { &mut *seat }, body, policy, registers);
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
    granted.end();
    invoked
}

/// The next call may repeat this one without coming here, if the policy says no more than what is granted for it.
fn remember(seat: &mut Seat, body: u64, policy: &FunctionPolicy, registers: &Registers) {
    seat.repeated = 0;
    seat.masks = [0; 6];
    for effect in &policy.effects {
        let (Effect::In(at, size) | Effect::Out(at, size) | Effect::InOut(at, size)) = *effect
        else {
            return;
        };
        let sizes = match size {
            Size::Argument(a) => [a, a],
            Size::Product(a, b) => [a, b],
            Size::Bytes(_) | Size::Text => [at, at],
        };
        for used in [at, sizes[0], sizes[1]] {
            if let Some(mask) = seat.masks.get_mut(usize::from(used)) {
                *mask = u64::MAX;
            }
        }
    }
    if policy.stacked == 0 {
        (seat.arguments, seat.repeated) = (registers.integers, body);
    }
}

/// What the callee gets for the length of the call. What it gets for good, it has when this returns.
fn grant_arguments(
    core: &'static Core,
    body: u64,
    policy: &FunctionPolicy,
    registers: &Registers,
    from: Option<&'static Core>,
) -> Result<Wanted, String> {
    let mut wanted = Wanted::default();
    for effect in &policy.effects {
        let (argument, size, permission, stays) = match *effect {
            Effect::In(at, size) => (at, size, Permission::Read, false),
            Effect::Out(at, size) | Effect::InOut(at, size) => {
                (at, size, Permission::ReadWrite, false)
            }
            Effect::Takes(at, size) => (at, size, Permission::ReadWrite, true),
            Effect::Callback(_) | Effect::Gives(_) | Effect::Frees(_) | Effect::Moves(..) => {
                continue;
            }
        };
        let (address, bytes) = (registers.argument(argument), registers.bytes(size));
        let bytes = bytes.ok_or_else(|| format!("argument {argument} has no size"))?;
        if address == 0 || bytes == 0 {
            continue;
        }
        // A module cannot give what it does not have.
        if let Some(caller) = from {
            let export = core.module.function_at(body.wrapping_sub(core.base));
            let export = export.map_or("", |(name, _)| name);
            check(caller, address, bytes, access(permission))
                .or_else(|wrong| wrong.judge(caller, export, argument))?;
        }
        let block = match from.filter(|_| stays) {
            Some(caller) => hand_over(caller, argument, address, bytes)?,
            None => None,
        };
        let bytes = block.map_or(bytes, |block| block.bytes);
        let range = words(address, bytes).map_err(|error| error.to_string())?;
        if !stays {
            if !wanted.add(range, permission == Permission::ReadWrite) {
                return Err("it has more pieces of memory than a policy can have".to_owned());
            }
            continue;
        }
        let mut supervisor = world().supervisor();
        rights::raise_for_good(&mut supervisor, core, range, permission)
            .map_err(|error| error.to_string())?;
        drop(supervisor);
        if let Some(block) = block {
            lock(&core.held).insert(address, block);
        }
    }
    Ok(wanted)
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
    from: Option<&'static Core>,
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
fn read_stacked(count: u8, at: u64, from: Option<&'static Core>) -> Result<Stacked, String> {
    let mut arguments = [0; 16];
    let mut count = usize::from(count).min(arguments.len());
    if let Some(caller) = from {
        let seat = thread::seat(caller).map_err(|error| error.to_string())?;
        // SAFETY: the seat is the thread's own.
        let low = unsafe { (*seat).low };
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
    from: Option<&'static Core>,
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
    from: Option<&'static Core>,
) -> Result<(), String> {
    let changes =
        |core: &Core| core.inner.state.load(Ordering::Relaxed) & state::CONTROL_WORDS != 0;
    let theirs = from.is_some_and(changes);
    let mut words = None;
    if theirs || changes(core) {
        let thread = thread::this().map_err(|error| error.to_string())?;
        let before = (Words::now(), thread.words);
        // The callee begins with the host's, whatever the caller has made of them.
        match theirs {
            true => thread.words.load(),
            false => thread.words = before.0,
        }
        words = Some(before);
    }
    let timed = core.limits.time.map(watchdog::begin);
    // SAFETY: the seat is this thread's, there is room, and the host runs.
    unsafe { gates::mullion_word_invoke(&raw const core.inner, body, registers, seat) };
    if let Some(timed) = timed {
        watchdog::end(timed);
    }
    if let Some((now, before)) = words {
        now.load();
        if let Ok(thread) = thread::this() {
            thread.words = before;
        }
    }
    Ok(())
}

/// A right that a module does not have.
struct Lacks {
    address: u64,
    bytes: u64,
    right: Access,
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
                "argument {argument} is {bytes} bytes at {address:#x}, and the module has no {right:?} there"
            )),
        }
    }
}

fn check(core: &Core, address: u64, bytes: u64, right: Access) -> Result<(), Lacks> {
    match core.view.allows(address, bytes, right) {
        true => Ok(()),
        false => Err(Lacks {
            address,
            bytes,
            right,
        }),
    }
}

/// Out of a domain, from gates.s. The thread is the host's, and on the host's stack.
// SAFETY: no other symbol has this name.
#[unsafe(export_name = "mullion_word_leave_slowly")]
pub(crate) extern "C" fn leave_slowly(import: *const Import, registers: *mut Registers) {
    // SAFETY: gates give an import, which lives for ever, and their own frame's registers. The newest frame is the
    // caller's.
    let (import, registers, core) = unsafe {
        let seat = (*(*here()).frame).seat;
        (&*import, &mut *registers, (*(*seat).inner).core())
    };
    let changes = core.inner.state.load(Ordering::Relaxed) & state::CONTROL_WORDS != 0;
    let words = changes.then(Words::now);
    if words.is_some()
        && let Ok(thread) = thread::this()
    {
        thread.words.load();
    }
    let none = FunctionPolicy::default();
    let outcome = match &import.policy {
        _ if import.target == 0 => Err("the host does not offer it".to_owned()),
        _ if import.is_learned => {
            leave_learning(core, import, registers);
            Ok(())
        }
        policy => leave_by_policy(core, import, policy.as_ref().unwrap_or(&none), registers),
    };
    if let Some(words) = words {
        words.load();
    }
    if let Err(what) = outcome {
        registers.answer(0, 0.0);
        // The trap behind the return takes the frame down.
        if let Ok(thread) = thread::this() {
            thread.refusal = Some(format!("{}: {what}", import.name));
        }
        // SAFETY: it is the thread's own.
        unsafe { (*here()).pending.store(1, Ordering::Relaxed) };
    }
}

/// A function that is not offered: told, and called with whatever lies on the stack.
fn leave_learning(core: &'static Core, import: &Import, registers: &mut Registers) {
    // SAFETY: the gate has pushed two registers on top of the return address, on the thread's own control stack.
    let from = unsafe { (((*here()).control + 16) as *const u64).read() }.wrapping_sub(1);
    let want = Want::Call {
        function: &import.name,
        address: import.target,
        arguments: registers.integers,
    };
    learn::note(core, from, want);
    let end = (registers.stacked & !(STACK_REGION - 1)) + STACK_REGION - STACK_MARGIN;
    let room = end.saturating_sub(registers.stacked) / 8;
    let count = room.min(16) as u8;
    let stacked = read_stacked(count, registers.stacked, Some(core)).unwrap_or([0; 16]);
    // SAFETY: the host bears what a learning module does.
    unsafe { gates::mullion_word_call_host(import.target, registers, stacked.as_ptr(), 16) };
}

fn leave_by_policy(
    core: &'static Core,
    import: &Import,
    policy: &FunctionPolicy,
    registers: &mut Registers,
) -> Result<(), String> {
    let mut moved = None;
    for effect in &policy.effects {
        if !before_call(
            core,
            import,
            *effect,
            policy.allocator,
            registers,
            &mut moved,
        )? {
            registers.answer(0, 0.0);
            return Ok(());
        }
    }
    let given = policy.effects.iter().find_map(|effect| match *effect {
        Effect::Gives(size) | Effect::Moves(_, size) => registers.bytes(size),
        _ => None,
    });
    let stacked = match policy.stacked {
        0 => [0; 16],
        count => read_stacked(count, registers.stacked, Some(core))?,
    };
    // SAFETY: the host offers this function, with what its policy has checked.
    unsafe {
        let count = policy.stacked.into();
        gates::mullion_word_call_host(import.target, registers, stacked.as_ptr(), count);
    }
    let result = registers.integers[0];
    match (given, moved) {
        (Some(bytes), _) if result != 0 => {
            give(core, result, bytes, policy.allocator).map_err(|e| e.to_string())
        }
        // It was not moved: the module has it as before.
        (Some(bytes), Some((address, held))) if bytes != 0 => {
            give(core, address, held, policy.allocator).map_err(|e| e.to_string())
        }
        _ => Ok(()),
    }
}

/// Whether the call is to be made; if not, it answers 0.
fn before_call(
    core: &'static Core,
    import: &Import,
    effect: Effect,
    allocator: &str,
    registers: &Registers,
    moved: &mut Option<(u64, u64)>,
) -> Result<bool, String> {
    let demand = |argument: u8, size, right| {
        let address = registers.argument(argument);
        match (address, registers.bytes(size)) {
            (0, _) | (_, Some(0)) => Ok(()),
            (address, Some(bytes)) => check(core, address, bytes, right),
            (address, None) if size == Size::Text && right == Access::READ => {
                check_text(core, address)
            }
            // A product that overflows.
            (address, None) => Err(Lacks {
                address,
                bytes: u64::MAX,
                right,
            }),
        }
        .or_else(|lacks: Lacks| lacks.judge(core, &import.name, argument))
    };
    match effect {
        Effect::In(at, size) => demand(at, size, Access::READ)?,
        Effect::Out(at, size) | Effect::InOut(at, size) => demand(at, size, Access::READ_WRITE)?,
        Effect::Takes(at, size) => {
            demand(at, size, Access::READ_WRITE)?;
            let (address, bytes) = (registers.argument(at), registers.bytes(size).unwrap_or(0));
            if address != 0 && bytes != 0 {
                hand_over(core, at, address, bytes)?;
            }
        }
        Effect::Gives(size) => return Ok(has_room(core, registers.bytes(size))),
        Effect::Frees(at) => {
            free(core, import, registers.argument(at), allocator)?;
        }
        Effect::Moves(at, size) => {
            if !has_room(core, registers.bytes(size)) {
                return Ok(false);
            }
            let address = registers.argument(at);
            *moved = free(core, import, address, allocator)?.map(|held| (address, held.bytes));
        }
        Effect::Callback(at) => {
            let function = registers.argument(at);
            let may = core.view.allows(function, 1, Access::ENTER) && function.is_multiple_of(16);
            let want = Want::Callback {
                function: &import.name,
                argument: at,
                address: function,
            };
            if function != 0 && !may && !learn::note(core, 0, want) {
                return Err(format!(
                    "argument {at} is {function:#x}, which the module may not call"
                ));
            }
        }
    }
    Ok(true)
}

/// A string that the module may read up to its end.
fn check_text(core: &Core, start: u64) -> Result<(), Lacks> {
    let mut at = start;
    loop {
        check(core, at, 1, Access::READ)?;
        // SAFETY: the module may read the word, so there is memory; whoever granted it keeps it there.
        if unsafe { (at as *const u8).read_volatile() } == 0 {
            return Ok(());
        }
        at += 1;
    }
}

/// A block costs so many bytes besides its own: the allocator's, and our record of it. Without them blocks of no
/// bytes would have no limit.
const BLOCK: u64 = 64;

fn has_room(core: &Core, bytes: Option<u64>) -> bool {
    let used: u64 = lock(&core.held)
        .values()
        .map(|held| held.bytes + BLOCK)
        .sum();
    let left = core.limits.memory.saturating_sub(used);
    bytes.is_some_and(|bytes| bytes.saturating_add(BLOCK) <= left)
}

fn give(core: &Core, address: u64, bytes: u64, allocator: &'static str) -> Result<(), GrantError> {
    if bytes == 0 {
        lock(&core.held).insert(address, Held { bytes, allocator });
        return Ok(());
    }
    let range = words(address, bytes)?;
    rights::raise_for_good(
        &mut world().supervisor(),
        core,
        range,
        Permission::ReadWrite,
    )?;
    lock(&core.held).insert(address, Held { bytes, allocator });
    Ok(())
}

/// A block that was given goes back; which it was. Null is nothing.
fn free(
    core: &'static Core,
    import: &Import,
    address: u64,
    allocator: &str,
) -> Result<Option<Held>, String> {
    if address == 0 {
        return Ok(None);
    }
    let mut all = lock(&core.held);
    let held = match all.get(&address) {
        Some(held) if held.allocator == allocator => *held,
        Some(_) => return Err(format!("{address:#x} is a block of another allocator")),
        None => {
            drop(all);
            let want = Want::Free {
                function: &import.name,
                address,
            };
            if learn::note(core, 0, want) {
                return Ok(None);
            }
            let none = "is no block that was given to the module";
            return Err(format!("{address:#x} {none}"));
        }
    };
    all.remove(&address);
    drop(all);
    take_away(core, address, held.bytes);
    Ok(Some(held))
}

/// Memory that a module gives away for good: it has nothing there from then on. What it could not lose, it cannot
/// give: its own data and stacks, which it reaches without a check, and a part of a block, which it could free.
fn hand_over(core: &Core, argument: u8, address: u64, bytes: u64) -> Result<Option<Held>, String> {
    let mut all = lock(&core.held);
    let end = address.saturating_add(bytes);
    let touches = |(at, held): (&u64, &Held)| *at < end && address < at + held.bytes;
    let block = match all.get(&address) {
        Some(block) if bytes <= block.bytes => Some(*block),
        None if !all.iter().any(touches) => None,
        _ => return Err(format!("argument {argument} is not one whole block")),
    };
    if block.is_none() {
        let range = words(address, bytes).map_err(|error| error.to_string())?;
        let owns = |(_, holding): (_, &Holding)| holding.owner == core.id;
        let stacks = &world().stacks;
        if world().supervisor().regions(range).any(owns)
            || stacks.is_near(address)
            || stacks.is_near(end - 1)
        {
            return Err(format!("argument {argument} is the module's own memory"));
        }
    }
    all.remove(&address);
    drop(all);
    take_away(core, address, block.map_or(bytes, |block| block.bytes));
    Ok(block)
}

/// Takes memory of the host away from a domain, on all threads.
pub(crate) fn take_away(core: &Core, address: u64, bytes: u64) {
    if bytes != 0
        && let Ok(range) = words(address, bytes)
    {
        let _gone = rights::take_away(&mut world().supervisor(), core, range);
    }
}
