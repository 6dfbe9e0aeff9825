//! The subcommands. Each lives in a module of its own, with its arguments and its `run`.

mod admission;
mod admit;
mod bind;
mod cc;
mod client;
mod compile;
mod fetch;
mod get;
mod grant;
mod inspect;
mod key;
mod keynote;
mod keynote_bench;
mod keys;
mod legislate;
mod load;
mod loader;
mod log;
mod manual;
mod map;
mod model;
mod module_type;
mod packets;
mod policy;
mod provenance;
mod rewrite;
mod run;
mod rust;
mod sign;
mod sip;
mod top;
mod verify;
mod version;
mod word;

use clap::Subcommand;
use std::process::ExitCode;

/// Everything that `mullion` can be asked to do.
#[derive(Subcommand)]
pub(crate) enum Command {
    // Without a line here, help is what stands at the arguments, with exit statuses.
    Inspect(inspect::Args),
    Map(map::Args),
    Top(top::Args),
    Rewrite(rewrite::Args),
    /// Run the Mondriaan hardware model: traces, sweeps, synthetic workloads.
    Model(model::Args),
    Run(run::Args),
    Verify(verify::Args),
    /// Compile and link C like gcc, for a domain (see mullion cc --mullion-help).
    Cc(cc::Args),
    /// Compile and link C++ like g++, for a domain.
    #[command(name = "c++")]
    Cxx(cc::Args),
    /// The assembler that cc and c++ have gcc call: rewrites, then assembles.
    #[command(hide = true)]
    As(cc::Args),
    /// The linker that cc and c++ have gcc call.
    #[command(hide = true)]
    Ld(cc::Args),
    /// Compile C like clang, for a domain; LLVM 23 of rustup makes the code (see docs/extension.md).
    Clang(cc::Args),
    /// Compile C++ like clang++, for a domain.
    #[command(name = "clang++")]
    Clangxx(cc::Args),
    /// Compile a Rust crate like rustc, for a domain (see mullion rustc --mullion-help).
    Rustc(rust::Args),
    /// Run Cargo so that it builds for a domain: build, run, test and the rest.
    Cargo(rust::Args),
    /// The wrapper that Cargo calls in the place of rustc.
    #[command(hide = true)]
    RustcWrapped(rust::Args),
    /// The linker that rustc calls.
    #[command(hide = true)]
    RustcLd(rust::Args),
    Compile(compile::Args),
    /// A step of compile, with limits.
    #[command(hide = true)]
    CompileStep(compile::StepArgs),
    Admit(admit::Args),
    Grant(grant::Args),
    Key(key::Args),
    Keynote(keynote::Args),
    Legislate(legislate::Args),
    Load(Box<load::Args>),
    Loader(loader::Args),
    Log(log::Args),
    Packets(packets::Args),
    Policy(policy::Args),
    Sign(sign::Args),
    /// Run separately built SIPs by a configuration, and look at them.
    Sip(sip::Args),
    Type(module_type::Args),
    Bind(bind::Args),
    Word(word::Args),
    Fetch(fetch::Args),
    Get(get::Args),
    #[command(hide = true)]
    Manual(manual::Args),
    /// Print the version of the command and of the window's binary interface.
    Version(version::Args),
}

impl Command {
    /// Runs the subcommand; an error is printed by `main` and ends with status 1.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Command::Inspect(args) => args.run(),
            Command::Bind(args) => args.run(),
            Command::Map(args) => args.run(),
            Command::Top(args) => args.run(),
            Command::Rewrite(args) => args.run(),
            Command::Model(args) => args.run(),
            Command::Run(args) => args.run(),
            Command::Verify(args) => args.run(),
            Command::Cc(args) => args.cc(),
            Command::Cxx(args) => args.cxx(),
            Command::As(args) => args.assemble(),
            Command::Ld(args) => args.link(),
            Command::Clang(args) => args.clang(),
            Command::Clangxx(args) => args.clangxx(),
            Command::Rustc(args) => args.rustc(),
            Command::Cargo(args) => args.cargo(),
            Command::RustcWrapped(args) => args.wrapped(),
            Command::RustcLd(args) => args.link(),
            Command::Compile(args) => args.run(),
            Command::CompileStep(args) => args.run(),
            Command::Admit(args) => args.run(),
            Command::Grant(args) => args.run(),
            Command::Key(args) => args.run(),
            Command::Keynote(args) => args.run(),
            Command::Legislate(args) => args.run(),
            Command::Load(args) => args.run(),
            Command::Loader(args) => args.run(),
            Command::Log(args) => args.run(),
            Command::Packets(args) => args.run(),
            Command::Policy(args) => args.run(),
            Command::Sign(args) => args.run(),
            Command::Sip(args) => args.run(),
            Command::Type(args) => args.run(),
            Command::Word(args) => args.run(),
            Command::Fetch(args) => args.run(),
            Command::Get(args) => args.run(),
            Command::Manual(args) => args.run(crate::command_line()),
            Command::Version(args) => args.run(),
        }
    }
}
