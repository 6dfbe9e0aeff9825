//! Network devices behind the wall: packets, timers and work, in both kernels, and when a driver is ended under load.

use crate::{changed_before, expect, library};
use mullion_linux::{Built, Instead, Machine, Protection, Work};
use std::fs;
use std::path::{Path, PathBuf};

/// The line of the driver before which a change comes, and the function that it is in.
const SENDS: &str = "dev_lstats_add(dev, skb->len);";
const SEND: &str = "static netdev_tx_t dummy_xmit(";
/// The first byte of a datagram's data, behind the headers of Ethernet, IP and UDP.
const MARKED: &str = "skb->len > 42 && skb->data[42] == '!'";

/// What the changed driver has of the kernel, beside what it has otherwise.
const LATER: &str = "
#include <linux/bottom_half.h>
#include <linux/panic.h>
#include <linux/timer.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>
static unsigned long order;
static struct sk_buff *kept;
static struct rcu_head head;
static void called(struct rcu_head *head) { order = order * 10 + 4; pr_err(\"mullion: order %lu\\n\", order); }
static void late(struct work_struct *work) { order = order * 10 + 3; call_rcu(&head, called); }
static DECLARE_DELAYED_WORK(late_work, late);
static void runs(struct work_struct *work) { order = order * 10 + 2; schedule_delayed_work(&late_work, 2); }
static DECLARE_WORK(work, runs);
static void fires(struct timer_list *timer) { order = order * 10 + 1; schedule_work(&work); }
static DEFINE_TIMER(timer, fires);
";

/// What the changed driver calls beside the others.
const CALLS: [&str; 10] = [
    "call_rcu",
    "mullion_bottom_halves_off",
    "mullion_bottom_halves_on",
    "mullion_pagefaults_off",
    "mullion_pagefaults_on",
    "um_set_signals",
    "mod_timer",
    "queue_delayed_work_on",
    "queue_work_on",
    "skb_copy",
];

pub(crate) fn run(built: &Built, machine: &Machine<'_>, made: &Path, folder: &Path) {
    a_driver_does_as_without_a_wall(machine, &folder.join("dummy"));
    let policies = policies(&folder.join("policies"));
    let machine = Machine::new(built, made, &policies).expect("a build");
    what_a_driver_has_called_later_is_called(&machine, &folder.join("later"));
    a_driver_is_loaded_again_under_load(&machine, &folder.join("network"));
    a_call_that_ends_leaves_its_task_as_it_was(&machine, &folder.join("task"));
    a_policy_cannot_give_the_task_s_own_state(&folder.join("state"), built, made);
    a_packet_is_the_driver_s_until_it_is_freed(&machine, &folder.join("packets"));
    a_device_with_functions_of_others_is_not_registered(&machine, &folder.join("others"));
    a_driver_that_begins_and_leaves_a_lock_closed_is_gone(&machine, &folder.join("begins"));
    a_device_that_is_registered_stays_as_it_is(&machine, &folder.join("registered"));
}

/// It is ended behind its beginning, and when it is loaded again, in a thread of the kernel. The lock of networks is open then.
fn a_driver_that_begins_and_leaves_a_lock_closed_is_gone(machine: &Machine<'_>, folder: &Path) {
    fs::create_dir_all(folder).expect("a folder");
    let mut source = |source: &str| {
        let is_it = source.ends_with("/net/dummy.c");
        let to = folder.join("dummy.c");
        is_it.then(|| {
            let text = fs::read_to_string(source).expect("the source");
            let left = text.replacen("out:\n\trtnl_unlock();", "out:\n\t;", 1);
            assert_ne!(left, text);
            fs::write(&to, left).expect("a file");
            to.clone()
        })
    };
    let work = work("rest more\nnet dummy0 4\nshow /proc/sys/kernel/ostype\n");
    let walled = machine.wall(&work.modules, Protection::ReadWrite, folder, &mut source);
    walled.expect("modules");
    let said = machine.boot(&work, Instead::Walled(folder, &library()));
    let said = said.expect("a boot");
    expect(
        &said,
        &[
            "has left the lock of networks closed",
            "mullion: dummy is not loaded again: -14",
            "init: net dummy0: No such device",
            ": Linux",
            "init: ends",
        ],
    );
}

/// `dummy` with a line more when it sends: by the name of its folder, the line, and what stops it.
fn is_stopped_and_loaded_again(
    machine: &Machine<'_>,
    folder: &Path,
    (name, harm, caught): (&str, &str, &str),
) {
    let folder = folder.join(name);
    fs::create_dir_all(&folder).expect("a folder");
    let mut source = |source: &str| changed(source, harm, &folder);
    let work = work("net dummy0 4\nrest more\nshow /proc/sys/kernel/ostype\n");
    let walled = machine.wall(&work.modules, Protection::ReadWrite, &folder, &mut source);
    walled.expect("modules");
    let said = machine.boot(&work, Instead::Walled(&folder, &library()));
    let said = said.expect("a boot");
    expect(
        &said,
        &[
            caught,
            "mullion: dummy is loaded again",
            ": Linux",
            "init: ends",
        ],
    );
}

/// A driver does not change the fields of a device's structure that the kernel follows.
fn a_device_that_is_registered_stays_as_it_is(machine: &Machine<'_>, folder: &Path) {
    let harms = [
        ("queues", "dev->_tx = NULL;", "Access in dummy_xmit"),
        (
            "functions",
            "dev->netdev_ops = NULL;",
            "Access in dummy_xmit",
        ),
    ];
    for harm in harms {
        is_stopped_and_loaded_again(machine, folder, harm);
    }
}

/// Our policies, and that of the driver with what the changed one calls.
fn policies(to: &Path) -> PathBuf {
    fs::create_dir_all(to).expect("a folder");
    let from = Machine::own_policies().join("dummy.toml");
    let text = fs::read_to_string(from).expect("a policy");
    let calls = CALLS.map(|name| format!("    \"{name}\",\n")).concat();
    let text = text
        .replacen("trusts = [\n", &format!("trusts = [\n{calls}"), 1)
        .replacen("error = -5\n", "error = -5\nallow = [\"@log\"]\n", 1)
        .replacen(
            "reads = [",
            "reads = [\"variable.jiffies\", \"variable.signals_enabled\", \"variable.system_wq\", ",
            1,
        );
    fs::write(to.join("dummy.toml"), text).expect("a file");
    to.to_path_buf()
}

fn work(script: &str) -> Work {
    Work {
        modules: vec!["dummy".to_owned()],
        script: script.to_owned(),
        ..Work::default()
    }
}

/// The driver's source with something before it sends.
fn changed(source: &str, what: &str, to: &Path) -> Option<PathBuf> {
    if !source.ends_with("/net/dummy.c") {
        return None;
    }
    let text = fs::read_to_string(source).expect("the source");
    assert!(text.contains(SENDS) && text.contains(SEND), "{text}");
    let text = text
        .replacen(SENDS, &format!("{what}\n\t{SENDS}"), 1)
        .replacen(SEND, &format!("{LATER}{SEND}"), 1);
    let place = to.join("dummy.c");
    fs::write(&place, text).expect("a file");
    Some(place)
}

/// All packets are sent and counted, in both kernels, and the driver goes.
fn a_driver_does_as_without_a_wall(machine: &Machine<'_>, folder: &Path) {
    let work = work("net dummy0 300\nrmmod dummy\nnet dummy0 1\n");
    let walled = machine.wall(&work.modules, Protection::ReadWrite, folder, &mut |_| None);
    assert_eq!(walled.expect("modules").len(), 1);
    let library = library();
    for instead in [Instead::Nothing, Instead::Walled(folder, &library)] {
        let said = machine.boot(&work, instead).expect("a boot");
        expect(
            &said,
            &[
                "init: net dummy0: 300 sent, 0 failed, 0 times set up again, 0 wrong, the last done",
                "init: rmmod dummy: done",
                "init: net dummy0: No such device",
                "init: ends",
            ],
        );
        assert!(!said.contains(" in dummy_"), "{said}");
        if matches!(instead, Instead::Walled(..)) {
            expect(
                &said,
                &[
                    "mullion: dummy is at",
                    "300 packets and requests lent, 300 of them gone on",
                ],
            );
        }
    }
}

/// A timer fires, queues work, which queues work with a delay, which has RCU call a function: in both kernels, in this order.
fn what_a_driver_has_called_later_is_called(machine: &Machine<'_>, folder: &Path) {
    fs::create_dir_all(folder).expect("a folder");
    let begins =
        "static bool is_begun; if (!is_begun) { is_begun = true; mod_timer(&timer, jiffies + 2); }";
    let mut source = |source: &str| changed(source, begins, folder);
    let work = work("net dummy0 10\nrest more\n");
    let walled = machine.wall(&work.modules, Protection::ReadWrite, folder, &mut source);
    walled.expect("modules");
    let plain = folder.join("plain");
    fs::create_dir_all(&plain).expect("a folder");
    let made = machine
        .plain("dummy", &plain, &mut source)
        .expect("a module");
    assert!(made.is_some());
    let library = library();
    for instead in [Instead::Plain(&plain), Instead::Walled(folder, &library)] {
        let said = machine.boot(&work, instead).expect("a boot");
        expect(&said, &["mullion: order 1234\n", "init: ends"]);
    }
}

/// A packet makes the driver store to a variable of the kernel. It has armed a timer and work, and has kept a copy of a packet.
/// All that is taken back; the device goes, comes again, and is set up again by who sends.
fn a_driver_is_loaded_again_under_load(machine: &Machine<'_>, folder: &Path) {
    fs::create_dir_all(folder).expect("a folder");
    let harm = format!(
        "if (!kept) {{ kept = skb_copy(skb, GFP_ATOMIC); mod_timer(&timer, jiffies + 100 * HZ);\n\
         schedule_delayed_work(&late_work, 100 * HZ); }}\n\tif ({MARKED}) panic_timeout = 77;"
    );
    let mut source = |source: &str| changed(source, &harm, folder);
    let work = work("net dummy0 300\nshow /proc/sys/kernel/panic\nnet dummy0 9\nrmmod dummy\n");
    let walled = machine.wall(&work.modules, Protection::ReadWrite, folder, &mut source);
    walled.expect("modules");
    let said = machine.boot(&work, Instead::Walled(folder, &library()));
    let said = said.expect("a boot");
    expect(
        &said,
        &[
            "mullion: dummy: Access in dummy_xmit",
            "mullion: 2 packets and requests were taken back",
            " given back, 2 timers and works,",
            "mullion: dummy is loaded again",
            " 1 times set up again,",
            ", the last done",
            "init: show /proc/sys/kernel/panic: -1",
            "init: ends",
        ],
    );
    assert!(!said.contains("300 sent"), "{said}");
}

/// A driver's call is ended after it has turned things off in the task that sends. They are on again then. Without page faults the
/// task could not use its own memory; without interrupts and soft ones it could not sleep. The same task sets the device up again.
fn a_call_that_ends_leaves_its_task_as_it_was(machine: &Machine<'_>, folder: &Path) {
    fs::create_dir_all(folder).expect("a folder");
    let harm = format!(
        "unsigned long flags; pagefault_disable(); pagefault_disable(); local_bh_disable(); local_bh_disable();\n\
         local_irq_save(flags);\n\
         if ({MARKED}) panic_timeout = 77;\n\
         local_irq_restore(flags); local_bh_enable(); local_bh_enable(); pagefault_enable(); pagefault_enable();"
    );
    let mut source = |source: &str| changed(source, &harm, folder);
    let work = work("net dummy0 300\ntree /dev 4\nnet dummy0 9\nlook /dev 4\n");
    let walled = machine.wall(&work.modules, Protection::ReadWrite, folder, &mut source);
    walled.expect("modules");
    let said = machine.boot(&work, Instead::Walled(folder, &library()));
    let said = said.expect("a boot");
    expect(
        &said,
        &[
            "mullion: dummy: Access in dummy_xmit",
            "mullion: dummy is loaded again",
            ", the last done",
            "init: look /dev: 16 files, 0 failed, 0 wrong",
            "init: ends",
        ],
    );
    assert!(!said.contains("scheduling while atomic"), "{said}");
    assert!(!said.contains("has not turned it off"), "{said}");
}

/// No policy lets a module write what is the running task's: it is refused when it is read.
fn a_policy_cannot_give_the_task_s_own_state(folder: &Path, built: &Built, made: &Path) {
    for kind in ["task.pagefault_disabled", "task_struct", "thread_info"] {
        let policies = policies(&folder.join(kind));
        let place = policies.join("dummy.toml");
        let text = fs::read_to_string(&place).expect("a policy");
        let text = text.replacen("writes = []", &format!("writes = [\"{kind}\"]"), 1);
        assert!(text.contains(kind), "{text}");
        fs::write(&place, text).expect("a file");
        let machine = Machine::new(built, made, &policies).expect("a build");
        let (work, folder) = (work("net dummy0 1\n"), folder.join("walled"));
        let walled = machine.wall(&work.modules, Protection::ReadWrite, &folder, &mut |_| None);
        walled.expect("modules");
        let said = machine.boot(&work, Instead::Walled(&folder, &library()));
        let said = said.expect("a boot");
        expect(
            &said,
            &[
                &format!("`{kind}` is the running task's own state"),
                "init: insmod dummy: Exec format error",
                "init: ends",
            ],
        );
    }
}

/// A driver that frees a packet and then looks at it, or frees it again, is stopped there.
fn a_packet_is_the_driver_s_until_it_is_freed(machine: &Machine<'_>, folder: &Path) {
    let harms = [
        (
            "looks",
            "kfree_skb(skb); order += skb->len;",
            "mullion: dummy: Access in dummy_xmit",
        ),
        (
            "again",
            "kfree_skb(skb); kfree_skb(skb);",
            "is not lent to the module",
        ),
        (
            "another",
            "kfree_skb((struct sk_buff *)dev);",
            "is not lent to the module",
        ),
    ];
    for harm in harms {
        is_stopped_and_loaded_again(machine, folder, harm);
    }
}

/// A device that names what is not the driver's for its functions: without a wall the kernel would call there at once.
fn a_device_with_functions_of_others_is_not_registered(machine: &Machine<'_>, folder: &Path) {
    fs::create_dir_all(folder).expect("a folder");
    let mut source = |source: &str| {
        let line = "dev->needs_free_netdev = true;";
        let other = "dev->netdev_ops = (void *)((unsigned long)dev->netdev_ops ^ 1ul << 33);";
        let is_it = source.ends_with("/net/dummy.c");
        is_it.then(|| changed_before(source, line, other, &folder.join("dummy.c")))
    };
    let work = work("net dummy0 4\nshow /proc/sys/kernel/ostype\n");
    let walled = machine.wall(&work.modules, Protection::ReadWrite, folder, &mut source);
    walled.expect("modules");
    let said = machine.boot(&work, Instead::Walled(folder, &library()));
    let said = said.expect("a boot");
    expect(
        &said,
        &[
            "the device's functions are not the module's",
            "init: insmod dummy: Bad address",
            "init: net dummy0: No such device",
            ": Linux",
            "init: ends",
        ],
    );
}
