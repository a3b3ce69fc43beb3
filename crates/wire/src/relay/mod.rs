//! What a relay between a client and a server needs of the protocol: how a connection opens when the relay treats TLS
//! otherwise than both would, and sockets with or without it. After the opening no byte is touched.
//!
//! | file | what |
//! |---|---|
//! | `terms` | what is done with TLS on both sides |
//! | `opening` | greeting and login, changed as the terms want it |
//! | `endpoint` | a socket that does not block, with what it has not sent yet |

mod endpoint;
mod opening;
mod terms;

pub use endpoint::Endpoint;
pub use opening::{Opening, Step};
pub use terms::{ForClients, ForServer, Terms};

/// Returns a packet by which a server turns a client away; `sequence` is its number in the conversation.
#[must_use]
pub fn refusal(sequence: u8, number: u16, text: &str) -> Vec<u8> {
    let text = &text.as_bytes()[..text.len().min(400)];
    let mut packet = Vec::with_capacity(text.len() + 7);
    packet.extend_from_slice(&((text.len() + 3) as u32).to_le_bytes()[..3]);
    packet.extend_from_slice(&[sequence, 0xFF]);
    packet.extend_from_slice(&number.to_le_bytes());
    packet.extend_from_slice(text);
    packet
}
