// What the server asks of a table, in terms of the queue engine.

#include "ha_queue.h"
#include "../handler/names.h"
#include "../handler/refused.h"
#include "../handler/replicated.h"
#include "dictionary.h"
#include "thrown.h"
#include <sql/sql_thd_internal_api.h>
#include <algorithm>

int told(int code, const evq_fault &fault) {
  // The server's own words would hide ours.
  my_printf_error(code == EVQ_FULL ? ER_RECORD_FILE_FULL : ER_UNKNOWN_ERROR, "queue: %s", MYF(0), fault.text);
  switch (code) {
    case EVQ_FULL: return HA_ERR_RECORD_FILE_FULL;
    case EVQ_CORRUPT: return HA_ERR_CRASHED;
    case EVQ_MISSING: return HA_ERR_NO_SUCH_TABLE;
    default: return HA_ERR_INTERNAL_ERROR;
  }
}

bool is_of_queues(const handler *file) { return dynamic_cast<const ha_queue *>(file); }

int ha_queue::open(const char *name, int, uint, const dd::Table *) {
  if (!are_names_known(ha_thd())) return HA_ERR_INTERNAL_ERROR;
  evq_fault fault;
  int code = evq_open(name, &cursor, &fault);
  return code ? told(code, fault) : 0;
}

int ha_queue::close() {
  evq_fault fault;
  int code = evq_close(cursor, &fault);
  cursor = nullptr;
  return code ? told(code, fault) : 0;
}

static bool is_blob(const Field *field) { return field->is_flag_set(BLOB_FLAG); }

// How a packed column is read without a server: a letter and a size in bytes, see engine/src/columns.rs. Behind
// the letter of a decimal stand its digits, behind that of a BINARY its bytes.
static std::string kind_of(const Field *field, uint *size) {
  *size = field->pack_length();
  bool is_bytes = field->charset() == &my_charset_bin;
  auto type = field->real_type();
  if (is_blob(field)) {
    *size = static_cast<const Field_blob *>(field)->pack_length_no_ptr();
    bool is_plain = type >= MYSQL_TYPE_TINY_BLOB && type <= MYSQL_TYPE_BLOB;
    return is_plain ? "s" : "v";
  }
  switch (type) {
    case MYSQL_TYPE_TINY:
    case MYSQL_TYPE_SHORT:
    case MYSQL_TYPE_INT24:
    case MYSQL_TYPE_LONG:
    case MYSQL_TYPE_LONGLONG: return field->is_unsigned() ? "u" : "i";
    case MYSQL_TYPE_ENUM:
    case MYSQL_TYPE_SET: return "u";
    case MYSQL_TYPE_NEWDECIMAL:
      return "n" + std::to_string(static_cast<const Field_new_decimal *>(field)->precision) + "." +
             std::to_string(field->decimals());
    case MYSQL_TYPE_FLOAT:
    case MYSQL_TYPE_DOUBLE: return "r";
    case MYSQL_TYPE_BIT: return "b";
    case MYSQL_TYPE_YEAR: return "y";
    case MYSQL_TYPE_NEWDATE: return "d";
    case MYSQL_TYPE_DATETIME2: return "D";
    case MYSQL_TYPE_TIME2: return "T";
    case MYSQL_TYPE_TIMESTAMP2: return "S";
    case MYSQL_TYPE_STRING:
    case MYSQL_TYPE_VARCHAR:
      *size = field->field_length > 255 ? 2 : 1;
      return is_bytes && type == MYSQL_TYPE_STRING ? "z" + std::to_string(field->field_length) : "s";
    default: return "f";
  }
}

// The columns, for conditions, which are asked where there is no server's table at hand.
static std::string describe(TABLE *form) {
  std::string layout = std::to_string(form->s->null_bytes) + '\0';
  for (Field **field = form->field; *field; field++) {
    Field *one = *field;
    uint size;
    layout += kind_of(one, &size);
    uint byte = one->is_nullable() ? one->null_offset() : 0;
    uint mask = one->is_nullable() ? one->null_bit : 0;
    for (uint number : {size, byte, mask}) layout += ' ' + std::to_string(number);
    layout += std::string(" ") + one->field_name + '\0';
  }
  return layout;
}

// The session, which changes a name; null: the user was told why it may not.
static Session *changes_names(THD *thd, handlerton *hton) {
  Session *session = session_at(thd, hton);
  if (!session) my_error(ER_OUT_OF_RESOURCES, MYF(0));
  return session && are_names_known(thd) ? session : nullptr;
}

int ha_queue::create(const char *name, TABLE *form, HA_CREATE_INFO *info, dd::Table *table_def) try {
  THD *thd = ha_thd();
  if (int code = refused_options(info)) return code;
  if (int code = refused_name(thd, name)) return code;
  Session *session = changes_names(thd, ht);
  if (!session) return HA_ERR_INTERNAL_ERROR;
  if (thd_sql_command(thd) == SQLCOM_ALTER_TABLE) evq_copies_to(session->queues, name);
  std::string layout = describe(form);
  evq_statement statement = statement_on(session, table_def);
  evq_fault fault;
  int code = evq_create(name, (const uint8_t *)layout.data(), layout.size(), &statement, &fault);
  return code ? told(code, fault) : 0;
} catch (...) {
  tell_what_was_thrown();
  return HA_ERR_INTERNAL_ERROR;
}

