#!/usr/bin/env python3
"""Runs modules of the word wall that the verifier accepted, and watches whether anything touches more than it may.

Input: a file of lines, as crates/word/verifier/tests/emulated.rs writes them. Each module is run from every body and every
label, with random registers, in unicorn (a program of its own: it is GPL, and nothing of it is linked into Mullion).
There is a small table, with lines: blocks of the domain's own, shared ones, one of which every third word is anything. What must hold:

  memory   every access is to words that the table allows, to the module itself, or to the data stack; the table is only
           read, by %gs; the control stack is used by call and ret only; with protection write, reads go anywhere
  control  every block starts at an instruction that the verifier saw, at the slot of a gate or an import, at a gate
           that may be entered, or is the host's return gate
  state    %r14 and the %gs base keep, %rsp stays in the control stack, and %r15 in the data stack's region, give or take
           a step that awaits its probe

Exit status: 0 if all is well, 1 if not, 3 if unicorn is missing. Lines that are marked as bad are there to show that the
watch can fail: each must be caught at least once.
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
    print("emulate_word.py: unicorn is missing (fuzz/setup installs it)", file=sys.stderr)
    sys.exit(3)

SHADOW = 1 << 41
LINE = 64
OWN = 0xC123
MODULE = 0x5000_0000
SPACE = 0x2_0000
BLOCKS = {0x6000_0000: "own", 0x6100_0000: "read", 0x6200_0000: "shared", 0x6300_0000: "patch", 0x6400_0000: "gates"}
# Beside the blocks there is memory that nobody was granted, so that what just misses a block is seen.
BAIT = [0x6500_0000] + [block + by for block in BLOCKS for by in (-0x1000, 0x1000)]
STACK = 0x7000_0000
STACK_END = STACK + 0x80_0000 - 0x8000
STACK_LOW = STACK_END - 0x1_0000
CONTROL = 0x9000_0000
CONTROL_SIZE = 0x1_0000
HOST_RETURN = 0xA000_0000
STUBS = 0xB000_0000
STEPS = 300
READ, WRITE, EXECUTE, ENTER = 1, 2, 4, 8
# What each number gives this domain.
MAP = {OWN: READ | WRITE, 5: READ, 6: READ | WRITE, 7: ENTER, 8: READ | EXECUTE, 9: READ}

GENERAL = [getattr(x86, "UC_X86_REG_" + name) for name in
           "RAX RBX RCX RDX RSI RDI RBP R8 R9 R10 R11 R12 R13".split()]


def number_of(kind, word):
    """The number of a word of a block."""
    if kind == "patch":
        return [OWN, 0, 5, 6, OWN, OWN, 0][word % 7]
    if kind == "gates":
        return 7 if word % 4 == 0 else 0
    return {"own": OWN, "read": 5, "shared": 6}[kind]


class Machine:
    def __init__(self):
        self.uc = uc = Uc(UC_ARCH_X86, UC_MODE_64)
        every = UC_PROT_READ | UC_PROT_WRITE | UC_PROT_EXEC
        data = UC_PROT_READ | UC_PROT_WRITE
        uc.mem_map(MODULE, SPACE, every)
        for block in BLOCKS:
            uc.mem_map(block, 0x1000, every)
        for bait in BAIT:
            uc.mem_map(bait, 0x1000, every)
        uc.mem_map(STACK_LOW, STACK_END - STACK_LOW, data)
        uc.mem_map(CONTROL, CONTROL_SIZE, data)
        uc.mem_map(HOST_RETURN, 0x1000, every)
        uc.mem_map(STUBS, 0x1000, every)
        for at in list(BLOCKS) + BAIT + [STACK_LOW, MODULE, CONTROL, HOST_RETURN, STUBS]:
            size = {MODULE: SPACE, STACK_LOW: STACK_END - STACK_LOW, CONTROL: CONTROL_SIZE}.get(at, 0x1000)
            start = SHADOW + at // 2 & ~0xFFF
            end = SHADOW + (at + size) // 2 + 0xFFF & ~0xFFF
            first = SHADOW - (at + size) // LINE * 2 - 0x200 & ~0xFFF
            last = SHADOW - at // LINE * 2 + 0x11FF & ~0xFFF
            # Two may share a page of the shadow or of the lines.
            for page in [*range(start, end, 0x1000), *range(first, last, 0x1000)]:
                try:
                    uc.mem_map(page, 0x1000, data)
                except UcError:
                    pass
        self.map = SHADOW + OWN * 65537
        uc.mem_map(self.map & ~0xFFF, 0x1_2000, data)
        self.numbers = {}
        for block, kind in BLOCKS.items():
            for word in range(0x400):
                self.number(block + 4 * word, number_of(kind, word))
        for address in range(STACK_LOW, STACK_END, 4):
            self.number(address, OWN)
        for block in BLOCKS:
            self.lines(block, block + 0x1000)
        self.lines(STACK_LOW, STACK_END)
        for number, right in MAP.items():
            uc.mem_write(self.map + number, bytes([right]))
        uc.hook_add(UC_HOOK_BLOCK, self.block)
        uc.hook_add(UC_HOOK_MEM_READ | UC_HOOK_MEM_WRITE, self.access)
        uc.hook_add(UC_HOOK_MEM_UNMAPPED, self.unmapped)
        self.failure = None
        self.blocks = self.allowed = 0

    def number(self, address, number):
        self.numbers[address // 4] = number
        self.uc.mem_write(SHADOW + address // 4 * 2, struct.pack("<H", number))

    def lines(self, start, end):
        """Writes the numbers of lines: that of all their words, or 0."""
        for line in range(start // LINE, end // LINE):
            found = {self.numbers.get(word, 0) for word in range(line * LINE // 4, (line + 1) * LINE // 4)}
            number = found.pop() if len(found) == 1 else 0
            self.uc.mem_write(SHADOW - 2 * (line + 1), struct.pack("<H", number))

    def fail(self, what):
        if self.failure is None:
            self.failure = f"{what}, %rip {self.uc.reg_read(x86.UC_X86_REG_RIP) - MODULE:#x}"
        self.uc.emu_stop()

    def may(self, address, size, right):
        words = range(address // 4, (address + size - 1) // 4 + 1)
        return all(MAP.get(self.numbers.get(word, 0), 0) & right for word in words)

    def access(self, uc, kind, address, size, _value, _data):
        address &= (1 << 64) - 1
        reads = kind in (UC_MEM_READ, UC_MEM_READ_UNMAPPED)
        # A fault, whoever runs.
        if address >= 1 << 47:
            return
        rip = uc.reg_read(x86.UC_X86_REG_RIP) - MODULE
        if reads and rip in self.looks:
            return
        if CONTROL <= address and address + size <= CONTROL + CONTROL_SIZE and size == 8 and rip in self.calls:
            return
        # Its ends are not mapped, nor are the regions beside it.
        if STACK - 0x1_0000 <= address and address + size <= STACK + 0x81_0000:
            return
        if reads and (self.protection == 0 or MODULE + self.text - 4 <= address < MODULE + self.text):
            return
        if self.may(address, size, READ | WRITE if reads else WRITE):
            self.allowed += 1
            return
        self.fail(f"{'read' if reads else 'write'} of {size} at {address:#x}")

    def unmapped(self, uc, kind, address, size, value, data):
        if kind == UC_MEM_FETCH_UNMAPPED:
            self.fail(f"control reaches {address:#x}")
        else:
            self.access(uc, kind, address, size, value, data)
        return False

    def block(self, uc, address, _size, _data):
        self.blocks += 1
        r15 = uc.reg_read(x86.UC_X86_REG_R15)
        if uc.reg_read(x86.UC_X86_REG_R14) != OWN * 0x0001000100010001 or uc.reg_read(x86.UC_X86_REG_GS_BASE) != SHADOW:
            self.fail("the own number or the base has changed")
        if not CONTROL <= uc.reg_read(x86.UC_X86_REG_RSP) <= CONTROL + CONTROL_SIZE:
            self.fail("%rsp has left the control stack")
        inside = MODULE <= address < MODULE + SPACE
        if not (STACK - 0x7000 <= r15 < STACK + 0x80_7000 if inside else STACK <= r15 < STACK + 0x80_0000):
            self.fail(f"%r15 is at {r15:#x}")
        if address == HOST_RETURN:
            uc.emu_stop()
        elif STUBS <= address < STUBS + 0x1000:
            slot, rest = divmod(address - STUBS, 16)
            if rest or slot not in self.slots:
                self.fail(f"slot {slot} is called")
            if slot == 1 and uc.reg_read(x86.UC_X86_REG_R11) - MODULE not in self.bodies:
                self.fail("a gate leads to what is no body")
            uc.emu_stop()
        # The other three addresses of a gate's word are harmless (docs/word-form.md, "Control flow").
        elif self.numbers.get(address // 4) == 7:
            uc.emu_stop()
        elif not inside or address - MODULE not in self.starts:
            if address != MODULE + self.text + self.length:
                self.fail(f"control at {address:#x}, which is no instruction")
            uc.emu_stop()

    def value(self, rng):
        block = rng.choice(list(BLOCKS))
        return rng.choice([
            lambda: rng.getrandbits(64),
            lambda: rng.getrandbits(32),
            lambda: rng.randrange(64),
            lambda: block + rng.randrange(0x1000),
            lambda: block + rng.randrange(0x400) * 4,
            lambda: 0x6000_0000 + rng.randrange(0x400) * 4,
            lambda: block + rng.choice([-16, -8, -4, -1, 0, 1, 0xFF0, 0xFF8, 0xFFC, 0xFFF, 0x1000]),
            lambda: rng.choice(BAIT) + rng.randrange(0x1000),
            lambda: MODULE + rng.choice(self.entries),
            lambda: MODULE + self.text + rng.randrange(self.length),
            lambda: 0x6400_0000 + rng.randrange(0x100) * 16,
            lambda: CONTROL + CONTROL_SIZE - 64,
            lambda: SHADOW + block // 2 + rng.randrange(64),
            lambda: STACK_END - rng.randrange(0x1000),
            lambda: (1 << 64) - rng.randrange(1, 0x10000),
            lambda: 0x6000_0100 | rng.choice([1 << 62, 1 << 63, 1 << 47]),
        ])()

    def load(self, record):
        (self.protection, _bad, self.text, self.length, self.slots, self.bodies, self.entries, self.starts,
         self.calls, self.looks, segments, slots_at) = record
        uc = self.uc
        uc.ctl_remove_cache(MODULE, MODULE + SPACE)
        uc.mem_write(MODULE, b"\xcc" * SPACE)
        for address in range(MODULE, MODULE + SPACE, 0x1000):
            for word in range(0x400):
                self.numbers.pop((address // 4) + word, None)
        shadow = bytearray(SPACE // 2)
        for address, number, content in segments:
            uc.mem_write(MODULE + address, content)
            for word in range(address // 4, (address + len(content) + 0xFFF & ~0xFFF) // 4):
                self.numbers[MODULE // 4 + word] = number
                shadow[2 * word:2 * word + 2] = struct.pack("<H", number)
        uc.mem_write(SHADOW + MODULE // 2, bytes(shadow))
        lines = bytearray(SPACE // LINE * 2)
        for line in range(SPACE // LINE):
            cells = shadow[32 * line:32 * line + 32]
            if cells == cells[:2] * 16:
                place = len(lines) - 2 * line - 2
                lines[place:place + 2] = cells[:2]
        uc.mem_write(SHADOW - 2 * ((MODULE + SPACE) // LINE), bytes(lines))
        for slot in range(64):
            uc.mem_write(MODULE + slots_at + 8 * slot, struct.pack("<Q", STUBS + 16 * slot)) if slot in self.slots else None

    def run(self, entry, rng):
        uc = self.uc
        for register in GENERAL:
            uc.reg_write(register, self.value(rng))
        uc.reg_write(x86.UC_X86_REG_GS_BASE, SHADOW)
        uc.reg_write(x86.UC_X86_REG_R14, OWN * 0x0001000100010001)
        edge = rng.randrange(6)
        uc.reg_write(x86.UC_X86_REG_R15, [STACK, STACK + 0x7F_FFFF, STACK_LOW, STACK_END - 1][edge] if edge < 4
                     else STACK_LOW + 0x8000 + rng.randrange(0x400) * 16)
        uc.reg_write(x86.UC_X86_REG_EFLAGS, 2 | rng.choice([0, 1, 0x40, 0x80, 0x8D5 & ~0x400]))
        top = CONTROL + CONTROL_SIZE - 64
        uc.mem_write(top, struct.pack("<Q", HOST_RETURN))
        uc.reg_write(x86.UC_X86_REG_RSP, top)
        self.failure = None
        try:
            uc.emu_start(MODULE + entry, 0, count=STEPS)
        except UcError:
            pass
        return self.failure


def numbers(text):
    return [int(part, 16) for part in text.split(",")] if text != "-" else []


def records(path):
    with open(path, encoding="ascii") as file:
        for line in file:
            (protection, bad, text, length, slots, slots_at, bodies, entries, starts, calls, looks,
             segments) = line.split()
            pieces = []
            for piece in segments.split(";"):
                address, number, content = piece.split(":")
                pieces.append((int(address, 16), int(number, 16) or OWN, bytes.fromhex(content)))
            yield (int(protection), bad == "1", int(text, 16), int(length, 16), frozenset(numbers(slots)),
                   frozenset(numbers(bodies)), numbers(entries), frozenset(numbers(starts)), frozenset(numbers(calls)),
                   frozenset(numbers(looks)), pieces, int(slots_at, 16))


def main():
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 6
    machine, failures, modules, executions, caught = Machine(), 0, 0, 0, 0
    rng = random.Random(1)
    for number, record in enumerate(records(sys.argv[1])):
        modules += 1
        bad, found = record[1], None
        machine.load(record)
        for entry in machine.entries:
            for _ in range(200 if bad else runs):
                executions += 1
                found = machine.run(entry, rng) or found
                # Data may have been changed: gates' slots cannot, and those of the text are not.
        if bad and found:
            caught += 1
        elif bad:
            failures += 1
            print(f"bad module {number} was not caught")
        elif found:
            failures += 1
            if failures <= 20:
                text = next(content for address, _, content in record[10] if address == record[2])
                print(f"module {number}: {found}: {text.hex()}")
    print(f"{modules} modules, {executions} runs, {machine.blocks} blocks, {machine.allowed} accesses allowed, "
          f"{caught} bad ones caught, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
