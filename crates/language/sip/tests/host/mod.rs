//! The host's power in tests, each of which has an OS thread to itself. Other crates' tests use this file, too.

use std::sync::LazyLock;

use mullion_sip_hosting::{Deputy, Host};

static DEPUTY: LazyLock<Deputy> = LazyLock::new(|| Host::begin().expect("the first").deputy());
thread_local!(static HOST: Host = DEPUTY.enter().expect("no worker"));

/// The calling thread's, which it has from here on.
pub(crate) fn host() -> Host {
    HOST.with(|_| Host::here()).expect("just entered")
}
