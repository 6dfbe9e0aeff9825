//! For people: what the wall costs, by the server's own processor time.

use crate::place::{Place, Server};
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Processor time of a process so far, in seconds.
fn used(server: &Server) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", server.id())).expect("it runs");
    let behind = stat.rsplit(") ").next().expect("a name is in brackets");
    let numbers: Vec<f64> = behind
        .split(' ')
        .skip(11)
        .take(2)
        .map(|number| number.parse().expect("a number"))
        .collect();
    // In hundredths of a second, as Linux has it on this processor.
    (numbers[0] + numbers[1]) / 100.0
}

/// Sends a command that may not end: `stuck`, if the server computes and computes, or has ended.
pub(crate) fn is_stuck(server: &Server, command: &str) -> String {
    let mut client = Command::new("redis-cli");
    client
        .arg("-s")
        .arg(&server.socket)
        .args(command.split(' '));
    client
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut client = client.spawn().expect("it starts");
    let before =
        fs::read_to_string(format!("/proc/{}/stat", server.id())).map_or(0.0, |_| used(server));
    let said = loop {
        std::thread::sleep(Duration::from_millis(20));
        let stat = fs::read_to_string(format!("/proc/{}/stat", server.id())).unwrap_or_default();
        let has_ended = stat.is_empty() || stat.contains(") Z ");
        if has_ended || used(server) > before + 1.0 {
            break "stuck";
        }
    };
    let _gone = client.kill();
    let _status = client.wait();
    said.to_owned()
}

/// Requests of one measurement.
const REQUESTS: u32 = 100_000;
const ROUNDS: usize = 5;

/// Requests a second, and microseconds of the server's processor time for each.
fn measure_one(server: &Server, command: &str) -> (f64, f64) {
    let before = used(server);
    let begun = Instant::now();
    let mut client = Command::new("redis-benchmark");
    client.arg("-s").arg(&server.socket);
    client.args([
        "-q",
        "-c",
        "16",
        "-P",
        "16",
        "-r",
        "1000",
        "-n",
        &REQUESTS.to_string(),
    ]);
    client
        .args(command.split(' '))
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    assert!(client.status().expect("it starts").success());
    let seconds = begun.elapsed().as_secs_f64();
    let each = (used(server) - before) * 1e6 / f64::from(REQUESTS);
    (f64::from(REQUESTS) / seconds, each)
}

pub(crate) fn measure(place: &Place) {
    let rows = [
        ("src/modules/helloworld", "", "HELLO.SIMPLE"),
        (
            "src/modules/hellotype",
            "",
            "HELLOTYPE.INSERT k__rand_int__ 5",
        ),
        ("src/modules/hellotype", "", "HELLOTYPE.RANGE k 0 100"),
        (
            "src/modules/hellodict",
            "HELLODICT.SET a 1\n",
            "HELLODICT.GET a",
        ),
        (
            "src/modules/helloworld",
            "SET s abcdefghijklmnop\n",
            "HELLO.TOGGLE.CASE s",
        ),
        (
            "src/modules/helloworld",
            "",
            "HELLO.PUSH.CALL l__rand_int__ x",
        ),
        (
            "tests/modules/list",
            "RPUSH l a b c d e f g h i j\n",
            "list.getall l",
        ),
    ];
    println!(
        "| command | native, requests a second | CPU us each | `write` | CPU | `read-write` | CPU |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: |");
    for (source, script, command) in rows {
        let name = source.rsplit('/').next().expect("a name");
        let source = place.source(source);
        // A limit on time has its own cost: the policies have one, and so has this.
        let policy = place.policy(name);
        let native = place.native(&source, name, &[]).display().to_string();
        let writes = place.walled(
            &source,
            &format!("{name}-write"),
            &policy,
            &["--protection=write"],
        );
        let both = place.walled(&source, name, &policy, &["--protection=read-write"]);
        let ways = [native, place.bridged(&writes), place.bridged(&both)];
        let folders = ["cost-native", "cost-write", "cost-both"];
        let servers: Vec<Server> = ways
            .iter()
            .zip(folders)
            .map(|(way, folder)| place.server(folder, std::slice::from_ref(way), &[]))
            .collect();
        let fill: String = (0..100)
            .map(|number| format!("HELLOTYPE.INSERT k {number}\n"))
            .collect();
        let mut measured = [const { Vec::new() }; 3];
        for server in &servers {
            server.run(script);
            if name == "hellotype" {
                server.run(&fill);
            }
        }
        for _ in 0..ROUNDS {
            for (measured, server) in measured.iter_mut().zip(&servers) {
                measured.push(measure_one(server, command));
            }
        }
        let medians = measured.map(|mut all| {
            let mut middle = |part: fn(&(f64, f64)) -> f64| {
                all.sort_by(|a, b| part(a).total_cmp(&part(b)));
                part(&all[all.len() / 2])
            };
            (middle(|one| one.0), middle(|one| one.1))
        });
        let [native, write, both] = medians;
        println!(
            "| `{command}` | {:.0} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} |",
            native.0,
            native.1,
            write.0 / native.0,
            write.1 / native.1,
            both.0 / native.0,
            both.1 / native.1
        );
    }
}
