// What a run and a kernel return: 0 or negative, numbers that never change meaning.
// Kernels are printed with them.
#ifndef SVOD_STATUS_H
#define SVOD_STATUS_H

enum SvodStatus {
  SVOD_OK = 0,
  SVOD_BAD_ARGUMENT = -1, // of a kernel too: an input is no picture
  SVOD_MISALIGNED = -2,
  SVOD_ARENA_SMALL = -3,
  SVOD_ABI = -4,           // image of another format version
  SVOD_INDEX = -5,         // a data-dependent index is out of range; of a kernel too
  SVOD_CPU = -6,           // this CPU lacks what was packed
  SVOD_CORRUPT = -7,       // a magic, bound or checksum is wrong
  SVOD_LIMIT = -8,         // the data asks for more than was packed; of a kernel too
  SVOD_NO_WEIGHTS = -9,    // of a library that makes its weights: init was not called
  SVOD_NO_DEVICE = -10,    // of a library for a GPU: there is none that runs it
  SVOD_DEVICE_FAULT = -11, // the GPU's driver refused
};

#endif
