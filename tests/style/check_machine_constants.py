#!/usr/bin/env python3
"""Numbers of processors stand in compiler/support/machine.def and nowhere else.

Three things are held. In the folders that decide how a kernel runs every named number is listed here with its unit and the
reason why it is no property of a machine, and no size is written in KiB or MiB. Elsewhere a name that sounds like one (bytes of
a cache, nanoseconds, GFLOP/s) is listed. The emitter chooses nothing: it calls no chooser, sees no cost and no machine.
"""
import pathlib
import re
import subprocess
import sys

DECIDING = ["compiler/kernel/", "compiler/lower/", "compiler/select/", "compiler/optimize/", "compiler/plan/",
            "compiler/codegen/", "compiler/pipeline"]
TABLE = "compiler/support/machine"
# A number with a name: it begins with a digit, a sign, a cast or a bracket. Tables, texts and copies do not.
NUMBER = re.compile(r"\b(k[A-Z]\w*)\s*=\s*(?:[-~(]*[0-9.]|u?int\w*\{)")
SIZE = re.compile(r"<<\s*[123]0\b")
SOUNDS = re.compile(r"Cache|Page|Line(Bytes)?s?$|(?<![a-z])Ns$|PerNs|Nano|Micro|Clock|Spin|Flops|Bandwidth|Registers?$|Ways$|"
                    r"Resident|Latency|Prefetch|Ahead|Streamed?|SetBytes")

