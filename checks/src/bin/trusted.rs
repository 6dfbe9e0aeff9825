//! Prints the page of trusted lines: `cargo run -p mullion-checks --bin trusted > docs/trusted-lines.md`.

fn main() {
    print!("{}", mullion_checks::trusted::page());
}
