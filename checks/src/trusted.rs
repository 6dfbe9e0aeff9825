//! The page of trusted lines, `docs/trusted-lines.md`.

use crate::{lines, tree};
use std::fmt::Write;

/// A crate that is trusted, and what for.
#[derive(Debug)]
pub struct Trusted {
    /// Its folder, from the top of the tree.
    pub folder: &'static str,
    /// What a fault in it would let through.
    pub reason: &'static str,
}

/// The crates that are trusted.
pub const TRUSTED: &[Trusted] = &[
    Trusted {
        folder: "crates/window/runtime",
        reason: "It maps windows, enters and leaves them, handles their faults and limits. A fault in it lets a domain out.",
    },
    Trusted {
        folder: "crates/loading/decide",
        reason: "It decides by credentials who may load what. A fault in it loads an extension that nobody allowed.",
    },
    Trusted {
        folder: "crates/window/verifier",
        reason: "It proves that an image cannot leave its window. A fault in it accepts an image that can.",
    },
    Trusted {
        folder: "crates/window/decoder",
        reason: "It reads one instruction, for both verifiers. A fault in it has them see another than the processor does.",
    },
    Trusted {
        folder: "crates/policy/terms",
        reason: "It has ranges, and the order of permissions. A fault in it takes one range or permission for another.",
    },
    Trusted {
        folder: "crates/policy/supervisor",
        reason: "It decides who may touch which memory. A fault in it grants what no owner granted.",
    },
    Trusted {
        folder: "crates/loading/modules",
        reason: "It does what owners of modules ask. A fault in it answers one client with another's module.",
    },
    Trusted {
        folder: "crates/window/system",
        reason: "It does what a program was granted of the system, one operation at a time. A fault in it opens a file that was not granted.",
    },
    Trusted {
        folder: "crates/loading/loader",
        reason: "It lays out verified images only. A fault in it maps what was not verified.",
    },
    Trusted {
        folder: "crates/elastic/language",
        reason: "It reads what a type forbids its programs to say. A fault in it lets them say more, behind the type's wall; behind the language alone, in the host.",
    },
    Trusted {
        folder: "crates/elastic/judge",
        reason: "It decides what programs of a type may say. A fault in it lets them say more, behind the type's wall; behind the language alone, in the host.",
    },
    Trusted {
        folder: "crates/window/signals",
        reason: "It blocks signals while something is done. A fault in it has a thread of ours take the host's, or none come back.",
    },
    Trusted {
        folder: "crates/window/abi",
        reason: "It has the numbers that the verifier and the run time agree on.",
    },
    Trusted {
        folder: "crates/word/verifier",
        reason: "It proves that a module checks each access. A fault in it accepts a module that does not.",
    },
    Trusted {
        folder: "crates/word/table",
        reason: "It holds who may do what with each word. A fault in it allows an access that was not granted.",
    },
    Trusted {
        folder: "crates/word/runtime",
        reason: "It maps modules of checked code, and has their gates, stacks, rights and faults. A fault in it allows what a check would refuse.",
    },
    Trusted {
        folder: "crates/word/policy",
        reason: "It reads what a module may do. A fault in it grants what nobody wrote.",
    },
];

/// A crate beside trusted ones that is not trusted.
#[derive(Debug)]
pub struct Beside {
    /// Its folder, from the top of the tree.
    pub folder: &'static str,
    /// Why a fault in it cannot harm.
    pub reason: &'static str,
    /// The packages that it may be built from, if the reason rests on that.
    pub built_from: Option<&'static [&'static str]>,
    /// Whether it has no standard library, if the reason rests on that.
    pub bare: bool,
}

