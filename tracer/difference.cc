#include "sinter/tracer/difference.h"

#include <bit>
#include <cmath>
#include <vector>

#include "sinter/graph/strings.h"

namespace sinter {
namespace {

template <class T, class Same>
std::string FirstDifference(const Tensor& want, const Tensor& got, Same same) {
  const std::vector<T> a = want.ToVector<T>(), b = got.ToVector<T>();
  for (size_t i = 0; i < a.size(); ++i)
    if (!same(a[i], b[i])) return StrCat("element ", i, " is ", b[i], ", eager gives ", a[i]);
  return "";
}

}  // namespace

std::string DifferenceOf(const Tensor& want, const Tensor& got, Numerics numerics, double tolerance) {
  if (want.dtype() != got.dtype() || want.shape() != got.shape()) return StrCat("types differ: ", got.TypeString(), ", eager gives ", want.TypeString());
  if (!IsFloating(want.dtype())) return FirstDifference<int64_t>(want, got, [](int64_t a, int64_t b) { return a == b; });
  // Every floating type converts to f64 without loss.
  auto same_bits = [](double a, double b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); };
  if (numerics == Numerics::kExact) return FirstDifference<double>(want, got, same_bits);
  double scale = 0;
  for (double v : want.ToVector<double>())
    if (std::isfinite(v)) scale = std::max(scale, std::abs(v));
  return FirstDifference<double>(want, got, [&](double a, double b) {
    if (!std::isfinite(a) || !std::isfinite(b)) return a == b || (std::isnan(a) && std::isnan(b));
    return std::abs(a - b) <= tolerance * scale;
  });
}

}  // namespace sinter
