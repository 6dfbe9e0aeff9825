mullion_sip::contract! {
    pub mod ask {
        Ask: client { Question(u32) -> end }
    }
}

fn main() {
    let (client, _server) = ask::channel().unwrap();
    std::thread::spawn(move || drop(client));
}
