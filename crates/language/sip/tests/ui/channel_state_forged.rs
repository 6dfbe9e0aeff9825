mullion_sip::contract! {
    #[endless]
    pub mod ask {
        Ask: client { Question(u32) -> Answer }
        Answer: server { Reply(u32) -> Ask }
    }
}

fn main() {
    let (client, server) = ask::channel().unwrap();
    // An endpoint goes from state to state by its messages only, and there is only one of it.
    let _another: ask::Client<ask::Ask> = client.clone();
    let _waiting: ask::Client<ask::Answer> = client;
    let _answering = ask::Server::<ask::Answer>(server.0);
}
