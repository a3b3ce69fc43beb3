// ENGINE=QUEUE for MySQL: tables as the server sees them.
#pragma once

#include <my_sys.h>
#include <mysqld_error.h>
#include <sql/current_thd.h>
#include <sql/field.h>
#include <sql/handler.h>
#include <sql/sql_class.h>
#include <sql/table.h>
#include <vector>
#include "../handler/sessions.h"

// What functions of SQL answer; MariaDB's name for it.
using my_bool = bool;

// Tells the user what went wrong.
int told(int code, const evq_fault &fault);

// Whether a table of the server is a queue.
bool is_of_queues(const handler *file);

class ha_queue final : public handler {
  evq_cursor *cursor = nullptr;
  std::vector<uchar> packed;
  bool gathers = false;
  // The statement changes this table.
  bool writes = false;

  int put_row(uchar *record);
  size_t longest(const uchar *record) const;

 public:
  ha_queue(handlerton *hton, TABLE_SHARE *share) : handler(hton, share) { ref_length = sizeof(uint64_t); }

  const char *table_type() const override { return "QUEUE"; }
  // Neither kind of binary log is said to be possible: nothing is logged.
  Table_flags table_flags() const override {
    return HA_NO_TRANSACTIONS | HA_NO_AUTO_INCREMENT | HA_CAN_GEOMETRY | HA_FAST_KEY_READ | HA_NULL_IN_KEY;
  }
  ulong index_flags(uint, uint, bool) const override { return 0; }
  uint max_supported_keys() const override { return 0; }
  uint max_supported_record_length() const override { return HA_MAX_REC_LENGTH; }
  enum_alter_inplace_result check_if_supported_inplace_alter(TABLE *, Alter_inplace_info *info) override;

  int open(const char *name, int mode, uint test_if_locked, const dd::Table *) override;
  int close() override;
  int create(const char *name, TABLE *form, HA_CREATE_INFO *info, dd::Table *) override;
  int delete_table(const char *name, const dd::Table *) override;
  int rename_table(const char *from, const char *to, const dd::Table *, dd::Table *) override;

  void start_bulk_insert(ha_rows rows) override;
  int end_bulk_insert() override;
  int write_row(uchar *record) override;
  int update_row(const uchar *, uchar *) override;
  int delete_row(const uchar *record) override;
  int truncate(dd::Table *) override;
  int optimize(THD *, HA_CHECK_OPT *) override;
  int check(THD *thd, HA_CHECK_OPT *) override;
  int disable_indexes(uint mode) override;
  int enable_indexes(uint mode) override;

  int rnd_init(bool scan) override;
  int rnd_next(uchar *record) override;
  int rnd_pos(uchar *record, uchar *position) override;
  void position(const uchar *record) override;
  int info(uint what) override;

  int external_lock(THD *thd, int kind) override;
  int start_stmt(THD *thd, thr_lock_type kind) override;
  // Rows are whole and owned by one: there is nothing for the server to lock.
  uint lock_count() const override { return 0; }
  THR_LOCK_DATA **store_lock(THD *, THR_LOCK_DATA **to, enum thr_lock_type) override { return to; }
};
