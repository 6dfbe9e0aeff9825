//! Prints the circles of imports in crates: `imports CRATE...`, or all of them; with `--edges`, every import too.

use mullion_checks::{imports, tree};
use std::path::PathBuf;

fn main() {
    let (options, named): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|word| word == "--edges");
    let folders: Vec<PathBuf> = match named.is_empty() {
        true => tree::crates(),
        false => named.into_iter().map(PathBuf::from).collect(),
    };
    for folder in folders {
        let found = imports::of(&tree::top(&folder));
        let circles = imports::circles(&found);
        let sizes: Vec<usize> = circles.iter().map(Vec::len).collect();
        let files = found.len();
        println!("{}: {files} files, circles of {sizes:?}", folder.display());
        for circle in circles {
            let names: Vec<_> = circle
                .iter()
                .map(|file| file.display().to_string())
                .collect();
            println!("  {}", names.join(" "));
        }
        if !options.is_empty() {
            for (file, imported) in &found {
                let names: Vec<_> = imported
                    .iter()
                    .map(|file| file.display().to_string())
                    .collect();
                println!("  {} -> {}", file.display(), names.join(" "));
            }
        }
    }
}
