//! `capture --tap`: statements that pass through.

use super::origin::Shared;
use crate::args;
use crate::settings::ssl_mode;
use crate::show::Ui;
use evenkeel_op::{Error, Result, units};
use evenkeel_server::options::{ConnectOptions, SslMode};
use evenkeel_traffic::Coverage;
use evenkeel_traffic::capture::Options;
use evenkeel_traffic::capture::tap::{
    ForClients, ForServer, Seen, Settings, Tap, TapAddress, Terms,
};

/// Begins to listen.
pub(super) fn open(args: &args::Capture, listen: &str, options: &Options, ui: &Ui) -> Result<Tap> {
    let server = TapAddress::of_server(args.to.as_deref().unwrap_or_default())?;
    let settings = Settings {
        listen: TapAddress::to_listen(listen)?,
        mode: mode(&args.tap_mode)?,
        terms: terms(args, &server)?,
        server,
        memory: args.ring,
        span: args.span,
        drain: args.drain,
    };
    let to = settings.server.to_string();
    let tap = Tap::open(settings, options.clone())?;
    if tap.replaced() {
        ui.note(&format!("replaced {}: nothing listened there", tap.place()));
    }
    if let Some(why) = tap.silence() {
        ui.warn(&format!(
            "no server answers at {to} yet, so clients will be refused: {why}"
        ));
    }
    ui.note(&format!("tapping {} to {to}", tap.place()));
    Ok(tap)
}

/// Reads the mode of a socket file.
fn mode(text: &str) -> Result<u32> {
    match u32::from_str_radix(text, 8) {
        Ok(mode) if mode <= 0o777 => Ok(mode),
        _ => Err(Error::usage(format!("'{text}' is no mode of a file")).hint(
            "give it as chmod takes it: --tap-mode 0666 lets every user of this host connect",
        )),
    }
}

fn terms(args: &args::Capture, server: &TapAddress) -> Result<Terms> {
    if args.tap_pass_tls {
        return Ok(Terms::Pass);
    }
    let ssl_mode = args.ssl_mode.map(ssl_mode).unwrap_or_default();
    let mut options = ConnectOptions {
        ssl_mode,
        ssl_ca: args.ssl_ca.clone(),
        ..ConnectOptions::default()
    };
    match server {
        TapAddress::Host(host, _) => options.host = Some(host.clone()),
        TapAddress::File(_) if ssl_mode > SslMode::Preferred => {
            return Err(
                Error::usage("TLS cannot be used with the server's Unix socket")
                    .hint("leave out --ssl-mode, or give --to HOST:PORT"),
            );
        }
        TapAddress::File(path) => options.socket = Some(path.clone()),
    }
    let clients = match (&args.tap_cert, &args.tap_key) {
        (Some(certificate), Some(key)) => Some(ForClients::from_files(certificate, key)?),
        _ => None,
    };
    Ok(Terms::Own {
        clients,
        server: ForServer::new(&options)?,
    })
}

/// Shows statements until an end is wanted. What cannot be shown does not end the traffic.
pub(super) fn read(tap: &mut Tap, shared: &Shared, ui: &Ui) -> Result<Coverage> {
    let mut failure = None;
    let read = tap.watch(
        &mut |seen| {
            let outcome = match seen {
                Seen::Statement(_) | Seen::Pause if failure.is_some() => Ok(()),
                Seen::Statement(statement) => {
                    shared.see(evenkeel_traffic::Seen::Statement(statement))
                }
                Seen::Pause => shared.see(evenkeel_traffic::Seen::Pause),
                other => {
                    tell(&other, ui);
                    Ok(())
                }
            };
            match outcome {
                Err(error) if !shared.is_closed() => {
                    ui.warn_of(
                        "nothing more is captured, and the tap still relays: ",
                        &error,
                    );
                    failure = Some(error);
                    Ok(())
                }
                outcome => outcome,
            }
        },
        ui.cancel(),
    );
    match failure {
        Some(failure) => Err(failure),
        None => read,
    }
}

fn tell(seen: &Seen<'_>, ui: &Ui) {
    match seen {
        Seen::Unreachable(why) => ui.warn(&format!("the server cannot be reached: {why}")),
        Seen::LoginFailed => ui.warn(
            "a login failed, and the tap hides TLS from clients: if the account requires TLS, or uses \
             caching_sha2_password and is not cached by the server, give --tap-cert and --tap-key",
        ),
        Seen::Ending(0) | Seen::Statement(_) | Seen::Pause => {}
        Seen::Ending(open) => ui.note(&format!(
            "{} open: each is closed once it is idle; a second signal ends all at once",
            units::count(*open as u64, "connection")
        )),
    }
}
