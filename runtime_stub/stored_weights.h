// Weights that are stored in another form than kernels read: where they lie. The packager
// writes the function beside the launch switch. expansion_format.h and zstd_format.h say
// what lies there.
#ifndef SVOD_STORED_WEIGHTS_H
#define SVOD_STORED_WEIGHTS_H

#include "runtime_stub/types.h"

#ifdef __cplusplus
extern "C" {
#endif

void svod_get_stored(const void** data, uint64_t* bytes);

#ifdef __cplusplus
}
#endif

#endif
