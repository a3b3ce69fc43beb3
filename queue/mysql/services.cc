// What the server fills in when it loads the plugin: each names the version that was built against.

#include <service_versions.h>

extern "C" {
void *my_plugin_log_service = (void *)VERSION_my_plugin_log;
void *mysql_malloc_service = (void *)VERSION_mysql_malloc;
}
