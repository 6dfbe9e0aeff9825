//! The paper's figures as the states of real supervisors.

use mullion_picture::{
    AccessKind, ByteAddress, DrawnDomain, DrawnGrant, DrawnGroup, ExportLevel, Label, Region,
    Space, SupervisorState, VERSION,
};
use mullion_recorder::Recorder;
use mullion_supervisor::{DomainId, Error, GroupId, Level, Permission, Range, Supervisor};

const ROOT: DomainId = DomainId::SUPERVISOR;

type Result<T> = std::result::Result<T, Error>;

fn bytes(address: u64, bytes: u64) -> Range {
    Range::bytes(address, bytes).expect("aligned and not empty")
}

/// Each picture's file name and state.
pub(crate) fn figures() -> Vec<(&'static str, SupervisorState)> {
    let (before, after) = figure_5().expect("the owner may");
    vec![
        ("figure-1", figure_1().expect("the owner may")),
        ("figure-4", figure_4().expect("the owner may")),
        ("figure-5-before", before),
        ("figure-5-after", after),
        ("front", front().expect("the owner may")),
    ]
}

/// Several domains in one address space, each with permissions of its own.
fn figure_1() -> Result<SupervisorState> {
    let mut s = Supervisor::new(bytes(0, 0x10000), Recorder::new());
    let kernel = s.pd_subdivide(&ROOT, bytes(0, 0x10000), Permission::None)?;
    let sections = [
        (0x0000, 0x2000, Permission::ExecuteRead),
        (0x2000, 0x0800, Permission::Read),
        (0x3000, 0x2000, Permission::ReadWrite),
        (0x8000, 0x8000, Permission::ReadWrite),
    ];
    for (address, size, permission) in sections {
        s.mprot(&kernel, bytes(address, size), permission)?;
    }
    let disk = s.pd_subdivide(&kernel, bytes(0x5000, 0x1000), Permission::ExecuteRead)?;
    s.mprot(&disk, bytes(0x5c00, 0x400), Permission::ReadWrite)?;
    let network = s.pd_subdivide(&kernel, bytes(0x6000, 0x1800), Permission::ExecuteRead)?;
    s.mprot(&network, bytes(0x7000, 0x800), Permission::ReadWrite)?;
    let printk = s.pd_subdivide(&kernel, bytes(0x2800, 0x800), Permission::ExecuteRead)?;
    s.mprot_export(&kernel, printk, bytes(0x2000, 0x800), Permission::Read)?;
    s.mprot_export(&disk, printk, bytes(0x5b00, 0x100), Permission::Read)?;
    s.mprot_export(&kernel, disk, bytes(0x9000, 0x1000), Permission::ReadWrite)?;
    s.mprot_export(&kernel, network, bytes(0xb020, 0x20), Permission::ReadWrite)?;
    s.mprot_export(&kernel, network, bytes(0xc000, 0x600), Permission::Read)?;
    Ok(SupervisorState::from(&s.snapshot())
        .title("Figure 1: four domains in one address space")
        .name(kernel, "kernel")
        .name(disk, "disk")
        .name(network, "network")
        .name(printk, "printk"))
}

/// Domain 1 grants two regions to a group, which domain 3 has joined.
fn figure_4() -> Result<SupervisorState> {
    let mut s = Supervisor::new(bytes(0, 0x4000), Recorder::new());
    let one = s.pd_subdivide(&ROOT, bytes(0, 0x4000), Permission::None)?;
    let two = s.pd_subdivide(&one, bytes(0x3000, 0x800), Permission::ReadWrite)?;
    let three = s.pd_subdivide(&one, bytes(0x3800, 0x800), Permission::ReadWrite)?;
    let group = s.group_create(&one)?;
    for range in [bytes(0x800, 0x400), bytes(0x1800, 0x800)] {
        s.mprot(&one, range, Permission::ReadWrite)?;
        s.mprot_export(&one, group, range, Permission::Read)?;
    }
    s.group_join(&three, group)?;
    Ok(SupervisorState::from(&s.snapshot())
        .title("Figure 4: a group protection domain")
        .name(one, "PD 1")
        .name(two, "PD 2")
        .name(three, "PD 3")
        .name(group, "GPD 1"))
}

