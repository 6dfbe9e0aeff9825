//! Which machines a sweep tries: every combination of the values of its dimensions.

use anyhow::bail;
use mullion_mmp::config::Config;
use mullion_mmp::table::Format;

/// The most runs of one sweep.
const MAX_RUNS: usize = 10_000;

/// A number of the machine that a sweep can change.
pub(super) struct Dimension {
    /// How tables and charts call it.
    pub(super) name: &'static str,
    /// Its value in a machine.
    pub(super) of: fn(&Config) -> u64,
    set: fn(&mut Config, u64),
    /// The values to try; at least one.
    pub(super) values: Vec<u64>,
}

impl Dimension {
    /// Whether there is more than one value.
    pub(super) fn varies(&self) -> bool {
        self.values.len() > 1
    }
}

/// What is tried.
pub(super) struct Plan {
    pub(super) formats: Vec<Format>,
    /// Granularity, protection lookaside buffer, gate lookaside buffer, the three caches.
    pub(super) dimensions: [Dimension; 6],
}

/// Places in [`Plan::dimensions`].
pub(super) const GRANULARITY: usize = 0;
pub(super) const PLB: usize = 1;
pub(super) const GLB: usize = 2;
pub(super) const CACHES: std::ops::Range<usize> = 3..6;

impl Plan {
    /// A dimension without values keeps the configuration's.
    pub(super) fn new(base: &Config, formats: Vec<Format>, values: [Vec<u64>; 6]) -> Plan {
        let blank = |name, of: fn(&Config) -> u64, set: fn(&mut Config, u64)| Dimension {
            name,
            of,
            set,
            values: Vec::new(),
        };
        let mut dimensions = [
            blank(
                "granularity",
                |config| config.tables.granularity,
                |config, value| config.tables.granularity = value,
            ),
            blank(
                "PLB",
                |config| u64::from(config.plb.entries),
                |config, value| config.plb.entries = narrow(value),
            ),
            blank(
                "GLB",
                |config| u64::from(config.glb.entries),
                |config, value| config.glb.entries = narrow(value),
            ),
            blank(
                "instruction cache",
                |config| config.caches.instruction.bytes,
                |config, value| config.caches.instruction.bytes = value,
            ),
            blank(
                "data cache",
                |config| config.caches.data.bytes,
                |config, value| config.caches.data.bytes = value,
            ),
            blank(
                "level-two cache",
                |config| config.caches.unified.bytes,
                |config, value| config.caches.unified.bytes = value,
            ),
        ];
        for (dimension, given) in dimensions.iter_mut().zip(values) {
            dimension.values = match given.is_empty() {
                true => vec![(dimension.of)(base)],
                false => given,
            };
        }
        Plan {
            formats,
            dimensions,
        }
    }

    /// The machines, the last dimension changing fastest.
    pub(super) fn machines(&self, base: &Config) -> anyhow::Result<Vec<Config>> {
        let mut machines = Vec::new();
        for &format in &self.formats {
            let mut config = base.clone();
            config.tables.format = format;
            machines.push(config);
        }
        for dimension in &self.dimensions {
            let runs = machines.len().saturating_mul(dimension.values.len());
            if runs > MAX_RUNS {
                bail!("the sweep has more than {MAX_RUNS} runs: name fewer values");
            }
            let with = |machine: Config| {
                let values = dimension.values.iter();
                values.map(move |&value| {
                    let mut machine = machine.clone();
                    (dimension.set)(&mut machine, value);
                    machine
                })
            };
            machines = machines.into_iter().flat_map(with).collect();
        }
        for machine in &machines {
            machine.check()?;
        }
        Ok(machines)
    }

    /// Whether a machine has, in every dimension but one, the value that charts over that one are drawn for: the
    /// finest granularity, the largest protection buffer, and the first value given of all else.
    pub(super) fn stands_for(&self, machine: &Config, over: usize) -> bool {
        let dimensions = self.dimensions.iter().enumerate();
        let mut others = dimensions.filter(|(place, _)| *place != over);
        others.all(|(place, dimension)| {
            let values = dimension.values.iter().copied();
            let chosen = match place {
                GRANULARITY => values.min(),
                PLB => values.max(),
                _ => values.take(1).next(),
            };
            Some((dimension.of)(machine)) == chosen
        })
    }
}

/// A number of entries, which the command line took as 32 bits.
fn narrow(entries: u64) -> u32 {
    u32::try_from(entries).unwrap_or(u32::MAX)
}
