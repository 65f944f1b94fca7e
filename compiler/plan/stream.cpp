// When each of the kernels has its turn follows from the rows that they read, from the
// last kernel to the first. Chunk c of a reader reads rows [c * step + low, c * step +
// high); its writer makes `by` rows with each chunk, so it has step / by times as many
// turns, and is ahead by what the window reaches further down. What it is ahead by, and
// what the window reaches back, are the rows that have to be there.
#include "compiler/plan/stream.h"

#include "compiler/support/divide.h"

#include <algorithm>
#include <set>

namespace svod::plan {

namespace {

class Maker {
public:
  Maker(const std::vector<StreamKernel>& kernels,
        const std::map<SlotId, PassedRows>& passed,
        const std::map<SlotId, PassedRows>& others, KnownRows& known)
      : kernels_(kernels), passed_(passed), others_(others), known_(known) {}
  std::optional<MadeStream> run();

private:
  std::optional<RowChunks> chunks_of(const StreamKernel& k, bool with_others) const;
  bool find_chunks();
  void note_wholes();
  int64_t rows_of(size_t kernel, int64_t step) const;
  bool find_writers();
  bool find_turns();
  bool follow_reader(Stream::Window& window, uint32_t reader, const RowAccess& read);
  bool size_windows();
  void count_turns();
  void count_copies();
  template <class F> bool for_readers(const Stream::Window& window, const F& visit) const;

