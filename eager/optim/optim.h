#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sinter/eager/tensor.h"

/// Optimizers. Everything that changes from step to step is a tensor (moments, counts, the learning rate), so that a captured training step
/// reads and writes it like any state.
namespace sinter::optim {

class Optimizer {
 public:
  explicit Optimizer(std::vector<Tensor> parameters, double lr);
  virtual ~Optimizer() = default;
  /// Updates every parameter that has a gradient.
  void step();
  void clear_grad();
  /// The learning rate: a cell, also while captured. Assign to change it.
  Buffer& lr() { return lr_; }
  const std::vector<Tensor>& parameters() const { return parameters_; }
  /// Handles of the cells that change from step to step: "lr", and the optimizer's own, such as "first.3" of parameter 3.
  virtual std::vector<std::pair<std::string, Tensor>> named_state() { return {{"lr", lr_}}; }

 protected:
  /// Called once before the updates of a step; what it returns goes to each of them.
  virtual std::vector<Tensor> Begin() { return {}; }
  /// The new value of parameter i.
  virtual Tensor Update(size_t i, const Tensor& value, const Tensor& grad, const std::vector<Tensor>& shared) = 0;

  std::vector<Tensor> parameters_;
  Buffer lr_;
};

struct SgdOptions {
  double lr = 1e-2;
  double momentum = 0;
  double weight_decay = 0;
};

/// v = momentum v + g; p = p - lr v.
class SGD final : public Optimizer {
 public:
  SGD(std::vector<Tensor> parameters, SgdOptions options = {});
  std::vector<std::pair<std::string, Tensor>> named_state() override;

 private:
  Tensor Update(size_t i, const Tensor& value, const Tensor& grad, const std::vector<Tensor>& shared) override;
  SgdOptions options_;
  std::vector<Buffer> velocity_;
};

struct AdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  bool decoupled = false;  ///< AdamW: decay acts on the parameter, not on the gradient
};

/// Adam (Kingma and Ba 2015) with bias correction.
class Adam final : public Optimizer {
 public:
  Adam(std::vector<Tensor> parameters, AdamOptions options = {});
  std::vector<std::pair<std::string, Tensor>> named_state() override;

 private:
  std::vector<Tensor> Begin() override;
  Tensor Update(size_t i, const Tensor& value, const Tensor& grad, const std::vector<Tensor>& shared) override;
  AdamOptions options_;
  Buffer count_;
  std::vector<Buffer> first_, second_;
};

}  // namespace sinter::optim
