//! One event as bytes.
//!
//! The low three bits of the first byte are the kind, the high five a small operand. Numbers are
//! little-endian base 128; differences are zigzag-coded first. Differences restart with each block.

use super::event::{
    MAX_ACCESS_BYTES, MAX_FETCH_BYTES, TraceEvent, TraceRequest, TraceSpan, TraceTarget,
};
use mullion_supervisor::{DomainId, Level, Permission};

const FETCH: u8 = 0;
const LOAD: u8 = 1;
const STORE: u8 = 2;
const CALL: u8 = 3;
const RETURN: u8 = 4;
const SWITCH: u8 = 5;
const IDLE: u8 = 6;
const SUPERVISOR: u8 = 7;

/// What differences are taken against.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Context {
    /// The address behind the last fetch.
    next: u64,
    /// The last data address.
    data: u64,
    /// The last stack pointer of a call.
    stack: u64,
}

/// Appends an event.
pub(super) fn encode(out: &mut Vec<u8>, context: &mut Context, event: &TraceEvent) {
    match *event {
        TraceEvent::Fetch {
            address,
            bytes,
            instructions,
        } => {
            let small = if instructions < 32 {
                instructions as u8
            } else {
                0
            };
            out.push(FETCH | small << 3);
            if small == 0 {
                number(out, u64::from(instructions));
            }
            difference(out, &mut context.next, address);
            number(out, u64::from(bytes));
            context.next = address + u64::from(bytes);
        }
        TraceEvent::Load { address, bytes } => data(out, context, LOAD, address, bytes),
        TraceEvent::Store { address, bytes } => data(out, context, STORE, address, bytes),
        TraceEvent::Call {
            target,
            return_address,
            stack,
        } => {
            out.push(CALL);
            let mut next = context.next;
            difference(out, &mut next, return_address);
            difference(out, &mut context.next, target);
            difference(out, &mut context.stack, stack);
        }
        TraceEvent::Return { at, target } => {
            out.push(RETURN);
            let mut next = context.next;
            difference(out, &mut next, at);
            difference(out, &mut context.next, target);
        }
        TraceEvent::Switch { thread } => {
            out.push(SWITCH);
            number(out, u64::from(thread));
        }
        TraceEvent::Idle { cycles } => {
            out.push(IDLE);
            number(out, cycles);
        }
        TraceEvent::Supervisor(request) => supervisor(out, &request),
    }
}

fn data(out: &mut Vec<u8>, context: &mut Context, kind: u8, address: u64, bytes: u32) {
    // Operand 0 to 6: a power of two; 31: a number follows.
    let small = if bytes.is_power_of_two() {
        bytes.ilog2() as u8
    } else {
        31
    };
    out.push(kind | small << 3);
    if small == 31 {
        number(out, u64::from(bytes));
    }
    difference(out, &mut context.data, address);
}

fn supervisor(out: &mut Vec<u8>, request: &TraceRequest) {
    out.push(SUPERVISOR | request_kind(request) << 3);
    match *request {
        TraceRequest::Mprot { span, permission } => {
            put_span(out, span);
            put_permission(out, permission);
        }
        TraceRequest::MprotExport {
            to,
            span,
            permission,
            export,
        } => {
            match to {
                TraceTarget::Domain(domain) => number(out, u64::from(domain) << 1),
                TraceTarget::Group(group) => number(out, u64::from(group) << 1 | 1),
            }
            put_span(out, span);
            put_permission(out, permission);
            out.push(export as u8);
        }
        TraceRequest::Subdivide {
            child,
            span,
            permission,
        } => {
            number(out, u64::from(child));
            put_span(out, span);
            put_permission(out, permission);
        }
        TraceRequest::PermAlloc { span } | TraceRequest::PermFree { span } => put_span(out, span),
        TraceRequest::Chown { to, span } => {
            number(out, u64::from(to));
            put_span(out, span);
        }
        TraceRequest::FreeDomain { domain: one }
        | TraceRequest::CreateGroup { group: one }
        | TraceRequest::FreeGroup { group: one }
        | TraceRequest::JoinGroup { group: one }
        | TraceRequest::LeaveGroup { group: one }
        | TraceRequest::EndThread { thread: one } => number(out, u64::from(one)),
        TraceRequest::CreateThread {
            thread,
            domain,
            stack,
        } => {
            number(out, u64::from(thread));
            number(out, u64::from(domain));
            put_span(out, stack);
        }
        TraceRequest::StackGrant { span, writable } => {
            put_span(out, span);
            out.push(u8::from(writable));
        }
    }
}

