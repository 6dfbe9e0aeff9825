//! The kernel's modules, made for the word wall from their unmodified sources.
//!
//! kbuild has kept the command of each compilation beside its object. The same command, but for what says how code is
//! laid out, goes through the driver. So a module has the kernel's own flags, headers and configuration.

use crate::kernel::{Built, Setup, at};
use crate::row::{Outcome, Row};
use mullion_fetch::digest;
use mullion_word_verifier::verify;
use std::collections::HashMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};

/// The first argument with which [`Maker`] starts its own program as a compiler.
pub(crate) const COMPILE: &str = "--as-compiler";

/// Headers that are found before the kernel's own with these names.
const HEADERS: [(&str, &str); 13] = [
    ("asm/bitops.h", include_str!("../include/asm/bitops.h")),
    (
        "asm/thread_info.h",
        include_str!("../include/asm/thread_info.h"),
    ),
    ("linux/bio.h", include_str!("../include/linux/bio.h")),
    (
        "linux/bottom_half.h",
        include_str!("../include/linux/bottom_half.h"),
    ),
    (
        "linux/buffer_head.h",
        include_str!("../include/linux/buffer_head.h"),
    ),
    ("linux/mm.h", include_str!("../include/linux/mm.h")),
    (
        "linux/percpu-rwsem.h",
        include_str!("../include/linux/percpu-rwsem.h"),
    ),
    (
        "linux/page-flags.h",
        include_str!("../include/linux/page-flags.h"),
    ),
    (
        "linux/pagemap.h",
        include_str!("../include/linux/pagemap.h"),
    ),
    (
        "linux/rcutiny.h",
        include_str!("../include/linux/rcutiny.h"),
    ),
    (
        "linux/uaccess.h",
        include_str!("../include/linux/uaccess.h"),
    ),
    ("linux/wait.h", include_str!("../include/linux/wait.h")),
    (
        "net/net_namespace.h",
        include_str!("../include/net/net_namespace.h"),
    ),
];

/// Sections of the kernel's own whose names the linker script of modules takes for something else.
const RENAMED: [(&str, &str); 5] = [
    (".init.text", ".text.of_init"),
    (".exit.text", ".text.of_exit"),
    (".init.data", ".data.of_init"),
    (".init.rodata", ".rodata.of_init"),
    (".exit.data", ".data.of_exit"),
];

/// What is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// Stores alone.
    Write,
    /// Loads and stores.
    ReadWrite,
}

impl Protection {
    /// As the driver's option has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Protection::Write => "write",
            Protection::ReadWrite => "read-write",
        }
    }
}

/// A module of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// As the kernel lists it.
    pub name: String,
    /// Where kbuild has it, without the ending: `lib/lz4/lz4_compress`.
    pub place: String,
    /// Its objects, from the build's folder.
    pub objects: Vec<String>,
}

/// Makes modules of one build into one folder.
pub struct Maker<'b> {
    built: &'b Built,
    folder: PathBuf,
    /// Of this program, which is the compiler too.
    base: String,
    /// By the place of a module.
    turns: Mutex<HashMap<PathBuf, Arc<Mutex<()>>>>,
}

