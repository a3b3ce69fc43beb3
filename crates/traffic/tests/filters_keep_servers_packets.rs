//! Does the filter that the kernel runs keep the servers' packets, each once, and no others?

#[allow(dead_code)] // Other tests ask for more of it.
mod packets;
#[allow(dead_code)] // As above.
#[path = "../../wire/tests/talk/mod.rs"]
mod talk;

use evenkeel_traffic::capture::live::filter::{Instruction, MOST_PORTS, filter};
use evenkeel_wire::watch::Side;
use packets::{Part, internet};
use proptest::prelude::*;

/// What the kernel knows of a packet besides its bytes.
#[derive(Debug, Clone, Copy)]
struct Known {
    protocol: u32,
    direction: u32,
    hardware: u32,
}

const IPV4: u32 = 0x0800;
const IPV6: u32 = 0x86DD;
const ETHERNET: Known = Known {
    protocol: IPV4,
    direction: 0,
    hardware: 1,
};

/// Runs a program as the kernel does, which checks it as well: it ends, and jumps nowhere else.
fn keeps(program: &[Instruction], known: Known, data: &[u8]) -> bool {
    let (mut a, mut x, mut stored, mut at) = (0_u32, 0_u32, 0_u32, 0);
    loop {
        let Instruction { code, jt, jf, k } = program[at];
        at += 1;
        let load = |from: u32, size: usize| -> Option<u32> {
            match from {
                0xFFFF_F000 => return Some(known.protocol),
                0xFFFF_F004 => return Some(known.direction),
                0xFFFF_F01C => return Some(known.hardware),
                _ => {}
            }
            let bytes = data.get(from as usize..from as usize + size)?;
            Some(
                bytes
                    .iter()
                    .fold(0, |sum, byte| sum << 8 | u32::from(*byte)),
            )
        };
        let loaded = match code {
            0x20 => load(k, 4),
            0x28 => load(k, 2),
            0x48 => load(x + k, 2),
            0x50 => load(x + k, 1),
            0x60 => Some(stored),
            0x87 => Some(x),
            0x04 => Some(a.wrapping_add(k)),
            0x0C => Some(a.wrapping_add(x)),
            0x54 => Some(a & k),
            0x64 => Some(a << k),
            _ => Some(a),
        };
        // A load from where the packet has nothing ends the program.
        let Some(value) = loaded else {
            return false;
        };
        a = value;
        match code {
            0x01 => x = k,
            0x07 => x = a,
            0x02 => stored = a,
            0x05 => at += k as usize,
            0x15 => at += usize::from(if a == k { jt } else { jf }),
            0x45 => at += usize::from(if a & k != 0 { jt } else { jf }),
            0x06 => return k > 0,
            0x20 | 0x28 | 0x48 | 0x50 | 0x60 | 0x87 | 0x04 | 0x0C | 0x54 | 0x64 => {}
            other => panic!("{other:#x} is not used"),
        }
    }
}

fn segment(side: Side, is_v6: bool) -> Vec<u8> {
    let part = Part {
        side,
        sequence: 1,
        acknowledged: 1,
        flags: 0x10,
        payload: b"abc".to_vec(),
    };
    internet(&part, 50_000, is_v6)
}

/// Puts headers between that of IPv6 and the segment.
fn between(packet: &[u8], headers: &[(u8, &[u8])]) -> Vec<u8> {
    let mut longer = packet[..40].to_vec();
    let mut next = 6;
    let mut all = Vec::new();
    for (kind, header) in headers.iter().rev() {
        let mut header = header.to_vec();
        header[0] = next;
        next = *kind;
        all = [header, all].concat();
    }
    longer[6] = next;
    [longer, all, packet[40..].to_vec()].concat()
}

#[test]
fn both_directions_of_both_protocols() {
    let own = filter(&[3307, 3306]);
    let others = filter(&[3307, 330]);
    for side in [Side::Client, Side::Server] {
        for (protocol, is_v6) in [(IPV4, false), (IPV6, true)] {
            let known = Known {
                protocol,
                ..ETHERNET
            };
            let packet = segment(side, is_v6);
            assert!(keeps(&own, known, &packet), "{side:?} {is_v6}");
            assert!(!keeps(&others, known, &packet), "{side:?} {is_v6}");
        }
    }
    let mut udp = segment(Side::Client, false);
    udp[9] = 17;
    assert!(!keeps(&own, ETHERNET, &udp));
    let arp = Known {
        protocol: 0x0806,
        ..ETHERNET
    };
    assert!(!keeps(&own, arp, &segment(Side::Client, false)));
    assert!(!keeps(
        &filter(&[]),
        ETHERNET,
        &segment(Side::Client, false)
    ));
}

