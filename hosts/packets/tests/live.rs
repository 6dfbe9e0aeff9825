//! The forwarder between two network namespaces of its own, with real programs at both ends.

#[path = "../../../crates/host/mullion/tests/support/mod.rs"]
mod support;

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// A user of the system who is not root and has no powers.
const NOBODY: &str = "65534";

fn shell(script: &str, place: &Path) -> Output {
    let here = env!("CARGO_MANIFEST_DIR");
    Command::new("unshare")
        .args([
            "--net",
            "--mount",
            "--pid",
            "--mount-proc",
            "--fork",
            "--kill-child",
            "bash",
            "-euc",
            script,
        ])
        .env("MULLION", &*support::MULLION)
        .env("HERE", here)
        .current_dir(place)
        .stdin(Stdio::null())
        .output()
        .expect("unshare starts")
}

/// Two namespaces, a wire to each: `in_left COMMAND`, `in_right COMMAND`.
const SETUP: &str = r#"
    mount -t tmpfs none /run 2>/dev/null
    unshare --net sleep 1000 & left=$!
    unshare --net sleep 1000 & right=$!
    trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
    sleep 0.2
    in_left() { nsenter --net=/proc/$left/ns/net "$@"; }
    in_right() { nsenter --net=/proc/$right/ns/net "$@"; }
    ip link add name wl type veth peer name l0 netns $left
    ip link add name wr type veth peer name r0 netns $right
    ip link set wl up; ip link set wr up; ip link set lo up
    in_left ip addr add 10.9.0.1/24 dev l0; in_left ip link set l0 up
    in_right ip addr add 10.9.0.2/24 dev r0; in_right ip link set r0 up
    for side in left right; do
        n=1; [ $side = left ] || n=2
        in_$side ip link add link ${side:0:1}0 name tagged type vlan id 7
        in_$side ip addr add 10.9.7.$n/24 dev tagged; in_$side ip link set tagged up
    done
    in_right ip addr add fd09::2/64 dev r0 nodad; in_left ip addr add fd09::1/64 dev l0 nodad
"#;

fn is_possible(place: &Path) -> bool {
    let possible = shell(&format!("{SETUP} true"), place);
    if !possible.status.success() {
        let said = String::from_utf8_lossy(&possible.stderr);
        eprintln!("not run: namespaces and veth are not to be had here: {said}");
    }
    possible.status.success()
}

/// Numbered frames while modules are loaded, replaced, stopped and unloaded: none is out of order or changed, and each
/// that is missing was counted by somebody. The ring holds them all, so that a slow machine loses none there.
#[test]
fn modules_that_come_and_go_lose_and_reorder_nothing() {
    come_and_go("");
}

/// The same, with a module that somebody of another uid loads, replaces and unloads, by a key and credentials.
#[test]
fn modules_that_another_uid_replaces_lose_and_reorder_nothing() {
    // SAFETY: it only tells.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("not run: only root becomes somebody else");
        return;
    }
    come_and_go(NOBODY);
}

