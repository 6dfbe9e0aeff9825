//! What can be wrong with an image: rules, with an explanation and a way out.
//!
//! This is not trusted. The verifier makes a [`Violation`] when it has found one, and an image with any is rejected,
//! whatever the violation says. So a fault here tells an author the wrong reason.
//! The rules of the wall of checked words are made by the macros of this crate, too.
#![forbid(unsafe_code)]

mod macros;

pub use mullion_decoder::Refusal;

rules! {
    /// A rule of `docs/window.md` that an image can break.
    ElfHeader "elf-header"
        "The file is a 64-bit little-endian x86-64 ELF file of type ET_DYN."
        "Link with `mullion cc`; a plain executable or shared object is not an image.";
    ElfTruncated "elf-truncated"
        "Every table and every segment's content lies within the file."
        "The file was cut short or damaged; build or copy it again.";
    ProgramHeader "program-header"
        "There are at most 32 program headers, of known types, and at most one dynamic section and one TLS template."
        "Use the linker script that `mullion cc` passes.";
    SegmentPermission "segment-permission"
        "A segment is read + execute, read, or read + write; never writable and executable."
        "Look for an assembler section with flags \"awx\", or for `ld -N`.";
    SegmentAlignment "segment-alignment"
        "A segment starts at a page boundary."
        "Use the linker script that `mullion cc` passes.";
    SegmentRange "segment-range"
        "Segments lie between offsets 0x20000 and 0xd0000000 of the window."
        "The image is larger than a window allows, or was linked at another address.";
    SegmentOverlap "segment-overlap"
        "Segments are in ascending order and share no page, nor content in the file."
        "Use the linker script that `mullion cc` passes.";
    SegmentSize "segment-size"
        "A segment's content in the file is not longer than the segment, and an executable segment is wholly in the file."
        "Code cannot be left to zero-filling.";
    DynamicTag "dynamic-tag"
        "The dynamic section holds known, harmless tags only, each at most once."
        "Link statically: no version needs, no procedure linkage table.";
    NeededLibrary "needed-library"
        "An image needs no other library (DT_NEEDED)."
        "Link statically; `mullion cc` does.";
    TextRelocation "text-relocation"
        "Code is not relocated (DT_TEXTREL)."
        "Compile with -fPIE or -fPIC.";
    RelocationTable "relocation-table"
        "Relocation tables lie within the image's file content and have whole entries of the usual size."
        "The dynamic section is damaged.";
    RelocationType "relocation-type"
        "The only dynamic relocation is R_X86_64_RELATIVE."
        "An undefined symbol, or a thread-local of the general-dynamic model, is left: declare it as an import or define it.";
    RelocationPlace "relocation-place"
        "A relocation changes 8 bytes within one read or read + write segment; those of a DT_RELR table are in ascending order, none across another."
        "A relocation in code: compile with -fPIE, and keep jump tables out of the text.";
    NoteMissing "note-missing"
        "A PT_NOTE segment holds the note named Mullion."
        "The file was not linked as an image; link with `mullion cc`.";
    NoteMalformed "note-malformed"
        "Notes are well-formed, and the note named Mullion is there once, of type 1, with nine words."
        "Two start files were linked, or the note is damaged.";
    NoteVersion "note-version"
        "The image was built for this version of the window's interface."
        "Rebuild it with the `mullion` that loads it.";
    NoteProtection "note-protection"
        "The note names a protection: 0 write-call, 1 read-write-call, 2 trap."
        "The note is damaged.";
    NoteKind "note-kind"
        "The note names a kind: 0 program, 1 extension."
        "The note is damaged.";
    ImportTable "import-table"
        "The import records lie within the image's file content, are whole, and at most 2032."
        "The note is damaged, or the image has too many imports.";
    ExportTable "export-table"
        "The export records lie within the image's file content, are whole, and at most 16384."
        "The note is damaged, or the image has too many exports.";
    RecordName "record-name"
        "Names of imports and exports are of printable ASCII characters, not empty, end in a zero and are zero-padded, and an export's is unique."
        "A name longer than 63 (import) or 59 (export) characters does not fit.";
    ExportTarget "export-target"
        "Every export is a labelled function of the image."
        "Export functions, not data; the rewriter labels functions that are visible outside their file.";
    EntryTarget "entry-target"
        "The entry point is a labelled function of the image."
        "Link with the start file that `mullion cc` passes.";
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
        "The only segment override is `%gs`, and it comes with 32-bit addressing."
        "`%fs` is the host's: compile without stack protector, and thread-locals through the rewriter.";
    AddressSize "address-size"
        "32-bit addressing comes with the `%gs` override only."
        "Without it the address lies in the host's lowest 4 GiB.";
    RegisterRsp "register-rsp"
        "%rsp is never an operand, except of call and ret."
        "The rewriter turns %rsp into %r15; hand-written code must pass through it.";
    RegisterR14 "register-r14"
        "%r14 is never written."
        "Compile with -ffixed-r14.";
    RegisterR15 "register-r15"
        "%r15 is written by constant steps, or from a zero-extended register added to %r14, only."
        "Compile with -ffixed-r15.";
    WriteUnconfined "write-unconfined"
        "A write has one of the five confined forms."
        "The rewriter did not see this instruction, or the register's zero-extension is not in the same straight line.";
    ReadUnconfined "read-unconfined"
        "A read has one of the five confined forms (from read-write-call up)."
        "The rewriter did not see this instruction, or the register's zero-extension is not in the same straight line.";
    Displacement "displacement"
        "A displacement from a window pointer is at most 0x7000 in magnitude."
        "Use the %gs form, or add the displacement before zero-extending.";
    RipTarget "rip-target"
        "What an access relative to %rip reaches lies in the window, between its guards."
        "The symbol is outside of the image.";
    StringUnconfined "string-unconfined"
        "A string instruction accesses memory through window pointers made in the same straight line."
        "Make %rdi and %rsi window pointers right in front of it.";
    StackStep "stack-step"
        "Constant steps of %r15 between two probes sum to at most 0x7000 in magnitude."
        "Probe between steps, or go through a zero-extended register.";
    StackProbe "stack-probe"
        "A step of %r15 is followed by an access through it before the straight line ends."
        "Touch the stack before the next branch, call, return or label.";
    StackUnfinished "stack-unfinished"
        "A 32-bit write to %r15 is followed by adding %r14 before the stack is used or the straight line ends."
        "Put `addq %r14, %r15` right behind it.";
    BranchTarget "branch-target"
        "A direct branch goes to the first byte of an instruction."
        "The target is in the middle of an instruction, or in data.";
    BranchSequence "branch-sequence"
        "A direct branch does not go into a sequence whose parts rely on each other."
        "The target's access relies on a register that was prepared before the target.";
    BranchOutside "branch-outside"
        "A direct branch goes to executable code of the image, or to a gate."
        "The target is undefined, or outside of the image.";
    GateSlot "gate-slot"
        "A direct branch into the gate area goes to the first byte of a slot that exists."
        "The import tables and the gate section are out of step.";
    IndirectUnchecked "indirect-unchecked"
        "An indirect branch goes through a window pointer whose label was checked in the same straight line."
        "See \"Control flow\" in docs/window.md for the check.";
    LabelStray "label-stray"
        "The label's bytes occur in label instructions only, at no other place and alignment of executable segments."
        "An immediate or displacement happens to contain the label; the rewriter must split it.";
    LabelFragment "label-fragment"
        "An executable segment does not start with the tail of a label."
        "Writable memory in front of the segment could complete it.";
}

violations! {
    /// An offset in the window: of an instruction, a record, a target.
    Window
}
