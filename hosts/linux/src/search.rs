//! A search for what a module touches that its policy does not give. A seed chooses calls, which are made behind the wall.
//! The result is the shortest list of them that does the same again.

use crate::kernel::Setup;
use crate::machine::{Instead, Machine, Work};
use crate::modules::Protection;
use crate::subject::Subject;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Something that the wall has ended a module for.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Of the calls.
    pub seed: u64,
    /// What, and in which function: `Access:ext2_readdir`.
    pub what: String,
    /// The first report.
    pub report: String,
    /// The calls that are left: by their numbers, and as the first program tells them.
    pub calls: Vec<u32>,
    /// What each of these is.
    pub told: Vec<String>,
}

/// A file system behind its wall, of which calls are made.
pub struct Search<'b> {
    machine: &'b Machine<'b>,
    subject: &'static Subject,
    library: PathBuf,
    folder: PathBuf,
}

/// Of one boot.
const PATIENCE: Duration = Duration::from_secs(150);

impl<'b> Search<'b> {
    /// The module is made in the folder. `source` may name another file in the place of one of its sources.
    ///
    /// # Errors
    /// The module is no file system, or cannot be made.
    pub fn new(
        machine: &'b Machine<'b>,
        subject: &'static Subject,
        library: &Path,
        folder: &Path,
        source: &mut dyn FnMut(&str) -> Option<PathBuf>,
    ) -> Result<Search<'b>, Setup> {
        if subject.disks.is_empty() {
            let why = format!("{} is no file system", subject.module);
            return Err(Setup::Build(why));
        }
        machine.wall(&subject.modules(), Protection::ReadWrite, folder, source)?;
        Ok(Search {
            machine,
            subject,
            library: library.to_path_buf(),
            folder: folder.to_path_buf(),
        })
    }

    /// Makes `count` calls of this seed. If the wall ends the module, calls are left out as long as it still does for the same
    /// reason: at most `boots` times. None: nothing was found.
    ///
    /// # Errors
    /// The machine cannot be started, or does not come to its end.
    pub fn seed(&self, seed: u64, count: u32, boots: u32) -> Result<Option<Finding>, Setup> {
        let mut calls: Vec<u32> = (0..count).collect();
        let Some((what, report)) = self.ends(seed, &calls)? else {
            return Ok(None);
        };
        let (mut left, mut size) = (boots, calls.len() / 2);
        while size > 0 {
            let mut from = 0;
            while from < calls.len() && left > 0 {
                let to = (from + size).min(calls.len());
                let fewer: Vec<u32> = [&calls[..from], &calls[to..]].concat();
                left -= 1;
                let same = self
                    .ends(seed, &fewer)?
                    .is_some_and(|(other, _)| other == what);
                match same {
                    true => calls = fewer,
                    false => from = to,
                }
            }
            size /= 2;
        }
        let said = self.boot(seed, &calls, "tells")?;
        let told = said.lines().filter(|line| line.contains("init: call "));
        Ok(Some(Finding {
            seed,
            what,
            report,
            told: told.map(str::to_owned).collect(),
            calls,
        }))
    }

    /// What the module is ended for by these calls, and the report of it.
    fn ends(&self, seed: u64, calls: &[u32]) -> Result<Option<(String, String)>, Setup> {
        let said = self.boot(seed, calls, "calls")?;
        if !said.contains("init: ends") {
            return Err(Setup::Build(format!("seed {seed}: {said}")));
        }
        let begin = format!("mullion: {}: ", self.subject.module);
        let report = said.lines().find_map(|line| line.split_once(&begin));
        Ok(report.map(|(_, line)| {
            let mut words = line.split([' ', '+']);
            let kind = words.next().unwrap_or_default().to_owned();
            let place = words.nth(1).unwrap_or_default();
            (format!("{kind}:{place}"), line.to_owned())
        }))
    }

    fn boot(&self, seed: u64, calls: &[u32], word: &str) -> Result<String, Setup> {
        let module = self.subject.module;
        let disk = self.folder.join("searched");
        self.subject.form.make(&disk)?;
        let mut script = format!("mount {module} /dev/ubda /mnt\n");
        // A line of the script is short.
        for part in calls.chunks(400) {
            script.push_str(&format!("{word} /mnt {seed} {}\n", ranges(part)));
        }
        script.push_str("umount /mnt\nrest more\n");
        let work = Work {
            modules: self.subject.modules(),
            script,
            disks: vec![disk.clone()],
            patience: Some(PATIENCE),
            ..Work::default()
        };
        let said = self
            .machine
            .boot(&work, Instead::Walled(&self.folder, &self.library))?;
        let _gone = fs::remove_file(&disk);
        Ok(said)
    }
}

/// Numbers in order as a list: `0-49,63`.
fn ranges(numbers: &[u32]) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match parts.last_mut() {
            Some((_, to)) if *to + 1 == *number => *to = *number,
            _ => parts.push((*number, *number)),
        }
    }
    let part = |(from, to): &(u32, u32)| match from == to {
        true => from.to_string(),
        false => format!("{from}-{to}"),
    };
    parts.iter().map(part).collect::<Vec<String>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_ranges() {
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
        assert_eq!(ranges(&[]), "");
    }
}
