//! The subcommands. Each lives in a module of its own, with its arguments and its `run`.

mod admission;
mod admit;
mod bind;
mod cc;
mod client;
mod fetch;
mod grant;
mod inspect;
mod key;
mod keynote;
mod keynote_bench;
mod keys;
mod load;
mod loader;
mod log;
mod map;
mod model;
mod module_type;
mod policy;
mod provenance;
mod rewrite;
mod run;
mod sign;
mod sip;
mod verify;
mod version;

use clap::Subcommand;
use std::process::ExitCode;

/// Everything that `mullion` can be asked to do.
#[derive(Subcommand)]
pub(crate) enum Command {
    // Without a line here, help is what stands at the arguments, with exit statuses.
    Inspect(inspect::Args),
    /// Paint who may touch which memory.
    Map(map::Args),
    /// Confine the assembler text of a C or C++ compiler.
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
    /// Say whether an image may be loaded: by whose leave, with which limits, or why not.
    Admit(admit::Args),
    /// Grant somebody leave to load, as a signed credential; show and check grants.
    Grant(grant::Args),
    /// Make, show, import and list keys.
    Key(key::Args),
    /// Evaluate KeyNote assertions (RFC 2704).
    Keynote(keynote::Args),
    /// Load an extension into a loader that runs as a service.
    Load(Box<load::Args>),
    /// Run the code loader as a service; list, call and unload modules in it.
    Loader(loader::Args),
    /// Show and verify the record of decisions.
    Log(log::Args),
    /// Check a host's policy file.
    Policy(policy::Args),
    /// Sign a compilation record: this image is of this module type.
    Sign(sign::Args),
    /// Run separately built SIPs by a configuration, and look at them.
    Sip(sip::Args),
    /// Check module type files.
    Type(module_type::Args),
    /// Make stubs for both sides of an interface that a C header declares.
    Bind(bind::Args),
    /// Get the sources of a third-party library, checked against a lock file.
    Fetch(fetch::Args),
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
            Command::Rewrite(args) => args.run(),
            Command::Model(args) => args.run(),
            Command::Run(args) => args.run(),
            Command::Verify(args) => args.run(),
            Command::Cc(args) => args.cc(),
            Command::Cxx(args) => args.cxx(),
            Command::As(args) => args.assemble(),
            Command::Ld(args) => args.link(),
            Command::Admit(args) => args.run(),
            Command::Grant(args) => args.run(),
            Command::Key(args) => args.run(),
            Command::Keynote(args) => args.run(),
            Command::Load(args) => args.run(),
            Command::Loader(args) => args.run(),
            Command::Log(args) => args.run(),
            Command::Policy(args) => args.run(),
            Command::Sign(args) => args.run(),
            Command::Sip(args) => args.run(),
            Command::Type(args) => args.run(),
            Command::Fetch(args) => args.run(),
            Command::Version(args) => args.run(),
        }
    }
}
