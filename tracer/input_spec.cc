#include "sinter/tracer/input_spec.h"

namespace sinter {

InputSpec::InputSpec(std::initializer_list<SpecDim> shape, DType dtype, std::string name, InputSpecOptions options) : name_(std::move(name)), options_(options) {
  type_.dtype = dtype;
  for (const SpecDim& d : shape) {
    if (!d.dynamic() && d.dim().is_const() && d.dim().value() < 0)
      throw Error(ErrorCode::kInvalidArgument, "InputSpec: a size is negative; write kDynamic for a size that may be anything");
    type_.shape.push_back(d.dynamic() ? Dim::Fresh("d") : d.dim());
  }
}

InputSpec InputSpec::Of(const Tensor& example, std::string name) {
  const Shape shape = example.shape();
  return InputSpec(TensorType{example.dtype(), SymShape(shape.begin(), shape.end())}, std::move(name));
}

}  // namespace sinter
