// The packed image: the one schema that packager and stub share. Plain structs at fixed
// offsets, little endian, readable in place from flash; every table is reached by offset
// from the header, never by pointer. Emitted kernels are called with the types at the end
// of this file.
//
// History:  1  first layout
//           2  SvodTensor: fixed, shape_output, role
//           3  SvodValue, SvodKey: sequences, optionals and maps over inputs and outputs
//           4  regions and slices: steps that run others, slots that move with them
//           5  chains: steps that run part by part, slots of one part
//           6  states: tensors that stay from run to run
//           7  states that grow: SvodState: counter, axis, most; SvodTensor: counter,
//              counted_axes
#ifndef SVOD_FORMAT_H
#define SVOD_FORMAT_H

#include "runtime_stub/status.h"
#include "runtime_stub/types.h"

#define SVOD_FORMAT_VERSION 7u
#define SVOD_ALIGN 64u // of image, weights, arena and every slot in them
// What stands in front of the arena of svod_replay: a library keeps there what it knows
// from earlier calls. A program leaves it, so that a model needs the same arena whatever
// it is packed to.
#define SVOD_ARENA_NOTES 64u
#define SVOD_MAX_RANK 16u
#define SVOD_MAX_NESTING 16u           // of regions; an if counts twice
#define SVOD_MAX_ITERATIONS (1u << 30) // of a loop
#define SVOD_NO_SLOT 0xffffffffu

// A table in the image: `count` elements of one struct type, `offset` bytes from the
// header.
struct SvodTable {
  uint32_t offset;
  uint32_t count;
};

// Text in the image, not terminated; model strings live nowhere else.
struct SvodText {
  uint32_t offset;
  uint32_t size;
};

struct SvodHeader {
  uint8_t magic[8]; // "SVODIMG", 0
  uint32_t version;
  uint32_t image_bytes;    // header and all tables
  uint64_t weight_bytes;   // the separate weight section
  uint64_t image_checksum; // svod_checksum of the image with this field zero
  uint64_t weight_checksum;
  uint8_t model_sha256[32];
  struct SvodTable entries;  // SvodEntry
  struct SvodTable tensors;  // SvodTensor
  struct SvodTable dims;     // int64_t
  struct SvodTable slots;    // SvodSlot
  struct SvodTable steps;    // SvodStep
  struct SvodTable args;     // uint32_t, slot numbers within the entry
  struct SvodTable programs; // SvodProgram
  struct SvodTable values;   // SvodValue
  struct SvodTable keys;     // SvodKey
  struct SvodTable slices;   // SvodSlice
  struct SvodTable regions;  // SvodRegion
  struct SvodTable states;   // SvodState
  struct SvodText text;      // all strings, back to back
  struct SvodText manifest;  // JSON, printed by --info=json; a zero byte follows it
  uint32_t max_buffers;      // largest arg_count of any step
  uint32_t threads;          // upper bound compiled in, 0: taken at run time
};

// One set of input shapes with its frozen schedule.
struct SvodEntry {
  uint8_t digest[16];                  // of the plan
  uint32_t first_input, input_count;   // in tensors
  uint32_t first_output, output_count; // in tensors
  uint32_t first_slot, slot_count;
  uint32_t first_step, step_count;
  uint32_t first_input_value, input_values;   // in values; none: every input or output
  uint32_t first_output_value, output_values; // is a value of its own, a tensor
  uint32_t first_state, state_count;
  uint64_t arena_bytes;   // temporaries; scratch of each thread follows
  uint64_t scratch_bytes; // per thread, a multiple of SVOD_ALIGN
  uint64_t arena_lower_bound;
};

struct SvodTensor {
  struct SvodText name;
  uint32_t dtype; // TensorProto.DataType
  uint32_t rank;
  uint32_t first_dim; // in dims
  uint32_t alignment; // of the caller's pointer, a power of two: the element's size
  uint64_t elements;
  uint64_t bytes;
  // Of an input packed for one value: its bytes, so as many as `bytes`. Size 0: any
  // value.
  struct SvodText fixed;
  // Of an output whose extents depend on the data: 1 + the number of the output that
  // holds the extents, int64 per axis; dims are then their upper bounds, and elements lie
  // as in a tensor of these. 0: dims are the extents.
  // Of an input whose extents a run decides: likewise, of an input. Of such an input of
  // extents: one bit for each axis that a run decides, the others are as in dims.
  // Of an input or output that is a state: 1 + its number among those of the entry.
  uint32_t shape_output;
  uint32_t role; // SvodTensorRole
  // Of an input whose extents a run decides: 1 + the number of the state that counts the
  // rows which some of its axes follow, one bit each. They are as much longer than these
  // as the dims are than the counter's `most`. 0: none do.
  uint32_t counter, counted_axes;
};

