//! What a synthetic program is like, with the bounds of each parameter.

use thiserror::Error;

/// What the program is like. Every field has a default; the defaults together are near the middle of the
/// paper's four workloads in Tables 6 and 8.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// Events to make, those of the start included.
    pub events: u64,
    /// Modules beside the kernel, 1 to 200. Default 8 (Mondrix has 11 isolated modules, section 1, some of
    /// them the supervisor's and the kernel's own).
    pub modules: u32,
    /// Kernel threads, 1 to 64. Default 4.
    pub threads: u32,
    /// Instructions between switches of threads. Default 100,000.
    pub switch_period: u64,
    /// Cross-domain calls for each thousand instructions, 0 to 50. Default 1.7, which gives about a
    /// thousand cycles between calls with the stalls counted (Table 6 has 664 to 1,286).
    pub calls_per_kilocycle: f64,
    /// Fraction of cross-domain calls that a domain makes to itself. Default 0.6 (Table 6 has 50 to 70 %).
    pub self_calls: f64,
    /// Objects allocated for each million instructions; as many are freed. Default 20.
    pub allocations_per_megacycle: f64,
    /// Buffers lent to a module for the length of a call, for each million instructions. Default 10.
    pub loans_per_megacycle: f64,
    /// Stack words opened to a callee, for each million instructions. Default 10.
    pub grants_per_megacycle: f64,
    /// Fraction of data accesses, beyond those to the stack, that go to the group's memory. Default 0.05.
    pub sharing: f64,
    /// Objects in the group's memory. Default 256.
    pub shared_objects: u32,
    /// Bytes of static data that a domain works on, 4096 to 1 MiB. Default 65536.
    pub working_set: u64,
    /// Bytes of text that a domain runs in, 4096 to 1 MiB. Default 65536.
    pub text: u64,
    /// How much accesses stay where they were. This is the fraction of accesses that stay within 64 bytes of the
    /// last. It is also that of straight lines that follow on the last or go back within the function. Default 0.95.
    pub locality: f64,
    /// Data accesses for each instruction. Default 0.4.
    pub accesses_per_instruction: f64,
    /// Wild stores for each million instructions, into memory of another domain. Default 0.
    pub faults_per_megacycle: f64,
    /// Idle cycles for each switch of threads. Default 0.
    pub idle: u64,
    /// Where the random numbers begin. The same parameters and seed give the same trace.
    pub seed: u64,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            events: 10_000_000,
            modules: 8,
            threads: 4,
            switch_period: 100_000,
            calls_per_kilocycle: 1.7,
            self_calls: 0.6,
            allocations_per_megacycle: 20.0,
            loans_per_megacycle: 10.0,
            grants_per_megacycle: 10.0,
            sharing: 0.05,
            shared_objects: 256,
            working_set: 64 << 10,
            text: 64 << 10,
            locality: 0.95,
            accesses_per_instruction: 0.4,
            faults_per_megacycle: 0.0,
            idle: 0,
            seed: 1,
        }
    }
}

/// A parameter that makes no program.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("{name} is {value}: it can be from {least} to {most}")]
pub struct ParamError {
    /// Which.
    pub name: &'static str,
    /// What was asked for.
    pub value: f64,
    /// The least.
    pub least: f64,
    /// The most.
    pub most: f64,
}

impl Params {
    /// Whether there is such a program.
    pub fn check(&self) -> Result<(), ParamError> {
        let bounds = [
            ("events", self.events as f64, 1.0, 1e12),
            ("modules", f64::from(self.modules), 1.0, 200.0),
            ("threads", f64::from(self.threads), 1.0, 64.0),
            ("switch-period", self.switch_period as f64, 1000.0, 1e12),
            ("calls-per-kilocycle", self.calls_per_kilocycle, 0.0, 50.0),
            ("self-calls", self.self_calls, 0.0, 1.0),
            (
                "allocations-per-megacycle",
                self.allocations_per_megacycle,
                0.0,
                10_000.0,
            ),
            (
                "loans-per-megacycle",
                self.loans_per_megacycle,
                0.0,
                10_000.0,
            ),
            (
                "grants-per-megacycle",
                self.grants_per_megacycle,
                0.0,
                10_000.0,
            ),
            ("sharing", self.sharing, 0.0, 1.0),
            (
                "shared-objects",
                f64::from(self.shared_objects),
                1.0,
                65536.0,
            ),
            ("working-set", self.working_set as f64, 4096.0, 1048576.0),
            ("text", self.text as f64, 4096.0, 1048576.0),
            ("locality", self.locality, 0.0, 1.0),
            (
                "accesses-per-instruction",
                self.accesses_per_instruction,
                0.0,
                2.0,
            ),
            (
                "faults-per-megacycle",
                self.faults_per_megacycle,
                0.0,
                10_000.0,
            ),
            ("idle", self.idle as f64, 0.0, 1e12),
        ];
        let outside = |&(_, value, least, most): &(_, f64, f64, f64)| {
            // A value that is no number is outside too.
            !(least..=most).contains(&value)
        };
        match bounds.into_iter().find(outside) {
            Some((name, value, least, most)) => Err(ParamError {
                name,
                value,
                least,
                most,
            }),
            None => Ok(()),
        }
    }

    /// The parameters on one line, as the command takes them: a trace's note.
    pub fn note(&self) -> String {
        format!(
            "mullion model synth --events {} --modules {} --threads {} --switch-period {} \
             --calls-per-kilocycle {} --self-calls {} --allocations-per-megacycle {} \
             --loans-per-megacycle {} --grants-per-megacycle {} --sharing {} --shared-objects {} \
             --working-set {} --text {} --locality {} --accesses-per-instruction {} \
             --faults-per-megacycle {} --idle {} --seed {}",
            self.events,
            self.modules,
            self.threads,
            self.switch_period,
            self.calls_per_kilocycle,
            self.self_calls,
            self.allocations_per_megacycle,
            self.loans_per_megacycle,
            self.grants_per_megacycle,
            self.sharing,
            self.shared_objects,
            self.working_set,
            self.text,
            self.locality,
            self.accesses_per_instruction,
            self.faults_per_megacycle,
            self.idle,
            self.seed,
        )
    }
}
