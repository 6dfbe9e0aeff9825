//! Holds C against the elastic language of a module type (`bygwyn` of the OKE paper, section III-C).
//!
//! ```text
//!   environment --gcc -E--> text --parse--> names, types: what the module sees
//!                                                |
//!   source ------gcc -E--> text --parse--> tree --judge--> text that may be compiled
//!                                                |
//!                                            refusals: rule, place, what to write instead
//! ```
//!
//! The source itself is not compiled. A text is, that is written here from the tree, as each piece was found to be
//! allowed. So a construct that the judge does not know cannot reach the compiler. Every expression has its parentheses
//! and every name was looked up, so gcc and the parser read the text alike. The tree's kinds of nodes are matched one
//! by one without a rest: a kind that is not listed does not compile here.
//!
//! Rust is judged by rustc itself ([`rust`]).
//!
//! Nothing here runs a program, and files are only read to show lines of refusals.
#![forbid(unsafe_code)]

mod counted;
mod declare;
mod express;
mod initial;
mod literals;
mod operators;
mod places;
mod refusal;
pub mod rust;
mod scope;
mod state;
mod tokens;
mod types;
mod unit;

pub use counted::MARK;
pub use refusal::{SourcePlace, SourceRefusal};

use lang_c::driver::{Config, Flavor, Parse, parse_preprocessed};
use mullion_elastic::{Elastic, Rule};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// The most refusals that are told.
const TOLD: usize = 40;
/// Bytes of stack that reading a tree of bounded depth takes at most, with room.
const STACK: usize = 512 << 20;
/// The most bytes that are written.
const WRITTEN: usize = 16 << 20;

/// What is to be judged.
#[derive(Clone, Debug, Default)]
pub struct ProgramSource {
    /// The environment's text behind the preprocessor; empty if the type has none.
    pub environment: String,
    /// The program's files behind the preprocessor, each on its own, one after the other.
    pub program: String,
    /// The program's files by the preprocessor's names, to show their lines.
    pub files: HashMap<String, String>,
}

/// What may be compiled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JudgedProgram {
    /// One translation unit, for gcc as preprocessed GNU C11.
    pub text: String,
    /// How many loops there are.
    pub loops: u32,
    /// The functions of the module, as they are named in the text.
    pub functions: Vec<String>,
}

/// Judges a program of a type with that language.
///
/// # Errors
/// What it may not say, in the order of the text; at least one.
pub fn judge(
    elastic: &Elastic,
    source: &ProgramSource,
) -> Result<JudgedProgram, Vec<SourceRefusal>> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK);
        match thread.spawn_scoped(scope, || whole(elastic, source)) {
            Ok(thread) => thread.join().unwrap_or_else(|_| Err(vec![internal()])),
            Err(_) => Err(vec![SourceRefusal::nowhere(
                Rule::Bounds,
                "no thread to judge it on",
            )]),
        }
    })
}

fn internal() -> SourceRefusal {
    SourceRefusal::nowhere(Rule::Bounds, "a construct that the judge does not survive")
}

fn whole(elastic: &Elastic, source: &ProgramSource) -> Result<JudgedProgram, Vec<SourceRefusal>> {
    let environment = parse(source.environment.clone()).map_err(|_| {
        vec![SourceRefusal::nowhere(
            Rule::Syntax,
            "the environment itself cannot be read; its author must mend it",
        )]
    })?;
    let (tokens, mut refusals) = tokens::Tokens::read(&source.program, &source.files);
    if refusals.iter().any(|refusal| refusal.rule == Rule::Bounds) {
        return Err(refusals);
    }
    let mut judge = scope::Judge::new(elastic, &tokens, &source.environment);
    judge.environment(&environment.unit);
    // The parser must know which names are types; what they are is the judge's knowledge.
    let mut front: String = judge
        .type_names()
        .map(|name| format!("typedef int {name}; "))
        .collect();
    // A line marker begins a line.
    front.push('\n');
    let count = judge.type_names().count();
    judge.shift = front.len();
    let tree = match parse(format!("{front}{}", source.program)) {
        Ok(tree) => tree,
        Err(_) if !refusals.is_empty() => return Err(refusals),
        Err(offset) => return Err(vec![judge.syntax(offset.saturating_sub(front.len()))]),
    };
    let module = tree.unit.0.get(count..).unwrap_or_default();
    let found = match judge.module(module) {
        Ok(_) if !refusals.is_empty() => Err(Vec::new()),
        other => other,
    };
    match found {
        Ok(judged) if judged.text.len() <= WRITTEN => Ok(judged),
        Ok(_) => Err(vec![SourceRefusal::nowhere(
            Rule::Bounds,
            "a program that becomes too large",
        )]),
        Err(more) => {
            // What the tokens showed already is told once.
            let place = |refusal: &SourceRefusal| {
                refusal
                    .place
                    .as_ref()
                    .map(|place| (place.file.clone(), place.line, place.column))
            };
            let told: Vec<_> = refusals.iter().map(place).collect();
            refusals.extend(
                more.into_iter()
                    .filter(|refusal| !told.contains(&place(refusal))),
            );
            refusals.truncate(TOLD);
            Err(refusals)
        }
    }
}

/// The tree, or the byte where it ends.
fn parse(text: String) -> Result<Parse, usize> {
    let config = Config {
        flavor: Flavor::GnuC11,
        ..Config::default()
    };
    parse_preprocessed(&config, text).map_err(|error| error.offset)
}
