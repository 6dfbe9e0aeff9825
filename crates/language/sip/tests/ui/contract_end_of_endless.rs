mullion_sip::contract! {
    #[endless]
    pub mod forever {
        Ask: client { Question -> Answer, Stop -> end }
        Answer: server { Reply -> Ask }
    }
}

fn main() {}
