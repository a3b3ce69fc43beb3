//! Packets as the kernel hands them over: a packet socket whose ring of blocks (TPACKET_V3) lies in memory that both
//! sides see. No packet is copied, and there is a system call for each block, not for each packet.
//!
//! `unsafe` is allowed in this module and nowhere else in the crate: the kernel writes into the ring. A block belongs
//! to one side at a time, as its status says; it is a slice of bytes only while it is ours.
#![allow(unsafe_code)]

use super::filter::Instruction;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with, sockopt};
use std::ffi::c_void;
use std::mem::{offset_of, size_of};
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The size of a block. Many small ones outlast a wait for us longer than few large ones: each is handed over when its
/// time is up, full or not. Segments that the network card cuts have up to 64 KiB.
pub(super) const BLOCK: usize = 256 << 10;
/// How long a packet waits for others in its block.
pub(super) const BLOCK_TIME: Duration = Duration::from_millis(40);

/// Where a block says whose it is.
const STATUS: usize =
    offset_of!(libc::tpacket_block_desc, hdr) + offset_of!(libc::tpacket_hdr_v1, block_status);
const COUNT: usize =
    offset_of!(libc::tpacket_block_desc, hdr) + offset_of!(libc::tpacket_hdr_v1, num_pkts);
const FIRST: usize = offset_of!(libc::tpacket_block_desc, hdr)
    + offset_of!(libc::tpacket_hdr_v1, offset_to_first_pkt);
/// Where the address of a packet stands: behind its header, at a multiple of 16.
const ADDRESS: usize = size_of::<libc::tpacket3_hdr>().next_multiple_of(libc::TPACKET_ALIGNMENT);

/// A packet in the ring.
#[derive(Debug, Clone, Copy)]
pub(super) struct Packet<'a> {
    /// When the kernel saw it, in nanoseconds since 1970.
    pub(super) at_ns: i64,
    /// The protocol behind the link's header.
    pub(super) protocol: u16,
    /// What is behind the link's header.
    pub(super) data: &'a [u8],
}

/// What a wait ended with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waited {
    /// A block may be ours.
    Ready,
    /// The time is up.
    Nothing,
    /// The interface went down, or away.
    Down,
}

/// A packet socket and its ring.
#[derive(Debug)]
pub(super) struct Ring {
    socket: OwnedFd,
    start: NonNull<c_void>,
    blocks: usize,
    /// The block that comes next.
    next: usize,
}

impl Ring {
    /// Opens a packet socket, which receives nothing yet. Fails with `EPERM` without the capability for it.
    pub(super) fn socket() -> Result<OwnedFd, Errno> {
        // Without the link's header: what is before a packet differs from interface to interface.
        socket_with(
            AddressFamily::PACKET,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC,
            None,
        )
    }

    /// Makes the ring, with as many blocks, and lets packets in that the filter keeps, of one interface or, with 0, of
    /// all. Fails with `ENOMEM` when there is no memory for so many blocks.
    pub(super) fn new(
        socket: OwnedFd,
        interface: u32,
        filter: &[Instruction],
        blocks: usize,
    ) -> Result<Self, Errno> {
        attach(&socket, filter)?;
        let version = libc::tpacket_versions::TPACKET_V3 as libc::c_int;
        set(&socket, libc::SOL_PACKET, libc::PACKET_VERSION, &version)?;
        let frame = 2048;
        let request = libc::tpacket_req3 {
            tp_block_size: BLOCK as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: frame,
            tp_frame_nr: (BLOCK * blocks) as u32 / frame,
            tp_retire_blk_tov: BLOCK_TIME.as_millis() as u32,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        set(&socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        // SAFETY: a new mapping at a place that the kernel chooses replaces none.
        let start = unsafe {
            mmap(
                std::ptr::null_mut(),
                BLOCK * blocks,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                &socket,
                0,
            )
        }?;
        let ring = Self {
            socket,
            start: NonNull::new(start).ok_or(Errno::NOMEM)?,
            blocks,
            next: 0,
        };
        bind(&ring.socket, interface)?;
        if hardware(&ring.socket)? == libc::ARPHRD_LOOPBACK {
            // What leaves comes in: the filter drops it, and this saves a copy of its description. Older kernels cannot.
            let on: libc::c_int = 1;
            let _ = set(
                &ring.socket,
                libc::SOL_PACKET,
                libc::PACKET_IGNORE_OUTGOING,
                &on,
            );
        }
        Ok(ring)
    }

    /// Hands out the packets of the next block; returns false where it is the kernel's still.
    pub(super) fn next_block<E>(
        &mut self,
        mut each: impl FnMut(Packet<'_>) -> Result<(), E>,
    ) -> Result<bool, E> {
        // SAFETY: `next` is below the number of blocks, all of which are mapped while `self` lives.
        let block = unsafe { self.start.as_ptr().cast::<u8>().add(self.next * BLOCK) };
        // SAFETY: blocks begin at pages, so the status is aligned; both sides access it as a whole only.
        let status = unsafe { AtomicU32::from_ptr(block.add(STATUS).cast()) };
        if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return Ok(false);
        }
        // SAFETY: the block is ours until its status is set below, after the last use of the slice; meanwhile nobody
        // writes to it, the status included.
        let bytes = unsafe { std::slice::from_raw_parts(block, BLOCK) };
        let result = packets(bytes, &mut each);
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.blocks;
        result.map(|()| true)
    }

    /// Waits until a block may be ours.
    pub(super) fn wait(&self, most: Duration) -> Result<Waited, Errno> {
        let mut ready = [PollFd::new(&self.socket, PollFlags::IN | PollFlags::ERR)];
        let most = Timespec {
            tv_sec: most.as_secs() as i64,
            tv_nsec: most.subsec_nanos().into(),
        };
        match poll(&mut ready, Some(&most)) {
            Ok(0) | Err(Errno::INTR) => Ok(Waited::Nothing),
            Ok(_) if ready[0].revents().contains(PollFlags::ERR) => {
                match sockopt::socket_error(&self.socket)? {
                    Err(Errno::NETDOWN | Errno::NODEV | Errno::NXIO) => Ok(Waited::Down),
                    Err(error) => Err(error),
                    Ok(()) => Ok(Waited::Ready),
                }
            }
            Ok(_) => Ok(Waited::Ready),
            Err(error) => Err(error),
        }
    }

    /// Replaces the filter.
    pub(super) fn refilter(&self, filter: &[Instruction]) -> Result<(), Errno> {
        attach(&self.socket, filter)
    }

    /// Returns how many packets the kernel dropped since this was last asked, for lack of room.
    pub(super) fn dropped(&self) -> Result<u64, Errno> {
        let mut counts = libc::tpacket_stats_v3 {
            tp_packets: 0,
            tp_drops: 0,
            tp_freeze_q_cnt: 0,
        };
        let mut length = size_of::<libc::tpacket_stats_v3>() as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes to `counts`, which any bytes are fit for.
        let result = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut counts).cast(),
                &raw mut length,
            )
        };
        outcome(result)?;
        Ok(counts.tp_drops.into())
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: this is what was mapped, and no slice of it outlives a call of `next_block`.
        let _ = unsafe { munmap(self.start.as_ptr(), BLOCK * self.blocks) };
    }
}