impl<'b> Maker<'b> {
    /// For the modules of this build, which are made in the folder.
    ///
    /// # Errors
    /// Files cannot be written.
    pub fn new(built: &'b Built, folder: &Path) -> Result<Maker<'b>, Setup> {
        let headers = folder.join("include");
        for part in ["asm", "linux", "net"] {
            let part = headers.join(part);
            fs::create_dir_all(&part).map_err(at(&part))?;
        }
        for (name, text) in HEADERS {
            let header = headers.join(name);
            fs::write(&header, text).map_err(at(&header))?;
        }
        let program = std::env::current_exe().map_err(at(Path::new("/proc")))?;
        Ok(Maker {
            built,
            folder: folder.to_path_buf(),
            base: digest(&program)?,
            turns: Mutex::default(),
        })
    }

    /// Where modules are made.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The lock of a module's [place](Self::place). Its holder makes the module there, from its own source or a changed one. No other
    /// thread writes there until the holder has taken it.
    pub(crate) fn turn(&self, module: &Module, protection: Protection) -> Arc<Mutex<()>> {
        let place = self.place(module, protection);
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(turns.entry(place).or_default())
    }

    /// All modules that the build has, by name.
    ///
    /// # Errors
    /// The build's lists cannot be read.
    pub fn modules(&self) -> Result<Vec<Module>, Setup> {
        let build = self.built.build_folder();
        let order = build.join("modules.order");
        let listed = fs::read_to_string(&order).map_err(at(&order))?;
        let mut all = Vec::new();
        for line in listed.lines() {
            let place = line.strip_suffix(".ko").or_else(|| line.strip_suffix(".o"));
            let place = place.unwrap_or(line).to_owned();
            let list = build.join(format!("{place}.mod"));
            let objects = fs::read_to_string(&list).map_err(at(&list))?;
            let stem = Path::new(&place).file_name().unwrap_or_default();
            all.push(Module {
                name: stem.to_string_lossy().replace('-', "_"),
                objects: objects.split_whitespace().map(str::to_owned).collect(),
                place,
            });
        }
        all.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(all)
    }

    /// kbuild's own file of a module.
    #[must_use]
    pub fn plain(&self, module: &Module) -> PathBuf {
        self.built
            .build_folder()
            .join(format!("{}.ko", module.place))
    }

    /// These modules of `all`, with those that they need, in an order in which they can be loaded.
    ///
    /// # Errors
    /// There is no such module, or kbuild's file of one cannot be read.
    pub fn in_order<'m>(
        &self,
        all: &'m [Module],
        names: &[&str],
    ) -> Result<Vec<&'m Module>, Setup> {
        let mut order = Vec::new();
        for name in names {
            self.put(all, name, &mut order)?;
        }
        Ok(order)
    }

    fn put<'m>(
        &self,
        all: &'m [Module],
        name: &str,
        order: &mut Vec<&'m Module>,
    ) -> Result<(), Setup> {
        let module = all.iter().find(|module| module.name == name);
        let module = module.ok_or_else(|| Setup::Build(format!("there is no module {name}")))?;
        if order.contains(&module) {
            return Ok(());
        }
        let file = self.plain(module);
        let bytes = fs::read(&file).map_err(at(&file))?;
        // kbuild writes this line, without circles.
        const KEY: &[u8] = b"\0depends=";
        let found = bytes.windows(KEY.len()).position(|window| window == KEY);
        let rest = found.map_or(&[][..], |found| &bytes[found + KEY.len()..]);
        let listed = rest.split(|byte| *byte == 0).next().unwrap_or_default();
        for needed in String::from_utf8_lossy(listed)
            .split(',')
            .filter(|name| !name.is_empty())
        {
            self.put(all, &needed.replace('-', "_"), order)?;
        }
        order.push(module);
        Ok(())
    }

    /// The functions and variables that a module exports, by the kernel's own list.
    ///
    /// # Errors
    /// The list cannot be read.
    pub fn exports(&self, module: &Module) -> Result<Vec<(String, bool)>, Setup> {
        let list = self.built.build_folder().join("Module.symvers");
        let text = fs::read_to_string(&list).map_err(at(&list))?;
        let read = |line: &str| {
            let mut fields = line.split('\t').skip(1);
            let (name, place, kind) = (fields.next()?, fields.next()?, fields.next()?);
            let ours = place == module.place;
            ours.then(|| (name.to_owned(), kind == "EXPORT_SYMBOL_GPL"))
        };
        Ok(text.lines().filter_map(read).collect())
    }

    /// Where a module is, once it has been made.
    #[must_use]
    pub fn place(&self, module: &Module, protection: Protection) -> PathBuf {
        let folder = self.folder.join(protection.name());
        folder.join(&module.name).with_extension("so")
    }

    /// Makes a module, unless that was done already, and verifies it.
    ///
    /// # Errors
    /// Files or programs fail; a module that cannot be made is an outcome.
    pub fn make(&self, module: &Module, protection: Protection) -> Result<Row, Setup> {
        self.make_with(module, protection, &[], &mut |_| None)
    }

    /// As [`make`](Self::make). `named` are functions of which a policy speaks: those that are static in the source get names
    /// that can be found. `source` may name another file in the place of one of the module's sources.
    ///
    /// # Errors
    /// As there.
    pub fn make_with(
        &self,
        module: &Module,
        protection: Protection,
        named: &[&str],
        source: &mut dyn FnMut(&str) -> Option<PathBuf>,
    ) -> Result<Row, Setup> {
        let row = |outcome| Row {
            name: module.name.clone(),
            protection: protection.name(),
            outcome,
        };
        let place = self.place(module, protection);
        if let Some(folder) = place.parent() {
            fs::create_dir_all(folder).map_err(at(folder))?;
        }
        let work = tempfile::tempdir_in(&self.folder).map_err(at(&self.folder))?;
        let mut steps = Vec::new();
        for (number, object) in module.objects.iter().enumerate() {
            match self.command(object)? {
                Some(mut command) => {
                    if let Some(other) = source(&command.source) {
                        command.replace(&other);
                    }
                    steps.push((command, work.path().join(format!("{number}.o"))));
                }
                None => return Ok(row(Outcome::NotMade(format!("{object} is assembler text")))),
            }
        }
        let key = self.key(&steps, named)?;
        let key_place = place.with_extension("key");
        let known = place.is_file() && fs::read_to_string(&key_place).is_ok_and(|old| old == key);
        if !known {
            let _absent = fs::remove_file(&key_place);
            if let Some(why) = self.compile(&steps, protection, named, &place)? {
                return Ok(row(Outcome::NotMade(why)));
            }
            fs::write(&key_place, key).map_err(at(&key_place))?;
        }
        let bytes = fs::read(&place).map_err(at(&place))?;
        Ok(row(outcome(bytes)))
    }

    /// The functions that a module imports, once it has been made.
    ///
    /// # Errors
    /// It was not made, or the verifier does not accept it.
    pub fn imports(&self, module: &Module, protection: Protection) -> Result<Vec<String>, Setup> {
        let place = self.place(module, protection);
        let bytes = fs::read(&place).map_err(at(&place))?;
        let verified = verify(bytes);
        let verified = verified.map_err(|why| Setup::Build(format!("{}: {why}", module.name)))?;
        Ok(verified.imports().to_vec())
    }

    fn command(&self, object: &str) -> Result<Option<Compilation>, Setup> {
        let path = Path::new(object);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let kept = path.with_file_name(format!(".{name}.cmd"));
        let file = self.built.build_folder().join(kept);
        let text = fs::read_to_string(&file).map_err(at(&file))?;
        let first = text.lines().next().unwrap_or_default();
        let line = first.split_once(" := ").map_or("", |(_, line)| line);
        let parsed = Compilation::parse(line);
        parsed
            .ok_or_else(|| Setup::Build(format!("{}: no compilation", file.display())))
            .map(|found| found.source.ends_with(".c").then_some(found))
    }

    /// All that a module depends on, but for headers.
    fn key(&self, steps: &[(Compilation, PathBuf)], named: &[&str]) -> Result<String, Setup> {
        let mut key = format!("{}\n{}\n", self.base, named.join(" "));
        for (step, _) in steps {
            let source = self.built.build_folder().join(&step.source);
            key.push_str(&digest(&source)?);
            key.push_str(&step.options.join(" "));
            key.push('\n');
        }
        Ok(key)
    }

    /// Why it cannot be made, or none.
    fn compile(
        &self,
        steps: &[(Compilation, PathBuf)],
        protection: Protection,
        named: &[&str],
        place: &Path,
    ) -> Result<Option<String>, Setup> {
        for (step, object) in steps {
            if let Some(why) = self.compile_one(step, protection, named, object)? {
                return Ok(Some(why));
            }
        }
        let mut command = self.compiler(protection)?;
        command.args(steps.iter().map(|(_, object)| object));
        command.arg("-o").arg(place);
        run(&mut command)
    }

    /// Compiles one source, unless the folder has its object already: a module of which one source is another compiles that one.
    fn compile_one(
        &self,
        step: &Compilation,
        protection: Protection,
        named: &[&str],
        object: &Path,
    ) -> Result<Option<String>, Setup> {
        let known = self.folder.join("objects");
        fs::create_dir_all(&known).map_err(at(&known))?;
        let mut key = tempfile::NamedTempFile::new_in(&known).map_err(at(&known))?;
        let source = self.built.build_folder().join(&step.source);
        let name = source.file_stem().unwrap_or_default().to_string_lossy();
        let text = [
            &*self.base,
            protection.name(),
            &named.join(" "),
            &step.options.join(" "),
            &digest(&source)?,
        ];
        key.write_all(text.join("\n").as_bytes())
            .map_err(at(&known))?;
        let known = known.join(format!("{name}-{}.o", &digest(key.path())?[..16]));
        if !known.is_file() {
            let mut command = self.compiler(protection)?;
            command.arg("-I").arg(self.folder.join("include"));
            command
                .args(&step.options)
                .args(["-D__DISABLE_EXPORTS", "-g1", "-w"]);
            command.arg("-c").arg(&step.source).arg("-o").arg(object);
            if let Some(why) = run(&mut command)? {
                return Ok(Some(why));
            }
            let mut command = Command::new("objcopy");
            for (old, new) in RENAMED {
                command.arg("--rename-section").arg(format!("{old}={new}"));
            }
            for name in named {
                command.arg(format!("--globalize-symbol={name}"));
            }
            command.arg(object);
            if let Some(why) = run(&mut command)? {
                return Ok(Some(why));
            }
            // Changed sources are compiled once.
            if step.is_own {
                let fresh = key.path().with_extension("fresh");
                fs::copy(object, &fresh).map_err(at(&fresh))?;
                fs::rename(&fresh, &known).map_err(at(&known))?;
            }
            return Ok(None);
        }
        fs::copy(&known, object).map_err(at(&known))?;
        Ok(None)
    }

    /// A module by kbuild's own commands, with other files in the places of its sources; without a wall. None: one is no C.
    ///
    /// # Errors
    /// Files or programs fail.
    pub fn make_plain(
        &self,
        module: &Module,
        to: &Path,
        source: &mut dyn FnMut(&str) -> Option<PathBuf>,
    ) -> Result<Option<PathBuf>, Setup> {
        let build = self.built.build_folder();
        let (whole, made) = (
            to.join(format!("{}.o", module.name)),
            to.join(format!("{}.ko", module.name)),
        );
        let mut link = Command::new("ld");
        link.current_dir(&build).args(["-m", "elf_x86_64", "-r"]);
        link.args(["-z", "noexecstack"]).arg("-o").arg(&whole);
        for (number, object) in module.objects.iter().enumerate() {
            let other = match self.command(object)? {
                Some(command) => source(&command.source).map(|other| (command, other)),
                None => None,
            };
            let Some((mut command, other)) = other else {
                link.arg(object);
                continue;
            };
            command.replace(&other);
            let place = to.join(format!("{number}.o"));
            let mut gcc = Command::new("gcc");
            gcc.current_dir(&build).args(&command.options);
            gcc.args(&command.layout).args(["-w", "-c"]);
            gcc.arg(&command.source).arg("-o").arg(&place);
            if run(&mut gcc)?.is_some() {
                return Ok(None);
            }
            link.arg(&place);
        }
        let mut last = Command::new("ld");
        last.current_dir(&build).args(["-r", "-m", "elf_x86_64"]);
        last.args(["-z", "noexecstack", "-T", "scripts/module.lds"]);
        last.arg("-o").arg(&made).arg(&whole);
        last.arg(format!("{}.mod.o", module.place));
        for command in [&mut link, &mut last] {
            if let Some(why) = run(command)? {
                return Err(Setup::Build(format!("{}: {why}", module.name)));
            }
        }
        Ok(Some(made))
    }

    fn compiler(&self, protection: Protection) -> Result<Command, Setup> {
        let program = std::env::current_exe().map_err(at(Path::new("/proc")))?;
        let mut command = Command::new(program);
        command.current_dir(self.built.build_folder());
        command.args([COMPILE, "--wall=word"]);
        command.arg(format!("--protection={}", protection.name()));
        Ok(command)
    }
}

