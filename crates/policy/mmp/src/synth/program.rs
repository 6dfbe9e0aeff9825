//! What the program does once it runs: straight lines, data accesses, calls, allocations, loans.

use super::Params;
use super::layout::{self, ALLOCATE, EXPORTS, FREE, FUNCTION_BYTES, KERNEL};
use super::random::Random;
use crate::event::{TraceEvent, TraceRequest, TraceSpan, TraceTarget};
use mullion_supervisor::{Level, Permission};
use std::collections::HashMap;

/// Bytes of an instruction, on average, of 32-bit x86 code.
const INSTRUCTION_BYTES: u64 = 4;

/// Bytes of a frame.
const FRAME_BYTES: u64 = 96;

/// The deepest nest of cross-domain calls; the paper never saw more than 64.
const MAX_DEPTH: usize = 24;

/// The sizes of objects, of which small ones are the most frequent, as in a kernel's slab allocator.
const OBJECT_BYTES: [u64; 8] = [32, 32, 64, 64, 128, 256, 512, 1536];

/// Bytes of a lent buffer: a network packet.
const LOAN_BYTES: u64 = 1536;

/// One cross-domain call that has not returned, or the thread's own beginning.
#[derive(Clone, Debug)]
struct Frame {
    domain: u32,
    /// The exported function that runs; the outermost frame has none and does not return.
    function: Option<u64>,
    /// Where the next straight line begins.
    pc: u64,
    /// The stack pointer.
    sp: u64,
    /// Where the caller goes on.
    return_address: u64,
    /// What the caller takes back when this returns.
    lent: Vec<Lent>,
    /// Memory that the caller lets this frame work on.
    buffer: Option<TraceSpan>,
}

/// What was given for the length of a call.
#[derive(Clone, Debug)]
enum Lent {
    Buffer { to: u32, span: TraceSpan },
    Stack(TraceSpan),
}

#[derive(Clone, Debug)]
struct SimThread {
    frames: Vec<Frame>,
}

/// The running program.
#[derive(Debug)]
pub(super) struct Program {
    params: Params,
    random: Random,
    events: Vec<TraceEvent>,
    threads: Vec<SimThread>,
    running: usize,
    until_switch: u64,
    /// Live objects of each domain.
    objects: HashMap<u32, Vec<TraceSpan>>,
    /// Places in the heap that are free again, by size; and the first that never was used.
    free: HashMap<u64, Vec<u64>>,
    heap: u64,
    last_data: HashMap<u32, u64>,
}

impl Program {
    pub(super) fn new(params: &Params) -> Self {
        let threads = (0..params.threads).map(|thread| {
            let stack = layout::stack(thread);
            SimThread {
                frames: vec![Frame {
                    domain: KERNEL,
                    function: None,
                    pc: layout::text(KERNEL) + FUNCTION_BYTES,
                    sp: stack.address + stack.bytes - FRAME_BYTES,
                    return_address: 0,
                    lent: Vec::new(),
                    buffer: None,
                }],
            }
        });
        Program {
            random: Random::new(params.seed),
            events: Vec::new(),
            threads: threads.collect(),
            running: 0,
            until_switch: params.switch_period,
            objects: HashMap::new(),
            free: HashMap::new(),
            heap: layout::HEAP,
            last_data: HashMap::new(),
            params: params.clone(),
        }
    }

    pub(super) fn params(&self) -> &Params {
        &self.params
    }

    pub(super) fn push(&mut self, event: TraceEvent) {
        self.events.push(event);
    }

    pub(super) fn ask(&mut self, request: TraceRequest) {
        self.events.push(TraceEvent::Supervisor(request));
    }

    pub(super) fn take_events(&mut self) -> Vec<TraceEvent> {
        std::mem::take(&mut self.events)
    }

    /// A straight line, its data, and perhaps something that comes after it.
    pub(super) fn advance(&mut self) {
        let instructions = 1 + self.random.below(10);
        self.straight_line(instructions);
        let accesses = self.params.accesses_per_instruction * instructions as f64;
        let whole = accesses as u64 + u64::from(self.random.chance(accesses.fract()));
        for _ in 0..whole {
            self.access();
        }
        let per_line = instructions as f64;
        let megacycle = |rate: f64| rate * per_line / 1e6;
        if self
            .random
            .chance(megacycle(self.params.faults_per_megacycle))
        {
            self.wild_store();
        }
        if self
            .random
            .chance(megacycle(self.params.allocations_per_megacycle))
        {
            self.allocate();
        } else if self
            .random
            .chance(megacycle(self.params.allocations_per_megacycle))
        {
            self.free();
        }
        if self
            .random
            .chance(megacycle(self.params.loans_per_megacycle))
        {
            self.lend();
        }
        if self
            .random
            .chance(megacycle(self.params.grants_per_megacycle))
        {
            self.open_stack();
        }
        self.call_or_return(per_line);
        self.until_switch = self.until_switch.saturating_sub(instructions);
        if self.until_switch == 0 {
            self.switch();
        }
    }

