// What a packed executable asks of its operating system, and no more. platform_linux.cpp
// does it with system calls for x86-64, aarch64, armv7 and riscv64, without a C library;
// start_linux.cpp holds _start, which relocates the program and calls svod_main. A
// library uses nothing of this file but the memory functions, which compiled code calls
// on its own.
//
// Everything here exists:
//   files    svod_open, svod_read, svod_read_some, svod_write, svod_close, svod_stat,
//            svod_stat_path, svod_map_file, svod_unmap, svod_read_folder,
//            svod_make_folder
//   memory   svod_allocate (whole pages, zeroed), svod_want_large_pages; memcpy,
//            memmove, memset, memcmp
//   process  svod_main (yours), svod_exit, svod_program_path, svod_keep_to_own_calls
//            (filter_linux.cpp)
//   time     svod_now (monotonic nanoseconds)
//   threads  svod_cpu_count, svod_thread_start, svod_thread_join, svod_futex_wait,
//            svod_futex_wake; see pool.h
// Calls that fail return the negative errno of Linux.
#ifndef SVOD_PLATFORM_H
#define SVOD_PLATFORM_H

#include "runtime_stub/types.h"

enum SvodOpen {
  SVOD_OPEN_READ = 0,
  SVOD_OPEN_WRITE = 1, // created (mode 0666 less the umask) or cut to nothing
};

enum SvodErrno {
  SVOD_ENOENT = 2,
  SVOD_EINTR = 4,
  SVOD_EACCES = 13,
  SVOD_EEXIST = 17,
  SVOD_ENOTDIR = 20,
  SVOD_EISDIR = 21,
  SVOD_ENAMETOOLONG = 36,
};

struct SvodFileInfo {
  uint64_t bytes;
  uint32_t is_directory;
  uint32_t is_regular;
  uint64_t number, device; // both are equal: it is the same file
};

// What svod_read_folder gives, one after the other; `bytes` leads to the next.
struct SvodFolderEntry {
  uint64_t unused[2];
  uint16_t bytes;
  uint8_t kind;
  char name[5]; // terminated; as long as it is
};

#ifdef __cplusplus
extern "C" {
#endif

// Written by the program: argv and envp end with null, the result is the exit code.
int32_t svod_main(int32_t argc, char** argv, char** envp);

[[noreturn]] void svod_exit(int32_t code); // ends all threads
// The file that runs, terminated. Its length, or a negative errno.
int64_t svod_program_path(char* path, uint64_t room);
// From here on any system call that none of these functions makes ends the process; files
// are written, and folders made, only where `writes` is not 0. Before threads are
// started.
void svod_keep_to_own_calls(uint32_t writes);

// A descriptor. 0, 1, 2 are standard input, output and error.
int32_t svod_open(const char* path, uint32_t how);
// Bytes moved: fewer than asked only at the end of the file (both go on after EINTR and
// short transfers), or a negative errno.
int64_t svod_read(int32_t file, void* data, uint64_t bytes);
int64_t svod_write(int32_t file, const void* data, uint64_t bytes);
// What there is, as soon as there is something; 0: the end.
int64_t svod_read_some(int32_t file, void* data, uint64_t bytes);
// Entries of an open folder, as many as there is room for; 0: there are no more.
int64_t svod_read_folder(int32_t file, struct SvodFolderEntry* entries, uint64_t bytes);
int32_t svod_make_folder(const char* path); // mode 0777 less the umask
int32_t svod_close(int32_t file);
// Of an open file, or of a path. 0 or a negative errno.
int32_t svod_stat(int32_t file, struct SvodFileInfo* info);
int32_t svod_stat_path(const char* path, struct SvodFileInfo* info);
// The first `bytes` of a file, read only, in place. Null when it fails.
const void* svod_map_file(int32_t file, uint64_t bytes);
// Zeroed memory of whole pages, aligned to a page. Null when there is none.
void* svod_allocate(uint64_t bytes);
void svod_unmap(const void* data, uint64_t bytes);
// Memory from svod_allocate that will all be used: pages as large as there are.
void svod_want_large_pages(void* data, uint64_t bytes);

uint64_t svod_now(void); // nanoseconds since some moment, never going back

uint32_t svod_cpu_count(void); // CPUs that this process may use, at least 1
// Runs entry(argument) on a new thread whose stack is `stack_bytes` at `stack`. `alive`
// is not 0 until the thread has ended and its stack is free. 0 or a negative errno.
int32_t svod_thread_start(void (*entry)(void*), void* argument, void* stack,
                          uint64_t stack_bytes, uint32_t* alive);
void svod_thread_join(const uint32_t* alive); // returns when that thread has ended
void svod_futex_wait(const uint32_t* word, uint32_t expected); // may wake without cause
void svod_futex_wake(const uint32_t* word, uint32_t waiters);

void* memcpy(void* to, const void* from, size_t bytes);
void* memmove(void* to, const void* from, size_t bytes);
void* memset(void* to, int value, size_t bytes);
int memcmp(const void* a, const void* b, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
