//! A population of domains of one verified image, for the run time's rows.

use super::answer::Question;
use anyhow::{Context, Result, ensure};
use mullion_loader::{Asked, Authoriser, Imports, Instance, Loaded};
use mullion_runtime::{
    Access, CallArguments, Claimed, Entry, Limits, LinkOptions, PAGE, SharedPages,
};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Domains in a chain: 50 calls nest well below the usual limit on depth.
pub(crate) const CHAIN: usize = 50;

/// At most so many have a shared page: each takes one mapping more.
const SHARING: usize = 100;

/// Everything that the rows need.
pub(crate) struct Domains {
    /// As many as asked for, each linked to the next one, the last to the second.
    pub(crate) all: Vec<Member>,
    /// One more, for the rows with two.
    pub(crate) second: Member,
    /// With a limit of time on each call.
    pub(crate) limited: Member,
    /// Of the image with floating-point control.
    pub(crate) floating: Member,
    /// Two of the image without accesses through `%gs`, the first linked to the second.
    pub(crate) register: [Member; 2],
    /// One with such accesses that is linked to the second of them.
    pub(crate) mixed: Member,
    /// Others, as many but at most 100, that have the page; they are never restarted,
    /// since a restart takes it away.
    pub(crate) sharing: Vec<Member>,
    /// Theirs, for reading and writing.
    pub(crate) page: SharedPages,
    /// A page that nobody has.
    pub(crate) spare: SharedPages,
    pub(crate) loaded: Loaded,
    pub(crate) image: Arc<[u8]>,
    pub(crate) large: Arc<[u8]>,
    pub(crate) imports: Imports,
}

/// A domain with what is called in it.
pub(crate) struct Member {
    pub(crate) instance: Instance,
    pub(crate) entries: Entries,
    /// 4 KiB of the domain's own.
    pub(crate) buffer: Claimed,
}

/// Its exports, until it is restarted.
#[derive(Clone, Copy)]
pub(crate) struct Entries {
    pub(crate) nothing: Entry,
    pub(crate) eight: Entry,
    pub(crate) work: Entry,
    pub(crate) call_host: Entry,
    pub(crate) call_next: Entry,
    pub(crate) chain: Entry,
    pub(crate) fail: Entry,
}

impl Domains {
    /// Loads, links and shares; every domain is new and has not been called.
    pub(crate) fn new(question: &Question) -> Result<Self> {
        let read = |path: &Path| {
            let bytes = fs::read(path).with_context(|| format!("reading {}", path.display()))?;
            anyhow::Ok(Arc::<[u8]>::from(bytes))
        };
        let image = read(&question.extension)?;
        let imports = Imports::new()
            .with("host_nothing", Arc::new(|_: &mut _| Ok(0)))
            .with("next", Arc::new(|_: &mut _| Ok(0)))
            // What the C library would ask; nothing that is called here does.
            .with("__mullion_system", Arc::new(|_: &mut _| Ok(0)));
        let loaded = load(image.clone())?;
        let second = loaded.instantiate(&imports, Limits::default())?;
        let offset = buffer(&second)?;
        let second = Member::new(second, offset)?;
        let member = |limits| Member::new(loaded.instantiate(&imports, limits)?, offset);
        let all = (0..question.domains)
            .map(|_| member(Limits::default()))
            .collect::<Result<Vec<Member>>>()?;
        ensure!(!all.is_empty(), "no domains were asked for");
        link(&loaded, &all, &second)?;
        let page = SharedPages::new(PAGE)?;
        let sharing = (0..question.domains.min(SHARING))
            .map(|_| member(Limits::default()))
            .collect::<Result<Vec<Member>>>()?;
        for member in &sharing {
            page.grant(member.instance.domain(), 0..PAGE, Access::ReadWrite)?;
        }
        let limits = Limits {
            time: Some(Duration::from_secs(10)),
            ..Limits::default()
        };
        let floating = load(read(&question.floating)?)?;
        let without = load(read(&question.register)?)?;
        let register = || without.instantiate(&imports, Limits::default());
        let offset_there = buffer(&register()?)?;
        let register = [
            Member::new(register()?, offset_there)?,
            Member::new(register()?, offset_there)?,
        ];
        link(&without, &register[..1], &register[1])?;
        let mixed = member(Limits::default())?;
        link(&loaded, std::slice::from_ref(&mixed), &register[1])?;
        Ok(Self {
            limited: member(limits)?,
            floating: Member::new(floating.instantiate(&imports, Limits::default())?, 0)?,
            register,
            mixed,
            spare: SharedPages::new(PAGE)?,
            large: read(&question.large)?,
            all,
            second,
            sharing,
            page,
            loaded,
            image,
            imports,
        })
    }
}

/// Verifies an image and lays it out.
pub(crate) fn load(image: Arc<[u8]>) -> Result<Loaded> {
    let admitted = Authoriser::trusting_everyone().admit(image, &Asked::default())?;
    Ok(Loaded::new(admitted)?)
}

fn link(loaded: &Loaded, all: &[Member], last: &Member) -> Result<()> {
    let imports = loaded.image().imports();
    let next = imports.iter().position(|name| name == "next");
    let next = next.context("the extension does not import `next`")?;
    for (caller, callee) in all.iter().zip(all.iter().skip(1).chain([last])) {
        let (from, to) = (caller.instance.domain(), callee.instance.domain());
        from.link(next, to, callee.entries.chain, LinkOptions::default())?;
    }
    Ok(())
}

impl Member {
    /// `buffer` is an offset.
    fn new(instance: Instance, buffer: u64) -> Result<Self> {
        Ok(Self {
            entries: Entries::of(&instance)?,
            buffer: Claimed(instance.domain().memory().base() + buffer),
            instance,
        })
    }

    /// Calls a function of it with integers.
    #[inline]
    pub(crate) fn call(&self, entry: Entry, integers: &[u64]) -> Result<u64> {
        let called = self
            .instance
            .domain()
            .call(entry, &CallArguments::new(integers));
        Ok(called?.integer)
    }

    /// Restarts it, and finds its entries again; the time that the restart took.
    pub(crate) fn restart(&mut self) -> Result<Duration> {
        let start = Instant::now();
        self.instance.restart()?;
        let time = start.elapsed();
        self.entries = Entries::of(&self.instance)?;
        Ok(time)
    }
}

impl Entries {
    fn of(instance: &Instance) -> Result<Self> {
        instance.domain().open();
        let entry = |name| export(instance, name);
        Ok(Self {
            nothing: entry("nothing")?,
            eight: entry("eight")?,
            work: entry("work")?,
            call_host: entry("call_host")?,
            call_next: entry("call_next")?,
            chain: entry("chain")?,
            fail: entry("fail")?,
        })
    }
}

fn export(instance: &Instance, name: &str) -> Result<Entry> {
    let entry = instance.export(name)?;
    entry.with_context(|| format!("the extension does not export `{name}`"))
}

/// Where the extension's buffer lies in every window. It calls the domain.
fn buffer(instance: &Instance) -> Result<u64> {
    let domain = instance.domain();
    let place = domain.call(export(instance, "place")?, &CallArguments::default())?;
    let offset = domain.memory().offset(Claimed(place.integer));
    offset.context("the extension's buffer is not in its window")
}
