mullion_sip::contract! {
    pub mod flood {
        Ask: server { Hello -> More }
        More: client { Data(u64) -> Rest, Stop -> end }
        Rest: client { Data(u64) -> More }
    }
}

fn main() {}
