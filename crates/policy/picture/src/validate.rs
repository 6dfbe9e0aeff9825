//! From a state that a file claims to one that can be painted.

use crate::state::{AccessKind, ByteAddress, ExportLevel, SupervisorState, VERSION};
use std::collections::{BTreeMap, BTreeSet};

/// A state that holds together: numbers are known and unique, domains are a tree, regions fill the space.
#[derive(Clone, Debug)]
pub struct Valid {
    state: SupervisorState,
}

impl Valid {
    /// What it is made of.
    pub fn state(&self) -> &SupervisorState {
        &self.state
    }
}

/// Why a state is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "the fields are named after what they hold, and the message says it"
)]
pub enum StateError {
    /// Not JSON, or not of this form.
    #[error("not a state: {0}; `mullion map --explain` describes the format")]
    Json(String),
    /// Written by a newer program.
    #[error("version {found} of the format; this program reads version {VERSION}")]
    Version { found: u32 },
    /// Empty, unaligned, or beyond the 64-bit address space.
    #[error(
        "{what} {start}..{end} is not a range: both ends are multiples of 4, in order, and at most 2^64"
    )]
    Range {
        what: &'static str,
        start: ByteAddress,
        end: ByteAddress,
    },
    /// Two of the same number.
    #[error("{what} {id} is there twice: give each its own number")]
    Twice { what: &'static str, id: u32 },
    /// A number that nothing has.
    #[error("{user} names {what} {id}, which is not in the file")]
    Unknown {
        user: String,
        what: &'static str,
        id: u32,
    },
    /// Not a tree with domain 0 as its only root.
    #[error(
        "domain {id}: {why}; domain 0 is the root, and every other domain leads to it by its parents"
    )]
    Tree { id: u32, why: &'static str },
    /// The global group lists members.
    #[error("group 0 is the global group: every domain is a member, so leave out its list")]
    GlobalMembers,
    /// Two regions for the same words, or none.
    #[error(
        "the regions do not fill the space: expected one that starts at {expected}, found {found}"
    )]
    Cover {
        expected: ByteAddress,
        found: ByteAddress,
    },
    /// A grant to nobody or to two.
    #[error("region {start}: each grant has either a `domain` or a `group`")]
    Holder { start: ByteAddress },
    /// A destination without a switch gate, or a switch gate without one.
    #[error("region {start}: `to` is the destination of a `switch-gate`, there and only there")]
    Destination { start: ByteAddress },
    /// More may be passed on than is held.
    #[error("region {start}: a grant of read cannot be exported in full")]
    Export { start: ByteAddress },
}

impl SupervisorState {
    /// Reads JSON. What comes out is only a claim.
    pub fn from_json(text: &str) -> Result<SupervisorState, StateError> {
        serde_json::from_str(text).map_err(|error| StateError::Json(error.to_string()))
    }

    /// Checks that the state holds together.
    pub fn validate(self) -> Result<Valid, StateError> {
        if self.mullion_state != VERSION {
            return Err(StateError::Version {
                found: self.mullion_state,
            });
        }
        range("space", self.space.start, self.space.end)?;
        for label in &self.labels {
            range("label", label.start, label.end)?;
        }
        let domains = unique("domain", self.domains.iter().map(|domain| domain.id))?;
        let groups = unique("group", self.groups.iter().map(|group| group.id))?;
        self.check_tree()?;
        self.check_groups(&domains)?;
        self.check_regions(&domains, &groups)?;
        Ok(Valid { state: self })
    }

    fn check_tree(&self) -> Result<(), StateError> {
        let parents: BTreeMap<u32, Option<u32>> = self
            .domains
            .iter()
            .map(|domain| (domain.id, domain.parent))
            .collect();
        if !parents.contains_key(&0) {
            return Err(StateError::Tree {
                id: 0,
                why: "is missing",
            });
        }
        for (id, parent) in &parents {
            match (id, parent) {
                (0, None) => continue,
                (0, Some(_)) => {
                    return Err(StateError::Tree {
                        id: 0,
                        why: "has a parent",
                    });
                }
                (_, None) => {
                    return Err(StateError::Tree {
                        id: *id,
                        why: "has no parent",
                    });
                }
                (_, Some(parent)) => known(
                    &format!("domain {id}"),
                    "domain",
                    *parent,
                    parents.contains_key(parent),
                )?,
            }
        }
        let rooted: BTreeSet<u32> = self.preorder().into_iter().map(|(id, _)| id).collect();
        match parents.keys().find(|id| !rooted.contains(id)) {
            Some(id) => Err(StateError::Tree {
                id: *id,
                why: "is its own ancestor, or below one that is",
            }),
            None => Ok(()),
        }
    }

