// The server's dictionary has the last word on names: what it says of queues, and what the engine does with that.
//
// The engine is called while a statement goes on, the dictionary commits when it ends, and a crash may come between. So
// the engine notes what is under way, by the number that a table keeps under all its names, and asks here afterwards.

#include "dictionary.h"
#include <sql/dd/cache/dictionary_client.h>
#include <sql/dd/types/schema.h>
#include <sql/dd/types/table.h>
#include <sql/error_handler.h>
#include <sql/log.h>
#include <sql/sql_table.h>
#include "names.h"

evq_statement statement_on(Session *session, const dd::Table *table) {
  bool has_number = table && table->id() != dd::INVALID_OBJECT_ID;
  return {session->queues, has_number ? table->id() : 0};
}

using Client = dd::cache::Dictionary_client;

// After a crash the dictionary gives numbers again that nobody has got: another table may have a queue's.
static bool is_queue(const dd::Table *table) { return table && table->engine() == "QUEUE"; }

// A table that ALTER TABLE has made, and that had no number when it did: then its name is known. 1: it is there.
static int look_for_name(Client *client, const char *path) {
  std::string whole = path;
  size_t slash = whole.rfind('/');
  if (slash == std::string::npos || slash == 0) return 0;
  size_t begin = whole.rfind('/', slash - 1);
  begin = begin == std::string::npos ? 0 : begin + 1;
  char schema[NAME_LEN + 1], name[NAME_LEN + 1];
  filename_to_tablename(whole.substr(begin, slash - begin).c_str(), schema, sizeof schema, true, nullptr);
  filename_to_tablename(whole.c_str() + slash + 1, name, sizeof name, true, nullptr);
  const dd::Table *table = nullptr;
  if (client->acquire(schema, name, &table)) return -1;
  return is_queue(table);
}

static int look_for_number(Client *client, dd::Object_id number, char *place, size_t bytes) {
  dd::Table *table = nullptr;
  dd::Schema *schema = nullptr;
  if (client->acquire_uncached(number, &table)) return -1;
  if (!is_queue(table)) return 0;
  if (client->acquire_uncached(table->schema_id(), &schema) || !schema) return -1;
  bool is_hidden = table->hidden() == dd::Abstract_table::HT_HIDDEN_DDL, is_cut = false;
  build_table_filename(place, bytes - 1, schema->name().c_str(), table->name().c_str(), "", is_hidden ? FN_IS_TMP : 0,
                       &is_cut);
  return is_cut ? -1 : 1;
}

// The statement at hand did not ask, and is told in the engine's words.
class Silence {
  THD *thd;
  Dummy_error_handler handler;

 public:
  explicit Silence(THD *thd) : thd(thd) { thd->push_internal_handler(&handler); }
  ~Silence() { thd->pop_internal_handler(); }
};

static int look_up(void *of, uint64_t number, const char *path, char *place, size_t bytes) try {
  THD *thd = (THD *)of;
  Silence silence(thd);
  Client *client = thd->dd_client();
  Client::Auto_releaser releaser(client);
  if (number) return look_for_number(client, number, place, bytes);
  snprintf(place, bytes, "%s", path);
  return look_for_name(client, path);
} catch (...) {
  return -1;
}

bool are_names_known(THD *thd) {
  if (evq_are_names_settled()) return true;
  evq_fault fault;
  int code = evq_settle_names(nullptr, look_up, thd, &fault);
  if (code) told(code, fault);
  return !code;
}

void statement_ends(THD *thd, Session *session) {
  evq_fault fault;
  if (!evq_settle_names(session->queues, look_up, thd, &fault)) return;
  // It is done, or was taken back, as the dictionary has it: whoever asks for a queue next tries again.
  sql_print_error("queue: %s", fault.text);
}
