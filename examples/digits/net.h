#pragma once

#include "sinter/sinter.h"

namespace digits {

/// A small convolutional classifier of 8x8 images: x [n, 1, 8, 8] -> logits [n, 10].
struct Net : sinter::nn::Module {
  sinter::nn::Conv2d conv1{1, 16, 3, {.padding = 1, .bias = false}}, conv2{16, 32, 3, {.padding = 1, .bias = false}};
  sinter::nn::BatchNorm2d norm1{16}, norm2{32};
  sinter::nn::MaxPool2d pool{2};
  sinter::nn::Dropout drop{0.25};
  sinter::nn::Linear fc{128, 10};
  SINTER_MODULE(conv1, conv2, norm1, norm2, pool, drop, fc)
  sinter::Tensor forward(const sinter::Tensor& x) {
    sinter::Tensor h = pool(relu(norm1(conv1(x))));
    h = pool(relu(norm2(conv2(h))));
    return fc(drop(h.flatten(1)));
  }
};

/// UCI handwritten digits, a fixed split.
struct Data {
  sinter::Tensor train_x, train_y, test_x, test_y;
};
Data ReadDigits(const std::string& path);

}  // namespace digits
