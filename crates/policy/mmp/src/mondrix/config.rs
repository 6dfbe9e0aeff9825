//! Everything that can be set, with the paper's values as defaults.
//!
//! Each default names its source. *Choice* means that Mondrix gives no figure; such values are marked so
//! in `docs/model.md` too.

use crate::table::{Format, Geometry, GeometryError};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Why a configuration is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// Not TOML, an unknown key, or a value of the wrong kind.
    #[error("the configuration cannot be read: {0}")]
    Syntax(String),
    /// The cache does not divide into a power of two of sets.
    #[error(
        "a cache of {bytes} bytes with {ways} ways and {line}-byte lines is not a power of two of whole sets"
    )]
    CacheShape {
        /// Its size.
        bytes: u64,
        /// Its ways.
        ways: u32,
        /// Bytes in a line.
        line: u64,
    },
    /// Lines that are not a power of two from 16 to 4096 bytes.
    #[error("line-bytes is {0}: a power of two from 16 to 4096 is needed")]
    Line(u64),
    /// The tables cannot be laid out.
    #[error("{0}")]
    Geometry(#[from] GeometryError),
    /// A number beyond what is modelled.
    #[error("{key} is {value}: at most {limit} is modelled")]
    TooLarge {
        /// The key, with its section.
        key: &'static str,
        /// What was asked for.
        value: u64,
        /// The most that is modelled.
        limit: u64,
    },
}

/// The whole machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// The pipeline.
    pub processor: Processor,
    /// The cache hierarchy.
    pub caches: Caches,
    /// The permission tables.
    pub tables: Tables,
    /// The protection lookaside buffer.
    pub plb: PlbConfig,
    /// The gate lookaside buffer.
    pub glb: GlbConfig,
    /// Cross-domain calls and returns.
    pub crossing: Crossing,
    /// What the supervisor's own code costs.
    pub supervisor: SupervisorCosts,
    /// What is modelled beside the protected machine, and what is kept for the report.
    pub report: ReportConfig,
}

/// The pipeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Processor {
    /// Cycles for an instruction without its stalls. Default 1: "a processor that can complete one x86
    /// instruction per cycle" (Mondrix, section 5.2).
    pub cycles_per_instruction: u64,
}

impl Default for Processor {
    fn default() -> Self {
        Processor {
            cycles_per_instruction: 1,
        }
    }
}

/// The shape of one cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CacheConfig {
    /// Size in bytes.
    pub bytes: u64,
    /// Associativity.
    pub ways: u32,
}

impl CacheConfig {
    /// How many sets there are, if it divides into a power of two of them that can be modelled.
    pub fn sets(&self, line_bytes: u64) -> Result<u64, ConfigError> {
        let ways = u64::from(self.ways);
        let sets = self.bytes.checked_div(line_bytes * ways).unwrap_or(0);
        let fits = sets * line_bytes * ways == self.bytes;
        if !fits || !sets.is_power_of_two() || sets > 1 << 24 || ways > 64 {
            return Err(ConfigError::CacheShape {
                bytes: self.bytes,
                ways: self.ways,
                line: line_bytes,
            });
        }
        Ok(sets)
    }
}

/// The cache hierarchy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Caches {
    /// Bytes in a line, everywhere. Default 64 (Mondrix, section 5.2).
    pub line_bytes: u64,
    /// Level one, instructions. Default 16 KB, 4 ways (Mondrix, section 5.2). Replacement is least
    /// recently used (choice).
    pub instruction: CacheConfig,
    /// Level one, data. Default 16 KB, 4 ways (Mondrix, section 5.2).
    pub data: CacheConfig,
    /// Level two, unified. Default 2 MB, 8 ways (Mondrix, section 5.2).
    pub unified: CacheConfig,
    /// Cycles lost by a miss in level one. Default 16 (Mondrix, section 5.2).
    pub level1_miss_cycles: u64,
    /// Further cycles lost by a miss in level two. Default 200 (Mondrix, section 5.2). That it comes on
    /// top of the level-one miss is our reading; loads and stores stall alike (choice).
    pub level2_miss_cycles: u64,
}

impl Default for Caches {
    fn default() -> Self {
        Caches {
            line_bytes: 64,
            instruction: CacheConfig {
                bytes: 16 << 10,
                ways: 4,
            },
            data: CacheConfig {
                bytes: 16 << 10,
                ways: 4,
            },
            unified: CacheConfig {
                bytes: 2 << 20,
                ways: 8,
            },
            level1_miss_cycles: 16,
            level2_miss_cycles: 200,
        }
    }
}

