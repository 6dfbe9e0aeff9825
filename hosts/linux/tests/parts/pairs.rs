//! Pairs of network devices behind the wall: two name spaces of networks, packets both ways, devices that go, and a driver that is
//! ended while packets flow.

use crate::{changed_before, expect, library};
use mullion_linux::{Instead, Machine, Protection, Work};
use std::fs;
use std::path::{Path, PathBuf};

/// The line of the driver before which a change comes: both ends are known there, and the packet is the driver's.
const SENDS: &str = "skb_tx_timestamp(skb);";
/// The first byte of an echo's data, behind the headers of Ethernet, IP and ICMP.
const MARKED: &str = "skb->len > 42 && skb->data[42] == '!'";

pub(crate) fn run(machine: &Machine<'_>, folder: &Path) {
    a_pair_does_as_without_a_wall(machine, &folder.join("pair"));
    a_pair_is_made_again_under_load(machine, &folder.join("load"));
    what_the_kernel_follows_stays_as_it_is(machine, folder);
    a_message_s_pointers_are_the_kernel_s_own(machine, folder);
}

fn work(script: &str) -> Work {
    Work {
        modules: vec!["veth".to_owned()],
        script: script.to_owned(),
        ..Work::default()
    }
}

/// The driver's source with something before one of its lines.
fn changed(source: &str, line: &str, what: &str, to: &Path) -> Option<PathBuf> {
    let is_it = source.ends_with("/net/veth.c");
    is_it.then(|| changed_before(source, line, what, &to.join("veth.c")))
}

/// Echoes, megabytes with their digests, a device that goes in the middle of one, and the driver, which goes and comes again: in both
/// kernels.
fn a_pair_does_as_without_a_wall(machine: &Machine<'_>, folder: &Path) {
    let work = work(
        "pair one 40 6 2\nrmmod veth\npair two 1 1\ninsmod veth\npair three 10 2\n\
         serve four\nbulk 20\nunserve four\nset /proc/mullion costs\nrmmod veth\n\
         show /proc/sys/kernel/ostype\n",
    );
    let walled = machine.wall(&work.modules, Protection::ReadWrite, folder, &mut |_| None);
    assert_eq!(walled.expect("modules").len(), 1);
    fs::write(folder.join("counted"), "").expect("a file");
    let library = library();
    for instead in [Instead::Nothing, Instead::Walled(folder, &library)] {
        let said = machine.boot(&work, instead).expect("a boot");
        expect(
            &said,
            &[
                "init: pair one: 40 answered, 4 megabytes sent, 2 failed, 2 times made again, 0 wrong, the last done",
                "init: pair two: Operation not supported",
                "init: insmod veth: done",
                "init: pair three: 10 answered, 2 megabytes sent, 0 failed, 0 times made again, 0 wrong, the last done",
                "init: bulk: 20 MiB, all, ",
                ": Linux",
                "init: ends",
            ],
        );
        assert_eq!(said.matches("init: rmmod veth: done").count(), 2, "{said}");
        assert!(!said.contains(" in veth_"), "{said}");
        let is_walled = matches!(instead, Instead::Walled(..));
        let counts = ["is at", "has made", "KiB of the table"];
        for count in counts {
            assert_eq!(said.contains(count), is_walled, "{count}: {said}");
        }
    }
}

/// `veth` with a line more, by the name of its folder: it is stopped there, and comes again.
fn is_stopped_and_loaded_again(
    machine: &Machine<'_>,
    folder: &Path,
    (name, line, harm, caught): (&str, &str, &str, &str),
) {
    let folder = folder.join(name);
    fs::create_dir_all(&folder).expect("a folder");
    let mut source = |source: &str| changed(source, line, harm, &folder);
    let work = work("pair one 30 3\nshow /proc/sys/kernel/panic\n");
    let walled = machine.wall(&work.modules, Protection::ReadWrite, &folder, &mut source);
    walled.expect("modules");
    let said = machine.boot(&work, Instead::Walled(&folder, &library()));
    let said = said.expect("a boot");
    expect(
        &said,
        &[
            caught,
            "mullion: veth is loaded again",
            "init: show /proc/sys/kernel/panic: -1",
            "init: ends",
        ],
    );
}