/// A kernel that has all memory subdivides, and loads a module into the new domain.
fn figure_5() -> Result<(SupervisorState, SupervisorState)> {
    let mut s = Supervisor::new(bytes(0, 0x20000), Recorder::new());
    let kernel = s.pd_subdivide(&ROOT, bytes(0, 0x20000), Permission::ReadWrite)?;
    s.mprot(&kernel, bytes(0, 0x6000), Permission::ExecuteRead)?;
    s.mprot(&kernel, bytes(0x6000, 0x2000), Permission::Read)?;
    let before = SupervisorState::from(&s.snapshot())
        .title("Figure 5, before: the kernel owns everything")
        .name(kernel, "kernel")
        .label(bytes(0, 0x6000), "kernel code")
        .label(bytes(0x6000, 0x2000), "constants");

    let entry = bytes(0x10000, 4);
    let exit = bytes(0x101fc, 4);
    let module = s.pd_subdivide(&kernel, bytes(0x10000, 0x3000), Permission::ReadWrite)?;
    s.mprot(&module, bytes(0x10000, 0x1400), Permission::ExecuteRead)?;
    s.mprot(&module, bytes(0x11400, 0xc00), Permission::Read)?;
    s.mprot(&module, exit, Permission::ReturnGate)?;
    let gate = Permission::SwitchGate { to: module };
    s.mprot(&module, entry, gate)?;
    s.mprot_export_up_to(&module, kernel, entry, gate, Level::None)?;
    s.mprot_export(
        &kernel,
        module,
        bytes(0x18000, 0x1000),
        Permission::ReadWrite,
    )?;
    let after = SupervisorState::from(&s.snapshot())
        .title("Figure 5, after: a module in a domain of its own")
        .name(kernel, "kernel")
        .name(module, "module")
        .label(bytes(0, 0x6000), "kernel code")
        .label(bytes(0x6000, 0x2000), "constants")
        .label(entry, "entry")
        .label(exit, "return")
        .label(bytes(0x10000, 0x1400), "text")
        .label(bytes(0x11400, 0xc00), "rodata")
        .label(bytes(0x12000, 0x1000), "data")
        .label(bytes(0x18000, 0x1000), "heap page");
    Ok((before, after))
}

