/* A plugin of QEMU that counts how often each instruction was executed. Its argument
   out=FILE names a file that gets one line "address count" per instruction when the
   program ends.

   Debian ships no header for plugins, so the few functions of the interface (version 1)
   are declared here. Counters are incremented by code that QEMU puts into its
   translations: no call per instruction. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef uint64_t qemu_plugin_id_t;
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };
typedef void translated(qemu_plugin_id_t id, struct qemu_plugin_tb* block);
typedef void ended(qemu_plugin_id_t id, void* data);

extern void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, translated* call);
extern void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, ended* call, void* data);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb* block);
extern struct qemu_plugin_insn*
qemu_plugin_tb_get_insn(const struct qemu_plugin_tb* block, size_t index);
extern uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn* instruction);
extern void
qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn* instruction,
                                           enum qemu_plugin_op op, void* counter,
                                           uint64_t value);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

/* An open hash table of instructions; a code of 16 M instructions is larger than any that
   is measured. Counters must not move, because translations hold their addresses. */
enum { kSlots = 1 << 24 };
static struct Slot {
  uint64_t address, count;
}* slots;
static FILE* out;

static uint64_t* counter_of(uint64_t address) {
  size_t at = (address >> 1) % kSlots;
  while (slots[at].address != 0 && slots[at].address != address) at = (at + 1) % kSlots;
  slots[at].address = address;
  return &slots[at].count;
}

static void on_translated(qemu_plugin_id_t id, struct qemu_plugin_tb* block) {
  (void)id;
  for (size_t i = 0; i < qemu_plugin_tb_n_insns(block); ++i) {
    struct qemu_plugin_insn* instruction = qemu_plugin_tb_get_insn(block, i);
    qemu_plugin_register_vcpu_insn_exec_inline(
        instruction, QEMU_PLUGIN_INLINE_ADD_U64,
        counter_of(qemu_plugin_insn_vaddr(instruction)), 1);
  }
}

static void on_end(qemu_plugin_id_t id, void* data) {
  (void)id, (void)data;
  for (size_t at = 0; at < kSlots; ++at)
    if (slots[at].count != 0)
      fprintf(out, "%llx %llu\n", (unsigned long long)slots[at].address,
              (unsigned long long)slots[at].count);
  fclose(out);
}

__attribute__((visibility("default"))) int
qemu_plugin_install(qemu_plugin_id_t id, const void* info, int argc, char** argv) {
  (void)info;
  for (int i = 0; i < argc; ++i)
    if (strncmp(argv[i], "out=", 4) == 0) out = fopen(argv[i] + 4, "w");
  slots = calloc(kSlots, sizeof *slots);
  if (out == NULL || slots == NULL) return 1;
  qemu_plugin_register_vcpu_tb_trans_cb(id, on_translated);
  qemu_plugin_register_atexit_cb(id, on_end, NULL);
  return 0;
}
