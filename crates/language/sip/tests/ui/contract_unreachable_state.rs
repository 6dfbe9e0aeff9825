mullion_sip::contract! {
    pub mod lost {
        Start: client { Stop -> end }
        Island: server { Stop -> end }
    }
}

fn main() {}