/// The domains of the paper's Table 2, as they might stand in a running kernel.
fn front() -> Result<SupervisorState> {
    let mut s = Supervisor::new(bytes(0, 0x80000), Recorder::new());
    let kernel = s.pd_subdivide(&ROOT, bytes(0x1000, 0x7f000), Permission::None)?;
    s.mprot_export(
        &ROOT,
        GroupId::GLOBAL,
        bytes(0, 0x100),
        Permission::ExecuteRead,
    )?;
    s.mprot(&kernel, bytes(0x1000, 0xf000), Permission::ExecuteRead)?;
    s.mprot(&kernel, bytes(0x10000, 0x4000), Permission::Read)?;
    s.mprot(&kernel, bytes(0x14000, 0x6c000), Permission::ReadWrite)?;

    let names = [
        "printk", "ide-mod", "ide-disk", "unix", "rtc", "binfmt", "8390", "ne",
    ];
    let mut modules = Vec::new();
    for (number, name) in names.iter().enumerate() {
        let base = 0x20000 + 0x4000 * number as u64;
        let (code, data) = (
            0x800 * (1 + number as u64 % 3),
            0x400 * (1 + number as u64 % 4),
        );
        let module = s.pd_subdivide(&kernel, bytes(base, code + data), Permission::ExecuteRead)?;
        s.mprot(&module, bytes(base + code, data), Permission::ReadWrite)?;
        s.mprot(
            &module,
            bytes(base, 4),
            Permission::SwitchGate { to: module },
        )?;
        s.mprot_export(
            &module,
            kernel,
            bytes(base, 4),
            Permission::SwitchGate { to: module },
        )?;
        modules.push((module, *name));
    }
    let (printk, ide_mod, ide_disk, ne) = (modules[0].0, modules[1].0, modules[2].0, modules[7].0);
    let (network, binfmt) = (modules[6].0, modules[5].0);
    s.mprot_export(&kernel, printk, bytes(0x10000, 0x4000), Permission::Read)?;
    s.mprot_export(
        &ide_mod,
        ide_disk,
        bytes(0x24000 + 0x1000, 0x200),
        Permission::ReadWrite,
    )?;
    let inodes = s.group_create(&kernel)?;
    for module in [ide_mod, binfmt] {
        s.group_join(&module, inodes)?;
    }
    for range in [bytes(0x60400, 0x400), bytes(0x64000, 0x400)] {
        s.mprot_export(&kernel, inodes, range, Permission::Read)?;
    }
    s.mprot_export(
        &kernel,
        ide_disk,
        bytes(0x68000, 0x2000),
        Permission::ReadWrite,
    )?;
    s.mprot_export(
        &kernel,
        network,
        bytes(0x70010, 0x20),
        Permission::ReadWrite,
    )?;
    s.mprot_export(&kernel, ne, bytes(0x70200, 0x600), Permission::Read)?;
    let mut state = SupervisorState::from(&s.snapshot())
        .title("A kernel and its modules, each behind its own wall")
        .name(kernel, "kernel")
        .name(inodes, "inodes")
        .label(bytes(0, 0x100), "interrupt stubs")
        .label(bytes(0x1000, 0xf000), "kernel code")
        .label(bytes(0x10000, 0x4000), "strings")
        .label(bytes(0x14000, 0xc000), "kernel data")
        .label(bytes(0x60000, 0x8000), "inodes")
        .label(bytes(0x68000, 0x2000), "disk buffers")
        .label(bytes(0x70000, 0x800), "packets");
    for (number, (module, name)) in modules.into_iter().enumerate() {
        let base = 0x20000 + 0x4000 * number as u64;
        state = state.name(module, name).label(bytes(base, 0x1000), name);
    }
    Ok(state)
}

/// Many domains and many regions: what a picture must stay legible for.
pub(crate) fn crowd(domain_count: u64, grants: u64) -> SupervisorState {
    let made = || -> Result<SupervisorState> {
        let private = 0x1000 * domain_count;
        let shared = 0x40 * grants;
        let mut s = Supervisor::new(bytes(0, 0x10000 + private + shared), Recorder::new());
        let kernel = s.pd_subdivide(&ROOT, s.space(), Permission::ReadWrite)?;
        s.mprot(&kernel, bytes(0, 0x8000), Permission::ExecuteRead)?;
        let mut domains = vec![kernel];
        for n in 1..domain_count {
            let maker = if n % 5 == 4 {
                domains[domains.len() - 1]
            } else {
                kernel
            };
            let range = bytes(0x10000 + 0x1000 * n, 0x1000);
            if maker != kernel {
                s.chown(&kernel, range, maker)?;
            }
            let domain = s.pd_subdivide(&maker, range, Permission::ExecuteRead)?;
            s.mprot(
                &domain,
                bytes(0x10000 + 0x1000 * n + 0x800, 0x400 + 0x100 * (n % 4)),
                Permission::ReadWrite,
            )?;
            domains.push(domain);
        }
        let group = s.group_create(&kernel)?;
        s.mprot_export(&kernel, group, bytes(0x8000, 0x400), Permission::Read)?;
        let pairs = s.group_create(&domains[1])?;
        for domain in domains.iter().skip(2).step_by(3) {
            s.group_join(domain, group)?;
        }
        s.group_join(&domains[1], pairs)?;
        let mut seed: u64 = 0x2545_f491_4f6c_dd1d;
        for n in 0..grants {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            let domain = domains[1 + (seed % (domain_count - 1)) as usize];
            let permission = [
                Permission::Read,
                Permission::ReadWrite,
                Permission::ExecuteRead,
            ][(seed >> 20) as usize % 3];
            let size = 4 << (seed >> 30 & 3);
            s.mprot_export(
                &kernel,
                domain,
                bytes(0x10000 + private + 0x40 * n, size),
                permission,
            )?;
        }
        Ok(SupervisorState::from(&s.snapshot()).title(&format!("{domain_count} domains")))
    };
    made().expect("the owner may")
}

