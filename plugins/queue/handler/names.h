// What the functions of SQL ask a family of servers.
#pragma once

#include <string>

class THD;

// The database that a session is in; empty for none.
std::string current_database(THD *thd);

// May this user take rows of it? The server tells the user if not.
bool may_take(THD *thd, const std::string &db, const std::string &table);

// Where a table is, without a suffix: as the server tells a handler.
std::string path_of(const std::string &db, const std::string &table);

// Why the statement that is prepared cannot wait, with what to do instead; null where it can. At most 500 bytes.
const char *why_not_here(THD *thd);

// Around a wait: a server with a pool of threads may let another one work.
void wait_begins(THD *thd);
void wait_ends(THD *thd);
