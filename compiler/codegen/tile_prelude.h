// What kernels that multiply tiles of registers start with, after the prelude: registers
// of up to 16 rows of 64 bytes, which a product names by number. Their shapes are set
// once for a call; what does not fill a tile is computed twice, so that no shape changes
// on the way.
namespace kernel {
struct alignas(64) TileShapes {
  u8 palette, start, unused[14];
  u16 row_bytes[16];
  u8 rows[16];
};

// The first `kSums` registers hold sums of as many positions as a tile has rows, then
// come those of positions with groups of four bytes, and then those of such groups with
// lanes.
template <int kSums, int kPositions, int kWeights, int kRows, int kGroups>
SVOD_INLINE void shape_tiles() {
  constexpr int kRow = 64, kGroup = 4;
  TileShapes shapes = {};
  shapes.palette = 1;
#pragma clang loop unroll(full)
  for (int i = 0; i < kSums + kPositions + kWeights; ++i) {
    const bool weights = i >= kSums + kPositions;
    shapes.rows[i] = weights ? kGroups : kRows;
    shapes.row_bytes[i] = i >= kSums && !weights ? kGroups * kGroup : kRow;
  }
  __builtin_ia32_tile_loadconfig(&shapes);
}
// Threads that hold no tiles have 8 KB less to be saved when they wait.
SVOD_INLINE void release_tiles() { __builtin_ia32_tilerelease(); }

template <int kTile> SVOD_INLINE void clear_tile() { __builtin_ia32_tilezero(kTile); }
// Rows `apart` bytes from each other.
template <int kTile, class E> SVOD_INLINE void read_tile(const E* from, iptr apart) {
  __builtin_ia32_tileloadd64(kTile, from, apart);
}
// As many lines that are wanted soon, likewise.
template <int kRows, class E>
SVOD_INLINE void fetch_rows(const E* from, iptr at, iptr apart) {
#pragma clang loop unroll(full)
  for (int i = 0; i < kRows; ++i) fetch(from, at + i * apart);
}
template <int kTile> SVOD_INLINE void write_tile(i32* to, iptr apart) {
  __builtin_ia32_tilestored64(kTile, to, apart);
}
// Unsigned bytes of positions times signed ones of lanes, to 32 bits.
template <int kSums, int kPositions, int kWeights> SVOD_INLINE void add_tiles() {
  __builtin_ia32_tdpbusd(kSums, kPositions, kWeights);
}
} // namespace kernel
