// Two steps are enough for all that makes weights larger: a copy by strides, with room
// where bounds say so, and a sum of products over a few terms (a transform of Winograd's
// or Strassen's). Sums are added in f64 like the packer's, so that a weight has the bits
// of one that was packed as it is.
//
// A sum is taken for up to kBlock results at once, whose accumulators stay in the first
// cache: each term is then one loop over the row, which vectors fit. Of resnet18's
// weights that takes a tenth of the time of a loop over the three terms of each result.
//
// Whoever changed a byte of the tables cannot make a step leave its memory: each step is
// checked before it begins, or with each row where limits decide what is read.
#include "runtime_stub/expansion.h"

#include "runtime_stub/checksum.h"
#include "runtime_stub/status.h"

namespace {

constexpr int64_t kMostNumber = int64_t{1} << 31, kMostElements = int64_t{1} << 40;
constexpr int64_t kBlock = 256;

struct Tables {
  const SvodExpansionHeader* header;
  const SvodExpansionJob* jobs;
  const SvodExpansionStep* steps;
  const int64_t* numbers;
};

Tables tables_of(const void* data) {
  Tables out;
  out.header = static_cast<const SvodExpansionHeader*>(data);
  out.jobs = reinterpret_cast<const SvodExpansionJob*>(out.header + 1);
  out.steps = reinterpret_cast<const SvodExpansionStep*>(out.jobs + out.header->jobs);
  out.numbers = reinterpret_cast<const int64_t*>(out.steps + out.header->steps);
  return out;
}

uint64_t bytes_of_tables(const SvodExpansionHeader& header) {
  return header.jobs * uint64_t{sizeof(SvodExpansionJob)} +
         header.steps * uint64_t{sizeof(SvodExpansionStep)} +
         header.numbers * uint64_t{sizeof(int64_t)};
}

// Elements that an operand may reach, from the one at position 0.
struct Reach {
  int64_t low = 0, high = 0;
  bool add(int64_t extent, int64_t stride) {
    if (extent < 1 || extent > kMostNumber || stride > kMostNumber ||
        stride < -kMostNumber)
      return false;
    const int64_t far = (extent - 1) * stride;
    (far < 0 ? low : high) += far;
    return low > -kMostElements && high < kMostElements;
  }
};

// A step with its memory.
struct Work {
  const SvodExpansionStep* step;
  const int64_t* numbers;
  uint8_t* result;
  const uint8_t *a, *b;
  Reach readable; // of a, in elements: what a copy with limits may read
};

// Of a copy.
const int64_t* limit_of(const Work& work, uint32_t i) {
  const uint32_t axes = work.step->axes;
  return work.numbers + 1 + 2 * axes + uint64_t{i} * (3 + axes);
}

struct Memory {
  const uint8_t* begin;
  uint64_t bytes;
};

class Job {
public:
  Job(const void* data, uint64_t bytes, uint8_t* weights, uint8_t* room)
      : tables_(tables_of(data)),
        places_{{static_cast<const uint8_t*>(data) + tables_.header->tensors,
                 bytes - tables_.header->tensors},
                {room, tables_.header->room_bytes},
                {weights, tables_.header->weight_bytes}} {}

  int32_t run(uint32_t number);

private:
  bool open(const SvodExpansionStep& step, Work& work) const;
  bool open_copy(const SvodExpansionStep& step, Work& work) const;
  bool open_sum(const SvodExpansionStep& step, Work& work) const;
  const uint8_t* operand(const SvodExpansionOperand& operand, const Reach& reach,
                         uint32_t element) const;
  uint8_t* result(const SvodExpansionStep& step, const Reach& reach) const;

