#pragma once

#include <cstdint>
#include <vector>

#include "sinter/eager/tensor.h"

/// Random tensors. A draw of n numbers is a function of (seed, offset, element) alone and advances the offset
/// by n, so that eager, compiled, threaded and reloaded programs draw the same numbers.
namespace sinter {

/// A source of random numbers: a state cell of two int64, {seed, offset}. While a function is captured the
/// cell is its state, as a parameter is.
class Generator {
 public:
  explicit Generator(uint64_t seed = 0);
  /// Starts over with this seed, at offset 0.
  void manual_seed(uint64_t seed);
  uint64_t seed() const;
  int64_t offset() const;
  /// The cell, int64[2]; to be saved with a program's state, or assigned to restore one.
  Buffer& state() { return state_; }

  /// Uniform on [0, 1).
  Tensor rand(const Sizes& sizes, DType dtype = kFloat32);
  /// Standard normal.
  Tensor randn(const Sizes& sizes, DType dtype = kFloat32);
  /// Uniform on [low, high).
  Tensor uniform(const Sizes& sizes, double low, double high, DType dtype = kFloat32);
  /// Uniform integers low, ..., high - 1 (int64); high - low may be up to 2^24.
  Tensor randint(const Sizes& sizes, int64_t low, int64_t high);
  /// A random order of 0, ..., n - 1. Host only: not while captured.
  std::vector<int64_t> permutation(int64_t n);

 private:
  Tensor Draw(const OpDef& op, const Sizes& sizes, DType dtype);
  Buffer state_;
};

/// The generator that the functions below and modules use unless they are given one. One for the process:
/// threads that draw at the same time need generators of their own.
Generator& default_generator();
void manual_seed(uint64_t seed);
Tensor rand(const Sizes& sizes, DType dtype = kFloat32);
Tensor randn(const Sizes& sizes, DType dtype = kFloat32);
Tensor uniform(const Sizes& sizes, double low, double high, DType dtype = kFloat32);
Tensor randint(const Sizes& sizes, int64_t low, int64_t high);

}  // namespace sinter