/// The permission tables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Tables {
    /// The format. Default `vector`: "all experiments use the bitvector format" (Mondrix, section 5.2).
    pub format: Format,
    /// Bits of an address. Absent: what the trace says. The paper's machine has 32 (Figure 3).
    pub address_bits: Option<u32>,
    /// Bytes in the smallest unit with a permission of its own. Default 4, a word (Mondrix, section 2.1).
    pub granularity: u64,
    /// Whether members of a group share aligned subtrees (Mondrix, section 3.6, says that they can be).
    /// Default true.
    pub share_groups: bool,
    /// The most bytes that tables may take before the run is given up. Default 256 MB, the paper's main
    /// memory (Mondrix, section 5.2).
    pub limit_bytes: u64,
}

impl Default for Tables {
    fn default() -> Self {
        Tables {
            format: Format::Vector,
            address_bits: None,
            granularity: crate::access::WORD,
            share_groups: true,
            limit_bytes: 256 << 20,
        }
    }
}

/// The protection lookaside buffer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct PlbConfig {
    /// Entries; 0 turns the buffer off, and every check walks the table. Default 64 (choice: Mondrix says
    /// only that it is "comparable in size" to a translation lookaside buffer, section 2.1).
    pub entries: u32,
    /// Cycles for each load of a refill, before its stall. Default 1 (Mondrix, section 5.2.3).
    pub cycles_per_load: u64,
    /// Cycles for each flush of a power-of-two range. Default 1 (choice: one operation on a ternary
    /// memory).
    pub cycles_per_flush: u64,
}

impl Default for PlbConfig {
    fn default() -> Self {
        PlbConfig {
            entries: 64,
            cycles_per_load: 1,
            cycles_per_flush: 1,
        }
    }
}

/// The gate lookaside buffer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct GlbConfig {
    /// Gates that it holds. Default 64 (choice: Mondrix gives no size; its kernel has fewer than 1,000
    /// gates, section 2.2).
    pub entries: u32,
    /// Cycles for each load of a refill, before its stall. Default 1 (choice: as for the other buffer).
    pub cycles_per_load: u64,
}

impl Default for GlbConfig {
    fn default() -> Self {
        GlbConfig {
            entries: 64,
            cycles_per_load: 1,
        }
    }
}

/// Cross-domain calls and returns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Crossing {
    /// Cycles to flush the pipeline and access the call stack, before stalls. Default 5 (Mondrix,
    /// section 5.2.1), for a call and again for its return.
    pub cycles: u64,
    /// Entries of a thread's cross-domain call stack; a call beyond them is refused. Default 1024 (choice:
    /// the paper never saw more than 64, section 5.2.1).
    pub depth: u32,
}

impl Default for Crossing {
    fn default() -> Self {
        Crossing {
            cycles: 5,
            depth: 1024,
        }
    }
}

/// What the supervisor's own code costs. The paper ran real code and counted it; a trace holds calls, so
/// they are priced. All choices; `docs/model.md` says how they were found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct SupervisorCosts {
    /// Cycles of the top half for a call: entry, policy, bookkeeping. Default 300 (choice).
    pub top_cycles_per_call: u64,
    /// Further cycles of the top half for each range that it has written. Default 60 (choice).
    pub top_cycles_per_write: u64,
    /// Cycles of the bottom half for each range: finding the table. Default 30 (choice).
    pub bottom_cycles_per_write: u64,
    /// Cycles of the bottom half for each word that it reads or writes, before stalls. Default 2 (choice:
    /// the access and its share of the loop).
    pub bottom_cycles_per_word: u64,
}

impl Default for SupervisorCosts {
    fn default() -> Self {
        SupervisorCosts {
            top_cycles_per_call: 300,
            top_cycles_per_write: 60,
            bottom_cycles_per_write: 30,
            bottom_cycles_per_word: 2,
        }
    }
}

/// What is modelled beside the protected machine, and what is kept for the report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ReportConfig {
    /// Whether a second set of caches runs the same trace without protection, for the slowdown of
    /// Table 5. Default true.
    pub baseline: bool,
    /// How many refused accesses and calls are kept in full; all are counted. Default 100.
    pub refusals: u32,
}

impl Default for ReportConfig {
    fn default() -> Self {
        ReportConfig {
            baseline: true,
            refusals: 100,
        }
    }
}

