#pragma once

#include <cstring>
#include <string>

#include "sinter/eager/grad_mode.h"
#include "sinter/eager/tensor.h"
#include "sinter/graph/strings.h"
#include "sinter/tracer/static_function.h"

namespace sinter {

/// Where two tensors differ: empty if not. Under kExact every bit counts; otherwise elements may differ by `tolerance` times the largest
/// magnitude of `want`.
inline std::string DifferenceOf(const Tensor& want, const Tensor& got, Numerics numerics, double tolerance = 1e-5) {
  if (want.dtype() != got.dtype() || want.shape() != got.shape()) return StrCat("types differ: ", want.TypeString(), " and ", got.TypeString());
  const std::vector<double> a = want.ToVector<double>(), b = got.ToVector<double>();
  double scale = 0;
  for (double v : a) scale = std::max(scale, std::abs(v));
  for (size_t i = 0; i < a.size(); ++i) {
    const bool same = std::memcmp(&a[i], &b[i], sizeof(double)) == 0 || (numerics != Numerics::kExact && std::abs(a[i] - b[i]) <= tolerance * scale);
    if (!same) return StrCat("element ", i, " is ", b[i], ", eager gives ", a[i]);
  }
  return "";
}

/// Runs both on the same arguments without gradients and throws an Error that says where they differ, by the program's numerics contract.
/// For functions of tensors that write no state.
template <class Eager, class R, class... A, class... Args>
void ExpectSame(Eager&& eager, const StaticFunction<R(A...)>& compiled, const Args&... args) {
  NoGradGuard no_grad;
  const std::vector<Tensor> want = tracer::ResultOf<R>::Flatten(eager(args...)), got = tracer::ResultOf<R>::Flatten(compiled(args...));
  for (size_t i = 0; i < want.size(); ++i)
    if (std::string why = DifferenceOf(want[i], got[i], compiled.core().options().numerics); !why.empty())
      throw Error(ErrorCode::kInternal, StrCat("ExpectSame: result ", i, " of '", compiled.core().options().name, "': ", why));
}

}  // namespace sinter
