#include "compiler/kernel/text.h"

namespace svod {

namespace {

std::string number(int64_t value) { return std::to_string(value); }
std::string axis(AxisId a) { return "i" + std::to_string(a); }

std::string exprs_text(const std::vector<ExprId>& exprs) {
  std::string out;
  for (ExprId e : exprs) out += " e" + std::to_string(e);
  return out;
}

std::string text_of(const Unroll& u) {
  const std::string off = u.off ? "off " : "";
  return "unroll " + off + number(u.nest) + " " + number(u.small_nest) + " " +
         number(u.free) + " by " + number(u.by);
}

std::string text_of(const SumBlocks& b) {
  if (b.held.empty()) return "blocks " + axis(b.loop) + " of " + number(b.steps);
  std::string out = "blocks " + axis(b.loop) + " held" + exprs_text(b.held) + " summed" +
                    exprs_text(b.summed);
  if (b.offset) out += " offset e" + std::to_string(*b.offset);
  return out;
}

std::string text_of(const WeightPrefetch& w) {
  return "fetch weights e" + std::to_string(w.load) + " panels " + axis(w.panels) +
         " of " + number(w.panel_elements) + " sweep " + axis(w.sweep) + " most " +
         number(w.most_bytes) + " stream " + number(w.stream_bytes) + " rows " +
         number(w.stream_rows);
}

std::string text_of(const PicturePrefetch& p) {
  return "fetch picture e" + std::to_string(p.load) + " rows " + axis(p.rows) +
         " window " + axis(p.window) + " line " + number(p.line_bytes);
}

std::string text_of(const MatrixTiles& t) {
  return "tiles " + axis(t.axis) + " rows " + number(t.rows) + " groups " +
         number(t.groups) + " vectors " + number(t.at_once) + " block" +
         counts_text(t.block);
}

std::vector<std::string> stage_lines(const StageSchedule& s) {
  std::vector<std::string> out;
  if (s.unroll != Unroll{}) out.push_back(text_of(s.unroll));
  if (s.sums != 1 || s.rounds != 0)
    out.push_back("sums " + number(s.sums) + " rounds " + number(s.rounds));
  if (s.blocks) out.push_back(text_of(*s.blocks));
  for (const WeightPrefetch& w : s.weights) out.push_back(text_of(w));
  if (s.picture) out.push_back(text_of(*s.picture));
  if (s.shortest_sum != 0) out.push_back("shortest " + number(s.shortest_sum));
  if (s.begins_with) out.push_back("begins e" + std::to_string(*s.begins_with));
  if (s.skipped_steps != 0) out.push_back("skip " + number(s.skipped_steps));
  if (s.elements != 0) out.push_back("elements " + number(s.elements));
  if (s.columns != 0) out.push_back("columns " + number(s.columns));
  if (s.paired) out.push_back("paired");
  if (s.widened) out.push_back("widened");
  if (s.words) out.push_back("words");
  if (s.halves) out.push_back("halves");
  if (s.grouped) out.push_back(s.matrices ? "grouped matrices" : "grouped");
  if (!s.together.empty()) out.push_back("together" + counts_text(s.together));
  if (s.across) out.push_back("across");
  if (s.byte_rows) out.push_back("bytes");
  if (s.tiles) out.push_back(text_of(*s.tiles));
  return out;
}

std::string factor_text(const FactorTile& f) {
  return std::string(f.by_steps ? " by steps" : "") +
         (f.near > 1 ? " near " + number(f.near) : "") + axes_text(f.axes) + "\n";
}

const std::string& multiplier_text(Multiplier by) {
  static const std::string kMultipliers[] = {"thread", "warp", "group"};
  return kMultipliers[size_t(by)];
}

std::string tile_text(const ProductTile& t) {
  return "    gpu tile " + number(t.block_rows) + " " + number(t.block_columns) + " " +
         number(t.steps) + " " + multiplier_text(t.by) + " " + number(t.part_rows) + " " +
         number(t.part_columns) + (t.ahead != 0 ? " ahead " + number(t.ahead) : "") +
         (t.splits > 1 ? " splits " + number(t.splits) : "") + "\n    gpu rows of " +
         number(t.row_factor) + factor_text(t.rows) + "    gpu columns" +
         factor_text(t.columns);
}

std::string attention_text(const AttentionTile& t) {
  return "    gpu block " + number(t.block_queries) + " queries " + number(t.block_keys) +
         " keys " + multiplier_text(t.by) + " " + number(t.part_queries) + " " +
         number(t.part_keys) + (t.ahead != 0 ? " ahead " + number(t.ahead) : "") +
         "\n    gpu queries" + factor_text(t.queries) + "    gpu keys" +
         factor_text(t.keys) + "    gpu values" + factor_text(t.values);
}

std::string share_text(const ScatterShare& s) {
  if (s.owners == 0) return "";
  return "    gpu owners " + number(s.owners) + " beside " + number(s.beside) +
         axes_text(s.slices) + "\n";
}

std::string text_of(const GpuSchedule& s) {
  static constexpr const char* kMappings[] = {"positions", "rows", "products",
                                              "attention", "scatter"};
  std::string out = std::string("    gpu ") + kMappings[size_t(s.mapping)] + " threads " +
                    number(s.threads);
  if (s.most_blocks != 0) out += " most " + number(s.most_blocks);
  if (s.near != 1) out += " near " + number(s.near);
  if (s.splits != 1) out += " splits " + number(s.splits);
  out += axes_text(s.positions) + "\n";
  if (s.mapping == GpuMapping::Attention) return out + attention_text(s.attention);
  if (s.mapping == GpuMapping::Scatter) return out + share_text(s.scatter);
  return s.mapping == GpuMapping::Products ? out + tile_text(s.product) : out;
}

} // namespace

std::string print(const Loops& loops) {
  std::string out = "  loops\n    outer" + axes_text(loops.outer) + "\n";
  for (size_t i = 0; i < loops.inner.size(); ++i)
    if (!loops.inner[i].empty())
      out += "    s" + std::to_string(i) + axes_text(loops.inner[i]) + "\n";
  if (loops.lane)
    out += "    lane " + axis(*loops.lane) + " " + number(loops.lanes) + "\n";
  if (loops.dot) out += "    dot " + axis(*loops.dot) + "\n";
  for (const ChunkAxis& c : loops.chunks)
    out += "    chunk " + axis(c.axis) + " by " + number(c.block) + "\n";
  if (loops.in_parts) out += "    in parts\n";
  if (loops.repeated) out += "    repeated\n";
  return out;
}

std::string print(const LevelSchedule& level) {
  std::string out = "  level " + level.level + " lanes " + number(level.lanes) + "\n";
  if (level.small) out += "    small\n";
  if (!level.tile.empty()) out += "    tile" + counts_text(level.tile) + "\n";
  for (const PeeledAxis& p : level.peeled)
    out += "    peel " + axis(p.axis) +
           (p.condition == PeeledAxis::Condition::OnLanes ? " lanes\n" : " shared\n");
  if (!level.tables.empty()) out += "    tables" + exprs_text(level.tables) + "\n";
  if (level.near_lanes != 0) out += "    near " + number(level.near_lanes) + "\n";
  if (!level.pack_scalars) out += "    scalars apart\n";
  if (level.narrows) out += "    narrows\n";
  if (level.gpu) out += text_of(*level.gpu);
  if (!level.looped.empty()) out += "    looped" + exprs_text(level.looped) + "\n";
  if (!level.called.empty()) out += "    called" + exprs_text(level.called) + "\n";
  for (size_t i = 0; i < level.stages.size(); ++i)
    for (const std::string& line : stage_lines(level.stages[i]))
      out += "    s" + std::to_string(i) + " " + line + "\n";
  return out;
}

std::string print(const KernelSchedule& schedule) {
  std::string out = print(schedule.loops);
  for (const LevelSchedule& level : schedule.levels) out += print(level);
  return out;
}

std::string print(const ScheduledKernel& kernel) {
  return print(static_cast<const Kernel&>(kernel)) +
         print(static_cast<const KernelSchedule&>(kernel));
}

} // namespace svod
