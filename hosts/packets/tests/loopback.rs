//! Ports on the loopback interface of a namespace of their own. That needs no pair of interfaces, which some kernels
//! cannot make.

use mullion_packets::{frame, ring, xdp};
use std::process::Command;
use std::time::{Duration, Instant};

const INSIDE: &str = "MULLION_LOOPBACK";
const LONG: usize = 3000;

/// Runs the test of this name again, in a namespace. `false`: it is the one inside, or there can be none.
fn is_inside(name: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let up = "ip link set lo mtu 1500 up && exec \"$0\" --exact \"$1\" --nocapture";
    let own = std::env::current_exe().expect("a test has a file");
    let enter = |script: &str| {
        let mut unshare = Command::new("unshare");
        unshare.args(["--net", "bash", "-euc", script]);
        unshare.arg(&own).arg(name).env(INSIDE, "yes").output()
    };
    if !enter("ip link set lo up").is_ok_and(|ran| ran.status.success()) {
        eprintln!("not run: there are no namespaces here");
        return false;
    }
    let ran = enter(up).expect("unshare starts");
    let said = String::from_utf8_lossy(&ran.stdout) + String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{said}");
    eprint!("{}", String::from_utf8_lossy(&ran.stderr));
    false
}

/// A frame of UDP with a number.
fn numbered(number: u8, payload: usize) -> Vec<u8> {
    let mut bytes = vec![0; 12];
    bytes.extend([8, 0, 0x45, 0, 0, 0, 0, number, 0, 0, 64, 17, 0, 0]);
    bytes.extend([10, 0, 0, 1, 10, 0, 0, 2, 19, 136, 19, 137, 0, 0, 0, 0]);
    bytes.extend((0..payload).map(|at| at as u8 ^ number));
    let end = bytes.len();
    frame::repair(&mut bytes, end);
    bytes
}

/// What is sent: a frame that is too long stands between others.
fn frames() -> [Vec<u8>; 4] {
    [
        numbered(1, 64),
        numbered(2, LONG),
        numbered(3, 1400),
        numbered(4, 0),
    ]
}

#[test]
fn a_packet_socket_sends_and_receives() {
    if !is_inside("a_packet_socket_sends_and_receives") {
        return;
    }
    ring::Port::open("none", 1 << 16).expect_err("no such interface");
    let mut port = ring::Port::open("lo", 1 << 16).expect("lo");
    let sender = port.sender().expect("a descriptor");
    let sent = frames();
    assert_eq!(sender.send(sent.iter().map(Vec::as_slice)), 3);
    let (mut found, begun) = (Vec::new(), Instant::now());
    while found.len() < 3 && begun.elapsed() < Duration::from_secs(10) {
        port.wait(Duration::from_millis(100)).expect("it is there");
        let taken = port.take(2);
        found.extend((0..taken.len()).map(|at| taken.get(at).bytes.to_vec()));
    }
    assert_eq!(found, [&sent[0][..], &sent[2], &sent[3]]);
    assert_eq!(port.lost(), 0);
    // A ring of 32 places keeps as many.
    let many: Vec<_> = (0..100).map(|number| numbered(number, 8)).collect();
    assert_eq!(sender.send(many.iter().map(Vec::as_slice)), 100);
    assert_eq!(port.take(1000).len(), 32);
    assert_eq!((port.lost(), port.lost()), (68, 0));
}

#[test]
fn af_xdp_sends_and_receives() {
    if !is_inside("af_xdp_sends_and_receives") {
        return;
    }
    let mut port = match xdp::Port::open("lo", 1 << 18) {
        Ok(port) => port,
        Err(error) => {
            eprintln!("not run: {error}");
            return;
        }
    };
    let mut sender = port.sender().expect("the first");
    port.sender().expect_err("it was given");
    let sent = frames();
    assert_eq!(sender.send(sent.iter().map(Vec::as_slice)), 3);
    let (mut found, begun) = (Vec::new(), Instant::now());
    while found.len() < 3 && begun.elapsed() < Duration::from_secs(10) {
        port.wait(Duration::from_millis(100)).expect("it is there");
        let taken = port.take(2);
        found.extend((0..taken.len()).map(|at| taken.get(at).bytes.to_vec()));
    }
    assert_eq!(found, [&sent[0][..], &sent[2], &sent[3]]);
    assert_eq!(port.lost(), [0, 0]);
    // 128 chunks of 2 KiB are there for what comes in.
    let many: Vec<_> = (0..200).map(|number| numbered(number, 8)).collect();
    assert_eq!(sender.send(many.iter().map(Vec::as_slice)), 200);
    assert_eq!(port.take(1000).len(), 128);
    assert_eq!(port.lost().iter().sum::<u64>(), 72);
    assert_eq!(port.lost(), [0, 0]);
}