# Numbers of the deciding folders that are no property of a machine: unit, and why.
LISTED = {
    # Of the forms themselves, their rounding, and what has to be encoded.
    "kDot": "bytes: of one dot product, which weights are packed for on all levels of a target",
    "kQuad": "lanes: of 32 bits in the shortest register that is narrowed with saturation",
    "kGroups": "groups: of four bytes in a register of 128 bits, of which SDOT takes one as an element",
    "kMostWinogradInputs": "points: for which the transforms are known",
    "kMostShared": "bytes: of shared memory in a schedule file, the most that any architecture has",
    "kMostAhead": "tiles: on their way in a schedule file, so that a text stays compilable",
    "kMatrixSide": "rows or columns: of what a warp multiplies at once, fixed by PTX",
    "kMatrixBytes": "bytes: of steps of the same, fixed by PTX",
    "kOfWord": "elements: of 32 bits, of whichever type",
    "kParts": "threads: that have the words of one row of a matrix, fixed by PTX",
    "kWords": "words: that a thread has of both matrices, fixed by PTX",
    "kPitchBytes": "bytes: between runs in shared memory, what a thread reads at once, so that these start in other banks",
    "kWholeCopy": "bytes: of the longest copy to shared memory, fixed by PTX",
    "kSumBytes": "bytes: of a sum that is left in memory, f32 or i32",
    "kRegistersOfThread": "registers: for each thread that a multiprocessor may hold, fixed by its 64 Ki, PTX",
    "kRegistersBeside": "registers: of a thread beside its sums, what ptxas reports of these texts",
    "kGroupThreads": "threads: of a group of four warps, fixed by PTX",
    "kGroupRows": "rows: that a group multiplies at once, fixed by PTX",
    "kGroupColumns": "columns: that a group multiplies at most at once, fixed by PTX",
    "kSwizzledBytes": "bytes: of a row of shared memory as groups read it, fixed by PTX",
    "kUnitBytes": "bytes: of what is exchanged in such a row, fixed by PTX",
    "kPartBytes": "bytes: of a sum or a place that a block leaves, of whichever type",
    "kWaitsOfParts": "waits for memory: of blocks that share a row, for their arrival and their parts, counted",
    "kScatterTile": "updates: of a scatter in shared memory at once, a choice that fits all architectures",
    "kScatterBatch": "updates: of a scatter that a thread reads at once, a choice that its registers hold",
    "kOwnedAtOnce": "bits: of a word that says which updates are a thread's",
    "kInstructionsOfPlace": "instructions: of these texts for a place that a thread looks at, counted",
    "kInstructionsOfUpdate": "instructions: of these texts for an update that it applies, estimated",
    "kBanks": "banks: of shared memory on every architecture",
    "kOfRow": "elements: of such a row, of whichever type",
    "kUnit": "elements: of what is exchanged in it, of whichever type",
    "kLineBytes": "bytes: of memory that a warp's threads read at once on every architecture",
    "kProductsReached": "share of a column: of flops_per_clock that these texts reach, fitted with the tiles",
    "kInstructionsOfQuickScore": "instructions: of these texts for a score and its weight, where tensor cores multiply",
    "kInstructionsOfScore": "instructions: likewise, where threads do, with an exponential as exact as the evaluator's",
    "kSmallBase": "magnitude: of a maximum, below which its product with log2 e rounds by 2^-13 at most",
    "kStepsRead": "steps: whose factors ptxas keeps in registers at once, of what it reports of these texts",
    "kCacheReached": "share of a column: of second.bytes_per_clock that one block of attention reaches, that of products",
    "kGroupsReached": "share: of the rate of groups of warps that their products reach beside weights, fitted",
    "kInstructionsOfGroupScore": "instructions: of these texts for a score of a group of warps, fitted",
    "kInstructionsOfGroupRun": "instructions: of these texts for a run of keys with its roundings, fitted",
    "kStepWaits": "waits for memory: of a step of one group of warps by itself, fitted",
    "kBlockWaits": "waits for memory: of a block before its first step and behind its last one, fitted",
    "kRegistersOfScore": "registers: that ptxas takes for each score of a thread, beside all else",
    "kRegistersOfOnlyScore": "registers: likewise, where one step is all",
    "kRegistersOfResult": "registers: that ptxas takes for each result of a thread",
    "kTurnedLonger": "share: how much longer groups take for many columns that lie by position, measured",
    "kMostTurned": "columns: up to which they do not",
    "kRaised": "exponent: weights below e^8 are halves like those below 1, sums of them far from overflow",
    "kFewTurns": "turns: of a loop that is written out, whose values stay in registers",
    "kHidden": "share: of a wait that each tile of keys ahead hides, that of products",
    "kInstructionsOfRun": "instructions: of these texts for a run of keys through registers, those of products",
    "kInstructionsOfCopy": "instructions: of these texts for a run of keys that is copied ahead, those of products",
    "kHalfBytes": "bytes: of the factors that columns of tensor cores count",
    "kRegistersOfFetch": "registers: of a run's place and bounds on its way, what ptxas reports of these texts",
    "kRegistersOfMatrix": "registers: of a matrix of a warp, fixed by PTX",
    "kMostRegisters": "registers: that a thread can name, fixed by PTX",
    "kRegisterBytes": "bytes: of such a register",
    "kFewestTurns": "tiles of steps: of a share of a sum, below which sharing is no gain",
    "kPictureRank": "axes: of a picture, batch and channels included",
    "kChannels": "place: of the channels among the axes of a picture in ONNX",
    "kWarpThreads": "threads: of a warp, fixed by PTX for every architecture",
    "kWholeWarp": "lane: the last one of a warp, as PTX's shuffle takes it",
    "kMostSums": "sums: of a thread in a schedule file, so that a text stays compilable",
    "kMostThreads": "threads: of a block in a schedule file, PTX's limit on every architecture",
    "kMostPositions": "positions: of a tile in a schedule file, so that a text stays compilable",
    "kMostStages": "stages: that a schedule file may name, against a text that asks for all memory",
    "kErrorBound": "relative error: what --accuracy fast promises",
    "kMostNeighbours": "elements: of 16 bits in those bytes",
    "kMostNearBytes": "bytes: that one instruction of PTX reads or writes at most",
    "kMostNear": "magnitude: below it f32 to i32 is exact in the emitted form",
    "kColumns": "columns: sampled for Strassen's error",
    "kMostElements": "elements: of a weight that are looked at, the compiler's own time",
    "kSlotAlign": "bytes: of the image format",
    "kAlign": "bytes: of the image format",
    "kMemoryLevels": "memories: that a machine's row tells of, three caches and what lies behind them",
    "kNoSlot": "number of no slot",
    "kNoBuffer": "number of no buffer",
    "kHalf": "bits: half of a key's",
    "kMostScratch": "bytes: of a call's memory that every thread may have, a matter of address space",
    # The compiler's own time and the size of the text.
    "kMaxGroupNodes": "nodes: larger kernels compile slowly",
    "kMostNodes": "nodes: looked at for a costly function",
    "kMostCopies": "copies of a body: text",
    "kWrittenOut": "steps: text of a body that is written out",
    "kMostValues": "arguments: numbers of a merged function that are called with by themselves; a table's address is two",
    "kSteps": "accesses and operations: of one turn of a loop that only moves and maps",
    "kElements": "loads: of single elements, written out together",
    "kLongRow": "positions: shorter rows are not worth text of their own",
    "kRows": "positions: of one axis that tiles of the search are tried with",
    "kTileAxes": "axes: that a tile of the search is made of, a bound of its work",
    "kBestTiles": "schedules: tiles that a search varies further, a bound of its work",
    "kAllOrders": "loops: of which a search tries every order, a bound of its work",
    "kBestLoops": "schedules: orders that a search varies further, a bound of its work",
    "kTilesOfLoops": "schedules: tiles that a search keeps of each order, a bound of its work",
    "kLongestRow": "positions: of one axis that a tile is tried with",
    "kManyGathers": "gathers: text of a tile of more is long",
    "kMostParts": "programs: of a sequence, compiled together",
    "kPlacements": "placements: tried by the memory planner",
    "kMostSets": "sets: of units that may have run, kept of one number, the compiler's own time",
    "kFewestSets": "sets: likewise, in a piece of many units",
    "kSetsTimesUnits": "sets by units: that a search for an order looks at, the compiler's own time",
    "kMostUnits": "units: of which a search knows each pair's order, the compiler's own memory",
    "kChangeKeyBytes": "bytes: in front of conditions, of the stub's layout",
    "kLastChangeBit": "bit: the last of a mask of inputs",
    "kPart": "positions: of the tile that finishes a loop which a run ends, enough to use what they share",
    "kMostRests": "positions: of a tile of which each shorter one may finish such a loop, a piece of code each",
    "kFewPositions": "positions: of a kernel that makes a list of sizes, of which one has as many as axes",
    "kNoPlace": "elements: an index that no memory has, which the importer gives where a condition fails",
    "kLowest": "of floats: what a mask puts in place of what a greatest must not see, or less",
    "kMostSteps": "steps of a kernel's loops: walked to see what it reads last, the compiler's own time",
    "kMostExact": "choices: of a region of which all cuts are weighed, the compiler's own time",
    "kBeam": "cuts: that a search goes on from, the compiler's own time",
    "kMostOfRegion": "cuts: that are priced for one region, the compiler's own time",
    "kMostPieces": "pieces: of one step's reads, the compiler's own time",
    "kNever": "number of no step",
    "kLongest": "kernels: of a chain or a stream, the search's limit",
    "kMostCuts": "cuts: whose blocks are placed, the compiler's own time",
    "kLooser": "part: of the bytes, what a cut that is placed may need more",
    "kLeastSaved": "part: of the bytes of an arena, what turns of kernels in flash have to bring",
    "kPositionsLost": "positions: of a row, half a tile of any shape",
    "kWord": "bytes: of the words that rows are moved by, on every core",
    "kMostBetween": "kernels: between those of a chain, the search's limit",
    "kTileRows": "rows: of a tile in the first palette of AMX, which the emitted form is for",
    "kTileBytes": "bytes: of a row there",
    "kTileRegisters": "tiles: there",
    "kRow": "bytes: of a row there",
    "kGroup": "bytes: of a group of factors that are multiplied and added as one",
    "kTogether": "vectors: narrowed and stored as one in the emitted form; tiles of an axis that are tried",
    "kWaiting": "products: of tiles that one takes until the next may add to its sums, rounded up for the loops around",
    "kReached": "share: of the peak that tiles of dot products reach, which tiles of registers are held against",
    "kNarrowOne": "instructions: of the emitted form, per vector",
    "kNarrowFour": "instructions: of the emitted form, per four vectors",
    "kRowsOfSweep": "rows: of a register tile of 16 or 32 registers, which read a factor once",
    "kVectorsOfSweep": "vectors: of such a tile at least, likewise",
    "kSweepsOfCopy": "sweeps: that a copy costs, which is read, written and read again",
    "kWorthCopy": "times: what a copy saves of what it costs",
    "kSwapWork": "instructions: of the emitted form, per vector",
    "kStepWork": "instructions: of the emitted form, per step down a tree",
    "kAddresses": "registers: of a loop over two operands, beside its sums",
    "kNearLanes": "elements: of the emitted form, which shuffles whole vectors",
    # Of the cost model: what the emitted text consists of, and ratios of two waits.
    "kBound": "instructions: of the emitted form, per condition",
    "kLane": "instructions: of the emitted form, per lane taken or put by itself",
    "kPartOfVector": "instructions: of the emitted form, per vector of which some lanes are read or written",
    "kIndexQuotient": "instructions: of the emitted form, per quotient or remainder of an index",
    "kAddress": "instructions: of the emitted form, per access",
    "kLoop": "instructions: of the emitted form, per turn of a loop",
    "kBest": "instructions: of the emitted form, per step of an arg reduction",
    "kAcross": "instructions: of the emitted form, per vector whose lanes are summed",
    "kAcrossTogether": "instructions: of the emitted form, likewise where several are",
    "kSwap": "instructions: of the emitted form, per row of a square that is turned",
    "kNarrow": "instructions: of the emitted form, per vector narrowed to bytes",
    "kCompareWaits": "ratio of two waits: of a greatest, which is compared and chosen, and of a multiply-add",
    "kSumWaits": "ratio of two waits: of a sum and of a multiply-add",
    # Shares and counts, to which a machine's times are applied by a formula beside them.
    "kAsGood": "ratio of two costs: below it instructions that no cost counts decide",
    "kWorthWeights": "ratio of two times: what larger weights have to gain",
    "kWorthBlocks": "ratio of two amounts of bytes: what rows in blocks have to save",
    "kLeastCutGain": "ratio of two times: what another cut has to save of those that it changes, as the model errs",
    "kLeastShareOfRun": "ratio of two times: what another cut has to save of a whole run, below it nothing is measured",
    "kProductsAgain": "ratio of two times: of products and of what is read again for every part",
    "kLoadsOfShared": "loads: of a picture's element, for each vector of columns that a part has",
    "kRegionsOfChunk": "ratio of two times: of a chunk and of a region's cost",
    "kRegionsOfTwo": "ratio of two times: of work for two threads and of a region's cost",
    "kLaunchesOfKernel": "ratio of two times: of a short kernel and of a launch",
    "kMaxChunks": "chunks: what the pool's threads may share",
    "kAlongOneAxis": "operations: per transformed value of the emitted form",
    "kSmallTile": "operations: per transformed value of the emitted form",
    "kRegisterTile": "operations: per transformed value of the emitted form",
    "kNearTile": "operations: per transformed value of the emitted form",
    "kLargeTile": "operations: per transformed value of the emitted form",
    "kBlockValue": "operations: per value of a block of a halved product",
    "kGather": "operations: per value of an input that is gathered",
    "kBytesOfFarValue": "bytes: to and from memory per value, of which part is hidden",
    "kMostOfFarValue": "operations of products that one of them takes at most: a count",
    "kRowOfTiles": "tiles: fill a product's register tile",
    "kFewestOfTile": "positions: along each side of a product that is tiled, reads that one element saves",
    "kFewestRows": "rows: of a product that is halved",
    "kFewestRowsOfPart": "rows: of a part of a chain",
    "kFewestParts": "parts: of a chain, to be shared by threads",
    "kFewestVectors": "vectors: of a row, a share of it that padding may take",
    "kMostPlanes": "planes: more of them are features, no picture",
    "kFewestPositions": "positions: of which two have text of their own",
    "kMostTogether": "ratio of products: with groups merged and apart",
    "kMostOfWideOnes": "ratio of products: with groups of a few vectors merged and apart",
    "kMostLacking": "groups: so many for each group of zeros that is added to them, products by zeros against moving data",
    "kFewVectors": "vectors of a group: a wider one is near enough to whole vectors by itself",
    "kShort": "steps: of a sum that sums across lanes dominate",
    "kAgain": "reads of each element: below, a value is not worth to be turned",
    "kSideBySide": "stages of a kernel whose results are written out",
    "kOften": "uses: of an operand that is turned around once",
    "kSmall": "bytes: of a weight that is not worth decoding, package size",
    "kManySteps": "steps: of a sum whose factor is multiplied afterwards",
    "kSkippedSteps": "steps: whose work hides a branch",
    "kWrittenBehind": "operations of text behind a tile's sums in small code: bytes, on any core",
    "kWrittenSteps": "positions times steps in small code: text against index arithmetic, in bytes",
    "kShortWork": "operations: of a copy, whose lanes are little text",
    "kRounds": "rounds of a loop: fewer end before several sums pay",
    "kFewestColumns": "columns: fewer are stored one by one, text",
    "kFewest": "elements: of a copy's piece, fewer are no register of any level",
    "kReadsOfTile": "elements: what one tile of the largest form of 3 x 3 is made of, of which a position reads no more",
    "kSmaller": "times: as small as an input is what is copied to be multiplied with it, so that the copy is free",
    "kMuch": "times: as large a copy of views as what is picked from it, a bound of its bytes",
    "kSumBlock": "numbers: of a block of a sum, for its digits",
    "kShortBlocksAbove": "share: a form's error of the written sum's, above which its sums have short blocks",
    "kMostInLongSums": "share: of the written sum's error, that a plan without short blocks may have for other weights",
    "kMostOfDrawings": "share: of the written sum's error on drawings, above which a form is none to take",
    "kLargestDrawing": "rows and columns: of a picture of a digit or a letter",
    "kMostOfNetwork": "share: of what sums err that add one product after the other, for a network's forms together",
    "kFewestResults": "numbers: that an error is measured on",
    "kManyNumbers": "numbers: of a sum of what is no product, above which it has short blocks, for its digits",
    "kLongOfScalars": "steps: of one that loses them where an addition more is worth their bytes",
    "kBlock": "steps: of a sum of a long one, digits",
    "kBits": "bits: the shortest vector that emitted text has",
    # Of the emitted text itself.
    "kMost": "entries: of a table of all two-byte values",
    "kBytes": "entries: of a table of all bytes",
    "kWhole": "elements: of the vectors that a prelude splits",
    "kLook": "entries: of a sorted key's run",
    "kRun": "elements: sorted by insertion",
    "kRows": "rows: of bytes that a store interleaves",
    "kNearestEven": "operand of an instruction",
}
# Names that sound like a machine's and are not, outside the deciding folders.
SOUND_ONLY = {
    "kPage": "importer: characters, of a table of letter case",
    "kLastPage": "importer: number of such a page",
    "kCachedNodes": "importer: nodes; blocks of trees fix the order of a sum, which must not depend on the target",
    "kLargePage": "runtime_stub: no table there; a hint about memory that the system may refuse",
    "kHugePage": "runtime_stub: a number of Linux's",
    "kSpins": "runtime_stub: no table there; turns before a thread sleeps, for want of knowing the next kernel",
}
DECISION = re.compile(r"\bchoose_\w+|\b\w*cost\w*|compiler/optimize/choose\w*\.h|compiler/support/machine\.h|"
                      r"\bmachine\(?\)?\.\w+|\blevel_?\.registers\b")


