// The self-test of a firmware library as an image for an emulated board, or as a folder
// from which a user's runner builds one, and what a run of it says.
#pragma once

#include "packager/artefact/header_file.h"
#include "packager/artefact/objects.h"
#include "packager/firmware/emulated_board.h"
#include "packager/options.h"
#include "packager/verify/run_program.h"

#include <map>
#include <string>
#include <vector>

namespace svod::packager {

struct DeviceTest {
  const Options& options;
  const Objects& objects;
  const HeaderFacts& header;
  std::string text; // of testbench_text()
};

// Path of the emulator that runs images of the target; empty where none is here.
std::string board_emulator(const Target& target);

// The name of the library's header.
std::string test_header(const Options& options);

// Compiled and linked here; only the functions of software floats come from the user's
// compiler, if there is one.
bool link_image(const DeviceTest& test, const EmulatedBoard& board,
                const std::string& path, std::string& error);

// selftest.c, the library and its header.
bool write_folder(const DeviceTest& test, const std::string& folder, std::string& error);

// Runs an image; `counts`: with the board's counter counting instructions.
std::vector<std::string> emulator_words(const EmulatedBoard& board,
                                        const std::string& emulator,
                                        const std::string& image, bool counts);

struct DeviceRun {
  bool passed = false;
  std::vector<std::string> lines;     // all others, as the device printed them
  std::map<size_t, uint64_t> counted; // by program, of a test that counts
};
DeviceRun read_device(const Ran& ran);

} // namespace svod::packager
