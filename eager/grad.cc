#include "sinter/eager/autograd.h"
#include "sinter/eager/recorder.h"
#include "sinter/eager/tensor.h"
#include "sinter/graph/call_stack.h"
#include "sinter/graph/strings.h"

// The public ways into the gradient engine.
namespace sinter {
namespace {

// Why a value has no gradient, as far as it is known.
std::string WhyNoGradient(const TensorImpl& t) {
  if (!t.cut)
    return "nothing that it was computed from requires a gradient; call requires_grad_() on the leaves";
  const std::string where = UserLocation(t.cut->stack);
  switch (t.cut->reason) {
    case GradientCut::kNoGradientOp:
      return StrCat("the op '", t.cut->op->name, "' at ", where, " has no gradient");
    case GradientCut::kDetached:
      return StrCat("detach() at ", where, " cut it off");
    case GradientCut::kGradModeOff:
      return StrCat("gradients were turned off at ", where, "; compute it outside of that scope");
  }
  return "";
}

eager::GradientSeed MakeSeed(TensorImpl& t, const Tensor& seed, std::string_view what) {
  if (t.symbolic)
    throw Error(ErrorCode::kFailedPrecondition,
                StrCat(what, ": this tensor was made by a capture and has no value outside of it"));
  if (!t.requires_grad)
    throw Error(ErrorCode::kFailedPrecondition,
                StrCat(what, ": ", TypeToString(t.type()), " has no gradient: ", WhyNoGradient(t)));
  if (!seed.defined()) {
    if (t.numel() != 1)
      throw Error(ErrorCode::kInvalidArgument, StrCat(what, ": ", TypeToString(t.type()),
                                                      " has more than one element; reduce it (sum, mean) or "
                                                      "give the gradient of each element as the seed"));
    return {eager::EdgeOf(t), eager::OnesLike(t)};
  }
  if (seed.impl().symbolic || seed.dtype() != t.dtype || seed.impl().shape != t.shape)
    throw Error(ErrorCode::kInvalidArgument, StrCat(what, ": a seed of type ", seed.TypeString(),
                                                    " for a tensor of type ", TypeToString(t.type())));
  return {eager::EdgeOf(t), seed.impl_ptr()};
}

}  // namespace

void Tensor::backward(const Tensor& seed, BackwardOptions options) const {
  TensorImpl& t = impl();
  if (Recorder* r = Recorder::Current()) return r->Backward(t, seed.impl_.get());
  std::vector<eager::GradientSeed> seeds;
  seeds.push_back(MakeSeed(t, seed, "backward"));
  eager::RunBackward(std::move(seeds), options);
}

std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         const std::vector<Tensor>& seeds, BackwardOptions options, bool allow_unused) {
  if (!seeds.empty() && seeds.size() != outputs.size())
    throw Error(ErrorCode::kInvalidArgument,
                StrCat("grad: ", seeds.size(), " seeds for ", outputs.size(), " outputs"));
  std::vector<ImplPtr> results;
  if (Recorder* r = Recorder::Current()) {
    std::vector<TensorImpl*> out, in, seed;
    for (const Tensor& t : outputs) out.push_back(&t.impl());
    for (const Tensor& t : inputs) in.push_back(&t.impl());
    for (size_t i = 0; i < outputs.size(); ++i)
      seed.push_back(seeds.empty() ? nullptr : seeds[i].impl_ptr().get());
    results = r->Gradients(out, in, seed);
  } else {
    std::vector<eager::GradientSeed> starts;
    for (size_t i = 0; i < outputs.size(); ++i)
      starts.push_back(MakeSeed(outputs[i].impl(), seeds.empty() ? Tensor() : seeds[i], "grad"));
    std::vector<TapeEdge> targets;
    for (size_t i = 0; i < inputs.size(); ++i) {
      TensorImpl& t = inputs[i].impl();
      if (!t.requires_grad)
        throw Error(ErrorCode::kFailedPrecondition, StrCat("grad: input ", i, " (", inputs[i].TypeString(),
                                                           ") requires no gradient: ", WhyNoGradient(t)));
      targets.push_back(eager::EdgeOf(t));
    }
    results = eager::RunGradients(std::move(starts), targets, options);
  }
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i] && !allow_unused)
      throw Error(ErrorCode::kInvalidArgument,
                  StrCat("grad: no output depends on input ", i, " (", inputs[i].TypeString(),
                         "); say allow_unused if that may be"));
    tensors.emplace_back(std::move(results[i]));
  }
  return tensors;
}

}  // namespace sinter