impl Config {
    /// Reads TOML; what is not named keeps its default.
    pub fn from_toml(text: &str) -> Result<Config, ConfigError> {
        let config: Config =
            toml::from_str(text).map_err(|error| ConfigError::Syntax(error.to_string()))?;
        config.check()?;
        Ok(config)
    }

    /// Whether a machine of this configuration can be built.
    pub fn check(&self) -> Result<(), ConfigError> {
        let line = self.caches.line_bytes;
        if !line.is_power_of_two() || !(16..=4096).contains(&line) {
            return Err(ConfigError::Line(line));
        }
        for cache in [
            &self.caches.instruction,
            &self.caches.data,
            &self.caches.unified,
        ] {
            cache.sets(line)?;
        }
        let bits = self.tables.address_bits.unwrap_or(32);
        Geometry::new(bits, self.tables.granularity, 4)?;
        let most = [
            ("plb.entries", u64::from(self.plb.entries), 1 << 15),
            ("glb.entries", u64::from(self.glb.entries), 1 << 15),
            ("tables.limit-bytes", self.tables.limit_bytes, 8 << 30),
            ("crossing.depth", u64::from(self.crossing.depth), 1 << 16),
            ("report.refusals", u64::from(self.report.refusals), 1 << 20),
        ];
        let costs = [
            (
                "processor.cycles-per-instruction",
                self.processor.cycles_per_instruction,
            ),
            ("caches.level1-miss-cycles", self.caches.level1_miss_cycles),
            ("caches.level2-miss-cycles", self.caches.level2_miss_cycles),
            ("plb.cycles-per-load", self.plb.cycles_per_load),
            ("plb.cycles-per-flush", self.plb.cycles_per_flush),
            ("glb.cycles-per-load", self.glb.cycles_per_load),
            ("crossing.cycles", self.crossing.cycles),
            (
                "supervisor.top-cycles-per-call",
                self.supervisor.top_cycles_per_call,
            ),
            (
                "supervisor.top-cycles-per-write",
                self.supervisor.top_cycles_per_write,
            ),
            (
                "supervisor.bottom-cycles-per-write",
                self.supervisor.bottom_cycles_per_write,
            ),
            (
                "supervisor.bottom-cycles-per-word",
                self.supervisor.bottom_cycles_per_word,
            ),
        ];
        let costs = costs.map(|(key, value)| (key, value, 1 << 20));
        match most
            .into_iter()
            .chain(costs)
            .find(|(_, value, limit)| value > limit)
        {
            Some((key, value, limit)) => Err(ConfigError::TooLarge { key, value, limit }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_file_is_the_paper() {
        assert_eq!(Config::from_toml("").unwrap(), Config::default());
    }

    #[test]
    fn the_defaults_survive_a_round_trip() {
        let text = toml::to_string(&Config::default()).unwrap();
        assert_eq!(Config::from_toml(&text).unwrap(), Config::default());
    }

    #[test]
    fn one_key_changes_one_value() {
        let config = Config::from_toml("[plb]\nentries = 16\n").unwrap();
        assert_eq!(config.plb.entries, 16);
        assert_eq!(config.caches, Caches::default());
    }

    #[test]
    fn bad_values_are_named() {
        let refused = |text: &str| Config::from_toml(text).unwrap_err();
        assert!(matches!(
            refused("[plb]\nentires = 1"),
            ConfigError::Syntax(_)
        ));
        assert!(matches!(
            refused("[plb]\nentries = -1"),
            ConfigError::Syntax(_)
        ));
        assert_eq!(refused("[caches]\nline-bytes = 48"), ConfigError::Line(48));
        assert_eq!(
            refused("[caches]\ndata = { bytes = 1000, ways = 4 }"),
            ConfigError::CacheShape {
                bytes: 1000,
                ways: 4,
                line: 64
            }
        );
        assert_eq!(
            refused("[caches]\ndata = { bytes = 1024, ways = 0 }"),
            ConfigError::CacheShape {
                bytes: 1024,
                ways: 0,
                line: 64
            }
        );
        assert_eq!(
            refused("[tables]\ngranularity = 7"),
            ConfigError::Geometry(GeometryError::Granularity(7))
        );
        assert_eq!(
            refused("[plb]\nentries = 100000"),
            ConfigError::TooLarge {
                key: "plb.entries",
                value: 100_000,
                limit: 32768
            }
        );
    }
}
