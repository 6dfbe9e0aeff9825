#!/usr/bin/env python3
"""Runs images that the verifier accepted, and watches whether anything leaves the window.

Input: a file of records, as crates/window/verifier/tests/emulated.rs writes them. Each
is run from every label, with random registers, in unicorn (a program of its
own: it is GPL, and nothing of it is linked into Mullion). What must hold:

  memory   every access lies in the window or its guards; the control stack is
           accessed by call and ret only; with write-call, reads go anywhere
  control  every block starts at an instruction of the image that the verifier
           saw, at a gate slot that may be entered, or is the host's return gate
  state    %r14 and the %gs base keep, %rsp stays in the control stack, and %r15
           in the window, give or take a step that awaits its probe

Exit status: 0 if all is well, 1 if not, 3 if unicorn is missing. Records that
are marked as bad are there to show that the watch can fail: each must be
caught at least once.
"""

import random
import struct
import sys

try:
    from unicorn import UC_ARCH_X86, UC_MODE_64, Uc, UcError, x86_const as x86
    from unicorn import UC_HOOK_BLOCK, UC_HOOK_MEM_READ, UC_HOOK_MEM_WRITE, UC_HOOK_MEM_UNMAPPED
    from unicorn import UC_MEM_READ, UC_MEM_READ_UNMAPPED, UC_MEM_FETCH_UNMAPPED
    from unicorn import UC_PROT_READ, UC_PROT_WRITE, UC_PROT_EXEC
except ImportError:
    print("emulate.py: unicorn is missing (fuzz/setup installs it)", file=sys.stderr)
    sys.exit(3)

BASE = 0x100_0000_0000
WINDOW = 1 << 32
GUARD = 0x10000
GATES = 0x10000
CODE = 0x20000
CODE_SPACE = 0x10000
DATA = 0x40000
STACK = 0xFF00_0000
CONTROL = BASE + 0x10_0000_0000
CONTROL_SIZE = 0x10000
# The host: mapped, so that what reaches it does not merely fault.
HOST_RETURN = BASE + 0x20_0000_0000
BAIT = [0x10000, 0x7FFF_0000, BASE - 0x20000, BASE + WINDOW + GUARD, HOST_RETURN + 0x1000]
STEPS = 400

GENERAL = [getattr(x86, "UC_X86_REG_" + name) for name in
           "RAX RBX RCX RDX RSI RDI RBP R8 R9 R10 R11 R12 R13".split()]


