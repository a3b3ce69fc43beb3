//! What the kernel keeps of all packets: TCP from and to the servers' ports, as a program of its packet filter (classic
//! BPF). It runs before a packet is copied, on what is behind the link's header.

/// An instruction of the kernel's packet filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    /// What is done.
    pub code: u16,
    /// Instructions that are passed over where a comparison holds.
    pub jt: u8,
    /// And where it does not.
    pub jf: u8,
    /// What it is done with.
    pub k: u32,
}

/// More ports than these make a program that the kernel takes no more.
pub const MOST_PORTS: usize = 1000;

// The instructions that are used here, by the kernel's numbers.
const LOAD_WORD: u16 = 0x20;
const LOAD_SHORT: u16 = 0x28;
const LOAD_SHORT_AT_X: u16 = 0x48;
const LOAD_BYTE_AT_X: u16 = 0x50;
const SET_X: u16 = 0x01;
const A_TO_X: u16 = 0x07;
const X_TO_A: u16 = 0x87;
const ADD: u16 = 0x04;
const ADD_X: u16 = 0x0C;
const SHIFT_LEFT: u16 = 0x64;
const AND: u16 = 0x54;
const STORE: u16 = 0x02;
const LOAD_STORED: u16 = 0x60;
const JUMP: u16 = 0x05;
const IF_EQUAL: u16 = 0x15;
const IF_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

// What the kernel knows about a packet lies where no packet has bytes.
const KNOWN: u32 = 0xFFFF_F000;
const PROTOCOL: u32 = KNOWN;
const DIRECTION: u32 = KNOWN + 4;
const HARDWARE: u32 = KNOWN + 28;

const OUTGOING: u32 = 4;
const LOOPBACK: u32 = 772;
const WHOLE: u32 = u32::MAX;
const TCP: u32 = 6;
const IPV4: u32 = 0x0800;
const IPV6: u32 = 0x86DD;
const TAGS: [u32; 3] = [0x8100, 0x88A8, 0x9100];
/// Headers of IPv6 that may stand before TCP: options for each router, routing, options for the other end.
const BETWEEN: [u32; 3] = [0, 43, 60];
const FRAGMENT: u32 = 44;
/// So many of them are passed over.
const MOST_BETWEEN: usize = 2;

/// Where a jump leads, before all places are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum To {
    V4,
    V6,
    Ports,
    Nothing,
}

#[derive(Default)]
struct Program {
    all: Vec<Instruction>,
    jumps: Vec<(usize, To)>,
    places: Vec<(To, usize)>,
}

impl Program {
    fn add(&mut self, code: u16, k: u32) {
        let (jt, jf) = (0, 0);
        self.all.push(Instruction { code, jt, jf, k });
    }

    fn jump(&mut self, to: To) {
        self.jumps.push((self.all.len(), to));
        self.add(JUMP, 0);
    }

    /// Passes over so many instructions where a comparison of A holds, and over so many where it does not.
    fn pass(&mut self, code: u16, k: u32, [jt, jf]: [u8; 2]) {
        self.all.push(Instruction { code, jt, jf, k });
    }

    /// Jumps where A is `value`.
    fn jump_if(&mut self, value: u32, to: To) {
        self.pass(IF_EQUAL, value, [0, 1]);
        self.jump(to);
    }

    /// Jumps where A is not `value`.
    fn jump_unless(&mut self, value: u32, to: To) {
        self.pass(IF_EQUAL, value, [1, 0]);
        self.jump(to);
    }

    /// Jumps where A has any of these bits.
    fn jump_if_any(&mut self, bits: u32, to: To) {
        self.pass(IF_ANY_BIT, bits, [0, 1]);
        self.jump(to);
    }

    fn add_to_x(&mut self, bytes: u32) {
        self.add(X_TO_A, 0);
        self.add(ADD, bytes);
        self.add(A_TO_X, 0);
    }

    fn place(&mut self, here: To) {
        self.places.push((here, self.all.len()));
    }

    fn finished(mut self) -> Vec<Instruction> {
        for (at, to) in self.jumps {
            let there = self.places.iter().find(|(place, _)| *place == to);
            self.all[at].k = there.map_or(0, |(_, there)| there - at - 1) as u32;
        }
        self.all
    }
}

