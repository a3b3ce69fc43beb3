// What the server asks of a table, in terms of the queue engine.

#include "ha_queue.h"
#include "../handler/refused.h"
#include "../handler/replicated.h"
#include <sql_parse.h>
#include <mysql/service_thd_error_context.h>

// Members of THD are not used here: they move with the server's minor versions.

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

int ha_queue::open(const char *name, int, uint) {
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

// Whether text is stored as something else, so that comparing its bytes would find nothing: compressed, or a UUID.
static bool is_no_text(const Field *field) {
  bool is_char = field->real_type() == MYSQL_TYPE_STRING;
  return field->compression_method() || (is_char && field->type_handler() != &type_handler_string);
}

// How a packed column is read without a server: a letter and a size in bytes, see engine/src/columns.rs. Behind
// the letter of a decimal stand its digits, behind that of a BINARY its bytes.
static char kind_of(Field *field, uint *size) {
  *size = field->pack_length();
  bool is_bytes = field->charset() == &my_charset_bin;
  switch (field->real_type()) {
    case MYSQL_TYPE_TINY:
    case MYSQL_TYPE_SHORT:
    case MYSQL_TYPE_INT24:
    case MYSQL_TYPE_LONG:
    case MYSQL_TYPE_LONGLONG: return field->is_unsigned() ? 'u' : 'i';
    case MYSQL_TYPE_ENUM:
    case MYSQL_TYPE_SET: return 'u';
    case MYSQL_TYPE_NEWDECIMAL: return 'n';
    case MYSQL_TYPE_FLOAT:
    case MYSQL_TYPE_DOUBLE: return 'r';
    case MYSQL_TYPE_BIT: return 'b';
    case MYSQL_TYPE_YEAR: return 'y';
    case MYSQL_TYPE_NEWDATE: return 'd';
    case MYSQL_TYPE_DATETIME2: return 'D';
    case MYSQL_TYPE_TIME2: return 'T';
    case MYSQL_TYPE_TIMESTAMP2: return 'S';
    case MYSQL_TYPE_STRING:
    case MYSQL_TYPE_VARCHAR:
      *size = field->field_length > 255 ? 2 : 1;
      if (is_no_text(field)) return 'v';
      return is_bytes && field->real_type() == MYSQL_TYPE_STRING ? 'z' : 's';
    case MYSQL_TYPE_TINY_BLOB:
    case MYSQL_TYPE_BLOB:
    case MYSQL_TYPE_MEDIUM_BLOB:
    case MYSQL_TYPE_LONG_BLOB:
    case MYSQL_TYPE_GEOMETRY:
      *size = static_cast<Field_blob *>(field)->pack_length_no_ptr();
      return field->type() == MYSQL_TYPE_GEOMETRY || is_no_text(field) ? 'v' : 's';
    default: return 'f';
  }
}

// The columns, for conditions, which are asked where there is no server's table at hand.
static void describe(TABLE *form, String *layout) {
  layout->append_ulonglong(form->s->null_bytes);
  layout->append('\0');
  for (Field **field = form->field; *field; field++) {
    Field *one = *field;
    uint size;
    char kind = kind_of(one, &size), numbers[64];
    uint byte = one->null_ptr ? (uint)(one->null_ptr - form->record[0]) : 0;
    uint mask = one->null_ptr ? one->null_bit : 0;
    layout->append(kind);
    if (kind == 'n')
      layout->append(numbers, snprintf(numbers, sizeof numbers, "%u.%u", static_cast<Field_new_decimal *>(one)->precision,
                                       one->decimals()));
    if (kind == 'z') layout->append(numbers, snprintf(numbers, sizeof numbers, "%u", one->field_length));
    layout->append(numbers, snprintf(numbers, sizeof numbers, " %u %u %u ", size, byte, mask));
    layout->append(one->field_name.str, one->field_name.length);
    layout->append('\0');
  }
}

// Whether a statement may put a copy of a table in its place. MariaDB 11 does so for REPAIR TABLE, too.
static bool may_copy(THD *thd) {
  int command = thd_sql_command(thd);
  return command == SQLCOM_ALTER_TABLE || command == SQLCOM_REPAIR;
}

int ha_queue::create(const char *name, TABLE *form, HA_CREATE_INFO *info) {
  if (int code = refused_options(info)) return code;
  if (int code = refused_name(ha_thd(), name)) return code;
  if (may_copy(ha_thd())) {
    Session *session = session_at(ha_thd(), ht);
    if (!session) return HA_ERR_OUT_OF_MEM;
    evq_copies_to(session->queues, name);
  }
  String layout;
  describe(form, &layout);
  evq_fault fault;
  int code = evq_create(name, (const uint8_t *)layout.ptr(), layout.length(), nullptr, &fault);
  return code ? told(code, fault) : 0;
}

int ha_queue::delete_table(const char *name) {
  evq_fault fault;
  int code = evq_drop(name, nullptr, &fault);
  // The server asks for tables too of which only its own half is left.
  if (code == EVQ_MISSING) return ENOENT;
  return code ? told(code, fault) : 0;
}

int ha_queue::rename_table(const char *from, const char *to) {
  if (int code = refused_name(ha_thd(), to)) return code;
  evq_fault fault;
  int code = evq_rename(from, to, nullptr, &fault);
  // The server takes back what was not done, too: its user is told why it was not.
  if (code == EVQ_MISSING) return HA_ERR_NO_SUCH_TABLE;
  return code ? told(code, fault) : 0;
}

// A record as it is stored: the bytes of NULLs and bits, then each column that is not NULL, packed.
size_t ha_queue::longest(const uchar *record) const {
  size_t bytes = table->s->reclength + table->s->fields * 2 + table->s->null_bytes;
  for (uint at = 0; at < table->s->blob_fields; at++) {
    auto *blob = static_cast<Field_blob *>(table->field[table->s->blob_field[at]]);
    if (!blob->is_null_in_record(record)) bytes += 2 + blob->get_length(record + blob->offset(table->record[0]));
  }
  return bytes;
}

int ha_queue::write_row(const uchar *record) {
  packed.length(0);
  if (packed.reserve(longest(record))) return HA_ERR_OUT_OF_MEM;
  uchar *to = (uchar *)packed.ptr();
  memcpy(to, record, table->s->null_bytes);
  to += table->s->null_bytes;
  for (Field **field = table->field; *field; field++)
    if (!(*field)->is_null_in_record(record)) to = (*field)->pack(to, record + (*field)->offset(table->record[0]));
  evq_fault fault;
  size_t bytes = to - (uchar *)packed.ptr();
  int code = evq_insert(cursor, session_at(ha_thd(), ht)->queues, (const uint8_t *)packed.ptr(), bytes, &fault);
  return code ? told(code, fault) : 0;
}

// Strings stay where the engine has them until the next row is read.
int ha_queue::put_row(uchar *record) {
  size_t bytes;
  const uchar *from = evq_row(cursor, &bytes), *end = from + bytes;
  if (bytes < table->s->null_bytes) return HA_ERR_CRASHED;
  memcpy(record, from, table->s->null_bytes);
  from += table->s->null_bytes;
  for (Field **field = table->field; *field; field++) {
    if ((*field)->is_null_in_record(record)) continue;
    from = (*field)->unpack(record + (*field)->offset(table->record[0]), from, end, 0);
    if (!from) return HA_ERR_CRASHED;
  }
  return 0;
}

void ha_queue::start_bulk_insert(ha_rows, uint) {
  gathers = true;
  evq_gather(cursor);
}

int ha_queue::end_bulk_insert() {
  if (!gathers) return 0;
  gathers = false;
  THD *thd = ha_thd();
  evq_fault fault;
  int code = evq_gathered(cursor, session_at(thd, ht)->queues, thd_get_error_number(thd) != 0, &fault);
  return code ? told(code, fault) : 0;
}

int ha_queue::update_row(const uchar *, const uchar *) {
  my_printf_error(ER_ILLEGAL_HA, "queue: rows of a queue are not changed: take them, and insert others", MYF(0));
  return HA_ERR_WRONG_COMMAND;
}

int ha_queue::delete_row(const uchar *) {
  // Whoever has the row by now removes it or puts it back.
  evq_doom(cursor, session_at(ha_thd(), ht)->queues);
  return 0;
}

int ha_queue::truncate() {
  evq_fault fault;
  int code = evq_truncate(cursor, &fault);
  return code ? told(code, fault) : 0;
}

int ha_queue::rnd_init(bool) {
  THD *thd = ha_thd();
  if (may_copy(thd)) {
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

// What changes no stored row and no name of a column; all else is copied. Whether a row changes is the server's own answer,
// from its own code: where it keeps its flags moves with its minor versions, and a plugin that looks there finds none. It
// would let columns have other names, which conditions would not find.
enum_alter_inplace_result ha_queue::check_if_supported_inplace_alter(TABLE *altered, Alter_inplace_info *info) {
  auto answer = handler::check_if_supported_inplace_alter(altered, info);
  if (answer == HA_ALTER_INPLACE_NOT_SUPPORTED) return answer;
  String before, after;
  describe(table, &before);
  describe(altered, &after);
  return stringcmp(&before, &after) ? HA_ALTER_INPLACE_NOT_SUPPORTED : HA_ALTER_INPLACE_NO_LOCK;
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
int ha_queue::start_stmt(THD *thd, thr_lock_type kind) { return refused_by_log(thd, kind >= TL_FIRST_WRITE); }
