mullion_sip::contract! {
    pub mod ask {
        Ask: client { Question(u32) -> Answer, Stop -> end }
        Answer: server { Reply(u32) -> Ask }
    }
}

fn main() {
    let (client, server) = ask::channel().unwrap();
    // A receive where one is to send, and a send where one is to receive.
    client.recv();
    server.reply(1);
}
