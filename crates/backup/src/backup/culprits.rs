//! Names the table and index that corrupt pages belong to, and what would mend them.

use super::pages::Suspect;
use super::request::Source;
use crate::Run;
use crate::report::CorruptPage;
use evenkeel_innodb::names;
use evenkeel_op::Result;
use evenkeel_server::abilities::{Abilities, Flavour};
use evenkeel_server::connect::Session;
use std::collections::HashMap;