    fn frame(&mut self) -> &mut Frame {
        let frames = &mut self.threads[self.running].frames;
        let last = frames.len() - 1;
        &mut frames[last]
    }

    fn depth(&self) -> usize {
        self.threads[self.running].frames.len()
    }

    /// Instructions one after another, then a jump: back in the function, or far, or none.
    fn straight_line(&mut self, instructions: u64) {
        let bytes = instructions * INSTRUCTION_BYTES;
        let (domain, function, pc) = {
            let frame = self.frame();
            (frame.domain, frame.function, frame.pc)
        };
        // An exported function's own lines stay between its gates; other code is anywhere in the text.
        let home = function.map_or(pc & !(FUNCTION_BYTES - 1), |function| function);
        let limit = layout::return_of(home);
        let start = if pc + bytes > limit { home + 4 } else { pc };
        self.push(TraceEvent::Fetch {
            address: start,
            bytes: bytes as u32,
            instructions: instructions as u32,
        });
        let next = if self.random.chance(self.params.locality) {
            start + bytes
        } else if function.is_some() {
            home + 4 + self.random.below(FUNCTION_BYTES / 8) * 4
        } else {
            let functions = self.params.text / FUNCTION_BYTES;
            layout::text(domain) + self.random.hot(functions) * FUNCTION_BYTES + 4
        };
        self.frame().pc = next;
    }

    fn access(&mut self) {
        let (domain, sp, buffer) = {
            let frame = self.frame();
            (frame.domain, frame.sp, frame.buffer)
        };
        let store = self.random.chance(0.35);
        if self.random.chance(0.4) {
            let address = sp + self.random.below(FRAME_BYTES / 4) * 4;
            // The words above this frame belong to the caller: read-only after a cross-domain call.
            return self.data(address, store && address < sp + FRAME_BYTES - 8);
        }
        if domain != KERNEL && self.random.chance(self.params.sharing) {
            let object = self.random.hot(u64::from(self.params.shared_objects));
            let place = layout::shared(object);
            let offset = self.random.below(place.bytes / 4) * 4;
            return self.data(place.address + offset, false);
        }
        if let (Some(span), true) = (buffer, self.random.chance(0.5)) {
            let offset = self.random.below(span.bytes / 4) * 4;
            return self.data(span.address + offset, store);
        }
        let address = self.private(domain);
        self.data(address, store);
    }

    /// An address in a domain's own objects or static data, near the last one or not.
    fn private(&mut self, domain: u32) -> u64 {
        let last = self.last_data.get(&domain).copied();
        if let (Some(last), true) = (last, self.random.chance(self.params.locality)) {
            return (last & !63) + self.random.below(16) * 4;
        }
        let objects = self.objects.get(&domain).map_or(0, Vec::len) as u64;
        if objects > 0 && self.random.chance(0.3) {
            let chosen = self.random.hot(objects) as usize;
            let object = self.objects[&domain][chosen];
            // Objects are not remembered: they may be gone at the next access.
            return object.address + self.random.below(object.bytes / 4) * 4;
        }
        let address = layout::data(domain) + self.random.hot(self.params.working_set / 64) * 64;
        self.last_data.insert(domain, address);
        address
    }

    fn data(&mut self, address: u64, store: bool) {
        let bytes = 4;
        self.push(match store {
            true => TraceEvent::Store { address, bytes },
            false => TraceEvent::Load { address, bytes },
        });
    }

    fn wild_store(&mut self) {
        let running = self.frame().domain;
        let victim = KERNEL + 1 + self.random.below(u64::from(self.params.modules)) as u32;
        if victim == running {
            return;
        }
        let offset = self.random.below(self.params.working_set / 4) * 4;
        self.data(layout::data(victim) + offset, true);
    }

    fn call_or_return(&mut self, instructions: f64) {
        let rate = self.params.calls_per_kilocycle * instructions / 1e3;
        if self.depth() > 1 && self.random.chance(rate * 1.2) {
            return self.leave();
        }
        if self.depth() < MAX_DEPTH && self.random.chance(rate) {
            let domain = self.frame().domain;
            let target = match self.random.chance(self.params.self_calls) {
                true => domain,
                false => self.other_domain(domain),
            };
            let number = self.random.hot(EXPORTS);
            self.enter(target, number);
        }
    }

    /// Modules mostly call the kernel; the kernel calls modules.
    fn other_domain(&mut self, domain: u32) -> u32 {
        let module = KERNEL + 1 + self.random.below(u64::from(self.params.modules)) as u32;
        let to_kernel = domain != KERNEL && (module == domain || self.random.chance(0.8));
        if to_kernel { KERNEL } else { module }
    }

    /// A call through a gate: the return address is pushed, the target is entered.
    fn enter(&mut self, target: u32, number: u64) {
        let function = layout::export(target, number, self.params.text);
        let (pc, sp) = {
            let frame = self.frame();
            (frame.pc, frame.sp)
        };
        let call_bytes = 5;
        self.push(TraceEvent::Fetch {
            address: pc & !3,
            bytes: call_bytes,
            instructions: 1,
        });
        let return_address = (pc & !3) + u64::from(call_bytes);
        let stack = sp - 4;
        self.data(stack, true);
        self.push(TraceEvent::Call {
            target: function,
            return_address,
            stack,
        });
        self.frame().pc = (pc & !3) + 8;
        self.threads[self.running].frames.push(Frame {
            domain: target,
            function: Some(function),
            pc: function,
            sp: stack - FRAME_BYTES,
            return_address,
            lent: Vec::new(),
            buffer: None,
        });
    }