/// What the program said about its failure; none if it did not fail.
fn run(command: &mut Command) -> Result<Option<String>, Setup> {
    let program = PathBuf::from(command.get_program());
    let output = command.output().map_err(at(&program))?;
    Ok((!output.status.success()).then(|| first_line(&output.stderr)))
}

/// A compilation of kbuild's, with what a module of checked code wants otherwise.
#[derive(Debug, PartialEq, Eq)]
struct Compilation {
    options: Vec<String>,
    /// How kbuild's own code is laid out.
    layout: Vec<String>,
    source: String,
    /// The source is the kernel's.
    is_own: bool,
}

impl Compilation {
    /// None: it is none.
    fn parse(line: &str) -> Option<Compilation> {
        let mut words = words(line).into_iter().skip(1);
        let mut found = Compilation {
            options: Vec::new(),
            layout: Vec::new(),
            source: String::new(),
            is_own: true,
        };
        while let Some(word) = words.next() {
            match word.as_str() {
                ";" => break,
                "-o" => drop(words.next()?),
                "-fno-PIE" | "-fno-pie" | "-fno-PIC" | "-fno-pic" => found.layout.push(word),
                _ if word.starts_with("-mcmodel=") => found.layout.push(word),
                "-c" => {}
                _ if word.starts_with("-Wp,-M") => {}
                _ if word.ends_with(".c") || word.ends_with(".S") => found.source = word,
                _ => found.options.push(word),
            }
        }
        (!found.source.is_empty()).then_some(found)
    }

