//! Parameters of modules' functions: what a call may use by them, and what is done for them.

use crate::frame::Root;

/// A parameter of a module's function.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Given {
    Any,
    Pool,
    Request,
    Connection,
    Server,
    Filter,
    Brigade,
    Table,
    Command,
    Thing,
    /// A backend: `proxy_worker`.
    Worker,
    /// A group of backends, with them.
    Balancer,
    /// A string, of which the module gets a copy.
    Copy,
    /// The same if its loads are checked.
    Shown,
    Out(u64),
    /// A word in which it leaves a string. The core gets a copy.
    OutText,
    /// As many bytes as the 32 bits say that this argument points to.
    OutAt(usize),
    /// As many bytes as this argument says, which is an `int`.
    OutBy(usize),
    /// A word that points to a string of the caller's, which is changed in its place.
    OutString,
    /// A function of another module's, which this one may call for the length of the process.
    Callback(&'static str),
    /// A structure of the caller's that has such a function so many bytes behind its beginning.
    Within(u64, &'static str),
}

impl Given {
    /// Whether it says what the call may use.
    pub(super) fn is_root(&self) -> bool {
        use Given::{Any, Callback, Copy, Out, OutAt, OutBy, OutString, OutText, Shown, Within};
        !matches!(
            self,
            Any | Copy
                | Shown
                | Out(_)
                | OutText
                | OutAt(_)
                | OutBy(_)
                | OutString
                | Callback(_)
                | Within(..)
        )
    }

    /// The root that an argument gives the call, if it is not null.
    #[inline]
    pub(crate) fn root(&self, value: u64) -> Root {
        match self {
            Given::Pool => Root::Pool(value),
            Given::Request => Root::Request(value),
            Given::Connection => Root::Connection(value),
            Given::Server => Root::Server(value),
            Given::Filter => Root::Filter(value),
            Given::Brigade => Root::Brigade(value),
            Given::Table => Root::Table(value),
            Given::Command => Root::Command(value),
            Given::Thing => Root::Thing(value),
            Given::Worker => Root::Worker(value),
            Given::Balancer => Root::Balancer(value),
            Given::Any
            | Given::Copy
            | Given::Shown
            | Given::Out(_)
            | Given::OutText
            | Given::OutAt(_)
            | Given::OutBy(_)
            | Given::OutString
            | Given::Callback(_)
            | Given::Within(..) => Root::None,
        }
    }

    /// What is done for it, besides that it may say what the call may use.
    pub(super) fn care(&self) -> Care {
        match self {
            Given::Out(_)
            | Given::OutText
            | Given::OutAt(_)
            | Given::OutBy(_)
            | Given::OutString
            | Given::Callback(_)
            | Given::Within(..) => Care::Granted,
            Given::Copy => Care::Copied,
            Given::Brigade => Care::Shown,
            Given::Command => Care::OfFrame,
            Given::Any
            | Given::Pool
            | Given::Request
            | Given::Connection
            | Given::Server
            | Given::Filter
            | Given::Table
            | Given::Thing
            | Given::Worker
            | Given::Balancer
            // Only for modules whose loads are checked (`back.rs`).
            | Given::Shown => Care::Nothing,
        }
    }
}

/// What is done for a parameter of a module's function, for the length of the call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Care {
    Nothing,
    /// Something is granted or offered.
    Granted,
    Copied,
    Shown,
    /// Something is granted for what the call's frame has.
    OfFrame,
}
