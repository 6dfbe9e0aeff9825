mullion_sip::contract! {
    pub mod typo {
        Start: client { Go -> Midle, Stop -> end }
        Middle: server { Stop -> end }
    }
}

fn main() {}
