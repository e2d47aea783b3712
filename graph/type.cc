#include "sinter/graph/type.h"

#include "sinter/graph/strings.h"
#include "sinter/graph/error.h"

namespace sinter {

std::string ShapeToString(const Shape& shape) { return StrCat("[", Join(shape, ", "), "]"); }

std::string ShapeToString(const SymShape& shape) {
  return StrCat("[", Join(shape, ", ", [](std::string* out, Dim d) { StrAppend(out, d.ToString()); }), "]");
}

std::string TypeToString(const TensorType& t) { return StrCat(DTypeName(t.dtype), ShapeToString(t.shape)); }
std::string TypeToString(const ConcreteType& t) { return StrCat(DTypeName(t.dtype), ShapeToString(t.shape)); }

int64_t NumElements(const Shape& shape) {
  int64_t n = 1;
  bool zero = false, overflow = false;
  for (int64_t d : shape) {
    zero |= d == 0;
    overflow |= __builtin_mul_overflow(n, d, &n);
  }
  if (zero) return 0;
  if (overflow) throw Error(ErrorCode::kInvalidArgument, StrCat("a tensor of shape ", ShapeToString(shape), " has more than 2^63 elements"));
  return n;
}

Dim NumElements(const SymShape& shape) {
  Dim n = 1;
  for (Dim d : shape) n = n * d;
  return n;
}

int NormalizeAxis(int64_t axis, int rank, const char* what) {
  if (axis < -rank || axis >= rank) {
    throw Error(ErrorCode::kOutOfRange,
                rank == 0 ? StrCat(what, ": axis ", axis, " of a tensor without dimensions")
                          : StrCat(what, ": axis ", axis, " is out of range for rank ", rank, "; use ", -rank, " to ", rank - 1));
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

}  // namespace sinter
