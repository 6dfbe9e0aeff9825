//! The host's interface, end to end: an extension built by `mullion cc`, in domains.

mod support;

#[path = "host/books.rs"]
mod books;
#[path = "host/calls.rs"]
mod calls;
#[path = "host/cancel.rs"]
mod cancel;
#[path = "host/data.rs"]
mod data;
#[path = "host/endings.rs"]
mod endings;
#[path = "host/everything.rs"]
mod everything;
#[path = "host/faults.rs"]
mod faults;
#[path = "host/imports.rs"]
mod imports;
#[path = "host/limits.rs"]
mod limits;
#[path = "host/links.rs"]
mod links;
#[path = "host/loading.rs"]
mod loading;
#[path = "host/metrics.rs"]
mod metrics;
#[path = "host/misuse.rs"]
mod misuse;
#[path = "host/pool.rs"]
mod pool;
#[path = "host/restart.rs"]
mod restart;
#[path = "host/rows.rs"]
mod rows;

use everything::{IMAGE, imports};
use mullion::{Domain, Error};

fn domain() -> Domain {
    let domain = IMAGE.domain().imports(imports()).load();
    domain.expect("the domain is made")
}

#[track_caller]
fn fault(result: Result<impl Sized, Error>) -> Box<mullion::Fault> {
    match result {
        Err(Error::Fault(fault)) => fault,
        Err(other) => panic!("no fault: {other}"),
        Ok(_) => panic!("no fault"),
    }
}