// The end of a file of weights, behind the bytes of the weight section: whose they are.
struct SvodWeightsEnd {
  uint8_t magic[8];         // "SVODWTS", 0
  uint64_t weight_bytes;    // as in the header of the image, like the rest
  uint64_t weight_checksum; // tells apart what one model was packed to
  uint8_t model_sha256[32];
  uint64_t reserved;
};

enum SvodTensorRole {
  SVOD_ROLE_MODEL = 0,    // an input or output of the model
  SVOD_ROLE_SHAPE = 1,    // the extents of another output, or input
  SVOD_ROLE_PRESENCE = 2, // whether an optional output is there
  SVOD_ROLE_STATE = 3,    // an output that is an input of the next run, or that input
  SVOD_ROLE_PICTURE = 4,  // the extents of an input that is a picture file: its bytes
};

enum SvodStateKind {
  SVOD_STATE_PLACE = 0, // input and output are one place
  SVOD_STATE_TURNS =
      1, // of two places one is read, one written, then the other way round
  SVOD_STATE_MOVES = 2,  // one place, which the next run begins `step` bytes further on
  SVOD_STATE_COPIED = 3, // the output has a second place; from `step` on it is copied
};

// A tensor that stays from run to run: an output is an input of the next run, and neither
// is the caller's. Zeros before the first run.
struct SvodState {
  uint32_t input, output; // numbers among the entry's tensors
  uint32_t kind;          // SvodStateKind
  uint32_t period;        // MOVES: after so many runs what is kept moves to the front
  uint64_t bytes;         // of a place; MOVES: of all that it moves in
  uint64_t offset;        // of the first place, behind the head of the states' memory
  uint32_t step;          // MOVES, COPIED
  // Of the input: parts of it, and from one to the next; what lies between is room.
  uint32_t parts, part_bytes, apart_bytes;
  // Of a state that grows along an axis: 1 + the number of the state that counts how many
  // rows it holds. 0: it has one size.
  uint32_t counter, axis;
  uint64_t most; // of a counter: the rows with which a run may begin
};

enum SvodValueKind {
  SVOD_VALUE_TENSOR = 0,
  SVOD_VALUE_SEQUENCE = 1, // one tensor per element
  SVOD_VALUE_MAP = 2,      // one tensor, an element per key
  SVOD_VALUE_MAPS = 3,     // a sequence of maps of the same keys: a tensor [maps, keys]
};

enum SvodValueFlag {
  SVOD_VALUE_OPTIONAL = 1, // the model says that it may be left out
  SVOD_VALUE_ABSENT = 2,   // it is left out, in every run
  SVOD_VALUE_ANY_KEYS = 4, // a map may lack keys, which then are 0, and have others
  SVOD_VALUE_TEXT_KEYS = 8,
};

// What the model calls one input or output.
struct SvodValue {
  struct SvodText name;
  uint32_t kind, flags;
  uint32_t first, count; // tensors, numbers among the entry's inputs or outputs
  uint32_t first_key, key_count;
  uint32_t dtype;    // of its tensors, also where it has none
  uint32_t presence; // an optional output: 1 + the number of the output, a bool, that
                     // says whether it is there; 0: known
};

// Keys of a map are sorted.
struct SvodKey {
  int64_t number;
  struct SvodText text;
  uint32_t place; // of its value
  uint32_t reserved;
};

enum SvodSlotClass {
  SVOD_SLOT_INPUT = 0,     // offset: into input number `io`
  SVOD_SLOT_OUTPUT = 1,    // offset: into output number `io`
  SVOD_SLOT_WEIGHT = 2,    // offset: into the weight section
  SVOD_SLOT_STATE = 3,     // reserved: states are inputs and outputs by role
  SVOD_SLOT_TEMPORARY = 4, // offset: into the arena
  SVOD_SLOT_SLICE = 5,     // offset: into the parent of slice number `io`
  SVOD_SLOT_PART = 6,      // offset: into the scratch of the thread, less chunk * bytes
};

