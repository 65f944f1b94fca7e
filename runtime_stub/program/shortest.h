// Numbers with as few digits as tell them apart from their neighbours.
#ifndef SVOD_PROGRAM_SHORTEST_H
#define SVOD_PROGRAM_SHORTEST_H

#include "runtime_stub/program/element.h"

namespace packed {

// Element `i` of an array of floats, which is a finite number: read back by anybody who
// rounds to nearest it is the same element.
void print_shortest(Printer& out, const Element& element, const void* data, uint64_t i);

} // namespace packed

#endif
