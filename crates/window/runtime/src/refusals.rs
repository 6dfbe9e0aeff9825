//! Tests: whatever the supervisor refuses, nothing of it is in force.

use crate::control_stack;
use crate::records::{Wanted, end_those_that_wait, refusing, snapshot};
use crate::{
    Access, CallArguments, CallError, Claimed, ImageLayout, Limits, LinkOptions, PAGE, Segment,
    SharedPages, WindowDomain,
};
use mullion_abi::{IMAGE_BASE, LABEL};
use mullion_report::error::Error;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

/// The records are the whole process's.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn image() -> Arc<ImageLayout> {
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
    Arc::new(unsafe { ImageLayout::new(&[code, data], Vec::new()) }.unwrap())
}

/// Two domains, and pages that they may be given.
struct Scene {
    domains: [WindowDomain; 2],
    shared: SharedPages,
    /// In the first one: pages of its own.
    mapped: Claimed,
}

impl Scene {
    fn new(image: &Arc<ImageLayout>) -> Self {
        let domain = || {
            let imports =
                vec![Arc::new(|_: &mut crate::GateCall<'_>| Ok(0_u64)) as crate::HostFunction];
            let domain = WindowDomain::new(image.clone(), imports, Limits::default()).unwrap();
            domain.open();
            domain
        };
        let domains = [domain(), domain()];
        let mapped = domains[0].memory().map(None, 4 * PAGE, Access::Read);
        let shared = SharedPages::new(2 * PAGE).unwrap();
        shared.grant(&domains[0], 0..PAGE, Access::Read).unwrap();
        Self {
            mapped: Claimed(mapped.unwrap()),
            domains,
            shared,
        }
    }

    /// All that there is to see of it: the records, the links, the kernel's mappings of both windows.
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
    let entry = |domain: &WindowDomain| {
        let address = Claimed(domain.memory().base() + IMAGE_BASE + 4);
        domain.entry(address).unwrap()
    };
    let link =
        |callee: &WindowDomain| domain.link(0, callee, entry(callee), LinkOptions::default());
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

/// A yes is good for the pages and the access that were asked about, and for nothing else.
#[test]
fn what_was_not_asked_about_does_not_change() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let scene = Scene::new(&image());
    let memory = scene.domains[0].memory();
    let start = memory.offset(scene.mapped).unwrap();
    let asked = start..start + PAGE;
    let before = scene.seen();
    for (pages, access) in [
        (start..start + 2 * PAGE, Access::None),
        (start + PAGE..start + 2 * PAGE, Access::None),
        (asked.clone(), Access::ReadWrite),
    ] {
        let wanted = [Wanted::Own(asked.clone(), Access::None)];
        let done = memory
            .record()
            .change("a test", &wanted, |window, decided| {
                window.protect(decided, pages, access)
            });
        assert!(matches!(done, Err(Error::Undecided { .. })), "{done:?}");
        assert_eq!(before, scene.seen());
    }
    let other = scene.domains[1].memory();
    let wanted = [Wanted::Own(asked.clone(), Access::Read)];
    let done = memory.record().change("a test", &wanted, |_, decided| {
        other.window().protect(decided, asked, Access::Read)
    });
    assert!(matches!(done, Err(Error::Undecided { .. })), "{done:?}");
    assert_eq!(before, scene.seen());
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

/// All that a life of a host has: what is made in it, and what is seen of it from outside.
#[derive(Default)]
struct World {
    image: Option<Arc<ImageLayout>>,
    domains: Vec<WindowDomain>,
    shared: Option<SharedPages>,
    mapped: u64,
}

/// A typed error of any of the crate's, or what has not come about.
type Refused = Box<dyn std::error::Error>;

/// What a step does with the world; once more, when it has been refused.
type Step = (&'static str, fn(&mut World) -> Result<(), Refused>);

impl World {
    fn domain(&mut self, limits: Limits) -> Result<(), Refused> {
        let image = self.image.clone().ok_or("there is no image")?;
        let import: crate::HostFunction = Arc::new(|_: &mut crate::GateCall<'_>| Ok(0_u64));
        let domain = WindowDomain::new(image, vec![import], limits)?;
        domain.open();
        self.domains.push(domain);
        Ok(())
    }

    fn call(domain: &WindowDomain) -> Result<(), CallError> {
        let entry = Claimed(domain.memory().base() + IMAGE_BASE + 4);
        let entry = domain.entry(entry)?;
        domain
            .call(entry, &CallArguments::default())
            .map(drop)
            .map_err(|error| *error)
    }

    fn heap(&self, more: i64) -> Result<(), Refused> {
        let memory = self.domains[0].memory();
        let wanted = memory
            .set_heap_end(Claimed(0))
            .wrapping_add_signed(more * PAGE as i64);
        match memory.set_heap_end(Claimed(wanted)) {
            end if end == wanted => Ok(()),
            _ => Err("the heap's end stays".into()),
        }
    }

    fn share(&mut self, who: usize, pages: u64, access: Access) -> Result<(), Refused> {
        let shared = self.shared.as_ref().ok_or("there is no object")?;
        Ok(shared.grant(&self.domains[who], 0..pages * PAGE, access)?)
    }

    /// The kernel's mappings of windows, shared objects and control stacks; the records, but for numbers that
    /// are not given out again; and what the domains themselves say.
    fn seen(&self) -> String {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let chunks = crate::window::chunks();
        let of_interest = |line: &&str| {
            let (start, rest) = line.split_once('-').unwrap();
            let (end, rest) = rest.split_once(' ').unwrap();
            let number = |digits| u64::from_str_radix(digits, 16).unwrap_or(u64::MAX);
            let (start, end) = (number(start), number(end));
            let foot = start.is_multiple_of(mullion_abi::CONTROL_REGION)
                && end - start == PAGE
                && rest.starts_with("rw-p 00000000 00:00 0");
            let in_pool = chunks
                .iter()
                .any(|chunk| chunk.start < end && start < chunk.end);
            foot || in_pool || rest.contains("/memfd:mullion")
        };
        let maps: Vec<&str> = maps.lines().filter(of_interest).collect();
        let files = std::fs::read_dir("/proc/self/fd").unwrap().count();
        let domains = self.domains.iter().map(|domain| {
            let memory = domain.memory();
            let heap_end = memory.set_heap_end(Claimed(0));
            let mappings = memory.mappings();
            format!(
                "{:?} {} {mappings} {heap_end:#x}",
                domain.links(),
                memory.in_use()
            )
        });
        let domains: Vec<String> = domains.collect();
        let mut records = snapshot();
        records.next = [0; 3];
        format!("{maps:#?}\n{files} files\n{domains:#?}\n{records:#?}")
    }
}

/// On a new thread, with the count of questions.
fn elsewhere<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let left = refusing::left();
    let (done, refused, left) = std::thread::scope(|scope| {
        let thread = scope.spawn(move || {
            refusing::after(left);
            (work(), refusing::refused(), refusing::left())
        });
        thread.join().unwrap()
    });
    refusing::hand_back(refused, left);
    done
}

fn assert_same(before: &str, after: &str, what: &str) {
    let lines = before.lines().zip(after.lines());
    let differ: Vec<_> = lines.filter(|(one, other)| one != other).take(5).collect();
    assert!(before == after, "{what}: {differ:#?}");
}

/// Each way in which who may touch what changes.
const STEPS: [Step; 26] = [
    ("an image", |world| {
        world.image = Some(image());
        Ok(())
    }),
    ("a domain", |world| world.domain(Limits::default())),
    ("another one", |world| world.domain(Limits::default())),
    ("a thread", |_| Ok(elsewhere(crate::prepare_thread)?)),
    ("its first call", |world| {
        let domain = &world.domains[0];
        Ok(elsewhere(|| World::call(domain))?)
    }),
    ("a call", |world| Ok(World::call(&world.domains[1])?)),
    ("memory behind the image", |world| {
        Ok(world.domains[0].memory().extend(PAGE).map(drop)?)
    }),
    ("a longer heap", |world| world.heap(3)),
    ("a shorter heap", |world| world.heap(-1)),
    ("a mapping", |world| {
        let memory = world.domains[0].memory();
        world.mapped = memory.map(None, 8 * PAGE, Access::ReadWrite)?;
        Ok(())
    }),
    ("a mapping over another one", |world| {
        let at = Claimed(world.mapped + PAGE);
        let memory = world.domains[0].memory();
        Ok(memory.map(Some(at), PAGE, Access::None).map(drop)?)
    }),
    ("a protection", |world| {
        let at = Claimed(world.mapped + 3 * PAGE);
        Ok(world.domains[0].memory().protect(at, PAGE, Access::Read)?)
    }),
    ("an end of a mapping", |world| {
        let at = Claimed(world.mapped + 5 * PAGE);
        Ok(world.domains[0].memory().unmap(at, PAGE)?)
    }),
    ("a shared object", |world| {
        world.shared = Some(SharedPages::new(2 * PAGE)?);
        Ok(())
    }),
    ("shared pages", |world| world.share(0, 2, Access::ReadWrite)),
    ("shared pages of another one", |world| {
        world.share(1, 2, Access::Read)
    }),
    ("fewer rights to shared pages", |world| {
        world.share(0, 1, Access::Read)
    }),
    ("the end of a share", |world| {
        world.share(1, 2, Access::None)
    }),
    ("a link", |world| {
        let [caller, callee] = &world.domains[..] else {
            return Err("two domains".into());
        };
        let entry = callee.entry(Claimed(callee.memory().base() + IMAGE_BASE + 4))?;
        Ok(caller.link(0, callee, entry, LinkOptions::default())?)
    }),
    ("a restart", |world| {
        world.domains[0].restart()?;
        world.domains[0].open();
        Ok(())
    }),
    ("a call after it", |world| {
        Ok(World::call(&world.domains[0])?)
    }),
    ("shared pages after it", |world| {
        world.share(0, 2, Access::ReadWrite)
    }),
    ("an end", |world| {
        let records = || snapshot().domains.len();
        let before = records();
        // Who comes again asks again.
        end_those_that_wait();
        if world.domains.len() > 1 {
            drop(world.domains.remove(0));
        }
        match records() < before {
            true => Ok(()),
            false => Err("it stays in the records".into()),
        }
    }),
    ("a domain in its window", |world| {
        let stack = Limits::default().stack / 2;
        world.domain(Limits {
            stack,
            ..Limits::default()
        })
    }),
    ("windows in advance", |world| {
        let image = world.image.as_ref().ok_or("there is no image")?;
        Ok(image.prepare(1)?)
    }),
    ("a domain in one of those", |world| {
        world.domain(Limits::default())
    }),
];

/// Lives with the question refused that comes after so many, if there are so many: which one it was.
fn live(question: Option<u32>) -> Option<&'static str> {
    let mut world = World::default();
    let mut refused = None;
    // The thread that makes the first call takes a new control stack.
    let aside = control_stack::take_free();
    refusing::after(question);
    for (name, step) in STEPS {
        let before = world.seen();
        let done = step(&mut world);
        let Some(question) = refusing::refused().filter(|_| refused.is_none()) else {
            done.unwrap_or_else(|error| panic!("{name}: {error}"));
            continue;
        };
        refused = Some(question);
        let error = done.expect_err(&format!("{name}: {question} was refused"));
        let ended = name == "an end";
        if !ended {
            let what = format!("{name}, {question}: {error}");
            assert_same(&before, &world.seen(), &what);
        }
        // Domains go on, or say why not: a restart that is refused leaves one that has ended.
        for (index, domain) in world.domains.iter().enumerate() {
            let called = World::call(domain);
            let restarted = name == "a restart" && index == 0;
            let as_expected = match &called {
                Ok(()) => !restarted,
                Err(error) => restarted && matches!(error, CallError::NotMade(Error::Ended)),
            };
            assert!(as_expected, "{name}, {question}: {called:?}");
        }
        step(&mut world).unwrap_or_else(|error| panic!("{name}, again: {error}"));
    }
    refusing::after(None);
    drop(world);
    control_stack::release_free();
    control_stack::put_free(aside);
    refused
}

/// A process of its own: what others map would be seen, too.
#[test]
fn whatever_is_refused_nothing_has_changed() {
    const ALONE: &str = "MULLION_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let mut alone = std::process::Command::new(std::env::current_exe().unwrap());
        alone.args(["--exact", "--test-threads=1", "--nocapture"]);
        alone.arg("refusals::whatever_is_refused_nothing_has_changed");
        let output = alone.env(ALONE, "1").output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (said, errors) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{said}\n{errors}");
        assert!(said.contains("questions refused"), "{said}");
        return;
    }
    // A domain of this thread's first: it has a control stack from now on.
    assert_eq!(live(None), None);
    let nothing = World::default();
    let before = nothing.seen();
    let mut questions = Vec::new();
    while let Some(question) = live(Some(questions.len() as u32)) {
        questions.push(question);
        assert_same(&before, &nothing.seen(), &format!("after {questions:?}"));
        assert!(questions.len() < 1000, "it asks for ever");
    }
    println!("{} questions refused: {questions:?}", questions.len());
    for expected in [
        "an empty window",
        "a domain",
        "a domain's first memory",
        "a domain's memory",
        "a data stack",
        "memory of the host's",
        "shared pages",
        "a link",
        "a restart",
        "a domain's end",
    ] {
        assert!(questions.contains(&expected), "{expected}: {questions:?}");
    }
}
