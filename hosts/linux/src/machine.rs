//! A kernel with some of its modules walled: those that have policies.

use crate::boot::Boot;
use crate::kernel::{Built, Setup, at};
use crate::modules::{Maker, Module, Protection};
use crate::row::{Outcome, Row};
use crate::stand::{ORDINARY, kbuild, stand};
use mullion_word_policy::File;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::time::Duration;

/// Modules in the place of kbuild's own.
#[derive(Clone, Copy, Debug)]
pub enum Instead<'f> {
    /// None.
    Nothing,
    /// Those of a folder, which stand for walled ones; and the wall's library.
    Walled(&'f Path, &'f Path),
    /// Those of a folder, without a wall.
    Plain(&'f Path),
}

/// A kernel, its modules, and the policies of some of them.
pub struct Machine<'b> {
    built: &'b Built,
    maker: Maker<'b>,
    all: Vec<Module>,
    policies: PathBuf,
}

/// What a boot does.
#[derive(Clone, Debug, Default)]
pub struct Work {
    /// Modules that are loaded first, in this order, with those that they need.
    pub modules: Vec<String>,
    /// In the first program's words.
    pub script: String,
    /// Disks of the machine, `/dev/ubda` and so on.
    pub disks: Vec<PathBuf>,
    /// After which the machine is stopped; none: much more than it needs.
    pub patience: Option<Duration>,
    /// The same, of processor time.
    pub busy: Option<Duration>,
    /// In MiB; none: 96.
    pub memory: Option<u32>,
    /// A file for where the kernel was, a thousand times a second of its time.
    pub samples: Option<PathBuf>,
}

impl<'b> Machine<'b> {
    /// Walled modules are made in the folder; `policies` has a file for each module that can be walled.
    ///
    /// # Errors
    /// The build's lists cannot be read, the folder not be written.
    pub fn new(built: &'b Built, folder: &Path, policies: &Path) -> Result<Machine<'b>, Setup> {
        let maker = Maker::new(built, folder)?;
        let all = maker.modules()?;
        let policies = policies.to_path_buf();
        Ok(Machine {
            built,
            maker,
            all,
            policies,
        })
    }

    /// Where this tree has its policies.
    #[must_use]
    pub fn own_policies() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("policies")
    }

    /// These modules with those that they need, in an order in which they can be loaded.
    fn order(&self, names: &[String]) -> Result<Vec<&Module>, Setup> {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        self.maker.in_order(&self.all, &names)
    }