    /// The return instruction at the function's end, and what the caller takes back.
    fn leave(&mut self) {
        let Some(frame) = self.threads[self.running].frames.pop() else {
            return;
        };
        let Some(function) = frame.function else {
            self.threads[self.running].frames.push(frame);
            return;
        };
        let at = layout::return_of(function);
        self.push(TraceEvent::Fetch {
            address: at,
            bytes: 1,
            instructions: 1,
        });
        self.data(frame.sp + FRAME_BYTES, false);
        self.push(TraceEvent::Return {
            at,
            target: frame.return_address,
        });
        for lent in frame.lent {
            match lent {
                Lent::Buffer { to, span } => {
                    self.ask(TraceRequest::MprotExport {
                        to: TraceTarget::Domain(to),
                        span,
                        permission: Permission::None,
                        export: Level::None,
                    });
                    self.give_back(span);
                }
                Lent::Stack(span) => self.ask(TraceRequest::StackGrant {
                    span,
                    writable: false,
                }),
            }
        }
    }

    /// The running domain calls the allocator, which picks a place and tells the supervisor.
    fn allocate(&mut self) {
        let domain = self.frame().domain;
        if domain == KERNEL || self.depth() >= MAX_DEPTH {
            return;
        }
        let bytes = OBJECT_BYTES[self.random.below(OBJECT_BYTES.len() as u64) as usize];
        let Some(span) = self.place(bytes) else {
            return;
        };
        self.enter(KERNEL, ALLOCATE);
        self.straight_line(20);
        self.ask(TraceRequest::PermAlloc { span });
        self.leave();
        self.objects.entry(domain).or_default().push(span);
    }

    fn free(&mut self) {
        let domain = self.frame().domain;
        let count = self.objects.get(&domain).map_or(0, Vec::len) as u64;
        if count == 0 || self.depth() >= MAX_DEPTH {
            return;
        }
        let chosen = self.random.below(count) as usize;
        let objects = self.objects.entry(domain).or_default();
        let span = objects.swap_remove(chosen);
        self.enter(KERNEL, FREE);
        self.straight_line(20);
        self.ask(TraceRequest::PermFree { span });
        self.leave();
        self.give_back(span);
    }

    /// The kernel lends a buffer to a module for the length of a call.
    fn lend(&mut self) {
        if self.frame().domain != KERNEL || self.depth() >= MAX_DEPTH {
            return;
        }
        let Some(span) = self.place(LOAN_BYTES) else {
            return;
        };
        let to = KERNEL + 1 + self.random.below(u64::from(self.params.modules)) as u32;
        self.ask(TraceRequest::MprotExport {
            to: TraceTarget::Domain(to),
            span,
            permission: Permission::ReadWrite,
            export: Level::None,
        });
        let number = self.random.hot(EXPORTS);
        self.enter(to, number);
        let frame = self.frame();
        frame.lent.push(Lent::Buffer { to, span });
        frame.buffer = Some(span);
    }

    /// The running domain opens a few words of its frame to what it calls.
    fn open_stack(&mut self) {
        if self.depth() >= MAX_DEPTH {
            return;
        }
        let (domain, sp) = {
            let frame = self.frame();
            (frame.domain, frame.sp)
        };
        let span = TraceSpan {
            address: sp + 16,
            bytes: 32,
        };
        self.ask(TraceRequest::StackGrant {
            span,
            writable: true,
        });
        let target = self.other_domain(domain);
        let number = self.random.hot(EXPORTS);
        self.enter(target, number);
        let frame = self.frame();
        frame.lent.push(Lent::Stack(span));
        frame.buffer = Some(span);
    }

    fn switch(&mut self) {
        self.until_switch = self.params.switch_period;
        if self.params.idle > 0 {
            self.push(TraceEvent::Idle {
                cycles: self.params.idle,
            });
        }
        if self.threads.len() > 1 {
            self.running = (self.running + 1) % self.threads.len();
            let thread = self.running as u32;
            self.push(TraceEvent::Switch { thread });
        }
    }

    /// A free place in the heap; none if it is full.
    fn place(&mut self, bytes: u64) -> Option<TraceSpan> {
        let old = self.free.get_mut(&bytes).and_then(Vec::pop);
        let address = match old {
            Some(address) => address,
            None if self.heap + bytes <= layout::HEAP + layout::HEAP_BYTES => {
                let address = self.heap;
                self.heap += bytes;
                address
            }
            None => return None,
        };
        Some(TraceSpan { address, bytes })
    }

    fn give_back(&mut self, span: TraceSpan) {
        self.free.entry(span.bytes).or_default().push(span.address);
    }
}