    /// Another file, which finds the headers that lie beside this one.
    fn replace(&mut self, other: &Path) {
        let beside = Path::new(&self.source).parent().unwrap_or(Path::new("."));
        let beside = beside.display().to_string();
        self.options.extend(["-iquote".to_owned(), beside]);
        self.source = other.display().to_string();
        self.is_own = false;
    }
}

/// A command of the shell's as words: kbuild quotes by single and double quotes and by backslashes.
fn words(line: &str) -> Vec<String> {
    let (mut all, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut characters = line.chars();
    while let Some(c) = characters.next() {
        match (quote, c) {
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (Some(open), c) if c == open => quote = None,
            (None | Some('"'), '\\') => {
                word.get_or_insert_default().extend(characters.next());
            }
            (None, ';') => {
                all.extend(word.take());
                all.push(";".to_owned());
            }
            (None, c) if c.is_whitespace() => all.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    all.extend(word);
    all
}

fn outcome(bytes: Vec<u8>) -> Outcome {
    match verify(bytes) {
        Ok(verified) => Outcome::Verified {
            functions: verified.imports().len(),
            addresses: verified
                .symbols()
                .filter(|(_, symbol)| symbol.address.is_none() && !symbol.name.is_empty())
                .count(),
            gates: verified.gates().len(),
            checks: verified.stats().checks,
            code: verified.growth(),
        },
        Err(rejected) => Outcome::Rejected(rejected.to_string()),
    }
}

/// The first line that is about an error, or the first one.
fn first_line(said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said).into_owned();
    let mut lines = said.lines().filter(|line| !line.trim().is_empty());
    let first = lines.clone().next().unwrap_or("it does not say why");
    let telling = lines.find(|line| line.contains("error") || line.starts_with("mullion: "));
    telling.unwrap_or(first).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compilation_is_read_as_the_shell_reads_it() {
        let line = "gcc -Wp,-MMD,lib/.a.o.d -nostdinc -include ../a.h -mcmodel=large -fno-PIE -D__KERNEL__ \
            -DKBUILD_BASENAME='\"a\"' -DKBUILD_MODNAME='\"b c\"' -D\"X(s)=\\#s\" -c -o lib/a.o ../lib/a.c  ; echo x.c";
        let found = Compilation::parse(line).expect("it compiles");
        let options = [
            "-nostdinc",
            "-include",
            "../a.h",
            "-D__KERNEL__",
            "-DKBUILD_BASENAME=\"a\"",
            "-DKBUILD_MODNAME=\"b c\"",
            "-DX(s)=#s",
        ];
        assert_eq!(found.options, options);
        assert_eq!(found.source, "../lib/a.c");
        assert_eq!(Compilation::parse("ld -r -o a.o b.o"), None);
    }
}