/// Returns the program that keeps TCP from and to these ports, each packet once. Of fragments it keeps the first: the
/// others do not say whose they are.
#[must_use]
pub fn filter(ports: &[u16]) -> Vec<Instruction> {
    let mut program = Program::default();
    // What goes over the loopback interface leaves it, and then comes in.
    program.add(LOAD_WORD, HARDWARE);
    program.pass(IF_EQUAL, LOOPBACK, [0, 3]);
    program.add(LOAD_WORD, DIRECTION);
    program.jump_if(OUTGOING, To::Nothing);
    program.add(SET_X, 0);
    program.add(LOAD_WORD, PROTOCOL);
    program.jump_if(IPV4, To::V4);
    program.jump_if(IPV6, To::V6);
    tagged(&mut program);
    program.place(To::V4);
    ipv4(&mut program);
    program.place(To::V6);
    ipv6(&mut program);
    program.place(To::Ports);
    for at in [0, 2] {
        program.add(LOAD_SHORT_AT_X, at);
        for port in ports {
            program.pass(IF_EQUAL, u32::from(*port), [0, 1]);
            program.add(RETURN, WHOLE);
        }
    }
    program.place(To::Nothing);
    program.add(RETURN, 0);
    program.finished()
}

/// Returns the program that keeps nothing.
pub(super) fn nothing() -> Vec<Instruction> {
    let mut program = Program::default();
    program.add(RETURN, 0);
    program.finished()
}

/// The protocol is a VLAN's tag. The rest of the tag lies before the packet, or was passed over.
fn tagged(program: &mut Program) {
    for (rest, kind) in [2, 1, 0].into_iter().zip(TAGS) {
        // Over the others, and over the jump of what is none of them.
        program.pass(IF_EQUAL, kind, [rest + 1, 0]);
    }
    program.jump(To::Nothing);
    for (kind, version, to) in [(IPV4, 0x40, To::V4), (IPV6, 0x60, To::V6)] {
        program.add(LOAD_SHORT, 2);
        program.pass(IF_EQUAL, kind, [0, 5]);
        program.add(SET_X, 4);
        program.add(LOAD_BYTE_AT_X, 0);
        program.add(AND, 0xF0);
        program.jump_if(version, to);
    }
    program.add(SET_X, 0);
    program.add(LOAD_BYTE_AT_X, 0);
    program.add(AND, 0xF0);
    program.jump_if(0x40, To::V4);
    program.jump_if(0x60, To::V6);
    program.jump(To::Nothing);
}

/// X is where the packet begins, and then where its segment does.
fn ipv4(program: &mut Program) {
    program.add(LOAD_BYTE_AT_X, 9);
    program.jump_unless(TCP, To::Nothing);
    program.add(LOAD_SHORT_AT_X, 6);
    program.jump_if_any(0x1FFF, To::Nothing);
    program.add(LOAD_BYTE_AT_X, 0);
    program.add(AND, 15);
    program.add(SHIFT_LEFT, 2);
    program.add(ADD_X, 0);
    program.add(A_TO_X, 0);
    program.jump(To::Ports);
}

/// As above.
fn ipv6(program: &mut Program) {
    program.add(LOAD_BYTE_AT_X, 6);
    program.add(STORE, 0);
    program.add_to_x(40);
    for _ in 0..MOST_BETWEEN {
        program.add(LOAD_STORED, 0);
        for (rest, kind) in [2, 1, 0].into_iter().zip(BETWEEN) {
            program.pass(IF_EQUAL, kind, [rest, if rest == 0 { 7 } else { 0 }]);
        }
        program.add(LOAD_BYTE_AT_X, 0);
        program.add(STORE, 0);
        program.add(LOAD_BYTE_AT_X, 1);
        program.add(ADD, 1);
        program.add(SHIFT_LEFT, 3);
        program.add(ADD_X, 0);
        program.add(A_TO_X, 0);
    }
    program.add(LOAD_STORED, 0);
    program.jump_if(TCP, To::Ports);
    program.jump_unless(FRAGMENT, To::Nothing);
    program.add(LOAD_BYTE_AT_X, 0);
    program.jump_unless(TCP, To::Nothing);
    program.add(LOAD_SHORT_AT_X, 2);
    program.jump_if_any(0xFFF8, To::Nothing);
    program.add_to_x(8);
    program.jump(To::Ports);
}
