//! The smallest host: one domain, one function.
//!
//!     mullion cc --mullion-kind=extension examples/hello/extension.c -o hello.mx
//!     cargo run -p mullion-examples --bin hello hello.mx

use mullion::{Error, Image};

fn main() -> Result<(), Error> {
    let path = std::env::args().nth(1).unwrap_or("hello.mx".to_owned());
    let domain = Image::open(path)?.domain().load()?;
    let add = domain.function::<fn(i32, i32) -> i32>("add")?;
    println!("2 + 3 = {}", add.call(2, 3)?);
    Ok(())
}
