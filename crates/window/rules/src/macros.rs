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

/// Makes what a verifier finds, beside a `Rule` of [`rules!`](crate::rules!): `Violation` and its `Place`, whose second
/// variant is an address as the verifier counts them. The caller has `thiserror`.
#[macro_export]
macro_rules! violations {
    ($(#[$attribute:meta])* $address:ident) => {
        impl ::core::fmt::Display for Rule {
            fn fmt(&self, formatter: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                formatter.write_str(self.name())
            }
        }

        impl ::core::str::FromStr for Rule {
            type Err = UnknownRule;

            fn from_str(name: &str) -> Result<Self, UnknownRule> {
                let mut all = Self::ALL.iter().copied();
                all.find(|rule| rule.name() == name)
                    .ok_or_else(|| UnknownRule(name.to_owned()))
            }
        }

        /// There is no rule of this name.
        #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
        #[error("there is no rule {0:?}")]
        pub struct UnknownRule(pub String);

        /// Where a violation is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Place {
            /// An offset in the file: of a header, a table's entry, a note.
            File(u64),
            $(#[$attribute])*
            $address(u64),
        }

        impl ::core::fmt::Display for Place {
            fn fmt(&self, formatter: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                match self {
                    Self::File(offset) => write!(formatter, "file offset {offset:#x}"),
                    Self::$address(address) => write!(formatter, "{address:#x}"),
                }
            }
        }

        /// One breach of a rule.
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub struct Violation {
            /// Where.
            pub place: Place,
            /// Which rule.
            pub rule: Rule,
            /// The bytes at fault: an instruction as far as it was decoded, at most 15; or empty.
            pub bytes: Vec<u8>,
        }

        impl ::core::fmt::Display for Violation {
            fn fmt(&self, formatter: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                let (place, rule) = (self.place, self.rule);
                write!(formatter, "{place}: {rule}: {}", rule.explanation())
            }
        }
    };
}
