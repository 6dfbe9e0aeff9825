mullion_sip::contract! {
    pub mod waiting {
        Start: client { Go -> Middle, Stop -> end }
        Middle: server {}
    }
}

fn main() {}
