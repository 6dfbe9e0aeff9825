//! The least that a process can be: a main function, and a manifest around it.
#![forbid(unsafe_code)]

mullion_sip::sip_main! {
    name: "hello",
    main: main,
}

/// Arguments: whom to greet (the world).
fn main(arguments: Vec<String>) {
    println!(
        "hello, {}",
        arguments.first().map_or("world", String::as_str)
    );
}
