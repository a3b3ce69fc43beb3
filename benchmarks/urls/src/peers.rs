//! Other compressors, as they are used for short strings: with a dictionary where they take one,
//! without whatever of a frame is the same each time.

use crate::codec::Codec;
use anyhow::Result;
use std::io::Cursor;
use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::CParameter;

/// Longest string that comes back.
const ROOM: usize = 1 << 16;
/// What every frame begins with.
const MAGIC: [u8; 4] = 0xFD2F_B528_u32.to_le_bytes();

pub(crate) struct Zstd {
    compressor: Compressor<'static>,
    decompressor: Decompressor<'static>,
    dictionary: usize,
    frame: Vec<u8>,
}

impl Zstd {
    pub(crate) fn new(train: &[Vec<u8>], level: i32, bytes: usize) -> Result<Self> {
        let dictionary = zstd::dict::from_samples(train, bytes)?;
        let mut compressor = Compressor::with_dictionary(level, &dictionary)?;
        compressor.set_parameter(CParameter::ContentSizeFlag(false))?;
        compressor.set_parameter(CParameter::ChecksumFlag(false))?;
        compressor.set_parameter(CParameter::DictIdFlag(false))?;
        Ok(Self {
            compressor,
            decompressor: Decompressor::with_dictionary(&dictionary)?,
            dictionary: dictionary.len(),
            frame: Vec::with_capacity(ROOM),
        })
    }
}

impl Codec for Zstd {
    fn table_bytes(&self) -> usize {
        self.dictionary
    }

    fn pack(&mut self, text: &[u8], out: &mut Vec<u8>) -> Result<()> {
        self.frame.clear();
        self.frame.reserve(ROOM);
        self.compressor.compress_to_buffer(text, &mut self.frame)?;
        out.clear();
        out.extend_from_slice(&self.frame[MAGIC.len()..]);
        Ok(())
    }

    fn unpack(&mut self, code: &[u8], out: &mut Vec<u8>) -> Result<()> {
        self.frame.clear();
        self.frame.extend_from_slice(&MAGIC);
        self.frame.extend_from_slice(code);
        out.clear();
        out.reserve(ROOM);
        self.decompressor.decompress_to_buffer(&self.frame, out)?;
        Ok(())
    }
}

/// With the dictionary that is built in.
pub(crate) struct Brotli;

impl Codec for Brotli {
    fn table_bytes(&self) -> usize {
        122_784
    }

    fn most(&self) -> usize {
        500
    }

    fn pack(&mut self, text: &[u8], out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        let params = brotli::enc::BrotliEncoderParams {
            quality: 11,
            lgwin: 16,
            size_hint: text.len(),
            ..Default::default()
        };
        brotli::BrotliCompress(&mut Cursor::new(text), out, &params)?;
        Ok(())
    }

    fn unpack(&mut self, code: &[u8], out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        brotli::BrotliDecompress(&mut Cursor::new(code), out)?;
        Ok(())
    }
}

pub(crate) struct Fsst(fsst::Compressor);

impl Fsst {
    pub(crate) fn new(train: &[Vec<u8>]) -> Self {
        let texts = train.iter().map(Vec::as_slice).collect();
        Self(fsst::Compressor::train(&texts))
    }
}

impl Codec for Fsst {
    fn table_bytes(&self) -> usize {
        self.0
            .symbol_lengths()
            .iter()
            .map(|len| usize::from(*len) + 1)
            .sum()
    }

    fn pack(&mut self, text: &[u8], out: &mut Vec<u8>) -> Result<()> {
        *out = self.0.compress(text);
        Ok(())
    }

    fn unpack(&mut self, code: &[u8], out: &mut Vec<u8>) -> Result<()> {
        *out = self.0.decompressor().decompress(code);
        Ok(())
    }
}
