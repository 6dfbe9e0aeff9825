//! Debian's unmodified Redis server with modules of Redis's own sources, native and behind the wall; and with a module that
//! attacks.
//!
//! gcc calls this very program as its assembler and linker, so it has a `main` of its own.
//!
//! `-- cost` measures, `-- suite` runs Redis's own tests of the interface for modules.

mod attacks;
mod cost;
mod place;
mod suite;

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
            if let Err(missing) = place::server_is_there() {
                println!("skipped: {missing}");
                assert!(
                    std::env::var_os("MULLION_REQUIRE_REDIS").is_none(),
                    "{missing}"
                );
                return ExitCode::SUCCESS;
            }
            let asked = |what: &str| std::env::args().any(|argument| argument == what);
            let place = Place::new();
            match () {
                () if asked("cost") => cost::measure(&place),
                () if asked("suite") => suite::run(&place),
                () => {
                    place.modules_answer_as_without_the_wall();
                    place.values_are_saved_and_loaded();
                    place.a_lost_value_is_not_saved();
                    place.what_a_policy_does_not_name_is_refused();
                    attacks::end_as_errors_and_the_server_goes_on(&place);
                    attacks::harm_without_the_wall(&place);
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
