//! `verify`.

use super::waiting;
use crate::args::{Amount, Part, Verify};
use crate::settings;
use crate::show::Ui;
use crate::show::answers::VerifyAnswer;
use evenkeel_backup::facts::Facts;
use evenkeel_backup::verify::{self, BootRequest, Generations, ReadRequest};
use evenkeel_op::paths::absolute;
use evenkeel_op::{Context, Error, Result, Run, exit};
use evenkeel_repository::{Location, Repository, Sample};
use evenkeel_server::abilities::Recorded;
use evenkeel_server::launch::Binary;
use rustix::process::geteuid;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long crash recovery may take before the proof is given up.
const RECOVERY: Duration = Duration::from_secs(3600);

/// Runs the command.
pub fn run(args: &Verify, ui: &Ui) -> Result<u8> {
    let run = Run {
        progress: ui.progress(),
        cancel: ui.cancel(),
    };
    let generations = match args.generation {
        Some(number) => Generations::One(number),
        None if args.all => Generations::All,
        None => Generations::Newest,
    };
    // Not only after everything was read.
    let proof = args.boot.then(|| proof(args, ui)).transpose()?;
    let begun = Instant::now();
    let mut request = ReadRequest::new(place(args, ui)?, generations);
    request.sample = sample(args)?;
    let read = waiting::for_others(&args.waiting, ui, || verify::read(&request, run))?;
    let seconds = begun.elapsed().as_secs_f64();
    let boot = match proof {
        Some(request) if read.is_sound() => {
            let boot = || verify::boot(&request, run);
            Some(waiting::for_others(&args.waiting, ui, boot)?)
        }
        Some(_) => {
            ui.warn("the repository is damaged, so no server was started on it");
            None
        }
        None => None,
    };
    let sound = read.is_sound() && boot.as_ref().is_none_or(|boot| boot.proven);
    let whole = read.unchecked.is_empty();
    ui.answer(&VerifyAnswer {
        sound,
        read,
        seconds,
        boot,
    });
    Ok(match (sound, whole) {
        (false, _) => exit::DIFFERS,
        (true, false) => exit::PARTIAL,
        (true, true) => exit::DONE,
    })
}

/// How much is read; what is drawn is said in the answer.
fn sample(args: &Verify) -> Result<Option<Sample>> {
    if let Some(Part { part, of }) = args.part {
        return Ok(Some(Sample::Part { part, of }));
    }
    let Some(amount) = args.sample else {
        return Ok(None);
    };
    let seed = match args.seed {
        Some(seed) => seed,
        None => u64::from(random()?),
    };
    Ok(Some(match amount {
        Amount::Share(share) => Sample::Share { share, seed },
        Amount::Bytes(bytes) => Sample::Bytes { bytes, seed },
    }))
}

/// A number that can be typed again.
fn random() -> Result<u32> {
    let mut bytes = [0; 4];
    File::open("/dev/urandom")
        .and_then(|mut source| source.read_exact(&mut bytes))
        .context(|| "failed to read random bytes")?;
    Ok(u32::from_le_bytes(bytes))
}

fn place(args: &Verify, ui: &Ui) -> Result<Location> {
    settings::unlock(
        ui.repository(&args.repository)?,
        &args.keys,
        "verify",
        ui.cancel(),
    )
}

/// What should be started, and where; looked at as far as it can be.
fn proof(args: &Verify, ui: &Ui) -> Result<BootRequest> {
    let repository = Repository::open(place(args, ui)?)?;
    let generation = generation(args, &repository)?;
    let request = BootRequest {
        repository: place(args, ui)?,
        generation: Some(generation),
        binary: binary(args.server_binary.as_deref(), &repository, generation)?,
        scratch: args.scratch.clone().unwrap_or_else(|| scratch(args, ui)),
        workers: std::thread::available_parallelism().map_or(2, usize::from),
        mounted: args.mount,
        deadline: RECOVERY,
        engine_tool: args.engine_tool.clone(),
        check_queues: evenkeel_queue_admin::problems,
    };
    verify::ready(&request)?;
    Ok(request)
}

/// Where a server is started unless the user says where: beside the repository, if that is a directory
/// here, and a server that is not root's can get there.
fn scratch(args: &Verify, ui: &Ui) -> PathBuf {
    let here = absolute(&args.repository);
    let is_here = !ui.is_far() && !settings::is_url(&args.repository);
    match is_here && verify::is_enterable(&here) {
        true => beside(&here),
        false => beside(Path::new("/var/tmp/evenkeel")),
    }
}

/// The generation that a server is started on.
fn generation(args: &Verify, repository: &Repository) -> Result<u32> {
    if let Some(number) = args.generation {
        return Ok(number);
    }
    let generations = repository.generations()?;
    let newest = generations.last().map(|summary| summary.generation);
    newest.ok_or_else(|| Error::failed("the repository has no generation yet"))
}

/// The program that was backed up, if it is on this host too, is the one that proves most. Root runs it
/// only where nobody else can have put another in its place: the repository names it, not the user.
pub(super) fn binary(
    given: Option<&Path>,
    repository: &Repository,
    generation: u32,
) -> Result<Binary> {
    if let Some(path) = given {
        return Binary::inspect(path);
    }
    let facts = Facts::of(&repository.manifest(generation)?)?;
    // Without links: what is looked at is what is run.
    let own = facts
        .server_program
        .and_then(|path| std::fs::canonicalize(path).ok());
    let may_run =
        |path: &&PathBuf| !geteuid().is_root() || is_server(path) && Binary::is_roots_alone(path);
    let left_out = own.as_ref().filter(|path| !may_run(path));
    let candidates: Vec<PathBuf> = own
        .iter()
        .filter(may_run)
        .cloned()
        .chain(super::demo::PROGRAMS.map(PathBuf::from))
        .collect();
    let found = Binary::find(&candidates).map_err(|error| hint_at(error, left_out))?;
    if !found.is_of(Recorded::of(facts.server_version.as_deref()).flavour) {
        let error = Error::refused(format!(
            "the backup is from {}, but the server program here is {}",
            facts.server_version.unwrap_or_default(),
            found.path.display()
        ));
        return Err(hint_at(error, left_out).hint("name the right one with --server-binary"));
    }
    Ok(found)
}

/// Whether a path is that of a file which is called like a server.
fn is_server(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.is_file()
        && ["mysqld", "mariadbd"]
            .iter()
            .any(|one| name.starts_with(one))
}

/// Says why the program that the backup names is not run.
fn hint_at(error: Error, left_out: Option<&PathBuf>) -> Error {
    match left_out {
        Some(path) => error.hint(format!(
            "{0} is not run as root because other users can change it; if you trust it: \
             --server-binary {0}",
            path.display()
        )),
        None => error,
    }
}

fn beside(repository: &Path) -> PathBuf {
    let mut name = repository.as_os_str().to_owned();
    name.push(format!(".boot-{}", std::process::id()));
    PathBuf::from(name)
}
