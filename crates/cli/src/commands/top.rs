//! `top`.

use super::watching::{Watching, now, time};
use crate::args;
use crate::show::answers::TopDocument;
use crate::show::{Stream, Terminal, Ui, plain_line};
use evenkeel_live::poll::{Extent, Focus, Server};
use evenkeel_live::view::{Board, plain_frame};
use evenkeel_op::{Cancel, Result, exit};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

/// How often keys and signals are looked for.
const LOOK: Duration = Duration::from_millis(50);

/// Runs the command.
pub(super) fn run(args: &args::Top, ui: &Ui) -> Result<u8> {
    let mut watching = Watching::start(&args.watched, "top", Extent::Everything, ui)?;
    if args.once {
        watching.end_after(1);
    }
    if !ui.is_json() && watching.is_endless() && Terminal::is_there() {
        return live(&mut watching, ui);
    }
    let mut show = |servers: &[Server]| {
        if ui.is_quiet() && !ui.is_json() {
            return Ok(true);
        }
        let text = match ui.is_json() {
            true => TopDocument::new(now().to_string(), servers).line(),
            false => plain_frame(&time(), servers)
                .iter()
                .map(plain_line)
                .collect(),
        };
        Stream.show(&text)
    };
    watching.run(&mut show, ui)
}

/// Draws on the terminal until a key or a signal ends it.
fn live(watching: &mut Watching, ui: &Ui) -> Result<u8> {
    let cancel = Cancel::new();
    let outcome = std::thread::scope(|scope| {
        // A frame that nobody has taken yet is enough.
        let (tell, reported) = sync_channel(1);
        let poll = watching.poll();
        let focus = poll.focus();
        focus.set(0);
        let stop = &cancel;
        scope.spawn(move || {
            while let Ok(servers) = poll.round(stop) {
                if tell.send((time(), servers)).is_err() {
                    return;
                }
            }
        });
        let mut newest = (time(), Vec::new());
        let outcome = draw(&mut newest, || reported.try_recv().ok(), &focus, ui);
        // The thread may be waiting to hand over its last frame.
        cancel.cancel(2);
        drop(reported);
        outcome.map(|code| (code, newest.1))
    });
    let (code, servers) = outcome?;
    watching.seen(servers);
    let stopped = ui.cancel().check().map(|()| code);
    watching.end(stopped, ui)
}

fn draw(
    newest: &mut (String, Vec<Server>),
    mut next: impl FnMut() -> Option<(String, Vec<Server>)>,
    focus: &Focus,
    ui: &Ui,
) -> Result<u8> {
    let mut terminal = Terminal::enter()?;
    let mut board = Board::default();
    let mut drawn = None;
    while !ui.cancel().is_cancelled() {
        let mut is_new = false;
        if let Some(frame) = next() {
            *newest = frame;
            is_new = true;
        }
        let Some(keys) = terminal.keys(LOOK)? else {
            break;
        };
        for key in &keys {
            if board.press(*key, &newest.1) {
                return Ok(exit::DONE);
            }
        }
        focus.set(board.selected());
        let size = terminal.size();
        if is_new || !keys.is_empty() || drawn != Some(size) {
            terminal.draw(&board.frame(&newest.0, &newest.1, size.0))?;
            drawn = Some(size);
        }
    }
    Ok(exit::DONE)
}
