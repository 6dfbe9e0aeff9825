//! Plug-ins of LADSPA's own kit and of CMT, native and behind the wall, in a host of this test's and in the stock hosts of
//! Debian's ladspa-sdk; and plug-ins that attack.
//!
//! gcc calls this very program as its assembler and linker, so it has a `main` of its own.
//!
//! `-- cost` measures.

mod cost;
mod host;
mod place;

use mullion_driver::{assemble, link};
use place::Place;
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let program = PathBuf::from(arguments.next().unwrap_or_default());
    let tool = match program.file_name().and_then(|name| name.to_str()) {
        Some("as") => assemble(arguments),
        Some("ld") => link(arguments),
        _ => {
            let words: Vec<String> = std::env::args().collect();
            // A process for itself, as a host of plug-ins has one library once.
            if let Some(at) = words.iter().position(|word| word == "host") {
                host::run(&words[at + 1..]);
                return ExitCode::SUCCESS;
            }
            let place = Place::new();
            match words.iter().any(|word| word == "cost") {
                true => cost::measure(&place),
                false => {
                    place.plugins_sound_as_without_the_wall();
                    place.attacks_end_in_silence();
                    place.attacks_harm_without_the_wall();
                    place.lies_are_not_believed();
                    place.stock_hosts_take_them();
                }
            }
            return ExitCode::SUCCESS;
        }
    };
    tool.unwrap_or_else(|error| {
        eprintln!("mullion: {error}");
        ExitCode::FAILURE
    })
}
