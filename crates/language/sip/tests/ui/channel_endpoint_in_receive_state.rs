mullion_sip::contract! {
    pub mod ask {
        Ask: client { Question(u32) -> Answer, Stop -> end }
        Answer: server { Reply(u32) -> Ask }
    }
}

mullion_sip::contract! {
    pub mod pass {
        // The server receives in `Ask`: it cannot be passed on then.
        Start: client { Give(ask::Server<ask::Ask>) -> end }
    }
}

fn main() {}
