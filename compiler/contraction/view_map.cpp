#include "compiler/contraction/view_map.h"

#include <algorithm>
#include <cstdlib>

namespace svod {

namespace {

void cut_steps(const AxisCut& cut, Coordinate& at) {
  const auto place = at.steps.begin() + static_cast<std::ptrdiff_t>(cut.axis);
  at.steps.insert(place, at.steps[cut.axis] * cut.inner);
}

// The axes with a step, those of small steps first.
std::vector<size_t> by_step(const Coordinate& at) {
  std::vector<size_t> axes;
  for (size_t i = 0; i < at.steps.size(); ++i)
    if (at.steps[i] != 0) axes.push_back(i);
  std::ranges::stable_sort(axes, {}, [&](size_t i) { return std::abs(at.steps[i]); });
  return axes;
}

// A coordinate seen from its smallest value, so that every step is positive.
struct Upward {
  Upward(const Coordinate& at, const Domain& domain) : low(range_of(at, domain).low) {
    for (size_t i : by_step(at)) terms.push_back({i, std::abs(at.steps[i])});
  }
  struct Term {
    size_t axis;
    int64_t step;
  };
  int64_t low;
  std::vector<Term> terms;
};

enum class Split { Done, NeedsCut, Carries };

// Takes `flat`, a position in row-major order, apart into a coordinate per extent.
Split take_apart(const Coordinate& flat, const Shape& extents, const Domain& domain,
                 std::vector<Coordinate>& out, AxisCut& wanted) {
  Upward rest(flat, domain);
  out.assign(extents.size(), {0, Shape(domain.size(), 0)});
  int64_t inside = element_count(extents);
  for (size_t j = 0; j < extents.size(); ++j) {
    inside /= extents[j];
    const int64_t quotient = rest.low / inside;
    rest.low %= inside;
    int64_t reach = quotient, left = rest.low;
    out[j].constant = quotient;
    std::vector<Upward::Term> inner;
    for (const Upward::Term& term : rest.terms) {
      const int64_t span = domain[term.axis].extent - 1;
      if (term.step % inside == 0) {
        const int64_t step = term.step / inside;
        const bool down = flat.steps[term.axis] < 0;
        reach += step * span;
        out[j].steps[term.axis] = down ? -step : step;
        if (down) out[j].constant += step * span;
      } else if (term.step * span < inside) {
        left += term.step * span;
        inner.push_back(term);
      } else {
        wanted = {term.axis, inside / term.step};
        const bool even =
            inside % term.step == 0 && domain[term.axis].extent % wanted.inner == 0;
        return even ? Split::NeedsCut : Split::Carries;
      }
    }
    if (reach >= extents[j] || left >= inside) return Split::Carries;
    rest.terms = std::move(inner);
  }
  return Split::Done;
}

// A run of axes of a reshape's result and the axes of its input that hold the same
// elements.
struct AxisGroup {
  std::vector<size_t> above, below;
};

// The shortest groups, axes of extent 1 left out.
std::vector<AxisGroup> groups_of(const Shape& above, const Shape& below) {
  std::vector<AxisGroup> groups;
  size_t i = 0, j = 0;
  const auto skip = [](const Shape& shape, size_t& at) {
    while (at < shape.size() && shape[at] == 1) ++at;
  };
  for (skip(above, i), skip(below, j); i < above.size(); skip(above, i), skip(below, j)) {
    AxisGroup group{{i}, {j}};
    int64_t a = above[i++], b = below[j++];
    while (a != b) {
      const bool more = a < b;
      skip(more ? above : below, more ? i : j);
      if (more)
        group.above.push_back(i), a *= above[i++];
      else
        group.below.push_back(j), b *= below[j++];
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

void add(Coordinate& to, const Coordinate& more, int64_t times) {
  to.constant += times * more.constant;
  for (size_t i = 0; i < to.steps.size(); ++i) to.steps[i] += times * more.steps[i];
}

bool below_reshape(const Shape& above, const Shape& below, ViewMap& map, Domain& domain,
                   std::vector<AxisCut>& cuts) {
  std::vector<std::pair<size_t, Coordinate>> made;
  for (const AxisGroup& group : groups_of(above, below)) {
    Shape extents;
    for (size_t j : group.below) extents.push_back(below[j]);
    std::vector<Coordinate> parts;
    for (Split done = Split::NeedsCut; done != Split::Done;) {
      if (group.above.size() == 1 && extents.size() == 1) {
        parts = {map.at[group.above[0]]};
        break;
      }
      Coordinate flat{0, Shape(domain.size(), 0)};
      int64_t times = 1;
      for (size_t i = group.above.size(); i-- > 0; times *= above[group.above[i]])
        add(flat, map.at[group.above[i]], times);
      if (extents.size() == 1) {
        parts = {flat};
        break;
      }
      if (range_of(flat, domain).low < 0) return false;
      AxisCut cut{};
      done = take_apart(flat, extents, domain, parts, cut);
      if (done == Split::Carries) return false;
      if (done == Split::Done) break;
      cut_axis(cut, domain);
      cut_axis(cut, map);
      for (auto& [axis, coordinate] : made) cut_steps(cut, coordinate);
      cuts.push_back(cut);
    }
    for (size_t j = 0; j < parts.size(); ++j)
      made.emplace_back(group.below[j], std::move(parts[j]));
  }
  map.at.assign(below.size(), {0, Shape(domain.size(), 0)});
  for (auto& [axis, coordinate] : made) map.at[axis] = std::move(coordinate);
  return true;
}

void below_pad(const Node& pad, const Shape& extents, const Domain& domain,
               ViewMap& map) {
  for (size_t i = 0; i < extents.size(); ++i) {
    map.at[i].constant -= pad.payload[i];
    const CoordinateRange range = range_of(map.at[i], domain);
    if (range.low < 0 || range.high >= extents[i])
      map.guards.push_back(
          {map.at[i], extents[i], static_cast<uint64_t>(pad.payload.back())});
  }
}

void scale(Coordinate& at, int64_t times) {
  at.constant *= times;
  for (int64_t& step : at.steps) step *= times;
}

} // namespace

void cut_axis(const AxisCut& cut, Domain& domain) {
  DomainAxis outer = domain[cut.axis];
  outer.extent /= cut.inner;
  outer.stride *= cut.inner;
  domain[cut.axis].extent = cut.inner;
  domain.insert(domain.begin() + static_cast<std::ptrdiff_t>(cut.axis), outer);
}

void cut_axis(const AxisCut& cut, ViewMap& map) {
  for (Coordinate& at : map.at) cut_steps(cut, at);
  for (Guard& guard : map.guards) cut_steps(cut, guard.at);
}

Domain domain_of(const Shape& shape) {
  Domain domain;
  for (size_t i = 0; i < shape.size(); ++i) domain.push_back({shape[i], i, 1});
  return domain;
}

ViewMap whole_domain(const Domain& domain) {
  ViewMap map;
  const size_t rank = domain.empty() ? 0 : domain.back().whole + 1;
  map.at.assign(rank, {0, Shape(domain.size(), 0)});
  for (size_t i = 0; i < domain.size(); ++i)
    if (domain[i].extent != 1) map.at[domain[i].whole].steps[i] = domain[i].stride;
  return map;
}

std::optional<ViewMap> map_below(const Graph& g, NodeId view, ViewMap map, Domain& domain,
                                 std::vector<AxisCut>& cuts) {
  const Node& node = g[view];
  if (!is_view(node.op)) return std::nullopt;
  const Shape& below = g[node.inputs[0]].shape;
  const size_t rank = below.size();
  switch (node.op) {
  case Op::Expand:
    for (size_t i = 0; i < rank; ++i)
      if (below[i] == 1) map.at[i] = {0, Shape(domain.size(), 0)};
    break;
  case Op::Permute: {
    std::vector<Coordinate> at(rank);
    for (size_t i = 0; i < rank; ++i)
      at[static_cast<size_t>(node.payload[i])] = std::move(map.at[i]);
    map.at = std::move(at);
    break;
  }
  case Op::Slice:
    for (size_t i = 0; i < rank; ++i) {
      scale(map.at[i], node.payload[rank + i]);
      map.at[i].constant += node.payload[i];
    }
    break;
  case Op::Pad:
    below_pad(node, below, domain, map);
    break;
  case Op::Window: {
    Coordinate& position = map.at[static_cast<size_t>(node.payload[0])];
    scale(position, node.payload[2]);
    add(position, map.at.back(), node.payload[3]);
    map.at.pop_back();
    break;
  }
  case Op::Reshape: {
    Domain cut_domain = domain;
    std::vector<AxisCut> more;
    if (!below_reshape(node.shape, below, map, cut_domain, more)) return std::nullopt;
    domain = std::move(cut_domain);
    cuts.insert(cuts.end(), more.begin(), more.end());
    break;
  }
  default:
    return std::nullopt;
  }
  return map;
}

bool varies_along(const ViewMap& map, size_t axis) {
  const auto steps = [axis](const Coordinate& at) { return at.steps[axis] != 0; };
  return std::ranges::any_of(map.at, steps) ||
         std::ranges::any_of(map.guards, steps, &Guard::at);
}

bool reads_apart(const ViewMap& map, const Domain& domain) {
  std::vector<bool> told(domain.size());
  for (const Coordinate& at : map.at) {
    int64_t reach = 0;
    for (size_t axis : by_step(at)) {
      const int64_t step = std::abs(at.steps[axis]);
      if (step <= reach) return false;
      reach += step * (domain[axis].extent - 1);
      told[axis] = true;
    }
  }
  for (size_t axis = 0; axis < domain.size(); ++axis)
    if (varies_along(map, axis) && !told[axis]) return false;
  return true;
}

std::optional<std::vector<size_t>> run_of(const Coordinate& at, int64_t extent,
                                          const Domain& domain) {
  std::vector<size_t> axes = by_step(at);
  int64_t next = 1;
  for (size_t axis : axes) {
    if (at.steps[axis] != next) return std::nullopt;
    next *= domain[axis].extent;
  }
  if (at.constant != 0 || next != extent) return std::nullopt;
  std::ranges::reverse(axes);
  return axes;
}

CoordinateRange range_of(const Coordinate& at, const Domain& domain) {
  CoordinateRange range{at.constant, at.constant};
  for (size_t i = 0; i < at.steps.size(); ++i) {
    const int64_t reach = at.steps[i] * (domain[i].extent - 1);
    (reach < 0 ? range.low : range.high) += reach;
  }
  return range;
}

} // namespace svod
