// What the server fills in when it loads the plugin: each names the version that was built against.

#include <service_versions.h>

extern "C" {
void *my_print_error_service = (void *)VERSION_my_print_error;
void *thd_error_context_service = (void *)VERSION_thd_error_context;
void *thd_kill_statement_service = (void *)VERSION_kill_statement;
void *thd_mdl_service = (void *)VERSION_thd_mdl;
void *thd_specifics_service = (void *)VERSION_thd_specifics;
void *thd_wait_service = (void *)VERSION_thd_wait;
}
