//! Kinds of faults and of limits, with names that stay: what is counted by kind, and
//! what a system that gathers figures knows them by.

use crate::error::Error;
use crate::fault::Cause;

/// An enumeration whose members have names, in one list.
macro_rules! named {
    ($(#[$about:meta])* $name:ident { $($(#[$what:meta])* $member:ident = $text:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$what])* $member,)*
        }

        impl $name {
            /// All of them, in order.
            pub const ALL: &'static [Self] = &[$(Self::$member,)*];

            /// Its name: lower case letters and `_`. It does not change between versions.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$member => $text,)*
                }
            }
        }
    };
}

named! {
    /// What kind of thing a [`Cause`] is, without its figures.
    FaultKind {
        /// [`Cause::Access`].
        Access = "access",
        /// [`Cause::DataStackOverflow`].
        DataStackOverflow = "data_stack_overflow",
        /// [`Cause::ControlStackOverflow`].
        ControlStackOverflow = "control_stack_overflow",
        /// [`Cause::FailedLabel`].
        FailedLabel = "failed_label",
        /// [`Cause::TrappedAccess`].
        TrappedAccess = "trapped_access",
        /// [`Cause::Trap`].
        Trap = "trap",
        /// [`Cause::IllegalInstruction`].
        IllegalInstruction = "illegal_instruction",
        /// [`Cause::Division`].
        Division = "division",
        /// [`Cause::FloatingPoint`].
        FloatingPoint = "floating_point",
        /// [`Cause::Breakpoint`].
        Breakpoint = "breakpoint",
        /// [`Cause::Bus`].
        Bus = "bus",
        /// [`Cause::BadUnwind`] and [`Cause::UnlabelledUnwind`].
        Unwind = "unwind",
        /// [`Cause::UnknownGate`].
        UnknownGate = "unknown_gate",
        /// [`Cause::Raised`].
        Raised = "raised",
        /// [`Cause::TimeLimit`].
        TimeLimit = "time_limit",
        /// [`Cause::TotalTimeLimit`].
        TotalTimeLimit = "total_time_limit",
        /// [`Cause::ProcessorTimeLimit`].
        ProcessorTimeLimit = "processor_time_limit",
        /// [`Cause::TotalProcessorTimeLimit`].
        TotalProcessorTimeLimit = "total_processor_time_limit",
        /// [`Cause::GateLimit`].
        GateLimit = "gate_limit",
        /// [`Cause::OutputLimit`].
        OutputLimit = "output_limit",
        /// [`Cause::StepLimit`].
        StepLimit = "step_limit",
        /// [`Cause::Cancelled`]: by the host, not by the domain.
        Cancelled = "cancelled",
    }
}

named! {
    /// One of `Limits`, by the name of its field there.
    LimitKind {
        /// `Limits::memory`, or the kernel had no more.
        Memory = "memory",
        /// `Limits::mappings`.
        Mappings = "mappings",
        /// `Limits::stack`.
        Stack = "stack",
        /// `Limits::control_stack`.
        ControlStack = "control_stack",
        /// `Limits::threads`.
        Threads = "threads",
        /// `Limits::depth`.
        Depth = "depth",
        /// `Limits::time`.
        Time = "time",
        /// `Limits::total_time`.
        TotalTime = "total_time",
        /// `Limits::processor_time`.
        ProcessorTime = "processor_time",
        /// `Limits::total_processor_time`.
        TotalProcessorTime = "total_processor_time",
        /// `Limits::gate_calls`.
        GateCalls = "gate_calls",
        /// `Limits::output`.
        Output = "output",
        /// `Limits::steps`.
        Steps = "steps",
    }
}

impl Cause {
    /// Of what kind it is.
    #[must_use]
    pub fn kind(&self) -> FaultKind {
        match self {
            Self::Access { .. } => FaultKind::Access,
            Self::DataStackOverflow { .. } => FaultKind::DataStackOverflow,
            Self::ControlStackOverflow => FaultKind::ControlStackOverflow,
            Self::FailedLabel => FaultKind::FailedLabel,
            Self::TrappedAccess => FaultKind::TrappedAccess,
            Self::Trap => FaultKind::Trap,
            Self::IllegalInstruction => FaultKind::IllegalInstruction,
            Self::Division => FaultKind::Division,
            Self::FloatingPoint => FaultKind::FloatingPoint,
            Self::Breakpoint => FaultKind::Breakpoint,
            Self::Bus => FaultKind::Bus,
            Self::BadUnwind | Self::UnlabelledUnwind => FaultKind::Unwind,
            Self::UnknownGate => FaultKind::UnknownGate,
            Self::Raised { .. } => FaultKind::Raised,
            Self::TimeLimit { .. } => FaultKind::TimeLimit,
            Self::TotalTimeLimit { .. } => FaultKind::TotalTimeLimit,
            Self::ProcessorTimeLimit { .. } => FaultKind::ProcessorTimeLimit,
            Self::TotalProcessorTimeLimit { .. } => FaultKind::TotalProcessorTimeLimit,
            Self::GateLimit { .. } => FaultKind::GateLimit,
            Self::OutputLimit { .. } => FaultKind::OutputLimit,
            Self::StepLimit { .. } => FaultKind::StepLimit,
            Self::Cancelled => FaultKind::Cancelled,
        }
    }
}

impl FaultKind {
    /// The limit that was hit, if it was one.
    #[must_use]
    pub fn limit(self) -> Option<LimitKind> {
        Some(match self {
            Self::DataStackOverflow => LimitKind::Stack,
            Self::ControlStackOverflow => LimitKind::ControlStack,
            Self::TimeLimit => LimitKind::Time,
            Self::TotalTimeLimit => LimitKind::TotalTime,
            Self::ProcessorTimeLimit => LimitKind::ProcessorTime,
            Self::TotalProcessorTimeLimit => LimitKind::TotalProcessorTime,
            Self::GateLimit => LimitKind::GateCalls,
            Self::OutputLimit => LimitKind::Output,
            Self::StepLimit => LimitKind::Steps,
            _ => return None,
        })
    }
}

impl Error {
    /// The limit for which a call was not made, if it was one.
    #[must_use]
    pub fn limit(&self) -> Option<LimitKind> {
        Some(match self {
            Self::Depth { .. } => LimitKind::Depth,
            Self::NoStack { .. } => LimitKind::Threads,
            Self::TimeSpent { .. } => LimitKind::TotalTime,
            Self::ProcessorTimeSpent { .. } => LimitKind::TotalProcessorTime,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_different_and_fit_for_labels() {
        let faults: HashSet<_> = FaultKind::ALL.iter().map(|kind| kind.name()).collect();
        assert_eq!(faults.len(), FaultKind::ALL.len());
        let limits: HashSet<_> = LimitKind::ALL.iter().map(|kind| kind.name()).collect();
        assert_eq!(limits.len(), LimitKind::ALL.len());
        let plain = |name: &&str| {
            name.bytes()
                .all(|byte| byte == b'_' || byte.is_ascii_lowercase())
        };
        assert!(faults.iter().all(plain) && limits.iter().all(plain));
    }
}
