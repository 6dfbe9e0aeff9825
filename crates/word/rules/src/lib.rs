//! What can be wrong with a module: rules, with an explanation and a way out.
//!
//! This is not trusted. The verifier makes a [`Violation`] when it has found one, and a module with any is rejected,
//! whatever the violation says. So a fault here tells an author the wrong reason.
#![forbid(unsafe_code)]

mullion_rules::rules! {
    /// A rule of `docs/word-form.md` that a module can break.
    ElfHeader "elf-header"
        "The file is a 64-bit little-endian x86-64 ELF file of type ET_DYN."
        "Link with `mullion cc --wall=word`.";
    ElfTruncated "elf-truncated"
        "Every table and every segment's content lies within the file."
        "The file was cut short or damaged; build or copy it again.";
    ProgramHeader "program-header"
        "There are at most 32 program headers, of known types, and at most one dynamic section, one part that becomes read-only and one TLS template."
        "Use the linker script that `mullion cc` passes.";
    SegmentPermission "segment-permission"
        "A segment is read + execute, read, or read + write; never writable and executable."
        "Look for an assembler section with flags \"awx\", or for `ld -N`.";
    SegmentAlignment "segment-alignment"
        "A segment starts at a page boundary."
        "Use the linker script that `mullion cc` passes.";
    SegmentRange "segment-range"
        "Segments end below 2 GiB."
        "The module is too large, or was linked at another address.";
    SegmentOverlap "segment-overlap"
        "Segments are in ascending order and share no page, nor content in the file."
        "Use the linker script that `mullion cc` passes.";
    SegmentSize "segment-size"
        "A segment's content in the file is not longer than the segment, and an executable segment is wholly in the file."
        "Code cannot be left to zero-filling.";
    SegmentCode "segment-code"
        "One segment holds all code."
        "Use the linker script that `mullion cc` passes.";
    CodeEnd "code-end"
        "Nothing runs on behind the last instruction of the code."
        "The last function falls off its end, or ends with a call: put `ud2` behind it.";
    Relro "relro"
        "What becomes read-only after relocation covers whole pages of one read + write segment."
        "Use the linker script that `mullion cc` passes.";
    DynamicTag "dynamic-tag"
        "The dynamic section holds known tags only, each at most once (DT_NEEDED excepted)."
        "Link with `mullion cc --wall=word`, whose options leave others out.";
    DynamicCode "dynamic-code"
        "There is no procedure linkage table (DT_JMPREL), no DT_INIT and no DT_FINI."
        "Call imports through the module's slots, and use init arrays.";
    TextRelocation "text-relocation"
        "Code is not relocated (DT_TEXTREL)."
        "Compile with -fPIC.";
    RelocationTable "relocation-table"
        "Relocation tables lie within the file's content of a segment and have whole entries of the usual size."
        "The dynamic section is damaged.";
    RelocationType "relocation-type"
        "Dynamic relocations are R_X86_64_RELATIVE, GLOB_DAT and 64."
        "A thread-local of the general-dynamic model, or a resolver function, is left.";
    RelocationPlace "relocation-place"
        "A relocation changes 8 bytes within one read + write segment, none of them in a slot; those of a DT_RELR table ascend."
        "A relocation in code or constants: compile with -fPIC, and keep jump tables in .data.rel.ro.";
    SymbolTable "symbol-table"
        "Symbols that relocations name lie in the symbol table, have a name in the string table, and are no resolver functions."
        "The dynamic section is damaged.";
    InitArray "init-array"
        "Each entry of an init or fini array is relocated to a gate."
        "A function in an init array needs a switch gate; the rewriter makes one for each address taken.";
    NoteMissing "note-missing"
        "A PT_NOTE segment holds the note named Mullion."
        "The file was not linked as a module; link with `mullion cc --wall=word`.";
    NoteMalformed "note-malformed"
        "Notes are well-formed, and the note named Mullion is there once, of type 2, with eight words."
        "Two start files were linked, or the note is damaged.";
    NoteVersion "note-version"
        "The module was built for this version of the form."
        "Rebuild it with the `mullion` that loads it.";
    NoteProtection "note-protection"
        "The note names a protection: 0 write, 1 read-write."
        "The note is damaged.";
    SlotTable "slot-table"
        "The slots are 16 and one for each import, 8 bytes each, in memory that becomes read-only after relocation."
        "Use the linker script that `mullion cc` passes.";
    ImportTable "import-table"
        "The import records lie within the file's content of a segment that is not writable, are whole, and at most 16384."
        "The note is damaged, or the module has too many imports.";
    RecordName "record-name"
        "Names of imports are of printable ASCII characters, not empty, end in a zero and are zero-padded."
        "A name longer than 63 characters does not fit.";
    TlsTemplate "tls-template"
        "The thread-local template lies in one segment that is not executable, aligned to at most a page and at most 1 MiB long."
        "Move large thread-local arrays to ordinary or allocated memory.";
    Instruction "instruction"
        "The instruction has a row in the verifier's table."
        "Privileged, system, stack and rarely used instructions have none; hand-written assembler may need another way.";
    OperandForm "operand-form"
        "The instruction is allowed with the other kind of operand only: register instead of memory, or the reverse."
        "`bt` and kin with a register index reach memory far from their operand; indirect calls go through registers.";
    Prefix "prefix"
        "Prefixes occur once each, where the instruction has a use for them, and REX comes last."
        "The assembler does not emit this by itself; look for `.byte` or explicit prefixes.";
    InstructionLength "instruction-length"
        "An instruction has at most 15 bytes."
        "Processors fault on it.";
    InstructionTruncated "instruction-truncated"
        "An instruction ends within its segment."
        "Data in an executable section is decoded as code; keep it in .rodata.";
    SegmentOverride "segment-override"
        "There is no segment override but `%gs` in checks."
        "`%fs` is the host's: compile without stack protector, and thread-locals through the rewriter.";
    AddressSize "address-size"
        "32-bit addressing comes with `%gs` in checks only."
        "Without it the address lies in the host's lowest 4 GiB.";
    RegisterRsp "register-rsp"
        "%rsp is never an operand, except of call and ret."
        "The rewriter turns %rsp into %r15; hand-written code must pass through it.";
    RegisterR14 "register-r14"
        "%r14 is an operand in checks only."
        "Compile with -ffixed-r14.";
    RegisterR15 "register-r15"
        "%r15 is written by constant steps, and by xor with a register that is known to be below 8 MiB, only."
        "Compile with -ffixed-r15.";
    WriteOrder "write-order"
        "Writes come to memory in the order of the code: there is no non-temporal store."
        "Such a store could come behind a revocation. `mullion cc --wall=word` makes ordinary ones of them.";
    WriteUnchecked "write-unchecked"
        "A write is to the data stack, to the module's writable memory by its address, or to bytes that a check in the same straight line covers for writing."
        "The rewriter did not see this instruction, or base or index have been written since the check.";
    ReadUnchecked "read-unchecked"
        "A read is of the data stack, of the module by its address, or of bytes that a check in the same straight line covers (from read-write up)."
        "The rewriter did not see this instruction, or base or index have been written since the check.";
    Displacement "displacement"
        "A displacement from the data stack pointer is at most 0x7000 in magnitude, where no check covers the access."
        "Check the access as one to other memory.";
    RipTarget "rip-target"
        "What an access relative to %rip reaches lies in one segment of the module; what it writes, in one that is writable and stays so."
        "The symbol is outside of the module, or constant after relocation.";
    StringRepeat "string-repeat"
        "String instructions are not repeated."
        "The rewriter makes loops of them.";
    CheckForm "check-form"
        "`%gs` occurs in checks only, and a check is as in the page: lea, shr, then cmp and jne for words that adjoin, all jne to one place."
        "The displacement of a cmp is even; nothing stands between the instructions of a check.";
    CheckOperand "check-operand"
        "The operand of a check has neither %r11, %r14, %rsp nor %rip, nor %r15 as its index."
        "Compute such an address into another register first.";
    ColdForm "cold-form"
        "What a check's jne goes to looks at points, goes back behind that check, and ends with the trap to which its je go."
        "See \"Data accesses\" in docs/word-form.md.";
    ColdOperand "cold-operand"
        "The points of a check have its operand, but for the displacement."
        "Base, index and scale must be those of the check.";
    ColdPoints "cold-points"
        "There are at most 64 points, which ascend, each at most four bytes behind the one before it."
        "An access of eight bytes has the points 0, 4 and 7.";
    ColdOwner "cold-owner"
        "The points behind a check belong to this one check: its jne, and nothing else, leads there."
        "Each check needs points of its own, behind what never continues.";
    StackStep "stack-step"
        "Constant steps of %r15 between two probes sum to at most 0x7000 in magnitude."
        "Probe between steps, or set %r15 by xor.";
    StackProbe "stack-probe"
        "A step of %r15 is followed by an access through it before the straight line ends or an xor."
        "Touch the stack before the next branch, call, return or label.";
    BranchTarget "branch-target"
        "A direct branch goes to the first byte of an instruction."
        "The target is in the middle of an instruction, or in data.";
    BranchSequence "branch-sequence"
        "A direct branch does not go into a check, the points behind it, a gate, or between a check and what relies on it."
        "The target's access relies on a check in front of the target.";
    BranchOutside "branch-outside"
        "A direct branch goes to code of the module."
        "The target is undefined, or outside of the module.";
    SlotCall "slot-call"
        "A call or jump through memory goes through slots 2 to 4, or the slot of an import."
        "Imports have stubs: call __mullion_call.NAME.";
    SlotEnter "slot-enter"
        "Slot 1 occurs in gates only: 17 bytes, aligned to 16, of endbr64, lea and jmp."
        "Let the rewriter make the gate.";
    GateBody "gate-body"
        "A module that calls bodies by the addresses of gates has each body 32 bytes behind its gate."
        "Let the rewriter make the gate.";
    IndirectUnchecked "indirect-unchecked"
        "An indirect call or jump goes to what was checked in the same straight line: may be entered, is behind a gate of the module's own, or (a jump) is the domain's own and labelled."
        "See \"Control flow\" in docs/word-form.md for the checks.";
    LabelStray "label-stray"
        "The label's bytes occur in label instructions only, at no other place and alignment of executable segments."
        "An immediate or displacement happens to contain the label; the rewriter must split it.";
    LabelFragment "label-fragment"
        "An executable segment does not start with the tail of a label."
        "Memory in front of the segment could complete it.";
}

mullion_rules::violations! {
    /// An address of the file: of an instruction, a record, a target.
    Address
}

impl Violation {
    /// Of no instruction.
    #[must_use]
    pub const fn at(rule: Rule, place: Place) -> Self {
        Self {
            place,
            rule,
            bytes: Vec::new(),
        }
    }
}