#[test]
fn loopback_shows_each_packet_once() {
    let own = filter(&[3306]);
    let packet = segment(Side::Client, false);
    for (hardware, direction, is_kept) in
        [(772, 4, false), (772, 0, true), (1, 4, true), (1, 0, true)]
    {
        let known = Known {
            hardware,
            direction,
            ..ETHERNET
        };
        assert_eq!(keeps(&own, known, &packet), is_kept, "{known:?}");
    }
}

#[test]
fn tags_of_vlans_lie_before_the_packet_or_were_passed_over() {
    let own = filter(&[3306]);
    for (kind, is_v6) in [(IPV4, false), (IPV6, true)] {
        let packet = segment(Side::Server, is_v6);
        let tag = [0x20, 5, (kind >> 8) as u8, kind as u8];
        for protocol in [0x8100, 0x88A8, 0x9100] {
            let known = Known {
                protocol,
                ..ETHERNET
            };
            assert!(keeps(&own, known, &packet));
            assert!(keeps(&own, known, &[&tag[..], &packet].concat()));
            assert!(!keeps(
                &filter(&[3307]),
                known,
                &[&tag[..], &packet].concat()
            ));
        }
    }
    let known = Known {
        protocol: 0x8100,
        ..ETHERNET
    };
    assert!(!keeps(&own, known, &[0, 5, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1]));
}

#[test]
fn of_fragments_the_first_is_kept() {
    let own = filter(&[3306]);
    let mut packet = segment(Side::Client, false);
    packet[6..8].copy_from_slice(&[0x20, 0]);
    assert!(keeps(&own, ETHERNET, &packet));
    packet[6..8].copy_from_slice(&[0x20, 9]);
    assert!(!keeps(&own, ETHERNET, &packet));
    let known = Known {
        protocol: IPV6,
        ..ETHERNET
    };
    let packet = segment(Side::Client, true);
    let first = between(&packet, &[(44, &[0, 0, 0, 1, 0, 0, 0, 9])]);
    assert!(keeps(&own, known, &first));
    let later = between(&packet, &[(44, &[0, 0, 0, 8, 0, 0, 0, 9])]);
    assert!(!keeps(&own, known, &later));
}

#[test]
fn headers_between_are_passed_over() {
    let own = filter(&[3306]);
    let known = Known {
        protocol: IPV6,
        ..ETHERNET
    };
    let packet = segment(Side::Client, true);
    let options: (u8, &[u8]) = (0, &[0; 8]);
    let routing: (u8, &[u8]) = (43, &[0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let other_end: (u8, &[u8]) = (60, &[0; 8]);
    for headers in [
        &[options][..],
        &[routing],
        &[other_end],
        &[options, routing],
    ] {
        assert!(
            keeps(&own, known, &between(&packet, headers)),
            "{headers:?}"
        );
    }
    assert!(!keeps(&own, known, &between(&packet, &[(51, &[0; 8])])));
    let mut longer = segment(Side::Client, false);
    longer[0] = 0x46;
    longer.splice(20..20, [1; 4]);
    assert!(keeps(&own, ETHERNET, &longer));
}

#[test]
fn no_jump_is_too_far_with_many_ports() {
    let ports: Vec<u16> = (1..=MOST_PORTS as u16).chain([3306]).collect();
    let many = filter(&ports[1..]);
    // The kernel takes no more.
    assert!(many.len() <= 4096, "{}", many.len());
    let known = Known {
        protocol: IPV6,
        ..ETHERNET
    };
    assert!(keeps(&many, known, &segment(Side::Server, true)));
    assert!(!keeps(
        &filter(&ports[..MOST_PORTS]),
        known,
        &segment(Side::Server, true)
    ));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_bytes_end_the_program(
        bytes in proptest::collection::vec(any::<u8>(), 0..120),
        protocol in proptest::sample::select(vec![IPV4, IPV6, 0x8100, 0x0806]),
        hardware in proptest::sample::select(vec![1_u32, 772]),
    ) {
        let known = Known { protocol, hardware, direction: 0 };
        keeps(&filter(&[3306]), known, &bytes);
    }
}
