//! Is everything there that should be, and nothing else?

use super::report::Findings;
use crate::catalog::Catalog;
use crate::crypt::{self, Copies};
use crate::format::header::{HEADER_LENGTH, Header, ObjectId};
use crate::head::Head;
use crate::heal::{is_superseded, is_unfinished, list};
use crate::names::{self, GENERATIONS, MANIFEST, PENDING, REMOVING};
use crate::store::Listed;
use evenkeel_op::Result;
use std::collections::BTreeSet;

/// Compares what the store lists with what the head and the manifests name.
pub(super) fn take(catalog: &Catalog, findings: &Findings) -> Result<()> {
    let mut expected = vec![
        names::IDENTITY,
        names::HEAD,
        GENERATIONS,
        names::BINLOGS,
        names::WRITER_LOCK,
        names::READER_LOCK,
    ];
    if catalog.keys.is_encrypted() {
        expected.extend([names::KEYS, names::KEYS_COPY]);
        match crypt::check_copies(&*catalog.store, catalog.repository)? {
            Copies::Same => {}
            Copies::Behind => {
                findings.note("a change of keys was interrupted; the next run finishes it".into());
            }
            Copies::Damaged(errors) => {
                errors
                    .iter()
                    .for_each(|error| findings.add_error(error, None));
            }
        }
    }
    for listed in list(&*catalog.store, "")? {
        if is_unfinished(&listed.name) {
            findings.note(format!("{} was left by an interrupted run", listed.name));
        } else if !expected.contains(&listed.name.as_str()) {
            findings.add(&listed.name, "it does not belong here", None);
        }
    }
    for known in catalog.head.known() {
        generation(catalog, findings, known.generation)?;
    }
    for folder in list(&*catalog.store, GENERATIONS)? {
        let number = folder.name.parse::<u32>().ok();
        let number = number.filter(|number| folder.is_folder && number.to_string() == folder.name);
        match number {
            Some(number) if catalog.head.manifest(number).is_some() => {}
            Some(number) => stray(catalog, findings, number)?,
            None => {
                let name = format!("{GENERATIONS}/{}", folder.name);
                findings.add(&name, "it does not belong here", None);
            }
        }
    }
    Ok(())
}

/// Looks at a generation that the head does not name.
fn stray(catalog: &Catalog, findings: &Findings, generation: u32) -> Result<()> {
    let folder = names::folder(generation);
    let objects = list(&*catalog.store, &folder)?;
    let has = |name: &str| objects.iter().any(|object| object.name == name);
    if has(PENDING) || has(REMOVING) || objects.iter().all(|one| is_unfinished(&one.name)) {
        findings.note(format!(
            "{folder} belongs to a running or an interrupted run"
        ));
        return Ok(());
    }
    // A backup may have committed it since the head was read.
    let now = Head::read(&*catalog.store, catalog.repository)?;
    if now.manifest(generation).is_none() {
        let what = "it is complete, but the head does not list it: the head is an older copy";
        findings.add(&folder, what, Some(generation));
    }
    Ok(())
}

/// Looks at a generation that the head names.
fn generation(catalog: &Catalog, findings: &Findings, generation: u32) -> Result<()> {
    let folder = names::folder(generation);
    let is_live = catalog.head.live(generation).is_some();
    let affects = is_live.then_some(generation);
    let Some(known) = findings.take(catalog.generation(generation), affects)? else {
        return Ok(());
    };
    let listed = list(&*catalog.store, &folder)?;
    let current: BTreeSet<String> = known
        .objects
        .values()
        .map(|expected| expected.info.name.clone())
        .collect();
    for expected in known.objects.values() {
        let found = listed.iter().find(|one| one.name == expected.info.name);
        let name = expected.id.name();
        match found {
            None => findings.add(&name, "it is missing", affects),
            Some(one) if one.size != expected.info.size => {
                let (size, wanted) = (one.size, expected.info.size);
                let what = format!("it is {size} bytes long, but {wanted} were written");
                findings.add(&name, what, affects);
            }
            Some(_) => {}
        }
    }
    let strange = |one: &&Listed| !current.contains(&one.name) && one.name != MANIFEST;
    for one in listed.iter().filter(strange) {
        let name = names::object(generation, &one.name);
        let id = ObjectId::from_file_name(catalog.repository, generation, &one.name);
        let is_ours = [PENDING, REMOVING].contains(&one.name.as_str())
            || is_unfinished(&one.name)
            || id.is_some_and(|id| is_superseded(&known, id) && has_header(catalog, id));
        if is_ours && !one.is_folder {
            findings.note(format!("{name} was left by an interrupted run"));
        } else {
            findings.add(&name, "it does not belong here", None);
        }
    }
    Ok(())
}

/// Whether an object is what its name says, and not a copy of another.
fn has_header(catalog: &Catalog, id: ObjectId) -> bool {
    let mut header = [0; HEADER_LENGTH];
    let read = catalog
        .store
        .open(&id.name())
        .and_then(|object| object.read_exact_at(0, &mut header));
    read.is_ok() && Header::read(id, catalog.keys.is_encrypted(), &header).is_ok()
}