  const std::vector<StreamKernel>& kernels_;
  const std::map<SlotId, PassedRows>&passed_, &others_;
  KnownRows& known_;
  std::vector<RowChunks> rows_; // by kernel
  std::set<SlotId> unknown_;    // what a kernel does to them is no whole rows
  MadeStream out_;
};

std::optional<RowChunks> Maker::chunks_of(const StreamKernel& k, bool with_others) const {
  std::vector<int64_t> row_elements;
  for (const SlotId id : k.arguments) {
    const auto passed = passed_.find(id), other = others_.find(id);
    row_elements.push_back(passed != passed_.end() ? passed->second.row_elements
                           : with_others && other != others_.end()
                               ? other->second.row_elements
                               : 0);
  }
  const auto [at, fresh] = known_.try_emplace({k.kernel, row_elements});
  if (fresh) at->second = chunks_by_rows(*k.kernel, row_elements);
  return at->second;
}

bool Maker::find_chunks() {
  for (const StreamKernel& k : kernels_) {
    std::optional<RowChunks> rows = chunks_of(k, true);
    if (!rows) {
      rows = chunks_of(k, false);
      unknown_.insert(k.arguments.begin(), k.arguments.end());
    }
    if (!rows) return false;
    const int64_t extent = k.kernel->indices.extent(rows->chunk.axis);
    out_.stream.launches.push_back({0, 0, ceil_div(extent, rows->chunk.block)});
    out_.chunks.push_back(rows->chunk);
    rows_.push_back(std::move(*rows));
  }
  return true;
}

// That all chunks of a kernel move on by.
int64_t Maker::rows_of(size_t kernel, int64_t step) const {
  const ChunkAxis& chunk = out_.chunks[kernel];
  return kernels_[kernel].kernel->indices.extent(chunk.axis) * step / chunk.block;
}

bool Maker::find_writers() {
  for (uint32_t i = 0; i < kernels_.size(); ++i)
    for (const RowAccess& a : rows_[i].accesses) {
      if (!a.writes) continue;
      const SlotId slot = kernels_[i].arguments[a.argument];
      if (passed_.count(slot) == 0) continue;
      const PassedRows& p = passed_.at(slot);
      const bool again =
          std::ranges::count(out_.stream.windows, slot, &Stream::Window::slot) != 0;
      if (again || a.low < 0) return false;
      out_.stream.windows.push_back(
          {slot, i, p.row_bytes, 0, a.step, a.low, rows_of(i, a.step), p.border, p.fill});
    }
  return out_.stream.windows.size() == passed_.size();
}

void Maker::note_wholes() {
  for (uint32_t i = 0; i < kernels_.size(); ++i)
    for (const RowAccess& a : rows_[i].accesses) {
      const SlotId slot = kernels_[i].arguments[a.argument];
      if (passed_.count(slot) == 0 && unknown_.count(slot) == 0)
        out_.stream.wholes.push_back(
            {slot, i, a.writes, others_.at(slot).row_bytes, a.step, a.low, a.high});
    }
}

// visit(number, access) for the kernels that read it, all of them behind its writer.
template <class F>
bool Maker::for_readers(const Stream::Window& window, const F& visit) const {
  for (uint32_t i = 0; i < kernels_.size(); ++i)
    for (const RowAccess& a : rows_[i].accesses) {
      if (a.writes || kernels_[i].arguments[a.argument] != window.slot) continue;
      if (i <= window.writer || !visit(i, a)) return false;
    }
  return true;
}

bool Maker::follow_reader(Stream::Window& window, uint32_t reader,
                          const RowAccess& read) {
  Stream::Launch& writer = out_.stream.launches[window.writer];
  const Stream::Launch& other = out_.stream.launches[reader];
  if (other.rate == 0 || read.step < window.by || read.step % window.by != 0)
    return false;
  const int64_t more = read.step / window.by, rate = other.rate * more;
  const int64_t ahead =
      ceil_div(read.high - window.first, window.by) - more + other.ahead * more;
  if (writer.rate != 0 && writer.rate != rate) return false;
  writer.ahead = writer.rate == 0 ? ahead : std::max(writer.ahead, ahead);
  writer.rate = rate;
  return true;
}

bool Maker::find_turns() {
  std::vector<Stream::Launch>& launches = out_.stream.launches;
  launches.back().rate = 1;
  for (size_t i = launches.size() - 1; i-- > 0;)
    for (Stream::Window& w : out_.stream.windows)
      if (w.writer == i && !for_readers(w, [&](uint32_t reader, const RowAccess& read) {
            return follow_reader(w, reader, read);
          }))
        return false;
  for (size_t i = launches.size() - 1; i-- > 0;)
    if (launches[i].rate == 0 || launches[i].rate % launches[i + 1].rate != 0)
      return false;
  return true;
}

bool Maker::size_windows() {
  for (Stream::Window& w : out_.stream.windows) {
    const Stream::Launch& writer = out_.stream.launches[w.writer];
    w.rows = w.by;
    const bool read = for_readers(w, [&](uint32_t reader, const RowAccess& access) {
      const Stream::Launch& other = out_.stream.launches[reader];
      const int64_t more = writer.rate / other.rate;
      const int64_t end = (more + writer.ahead - other.ahead * more) * w.by + w.first;
      w.rows = std::max(w.rows, end - access.low);
      return true;
    });
    if (!read) return false;
  }
  return true;
}

// From the first turn in which a launch has its first chunk to the last in which one has
// its last.
void Maker::count_turns() {
  Stream& s = out_.stream;
  for (const Stream::Launch& l : s.launches)
    s.first_turn = std::min(s.first_turn, floor_div(-l.ahead, l.rate));
  for (const Stream::Launch& l : s.launches)
    s.turns = std::max(s.turns, ceil_div(l.chunks - l.ahead, l.rate));
}

void Maker::count_copies() {
  for (const Stream::Window& w : out_.stream.windows) {
    const Stream::Launch& l = out_.stream.launches[w.writer];
    out_.stream.copied_bytes += l.chunks * (w.rows - w.by) * w.row_bytes;
  }
}

std::optional<MadeStream> Maker::run() {
  if (!find_chunks() || !find_writers() || !find_turns() || !size_windows())
    return std::nullopt;
  note_wholes();
  count_turns();
  count_copies();
  return std::move(out_);
}

} // namespace

int64_t window_begin(const Stream& stream, const Stream::Window& window, int64_t rate,
                     int64_t n) {
  const Stream::Launch& writer = stream.launches[window.writer];
  const int64_t chunks = (n + 1) * (writer.rate / rate) + writer.ahead;
  return chunks * window.by + window.first - window.rows;
}

// The launches before `end`, those of higher rates in a loop of their own.
static void run_turns(const Stream& stream, size_t end, int64_t first, int64_t last,
                      const std::function<void(size_t, int64_t)>& visit) {
  const int64_t rate = stream.launches[end - 1].rate;
  size_t begin = end;
  while (begin > 0 && stream.launches[begin - 1].rate == rate) --begin;
  for (int64_t n = first; n < last; ++n) {
    if (begin > 0) {
      const int64_t times = stream.launches[begin - 1].rate / rate;
      run_turns(stream, begin, n * times, (n + 1) * times, visit);
    }
    for (size_t i = begin; i < end; ++i) visit(i, n);
  }
}

void for_each_turn(const Stream& stream,
                   const std::function<void(size_t launch, int64_t n)>& visit) {
  run_turns(stream, stream.launches.size(), stream.first_turn, stream.turns, visit);
}

// Rank 4, one picture: [1, channels, rows, columns].
std::optional<PassedRows> passed_rows(const Buffer& b) {
  if (b.shape.size() != 4 || b.shape[0] != 1) return std::nullopt;
  const Layout& l = b.layout;
  const Dims dims = dims_of(l, b.shape);
  size_t at = 0;
  while (at < dims.extents.size() && dims.extents[at] == 1 && l.order[at] != 2) ++at;
  if (at == dims.extents.size() || l.order[at] != 2 || dims.extents[at] < 2)
    return std::nullopt;
  PassedRows out;
  out.row_elements = dims.strides[at];
  out.rows = dims.extents[at];
  out.row_bytes = out.row_elements * byte_size(b.dtype);
  out.border = l.has_border();
  uint64_t bits = l.fill;
  for (int64_t size = byte_size(b.dtype); size < 4; size *= 2) bits |= bits << (8 * size);
  out.fill = static_cast<uint32_t>(bits);
  const bool halves = byte_size(b.dtype) < 8 || bits >> 32 == out.fill;
  return halves || !out.border ? std::optional(out) : std::nullopt;
}

std::optional<MadeStream> make_stream(const std::vector<StreamKernel>& kernels,
                                      const std::map<SlotId, PassedRows>& passed,
                                      const std::map<SlotId, PassedRows>& others,
                                      KnownRows& known) {
  return Maker(kernels, passed, others, known).run();
}

} // namespace svod::plan