int ha_queue::delete_table(const char *name, const dd::Table *table_def) {
  Session *session = changes_names(ha_thd(), ht);
  if (!session) return HA_ERR_INTERNAL_ERROR;
  evq_statement statement = statement_on(session, table_def);
  evq_fault fault;
  int code = evq_drop(name, &statement, &fault);
  // The server asks for tables too of which only its own half is left.
  if (code == EVQ_MISSING) return ENOENT;
  return code ? told(code, fault) : 0;
}

int ha_queue::rename_table(const char *from, const char *to, const dd::Table *, dd::Table *table_def) {
  if (int code = refused_name(ha_thd(), to)) return code;
  Session *session = changes_names(ha_thd(), ht);
  if (!session) return HA_ERR_INTERNAL_ERROR;
  evq_statement statement = statement_on(session, table_def);
  evq_fault fault;
  int code = evq_rename(from, to, &statement, &fault);
  return code ? told(code, fault) : 0;
}

// A blob in a record: its length, then where its bytes are.
struct Blob {
  uint prefix;
  size_t length = 0;

  Blob(const Field *field, const uchar *cell) : prefix(static_cast<const Field_blob *>(field)->pack_length_no_ptr()) {
    for (uint at = prefix; at > 0; at--) length = length << 8 | cell[at - 1];
  }
};

// A record as it is stored: the bytes of NULLs and bits, then each column that is not NULL, packed.
size_t ha_queue::longest(const uchar *record) const {
  size_t bytes = table->s->reclength + table->s->fields * 2 + table->s->null_bytes;
  for (uint at = 0; at < table->s->blob_fields; at++) {
    Field *blob = table->field[table->s->blob_field[at]];
    if (!blob->is_null_in_record(record)) bytes += Blob(blob, record + blob->offset(table->record[0])).length;
  }
  return bytes;
}

int ha_queue::write_row(uchar *record) try {
  packed.resize(std::max(packed.size(), longest(record)));
  uchar *to = packed.data();
  memcpy(to, record, table->s->null_bytes);
  to += table->s->null_bytes;
  for (Field **field = table->field; *field; field++) {
    Field *one = *field;
    if (one->is_null_in_record(record)) continue;
    const uchar *cell = record + one->offset(table->record[0]);
    if (is_blob(one)) {
      Blob blob(one, cell);
      const uchar *bytes;
      memcpy(&bytes, cell + blob.prefix, sizeof bytes);
      memcpy(to, cell, blob.prefix);
      if (blob.length) memcpy(to + blob.prefix, bytes, blob.length);
      to += blob.prefix + blob.length;
    } else {
      to = one->pack(to, cell, UINT_MAX);
    }
  }
  evq_fault fault;
  int code = evq_insert(cursor, session_at(ha_thd(), ht)->queues, packed.data(), to - packed.data(), &fault);
  return code ? told(code, fault) : 0;
} catch (...) {
  tell_what_was_thrown();
  return HA_ERR_OUT_OF_MEM;
}

// Strings stay where the engine has them until the next row is read. The server's own way to unpack a blob would
// copy it, and into one record only.
int ha_queue::put_row(uchar *record) {
  size_t bytes;
  const uchar *from = evq_row(cursor, &bytes), *end = from + bytes;
  if (bytes < table->s->null_bytes) return HA_ERR_CRASHED;
  memcpy(record, from, table->s->null_bytes);
  from += table->s->null_bytes;
  for (Field **field = table->field; *field; field++) {
    Field *one = *field;
    if (one->is_null_in_record(record)) continue;
    uchar *cell = record + one->offset(table->record[0]);
    if (from >= end && one->pack_length() > 0 && one->field_length > 0) return HA_ERR_CRASHED;
    if (is_blob(one)) {
      Blob blob(one, from);
      const uchar *data = from + blob.prefix;
      if ((size_t)(end - from) < blob.prefix + blob.length) return HA_ERR_CRASHED;
      memcpy(cell, from, blob.prefix);
      memcpy(cell + blob.prefix, &data, sizeof data);
      from = data + blob.length;
    } else {
      from = one->unpack(cell, from, 0);
    }
    // Frames have sums: a row that is shorter than its table's is another table's.
    if (!from || from > end) return HA_ERR_CRASHED;
  }
  return 0;
}

void ha_queue::start_bulk_insert(ha_rows) {
  gathers = true;
  evq_gather(cursor);
}

int ha_queue::end_bulk_insert() {
  if (!gathers) return 0;
  gathers = false;
  THD *thd = ha_thd();
  evq_fault fault;
  int code = evq_gathered(cursor, session_at(thd, ht)->queues, thd_is_error(thd), &fault);
  return code ? told(code, fault) : 0;
}