struct SvodSlot {
  uint32_t slot_class;
  uint32_t io;
  uint64_t offset;
  uint64_t bytes;
};

// A part of another slot that moves with a loop: `stride` bytes further per iteration.
struct SvodSlice {
  uint32_t parent; // a slot of the entry before this one
  uint32_t depth;  // of the loop: how many are around it
  uint32_t mask;   // of the iteration: 1 where two places take turns, else all ones
  uint32_t reserved;
  int64_t stride;
};

// Allocate and Deallocate of the compiled graph are resolved into slot offsets when
// packing.
enum SvodStepKind {
  SVOD_STEP_COPY = 1,   // args: source, destination; bytes of the destination slot
  SVOD_STEP_LAUNCH = 2, // program over args, `chunks` independent parts
  SVOD_STEP_LOOP = 3, // region number `program`: the `steps` that follow, again and again
  SVOD_STEP_IF = 4,   // likewise: the `steps` that follow, or the `else_steps` after them
};

// Slots are of the entry, SVOD_NO_SLOT where there is none.
struct SvodRegion {
  uint32_t steps, else_steps;
  uint32_t count;     // loop: int64_t, iterations wanted
  uint32_t start;     // a byte: the condition, of a loop before its first iteration
  uint32_t again;     // loop: a byte, the condition after an iteration
  uint32_t iteration; // loop: int64_t, written before each
  uint32_t done;      // loop: int64_t, written at the end
  uint32_t limit;     // loop: to want more iterations is an error
};

struct SvodStep {
  uint32_t kind;
  uint32_t program;
  uint32_t first_arg, arg_count;
  uint32_t chunks;
  uint32_t followers; // launch: so many steps after it, launches of as many chunks, run
                      // with it: chunk c of each in order, before another chunk of any
  uint64_t flops;     // multiply and add count one each
  uint64_t bytes;     // read and written once
  struct SvodText sources; // ONNX nodes it came from, comma separated
};

struct SvodProgram {
  struct SvodText name; // k0, k1, ...
};

#ifdef __cplusplus
// TURNS and COPIED have a second place behind the first.
inline uint32_t svod_state_places(uint32_t kind) {
  return kind == SVOD_STATE_TURNS || kind == SVOD_STATE_COPIED ? 2 : 1;
}

// In front of the places: a counter for each state, a pointer for each of the entry's
// tensors.
inline uint64_t svod_states_head(uint64_t states, uint64_t tensors,
                                 uint64_t pointer_bytes) {
  const uint64_t bytes = states * sizeof(uint64_t) + tensors * pointer_bytes;
  return (bytes + SVOD_ALIGN - 1) & ~uint64_t{SVOD_ALIGN - 1};
}

static_assert(sizeof(SvodHeader) == 192, "layout change: new version, history line");
static_assert(sizeof(SvodWeightsEnd) == 64, "a multiple of SVOD_ALIGN");
static_assert(sizeof(SvodEntry) == 96, "layout change: new version, history line");
static_assert(sizeof(SvodTensor) == 64, "layout change: new version, history line");
static_assert(sizeof(SvodValue) == 40, "layout change: new version, history line");
static_assert(sizeof(SvodKey) == 24, "layout change: new version, history line");
static_assert(sizeof(SvodSlot) == 24, "layout change: new version, history line");
static_assert(sizeof(SvodStep) == 48, "layout change: new version, history line");
static_assert(sizeof(SvodSlice) == 24, "layout change: new version, history line");
static_assert(sizeof(SvodRegion) == 32, "layout change: new version, history line");
static_assert(sizeof(SvodState) == 64, "layout change: new version, history line");
static_assert(sizeof(SvodProgram) == 8, "layout change: new version, history line");
#endif

// A kernel: does part `chunk` of its step. `buffers` are the step's args resolved to
// addresses, `scratch` belongs to the calling thread. SVOD_OK, SVOD_INDEX or SVOD_LIMIT.
typedef int32_t (*SvodKernel)(void* const* buffers, void* scratch, uint32_t chunk);

// Emitted beside the kernels: runs `program` of CPU level number `level`. A switch, not a
// table of pointers, so that an image needs no relocation.
typedef int32_t (*SvodLaunch)(uint32_t level, uint32_t program, void* const* buffers,
                              void* scratch, uint32_t chunk);

#endif
