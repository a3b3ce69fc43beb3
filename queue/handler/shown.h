// What the engine says of itself where users ask their server.
#pragma once

#include "ha_queue.h"
#include <mutex>

// SHOW ENGINE QUEUE STATUS. True: it failed, and the user was told.
inline bool show_status(handlerton *, THD *thd, stat_print_fn *print, enum ha_stat_type kind) {
  if (kind != HA_ENGINE_STATUS) return false;
  struct Asked {
    THD *thd;
    stat_print_fn *print;
    bool failed;
  } asked = {thd, print, false};
  auto each = [](void *of, const uint8_t *text, size_t bytes) {
    auto *asked = (Asked *)of;
    asked->failed = asked->print(asked->thd, "QUEUE", 5, "", 0, (const char *)text, bytes);
  };
  evq_fault fault;
  int code = evq_status(each, &asked, &fault);
  if (code) told(code, fault);
  return code || asked.failed;
}

// Filled whenever somebody asks; each number is one word.
inline evq_stats totals;
inline double per_write;

inline void count_totals() {
  static std::mutex one;
  std::lock_guard<std::mutex> guard(one);
  evq_fault fault;
  // Nothing of it is known before the engine has started.
  if (evq_totals(&totals, &fault)) totals = {};
  per_write = totals.groups ? (double)totals.requests / totals.groups : 0;
}

// The numbers of SHOW GLOBAL STATUS LIKE 'queue%', where NUMBER says how a server is told of one.
#define TOTALS(NUMBER)                                                                                                \
  NUMBER("rows", rows), NUMBER("rows_owned", owned), NUMBER("waiters", waiters), NUMBER("rows_written", appended),    \
      NUMBER("rows_removed", removed), NUMBER("wait_immediate", waits_at_once), NUMBER("wait_delayed", waits_later),  \
      NUMBER("wait_timeout", waits_timed_out), NUMBER("restored_by_abort", back_by_abort),                            \
      NUMBER("restored_by_close", back_by_close), NUMBER("bytes", bytes), NUMBER("bytes_removed", dead_bytes),        \
      NUMBER("memory", memory), NUMBER("writes", groups), NUMBER("syncs", syncs)