def statements(path):
    """(first line, text) of what stands between semicolons and braces, without comments; of a prelude as of any text."""
    text = "\n".join(line.split("//")[0] for line in pathlib.Path(path).read_text().splitlines())
    at = 0
    for part in re.split(r"[;{}](?=\s)", text):
        yield text.count("\n", 0, at + len(part) - len(part.lstrip())) + 1, part
        at += len(part) + 1


def main():
    files = subprocess.run(["git", "ls-files", "compiler", "importer", "packager", "runtime_stub"], check=True,
                           capture_output=True, text=True).stdout.split()
    faults, seen = [], set()
    for path in (f for f in files if f.endswith((".cpp", ".h")) and not f.startswith(TABLE)):
        deciding = path.startswith(tuple(DECIDING))
        emits = path.startswith("compiler/codegen/") and not path.endswith("_prelude.h")
        for line, text in statements(path):
            numbers = NUMBER.findall(text) if "constexpr" in text else []
            seen.update(numbers)
            faults += [f"{path}:{line}: the emitter decides by '{word}'" for word in DECISION.findall(text) if emits]
            for name in numbers:
                if deciding and name not in LISTED:
                    faults.append(f"{path}:{line}: {name} is not listed: a column of machine.def, or unit and reason here")
                elif not deciding and SOUNDS.search(name) and name not in SOUND_ONLY:
                    faults.append(f"{path}:{line}: {name} sounds like a machine's: a column of machine.def, or a reason here")
            if deciding and SIZE.search(text) and not any(name in LISTED for name in numbers):
                faults.append(f"{path}:{line}: a size in KiB, MiB or GiB: a column of machine.def")
    faults += sorted(f"{name} is listed and is nowhere" for name in {*LISTED, *SOUND_ONLY} - seen)
    for fault in faults:
        print(fault)
    print(f"{len(LISTED) + len(SOUND_ONLY)} constants with a reason")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
