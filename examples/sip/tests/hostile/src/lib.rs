//! A SIP that is in order but for a constructor, which would run when it is loaded. The tests show that it does not.

mullion_sip::sip_main! {
    name: "hostile",
    main: main,
}

fn main(_: Vec<String>) {}

/// Leaves a mark where the environment says.
extern "C" fn constructor() {
    if let Some(path) = std::env::var_os("SIP_HOSTILE_MARK") {
        let _ = std::fs::write(path, b"ran");
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = constructor;
