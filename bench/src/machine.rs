//! The machine: what it is called, and staying on one of its processors.

use anyhow::{Context, Result, bail};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::fs;
use std::process::Command;

use crate::results::Machine;

/// Where this process stays, and another one that it might use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Processors {
    pub(crate) own: usize,
    /// `None`: it may run on one only.
    pub(crate) other: Option<usize>,
}

/// Binds this process, and what it starts from now on, to one processor.
pub(crate) fn stay_on(cpu: Option<usize>) -> Result<Processors> {
    let allowed = sched_getaffinity(None).context("asking for the processors that are allowed")?;
    let last = (0..CpuSet::MAX_CPU).rev().find(|n| allowed.is_set(*n));
    let Some(chosen) = cpu
        .or(last)
        .filter(|n| *n < CpuSet::MAX_CPU && allowed.is_set(*n))
    else {
        bail!(
            "processor {} is not one this process may run on",
            cpu.unwrap_or_default()
        );
    };
    let mut only = CpuSet::new();
    only.set(chosen);
    sched_setaffinity(None, &only).with_context(|| format!("staying on processor {chosen}"))?;
    Ok(Processors {
        own: chosen,
        other: (0..CpuSet::MAX_CPU).find(|n| *n != chosen && allowed.is_set(*n)),
    })
}

impl Processors {
    /// Whether the two are threads of one core, as far as the system says.
    pub(crate) fn are_one_core(self) -> bool {
        let path = format!(
            "/sys/devices/system/cpu/cpu{}/topology/core_cpus_list",
            self.own
        );
        let list = fs::read_to_string(path).unwrap_or_default();
        let other = self.other.map(|cpu| cpu.to_string());
        list.trim()
            .split([',', '-'])
            .any(|cpu| Some(cpu) == other.as_deref())
    }
}

/// Names of processor, system and compiler; nothing that tells one machine from its like.
pub(crate) fn describe() -> Result<Machine> {
    let info = fs::read_to_string("/proc/cpuinfo").context("reading /proc/cpuinfo")?;
    let field = |name: &str| {
        let line = info
            .lines()
            .find(|line| line.split(':').next().is_some_and(|key| key.trim() == name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let model = field("model name").unwrap_or_else(|| "unknown processor".to_owned());
    let family = match (field("cpu family"), field("model")) {
        (Some(family), Some(model)) => format!(" (family {family}, model {model})"),
        _ => String::new(),
    };
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let version = Command::new("gcc")
        .arg("-dumpfullversion")
        .output()
        .context("asking gcc for its version")?;
    Ok(Machine {
        cpu: model + &family,
        system: format!(
            "Linux {}",
            kernel.split(['-', '+']).next().unwrap_or_default().trim()
        ),
        compiler: format!("gcc {}", String::from_utf8_lossy(&version.stdout).trim()),
    })
}
