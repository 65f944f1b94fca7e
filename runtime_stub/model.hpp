// A packed library for C++20: svod::Model<NAME> runs the model over spans whose element
// types and sizes the compiler checks. NAME is the struct that svod-pack writes below
// this text, in NAME.hpp beside NAME.h. Headers only; no exceptions and no type
// information are needed, and no memory but the arena is taken.
#ifndef SVOD_MODEL_HPP
#define SVOD_MODEL_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

namespace svod {

// What a run returns; the numbers of NAME_status in the C header.
enum class Status : int {
  Ok = 0,
  BadArgument = -1,
  Misaligned = -2,
  ArenaSmall = -3,
  Abi = -4,
  Index = -5,
  Cpu = -6,
  Corrupt = -7,
  Limit = -8,
  NoWeights = -9,
  NoDevice = -10,
  DeviceFault = -11,
};

// Where the runs of a library for a GPU go; the numbers of NAME_place in the C header.
enum class Place : int {
  Auto = 0, // a GPU if there is one, else the processor
  Cpu = 1,
  Cuda = 2,
};

// Elements that C++ has no type for, by their bits.
enum class Float16 : std::uint16_t {};
enum class BFloat16 : std::uint16_t {};
enum class Float8 : std::uint8_t {}; // in the form that the tensor's dtype names
enum class Packed : std::uint8_t {}; // two or more elements, the first in the lowest bits
enum class Character : std::uint8_t {
}; // of strings, which are rows with zeros at the end

// One input or output: `Count` objects of `T` in a caller's memory, row-major.
template <class T, std::size_t Count, std::size_t... Dims> struct Tensor {
  using type = T;
  static constexpr std::size_t count = Count;
  static constexpr std::size_t rank = sizeof...(Dims);
  static constexpr std::array<std::size_t, sizeof...(Dims)> shape = {Dims...};
};

template <class... T> using Tensors = std::tuple<T...>;

template <class M, std::size_t I>
using InputTensor = std::tuple_element_t<I, typename M::inputs>;
template <class M, std::size_t I>
using OutputTensor = std::tuple_element_t<I, typename M::outputs>;

// What `run` takes: a std::array or a C array becomes one by itself, anything else by
// naming the type, which promises its size.
template <class M, std::size_t I>
using Input = std::span<const typename InputTensor<M, I>::type, InputTensor<M, I>::count>;
template <class M, std::size_t I>
using Output = std::span<typename OutputTensor<M, I>::type, OutputTensor<M, I>::count>;

namespace detail {

// The memory that a run works in: its own, or a caller's.
template <class M> class Arena {
public:
  Arena() noexcept
      : data_(::operator new(M::arena_bytes, std::align_val_t{M::arena_align},
                             std::nothrow)),
        bytes_(data_ == nullptr ? 0 : M::arena_bytes), release_(release) {}
  explicit Arena(std::span<std::byte> memory) noexcept
      : data_(memory.data()), bytes_(memory.size()) {}
  Arena(Arena&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)),
        release_(std::exchange(other.release_, nullptr)),
        close_(std::exchange(other.close_, nullptr)) {}
  Arena& operator=(Arena&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(release_, other.release_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~Arena() {
    close();
    if (release_ != nullptr) release_(data_);
  }

  // `close` gives back what `data` holds elsewhere, before its memory goes.
  void close_by(void (*close)(void*) noexcept) noexcept { close_ = close; }
  void close() noexcept {
    if (close_ != nullptr) std::exchange(close_, nullptr)(data_);
  }

  void* data() const noexcept { return data_; }
  std::size_t bytes() const noexcept { return bytes_; }

private:
  static void release(void* data) noexcept {
    ::operator delete(data, std::align_val_t{M::arena_align}, std::nothrow);
  }

  void* data_;
  std::size_t bytes_;
  // By pointer, so that a program that has no heap and lends its arena needs none.
  void (*release_)(void*) noexcept = nullptr;
  void (*close_)(void*) noexcept = nullptr;
};

// Of a library that was packed with --device.
template <class M>
concept ForDevice = requires(void* arena) { M::open(arena, 0); };

template <class M, class I, class O> class Runner;

template <class M, std::size_t... I, std::size_t... O>
class Runner<M, std::index_sequence<I...>, std::index_sequence<O...>> {
public:
  // Inputs first, then outputs, in the model's order.
  Status run(Input<M, I>... inputs, Output<M, O>... outputs) noexcept {
    if (!has_arena()) return Status::ArenaSmall;
    const void* const in[] = {some(inputs.data())..., nullptr};
    void* const out[] = {some(outputs.data())..., nullptr};
    return static_cast<Status>(M::run(arena_.data(), arena_.bytes(), in, out));
  }

  // The same on tensors in the GPU's memory, aligned to M::arena_align: put on `stream`
  // (a CUstream or cudaStream_t; null: the default one), copied and waited for by nobody.
  Status run_device(const typename InputTensor<M, I>::type*... inputs,
                    typename OutputTensor<M, O>::type*... outputs,
                    void* stream = nullptr) noexcept
    requires ForDevice<M>
  {
    if (!has_arena()) return Status::ArenaSmall;
    const void* const in[] = {inputs..., nullptr};
    void* const out[] = {outputs..., nullptr};
    return static_cast<Status>(M::run_device(arena_.data(), in, out, stream));
  }

protected:
  Runner() noexcept = default;
  explicit Runner(std::span<std::byte> arena) noexcept : arena_(arena) {}
  bool has_arena() const noexcept {
    return arena_.data() != nullptr && arena_.bytes() >= M::arena_bytes;
  }
  void* arena() const noexcept { return arena_.data(); }
  void close_arena() noexcept { arena_.close(); }
  void close_arena_by(void (*close)(void*) noexcept) noexcept { arena_.close_by(close); }

private:
  // A tensor without elements may lie nowhere, but not at null.
  template <class T> auto some(T* data) const noexcept {
    using Void = std::conditional_t<std::is_const_v<T>, const void*, void*>;
    return data != nullptr ? static_cast<Void>(data) : static_cast<Void>(arena_.data());
  }

  Arena<M> arena_;
};

} // namespace detail

// One model and the arena that its runs work in. Models with arenas of their own may run
// at the same time.
template <class M>
class Model : public detail::Runner<
                  M, std::make_index_sequence<std::tuple_size_v<typename M::inputs>>,
                  std::make_index_sequence<std::tuple_size_v<typename M::outputs>>> {
  using Base =
      detail::Runner<M, std::make_index_sequence<std::tuple_size_v<typename M::inputs>>,
                     std::make_index_sequence<std::tuple_size_v<typename M::outputs>>>;

public:
  // An arena from operator new; where there is no memory, runs return ArenaSmall.
  Model() noexcept = default;
  // A caller's, of M::arena_bytes, aligned to M::arena_align; it must outlive the model.
  explicit Model(std::span<std::byte> arena) noexcept : Base(arena) {}

  explicit operator bool() const noexcept { return Base::has_arena(); }
  // Of a library of --weights=expand, before the first run: weights of M::made_bytes and
  // scratch of M::init_scratch_bytes, both aligned to M::arena_align. Weights must
  // outlive all models that they are given to, and are made once; scratch is free again.
  Status init(std::span<std::byte> weights, std::span<std::byte> scratch) noexcept
    requires requires { M::made_bytes; }
  {
    if (!Base::has_arena() || weights.size() < M::made_bytes ||
        scratch.size() < M::init_scratch_bytes)
      return Status::ArenaSmall;
    return static_cast<Status>(M::init(Base::arena(), weights.data(), scratch.data()));
  }

  // Of a library that was packed with --device: where runs go from now on, the processor
  // before. NoDevice and DeviceFault are of Place::Cuda alone, and device_text says why.
  // What the GPU holds is given back by `close`, by another `open` and with the model.
  Status open(Place place = Place::Auto) noexcept
    requires detail::ForDevice<M>
  {
    if (!Base::has_arena()) return Status::ArenaSmall;
    Base::close_arena();
    const int status = M::open(Base::arena(), static_cast<int>(place));
    Base::close_arena_by(M::close);
    return static_cast<Status>(status);
  }
  void close() noexcept
    requires detail::ForDevice<M>
  {
    Base::close_arena();
  }
  bool runs_on_device() const noexcept
    requires detail::ForDevice<M>
  {
    return Base::has_arena() && M::runs_on_device(Base::arena());
  }
  // Which GPU it is, why it is none, or what went wrong last; until the next call.
  const char* device_text() const noexcept
    requires detail::ForDevice<M>
  {
    return Base::has_arena() ? M::device_text(Base::arena()) : "there is no arena";
  }
  // Waits for what run_device put on streams; Index where an index in the data was out of
  // range.
  Status finish_device() noexcept
    requires detail::ForDevice<M>
  {
    if (!Base::has_arena()) return Status::ArenaSmall;
    return static_cast<Status>(M::finish_device(Base::arena()));
  }

  static const char* text(Status status) noexcept {
    return M::status_text(static_cast<int>(status));
  }
};

} // namespace svod

#endif