/// Crates beside trusted ones that are not trusted, and why they cannot harm. All forbid `unsafe`.
pub const BESIDE: &[Beside] = &[
    Beside {
        folder: "crates/policy/refusal",
        reason: "Calls and replies as data, errors with their texts, and the log. The supervisor takes a call apart by itself. \
            It makes errors when it has refused already, and writes to the log when it has decided; it never reads it. A \
            fault tells somebody the wrong reason.",
        built_from: Some(&["mullion-terms"]),
        bare: true,
    },
    Beside {
        folder: "crates/policy/plain",
        reason: "It escapes what would act on a terminal or a log, in text that people read. Nothing is decided by such a text but \
            which symbol of a module has a name, and the module's author chooses names. A fault shows a name wrongly.",
        built_from: Some(&[]),
        bare: true,
    },
    Beside {
        folder: "crates/policy/recorder",
        reason: "It keeps what the supervisor tells a mechanism, for tests, examples and pictures, and enforces nothing. No \
            trusted crate is built from it.",
        built_from: Some(&["mullion-supervisor"]),
        bare: true,
    },
    Beside {
        folder: "crates/window/rules",
        reason: "The verifier makes its values when it has found a violation, and rejects an image that has any. A fault tells \
            an author the wrong reason.",
        built_from: Some(&["mullion-decoder", "thiserror"]),
        bare: false,
    },
    Beside {
        folder: "crates/window/image",
        reason: "It says what an image file holds. The verifier keeps the bytes, and checks by itself where segments lie and \
            that each import has a slot ([`image.rs`](../crates/window/verifier/src/image.rs)). It verifies the code in them, \
            for the protection that was said. The run time refuses relocations in code and entries without a label. So a \
            fault starts a domain wrongly, behind its wall. Where a policy trusts a compiler in the verifier's place, it trusts \
            this crate with that compiler's files.",
        built_from: Some(&["mullion-abi", "mullion-decoder", "mullion-rules"]),
        bare: false,
    },
    Beside {
        folder: "crates/loading/start",
        reason: "It makes the block of arguments that an image is started with. The loader writes it by the address of the \
            domain's memory, which leads nowhere else. A fault starts a domain with other arguments.",
        built_from: Some(&["getrandom"]),
        bare: false,
    },
    Beside {
        folder: "crates/word/rules",
        reason: "As the rules of windows, for modules of the word wall.",
        built_from: Some(&["mullion-rules", "thiserror"]),
        bare: false,
    },
    Beside {
        folder: "crates/window/report",
        reason: "The run time makes its values when it has decided already. It calls functions of them to count, in a meter \
            that hosts read and the run time never asks. When a call has ended by a fault, the host's answer is what \
            these functions say of it; they ask by references that they cannot write through, and the domain has ended \
            whatever they say. A fault tells a host the wrong reason or figure.",
        built_from: Some(&["libc", "mullion-abi", "mullion-supervisor", "thiserror"]),
        bare: false,
    },
    Beside {
        folder: "crates/window/calls",
        reason: "It says what a program's calls of the system mean. It has no dependency and no standard library, so it \
            reaches only what [`system`](../crates/window/system/src/lib.rs) does for it. `system` checks each operation \
            against the grants: names, access, kinds of files, clocks. So a fault does at worst what the program could ask for.",
        built_from: Some(&[]),
        bare: true,
    },
    Beside {
        folder: "crates/loading/wire",
        reason: "Frames and what is in them, as bytes and values, and errors with their texts. The session checks a signature \
            over what was taken from a frame, and has the owner's key from there. So a request that is misread asks for \
            something else that its owner may ask for. Errors are made when it has been decided that something fails.",
        built_from: Some(&["serde", "serde_json", "thiserror"]),
        bare: false,
    },
    Beside {
        folder: "crates/loading/search",
        reason: "It finds an order of assertions. [`decide`](../crates/loading/decide/src/keynote/query.rs) goes through the \
            order by itself: signatures, conditions, licensees. Values only grow, and only by assertions that hold. So a \
            fault refuses what might have been granted.",
        built_from: Some(&[]),
        bare: true,
    },
    Beside {
        folder: "crates/loading/service",
        reason: "Sockets, frames, queues and bounds. A request is good for the exchange that it was signed for, and an answer \
            is sealed for it ([`modules`](../crates/loading/modules/src/lib.rs)). It has neither the run time nor the loader, \
            so it can enter and load nothing itself. A fault serves late, unfairly or not at all.",
        built_from: Some(&[
            "mullion-decide",
            "mullion-modules",
            "mullion-trust",
            "rustix",
            "serde",
            "serde_json",
            "thiserror",
        ]),
        bare: false,
    },
    Beside {
        folder: "crates/loading/trust",
        reason: "Secret keys and what they sign, keys and credentials in files, grants, answers in words, and the log. The decision judges anew what it writes: a grant counts by its signature and \
            the policy. It finds out how much may be granted, and the decision asks once more for exactly that. Its words come after the decision. They get references that they cannot write through, and the rest of the \
            request's budget, and give texts ([`Words`](../crates/loading/decide/src/words.rs)). The loader gives no answer before the log says that it has \
            it; a fault there loses evidence, and lets nobody in. Whoever keeps a secret key by it \
            trusts it with that key.",
        built_from: None,
        bare: false,
    },
    Beside {
        folder: "crates/window/metrics",
        reason: "It turns figures that it is given into text.",
        built_from: None,
        bare: false,
    },
    Beside {
        folder: "crates/policy/picture",
        reason: "It paints a copy of the supervisor's records.",
        built_from: None,
        bare: false,
    },
    Beside {
        folder: "crates/host/symbols",
        reason: "It reads debug information for reports, with a budget. What it says decides nothing.",
        built_from: None,
        bare: false,
    },
];

