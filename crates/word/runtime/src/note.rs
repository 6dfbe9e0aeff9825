//! What is told of a domain that learns.

use crate::core::Domain;
use crate::report::StackWords;
use std::sync::Arc;

/// Is told of each refusal. It may run in the handler of a fault, on a stack of 256 KiB, with no lock of the module
/// wall held. It must not call into a domain: such a call is refused.
pub(crate) type Hook = Arc<dyn Fn(&Note<'_>) + Send + Sync>;

/// What a learning domain has done without leave.
#[derive(Clone, Debug)]
pub struct Note<'a> {
    /// Which domain.
    pub domain: Domain,
    /// The export on whose call it was; empty if it has no name.
    pub export: &'a str,
    /// The integer arguments of that call, as it began.
    pub arguments: Option<[u64; 6]>,
    /// The instruction's address in the module's file, or another one of the same statement; 0 if it is not known.
    pub instruction: u64,
    /// The registers there, by their numbers in machine code, if they are known.
    pub registers: Option<&'a [u64; 16]>,
    /// The words that lay on the module's data stack then, if they are known.
    pub stack: Option<&'a StackWords>,
    /// What was done.
    pub want: Want<'a>,
}

/// What was not allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want<'a> {
    /// An access of the module itself, by an address that one check covers.
    Access {
        /// The first byte that was refused.
        address: u64,
        /// From there to the end of what the check covers. Several accesses may share a check.
        bytes: u64,
        /// Whether it is to be written.
        write: bool,
    },
    /// A call of a function that is not offered.
    Call {
        /// Its name, if it has one.
        function: &'a str,
        /// Where it is.
        address: u64,
        /// Integer arguments, of which it may use fewer.
        arguments: [u64; 6],
    },
    /// Memory that the module passes, without a right that the policy of the function demands.
    Argument {
        /// Which function of the host or of another module.
        function: &'a str,
        /// Which argument.
        argument: u8,
        /// The first byte.
        address: u64,
        /// How many.
        bytes: u64,
        /// Whether it is to be written.
        write: bool,
    },
    /// A block goes back that was not given.
    Free {
        /// By which function.
        function: &'a str,
        /// The block.
        address: u64,
    },
    /// A function is passed that the module may not call itself.
    Callback {
        /// To which function.
        function: &'a str,
        /// Which argument.
        argument: u8,
        /// What is passed.
        address: u64,
    },
}
