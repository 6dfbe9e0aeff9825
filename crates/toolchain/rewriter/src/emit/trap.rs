//! Checks of the protection `trap`: an access outside of the window ends in a trap.

use super::access::{suits_register_form, write_operand};
use super::facts::Address;
use super::label::AccessTrap;
use super::{Emitter, put};
use crate::operand::{Gpr, Mem, Operand, Segment, number};
use crate::refusal::Reason;
use crate::unit::Position;
use mullion_abi::Protection;
use std::borrow::Cow;
use std::fmt::Write;

impl<'u> Emitter<'u> {
    /// Trap mode: stops the program if the address is outside of the window.
    pub(super) fn trap_check(
        &mut self,
        position: Position,
        mem: &Mem<'u>,
        delta: i64,
    ) -> Result<(), Reason> {
        if self.word().is_some()
            || self.options.protection != Protection::Trap
            || mem.segment == Some(Segment::Fs)
            || mem.rip
        {
            return Ok(());
        }
        let on_stack = mem.base.is_some_and(|b| b.number == number::RSP);
        if (on_stack && mem.index.is_none() && mem.number().is_some())
            || self.frame_displacement(position, mem, delta).is_some()
        {
            return Ok(());
        }
        let known = Address::of(mem);
        if known.is_some_and(|address| self.facts.is_inside(address)) {
            return Ok(());
        }
        let base = suits_register_form(&self.unit.instructions[position], mem);
        let mut address = String::new();
        if on_stack {
            let disp = mem.number().ok_or(Reason::StackPointer)?;
            let (registers, disp) = self.plain_address(mem, disp, delta);
            let _ = write!(address, "{disp}{registers}");
        } else {
            write_operand(&mut address, &Operand::Mem(*mem));
        }
        self.stats.trap_checks += 1;
        self.probe();
        let flags = self.flags_wanted_before(position);
        if flags {
            self.save_flags(delta);
        }
        let trap = self.trap_of(position, "ud1\t%ecx, %eax");
        match base {
            Some(base) => {
                put!(self, "movl\t{}, %r11d", Gpr::new(base, 4));
                put!(self, "addq\t%r14, %r11");
                put!(self, "cmpq\t{}, %r11", Gpr::new(base, 8));
                put!(self, "jne\t.Lmullion{trap}");
                self.facts.made_pointer(base);
            }
            None => {
                put!(self, "leaq\t{address}, %r11");
                put!(self, "subq\t%r14, %r11");
                put!(self, "shrq\t$32, %r11");
                put!(self, "jne\t.Lmullion{trap}");
            }
        }
        if let Some(address) = known {
            // What a small displacement reaches beyond the window is its guard: there the register
            // itself was checked.
            let displacement = if base.is_some() {
                0
            } else {
                address.displacement
            };
            self.facts.checked(Address {
                displacement,
                ..address
            });
        }
        if flags {
            self.restore_flags(delta);
        }
        Ok(())
    }

    /// The label of a trap for this instruction alone, which is written where its function ends:
    /// the branch there is never taken, and what is known of registers stays true behind it.
    pub(super) fn trap_of(
        &mut self,
        position: Position,
        instruction: impl Into<Cow<'static, str>>,
    ) -> usize {
        self.labels += 1;
        let section = self.unit.instructions[position].section;
        self.access_traps[section].push(AccessTrap {
            label: self.labels,
            instruction: instruction.into(),
            place: self.place[section],
            cfa: self.cfi.written(),
        });
        self.labels
    }

    /// `ud1 %ecx, %eax` where the `address` of a string instruction is not in the window; if it
    /// is `counted`, it accesses nothing if `%rcx` is 0.
    pub(super) fn trap_unless_inside(
        &mut self,
        position: Position,
        address: &str,
        counted: bool,
        delta: i64,
    ) {
        let flags = self.flags_wanted_before(position);
        self.probe();
        if flags {
            self.save_flags(delta);
        }
        self.labels += 1;
        let inside = self.labels;
        if counted {
            put!(self, "testq\t%rcx, %rcx");
            put!(self, "je\t.Lmullion{inside}");
        }
        put!(self, "leaq\t{address}, %r11");
        put!(self, "subq\t%r14, %r11");
        put!(self, "shrq\t$32, %r11");
        put!(self, "je\t.Lmullion{inside}");
        put!(self, "ud1\t%ecx, %eax");
        let _ = writeln!(self.out, ".Lmullion{inside}:");
        self.facts.join();
        if flags {
            self.restore_flags(delta);
        }
        self.stats.trap_checks += 1;
    }
}
