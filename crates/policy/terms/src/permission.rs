//! Permissions and their order (Mondrix, section 3.5).

use crate::domain::DomainId;
use core::fmt;

/// What a domain may do with a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Permission {
    /// Nothing: an access is a fault.
    #[default]
    None,
    /// Loads.
    Read,
    /// Loads and stores.
    ReadWrite,
    /// Loads and instruction fetches.
    ExecuteRead,
    /// A call to this word enters domain `to`, which needs the right to execute it there.
    SwitchGate {
        /// The domain that the call enters.
        to: DomainId,
    },
    /// The return instruction at this word goes back to the domain that the matching switch gate left.
    ReturnGate,
}

impl Permission {
    /// How much it is, with the kinds of full access taken together.
    pub const fn level(self) -> Level {
        match self {
            Permission::None => Level::None,
            Permission::Read => Level::Read,
            _ => Level::Full,
        }
    }

    /// Whether a load is allowed. A gate allows it only to who executes behind it: to its destination
    /// (switch) or its holder (return).
    pub fn reads(self, holder: DomainId) -> bool {
        matches!(self, Permission::Read | Permission::ReadWrite) || self.executes(holder)
    }

    /// Whether a store is allowed.
    pub const fn writes(self) -> bool {
        matches!(self, Permission::ReadWrite)
    }

    /// Whether `holder`, once it is the running domain, may fetch instructions here.
    pub fn executes(self, holder: DomainId) -> bool {
        match self {
            Permission::ExecuteRead | Permission::ReturnGate => true,
            Permission::SwitchGate { to } => to == holder,
            _ => false,
        }
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Permission::None => write!(f, "none"),
            Permission::Read => write!(f, "read"),
            Permission::ReadWrite => write!(f, "read-write"),
            Permission::ExecuteRead => write!(f, "execute-read"),
            Permission::SwitchGate { to } => write!(f, "switch gate to {to}"),
            Permission::ReturnGate => write!(f, "return gate"),
        }
    }
}

/// The height of a permission in the order: what bounds an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Below everything.
    #[default]
    None,
    /// [`Permission::Read`].
    Read,
    /// [`Permission::ReadWrite`], [`Permission::ExecuteRead`] and the gates.
    Full,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Level::None => "none",
            Level::Read => "read",
            Level::Full => "full",
        })
    }
}

/// Which permissions compare as equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Order {
    /// None < read < read-write, read < execute-read, none < gate, and nothing else: no kind turns into
    /// another unless its owner says so.
    #[default]
    Strict,
    /// None < read < read-write = execute-read = gate, as in the paper: who holds one of the last three
    /// can turn it into another. A gate that is given away can be turned into the right to write, even
    /// where its export level is [`Level::None`]. For comparison with the paper.
    Paper,
}

impl Order {
    /// Whether `a` is at most `b`.
    pub fn at_most(self, a: Permission, b: Permission) -> bool {
        match self {
            Order::Paper => a.level() <= b.level(),
            Order::Strict => {
                a == b
                    || a == Permission::None
                    || (a == Permission::Read
                        && matches!(b, Permission::ReadWrite | Permission::ExecuteRead))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Permission::{ExecuteRead, None, Read, ReadWrite, ReturnGate};

    const ALL: [Permission; 7] = [
        None,
        Read,
        ReadWrite,
        ExecuteRead,
        Permission::SwitchGate {
            to: DomainId::new(1),
        },
        Permission::SwitchGate {
            to: DomainId::new(2),
        },
        ReturnGate,
    ];

    #[test]
    fn both_orders_are_reflexive_and_transitive() {
        for order in [Order::Paper, Order::Strict] {
            for a in ALL {
                assert!(order.at_most(a, a));
                assert!(order.at_most(None, a));
                for b in ALL {
                    for c in ALL {
                        if order.at_most(a, b) && order.at_most(b, c) {
                            assert!(order.at_most(a, c), "{order:?} {a} {b} {c}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn only_the_strict_order_keeps_kinds_apart() {
        assert!(Order::Paper.at_most(ReadWrite, ReturnGate));
        assert!(Order::Paper.at_most(ReadWrite, ExecuteRead));
        for a in ALL {
            for b in ALL {
                if a.level() == Level::Full && b.level() == Level::Full {
                    assert_eq!(Order::Strict.at_most(a, b), a == b);
                }
            }
        }
        assert!(Order::Strict.at_most(Read, ExecuteRead));
        assert!(!Order::Strict.at_most(Read, ReturnGate));
    }
}
