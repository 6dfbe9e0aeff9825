//! The policies by risk: `apache-risks` writes `mod/policies/README.md`, or says with `--check` whether it is so.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    let folder = mullion_apache::policies();
    let page = match mullion_apache::page(&folder) {
        Ok(page) => page,
        Err(error) => {
            eprintln!("mullion: {error}");
            return ExitCode::FAILURE;
        }
    };
    let file = folder.join("README.md");
    let done = match std::env::args().nth(1).as_deref() {
        None => std::fs::write(&file, page).map_err(|error| error.to_string()),
        Some("--check") => match std::fs::read_to_string(&file) {
            Ok(old) if old == page => Ok(()),
            _ => Err("is not what the policies say; run apache-risks".to_owned()),
        },
        Some(_) => {
            eprintln!("usage: apache-risks [--check]");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("mullion: {}: {error}", file.display());
            ExitCode::FAILURE
        }
    }
}