/// The number of a request in the file.
const fn request_kind(request: &TraceRequest) -> u8 {
    match request {
        TraceRequest::Mprot { .. } => 0,
        TraceRequest::MprotExport { .. } => 1,
        TraceRequest::Subdivide { .. } => 2,
        TraceRequest::FreeDomain { .. } => 3,
        TraceRequest::PermAlloc { .. } => 4,
        TraceRequest::PermFree { .. } => 5,
        TraceRequest::Chown { .. } => 6,
        TraceRequest::CreateGroup { .. } => 7,
        TraceRequest::FreeGroup { .. } => 8,
        TraceRequest::JoinGroup { .. } => 9,
        TraceRequest::LeaveGroup { .. } => 10,
        TraceRequest::CreateThread { .. } => 11,
        TraceRequest::EndThread { .. } => 12,
        TraceRequest::StackGrant { .. } => 13,
    }
}

fn put_span(out: &mut Vec<u8>, span: TraceSpan) {
    number(out, span.address);
    number(out, span.bytes);
}

fn put_permission(out: &mut Vec<u8>, permission: Permission) {
    match permission {
        Permission::None => out.push(0),
        Permission::Read => out.push(1),
        Permission::ReadWrite => out.push(2),
        Permission::ExecuteRead => out.push(3),
        Permission::SwitchGate { to } => {
            out.push(4);
            number(out, u64::from(to.get()));
        }
        Permission::ReturnGate => out.push(5),
    }
}

fn number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn difference(out: &mut Vec<u8>, last: &mut u64, value: u64) {
    let delta = value.wrapping_sub(*last) as i64;
    number(out, (delta << 1 ^ delta >> 63) as u64);
    *last = value;
}

/// What is wrong with the bytes of an event.
pub(super) type What = &'static str;

/// Reads events from the bytes of a block.
#[derive(Clone, Debug)]
pub(super) struct Decoder<'a> {
    bytes: &'a [u8],
    at: usize,
    context: Context,
    /// No address may have a bit above these.
    address_mask: u64,
}

impl<'a> Decoder<'a> {
    pub(super) fn new(bytes: &'a [u8], address_bits: u32) -> Self {
        Decoder {
            bytes,
            at: 0,
            context: Context::default(),
            address_mask: (1 << address_bits) - 1,
        }
    }

    /// Where the next event begins.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// The next event. Only to be asked for while there should be one.
    #[inline]
    pub(super) fn event(&mut self) -> Result<TraceEvent, What> {
        let head = self.byte()?;
        let operand = head >> 3;
        match head & 7 {
            FETCH => self.fetch(operand),
            LOAD => {
                let (address, bytes) = self.data(operand)?;
                Ok(TraceEvent::Load { address, bytes })
            }
            STORE => {
                let (address, bytes) = self.data(operand)?;
                Ok(TraceEvent::Store { address, bytes })
            }
            other => self.rare(other, operand),
        }
    }

    #[inline]
    fn fetch(&mut self, operand: u8) -> Result<TraceEvent, What> {
        let instructions = match operand {
            0 => self.number32()?,
            small => u32::from(small),
        };
        let address = self.difference(self.context.next)?;
        let bytes = self.number32()?;
        if bytes == 0 || bytes > MAX_FETCH_BYTES || instructions == 0 || instructions > bytes {
            return Err("a straight line of impossible length");
        }
        self.context.next = self.inside(address, bytes)?;
        Ok(TraceEvent::Fetch {
            address,
            bytes,
            instructions,
        })
    }

    #[inline]
    fn data(&mut self, operand: u8) -> Result<(u64, u32), What> {
        let bytes = match operand {
            0..=6 => 1 << operand,
            31 => self.number32()?,
            _ => return Err("an access of unknown size"),
        };
        if bytes == 0 || bytes > MAX_ACCESS_BYTES {
            return Err("an access of impossible size");
        }
        let address = self.difference(self.context.data)?;
        self.inside(address, bytes)?;
        self.context.data = address;
        Ok((address, bytes))
    }

    #[inline(never)]
    fn rare(&mut self, kind: u8, operand: u8) -> Result<TraceEvent, What> {
        if kind != SUPERVISOR && operand != 0 {
            return Err("an operand where none belongs");
        }
        match kind {
            CALL => {
                let return_address = self.difference(self.context.next)?;
                let target = self.difference(self.context.next)?;
                let stack = self.difference(self.context.stack)?;
                self.inside(return_address, 0)?;
                self.inside(target, 1)?;
                self.inside(stack, 0)?;
                self.context.next = target;
                self.context.stack = stack;
                Ok(TraceEvent::Call {
                    target,
                    return_address,
                    stack,
                })
            }
            RETURN => {
                let at = self.difference(self.context.next)?;
                let target = self.difference(self.context.next)?;
                self.inside(at, 1)?;
                self.inside(target, 1)?;
                self.context.next = target;
                Ok(TraceEvent::Return { at, target })
            }
            SWITCH => Ok(TraceEvent::Switch {
                thread: self.number32()?,
            }),
            IDLE => Ok(TraceEvent::Idle {
                cycles: self.number()?,
            }),
            _ => Ok(TraceEvent::Supervisor(self.request(operand)?)),
        }
    }