fn come_and_go(user: &str) {
    let place = tempfile::tempdir().unwrap();
    if !is_possible(place.path()) {
        return;
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(here.join("rate"))
        .args(["20000", "20000", "64"])
        .env("MULLION", &*support::MULLION)
        .env("PAUSE", "0.05")
        .env("BY_USER", user)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let lines: Vec<serde_json::Value> = said
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let [sent, arrived, status, changes] = lines.as_slice() else {
        panic!("{said}");
    };
    let number = |value: &serde_json::Value| value.as_u64().unwrap();
    assert_eq!(number(&sent["unsent"]), 0, "{said}");
    assert_eq!(number(&arrived["reordered"]), 0, "{said}");
    assert_eq!(number(&arrived["unsound"]), 0, "{said}");
    assert!(number(&changes["changes"]) >= 6, "{said}");
    let by_user = number(&changes["by_user"]);
    assert_eq!(by_user >= 3, !user.is_empty(), "{said}");
    let port = &status["ports"][0];
    let counted = number(&port["lost"]) + number(&port["unsent"]) + number(&changes["overrun"]);
    assert_eq!(number(&port["lost"]), 0, "{said}");
    assert!(number(&arrived["missing"]) <= counted, "{said}");
}

#[test]
fn a_forwarder_between_two_namespaces() {
    between_two_namespaces("packet");
}

#[test]
fn a_forwarder_by_xdp() {
    between_two_namespaces("xdp");
}

fn between_two_namespaces(by: &str) {
    let place = tempfile::tempdir().unwrap();
    if !is_possible(place.path()) {
        return;
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    for name in ["monitor", "fec_send", "fec_receive"] {
        let source = here.join("modules").join(name).with_extension("c");
        let image = place.path().join(name).with_extension("mx");
        support::build(&source, &image, &["-O2", "-I", &here.display().to_string()]);
    }
    std::fs::write(
        place.path().join("two.toml"),
        format!(
            "ports = [\"wl\", \"wr\"]\nby = \"{by}\"\n[[module]]\nname = \"monitor\"\nimage = \"monitor.mx\"\n\
             kind = \"monitor\"\nfilter = \"dst host 10.9.0.2\"\nsees = 28\nlocked = [\"source\"]\ntime = \"1s\"\n"
        ),
    )
    .unwrap();
    // There and back again: what one codes, the other one decodes, so that the ends see nothing of it.
    std::fs::write(
        place.path().join("fec.toml"),
        "[[module]]\nname = \"send\"\nimage = \"fec_send.mx\"\nkind = \"transcoder\"\nfrom = 0\ntime = \"1s\"\n\
         filter = \"ip and udp and dst port 5001\"\n\
         [[module]]\nname = \"receive\"\nimage = \"fec_receive.mx\"\nkind = \"transcoder\"\nfrom = 0\ntime = \"1s\"\n\
         filter = \"ip and udp and dst port 5001\"\n",
    )
    .unwrap();
    let script = format!(
        r#"{SETUP}
        "$MULLION" packets run two.toml --control ./socket --page 127.0.0.1:0 > run.txt 2>&1 & forwarder=$!
        for i in $(seq 100); do [ -S socket ] && break; sleep 0.1; done
        python3 - "$left" "$right" <<'PY'
import ctypes, os, socket, subprocess, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
def setns(fd):
    if libc.setns(fd, 0x40000000): raise OSError(ctypes.get_errno(), "setns")
left, right = (int(x) for x in sys.argv[1:])
def at(pid, make):
    here = os.open("/proc/self/ns/net", os.O_RDONLY)
    there = os.open(f"/proc/{{pid}}/ns/net", os.O_RDONLY)
    setns(there); made = make(); setns(here)
    return made
udp = lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
tcp = lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM)
six = lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
def datagrams(count, port, size):
    server = at(right, udp); server.bind(("10.9.0.2", port)); server.settimeout(20)
    client = at(left, udp)
    for n in range(count):
        client.sendto(n.to_bytes(4, "big") + bytes(size), ("10.9.0.2", port))
        got, _ = server.recvfrom(70000)
        assert got == n.to_bytes(4, "big") + bytes(size), (n, len(got))
datagrams(500, 4000, 100)
def ask(*words):
    return subprocess.run([os.environ["MULLION"], "packets", *words], check=True, capture_output=True, text=True).stdout
# Modules come while datagrams flow, and nothing is lost: each is answered before the next one.
loaded = []
loading = threading.Thread(target=lambda: loaded.append(ask("load", "--to", "./socket", "fec.toml")))
loading.start(); datagrams(500, 4000, 300); loading.join(); assert loaded
# No longer than what is coded into one frame: a second one would not meet the receiver here.
datagrams(200, 5001, 600)
# The same modules in processes of their own, in the place of these.
ask("load", "--to", "./socket", "--replace", "--wall", "process", "fec.toml")
assert ask("status", "--to", "./socket", "--json").count('"process"') == 2
datagrams(200, 5001, 600)
datagrams(20, 4000, 1472)
# Fragments of a datagram that no frame holds, IPv6, and a stream.
datagrams(5, 4000, 20000)
server = at(right, six); server.bind(("fd09::2", 4001)); server.settimeout(20)
at(left, six).sendto(b"six", ("fd09::2", 4001)); assert server.recv(10) == b"six"
# A wire that is none hands over what its sender has not cut into frames, unless it is told to.
class Value(ctypes.Structure): _fields_ = [("command", ctypes.c_uint32), ("data", ctypes.c_uint32)]
class Request(ctypes.Structure): _fields_ = [("name", ctypes.c_char * 16), ("data", ctypes.c_void_p), ("rest", ctypes.c_uint64 * 2)]
for where, name in ((left, b"l0"), (right, b"r0")):
    control = at(where, udp)
    def ethtool(command, data):
        value = Value(command, data)
        request = Request(name, ctypes.addressof(value))
        assert libc.ioctl(control.fileno(), 0x8946, ctypes.byref(request)) == 0
        return value.data
    ethtool(0x1f, 0); ethtool(0x24, 0)
    # Tags of VLANs are in the frame, and not beside it: AF_XDP does not tell what is beside it.
    if "{by}" == "xdp": ethtool(0x26, ethtool(0x25, 0) & ~(1 << 7))
server = at(right, udp); server.bind(("10.9.7.2", 4003)); server.settimeout(20)
at(left, udp).sendto(b"in a VLAN", ("10.9.7.2", 4003)); assert server.recv(20) == b"in a VLAN"
listener = at(right, tcp); listener.bind(("10.9.0.2", 4002)); listener.listen()
client = at(left, tcp); client.settimeout(30); client.connect(("10.9.0.2", 4002))
peer, _ = listener.accept(); peer.settimeout(30)
data = os.urandom(1 << 20)
threading.Thread(target=lambda: (client.sendall(data), client.shutdown(socket.SHUT_WR))).start()
got = b""
while (piece := peer.recv(1 << 16)): got += piece
assert got == data
print(ask("reports", "--to", "./socket", "monitor").splitlines()[0])
follower = subprocess.Popen([os.environ["MULLION"], "packets", "reports", "--to", "./socket", "--follow", "monitor"], stdout=subprocess.PIPE, text=True)
datagrams(1100, 4000, 10)
followed = follower.stdout.readline()
assert len(followed.split()) == 3, followed
import re, urllib.request
address = re.search(r"http://[0-9.:]+/", open("run.txt").read()).group(0)
page = urllib.request.urlopen(address, timeout=20).read().decode()
assert "<td>monitor<" in page and "dst host 10.9.0.2" in page, page
assert "per second" in ask("top", "--to", "./socket", "--once", "--every", "100ms")
print(ask("unload", "--to", "./socket", "monitor"), end="")
# It ends with its module.
follower.communicate(timeout=60)
assert follower.returncode == 0
PY
        "$MULLION" packets status --to ./socket --json > status.json
        kill -INT $forwarder; wait $forwarder
        [ ! -e socket ]
        "#
    );
    let output = shell(&script, place.path());
    let said = format!(
        "{}\n{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
        std::fs::read_to_string(place.path().join("run.txt")).unwrap_or_default()
    );
    assert!(output.status.success(), "{said}");
    let is_without = said.contains("without AF_XDP");
    if is_without {
        eprintln!("run by a packet socket: AF_XDP is not to be had here: {said}");
    }
    assert!(
        String::from_utf8_lossy(&output.stdout).starts_with("1000 "),
        "{said}"
    );
    let status = std::fs::read_to_string(place.path().join("status.json")).unwrap();
    let status: mullion_packets::control::Status = serde_json::from_str(&status).unwrap();
    let is_by_xdp = by == "xdp" && !is_without;
    for port in &status.ports {
        assert_eq!(
            port.by == mullion_packets::port::Way::Xdp,
            is_by_xdp,
            "{said}"
        );
    }
    let names: Vec<&str> = status
        .modules
        .iter()
        .map(|module| module.module.name.as_str())
        .collect();
    assert_eq!(names, ["send", "receive"], "{said}");
    assert!(
        status.modules.iter().all(|module| module.stopped.is_none()),
        "{said}"
    );
    assert!(
        status.modules[0].changed >= 200 && status.modules[0].changed == status.modules[1].changed,
        "{said}"
    );
    assert!(
        status
            .ports
            .iter()
            .all(|port| port.unsent == 0 && port.lost == 0),
        "{said}"
    );
}
