//! A message there and back on one core, and the futex of the same second beside it, in turn. Both run alone, beside
//! another program that wants that core all the time, and beside a child of this program's that does. Linux shares a core
//! out among sessions first (`sched_autogroup_enabled`), so the two neighbours are not the same. Pairs of the same second
//! are compared, since a machine has better and worse ones.

use std::process::Stdio;
use std::sync::Mutex;

use mullion_hip::Sharing;

use crate::cores::{self, Place};
use crate::row::samples;
use crate::{byte, client, domain, linux, process};

/// Medians of the rounds, in cycles.
static ROUNDS: Mutex<Vec<f64>> = Mutex::new(Vec::new());

pub(crate) fn measure_all(rounds: usize, only: &str) {
    println!(
        "| one core, one byte | heap | neighbour | message | futex | ratio | quartiles |\n\
         | --- | --- | --- | ---: | ---: | ---: | ---: |"
    );
    let places = cores::places();
    for (index, place) in places
        .iter()
        .enumerate()
        .filter(|(_, place)| place.core == 0 && place.name().ends_with(only))
    {
        for share in [None, Some(Sharing::Open)] {
            let server = domain(*place, share);
            for neighbour in NEIGHBOURS {
                row(index as u64, *place, share, neighbour, rounds);
            }
            server.kill();
            server.wait();
        }
    }
}

/// Who else wants the core: nobody, a program in a session of its own, a child of this one's; and what
/// [`linux::start`] calls it.
const NEIGHBOURS: [Neighbour; 3] = [
    ("none", None),
    ("a program", Some("stranger")),
    ("a child", Some("busy")),
];

type Neighbour = (&'static str, Option<&'static str>);

fn row(index: u64, place: Place, share: Option<Sharing>, (name, kind): Neighbour, rounds: usize) {
    let mut neighbour = kind.map(|kind| linux::start(kind, place, 0, Stdio::null()));
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let exit = process(ask, index).expect("a process").wait();
        assert!(exit.cause.is_success(), "{exit:?}");
        ours.push(last());
        linux_futex(place);
        theirs.push(last());
    }
    if let Some(neighbour) = &mut neighbour {
        neighbour.kill().expect("alive");
        neighbour.wait().expect("killed");
    }
    let ratios = ours.iter().zip(&theirs).map(|(ours, theirs)| ours / theirs);
    let ratios = ratios.collect();
    let at = |mut all: Vec<f64>, quarter: usize| {
        all.sort_by(f64::total_cmp);
        all[(all.len() - 1) * quarter / 4]
    };
    let quartiles = |all: &Vec<f64>| [1, 2, 3].map(|quarter| at(all.clone(), quarter));
    let [low, middle, high] = quartiles(&ratios);
    println!(
        "| {} | {} | {} | {:.0} | {:.0} | {middle:.2} | {low:.2}–{high:.2} |",
        if place.asleep { "asleep" } else { "awake" },
        if share.is_some() { "shared" } else { "own" },
        name,
        quartiles(&ours)[1],
        quartiles(&theirs)[1],
    );
}

fn last() -> f64 {
    let mut rounds = ROUNDS.lock().expect("one at a time");
    rounds.pop().expect("measured")
}

fn note(mut all: Vec<f64>) {
    // SAFETY: it prints and allocates, which ends; nothing here parks or panics. What it makes goes to a static.
    let _host = unsafe { mullion_sip_hosting::enter_kernel_as_host() };
    all.sort_by(f64::total_cmp);
    ROUNDS
        .lock()
        .expect("one at a time")
        .push(all[all.len() / 2]);
}

/// A process that measures one round.
fn ask(index: u64) {
    let place = cores::places()[index as usize];
    let mut end = Some(client());
    note(samples(place, 1, mullion_sip::thread::sleep, |times| {
        for _ in 0..times {
            end = end.take().map(byte);
        }
    }));
}

fn linux_futex(place: Place) {
    let measure = move || {
        cores::pin(0);
        linux::in_turns(place, false, |batch| {
            note(samples(place, 4, std::thread::sleep, batch));
        });
    };
    std::thread::spawn(measure).join().expect("no panic");
}