  Tables tables_;
  Memory places_[3];
};

// Null: it is not within its memory, or not aligned to its elements.
const uint8_t* Job::operand(const SvodExpansionOperand& operand, const Reach& reach,
                            uint32_t element) const {
  if (operand.place > SVOD_EXPANSION_WEIGHTS) return nullptr;
  const Memory& memory = places_[operand.place];
  if (operand.offset > memory.bytes || (operand.offset & (element - 1)) != 0)
    return nullptr;
  const auto at = static_cast<int64_t>(operand.offset);
  const int64_t begin = at + reach.low * element, end = at + (reach.high + 1) * element;
  if (begin < 0 || end > static_cast<int64_t>(memory.bytes)) return nullptr;
  return memory.begin + operand.offset;
}

uint8_t* Job::result(const SvodExpansionStep& step, const Reach& reach) const {
  if (step.result.place == SVOD_EXPANSION_TENSORS) return nullptr;
  return const_cast<uint8_t*>(operand(step.result, reach, step.element_bytes));
}

bool Job::open_copy(const SvodExpansionStep& step, Work& work) const {
  const int64_t first = work.numbers[0];
  if (first > kMostElements || first < -kMostElements) return false;
  Reach reads{first, first}, writes;
  int64_t count = 1;
  for (uint32_t i = 0; i < step.axes; i++) {
    const int64_t extent = work.numbers[1 + 2 * i];
    if (!reads.add(extent, work.numbers[2 + 2 * i])) return false;
    count *= extent; // both are at most 2^40 and 2^31
    if (count > kMostElements || count > int64_t{1} << 31) return false;
  }
  writes.high = count - 1;
  work.result = result(step, writes);
  // Where there are limits, rows are checked.
  work.a = operand(step.a, step.limits == 0 ? reads : Reach{0, -1}, step.element_bytes);
  if (work.a == nullptr) return false;
  const Memory& memory = places_[step.a.place];
  const auto from = static_cast<uint64_t>(work.a - memory.begin);
  uint32_t shift = 0;
  while (1u << shift < step.element_bytes) shift++;
  work.readable.low = -static_cast<int64_t>(from >> shift);
  work.readable.high = static_cast<int64_t>((memory.bytes - from) >> shift) - 1;
  for (uint32_t i = 0; i < step.limits; i++) {
    const int64_t* limit = limit_of(work, i);
    for (uint32_t k = 0; k < 3; k++)
      if (limit[k] > kMostElements || limit[k] < -kMostElements) return false;
    Reach value;
    for (uint32_t k = 0; k < step.axes; k++)
      if (!value.add(work.numbers[1 + 2 * k], limit[3 + k])) return false;
  }
  return work.result != nullptr;
}

bool Job::open_sum(const SvodExpansionStep& step, Work& work) const {
  if (step.element_bytes != 4 || step.limits != 0 || step.kept > step.axes ||
      step.row >= step.kept)
    return false;
  Reach a, b, out;
  int64_t count = 1;
  for (uint32_t i = 0; i < step.axes; i++) {
    const int64_t* axis = work.numbers + 4 * i;
    if (!a.add(axis[0], axis[1]) || !b.add(axis[0], axis[2]) ||
        !out.add(axis[0], axis[3]))
      return false;
    count *= axis[0];
    if (count > kMostElements || count > int64_t{1} << 32) return false;
  }
  work.a = operand(step.a, a, 4);
  work.b = operand(step.b, b, 4);
  work.result = result(step, out);
  return work.a != nullptr && work.b != nullptr && work.result != nullptr;
}

bool Job::open(const SvodExpansionStep& step, Work& work) const {
  const uint32_t element = step.element_bytes;
  if (element != 1 && element != 2 && element != 4 && element != 8) return false;
  if (step.axes > SVOD_EXPANSION_AXES || step.limits > SVOD_EXPANSION_AXES) return false;
  const bool copies = step.kind == SVOD_EXPANSION_COPY;
  if (!copies && step.kind != SVOD_EXPANSION_SUM) return false;
  const uint64_t numbers =
      copies ? 1 + 2 * step.axes + uint64_t{step.limits} * (3 + step.axes)
             : 4 * step.axes;
  if (step.first_number + numbers > tables_.header->numbers) return false;
  work.step = &step;
  work.numbers = tables_.numbers + step.first_number;
  return copies ? open_copy(step, work) : open_sum(step, work);
}

// A copy: the walk keeps the place in the operand and the values of limits up to date
// axis by axis; the last axis is a row, along which each limit holds for one interval.
template <class Element> class Copy {
public:
  explicit Copy(const Work& work)
      : work_(work), step_(*work.step), out_(reinterpret_cast<Element*>(work.result)),
        a_(reinterpret_cast<const Element*>(work.a)) {
    for (uint32_t i = 0; i < step_.limits; i++) values_[i] = limit(i)[0];
  }

  bool run() {
    if (step_.axes == 0) return row(1, 0, work_.numbers[0], 0);
    return walk(0, work_.numbers[0]);
  }

private:
  int64_t extent(uint32_t axis) const { return work_.numbers[1 + 2 * axis]; }
  int64_t stride(uint32_t axis) const { return work_.numbers[2 + 2 * axis]; }
  const int64_t* limit(uint32_t i) const { return limit_of(work_, i); }

  bool walk(uint32_t axis, int64_t at) {
    if (axis + 1 == step_.axes) return row(extent(axis), stride(axis), at, axis);
    if (axis + 2 == step_.axes && step_.limits == 0 && stride(axis) == 1) {
      tiles(axis, at);
      return true;
    }
    for (int64_t p = 0; p < extent(axis); p++) {
      if (!walk(axis + 1, at + p * stride(axis))) return false;
      for (uint32_t i = 0; i < step_.limits; i++) values_[i] += limit(i)[3 + axis];
    }
    for (uint32_t i = 0; i < step_.limits; i++)
      values_[i] -= extent(axis) * limit(i)[3 + axis];
    return true;
  }

  // What is contiguous in the operand is written along columns: tile by tile both stay in
  // the first cache.
  void tiles(uint32_t axis, int64_t at) {
    constexpr int64_t kTile = 16;
    const int64_t rows = extent(axis), columns = extent(axis + 1),
                  step = stride(axis + 1);
    for (int64_t i0 = 0; i0 < rows; i0 += kTile)
      for (int64_t j0 = 0; j0 < columns; j0 += kTile) {
        const int64_t i1 = i0 + kTile < rows ? i0 + kTile : rows;
        const int64_t j1 = j0 + kTile < columns ? j0 + kTile : columns;
        for (int64_t i = i0; i < i1; i++)
          for (int64_t j = j0; j < j1; j++) out_[i * columns + j] = a_[at + i + j * step];
      }
    out_ += rows * columns;
  }

  void narrow(uint32_t axis, int64_t& begin, int64_t& end) const {
    for (uint32_t i = 0; i < step_.limits && begin < end; i++) {
      const int64_t by = step_.axes == 0 ? 0 : limit(i)[3 + axis];
      const int64_t low = limit(i)[1], high = limit(i)[2];
      const auto holds = [&](int64_t p) {
        const int64_t value = values_[i] + p * by;
        return value >= low && value < high;
      };
      if (by == 0) {
        if (!holds(begin)) end = begin;
        continue;
      }
      while (begin < end && !holds(begin)) begin++;
      while (end > begin && !holds(end - 1)) end--;
      int64_t last = begin;
      while (last < end && holds(last)) last++;
      end = last;
    }
  }

  bool row(int64_t count, int64_t step, int64_t at, uint32_t axis) {
    int64_t begin = 0, end = count;
    narrow(axis, begin, end);
    put_fill(begin);
    if (begin < end) {
      const int64_t first = at + begin * step, last = at + (end - 1) * step;
      const int64_t low = first < last ? first : last, high = first < last ? last : first;
      if (low < work_.readable.low || high > work_.readable.high) return false;
      const Element* from = a_ + first;
      const int64_t n = end - begin;
      if (step == 1)
        __builtin_memcpy(out_, from, static_cast<size_t>(n) * sizeof(Element));
      else
        for (int64_t i = 0; i < n; i++) out_[i] = from[i * step];
      out_ += n;
    }
    put_fill(count - end);
    return true;
  }

  void put_fill(int64_t count) {
    const auto fill = static_cast<Element>(step_.fill);
    for (int64_t i = 0; i < count; i++) *out_++ = fill;
  }

  const Work& work_;
  const SvodExpansionStep& step_;
  Element* out_;
  const Element* a_;
  int64_t values_[SVOD_EXPANSION_AXES];
};

class Sum {
public:
  explicit Sum(const Work& work) : work_(work), step_(*work.step) {}

