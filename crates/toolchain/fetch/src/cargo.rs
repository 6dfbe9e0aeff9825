//! Crates that carry C sources, by cargo. A manifest of one dependency is
//! enough: cargo finds the registry, the proxy and the cache by itself.

use crate::{FetchError, Source, run};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The `.crate` file of the source's first release, in cargo's own cache.
pub(crate) fn download(source: &Source, work: &Path) -> Result<PathBuf, FetchError> {
    let version = &source.releases[0].version;
    let manifest = work.join("Cargo.toml");
    let write = |path: &Path, text: &str| {
        fs::write(path, text).map_err(|cause| FetchError::io(path, cause))
    };
    // Optional dependencies and build scripts of the crate are resolved, never run.
    write(
        &manifest,
        &format!(
            "[package]\nname = \"carrier\"\nversion = \"0.0.0\"\nedition = \"2021\"\n[lib]\npath = \"lib.rs\"\n\
             [dependencies]\n{} = {{ version = \"={version}\", default-features = false }}\n[workspace]\n",
            source.package
        ),
    )?;
    write(&work.join("lib.rs"), "")?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let metadata = |place: &Path| {
        let mut command = Command::new(&cargo);
        command.args(["metadata", "--format-version=1", "--manifest-path"]);
        run(command.arg(&manifest).current_dir(place))
    };
    // First where no project's settings reach. But rustup may have no toolchain for such a place,
    // only one that the directory where we stand asks for.
    let answer = metadata(work).or_else(|error| metadata(Path::new(".")).map_err(|_| error))?;
    let unpacked = manifest_directory(&answer, source).ok_or_else(|| missing(source))?;
    archive_of(&unpacked).ok_or_else(|| missing(source))
}

fn missing(source: &Source) -> FetchError {
    FetchError::Missing {
        name: source.name.clone(),
        wanted: format!("archive of the crate {}", source.package),
    }
}

/// Where cargo unpacked the crate: `CARGO_HOME/registry/src/REGISTRY/NAME-VERSION`.
fn manifest_directory(metadata: &str, source: &Source) -> Option<PathBuf> {
    let metadata: serde_json::Value = serde_json::from_str(metadata).ok()?;
    let packages = metadata.get("packages")?.as_array()?;
    let package = packages
        .iter()
        .find(|package| package["name"].as_str() == Some(&source.package))?;
    Path::new(package["manifest_path"].as_str()?)
        .parent()
        .map(Path::to_path_buf)
}

/// The archive beside it: `CARGO_HOME/registry/cache/REGISTRY/NAME-VERSION.crate`.
fn archive_of(unpacked: &Path) -> Option<PathBuf> {
    let name = unpacked.file_name()?.to_str()?;
    let registry = unpacked.parent()?;
    let home = registry.parent()?.parent()?;
    let archive = home
        .join("cache")
        .join(registry.file_name()?)
        .join(format!("{name}.crate"));
    archive.is_file().then_some(archive)
}
