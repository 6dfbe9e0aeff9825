//! The judge of elastic Rust: rustc itself, which holds the crate `program` against a module type's language between
//! its analysis and its code.
//!
//! ```text
//!   source --parse, expand--> tree (written.rs) --resolve, type--> typed tree (typed.rs) --borrow check--> MIR
//!                                                                                                     |
//!      code <--LLVM-- the same MIR <-- nothing was refused <-- calls, loops, panics (graph.rs) <------+
//! ```
//!
//! Nothing is read twice: the tree that is judged is the one that is compiled. `mullion compile` builds this with the
//! compiler's own libraries (component `rustc-dev`), and runs it with limits. It is told by a file what is
//! forbidden (`told.rs`), and answers by a file. A refusal stops the compiler.
#![feature(rustc_private)]

extern crate rustc_abi;
extern crate rustc_ast;
extern crate rustc_data_structures;
extern crate rustc_driver;
extern crate rustc_hir;
extern crate rustc_index;
extern crate rustc_interface;
extern crate rustc_lexer;
extern crate rustc_middle;
extern crate rustc_session;
extern crate rustc_span;

mod addresses;
mod closed;
mod counted;
mod entries;
mod graph;
mod loops;
mod order;
mod own;
mod places;
mod told;
mod typed;
mod written;

use rustc_driver::{Callbacks, Compilation};
use rustc_interface::interface::{Compiler, Config};
use rustc_middle::ty::TyCtxt;
use told::Told;

/// One judging.
struct Judge {
    told: Told,
    refusals: Vec<told::Refusal>,
}

impl Judge {
    /// Goes on if nothing was refused.
    fn verdict(&mut self) -> Compilation {
        match self.refusals.is_empty() {
            true => Compilation::Continue,
            false => Compilation::Stop,
        }
    }
}

impl Callbacks for Judge {
    fn config(&mut self, config: &mut Config) {
        // A file that is not read is in no message, whatever asks for it.
        config.file_loader = Some(Box::new(own::Own::below(&self.told.root)));
        // The author can say neither of these: attributes are refused, and so are features of a nightly compiler.
        config.opts.unstable_opts.crate_attr = vec!["no_std".to_owned()];
        config.opts.unstable_opts.mir_opt_level = Some(0);
        if self.told.forbids("unbounded-loops") {
            config.override_queries =
                Some(|_, providers| providers.queries.optimized_mir = counted::marked);
        }
    }

    fn after_expansion<'tcx>(&mut self, _: &Compiler, tcx: TyCtxt<'tcx>) -> Compilation {
        self.refusals = written::judge(tcx, &self.told);
        // The analysis may find more, or fail; it makes no code.
        self.told.answer(&self.refusals, &[]);
        // But it evaluates constants, and a constant that fails says what it had.
        match self.refusals.iter().any(told::Refusal::has_read) {
            true => Compilation::Stop,
            false => Compilation::Continue,
        }
    }

    fn after_analysis<'tcx>(&mut self, _: &Compiler, tcx: TyCtxt<'tcx>) -> Compilation {
        self.refusals.extend(typed::judge(tcx, &self.told));
        self.refusals.extend(order::judge(tcx, &self.told));
        let (found, glue) = entries::judge(tcx, &self.told);
        self.refusals.extend(found);
        self.refusals.extend(entries::names(tcx, &self.told));
        let told_loops = self.refusals.iter().any(|refusal| refusal.rule == "loops");
        let (found, loops) = graph::judge(tcx, &self.told, told_loops);
        self.refusals.extend(found);
        let mut lines = vec![format!("loops\t{loops}"), "whole".to_owned()];
        lines.extend(
            written::names(tcx)
                .into_iter()
                .map(|name| format!("file\t{}", name.replace(char::is_control, "?"))),
        );
        lines.extend(glue.into_iter().map(|line| format!("glue\t{line}")));
        self.told.answer(&self.refusals, &lines);
        self.verdict()
    }
}

fn main() -> std::process::ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let directory =
        std::env::var("MULLION_JUDGE").expect("where the judge is told what is forbidden");
    let told = Told::read(&format!("{directory}/told"), format!("{directory}/answer"));
    let mut judge = Judge {
        told,
        refusals: Vec::new(),
    };
    rustc_driver::install_ice_hook("", |_| ());
    rustc_driver::catch_with_exit_code(|| rustc_driver::run_compiler(&arguments, &mut judge))
}