  void run() {
    outer(0, reinterpret_cast<const float*>(work_.a),
          reinterpret_cast<const float*>(work_.b),
          reinterpret_cast<float*>(work_.result));
  }

private:
  struct Axis {
    int64_t extent, a, b, out;
  };
  Axis axis(uint32_t i) const {
    const int64_t* n = work_.numbers + 4 * i;
    return {n[0], n[1], n[2], n[3]};
  }

  // Axes before the row's.
  void outer(uint32_t i, const float* a, const float* b, float* out) {
    const Axis of = axis(i);
    if (i == step_.row) {
      for (int64_t p = 0; p < of.extent; p += kBlock) {
        count_ = of.extent - p < kBlock ? of.extent - p : kBlock;
        inner(i + 1, a + p * of.a, b + p * of.b, out + p * of.out);
      }
      return;
    }
    for (int64_t p = 0; p < of.extent; p++)
      outer(i + 1, a + p * of.a, b + p * of.b, out + p * of.out);
  }

  // Axes behind it that are kept: each has its own block of results.
  void inner(uint32_t i, const float* a, const float* b, float* out) {
    if (i < step_.kept) {
      const Axis of = axis(i);
      for (int64_t p = 0; p < of.extent; p++)
        inner(i + 1, a + p * of.a, b + p * of.b, out + p * of.out);
      return;
    }
    for (int64_t k = 0; k < count_; k++) totals_[k] = 0;
    add(step_.kept, a, b);
    const int64_t step = axis(step_.row).out;
    if (step == 1)
      for (int64_t k = 0; k < count_; k++) out[k] = static_cast<float>(totals_[k]);
    else
      for (int64_t k = 0; k < count_; k++) out[k * step] = static_cast<float>(totals_[k]);
  }