class Machine:
    def __init__(self):
        self.uc = Uc(UC_ARCH_X86, UC_MODE_64)
        every = UC_PROT_READ | UC_PROT_WRITE | UC_PROT_EXEC
        code = UC_PROT_READ | UC_PROT_EXEC
        data = UC_PROT_READ | UC_PROT_WRITE
        self.uc.mem_map(BASE + GATES, 0x10000, code)
        self.uc.mem_map(BASE + CODE, CODE_SPACE, code)
        self.uc.mem_map(BASE + DATA, 0x10000, data)
        self.uc.mem_map(BASE + STACK, 0x80_0000 - 0x1000, data)
        # Pages next to both guards, so that what just misses them is seen.
        self.uc.mem_map(BASE + WINDOW - GUARD - 0x1000, 0x1000, data)
        self.uc.mem_map(CONTROL, CONTROL_SIZE, data)
        self.uc.mem_map(HOST_RETURN, 0x1000, every)
        for bait in BAIT:
            self.uc.mem_map(bait, 0x1000, every)
        self.uc.mem_write(BASE + GATES, b"\xf4" * 0x10000)
        self.uc.hook_add(UC_HOOK_BLOCK, self.block)
        self.uc.hook_add(UC_HOOK_MEM_READ | UC_HOOK_MEM_WRITE, self.access)
        self.uc.hook_add(UC_HOOK_MEM_UNMAPPED, self.unmapped)
        self.failure = None
        self.blocks = 0

    def fail(self, what):
        if self.failure is None:
            self.failure = f"{what}, %rip {self.uc.reg_read(x86.UC_X86_REG_RIP) - BASE:#x}"
        self.uc.emu_stop()

    def confined(self, address, size):
        return BASE - GUARD <= address and address + size <= BASE + WINDOW + GUARD

    def access(self, uc, kind, address, size, _value, _data):
        if self.confined(address, size):
            return
        if CONTROL <= address and address + size <= CONTROL + CONTROL_SIZE:
            rip = uc.reg_read(x86.UC_X86_REG_RIP) - BASE
            if size == 8 and rip in self.calls:
                return
        if kind in (UC_MEM_READ, UC_MEM_READ_UNMAPPED) and self.protection == 0:
            return
        self.fail(f"{'read' if kind == UC_MEM_READ else 'access'} at {address:#x}")

    def unmapped(self, uc, kind, address, size, value, data):
        if kind == UC_MEM_FETCH_UNMAPPED:
            if address != BASE + CODE + len(self.text):
                self.fail(f"control reaches {address:#x}")
        else:
            self.access(uc, kind, address, size, value, data)
        return False

    def block(self, uc, address, _size, _data):
        self.blocks += 1
        r15 = uc.reg_read(x86.UC_X86_REG_R15) - BASE
        if uc.reg_read(x86.UC_X86_REG_R14) != BASE or uc.reg_read(x86.UC_X86_REG_GS_BASE) != BASE:
            self.fail("the base has changed")
        if not CONTROL <= uc.reg_read(x86.UC_X86_REG_RSP) <= CONTROL + CONTROL_SIZE:
            self.fail("%rsp has left the control stack")
        offset = address - BASE
        end = address == HOST_RETURN or GATES <= offset < GATES + 0x10000
        if not (0 <= r15 < WINDOW if end else -0x7000 <= r15 < WINDOW + 0x7000):
            self.fail(f"%r15 is at {r15:#x}")
        if address == HOST_RETURN:
            uc.emu_stop()
        elif end:
            slot, rest = divmod(offset - GATES, 32)
            if rest or not (1 <= slot <= 4 or slot == 16):
                self.fail(f"gate area entered at {offset:#x}")
            uc.emu_stop()
        elif offset == CODE + len(self.text):
            # What follows the code is int3 up to the end of the page.
            uc.emu_stop()
        elif offset not in self.starts:
            self.fail(f"control at {offset:#x}, which is no instruction")

    def value(self, rng):
        return rng.choice([
            lambda: rng.getrandbits(64),
            lambda: rng.getrandbits(32),
            lambda: rng.randrange(64),
            lambda: BASE + rng.getrandbits(32),
            lambda: BASE + DATA + rng.randrange(0x10000),
            lambda: rng.choice(BAIT) + 0x800,
            lambda: BASE + rng.choice(self.entries),
            lambda: rng.choice(self.entries),
            lambda: BASE + CODE + rng.randrange(len(self.text)),
            lambda: CONTROL + CONTROL_SIZE - 64,
            lambda: BASE + rng.choice([-8, 0, WINDOW - 8, WINDOW]),
            lambda: (1 << 64) - rng.randrange(1, 0x10000),
        ])()

    def run(self, record, entry, rng):
        self.protection, self.text, self.entries, self.starts, self.calls = record
        uc = self.uc
        uc.ctl_remove_cache(BASE + CODE, BASE + CODE + CODE_SPACE)
        uc.mem_write(BASE + CODE, self.text + b"\xcc" * (CODE_SPACE - len(self.text)))
        for register in GENERAL:
            uc.reg_write(register, self.value(rng))
        uc.reg_write(x86.UC_X86_REG_GS_BASE, BASE)
        uc.reg_write(x86.UC_X86_REG_R14, BASE)
        edge = rng.randrange(6)
        uc.reg_write(x86.UC_X86_REG_R15, BASE + [0, WINDOW - 1, GUARD, WINDOW - GUARD - 1][edge] if edge < 4
                     else BASE + STACK + 0x10000 + rng.randrange(0x1000) * 16)
        uc.reg_write(x86.UC_X86_REG_EFLAGS, 2 | rng.choice([0, 1, 0x40, 0x80, 0x8D5 & ~0x400]))
        top = CONTROL + CONTROL_SIZE - 64
        uc.mem_write(top, struct.pack("<Q", HOST_RETURN))
        uc.reg_write(x86.UC_X86_REG_RSP, top)
        self.failure = None
        try:
            uc.emu_start(BASE + entry, 0, count=STEPS)
        except UcError:
            pass
        return self.failure


def records(data):
    at = 0
    while at < len(data):
        protection, bad, length, entries, starts, calls = struct.unpack_from("<BBHHHH", data, at)
        at += 10
        text = data[at:at + length]
        at += length
        numbers = struct.unpack_from(f"<{entries + starts + calls}I", data, at)
        at += 4 * len(numbers)
        yield bad, (protection, text, numbers[:entries], frozenset(numbers[entries:entries + starts]),
                    frozenset(numbers[entries + starts:]))


def main():
    with open(sys.argv[1], "rb") as file:
        data = file.read()
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    machine, failures, images, executions, caught = Machine(), 0, 0, 0, 0
    rng = random.Random(1)
    for number, (bad, record) in enumerate(records(data)):
        images += 1
        found = None
        for entry in record[2]:
            for _ in range(40 if bad else runs):
                executions += 1
                found = machine.run(record, entry, rng) or found
        if bad and found:
            caught += 1
        elif bad:
            failures += 1
            print(f"bad image {number} was not caught: {record[1].hex(' ')}")
        elif found:
            failures += 1
            if failures <= 20:
                print(f"image {number}: {found}: {record[1].hex(' ')}")
    print(f"{images} images, {executions} runs, {machine.blocks} blocks, "
          f"{caught} bad ones caught, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
