mullion_sip::contract! {
    pub mod forever {
        Ask: client { Question -> Answer, Stop -> end }
        Answer: server { Reply -> Answer2 }
        Answer2: client { Again -> Answer }
    }
}

fn main() {}
