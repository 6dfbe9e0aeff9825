//! The power of the host is not made, copied, sent or shared, and critical pieces are the kernel's own.

use mullion_sip_hosting::{Deputy, Host};

// What a process can be given or can reach is `Send` (the arguments of
// programs, by their parcels), `Sync` (statics), or made by itself. (Threads
// of a process stay on a worker, where `Deputy::enter` is refused.)
//

fn copied<T: Clone>() {}
fn sent<T: Send>() {}
fn shared<T: Sync>() {}

fn main() {
    copied::<Host>();
    sent::<Host>();
    shared::<Host>();
    copied::<Deputy>();
    let _ = Deputy(());
    let _ = mullion_sip::critical::critical();
}
