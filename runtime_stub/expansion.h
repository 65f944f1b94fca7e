// Makes weights of what --weights=expand stores. Programs and libraries do it when they
// start; the packager tries each job with the same code.
#ifndef SVOD_EXPANSION_H
#define SVOD_EXPANSION_H

#include "runtime_stub/expansion_format.h"

#ifdef __cplusplus
extern "C" {
#endif

// Whether tables and sizes of what is stored agree: SVOD_OK or SVOD_CORRUPT. `data` is
// aligned to eight bytes.
int32_t svod_check_expansion(const void* data, uint64_t bytes, uint64_t weight_bytes);

// Which entries read what a job makes: one bit each.
uint64_t svod_expansion_entries(const void* data, uint32_t job);

// Does job number `job` of data that was checked. `weights` is weight_bytes long, zeros
// where nothing was written yet; `room` is room_bytes long. SVOD_CORRUPT: a step reads or
// writes beyond what is there, and was not done.
int32_t svod_expand(const void* data, uint64_t bytes, uint32_t job, uint8_t* weights,
                    uint8_t* room);

#ifdef __cplusplus
}
#endif

#endif
