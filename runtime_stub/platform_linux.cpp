// platform.h by system calls: files, memory, time and threads for an executable without a
// C library. A thread is a bare clone that shares everything; it has no thread-local
// storage, which nothing here uses.
#include "runtime_stub/platform.h"
#include "runtime_stub/syscall_linux.h"

namespace {

constexpr intptr_t kHere = -100; // AT_FDCWD

uintptr_t number(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

// The part of struct statx that is read; its layout is the same everywhere.
struct Statx {
  uint32_t unused1[7];
  uint16_t mode;
  uint16_t unused2;
  uint64_t number;
  uint64_t size;
  uint64_t unused3[11];
  uint64_t device; // its major and minor number
  uint64_t unused4[14];
};
static_assert(sizeof(Statx) == 256);

int32_t stat_at(int32_t folder, const char* path, uintptr_t flags, SvodFileInfo* info) {
  constexpr uintptr_t kWanted = 0x001 | 0x100 | 0x200; // type, number, size
  Statx found;
  intptr_t status =
      svod_syscall(SVOD_CALL_STATX, static_cast<uintptr_t>(intptr_t{folder}),
                   number(path), flags, kWanted, number(&found));
  if (status < 0) return static_cast<int32_t>(status);
  uint32_t type = found.mode & 0170000;
  *info = {found.size, type == 0040000, type == 0100000, found.number, found.device};
  return 0;
}

void* map(uint64_t bytes, uintptr_t protection, uintptr_t flags, intptr_t file) {
  if (bytes > ~uintptr_t{0} / 2) return nullptr;
  intptr_t address = svod_syscall(SVOD_CALL_MMAP, 0, static_cast<uintptr_t>(bytes),
                                  protection, flags, static_cast<uintptr_t>(file), 0);
  // Errors are the last page of the address space; a mapping may lie anywhere else.
  if (static_cast<uintptr_t>(address) > static_cast<uintptr_t>(-4096)) return nullptr;
  return reinterpret_cast<void*>(address);
}

// Moves all of the bytes unless the file ends or fails first.
int64_t transfer(SvodCall call, int32_t file, uintptr_t data, uint64_t bytes) {
  constexpr uint64_t kMost = 1u << 30; // per call
  uint64_t done = 0;
  while (done < bytes) {
    uint64_t part = bytes - done < kMost ? bytes - done : kMost;
    intptr_t moved =
        svod_syscall(call, static_cast<uintptr_t>(file),
                     data + static_cast<uintptr_t>(done), static_cast<uintptr_t>(part));
    if (moved == -SVOD_EINTR) continue;
    if (moved < 0) return moved;
    if (moved == 0) break;
    done += static_cast<uint64_t>(moved);
  }
  return static_cast<int64_t>(done);
}

} // namespace

void svod_exit(int32_t code) {
  for (;;) svod_syscall(SVOD_CALL_EXIT_GROUP, static_cast<uintptr_t>(code));
}

int64_t svod_program_path(char* path, uint64_t room) {
  intptr_t size =
      svod_syscall(SVOD_CALL_READLINKAT, static_cast<uintptr_t>(kHere),
                   number("/proc/self/exe"), number(path), static_cast<uintptr_t>(room));
  if (size < 0) return size;
  constexpr intptr_t kNameTooLong = 36;
  if (static_cast<uint64_t>(size) >= room) return -kNameTooLong;
  path[size] = 0;
  return size;
}

int32_t svod_open(const char* path, uint32_t how) {
  const uintptr_t flags =
      how == SVOD_OPEN_WRITE ? SVOD_OPEN_FLAGS_WRITE : SVOD_OPEN_FLAGS_READ;
  intptr_t file;
  do {
    file = svod_syscall(SVOD_CALL_OPENAT, static_cast<uintptr_t>(kHere), number(path),
                        flags, 0666);
  } while (file == -SVOD_EINTR);
  return static_cast<int32_t>(file);
}

int64_t svod_read(int32_t file, void* data, uint64_t bytes) {
  return transfer(SVOD_CALL_READ, file, number(data), bytes);
}

int64_t svod_write(int32_t file, const void* data, uint64_t bytes) {
  return transfer(SVOD_CALL_WRITE, file, number(data), bytes);
}

int64_t svod_read_some(int32_t file, void* data, uint64_t bytes) {
  intptr_t got;
  do {
    got = svod_syscall(SVOD_CALL_READ, static_cast<uintptr_t>(file), number(data),
                       static_cast<uintptr_t>(bytes));
  } while (got == -SVOD_EINTR);
  return got;
}

int64_t svod_read_folder(int32_t file, SvodFolderEntry* entries, uint64_t bytes) {
  return svod_syscall(SVOD_CALL_GETDENTS64, static_cast<uintptr_t>(file), number(entries),
                      static_cast<uintptr_t>(bytes));
}

int32_t svod_make_folder(const char* path) {
  return static_cast<int32_t>(
      svod_syscall(SVOD_CALL_MKDIRAT, static_cast<uintptr_t>(kHere), number(path), 0777));
}

int32_t svod_close(int32_t file) {
  return static_cast<int32_t>(
      svod_syscall(SVOD_CALL_CLOSE, static_cast<uintptr_t>(file)));
}

int32_t svod_stat(int32_t file, SvodFileInfo* info) {
  constexpr uintptr_t kEmptyPath = 0x1000; // AT_EMPTY_PATH: the open file itself
  return stat_at(file, "", kEmptyPath, info);
}

int32_t svod_stat_path(const char* path, SvodFileInfo* info) {
  return stat_at(kHere, path, 0, info);
}

const void* svod_map_file(int32_t file, uint64_t bytes) {
  constexpr uintptr_t kRead = 1, kPrivate = 2;
  return map(bytes, kRead, kPrivate, file);
}

void* svod_allocate(uint64_t bytes) {
  constexpr uintptr_t kReadWrite = 3, kPrivateAnonymous = 0x22;
  return map(bytes, kReadWrite, kPrivateAnonymous, -1);
}

void svod_unmap(const void* data, uint64_t bytes) {
  svod_syscall(SVOD_CALL_MUNMAP, number(data), static_cast<uintptr_t>(bytes));
}

void svod_want_large_pages(void* data, uint64_t bytes) {
  constexpr uint64_t kLargePage = 2 << 20;
  constexpr uintptr_t kHugePage = 14; // MADV_HUGEPAGE; a wish, so no error
  if (bytes < kLargePage) return;
  svod_syscall(SVOD_CALL_MADVISE, number(data), static_cast<uintptr_t>(bytes), kHugePage);
}

uint64_t svod_now(void) {
  constexpr uintptr_t kMonotonic = 1;
  struct {
    intptr_t seconds, nanoseconds;
  } now = {0, 0};
  svod_syscall(SVOD_CALL_CLOCK_GETTIME, kMonotonic, number(&now));
  return static_cast<uint64_t>(now.seconds) * 1000000000u +
         static_cast<uint64_t>(now.nanoseconds);
}

uint32_t svod_cpu_count(void) {
  uint8_t mask[1024];
  intptr_t bytes =
      svod_syscall(SVOD_CALL_SCHED_GETAFFINITY, 0, sizeof(mask), number(mask));
  uint32_t count = 0;
  for (intptr_t i = 0; i < bytes; i++) {
    for (uint32_t bits = mask[i]; bits != 0; bits &= bits - 1) count++;
  }
  return count == 0 ? 1 : count;
}

void svod_futex_wait(const uint32_t* word, uint32_t expected) {
  constexpr uintptr_t kWaitPrivate = 0 | 128;
  svod_syscall(SVOD_CALL_FUTEX, number(word), kWaitPrivate, expected);
}

void svod_futex_wake(const uint32_t* word, uint32_t waiters) {
  constexpr uintptr_t kWakePrivate = 1 | 128;
  svod_syscall(SVOD_CALL_FUTEX, number(word), kWakePrivate, waiters);
}

// svod_clone(flags, stack, alive): the new thread finds its function and argument on its
// stack, calls it and ends.
extern "C" intptr_t svod_clone(uintptr_t flags, void* stack, uint32_t* alive);

#if defined(__x86_64__)
__asm__(R"(
  .text
  .globl svod_clone
  .hidden svod_clone
  .type svod_clone, @function
svod_clone:
  movq %rdx, %r10
  xorl %edx, %edx
  xorl %r8d, %r8d
  movl $56, %eax
  syscall
  testq %rax, %rax
  jz 1f
  ret
1:
  xorl %ebp, %ebp
  popq %rax
  popq %rdi
  callq *%rax
  xorl %edi, %edi
  movl $60, %eax
  syscall
  .size svod_clone, . - svod_clone
)");
#elif defined(__aarch64__)
__asm__(R"(
  .text
  .globl svod_clone
  .hidden svod_clone
  .type svod_clone, %function
svod_clone:
  mov x4, x2
  mov x2, #0
  mov x3, #0
  mov x8, #220
  svc #0
  cbz x0, 1f
  ret
1:
  mov x29, #0
  ldp x1, x0, [sp], #16
  blr x1
  mov x0, #0
  mov x8, #93
  svc #0
  .size svod_clone, . - svod_clone
)");
#elif defined(__i386__)
__asm__(R"(
  .text
  .globl svod_clone
  .hidden svod_clone
  .type svod_clone, @function
svod_clone:
  pushl %ebx
  pushl %esi
  pushl %edi
  movl 16(%esp), %ebx
  movl 20(%esp), %ecx
  movl 24(%esp), %edi
  xorl %edx, %edx
  xorl %esi, %esi
  movl $120, %eax
  int $0x80
  testl %eax, %eax
  jz 1f
  popl %edi
  popl %esi
  popl %ebx
  ret
1:
  xorl %ebp, %ebp
  movl (%esp), %eax
  movl 4(%esp), %ecx
  movl %ecx, (%esp)
  call *%eax
  xorl %ebx, %ebx
  movl $1, %eax
  int $0x80
  .size svod_clone, . - svod_clone
)");
#elif defined(__riscv)
__asm__(R"(
  .text
  .globl svod_clone
  .hidden svod_clone
  .type svod_clone, @function
svod_clone:
  mv a4, a2
  li a2, 0
  li a3, 0
  li a7, 220
  ecall
  beqz a0, 1f
  ret
1:
  ld a1, 0(sp)
  ld a0, 8(sp)
  addi sp, sp, 16
  jalr a1
  li a0, 0
  li a7, 93
  ecall
  .size svod_clone, . - svod_clone
)");
#else
__asm__(R"(
  .text
  .arm
  .p2align 2
  .globl svod_clone
  .hidden svod_clone
  .type svod_clone, %function
svod_clone:
  push {r4, r7}
  mov r4, r2
  mov r2, #0
  mov r3, #0
  mov r7, #120
  svc #0
  cmp r0, #0
  beq 1f
  pop {r4, r7}
  bx lr
1:
  ldr r1, [sp]
  ldr r0, [sp, #4]
  add sp, sp, #16
  blx r1
  mov r0, #0
  mov r7, #1
  svc #0
  .size svod_clone, . - svod_clone
)");
#endif

int32_t svod_thread_start(void (*entry)(void*), void* argument, void* stack,
                          uint64_t stack_bytes, uint32_t* alive) {
  uintptr_t end = number(stack) + static_cast<uintptr_t>(stack_bytes);
  uintptr_t* top = reinterpret_cast<uintptr_t*>((end & ~uintptr_t{15}) - 16);
  top[0] = reinterpret_cast<uintptr_t>(entry);
  top[1] = number(argument);
  __atomic_store_n(alive, 1u, __ATOMIC_RELEASE);
  intptr_t status = svod_clone(SVOD_THREAD_FLAGS, top, alive);
  if (status >= 0) return 0;
  __atomic_store_n(alive, 0u, __ATOMIC_RELEASE);
  return static_cast<int32_t>(status);
}

void svod_thread_join(const uint32_t* alive) {
  // The kernel wakes this word as a futex that processes may share.
  constexpr uintptr_t kWaitShared = 0;
  for (;;) {
    uint32_t word = __atomic_load_n(alive, __ATOMIC_ACQUIRE);
    if (word == 0) return;
    svod_syscall(SVOD_CALL_FUTEX, number(alive), kWaitShared, word);
  }
}
