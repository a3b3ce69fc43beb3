// What statements do to names of queues, and when it holds: when the server's dictionary has it.
#pragma once

#include "ha_queue.h"

// A statement of this session as the engine is told of it, which works on a table.
evq_statement statement_on(Session *session, const dd::Table *table);

// After a statement has ended, however.
void statement_ends(THD *thd, Session *session);
