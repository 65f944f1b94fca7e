// What a status means, in words; 0 is the first row. An array of arrays: pointers would
// need relocation.
#ifndef SVOD_STATUS_TEXT_H
#define SVOD_STATUS_TEXT_H

#include "runtime_stub/status.h"

inline const char* svod_text_of_status(int status) {
  static constexpr char kText[][32] = {
      "ok",
      "null, or not the packed value",
      "a pointer is not aligned",
      "the arena is too small",
      "header and library do not match",
      "an index is out of range",
      "this CPU lacks what was packed",
      "the library is damaged",
      "the data exceeds a limit",
#if defined(SVOD_MAKES_WEIGHTS) || defined(SVOD_DEVICE)
      // No other packages return these.
      "init made no weights",
      "no GPU runs this",
      "the GPU's driver refuses",
#endif
      "unknown status",
  };
  constexpr int kCount = sizeof(kText) / sizeof(kText[0]) - 1;
  const bool known = status <= 0 && status > -kCount;
  return kText[known ? -status : kCount];
}

#endif
