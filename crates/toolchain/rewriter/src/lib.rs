//! Assembler text in, fault-isolated assembler text out.
//!
//! [`rewrite`] takes the AT&T assembler that a C or C++ compiler writes for x86-64. It answers with assembler of the
//! same meaning. Accesses, calls and jumps of that cannot leave the window that it runs in, or touch no word that its
//! domain may not. `docs/window.md` and `docs/word-form.md` say what these forms are. Nobody trusts this crate: the
//! verifier reads the machine code that comes of it.
//!
//! ```text
//!  text -> lexer -> parser -> Unit -> flow  (what is still wanted where)
//!                              |  \-> narrow (32 bits where they do)
//!                              |  \-> stack (how deep the stack is where)
//!                              v
//!                            emit -> pad -> text
//! ```
#![forbid(unsafe_code)]

mod cfi;
mod emit;
mod flow;
mod length;
mod lexer;
mod narrow;
mod operand;
mod options;
mod ordered;
mod pad;
mod parser;
#[cfg(test)]
mod processor_tests;
#[cfg(test)]
mod random_tests;
mod refusal;
mod spelled;
mod stack;
mod table;
mod unit;
mod width;
mod written;

pub use mullion_abi::Protection;
pub use mullion_word_abi::Protection as WordProtection;
pub use options::{Base, Options, Stats, Wall};
pub use refusal::{Reason, Refusal};

use std::borrow::Cow;

/// What came out.
#[derive(Clone, Debug)]
pub struct Rewritten {
    /// The assembler text.
    pub text: String,
    /// What was done to get there.
    pub stats: Stats,
}

/// Rewrites one assembler file; `file` names it in refusals.
///
/// # Errors
/// Everything in the file that cannot be made safe, in the order of its lines.
pub fn rewrite(source: &str, file: &str, options: &Options) -> Result<Rewritten, Vec<Refusal>> {
    let mut refusals = Vec::new();
    let result = rewrite_or_refuse(source, options, &mut refusals);
    if refusals.is_empty() {
        return Ok(result);
    }
    refusals.sort_by_key(|r| r.line);
    refusals.dedup();
    for refusal in &mut refusals {
        file.clone_into(&mut refusal.file);
    }
    Err(refusals)
}

fn rewrite_or_refuse(source: &str, options: &Options, refusals: &mut Vec<Refusal>) -> Rewritten {
    let empty = Rewritten {
        text: String::new(),
        stats: Stats::default(),
    };
    let source = match lexer::without_block_comments(source) {
        Ok(source) => source,
        Err(lexer::Unfinished(line)) => {
            refusals.push(Refusal::new(line, "", Reason::Unfinished));
            return empty;
        }
    };
    let source = match written::expand(&source) {
        Ok(Some(expanded)) => Cow::Owned(expanded),
        Ok(None) => source,
        Err(refusal) => {
            refusals.push(refusal);
            return empty;
        }
    };
    let mut unit = parser::parse(&source, refusals);
    // Bytes first: they may name registers, too.
    let named = spelled::by_name(&source, &unit);
    let text = named.as_deref().unwrap_or(&source);
    let replaced = written::registers::replaced(text, matches!(options.wall, Wall::Window));
    let text = replaced.as_deref().unwrap_or(text);
    if named.is_some() || replaced.is_some() {
        refusals.clear();
        unit = parser::parse(text, refusals);
    }
    let tables = refusals.iter().any(|it| it.reason == Reason::DataInCode);
    let moved = tables.then(|| written::tables::moved(text)).flatten();
    if let Some(moved) = &moved {
        refusals.clear();
        unit = parser::parse(moved, refusals);
    }
    if !refusals.is_empty() {
        return empty;
    }
    let live = flow::liveness(&unit);
    match options.wall {
        Wall::Window => narrow::narrow(&mut unit, &live, options.protection),
        Wall::Word(_) => ordered::order(&mut unit),
    }
    let plans = stack::plan(&unit, refusals);
    let (text, mut stats) = emit::emit(
        &unit,
        &plans,
        &live,
        options,
        source.len() * 5 / 4,
        refusals,
    );
    (stats.functions, stats.unsettled) = stack::count(&unit, &plans);
    Rewritten {
        text: pad::pad(&text),
        stats,
    }
}