    fn request(&mut self, kind: u8) -> Result<TraceRequest, What> {
        Ok(match kind {
            0 => TraceRequest::Mprot {
                span: self.span()?,
                permission: self.permission()?,
            },
            1 => TraceRequest::MprotExport {
                to: self.target()?,
                span: self.span()?,
                permission: self.permission()?,
                export: self.level()?,
            },
            2 => TraceRequest::Subdivide {
                child: self.number32()?,
                span: self.span()?,
                permission: self.permission()?,
            },
            3 => TraceRequest::FreeDomain {
                domain: self.number32()?,
            },
            4 => TraceRequest::PermAlloc { span: self.span()? },
            5 => TraceRequest::PermFree { span: self.span()? },
            6 => TraceRequest::Chown {
                to: self.number32()?,
                span: self.span()?,
            },
            7 => TraceRequest::CreateGroup {
                group: self.number32()?,
            },
            8 => TraceRequest::FreeGroup {
                group: self.number32()?,
            },
            9 => TraceRequest::JoinGroup {
                group: self.number32()?,
            },
            10 => TraceRequest::LeaveGroup {
                group: self.number32()?,
            },
            11 => TraceRequest::CreateThread {
                thread: self.number32()?,
                domain: self.number32()?,
                stack: self.span()?,
            },
            12 => TraceRequest::EndThread {
                thread: self.number32()?,
            },
            13 => TraceRequest::StackGrant {
                span: self.span()?,
                writable: match self.byte()? {
                    0 => false,
                    1 => true,
                    _ => return Err("a flag that is neither 0 nor 1"),
                },
            },
            _ => return Err("an unknown call to the supervisor"),
        })
    }

    fn target(&mut self) -> Result<TraceTarget, What> {
        let coded = self.number()?;
        let number = u32::try_from(coded >> 1).map_err(|_| "a number of more than 32 bits")?;
        Ok(match coded & 1 {
            0 => TraceTarget::Domain(number),
            _ => TraceTarget::Group(number),
        })
    }

    fn level(&mut self) -> Result<Level, What> {
        Ok(match self.byte()? {
            0 => Level::None,
            1 => Level::Read,
            2 => Level::Full,
            _ => return Err("an unknown level"),
        })
    }

    fn span(&mut self) -> Result<TraceSpan, What> {
        Ok(TraceSpan {
            address: self.number()?,
            bytes: self.number()?,
        })
    }

    fn permission(&mut self) -> Result<Permission, What> {
        Ok(match self.byte()? {
            0 => Permission::None,
            1 => Permission::Read,
            2 => Permission::ReadWrite,
            3 => Permission::ExecuteRead,
            4 => Permission::SwitchGate {
                to: DomainId::new(self.number32()?),
            },
            5 => Permission::ReturnGate,
            _ => return Err("an unknown permission"),
        })
    }

    /// The end of some bytes, if they lie in the address space.
    #[inline]
    fn inside(&self, address: u64, bytes: u32) -> Result<u64, What> {
        let end = address.wrapping_add(u64::from(bytes));
        if address > self.address_mask || end > self.address_mask + 1 {
            return Err("an address beyond the address space of the trace");
        }
        Ok(end)
    }

    #[inline]
    fn byte(&mut self) -> Result<u8, What> {
        let byte = *self.bytes.get(self.at).ok_or("the block ends within it")?;
        self.at += 1;
        Ok(byte)
    }

    #[inline]
    fn number(&mut self) -> Result<u64, What> {
        let first = self.byte()?;
        if first < 0x80 {
            return Ok(u64::from(first));
        }
        let mut value = u64::from(first & 0x7f);
        let mut shift = 7;
        loop {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift > 63 || bits << shift >> shift != bits {
                return Err("a number of more than 64 bits");
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
            shift += 7;
        }
    }

    #[inline]
    fn number32(&mut self) -> Result<u32, What> {
        u32::try_from(self.number()?).map_err(|_| "a number of more than 32 bits")
    }

    #[inline]
    fn difference(&mut self, last: u64) -> Result<u64, What> {
        let coded = self.number()?;
        let delta = (coded >> 1) as i64 ^ -((coded & 1) as i64);
        Ok(last.wrapping_add(delta as u64))
    }
}
