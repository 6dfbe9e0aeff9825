//! Builds a sysroot: sources to assembler text once, then, for each
//! protection and base, rewriting, assembling and archiving, on all processors.

use super::unit::{Unit, copy_tree, entries, file_name};
use super::{builtins, cxx, embedded, musl, pure};
use crate::compiler::{CODE, TUNING};
use crate::{DriverError, assembler, tools};
use indicatif::{ProgressBar, ProgressStyle};
use mullion_fetch::Lock;
use mullion_rewriter::{Base, Options, Wall};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Archives that are empty because the C library, or the C++ library, holds their content, and
/// build systems ask for them.
const EMPTY: &[&str] = &[
    "libm.a",
    "libpthread.a",
    "librt.a",
    "libdl.a",
    "libcrypt.a",
    "libutil.a",
    "libxnet.a",
    "libresolv.a",
    "libgcc_eh.a",
    "libgcc_s.a",
    "libatomic.a",
    "libssp_nonshared.a",
    "libsupc++.a",
    "libstdc++fs.a",
];

/// What does not depend on the protection.
pub(super) fn common(gcc: &OsStr, place: &Path, common: &Path) -> Result<(), DriverError> {
    let lock = Lock::parse(embedded::text("sources.toml").unwrap_or_default())?;
    let library = mullion_fetch::fetch(lock.source("musl")?)?;
    let helpers = mullion_fetch::fetch(lock.source("compiler-rt")?)?;

    let work = tempfile::tempdir_in(place).map_err(|cause| DriverError::io(place, cause))?;
    let overlay = work.path().join("overlay");
    embedded::write(&overlay)?;
    let include = work.path().join("include");
    musl::install_headers(&library, &include)?;
    musl::add_to_headers(&overlay.join("musl/include"), &include)?;
    copy_tree(&overlay.join("include"), &include)?;
    copy_tree(&overlay.join("headers"), &include)?;
    let answer = tools::step(Command::new(gcc).arg("-print-file-name=include"))?;
    let compiler_headers = PathBuf::from(String::from_utf8_lossy(&answer).trim());
    let link = work.path().join("compiler-headers");
    std::os::unix::fs::symlink(&compiler_headers, &link)
        .map_err(|cause| DriverError::io(&link, cause))?;

    let mut units = musl::units(&library, &overlay, work.path())?;
    units.extend(builtins::units(&helpers, &overlay)?);
    let system = [
        OsString::from("-nostdinc"),
        "-isystem".into(),
        include.into(),
        "-isystem".into(),
        compiler_headers.into(),
    ];
    units.extend(cxx::units(gcc, &overlay, work.path())?);
    compile(gcc, "the C library", &units, &system, work.path())?;
    tools::publish(work, common)
}

/// Compiles the units to assembler text, `assembler/PRODUCT/NAME.s` below a directory.
pub(super) fn compile(
    compiler: &OsStr,
    what: &str,
    units: &[Unit],
    system: &[OsString],
    work: &Path,
) -> Result<(), DriverError> {
    let bar = progress(&format!("compiling {what}"), units.len());
    parallel(units, &bar, |unit| {
        let text = place_of(&work.join("assembler"), unit, "s")?;
        if unit
            .source
            .extension()
            .is_some_and(|extension| extension == "s")
        {
            return fs::copy(&unit.source, &text)
                .map(drop)
                .map_err(|cause| DriverError::io(&unit.source, cause));
        }
        let mut command = Command::new(compiler);
        command
            .args(["-S", "-O2", "-w"])
            .args(TUNING)
            .args(&unit.options)
            .args(system)
            .args(CODE);
        tools::step(command.arg(&unit.source).arg("-o").arg(&text)).map(drop)
    })
}

/// The archives and objects of one protection and base, from the common assembler text.
pub(super) fn library(
    options: &Options,
    place: &Path,
    common: &Path,
    library: &Path,
) -> Result<(), DriverError> {
    let work = tempfile::tempdir_in(place).map_err(|cause| DriverError::io(place, cause))?;
    let mut texts = texts_of(common)?;
    if options.wall != Wall::Window {
        texts.retain(|(product, text)| pure::is(product, text));
    } else {
        texts.retain(|(product, _)| product != pure::PRODUCT && product != pure::HEAP);
    }
    assemble("the C library", &texts, options, work.path())?;
    for name in EMPTY {
        let mut ar = Command::new("ar");
        tools::step(ar.current_dir(work.path()).arg("rcsD").arg(name))?;
    }
    tools::publish(work, library)
}

