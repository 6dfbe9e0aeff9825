//! Introduces processes to each other that know each other by no name: who offers an end of a channel, and who wants one.
//! The end moves from the one to the other, and the broker is in nobody's way afterwards.
#![forbid(unsafe_code)]

use std::collections::VecDeque;

use mullion_sip::channel::{ChannelClosed, Contract};
use mullion_sip::process;
use mullion_sip::process::names::NameError;
use sip_contracts::{echo, meet};

mullion_sip::sip_main! {
    name: "broker",
    main: main,
    contracts: [meet, echo],
    limits: { memory: 4 << 20, threads: 4, children: 0 },
}

/// Arguments: how many to introduce before it returns (0: no end).
fn main(arguments: Vec<String>) -> Result<(), NameError> {
    let count = arguments.first().and_then(|count| count.parse().ok());
    let service = process::serve("/broker", meet::Contract::INFO)?;
    let (mut offered, mut wanted) = (VecDeque::new(), VecDeque::new());
    let mut introduced = 0;
    while introduced < count.unwrap_or(0) || count.unwrap_or(0) == 0 {
        let Ok(guest) = meet::Server::<meet::Idle>::from_any(service.accept()) else {
            continue;
        };
        match guest.recv() {
            Ok(meet::IdleMessage::Offer(end, guest)) => {
                // Who offers and goes has offered all the same.
                let _ = guest.thanks();
                offered.push_back(end);
            }
            Ok(meet::IdleMessage::Want(guest)) => wanted.push_back(guest),
            Err(ChannelClosed) => {}
        }
        while !offered.is_empty()
            && let Some(guest) = wanted.pop_front()
            && let Some(end) = offered.pop_front()
        {
            // Who wanted and went has the end all the same, and its peer hears of it.
            let _ = guest.here(end);
            introduced += 1;
        }
    }
    Ok(())
}