/// How many lines the rooms `policy`, `window` and `loading` are to have at most.
const AIM: usize = 14_000;

/// What keeps those rooms above the aim, the largest first.
const LEFT: &[(&str, &str)] = &[
    (
        "`runtime`: the machine",
        "Mapping, entering, leaving, signals, stacks and limits work on each other's state, and most of it in `unsafe` code. \
            The bookkeeping beside them (regions, lives, leases, uses) is safe code, but what is mapped next rests on it.",
    ),
    (
        "`decide`: KeyNote",
        "What a condition means must be decided here: lexer, parser, evaluation and POSIX's regular expressions are about 2,500 lines. \
            No library that we know of has POSIX's longest groups within a budget. What an order of assertions is found by, and how much is granted, is not trusted.",
    ),
    (
        "`decide`: texts of operators",
        "Policies and module types are what operators wrote. To read them wrongly is to decide wrongly.",
    ),
    (
        "`supervisor`: indexes",
        "Regions, holdings and prepared grants are kept so that a call costs what it touches. Each answer rests on them; the \
            independent model of the tests is slower, and smaller.",
    ),
    (
        "`verifier`: two ways",
        "The short way for common instructions says yes by itself (390 lines). Without it all would be right, and 2.3 times slower: 120 MB/s of \
            SQLite's code instead of 279, where at least 150 are wanted.",
    ),
    (
        "`modules`, `system`, `loader`",
        "What is left of them checks owners, grants and layouts on each use.",
    ),
];

/// The crates that are trusted, with their lines of code, the largest first.
#[must_use]
pub fn counted() -> Vec<(&'static Trusted, usize)> {
    count(TRUSTED, |trusted| trusted.folder)
}

fn count<T>(crates: &'static [T], folder: fn(&T) -> &str) -> Vec<(&'static T, usize)> {
    let count = |one: &'static T| {
        let source = tree::root().join(folder(one)).join("src");
        (one, lines::count(&source))
    };
    let mut counted: Vec<_> = crates.iter().map(count).collect();
    counted.sort_by_key(|(_, lines)| std::cmp::Reverse(*lines));
    counted
}

/// The page.
#[must_use]
pub fn page() -> String {
    let counted = counted();
    let total: usize = counted.iter().map(|(_, lines)| lines).sum();
    let mut page = "\
# Trusted lines

A fault in one of these crates can break a wall, or can load what nobody allowed. The table counts their lines of code.
Comments, blank lines and tests do not count, nor what only tests can ask for (the feature `check`). `cargo run -p mullion-checks --bin trusted` makes this page, and a test
holds it against the tree. A crate may differ by one line in twenty before the page must be made again.

| crate | lines | what it is trusted for |
| --- | --- | --- |
"
    .to_owned();
    for (trusted, lines) in &counted {
        let Trusted { folder, reason } = trusted;
        writeln!(page, "| `{folder}` | {lines} | {reason} |").expect("text grows");
    }
    writeln!(page, "| together | {total} | |").expect("text grows");
    let rooms = ["crates/policy/", "crates/window/", "crates/loading/"];
    let in_rooms = counted
        .iter()
        .filter(|(trusted, _)| rooms.iter().any(|room| trusted.folder.starts_with(room)));
    let there: usize = in_rooms.map(|(_, lines)| lines).sum();
    write!(
        page,
        "
## Above the aim

The rooms `policy`, `window` and `loading` are to have {AIM} trusted lines at most. They have {there}. These parts are left:

| what | why it stays |
| --- | --- |
"
    )
    .expect("text grows");
    for (what, why) in LEFT {
        writeln!(page, "| {what} | {why} |").expect("text grows");
    }
    page.push_str(
        "
## Not trusted

These crates stand beside trusted ones, forbid `unsafe` code, and are not trusted. Where the reason says what a crate is
built from, a test holds that, too.

| crate | lines | why it cannot harm |
| --- | --- | --- |
",
    );
    for (beside, lines) in count(BESIDE, |beside| beside.folder) {
        let Beside { folder, reason, .. } = beside;
        writeln!(page, "| `{folder}` | {lines} | {reason} |").expect("text grows");
    }
    page.push_str(
        "
The walls of language and process trust more. The wall of language trusts `crates/language/sip`, the crates below it, its macros and rustc
([SECURITY.md](../SECURITY.md)). The wall of process trusts `crates/process/hip`, `crates/process/closed` and Linux.
",
    );
    page
}
