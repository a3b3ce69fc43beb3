//! What the functions do.
#![allow(unsafe_code)] // their names are for the server to find

use crate::abi::{Function, Takes, exported};
use crate::table;
use evenkeel_urlcodec::{CodeTable, MAX_LEN, longest_code};

const fn longest(text: usize) -> usize {
    // A string over the limit has no code.
    longest_code(if text < MAX_LEN { text } else { MAX_LEN })
}

static COMPRESS: Function<&CodeTable> = Function {
    takes: Takes::Text,
    begin: table::used,
    longest,
    answer: |table, text| table.compress(text),
};

static DECOMPRESS: Function<&CodeTable> = Function {
    takes: Takes::Bytes,
    begin: table::used,
    longest: |_| MAX_LEN,
    answer: |table, code| table.decompress(code, MAX_LEN).ok(),
};

/// No string that has a code begins with more than `MAX_LEN` bytes: then there are no bounds.
fn bounds(table: &CodeTable, prefix: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    (prefix.len() <= MAX_LEN).then(|| table.prefix(prefix))
}

static PREFIX_LOW: Function<&CodeTable> = Function {
    takes: Takes::Text,
    begin: table::used,
    longest,
    answer: |table, prefix| Some(bounds(table, prefix)?.0),
};

static PREFIX_HIGH: Function<&CodeTable> = Function {
    takes: Takes::Text,
    begin: table::used,
    longest,
    answer: |table, prefix| Some(bounds(table, prefix)?.1),
};

static TABLE_ID: Function<&CodeTable> = Function {
    takes: Takes::Nothing,
    begin: table::used,
    longest: |_| 16,
    answer: |table, _| Some(table.id().into_bytes()),
};

exported!(
    url_compress,
    url_compress_init,
    url_compress_deinit,
    &'static CodeTable,
    COMPRESS
);
exported!(
    url_decompress,
    url_decompress_init,
    url_decompress_deinit,
    &'static CodeTable,
    DECOMPRESS
);
exported!(
    url_prefix_low,
    url_prefix_low_init,
    url_prefix_low_deinit,
    &'static CodeTable,
    PREFIX_LOW
);
exported!(
    url_prefix_high,
    url_prefix_high_init,
    url_prefix_high_deinit,
    &'static CodeTable,
    PREFIX_HIGH
);
exported!(
    url_table_id,
    url_table_id_init,
    url_table_id_deinit,
    &'static CodeTable,
    TABLE_ID
);
