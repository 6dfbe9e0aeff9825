//! What domains take while nobody is in them, as the kernel counts it.

use super::catalogue::Peer;
use super::peer::Peers;
use crate::results::DomainMemory;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs;

/// What one process has.
#[derive(Clone, Copy, Default)]
pub(crate) struct Use {
    /// Bytes that belong to this process alone.
    private: f64,
    /// Bytes of page tables.
    tables: f64,
    mappings: f64,
}

/// Everybody's, now.
pub(crate) fn of(peers: &Peers) -> Result<BTreeMap<(Peer, u64), Use>> {
    let domains = peers.processes().filter(|(peer, ..)| *peer != Peer::Native);
    domains
        .map(|(peer, domains, process)| Ok(((peer, domains), used(process)?)))
        .collect()
}

/// The difference between the largest population and one, for each domain.
pub(crate) fn per_domain(
    new: &BTreeMap<(Peer, u64), Use>,
    called: &BTreeMap<(Peer, u64), Use>,
) -> Vec<DomainMemory> {
    let mut all = Vec::new();
    for (state, uses) in [("new", new), ("called", called)] {
        for ((peer, domains), many) in uses.iter().filter(|((_, domains), _)| *domains == 10_000) {
            let Some(one) = uses.get(&(*peer, 1)) else {
                continue;
            };
            let each = |of: fn(&Use) -> f64| (of(many) - of(one)) / (*domains - 1) as f64;
            all.push(DomainMemory {
                peer: *peer,
                state: state.to_owned(),
                domains: *domains,
                resident_bytes: each(|used| used.private),
                page_table_bytes: each(|used| used.tables),
                mappings: each(|used| used.mappings),
            });
        }
    }
    all
}

fn used(process: u32) -> Result<Use> {
    let read = |file: &str| {
        let path = format!("/proc/{process}/{file}");
        fs::read_to_string(&path).with_context(|| format!("reading {path}"))
    };
    let rollup = read("smaps_rollup")?;
    Ok(Use {
        private: kilobytes(&rollup, "Private_Clean:") + kilobytes(&rollup, "Private_Dirty:"),
        tables: kilobytes(&read("status")?, "VmPTE:"),
        mappings: read("maps")?.lines().count() as f64,
    })
}

/// The bytes of a line `NAME 12 kB`; 0 if there is none.
fn kilobytes(text: &str, name: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
    number.unwrap_or(0.0) * 1024.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_takes_memory_and_mappings() {
        let used = used(std::process::id()).unwrap();
        assert!(used.private > 4096.0 && used.tables > 4096.0 && used.mappings > 5.0);
        assert_eq!(
            kilobytes("Rss: 1 kB\nPrivate_Clean:   3 kB\n", "Private_Clean:"),
            3072.0
        );
        assert_eq!(kilobytes("", "VmPTE:"), 0.0);
    }
}
