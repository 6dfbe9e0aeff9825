//! `mullion model synth`.

use crate::output::file_by;
use mullion_mmp::synth::{self, ADDRESS_BITS, Failure, Params};
use mullion_mmp::trace::{Header, TraceWriter};
use std::io::BufWriter;
use std::path::PathBuf;
use std::process::ExitCode;

/// What the program is like.
#[derive(clap::Args)]
pub(super) struct Args {
    /// Where to write the trace.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Events to make.
    #[arg(long, default_value_t = Params::default().events)]
    events: u64,
    /// Modules beside the kernel, each in a domain of its own.
    #[arg(long, default_value_t = Params::default().modules)]
    modules: u32,
    /// Kernel threads.
    #[arg(long, default_value_t = Params::default().threads)]
    threads: u32,
    /// Instructions between switches of threads.
    #[arg(long, default_value_t = Params::default().switch_period)]
    switch_period: u64,
    /// Cross-domain calls for each thousand instructions.
    #[arg(long, default_value_t = Params::default().calls_per_kilocycle)]
    calls_per_kilocycle: f64,
    /// Fraction of cross-domain calls that a domain makes to itself.
    #[arg(long, default_value_t = Params::default().self_calls)]
    self_calls: f64,
    /// Objects allocated, and as many freed, for each million instructions of a module.
    #[arg(long, default_value_t = Params::default().allocations_per_megacycle)]
    allocations_per_megacycle: f64,
    /// Buffers that the kernel lends to a module for a call, for each million of its instructions.
    #[arg(long, default_value_t = Params::default().loans_per_megacycle)]
    loans_per_megacycle: f64,
    /// Words of the stack opened to a callee, for each million instructions.
    #[arg(long, default_value_t = Params::default().grants_per_megacycle)]
    grants_per_megacycle: f64,
    /// Fraction of a module's data accesses, beyond the stack's, that go to the group's memory.
    #[arg(long, default_value_t = Params::default().sharing)]
    sharing: f64,
    /// Objects in the group's memory.
    #[arg(long, default_value_t = Params::default().shared_objects)]
    shared_objects: u32,
    /// Bytes of static data that a domain works on.
    #[arg(long, default_value_t = Params::default().working_set)]
    working_set: u64,
    /// Bytes of text that a domain runs in.
    #[arg(long, default_value_t = Params::default().text)]
    text: u64,
    /// Fraction of accesses and jumps that stay near the last one.
    #[arg(long, default_value_t = Params::default().locality)]
    locality: f64,
    /// Data accesses for each instruction.
    #[arg(long, default_value_t = Params::default().accesses_per_instruction)]
    accesses_per_instruction: f64,
    /// Wild stores into another domain's memory, for each million instructions.
    #[arg(long, default_value_t = Params::default().faults_per_megacycle)]
    faults_per_megacycle: f64,
    /// Idle cycles for each switch of threads.
    #[arg(long, default_value_t = Params::default().idle)]
    idle: u64,
    /// Where the random numbers begin.
    #[arg(long, default_value_t = Params::default().seed)]
    seed: u64,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let params = Params {
            events: self.events,
            modules: self.modules,
            threads: self.threads,
            switch_period: self.switch_period,
            calls_per_kilocycle: self.calls_per_kilocycle,
            self_calls: self.self_calls,
            allocations_per_megacycle: self.allocations_per_megacycle,
            loans_per_megacycle: self.loans_per_megacycle,
            grants_per_megacycle: self.grants_per_megacycle,
            sharing: self.sharing,
            shared_objects: self.shared_objects,
            working_set: self.working_set,
            text: self.text,
            locality: self.locality,
            accesses_per_instruction: self.accesses_per_instruction,
            faults_per_megacycle: self.faults_per_megacycle,
            idle: self.idle,
            seed: self.seed,
        };
        params.check()?;
        let header = Header {
            address_bits: ADDRESS_BITS,
            note: params.note(),
        };
        file_by(&self.output, |file| -> anyhow::Result<()> {
            let mut writer = TraceWriter::new(BufWriter::new(file), &header)?;
            match synth::generate(&params, |event| writer.write(&event)) {
                Ok(()) => {}
                Err(Failure::Params(error)) => return Err(error.into()),
                Err(Failure::Sink(error)) => return Err(error.into()),
            }
            writer.finish()?;
            Ok(())
        })?;
        Ok(ExitCode::SUCCESS)
    }
}
