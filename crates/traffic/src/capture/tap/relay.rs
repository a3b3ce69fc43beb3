//! A thread that moves the bytes of many connections, as the kernel says which of them have some.

use super::Settings;
use super::control::{Control, Phase};
use super::pair::{Pair, PairState, Shared};
use super::place::{Address, Listener};
use super::queue::{Queue, Reported};
use evenkeel_op::{Context, Result};
use evenkeel_wire::relay::{Endpoint, Terms, refusal};
use evenkeel_wire::watch::Side;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Bytes that are read at a time.
const SCRATCH: usize = 128 << 10;
const EVENTS: usize = 256;
/// How often to look at the time.
const TICK: Duration = Duration::from_millis(50);
/// Clients that are taken before it is the turn of others.
const CLIENTS: usize = 64;
/// What the kernel's events are about, beside connections.
const LISTENER: u64 = u64::MAX;
const INBOX: u64 = u64::MAX - 1;
/// The server's error number for: too many connections.
const TOO_MANY: u16 = 1040;

/// Clients for a thread that others took.
#[derive(Debug)]
struct Inbox {
    clients: Mutex<Vec<(OwnedFd, Reported)>>,
    wakes: OwnedFd,
    open: AtomicUsize,
}

/// A connection, and what the kernel was last asked about its sides.
#[derive(Debug)]
struct Slot {
    pair: Pair,
    asked: [Option<EventFlags>; 2],
}

/// One thread of the relay.
#[derive(Debug)]
pub(super) struct Relay {
    epoll: OwnedFd,
    /// The first thread has it.
    listener: Option<Listener>,
    /// It is not looked at until the next tick: files ran out.
    listener_rests: bool,
    inboxes: Arc<Vec<Inbox>>,
    own: usize,
    slots: Vec<Option<Slot>>,
    free: Vec<usize>,
    /// Free once all events of this round are done.
    freed: Vec<usize>,
    terms: Terms,
    server: Vec<Address>,
    control: Arc<Control>,
    queue: Arc<Queue>,
}

impl Relay {
    /// Makes so many; the first takes clients and hands them to whoever has the fewest.
    pub(super) fn several(
        count: usize,
        listener: Listener,
        settings: &Settings,
        control: &Arc<Control>,
        queue: &Arc<Queue>,
    ) -> Result<Vec<Self>> {
        let failed = || "failed to set up the relay".to_owned();
        let server = settings.server.addresses()?;
        let inbox = || {
            let wakes = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            Ok(Inbox {
                clients: Mutex::default(),
                wakes,
                open: AtomicUsize::new(0),
            })
        };
        let inboxes: Result<Vec<Inbox>, Errno> = (0..count).map(|_| inbox()).collect();
        let inboxes = Arc::new(inboxes.context(failed)?);
        let mut listener = Some(listener);
        let one = |own: usize| {
            let epoll = epoll::create(CreateFlags::CLOEXEC)?;
            epoll::add(
                &epoll,
                &inboxes[own].wakes,
                EventData::new_u64(INBOX),
                EventFlags::IN,
            )?;
            let listener = listener.take();
            if let Some(listener) = &listener {
                epoll::add(
                    &epoll,
                    listener,
                    EventData::new_u64(LISTENER),
                    EventFlags::IN,
                )?;
            }
            Ok(Self {
                epoll,
                listener,
                listener_rests: false,
                inboxes: Arc::clone(&inboxes),
                own,
                slots: Vec::new(),
                free: Vec::new(),
                freed: Vec::new(),
                terms: settings.terms.clone(),
                server: server.clone(),
                control: Arc::clone(control),
                queue: Arc::clone(queue),
            })
        };
        let all: Result<Vec<Self>, Errno> = (0..count).map(one).collect();
        all.context(failed)
    }

