//! Builds the peers and the extensions that they load.

use super::catalogue::{Catalogue, Peer};
use crate::builder::{Builder, run, words};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// For each peer its program and first arguments, or why it is missing. Behind them come
/// the budget, and then the number of domains, or two processors.
pub(crate) type Programs = BTreeMap<Peer, Result<Vec<OsString>, String>>;

/// Builds what is not up to date, for the rows of the catalogue.
///
/// # Errors
/// The peer without walls cannot be built: then there is nothing to compare with.
pub(crate) fn build(
    builder: &Builder,
    catalogue: &Catalogue,
    wasmtime: Result<&Path, String>,
) -> Result<Programs> {
    let peers = builder.bench.join("peers/crossing");
    let out = builder.build.join("crossing");
    fs::create_dir_all(&out).with_context(|| format!("making {}", out.display()))?;
    let site = Site {
        builder,
        peers,
        out,
    };
    let told = |error: anyhow::Error| format!("{error:#}");
    // A minute of gcc's time, for one row.
    let images = site.images(catalogue.asks("load")).map_err(told);
    let own = |kind: &str| {
        let images = images.clone()?;
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let line = [own.into(), "answer".into(), kind.into()];
        Ok(line.into_iter().chain(images.map(OsString::from)).collect())
    };
    let mut programs = Programs::new();
    for row in catalogue.rows() {
        if programs.contains_key(&row.peer) {
            continue;
        }
        let program = match row.peer {
            Peer::Native => Ok(site.native()?),
            Peer::Runtime => own("runtime"),
            Peer::Interface => own("interface"),
            Peer::C => images
                .clone()
                .and_then(|[image, ..]| site.c(&image).map_err(told)),
            Peer::Wasmtime => wasmtime
                .clone()
                .and_then(|library| site.wasmtime(library).map_err(told)),
        };
        programs.insert(row.peer, program);
    }
    Ok(programs)
}

struct Site<'a> {
    builder: &'a Builder<'a>,
    peers: PathBuf,
    out: PathBuf,
}

impl Site<'_> {
    fn native(&self) -> Result<Vec<OsString>> {
        let (program, library) = (self.out.join("native"), self.out.join("library.so"));
        self.gcc(&["-shared", "-fPIC"], &["library.c"], &library, &[])?;
        self.gcc(&[], &["native.c", "library.c"], &program, &["-ldl"])?;
        Ok(vec![program.into(), library.into()])
    }

    fn wasmtime(&self, library: &Path) -> Result<Vec<OsString>> {
        let program = self.out.join("wasmtime");
        self.gcc(&[], &["wasmtime.c"], &program, &["-ldl"])?;
        Ok(vec![program.into(), library.into()])
    }

    /// The C interface's library lies beside the command.
    fn c(&self, image: &Path) -> Result<Vec<OsString>> {
        let program = self.out.join("capi");
        let library = self.builder.tools.mullion.with_file_name("libmullion.a");
        if !library.is_file() {
            anyhow::bail!(
                "{} is not there (cargo build --release -p mullion-capi)",
                library.display()
            );
        }
        let include = format!("-I{}", self.builder.bench.join("../include").display());
        let library = library.to_string_lossy();
        let link = [&*library, "-lgcc_s", "-lpthread", "-ldl", "-lm"];
        self.gcc(&[&include], &["capi.c"], &program, &link)?;
        Ok(vec![program.into(), image.into()])
    }

    /// The extension, the same with floating-point control, the same without accesses through
    /// `%gs`, and the large one, or the first again in its place.
    fn images(&self, large: bool) -> Result<[PathBuf; 4]> {
        let image = |name: &str, source: &str, options: &[&str]| {
            let image = self.out.join(name);
            let mut step = vec![
                self.builder.tools.mullion.clone().into(),
                "cc".into(),
                "-O2".into(),
                "--mullion-kind=extension".into(),
            ];
            step.extend(words(options));
            self.make(step, &[source], &image, &[])?;
            anyhow::Ok(image)
        };
        Ok([
            image("extension.mx", "extension.c", &[])?,
            image("floating.mx", "extension.c", &["-DFLOATING"])?,
            image("register.mx", "extension.c", &["--mullion-base=register"])?,
            match large {
                true => image("large.mx", "large.c", &["-O1"])?,
                false => self.out.join("extension.mx"),
            },
        ])
    }

    fn gcc(&self, options: &[&str], sources: &[&str], to: &Path, link: &[&str]) -> Result<()> {
        let mut step = words(&["gcc", "-O2", "-Wall", "-Wextra"]);
        step.extend(words(options));
        self.make(step, sources, to, link)
    }

    fn make(
        &self,
        mut step: Vec<OsString>,
        sources: &[&str],
        to: &Path,
        link: &[&str],
    ) -> Result<()> {
        let sources: Vec<PathBuf> = sources.iter().map(|name| self.peers.join(name)).collect();
        let headers = ["answer.h", "work.h"].map(|name| self.peers.join(name));
        // What the step runs or links, where that is a file of this tree's own.
        let tools = step.iter().map(PathBuf::from);
        let tools = tools.chain(link.iter().map(PathBuf::from));
        let tools: Vec<PathBuf> = tools.filter(|path| path.is_absolute()).collect();
        let changed = |path: &PathBuf| fs::metadata(path).and_then(|data| data.modified());
        let made = changed(&to.to_owned()).ok();
        let sources_and_tools = sources.iter().chain(&headers).chain(&tools);
        if sources_and_tools
            .map(|path| changed(path).ok())
            .all(|time| time.is_some() && time < made)
        {
            return Ok(());
        }
        step.extend(sources.into_iter().map(OsString::from));
        step.extend(["-o".into(), to.into()]);
        step.extend(words(link));
        run(&step)
    }
}
