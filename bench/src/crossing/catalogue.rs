//! `crossings.toml`: the rows, who answers them, and what this project aims at.

use crate::results::Cited;
use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// The table without numbers.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Catalogue {
    pub(crate) group: Vec<Group>,
    pub(crate) cited: Vec<Cited>,
}

/// Rows that are compared with each other, and with the first.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Group {
    /// For the command line.
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) row: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Row {
    pub(crate) peer: Peer,
    pub(crate) ask: String,
    pub(crate) title: String,
    pub(crate) what: String,
    /// Nanoseconds: wanted, and at most.
    pub(crate) aim: Option<[f64; 2]>,
    /// What is to be known of the aim, in a few words without special characters.
    pub(crate) note: Option<String>,
    /// Sizes of populations whose domains do it one after the other as well.
    #[serde(default)]
    in_turn: Vec<u64>,
}

/// What was asked for; nothing named is everything.
pub(crate) struct Selection<'a> {
    /// Names of groups.
    pub(crate) groups: Vec<&'a str>,
    pub(crate) peers: &'a [Peer],
    /// Sizes of populations.
    pub(crate) domains: &'a [u64],
}

/// Who answers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Peer {
    /// Calls without a wall, the kernel, another process: `native.c`.
    Native,
    /// `mullion-runtime` and `mullion-loader`, in this program.
    Runtime,
    /// The crate `mullion`, in this program.
    Interface,
    /// `include/mullion.h`: `capi.c`.
    C,
    /// WebAssembly: `wasmtime.c`.
    Wasmtime,
}

/// How many domains are alive, and whether one does it or each in its turn.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(crate) enum Population {
    #[serde(rename = "1")]
    One,
    #[serde(rename = "100")]
    Hundred,
    #[serde(rename = "10000")]
    TenThousand,
    #[serde(rename = "100 in turn")]
    HundredInTurn,
    #[serde(rename = "10000 in turn")]
    TenThousandInTurn,
}

impl Population {
    pub(crate) const ALL: [Population; 5] = [
        Population::One,
        Population::Hundred,
        Population::TenThousand,
        Population::HundredInTurn,
        Population::TenThousandInTurn,
    ];

    pub(crate) fn domains(self) -> u64 {
        match self {
            Population::One => 1,
            Population::Hundred | Population::HundredInTurn => 100,
            Population::TenThousand | Population::TenThousandInTurn => 10_000,
        }
    }

    pub(crate) fn is_in_turn(self) -> bool {
        matches!(
            self,
            Population::HundredInTurn | Population::TenThousandInTurn
        )
    }

    /// For the head of a column.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Population::One => "1",
            Population::Hundred => "100",
            Population::TenThousand => "10,000",
            Population::HundredInTurn => "100 turn",
            Population::TenThousandInTurn => "10k turn",
        }
    }
}

impl Peer {
    pub(crate) const ALL: [Peer; 5] = [
        Peer::Native,
        Peer::Runtime,
        Peer::Interface,
        Peer::C,
        Peer::Wasmtime,
    ];

    /// The name in messages and in the style sheet.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Peer::Native => "native",
            Peer::Runtime => "runtime",
            Peer::Interface => "interface",
            Peer::C => "c",
            Peer::Wasmtime => "wasmtime",
        }
    }

    /// Whether it must be there: this tree's own, in this very program.
    pub(crate) fn is_own(self) -> bool {
        matches!(self, Peer::Native | Peer::Runtime | Peer::Interface)
    }

    /// In words, for legends.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Peer::Native => "no wall, the kernel, another process",
            Peer::Runtime => "Mullion, the run time alone",
            Peer::Interface => "Mullion, the interface in Rust",
            Peer::C => "Mullion, the interface in C",
            Peer::Wasmtime => "wasmtime",
        }
    }
}

impl Catalogue {
    /// Reads `bench/crossings.toml`.
    pub(crate) fn load(bench: &Path) -> Result<Self> {
        let path = bench.join("crossings.toml");
        let text =
            fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        toml::from_str(&text).with_context(|| format!("in {}", path.display()))
    }

    /// Keeps what was asked for.
    pub(crate) fn select(&mut self, selection: &Selection<'_>) -> Result<()> {
        for name in &selection.groups {
            if !self.group.iter().any(|group| group.name == *name) {
                bail!("no group of crossings is called `{name}`; --list shows them");
            }
        }
        self.group
            .retain(|group| has(&selection.groups, &group.name.as_str()));
        for group in &mut self.group {
            group.row.retain(|row| has(selection.peers, &row.peer));
        }
        self.group.retain(|group| !group.row.is_empty());
        Ok(())
    }

    /// Whether a row of it is asked for by this name.
    pub(crate) fn asks(&self, ask: &str) -> bool {
        self.rows().any(|row| row.ask == ask)
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.group.iter().flat_map(|group| &group.row)
    }
}

impl Selection<'_> {
    /// Whether a population of this size was asked for. What has no domains is always one.
    pub(crate) fn has_population(&self, peer: Peer, domains: u64) -> bool {
        peer == Peer::Native || has(self.domains, &domains)
    }
}

fn has<T: PartialEq>(named: &[T], one: &T) -> bool {
    named.is_empty() || named.contains(one)
}

impl Row {
    /// The cells that it has: one where there are no domains.
    pub(crate) fn populations(&self) -> Vec<Population> {
        let has = |population: &Population| match population {
            Population::One => true,
            _ if self.peer == Peer::Native => false,
            other if other.is_in_turn() => self.in_turn.contains(&other.domains()),
            _ => true,
        };
        Population::ALL.into_iter().filter(has).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_table_of_this_tree_is_read_and_asks_nothing_twice() {
        let catalogue = Catalogue::load(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
        let mut asked = BTreeSet::new();
        for row in catalogue.rows() {
            assert!(asked.insert((row.peer, row.ask.clone())), "{}", row.ask);
            assert!(row.aim.is_none_or(|[aim, most]| aim <= most), "{}", row.ask);
            let sizes: Vec<u64> = row.populations().iter().map(|p| p.domains()).collect();
            for size in &row.in_turn {
                assert!(sizes.contains(size), "{}", row.ask);
            }
        }
        assert!(asked.len() > 40);
    }

    #[test]
    fn what_is_selected_stays_and_a_name_that_is_none_is_refused() {
        let mut catalogue = Catalogue::load(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
        let selection = Selection {
            groups: vec!["inside", "load"],
            peers: &[Peer::C],
            domains: &[100],
        };
        assert!(selection.has_population(Peer::Native, 1));
        assert!(!selection.has_population(Peer::C, 1) && selection.has_population(Peer::C, 100));
        catalogue.select(&selection).unwrap();
        let asked: Vec<_> = catalogue
            .rows()
            .map(|row| (row.peer, row.ask.as_str()))
            .collect();
        assert_eq!(asked, [(Peer::C, "host")]);
        let groups = vec!["outside"];
        assert!(
            catalogue
                .select(&Selection {
                    groups,
                    ..selection
                })
                .is_err()
        );
    }
}
