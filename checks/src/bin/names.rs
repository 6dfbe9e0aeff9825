//! Prints the names that public types of several crates share, with the crates.

use mullion_checks::names::shared;

fn main() {
    for (name, crates) in shared() {
        println!("{name}: {}", crates.join(" "));
    }
}