/// The assembler texts below a directory, each with what it becomes part of.
pub(super) fn texts_of(common: &Path) -> Result<Vec<(String, PathBuf)>, DriverError> {
    let mut texts = Vec::new();
    for product in entries(&common.join("assembler"))? {
        for text in entries(&product)? {
            texts.push((file_name(&product), text));
        }
    }
    Ok(texts)
}

/// Rewrites and assembles the texts, and archives the objects in a directory.
pub(super) fn assemble(
    what: &str,
    texts: &[(String, PathBuf)],
    options: &Options,
    work: &Path,
) -> Result<(), DriverError> {
    let bar = progress(
        &format!(
            "building {what} for {}{}",
            match options.wall {
                Wall::Window => options.protection.name(),
                Wall::Word(protection) => protection.name(),
            },
            match (options.wall, options.base) {
                (Wall::Word(_), _) => " behind the word wall",
                (_, Base::Segment) => "",
                (_, Base::Register) => " without %gs",
            }
        ),
        texts.len(),
    );
    parallel(texts, &bar, |(product, text)| {
        let directory = work.join(format!("{product}.d"));
        fs::create_dir_all(&directory).map_err(|cause| DriverError::io(&directory, cause))?;
        let object = directory.join(file_name(text)).with_extension("o");
        let before = fs::read_to_string(text).map_err(|cause| DriverError::io(text, cause))?;
        let after = assembler::rewrite(&before, text, options)?;
        match assembler::run(&[], Some(&before), &after, &object)? {
            ExitCode::SUCCESS => Ok(()),
            _ => Err(DriverError::Step {
                command: format!("as {}", text.display()),
                said: String::new(),
            }),
        }
    })?;
    collect(work, texts)
}

/// Archives the objects of each product; single objects move up.
fn collect(work: &Path, texts: &[(String, PathBuf)]) -> Result<(), DriverError> {
    let mut products: BTreeMap<&str, Vec<OsString>> = BTreeMap::new();
    for (product, text) in texts {
        let object = Path::new(&format!("{product}.d"))
            .join(file_name(text))
            .with_extension("o");
        products.entry(product).or_default().push(object.into());
    }
    for (product, objects) in &products {
        if product.ends_with(".a") {
            // Deterministic, with an index; the command line has room for all of it.
            tools::step(
                Command::new("ar")
                    .current_dir(work)
                    .arg("rcsD")
                    .arg(product)
                    .args(objects),
            )?;
        } else {
            let from = work.join(&objects[0]);
            fs::rename(&from, work.join(product)).map_err(|cause| DriverError::io(&from, cause))?;
        }
        let directory = work.join(format!("{product}.d"));
        fs::remove_dir_all(&directory).map_err(|cause| DriverError::io(&directory, cause))?;
    }
    Ok(())
}

fn place_of(root: &Path, unit: &Unit, extension: &str) -> Result<PathBuf, DriverError> {
    let directory = root.join(unit.product);
    fs::create_dir_all(&directory).map_err(|cause| DriverError::io(&directory, cause))?;
    Ok(directory.join(format!("{}.{extension}", unit.name)))
}

/// A bar; where there is no terminal, a line, so that nobody waits without knowing for what.
fn progress(what: &str, length: usize) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        let _ = writeln!(
            std::io::stderr(),
            "mullion: {what}: {length} files, which takes a while, once"
        );
    }
    let style = ProgressStyle::with_template("mullion: {msg} [{bar:30}] {pos}/{len}");
    let bar = ProgressBar::new(length as u64).with_message(what.to_owned());
    if let Ok(style) = style {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}

/// Does the work on all processors; the first error ends it.
fn parallel<T: Sync>(
    items: &[T],
    bar: &ProgressBar,
    work: impl Fn(&T) -> Result<(), DriverError> + Sync,
) -> Result<(), DriverError> {
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(None));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    bar.inc(1);
                    if let Err(error) = work(item) {
                        next.store(items.len(), Ordering::Relaxed);
                        failed
                            .lock()
                            .unwrap_or_else(std::sync::PoisonError::into_inner)
                            .get_or_insert(error);
                    }
                }
            });
        }
    });
    bar.finish_and_clear();
    let first = failed
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    first.map_or(Ok(()), Err)
}
