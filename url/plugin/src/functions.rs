//! What the functions do.
#![allow(unsafe_code)] // their names are for the server to find

use crate::abi::{Function, Takes, exported};
use crate::table;
use evenkeel_urlcodec::{MAX_LEN, Table, longest_code};

const fn longest(text: usize) -> usize {
    // A string over the limit has no code.
    longest_code(if text < MAX_LEN { text } else { MAX_LEN })
}

static COMPRESS: Function<&Table> = Function {
    takes: Takes::Text,
    begin: table::used,
    longest,
    answer: |table, text| table.compress(text),
};

static DECOMPRESS: Function<&Table> = Function {
    takes: Takes::Bytes,
    begin: table::used,
    longest: |_| MAX_LEN,
    answer: |table, code| table.decompress(code, MAX_LEN).ok(),
};

/// No string that has a code begins with more than `MAX_LEN` bytes: then there are no bounds.
fn bounds(table: &Table, prefix: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    (prefix.len() <= MAX_LEN).then(|| table.prefix(prefix))
}

static PREFIX_LOW: Function<&Table> = Function {
    takes: Takes::Text,
    begin: table::used,
    longest,
    answer: |table, prefix| Some(bounds(table, prefix)?.0),
};

static PREFIX_HIGH: Function<&Table> = Function {
    takes: Takes::Text,
    begin: table::used,
    longest,
    answer: |table, prefix| Some(bounds(table, prefix)?.1),
};

static TABLE_ID: Function<&Table> = Function {
    takes: Takes::Nothing,
    begin: table::used,
    longest: |_| 16,
    answer: |table, _| Some(table.id().into_bytes()),
};

exported!(
    url_compress,
    url_compress_init,
    url_compress_deinit,
    &'static Table,
    COMPRESS
);
exported!(
    url_decompress,
    url_decompress_init,
    url_decompress_deinit,
    &'static Table,
    DECOMPRESS
);
exported!(
    url_prefix_low,
    url_prefix_low_init,
    url_prefix_low_deinit,
    &'static Table,
    PREFIX_LOW
);
exported!(
    url_prefix_high,
    url_prefix_high_init,
    url_prefix_high_deinit,
    &'static Table,
    PREFIX_HIGH
);
exported!(
    url_table_id,
    url_table_id_init,
    url_table_id_deinit,
    &'static Table,
    TABLE_ID
);
