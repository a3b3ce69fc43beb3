//! Makes the clone another replica of the same source, before anybody sees it: on a private server that reads no
//! option file, has no network and starts no replication.

use super::beside::Beside;
use super::broken::Broken;
use super::{Image, ResyncRequest, keep, refuse};
use evenkeel_op::{Error, Result, Run, Unit};
use evenkeel_server::abilities::{Abilities, GtidKind};
use evenkeel_server::connect::{Session, quote};
use evenkeel_server::launch::{Account, Launch};
use evenkeel_server::replication::{Channel, SourceCoordinates, rejoining};

/// Nothing runs by itself, and nobody's password is known.
const OPTIONS: [&str; 5] = [
    "--skip-slave-start",
    "--skip-grant-tables",
    "--event-scheduler=DISABLED",
    "--performance-schema=OFF",
    "--innodb-buffer-pool-load-at-startup=OFF",
];
/// The number of a server of which none is known: no other server hears of it.
const SOME_ID: u64 = 4_294_967_295;

/// Returns the one place that the image is at. Errors: `Refused` when it is at none, or at several.
pub(super) fn place_of(image: &Image) -> Result<&SourceCoordinates> {
    match image.source_coordinates.as_slice() {
        [one] if one.is_known() => Ok(one),
        [_] => Err(
            Error::refused("the clone's position in the source's binary log is not known")
                .hint("the SQL thread of the sibling has to run"),
        ),
        all => Err(Error::refused(format!(
            "the clone replicates from {} sources, and it must be one",
            all.len()
        ))),
    }
}

/// Prepares the clone.
pub(super) fn prepare(
    request: &ResyncRequest,
    beside: &Beside,
    broken: &Broken,
    image: &Image,
    run: Run<'_>,
) -> Result<()> {
    let place = place_of(image)?;
    refuse::other_place(&request.sibling, place)?;
    beside.refuse_strange(broken.owner)?;
    keep::keep(&beside.data()?, &beside.opened_other()?, broken.owner)?;
    let (uid, gid) = broken.owner;
    let mut launch = Launch::new(broken.binary(request)?, beside.other());
    launch.account = Some(Account { uid, gid });
    launch.is_sealed = true;
    launch
        .extra_args
        .extend(image.start_options.iter().cloned());
    launch.extra_args.extend(OPTIONS.map(str::to_owned));
    launch.extra_args.extend(broken.relay.iter().cloned());
    let id = broken.server_id.unwrap_or(SOME_ID);
    launch.extra_args.push(format!("--server-id={id}"));
    run.progress
        .phase("starting a private server on the clone", None, Unit::Items);
    let server = launch.start(request.start_deadline, run.cancel)?;
    fail::fail_point!("resync::private");
    let told = tell(&mut server.session()?, image, place);
    let stopped = server.stop(request.stop_deadline);
    told?;
    stopped?;
    run.progress.end();
    Ok(())
}

fn tell(session: &mut Session, image: &Image, place: &SourceCoordinates) -> Result<()> {
    let abilities = Abilities::probe(session)?;
    session.run("SET SESSION sql_log_bin = 0")?;
    for statement in rejoining(place, &abilities) {
        session.run(&statement)?;
    }
    let channels = Channel::all(session, &abilities)?;
    let is_it = |channel: &&Channel| channel.name == place.channel && channel.host == place.host;
    if channels.iter().filter(is_it).count() != 1 || channels.len() != 1 {
        return Err(Error::failed(format!(
            "the clone does not know its source {} any more",
            place.host
        )));
    }
    refuse_other_gtids(session, image, &abilities)
}

/// MySQL asks its source for what it has not executed: that must be what was cloned.
fn refuse_other_gtids(session: &mut Session, image: &Image, abilities: &Abilities) -> Result<()> {
    let Some(expected) = image
        .gtid
        .as_ref()
        .filter(|_| abilities.gtid == GtidKind::MySql)
    else {
        return Ok(());
    };
    let expected = quote(expected);
    let sql = format!(
        "SELECT GTID_SUBSET({expected}, @@GLOBAL.gtid_executed) AND GTID_SUBSET(@@GLOBAL.gtid_executed, {expected})"
    );
    match session.value(&sql)?.as_deref() {
        Some("1") => Ok(()),
        _ => Err(Error::failed(
            "a server on the clone has other GTIDs than the sibling had when it was cloned",
        )),
    }
}
