// A filter of system calls (seccomp), in the form that the kernel takes it: a program has
// said what it will ask for, and a fault in it, or in what it reads, cannot ask for more.
// No network, no other program, no memory that is executable, and no file written but by
// a run that writes files.
//
// A call is told by its number, of some also one argument, of which the lower half is
// looked at: all of them are small. What is not listed ends the process (SIGSYS). The
// filter holds for the threads that are started after it.
#include "runtime_stub/platform.h"
#include "runtime_stub/syscall_linux.h"

namespace {

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = 0xc000003e;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = 0xc00000b7;
#elif defined(__riscv)
constexpr uint32_t kArchitecture = 0xc00000f3;
#elif defined(__i386__)
constexpr uint32_t kArchitecture = 0x40000003;
#else
constexpr uint32_t kArchitecture = 0x40000028;
#endif

// An instruction of the classic Berkeley packet filter.
struct Instruction {
  uint16_t code;
  uint8_t skip_if, skip_else;
  uint32_t value;
};

struct Filter {
  uint16_t count;
  const Instruction* instructions;
};

// Of what the kernel tells of a call: its number, the architecture, the arguments.
constexpr uint32_t kNumber = 0, kArch = 4, kArguments = 16;
constexpr uint32_t kAllow = 0x7fff0000, kKill = 0x80000000;

constexpr Instruction load(uint32_t offset) { return {0x20, 0, 0, offset}; }
constexpr Instruction argument(uint32_t i) { return load(kArguments + 8 * i); }
constexpr Instruction end(uint32_t how) { return {0x06, 0, 0, how}; }
// So many of the next instructions are skipped: unless the value is this one, where it
// is, or where it has one of the bits.
constexpr Instruction is(uint32_t value, uint8_t otherwise = 1) {
  return {0x15, 0, otherwise, value};
}
constexpr Instruction is_no(uint32_t value) { return {0x15, 1, 0, value}; }
constexpr Instruction has_no(uint32_t bits, uint8_t otherwise = 1) {
  return {0x45, otherwise, 0, bits};
}

// Copies what is loaded, which nobody reads. A kernel that could foresee a filter's
// answers would do so for each of its calls when the filter is set, which is most of the
// 40 us that this takes (Linux 6.18); programs make too few calls to earn that.
constexpr Instruction kUnforeseen{0x07, 0, 0, 0};

constexpr uint32_t kPromise = SVOD_NUMBER(157, 167, 172, 172); // prctl
constexpr uint32_t kSeccomp = SVOD_NUMBER(317, 277, 383, 354);
constexpr uint32_t kClone = SVOD_NUMBER(56, 220, 120, 120);
constexpr uint32_t kExit = SVOD_NUMBER(60, 93, 1, 1);
// What the kernel makes of a wait that was interrupted by a stop.
constexpr uint32_t kRestart = SVOD_NUMBER(219, 128, 0, 0);
constexpr uint32_t kExecutable = 4; // PROT_EXEC
// No call has this number.
constexpr uint32_t kNone = 0xffffffff;

} // namespace

void svod_keep_to_own_calls(uint32_t writes) {
  const uint32_t folder = writes != 0 ? uint32_t{SVOD_CALL_MKDIRAT} : kNone;
  const uint32_t write_flags = writes != 0 ? SVOD_OPEN_FLAGS_WRITE : SVOD_OPEN_FLAGS_READ;
  // clang-format off
  const Instruction instructions[] = {
      kUnforeseen, load(kArch), is_no(kArchitecture), end(kKill),
      load(kNumber),
      is(SVOD_CALL_CLOCK_GETTIME), end(kAllow),
      is(SVOD_CALL_FUTEX), end(kAllow),
      is(SVOD_CALL_READ), end(kAllow),
      is(SVOD_CALL_WRITE), end(kAllow),
      is(SVOD_CALL_CLOSE), end(kAllow),
      is(SVOD_CALL_MUNMAP), end(kAllow),
      is(SVOD_CALL_MADVISE), end(kAllow),
      is(SVOD_CALL_STATX), end(kAllow),
      is(SVOD_CALL_READLINKAT), end(kAllow),
      is(SVOD_CALL_GETDENTS64), end(kAllow),
      is(SVOD_CALL_SCHED_GETAFFINITY), end(kAllow),
      is(SVOD_CALL_EXIT_GROUP), end(kAllow),
      is(kExit), end(kAllow),
      is(kRestart), end(kAllow),
      is(folder), end(kAllow),
      // Behind an argument the number is no longer at hand, so each of these ends here.
      is(SVOD_CALL_MMAP, 4), argument(2), has_no(kExecutable), end(kAllow), end(kKill),
      is(kClone, 4), argument(0), is(SVOD_THREAD_FLAGS), end(kAllow), end(kKill),
#if defined(__x86_64__)
      is(SVOD_CALL_ARCH_PRCTL, 4), argument(0), is(SVOD_REQUEST_STATE), end(kAllow),
      end(kKill),
#endif
      is(SVOD_CALL_OPENAT, 5), argument(2), is(SVOD_OPEN_FLAGS_READ), end(kAllow),
      is(write_flags), end(kAllow),
      end(kKill)};
  // clang-format on
  const Filter filter = {sizeof(instructions) / sizeof(Instruction), instructions};
  constexpr uintptr_t kNoNewPrivileges = 38, kModeFilter = 1;
  // Without it kernels before 5.16 slow down all that a filtered process computes.
  constexpr uintptr_t kSpeculationAllowed = 4;
  // A kernel, or an emulator, that knows no filters runs the program without one.
  svod_syscall(static_cast<SvodCall>(kPromise), kNoNewPrivileges, 1);
  svod_syscall(static_cast<SvodCall>(kSeccomp), kModeFilter, kSpeculationAllowed,
               reinterpret_cast<uintptr_t>(&filter));
}
