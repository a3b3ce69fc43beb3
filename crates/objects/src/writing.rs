//! An object on its way: kept back while it is small, in parts when it is not.

use crate::fault::{Asked, io_error};
use crate::retry::retried;
use crate::shared::Shared;
use evenkeel_repository::store::{Existing, NewObject};
use object_store::{MultipartUpload, PutMultipartOptions};
use std::io;
use std::sync::Arc;
use tokio::task::JoinSet;

/// Length of every part but the last. S3 takes 10 000 parts of 5 MiB to 5 GiB; R2 wants all equal.
const PART: usize = 8 << 20;

/// An object being written.
pub(crate) struct Writing {
    shared: Arc<Shared>,
    name: String,
    existing: Existing,
    buffer: Vec<u8>,
    parts: Option<Parts>,
}

/// An upload in parts. Dropped before it is complete, it is given up.
struct Parts {
    shared: Arc<Shared>,
    name: String,
    size: u64,
    upload: Option<Box<dyn MultipartUpload>>,
    sending: JoinSet<object_store::Result<()>>,
}

impl Writing {
    pub(crate) fn new(shared: Arc<Shared>, name: &str, existing: Existing) -> Self {
        Self {
            shared,
            name: name.to_owned(),
            existing,
            buffer: Vec::new(),
            parts: None,
        }
    }

    fn send(&mut self, part: Vec<u8>) -> io::Result<()> {
        if self.parts.is_none() {
            self.shared.check_leases()?;
            self.parts = Some(Parts::begin(&self.shared, &self.name)?);
        }
        match &mut self.parts {
            Some(parts) => parts.send(part),
            None => Ok(()),
        }
    }
}

impl NewObject for Writing {
    fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(PART - self.buffer.len()));
            self.buffer.extend_from_slice(now);
            bytes = later;
            if self.buffer.len() == PART && !bytes.is_empty() {
                let part = std::mem::replace(&mut self.buffer, Vec::with_capacity(PART));
                self.send(part)?;
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        let rest = std::mem::take(&mut self.buffer);
        if self.parts.is_none() {
            self.shared.check_leases()?;
            return self.shared.put(&self.name, self.existing, rest);
        }
        self.send(rest)?;
        if self.existing == Existing::Refuse {
            // Completing an upload knows no condition everywhere; the writer's lock keeps others out
            // between this question and the answer.
            match self.shared.wait(self.shared.meta(&self.name)) {
                Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(io_error(Asked::Read, error)),
                Ok(_) => return Err(io::ErrorKind::AlreadyExists.into()),
            }
        }
        self.shared.check_leases()?;
        self.parts.take().map_or(Ok(()), Parts::complete)
    }
}

impl Parts {
    fn begin(shared: &Arc<Shared>, name: &str) -> io::Result<Self> {
        let options = PutMultipartOptions {
            attributes: shared.attributes(true),
            ..PutMultipartOptions::default()
        };
        let (objects, path) = (&shared.objects, shared.path(name));
        let begun = async { retried!(objects.put_multipart_opts(&path, options.clone())) };
        Ok(Self {
            name: name.to_owned(),
            size: 0,
            upload: Some(
                shared
                    .wait(begun)
                    .map_err(|error| io_error(Asked::Write, error))?,
            ),
            shared: shared.clone(),
            sending: JoinSet::new(),
        })
    }

    fn send(&mut self, part: Vec<u8>) -> io::Result<()> {
        while let Some(sent) = self.sending.try_join_next() {
            reported(sent)?;
        }
        let uploads = self.shared.uploads.clone();
        let turn = self.shared.wait(uploads.acquire_owned());
        let turn = turn.map_err(io::Error::other)?;
        self.size += part.len() as u64;
        if let Some(upload) = &mut self.upload {
            let sent = upload.put_part(part.into());
            let on = self.shared.runtime().handle();
            self.sending.spawn_on(
                async move {
                    let sent = sent.await;
                    drop(turn);
                    sent
                },
                on,
            );
        }
        Ok(())
    }

    fn complete(mut self) -> io::Result<()> {
        while let Some(sent) = self.shared.wait(self.sending.join_next()) {
            reported(sent)?;
        }
        if let Some(upload) = &mut self.upload {
            let done = self.shared.wait(upload.complete());
            // What was done without our hearing of it is done.
            if let Err(error) = done {
                let there = self.shared.wait(self.shared.meta(&self.name));
                if !there.is_ok_and(|meta| meta.size == self.size) {
                    return Err(io_error(Asked::Write, error));
                }
            }
        }
        self.upload = None;
        Ok(())
    }
}

fn reported(sent: Result<object_store::Result<()>, tokio::task::JoinError>) -> io::Result<()> {
    sent.map_err(io::Error::other)?
        .map_err(|error| io_error(Asked::Write, error))
}

impl Drop for Parts {
    fn drop(&mut self) {
        self.sending.abort_all();
        if let Some(mut upload) = self.upload.take() {
            // Parts that nobody will complete are paid for; the bucket's own rule takes them where
            // this does not arrive.
            let _ = self.shared.wait(async move { upload.abort().await });
        }
    }
}
