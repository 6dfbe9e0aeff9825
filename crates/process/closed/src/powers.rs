//! What a process gives up besides calls: what root may, and files.

use std::io;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetStatus,
    Scope,
};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

/// The powers of root are gone, for the calling thread and those it starts: a filter lets calls through that do
/// more for root.
///
/// # Errors
///
/// As Linux has them.
pub fn drop_capabilities() -> io::Result<()> {
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    Ok(set_capabilities(None, none)?)
}

/// No file and no port is opened from here on, by the calling thread and those it starts. False without Landlock: then
/// the filter of calls refuses them alone.
///
/// # Errors
///
/// If Linux has Landlock, and refuses the rules.
pub fn drop_files() -> io::Result<bool> {
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(ABI::V6))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(ABI::V6)))
        .and_then(|rules| rules.scope(Scope::from_all(ABI::V6)))
        .and_then(|rules| rules.create()?.restrict_self())
        .map_err(io::Error::other)?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}
