mullion_sip::contract! {
    pub mod ask {
        Ask: client { Question(u32) -> Answer, Stop -> end }
        Answer: server { Reply(u32) -> Ask }
    }
}

fn main() {
    let (client, server) = ask::channel().unwrap();
    // Each operation takes the endpoint, also the ones that only look or give it up.
    let _ = client.question(1);
    let _ = client.question(2);
    let _ = server.try_recv();
    let _ = server.recv();

    let (client, server) = ask::channel().unwrap();
    let _ = client.stop();
    let _ = client.into_any();
    let _ = server.recv_timeout(std::time::Duration::ZERO);
    drop(server);
}