  void add(uint32_t i, const float* a, const float* b) {
    if (i < step_.axes) {
      const Axis of = axis(i);
      for (int64_t p = 0; p < of.extent; p++) add(i + 1, a + p * of.a, b + p * of.b);
      return;
    }
    const Axis row = axis(step_.row);
    if (row.b != 0) {
      for (int64_t k = 0; k < count_; k++)
        totals_[k] += static_cast<double>(a[k * row.a] * b[k * row.b]);
      return;
    }
    // What is added then are zeros, unless a weight is no number: the packer, which tries
    // each job, keeps such weights as they are.
    const float factor = *b;
    if (factor == 0) return;
    if (row.a == 1)
      for (int64_t k = 0; k < count_; k++)
        totals_[k] += static_cast<double>(a[k] * factor);
    else
      for (int64_t k = 0; k < count_; k++)
        totals_[k] += static_cast<double>(a[k * row.a] * factor);
  }

  const Work& work_;
  const SvodExpansionStep& step_;
  int64_t count_ = 0;
  double totals_[kBlock];
};

bool copy(const Work& work) {
  switch (work.step->element_bytes) {
  case 1:
    return Copy<uint8_t>(work).run();
  case 2:
    return Copy<uint16_t>(work).run();
  case 4:
    return Copy<uint32_t>(work).run();
  default:
    return Copy<uint64_t>(work).run();
  }
}

int32_t Job::run(uint32_t number) {
  const SvodExpansionHeader& header = *tables_.header;
  if (number >= header.jobs) return SVOD_CORRUPT;
  const SvodExpansionJob& job = tables_.jobs[number];
  if (job.first_step > header.steps || job.step_count > header.steps - job.first_step)
    return SVOD_CORRUPT;
  for (uint32_t i = 0; i < job.step_count; i++) {
    Work work = {};
    if (!open(tables_.steps[job.first_step + i], work)) return SVOD_CORRUPT;
    if (work.step->kind == SVOD_EXPANSION_SUM)
      Sum(work).run();
    else if (!copy(work))
      return SVOD_CORRUPT;
  }
  return SVOD_OK;
}

} // namespace

extern "C" {

int32_t svod_check_expansion(const void* data, uint64_t bytes, uint64_t weight_bytes) {
  const auto* header = static_cast<const SvodExpansionHeader*>(data);
  if (bytes < sizeof(*header) ||
      __builtin_memcmp(header->magic, "SVODEXP", sizeof(header->magic)) != 0)
    return SVOD_CORRUPT;
  const uint64_t tables = bytes_of_tables(*header);
  const bool fits = header->weight_bytes == weight_bytes &&
                    tables <= bytes - sizeof(*header) && header->tensors <= bytes &&
                    header->tensors >= sizeof(*header) + tables &&
                    (header->tensors & (SVOD_EXPANSION_ALIGN - 1)) == 0 &&
                    header->room_bytes < uint64_t{kMostElements} &&
                    weight_bytes < uint64_t{kMostElements};
  if (!fits) return SVOD_CORRUPT;
  const auto* summed = reinterpret_cast<const uint8_t*>(&header->weight_bytes);
  const auto* begin = reinterpret_cast<const uint8_t*>(header);
  const uint64_t size = sizeof(*header) + tables - static_cast<uint64_t>(summed - begin);
  return svod_checksum(summed, size) == header->checksum ? SVOD_OK : SVOD_CORRUPT;
}

uint64_t svod_expansion_entries(const void* data, uint32_t job) {
  return tables_of(data).jobs[job].entries;
}

int32_t svod_expand(const void* data, uint64_t bytes, uint32_t job, uint8_t* weights,
                    uint8_t* room) {
  return Job(data, bytes, weights, room).run(job);
}

} // extern "C"
