//! Where the kernel was in a run behind the wall, by shares of its own time: Mondrix's Table 5 has the same for its supervisor.
//!
//! `samples.c` looks a thousand times a second. A place is told by the file that is mapped there, and in the wall's library by the
//! crate whose function it is. Functions that the compiler has put into others count for those.

use crate::kernel::{Setup, at};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Parts of the wall's library, by what the names of their functions contain.
const PARTS: [(&str, &str); 5] = [
    ("mullion_word_table", "table"),
    ("mullion_supervisor", "supervisor"),
    ("mullion_word_runtime", "run time"),
    ("mullion_linux_wall", "mediators"),
    ("mullion_word", "run time"),
];

/// A line with the shares of a run, by what the sampler has written. `library` is the wall's.
///
/// # Errors
/// The file cannot be read, or `nm` fails.
pub(crate) fn shares(samples: &Path, library: &Path) -> Result<String, Setup> {
    let text = fs::read_to_string(samples).map_err(at(samples))?;
    let mut nm = Command::new("nm");
    let output = nm.args(["-C", "--defined-only"]).arg(library).output();
    let names = output.map_err(at(Path::new("nm")))?.stdout;
    let names = String::from_utf8_lossy(&names);
    let functions = functions(&names);
    Ok(line(&text, library, &functions))
}

/// Functions by their addresses.
fn functions(names: &str) -> BTreeMap<u64, &str> {
    names.lines().filter_map(function).collect()
}

fn function(line: &str) -> Option<(u64, &str)> {
    let mut words = line.splitn(3, ' ');
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    let is_code = matches!(words.next()?, "t" | "T" | "w" | "W");
    is_code.then_some((address, words.next()?))
}

fn line(samples: &str, library: &Path, functions: &BTreeMap<u64, &str>) -> String {
    let library = library.to_string_lossy();
    let mut all: BTreeMap<&str, u64> = BTreeMap::new();
    let mut total = 0;
    for sample in samples.lines() {
        let mut words = sample.rsplit(' ');
        let (Some(times), Some(place), Some(file)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        let times: u64 = times.parse().unwrap_or(0);
        let place = u64::from_str_radix(place, 16).unwrap_or(0);
        let name = functions
            .range(..=place)
            .next_back()
            .map_or("", |(_, name)| *name);
        let part = PARTS
            .iter()
            .find(|(crate_name, _)| name.contains(crate_name));
        let part = match file {
            "lost" => "unknown",
            _ if file == library => part.map_or("their libraries", |(_, part)| part),
            _ if file.ends_with("/linux") => "kernel",
            _ if file.contains("/libc.so") => "their libraries",
            _ => "modules",
        };
        *all.entry(part).or_default() += times;
        total += times;
    }
    let mut text = format!("of {total} ms in the kernel's process:");
    for (part, times) in all.iter().filter(|(_, times)| **times != 0) {
        let share = *times as f64 * 100.0 / total as f64;
        // Writing to a string cannot fail.
        let _ = write!(text, " {part} {share:.1} %,");
    }
    match total {
        0 => "where its time goes was not measured: this system gives no samples".to_owned(),
        _ => text.trim_end_matches(',').to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_counts_for_the_crate_of_its_function() {
        let names = "0000000000001000 t mullion_word_table::table::Table::write\n\
                     0000000000002000 t mullion_supervisor::Supervisor::grant\n\
                     0000000000003000 T mullion_linux_start\n\
                     0000000000004000 d mullion_word_table::DATA\n";
        let samples = "/x/build/linux 10 50\n/l/wall.so 1004 20\n/l/wall.so 2fff 10\n/l/wall.so 3001 5\n\
                       /usr/lib/libc.so.6 7 5\n/memfd:m 5 10\nlost 0 0\n";
        let line = line(samples, Path::new("/l/wall.so"), &functions(names));
        assert_eq!(
            line,
            "of 100 ms in the kernel's process: kernel 50.0 %, modules 10.0 %, supervisor 10.0 %, table 20.0 %, their libraries 10.0 %"
        );
        assert!(
            super::line("lost 0 0\n", Path::new("/l"), &functions(names)).contains("not measured")
        );
    }
}