/// An allocator's slab: a thousand objects of one size, each given to the same domain.
pub(crate) fn slab() -> SupervisorState {
    let made = || -> Result<SupervisorState> {
        let mut s = Supervisor::new(bytes(0, 0x40000), Recorder::new());
        let kernel = s.pd_subdivide(&ROOT, s.space(), Permission::ReadWrite)?;
        let driver = s.pd_subdivide(&kernel, bytes(0x2000, 0x1000), Permission::ExecuteRead)?;
        for object in 0..1000 {
            let base = 0x10000 + 0x80 * object;
            s.mprot_export(&kernel, driver, bytes(base, 0x20), Permission::ReadWrite)?;
            s.mprot_export(&kernel, driver, bytes(base + 0x40, 0x10), Permission::Read)?;
        }
        let state = SupervisorState::from(&s.snapshot()).title("A slab of a thousand objects");
        Ok(state
            .name(kernel, "kernel")
            .name(driver, "driver")
            .label(bytes(0x10000, 0x1f400), "sk_buff slab"))
    };
    made().expect("the owner may")
}

/// A server of so many domains, each with a window of so many regions, which no two have alike. A tenth of each
/// window is shared with the next domain, and another with a group of every seventh.
pub(crate) fn server(domains: u32, regions: u32) -> SupervisorState {
    let space = |start: u64, bytes: u64| {
        let [start, end] = [start, start + bytes].map(|at| ByteAddress(at.into()));
        Space { start, end }
    };
    let grant = |domain, group, access| DrawnGrant {
        domain,
        group,
        access,
        to: None,
        export: ExportLevel::None,
    };
    let window = u64::from(regions) * 0x10000;
    let mut seed: u64 = 0x2545_f491_4f6c_dd1d;
    let mut all = Vec::new();
    let mut labels = Vec::new();
    for domain in 1..=domains {
        let base = window * u64::from(domain - 1);
        let name = format!("worker-{domain}");
        labels.push((space(base, window), name));
        let mut at = base;
        for number in 0..regions {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            let end = match number + 1 == regions {
                true => base + window,
                false => base + u64::from(number + 1) * 0x10000 - (seed & 0xff00),
            };
            let access = [
                AccessKind::ExecuteRead,
                AccessKind::Read,
                AccessKind::ReadWrite,
            ];
            let mut grants = vec![grant(Some(domain), None, access[number as usize % 3])];
            match number % 10 {
                3 => grants.push(grant(Some(domain % domains + 1), None, AccessKind::Read)),
                7 => grants.push(grant(None, Some(1 + domain % 7), AccessKind::Read)),
                _ => {}
            }
            let Space { start, end } = space(at, end - at);
            all.push(Region {
                start,
                end,
                owner: domain,
                grants,
            });
            at = base + u64::from(number + 1) * 0x10000 - (seed & 0xff00);
        }
    }
    let group = |id: u32| DrawnGroup {
        id,
        creator: 1,
        members: (1..=domains).filter(|one| 1 + one % 7 == id).collect(),
        name: String::new(),
    };
    let domain = |id: u32| DrawnDomain {
        id,
        parent: (id > 0).then_some(0),
        name: match id {
            0 => String::new(),
            id => format!("worker-{id}"),
        },
        ended: id == 3,
    };
    SupervisorState {
        mullion_state: VERSION,
        title: format!("A server of {domains} domains"),
        space: space(0, window * u64::from(domains)),
        domains: (0..=domains).map(domain).collect(),
        groups: (1..=7).map(group).collect(),
        regions: all,
        labels: labels
            .into_iter()
            .map(|(Space { start, end }, name)| Label { start, end, name })
            .collect(),
    }
}
