mullion_sip::contract! {
    pub mod twice {
        Start: client { Go -> end, Go -> end }
    }
}

mullion_sip::contract! {
    pub mod again {
        Start: client { Go -> end }
        Start: server { Go -> end }
    }
}

fn main() {}
