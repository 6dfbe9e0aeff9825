//! Tests: whatever the supervisor refuses, nothing of it is in force.

use crate::records::{refusing, snapshot};
use crate::{Access, Claimed, Domain, Image, Limits, LinkOptions, PAGE, Segment, Shared};
use mullion_abi::{IMAGE_BASE, LABEL};
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

/// The books are the whole process's.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn image() -> Arc<Image> {
    let mut code = LABEL.to_le_bytes().to_vec();
    code.push(0xc3);
    let code = Segment {
        offset: IMAGE_BASE as u32,
        length: PAGE as u32,
        access: Access::ReadExecute,
        content: &code,
    };
    let data = Segment {
        offset: (IMAGE_BASE + PAGE) as u32,
        length: PAGE as u32,
        access: Access::ReadWrite,
        content: &[1],
    };
    // SAFETY: the code is a label and a return.
    Arc::new(unsafe { Image::new(&[code, data], Vec::new()) }.unwrap())
}

/// Two domains, and pages that they may be given.
struct Scene {
    domains: [Domain; 2],
    shared: Shared,
    /// In the first one: pages of its own.
    mapped: Claimed,
}

impl Scene {
    fn new(image: &Arc<Image>) -> Self {
        let domain = || {
            let imports =
                vec![Arc::new(|_: &mut crate::Caller<'_>| Ok(0_u64)) as crate::HostFunction];
            let domain = Domain::new(image.clone(), imports, Limits::default()).unwrap();
            domain.open();
            domain
        };
        let domains = [domain(), domain()];
        let mapped = domains[0].memory().map(None, 4 * PAGE, Access::Read);
        let shared = Shared::new(2 * PAGE).unwrap();
        shared.grant(&domains[0], 0..PAGE, Access::Read).unwrap();
        Self {
            mapped: Claimed(mapped.unwrap()),
            domains,
            shared,
        }
    }

    /// All that there is to see of it: the books, the links, the kernel's mappings of both windows.
    fn seen(&self) -> String {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let in_windows = |line: &&str| {
            let start = line.split('-').next().unwrap_or_default();
            let start = u64::from_str_radix(start, 16).unwrap_or_default();
            let mut windows = self.domains.iter().map(|domain| domain.memory());
            windows.any(|memory| memory.offset(Claimed(start)).is_some())
        };
        let maps: Vec<&str> = maps.lines().filter(in_windows).collect();
        let domains = self.domains.iter().map(|domain| {
            let memory = domain.memory();
            let heap_end = memory.set_heap_end(Claimed(0));
            format!("{:?} {} {heap_end:#x}", domain.links(), memory.in_use())
        });
        let domains: Vec<String> = domains.collect();
        format!("{maps:#?}\n{domains:#?}\n{:#?}", snapshot())
    }
}

/// Has each question that `work` asks refused, one after the other: then nothing has changed. In the
/// end it succeeds, and something has.
fn refused_everywhere<E: Debug>(work: impl Fn(&Scene) -> Result<(), E>) {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let image = image();
    for question in 0..10 {
        let scene = Scene::new(&image);
        let before = scene.seen();
        refusing::after(Some(question));
        let done = work(&scene);
        refusing::after(None);
        let after = scene.seen();
        if done.is_ok() {
            assert!(question > 0, "nobody was asked");
            assert_ne!(before, after);
            return;
        }
        assert_eq!(before, after, "question {question}: {done:?}");
        work(&scene).unwrap();
    }
    panic!("it asks for ever");
}

#[test]
fn a_refused_link_is_not_in_force() {
    refused_everywhere(|scene| {
        let [caller, callee] = &scene.domains;
        let entry = Claimed(callee.memory().base() + IMAGE_BASE + 4);
        let entry = callee.entry(entry).unwrap();
        caller.link(0, callee, entry, LinkOptions::default())
    });
}

/// The supervisor's own rule: no domain is given a gate into itself.
#[test]
fn a_link_to_oneself_is_refused_and_not_in_force() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let scene = Scene::new(&image());
    let before = scene.seen();
    let [domain, callee] = &scene.domains;
    let entry = |domain: &Domain| {
        let address = Claimed(domain.memory().base() + IMAGE_BASE + 4);
        domain.entry(address).unwrap()
    };
    let link = |callee: &Domain| domain.link(0, callee, entry(callee), LinkOptions::default());
    assert!(matches!(link(domain), Err(crate::Error::Record(_))));
    assert!(domain.links().is_empty());
    assert_eq!(before, scene.seen());
    link(callee).expect("the import is free");
}

#[test]
fn a_refused_mapping_is_not_in_force() {
    refused_everywhere(|scene| {
        let mapped = scene.domains[0].memory().map(None, PAGE, Access::ReadWrite);
        mapped.map(drop)
    });
    refused_everywhere(|scene| {
        let memory = scene.domains[0].memory();
        let middle = Claimed(scene.mapped.0 + PAGE);
        memory.map(Some(middle), PAGE, Access::ReadWrite).map(drop)
    });
    refused_everywhere(|scene| {
        let middle = Claimed(scene.mapped.0 + PAGE);
        scene.domains[0].memory().unmap(middle, PAGE)
    });
    refused_everywhere(|scene| {
        let memory = scene.domains[0].memory();
        memory.protect(scene.mapped, PAGE, Access::ReadWrite)
    });
    refused_everywhere(|scene| scene.domains[0].memory().extend(PAGE).map(drop));
    refused_everywhere(|scene| {
        let memory = scene.domains[0].memory();
        let end = memory.set_heap_end(Claimed(0));
        let wanted = end + PAGE;
        match memory.set_heap_end(Claimed(wanted)) {
            moved if moved == wanted => Ok(()),
            stayed => Err(stayed),
        }
    });
}

#[test]
fn refused_pages_are_not_shared() {
    let grant = |who: usize, bytes: std::ops::Range<u64>, access| {
        refused_everywhere(move |scene: &Scene| {
            let domain = &scene.domains[who];
            scene.shared.grant(domain, bytes.clone(), access)
        });
    };
    grant(1, 0..PAGE, Access::ReadWrite);
    grant(0, 0..PAGE, Access::ReadWrite);
    grant(0, 0..2 * PAGE, Access::Read);
    grant(0, 0..PAGE, Access::None);
}
