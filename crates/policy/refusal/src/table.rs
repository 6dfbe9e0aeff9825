//! Table 1 of the Mondrix paper as data, to be laid beside the paper's.

/// A row of Table 1. Letters are as in the paper: `X` stays what it was, other letters are any value.
/// "own" is whether the domain owns the word, "at most" is [`Order`](mullion_terms::permission::Order).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Counted from 1, from the top.
    pub number: u8,
    /// The call.
    pub call: &'static str,
    /// Before: the caller.
    pub caller: &'static str,
    /// Before: the target. Empty where the row speaks of none.
    pub target: &'static str,
    /// When the call is allowed; otherwise it is an error and changes nothing.
    pub condition: &'static str,
    /// After: the caller.
    pub caller_after: &'static str,
    /// After: the target.
    pub target_after: &'static str,
    /// The rule in words.
    pub rule: &'static str,
}

/// Shortens the table below to one line for each cell that matters.
const fn row(number: u8, call: &'static str, cells: [&'static str; 5], rule: &'static str) -> Row {
    let [caller, target, condition, caller_after, target_after] = cells;
    Row {
        number,
        call,
        caller,
        target,
        condition,
        caller_after,
        target_after,
        rule,
    }
}

/// The thirteen rows. Each word of a range is judged by the row that fits it; one refusal refuses all.
#[rustfmt::skip]
pub const TABLE_1: [Row; 13] = [
    //  call                 caller      target     condition            caller after  target after
    row(1, "mprot A",        ["own, X",   "",        "always",            "own, A",     ""],
        "an owner gives itself any permission"),
    row(2, "mprot A",        ["other, B", "",        "A at most B",       "other, A",   ""],
        "who does not own can only lower what it has"),
    row(3, "mprot_export C", ["own, X",   "other, Y", "always",           "own, X",     "other, C"],
        "an owner sets what others have"),
    row(4, "mprot_export C", ["other, X", "own, Y",  "never",             "other, X",   "own, Y"],
        "nobody sets what an owner has"),
    row(5, "mprot_export C", ["other, D", "other, E", "E at most C at most D", "other, D", "other, C"],
        "who does not own gives at most what it has, and never less than the target has"),
    row(6, "pd_subdivide E", ["own, X",   "",        "nobody else has access", "other, none", "own, E"],
        "a domain is made of memory that its maker owns and does not share"),
    row(7, "pd_subdivide E", ["other, X", "",        "never",             "other, X",   ""],
        "a domain is not made of somebody else's memory"),
    row(8, "pd_free",        ["any, X",   "own, Y",  "always",            "own if parent, none", "gone"],
        "memory of a deleted domain passes to its closest living ancestor, and nobody keeps access to it"),
    row(9, "perm_alloc",     ["own, X",   "other, Y", "always",           "own, X",     "other, RW"],
        "an owner allocates with read-write"),
    row(10, "perm_alloc",    ["other, X", "own, Y",  "never",             "other, X",   "own, Y"],
        "memory is not allocated to its owner"),
    row(11, "perm_alloc",    ["other, F", "other, G", "G at most F",      "other, F",   "other, F"],
        "who does not own allocates with what it has, and never less than the target has"),
    row(12, "perm_free",     ["own, X",   "other, Y", "always",            "own, X",     "other, none"],
        "a free revokes from everybody but the owner"),
    row(13, "perm_free",     ["other, X", "",        "never",             "other, X",   ""],
        "only an owner frees"),
];
