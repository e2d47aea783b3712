#include "sinter/eager/optim/optim.h"

#include "sinter/eager/creation.h"
#include "sinter/eager/grad_mode.h"
#include "sinter/eager/operators.h"
#include "sinter/graph/strings.h"

namespace sinter::optim {

Optimizer::Optimizer(std::vector<Tensor> parameters, double lr) : parameters_(std::move(parameters)), lr_(full({}, lr)) {
  for (const Tensor& p : parameters_)
    if (!p.defined() || !IsFloating(p.dtype())) throw Error(ErrorCode::kInvalidArgument, "an optimizer needs defined floating parameters");
}

void Optimizer::step() {
  NoGradGuard no_grad;
  const std::vector<Tensor> shared = Begin();
  for (size_t i = 0; i < parameters_.size(); ++i) {
    Tensor grad = parameters_[i].grad();
    if (!grad.defined()) continue;
    parameters_[i].set_data(Update(i, parameters_[i], grad, shared));
  }
}

void Optimizer::clear_grad() {
  for (Tensor& p : parameters_) p.clear_grad();
}

SGD::SGD(std::vector<Tensor> parameters, SgdOptions options) : Optimizer(std::move(parameters), options.lr), options_(options) {
  if (options_.momentum != 0)
    for (const Tensor& p : parameters_) velocity_.emplace_back(zeros_like(p));
}

namespace {
void AddCells(std::vector<std::pair<std::string, Tensor>>& state, const char* name, const std::vector<Buffer>& cells) {
  for (size_t i = 0; i < cells.size(); ++i) state.emplace_back(StrCat(name, ".", i), cells[i]);
}
}  // namespace

std::vector<std::pair<std::string, Tensor>> SGD::named_state() {
  auto state = Optimizer::named_state();
  AddCells(state, "velocity", velocity_);
  return state;
}

std::vector<std::pair<std::string, Tensor>> Adam::named_state() {
  auto state = Optimizer::named_state();
  state.emplace_back("count", count_);
  AddCells(state, "first", first_);
  AddCells(state, "second", second_);
  return state;
}

Tensor SGD::Update(size_t i, const Tensor& value, const Tensor& grad, const std::vector<Tensor>&) {
  Tensor g = options_.weight_decay != 0 ? grad + value * options_.weight_decay : grad;
  if (options_.momentum != 0) {
    velocity_[i] = velocity_[i] * options_.momentum + g;
    g = velocity_[i];
  }
  return value - lr_.to(value.dtype()) * g;
}

Adam::Adam(std::vector<Tensor> parameters, AdamOptions options) : Optimizer(std::move(parameters), options.lr), options_(options), count_(full({}, 0)) {
  for (const Tensor& p : parameters_) {
    first_.emplace_back(zeros_like(p));
    second_.emplace_back(zeros_like(p));
  }
}

// The bias corrections 1 - beta^t.
std::vector<Tensor> Adam::Begin() {
  count_ = count_ + 1.0f;
  return {1.0f - full({}, options_.beta1).pow(count_), 1.0f - full({}, options_.beta2).pow(count_)};
}

Tensor Adam::Update(size_t i, const Tensor& value, const Tensor& grad, const std::vector<Tensor>& shared) {
  const DType t = value.dtype();
  Tensor p = value, g = grad;
  if (options_.weight_decay != 0) {
    if (options_.decoupled) p = p - lr_.to(t) * p * options_.weight_decay;
    else g = g + p * options_.weight_decay;
  }
  first_[i] = first_[i] * options_.beta1 + g * (1 - options_.beta1);
  second_[i] = second_[i] * options_.beta2 + g.square() * (1 - options_.beta2);
  const Tensor mean = first_[i] / shared[0].to(t), scale = (second_[i] / shared[1].to(t)).sqrt() + options_.eps;
  return p - lr_.to(t) * (mean / scale);
}

}  // namespace sinter::optim