    /// The names of all modules of the build.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.all.iter().map(|module| module.name.clone()).collect()
    }

    /// A module's objects, from the build's folder.
    ///
    /// # Errors
    /// There is no such module.
    pub fn objects(&self, name: &str) -> Result<Vec<String>, Setup> {
        let found = self.all.iter().find(|module| module.name == name);
        let found = found.ok_or_else(|| Setup::Build(format!("there is no module {name}")))?;
        Ok(found.objects.clone())
    }

    /// A module by kbuild's own commands, with other files in the places of sources; without a wall. None: one is no C.
    ///
    /// # Errors
    /// There is no such module, or programs fail.
    pub fn plain(
        &self,
        name: &str,
        to: &Path,
        source: &mut dyn FnMut(&str) -> Option<PathBuf>,
    ) -> Result<Option<PathBuf>, Setup> {
        let found = self.all.iter().find(|module| module.name == name);
        let found = found.ok_or_else(|| Setup::Build(format!("there is no module {name}")))?;
        self.maker.make_plain(found, to, source)
    }

    /// Makes those of these modules, and of those that they need, that have policies; with the modules that stand for them, in
    /// a folder. `source` may name another file in the place of one of a module's sources.
    ///
    /// # Errors
    /// Programs fail, or a module is not accepted.
    pub fn wall(
        &self,
        names: &[String],
        protection: Protection,
        folder: &Path,
        source: &mut dyn FnMut(&str) -> Option<PathBuf>,
    ) -> Result<Vec<Row>, Setup> {
        fs::create_dir_all(folder).map_err(at(folder))?;
        let mut rows = Vec::new();
        let own = ORDINARY.map(|(name, text)| (name.to_owned(), text.to_owned()));
        let mut ordinary = own.to_vec();
        for module in self.order(names)? {
            let name = &module.name;
            let place = self.policies.join(name).with_extension("toml");
            if !place.is_file() {
                continue;
            }
            let text = fs::read_to_string(&place).map_err(at(&place))?;
            let policy = File::parse(&text);
            let policy = policy.map_err(|why| Setup::Build(format!("{name}.toml: {why}")))?;
            let named: Vec<&str> = policy.exports.keys().map(String::as_str).collect();
            let linked = self.linked(module, &policy)?;
            let turn = self.maker.turn(module, protection);
            let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
            let row = self.maker.make_with(&linked, protection, &named, source)?;
            if !matches!(row.outcome, Outcome::Verified { .. }) {
                return Err(Setup::Build(format!("{name}: {:?}", row.outcome)));
            }
            let image = self.maker.place(module, protection);
            fs::copy(&image, folder.join(format!("{name}.so"))).map_err(at(&image))?;
            let beside = folder.join(format!("{name}.toml"));
            fs::write(&beside, &text).map_err(at(&beside))?;
            ordinary.push((name.clone(), stand(&self.maker, module, &policy)?));
            rows.push(row);
        }
        kbuild(self.built, &self.maker, &ordinary, folder)?;
        Ok(rows)
    }

    /// A module, with the objects of those of which its policy says that they are linked with it: libraries of functions that keep
    /// nothing, and whose arguments no gate looks at.
    fn linked(&self, module: &Module, policy: &File) -> Result<Module, Setup> {
        let mut linked = module.clone();
        for name in policy.groups.get("with").into_iter().flatten() {
            // One source of the kernel's own: `lib.rbtree` is lib/rbtree.c.
            if name.contains('.') {
                linked.objects.push(format!("{}.o", name.replace('.', "/")));
                continue;
            }
            let other = self.all.iter().find(|one| one.name == *name);
            let other = other.ok_or_else(|| Setup::Build(format!("there is no module {name}")))?;
            linked.objects.extend(other.objects.iter().cloned());
        }
        Ok(linked)
    }

    /// Boots, loads modules, and does the work. What the console showed.
    ///
    /// # Errors
    /// The kernel cannot be started.
    pub fn boot(&self, work: &Work, instead: Instead<'_>) -> Result<String, Setup> {
        let folder = match instead {
            Instead::Nothing => None,
            Instead::Walled(folder, _) | Instead::Plain(folder) => Some(folder),
        };
        let (mut files, mut script) = (Vec::new(), String::new());
        for module in self.order(&work.modules)? {
            let name = format!("{}.ko", module.name);
            let ours = folder.map(|folder| folder.join(&name));
            let file = ours.filter(|file| file.is_file());
            files.push((name, file.unwrap_or_else(|| self.maker.plain(module))));
            script.push_str(&format!("insmod {}\n", module.name));
        }
        for (name, _) in ORDINARY {
            let name = format!("{name}.ko");
            let own = folder.map(|folder| folder.join(&name));
            files.extend(own.filter(|own| own.is_file()).map(|own| (name, own)));
        }
        if matches!(instead, Instead::Walled(..)) {
            let first = [
                "recover", "register", "later", "tree", "net", "link", "block", "live",
            ]
            .map(|one| format!("insmod mullion_{one}\n"));
            script.insert_str(0, &first.concat());
        }
        script.push_str(&work.script);
        let wall = match instead {
            Instead::Walled(folder, library) => Some((library.to_path_buf(), folder.to_path_buf())),
            Instead::Nothing | Instead::Plain(_) => None,
        };
        let boot = Boot {
            files,
            script,
            wall,
            disks: work.disks.clone(),
            patience: work.patience,
            busy: work.busy,
            memory: work.memory,
            samples: work.samples.clone(),
        };
        boot.run(self.built)
    }
}
