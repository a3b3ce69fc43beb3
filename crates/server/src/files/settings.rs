//! Which of a server's variables are kept with a generation.

use crate::connect::Session;
use std::collections::BTreeMap;

/// The settings that a restored server needs, or a person wants to know: kept with a generation.
const SETTINGS: [&str; 58] = [
    "aria_log_dir_path",
    "aria_log_file_size",
    "check_constraint_checks",
    "datadir",
    "enforce_gtid_consistency",
    "file_key_management_encryption_algorithm",
    "file_key_management_filename",
    "ft_stopword_file",
    "gtid_mode",
    "gtid_slave_pos",
    "gtid_strict_mode",
    "have_symlink",
    "hostname",
    "innodb_checksum_algorithm",
    "innodb_compression_algorithm",
    "innodb_data_file_path",
    "innodb_data_home_dir",
    "innodb_default_row_format",
    "innodb_directories",
    "innodb_doublewrite",
    "innodb_doublewrite_dir",
    "innodb_encrypt_log",
    "innodb_encrypt_tables",
    "innodb_encrypt_temporary_tables",
    "innodb_fast_shutdown",
    "innodb_flush_log_at_trx_commit",
    "innodb_flush_method",
    "innodb_log_archive",
    "innodb_log_file_size",
    "innodb_log_files_in_group",
    "innodb_log_group_home_dir",
    "innodb_page_size",
    "innodb_redo_log_capacity",
    "innodb_redo_log_encrypt",
    "innodb_temp_data_file_path",
    "innodb_undo_directory",
    "innodb_undo_log_encrypt",
    "innodb_undo_tablespaces",
    "keyring_encrypted_file_data",
    "keyring_file_data",
    "keyring_vault_config",
    "log_bin",
    "log_bin_basename",
    "log_bin_index",
    "lower_case_file_system",
    "lower_case_table_names",
    "master_info_repository",
    "plugin_dir",
    "port",
    "relay_log_basename",
    "relay_log_index",
    "relay_log_info_repository",
    "server_id",
    "server_uuid",
    "sql_mode",
    "sync_binlog",
    "system_time_zone",
    "time_zone",
];

/// Variables that change what an event of the binary log means, and that it does not carry, or not in every
/// format. Each has an option of the same name; docs/src/design/replayed-settings.md argues the list.
pub const CHANGE_MEANING: &[&str] = &[
    "activate_all_roles_on_login",
    "automatic_sp_privileges",
    "block_encryption_mode",
    "character_set_filesystem",
    "character_set_server",
    "collation_server",
    "cte_max_recursion_depth",
    "default_authentication_plugin",
    "default_password_lifetime",
    "default_regex_flags",
    "default_storage_engine",
    "default_table_encryption",
    "default_week_format",
    "div_precision_increment",
    "enable_cascade_triggers",
    "enforce_storage_engine",
    "explicit_defaults_for_timestamp",
    "ft_boolean_syntax",
    "ft_max_word_len",
    "ft_min_word_len",
    "ft_query_expansion_limit",
    "group_concat_max_len",
    "innodb_autoinc_lock_mode",
    "innodb_compression_default",
    "innodb_default_encryption_key_id",
    "innodb_file_format",
    "innodb_file_per_table",
    "innodb_ft_enable_stopword",
    "innodb_ft_max_token_size",
    "innodb_ft_min_token_size",
    "innodb_ft_result_cache_limit",
    "innodb_ft_server_stopword_table",
    "innodb_ft_user_stopword_table",
    "innodb_large_prefix",
    "innodb_native_foreign_keys",
    "innodb_strict_mode",
    "lc_time_names",
    "mandatory_roles",
    "max_heap_table_size",
    "max_points_in_geometry",
    "max_recursive_iterations",
    "max_sort_length",
    "max_sp_recursion_depth",
    "mhnsw_default_distance",
    "mhnsw_default_m",
    "mysql56_temporal_format",
    "ngram_token_size",
    "old_passwords",
    "partial_revokes",
    "password_history",
    "password_reuse_interval",
    "regexp_stack_limit",
    "regexp_time_limit",
    "restrict_fk_on_non_standard_key",
    "sort_buffer_size",
    "sql_require_primary_key",
    "standard_compliant_cte",
    "sysdate_is_now",
    "system_versioning_alter_history",
    "thread_stack",
    "windowing_use_high_precision",
];

/// Those of which nothing is a value too.
pub const LISTS_THAT_CHANGE_MEANING: [&str; 2] = ["character_set_collations", "old_mode"];

/// Returns the variables among `variables` that matter for a restore.
pub(super) fn of(variables: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let known = |name: &&str| Some(((*name).to_owned(), variables.get(*name)?.clone()));
    let kept = SETTINGS
        .iter()
        .chain(CHANGE_MEANING)
        .chain(&LISTS_THAT_CHANGE_MEANING);
    kept.filter_map(known).collect()
}

/// Returns whether `SYSDATE()` is the time of the statement: that is an option and no variable, so it is tried.
pub(super) fn sysdate_is_now(session: &mut Session) -> bool {
    // Long ago. An account that may not set it does not see it.
    let is_set = session.run("SET SESSION timestamp = 1000000000").is_ok();
    let said = session.value("SELECT SYSDATE() = NOW()");
    let _ = session.run("SET SESSION timestamp = DEFAULT");
    is_set && said.is_ok_and(|said| said.as_deref() == Some("1"))
}
