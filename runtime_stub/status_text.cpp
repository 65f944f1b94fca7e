// Of firmware: one copy in a program, however many models it holds.
#include "runtime_stub/status_text.h"
#include "runtime_stub/firmware.h"

extern "C" __attribute__((weak)) const char* svod_status_text(int status) {
  return svod_text_of_status(status);
}
