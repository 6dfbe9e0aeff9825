mullion_sip::contract! {
    pub mod leak {
        Start: client { Go(Box<u8>) -> end }
    }
}

fn main() {}
