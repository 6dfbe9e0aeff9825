//! The list of workloads, `bench/workloads.toml`, with every path resolved.

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// One program of the benchmark: C sources, the same for every column.
pub(crate) struct Workload {
    pub(crate) name: String,
    pub(crate) what: String,
    /// The name of the group it belongs to.
    pub(crate) group: String,
    pub(crate) sources: Vec<PathBuf>,
    pub(crate) include: Vec<PathBuf>,
    /// Macro definitions, `NAME` or `NAME=VALUE`.
    pub(crate) define: Vec<String>,
    /// Included before anything else in every source.
    pub(crate) header: Option<PathBuf>,
    pub(crate) input: Option<Input>,
}

/// What a workload reads from standard input.
pub(crate) struct Input {
    pub(crate) path: PathBuf,
    /// Bytes from the start of the file; all of it if absent.
    pub(crate) limit: Option<usize>,
}

/// The workloads, and the groups' names with their titles in order of appearance.
pub(crate) struct Catalogue {
    pub(crate) groups: Vec<(String, String)>,
    pub(crate) workloads: Vec<Workload>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    group: Vec<GroupEntry>,
    library: BTreeMap<String, Library>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupEntry {
    name: String,
    title: String,
    workload: Vec<WorkloadEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WorkloadEntry {
    name: String,
    what: String,
    library: Option<String>,
    input: Option<PathBuf>,
    limit: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Library {
    root: PathBuf,
    sources: Vec<String>,
    #[serde(default)]
    exclude: Vec<String>,
    #[serde(default)]
    define: Vec<String>,
    header: Option<PathBuf>,
}

impl Catalogue {
    /// Reads the list under `bench`; libraries and inputs are looked for in `fetched`
    /// (absent if they could not be had: their workloads are then left out).
    pub(crate) fn load(bench: &Path, fetched: Option<&Path>) -> Result<Self> {
        let path = bench.join("workloads.toml");
        let text =
            fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let file: File = toml::from_str(&text).with_context(|| format!("in {}", path.display()))?;
        let mut catalogue = Catalogue::empty();
        for group in file.group {
            for entry in group.workload {
                if entry.library.is_some() && fetched.is_none() {
                    continue;
                }
                catalogue.workloads.push(resolve(
                    entry,
                    &group.name,
                    &file.library,
                    bench,
                    fetched,
                )?);
            }
            catalogue.groups.push((group.name, group.title));
        }
        Ok(catalogue)
    }

    /// No workloads.
    pub(crate) fn empty() -> Self {
        Catalogue {
            groups: Vec::new(),
            workloads: Vec::new(),
        }
    }

    /// Keeps what `only` names: workloads or groups, all of them if it is empty.
    pub(crate) fn select(&mut self, only: &[String]) -> Result<()> {
        for name in only {
            if !self
                .workloads
                .iter()
                .any(|w| w.name == *name || w.group == *name)
            {
                bail!("no workload or group is called `{name}`; --list shows them");
            }
        }
        if !only.is_empty() {
            self.workloads
                .retain(|w| only.contains(&w.name) || only.contains(&w.group));
        }
        self.groups
            .retain(|(group, _)| self.workloads.iter().any(|w| w.group == *group));
        Ok(())
    }
}

fn resolve(
    entry: WorkloadEntry,
    group: &str,
    libraries: &BTreeMap<String, Library>,
    bench: &Path,
    fetched: Option<&Path>,
) -> Result<Workload> {
    let folder = if entry.library.is_some() {
        "drivers"
    } else {
        "workloads"
    };
    let mut workload = Workload {
        sources: vec![bench.join(folder).join(&entry.name).with_extension("c")],
        include: vec![bench.join("workloads")],
        define: Vec::new(),
        header: None,
        input: None,
        group: group.to_owned(),
        name: entry.name,
        what: entry.what,
    };
    if let (Some(name), Some(fetched)) = (&entry.library, fetched) {
        let library = libraries
            .get(name)
            .with_context(|| format!("no [library.{name}] in workloads.toml"))?;
        let root = fetched.join(&library.root);
        workload.sources.extend(library_sources(&root, library)?);
        workload.include.push(root);
        workload.define.clone_from(&library.define);
        workload.header = library.header.as_ref().map(|header| bench.join(header));
    }
    if let Some(input) = entry.input {
        let own = bench.join(&input);
        let path = if own.exists() {
            own
        } else {
            fetched.unwrap_or(bench).join(&input)
        };
        workload.input = Some(Input {
            path,
            limit: entry.limit,
        });
    }
    Ok(workload)
}

/// The files that a library's patterns name: a path, or `FOLDER/*.c`.
fn library_sources(root: &Path, library: &Library) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for pattern in &library.sources {
        match pattern.strip_suffix("*.c") {
            None => found.push(root.join(pattern)),
            Some(folder) => {
                let folder = root.join(folder);
                let entries = fs::read_dir(&folder)
                    .with_context(|| format!("listing {}", folder.display()))?;
                for entry in entries {
                    let path = entry?.path();
                    if path.extension().is_some_and(|e| e == "c") {
                        found.push(path);
                    }
                }
            }
        }
    }
    found.retain(|path| !library.exclude.iter().any(|name| path.ends_with(name)));
    found.sort();
    if found.is_empty() {
        bail!("{} holds no sources", root.display());
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_of_this_tree_has_its_file() {
        let bench = Path::new(env!("CARGO_MANIFEST_DIR"));
        let catalogue = Catalogue::load(bench, None).unwrap();
        assert!(catalogue.workloads.len() >= 28);
        for workload in &catalogue.workloads {
            assert!(
                workload.sources[0].is_file(),
                "{} is missing",
                workload.sources[0].display()
            );
        }
    }

    #[test]
    fn a_name_that_is_none_is_refused() {
        let mut catalogue = Catalogue::load(Path::new(env!("CARGO_MANIFEST_DIR")), None).unwrap();
        assert!(catalogue.select(&["nothing".into()]).is_err());
        catalogue.select(&["misfit".into(), "fib".into()]).unwrap();
        let names: Vec<_> = catalogue
            .workloads
            .iter()
            .map(|w| w.name.as_str())
            .collect();
        assert_eq!(names, ["hotlist", "lld", "md5", "fib"]);
        assert_eq!(catalogue.groups.len(), 2);
    }
}
