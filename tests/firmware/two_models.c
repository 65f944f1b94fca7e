/* Firmware of two models, one of which may be in it as an object and one as an archive.
   It is linked and looked at, not run. */
#include "libone.h"
#include "libtwo.h"

void reset(void);
__attribute__((section(".vectors"), used)) static const void* const vectors[] = {
    (const void*)reset};
uint32_t data_start, data_end, bss_start, bss_end;
static const char* volatile text;

static _Alignas(ONE_ARENA_ALIGN) unsigned char one_arena[ONE_ARENA_BYTES + 1];
static _Alignas(TWO_ARENA_ALIGN) unsigned char two_arena[TWO_ARENA_BYTES + 1];
static _Alignas(16) unsigned char tensors[65536];

void reset(void) {
  const void* inputs[] = {tensors, tensors};
  void* outputs[] = {tensors, tensors};
  text = one_status_text(one_run(one_arena, inputs, outputs));
  text = two_status_text(two_run(two_arena, inputs, outputs));
  for (;;) {
  }
}
