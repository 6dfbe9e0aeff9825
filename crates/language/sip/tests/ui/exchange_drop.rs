use mullion_sip::Exchange;

#[derive(Exchange)]
struct Destructor(u8);

impl Drop for Destructor {
    fn drop(&mut self) {}
}

fn main() {}
