#include "sinter/eager/nn/layers.h"

#include <cmath>

#include "sinter/eager/creation.h"
#include "sinter/eager/grad_mode.h"
#include "sinter/eager/operators.h"
#include "sinter/eager/random.h"
#include "sinter/eager/recorder.h"
#include "sinter/graph/ops/activations.h"
#include "sinter/graph/ops/contraction.h"
#include "sinter/graph/ops/nn.h"
#include "sinter/graph/ops/random.h"
#include "sinter/graph/strings.h"

namespace sinter::nn {
namespace {

Parameter Uniform(const Shape& shape, int64_t fan_in) {
  const double bound = fan_in > 0 ? 1 / std::sqrt(static_cast<double>(fan_in)) : 0;
  return Parameter(uniform(shape, -bound, bound));
}

Tensor AlongChannels(const Tensor& v) { return v.reshape({v.dim(0), 1, 1}); }

void Positive(const char* what, int64_t v) {
  if (v < 1) throw Error(ErrorCode::kInvalidArgument, StrCat(what, " must be at least 1, got ", v));
}

}  // namespace

Linear::Linear(int64_t in, int64_t out, bool with_bias) : weight(Uniform({in, out}, in)) {
  if (with_bias) bias = Uniform({out}, in);
}

Tensor Linear::forward(const Tensor& x) {
  Tensor y = matmul(x, weight);
  return bias.defined() ? y + bias : y;
}

Conv2d::Conv2d(int64_t in, int64_t out, int64_t kernel, Conv2dOptions options) : options_(options) {
  Positive("Conv2d: groups", options.groups);
  Positive("Conv2d: the kernel", kernel);
  if (in % options.groups != 0 || out % options.groups != 0)
    throw Error(ErrorCode::kInvalidArgument, StrCat("Conv2d: ", in, " and ", out, " channels are not divisible by ", options.groups, " groups"));
  const int64_t fan_in = in / options.groups * kernel * kernel;
  weight = Uniform({out, in / options.groups, kernel, kernel}, fan_in);
  if (options.bias) bias = Uniform({out}, fan_in);
}

Tensor Conv2d::forward(const Tensor& x) {
  const Conv2dOptions& o = options_;
  Tensor y = conv2d(x, weight, {.stride = {o.stride, o.stride}, .padding = {o.padding, o.padding}, .dilation = {o.dilation, o.dilation}, .groups = o.groups});
  return bias.defined() ? y + AlongChannels(bias) : y;
}

BatchNorm2d::BatchNorm2d(int64_t channels, double eps, double momentum)
    : weight(ones({channels})), bias(zeros({channels})), running_mean(zeros({channels})), running_var(ones({channels})), eps_(eps), momentum_(momentum) {}

Tensor BatchNorm2d::forward(const Tensor& x) {
  if (!training()) return batch_norm(std::vector<Tensor>{x, weight, bias, running_mean, running_var}, {.eps = eps_});
  const Tensor mean = x.mean({0, 2, 3});
  const Tensor variance = (x - AlongChannels(mean)).square().mean({0, 2, 3});
  {
    NoGradGuard no_grad;
    // n / (n - 1) makes the variance unbiased; of one value it is left as it is.
    const Tensor n = (x.dim(0) * x.dim(2) * x.dim(3)).tensor().to(kFloat32);
    const Tensor unbiased = variance * (n / (n - 1.0f).maximum(ones({})));
    running_mean = running_mean * (1 - momentum_) + mean * momentum_;
    running_var = running_var * (1 - momentum_) + unbiased * momentum_;
  }
  return batch_norm(std::vector<Tensor>{x, weight, bias, mean, variance}, {.eps = eps_});
}

Dropout::Dropout(double p) : p_(p) {
  if (!(p >= 0 && p <= 1)) throw Error(ErrorCode::kInvalidArgument, StrCat("Dropout: the probability must be in [0, 1], got ", p));
}

Tensor Dropout::forward(const Tensor& x) {
  if (!training() || p_ == 0) return x;
  return dropout(x, rand(x.sym_shape(), x.dtype() == kFloat64 ? kFloat64 : kFloat32), {.p = p_});
}

MaxPool2d::MaxPool2d(int64_t kernel, int64_t stride, int64_t padding) : kernel_(kernel), stride_(stride == 0 ? kernel : stride), padding_(padding) {
  Positive("MaxPool2d: the kernel", kernel_);
  Positive("MaxPool2d: the stride", stride_);
}

Tensor MaxPool2d::forward(const Tensor& x) {
  return max_pool2d(x, {.kernel = {kernel_, kernel_}, .stride = {stride_, stride_}, .padding = {padding_, padding_}})[0];
}

Tensor ReLU::forward(const Tensor& x) { return relu(x); }

Tensor cross_entropy(const Tensor& logits, const Tensor& target) {
  if (!target.is_symbolic() && Recorder::Current() == nullptr && target.defined() && IsInteger(target.dtype()) && logits.rank() == 2 && target.numel() > 0) {
    const int64_t classes = logits.shape()[1];
    const std::vector<int64_t> values = target.ToVector<int64_t>();
    for (size_t i = 0; i < values.size(); ++i)
      if (values[i] < 0 || values[i] >= classes)
        throw Error(ErrorCode::kOutOfRange, StrCat("cross_entropy: target ", i, " is ", values[i], ", but there are ", classes, " classes; use 0 to ", classes - 1));
  }
  return sinter::cross_entropy(logits, target);
}

Tensor mse_loss(const Tensor& x, const Tensor& y) { return (x - y).square().mean(); }

}  // namespace sinter::nn