int ha_queue::update_row(const uchar *, uchar *) {
  my_printf_error(ER_ILLEGAL_HA, "queue: rows of a queue are not changed: take them, and insert others", MYF(0));
  return HA_ERR_WRONG_COMMAND;
}

int ha_queue::delete_row(const uchar *) {
  // Whoever has the row by now removes it or puts it back.
  evq_doom(cursor, session_at(ha_thd(), ht)->queues);
  return 0;
}

int ha_queue::truncate(dd::Table *) {
  evq_fault fault;
  int code = evq_truncate(cursor, &fault);
  return code ? told(code, fault) : 0;
}

int ha_queue::rnd_init(bool) {
  THD *thd = ha_thd();
  if (thd_sql_command(thd) == SQLCOM_ALTER_TABLE) {
    // All rows, and consumers go on: the copy is told what they did when it takes this table's place.
    evq_fault fault;
    int code = evq_copy(cursor, session_at(thd, ht)->queues, &fault);
    return code ? told(code, fault) : 0;
  }
  evq_scan(cursor, session_at(thd, ht)->queues);
  return 0;
}

int ha_queue::rnd_next(uchar *record) {
  uint64_t id;
  evq_fault fault;
  int code = evq_next(cursor, &id, &fault);
  if (code) return told(code, fault);
  return id ? put_row(record) : HA_ERR_END_OF_FILE;
}

void ha_queue::position(const uchar *) {
  uint64_t id = evq_row_at_hand(cursor);
  memcpy(ref, &id, sizeof id);
}

int ha_queue::rnd_pos(uchar *record, uchar *position) {
  uint64_t id;
  int found;
  memcpy(&id, position, sizeof id);
  evq_fault fault;
  int code = evq_read(cursor, id, &found, &fault);
  if (code) return told(code, fault);
  return found ? put_row(record) : HA_ERR_RECORD_DELETED;
}

int ha_queue::info(uint what) {
  if (what & HA_STATUS_VARIABLE) {
    evq_stats now = {};
    evq_cursor_stats(cursor, &now);
    // Of an empty table the optimizer would not even ask. Who wants to know the time shows it to a user.
    bool is_shown = what & HA_STATUS_TIME;
    stats.records = now.rows < 2 && !is_shown ? 2 : now.rows;
    stats.data_file_length = now.bytes;
    stats.delete_length = now.dead_bytes;
    stats.mean_rec_length = now.rows ? (ulong)(now.bytes / now.rows) : 0;
  }
  return 0;
}

int ha_queue::optimize(THD *, HA_CHECK_OPT *) {
  evq_fault fault;
  int code = evq_compact(table->s->normalized_path.str, &fault);
  return code ? (told(code, fault), HA_ADMIN_FAILED) : HA_ADMIN_OK;
}

int ha_queue::check(THD *thd, HA_CHECK_OPT *) { return checked(thd, cursor); }

// A queue has no keys, but every dump says this of every table. The server writes the statement to its binary log as one of
// a transaction, and there is none where nobody takes part: then it gets the number of the one before it, and after a crash
// the server does not start.
int ha_queue::disable_indexes(uint) {
  trans_register_ha(ha_thd(), false, ht, nullptr);
  return HA_ERR_WRONG_COMMAND;
}

int ha_queue::enable_indexes(uint mode) { return disable_indexes(mode); }

// What changes no stored row and no name, be it a column's; all else is copied. In place the server gives the table another
// number in its dictionary: a crash would leave a new name with a note of a number that the dictionary never had.
enum_alter_inplace_result ha_queue::check_if_supported_inplace_alter(TABLE *, Alter_inplace_info *info) {
  using Info = Alter_inplace_info;
  const Info::HA_ALTER_FLAGS harmless = Info::CHANGE_CREATE_OPTION | Info::ALTER_COLUMN_DEFAULT;
  return info->handler_flags & ~harmless ? HA_ALTER_INPLACE_NOT_SUPPORTED : HA_ALTER_INPLACE_NO_LOCK;
}

int ha_queue::external_lock(THD *thd, int kind) {
  if (kind != F_UNLCK) {
    if (int code = refused_by_log(thd, kind == F_WRLCK)) return code;
    Session *session = session_at(thd, ht);
    if (!session) return HA_ERR_OUT_OF_MEM;
    // Under LOCK TABLES the statements that write come later.
    writes = kind == F_WRLCK && thd_sql_command(thd) != SQLCOM_LOCK_TABLES;
    session->writes += writes;
    return 0;
  }
  Session *session = session_at(thd, ht);
  if (session->writes) session->writes -= writes;
  writes = false;
  evq_fault fault;
  int code = evq_settle(cursor, session->queues, &fault);
  return code ? told(code, fault) : 0;
}

// In place of external_lock(), where LOCK TABLES or a statement around this one has called that.
int ha_queue::start_stmt(THD *thd, thr_lock_type kind) { return refused_by_log(thd, kind >= TL_WRITE_ALLOW_WRITE); }
