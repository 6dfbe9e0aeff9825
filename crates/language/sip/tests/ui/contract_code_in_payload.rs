//! Code inside of the contract's module could make endpoints of any state.

macro_rules! kind {
    () => { u8 };
}

mullion_sip::contract! {
    pub mod forge {
        Ask: client {
            Go([u8; {
                impl Client<Ask> {
                    pub fn forged(self) -> Client<Late> {
                        Client::wrap(self.0)
                    }
                }
                1
            }]) -> Answer
        }
        Answer: server { Back -> Late }
        Late: client { End -> end }
    }
}

mullion_sip::contract! {
    pub mod expanded {
        Ask: client { Go(kind!()) -> end }
    }
}

fn main() {}
