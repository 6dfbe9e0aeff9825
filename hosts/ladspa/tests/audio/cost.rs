//! For people: what a block of sound costs.

use crate::place::Place;
use std::path::Path;

const ROUNDS: usize = 5;

pub(crate) fn measure(place: &Place) {
    let rows = [
        ("amp", "amp_mono"),
        ("filter", "lpf"),
        ("delay", "delay_5s"),
        ("cmt", "freeverb3"),
        ("cmt", "analogue"),
        ("cmt", "lofi"),
        ("cmt", "hard_gate"),
    ];
    println!(
        "| plug-in | samples | native us | `write` | `read-write` |\n| --- | ---: | ---: | ---: | ---: |"
    );
    let libraries = place.libraries();
    for (library, label) in rows {
        let (_, sources) = libraries
            .iter()
            .find(|(name, _)| *name == library)
            .expect("it is listed");
        let native = place.native(library, sources, &[]);
        let policy = Place::policy(library);
        let writes = place.walled(
            &format!("{library}-write"),
            sources,
            &policy,
            &["--protection=write"],
        );
        let both = place.walled(library, sources, &policy, &["--protection=read-write"]);
        let native = native.to_str().expect("a path");
        let ways: [(Option<&Path>, &str); 3] = [
            (None, native),
            (Some(&writes), place.bridge()),
            (Some(&both), place.bridge()),
        ];
        for count in ["64", "1024"] {
            let mut best = [f64::MAX; 3];
            for _ in 0..ROUNDS {
                for (best, (folder, library)) in best.iter_mut().zip(ways) {
                    let (said, _) = place.host(folder, &["cost", library, label, count]);
                    let first = said
                        .split(' ')
                        .next()
                        .and_then(|word| word.parse::<f64>().ok());
                    *best = best.min(first.expect("a number"));
                }
            }
            let [plain, write, both] = best;
            println!(
                "| {label} | {count} | {:.2} | {:.2} | {:.2} |",
                plain / 1000.0,
                write / plain,
                both / plain
            );
        }
    }
}
