//! Prints the names that public types of several crates share, with the crates; then those that several types of one
//! crate have, with the modules.

use mullion_checks::names::{shared, twice};

fn main() {
    for (name, crates) in shared() {
        println!("{name}: {}", crates.join(" "));
    }
    for (folder, name, places) in twice() {
        let places: Vec<&str> = places.iter().map(String::as_str).collect();
        println!("{folder}: {name}: {}", places.join(" "));
    }
}
