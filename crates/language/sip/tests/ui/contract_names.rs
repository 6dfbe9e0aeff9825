mullion_sip::contract! {
    pub mod reserved {
        Client: client { Go -> end }
    }
}

mullion_sip::contract! {
    pub mod nobody {
        Start: both { Go -> end }
    }
}

mullion_sip::contract! {
    pub mod pair {
        Start: client { Go(u8, u8) -> end }
    }
}

fn main() {}
