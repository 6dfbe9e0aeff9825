//! The recipes of this build, as data.

use crate::GetError;
use serde::Deserialize;

/// How one library is made ready.
#[derive(Debug)]
pub struct Recipe {
    /// Its name, by which it is asked for.
    pub name: &'static str,
    /// The header that hosts and glue share, `walled_NAME.h`, and its text.
    pub header: (String, &'static str),
    /// The header's functions over the library's own, in C.
    pub glue: &'static str,
    /// A host in C that uses it.
    pub host: &'static str,
    /// What the library does, in one line.
    pub summary: String,
    /// Its version, if that of the first source is not the library's own.
    pub version: Option<String>,
    /// Names in the lock file; the first one is the library's own, the others are what it is built on.
    pub sources: Vec<String>,
    /// Commands for a shell, in a directory that has a copy of each source under its name.
    pub(crate) steps: Vec<String>,
    /// Directories of headers for the glue.
    pub(crate) include: Vec<String>,
    /// What the glue is linked with, in this order.
    pub(crate) archives: Vec<String>,
    /// The text of `recipe.toml`.
    pub(crate) text: &'static str,
}

/// `recipe.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    summary: String,
    version: Option<String>,
    sources: Vec<String>,
    steps: Vec<String>,
    include: Vec<String>,
    archives: Vec<String>,
}

/// The files of one recipe.
struct Files {
    name: &'static str,
    recipe: &'static str,
    header: &'static str,
    glue: &'static str,
    host: &'static str,
}

/// One place for all names: a recipe that lacks a file does not compile.
macro_rules! recipes {
    ($(($name:literal, $stem:literal)),* $(,)?) => {
        /// The libraries that there are recipes for, by name.
        pub const NAMES: &[&str] = &[$($name),*];

        const FILES: &[Files] = &[$(Files {
            name: $name,
            recipe: include_str!(concat!("../../../../recipes/", $name, "/recipe.toml")),
            header: include_str!(concat!("../../../../recipes/", $name, "/walled_", $stem, ".h")),
            glue: include_str!(concat!("../../../../recipes/", $name, "/glue.c")),
            host: include_str!(concat!("../../../../recipes/", $name, "/host.c")),
        }),*];
    };
}

recipes! {
    ("expat", "expat"),
    ("freetype", "freetype"),
    ("libjpeg-turbo", "libjpeg_turbo"),
    ("libpng", "libpng"),
    ("libwebp", "libwebp"),
    ("libxml2", "libxml2"),
    ("lua", "lua"),
    ("sqlite", "sqlite"),
    ("zlib", "zlib"),
    ("zstd", "zstd"),
}

impl Recipe {
    /// The recipe of that name.
    ///
    /// # Errors
    /// There is none.
    pub fn named(name: &str) -> Result<Self, GetError> {
        let files = FILES.iter().find(|files| files.name == name);
        let files = files.ok_or_else(|| GetError::Unknown(name.to_owned()))?;
        let written: Written = toml::from_str(files.recipe).map_err(|cause| GetError::Recipe {
            name: name.to_owned(),
            cause: cause.to_string(),
        })?;
        Ok(Self {
            name: files.name,
            header: (format!("walled_{}.h", name.replace('-', "_")), files.header),
            glue: files.glue,
            host: files.host,
            summary: written.summary,
            version: written.version,
            sources: written.sources,
            steps: written.steps,
            include: written.include,
            archives: written.archives,
            text: files.recipe,
        })
    }

    /// The header's name without its end: stubs are named for it.
    #[must_use]
    pub fn stem(&self) -> &str {
        self.header.0.trim_end_matches(".h")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mullion_fetch::Lock;

    #[test]
    fn every_recipe_is_whole_and_its_sources_are_locked() {
        let lock = Lock::parse(include_str!("../../../../sysroot/sources.toml")).expect("a lock");
        for name in NAMES {
            let recipe = Recipe::named(name).expect("a recipe");
            assert!(!recipe.sources.is_empty(), "{name} has no source");
            for source in &recipe.sources {
                lock.source(source).expect("a locked source");
            }
            assert!(!recipe.archives.is_empty(), "{name} links nothing");
            assert!(recipe.summary.len() <= 70, "{name}: {}", recipe.summary);
            let include = format!("#include \"{}\"", recipe.header.0);
            assert!(recipe.glue.contains(&include), "{name}: {include}");
        }
    }

    #[test]
    fn a_name_without_a_recipe_is_an_error_that_lists_those_with_one() {
        let said = Recipe::named("libfoo")
            .expect_err("there is none")
            .to_string();
        assert!(
            said.contains("libfoo") && said.contains("expat, freetype"),
            "{said}"
        );
    }
}
