//! The lock file: which sources, which releases of them, which digests.

use crate::FetchError;
use serde::Deserialize;

/// A lock file, `sysroot/sources.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    /// Every source that may be fetched.
    #[serde(rename = "source")]
    pub sources: Vec<Source>,
}

/// One third-party source.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Source {
    /// Our name for it, unique in the lock file.
    pub name: String,
    /// Which client gets it.
    pub kind: SourceKind,
    /// The client's name for it.
    pub package: String,
    /// Its licence, as an SPDX expression: built on the user's machine, never shipped.
    pub licence: String,
    /// The releases that are accepted, preferred ones first.
    pub releases: Vec<Release>,
}

/// Which client gets a source, and in which form.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum SourceKind {
    /// A crate, by `cargo fetch`.
    Crate,
    /// The upstream archive of a Debian source package, by `apt-get source`.
    DebianSource,
    /// Debian's own part of a Debian source package (`.debian.tar.*`), by `apt-get source`.
    DebianPackaging,
    /// A Debian binary package, by `apt-get download`.
    DebianPackage,
}

/// One release of a source.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Release {
    /// The client's version of it; for a Debian source, upstream's; for Debian's part of one, Debian's.
    pub version: String,
    /// SHA-256 of the archive, 64 lower-case hexadecimal digits.
    pub sha256: String,
}

impl Lock {
    /// Reads a lock file's text.
    ///
    /// # Errors
    /// Not TOML, unknown or missing fields, a digest that is none.
    pub fn parse(text: &str) -> Result<Self, FetchError> {
        let lock: Self =
            toml::from_str(text).map_err(|cause| FetchError::Lock(cause.to_string()))?;
        for source in &lock.sources {
            if source.releases.is_empty() {
                return Err(FetchError::Lock(format!("{}: no release", source.name)));
            }
            for release in &source.releases {
                let hexadecimal = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
                if release.sha256.len() != 64 || !release.sha256.bytes().all(hexadecimal) {
                    return Err(FetchError::Lock(format!(
                        "{} {}: bad sha256",
                        source.name, release.version
                    )));
                }
            }
        }
        Ok(lock)
    }

    /// The source of that name.
    ///
    /// # Errors
    /// There is none.
    pub fn source(&self, name: &str) -> Result<&Source, FetchError> {
        self.sources
            .iter()
            .find(|source| source.name == name)
            .ok_or_else(|| FetchError::Unlisted(name.to_owned()))
    }
}

impl Source {
    /// The name of a release's archive, as the client leaves it. Debian's
    /// upstream archives vary in compression; the usual one is named.
    #[must_use]
    pub fn file_name(&self, release: &Release) -> String {
        let (package, version) = (&self.package, &release.version);
        match self.kind {
            SourceKind::Crate => format!("{package}-{version}.crate"),
            SourceKind::DebianSource => format!("{package}_{version}.orig.tar.gz"),
            SourceKind::DebianPackaging => format!("{package}_{version}.debian.tar.xz"),
            SourceKind::DebianPackage => format!("{package}_{version}_all.deb"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
        [[source]]
        name = "sample"
        kind = "crate"
        package = "sample-sys"
        licence = "MIT"
        releases = [{ version = "1.0.0", sha256 = "00000000000000000000000000000000000000000000000000000000000000ff" }]
    "#;

    #[test]
    fn a_source_is_found_by_name() {
        let lock = Lock::parse(GOOD).unwrap();
        let source = lock.source("sample").unwrap();
        assert_eq!(
            source.file_name(&source.releases[0]),
            "sample-sys-1.0.0.crate"
        );
        assert!(matches!(lock.source("other"), Err(FetchError::Unlisted(name)) if name == "other"));
    }

    #[test]
    fn a_short_digest_is_refused() {
        let text = GOOD.replace("00ff", "ff");
        assert!(
            matches!(Lock::parse(&text), Err(FetchError::Lock(message)) if message.contains("sample 1.0.0"))
        );
    }

    #[test]
    fn an_unknown_field_is_refused() {
        let text = GOOD.replace("licence", "license");
        assert!(matches!(Lock::parse(&text), Err(FetchError::Lock(_))));
    }
}
