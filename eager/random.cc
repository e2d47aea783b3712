#include "sinter/eager/random.h"

#include <numeric>

#include "sinter/eager/creation.h"
#include "sinter/eager/dispatch.h"
#include "sinter/eager/operators.h"
#include "sinter/eager/recorder.h"
#include "sinter/graph/ops/arithmetic.h"
#include "sinter/graph/ops/math.h"
#include "sinter/graph/ops/random.h"
#include "sinter/graph/strings.h"

namespace sinter {
namespace {

Tensor StateOf(uint64_t seed) { return from_vector(std::vector<int64_t>{static_cast<int64_t>(seed), 0}); }

}  // namespace

Generator::Generator(uint64_t seed) : state_(Buffer(StateOf(seed))) {}

void Generator::manual_seed(uint64_t seed) { state_ = StateOf(seed); }
uint64_t Generator::seed() const { return static_cast<uint64_t>(state_.data<int64_t>()[0]); }
int64_t Generator::offset() const { return state_.data<int64_t>()[1]; }

Tensor Generator::Draw(const OpDef& op, const Sizes& sizes, DType dtype) {
  const Tensor in[] = {state_};
  Tensor drawn = ApplyOp1(op, MakeAttrs(ops::RandomAttrs{.shape = sizes.vec(), .dtype = dtype}), in);
  if (Recorder::Current() != nullptr) {  // offset += n, as ops
    const Tensor n = Int::FromDim(NumElements(sizes.dims())).tensor();
    state_.add_(arange(Int::FromDim(Dim(2))) * n);
  } else {
    state_.mutable_data<int64_t>()[1] += drawn.numel();
  }
  return drawn;
}

Tensor Generator::rand(const Sizes& sizes, DType dtype) {
  return Draw(DefOf<ops::RandomUniform>(), sizes, dtype);
}
Tensor Generator::randn(const Sizes& sizes, DType dtype) {
  return Draw(DefOf<ops::RandomNormal>(), sizes, dtype);
}

Tensor Generator::uniform(const Sizes& sizes, double low, double high, DType dtype) {
  return rand(sizes, dtype) * (high - low) + low;
}

Tensor Generator::randint(const Sizes& sizes, int64_t low, int64_t high) {
  if (high <= low || high - low > (int64_t{1} << 24))
    throw Error(ErrorCode::kInvalidArgument,
                StrCat("randint: needs low < high and at most 2^24 values, got [", low, ", ", high, ")"));
  return floor(rand(sizes, kFloat64) * static_cast<double>(high - low)).to(kInt64) + low;
}

std::vector<int64_t> Generator::permutation(int64_t n) {
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  if (n < 2) return order;
  const Tensor draws = rand(Shape{n}, kFloat64);
  const double* u = draws.data<double>();
  for (int64_t i = n - 1; i > 0; --i)
    std::swap(order[i], order[static_cast<int64_t>(u[i] * static_cast<double>(i + 1))]);
  return order;
}

Generator& default_generator() {
  static auto* generator = new Generator();
  return *generator;
}

void manual_seed(uint64_t seed) { default_generator().manual_seed(seed); }
Tensor rand(const Sizes& sizes, DType dtype) { return default_generator().rand(sizes, dtype); }
Tensor randn(const Sizes& sizes, DType dtype) { return default_generator().randn(sizes, dtype); }
Tensor uniform(const Sizes& sizes, double low, double high, DType dtype) {
  return default_generator().uniform(sizes, low, high, dtype);
}
Tensor randint(const Sizes& sizes, int64_t low, int64_t high) {
  return default_generator().randint(sizes, low, high);
}

}  // namespace sinter
