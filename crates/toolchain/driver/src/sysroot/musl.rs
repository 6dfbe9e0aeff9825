//! The C library: which of musl's files are built, how, and what replaces them.
//!
//! A file `sysroot/musl/src/D/F` replaces musl's `src/D/F`, whether that is C
//! or x86-64 assembler text. Of musl's x86-64 files only the mathematics in C
//! is used: its assembler text keeps things where a domain may not.

use super::pure;
use super::unit::{Unit, copy_tree, entries, file_name};
use crate::{DriverError, tools};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Files of musl's that files of other names replace here: `malloc/allocator`
/// holds the whole heap, `string/memmove` also `memcpy`.
const LEFT_OUT: &[&str] = &[
    "malloc/calloc",
    "malloc/free",
    "malloc/libc_calloc",
    "malloc/lite_malloc",
    "malloc/realloc",
    "malloc/replaced",
    "string/memcpy",
];

/// Installs the headers, as musl's own makefile does.
pub(super) fn install_headers(library: &Path, include: &Path) -> Result<(), DriverError> {
    copy_tree(&library.join("include"), include)?;
    let bits = include.join("bits");
    copy_tree(&library.join("arch/generic/bits"), &bits)?;
    copy_tree(&library.join("arch/x86_64/bits"), &bits)?;
    let types = tools::step(
        Command::new("sed")
            .arg("-f")
            .arg(library.join("tools/mkalltypes.sed"))
            .arg(library.join("arch/x86_64/bits/alltypes.h.in"))
            .arg(library.join("include/alltypes.h.in")),
    )?;
    write(&bits.join("alltypes.h"), &types)?;
    let numbers = library.join("arch/x86_64/bits/syscall.h.in");
    let numbers = fs::read_to_string(&numbers).map_err(|cause| DriverError::io(&numbers, cause))?;
    let mut text = numbers.clone();
    for line in numbers.lines().filter(|line| line.contains("__NR_")) {
        text.push_str(&line.replacen("__NR_", "SYS_", 1));
        text.push('\n');
    }
    write(&bits.join("syscall.h"), text.as_bytes())?;
    for template in ["bits/alltypes.h.in", "bits/syscall.h.in", "alltypes.h.in"] {
        let _absent = fs::remove_file(include.join(template));
    }
    Ok(())
}

/// Adds this tree's declarations to headers of musl's: `sysroot/musl/include/F` belongs behind musl's `F`.
pub(super) fn add_to_headers(own: &Path, include: &Path) -> Result<(), DriverError> {
    for addition in entries(own)? {
        let header = include.join(file_name(&addition));
        let read = |file: &Path| fs::read(file).map_err(|cause| DriverError::io(file, cause));
        let mut text = read(&header)?;
        text.extend(read(&addition)?);
        write(&header, &text)?;
    }
    Ok(())
}

/// Everything that `libc.a` and the start-up objects consist of.
pub(super) fn units(library: &Path, overlay: &Path, work: &Path) -> Result<Vec<Unit>, DriverError> {
    let own = overlay.join("musl");
    let mut sources = upstream(&library.join("src"))?;
    sources.extend(replacements(&own.join("src"))?);
    let options = options(library, &own, work)?;
    let mut units: Vec<Unit> = sources
        .into_iter()
        .map(|(name, source)| Unit {
            product: "libc.a",
            name: name.replace('/', "-"),
            source,
            options: options.clone(),
        })
        .collect();
    for (directory, product, part) in [
        ("word", pure::PRODUCT, "string"),
        ("word/heap", pure::HEAP, "heap"),
    ] {
        for source in entries(&overlay.join(directory))?
            .into_iter()
            .filter(|path| path.extension().is_some_and(|name| name == "c"))
        {
            units.push(Unit {
                product,
                name: format!("{part}-{}", stem(&source)),
                source,
                options: options.clone(),
            });
        }
    }
    for (product, file) in [
        ("program.o", "crt/program.c"),
        ("extension.o", "crt/extension.c"),
        ("libgomp.a", "openmp/gomp.c"),
    ] {
        let (name, source) = (stem(Path::new(product)), overlay.join(file));
        units.push(Unit {
            product,
            name,
            source,
            options: vec!["-ffreestanding".into()],
        });
    }
    Ok(units)
}

/// musl's own files by what they define (`string/memcpy`): the generic ones,
/// and the x86-64 ones that are C.
fn upstream(source: &Path) -> Result<BTreeMap<String, PathBuf>, DriverError> {
    let mut files = BTreeMap::new();
    for directory in entries(source)?.into_iter().filter(|path| path.is_dir()) {
        add(&mut files, &directory, &file_name(&directory))?;
        let x86 = directory.join("x86_64");
        if x86.is_dir() {
            add(&mut files, &x86, &file_name(&directory))?;
        }
    }
    files.retain(|name, _| !LEFT_OUT.contains(&name.as_str()));
    Ok(files)
}

fn add(
    files: &mut BTreeMap<String, PathBuf>,
    directory: &Path,
    prefix: &str,
) -> Result<(), DriverError> {
    for path in entries(directory)?
        .into_iter()
        .filter(|path| path.extension().is_some_and(|name| name == "c"))
    {
        files.insert(format!("{prefix}/{}", stem(&path)), path);
    }
    Ok(())
}

/// This tree's files, by the same names.
fn replacements(own: &Path) -> Result<Vec<(String, PathBuf)>, DriverError> {
    let mut files = Vec::new();
    for directory in entries(own)? {
        for path in entries(&directory)?
            .into_iter()
            .filter(|path| path.extension().is_some_and(|name| name != "h"))
        {
            files.push((format!("{}/{}", file_name(&directory), stem(&path)), path));
        }
    }
    Ok(files)
}

fn stem(path: &Path) -> String {
    path.file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// What musl's makefile and configure script would use with gcc, and where its
/// private headers are. Line tables are kept, for reports of faults.
fn options(library: &Path, own: &Path, work: &Path) -> Result<Vec<OsString>, DriverError> {
    let generated = work.join("generated");
    fs::create_dir_all(&generated).map_err(|cause| DriverError::io(&generated, cause))?;
    let version = library.join("VERSION");
    let version = fs::read_to_string(&version).map_err(|cause| DriverError::io(&version, cause))?;
    write(
        &generated.join("version.h"),
        format!("#define VERSION \"{}\"\n", version.trim()).as_bytes(),
    )?;

    let flags = [
        "-std=c99",
        "-ffreestanding",
        "-fomit-frame-pointer",
        "-fexcess-precision=standard",
        "-frounding-math",
        "-fno-strict-aliasing",
        "-fno-tree-loop-distribute-patterns",
        "-ffunction-sections",
        "-fdata-sections",
        "-g1",
        "-D_XOPEN_SOURCE=700",
    ];
    let mut options: Vec<OsString> = flags.iter().map(OsString::from).collect();
    options.push(format!("-ffile-prefix-map={}=/sysroot/musl", library.display()).into());
    options.push(format!("-ffile-prefix-map={}=/sysroot/mullion", own.display()).into());
    let directories = [
        own.join("arch"),
        own.join("src/string"),
        library.join("arch/x86_64"),
        library.join("arch/generic"),
        generated,
        library.join("src/include"),
        library.join("src/internal"),
    ];
    for directory in directories {
        options.push("-I".into());
        options.push(directory.into());
    }
    Ok(options)
}

fn write(file: &Path, content: &[u8]) -> Result<(), DriverError> {
    fs::write(file, content).map_err(|cause| DriverError::io(file, cause))
}
