//! What the program did, as a file for Prometheus.

use crate::output;
use mullion_metrics::{Metrics, prometheus};
use mullion_runtime::Domain;
use std::path::Path;

/// Writes the figures of the domain that ran the program at `path` to `file`.
pub(super) fn write(file: &Path, path: &Path, domain: &Domain) -> anyhow::Result<()> {
    let name = path.file_name().unwrap_or(path.as_os_str());
    let name = name.to_string_lossy().into_owned();
    let metrics = Metrics {
        domain: name.clone(),
        image: name,
        number: domain.number().0,
        counts: domain.meter().read(),
    };
    output::file(file, prometheus(&[metrics]))
}