    /// The domains that lead to the root, parents before children, with their depth below it.
    pub(crate) fn preorder(&self) -> Vec<(u32, usize)> {
        let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for domain in &self.domains {
            if let Some(parent) = domain.parent {
                children.entry(parent).or_default().push(domain.id);
            }
        }
        let mut order = Vec::new();
        let mut next = vec![(0, 0)];
        while let Some((id, depth)) = next.pop() {
            order.push((id, depth));
            // Each list is taken out, so that nothing is visited twice.
            let mut below = children.remove(&id).unwrap_or_default();
            below.sort_unstable_by(|a, b| b.cmp(a));
            next.extend(below.into_iter().map(|child| (child, depth + 1)));
        }
        order
    }

    fn check_groups(&self, domains: &BTreeSet<u32>) -> Result<(), StateError> {
        for group in &self.groups {
            let user = format!("group {}", group.id);
            known(
                &user,
                "domain",
                group.creator,
                domains.contains(&group.creator),
            )?;
            if group.id == 0 && !group.members.is_empty() {
                return Err(StateError::GlobalMembers);
            }
            for member in unique("member", group.members.iter().copied())? {
                known(&user, "domain", member, domains.contains(&member))?;
            }
        }
        Ok(())
    }

    fn check_regions(
        &self,
        domains: &BTreeSet<u32>,
        groups: &BTreeSet<u32>,
    ) -> Result<(), StateError> {
        let mut expected = self.space.start;
        for region in &self.regions {
            range("region", region.start, region.end)?;
            if region.start != expected {
                return Err(StateError::Cover {
                    expected,
                    found: region.start,
                });
            }
            expected = region.end;
            let start = region.start;
            let user = format!("region {start}");
            known(
                &user,
                "domain",
                region.owner,
                domains.contains(&region.owner),
            )?;
            let mut holders = BTreeSet::new();
            for grant in &region.grants {
                match (grant.domain, grant.group) {
                    (Some(domain), None) => {
                        known(&user, "domain", domain, domains.contains(&domain))?
                    }
                    (None, Some(group)) => known(&user, "group", group, groups.contains(&group))?,
                    _ => return Err(StateError::Holder { start }),
                }
                if !holders.insert((grant.domain, grant.group)) {
                    let (what, id) = match grant.group {
                        Some(id) => ("a grant to group", id),
                        None => ("a grant to domain", grant.domain.unwrap_or_default()),
                    };
                    return Err(StateError::Twice { what, id });
                }
                match (grant.access, grant.to) {
                    (AccessKind::SwitchGate, Some(to)) => {
                        known(&user, "domain", to, domains.contains(&to))?
                    }
                    (AccessKind::SwitchGate, None) | (_, Some(_)) => {
                        return Err(StateError::Destination { start });
                    }
                    _ => {}
                }
                if grant.access == AccessKind::Read && grant.export == ExportLevel::Full {
                    return Err(StateError::Export { start });
                }
            }
        }
        if expected != self.space.end {
            return Err(StateError::Cover {
                expected,
                found: self.space.end,
            });
        }
        Ok(())
    }
}

fn range(what: &'static str, start: ByteAddress, end: ByteAddress) -> Result<(), StateError> {
    let aligned = start.0.is_multiple_of(4) && end.0.is_multiple_of(4);
    if !aligned || start >= end || end.0 > 1 << 64 {
        return Err(StateError::Range { what, start, end });
    }
    Ok(())
}

fn unique(what: &'static str, ids: impl Iterator<Item = u32>) -> Result<BTreeSet<u32>, StateError> {
    let mut seen = BTreeSet::new();
    for id in ids {
        if !seen.insert(id) {
            return Err(StateError::Twice { what, id });
        }
    }
    Ok(seen)
}

fn known(user: &str, what: &'static str, id: u32, there: bool) -> Result<(), StateError> {
    match there {
        true => Ok(()),
        false => Err(StateError::Unknown {
            user: user.to_owned(),
            what,
            id,
        }),
    }
}
