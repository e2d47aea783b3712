#pragma once

#include <vector>

#include "sinter/eager/grad_mode.h"
#include "sinter/graph/strings.h"
#include "sinter/tracer/difference.h"
#include "sinter/tracer/static_function.h"

namespace sinter {

/// Runs both on the same arguments without gradients and throws an Error that says where they differ, by the program's numerics contract.
/// For functions of tensors that write no state.
template <class Eager, class R, class... A, class... Args>
void ExpectSame(Eager&& eager, const StaticFunction<R(A...)>& compiled, const Args&... args) {
  NoGradGuard no_grad;
  const std::vector<Tensor> want = tracer::ResultOf<R>::Flatten(eager(args...)), got = tracer::ResultOf<R>::Flatten(compiled(args...));
  const std::string& name = compiled.core().options().name;
  if (want.size() != got.size())
    throw Error(ErrorCode::kInternal, StrCat("ExpectSame: '", name, "' gives ", got.size(), " tensors, eager gives ", want.size()));
  for (size_t i = 0; i < want.size(); ++i)
    if (std::string why = DifferenceOf(want[i], got[i], compiled.core().options().numerics); !why.empty())
      throw Error(ErrorCode::kInternal, StrCat("ExpectSame: result ", i, " of '", name, "': ", why));
}

}  // namespace sinter
