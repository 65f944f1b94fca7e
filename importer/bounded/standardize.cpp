#include "importer/bounded/standardize.h"

#include "compiler/ir/build.h"

namespace svod::importer {

namespace {

// Means over groups of channels, of which each channel has its group's. Channels are
// summed by themselves first: groups of 10 or 12 of them begin within vectors of
// channels, and a kernel whose lanes are channels has no other way to sum them (U-Net of
// 96 channels in 8 groups: 139 us for the kernel that normalises, by channels 13).
class GroupMeans {
public:
  GroupMeans(Expr x, int64_t groups)
      : batch_(x.shape()[0]), channels_(x.shape()[1]), groups_(groups),
        positions_(element_count(x.shape()) / (batch_ * channels_)), rank_(x.rank()) {}

  Expr mean(Expr x) const {
    const Shape groups{batch_, groups_, channels_ / groups_};
    const Expr total = sum(reshape(sum(x, axes_from(2, rank_)), groups), {2});
    const int64_t count = positions_ * (channels_ / groups_);
    return total / static_cast<double>(count);
  }
  Expr by_channel(Expr of_group) const {
    Shape channels(static_cast<size_t>(rank_), 1);
    channels[0] = batch_, channels[1] = channels_;
    const Shape groups{batch_, groups_, channels_ / groups_};
    return reshape({of_group.g, expand(*of_group.g, of_group.id, groups)}, channels);
  }

private:
  int64_t batch_, channels_, groups_, positions_, rank_;
};

} // namespace

Expr standardize_groups(Expr x, int64_t groups, double epsilon) {
  const GroupMeans by(x, groups);
  const Expr difference = x - by.by_channel(by.mean(x));
  const Expr variance = by.mean(difference * difference);
  return difference * by.by_channel(reciprocal(sqrt(variance + epsilon)));
}

Standardized standardize(Expr x, const std::vector<int64_t>& axes, double epsilon,
                         const Counts& counts) {
  const Expr center = mean_of_meant(x, counts, axes);
  const Expr difference = x - center;
  const Expr variance = mean_of_meant(difference * difference, counts, axes);
  const Expr inverse = reciprocal(sqrt(variance + epsilon));
  return {difference * inverse, center, inverse};
}

} // namespace svod::importer
