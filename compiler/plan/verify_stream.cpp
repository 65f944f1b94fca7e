// Runs the turns of a stream with the numbers of rows in place of rows.
#include "compiler/plan/verify_stream.h"

#include "compiler/plan/apart.h"
#include "compiler/plan/rows.h"

#include "compiler/support/check.h"

#include <algorithm>

namespace svod::plan {

namespace {

class Run {
public:
  Run(const Plan& plan, const std::vector<const Step*>& steps)
      : plan_(plan), steps_(steps), stream_(plan.streams[*steps.front()->stream]),
        begin_(stream_.windows.size()) {}
  void run();

private:
  std::vector<RowChunks> rows_of_launches() const;
  void turn(size_t launch, int64_t n);
  void check_overlaps() const;
  void check_access(const RowAccess& access, size_t launch, int64_t n, int64_t chunk);

  const Plan& plan_;
  const std::vector<const Step*>& steps_;
  const Stream& stream_;
  std::vector<RowChunks> rows_; // by launch
  std::vector<int64_t> begin_;  // by window: the row at its front
  std::vector<int64_t> done_;   // by launch: its chunks
};

std::vector<RowChunks> Run::rows_of_launches() const {
  std::vector<RowChunks> out;
  for (const Step* step : steps_) {
    ScheduledKernel kernel = plan_.programs[step->program];
    SVOD_CHECK(kernel.loops.chunks.size() == 1) << "a launch of a stream has no rows";
    std::vector<int64_t> row_elements(step->arguments.size());
    for (const Stream::Window& w : stream_.windows)
      for (size_t i = 0; i < step->arguments.size(); ++i)
        if (step->arguments[i] == w.slot)
          row_elements[i] = w.row_bytes / byte_size(kernel.arguments[i].dtype);
    for (const Stream::Whole& w : stream_.wholes)
      for (size_t i = 0; i < step->arguments.size(); ++i)
        if (step->arguments[i] == w.slot && w.launch == out.size())
          row_elements[i] = w.row_bytes / byte_size(kernel.arguments[i].dtype);
    kernel.loops.in_parts = false;
    const auto rows = chunks_by_rows(kernel, row_elements);
    SVOD_CHECK(rows && rows->chunk == kernel.loops.chunks[0])
        << "program " << step->program << " does not go row by row";
    out.push_back(*rows);
  }
  return out;
}

void Run::check_access(const RowAccess& access, size_t launch, int64_t n, int64_t chunk) {
  const SlotId slot = steps_[launch]->arguments[access.argument];
  const auto w = std::ranges::find(stream_.windows, slot, &Stream::Window::slot);
  if (w == stream_.windows.end()) return; // there as a whole
  const int64_t begin = begin_[static_cast<size_t>(w - stream_.windows.begin())];
  SVOD_CHECK(begin == window_begin(stream_, *w, stream_.launches[launch].rate, n))
      << "slot " << slot << " is taken for other rows than it has";
  const int64_t low = access.low + access.step * chunk;
  // Rows before the first and behind the last one are guarded where they do not exist.
  const int64_t high = access.high + access.step * chunk;
  SVOD_CHECK(low >= begin && high <= begin + w->rows)
      << "rows " << low << " to " << high << " of slot " << slot << " are not there";
}

void Run::turn(size_t launch, int64_t n) {
  const Stream::Launch& l = stream_.launches[launch];
  const int64_t chunk = n + l.ahead;
  if (chunk < 0) return;
  for (size_t i = 0; i < begin_.size(); ++i)
    if (stream_.windows[i].writer == launch) begin_[i] += stream_.windows[i].by;
  if (chunk >= l.chunks) return;
  SVOD_CHECK(done_[launch]++ == chunk) << "a chunk is not in its turn";
  for (const RowAccess& access : rows_[launch].accesses)
    check_access(access, launch, n, chunk);
}

// Where a result lies on what the stream reads.
void Run::check_overlaps() const {
  for (const Overlap& o : plan_.overlaps) {
    const auto touches = [&](SlotId id, bool written) {
      return std::ranges::any_of(stream_.wholes, [&](const Stream::Whole& w) {
        return w.slot == id && w.written == written;
      });
    };
    if (!touches(o.read, false) || !touches(o.written, true)) continue;
    const auto apart = least_apart(stream_, o.read, o.written);
    const Slot &from = plan_.slots[o.read], &to = plan_.slots[o.written];
    SVOD_CHECK(apart && (from.offset >= to.offset + apart->below ||
                         to.offset >= from.offset + apart->above))
        << "a stream writes over what it is going to read in slot " << o.read;
  }
}

void Run::run() {
  SVOD_CHECK(steps_.size() == stream_.launches.size()) << "a stream is none of its steps";
  rows_ = rows_of_launches();
  done_.resize(steps_.size());
  for (size_t i = 0; i < begin_.size(); ++i) {
    const Stream::Window& w = stream_.windows[i];
    begin_[i] = w.first - w.rows;
    SVOD_CHECK(static_cast<uint64_t>(w.rows * w.row_bytes) == plan_.slots[w.slot].bytes)
        << "slot " << w.slot << " has no room for its rows";
  }
  for_each_turn(stream_, [&](size_t launch, int64_t n) { turn(launch, n); });
  check_overlaps();
  for (size_t i = 0; i < steps_.size(); ++i)
    SVOD_CHECK(done_[i] == stream_.launches[i].chunks &&
               done_[i] == int64_t{steps_[i]->chunks})
        << "a launch of a stream is not done";
}

} // namespace

void verify_stream(const Plan& plan, const std::vector<const Step*>& steps) {
  Run(plan, steps).run();
}

} // namespace svod::plan
