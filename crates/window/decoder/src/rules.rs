//! Rules of a verifier, with names, explanations and hints.

/// Declares `Rule`: for each a name in kebab-case, what it demands, and the usual cause or the way out.
#[macro_export]
macro_rules! rules {
    ($(#[$attribute:meta])* $($variant:ident $name:literal $explanation:literal $hint:literal;)*) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Rule {
            $(#[doc = $explanation] $variant,)*
        }

        impl Rule {
            /// Every rule, in the order of declaration.
            pub const ALL: &[Rule] = &[$(Rule::$variant,)*];

            /// The stable name, in kebab-case.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Rule::$variant => $name,)* }
            }

            /// What the rule demands, in one sentence.
            #[must_use]
            pub const fn explanation(self) -> &'static str {
                match self { $(Rule::$variant => $explanation,)* }
            }

            /// The usual cause, or the way out.
            #[must_use]
            pub const fn hint(self) -> &'static str {
                match self { $(Rule::$variant => $hint,)* }
            }
        }

        impl From<$crate::Refusal> for Rule {
            #[inline]
            fn from(refusal: $crate::Refusal) -> Self {
                match refusal {
                    $crate::Refusal::Instruction => Self::Instruction,
                    $crate::Refusal::OperandForm => Self::OperandForm,
                    $crate::Refusal::Prefix => Self::Prefix,
                    $crate::Refusal::InstructionLength => Self::InstructionLength,
                    $crate::Refusal::InstructionTruncated => Self::InstructionTruncated,
                    $crate::Refusal::SegmentOverride => Self::SegmentOverride,
                    $crate::Refusal::AddressSize => Self::AddressSize,
                }
            }
        }
    };
}