/// An echo makes the driver store to a variable of the kernel. Both devices go, and the name space of the other one stays. The
/// driver comes again, and so do the devices, when they are asked for.
fn a_pair_is_made_again_under_load(machine: &Machine<'_>, folder: &Path) {
    let harm = format!("if ({MARKED}) panic_timeout = 77;");
    is_stopped_and_loaded_again(
        machine,
        folder,
        ("echo", SENDS, &harm, "mullion: veth: Access in veth_xmit"),
    );
    // In the middle of a megabyte, by a number of packets: more are on their way then.
    let harm = "static unsigned int count; if (++count == 200) panic_timeout = 77;";
    is_stopped_and_loaded_again(
        machine,
        folder,
        ("bytes", SENDS, harm, "mullion: veth: Access in veth_xmit"),
    );
}

/// A packet's structure cannot be changed where the kernel follows it. What the driver hands on must be a device of its own. A device cannot be switched over to polling.
fn what_the_kernel_follows_stays_as_it_is(machine: &Machine<'_>, folder: &Path) {
    let harms = [
        ("head", "skb->head = NULL;", "Access in veth_xmit"),
        (
            "another",
            "rcv = (struct net_device *)skb;",
            "__dev_forward_skb: argument 0, ",
        ),
    ];
    for (name, harm, caught) in harms {
        is_stopped_and_loaded_again(machine, folder, (name, SENDS, harm, caught));
    }
    let folder = folder.join("polls");
    let work = work("poll one\npair one 4 1\nrmmod veth\n");
    let walled = machine.wall(&work.modules, Protection::ReadWrite, &folder, &mut |_| None);
    walled.expect("modules");
    let library = library();
    let ways = [
        (Instead::Nothing, "init: poll one: done"),
        (
            Instead::Walled(&folder, &library),
            "init: poll one: Operation not supported",
        ),
    ];
    for (instead, polls) in ways {
        let said = machine.boot(&work, instead).expect("a boot");
        let sends = "init: pair one: 4 answered, 1 megabytes sent, 0 failed";
        expect(
            &said,
            &[polls, sends, "init: rmmod veth: done", "init: ends"],
        );
    }
}

/// While a message makes devices, the driver hands on pointers of its own for those of the kernel's. No device is made, the
/// kernel goes on, and the driver comes again.
fn a_message_s_pointers_are_the_kernel_s_own(machine: &Machine<'_>, folder: &Path) {
    const FINDS: &str = "net = rtnl_link_get_net(src_net, tbp);";
    const CREATES: &str = "peer = rtnl_create_link(net, ifname, name_assign_type,";
    let harms = [
        (
            "attributes",
            FINDS,
            "static struct nlattr *own[IFLA_MAX + 1]; own[IFLA_NET_NS_PID] = (void *)0x5a5a5a5a5a58ul; tbp = own;",
            "rtnl_link_get_net: an argument is not",
        ),
        (
            "space",
            CREATES,
            "net = (struct net *)dev;",
            "rtnl_create_link: an argument is not",
        ),
        (
            "address",
            CREATES,
            "dev_addr_mod(dev, 20, ifname, 16);",
            "dev_addr_mod: no address has so many bytes",
        ),
        (
            "leaves",
            CREATES,
            "unregister_netdevice(dev);",
            "unregister_netdevice_queue: an argument is not",
        ),
    ];
    for (name, line, harm, caught) in harms {
        let said = pair_of(machine, &folder.join(name), line, harm);
        let again = "mullion: veth is loaded again";
        expect(
            &said,
            &["init: pair one: Input/output error", caught, again],
        );
    }
    // It says that a device is registered, and none is.
    let lies = pair_of(machine, &folder.join("lies"), FINDS, "return 0;");
    expect(&lies, &["init: pair one: Invalid argument"]);
    // The kernel would call what stands in the kind.
    let line = "return rtnl_link_register(&veth_link_ops);";
    let harm = "veth_link_ops.setup = (void *)&panic_timeout;";
    let calls = pair_of(machine, &folder.join("kind"), line, harm);
    let caught = "rtnl_link_register: an argument is not";
    expect(&calls, &[caught, "init: pair one: Operation not supported"]);
}

/// The lines of a boot with a harm in front of one line of the driver.
fn pair_of(machine: &Machine<'_>, folder: &Path, line: &str, harm: &str) -> String {
    fs::create_dir_all(folder).expect("a folder");
    let mut source = |source: &str| changed(source, line, harm, folder);
    let work = work("pair one 4 1\nrest more\nrest more\nshow /proc/sys/kernel/ostype\n");
    let walled = machine.wall(&work.modules, Protection::ReadWrite, folder, &mut source);
    walled.expect("modules");
    let said = machine.boot(&work, Instead::Walled(folder, &library()));
    let said = said.expect("a boot");
    expect(&said, &[": Linux", "init: ends"]);
    said
}
