#include "compiler/kernel/line_scanner.h"

namespace svod {

namespace {

class ScheduleReader {
public:
  std::optional<KernelSchedule> read(std::string_view text, TextFault& fault) {
    if (!read_lines(text, fault, [&](std::string_view line) { read_line(line); }))
      return std::nullopt;
    return std::move(out_);
  }

private:
  void read_line(std::string_view text);
  void read_loops(LineScanner& in);
  void read_level(LineScanner& in);
  void read_stage(LineScanner& in, StageSchedule& s);

  KernelSchedule out_;
  bool in_loops_ = false;
};

template <class T> T& at_number(std::vector<T>& list, uint32_t number, LineScanner& in) {
  constexpr uint32_t kMostStages = 4096;
  if (number >= kMostStages) in.fail("the number of a stage");
  if (number >= list.size()) list.resize(number + 1);
  return list[number];
}

int small_number(LineScanner& in) {
  const int64_t value = in.number();
  if (value < 0 || value > 1 << 16) in.fail("a number from 0 to 65536");
  return static_cast<int>(value);
}

void ScheduleReader::read_line(std::string_view text) {
  LineScanner in(text);
  if (in.accept("loops")) {
    in_loops_ = true;
  } else if (in.accept("level")) {
    in_loops_ = false;
    out_.levels.emplace_back();
    out_.levels.back().level = in.word();
    in.expect("lanes");
    out_.levels.back().lanes = small_number(in);
  } else if (in_loops_) {
    read_loops(in);
  } else if (!out_.levels.empty()) {
    read_level(in);
  } else {
    in.fail("'loops' or 'level'");
  }
  in.end();
}

void ScheduleReader::read_loops(LineScanner& in) {
  Loops& loops = out_.loops;
  if (in.accept("outer")) {
    loops.outer = in.all_numbered('i');
  } else if (in.at_numbered('s')) {
    std::vector<AxisId>& inner = at_number(loops.inner, in.numbered('s'), in);
    inner = in.all_numbered('i');
  } else if (in.accept("lane")) {
    loops.lane = in.numbered('i');
    loops.lanes = small_number(in);
  } else if (in.accept("dot")) {
    loops.dot = in.numbered('i');
  } else if (in.accept("chunk")) {
    const AxisId axis = in.numbered('i');
    in.expect("by");
    loops.chunks.push_back({axis, in.number()});
  } else if (in.accept("repeated")) {
    loops.repeated = true;
  } else {
    in.expect("in parts");
    loops.in_parts = true;
  }
}

void read_factor(LineScanner& in, FactorTile& f) {
  f.by_steps = in.accept("by steps");
  if (in.accept("near")) f.near = small_number(in);
  f.axes = in.all_numbered('i');
}

Multiplier read_multiplier(LineScanner& in) {
  if (in.accept("warp")) return Multiplier::Warp;
  if (in.accept("group")) return Multiplier::Group;
  in.expect("thread");
  return Multiplier::Thread;
}

bool read_product(LineScanner& in, ProductTile& t) {
  if (in.accept("tile")) {
    for (int* to : {&t.block_rows, &t.block_columns, &t.steps}) *to = small_number(in);
    t.by = read_multiplier(in);
    t.part_rows = small_number(in);
    t.part_columns = small_number(in);
    if (in.accept("ahead")) t.ahead = small_number(in);
    if (in.accept("splits")) t.splits = small_number(in);
  } else if (in.accept("rows of")) {
    t.row_factor = static_cast<uint32_t>(small_number(in));
    read_factor(in, t.rows);
  } else if (in.accept("columns")) {
    read_factor(in, t.columns);
  } else {
    return false;
  }
  return true;
}

bool read_attention(LineScanner& in, AttentionTile& t) {
  if (in.accept("block")) {
    t.block_queries = small_number(in);
    in.expect("queries");
    t.block_keys = small_number(in);
    in.expect("keys");
    t.by = read_multiplier(in);
    t.part_queries = small_number(in);
    t.part_keys = small_number(in);
    if (in.accept("ahead")) t.ahead = small_number(in);
  } else if (in.accept("queries")) {
    read_factor(in, t.queries);
  } else if (in.accept("keys")) {
    read_factor(in, t.keys);
  } else if (in.accept("values")) {
    read_factor(in, t.values);
  } else {
    return false;
  }
  return true;
}

bool read_share(LineScanner& in, ScatterShare& s) {
  if (!in.accept("owners")) return false;
  s.owners = small_number(in);
  in.expect("beside");
  s.beside = small_number(in);
  s.slices = in.all_numbered('i');
  return true;
}

void read_gpu(LineScanner& in, GpuSchedule& s) {
  if (read_product(in, s.product) || read_attention(in, s.attention) ||
      read_share(in, s.scatter))
    return;
  if (in.accept("positions"))
    s.mapping = GpuMapping::Positions;
  else if (in.accept("products"))
    s.mapping = GpuMapping::Products;
  else if (in.accept("attention"))
    s.mapping = GpuMapping::Attention;
  else if (in.accept("scatter"))
    s.mapping = GpuMapping::Scatter;
  else
    in.expect("rows"), s.mapping = GpuMapping::Rows;
  in.expect("threads");
  s.threads = small_number(in);
  if (in.accept("most")) s.most_blocks = small_number(in);
  if (in.accept("near")) s.near = small_number(in);
  if (in.accept("splits")) s.splits = small_number(in);
  s.positions = in.all_numbered('i');
}

void ScheduleReader::read_level(LineScanner& in) {
  LevelSchedule& level = out_.levels.back();
  if (in.accept("tile")) {
    level.tile = in.all_counts();
  } else if (in.accept("peel")) {
    const AxisId axis = in.numbered('i');
    const bool lanes = in.accept("lanes");
    if (!lanes) in.expect("shared");
    level.peeled.push_back(
        {lanes ? PeeledAxis::Condition::OnLanes : PeeledAxis::Condition::OnShared, axis});
  } else if (in.accept("tables")) {
    level.tables = in.all_numbered('e');
  } else if (in.accept("near")) {
    level.near_lanes = in.number();
  } else if (in.accept("scalars apart")) {
    level.pack_scalars = false;
  } else if (in.accept("looped")) {
    level.looped = in.all_numbered('e');
  } else if (in.accept("small")) {
    level.small = true;
  } else if (in.accept("narrows")) {
    level.narrows = true;
  } else if (in.accept("called")) {
    level.called = in.all_numbered('e');
  } else if (in.accept("gpu")) {
    if (!level.gpu) level.gpu.emplace();
    read_gpu(in, *level.gpu);
  } else {
    read_stage(in, at_number(level.stages, in.numbered('s'), in));
  }
}

SumBlocks read_blocks(LineScanner& in) {
  SumBlocks out;
  out.loop = in.numbered('i');
  if (in.accept("of")) {
    out.steps = in.number();
    return out;
  }
  in.expect("held");
  out.held = in.all_numbered('e');
  in.expect("summed");
  out.summed = in.all_numbered('e');
  if (in.accept("offset")) out.offset = in.numbered('e');
  return out;
}

WeightPrefetch read_weights(LineScanner& in) {
  WeightPrefetch out;
  out.load = in.numbered('e');
  in.expect("panels");
  out.panels = in.numbered('i');
  in.expect("of");
  out.panel_elements = in.number();
  in.expect("sweep");
  out.sweep = in.numbered('i');
  in.expect("most");
  out.most_bytes = in.number();
  in.expect("stream");
  out.stream_bytes = in.number();
  in.expect("rows");
  out.stream_rows = in.number();
  return out;
}

PicturePrefetch read_picture(LineScanner& in) {
  PicturePrefetch out;
  out.load = in.numbered('e');
  in.expect("rows");
  out.rows = in.numbered('i');
  in.expect("window");
  out.window = in.numbered('i');
  in.expect("line");
  out.line_bytes = in.number();
  return out;
}

Unroll read_unroll(LineScanner& in) {
  Unroll out;
  out.off = in.accept("off");
  out.nest = in.number();
  out.small_nest = in.number();
  out.free = in.number();
  in.expect("by");
  out.by = small_number(in);
  return out;
}

MatrixTiles read_tiles(LineScanner& in) {
  MatrixTiles out;
  out.axis = in.numbered('i');
  in.expect("rows");
  out.rows = small_number(in);
  in.expect("groups");
  out.groups = small_number(in);
  in.expect("vectors");
  out.at_once = small_number(in);
  in.expect("block");
  out.block = in.all_counts();
  return out;
}

void ScheduleReader::read_stage(LineScanner& in, StageSchedule& s) {
  if (in.accept("unroll")) {
    s.unroll = read_unroll(in);
  } else if (in.accept("sums")) {
    s.sums = in.number();
    in.expect("rounds");
    s.rounds = in.number();
  } else if (in.accept("blocks")) {
    s.blocks = read_blocks(in);
  } else if (in.accept("fetch weights")) {
    s.weights.push_back(read_weights(in));
  } else if (in.accept("fetch picture")) {
    s.picture = read_picture(in);
  } else if (in.accept("shortest")) {
    s.shortest_sum = small_number(in);
  } else if (in.accept("begins")) {
    s.begins_with = in.numbered('e');
  } else if (in.accept("skip")) {
    s.skipped_steps = in.number();
  } else if (in.accept("elements")) {
    s.elements = small_number(in);
  } else if (in.accept("columns")) {
    s.columns = small_number(in);
  } else if (in.accept("paired")) {
    s.paired = true;
  } else if (in.accept("widened")) {
    s.widened = true;
  } else if (in.accept("words")) {
    s.words = true;
  } else if (in.accept("halves")) {
    s.halves = true;
  } else if (in.accept("grouped")) {
    s.grouped = true;
    s.matrices = in.accept("matrices");
  } else if (in.accept("together")) {
    s.together = in.all_counts();
  } else if (in.accept("across")) {
    s.across = true;
  } else if (in.accept("tiles")) {
    s.tiles = read_tiles(in);
  } else {
    in.expect("bytes");
    s.byte_rows = true;
  }
}

} // namespace

std::optional<KernelSchedule> parse_schedule(std::string_view text, TextFault& fault) {
  return ScheduleReader().read(text, fault);
}

} // namespace svod
