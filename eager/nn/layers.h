#pragma once

#include <array>

#include "sinter/eager/nn/module.h"

namespace sinter::nn {

/// y = x weight + bias: x [..., in], weight [in, out], bias [out]. Both start uniform in +-1/sqrt(in), drawn from the default generator.
struct Linear : Module {
  Linear(int64_t in, int64_t out, bool with_bias = true);
  Parameter weight, bias;
  SINTER_MODULE(weight, bias)
  Tensor forward(const Tensor& x);
};

struct Conv2dOptions {
  int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
  bool bias = true;
};

/// 2-D convolution: x [n, in, h, w], weight [out, in / groups, kernel, kernel], bias [out].
struct Conv2d : Module {
  Conv2d(int64_t in, int64_t out, int64_t kernel, Conv2dOptions options = {});
  Parameter weight, bias;
  SINTER_MODULE(weight, bias)
  Tensor forward(const Tensor& x);

 private:
  Conv2dOptions options_;
};

/// Batch normalisation over n, h, w of x [n, channels, h, w]. Training uses the batch's mean and biased variance and moves the running
/// statistics (unbiased variance) by `momentum`; evaluation uses the running ones.
struct BatchNorm2d : Module {
  explicit BatchNorm2d(int64_t channels, double eps = 1e-5, double momentum = 0.1);
  Parameter weight, bias;
  Buffer running_mean, running_var;
  SINTER_MODULE(weight, bias, running_mean, running_var)
  Tensor forward(const Tensor& x);

 private:
  double eps_, momentum_;
};

/// In training zeroes elements with probability p and scales the others by 1 / (1 - p); in evaluation the identity.
struct Dropout : Module {
  explicit Dropout(double p = 0.5);
  SINTER_MODULE()
  Tensor forward(const Tensor& x);

 private:
  double p_;
};

/// Greatest value of each window of x [n, c, h, w].
struct MaxPool2d : Module {
  explicit MaxPool2d(int64_t kernel, int64_t stride = 0 /* the kernel */, int64_t padding = 0);
  SINTER_MODULE()
  Tensor forward(const Tensor& x);

 private:
  int64_t kernel_, stride_, padding_;
};

struct ReLU : Module {
  SINTER_MODULE()
  Tensor forward(const Tensor& x);
};

/// Joins all dimensions from `start` on.
struct Flatten : Module {
  explicit Flatten(int start = 1) : start_(start) {}
  SINTER_MODULE()
  Tensor forward(const Tensor& x) { return x.flatten(start_); }

 private:
  int start_;
};

/// Mean over the batch of -log softmax(logits)[target]: logits [n, classes], integer targets [n]. A target outside of [0, classes) is an
/// Error; a compiled call that meets one fails and leaves all state as it was.
Tensor cross_entropy(const Tensor& logits, const Tensor& target);
/// Mean of squared differences.
Tensor mse_loss(const Tensor& x, const Tensor& y);

}  // namespace sinter::nn