/// Hands out what is in a block. A block that says what no kernel writes ends there.
fn packets<E>(block: &[u8], each: &mut impl FnMut(Packet<'_>) -> Result<(), E>) -> Result<(), E> {
    let (Some(count), Some(first)) = (four(block, COUNT), four(block, FIRST)) else {
        return Ok(());
    };
    let mut at = first as usize;
    for _ in 0..count {
        let Some(header) = block.get(at..) else {
            return Ok(());
        };
        let Some((packet, next)) = packet(header) else {
            return Ok(());
        };
        each(packet)?;
        at += next;
    }
    Ok(())
}

/// Returns the packet whose header begins here, and how far away the next one is.
fn packet(header: &[u8]) -> Option<(Packet<'_>, usize)> {
    type Header = libc::tpacket3_hdr;
    let seconds = four(header, offset_of!(Header, tp_sec))?;
    let ns = four(header, offset_of!(Header, tp_nsec))?;
    let length = four(header, offset_of!(Header, tp_snaplen))? as usize;
    let begin = usize::from(two(header, offset_of!(Header, tp_net))?);
    let protocol = two(
        header,
        ADDRESS + offset_of!(libc::sockaddr_ll, sll_protocol),
    )?;
    let packet = Packet {
        at_ns: i64::from(seconds) * 1_000_000_000 + i64::from(ns),
        protocol: u16::from_be(protocol),
        data: header.get(begin..begin + length)?,
    };
    let next = four(header, offset_of!(Header, tp_next_offset))?;
    Some((packet, next as usize))
}

fn two(bytes: &[u8], at: usize) -> Option<u16> {
    let two = bytes.get(at..)?.first_chunk()?;
    Some(u16::from_ne_bytes(*two))
}

fn four(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*four))
}

fn attach(socket: &OwnedFd, filter: &[Instruction]) -> Result<(), Errno> {
    let mut filter: Vec<libc::sock_filter> = filter
        .iter()
        .map(|one| libc::sock_filter {
            code: one.code,
            jt: one.jt,
            jf: one.jf,
            k: one.k,
        })
        .collect();
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).map_err(|_| Errno::INVAL)?,
        filter: filter.as_mut_ptr(),
    };
    // The kernel copies the program before it returns.
    set(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

fn bind(socket: &OwnedFd, interface: u32) -> Result<(), Errno> {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
        sll_ifindex: interface as libc::c_int,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    // SAFETY: the address is of the type and length that is said.
    let result = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    outcome(result)
}

/// Returns of what kind the interface is that a socket is bound to.
fn hardware(socket: &OwnedFd) -> Result<u16, Errno> {
    let mut address = libc::sockaddr_ll {
        sll_family: 0,
        sll_protocol: 0,
        sll_ifindex: 0,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let mut length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `address`, which any bytes are fit for.
    let result = unsafe {
        libc::getsockname(
            socket.as_raw_fd(),
            (&raw mut address).cast(),
            &raw mut length,
        )
    };
    outcome(result)?;
    Ok(address.sll_hatype)
}

fn set<T>(socket: &OwnedFd, level: i32, option: i32, value: &T) -> Result<(), Errno> {
    // SAFETY: the kernel reads as many bytes of `value` as it has; what the callers pass are the plain structures that
    // each option takes, and the program that `attach` points to lives until this returns.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    outcome(result)
}

fn outcome(result: libc::c_int) -> Result<(), Errno> {
    match result {
        0 => Ok(()),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
    }
}
