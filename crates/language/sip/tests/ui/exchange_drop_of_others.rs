use mullion_sip::Exchange;

#[derive(Exchange)]
struct Generic<T>(T);

impl<T> Drop for Generic<T> {
    fn drop(&mut self) {}
}

#[derive(Exchange)]
#[repr(u8)]
enum Choice {
    One(u8),
}

impl Drop for Choice {
    fn drop(&mut self) {}
}

fn main() {}
