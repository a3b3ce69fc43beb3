// What is thrown in here ends here: the server has no frames that it could pass.
#pragma once

#include <exception>
#include <new>

// Within a catch: tells the user what it was.
inline void tell_what_was_thrown() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc &) {
    my_printf_error(ER_OUT_OF_RESOURCES, "queue: out of memory", MYF(0));
  } catch (const std::exception &error) {
    my_printf_error(ER_UNKNOWN_ERROR, "queue: a defect of the handler: %s", MYF(0), error.what());
  } catch (...) {
    my_printf_error(ER_UNKNOWN_ERROR, "queue: a defect of the handler", MYF(0));
  }
}