    /// Relays until no more clients are taken and none is left.
    pub(super) fn run(mut self) -> Result<()> {
        let mut scratch = vec![0; SCRATCH];
        let mut events = Vec::with_capacity(EVENTS);
        let tick = Timespec {
            tv_sec: 0,
            tv_nsec: TICK.as_nanos() as i64,
        };
        let mut tended = Instant::now();
        loop {
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&tick)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error).context(|| "the relay failed".to_owned()),
            }
            for event in &events {
                let (about, flags) = (event.data.u64(), event.flags);
                match about {
                    LISTENER => self.accept(&mut scratch),
                    INBOX => self.take_clients(&mut scratch),
                    about => self.serve(about, flags, &mut scratch),
                }
            }
            self.free.append(&mut self.freed);
            if tended.elapsed() >= TICK {
                tended = Instant::now();
                if self.tend(&mut scratch) {
                    return Ok(());
                }
            }
        }
    }

    /// Takes clients.
    fn accept(&mut self, scratch: &mut [u8]) {
        for _ in 0..CLIENTS {
            let Some(listener) = &self.listener else {
                return;
            };
            let (socket, host) = match listener.accept() {
                Ok(client) => client,
                Err(Errno::AGAIN | Errno::INTR) => return,
                Err(Errno::CONNABORTED) => continue,
                Err(_) => {
                    // Files ran out, or memory: it would be said again at once.
                    self.listener_rests = true;
                    self.watch_listener(EventFlags::empty());
                    return;
                }
            };
            let Some(number) = self.control.begin() else {
                let text = "too many connections to evenkeel's tap: it may open no more files";
                // Whoever does not wait for it need not know.
                let _ = Endpoint::new(socket).send(&refusal(0, TOO_MANY, text));
                continue;
            };
            self.hand_over(socket, Reported::new(number, host), scratch);
        }
    }

    fn watch_listener(&self, flags: EventFlags) {
        if let Some(listener) = &self.listener {
            // What cannot be changed shows again.
            let _ = epoll::modify(&self.epoll, listener, EventData::new_u64(LISTENER), flags);
        }
    }

    /// Gives a client to the thread that has the fewest.
    fn hand_over(&mut self, socket: OwnedFd, reported: Reported, scratch: &mut [u8]) {
        let inboxes = Arc::clone(&self.inboxes);
        let open = |at: &usize| inboxes[*at].open.load(Ordering::Relaxed);
        let to = (0..inboxes.len()).min_by_key(open).unwrap_or(self.own);
        let inbox = &inboxes[to];
        inbox.open.fetch_add(1, Ordering::Relaxed);
        if to == self.own {
            return self.add(socket, reported, scratch);
        }
        let mut clients = inbox.clients.lock().unwrap_or_else(PoisonError::into_inner);
        clients.push((socket, reported));
        drop(clients);
        // It also looks at each tick.
        let _ = rustix::io::write(&inbox.wakes, &1u64.to_ne_bytes());
    }

    fn take_clients(&mut self, scratch: &mut [u8]) {
        let inbox = &self.inboxes[self.own];
        let mut clients = inbox.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = std::mem::take(&mut *clients);
        drop(clients);
        if !taken.is_empty() {
            let _ = rustix::io::read(&inbox.wakes, &mut [0; 8]);
        }
        for (socket, reported) in taken {
            self.add(socket, reported, scratch);
        }
    }

    fn add(&mut self, socket: OwnedFd, reported: Reported, scratch: &mut [u8]) {
        let pair = Pair::new(Endpoint::new(socket), reported, &self.terms);
        let at = self.free.pop().unwrap_or(self.slots.len());
        let slot = Some(Slot {
            pair,
            asked: [None; 2],
        });
        match self.slots.get_mut(at) {
            Some(place) => *place = slot,
            None => self.slots.push(slot),
        }
        self.work(at, scratch, |pair, shared| pair.connect(shared));
    }

    fn serve(&mut self, about: u64, flags: EventFlags, scratch: &mut [u8]) {
        let side = match about % 2 {
            0 => Side::Client,
            _ => Side::Server,
        };
        self.work((about / 2) as usize, scratch, |pair, shared| {
            pair.serve(side, flags, shared)
        });
    }

    /// Does something with a connection, and asks the kernel for what it waits for then.
    fn work(
        &mut self,
        at: usize,
        scratch: &mut [u8],
        work: impl FnOnce(&mut Pair, &mut Shared<'_>) -> PairState,
    ) {
        let Some(slot) = self.slots.get_mut(at).and_then(Option::as_mut) else {
            return;
        };
        let mut shared = Shared {
            control: &self.control,
            queue: &self.queue,
            server: &self.server,
            scratch,
        };
        let state = work(&mut slot.pair, &mut shared);
        let is_asked = state == PairState::Open && ask(&self.epoll, slot, at).is_ok();
        if !is_asked && let Some(slot) = self.slots[at].take() {
            slot.pair.end(&shared);
            self.inboxes[self.own].open.fetch_sub(1, Ordering::Relaxed);
            self.freed.push(at);
        }
    }

    /// Does what time brings; returns whether all is over.
    fn tend(&mut self, scratch: &mut [u8]) -> bool {
        if std::mem::take(&mut self.listener_rests) {
            self.watch_listener(EventFlags::IN);
        }
        let phase = self.control.phase();
        if phase != Phase::Working {
            // Closed: who comes now is refused by the kernel.
            self.listener = None;
        }
        self.take_clients(scratch);
        for at in 0..self.slots.len() {
            self.work(at, scratch, |pair, shared| match phase {
                Phase::Ending => {
                    shared.control.cut_off();
                    PairState::Over
                }
                _ => pair.tend(phase == Phase::Draining, shared),
            });
        }
        self.free.append(&mut self.freed);
        phase != Phase::Working && self.slots.iter().all(Option::is_none)
    }
}

/// Asks the kernel for what a connection waits for, where that is new.
fn ask(epoll: &OwnedFd, slot: &mut Slot, at: usize) -> rustix::io::Result<()> {
    for side in [Side::Client, Side::Server] {
        let about = EventData::new_u64(at as u64 * 2 + side as u64);
        let wanted = slot.pair.interest(side);
        let endpoint = match side {
            Side::Client => Some(slot.pair.client()),
            Side::Server => slot.pair.server(),
        };
        let Some(endpoint) = endpoint else {
            // A socket that was given up is closed, and with that forgotten.
            slot.asked[side as usize] = None;
            continue;
        };
        let asked = &mut slot.asked[side as usize];
        let set = match *asked {
            Some(before) if before == wanted => continue,
            None if wanted.is_empty() => continue,
            // The kernel would say again and again that it has ended.
            Some(_) if wanted.is_empty() => epoll::delete(epoll, endpoint),
            Some(_) => epoll::modify(epoll, endpoint, about, wanted),
            None => epoll::add(epoll, endpoint, about, wanted),
        };
        match set {
            // Another socket has taken the place of the one that was asked about.
            Err(Errno::NOENT) => epoll::add(epoll, endpoint, about, wanted)?,
            set => set?,
        }
        *asked = Some(wanted).filter(|wanted| !wanted.is_empty());
    }
    Ok(())
}
