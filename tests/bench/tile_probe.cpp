// What tiles of registers take on this core, in clocks of `tile_probe GHZ`: a product of
// bytes for 16, 8 and 4 rows of positions, and a row that is read or written. Columns of
// machine.def. Compiled with -mamx-tile -mamx-int8; exits with 1 where Linux allows none.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

struct alignas(64) Shapes {
  uint8_t palette = 1, start = 0, unused[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

void shape(uint8_t rows) {
  constexpr int kTiles = 8, kSums = 4, kPositions = 2;
  Shapes shapes;
  for (int i = 0; i < kTiles; ++i) {
    shapes.row_bytes[i] = 64;
    shapes.rows[i] = i < kSums + kPositions ? rows : 16;
  }
  __builtin_ia32_tile_loadconfig(&shapes);
}

template <class Step> double least_ns(Step step) {
  constexpr int kSteps = 20000, kRounds = 20;
  double best = 1e30;
  for (int round = 0; round < kRounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kSteps; ++i) step();
    const std::chrono::duration<double, std::nano> time =
        std::chrono::steady_clock::now() - start;
    best = time.count() / kSteps < best ? time.count() / kSteps : best;
  }
  return best;
}

} // namespace

int main(int argc, char** argv) {
  constexpr long kRequestState = 0x1023, kTileData = 18;
  const double ghz = argc > 1 ? std::atof(argv[1]) : 1;
  if (syscall(SYS_arch_prctl, kRequestState, kTileData) != 0) return 1;
  alignas(64) static uint8_t memory[1 << 12];
  for (const uint8_t rows : {uint8_t{16}, uint8_t{8}, uint8_t{4}}) {
    shape(rows);
    const double four = least_ns([] {
      __builtin_ia32_tdpbusd(0, 4, 6);
      __builtin_ia32_tdpbusd(1, 4, 7);
      __builtin_ia32_tdpbusd(2, 5, 6);
      __builtin_ia32_tdpbusd(3, 5, 7);
    });
    std::printf("product of %d rows: %.1f clocks\n", rows, four * ghz / 4);
  }
  shape(16);
  const double read = least_ns([] { __builtin_ia32_tileloadd64(0, memory, 64); });
  const double written = least_ns([] { __builtin_ia32_tilestored64(0, memory, 64); });
  std::printf("row read: %.2f clocks, written: %.2f\n", read * ghz / 16,
              written * ghz / 16);
}
