//! Why bytes are no instruction that code behind a wall may have.

/// Why bytes are not decoded. Each verifier has a rule for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The instruction has no row in the table.
    Instruction,
    /// It is allowed with the other kind of operand only: register instead of memory, or the reverse.
    OperandForm,
    /// A prefix occurs twice, has no use, or stands behind REX.
    Prefix,
    /// It has more than 15 bytes.
    InstructionLength,
    /// It does not end within the code.
    InstructionTruncated,
    /// A segment override that the wall has no use for.
    SegmentOverride,
    /// 32-bit addressing that the wall has no use for.
    AddressSize,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Instruction => "instruction",
            Self::OperandForm => "operand form",
            Self::Prefix => "prefix",
            Self::InstructionLength => "instruction length",
            Self::InstructionTruncated => "instruction truncated",
            Self::SegmentOverride => "segment override",
            Self::AddressSize => "address size",
        })
    }
}
