// ENGINE=QUEUE for MariaDB: tables as the server sees them.
#pragma once

#define MYSQL_SERVER 1
#include <my_global.h>
#include <sql_class.h>
#include <handler.h>
#include <table.h>
#include <field.h>
#include "../handler/sessions.h"

// Tells the user what went wrong.
int told(int code, const evq_fault &fault);

// From MariaDB 11.2 on the server copies a table while others insert into it, and then repeats what they did. A queue's rows
// have an owner and an id, which such a repetition does not know: those who insert wait, as before 11.2.
#ifdef HA_NO_ONLINE_ALTER
constexpr ulonglong COPIES_ALONE = HA_NO_ONLINE_ALTER;
#else
constexpr ulonglong COPIES_ALONE = 0;
#endif

class ha_queue final : public handler {
  evq_cursor *cursor = nullptr;
  String packed;
  bool gathers = false;
  // The statement changes this table.
  bool writes = false;

  int put_row(uchar *record);
  size_t longest(const uchar *record) const;

 public:
  ha_queue(handlerton *hton, TABLE_SHARE *share) : handler(hton, share) { ref_length = sizeof(uint64_t); }

  Table_flags table_flags() const override {
    return HA_NO_TRANSACTIONS | HA_NO_AUTO_INCREMENT | HA_REC_NOT_IN_SEQ | HA_CAN_GEOMETRY |
           HA_FAST_KEY_READ | HA_NULL_IN_KEY | COPIES_ALONE;
  }
  ulong index_flags(uint, uint, bool) const override { return 0; }
  uint max_supported_keys() const override { return 0; }
  uint max_supported_record_length() const override { return HA_MAX_REC_LENGTH; }

  int open(const char *name, int mode, uint test_if_locked) override;
  int close() override;
  int create(const char *name, TABLE *form, HA_CREATE_INFO *info) override;
  int delete_table(const char *name) override;
  int rename_table(const char *from, const char *to) override;

  void start_bulk_insert(ha_rows rows, uint flags) override;
  int end_bulk_insert() override;
  int write_row(const uchar *record) override;
  int update_row(const uchar *, const uchar *) override;
  int delete_row(const uchar *record) override;
  int truncate() override;

  int rnd_init(bool scan) override;
  int rnd_next(uchar *record) override;
  int rnd_pos(uchar *record, uchar *position) override;
  void position(const uchar *record) override;
  int info(uint what) override;
  int optimize(THD *thd, HA_CHECK_OPT *) override;
  int check(THD *thd, HA_CHECK_OPT *) override;
  // Of the server's other options none touches a stored row.
  bool check_if_incompatible_data(HA_CREATE_INFO *, uint) override { return COMPATIBLE_DATA_YES; }
  enum_alter_inplace_result check_if_supported_inplace_alter(TABLE *altered, Alter_inplace_info *info) override;

  int external_lock(THD *thd, int kind) override;
  int start_stmt(THD *thd, thr_lock_type kind) override;
  // Rows are whole and owned by one: there is nothing for the server to lock.
  uint lock_count() const override { return 0; }
  THR_LOCK_DATA **store_lock(THD *, THR_LOCK_DATA **to, enum thr_lock_type) override { return to; }
};
